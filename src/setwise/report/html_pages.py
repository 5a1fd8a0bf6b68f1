"""HTML pages complete in themselves, from templates: all in the style of the report.

Text is escaped, and a Content-Security-Policy allows a page's own scripts by their digests and nothing else: a
label that looks like a script is shown as text and would not run.
"""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from setwise._version import __version__
from setwise.errors import DataError

_SIDE = 800  # pixels


def fill_page(template: str, contents: Mapping[str, Any], *, data: Any = None, scripts: Iterable[str] = ()) -> str:
    """A page as text; `contents` fill its template, and `data` are for its scripts, which are files here.

    The template `page` itself takes a title, a style and a body of HTML.
    """
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
    texts = [read_part(script) for script in scripts]
    page: dict[str, Any] = {"data": data, "scripts": texts, "digests": [*map(_digest, texts)]}
    return environment.get_template(f"{template}.html").render(**contents, **page, version=__version__)


def read_part(name: str) -> str:
    """The text of a file of pages."""
    return files("setwise.report").joinpath(name).read_text(encoding="utf-8")


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
        return data_address("svg+xml", path.read_bytes())
    try:
        with Image.open(path) as opened:
            picture = ImageOps.exif_transpose(opened)
            picture.thumbnail((_SIDE, _SIDE))
            form = "PNG" if picture.mode in {"1", "L", "LA", "P", "PA", "RGBA"} else "JPEG"
            held = io.BytesIO()
            (picture if form == "PNG" else picture.convert("RGB")).save(held, form, quality=85)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{path}: is no picture that can be read ({error})") from None
    return data_address(form.lower(), held.getvalue())


def data_address(form: str, content: bytes) -> str:
    """A picture as an address that holds it."""
    return f"data:image/{form};base64,{base64.b64encode(content).decode('ascii')}"


def _digest(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
