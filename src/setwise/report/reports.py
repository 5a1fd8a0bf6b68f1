"""`build_report`, `report_sets`, `report_model`: one HTML file on how far prediction sets can be trusted."""

from __future__ import annotations

import datetime as dt
import os
import platform
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import numpy as np

from setwise._arrays import Array, Floats, Ints
from setwise._types import Candidates, Column, Features, ProbabilityRows
from setwise._version import __version__
from setwise.conformal.calibration import Calibration
from setwise.conformal.class_advice import class_advice
from setwise.drift.comparison import Comparison
from setwise.errors import InputError, Remedy, check_length
from setwise.evidence.row_facts import weights
from setwise.evidence.row_names import check_row_names
from setwise.guarantees import Guarantee
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import UNKNOWN, Vocabulary
from setwise.labels.votes import Votes
from setwise.metrics import groups_of_new_rows
from setwise.probabilities.dense import as_probabilities, precision_of
from setwise.ranks import as_level
from setwise.report.ambiguity import candidate_facts
from setwise.report.annotator_section import annotator_facts
from setwise.report.examples import example_facts
from setwise.report.html_pages import fill_page, read_part
from setwise.report.label_entry_levels import EntrySource, Given, Scored, Valued, grid, sweep
from setwise.report.level_facts import GuaranteeAt, level_facts, size_bins
from setwise.report.reported_rows import Rows
from setwise.report.subgroups import class_intervals, subgroup_facts
from setwise.report.verdict import guarantees, promise_of
from setwise.storage.atomic_files import replacing

MOST_LABELS = 20_000_000
"""Rows times classes that a report looks at; of more rows a sample is drawn."""


