"""The page: Jinja2 with autoescape, everything it needs inside, and a policy that lets nothing else run.

The scripts are allowed by their digests (Content-Security-Policy), so that a label which looks like a script is
text twice over: it is escaped, and would not be let run.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any


def render(contents: dict[str, Any], data: dict[str, Any]) -> str:
    """The page as text; `contents` fill the template, `data` are for the charts."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - optional
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
