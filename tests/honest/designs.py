"""The designs: honest data in unusual shapes, and the calls that an ordinary user makes with them."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.special import softmax
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import setwise
from setwise import ConformalClassifier, CrossConformalClassifier, LabelSets, TopK, Votes, conformalize
from setwise.cli.app import run as run_command
from setwise.strategies import Rectified
from setwise.streams import CalibrationRows
from tests.honest.judge import Outcome, Trial

NEW, LEVEL = 400, 0.9
DESIGNS: dict[str, Trial] = {}
LARGE = ("large_sample",)


def design(name: str, *given: Any) -> Callable[[Any], Any]:
    """Registers a function of a random generator, and of what is given, as a design."""

    def register(function: Any) -> Any:
        DESIGNS[name] = lambda rng: function(rng, *given)
        return function

    return register


# -------------------------------------------------------------------- worlds


def probabilities(rng: Any, n: int, k: int = 4, sharpness: float = 2.0) -> tuple[Any, Any]:
    """Rows of a model that is right about its own doubts, and their labels."""
    p = softmax(sharpness * rng.normal(size=(n, k)), axis=1)
    return p, labels(rng, p)


def labels(rng: Any, p: Any) -> Any:
    """Labels drawn from probabilities."""
    return np.minimum((p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1), p.shape[1] - 1)


def features(rng: Any, n: int, k: int = 3, shares: Any = None) -> tuple[Any, Any]:
    """Features and labels to learn from."""
    y = rng.choice(k, n, p=shares)
    return 1.5 * np.eye(k)[y] + rng.normal(size=(n, k)), y


def beside(rng: Any, y: Any, k: int, share: float = 0.3) -> Any:
    """Candidates: the label, and others by chance."""
    return (np.arange(k) == y[:, None]) | (rng.random((len(y), k)) < share)


def verify(rng: Any, y: Any, m: int) -> Any:
    """The labels of m rows drawn at random, None elsewhere."""
    known = np.full(len(y), None)
    rows = rng.choice(len(y), m, replace=False)
    known[rows] = y[rows]
    return known


def of_model(model: Any, X: Any, y: Any, **asked: Any) -> Outcome:
    """The guarantee of a fitted model, and the coverage of new rows."""
    return Outcome(model.guarantee(), float(model.predict_set(X, **asked).contains(y).mean()))


def of_rows(made: Any, p: Any, y: Any, *conditions: str, level: float = LEVEL, **asked: Any) -> Outcome:
    """The guarantee of a calibration, and the coverage of new rows."""
    covered = float(made.predict_set(p, level, **asked).contains(y).mean())
    return Outcome(made.guarantee(level), covered, conditions=conditions)


# -------------------------------------------------------------------- equal rows


def _catalogue(rng: Any, things: int, n: int) -> tuple[Any, Any, Any, Any]:
    """Rows describe things of a catalogue: equal rows are different events with labels of their own."""
    own = rng.normal(size=(things, 4))
    law = softmax(own @ rng.normal(size=(4, 3)), axis=1)
    which = rng.integers(0, things, n + NEW)
    y = labels(rng, law[which])
    return own[which[:n]], y[:n], own[which[n:]], y[n:]


@design("catalogue of 60 products, logistic regression", 60, LogisticRegression())
@design("catalogue of 300 sensors, naive Bayes", 300, GaussianNB())
@design("catalogue of 150 sites, nearest neighbour", 150, KNeighborsClassifier(1))
def catalogue(rng: Any, things: int, estimator: Any) -> Outcome:
    X, y, new, truth = _catalogue(rng, things, 400)
    return of_model(ConformalClassifier(estimator, random_state=0).fit(X, y), new, truth)


@design("catalogue, calibrated on a later delivery")
def catalogue_later(rng: Any) -> Outcome:
    X, y, new, truth = _catalogue(rng, 100, 400)
    model = ConformalClassifier(FrozenEstimator(LogisticRegression().fit(X[:200], y[:200])))
    return of_model(model.fit(X[200:], y[200:]), new, truth)


@design("factorial design with ten replicates of each point")
def factorial(rng: Any) -> Outcome:
    points = np.stack(np.meshgrid(*[[0.0, 1.0, 2.0]] * 3), axis=-1).reshape(-1, 3)
    law = softmax(points @ rng.normal(size=(3, 3)), axis=1)
    which, new = rng.permutation(np.repeat(np.arange(27), 10)), rng.integers(0, 27, NEW)
    model = ConformalClassifier(LogisticRegression(), random_state=0).fit(points[which], labels(rng, law[which]))
    return of_model(model, points[new], labels(rng, law[new]))


@design("survey with five questions of three answers each")
def survey(rng: Any) -> Outcome:
    X = rng.integers(0, 3, (300 + NEW, 5))
    y = labels(rng, softmax(X @ rng.normal(size=(5, 3)), axis=1))
    model = ConformalClassifier(make_pipeline(OneHotEncoder(), LogisticRegression()), random_state=0)
    return of_model(model.fit(X[:300], y[:300]), X[300:], y[300:])


@design("short texts as sparse counts, many of them empty")
def sparse_texts(rng: Any) -> Outcome:
    words = rng.random((300 + NEW, 20)) < 0.08
    y = labels(rng, softmax(2 * words @ rng.normal(size=(20, 3)), axis=1))
    X = csr_array(words.astype(float))
    return of_model(ConformalClassifier(BernoulliNB(), random_state=0).fit(X[:300], y[:300]), X[300:], y[300:])


@design("one feature, which is yes or no")
def one_feature(rng: Any) -> Outcome:
    X = rng.random((300 + NEW, 1)) < 0.4
    y = labels(rng, np.where(X, [0.1, 0.2, 0.7], [0.5, 0.4, 0.1]))
    return of_model(ConformalClassifier(BernoulliNB(), random_state=0).fit(X[:300], y[:300]), X[300:], y[300:])


@design("catalogue of 60 products in folds")
def catalogue_in_folds(rng: Any) -> Outcome:
    X, y, new, truth = _catalogue(rng, 60, 120)
    return of_model(CrossConformalClassifier(GaussianNB(), cv=3, random_state=0).fit(X, y), new, truth)


# -------------------------------------------------------------------- labels


def _tail(rng: Any, k: int, n: int) -> tuple[Any, ...]:
    shares = 1 / np.arange(1, k + 1) ** 1.2
    centres, y = rng.normal(size=(k, 6)) * 1.5, rng.choice(k, n + NEW, p=shares / shares.sum())
    X = centres[y] + rng.normal(size=(n + NEW, 6))
    return X[:n], y[:n], X[n:], y[n:]


@design("long tail of 60 classes, of which not all are learned", 60)
@design("long tail of 30 classes, of which not all are learned", 30)
def long_tail(rng: Any, k: int) -> Outcome:
    X, y, new, truth = _tail(rng, k, 300)
    model = ConformalClassifier(GaussianNB(var_smoothing=0.1), random_state=0).fit(X, y)
    known = np.isin(truth, model.classes_)
    return of_model(model, new[known], truth[known])


@design("long tail of 60 classes, declared")
def declared_tail(rng: Any) -> Outcome:
    X, y, new, truth = _tail(rng, 60, 300)
    sets = LabelSets.from_labels(y, classes=range(60))
    return of_model(ConformalClassifier(GaussianNB(var_smoothing=0.1), random_state=0).fit(X, sets), new, truth)


@design("two classes of three rows each among 300")
def tiny_classes(rng: Any) -> Outcome:
    X, y = features(rng, 300 + NEW, 5, [0.4, 0.38, 0.2, 0.01, 0.01])
    model = ConformalClassifier(GaussianNB(var_smoothing=0.1), random_state=0).fit(X[:300], y[:300])
    known = np.isin(y[300:], model.classes_)
    return of_model(model, X[300:][known], y[300:][known])


@design("classes of one row")
def single_rows(rng: Any) -> Outcome:
    X, y = features(rng, 250 + NEW)
    y = y.astype(object)
    y[rng.choice(250, 5, replace=False)] = [f"once {i}" for i in range(5)]
    y[:250] = [str(label) for label in y[:250]]
    model = ConformalClassifier(GaussianNB(var_smoothing=0.1), random_state=0).fit(X[:250], y[:250].astype(str))
    return of_model(model, X[250:], y[250:].astype(str))


@design("97 of 100 rows of one class")
def imbalance(rng: Any) -> Outcome:
    X, y = features(rng, 400 + NEW, 2, [0.97, 0.03])
    return of_model(
        ConformalClassifier(LogisticRegression(), random_state=0).fit(X[:400], y[:400]), X[400:], y[400:]
    )


@design("labels are texts", np.array(["wren", "barn owl", "Ant é"]))
@design("labels are integers with gaps", np.array([3, 7, 1000]))
@design("labels are negative and boolean-like", np.array([-1, 0, 1]))
def named_labels(rng: Any, names: Any) -> Outcome:
    X, y = features(rng, 250 + NEW)
    model = ConformalClassifier(LogisticRegression(), random_state=0).fit(X[:250], names[y[:250]])
    return of_model(model, X[250:], names[y[250:]])


@design("complementary labels")
def complementary(rng: Any) -> Outcome:
    p, y = probabilities(rng, 300 + NEW)
    wrong = (y + rng.integers(1, 4, len(y))) % 4
    made = conformalize(p[:300], LabelSets.from_complementary(wrong[:300], classes=range(4)))
    return of_rows(made, p[300:], y[300:])


@design("candidates from a tree of labels")
def hierarchy(rng: Any) -> Outcome:
    p, y = probabilities(rng, 300 + NEW, 6)
    coarse = rng.random(300) < 0.5
    written = [f"group {label // 2}" if up else str(label) for label, up in zip(y[:300], coarse, strict=True)]
    tree = {f"group {g}": [str(2 * g), str(2 * g + 1)] for g in range(3)}
    names = [str(label) for label in range(6)]
    sets = LabelSets.from_hierarchy(written, tree)
    made = conformalize(p[:300], sets, classes=names)
    return of_rows(made, p[300:], np.array(names)[y[300:]])


@design("one label in twenty is wrong, as declared")
def declared_errors(rng: Any) -> Outcome:
    p, y = probabilities(rng, 400 + NEW)
    noisy = np.where(rng.random(400) < 0.05, (y[:400] + 1) % 4, y[:400])
    return of_rows(conformalize(p[:400], noisy, miss_rate=0.05), p[400:], y[400:])


@design("one label in five is wrong, sixty are verified")
def noisy_and_verified(rng: Any) -> Outcome:
    p, y = probabilities(rng, 400 + NEW)
    noisy = np.where(rng.random(400) < 0.2, rng.integers(0, 4, 400), y[:400])
    return of_rows(conformalize(p[:400], noisy, verified=verify(rng, y[:400], 60)), p[400:], y[400:])


# -------------------------------------------------------------------- models


@design("a model that knows nothing", lambda p: np.full_like(p, 0.25))
@design("a model that is sure of almost everything", lambda p: softmax(30 * np.log(p), axis=1))
@design("probabilities with many ties", lambda p: np.round(p, 1) + 1e-9)
@design("probabilities of zero and one", lambda p: np.eye(4)[p.argmax(axis=1)])
@design("a model whose ranking is reversed", lambda p: (1 - p) / 3)
def models(rng: Any, change: Any) -> Outcome:
    p, y = probabilities(rng, 250 + NEW)
    q = change(p)
    q /= q.sum(axis=1, keepdims=True)
    return of_rows(conformalize(q[:250], y[:250]), q[250:], y[250:])


@design("classes that are nearly separable")
def separable(rng: Any) -> Outcome:
    X, y = features(rng, 250 + NEW)
    X += 6 * np.eye(3)[y]
    return of_model(
        ConformalClassifier(LogisticRegression(), random_state=0).fit(X[:250], y[:250]), X[250:], y[250:]
    )


@design("a model trained elsewhere, frozen")
def frozen(rng: Any) -> Outcome:
    X, y = features(rng, 300 + NEW)
    model = ConformalClassifier(FrozenEstimator(GaussianNB().fit(X[:150], y[:150])))
    return of_model(model.fit(X[150:300], y[150:300]), X[300:], y[300:])


@design("cross-conformal prediction")
def cross(rng: Any) -> Outcome:
    X, y = features(rng, 120 + NEW)
    return of_model(
        CrossConformalClassifier(GaussianNB(), cv=4, random_state=0).fit(X[:120], y[:120]), X[120:], y[120:]
    )


@design("a calibration that was saved and loaded")
def saved(rng: Any) -> Outcome:
    p, y = probabilities(rng, 150 + NEW)
    with tempfile.TemporaryDirectory() as folder:
        conformalize(p[:150], y[:150]).save(Path(folder, "rows.cal"))
        return of_rows(setwise.load(Path(folder, "rows.cal")), p[150:], y[150:])


@design("score aps", "aps")
@design("score raps", "raps")
@design("score saps", "saps")
@design("score margin", "margin")
@design("score rps", "rps")
def scores(rng: Any, score: str) -> Outcome:
    p, y = probabilities(rng, 200 + NEW)
    return of_rows(conformalize(p[:200], y[:200], conformity_score=score, random_state=0), p[200:], y[200:])


@design("the largest set of a mixture, whose new rows bring candidates")
def new_candidates(rng: Any) -> Outcome:
    p, y = probabilities(rng, 300 + NEW)
    sets = beside(rng, y, 4)
    return of_rows(conformalize(p[:300], sets[:300]), p[300:], y[300:], candidates=sets[300:])


@design("rows without candidates may be anything")
def full(rng: Any) -> Outcome:
    p, y = probabilities(rng, 300 + NEW)
    sets = beside(rng, y[:300], 4)
    sets[rng.random(300) < 0.1] = False
    return of_rows(conformalize(p[:300], sets, missing="full"), p[300:], y[300:])


# -------------------------------------------------------------------- numbers, sizes, frames


@design("calibrated in double, asked in single precision", np.float64, np.float32)
@design("calibrated in single, asked in double precision", np.float32, np.float64)
@design("calibrated in single, asked in half precision", np.float32, np.float16)
def float_types(rng: Any, first: Any, second: Any) -> Outcome:
    p, y = probabilities(rng, 250 + NEW)
    made = conformalize(p[:250].astype(first), y[:250])
    return of_rows(made, p[250:].astype(second), y[250:])


@design("twelve calibration rows", 12, 0.9)
@design("five calibration rows, where every label is in every set", 5, 0.9)
@design("thirty calibration rows at 0.95", 30, 0.95)
def few_rows(rng: Any, n: int, level: float) -> Outcome:
    p, y = probabilities(rng, n + NEW)
    return of_rows(conformalize(p[:n], y[:n]), p[n:], y[n:], level=level)


@design("new rows that come one by one")
def one_by_one(rng: Any) -> Outcome:
    p, y = probabilities(rng, 150 + 25)
    made = conformalize(p[:150], y[:150])
    hits = [made.predict_set(row[None]).contains([label])[0] for row, label in zip(p[150:], y[150:], strict=True)]
    return Outcome(made.guarantee(), float(np.mean(hits)))


@design("pandas frames")
def pandas_frames(rng: Any) -> Outcome:
    X, y = features(rng, 250 + NEW)
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=rng.permutation(len(X)))
    told = pd.Series(y, index=frame.index)
    model = ConformalClassifier(GaussianNB(), random_state=0).fit(frame[:250], told[:250])
    return of_model(model, frame[250:], y[250:])


@design("polars frames")
def polars_frames(rng: Any) -> Outcome:
    import polars as pl

    X, y = features(rng, 250 + NEW)
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    model = ConformalClassifier(make_pipeline(StandardScaler(), GaussianNB()), random_state=0)
    return of_model(model.fit(frame[:250], pl.Series(y[:250])), frame[250:], y[250:])


@design("p-values in place of sets")
def p_values(rng: Any) -> Outcome:
    p, y = probabilities(rng, 150 + NEW)
    made = conformalize(p[:150], y[:150])
    values = made.predict_p(p[150:])[np.arange(NEW), y[150:]]
    return Outcome(made.guarantee(0.8), float((values > 0.2).mean()))


@design("only the three largest of twelve probabilities are stored")
def top(rng: Any) -> Outcome:
    p, y = probabilities(rng, 250 + NEW, 12)
    made = conformalize(TopK.of(p[:250], 3), y[:250])
    return of_rows(made, TopK.of(p[250:], 3), y[250:])


@design("probabilities and candidates in one table, with names and numbers of rows", "ids")
@design("candidates in a second table, in another order", "key")
@design("votes in a second table", "votes")
def files(rng: Any, kind: str) -> Outcome:
    names = np.array(["Möwe", "barn owl", "wren"])
    p, y = probabilities(rng, 150 + NEW, 3)
    table = pd.DataFrame(p[:150], columns=names).assign(id=np.arange(150) + 1)
    sets = [" | ".join(names[row]) if kind == "ids" else "|".join(names[row]) for row in beside(rng, y[:150], 3)]
    order, words = rng.permutation(150), ["--candidates", "seen", *(["--ignore", "id"] if kind == "ids" else [])]
    other = pd.DataFrame({"id": order + 1, "seen": np.array(sets)[order]})
    if kind == "votes":
        said = np.where(rng.random(300) < 0.8, np.tile(y[:150], 2), rng.integers(0, 3, 300))
        other = pd.DataFrame(
            {"id": np.tile(np.arange(150) + 1, 2), "who": np.repeat(["a", "b"], 150), "said": names[said]}
        )
        words = ["--item", "id", "--annotator", "who", "--label", "said"]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (table.assign(seen=sets) if kind == "ids" else table).to_csv(folder / "p.csv", index=False)
        other.to_csv(folder / "other.csv", index=False)
        if kind != "ids":
            words += ["--votes" if kind == "votes" else "--labels", str(folder / "other.csv"), "--key", "id"]
        table_of = [
            "conformalize",
            "--probabilities",
            str(folder / "p.csv"),
            "--out",
            str(folder / "rows.cal"),
            "-q",
        ]
        with contextlib.redirect_stderr(io.StringIO()) as said_wrong:
            if run_command([*table_of, *words]):
                raise ValueError(said_wrong.getvalue())
        made = setwise.load(folder / "rows.cal")
    if kind == "votes":
        answers = names[np.where(rng.random(NEW) < 0.8, y[150:], rng.integers(0, 3, NEW))]
        held = float(made.predict_set(p[150:]).contains(answers).mean())
        return Outcome(made.guarantee(), held, "answer", ("same_annotators",))
    return of_rows(made, p[150:], names[y[150:]])


# -------------------------------------------------------------------- time, streams, groups, categories, weights


@design("rows in the order of time, from a stable source")
def ordered(rng: Any) -> Outcome:
    X, y = features(rng, 300 + NEW)
    model = ConformalClassifier(GaussianNB(), random_state=0).fit(X[:300], y[:300])
    made = model.compare(X[300:]).guarantee(LEVEL)
    return Outcome(made, float(model.predict_set(X[300:]).contains(y[300:]).mean()))


@design("evaluated on a batch from the same source")
def evaluated(rng: Any) -> Outcome:
    X, y = features(rng, 200 + NEW)
    found = ConformalClassifier(GaussianNB(), random_state=0).fit(X[:200], y[:200]).evaluate(X[200:], y[200:])
    return Outcome(None if found["comparison"]["refuted"] else LEVEL, found["coverage"])


@design("an hour of a stable stream, watched")
def watched(rng: Any) -> Outcome:
    p, y = probabilities(rng, 200 + NEW)
    made = conformalize(p[:200], y[:200])
    watch = made.monitor(delta=0.01, random_state=0)
    for batch in np.array_split(p[200:], 20):
        watch.update(batch)
    return Outcome(None if watch.alarm else made.guarantee(), of_rows(made, p[200:], y[200:]).covered)


@design("calibration rows that come in batches")
def batches(rng: Any) -> Outcome:
    p, y = probabilities(rng, 240 + NEW)
    rows = CalibrationRows(random_state=0)
    for part in np.array_split(np.arange(240), 6):
        rows.add(p[part], y[part])
    return of_rows(rows.conformalize(), p[240:], y[240:])


@design("a sample of more rows than memory holds, some of them verified")
def sampled(rng: Any) -> Outcome:
    p, y = probabilities(rng, 500 + NEW)
    rows, known = CalibrationRows(max_rows=100, random_state=0), verify(rng, y[:500], 40)
    sets = beside(rng, y[:500], 4)
    for part in np.array_split(np.arange(500), 5):
        rows.add(p[part], sets[part], verified=known[part])
    return of_rows(rows.conformalize(), p[500:], y[500:])


def grouped(rng: Any, groups: int, size: int) -> tuple[Any, Any, Any]:
    """Rows of a group are alike: documents that are easy, or hard."""
    group = np.repeat(np.arange(groups), rng.integers(1, size, groups))
    hardness, y = np.exp(0.7 * rng.normal(size=groups))[group], rng.integers(0, 4, len(group))
    return softmax(3 * np.eye(4)[y] / hardness[:, None] + rng.gumbel(size=(len(group), 4)), axis=1), y, group


def _one_of_each(rng: Any, group: Any) -> Any:
    """A row of each group, drawn at random."""
    order = rng.permutation(len(group))
    return order[np.unique(group[order], return_index=True)[1]]


@design("rows in groups")
def groups(rng: Any) -> Outcome:
    p, y, group = grouped(rng, 60, 10)
    q, truth, other = grouped(rng, NEW, 10)
    rows = _one_of_each(rng, other)
    return of_rows(conformalize(p, y, groups=group), q[rows], truth[rows])


@design("documents verified as a whole")
def documents(rng: Any) -> Outcome:
    p, y, group = grouped(rng, 80, 10)
    q, truth, other = grouped(rng, NEW, 10)
    known = np.where(np.isin(group, rng.choice(80, 15, replace=False)), y.astype(object), None)
    rows = _one_of_each(rng, other)
    return of_rows(conformalize(p, np.ones(p.shape, bool), verified=known, groups=group), q[rows], truth[rows])


@design("documents verified as a whole, learned by a classifier")
def learned_documents(rng: Any) -> Outcome:
    def draw(groups: int) -> tuple[Any, ...]:
        group = np.repeat(np.arange(groups), rng.integers(1, 8, groups))
        X, y = features(rng, len(group))
        return X + rng.normal(size=(groups, 3))[group] * 0.7, y, group

    (X, y, group), (new, truth, other) = draw(100), draw(NEW)
    known = np.where(np.isin(group, rng.choice(100, 15, replace=False)), y.astype(object), None)
    model = ConformalClassifier(GaussianNB(), random_state=0).fit(
        X, beside(rng, y, 3), groups=group, verified=known
    )
    rows = _one_of_each(rng, other)
    return of_model(model, new[rows], truth[rows])


@design("the interval of coverage, measured on independent rows", False)
@design("the interval of coverage, measured on rows in groups", True)
def intervals(rng: Any, together: bool) -> Outcome:
    _, y, group = grouped(rng, 40, 10)
    rate = rng.beta(9, 1, 40)[group] if together else np.full(len(y), 0.9)
    hit = rng.random(len(y)) < rate
    sets = LabelSets.from_mask(np.stack([hit, ~hit], axis=1))
    found = setwise.evaluate(sets, np.zeros(len(y), dtype=int), groups=group if together else None)
    low, high = found["coverage_interval"]
    return Outcome(0.95, float(low <= 0.9 <= high))


@design("categories of unequal difficulty")
def categories(rng: Any) -> list[Outcome]:
    part = rng.integers(0, 3, 300 + NEW)
    p = softmax(np.array([0.5, 2.0, 5.0])[part][:, None] * rng.normal(size=(len(part), 4)), axis=1)
    y = labels(rng, p)
    made = conformalize(p[:300], y[:300], by=part[:300])
    inside = made.predict_set(p[300:], LEVEL, by=part[300:]).contains(y[300:])
    by = made.guarantee(LEVEL).by_category
    return [Outcome(one, float(inside[part[300:] == name].mean())) for name, one in by.items()]


@design("categories by the predicted label")
def predicted_categories(rng: Any) -> list[Outcome]:
    p, y = probabilities(rng, 400 + NEW, 3)
    made = conformalize(p[:400], y[:400], by="predicted")
    inside, part = made.predict_set(p[400:], LEVEL).contains(y[400:]), p[400:].argmax(axis=1)
    by = made.guarantee(LEVEL).by_category
    return [Outcome(one, float(inside[part == name].mean())) for name, one in by.items()]


@design("categories by the predicted label, asked in single precision")
def predicted_in_single(rng: Any) -> list[Outcome]:
    p, y = probabilities(rng, 400 + NEW, 3)
    made = conformalize(p[:400], y[:400], by="predicted")
    inside, part = made.predict_set(p[400:].astype(np.float32), LEVEL).contains(y[400:]), p[400:].argmax(axis=1)
    by = made.guarantee(LEVEL).by_category
    return [Outcome(one, float(inside[part == name].mean())) for name, one in by.items()]


@design("categories by the number of candidates")
def by_size(rng: Any) -> list[Outcome]:
    p, y = probabilities(rng, 400 + NEW)
    sets = beside(rng, y, 4)
    made = conformalize(p[:400], sets[:400], by="size")
    inside = made.predict_set(p[400:], LEVEL, candidates=sets[400:]).contains(y[400:])
    size, by = sets[400:].sum(axis=1), made.guarantee(LEVEL).by_category
    met = [(one, size == name) for name, one in by.items() if (size == name).any()]
    return [Outcome(one, float(inside[rows].mean()), conditions=("same_candidates",)) for one, rows in met]


@design("weights for a shift that is known")
def weighted(rng: Any) -> Outcome:
    kind = rng.random(300) < 0.2
    new = rng.random(NEW) < 0.6
    sharp = np.where(np.append(kind, new), 0.7, 3.0)[:, None]
    p = softmax(sharp * rng.normal(size=(300 + NEW, 4)), axis=1)
    y, weight = labels(rng, p), np.where(np.append(kind, new), 3.0, 0.5)
    made = conformalize(p[:300], y[:300], sample_weight=weight[:300])
    return of_rows(made, p[300:], y[300:], sample_weight=weight[300:])


# -------------------------------------------------------------------- verified rows


@design("forty verified rows beside candidates", 40, 0.3)
@design("forty verified rows where every label is a candidate", 40, 1.0)
@design("as many verified rows as the level needs", 9, 0.3)
def verified(rng: Any, m: int, share: float) -> Outcome:
    p, y = probabilities(rng, 300 + NEW)
    made = conformalize(p[:300], beside(rng, y[:300], 4, share), verified=verify(rng, y[:300], m))
    return of_rows(made, p[300:], y[300:])


@design("verified rows beside candidates that lack one label in five")
def verified_and_missing(rng: Any) -> Outcome:
    p, y = probabilities(rng, 300 + NEW)
    sets = beside(rng, y[:300], 4)
    sets[np.arange(300), y[:300]] = rng.random(300) < 0.8
    sets[~sets.any(axis=1), 0] = True
    return of_rows(conformalize(p[:300], sets, verified=verify(rng, y[:300], 50)), p[300:], y[300:])


@design("several labels are right, and all must be in the set", "all")
@design("several labels are right, and one must be in the set", "one")
@design("several labels are right, and two of three must be in the set", 2 / 3)
def several_right(rng: Any, truth: Any) -> Outcome:
    p, y = probabilities(rng, 300 + NEW, 6)
    right = np.eye(6, dtype=bool)[y] | (rng.random(p.shape) < p)
    rows = rng.choice(300, 60, replace=False)
    known = [np.flatnonzero(right[i]).tolist() if i in rows else None for i in range(300)]
    made = conformalize(p[:300], right[:300] | (rng.random((300, 6)) < 0.2), verified=known, truth=truth)
    found = setwise.evaluate(made.predict_set(p[300:], LEVEL), LabelSets.from_mask(right[300:]), truth=truth)
    return Outcome(made.guarantee(LEVEL), found["coverage"])


@design("all rows are verified")
def all_verified(rng: Any) -> Outcome:
    p, y = probabilities(rng, 150 + NEW)
    return of_rows(conformalize(p[:150], beside(rng, y[:150], 4), verified=y[:150]), p[150:], y[150:])


@design("verified labels written back into the candidates")
def written_back(rng: Any) -> Outcome:
    p, y = probabilities(rng, 300 + NEW)
    sets, known = beside(rng, y[:300], 4), verify(rng, y[:300], 40)
    rows = np.flatnonzero([label is not None for label in known])
    sets[rows] = np.eye(4, dtype=bool)[y[rows]]
    return of_rows(conformalize(p[:300], sets, verified=known), p[300:], y[300:])


@design("given labels, one in six wrong, corrected in place where rows were verified")
def corrected_in_place(rng: Any) -> Outcome:
    p, y = probabilities(rng, 400 + NEW)
    given, known = np.where(rng.random(400) < 0.2, rng.integers(4, size=400), y[:400]), verify(rng, y[:400], 100)
    rows = np.flatnonzero([label is not None for label in known])
    given[rows] = y[rows]
    return of_rows(conformalize(p[:400], given, verified=known), p[400:], y[400:])


@design("answers of an expert, who verified, in place of all others", True)
@design("answers of an expert, who verified, beside all others", False)
def adjudicated(rng: Any, replaced: bool) -> Outcome:
    p, y = probabilities(rng, 400 + NEW)
    answers = np.full((400, 4), None, dtype=object)
    answers[:, :3] = np.where(rng.random((400, 3)) < 0.7, y[:400, None], rng.integers(4, size=(400, 3)))
    known = verify(rng, y[:400], 80)
    rows = np.flatnonzero([label is not None for label in known])
    answers[rows, :3] = None if replaced else answers[rows, :3]
    answers[rows, 3] = y[rows]
    answers[rng.permutation(np.setdiff1d(np.arange(400), rows))[:30], 3] = 0  # who labels other rows, too
    votes = setwise.Votes.from_matrix(answers, classes=range(4), annotators=["a", "b", "c", "expert"])
    return of_rows(conformalize(p[:400], votes, verified=known), p[400:], y[400:])


@design("verified labels written back, learned by a classifier")
def written_back_and_learned(rng: Any) -> Outcome:
    X, y = features(rng, 300 + NEW)
    sets, known = beside(rng, y[:300], 3, 0.5), verify(rng, y[:300], 40)
    rows = np.flatnonzero([label is not None for label in known])
    sets[rows] = np.eye(3, dtype=bool)[y[rows]]
    model = ConformalClassifier(GaussianNB(), random_state=0).fit(X[:300], sets, verified=known)
    return of_model(model, X[300:], y[300:])


@design("rows drawn for verification with chances that are known")
def chances(rng: Any) -> Outcome:
    p, y = probabilities(rng, 400 + NEW)
    chance = np.clip(0.4 * (1 - p[:400].max(axis=1)) + 0.05, 0, 1)
    known = np.where(rng.random(400) < chance, y[:400].astype(object), None)
    made = conformalize(p[:400], np.ones((400, 4), bool), verified=known, verified_probability=chance)
    return of_rows(made, p[400:], y[400:])


@design("rows that setwise suggested for verification")
def suggested(rng: Any) -> Outcome:
    X, y = features(rng, 300 + NEW)
    sets = beside(rng, y[:300], 3)
    model = ConformalClassifier(GaussianNB(), random_state=0).fit(X[:300], sets)
    drawn = setwise.suggest_verification(model, X[:300], sets, 40, random_state=0).rows
    known = np.full(300, None)
    known[drawn] = y[drawn]
    again = ConformalClassifier(GaussianNB(), random_state=0).fit(X[:300], sets, verified=known)
    return of_model(again, X[300:], y[300:])


@design("two looks at the sets, more verified rows after the first")
def two_looks(rng: Any) -> Outcome:
    p, y = probabilities(rng, 400 + NEW)
    sets, order = np.ones((400, 4), bool), rng.permutation(400)
    for look, m in ((1, 60), (2, 140)):
        known = np.full(400, None)
        known[order[:m]] = y[order[:m]]
        made = conformalize(p[:400], sets, Rectified(margin="finite", look=look), verified=known)
        if made.predict_set(p[400:], LEVEL).sizes.mean() < 2.4:
            break
    return of_rows(made, p[400:], y[400:])


@design("small sets by half of 120 labels that are verified, by category")
def verified_by_category(rng: Any) -> list[Outcome]:
    part = rng.integers(0, 2, 240 + NEW)
    p, y = probabilities(rng, 240 + NEW)
    made = conformalize(p[:240], beside(rng, y[:240], 4), verified=verify(rng, y[:240], 120), by=part[:240])
    inside = made.predict_set(p[240:], LEVEL, by=part[240:]).contains(y[240:])
    by = made.guarantee(LEVEL).by_category
    return [Outcome(one, float(inside[part[240:] == name].mean())) for name, one in by.items()]


@design("false candidates enter by chance, as declared", "uniform")
@design("false candidates depend on the class, as declared", "class")
def contamination(rng: Any, how: str) -> Outcome:
    p, y = probabilities(rng, 600 + NEW, 3)
    share = 0.3 if how == "uniform" else np.array([0.1, 0.3, 0.5])[:, None][y[:600]]
    made = conformalize(p[:600], beside(rng, y[:600], 3, share), "corrected", assume=how)
    return of_rows(made, p[600:], y[600:], *LARGE, "inclusion")


# -------------------------------------------------------------------- votes


def _votes(rng: Any, y: Any, people: int, each: int, k: int = 4, unanswered: float = 0.0) -> Votes:
    """Each row is answered by some people, who are right in 80 of 100 rows."""
    n = len(y)
    said = np.where(rng.random((n, each)) < 0.8, y[:, None], rng.integers(0, k, (n, each)))
    who = rng.random((n, people)).argsort(axis=1)[:, :each]
    kept = np.repeat(rng.random(n) >= unanswered, each)
    table = {
        "item": np.repeat(np.arange(n), each)[kept],
        "annotator": who.ravel()[kept],
        "label": said.ravel()[kept],
    }
    return Votes.from_table(table, items=np.arange(n), classes=range(k))


@design("one annotator per item", 12, 1, 0.0)
@design("three annotators per item", 8, 3, 0.0)
@design("one item in ten without an answer", 8, 3, 0.1)
def random_answers(rng: Any, people: int, each: int, unanswered: float) -> Outcome:
    p, y = probabilities(rng, 300 + NEW)
    made = conformalize(p[:300], _votes(rng, y[:300], people, each, unanswered=unanswered), missing="drop")
    said = np.where(rng.random(NEW) < 0.8, y[300:], rng.integers(0, 4, NEW))
    conditions = ("answers_as_truth", "same_annotators")
    return Outcome(made.guarantee(), float(made.predict_set(p[300:]).contains(said).mean()), "answer", conditions)


@design("three answers per item, forty items verified", 8, 3)
@design("one answer per item, forty items verified", 8, 1)
def votes_and_verified(rng: Any, people: int, each: int) -> Outcome:
    p, y = probabilities(rng, 300 + NEW)
    made = conformalize(p[:300], _votes(rng, y[:300], people, each), verified=verify(rng, y[:300], 40))
    return of_rows(made, p[300:], y[300:])


@design("a language model is asked five times per item, forty items verified")
def asked_again(rng: Any) -> Outcome:
    p, y = probabilities(rng, 300 + NEW)
    first = np.where(rng.random(300) < 0.8, y[:300], rng.integers(0, 4, 300))[:, None]
    calls = np.where(rng.random((300, 5)) < 0.9, first, rng.integers(0, 4, (300, 5)))
    votes = Votes.from_proposals([[{int(label): 1.0} for label in row] for row in calls], classes=range(4))
    return of_rows(conformalize(p[:300], votes, verified=verify(rng, y[:300], 40)), p[300:], y[300:])


@design("a panel of near-copies and the shares of its votes, fifty items verified")
def near_copies(rng: Any) -> Outcome:
    _, y = probabilities(rng, 300 + NEW)
    first = np.where(rng.random(len(y)) < 0.65, y, rng.integers(0, 4, len(y)))[:, None].repeat(8, axis=1)
    said = np.where(rng.random(first.shape) < 0.15, rng.integers(0, 4, first.shape), first)
    votes = Votes.from_matrix(said, classes=range(4))
    p = votes.counts / 8
    return of_rows(conformalize(p[:300], votes[:300], verified=verify(rng, y[:300], 50)), p[300:], y[300:])


@design("verified labels stand among the votes as one more annotator")
def verified_among_votes(rng: Any) -> Outcome:
    p, y = probabilities(rng, 300 + NEW)
    known = verify(rng, y[:300], 40)
    rows = np.flatnonzero([label is not None for label in known])
    said = np.where(rng.random((300, 3)) < 0.8, y[:300, None], rng.integers(0, 4, (300, 3)))
    table = {
        "item": np.append(np.repeat(np.arange(300), 3), rows),
        "annotator": np.append(np.tile(["ann", "bob", "cyd"], 300), np.repeat("expert", len(rows))),
        "label": np.append(said.ravel(), y[rows]),
    }
    votes = Votes.from_table(table, items=np.arange(300), classes=range(4))
    return of_rows(conformalize(p[:300], votes, verified=known), p[300:], y[300:])


@design("annotators who err independently, as declared")
def crowd(rng: Any) -> Outcome:
    p, y = probabilities(rng, 400 + NEW)
    made = conformalize(p[:400], _votes(rng, y[:400], 6, 4), "crowd", assume="independent")
    return of_rows(made, p[400:], y[400:], *LARGE, "recalibrated", "independent")


@design("the accuracies of five annotators")
def accuracies(rng: Any) -> list[Outcome]:
    y, skill = rng.integers(0, 3, 300), np.array([0.95, 0.9, 0.8, 0.7, 0.6])
    right = rng.random((300, 5)) < skill
    said = np.where(right, y[:, None], (y[:, None] + rng.integers(1, 3, (300, 5))) % 3)
    found = setwise.annotators(Votes.from_matrix(said, classes=range(3)))
    return [
        Outcome(0.95, float(low <= own <= high))
        for low, high, own in zip(found.lower, found.upper, skill, strict=True)
    ]


def _figure(rng: Any, found: Any, true: dict[Any, float]) -> Outcome:
    """The guarantee of estimates, and whether the interval of one of the figures holds."""
    what, name = list(true)[rng.integers(len(true))]
    place = int(np.flatnonzero((found.what == what) & (found.name == name))[0])
    held = found.lower[place] - 1e-9 <= true[what, name] <= found.upper[place] + 1e-9
    return Outcome(found.guarantee, float(held), "figures")


@design("figures from a panel of near-copies, 40 verified rows", 40)
@design("figures from a panel of near-copies, 120 verified rows", 120)
def figures_of_a_panel(rng: Any, m: int) -> Outcome:
    _, y = probabilities(rng, 400)
    first = np.where(rng.random(400) < 0.6, y, rng.integers(0, 4, 400))
    said = np.where(rng.random((400, 4)) < 0.95, first[:, None], rng.integers(0, 4, (400, 4)))
    found = setwise.estimate(Votes.from_matrix(said, classes=range(4)), verify(rng, y, m))
    rights = {("accuracy", j): float((said[:, j] == y).mean()) for j in range(4)}
    return _figure(rng, found, rights | {("share", k): float((y == k).mean()) for k in range(4)})


@design("figures of labels and of delivered sets, by groups")
def figures_of_groups(rng: Any) -> Outcome:
    """Groups are drawn from many: their figures are those of all of them."""
    group, skill = np.repeat(np.arange(150), 4), np.repeat(rng.choice([0.6, 0.9], 150), 4)
    y = rng.integers(0, 4, 600)
    said = np.where(rng.random(600) < skill, y, (y + 1) % 4)
    known = np.where(np.isin(group, rng.permutation(150)[:60]), y.astype(object), None)
    found = setwise.estimate(said, known, sets=(np.arange(4) == said[:, None]) | (np.arange(4) == 3), groups=group)
    return _figure(rng, found, {("accuracy", "labels"): 0.75, ("coverage", "sets"): 0.75 + 0.25 / 4})


# -------------------------------------------------------------------- accept or review


def of_triage(found: Any, truth: Any, verified: int) -> Outcome:
    """The guarantee of a triage, and which share of the labels in question is right; all where none is accepted."""
    taken = int(found.accepted.sum())
    wrong = int((found.labels != truth)[found.accepted].sum())
    total = len(found.labels) + verified if found.mode == "overall" else taken
    if not taken and not found.guarantee.claims:  # nothing is said of nothing
        return Outcome(1 - found.max_error, 1.0)
    return Outcome(found.guarantee, 1 - wrong / max(total, 1), "overall" if found.mode == "overall" else "accepted")


@design("triage of the rows at hand", 0.05, 100)
@design("triage of the rows at hand, few errors allowed", 0.02, 150)
def triage(rng: Any, error: float, m: int) -> Outcome:
    p, y = probabilities(rng, 500, 4, 4.0)
    found = conformalize(p, beside(rng, y, 4), verified=verify(rng, y, m)).triage(max_error=error)
    return of_triage(found, y[found.rows], m)


@design("triage of new rows")
def triage_of_new_rows(rng: Any) -> Outcome:
    p, y = probabilities(rng, 300 + NEW, 4, 4.0)
    made = conformalize(p[:300], beside(rng, y[:300], 4), verified=verify(rng, y[:300], 150))
    return of_triage(made.triage(p[300:], max_error=0.1), y[300:], 0)


@design("triage of votes")
def triage_of_votes(rng: Any) -> Outcome:
    p, y = probabilities(rng, 300)
    found = conformalize(p, _votes(rng, y, 8, 3), verified=verify(rng, y, 100)).triage(max_error=0.1)
    return of_triage(found, y[found.rows], 100)


@design("triage of new rows in single precision")
def triage_in_single(rng: Any) -> Outcome:
    p, y = probabilities(rng, 300 + NEW, 4, 4.0)
    made = conformalize(p[:300], beside(rng, y[:300], 4), verified=verify(rng, y[:300], 150))
    return of_triage(made.triage(p[300:].astype(np.float32), max_error=0.1), y[300:], 0)


@design("triage at the second of two looks")
def triage_twice(rng: Any) -> Outcome:
    p, y = probabilities(rng, 400, 4, 4.0)
    sets, order = beside(rng, y, 4), rng.permutation(400)
    for m in (60, 120):
        known = np.full(400, None)
        known[order[:m]] = y[order[:m]]
        found = conformalize(p, sets, verified=known).triage(max_error=0.1, look=2)
        if found.accepted.mean() > 0.8:
            break
    return of_triage(found, y[found.rows], m)


@design("triage of the accepted labels", "accepted")
@design("triage on average over draws", "average")
def triage_in_mode(rng: Any, mode: Any) -> Outcome:
    p, y = probabilities(rng, 500, 4, 4.0)
    found = conformalize(p, beside(rng, y, 4), verified=verify(rng, y, 120)).triage(max_error=0.1, mode=mode)
    return of_triage(found, y[found.rows], 120)


@design("triage with thirty verified rows")
def triage_of_few(rng: Any) -> Outcome:
    p, y = probabilities(rng, 300, 4, 6.0)
    found = conformalize(p, beside(rng, y, 4), verified=verify(rng, y, 30)).triage(max_error=0.1)
    return of_triage(found, y[found.rows], 30)
