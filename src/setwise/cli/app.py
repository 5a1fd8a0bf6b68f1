"""The commands put together, and what happens when one of them fails: one line, never a traceback."""

from __future__ import annotations

import shlex
import sys
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer
from typer.main import get_command

from setwise._version import __version__
from setwise.cli import (
    annotators,
    conformalize,
    contaminate,
    convert,
    data,
    demo,
    evaluate,
    fit,
    inspect,
    predict,
    report,
    reproduce,
    suggest,
    triage,
)
from setwise.cli.screen import visible, write_any_text
from setwise.errors import Advice, Omission, Remedy

_INTERRUPTED = 130  # the exit status of shells for it

_OTHER_NAMES = {  # of options elsewhere
    "--alpha": "The error rate alpha is given as --confidence, 1 - alpha.",
    "--sep": "Columns are told apart by --delimiter, labels by --separator.",
}

app = typer.Typer(
    name="setwise",
    help="Set-valued labels in, prediction sets out, with a statement of what may be claimed about them.",
    epilog="Start with:  setwise demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
_data = typer.Typer(help="Benchmark sets: list them, fetch them.", no_args_is_help=True)


def _add(group: typer.Typer, name: str, command: Callable[..., None], examples: tuple[str, ...]) -> None:
    """A command whose `--help` ends with examples, one per line."""
    heading = "Example:" if len(examples) == 1 else "Examples:"
    group.command(name, epilog="\n\n".join([heading, *(f"  {line}" for line in examples)]))(command)


_add(app, "demo", demo.demo, demo.EXAMPLES)
_add(app, "inspect", inspect.inspect, inspect.EXAMPLES)
_add(app, "annotators", annotators.annotators, annotators.EXAMPLES)
_add(app, "fit", fit.fit, fit.EXAMPLES)
_add(app, "predict", predict.predict, predict.EXAMPLES)
_add(app, "conformalize", conformalize.conformalize, conformalize.EXAMPLES)
_add(app, "suggest", suggest.suggest, suggest.EXAMPLES)
_add(app, "triage", triage.triage, triage.EXAMPLES)
_add(app, "evaluate", evaluate.evaluate, evaluate.EXAMPLES)
_add(app, "contaminate", contaminate.contaminate, contaminate.EXAMPLES)
_add(app, "convert", convert.convert, convert.EXAMPLES)
_add(app, "report", report.report, report.EXAMPLES)
_add(app, "reproduce", reproduce.reproduce, reproduce.EXAMPLES)
_add(_data, "list", data.list_sets, data.EXAMPLES["list"])
_add(_data, "fetch", data.fetch_set, data.EXAMPLES["fetch"])
app.add_typer(_data, name="data")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"setwise {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="On an error, show where in the code it arose.")
    ] = False,
) -> None:
    pass


def run(arguments: list[str]) -> int:
    """Runs the command line and returns its exit status: 0, 2 for the user's mistakes, 1 for ours."""
    write_any_text()
    show_traceback = "--traceback" in arguments
    arguments = [argument for argument in arguments if argument != "--traceback"]
    command = get_command(app)
    with warnings.catch_warnings():
        warnings.simplefilter("once")
        warnings.showwarning = partial(_show_warning, _asked(command, arguments))
        return _guarded(command, arguments, show_traceback=show_traceback)


def _guarded(command: Any, arguments: list[str], *, show_traceback: bool) -> int:
    try:
        status = command.main(arguments, prog_name="setwise", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        status = _INTERRUPTED
    except Exception as error:  # noqa: BLE001 - this is where every error ends
        if show_traceback:
            traceback.print_exc()
        return _report(error, _asked(command, arguments))
    if status == _INTERRUPTED:  # typer returns it, or lets the interruption pass
        _line("interrupted: what was not finished is not written.")
    return status if isinstance(status, int) else 0


def _asked(command: Any, arguments: list[str]) -> Any:
    """The command that the arguments name, or the group where they name none."""
    for word in arguments:
        command = getattr(command, "commands", {}).get(word, command)
    return command


def _report(error: Exception, command: Any) -> int:
    """One line on stderr, and the exit status."""
    if hasattr(error, "format_message"):  # the parser's own errors
        if message := error.format_message():  # there is none where help was shown instead
            meant = _OTHER_NAMES.get(getattr(error, "option_name", ""))
            _line(f"error: {message}" + (f". {meant}" if meant else ""))
        return 2
    if isinstance(error, (ValueError, TypeError, OSError, ModuleNotFoundError)):
        text = _worded(error, command) or type(error).__name__
        _line(" ".join(["error:", text, *getattr(error, "__notes__", [])]))
        return 2
    _line(
        f"error: {type(error).__name__}: {error}. This is a fault in setwise {__version__}: please report it, with "
        "what --traceback adds to this line."
    )
    return 1


def _as_option(command: Any, remedy: Remedy | Omission) -> str | None:
    """A remedy as an option of the command that runs; None where it has no such option."""
    found = next((one for one in command.params if one.name == remedy.argument and one.opts[0][:2] == "--"), None)
    if found is None:
        return None
    if isinstance(remedy, Omission):
        return f"leave out {found.opts[0]}"
    values = remedy.value if isinstance(remedy.value, list) else [remedy.value]
    shown = ["" if found.is_flag else "…" if value is None else shlex.quote(str(value)) for value in values]
    return " ".join(["use", *(f"{found.opts[0]} {value}".strip() for value in shown), remedy.effect]).strip()


def _worded(message: Exception | str, command: Any) -> str:
    return message.worded(partial(_as_option, command)) if isinstance(message, Advice) else str(message)


def _show_warning(command: Any, message: Warning | str, *_: Any, **__: Any) -> None:
    _line(f"warning: {_worded(message, command)}")


def _line(text: str) -> None:
    sys.stderr.write(visible(" ".join(text.split())) + "\n")
