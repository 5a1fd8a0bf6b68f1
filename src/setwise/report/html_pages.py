"""HTML pages complete in themselves: the report from its template, and any Markdown page in the report's style.

Text is escaped, and a Content-Security-Policy allows the report's own scripts by their digests and nothing else: a
label that looks like a script is shown as text and would not run.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

_PICTURE = re.compile(r'<img src="([^"]+)"')
_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}
_SHELL = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{title}</title>
<style>{style}
.wide {{ overflow-x: auto; }}
.wide table {{ font-size: .85rem; white-space: nowrap; }}
td, th {{ padding: .25rem .6rem; text-align: left; border-bottom: 1px solid var(--line); }}
img {{ max-width: 100%; background: #fff; border-radius: .6rem; }}
</style>
</head>
<body><main class="card" style="margin: 1.5rem auto; padding: 1.5rem">
{body}
</main></body>
</html>
"""


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


def page_as_html(text: str, beside: Path, title: str) -> str:
    """A page of Markdown, with the pictures that it links from the folder `beside` it written into it.

    Raw HTML in the text is shown, not run.
    """
    from markdown_it import MarkdownIt  # comes with rich, and is needed here alone

    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    body = body.replace("<table>", '<div class="wide" tabindex="0"><table>').replace("</table>", "</table></div>")
    body = _PICTURE.sub(lambda found: f'<img src="{_embedded(beside / found[1])}"', body)
    return _SHELL.format(title=html.escape(title), style=_text("templates/report.css"), body=body)


def _text(name: str) -> str:
    return files("setwise.report").joinpath(name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")


def _embedded(path: Path) -> str:
    content = base64.b64encode(path.read_bytes()).decode()
    return f"data:{_TYPES[path.suffix]};base64,{content}"
