"""The HTML of the report, complete in itself, from its template.

Text is escaped, and a Content-Security-Policy allows the report's own scripts by their digests and nothing else: a
label that looks like a script is shown as text and would not run.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any


def report_as_html(contents: dict[str, Any], data: dict[str, Any]) -> str:
    """The report as text; `contents` fill the template, `data` are for the charts."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined  # optional
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "the report needs jinja2: pip install 'setwise[report]'.", name=error.name
        ) from error
    environment = Environment(
        loader=PackageLoader("setwise.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    scripts = [_text("vendor/chart.umd.min.js"), _text("templates/report.js")]
    return environment.get_template("report.html").render(
        **contents,
        data=data,
        scripts=scripts,
        digests=[_digest(script) for script in scripts],
        style=_text("templates/report.css"),
        licence=_text("vendor/chart.js-LICENSE.md"),
    )


def _text(name: str) -> str:
    return files("setwise.report").joinpath(name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
