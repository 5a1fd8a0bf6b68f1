"""One sample of a cell: calibrated as a user would, asked for its sets, and what happens to new rows."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from setwise import ConformalClassifier, CrossConformalClassifier, LabelSets, Votes, conformalize
from setwise.conformal.calibration import Calibration
from setwise.guarantees import Claim
from setwise.tables import read_table
from tests.observatory.cells import Cell
from tests.observatory.decisions import decide
from tests.observatory.worlds import (
    SEVERAL,
    VOTES,
    Population,
    Rows,
    answer_law,
    answered,
    contaminated,
    inclusion_matrix,
    labels_of,
    one_hot,
)

NAMES = [f"label{i}" for i in range(60)]
NEW = 1000
"""New rows per sample where the population is not finite."""


class RefusedError(ValueError):
    """A command that ended with an error."""


@dataclass(frozen=True)
class Answer:
    """What the object says of itself, and how often each event happens to each row of the population."""

    guarantee: Any
    truth: np.ndarray
    share: np.ndarray
    candidates: np.ndarray | None = None
    overlap: np.ndarray | None = None
    group_share: np.ndarray | None = None
    by_class: Callable[[], np.ndarray] | None = None
    """The coverage of each true class."""
    parts: dict[Any, np.ndarray] = field(default_factory=dict)
    """The rows of each category."""
    bracket: Callable[[], dict[Any, tuple[float, float]]] | None = None
    noise: bool = False
    """Whether the population is itself a sample, so that its shares have an error."""
    rows: Rows | None = None
    answer: np.ndarray | None = None
    """How probable it is that a random answer is in the set."""
    accepted: np.ndarray | None = None
    """The share of accepted labels that are right, one where nothing is accepted."""
    overall: np.ndarray | None = None
    """The share of labels that are right once the rows to review are corrected."""
    found: np.ndarray | None = None
    """The share of the suspects found whose given label is wrong, one where none is found."""
    otherwise: Callable[[], float] | None = None
    """The coverage of `max` on the same sample."""


def answer(cell: Cell, population: Population | None, rng: np.random.Generator, folder: Path) -> Answer:
    """Draws a sample, calibrates it, asks."""
    if cell.shape in {"classifier", "cross"}:
        return _estimator(cell, rng)
    if cell.shape == "table":
        return _table(cell, population, rng, folder)
    if cell.shape == "command line":
        return _command_line(cell, population, rng, folder)
    if cell.shape == "fit by command line":
        return _fit_by_command_line(cell, rng, folder)
    if cell.strategy.startswith("decide"):
        return Answer(truth=np.empty(0), share=np.ones(1), **decide(cell, rng))
    if cell.strategy.startswith("triage"):
        return _triaged(cell, population, rng)
    return _conformalized(cell, population, rng, folder)


# -------------------------------------------------------------------- accept or review


def _triaged(cell: Cell, population: Population, rng: np.random.Generator) -> Answer:
    """n verified rows and 200 others; decides those others, or 200 new rows.

    Overall counts all rows at hand, or the new ones, once those to review are corrected.
    """
    rows, new = rng.integers(len(population), size=cell.n + 200), rng.integers(len(population), size=200)
    brought: Any = population.candidates
    if "votes" in cell.shape:
        law = answer_law(cell)[population.truth]
        told = np.random.default_rng(len(population))  # every row of the population has its answers
        said = np.stack([labels_of(told, law) for _ in range(3)], axis=1).ravel()
        place = np.arange(len(said))
        brought = Votes.of(len(population), place // 3, said, place % 3, classes=range(cell.k))
    verified = np.full(len(rows), np.nan)
    chosen = rng.permutation(len(rows))[: cell.n]
    verified[chosen] = population.truth[rows[chosen]]
    seed = int(rng.integers(2**31))
    made = conformalize(
        population.seen[rows], brought[rows], cell.made_strategy(), verified=verified, random_state=seed
    )
    mode: Any = cell.strategy.removeprefix("triage ")
    error = round(1 - cell.confidence, 6)

    own = cell.shape.startswith("own rows")
    comparison = None if own else made.compare(population.asked[new])

    if own:
        found = made.triage(max_error=error, mode=mode)
    else:
        given = None if cell.shape == "new rows" else brought[new]
        found = made.triage(population.asked[new], given, error, mode, comparison=comparison)
    right = found.labels == population.truth[rows[found.rows] if own else new]
    wrong = int((~right)[found.accepted].sum())
    total, taken = len(rows) if own else len(new), max(int(found.accepted.sum()), 1)
    shares = {"overall": np.array([1 - wrong / total]), "accepted": np.array([1 - wrong / taken])}
    guarantee = found.guarantee
    if mode == "average" and not guarantee.claims and not found.accepted.any():  # such a draw counts as well
        guarantee = replace(guarantee, claims=(Claim("accepted", 1 - error, "conformal selection"),))
    return Answer(guarantee, np.empty(0), np.ones(1), **shares)


# -------------------------------------------------------------------- conformalize


def _conformalized(cell: Cell, population: Population, rng: np.random.Generator, folder: Path) -> Answer:
    rows = population.drawn(rng, cell.n, cell.checks)
    options: dict[str, Any] = {
        "verified": rows.verified,
        "verified_probability": rows.chance,
        "sample_weight": rows.weight,
        "groups": rows.group,
        "miss_rate": cell.miss_rate,
        "missing": cell.missing,
        "assume": inclusion_matrix(cell.k) if cell.assume == "matrix" else cell.assume,
        "by": {"by given": rows.category, "by predicted": "predicted", "by size": "size", "by label": "label"}.get(
            cell.shape
        ),
        "random_state": int(rng.integers(2**31)),
    }
    candidates: Any = rows.candidates
    if cell.shape in VOTES:
        candidates = Votes.from_matrix(answered(cell, rng, rows), classes=range(cell.k), missing=-1)
    elif cell.contamination == "none" and not cell.breach:
        candidates = LabelSets.from_labels(rows.truth, classes=list(range(cell.k)))
    if cell.shape in SEVERAL:
        candidates, several = _several(cell, rows)
        options |= several
    given = (rows.probabilities, candidates)
    calibration = conformalize(*given, cell.made_strategy(), cell.made_score(), **options)
    if cell.shape == "saved":
        calibration.save(folder / "calibration")
        calibration = Calibration.load(folder / "calibration")
    truth, later = population.new(rng)
    drawn = cell.shape in {"by size", "own"}  # sets depend on the candidates of new rows, which belong to a truth
    asked: dict[str, Any] = {"sample_weight": population.weight}
    if drawn:
        asked["candidates"] = later
    if cell.shape == "by given":
        asked["by"] = population.category
    parts: dict[Any, np.ndarray] = {}
    if calibration.categories is not None:
        of_row = {
            "by given": population.category,
            "by predicted": population.asked.argmax(axis=1),
            "by size": later.sum(axis=1),
        }[cell.shape]
        parts = {name: of_row == name for name in calibration.category_names}

    def inside(made: Calibration) -> np.ndarray:
        return np.asarray(made.predict_set(population.asked, cell.confidence, **asked).to_mask())

    sets = inside(calibration)

    def covered(mask: np.ndarray) -> np.ndarray:
        if cell.shape in SEVERAL:
            share = {"all": 1.0, "one": 1e-9}.get(SEVERAL[cell.shape], SEVERAL[cell.shape])
            return ((mask & later).sum(axis=1) >= np.ceil(share * later.sum(axis=1))).astype(float)
        if population.fixed or drawn:
            return mask[np.arange(len(mask)), truth].astype(float)
        return (population.posterior * mask).sum(axis=1)

    def by_class() -> np.ndarray:
        law = one_hot(population.truth, cell.k) if population.fixed else population.posterior
        return (law * sets).sum(axis=0) / law.sum(axis=0)

    def otherwise() -> float:
        return float(covered(inside(conformalize(*given, "max", cell.made_score(), **options))) @ population.share)

    def bracket() -> dict[Any, tuple[float, float]]:
        if not parts:
            return {None: calibration.bracket(cell.confidence)}
        return {name: calibration.bracket(cell.confidence, by=name) for name in parts}

    voted = None
    if cell.shape in VOTES:
        law = one_hot(truth, cell.k) if population.fixed else population.posterior
        law = law if cell.shape == "votes, ambiguous" else law @ answer_law(cell, new=True)
        voted = (law * sets).sum(axis=1)
    single = cell.shape not in {*VOTES, *SEVERAL}
    return Answer(
        calibration.guarantee(cell.confidence),
        covered(sets),
        population.share * (truth > 0) if cell.shape.endswith("without") else population.share,
        None if not single else ~(later & ~sets).any(axis=1),
        None if not single else (later & sets).any(axis=1),
        population.group_share,
        by_class,
        parts,
        bracket if (population.fixed or not drawn) and single else None,
        noise=drawn and not population.fixed,
        rows=rows,
        answer=voted,
        otherwise=otherwise if cell.strategy in {"all", "mean"} and not parts else None,
    )


def _several(cell: Cell, rows: Rows) -> tuple[Any, dict[str, Any]]:
    """Candidates and options where the world's candidates are the right labels; or label 0 means that none is."""
    right = rows.candidates.copy()
    options: dict[str, Any] = {"truth": SEVERAL[cell.shape]}
    if cell.shape.endswith("without"):
        right[rows.truth == 0] = False
        options["empty"] = "drop"
    if rows.verified is None:
        return right, options
    seen = ~np.isnan(rows.verified)
    options["verified"] = [
        np.flatnonzero(row).tolist() if one else None for row, one in zip(right, seen, strict=True)
    ]
    return rows.candidates | np.roll(rows.candidates, 1, axis=1), options


