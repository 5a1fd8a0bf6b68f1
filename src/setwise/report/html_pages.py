"""HTML pages complete in themselves: the report from its template, and other pages in the report's style.

Text is escaped, and a Content-Security-Policy allows a page's own scripts by their digests and nothing else: a
label that looks like a script is shown as text and would not run.
"""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from setwise.errors import DataError

_SIDE = 800  # pixels
_SHELL = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:; {scripts}base-uri 'none'; form-action 'none'">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""  # noqa: E501 - one line of HTML


def report_as_html(contents: dict[str, Any], data: dict[str, Any]) -> str:
    """The report as text; `contents` fill the template, `data` are for the charts."""
    scripts = [_text("vendor/chart.umd.min.js"), _text("templates/report.js")]
    return _fill(
        "report.html",
        **contents,
        data=data,
        scripts=scripts,
        digests=[_digest(script) for script in scripts],
        style=_text("templates/report.css"),
        licence=_text("vendor/chart.js-LICENSE.md"),
    )


def template_as_html(name: str, title: str, contents: dict[str, Any]) -> str:
    """The page that `contents` make of the template `name` (.html and .css), without a script."""
    return shell(title, _fill(f"{name}.html", title=title, **contents), _text(f"templates/{name}.css"))


def data_page_as_html(name: str, title: str, data: Any) -> str:
    """The page that the template `name` (.html, .css and .js) makes in the browser from `data`."""
    markup, style, script = (_text(f"templates/{name}.{suffix}") for suffix in ("html", "css", "js"))
    text = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    held = f'<script type="application/json" id="data">{text}</script>'
    return shell(title, f"{markup}{held}\n<script>{script}</script>", style, script)


def shell(title: str, body: str, style: str = "", script: str | None = None) -> str:
    """A page with this body (HTML) in the report's style, which may run this script and no other."""
    return _SHELL.format(
        title=html.escape(title),
        style=_text("templates/report.css") + style,
        body=body,
        scripts="" if script is None else f"script-src '{_digest(script)}'; ",
    )


def embedded_picture(path: Path) -> str:
    """A picture as a data address; a large one is made smaller.

    >>> import tempfile
    >>> from PIL import Image
    >>> file = Path(tempfile.mkdtemp(), "a.png")
    >>> Image.new("L", (4, 4)).save(file)
    >>> embedded_picture(file)[:22]
    'data:image/png;base64,'
    """
    from PIL import Image, ImageOps  # optional, needed for pictures alone

    if path.suffix.lower() == ".svg":
        return _address("svg+xml", path.read_bytes())
    try:
        with Image.open(path) as opened:
            picture = ImageOps.exif_transpose(opened)
            picture.thumbnail((_SIDE, _SIDE))
            form = "PNG" if picture.mode in {"1", "L", "LA", "P", "PA", "RGBA"} else "JPEG"
            held = io.BytesIO()
            (picture if form == "PNG" else picture.convert("RGB")).save(held, form, quality=85)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{path}: is no picture that can be read ({error})") from None
    return _address(form.lower(), held.getvalue())


def _fill(template: str, **contents: Any) -> str:
    """A template with its contents, which are escaped."""
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
    return environment.get_template(template).render(**contents)


def _address(form: str, content: bytes) -> str:
    return f"data:image/{form};base64,{base64.b64encode(content).decode('ascii')}"


def _text(name: str) -> str:
    return files("setwise.report").joinpath(name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
