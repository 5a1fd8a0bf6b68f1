"""Ctrl-C at any moment: one sentence and the exit status that shells give it, never a traceback.

It raises `SystemExit`, so that files are put in order on the way out and no library takes it for an error of its
own: C code that prints an error in the middle of an import, as numpy's does, ends the process there. A second
Ctrl-C ends the process at once.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

STATUS = 130
SENTENCE = "interrupted: what was not finished is not written.\n"


@contextmanager
def watch_interruptions() -> Iterator[None]:
    """Inside, Ctrl-C ends the program so; not where whoever started it has Ctrl-C ignored."""
    if ours := signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    except SystemExit as ended:
        if ended.code == STATUS:
            with suppress(OSError):  # nobody listens
                sys.stderr.write(SENTENCE)
                sys.stderr.flush()
        raise
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def _interrupt(*_: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise SystemExit(STATUS)
