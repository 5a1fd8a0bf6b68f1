"""Planted mistakes: for each the guard that should speak. How often it does is its power."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

import setwise
from setwise import ConformalClassifier, CrossConformalClassifier, LabelSets, Votes, conformalize
from setwise.cli.app import run as run_command
from setwise.strategies import Corrected
from setwise.tables import from_answers_jsonl, merge_labels, read_table
from setwise.tables.verified_files import read_verified
from tests.honest.designs import NEW, beside, features, grouped, of_model, of_rows, probabilities, verify
from tests.honest.judge import Outcome

MISTAKES: dict[str, tuple[Callable[[Any], list[Outcome]], tuple[str, ...]]] = {}


SLIGHT: set[str] = set()
"""Mistakes that are too slight to be noticed in every sample."""


def mistake(name: str, *guards: str, given: tuple[Any, ...] = (), slight: bool = False) -> Callable[[Any], Any]:
    """Registers a function of a random generator as a mistake that these guards should notice."""
    if slight:
        SLIGHT.add(name)

    def register(function: Any) -> Any:
        def trial(rng: Any) -> list[Outcome]:
            found = function(rng, *given)
            return [found] if isinstance(found, Outcome) else []

        MISTAKES[name] = trial, guards
        return function

    return register


# -------------------------------------------------------------------- rows that are used again


@mistake(
    "calibrated on the rows that it learned from",
    "estimators.used_rows.UsedRows.with_calibration",
    "estimators.used_rows._overlap_finding",
    "strategies.judgement.Judgement.premise",
)
def learned_rows(rng: Any) -> Outcome:
    X, y = features(rng, 250 + NEW)
    model = ConformalClassifier(KNeighborsClassifier(3), random_state=0).fit(X[:250], y[:250])
    kept = np.setdiff1d(np.arange(250), model.calibration_rows_)
    return of_model(model.conformalize(X[kept], y[kept]), X[250:], y[250:])


@mistake("every row occurs three times", "estimators.used_rows._warn_of_equal")
def three_times(rng: Any) -> Outcome:
    X, y = features(rng, 80 + NEW)
    model = ConformalClassifier(KNeighborsClassifier(3), random_state=0)
    return of_model(model.fit(np.repeat(X[:80], 3, axis=0), np.repeat(y[:80], 3)), X[80:], y[80:])


@mistake(
    "evaluated on the rows that it learned from",
    "estimators.used_rows.UsedRows.warn_if_used",
    "estimators.used_rows.UsedRows.among",
)
def evaluated_again(rng: Any) -> None:
    X, y = features(rng, 250)
    ConformalClassifier(GaussianNB(), random_state=0).fit(X, y).evaluate(X, y)


@mistake("a report on the rows that it was calibrated on", "cli.report._of_calibration")
def reported_again(rng: Any) -> None:
    with _folder() as folder:
        p, y = probabilities(rng, 100)
        conformalize(p, y).save(folder / "rows.cal")
        pd.DataFrame(p, columns=range(4)).to_csv(folder / "p.csv", index=False)
        _command("report", folder / "rows.cal", "--probabilities", folder / "p.csv", "--out", folder / "r.html")


# -------------------------------------------------------------------- new rows from elsewhere


@mistake(
    "new rows from another source",
    "drift.comparison.RowTally.compare",
    "drift.comparison.Comparison.differs",
    "estimators.base.BaseConformalClassifier.evaluate",
    given=(1.0,),
)
@mistake(
    "new rows from a source that is a little different",
    "drift.comparison.RowTally.compare",
    "drift.comparison.Comparison.differs",
    given=(0.3,),
    slight=True,
)
def elsewhere(rng: Any, moved: float) -> None:
    X, y = features(rng, 250 + NEW)
    ConformalClassifier(GaussianNB(), random_state=0).fit(X[:250], y[:250]).evaluate(X[250:] + moved, y[250:])


@mistake("new rows from another source, in files", "cli.predict._state_guarantee", "cli.evaluate.evaluate")
def elsewhere_in_files(rng: Any) -> None:
    with _folder() as folder:
        p, y = probabilities(rng, 200)
        q, _ = probabilities(rng, 200, sharpness=0.7)
        conformalize(p, y).save(folder / "rows.cal")
        pd.DataFrame(q, columns=range(4)).assign(truth=y).to_csv(folder / "q.csv", index=False)
        command = ("predict", folder / "rows.cal", "--probabilities", folder / "q.csv", "--out", folder / "s.csv")
        _command(*command)
        _command("evaluate", folder / "s.csv", "--truth", "truth")


# -------------------------------------------------------------------- verified rows


@mistake(
    "easy rows verified as if drawn at random",
    "evidence.verified_rows.compare_verified",
    "evidence.verified_rows.warn_about_choice",
    "strategies.judgement.Judgement.verification",
    given=(0.4,),
)
@mistake(
    "sixty verified rows, none of them among the hardest quarter",
    "evidence.verified_rows.compare_verified",
    "strategies.judgement.Judgement.verification",
    given=(0.75,),
    slight=True,
)
def easy_rows(rng: Any, share: float) -> Outcome:
    p, y = probabilities(rng, 300 + NEW)
    easy = rng.choice(np.argsort(-p[:300].max(axis=1))[: int(300 * share)], 60, replace=False)
    known = np.full(300, None)
    known[easy] = y[easy]
    return of_rows(conformalize(p[:300], np.ones((300, 4), bool), verified=known), p[300:], y[300:])


@mistake(
    "five documents verified as a whole, passed as rows",
    "evidence.verified_rows.compare_verified",
    slight=True,
)
def documents_as_rows(rng: Any) -> Outcome:
    p, y, group = grouped(rng, 80, 20)
    q, truth, _ = grouped(rng, NEW, 20)
    known = np.where(np.isin(group, rng.choice(80, 5, replace=False)), y.astype(object), None)
    return of_rows(conformalize(p, np.ones(p.shape, bool), verified=known), q, truth)


@mistake("chances of verification that are half of the true ones", "evidence.verified_rows._chances_differ")
def wrong_chances(rng: Any) -> Outcome:
    p, y = probabilities(rng, 400 + NEW)
    chance = np.clip(1.2 * (1 - p[:400].max(axis=1)) + 0.1, 0, 1)
    known = np.where(rng.random(400) < chance, y[:400].astype(object), None)
    made = conformalize(p[:400], np.ones((400, 4), bool), verified=known, verified_probability=chance / 2)
    return of_rows(made, p[400:], y[400:])


def _missing(rng: Any, n: int, share: float = 0.15) -> tuple[Any, Any, Any]:
    p, y = probabilities(rng, n + NEW)
    sets = beside(rng, y[:n], 4)
    sets[np.arange(n), y[:n]] = rng.random(n) >= share
    sets[~sets.any(axis=1), 0] = True
    return p, y, sets


@mistake(
    "candidates that lack the true label in one row of seven",
    "evidence.verified_rows.warn_outside",
    "strategies.judgement.Judgement.truth_is_candidate",
    given=(0.15,),
)
@mistake(
    "candidates that lack the true label in one row of fifty",
    "evidence.verified_rows.warn_outside",
    "strategies.judgement.Judgement.truth_is_candidate",
    given=(0.02,),
    slight=True,
)
def missing_truth(rng: Any, share: float) -> Outcome:
    p, y, sets = _missing(rng, 300, share)
    made = conformalize(p[:300], sets, "max", verified=verify(rng, y[:300], 40))
    return of_rows(made, p[300:], y[300:])


@mistake(
    "sets cut down to candidates that lack the true label",
    "calibration.base.BaseCalibration._refuse_doubtful_candidates",
)
def cut_down(rng: Any) -> Outcome:
    p, y, sets = _missing(rng, 300 + NEW)
    made = conformalize(p[:300], sets[:300], "max", verified=verify(rng, y[:300], 40))
    return of_rows(made, p[300:][:NEW], y[300:][:NEW], candidates=sets[300:])


@mistake(
    "the bracket where verified rows refute the candidates and were not drawn at random",
    "calibration.base._miss_rate",
)
def bracketed(rng: Any) -> None:
    p, y, sets = _missing(rng, 300)
    known = np.full(300, None)
    easy = np.argsort(-p[:300].max(axis=1))[:80]
    known[easy] = y[easy]
    conformalize(p[:300], sets, "max", verified=known).bracket(0.9)


@mistake(
    "triage where verified labels were written into the candidates",
    "evidence.verified_rows.refuse_written",
    "evidence.verified_rows.warn_of_written",
)
def confirming(rng: Any) -> None:
    p, y = probabilities(rng, 300)
    sets, known = beside(rng, y, 4), verify(rng, y, 40)
    rows = np.flatnonzero([label is not None for label in known])
    sets[rows] = np.eye(4, dtype=bool)[y[rows]]
    conformalize(p, sets, verified=known).triage(max_error=0.1)


@mistake(
    "given labels that were corrected in place where rows were verified",
    "evidence.verified_rows.warn_about_verified",
)
def corrected(rng: Any) -> Outcome:
    p, y = probabilities(rng, 500 + NEW)
    given, known = np.where(rng.random(500) < 0.6, rng.integers(4, size=500), y[:500]), verify(rng, y[:500], 200)
    rows = np.flatnonzero([label is not None for label in known])
    given[rows] = y[rows]
    return of_rows(conformalize(p[:500], given, verified=known), p[500:], y[500:])


@mistake("triage of votes among which the verified labels stand", "crowd.verifiers.leave_out_verifiers")
def expert_among_votes(rng: Any) -> None:
    y = rng.integers(0, 4, 300)
    known = verify(rng, y, 40)
    rows = np.flatnonzero([label is not None for label in known])
    said = np.where(rng.random((300, 3)) < 0.8, y[:, None], rng.integers(0, 4, (300, 3)))
    table = {
        "item": np.append(np.repeat(np.arange(300), 3), rows),
        "annotator": np.append(np.tile(["ann", "bob", "cyd"], 300), np.repeat("expert", len(rows))),
        "label": np.append(said.ravel(), y[rows]),
    }
    conformalize(
        probabilities(rng, 300)[0], Votes.from_table(table, items=np.arange(300), classes=range(4)), verified=known
    )


@mistake("figures from easy rows, verified as if drawn at random", "crowd.estimates._guarantee")
def figures_of_easy_rows(rng: Any) -> None:
    p, y = probabilities(rng, 400)
    known, easy = np.full(400, None), np.argsort(-p.max(axis=1))[:120]
    known[easy] = y[easy]
    setwise.estimate(p.argmax(axis=1), known, probabilities=p)


@mistake("a verified label that is misspelled", "crowd.verifiers.add_verified")
def misspelled(rng: Any) -> None:
    names = np.array(["ant", "bee", "cat"], dtype=object)
    said = names[rng.integers(0, 3, (60, 3))]
    setwise.estimate(Votes.from_matrix(said), ["Ant", *names[rng.integers(0, 3, 29)], *[None] * 30])


@mistake("the bracket of rows that were learned from", "calibration.base.BaseCalibration.bracket")
def bracket_of_learned(rng: Any) -> None:
    X, y = features(rng, 250)
    model = ConformalClassifier(KNeighborsClassifier(3), random_state=0).fit(X, y)
    kept = np.setdiff1d(np.arange(250), model.calibration_rows_)
    model.conformalize(X[kept], y[kept]).calibration_.bracket(0.9)


@mistake("a verified label that is no candidate anywhere", "estimators.split._check_learnable")
def never_a_candidate(rng: Any) -> None:
    X, y = features(rng, 120)
    sets = LabelSets.from_labels(np.minimum(y, 1), classes=range(3))
    ConformalClassifier(GaussianNB(), random_state=0).fit(X, sets, verified=verify(rng, y, 60))


@mistake("verified rows dropped for lack of candidates", "conformal.conformalize.calibrate")
def dropped(rng: Any) -> None:
    p, y = probabilities(rng, 100)
    sets = beside(rng, y, 4)
    sets[:20] = False
    conformalize(p, sets, verified=y, missing="drop")


@mistake("a column of verified labels that is empty", "evidence.row_facts._read_verified")
def nothing_verified(rng: Any) -> None:
    p, y = probabilities(rng, 50)
    conformalize(p, y, verified=np.full(50, None))


# -------------------------------------------------------------------- what was stated


def _confusing(rng: Any, n: int) -> tuple[Any, Any, Any]:
    """False candidates are what the model finds plausible."""
    p, y = probabilities(rng, n + NEW)
    return p, y, (np.arange(4) == y[:n, None]) | (rng.random((n, 4)) < 1.5 * p[:n])


@mistake(
    "false candidates that are plausible, stated to enter by chance",
    "strategies.corrected.Corrected.calibrate",
    given=("corrected",),
)
def not_uniform(rng: Any, strategy: Any) -> Outcome:
    p, y, sets = _confusing(rng, 600)
    return of_rows(conformalize(p[:600], sets, strategy, assume="uniform"), p[600:], y[600:], "large_sample")


@mistake(
    "the same, and told to go on",
    "strategies.judgement.Judgement.contamination",
    given=(Corrected(if_refuted="continue"),),
)
def told_to_go_on(rng: Any, strategy: Any) -> Outcome:
    return not_uniform(rng, strategy)


def _dependent(rng: Any, y: Any, k: int = 4) -> Votes:
    """Five annotators repeat each other in half of the rows, right or wrong."""
    n = len(y)
    said = np.where(rng.random((n, 5)) < 0.6, y[:, None], rng.integers(0, k, (n, 5)))
    said = np.where(rng.random((n, 1)) < 0.5, said[:, :1], said)
    return Votes.from_matrix(said, classes=range(k))


@mistake(
    "annotators who repeat each other, stated to be independent", "strategies.judgement.Judgement.independence"
)
def dependent(rng: Any) -> Outcome:
    p, y = probabilities(rng, 400 + NEW)
    made = conformalize(p[:400], _dependent(rng, y[:400]), "crowd", assume="independent")
    return of_rows(made, p[400:], y[400:], "large_sample", "recalibrated", "independent")


@mistake("verified labels that the votes make improbable", "crowd.vote_warnings.doubt_by_verified")
def misleading(rng: Any) -> None:
    X, y = features(rng, 300)
    wrong = (y + 1) % 3
    said = np.where(rng.random((300, 1)) < 0.5, wrong[:, None], y[:, None]).repeat(5, axis=1)
    said[:, 0] = y
    votes = Votes.from_matrix(said, classes=range(3))
    ConformalClassifier(GaussianNB(), random_state=0).fit(X, votes, verified=verify(rng, y, 120))


@mistake("one language model asked five times, as votes", "labels.votes.doubt_copies")
def repeated(rng: Any) -> None:
    y = rng.integers(0, 3, 120)
    said = np.where(rng.random((120, 5)) < 0.8, y[:, None], rng.integers(0, 3, (120, 5)))
    table = {"item": np.repeat(np.arange(120), 5), "annotator": np.repeat("model", 600), "label": said.ravel()}
    Votes.from_table(table, items=np.arange(120))


@mistake("a table of votes with copied lines", "labels.votes.doubt_copies")
def copied_lines(rng: Any) -> None:
    y = rng.integers(0, 3, 40)
    table = {"item": np.arange(40), "annotator": np.repeat("ann", 40), "label": y}
    Votes.from_table({name: np.tile(column, 2) for name, column in table.items()})


@mistake(
    "the mean of candidates, where the true label is often stranger", "strategies.rank_strategies._truth_below_mean"
)
def stranger(rng: Any) -> Outcome:
    p, y = probabilities(rng, 300 + NEW)
    top = np.eye(4, dtype=bool)[p[:300].argmax(axis=1)] | (np.arange(4) == y[:300, None])
    made = conformalize(p[:300], top, "mean", verified=verify(rng, y[:300], 60))
    return of_rows(made, p[300:], y[300:], level=0.8)


@mistake(
    "all candidates pooled, where true labels are seldom probable", "strategies.rank_strategies._confident_truth"
)
def seldom_probable(rng: Any) -> Outcome:
    p, y = probabilities(rng, 300 + NEW, sharpness=1.0)
    sets = np.arange(4) == y[:300, None]
    sets[rng.random(300) < 0.3] = True
    return of_rows(conformalize(p[:300], sets, "all", verified=verify(rng, y[:300], 150)), p[300:], y[300:])


# -------------------------------------------------------------------- labels, levels, names


@mistake("labels in two spellings", "labels.spellings.doubt_spellings")
def spellings(rng: Any) -> None:
    X, y = features(rng, 90)
    names = np.array(["cat", "Cat", "dog"])[y]
    ConformalClassifier(GaussianNB(), random_state=0).fit(X, names)


@mistake("an error rate in place of a level", "ranks.doubt_level")
def error_rate(rng: Any) -> None:
    X, y = features(rng, 90)
    ConformalClassifier(GaussianNB(), confidence_level=0.1, random_state=0).fit(X, y).predict_set(X)


@mistake("true labels written in another way than the classes", "metrics.SetCounts._truth")
def other_writing(rng: Any) -> None:
    y = rng.integers(0, 3, 50)
    setwise.evaluate(LabelSets.from_labels(y), [f"class {label}" for label in y])


@mistake("frames that share only some of their row names", "evidence.row_names.check_row_names")
def shared_names(rng: Any) -> None:
    X, y = features(rng, 90)
    frame, told = pd.DataFrame(X, index=np.arange(10, 100)), pd.Series(y, index=np.arange(50, 140))
    ConformalClassifier(GaussianNB(), random_state=0).fit(frame, told)


@mistake("too few rows for the level", "calibration.base.BaseCalibration._warn_if_short")
def too_few(rng: Any) -> Outcome:
    p, y = probabilities(rng, 12 + NEW)
    return of_rows(conformalize(p[:12], y[:12]), p[12:], y[12:], level=0.95)


@mistake("too few rows for the level, in folds", "calibration.pooled.BasePooledCalibration.predict_set")
def too_few_in_folds(rng: Any) -> None:
    X, y = features(rng, 30)
    CrossConformalClassifier(GaussianNB(), cv=3, random_state=0).fit(X, y).predict_set(X, 0.99)


# -------------------------------------------------------------------- files


@mistake("a feature that numbers the rows, and one that tells the label", "tables.table_warnings._warn")
def telling(rng: Any) -> None:
    with _folder() as folder:
        X, y = features(rng, 100)
        frame = pd.DataFrame(X).assign(id=np.arange(100), told=y, label=y)
        frame.to_csv(folder / "rows.csv", index=False)
        _command("fit", folder / "rows.csv", "--candidates", "label", "--learner", "em", "--out", folder / "model")


@mistake("keys that are in one of two files only, or twice", "tables.key_join.matching_rows")
def keys(rng: Any) -> None:
    with _folder() as folder:
        p, y = probabilities(rng, 60)
        pd.DataFrame(p, columns=range(4)).assign(id=np.arange(60) // 2).to_csv(folder / "p.csv", index=False)
        pd.DataFrame({"id": np.arange(60), "label": y}).to_csv(folder / "l.csv", index=False)
        named = ("--candidates", "label", "--key", "id", "--out", folder / "rows.cal")
        _command("conformalize", "--probabilities", folder / "p.csv", "--labels", folder / "l.csv", *named)


@mistake("numbers beside labels, read as candidates", "tables.label_columns._say_unused")
def numbers_beside(rng: Any) -> None:
    with _folder() as folder:
        rows = [f'{{"label": {{"cat": {rng.random():.2f}, "dog": {rng.random():.2f}}}}}' for _ in range(30)]
        (folder / "rows.jsonl").write_text("\n".join(rows))
        read_table(folder / "rows.jsonl", candidates="label", features=[])


@mistake("columns of one's own that look like p-values", "tables.set_files.read_predicted")
def own_columns(rng: Any) -> None:
    with _folder() as folder:
        y, p = rng.integers(0, 2, 40), rng.random(40)
        frame = pd.DataFrame({"truth": y, "labels": np.array(["cat", "dog"])[y], "p:cat": p, "p:dog": 1 - p})
        frame.to_csv(folder / "s.csv", index=False)
        _command("report", folder / "s.csv", "--out", folder / "r.html")


@mistake("UTF-8 text read with an old encoding", "tables.table_files._doubted_encoding")
def encoding(rng: Any) -> None:
    with _folder() as folder:
        (folder / "rows.csv").write_text("label\n" + "Möwe\nSpatz\n" * 20, encoding="utf-8")
        _command("inspect", folder / "rows.csv", "--candidates", "label", "--encoding", "latin-1")


@mistake("a workbook with several sheets", "tables.arrow_reading._read_excel")
def sheets(rng: Any) -> None:
    with _folder() as folder:
        with pd.ExcelWriter(folder / "rows.xlsx") as book:
            for name in ("one", "two"):
                pd.DataFrame({"label": ["cat", "dog"] * 10}).to_excel(book, sheet_name=name, index=False)
        _command("inspect", folder / "rows.xlsx", "--candidates", "label")


@mistake("a table of votes without answers for some rows", "tables.table_warnings.count_unanswered")
def unanswered(rng: Any) -> None:
    with _folder() as folder:
        p, y = probabilities(rng, 60)
        pd.DataFrame(p, columns=range(4)).assign(item=np.arange(60)).to_csv(folder / "p.csv", index=False)
        votes = pd.DataFrame({"item": np.arange(50), "annotator": "ann", "label": y[:50]})
        votes.to_csv(folder / "v.csv", index=False)
        named = ("--votes", folder / "v.csv", "--key", "item", "--out", folder / "rows.cal")
        _command("conformalize", "--probabilities", folder / "p.csv", *named)


@mistake("answers of a language model that name no label", "tables.importers.llm_batches.BatchReader.report")
def no_label(rng: Any) -> None:
    texts = ["Label: cat", "I cannot say."] * 5
    bodies = [{"choices": [{"index": 0, "message": {"content": text}}]} for text in texts]
    lines = [{"custom_id": str(i), "response": {"status_code": 200, "body": body}} for i, body in enumerate(bodies)]
    from_answers_jsonl([json.dumps(line) for line in lines], missing="empty", classes=["cat", "dog"])


@mistake("rows from review, passed as verified rows", "tables.verified_files.read_verified")
def reviewed(rng: Any) -> None:
    drawn = np.arange(20) < 10
    answers = {"id": np.arange(20), "verified": rng.choice(["cat", "dog"], 20), "drawn": drawn}
    read_verified(pd.DataFrame(answers), np.arange(40), ["cat", "dog"], key="id")


@mistake("files merged without saying how many rows there are", "tables.merged_labels._all_rows")
def merged(rng: Any) -> None:
    accepted = {"id": np.arange(10), "label": rng.choice(["cat", "dog"], 10), "confidence": rng.random(10)}
    merge_labels([(pd.DataFrame(accepted), None)], key="id")


def _folder() -> Any:
    """A folder for the length of a mistake."""

    @contextlib.contextmanager
    def opened() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)

    return opened()


def _command(*words: Any) -> None:
    """A command, whose output nobody reads."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        run_command([*map(str, words), "-q"] if words[0] != "inspect" else [*map(str, words)])
