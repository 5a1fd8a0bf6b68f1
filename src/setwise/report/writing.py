"""The parts of a report put together: what the template is given, and what the page's charts look up."""

from __future__ import annotations

import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from setwise._arrays import Floats
from setwise.calibration.calibration import Calibration
from setwise.guarantees import Guarantee
from setwise.labels.vocabulary import Vocabulary
from setwise.report.ambiguity import candidate_facts
from setwise.report.examples import example_facts
from setwise.report.judging import (
    guarantees,
    in_plain_words,
    independent_examples,
    judge,
    promise_of,
    usefulness,
)
from setwise.report.levels import Claim, level_facts, size_bins
from setwise.report.page import render
from setwise.report.parts import part_facts
from setwise.report.rivals import advice
from setwise.report.rows import Rows, settings_of
from setwise.report.sweep import Source, Sweep


def write(
    path: str | os.PathLike[str],
    title: str,
    source: Source,
    swept: Sweep,
    rows: Rows,
    level: Fraction,
    *,
    settings: Mapping[str, Any],
    claim: Claim | None = None,
    stated: bool = True,
    calibration: Calibration | None = None,
    matrix: Floats | None = None,
    strategies: dict[str, Any] | None = None,
    feature_names: list[str] | None = None,
) -> Path:
    """Puts the parts together and writes the file; it appears whole or not at all."""
    classes, at = rows.vocabulary.classes, swept.levels.index(level)
    made = [] if claim is None else guarantees(claim(level))
    facts = level_facts(swept, calibration, claim)
    hits, known = swept.hits()
    verdict = judge(
        promise_of(made),
        int(hits[at]),
        known,
        calibrated_on=None if calibration is None else independent_examples(calibration),
        bracket=facts[at].get("proved"),
    )
    by_class = None if rows.codes is None else part_facts(swept, rows.codes, classes, level)
    by_category = None
    if rows.by is not None:
        groups = Vocabulary.infer(rows.by)
        by_category = part_facts(swept, groups.encode(rows.by), groups.classes, level)
    ambiguity = candidate_facts(calibration, rows.candidates, matrix, rows.y)
    contents = {
        "title": title,
        "verdict": verdict,
        "headline": verdict.headline if made else "What was promised for these sets is not known here.",
        "useful": usefulness(facts[at]["mean"], len(classes), float((swept.sizes[:, at] == 1).mean())),
        "plainly": in_plain_words(made[0]) if made else "",
        "guarantee": _paragraphs(made),
        "facts": facts,
        "at": at,
        "where": f" at confidence {facts[at]['text']}" if stated else "",
        "n": len(rows.numbers),
        "total": rows.total,
        "known": known,
        "n_classes": len(classes),
        "bins": size_bins(len(classes))[1],
        "strategies": strategies,
        "by_class": by_class,
        "by_category": by_category,
        "promised_by_category": calibration is not None and calibration.categories is not None,
        "ambiguity": ambiguity,
        "examples": example_facts(
            source,
            swept,
            classes,
            level,
            numbers=rows.numbers,
            codes=rows.codes,
            y=rows.y,
            candidates=rows.candidates,
            features=rows.features,
            feature_names=feature_names,
            images=rows.images,
        ),
        "advice": advice(made[0], strategies["rows"] if strategies else [], known=known) if made else [],
        "settings": settings_of(calibration, rows, level if stated else None)
        | {str(k): str(v) for k, v in settings.items()},
    }
    data = {
        "at": at,
        "facts": facts,
        "bins": contents["bins"],
        "strategies": None if strategies is None else [_curves(each) for each in strategies["rows"]],
        "parts": {"class": by_class, "category": by_category},
        "candidates": ambiguity,
    }
    target = Path(path)
    beside = target.with_name(f".{target.name}.tmp")
    beside.write_text(render(contents, data), encoding="utf-8")
    beside.replace(target)
    return target


def _curves(strategy: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in strategy.items() if name != "rung"}


def _paragraphs(made: list[Guarantee]) -> list[str]:
    """The guarantee line by line; of many categories those that promise least."""
    shown = [line for guarantee in made[:3] for line in str(guarantee).split("\n")]
    return shown if len(made) <= 3 else [*shown, f"… and {len(made) - 3:,} more categories."]
