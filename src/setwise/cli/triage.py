"""`setwise triage`: which rows may be accepted with the label proposed for them, and which go to review."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from setwise._arrays import Ints
from setwise.cli import options as opt
from setwise.cli.screen import Screen
from setwise.labels.vocabulary import MISSING, missing_labels
from setwise.storage.atomic_files import replacing_together
from setwise.streams.engines import run_local

if TYPE_CHECKING:
    from setwise.decisions.triage import Triage
    from setwise.streams.batch_predictor import BatchPredictor
    from setwise.tables.rows import RowRequest
    from setwise.tables.table_files import TableFiles
    from setwise.tables.tabular import Table

EXAMPLES = (
    "setwise triage model/ new.csv --max-error 0.05 --out accepted.csv --review review.csv",
    "setwise triage model/ photos.csv --out accepted.csv --review review.json",
    "setwise triage model.cal --probabilities scores.csv --mode accepted --out accepted.csv --review review.csv",
    "setwise triage --votes answers.csv --item photo --verified true.csv --key photo --out ok.csv --review no.csv",
)
_OUT = opt.option(
    "--out FILE",
    f"File for the accepted rows, with their labels. {opt.WRITTEN} A folder, or a name without a "
    "suffix, receives one file for each file that is read.",
)
_REVIEW = opt.option(
    "--review FILE",
    "File for the other rows, those to look at first on top. A .json file holds tasks for Label Studio. In a "
    "folder the rows keep their order, and the column rank gives their place.",
)
_REPORT = opt.option(
    "--report FILE",
    "HTML page to write on this decision: what is accepted and guaranteed, what other max errors would accept, "
    "and the rows to look at first.",
    opt.PAGES,
)
_CHOOSE = opt.option(
    "--choose SHARE",
    "Use this max error of the curve, after you have seen on the page of --report what each accepts. Leave "
    "--max-error as it was. Settle before you look: take the first decision, or choose from the curve alone.",
    opt.PAGES,
)
_MODEL = typer.Argument(
    help="Model directory or calibration file with verified rows. Leave it out for votes without a model.",
    metavar="[MODEL]",
)
_MODE = opt.option(
    "--mode MODE",
    "What --max-error is a share of. overall: of all rows, after people corrected those to review. accepted: of "
    "the accepted rows alone. Both hold in 19 of 20 draws of the verified rows. average: of the accepted rows, on "
    "average.",
)
_LOOK = opt.option(
    "--looks NUMBER",
    "How many looks you plan, if you verify more rows and decide again: the guarantee holds at whichever you "
    "stop. Fix the numbers of verified rows beforehand.",
    opt.EXPERTS,
)
_BY = opt.option(
    "--by WHAT",
    "predicted decides each proposed label by its own verified rows, so that the guarantee holds within each; "
    "with --votes, a column of FILE does so for each of its values.",
    opt.EXPERTS,
)


def triage(
    *,
    out: Annotated[Path, _OUT],
    review: Annotated[Path, _REVIEW],
    pages: opt.PageOptions,
    report: Annotated[Path | None, _REPORT] = None,
    choose: Annotated[float | None, _CHOOSE] = None,
    model: Annotated[Path | None, _MODEL] = None,
    file: Annotated[list[Path] | None, opt.FILES] = None,
    probabilities: Annotated[Path | None, opt.PROBABILITIES] = None,
    max_error: Annotated[
        float, opt.option("--max-error SHARE", "Share of the labels that may be wrong in the end; see --mode.")
    ] = 0.05,
    mode: Annotated[str, _MODE] = "overall",
    look: Annotated[int, _LOOK] = 1,
    by: Annotated[str | None, _BY] = None,
    candidates: Annotated[str | None, opt.CANDIDATES] = None,
    about: opt.OwnRowOptions,
    to_name: Annotated[str, opt.TO_NAME] = "text",
    answer: Annotated[str | None, opt.ANSWER_COLUMN] = None,
    loading: opt.ModelOptions,
    random_state: Annotated[int, opt.SEED] = 0,
    runs: opt.RunOptions,
    display: opt.ScreenOptions,
) -> None:
    """Accepts labels so that few of them are wrong, and lists the other rows for review."""
    from setwise.cli.outputs import take  # Arrow is loaded for files
    from setwise.streams.batch_predictor import BatchPredictor

    screen = display.screen(opt.STANDARD if opt.STANDARD in {out, review} else out)
    if out.resolve() == review.resolve():
        raise ValueError("--review: is the file of --out; name another one.")
    if model is not None and not file and about.votes is not None and opt.is_table_file(model):
        file, model = [model], None  # votes without a model
    if model is not None and opt.is_table_file(model):
        raise ValueError(f"{model}: is a table; name a MODEL before it, or --votes FILE for votes without a model.")
    in_parts = _are_folders(out, review, [pages.page, report], choose, runs)
    if file and probabilities is not None:
        raise ValueError("--probabilities: this file holds the rows to decide; leave out FILE.")
    source = about.files(probabilities or file)
    request = about.request(source, candidates=candidates, features=(), missing="empty")
    asked: dict[str, Any] = {"max_error": max_error, "mode": mode, "look": look, "by": by}
    if in_parts:
        if model is None or any((about.votes, about.verified)) or not (file or probabilities):
            raise ValueError(
                "triage: folders take new rows of a MODEL, as FILE or --probabilities. With --votes or --verified "
                "name files as --out and --review."
            )
        predictor = BatchPredictor(model, probabilities=probabilities is not None, **asdict(loading))
        _refuse_checks(request, model, predictor.calibration.parts[0])
        asked |= {"candidates": candidates, "separator": about.separator}
        with screen.working("deciding"):
            decided = _in_parts(predictor, request.source, out, review, answer or "label", asked, runs)
        counts = {"rows": len(decided), "checked": 0, "undecided": 0}
        _say(screen, decided, out, review, counts, *_write_report(report, decided, {}))
        return
    with screen.working("deciding"):
        if model is None:
            own = asked | {"random_state": random_state}
            made = _of_votes(request, own, with_probabilities=probabilities is not None)
        elif probabilities is not None:
            made = _of_calibration(model, request, asked)
        else:
            made = _of_model(model, request, asked, loading)
    if choose is not None:
        made = replace(made, found=made.found.choose(choose))
    rows, proposed, sure = made.reviewed
    shown, marks = take(made.columns, rows), {"drawn": [False] * len(rows)}  # which were not drawn at random
    proposals: dict[str, Any] = {"proposed": proposed, "confidence": sure, "separator": about.separator}
    told = pages.write(shown, made.classes, source, about.key, **proposals, marks=marks)
    told += _write_report(report, made.found, shown, proposed, sure)
    written = {"separator": about.separator, "from_name": about.from_name, "to_name": to_name}
    _write(made, out, review, answer or "label", written)
    told += made.remarks(review)
    counts = {"rows": made.n, "checked": len(made.checked), "undecided": len(made.undecided)}
    _say(screen, made.found, out, review, counts, *told, kept=made.kept)


def _are_folders(
    out: Path, review: Path, pages: list[Path | None], choose: float | None, runs: opt.RunOptions
) -> bool:
    """Whether the outputs are folders, and not files; refuses one of each, and files that exist."""
    folders = opt.is_folder(out)
    if folders != opt.is_folder(review):
        raise ValueError("--review: name a folder where --out is one, and a file where it is a file.")
    if runs.resume and not folders:
        raise ValueError("--resume: completes folders of files; name folders with --out and --review.")
    if runs.workers() is not run_local and not folders:
        raise ValueError("--engine: others than local write folders; name folders with --out and --review.")
    if folders and (pages[0] or choose) is not None:
        raise ValueError("--page, --choose: are for the rows of files; name files with --out and --review.")
    for target in pages if folders else (out, review, *pages):
        opt.refuse_existing(target, force=runs.force)
    return folders


def _say(
    screen: Screen,
    found: Triage,
    out: Path,
    review: Path,
    counts: dict[str, int],
    *told: str,
    kept: Ints | slice = slice(None),
) -> None:
    """What was decided, for people and for scripts; `kept` are the entries that stand in the files."""
    accepted = found.accepted[kept]
    taken, others = int(accepted.sum()), int((~accepted).sum())
    screen.show(found)
    screen.say(*(line for one in told for line in ("", one)))
    screen.say("", f"saved to {out} ({taken:,} rows) and {review} ({others + counts['undecided']:,} rows)")
    result = {
        "accepted": taken,
        "review": others,
        "mode": found.mode,
        "max_error": found.max_error,
        "bound": found.bound,
        "by": {str(name): part.bound for name, part in found.by_category.items()},
        "deciding": found.deciding.tolist(),
        "verified": found.verified,
        "threshold": found.threshold if taken else None,
        "guarantee": found.guarantee.to_dict(),
        "out": str(out),
        "review_out": str(review),
    }
    screen.emit(counts | result)


def _in_parts(
    predictor: BatchPredictor,
    source: TableFiles,
    out: Path,
    review: Path,
    column: str,
    asked: dict[str, Any],
    runs: opt.RunOptions,
) -> Triage:
    """Each file into one of accepted rows and one of rows to review."""
    from setwise.cli.outputs import refuse_taken  # Arrow is loaded for files
    from setwise.streams.table_parts import digest_of, open_folders, parts_of
    from setwise.streams.triaged_parts import TriageWriter, triage_parts
    from setwise.tables.arrow_reading import column_names

    names = column_names(source)
    refuse_taken(names, [column, "confidence", "proposed", "rank"])
    parts, others = parts_of(source, out), parts_of(source, review)
    # The rows of all files decide together: one that changed changes the output of the others.
    everything = {"files": [part.input for part in parts], "answer": column, **predictor.describe(), **asked}
    writer = TriageWriter(digest_of(everything, source), column, asked.pop("separator"))
    asked |= {"writer": writer, "resume": runs.resume}
    with open_folders({out: parts, review: others}, writer.question, force=runs.force, resume=runs.resume):
        return triage_parts(predictor, parts, others, names, runs.workers(predictor.wanted_device), **asked)


@dataclass(frozen=True, eq=False)
class _Decided:
    """The columns of rows, all labels, what was decided, and the positions of rows that somebody looked at before.

    `found` is as the triage made it, and may hold some of those, reviewed and not drawn; only `kept` leaves them
    out. `why` says why others are not decided.
    """

    columns: Mapping[str, Any]
    classes: list[Any]
    found: Triage
    checked: Ints
    why: str = ""

    @property
    def n(self) -> int:
        """How many rows there are."""
        return max(map(len, self.columns.values()), default=0)

    @property
    def settled(self) -> Ints:
        """The entries of what was decided whose label somebody looked up before."""
        return np.flatnonzero(np.isin(self.found.rows, self.checked))

    @property
    def kept(self) -> Ints:
        """The other entries."""
        return np.setdiff1d(np.arange(len(self.found.rows)), self.settled)

    @property
    def undecided(self) -> Ints:
        """Rows that are neither decided nor checked."""
        settled = np.concatenate([self.found.rows[self.kept], self.checked])
        left = np.setdiff1d(np.arange(self.n), settled)
        if len(settled) + len(left) != self.n:
            raise RuntimeError(f"{len(settled):,} + {len(left):,} rows of {self.n:,} are accounted for")
        return left

    def remarks(self, review: Path) -> list[str]:
        """Which rows stand in neither file, and which are not decided: sentences."""
        said = []
        if len(self.checked):
            said = [f"{len(self.checked):,} rows were verified or reviewed before, and are in neither file."]
        if len(self.settled):
            taken = int(self.found.accepted[self.settled].sum())
            left = len(self.settled) - taken
            said[0] += f" The figures above count {taken:,} of them as accepted and {left:,} as to review."
        if left := len(self.undecided):
            said.append(f"{left:,} rows are not decided, and stand last in {review}: {self.why}")
        return said

    @property
    def reviewed(self) -> tuple[Ints, list[Any], list[float | None]]:
        """The rows to review, those to look at first on top and undecided ones last; labels and confidences."""
        found, left = self.found, self.undecided
        place = np.argsort(found.rows)
        order = place[np.searchsorted(found.rows, found.review, sorter=place)]
        order = order[np.isin(order, self.kept)]
        none = [None] * len(left)
        proposed = [*found.labels[order].tolist(), *none]
        return np.concatenate([self.found.rows[order], left]), proposed, [*found.confidence[order].tolist(), *none]


def _of_votes(request: RowRequest, asked: dict[str, Any], *, with_probabilities: bool) -> _Decided:
    """Of votes alone, about the rows of a table (of probabilities) or about the items that they name."""
    import setwise  # scikit-learn is loaded
    from setwise.crowd.vote_warnings import UnansweredWarning
    from setwise.streams import model_inputs as saved  # Arrow is loaded for files
    from setwise.tables.rows import read_rows

    if request.votes is None:
        raise ValueError("triage: give a MODEL with verified rows, or --votes FILE with --verified.")
    if request.candidates is not None:
        raise ValueError("--candidates: votes are given instead; leave out --candidates.")
    if request.source is None and request.verified is None:
        raise ValueError("--verified: votes alone do not show who is right; name a FILE with verified labels.")
    if asked["by"] is not None and request.source and not opt.is_by_prediction(asked["by"], request.source):
        rows = read_rows(replace(request, by=asked["by"]))
        asked |= {"by": rows.by}
    else:
        rows = read_rows(request)
    votes: Any = rows.votes
    if with_probabilities:
        asked |= {"probabilities": saved.all_probabilities(request.source, votes.classes.tolist())}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnansweredWarning)  # it was said of the file
        found = setwise.triage(votes, rows.truth, **asked)
    return _decide_rows(request.source, votes.classes.tolist(), found, rows, "nobody answered them.")


def _of_calibration(path: Path, request: RowRequest, asked: dict[str, Any]) -> _Decided:
    """Of a calibration file and probabilities: of new rows, or of those that it was calibrated on."""
    from setwise.probabilities.proposed_labels import most_probable
    from setwise.streams import model_inputs as saved  # Arrow is loaded for files
    from setwise.tables.rows import output_columns, read_rows

    calibration = saved.load_calibration(path)
    _refuse_checks(request, path, calibration)
    classes = calibration.classes.tolist()
    rows, matrix = read_rows(replace(request, classes=classes)), saved.all_probabilities(request.source, classes)
    columns = output_columns(request.source, rows)
    if saved.is_calibration_data(calibration, most_probable(matrix)):
        return _Decided(
            columns, classes, calibration.triage(**asked), _verified_numbers(calibration), "they had no candidates."
        )
    return _Decided(columns, classes, calibration.triage(matrix, rows.answers, **asked), np.arange(0))


def _of_model(path: Path, request: RowRequest, asked: dict[str, Any], loading: opt.ModelOptions) -> _Decided:
    """Of a model and rows: new ones, or those that it was fitted on."""
    from setwise.streams import model_inputs as saved  # Arrow is loaded for files
    from setwise.tables.rows import output_columns, read_rows

    source = request.source
    if source is None:
        raise ValueError(f"{path}: name the FILE with the rows to decide, or --probabilities FILE.")
    model, X = loading.load(path, source)
    parts = model.calibration_.parts
    if len(parts) == 1:
        _refuse_checks(request, path, parts[0])
    classes = model.classes_.tolist()
    rows = read_rows(replace(request, classes=classes))
    given, answers = output_columns(source, rows), rows.answers if request.candidates or request.votes else None
    with saved.no_name_warnings():
        own = saved.is_training_data(model, X)
        if len(parts) > 1 and not own:
            raise ValueError(
                f"{path}: decides the rows that it was fitted on, in their order; {source} holds others."
            )
        if not own:
            return _Decided(given, classes, model.triage(X, answers, **asked), np.arange(0))
        if len(parts) == 1:
            learned = "the model learned from them. With fit --cross 5, and --verified here, every row is decided."
            return _Decided(given, classes, model.triage(**asked), _verified_numbers(parts[0]), learned)
    verified = rows.truth if request.truth or request.verified else None
    return _decide_rows(source, classes, model.triage(verified=verified, **asked), rows)


def _decide_rows(source: Any, classes: list[Any], found: Triage, rows: Table, why: str = "") -> _Decided:
    """The decision on rows some of whose labels are known, be they drawn at random or not."""
    from setwise.tables.rows import output_columns  # Arrow is loaded for files

    known = ~missing_labels(np.asarray(rows.truth))
    known |= False if rows.known is None else rows.known
    return _Decided(output_columns(source, rows), classes, found, np.flatnonzero(known), why)


def _refuse_checks(request: RowRequest, path: Path, calibration: Any) -> None:
    """A model that is calibrated brings its checks along; one without any cannot say how often it is wrong."""
    if request.truth or request.verified:
        raise ValueError(
            f"--verified: {path} has the verified labels that it was calibrated with; leave out --verified, or "
            "give them to fit or conformalize."
        )
    if calibration.evidence.label is None:
        raise ValueError(
            f"{path}: was calibrated without verified labels, and only these show how often proposals are wrong; "
            "draw rows with setwise suggest, verify them, and give them to fit or conformalize with --verified."
        )


def _verified_numbers(calibration: Any) -> Ints:
    """The numbers of the calibration rows that somebody checked."""
    evidence = calibration.evidence
    rows = np.flatnonzero(evidence.label != MISSING)
    return rows if evidence.position is None else evidence.position[rows]


def _write_report(path: Path | None, found: Triage, *review: Any) -> list[str]:
    """The page on a triage where one is wanted, with the rows to review where they are at hand."""
    from setwise.report.triage_page import write_triage_page  # Arrow is loaded for files

    if path is None:
        return []
    write_triage_page(path, found, *review)
    return [f"saved to {path}, a page on this decision"]


def _write(made: _Decided, out: Path, review: Path, column: str, options: dict[str, Any]) -> None:
    """The accepted rows in their order, and the others: rows to look at first on top, undecided ones last."""
    from setwise.cli.outputs import refuse_taken, take, write_rows  # Arrow is loaded for files
    from setwise.tables.set_files import sets_format

    refuse_taken(made.columns, [column, "confidence", "proposed", "rank", "drawn"])
    found, kept = made.found, made.kept
    yes = kept[found.accepted[kept]]
    yes = yes[np.argsort(found.rows[yes])]
    accepted = take(made.columns, found.rows[yes])
    accepted |= {column: found.labels[yes], "confidence": found.confidence[yes]}
    rows, proposed, sure = made.reviewed
    others = take(made.columns, rows) | {"proposed": proposed, "confidence": sure}
    others |= {"rank": np.arange(1, len(rows) + 1), "drawn": [False] * len(rows)}
    others |= {} if review.suffix == ".json" else {column: [""] * len(rows)}
    files = [path for path in (out, review) if path != opt.STANDARD]
    for path in files:
        if path.suffix != ".json":  # tasks
            sets_format(path)
    with replacing_together(*files) as beside:
        place_of = {opt.STANDARD: opt.STANDARD, **dict(zip(files, beside, strict=True))}
        write_rows(place_of[out], accepted, proposal=(column, "confidence"), **options)
        write_rows(place_of[review], others, proposal=("proposed", "confidence"), **options)
