"""The command line `setwise`: parse, call, print. Commands live in the modules beside, the work elsewhere."""

import sys


def main() -> None:
    """The entry point."""
    try:
        from setwise.cli.app import run  # noqa: PLC0415 - typer and rich are optional
    except ModuleNotFoundError as error:
        if error.name not in {"typer", "rich"}:
            raise
        sys.stderr.write(f"error: the command line needs {error.name}: pip install 'setwise[cli]'.\n")
        sys.exit(2)
    sys.exit(run(sys.argv[1:]))


__all__ = ["main"]
