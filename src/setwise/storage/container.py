"""One file of named arrays with a JSON header and a digest: a numpy zip that never holds a pickle."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from setwise._arrays import Array
from setwise._version import __version__
from setwise.errors import InputError
from setwise.storage.atomic_files import open_regular, replacing
from setwise.storage.directory import Part, Source
from setwise.storage.stored_arrays import BROKEN, read_arrays

VERSION_NUMBER = re.compile(r"\d[\w.+!-]{0,30}")
"""What a file may say of the version of a library, where an error repeats it."""
_DIGEST = "digest"


def write_container(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Writes the file; it appears whole or not at all."""
    encoded = np.frombuffer(json.dumps({**header, "setwise": __version__}, default=float).encode(), dtype=np.uint8)
    held: dict[str, Any] = {"header": encoded, **arrays}
    with replacing(path) as beside, beside.open("wb") as file:
        np.savez(file, **held | {_DIGEST: _digest(held)})


def read_container(
    source: Source, kind: str, version: int, *, again: str = "make the file again"
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays; what is not a whole file of this kind and version is refused with a reason.

    `again` is what helps where the file is too old.
    """
    with io.BytesIO(source.content) if isinstance(source, Part) else open_regular(source) as file:
        try:
            arrays = read_arrays(file, source, compressed=False)
            header = read_json(arrays["header"].tobytes())
            found, _ = header["format"], header["version"]
        except BROKEN as error:
            reason = error.problem if isinstance(error, InputError) else repr(error)
            raise ValueError(f"{source}: not a {kind} file ({reason.removeprefix(f'{source}: ')}).") from error
    if found != kind:
        raise ValueError(f"{source}: a {str(found)[:40]} file, not a {kind} file.")
    check_version(header, version, source, again=again)
    noted = arrays.pop(_DIGEST, None)
    if noted is None or not np.array_equal(noted, _digest(arrays)):
        raise ValueError(f"{source}: its content is not what was saved; it was changed or damaged.")
    del arrays["header"]
    return header, arrays


class RepeatedNameError(ValueError):
    """An object in JSON says something twice."""


def read_json(content: str | bytes) -> Any:
    """What JSON says; an object that says something twice, of which readers keep different ones, is refused.

    >>> read_json(b'{"a": 1}')
    {'a': 1}
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
            first, second = [repr(value)[:40] for name, value in pairs if name == twice][:2]
            raise RepeatedNameError(f"{twice!r} occurs twice in one object, as {first} and as {second}")
        return found

    return json.loads(content, object_pairs_hook=once)


def check_version(
    header: Mapping[str, Any], version: int, source: Source, *, again: str = "make the file again"
) -> None:
    """Refuses what another setwise wrote in a format that this one does not read."""
    found = header["version"]
    if type(found) is not int:
        raise ValueError(f"{source}: its version is no number.")
    if found != version:
        noted = str(header.get("setwise"))
        known = VERSION_NUMBER.fullmatch(noted) is not None
        writer = f"setwise {noted}" if known else "another setwise"
        older = f"{again}, or install {writer}" if known else again
        remedy = "update setwise" if found > version else older
        raise ValueError(
            f"{source}: format {found}, written by {writer}; this is setwise {__version__}, "
            f"which reads format {version}: {remedy}."
        )


@contextmanager
def reading_untrusted(source: object, kind: str) -> Iterator[None]:
    """Whatever goes wrong while the content of a file is put together is the file's fault: an error names it."""
    try:
        yield
    except (InputError, FileNotFoundError, ModuleNotFoundError):
        raise
    except BROKEN as error:
        if isinstance(error, ValueError) and str(source) in str(error):
            raise
        reason = " ".join(str(error).split())[:200].rstrip(".")
        told = reason if isinstance(error, ValueError) else f"{type(error).__name__}: {reason}"
        raise ValueError(f"{source}: a {kind} file with a broken or missing part ({told}).") from error


def _digest(arrays: Mapping[str, Any]) -> Array:
    """The SHA-256 of names, types, shapes and values."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        total.update(repr((name, array.dtype.str, array.shape)).encode())
        total.update(array.reshape(-1).view(np.uint8).data)
    return np.frombuffer(total.digest(), dtype=np.uint8)
