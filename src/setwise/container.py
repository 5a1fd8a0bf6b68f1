"""One file of named arrays with a JSON header: a numpy zip that never holds a pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from setwise._arrays import Array, frozen
from setwise._files import replacing
from setwise._version import __version__


def write_container(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Writes the file; it appears whole or not at all."""
    encoded = np.frombuffer(json.dumps(header, default=float).encode(), dtype=np.uint8)
    with replacing(path) as beside, beside.open("wb") as file:
        np.savez(file, header=encoded, **arrays)  # type: ignore[arg-type]


def read_container(
    path: str | os.PathLike[str], kind: str, version: int
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays; anything that is not a file of this kind, or is too new, is refused with a reason."""
    try:
        with Path(path).open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: frozen(file[name]) for name in file.files}
        header = json.loads(arrays.pop("header").tobytes())
        found, written = header["format"], header["version"]
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, AttributeError, TypeError, EOFError, BadZipFile) as error:
        raise ValueError(f"{path}: not a {kind} file ({error}).") from error
    if found != kind:
        raise ValueError(f"{path}: a {found} file, not a {kind} file.")
    check_version(header, version, path)
    if written < version:
        raise ValueError(f"{path}: format {written} is no longer read (now {version}); make the file again.")
    return header, arrays


def check_version(header: Mapping[str, Any], version: int, path: str | os.PathLike[str]) -> None:
    """Refuses what a newer setwise wrote in a format that this one does not know."""
    if header["version"] > version:
        raise ValueError(
            f"{path}: format {header['version']}, written by setwise {header.get('setwise')}; this is setwise "
            f"{__version__}, which reads formats up to {version}. Update setwise."
        )
