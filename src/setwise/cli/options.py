"""Options, each defined once with one meaning in every command, and what the text of some of them stands for.

A parameter bears the name of the library's argument, so that a remedy for the argument finds its option.
"""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setwise.cli.screen import Screen
from setwise.ranks import as_level
from setwise.scores import SCORES
from setwise.storage.atomic_files import check_replaceable, folder_of
from setwise.strategies import STRATEGIES, Mixture, Rectified
from setwise.streams.engines import engine_of

if TYPE_CHECKING:
    from setwise.tables.importers.vote_sources import VoteColumns
    from setwise.tables.table_files import TableFiles

STANDARD = Path("-")
"""Standard input or output."""


def _columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """For the shell's completion: the columns of the first table that the command line names."""
    from setwise.tables.file_formats import column_names  # Arrow is loaded when a file is read

    for given in (*ctx.args, *ctx.params.values()):  # an unfinished line is not yet told apart
        try:
            return [name for name in column_names(Path(str(given))) if name.startswith(incomplete)]
        except (OSError, ValueError):
            continue
    return []


def _words(words: Iterable[str], *more: str) -> Any:
    """For the shell's completion: these words, which may be the names of a registry."""

    def offered(incomplete: str) -> list[str]:
        return [word for word in (*words, *more) if word.startswith(incomplete)]

    return offered


def _column(name: str, meaning: str) -> Any:
    """An option that names a column."""
    return typer.Option(name, help=meaning, autocompletion=_columns)


# -------------------------------------------------------------------- files

