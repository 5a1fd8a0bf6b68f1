"""The report: one HTML file for whoever must decide whether to trust the sets.

All figures are computed here; the page only shows them. It opens offline and sends nothing.
"""

from setwise.report.reports import build_report, report_model, report_sets

__all__ = ["build_report", "report_model", "report_sets"]
