"""The commands put together, and what happens when one of them fails: one line, never a traceback."""

from __future__ import annotations

import sys
import traceback
import warnings
from typing import Annotated, Any

import typer
from typer.main import get_command

from setwise._version import __version__
from setwise.cli import benchmarks, converting, demonstration, learning, looking, outside, predicting

_IN_COMMANDS = {
    "pass categories='onehot'": "use --one-hot",
    "carry the column along with carry=[…]": "leave it out with --ignore",
    "name the features": "name them with --features",
    "pass impute='median', or impute='nan' to fill gaps in a pipeline of your own": "use --impute median",
    "use missing='full' to let every label be a candidate there": "--missing full lets every label be one there",
    "pass format='csv' or another": "rename the file to .csv, .parquet or another known format",
    "load it with trusted=": "give --trusted for each of ",
    "bring the model along: load(path, estimator=…)": "use Python: ConformalClassifier.load(path, estimator=…)",
}
"""What errors advise in Python, as the command line says it."""

app = typer.Typer(
    name="setwise",
    help="Set-valued labels in, prediction sets out, with a statement of what may be claimed about them.",
    epilog="Start with:  setwise demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
data = typer.Typer(help="Benchmark sets: list them, fetch them.", no_args_is_help=True)

app.command("demo", epilog="Example:  setwise demo --out demo/")(demonstration.demo)
app.command("inspect", epilog="Example:  setwise inspect votes.csv --candidates answers --truth checked")(
    looking.inspect
)
app.command("fit", epilog="Example:  setwise fit votes.csv --candidates answers --out model/ --confidence 0.9")(
    learning.fit
)
app.command("predict", epilog="Example:  setwise predict model/ new.csv --out sets.csv")(predicting.predict)
app.command(
    "conformalize",
    epilog="Example:  setwise conformalize --probabilities scores.parquet --candidates answers.csv --out model.cal",
)(outside.conformalize)
app.command("evaluate", epilog="Example:  setwise evaluate sets.csv --truth checked --json")(looking.evaluate)
app.command(
    "contaminate", epilog="Example:  setwise contaminate labelled.csv --truth label --p 0.1 --out candidates.csv"
)(converting.contaminate)
app.command("convert", epilog="Example:  setwise convert votes.csv --from votes --out candidates.parquet")(
    converting.convert
)
data.command("list", epilog="Example:  setwise data list")(benchmarks.list_sets)
data.command("fetch", epilog="Example:  setwise data fetch lost")(benchmarks.fetch_set)
app.add_typer(data, name="data")


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
    show_traceback = "--traceback" in arguments
    arguments = [argument for argument in arguments if argument != "--traceback"]
    with warnings.catch_warnings():
        warnings.simplefilter("once")
        warnings.showwarning = _show_warning
        return _guarded(arguments, show_traceback=show_traceback)


def _guarded(arguments: list[str], *, show_traceback: bool) -> int:
    try:
        status = get_command(app).main(arguments, prog_name="setwise", standalone_mode=False)
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001 - this is where every error ends
        if show_traceback:
            traceback.print_exc()
        return _report(error)
    return status if isinstance(status, int) else 0


def _report(error: Exception) -> int:
    """One line on stderr, and the exit status."""
    if hasattr(error, "format_message"):  # the parser's own errors
        if message := error.format_message():  # there is none where help was shown instead
            _line(f"error: {message}")
        return 2
    if isinstance(error, typer.Abort):
        return 130
    if isinstance(error, (ValueError, TypeError, OSError, ModuleNotFoundError)):
        text = str(error) or type(error).__name__
        for python, command in _IN_COMMANDS.items():
            text = text.replace(python, command)
        _line(f"error: {text}")
        return 2
    _line(
        f"error: {type(error).__name__}: {error}. This is a fault in setwise {__version__}: please report it, with "
        "what --traceback adds to this line."
    )
    return 1


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _line(f"warning: {message}")


def _line(text: str) -> None:
    sys.stderr.write(" ".join(text.split()) + "\n")
