"""Where benchmark files are found: the folder named by `SETWISE_DATA`, else the cache, else their public home.

A download goes into a folder of its own, is verified there, and then takes its final name in one step; so a
file under its final name is whole, whoever was killed meanwhile. One process fetches into a folder at a time.

A file whose checksum nobody published is not fetched: whoever wants it places it by hand.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from setwise.errors import DataError
from setwise.storage.atomic_files import NO_ROOM, lock_folder, remove_leftovers, temporary
from setwise.storage.limits import check_unpacked

Verify = Callable[[Path], object]
_ELSEWHERE = "name a folder for fetched files with the environment variable SETWISE_CACHE"


@dataclass(frozen=True)
class RemoteFile:
    """One file of a benchmark set.

    `folder` and `name` say where it lies below the data folder, `url` its public home (None: none is known),
    `sha256` the checksum of its decompressed content (None: none is known), `others` further names under
    which it circulates (with other bytes, therefore without checksum).
    """

    folder: str
    name: str
    url: str | None
    sha256: str | None = None
    others: tuple[str, ...] = ()

    @property
    def is_rar(self) -> bool:
        """Whether the public home serves it inside a rar archive."""
        return self.url is not None and self.url.endswith(".rar")


def data_folder() -> Path | None:
    """The folder named by the environment variable `SETWISE_DATA`, if it is set."""
    named = os.environ.get("SETWISE_DATA")
    return Path(named) if named else None


def cache_folder() -> Path:
    """Where fetched files are kept: `SETWISE_CACHE`, else the user's cache folder."""
    if named := os.environ.get("SETWISE_CACHE"):
        return Path(named)
    with contextlib.suppress(RuntimeError):  # neither HOME nor an entry for this user; some libraries leave the ~
        if (place := _users_cache()).is_absolute():
            return place
    raise DataError("this user has no home folder, where fetched files would be kept", _ELSEWHERE)


def _users_cache() -> Path:
    try:
        import pooch  # optional, and slow to import
    except ModuleNotFoundError:
        return Path.home() / ".cache" / "setwise"
    return Path(pooch.os_cache("setwise"))


def find(file: RemoteFile) -> Path | None:
    """The file as it lies in the data folder or the cache, or None; an idx file may lie there unpacked."""
    names = [file.name, file.name.removesuffix(".gz"), *file.others]
    for root in (data_folder, cache_folder):  # called in turn: the cache is looked for only where it is needed
        places = ((folder / file.folder / name) for folder in [root()] if folder for name in names)
        if place := next((place for place in places if place.is_file()), None):
            return place
    return None


def obtain(file: RemoteFile, verify: Verify, *, progress: bool = True) -> Path:
    """The file's path, fetched from its public home if it is nowhere yet.

    `verify` is called with a fetched file before it takes its final name, and raises if the content is wrong.
    """
    if place := find(file):
        remove_leftovers(place.parent)
        return place
    target = cache_folder() / file.folder / file.name
    if file.url is None or file.sha256 is None:
        reason = "no public home is known" if file.url is None else "no checksum is known by which to verify it"
        raise DataError(f"{file.name}: not found, and {reason}; {_remedy(file, target)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{target.parent}: cannot be made: {error.strerror}", _ELSEWHERE) from None
    with lock_folder(target.parent):
        if place := find(file):  # another process fetched it while this one waited
            return place
        with temporary(target.parent, target.name, folder=True) as work:
            try:
                fetched = _fetch(file, work, progress=progress)
            except DataError:
                raise
            except ModuleNotFoundError as error:
                problem = f"{file.name}: not found, and fetching needs {error.name}; pip install 'setwise[data]'"
                raise DataError(f"{problem}, or {_remedy(file, target)}") from None
            except Exception as error:  # of pooch, requests, rarfile, and what these need
                if getattr(error, "errno", None) in NO_ROOM:
                    raise
                reason = " ".join(f"{type(error).__name__} from {file.url}: {error}".split())[:200]
                raise DataError(f"{file.name}: could not be fetched ({reason}); {_remedy(file, target)}") from error
            verify(fetched)
            fetched.replace(target)
    return target


def _fetch(file: RemoteFile, work: Path, *, progress: bool) -> Path:
    """The file from its public home; out of a rar archive with whatever unrar tool is installed."""
    import pooch  # optional, and slow to import

    place = work / ("archive.rar" if file.is_rar else file.name)
    shown = progress and importlib.util.find_spec("tqdm") is not None
    pooch.HTTPDownloader(progressbar=shown, timeout=30)(file.url, str(place), None)
    if not file.is_rar:
        return place
    import rarfile  # optional, needed for archives alone

    names = {name.lower() for name in (file.name, *file.others)}
    unpacked = work / file.name
    with rarfile.RarFile(place) as rar:
        inside = [info for info in rar.infolist() if Path(info.filename).name.lower() in names]
        if not inside:
            raise FileNotFoundError(f"the archive holds {', '.join(rar.namelist()[:5])} only")
        check_unpacked(file.url, place.stat().st_size, inside[0].file_size)
        with rar.open(inside[0]) as packed, unpacked.open("wb") as plain:
            shutil.copyfileobj(packed, plain)
    return unpacked


def _remedy(file: RemoteFile, target: Path) -> str:
    source = f"download it from {file.url}" if file.url else "obtain it"
    unpack = ", unpack it" if file.is_rar else ""
    place = f"{file.folder}/{file.name} below the folder that SETWISE_DATA names"
    return f"{source}{unpack} and place it at {target}, or at {place}."