def build_report(
    path: str | os.PathLike[str],
    calibration: Calibration,
    probabilities: ProbabilityRows,
    *,
    y: Column = None,
    candidates: Candidates = None,
    votes: Votes | None = None,
    images: Any = None,
    by: Column = None,
    groups: Column = None,
    sample_weight: Column = None,
    row_ids: Column = None,
    ids: Column = None,
    confidence_level: float = 0.9,
    comparison: Comparison | Literal["auto"] | None = "auto",
    title: str = "Can these prediction sets be trusted?",
    settings: Mapping[str, Any] | None = None,
) -> Path:
    """Writes a report on the prediction sets of new rows: one HTML file that needs nothing else.

    Parameters
    ----------
    path
        The file to write.
    calibration
        What makes the sets.
    probabilities
        The model's probabilities for rows that were used neither for learning nor for calibration.
    y
        True labels, None or NaN where unknown. Without any the report shows what candidates alone prove.
    candidates
        Candidate sets of these rows, or their `Votes`, to describe them. They do not narrow the prediction sets.
    votes
        Votes on other rows, such as those that the model learned from, for a section on the annotators. Votes in
        place of candidates have one too.
    images
        What to show of an example: (rows, height, width) or (…, 3).
    by
        A category per row: coverage is shown by category. Needed where the calibration is by category.
    groups
        Which rows belong together: intervals of coverage are then those of `setwise.evaluate`. Where calibration
        rows came in groups, no interval is shown without.
    sample_weight, row_ids
        As in `Calibration.predict_set`.
    ids
        What the rows are called, shown beside their numbers.
    confidence_level
        Where the slider starts, and what the verdict is about.
    comparison
        Of these rows with the calibration rows: ``"auto"`` makes one, None leaves it out. Where it refutes that
        they come from one source, nothing is guaranteed.
    title, settings
        The headline, and what to list under settings beside what is known here.

    Examples
    --------
    >>> import numpy as np, setwise, tempfile
    >>> from setwise.report import build_report
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet([0.3, 0.3, 0.3], size=400)
    >>> y = (P.cumsum(axis=1) > rng.random((400, 1))).argmax(axis=1)
    >>> cal = setwise.conformalize(P[:200], y[:200])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = build_report(f"{folder}/report.html", cal, P[200:], y=y[200:])
    ...     "Can these prediction sets be trusted?" in made.read_text(encoding="utf-8")
    True
    """
    level, grouped = as_level(confidence_level), calibration.evidence.group is not None
    matrix = as_probabilities(
        probabilities, calibration.conformity_score.domain, len(calibration.vocabulary), classes=calibration.classes
    )
    matrix = matrix.astype(precision_of(probabilities), copy=False)  # what calibrations compare scores by
    if (sample_weight is None) != (calibration.evidence.weight is None):
        needs = "with" if sample_weight is None else "without"
        raise ValueError(f"sample_weight: calibrated {needs} weights, so the rows of the report are too.")
    known = {"y": y, "candidates": candidates, "by": by, "images": images, "row_ids": row_ids, "ids": ids}
    known["groups"] = groups_of_new_rows(groups, len(matrix), calibrated=grouped)
    rows = Rows.read(len(matrix), calibration.vocabulary, weight=weights(sample_weight, len(matrix)), **known)
    plain = calibration.conformity_score.domain == "simplex"
    people = _people(candidates, votes, rows, matrix if plain else None)
    if comparison == "auto":
        category = _categories(calibration, matrix, rows)[0]
        comparison = calibration.compare(probabilities, by=category, groups=groups if grouped else None)
    differs = None if comparison is None else comparison.differs
    if differs is not None:
        calibration = calibration.withdraw(differs)
    rows = rows.sample(MOST_LABELS // matrix.shape[1])
    matrix = matrix[rows.numbers] if rows.is_sample else matrix
    category, codes = _categories(calibration, matrix, rows)
    source = Scored(calibration, matrix, grid(confidence_level), category, codes, rows.weight, rows.row_ids)
    rows = rows if rows.by is not None else replace(rows, by=category)
    beside: dict[str, Any] = {"people": people, "comparison": comparison, "settings": settings or {}}
    beside |= {"guarantee_at": calibration.guarantee, "calibration": calibration}
    return _write(path, title, source, rows, level, **beside)


def report_sets(
    path: str | os.PathLike[str],
    sets: LabelSets,
    *,
    y: Column = None,
    candidates: Candidates = None,
    votes: Votes | None = None,
    by: Column = None,
    groups: Column = None,
    p_values: ProbabilityRows | None = None,
    images: Any = None,
    ids: Column = None,
    guarantee: GuaranteeAt | None = None,
    confidence_level: float | None = None,
    comparison: Comparison | None = None,
    title: str = "Can these prediction sets be trusted?",
    settings: Mapping[str, Any] | None = None,
) -> Path:
    """Writes a report on given prediction sets, whatever made them.

    There is no calibration here, so a guarantee must come with them: `guarantee` takes a level and returns one.
    With `p_values`, one column per class, the slider works, and starts at 0.9. `confidence_level` is what the sets
    were made for, where that is known. Other parameters as in `build_report`.

    Examples
    --------
    >>> import tempfile
    >>> from setwise import LabelSets
    >>> from setwise.report import report_sets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = report_sets(f"{folder}/r.html", LabelSets.from_lists([["a"], ["a", "b"]]), y=["a", "b"])
    ...     "No guarantee came with these sets" in made.read_text(encoding="utf-8")
    True
    """
    stated = confidence_level is not None or p_values is not None
    level = as_level(0.9 if confidence_level is None else confidence_level)
    known = {"y": y, "candidates": candidates, "by": by, "groups": groups, "images": images, "ids": ids}
    rows = Rows.read(len(sets), sets.vocabulary, **known)
    people = _people(candidates, votes, rows, None)
    rows = rows.sample(MOST_LABELS // max(sets.n_classes, 1))
    if p_values is None:
        source: EntrySource = Given(sets[rows.numbers].to_mask(), [level])
    else:
        values = as_probabilities(p_values, "unit", sets.n_classes, name="p_values")
        check_length("p_values", len(values), len(sets), "sets")
        source = Valued(values[rows.numbers], grid(float(level)))
    beside: dict[str, Any] = {"people": people, "comparison": comparison, "settings": settings or {}}
    return _write(path, title, source, rows, level, guarantee_at=guarantee, stated=stated, **beside)


def report_model(
    path: str | os.PathLike[str],
    model: Any,
    X: Features,
    y: Column = None,
    candidates: Candidates = None,
    **options: Any,
) -> Path:
    """Writes a report on the sets that a fitted `ConformalClassifier` or `CrossConformalClassifier` gives rows X.

    Options as in `build_report`; the confidence level is the model's unless given.
    Nothing is guaranteed for rows that the model learned from or was calibrated on. It looks for them and warns,
    unless ``comparison`` says what is known of the rows.
    """
    from sklearn.utils.validation import check_is_fitted  # not for the help of a command

    check_is_fitted(model, "calibration_")
    check_row_names(X=X, y=y, candidates=candidates, by=options.get("by"))
    used = None if "comparison" in options else model.used_rows_.warn_if_used(X)
    shown: dict[str, Any] = {"confidence_level": model.confidence_level, "y": y, "candidates": candidates}
    shown |= options
    asked, matrix = model.calibration_, model.predict_conformed(X)
    pooled, grouped = len(asked.parts) > 1, any(part.evidence.group is not None for part in asked.parts)
    if "comparison" not in shown and (pooled or asked.categories is None):
        shown["comparison"] = replace(
            model.row_tally().add(matrix, X=X, groups=shown.get("groups") if grouped else None).compare(), used=used
        )
    if used is not None:
        asked = asked.withdraw(used)
    if not pooled:
        return build_report(path, asked, matrix, **shown)
    sets = asked.predict_set(matrix, shown["confidence_level"])
    made = asked.guarantee if used or shown["comparison"] is None else shown["comparison"].guarantee
    return report_sets(path, sets, p_values=asked.predict_p(matrix), guarantee=made, **shown)


def _people(candidates: Any, votes: Any, rows: Rows, probabilities: Floats | None) -> dict[str, Any] | None:
    """What votes on these rows tell about annotators, with the model's probabilities; or votes on other rows."""
    if isinstance(candidates, Votes):
        known = (
            rows.codes is not None and (rows.codes != UNKNOWN).all() and rows.group is None and rows.weight is None
        )
        return annotator_facts(candidates.recode(rows.vocabulary), probabilities, rows.y if known else None)
    if votes is not None and not isinstance(votes, Votes):
        raise TypeError(f"votes: expected Votes, got {type(votes).__name__}; make them with Votes.from_table.")
    return annotator_facts(votes)


def _categories(calibration: Calibration, matrix: Floats, rows: Rows) -> tuple[Array | None, Ints | None]:
    """The category of each row and its position among those that were calibrated; None without categories."""
    if calibration.categories is None:
        return None, None
    needed = {"given": "by", "size": "candidates"}.get(calibration.setting.by)
    if needed is not None and getattr(rows, needed) is None:
        raise InputError(f"{needed}: calibrated by category, so the rows of the report need theirs", Remedy(needed))
    by = rows.by if calibration.setting.by == "given" else None
    read = calibration.reader.read(matrix, by=by, candidates=rows.candidates)
    return read.category, read.codes


def _write(
    path: str | os.PathLike[str],
    title: str,
    source: EntrySource,
    rows: Rows,
    level: Fraction,
    *,
    settings: Mapping[str, Any],
    guarantee_at: GuaranteeAt | None = None,
    stated: bool = True,
    calibration: Calibration | None = None,
    comparison: Comparison | None = None,
    people: dict[str, Any] | None = None,
) -> Path:
    """Puts the parts of the page together and writes the file, which appears whole or not at all."""
    swept = sweep(source, rows.codes, rows.group)
    classes, at = rows.vocabulary.classes, swept.levels.index(level)
    guarantee = None if guarantee_at is None else guarantee_at(level)
    promise = promise_of([] if guarantee is None else guarantees(guarantee))
    if promise.truth and rows.codes is not None:
        problem = "y: one label a row does not show how many of several right labels a set contains"
        raise InputError(problem, "leave it out, and pass all right labels to setwise.evaluate")
    facts = level_facts(swept, calibration, guarantee_at)
    known = swept.hits()[1]
    by_class = None if rows.codes is None else subgroup_facts(swept, rows.codes, classes, level)
    by_category = None
    if rows.by is not None:
        groups = Vocabulary.infer(rows.by)
        by_category = subgroup_facts(swept, groups.encode(rows.by), groups.classes, level)
    by_label, rules = [], () if calibration is None else calibration.rules
    if calibration is not None and by_class is not None:
        by_label = class_advice(calibration, class_intervals(by_class, classes, at), level)
    ambiguity = candidate_facts(calibration, rows.candidates, rows.y)
    contents = {
        "title": title,
        "guarantee": [] if guarantee is None else _paragraphs(guarantee),
        "facts": facts,
        "at": at,
        "where": f" at confidence {facts[at]['text']}" if stated else "",
        "about": promise.about,
        "n": len(rows.numbers),
        "total": rows.total,
        "known": known,
        "unknown": rows.unknown,
        "n_classes": len(classes),
        "bins": size_bins(len(classes))[1],
        "by_class": by_class,
        "by_category": by_category,
        "class_advice": by_label,
        "promised_by_class": any(np.ndim(rule.threshold(level)) for rule in rules),
        "promised_by_category": calibration is not None and calibration.categories is not None,
        "comparison": comparison,
        "ambiguity": ambiguity,
        "people": people,
        "examples": example_facts(source, swept, rows, level),
        "measurable": guarantee is not None and not (known or promise.truth),
        "settings": _settings(calibration, rows, level if stated else None)
        | {str(k): str(v) for k, v in settings.items()},
    }
    data = {
        "at": at,
        "facts": facts,
        "bins": contents["bins"],
        "parts": {"class": by_class, "category": by_category},
        "candidates": ambiguity,
    }
    with replacing(path) as beside:
        contents["licence"] = read_part("vendor/chart.js-LICENSE.md")
        scripts = ("vendor/chart.umd.min.js", "templates/report.js")
        beside.write_text(fill_page("report", contents, data=data, scripts=scripts), encoding="utf-8")
    return Path(path)


def _paragraphs(guarantee: Guarantee) -> list[tuple[str, list[tuple[str, str]]]]:
    """The guarantee as it prints, under its headings; of many categories those with the weakest one."""
    first, *others = guarantee.blocks
    if len(others) <= 4:  # three categories, and what they share
        return [first, *others]
    weakest = [guarantee.parts.index(part) for part in guarantees(guarantee)[:3]]
    more = f"… and {len(guarantee.parts) - 3:,} more categories."
    return [first, *(others[i] for i in weakest), (more, []), others[-1]]


def _settings(calibration: Calibration | None, rows: Rows, level: Fraction | None) -> dict[str, str]:
    """What the report was made from, and with which versions."""
    known = {"confidence level": "not stated" if level is None else f"{float(level):.12g}"}
    if calibration is not None:
        known |= {
            "strategy": calibration.strategy.name,
            "conformity_score": repr(calibration.conformity_score),
            "calibration rows": f"{calibration.evidence.n:,}",
            "miss rate": f"{float(calibration.setting.miss_rate):g}",
            "random state": str(calibration.setting.seed),
        }
    known |= {"classes": f"{len(rows.vocabulary):,}", "rows reported on": f"{len(rows.numbers):,}"}
    if rows.is_sample:
        known["sample"] = f"{len(rows.numbers):,} of {rows.total:,} rows, drawn with numpy's default_rng(0)"
    known |= {"made on": dt.datetime.now(tz=dt.UTC).date().isoformat(), "setwise": __version__}
    for package in ("numpy", "scipy", "scikit-learn", "torch"):
        try:
            known[package] = version(package)
        except PackageNotFoundError:
            continue
    return known | {"Python": platform.python_version()}
