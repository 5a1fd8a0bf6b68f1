"""The command line `setwise`: parse, call, print. Commands live in the modules beside, the work elsewhere."""

import gc
import sys

from setwise.cli.interruption import watch_interruptions


def main() -> None:
    """The entry point."""
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


__all__ = ["main"]
