"""The command line `setwise`: parse, call, print. Commands live in the modules beside, the work elsewhere."""

import gc
import os
import sys

from setwise.cli.interruption import watch_interruptions


def main() -> None:
    """The entry point."""
    _open_closed_streams()  # libraries may write to them as they are imported
    with watch_interruptions():
        try:
            from setwise.cli.app import run  # typer and rich are optional, and slow to import
        except ModuleNotFoundError as error:
            if error.name not in {"typer", "rich"}:
                raise
            sys.stderr.write(f"error: the command line needs {error.name}: pip install 'setwise[cli]'.\n")
            sys.exit(2)
        status = run(sys.argv[1:])
    gc.freeze()  # what was imported is not looked through once more at the end
    sys.exit(status)


def _open_closed_streams() -> None:
    """Opens closed standard streams on the null device; else a file would get their number and their output."""
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(opened)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123


__all__ = ["main"]
