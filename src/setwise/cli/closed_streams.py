"""Standard streams that were closed when the process began: nobody reads there, and a command runs all the same.

A file that is opened later must not get the number of such a stream, as what a library prints would end up in it.
"""

from __future__ import annotations

import os
import sys


def open_closed() -> None:
    """Lets closed standard streams lead nowhere."""
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(opened)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115, PTH123


def output_is_closed() -> bool:
    """Whether there was no standard output when the process began."""
    return sys.__stdout__ is None
