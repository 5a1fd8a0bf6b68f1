"""Files that appear whole or not at all: written beside their place and then renamed.

What a killed process left behind is removed when the next one writes into the same folder: a temporary file is
locked by the process that writes it, and the lock ends with the process.
"""

from __future__ import annotations

import atexit
import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

fcntl: ModuleType | None
try:
    import fcntl
except ModuleNotFoundError:  # not on Windows: nothing is locked, and nothing swept
    fcntl = None

NO_ROOM = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EROFS, errno.EIO})
"""The errors of a disk that takes no more, whatever is written."""
_OURS = re.compile(r"\..*\.[0-9a-f]{16}\.setwise\.tmp", re.DOTALL)
_swept: set[Path] = set()
_unfinished: set[tuple[int, Path]] = set()  # of which process, as children that are forked know it too


@contextmanager
def replacing(target: str | os.PathLike[str]) -> Iterator[Path]:
    """A path beside the target: what is written there replaces the target at the end, and is removed on an error.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "a.txt")
    >>> with replacing(path) as beside:
    ...     _ = beside.write_text("whole")
    >>> path.read_text(), len(list(path.parent.iterdir()))
    ('whole', 1)
    """
    place = Path(target)
    check_replaceable(place)
    with temporary(folder_of(place), place.name) as beside:
        yield beside
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        beside.replace(place)


@contextmanager
def replacing_together(*targets: Path) -> Iterator[list[Path]]:
    """Paths of the same names in hidden folders: what is written there replaces the targets once all is written.

    No system renames two files at once. The old ones but the first are removed before, so that a process killed
    between two renames leaves a file missing, and never an old one beside a new one.

    >>> import tempfile
    >>> one, other = Path(tempfile.mkdtemp(), "a.txt"), Path(tempfile.mkdtemp(), "b.txt")
    >>> with replacing_together(one, other) as beside:
    ...     _ = [path.write_text("whole") for path in beside]
    >>> one.read_text(), other.read_text(), len(list(one.parent.iterdir()))
    ('whole', 'whole', 1)
    """
    for place in targets:
        check_replaceable(place)
    with ExitStack() as stages:
        stage = [stages.enter_context(temporary(folder_of(place), place.name, folder=True)) for place in targets]
        beside = [folder / place.name for folder, place in zip(stage, targets, strict=True)]
        yield beside
        if targets:
            stages.enter_context(lock_folder(folder_of(targets[0])))  # two processes do not mix theirs
        try:
            put_in_place(beside, targets, alone=targets[1:])
        except (KeyboardInterrupt, SystemExit):  # Ctrl-C
            put_in_place(beside, targets, alone=targets[1:])
            raise


def put_in_place(staged: Sequence[Path], targets: Sequence[Path], alone: Sequence[Path] = ()) -> None:
    """Renames files to their targets, in this order; what was renamed before is passed over.

    Targets that must not stand `alone`, old beside new ones, are removed before the first is renamed.
    """
    if all(path.exists() for path in staged):
        for place in alone:
            place.unlink(missing_ok=True)
    for path, place in zip(staged, targets, strict=True):
        if path.exists():
            path.replace(place)


def folder_of(place: Path) -> Path:
    """The folder that something is written into."""
    try:
        return place.absolute().parent
    except FileNotFoundError:
        raise FileNotFoundError(f"{place}: cannot be written: the folder that this runs in is gone.") from None


def check_name(path: Path) -> None:
    """Refuses a name that is not text: old systems have such, and libraries do not open them."""
    if any("\ud800" <= mark <= "\udfff" for mark in str(path)):
        raise ValueError(f"{str(path)!a}: the name of this file is not UTF-8 text; rename it.")


def check_replaceable(place: Path) -> None:
    """Refuses a place that holds something other than a file: a folder, a device, a pipe."""
    check_name(place)
    if place.exists() and not place.is_file():
        kind = "a folder" if place.is_dir() else "a device or a pipe"
        raise ValueError(f"{place}: is {kind}, which no file replaces; name a file.")


@contextmanager
def temporary(parent: Path, name: str, *, folder: bool = False, private: bool = False) -> Iterator[Path]:
    """A new file (or folder) of a hidden name that nobody knew before; removed at the end if it is still there.

    A `private` one no other user may look into.
    """
    remove_leftovers(parent)
    path, lock = _create_and_lock(parent, name, folder, private)
    try:
        yield path
    except OSError as error:
        named = isinstance(error.__cause__, OSError) and str(path) not in str(error)  # it is about another file
        if not named and (error.errno in NO_ROOM or str(path) in str(error) or not path.exists()):
            raise _writing_error(error, parent / name) from error
        raise
    finally:
        if path.exists():
            _remove(path)
        _unfinished.discard((os.getpid(), path))
        if lock is not None:
            os.close(lock)


@atexit.register
def remove_unfinished() -> None:
    """Removes the temporary files of this process: Ctrl-C may come before, or while, whoever made them does so."""
    for process, path in [*_unfinished]:
        if process == os.getpid():
            with suppress(OSError):
                _remove(path)


def remove_leftovers(parent: Path) -> None:
    """Removes what dead processes of this user left in a folder; once for each folder."""
    if fcntl is None or parent in _swept:
        return
    _swept.add(parent)
    with suppress(OSError), os.scandir(parent) as entries:
        for path in [Path(entry.path) for entry in entries if _OURS.fullmatch(entry.name)]:
            with suppress(OSError):
                _remove_if_dead(path)


@contextmanager
def lock_folder(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """One process at a time: others wait, or are refused. Without locks for folders, nothing is noticed."""
    if fcntl is None:
        yield
        return
    lock = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            problem = f"{folder}: another run writes into this folder; wait until it ends, or name another one."
            raise ValueError(problem) from None
        except OSError:
            pass  # a file system without such locks
        yield
    finally:
        os.close(lock)


def open_regular(path: str | os.PathLike[str], *, follow: bool = True) -> BinaryIO:
    """A file opened for reading, if it is one: pipes and devices are refused and never waited for.

    With ``follow=False`` a symbolic link is refused too.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if not follow:
        if Path(path).is_symlink():
            raise ValueError(f"{path}: is a symbolic link, which is not followed here.")
        flags |= getattr(os, "O_NOFOLLOW", 0)
    opened = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise ValueError(f"{path}: is not a regular file.")
    return os.fdopen(opened, "rb")


def _create_and_lock(parent: Path, name: str, folder: bool, private: bool) -> tuple[Path, int | None]:
    while True:
        path = parent / f".{name[:100]}.{secrets.token_hex(8)}.setwise.tmp"
        _unfinished.add((os.getpid(), path))
        try:
            if folder:
                path.mkdir(0o700 if private else 0o777)
            else:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666))
        except OSError as error:
            _unfinished.discard((os.getpid(), path))
            raise _writing_error(error, parent / name) from error
        if fcntl is None:
            return path, None
        with suppress(FileNotFoundError):  # swept by another process before it was locked
            lock = os.open(path, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if path.exists():
                return path, lock
            os.close(lock)


def _writing_error(error: OSError, target: Path) -> OSError:
    """The same error about what was to be written, not about a temporary file beside it."""
    reason = str(error) if error.errno is None else os.strerror(error.errno)
    told = type(error)(f"{target}: cannot be written: {reason}.")
    told.errno = error.errno  # whoever writes this as a part of something larger names that
    return told


def _remove_if_dead(path: Path) -> None:
    assert fcntl is not None  # noqa: S101 - the caller looked
    lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if os.fstat(lock).st_uid == os.geteuid():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # an OSError where somebody writes it
            _remove(path)
    finally:
        os.close(lock)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