_TABLE = (
    "A table: .csv, .tsv, .jsonl, .json, .parquet, .feather, .arrow, .xlsx or .npz; - is standard input. "
    "Several files, a pattern such as 'parts/*.csv', or a folder are read as one."
)
Files = Annotated[list[Path], typer.Argument(help=_TABLE, metavar="FILE...")]
OptionalFiles = Annotated[list[Path] | None, typer.Argument(help=_TABLE, metavar="FILE...")]
_out_file = typer.Option("--out", help="The file to write; its suffix says the format, - is standard output (CSV).")
OutFile = Annotated[Path, _out_file]
OutTable = Annotated[
    Path,
    typer.Option(
        "--out",
        help="The file to write; its suffix says the format, - is standard output (CSV). A folder, or a name "
        "without a suffix, gets one file for each that is read.",
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Into a folder: keep the files that are finished, and make the others.")
]
MemoryLimit = Annotated[
    str,
    typer.Option(
        "--memory-limit",
        help="What calibration rows may take, such as 512MB or 4GB; beyond it a random sample of them is used.",
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        "--engine", help="What works through the files: local (this process) or ray (a cluster, a file at a time)."
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        help="Of a Ray cluster: host:port, or auto for the one here. Default: RAY_ADDRESS, else this machine.",
    ),
]
OptionalOutFile = Annotated[Path | None, _out_file]
OutTasks = Annotated[
    Path,
    typer.Option(
        "--out", help="The file to write; its suffix says the format, .json is tasks for Label Studio, - is CSV."
    ),
]
Labels = Annotated[
    Path | None,
    typer.Option("--labels", help="Another table, with the candidates or true labels of the same rows; see --key."),
]
_probabilities = typer.Option(
    "--probabilities", help="A model's probabilities: a table with one column per class, named as it or p:class."
)
Probabilities = Annotated[Path, _probabilities]
OptionalProbabilities = Annotated[Path | None, _probabilities]
ReportTo = Annotated[Path | None, typer.Option("--report", help="Write an HTML report there, too.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
Separator = Annotated[str, typer.Option("--separator", help="What stands between labels in text.")]
Delimiter = Annotated[
    str | None,
    typer.Option("--delimiter", help="What stands between columns in text. Default: what the first lines show."),
]
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", help="Of text: utf-8, utf-16, cp1252, latin-1, … Default: its mark, else utf-8."),
]
Decimal = Annotated[str | None, typer.Option("--decimal", help="The decimal mark in text. Default: a point.")]
Trusted = Annotated[
    list[str] | None, typer.Option("--trusted", help="A type that the saved model may hold; repeat it.")
]

# -------------------------------------------------------------------- columns

_candidates = _column(
    "--candidates",
    "The column of possible labels: text ('cat|dog'), lists, or the start of multi-hot columns' names.",
)
Candidates = Annotated[str, _candidates]
OptionalCandidates = Annotated[str | None, _candidates]
_truth = _column("--truth", "The column with the true label.")
Truth = Annotated[str, _truth]
OptionalTruth = Annotated[str | None, _truth]
SetsColumn = Annotated[str, typer.Option("--column", help="The column of prediction sets.")]
AnswerColumn = Annotated[
    str | None,
    typer.Option(
        "--answer", help="The column to write labels in, or to leave empty for them. Default: label; verified."
    ),
]
Features = Annotated[
    list[str] | None,
    _column("--features", "A feature column; repeat it. Default: those of the model; in fit, all other columns."),
]
Ignore = Annotated[
    list[str] | None,
    _column("--ignore", "A column that is neither feature nor class (an id, the truth); repeat it."),
]
Verified = Annotated[
    list[str] | None,
    typer.Option(
        "--verified",
        metavar="COLUMN|FILE[:COLUMN]",
        help="True labels of the rows that somebody verified: a column of the table, or a file that --key matches. "
        "The file is a table with the column verified (or the one named), or a Label Studio export. Repeat it for "
        "several sources. Leave cells empty where nobody answered.",
        autocompletion=_columns,
    ),
]
Groups = Annotated[str | None, _column("--groups", "The column that says which rows belong together.")]
By = Annotated[
    str | None,
    _column(
        "--by",
        "A column of categories: each is calibrated, promised and evaluated for itself. In fit and conformalize "
        "'predicted' is the most probable label, unless a column is called so.",
    ),
]
VotesFile = Annotated[
    Path | None,
    typer.Option("--votes", help="Instead of candidates: a table with one answer per line, matched by --key."),
]
_item = _column("--item", "Of votes: the column that says which example an answer is about.")
_annotator = _column("--annotator", "Of votes: the column of who answered.")
_label = _column("--label", "Of votes: the column of answers.")
Item = Annotated[str, _item]
OptionalItem = Annotated[str | None, _item]
Annotator = Annotated[str, _annotator]
OptionalAnnotator = Annotated[str | None, _annotator]
Label = Annotated[str, _label]
OptionalLabel = Annotated[str | None, _label]
Weight = Annotated[str | None, _column("--weight", "Of votes: the column of how much an answer counts.")]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        help="A column of both tables (or a field of Label Studio's tasks) that matches their rows. Default: row "
        "by row.",
    ),
]
FromName = Annotated[
    str | None,
    typer.Option(
        "--from-name",
        help="Of Label Studio: the name of its Choices control. Default: the one there is, or choice.",
    ),
]
ToName = Annotated[
    str, typer.Option("--to-name", help="Of Label Studio: the name of what is labelled, as in the interface.")
]
Classes = Annotated[
    str | None,
    typer.Option("--classes", help="All labels that there are, as candidates are written: ant|cat|owl."),
]
Missing = Annotated[
    str, typer.Option("--missing", help="Rows without candidates: error, or full (every label is one).")
]
Impute = Annotated[str | None, typer.Option("--impute", help="Fill missing features: median, mean, or a number.")]
OneHot = Annotated[bool, typer.Option("--one-hot", help="Turn text features into indicators.")]

# -------------------------------------------------------------------- calibration

