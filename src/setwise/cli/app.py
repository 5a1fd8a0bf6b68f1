"""The commands put together, and what happens when one of them fails: one line, never a traceback."""

from __future__ import annotations

import sys
import traceback
import warnings
from typing import Annotated, Any

import typer
from typer.main import get_command

from setwise._version import __version__
from setwise.cli import (
    benchmarks,
    converting,
    demonstration,
    learning,
    looking,
    outside,
    predicting,
    reporting,
    reproducing,
)

_IN_COMMANDS = {
    "use categories='onehot'": "use --one-hot",
    "use carry=… to carry the column along": "leave it out with --ignore",
    "use features=… to name the features": "name the features with --features",
    "use impute='median', or use impute='nan' to fill gaps in a pipeline of your own": "use --impute median",
    "use delimiter=": "use --delimiter ",
    "use column=…": "use --column",
    "use missing='full' to let every label be a candidate there": "--missing full lets every label be one there",
    "use format='csv' or the name of another format": "rename the file to .csv, .parquet or another known format",
    "load it with trusted=": "give --trusted for each of ",
    "use ConformalClassifier.": "leave out --cross.",
    "pass by to conformalize first": "give --by when you fit or conformalize",
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


def _examples(*lines: str) -> str:
    """What `--help` ends with: one example a line."""
    return "\n\n".join(["Example:" if len(lines) == 1 else "Examples:", *(f"  {line}" for line in lines)])


app.command("demo", epilog=_examples("setwise demo --out demo/"))(demonstration.demo)
app.command("inspect", epilog=_examples("setwise inspect votes.csv --candidates answers --truth checked"))(
    looking.inspect
)
app.command(
    "fit",
    epilog=_examples(
        "setwise fit votes.csv --candidates answers --ignore id --out model/",
        "setwise fit votes.csv --candidates answers --cross 5 --out model/",
        "setwise fit votes.csv --candidates answers --by hospital --out model/",
        "setwise fit votes.csv --candidates answers --strategy corrected --assume rates.csv --out model/",
    ),
)(learning.fit)
app.command(
    "predict",
    epilog=_examples(
        "setwise predict model/ new.csv --out sets.csv",
        "setwise predict model/ new.parquet --out sets.parquet --confidence 0.95 --p-values",
        "setwise predict model.cal --probabilities scores.csv --by hospital --out sets.csv",
    ),
)(predicting.predict)
app.command(
    "conformalize",
    epilog=_examples(
        "setwise conformalize --probabilities scores.csv --candidates answers.csv --key id --out model.cal",
        "setwise conformalize --probabilities scores.csv --candidates answers.csv --by hospital --out model.cal",
        "setwise conformalize --probabilities scores.csv --candidates answers.csv --assume uniform --out model.cal",
    ),
)(outside.conformalize)
app.command(
    "evaluate",
    epilog=_examples(
        "setwise evaluate sets.csv --truth checked --json",
        "setwise evaluate sets.csv --truth checked --by hospital",
    ),
)(looking.evaluate)
app.command(
    "contaminate", epilog=_examples("setwise contaminate labelled.csv --truth label --p 0.1 --out votes.csv")
)(converting.contaminate)
app.command("convert", epilog=_examples("setwise convert votes.csv --from votes --out candidates.parquet"))(
    converting.convert
)
app.command(
    "report",
    epilog=_examples(
        "setwise report model/ new.csv --truth checked --out report.html",
        "setwise report model.cal --probabilities scores.csv --truth checked --out report.html",
        "setwise report sets.csv --truth checked --confidence 0.9 --out report.html",
    ),
)(reporting.report)
app.command("reproduce", epilog=_examples("setwise reproduce --table 5 --seeds 5 --out results/"))(
    reproducing.reproduce
)
data.command("list", epilog=_examples("setwise data list"))(benchmarks.list_sets)
data.command("fetch", epilog=_examples("setwise data fetch lost"))(benchmarks.fetch_set)
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
        text = " ".join([str(error) or type(error).__name__, *getattr(error, "__notes__", [])])
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
