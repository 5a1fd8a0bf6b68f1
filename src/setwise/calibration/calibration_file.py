"""The calibration file: the parts of a calibration as arrays and a JSON header (docs/calibration-file.md)."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from fractions import Fraction
from typing import Any

from setwise._arrays import Array, Ints
from setwise._version import __version__
from setwise.container import read_container, write_container
from setwise.contamination.annotator_model import AnnotatorParameters
from setwise.contamination.assumption import NOTHING, Assumption
from setwise.evidence.evidence import Evidence
from setwise.labels.vocabulary import Vocabulary
from setwise.scores import SCORES, Score
from setwise.strategies import STRATEGIES, Setting, Strategy

FORMAT, VERSION = "setwise-calibration", 5


def write_parts(
    path: str | os.PathLike[str],
    *,
    conformity_score: Score,
    strategy: Strategy,
    vocabulary: Vocabulary,
    evidence: Evidence,
    setting: Setting,
    categories: Vocabulary | None,
    category: Ints | None,
    annotators: AnnotatorParameters | None,
) -> None:
    """Writes the parts; what no file can name (a score of one's own, mixed labels) is refused first."""
    named = None if annotators is None else annotators.names
    for what, names in {"labels": vocabulary, "categories": categories, "annotators": named}.items():
        if names is not None and names.classes.dtype == object:
            raise ValueError(f"save: {what} must be strings, or numbers, all of one kind, to be written.")
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "setwise": __version__,
        "conformity_score": _named(conformity_score, SCORES),
        "strategy": _named(strategy, STRATEGIES),
        "classes": vocabulary.classes.tolist(),
        "setting": {
            **asdict(replace(setting, assume=NOTHING)),
            "miss_rate": str(setting.miss_rate),
            "assume": {"kind": setting.assume.kind, "estimated": setting.assume.estimated},
        },
        "categories": None if categories is None else categories.classes.tolist(),
        "annotators": None,
    }
    del header["setting"]["judged"]  # judged anew from the evidence
    arrays = {f"evidence.{name}": value for name, value in evidence.to_arrays().items()}
    if category is not None:
        arrays["category"] = category
    if setting.assume.matrix is not None:
        arrays["assume"] = setting.assume.matrix
    if annotators is not None:
        names = None if annotators.names is None else annotators.names.classes.tolist()
        header["annotators"] = {"names": names, "temperature": annotators.temperature}
        arrays |= {f"annotators.{name}": value for name, value in annotators.to_arrays().items()}
    write_container(path, header, arrays)


def read_parts(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The parts that `write_parts` wrote, by name."""
    header, arrays = read_container(path, FORMAT, VERSION)
    try:
        score, strategy, setting = header["conformity_score"], header["strategy"], header["setting"]
        people = header["annotators"]
        if people is not None and people["names"] is not None:
            people["names"] = Vocabulary.declare(people["names"])
        return {
            "conformity_score": SCORES[score.pop("name")](**score),
            "strategy": STRATEGIES[strategy.pop("name")](**strategy),
            "vocabulary": Vocabulary.declare(header["classes"]),
            "evidence": Evidence(**_under("evidence.", arrays)),
            "setting": Setting(
                **setting
                | {
                    "miss_rate": Fraction(setting["miss_rate"]),
                    "assume": Assumption(matrix=arrays.get("assume"), **setting["assume"]),
                }
            ),
            "categories": None if header["categories"] is None else Vocabulary.declare(header["categories"]),
            "category": arrays.get("category"),
            "annotators": people and AnnotatorParameters(**people, **_under("annotators.", arrays)),
        }
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: a {FORMAT} file with a broken or missing part ({error!r}).") from error


def _under(prefix: str, arrays: dict[str, Array]) -> dict[str, Any]:
    """The arrays whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): held for name, held in arrays.items() if name.startswith(prefix)}


def _named(thing: Any, registry: dict[str, Any]) -> dict[str, Any]:
    """Name and parameters of a score or strategy."""
    name = next((name for name, kind in registry.items() if kind is type(thing)), None)
    if name is None:
        raise ValueError(f"save: {thing!r} is not one of setwise's own, so no file can name it.")
    return {"name": name, **asdict(thing)}
