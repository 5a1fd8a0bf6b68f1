"""Where benchmark files are found: the folder named by `SETWISE_DATA`, else the cache, else their public home.

A download goes into a folder of its own, is verified there, and then takes its final name in one step; so a
file under its final name is whole, whoever was killed meanwhile. One process fetches a file at a time: the
lock is the operating system's and dies with the process that holds it.

A file whose checksum nobody published is trusted on first use: what it had when it was fetched is written beside it
(`NAME.sha256`, which ``sha256sum --check`` reads), and other content is refused from then on.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from setwise._files import NO_ROOM, replacing, sweep, temporary
from setwise.errors import DataError, Remedy
from setwise.limits import too_large, unpack_limit

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
        import pooch  # noqa: PLC0415 - optional, and slow to import
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
        sweep(place.parent)
        return place
    target = cache_folder() / file.folder / file.name
    if file.url is None:
        raise DataError(f"{file.name}: not found, and no public home is known; {_remedy(file, target)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{target.parent}: cannot be made: {error.strerror}", _ELSEWHERE) from None
    with _locked(target):
        if place := find(file):  # another process fetched it while this one waited
            return place
        with temporary(target.parent, target.name, folder=True) as work:
            fetched = _download(file, work, target, progress=progress)
            if file.is_rar:
                fetched = _unpack(file, fetched, work, target)
            verify(fetched)
            if file.sha256 is None:
                _trust_once(file, fetched, target)
            fetched.replace(target)
    return target


def check_remembered(place: Path, *, fetched: Path | None = None) -> None:
    """Refuses a file that is not what it was when it was fetched first, if that is written beside its `place`."""
    note = _note(place)
    if not note.is_file():
        return
    known, seen = note.read_text("utf-8", errors="replace")[:64], _sha256(fetched or place)
    if seen != known:
        what = "its home now serves content with" if fetched else "its content has"
        raise DataError(
            f"{place}: {what} SHA-256 {seen}, and {known} when it was fetched first",
            f"remove {note} if you trust the new one",
            *(() if fetched else (Remedy("verify", False),)),
        )


def _trust_once(file: RemoteFile, fetched: Path, target: Path) -> None:
    """Says and remembers the checksum of a file that has none, or refuses another one than last time."""
    note = _note(target)
    if note.is_file():
        check_remembered(target, fetched=fetched)
        return
    seen = _sha256(fetched)
    with replacing(note) as beside:
        beside.write_text(f"{seen}  {target.name}\n", encoding="utf-8")
    warnings.warn(
        f"{file.name}: no checksum of it is published, so that {file.url} was trusted; its SHA-256 is {seen}, "
        f"which {note} remembers: other content will be refused.",
        stacklevel=2,
    )


def _note(place: Path) -> Path:
    return place.with_name(f"{place.name}.sha256")


def _sha256(place: Path) -> str:
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(file: RemoteFile, work: Path, target: Path, *, progress: bool) -> Path:
    try:
        import pooch  # noqa: PLC0415 - optional, and slow to import
    except ModuleNotFoundError:
        raise DataError(
            f"{file.name}: not found, and fetching needs pooch; `pip install pooch`, or {_remedy(file, target)}"
        ) from None
    from requests import RequestException  # noqa: PLC0415 - comes with pooch

    shown = progress and importlib.util.find_spec("tqdm") is not None
    downloader = pooch.HTTPDownloader(progressbar=shown, timeout=30)
    place = work / ("archive.rar" if file.is_rar else file.name)
    try:
        downloader(file.url, str(place), None)  # `pooch.retrieve` would print lines of its own
    except (RequestException, OSError, ValueError) as error:
        if getattr(error, "errno", None) in NO_ROOM:
            raise
        reason = f"{type(error).__name__} from {file.url}"
        raise DataError(f"{file.name}: could not be fetched ({reason}); {_remedy(file, target)}") from error
    return place


def _unpack(file: RemoteFile, archive: Path, work: Path, target: Path) -> Path:
    """The wanted file out of a rar archive, with whatever unrar tool is installed."""
    try:
        import rarfile  # noqa: PLC0415 - optional, needed for archives alone
    except ModuleNotFoundError:
        raise DataError(
            f"{file.name}: its home serves a rar archive, and rarfile is not installed; "
            f"`pip install rarfile`, or {_remedy(file, target)}"
        ) from None
    names = {name.lower() for name in (file.name, *file.others)}
    unpacked = work / file.name
    try:
        with rarfile.RarFile(archive) as rar:
            inside = [info for info in rar.infolist() if Path(info.filename).name.lower() in names]
            if not inside:
                held = ", ".join(rar.namelist()[:5])
                raise DataError(
                    f"{file.name}: the archive at {file.url} holds {held} only; {_remedy(file, target)}"
                )
            limit = unpack_limit(archive.stat().st_size)
            with rar.open(inside[0]) as packed, unpacked.open("wb") as plain:
                while chunk := packed.read(2**20):
                    if plain.tell() + len(chunk) > limit:
                        raise too_large(file.url, limit)
                    plain.write(chunk)
    except rarfile.RarCannotExec:
        raise DataError(
            f"{file.name}: its home serves a rar archive, and no tool unpacks it here; install unrar, unar, 7z or "
            f"bsdtar, or {_remedy(file, target)}"
        ) from None
    except rarfile.Error as error:
        raise DataError(
            f"{file.name}: {file.url} is no readable rar archive ({error}); {_remedy(file, target)}"
        ) from None
    return unpacked


def _remedy(file: RemoteFile, target: Path) -> str:
    source = f"download it from {file.url}" if file.url else "obtain it"
    unpack = ", unpack it" if file.is_rar else ""
    place = f"{file.folder}/{file.name} below the folder that SETWISE_DATA names"
    return f"{source}{unpack} and place it at {target}, or at {place}."


@contextlib.contextmanager
def _locked(target: Path) -> Iterator[None]:
    """Holds this file's lock where the system has such locks; elsewhere the final rename alone keeps order."""
    try:
        import fcntl  # noqa: PLC0415 - POSIX only
    except ModuleNotFoundError:
        yield
        return
    flags = (
        os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    )  # a link would let others have a file of ours emptied
    lock = os.open(target.parent / f".{target.name}.lock", flags, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