_confidence = typer.Option(
    "--confidence",
    help="How often sets shall contain the truth. Default: the model's, else 0.9.",
    show_default=False,
)
Confidence = Annotated[float, _confidence]
ModelsConfidence = Annotated[float | None, _confidence]
Strategy = Annotated[
    str,
    typer.Option(
        "--strategy",
        help=f"{', '.join(STRATEGIES)}; a mixture with its weight is mixture:0.5 or mixture:verified.",
        autocompletion=_words(STRATEGIES, "mixture:0.5", "mixture:verified"),
    ),
]
ConformityScore = Annotated[
    str,
    typer.Option("--conformity-score", help=f"One of {', '.join(SCORES)}.", autocompletion=_words(SCORES)),
]
MissRate = Annotated[
    float, typer.Option("--miss-rate", help="How often the true label may be absent from the candidates.")
]
Assume = Annotated[
    str,
    typer.Option(
        "--assume",
        help="What you declare about how wrong labels become candidates: nothing; uniform (each equally often); "
        "class (it depends on the true class alone); a FILE that says how often (.csv, .npy); or, of votes, "
        "independent (annotators err independently of each other).",
        autocompletion=_words(("nothing", "uniform", "class", "independent")),
    ),
]
Look = Annotated[
    int | None,
    typer.Option(
        "--look",
        help="The number of this look, from 1 on, for whoever looks at the sets and then has more rows checked: "
        "the promise then holds in 95 of 100 samples whenever you stop.",
        min=1,
    ),
]
Cross = Annotated[
    int | None,
    typer.Option(
        "--cross",
        help="Cross-conformal over so many folds: every row learns and calibrates; promises 1 − 2ε.",
        min=2,
    ),
]
CalibrationSize = Annotated[
    float, typer.Option("--calibration-size", help="The share of rows kept for calibration.")
]

# -------------------------------------------------------------------- learning, and what is said

Learner = Annotated[
    str,
    typer.Option(
        "--learner",
        help="auto; covering (learns to cover candidates); network; or em (logistic regression, without torch).",
    ),
]
Network = Annotated[str, typer.Option("--network", help="auto, linear, mlp or cnn.")]
Loss = Annotated[str, typer.Option("--loss", help="proden, rc, cc, naive, osl, merit, gce, lws or cavl.")]
Epochs = Annotated[int | None, typer.Option("--epochs", help="Passes over the rows; 100 if not given.")]
Preset = Annotated[str | None, typer.Option("--preset", help="Named settings, such as recommended.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda, or what torch understands.")]
Seed = Annotated[int, typer.Option("--seed", help="Same seed, same answer.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing unless something is wrong.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout instead of text.")]


def strategy_of(text: str, confidence_level: float, look: int | None = None) -> Any:
    """A strategy as it is written on the command line: a name, or a mixture with its weight.

    The checks are looked at for the `look`-th time by what is proved for repeated looks.
    """
    if look is not None:
        if text not in {"auto", "rectified"}:
            raise ValueError(f"--look: strategy {text!r} does not rest on checks; leave out --strategy, or --look.")
        return Rectified(margin="finite", look=look)
    name, colon, mu = text.partition(":")
    if not colon:
        return text
    if name != "mixture":
        raise ValueError(f"--strategy: {text!r} is not known; only mixture takes a weight, as in mixture:0.5.")
    if mu == "verified":
        return Mixture(mu="verified", tune_for=confidence_level)
    try:
        weight = float(mu)
    except ValueError:
        raise ValueError(f"--strategy: the weight of {text!r} is neither a number nor verified.") from None
    return Mixture(mu=weight)