# -------------------------------------------------------------------- scikit-learn


def _examples(cell: Cell, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels; with a long tail, labels that few rows share."""
    k = cell.k
    y = rng.integers(0, k, n)
    if not cell.breach.endswith("tail"):
        return 1.5 * np.eye(k)[y] + rng.normal(size=(n, k)), y
    rare = rng.random(n) < (0.25 if cell.breach == "tail" else 0.05)
    X = np.column_stack([3 * np.eye(k)[y] * ~rare[:, None] + 0.5 * rng.normal(size=(n, k)), 2.0 * rare])
    return X, np.where(rare, k + rng.zipf(1.08, n) % 10**9, y)


def _estimator(cell: Cell, rng: np.random.Generator) -> Answer:
    X, y = _examples(cell, rng, cell.n)
    new, truth = _examples(cell, rng, NEW)
    sets: Any = y
    verified = None
    if cell.contamination != "none":
        sets = contaminated(cell.contamination, cell.k)(rng, np.ones((cell.n, cell.k)), y)
    if cell.checks != "none":
        m = {"random": cell.n // 4, "half": cell.n // 2}[cell.checks]
        verified = np.where(rng.permutation(cell.n) < m, y, np.nan)
    learner = KNeighborsClassifier(3) if cell.breach in {"tail", "short tail", "seen"} else GaussianNB()
    kind = ConformalClassifier if cell.shape == "classifier" else CrossConformalClassifier
    model = kind(learner, cell.made_strategy(), cell.made_score(), random_state=int(rng.integers(2**31)))
    model.fit(X, sets, verified=verified)
    if cell.breach == "seen":
        model.conformalize(X, sets)
    made = model.predict_set(new, cell.confidence)
    return Answer(model.guarantee(cell.confidence), _contains(made, truth), np.full(NEW, 1 / NEW), noise=True)


def _contains(sets: LabelSets, truth: np.ndarray) -> np.ndarray:
    """Whether each set contains its truth; a label outside the classes is in none."""
    known = np.isin(truth, sets.classes)
    found = np.zeros(len(truth))
    found[known] = sets[np.flatnonzero(known)].contains(truth[known])
    return found


# -------------------------------------------------------------------- files


def _texts(mask: np.ndarray) -> list[str]:
    return ["|".join(itertools.compress(NAMES, row)) for row in mask.tolist()]


def _write(path: Path, columns: dict[str, Any]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def _table(cell: Cell, population: Population, rng: np.random.Generator, folder: Path) -> Answer:
    rows, names = population.drawn(rng, cell.n), NAMES[: cell.k]
    texts = _texts(rows.candidates)
    path = _write(folder / "table.csv", {"x": [0] * cell.n, "labels": texts})
    table = read_table(path, candidates="labels", missing=cell.missing)
    calibration = conformalize(rows.probabilities, table.candidates, cell.made_strategy(), classes=names)
    sets = calibration.predict_set(population.asked, cell.confidence).to_mask()
    inside = sets[np.arange(len(sets)), population.truth].astype(float)
    return Answer(calibration.guarantee(cell.confidence), inside, population.share)


def _run(*arguments: Any) -> None:
    """The command line, in this process; its errors are raised."""
    from setwise.cli.app import run

    complaint = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(complaint):
        status = run(list(map(str, arguments)))
    if status:
        raise RefusedError(complaint.getvalue())


def _sets_in(path: Path, truth: list[str]) -> np.ndarray:
    with path.open(newline="") as file:
        return np.array(
            [t in row["labels"].split("|") for t, row in zip(truth, csv.DictReader(file), strict=True)], float
        )


def _command_line(cell: Cell, population: Population, rng: np.random.Generator, folder: Path) -> Answer:
    rows, names = population.drawn(rng, cell.n), NAMES[: cell.k]
    given = _write(folder / "given.csv", dict(zip(names, rows.probabilities.T.tolist(), strict=True)))
    labels = _write(folder / "labels.csv", {"candidates": _texts(rows.candidates)})
    new = _write(folder / "new.csv", dict(zip(names, population.asked.T.tolist(), strict=True)))
    made, sets = folder / "made.cal", folder / "sets.csv"
    level = ("--confidence", cell.confidence)
    common = ("--strategy", cell.strategy, "--quiet", "--force", *level)
    _run("conformalize", "--probabilities", given, "--labels", labels, "--out", made, *common)
    _run("predict", made, "--probabilities", new, "--out", sets, "--force", "--quiet", *level)
    inside = _sets_in(sets, [names[k] for k in population.truth])
    return Answer(Calibration.load(made).guarantee(cell.confidence), inside, population.share)


def _fit_by_command_line(cell: Cell, rng: np.random.Generator, folder: Path) -> Answer:
    (X, y), (new, truth) = _examples(cell, rng, cell.n), _examples(cell, rng, NEW)
    sets = contaminated(cell.contamination, cell.k)(rng, np.ones((cell.n, cell.k)), y)
    if cell.breach == "unnamed":
        sets[y == cell.k - 1] = False
    columns = {f"x{j}": X[:, j].tolist() for j in range(X.shape[1])}
    table = _write(folder / "rows.csv", columns | {"candidates": _texts(sets)})
    asked = _write(folder / "new.csv", {f"x{j}": new[:, j].tolist() for j in range(X.shape[1])})
    model, out = folder / "model", folder / "sets.csv"
    options = ("--learner", "em", "--strategy", cell.strategy, "--missing", cell.missing, "--force", "--quiet")
    level = ("--confidence", cell.confidence)
    _run("fit", table, "--candidates", "candidates", "--out", model, *options, *level)
    _run("predict", model, asked, "--out", out, "--force", "--quiet", *level)
    loaded = ConformalClassifier.load(model)
    inside = _sets_in(out, [NAMES[k] for k in truth])
    return Answer(loaded.guarantee(cell.confidence), inside, np.full(NEW, 1 / NEW), noise=True)
