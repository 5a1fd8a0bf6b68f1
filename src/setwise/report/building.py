"""`build_report` and `report_sets`: from sets to one file that says whether to trust them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from setwise._arrays import Array, Floats, Ints
from setwise.calibration.calibration import Calibration
from setwise.errors import InputError, Remedy
from setwise.evidence.row_facts import weights
from setwise.labels.label_sets import LabelSets
from setwise.probabilities import as_probabilities
from setwise.ranks import as_level
from setwise.report.levels import Claim
from setwise.report.rivals import Rival, line_up, rival_facts
from setwise.report.rows import Rows
from setwise.report.sweep import Given, Scored, Source, Valued, grid, sweep
from setwise.report.writing import write

_MOST = 20_000_000
"""Labels of rows that are looked at, over all levels; of more a sample of rows is drawn."""


def build_report(
    path: str | os.PathLike[str],
    calibration: Calibration,
    probabilities: Any,
    *,
    y: Any = None,
    candidates: Any = None,
    features: Any = None,
    feature_names: Iterable[str] | None = None,
    images: Any = None,
    by: Any = None,
    sample_weight: Any = None,
    row_ids: Any = None,
    confidence_level: float = 0.9,
    others: Iterable[Calibration] = (),
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
        True labels, None or NaN where nobody knows. Without any the report shows what candidates alone prove.
    candidates
        Candidate sets of these rows, to describe them. They do not narrow the prediction sets.
    features, feature_names, images
        What to show of an example: its first features, or its image, (rows, height, width) or (…, 3).
    by
        A category per row: coverage is shown by category. Needed where the calibration is by category.
    sample_weight, row_ids
        As in `Calibration.predict_set`.
    confidence_level
        Where the slider starts, and what the verdict is about.
    others
        Other calibrations for the same rows, to stand beside this one. Strategies that the evidence of
        `calibration` supports come by themselves.
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
    level = as_level(confidence_level)
    matrix = as_probabilities(
        probabilities, calibration.conformity_score.domain, len(calibration.vocabulary), classes=calibration.classes
    )
    if (sample_weight is None) != (calibration.evidence.weight is None):
        needs = "with" if sample_weight is None else "without"
        raise ValueError(f"sample_weight: calibrated {needs} weights, so the rows of the report are too.")
    rows = Rows.read(
        len(matrix),
        calibration.vocabulary,
        y=y,
        candidates=candidates,
        features=features,
        images=images,
        by=by,
        weight=weights(sample_weight, len(matrix)),
        row_ids=row_ids,
    )
    rows = rows.sampled(_MOST // matrix.shape[1])
    matrix = matrix[rows.numbers] if rows.is_sample else matrix
    category, codes = _categories(calibration, matrix, rows)
    source = Scored(calibration, matrix, grid(confidence_level), category, codes, rows.weight, rows.row_ids)
    chosen = sweep(source, rows.codes)
    rivals, absent = line_up(calibration, others, level)
    sweeps = [chosen, *(sweep(_same_rows(source, rival, rows), rows.codes) for rival in rivals[1:])]
    return write(
        path,
        title,
        source,
        chosen,
        rows if rows.by is not None else replace(rows, by=category),
        level,
        claim=calibration.guarantee,
        calibration=calibration,
        matrix=matrix if calibration.conformity_score.domain == "simplex" else None,
        strategies={"rows": rival_facts(rivals, sweeps, level), "absent": absent},
        feature_names=None if feature_names is None else list(feature_names),
        settings=settings or {},
    )


def report_sets(
    path: str | os.PathLike[str],
    sets: LabelSets,
    *,
    y: Any = None,
    candidates: Any = None,
    by: Any = None,
    p_values: Any = None,
    features: Any = None,
    feature_names: Iterable[str] | None = None,
    images: Any = None,
    guarantee: Claim | None = None,
    confidence_level: float | None = None,
    title: str = "Can these prediction sets be trusted?",
    settings: Mapping[str, Any] | None = None,
) -> Path:
    """Writes a report on sets that are there already, whoever made them.

    It knows no calibration, so that nothing is promised unless `guarantee` says so, which takes a level. With
    `p_values`, one column a class, the slider works, and starts at 0.9. Other parameters as in `build_report`;
    `confidence_level` is what the sets were made for, where that is known.

    Examples
    --------
    >>> import tempfile
    >>> from setwise import LabelSets
    >>> from setwise.report import report_sets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = report_sets(f"{folder}/r.html", LabelSets.from_lists([["a"], ["a", "b"]]), y=["a", "b"])
    ...     "measured, not promised" in made.read_text(encoding="utf-8")
    True
    """
    stated = confidence_level is not None or p_values is not None
    level = as_level(0.9 if confidence_level is None else confidence_level)
    rows = Rows.read(
        len(sets), sets.vocabulary, y=y, candidates=candidates, by=by, features=features, images=images
    )
    rows = rows.sampled(_MOST // max(sets.n_classes, 1))
    if p_values is None:
        source: Source = Given(sets[rows.numbers].to_mask(), [level])
    else:
        values = as_probabilities(p_values, "unit", sets.n_classes, name="p_values")
        if len(values) != len(sets):
            raise ValueError(f"p_values: {len(values)} rows for {len(sets)} sets.")
        source = Valued(values[rows.numbers], grid(float(level)))
    return write(
        path,
        title,
        source,
        sweep(source, rows.codes),
        rows,
        level,
        claim=guarantee,
        stated=stated,
        feature_names=None if feature_names is None else list(feature_names),
        settings=settings or {},
    )


def report_model(
    path: str | os.PathLike[str], model: Any, X: Any, y: Any = None, candidates: Any = None, **options: Any
) -> Path:
    """Writes a report on the sets that a fitted `ConformalClassifier` or `CrossConformalClassifier` gives rows X.

    Options as in `build_report`; the confidence level is the model's unless given, and features are those of X.
    """
    names = getattr(X, "columns", getattr(model, "feature_names_in_", None))
    shown: dict[str, Any] = {"confidence_level": model.confidence_level, "y": y, "candidates": candidates}
    if "images" not in options and getattr(X, "ndim", 1) == 2:
        shown |= {"features": X, "feature_names": None if names is None else [str(name) for name in names]}
    shown |= options
    if not hasattr(model, "folds_"):
        return build_report(path, model.calibration_, model.predict_conformed(X), **shown)
    sets = model.predict_set(X, shown["confidence_level"])
    return report_sets(path, sets, p_values=model.predict_p(X), guarantee=model.guarantee, **shown)


def _same_rows(source: Scored, rival: Rival, rows: Rows) -> Scored:
    """The rival's sets of the same rows."""
    category, codes = _categories(rival.calibration, source.matrix, rows)
    return replace(source, calibration=rival.calibration, by=category, codes=codes)


def _categories(calibration: Calibration, matrix: Floats, rows: Rows) -> tuple[Array | None, Ints | None]:
    """The category of each row and its position among those that were calibrated; None without categories."""
    if calibration.categories is None:
        return None, None
    found = rows.by
    if calibration.by == "predicted":
        found = calibration.classes[matrix.argmax(axis=1)]
    elif calibration.by == "size":
        found = None if rows.candidates is None else rows.candidates.sizes
    if found is None:
        needed = "candidates" if calibration.by == "size" else "by"
        raise InputError(
            "calibrated by category, so the rows of the report need theirs",
            Remedy(needed, None, "for the new rows"),
        )
    return found, calibration.categories.encode(found)