def assume_of(text: str, labels: list[Any]) -> Any:
    """What is declared about contamination: a word, or the matrix in a file, in the order of the labels.

    Entry (k, l) says how often label l is a candidate where k is true. A .npy file follows the order of the labels.
    A table has one column per label, named so, and its rows follow its columns or are named in one column more.
    """
    if text in {"nothing", "uniform", "class", "independent"}:
        return text
    path = Path(text)
    if not path.is_file():
        raise ValueError(f"--assume: {text!r} is neither nothing, uniform, class or independent nor a file.")
    if path.suffix == ".npy":
        from setwise.storage.stored_arrays import array_of  # needed here alone

        try:
            return array_of(path.read_bytes(), "it")
        except (ValueError, EOFError) as error:
            raise ValueError(f"{path}: not an array of numbers as numpy.save writes it ({error}).") from None
    from setwise.tables import read_table  # Arrow is loaded for files
    from setwise.tables.file_formats import column_names
    from setwise.tables.set_files import probability_columns

    names = column_names(path)
    columns = probability_columns(names, labels) or []
    others = [name for name in names if name not in columns]
    if not columns or len(others) > 1:
        raise ValueError(
            f"{path}: expected one column for each of the labels {', '.join(map(str, labels[:8]))}, named so, and "
            f"at most one more that names the rows; it has {', '.join(names[:8])}."
        )
    table = read_table(path, features=columns, carry=others)
    rows = list(map(str, table.carried[others[0]])) if others else [name for name in names if name in columns]
    if sorted(rows) != sorted(columns) or len(table) != len(columns):
        raise ValueError(f"{path}: expected a row for each of the {len(columns)} labels, found {len(table)} rows.")
    return table.X[[rows.index(name) for name in columns]]


def one_of(candidates: Any, votes: Any, other: str) -> None:
    """Refuses a command line that names neither candidates nor votes, or both."""
    if (candidates is None) == (votes is None):
        raise ValueError(f"give either {other} or --votes (a file with one answer per line).")


def predicted_by(by: str | None, *sources: TableFiles) -> bool:
    """Whether `--by predicted` means the most probable label; a column of that name comes first."""
    from setwise.tables.file_formats import column_names, is_table  # Arrow is loaded for files

    return by == "predicted" and not any(is_table(source) and by in column_names(source) for source in sources)


def verified_in(named: list[str] | None, text: TextOptions, *tables: TableFiles | None) -> dict[str, Any]:
    """Where verified labels stand, as a `RowRequest` takes it: in a column of these tables, in files, or in both.

    A column comes before a file of the same name. Files of arrays do not name their columns.
    """
    from setwise.tables.file_formats import column_names, is_table  # Arrow is loaded for files

    if not named:
        return {}
    known = [(table, column_names(table) if is_table(table) else None) for table in tables if table is not None]
    columns: list[str] = []
    files: dict[Path, str | None] = {}
    for name in named:
        file, _, column = name.rpartition(":")
        if any(names is not None and name in names for _, names in known):
            columns.append(name)
        elif _is_there(name):
            files[Path(name)] = None
        elif column and _is_there(file):
            files[Path(file)] = column
        elif any(names is None for _, names in known):
            columns.append(name)
        else:
            columns_of = " or ".join(f"{table} ({_listed(names or [])})" for table, names in known)
            sought = f"neither a column of {columns_of} nor a file; name a column, or" if known else "no file; name"
            raise ValueError(f"--verified: {name!r} is {sought} FILE:COLUMN.")
    if len(columns) > 1 or len({*files.values()}) > 1:
        raise ValueError("--verified: names several columns; name one of the table, and one of all files.")
    return {
        "truth": columns[0] if columns else None,
        "verified": text.files([*files]),
        "verified_column": next(iter(files.values()), None),
    }


def _is_there(name: str) -> bool:
    """Whether a name, or a pattern, is that of files or of standard input."""
    return name == str(STANDARD) or os.path.exists(name) or bool(glob.glob(name))  # noqa: PTH110, PTH207 - any text


def _listed(names: list[str]) -> str:
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")


@dataclass(frozen=True)
class TextOptions:
    """How text is written in all files that a command line names."""

    delimiter: Delimiter = None
    encoding: Encoding = None
    decimal: Decimal = None

    def files(self, named: Path | list[Path] | None) -> Any:
        """The files of that name, or of those names; - is standard input, and None none."""
        from setwise.tables.table_files import spool_stream, table_files  # Arrow is loaded for files

        if not named:
            return None
        declared = asdict(self)
        several = named if isinstance(named, list) else [named]
        if STANDARD in several:
            if len(several) > 1:
                raise ValueError("-: standard input is read alone; name files only, or - only.")
            return spool_stream(sys.stdin.buffer, **declared)
        return table_files(several, **declared)


