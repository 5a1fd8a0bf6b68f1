"""A page of Markdown as one HTML file, complete in itself, in the style of the report."""

from __future__ import annotations

import base64
import re
from pathlib import Path

from setwise.report.html_pages import fill_page

_PICTURE = re.compile(r'<img src="([^"]+)"')
_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}
_STYLE = """
.wide { overflow-x: auto; }
.wide table { font-size: .85rem; white-space: nowrap; }
td, th { padding: .25rem .6rem; text-align: left; border-bottom: 1px solid var(--line); }
img { max-width: 100%; background: #fff; border-radius: .6rem; }
"""


def page_as_html(text: str, beside: Path, title: str) -> str:
    """A page of Markdown, with the pictures that it links from the folder `beside` it written into it.

    Raw HTML in the text is shown, not run.
    """
    from markdown_it import MarkdownIt  # comes with rich, and is needed here alone

    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    body = body.replace("<table>", '<div class="wide" tabindex="0"><table>').replace("</table>", "</table></div>")
    body = _PICTURE.sub(lambda found: f'<img src="{_embedded(beside / found[1])}"', body)
    body = f'<main class="card" style="margin: 1.5rem auto; padding: 1.5rem">{body}</main>'
    return fill_page("page", {"title": title, "style": _STYLE, "body": body})


def _embedded(path: Path) -> str:
    content = base64.b64encode(path.read_bytes()).decode()
    return f"data:{_TYPES[path.suffix]};base64,{content}"
