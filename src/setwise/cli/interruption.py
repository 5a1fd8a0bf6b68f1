"""Ctrl-C at any moment: one sentence and the exit status that shells give it, never a traceback.

While the program starts nothing is begun, and Ctrl-C ends the process. While a command runs it raises
`KeyboardInterrupt`, so that files are put in order; a second one ends the process. Where a library turned the
interruption into an error of its own, in the middle of an import, `asked` tells.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

STATUS = 130
SENTENCE = "interrupted: what was not finished is not written.\n"


def watch() -> None:
    """From now on Ctrl-C ends the process; not where whoever started it has Ctrl-C ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
        sys.excepthook, sys.unraisablehook = _uncaught, _unraisable


@contextmanager
def raised() -> Iterator[None]:
    """Inside, Ctrl-C raises `KeyboardInterrupt` instead."""
    watched = signal.getsignal(signal.SIGINT) is _end
    try:
        if watched:
            signal.signal(signal.SIGINT, _raise)
        yield
        if watched:
            signal.signal(signal.SIGINT, _end)
    except KeyboardInterrupt:  # between two lines of whoever would have caught it
        _end()


def asked() -> bool:
    """Whether Ctrl-C was pressed while a command ran."""
    return signal.getsignal(signal.SIGINT) is _end


def _end(*_: Any) -> None:
    with suppress(OSError):  # nobody listens
        os.write(2, SENTENCE.encode())
    files = sys.modules.get("setwise._files")  # not there yet: nothing was written
    getattr(files, "remove_unfinished", int)()
    os._exit(STATUS)  # nothing above is to run: an import cut short ends in anything


def _raise(*_: Any) -> None:
    signal.signal(signal.SIGINT, _end)
    raise KeyboardInterrupt


def _uncaught(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """What C code prints by itself, as numpy does where its import fails."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)


def _unraisable(what: sys.UnraisableHookArgs) -> None:
    """What arises where nobody can catch it, as while an object is deleted."""
    if not issubclass(what.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(what)