@dataclass(frozen=True)
class VoteOptions:
    """The columns of a table of votes."""

    item: OptionalItem = None
    annotator: OptionalAnnotator = None
    label: OptionalLabel = None
    weight: Weight = None

    @property
    def columns(self) -> VoteColumns:
        """As the readers of votes take them."""
        from setwise.tables.importers.vote_sources import VoteColumns  # Arrow is loaded for files

        return VoteColumns(**asdict(self))


@dataclass(frozen=True)
class CalibrationOptions:
    """What sets shall promise, and what is declared about the candidates."""

    by: By = None
    confidence_level: Confidence = 0.9
    strategy: Strategy = "auto"
    conformity_score: ConformityScore = "lac"
    miss_rate: MissRate = 0.0
    assume: Assume = "nothing"

    def strategy_at(self, look: int | None) -> Any:
        """The strategy, for the checks of a `look`."""
        as_level(self.confidence_level)
        return strategy_of(self.strategy, self.confidence_level, look)

    def declarations(self, labels: list[Any]) -> dict[str, Any]:
        """The score, and what is said of candidates over these labels."""
        assume = assume_of(self.assume, labels)
        return {"conformity_score": self.conformity_score, "miss_rate": self.miss_rate, "assume": assume}


@dataclass(frozen=True)
class NetworkOptions:
    """How networks learn."""

    network: Network = "auto"
    loss: Loss = "proden"
    epochs: Epochs = None
    preset: Preset = None


@dataclass(frozen=True)
class EngineOptions:
    """What works through the files."""

    engine: Engine = "local"
    address: Address = None

    def workers(self, device: str = "cpu") -> Any:
        """The engine, which gives each worker the device."""
        return engine_of(self.engine, self.address, device)


@dataclass(frozen=True)
class ScreenOptions:
    """How a command says what it did."""

    quiet: Quiet = False
    as_json: Json = False

    def screen(self, out: Path | None = None) -> Screen:
        """Where it says it; `out` is where its result goes."""
        return Screen(self.quiet, self.as_json, out)


def is_table_file(path: Path) -> bool:
    """Whether a path names a file with columns, and no calibration or model."""
    from setwise.tables.table_files import format_of  # Arrow is loaded for files

    try:
        return path.is_file() and format_of(path) != "npz"
    except ValueError:  # a suffix that no table has: a calibration
        return False


def bytes_of(text: str) -> int:
    """A number of bytes as it is written on the command line: 4GB, 512 MB, 1000000."""
    found = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?)(i?B)?\s*", text, re.IGNORECASE)
    try:
        return int(float(found[1]) * 2 ** (10 * " KMGT".index(found[2].upper() or " ")))  # type: ignore[index]
    except (TypeError, ValueError):
        raise ValueError(f"--memory-limit: {text!r} is not a number of bytes, such as 512MB or 4GB.") from None


def is_folder(out: Path) -> bool:
    """Whether --out names a folder: one that exists, or a name without a suffix."""
    return out != STANDARD and (out.is_dir() or not (out.suffix or out.exists()))


def refuse_existing(path: Path, *, force: bool, folder: bool = False) -> None:
    """Refuses a file (or folder) to write that exists, unless --force is given, or whose folder does not."""
    if path == STANDARD:
        return
    if path.is_dir() and not folder:
        raise ValueError(f"{path}: is a folder; name a file, such as {path / 'sets.csv'}.")
    if path.exists() and not force:
        raise ValueError(f"{path} exists already; use --force to replace it.")
    if not path.is_dir():  # a model may take the place of a model
        check_replaceable(path)
    if not folder_of(path).is_dir():
        raise ValueError(f"{path}: the folder {folder_of(path)} does not exist.")
