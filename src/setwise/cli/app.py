"""The commands put together, and what happens when one of them fails: one line, never a traceback."""

from __future__ import annotations

import shlex
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from setwise._version import __version__
from setwise.cli.interruption import SENTENCE, STATUS
from setwise.cli.option_groups import spread
from setwise.cli.options import EXPERTS, PANELS
from setwise.cli.screen import write_any_text
from setwise.errors import Advice, InputError, Omission, Remedy
from setwise.progress_lines import visible

_FIRST = (
    "demo",
    "annotators",
    "estimate",
    "triage",
    "suspects",
    "suggest",
    "merge",
    "fit",
    "predict",
    "evaluate",
    "report",
    "conformalize",
)
_COMMANDS = (*_FIRST, "inspect", "convert", "contaminate", "datasets")
"""The commands as the first screen lists them.

Each is a module with a function of the same name and `EXAMPLES`; those of a group are in `_GROUPS`.
"""

_GROUPS = {"datasets": ("Lists and fetches benchmark data sets.", {"list": "list_sets", "fetch": "fetch_set"})}


class _Commands(Mapping[str, Any]):
    """The commands by name. The module of a command is imported when the command is looked up."""

    def __getitem__(self, name: str) -> Any:
        if name not in _COMMANDS:
            raise KeyError(name)
        return _command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


class _Group(TyperGroup):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the others would import every command
        return list(self.commands)


@cache
def _command(name: str) -> Any:
    """A command or a group of commands; help ends with examples, one per line."""
    module = import_module(f"setwise.cli.{name}")
    about, functions = _GROUPS.get(name, (None, {name: name}))
    group = typer.Typer(name=name, help=about, no_args_is_help=True, add_completion=False)
    for inner, function in functions.items():
        examples = module.EXAMPLES if about is None else module.EXAMPLES[inner]
        heading = "Example:" if len(examples) == 1 else "Examples:"
        epilog = "\n\n".join([heading, *(f"  {line}" for line in examples)])
        work = getattr(module, function)
        group.command(inner, epilog=epilog)(spread(work))
    command: Any = get_command(group)
    command.rich_help_panel = None if name in _FIRST else "More commands"
    for one in getattr(command, "commands", {name: command}).values():
        one.params.sort(key=lambda parameter: (None, *PANELS).index(getattr(parameter, "rich_help_panel", None)))
        for parameter in one.params:  # --help-all shows them
            parameter.hidden = getattr(parameter, "rich_help_panel", None) == EXPERTS
    return command


_OTHER_NAMES = {  # of options elsewhere
    "--alpha": "The error rate alpha is given as --confidence, 1 - alpha.",
    "--sep": "Use --delimiter for the mark between columns, --separator for that between labels.",
    "--checks": "Use --verified.",
}

app = typer.Typer(
    name="setwise",
    cls=_Group,
    help="Prediction sets with a guarantee, from labels that nobody knows exactly.",
    epilog="Start with:  setwise demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"setwise {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="After an error, print where in the code it occurred.")
    ] = False,
) -> None:
    pass


def run(arguments: list[str]) -> int:
    """Runs the command line and returns its exit status: 0, 2 for what users can mend, 1 for a fault of setwise."""
    write_any_text()
    show_traceback = "--traceback" in arguments
    arguments = [argument for argument in arguments if argument != "--traceback"]
    try:
        status = _run(arguments)
    except (KeyboardInterrupt, typer.Abort):
        status = STATUS
    except Exception as error:  # noqa: BLE001 - this is where every error ends
        if show_traceback:
            for part in traceback.format_exception(error):  # a frame has several lines, a message one
                lines = part.splitlines() if part.startswith("  File") else [part.strip()]
                _to_stderr("".join(f"{visible(line)}\n" for line in lines))
        return _report(error, _find_command(arguments))
    if status == STATUS:  # typer returns it, or lets the interruption pass
        _to_stderr(SENTENCE)
    return status if isinstance(status, int) else 0


def _run(arguments: list[str]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("once")
        warnings.showwarning = lambda message, *_, **__: _line(
            f"warning: {_message_of(message, _find_command(arguments))}"
        )
        return get_command(app).main(arguments, prog_name="setwise", standalone_mode=False)


def _find_command(arguments: list[str]) -> Any:
    """The command that the arguments name; the group if they name none."""
    command: Any = get_command(app)
    for word in arguments:
        with suppress(ImportError):  # which may be what went wrong
            command = getattr(command, "commands", {}).get(word, command)
    return command


def _report(error: Exception, command: Any) -> int:
    """One line on stderr, and the exit status."""
    if hasattr(error, "format_message"):  # the parser's own errors
        if message := error.format_message():  # there is none where help was shown instead
            hint = _OTHER_NAMES.get(getattr(error, "option_name", ""))
            _line(f"error: {message}" + (f". {hint}" if hint else ""))
        return 2
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):  # the second is torch's
        error = InputError(
            "there is too little memory",
            Remedy("memory_limit", "256MB", "to calibrate on a sample of the rows"),
            "give fewer rows or columns at a time",
            "close other programs",
        )
    if isinstance(error, (ValueError, TypeError, OSError, ModuleNotFoundError)):
        text = _message_of(error, command) or type(error).__name__
        _line(" ".join(["error:", text, *getattr(error, "__notes__", [])]))
        return 2
    _line(
        f"error: {type(error).__name__}: {error}. This is a fault in setwise {__version__}. Please report it with "
        "the output of the same command after --traceback."
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
    texts = ["" if found.is_flag else "…" if value is None else shlex.quote(str(value)) for value in values]
    return " ".join(["use", *(f"{found.opts[0]} {value}".strip() for value in texts), remedy.effect]).strip()


def _message_of(message: Exception | str, command: Any) -> str:
    if isinstance(message, Advice):
        return message.format_with(partial(_as_option, command))
    if isinstance(message, OSError) and message.filename is not None:  # str() of it has a number
        return f"{message.filename}: {message.strerror}."
    return str(message)


def _line(text: str) -> None:
    _to_stderr(visible(" ".join(text.split())) + "\n")


def _to_stderr(text: str) -> None:
    """Writes a line; that nobody can read it is no error."""
    with suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()
