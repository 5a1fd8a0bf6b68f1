"""A command in a process of its own, to which something happens at a moment that is counted, not timed.

A moment is the n-th time that the process touches a file (opens, renames, removes, locks or syncs it), or the n-th
call of a function: the same on every machine, however busy it is.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setwise.cli import main

KINDS = ("touch", "call")
"""Of moments."""
_TOUCHES = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.scandir", "fcntl.flock", "shutil.rmtree"}
_ELSEWHERE = ("/proc/", "/sys/", "/dev/", "/usr/", "/etc/", sys.prefix, sys.base_prefix)
_CODE = (".py", ".pyc", ".so")


@dataclass(frozen=True)
class Ended:
    """How a process ended, what it said, and how many moments of each kind it had."""

    status: int
    said: str
    moments: dict[str, int]


def run_in(
    folder: Path,
    arguments: tuple[str, ...],
    *,
    at: tuple[str, int] | None = None,
    happens: int | Callable[[], object] = signal.SIGKILL,
    kinds: tuple[str, ...] = ("touch",),
    before: Callable[[], Any] = lambda: None,
) -> Ended:
    """Runs the command line in a forked process, which gets a signal or calls `happens` at the moment `at`.

    `before` is called in that process before the command begins.
    """
    said, words = os.pipe()
    counted, numbers = os.pipe()
    if (process := os.fork()) == 0:
        status = 99
        try:
            os.chdir(folder)
            os.environ |= {"SETWISE_CACHE": str(folder / "cache")}
            os.environ.pop("SETWISE_DATA", None)
            os.dup2(words, 1)
            os.dup2(words, 2)
            sys.stdout, sys.stderr = (open(end, "w", closefd=False) for end in (1, 2))  # noqa: SIM115
            signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a terminal
            sys.argv[1:] = arguments
            before()
            counts = _Counts(at, happens, kinds if at is None else ("touch", at[0]))
            try:
                with counts:
                    main()
            except SystemExit as ended:
                status = ended.code if isinstance(ended.code, int) else 0
            atexit._run_exitfuncs()  # as where the interpreter ends
            os.write(numbers, json.dumps(counts.seen).encode())
        except BaseException:  # noqa: BLE001 - nobody above is to go on in this process
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)
    for end in (words, numbers):
        os.close(end)
    with os.fdopen(said) as text, os.fdopen(counted) as seen:
        told, moments = text.read(), seen.read()
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return Ended(status, told, json.loads(moments or "{}"))


class _Counts:
    """Counts moments, and sends the signal at one of them."""

    def __init__(
        self, at: tuple[str, int] | None, happens: int | Callable[[], object], kinds: tuple[str, ...]
    ) -> None:
        self.at, self.happens = at, happens
        self.seen = dict.fromkeys(kinds, 0)
        self.on = False

    def __enter__(self) -> None:
        sync = os.fsync
        os.fsync = lambda file: (self._count("touch"), sync(file))[1]
        sys.addaudithook(self._audit)
        self.on = True
        if "call" in self.seen:
            sys.setprofile(self._profile)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        self.on = False

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.on and event in _TOUCHES:
            path = arguments[0]
            if isinstance(path, str) and (path.startswith(_ELSEWHERE) or path.endswith(_CODE)):
                return  # modules, and what belongs to the system
            self._count("touch")

    def _profile(self, _: object, event: str, __: object) -> None:
        if event in {"call", "c_call"}:
            self._count("call")

    def _count(self, kind: str) -> None:
        self.seen[kind] += 1
        if (kind, self.seen[kind]) == self.at and self.on:
            self.on = False
            os.kill(os.getpid(), self.happens) if isinstance(self.happens, int) else self.happens()
            self.on = True
