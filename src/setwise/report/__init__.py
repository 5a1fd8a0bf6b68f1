"""The report: one HTML file, made for the person who must decide whether to trust the sets.

Everything in it is computed here; the page only shows it. It opens without a network, and nothing in it leaves it.
"""

from setwise.report.building import build_report, report_model, report_sets

__all__ = ["build_report", "report_model", "report_sets"]
