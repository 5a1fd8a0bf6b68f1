"""Options, each defined once with one meaning in every command, and what the text of some of them stands for.

A parameter bears the name of the library's argument, so that a remedy for the argument finds its option.
"""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setwise.cli.screen import Screen
from setwise.findings import join_names
from setwise.ranks import as_level
from setwise.scores import SCORES, Nodes
from setwise.storage.atomic_files import check_replaceable, folder_of
from setwise.strategies import STRATEGIES, Mixture, Rectified
from setwise.streams.engines import engine_of

if TYPE_CHECKING:
    from setwise.tables.importers.vote_sources import VoteColumns
    from setwise.tables.rows import RowRequest
    from setwise.tables.table_files import TableFiles

STANDARD = Path("-")
"""Standard input or output."""


def _complete_word(words: Iterable[str], *more: str) -> Any:
    """For the shell's completion: these words, which may be the names of a registry."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in (*words, *more) if word.startswith(incomplete)]

    return complete


def option(named: str, meaning: str, panel: str | None = None, **more: Any) -> Any:
    """An option with what to type after it, what it means, and under which heading help lists it."""
    name, _, metavar = named.partition(" ")
    return typer.Option(name, metavar=metavar or None, help=meaning, rich_help_panel=panel, **more)


def _column(name: str, meaning: str, panel: str | None = None) -> Any:
    return option(f"{name} COLUMN", meaning, panel)


VOTES, STUDIO, PAGES = "Votes", "Label Studio", "Pages to open in a browser"
LEARNING, LARGE = "Learning", "Large tables"
PRINTED, EXPERTS, READING = "What is printed", "For experts", "How files are read"
PANELS = (VOTES, STUDIO, PAGES, LEARNING, LARGE, PRINTED, EXPERTS, READING)
"""The headings of help after the first options of a command, in their order."""

# -------------------------------------------------------------------- files

_TABLE = (
    "A table: .csv, .tsv, .jsonl, .json, .parquet, .feather, .arrow or .xlsx; - reads standard input. "
    "Several files, a folder, or a pattern in quotes such as 'parts/*.csv' are read as one table."
)
FILES = typer.Argument(help=_TABLE, metavar="FILE...")
WRITTEN = "Its suffix sets the format; - writes CSV to standard output."
OUT_FILE = option("--out FILE", f"File to write. {WRITTEN}")
OUT_TABLE = option(
    "--out FILE",
    f"File to write. {WRITTEN} A folder, or a name without a suffix, receives one file for each file that is read.",
)
RESUME = option("--resume", "Keep the finished files of the output folder and write the others.", LARGE)
MEMORY_LIMIT = option(
    "--memory-limit SIZE",
    "Memory for the calibration rows, such as 512MB or 4GB. If they need more, a random sample of them is used.",
    LARGE,
)
ENGINE = option(
    "--engine ENGINE", "local works in this process; ray works on a Ray cluster, one file at a time.", LARGE
)
ADDRESS = option(
    "--address HOST:PORT",
    "Address of the Ray cluster, or auto for the one on this machine. Default: RAY_ADDRESS, else a new one here.",
    LARGE,
)
OUT_TASKS = option("--out FILE", f"File to write. {WRITTEN} A .json file holds tasks for Label Studio.")
PAGE = option("--page FILE", "HTML page to write, on which people label these rows. It needs --key.", PAGES)
SHOW = _column(
    "--show", "Column to show on the page; repeat it for several. Default: those that hold no labels.", PAGES
)
LABELS = option(
    "--labels FILE",
    "Second table, if the candidates or true labels of the rows stand in a file of their own. Match the rows with "
    "--key.",
)
PROBABILITIES = option(
    "--probabilities FILE",
    "Table with the probabilities of your own model: one column per class, named like the class or p:class.",
)
FORCE = option("--force", "Overwrite files that exist.")
SEPARATOR = option("--separator MARK", "Mark between the labels in one cell.", READING)
DELIMITER = option(
    "--delimiter MARK", "Mark between columns of text files. Default: found in the first lines.", READING
)
ENCODING = option(
    "--encoding NAME",
    "Encoding of text files: utf-8, utf-16, cp1252, latin-1, … Default: utf-8, unless the file starts with the "
    "mark of another.",
    READING,
)
DECIMAL = option("--decimal MARK", "Decimal mark in text files. Default: a point.", READING)
TRUSTED = option(
    "--trusted TYPE",
    "Type in the saved model that you trust, as the error names it. Repeat the option for several.",
    EXPERTS,
)

# -------------------------------------------------------------------- columns

CANDIDATES = _column(
    "--candidates",
    "Column with the candidates, the labels that may be true: text ('cat|dog') or lists. If each label has a 0/1 "
    "column of its own, give the beginning that their names share, such as is_.",
)
TRUTH = _column("--truth", "Column with the true label.")
SETS_COLUMN = option("--column NAME", "Name of the column with the prediction sets.", READING)
_answer = "Name of the column that is written for labels. Default:"
ANSWER_COLUMN = option("--answer NAME", f"{_answer} label.")
VERIFIED_COLUMN = option("--answer NAME", f"{_answer} verified, which is empty.")
_features = "Column with a feature. Repeat the option for several. Default:"
FEATURES = _column("--features", f"{_features} all columns that no other option names.")
MODELS_FEATURES = _column("--features", f"{_features} those that the model learned from.")
IGNORE = _column(
    "--ignore",
    "Column that is neither a feature nor a class, such as an identifier. Repeat the option for several.",
)
VERIFIED = option(
    "--verified COLUMN or FILE[:COLUMN]",
    "True labels of rows that were drawn at random and verified; other cells are empty. Name a column of the "
    "table, or a file whose rows --key matches. In a file the default column is verified; Label Studio exports "
    "are read, too. Repeat the option to combine both.",
)
ORDERED = option(
    "--ordered", "Classes have an order, that of --classes or of numbers: distances between them count."
)
GROUPS = _column("--groups", "Column that shows which rows belong together, such as the patient.")
_by = "Column of categories, such as the hospital: sets are calibrated, guaranteed and evaluated in each of them."
BY = _column("--by", _by)
LEARNED_BY = _column(
    "--by",
    f"{_by} The word predicted makes the most probable label the category. The word label calibrates each true "
    "class by its verified rows, and never names a column.",
)
VOTES_FILE = option(
    "--votes FILE",
    "Votes in place of candidates, matched with --key: a table with one answer per line, a Label Studio export "
    "(JSON, JSON-MIN, CSV, TSV), or the output of a language model's batch.",
)
ITEM = _column(
    "--item", "In a table with one answer per line, the column that says which item (row) it is about.", VOTES
)
ANNOTATOR = _column("--annotator", "In this table, the column that says who answered.", VOTES)
LABEL = _column("--label", "In this table, the column with the answer.", VOTES)
WEIGHT = _column(
    "--weight",
    "In this table, a column that says how much an answer counts: 2 where an expert answered, or the confidence of "
    "a model.",
    VOTES,
)
PATTERN = option(
    "--pattern REGEX",
    "Regular expression for the label in a language model's free text, such as 'Label: (.+)'. Default: the labels "
    "of --classes.",
    VOTES,
)
KEY = _column(
    "--key",
    "Column that identifies a row, by which several files are matched; in Label Studio, a field of the task. "
    "Default: rows are matched in their order.",
)
FROM_NAME = option(
    "--from-name NAME",
    "Name of the labelling control in Label Studio (from_name). Default: the only one; in new tasks, choice.",
    STUDIO,
)
TO_NAME = option(
    "--to-name NAME", "What is labelled, by its name in Label Studio (to_name), such as text or image.", STUDIO
)
CLASSES = option(
    "--classes LABELS",
    "All labels, written like candidates: ant|cat|owl. Default: those in the table. Free text needs them, or "
    "--pattern.",
    READING,
)
MISSING = option(
    "--missing WHAT",
    "Rows without candidates: error stops there; full makes every label a candidate. Default: error; of votes, "
    "rows that nobody answered are left out.",
    READING,
)
RIGHT = option(
    "--right HOW-MANY",
    "How many right labels of a row a set must contain, where its cell has several ('cat|dog'): all, one, or a "
    "share such as 0.9.",
)
EMPTY = option(
    "--empty WHAT", "Rows without any right label, with --right: error stops there; drop leaves them out.", READING
)
IMPUTE = option("--impute VALUE", "Fill missing features with the median, the mean, or this number.", LEARNING)
ONE_HOT = option("--one-hot", "Turn each text feature into 0/1 columns, one for each value.", LEARNING)

# -------------------------------------------------------------------- calibration

_confidence = "Probability with which a set shall contain the true label. Default:"
CONFIDENCE = option("--confidence LEVEL", f"{_confidence} 0.9.", show_default=False)
MODELS_CONFIDENCE = option("--confidence LEVEL", f"{_confidence} that of the model.")
STRATEGY = option(
    "--strategy NAME",
    "How sets are calibrated. auto takes the strongest guarantee that your data justify. The page “Which "
    "strategy” of the documentation has the others.",
    EXPERTS,
    autocompletion=_complete_word(STRATEGIES, "mixture:0.5"),
)
TREE = option(
    "--nodes FILE",
    "Tree over the classes, as a table with the columns parent and child, or JSON. Sets are then nodes of it.",
    EXPERTS,
)
AT_MOST = option("--at-most NUMBER", "How many nodes of the tree a set may need. Default: 1.", EXPERTS, min=1)
CONFORMITY_SCORE = option(
    "--conformity-score NAME",
    "How the probabilities of a row order its labels; the page “Which strategy” of the documentation has the "
    "names.",
    EXPERTS,
    autocompletion=_complete_word(SCORES),
)
MISS_RATE = option("--miss-rate SHARE", "Share of rows whose candidates may lack the true label.", EXPERTS)
ASSUME = option(
    "--assume WHAT",
    "Your statement on how false labels become candidates: nothing; uniform (each equally often); class (it "
    "depends on the true class alone); or a FILE with the rates (.csv, .npy). For votes: independent, if "
    "annotators err independently of each other and who answers has nothing to do with the label.",
    EXPERTS,
    autocompletion=_complete_word(("nothing", "uniform", "class", "independent")),
)
LOOK = option(
    "--look NUMBER",
    "If you inspect the sets before verifying more rows: 1 for the first inspection, 2 for the second, … The "
    "guarantee then holds in 19 of 20 draws, whenever you stop.",
    EXPERTS,
    min=1,
)
CROSS = option(
    "--cross FOLDS",
    "Use every row for learning and for calibration, in this many parts. At confidence 0.9 about 90 % of sets "
    "contain the true label in practice. A little less than 80 % is guaranteed; the guarantee prints how much.",
    LEARNING,
    min=2,
)
CALIBRATION_SIZE = option("--calibration-size SHARE", "Share of the rows that is kept for calibration.", LEARNING)

# -------------------------------------------------------------------- learning, and what is printed

LEARNER = option(
    "--learner NAME",
    "What learns: auto; covering or network (neural networks); or em (logistic regression, without torch).",
    EXPERTS,
)
NETWORK = option("--network NAME", "Kind of network: auto, linear, mlp or cnn.", EXPERTS)
LOSS = option("--loss NAME", "Loss of the network; names: see the documentation of setwise.learn.", EXPERTS)
EPOCHS = option("--epochs NUMBER", "How often the network sees each row. Default: 100.", EXPERTS)
ENSEMBLE = option("--ensemble NUMBER", "How many networks learn; their probabilities are averaged.", EXPERTS, min=1)
DEVICE = option("--device NAME", "Where networks run: auto, cpu, cuda, or another device of torch.", EXPERTS)
SEED = option("--seed NUMBER", "Seed of random choices: the same seed gives the same result.", EXPERTS)
QUIET = typer.Option("--quiet", "-q", help="Print errors and warnings only.", rich_help_panel=PRINTED)


def _show_all_options(context: typer.Context, wanted: bool) -> None:
    """Help with the options for experts, which are hidden elsewhere."""
    if wanted:
        for parameter in context.command.params:
            parameter.hidden = False  # type: ignore[attr-defined]
        typer.echo(context.get_help())
        raise typer.Exit


HELP_ALL = typer.Option(
    "--help-all",
    callback=_show_all_options,
    is_eager=True,
    help="Show this help with the options for experts, which you do not need.",
    rich_help_panel=PRINTED,
)
SHOW_ALL = option("--all", "List everything. Without it, what to look at first.")
JSON = option("--json", "Print one JSON object instead of text.", PRINTED)


def right_of(text: str | None) -> Any:
    """How many right labels a set must contain: a word or a share."""
    if text in {None, "all", "one"}:
        return text
    try:
        return float(str(text))
    except ValueError:
        raise ValueError(f"--right: {text!r} is neither all, one nor a share such as 0.9.") from None


def assume_of(text: str, labels: list[Any]) -> Any:
    """What --assume states about contamination: a word, or the matrix in a file, in the order of the labels.

    Entry (k, l) says how often label l is a candidate where k is true. A .npy file follows the order of the labels.
    A table has one column per label, named so, and its rows follow its columns or are named in one column more.
    """
    if text in {"nothing", "uniform", "class", "independent"}:
        return text
    path = Path(text)
    if not path.is_file():
        raise ValueError(f"--assume: {text!r} is no file; name one, or use nothing, uniform, class or independent.")
    if path.suffix == ".npy":
        from setwise.storage.stored_arrays import array_of  # needed here alone

        try:
            return array_of(path.read_bytes(), "it")
        except (ValueError, EOFError) as error:
            raise ValueError(f"{path}: not an array of numbers as numpy.save writes it ({error}).") from None
    from setwise.tables import read_table  # Arrow is loaded for files
    from setwise.tables.arrow_reading import column_names
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


def is_found(by: str | None, *sources: TableFiles) -> bool:
    """Whether no column holds what `--by` names: the word label, whatever columns there are, or predicted."""
    return by == "label" or is_by_prediction(by, *sources)


def is_by_prediction(by: str | None, *sources: TableFiles) -> bool:
    """Whether `--by predicted` means the most probable label; a column of that name comes first."""
    from setwise.tables.arrow_reading import column_names  # Arrow is loaded for files

    return by == "predicted" and not any(by in column_names(source) for source in sources)


def _verified_in(named: list[str] | None, tables: list[TableFiles]) -> tuple[str | None, list[Path], str | None]:
    """Where verified labels stand: a column of these tables, files, and the column of these files.

    A column comes before a file of the same name.
    """
    from setwise.tables.arrow_reading import column_names  # Arrow is loaded for files

    known = [(table, column_names(table)) for table in tables if named]
    columns: list[str] = []
    files: dict[Path, str | None] = {}
    for name in named or ():
        file, column = file_and_column(name)
        if any(name in names for _, names in known):
            columns.append(name)
        elif _is_there(str(file)):
            files[file] = column
        else:
            columns_of = " or ".join(f"{table} ({join_names(names, 8)})" for table, names in known)
            sought = f"neither a column of {columns_of} nor a file; name a column, or" if known else "no file; name"
            raise ValueError(f"--verified: {name!r} is {sought} FILE:COLUMN.")
    if len(columns) > 1 or len({*files.values()}) > 1:
        raise ValueError("--verified: names several columns; name one of the table, and one of all files.")
    return next(iter(columns), None), [*files], next(iter(files.values()), None)


def file_and_column(name: str) -> tuple[Path, str | None]:
    """A file, and the column that is named after it as in FILE:COLUMN."""
    file, _, column = name.rpartition(":")
    return (Path(file), column) if file and not _is_there(name) and _is_there(file) else (Path(name), None)


def _is_there(name: str) -> bool:
    """Whether a name, or a pattern, is that of files or of standard input."""
    return name == str(STANDARD) or os.path.exists(name) or bool(glob.glob(name))  # noqa: PTH110, PTH207 - any text


@dataclass(frozen=True)
class TextOptions:
    """How text is written in all files that a command line names."""

    delimiter: Annotated[str | None, DELIMITER] = None
    encoding: Annotated[str | None, ENCODING] = None
    decimal: Annotated[str | None, DECIMAL] = None

    def files(self, named: Any) -> Any:
        """The files with this name, or these names; - is standard input. None stays None."""
        from setwise.tables.table_files import spool_stream, table_files  # Arrow is loaded for files

        if not named:
            return None
        if not isinstance(named, (Path, list)):  # files that were found before
            return named
        declared = {name: getattr(self, name) for name in ("delimiter", "encoding", "decimal")}
        several = named if isinstance(named, list) else [named]
        if STANDARD in several:
            if len(several) > 1:
                raise ValueError("-: standard input is read alone; name files only, or - only.")
            return spool_stream(sys.stdin.buffer, **declared)
        return table_files(several, **declared)


@dataclass(frozen=True)
class KnownOptions(TextOptions):
    """What is known of rows whose sets are looked at, and which columns of which files say it."""

    truth: Annotated[str | None, TRUTH] = None
    candidates: Annotated[str | None, CANDIDATES] = None
    labels: Annotated[Path | None, LABELS] = None
    key: Annotated[str | None, KEY] = None
    by: Annotated[str | None, BY] = None
    groups: Annotated[str | None, GROUPS] = None
    column: Annotated[str, SETS_COLUMN] = "labels"
    separator: Annotated[str, SEPARATOR] = "|"

    def request(self, source: TableFiles, **others: Any) -> RowRequest:
        """What is known of the rows of a table."""
        from setwise.tables.rows import RowRequest  # Arrow is loaded for files

        named = {name: getattr(self, name) for name in ("truth", "candidates", "key", "by", "separator")}
        return RowRequest(source=source, labels=self.files(self.labels), features=(), **named, **others)


@dataclass(frozen=True)
class VoteOptions:
    """The columns of a table of votes."""

    item: Annotated[str | None, ITEM] = None
    annotator: Annotated[str | None, ANNOTATOR] = None
    label: Annotated[str | None, LABEL] = None
    weight: Annotated[str | None, WEIGHT] = None
    pattern: Annotated[str | None, PATTERN] = None

    @property
    def columns(self) -> VoteColumns:
        """As the readers of votes take them."""
        from setwise.tables.importers.vote_sources import VoteColumns  # Arrow is loaded for files

        columns = {name: getattr(self, name) for name in ("item", "annotator", "label", "weight", "pattern")}
        return VoteColumns(**columns, classes=self.labels())

    def labels(self, separator: str = "|") -> tuple[str, ...] | None:
        """All labels, where they are listed."""
        return split_labels(getattr(self, "classes", None), separator)


@dataclass(frozen=True)
class OwnVoteOptions(VoteOptions):
    """The columns of a table of votes, and their labels, where no model knows them."""

    classes: Annotated[str | None, CLASSES] = None


@dataclass(frozen=True)
class RowOptions(TextOptions, VoteOptions):
    """Files of votes and verified labels about the rows of a table, and how all files are read."""

    votes: Annotated[Path | None, VOTES_FILE] = None
    key: Annotated[str | None, KEY] = None
    verified: Annotated[list[str] | None, VERIFIED] = None
    from_name: Annotated[str | None, FROM_NAME] = None
    separator: Annotated[str, SEPARATOR] = "|"

    def request(self, source: TableFiles | None, labels: TableFiles | None = None, **others: Any) -> RowRequest:
        """The rows of a table, and of another one with their labels; `others` are the columns of both."""
        from setwise.tables.rows import RowRequest  # Arrow is loaded for files

        truth, files, column = _verified_in(self.verified, [*filter(None, (source, labels))])
        return RowRequest(
            source=source,
            labels=labels,
            votes=self.files(self.votes),
            vote_columns=self.columns,
            truth=truth,
            verified=self.files(files),
            verified_column=column,
            **{name: getattr(self, name) for name in ("key", "from_name", "separator")},
            **others,
        )


@dataclass(frozen=True)
class OwnRowOptions(RowOptions, OwnVoteOptions):
    """The same where no model knows the labels."""


@dataclass(frozen=True)
class ModelOptions:
    """How a model is loaded, and what it predicts from."""

    columns: Annotated[list[str] | None, MODELS_FEATURES] = None
    trusted: Annotated[list[str] | None, TRUSTED] = None
    device: Annotated[str, DEVICE] = "auto"

    def load(self, path: Path, source: TableFiles | None = None) -> tuple[Any, Any]:
        """The model, and the features of all rows of a table."""
        from setwise.streams import model_inputs  # Arrow is loaded for files

        model = model_inputs.load_asked_model(path, self.device, self.trusted)
        return model, None if source is None else model_inputs.all_features(source, model, self.columns)


@dataclass(frozen=True)
class PageOptions:
    """A page on which people label rows."""

    page: Annotated[Path | None, PAGE] = None
    show: Annotated[list[str] | None, SHOW] = None

    def write(
        self, columns: Mapping[str, Any], classes: Any, source: TableFiles | None, key: str | None, **proposals: Any
    ) -> list[str]:
        """Writes the page where one is wanted, and says what to do with it."""
        from setwise.report.label_pages import write_label_page  # needed here alone

        if self.page is None:
            return []
        if key is None:
            raise ValueError("--page: its labels come back by an identifier; name its column with --key.")
        folder = Path() if source is None else folder_of(source.paths[0])
        shown = write_label_page(self.page, columns, classes, key=key, show=self.show, folder=folder, **proposals)
        file = "reviewed.csv" if proposals.get("proposed") is not None else "verified.csv"
        seen = f"saved to {self.page}, which shows {', '.join(shown)}"
        return [f"{seen}   then:  open it in a browser, label the rows, and download {file}"]


@dataclass(frozen=True)
class TreeOptions:
    """A tree whose nodes sets are, and how many of them."""

    nodes: Annotated[Path | None, TREE] = None
    at_most: Annotated[int | None, AT_MOST] = None

    def tree(self, labels: list[Any]) -> tuple[Any, int]:
        """The (parent, child) pairs over these labels, or None without a tree; and the number of nodes."""
        from setwise.tables import read_tree  # Arrow is loaded for files

        if self.nodes is None and self.at_most is not None:
            raise ValueError("--at-most: this is a number of nodes; name their tree with --nodes.")
        pairs = None if self.nodes is None else read_tree(self.nodes, labels)
        return pairs, 1 if self.at_most is None else self.at_most


@dataclass(frozen=True)
class CalibrationOptions(TreeOptions):
    """How sets are calibrated, and what the user states about the candidates."""

    by: Annotated[str | None, LEARNED_BY] = None
    confidence_level: Annotated[float, CONFIDENCE] = 0.9
    strategy: Annotated[str, STRATEGY] = "auto"
    conformity_score: Annotated[str, CONFORMITY_SCORE] = "lac"
    miss_rate: Annotated[float, MISS_RATE] = 0.0
    assume: Annotated[str, ASSUME] = "nothing"

    def strategy_at(self, look: int | None) -> Any:
        """The strategy: a name, or a mixture with its weight; with a `look`, one that holds at repeated looks."""
        as_level(self.confidence_level)
        text = self.strategy
        if look is not None:
            if text not in {"auto", "rectified"}:
                problem = f"--look: strategy {text!r} does not use verified labels"
                raise ValueError(f"{problem}; leave out --strategy, or --look.")
            return Rectified(margin="finite", look=look)
        name, colon, mu = text.partition(":")
        if not colon:
            return text
        if name != "mixture":
            raise ValueError(f"--strategy: {text!r} is not known; only mixture takes a weight, as in mixture:0.5.")
        try:
            weight = float(mu)
        except ValueError:
            raise ValueError(f"--strategy: the weight of {text!r} is no number.") from None
        return Mixture(mu=weight)

    def declarations(self, labels: list[Any]) -> dict[str, Any]:
        """The score, and what the user states about candidates with these labels."""
        assume, (pairs, at_most) = assume_of(self.assume, labels), self.tree(labels)
        if pairs is not None and self.conformity_score != "lac":
            raise ValueError("--conformity-score: sets that are nodes have a score of their own; leave it out.")
        score = self.conformity_score if pairs is None else Nodes(pairs, at_most)
        return {"conformity_score": score, "miss_rate": self.miss_rate, "assume": assume}


@dataclass(frozen=True)
class NetworkOptions:
    """How networks learn."""

    network: Annotated[str, NETWORK] = "auto"
    loss: Annotated[str, LOSS] = "proden"
    epochs: Annotated[int | None, EPOCHS] = None
    ensemble: Annotated[int, ENSEMBLE] = 1


@dataclass(frozen=True)
class EngineOptions:
    """What works through the files."""

    engine: Annotated[str, ENGINE] = "local"
    address: Annotated[str | None, ADDRESS] = None

    def workers(self, device: str = "cpu") -> Any:
        """The engine, which gives each worker the device."""
        return engine_of(self.engine, self.address, device)


@dataclass(frozen=True)
class RunOptions(EngineOptions):
    """The same, and what becomes of files that exist."""

    resume: Annotated[bool, RESUME] = False
    force: Annotated[bool, FORCE] = False


@dataclass(frozen=True)
class ScreenOptions:
    """What a command prints."""

    quiet: Annotated[bool, QUIET] = False
    as_json: Annotated[bool, JSON] = False
    help_all: Annotated[bool, HELP_ALL] = False

    def screen(self, out: Path | None = None) -> Screen:
        """Where it prints; `out` is where its result goes."""
        return Screen(self.quiet, self.as_json, out)


def split_labels(classes: str | None, separator: str = "|") -> tuple[str, ...] | None:
    """The labels of --classes."""
    return None if classes is None else tuple(label.strip() for label in classes.split(separator))


def is_table_file(path: Path) -> bool:
    """Whether a path names a file with columns or standard input, and no calibration or model."""
    from setwise.tables.table_files import format_of  # Arrow is loaded for files

    try:
        return path == STANDARD or (path.is_file() and bool(format_of(path)))
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


def refuse_existing(path: Path | None, *, force: bool, folder: bool = False) -> None:
    """Refuses a file (or folder) to write that exists, unless --force is given, or whose folder does not."""
    if path is None or path == STANDARD:
        return
    if path.is_dir() and not folder:
        raise ValueError(f"{path}: is a folder; name a file, such as {path / 'sets.csv'}.")
    if path.exists() and not force:
        raise ValueError(f"{path} exists already; use --force to replace it.")
    if not path.is_dir():  # a model may take the place of a model
        check_replaceable(path)
    if not folder_of(path).is_dir():
        raise ValueError(f"{path}: the folder {folder_of(path)} does not exist.")
