"""The calibration file: the parts of a calibration as arrays and a JSON header (docs/calibration-file.md)."""

from __future__ import annotations

import math
import os
import re
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from fractions import Fraction
from typing import Any

from setwise._arrays import Array, Ints
from setwise.contamination.assumption import NOTHING, Assumption, as_assumption
from setwise.crowd.annotator_model import AnnotatorParameters
from setwise.evidence.evidence import Evidence
from setwise.evidence.right_labels import read_truth
from setwise.evidence.stored_evidence import read_evidence
from setwise.findings import Finding
from setwise.labels.vocabulary import Vocabulary
from setwise.scores import SCORES, Nodes, Score, with_classes
from setwise.storage.container import read_container, reading_untrusted, write_container
from setwise.storage.directory import Source
from setwise.storage.stored_arrays import check_array
from setwise.strategies import STRATEGIES, Setting, Strategy

FORMAT, VERSION = "setwise-calibration", 6
_FRACTION = re.compile(r"[0-9]{1,400}(/[0-9]{1,400})?")  # a power of ten could stand for any number of digits
_SEEDS = 2**63
_STORED_SCORES = ChainMap(SCORES, {Nodes.name: Nodes})  # with those that a user adds to the registry later
_FINDINGS = ("seen", "chosen", "differs")
_WORDS = {
    "by": {"given", "label", "predicted", "size"},
    "precision": {"float16", "float32", "float64"},
    "domain": {"simplex", "unit"},
    "kind": {"nothing", "uniform", "class", "independent"},
    "scope": {"", " of each category"},
}


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
    """Writes the parts, after refusing what a file cannot store (a user's own score, labels of mixed types)."""
    named = None if annotators is None else annotators.names
    for what, names in {"labels": vocabulary, "categories": categories, "annotators": named}.items():
        if names is not None and names.classes.dtype == object:
            raise ValueError(f"save: {what} must all be strings or all be numbers.")
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "conformity_score": _describe(conformity_score, _STORED_SCORES),
        "strategy": _describe(strategy, STRATEGIES),
        "classes": vocabulary.classes.tolist(),
        "setting": {
            **asdict(replace(setting, assume=NOTHING)),
            "miss_rate": str(setting.miss_rate),
            "assume": {"kind": setting.assume.kind, "estimated": setting.assume.estimated},
        },
        "categories": None if categories is None else categories.classes.tolist(),
        "annotators": None,
    }
    del header["setting"]["judged"]  # load computes it from the evidence
    arrays = {f"evidence.{name}": value for name, value in evidence.to_arrays().items()}
    if category is not None:
        arrays["category"] = category
    if setting.assume.matrix is not None:
        arrays["assume"] = setting.assume.matrix
    if annotators is not None:
        names = None if annotators.names is None else annotators.names.classes.tolist()
        header["annotators"] = {
            "names": names,
            "temperature": float(annotators.temperature),
            "shrink": float(annotators.shrink),
        }
        arrays |= {f"annotators.{name}": value for name, value in annotators.to_arrays().items()}
    write_container(path, header, arrays)


def read_parts(source: Source) -> dict[str, Any]:
    """The parts that `write_parts` wrote, by name; refuses a file in which one of them is wrong."""
    header, arrays = read_container(source, FORMAT, VERSION)
    with reading_untrusted(source, FORMAT):
        vocabulary = Vocabulary.from_file(header["classes"], "classes")
        k = len(vocabulary)
        evidence = read_evidence(_under("evidence.", arrays), k)
        score = with_classes(_build(header["conformity_score"], _STORED_SCORES), vocabulary.classes.tolist())
        category, groups = arrays.pop("category", None), header["categories"]
        if (category is None) != (groups is None):
            raise ValueError("category and categories do not belong together")
        categories = None if groups is None else Vocabulary.from_file(groups, "categories")
        if categories is not None:
            check_array(category, "category", "iu", (evidence.n,), 0, len(categories) - 1)
        setting = _setting(header["setting"], arrays.pop("assume", None), score, k)
        strategy = _build(header["strategy"], STRATEGIES)
        annotators = _annotators(header["annotators"], _under("annotators.", arrays), k)
        return {
            "conformity_score": score,
            "strategy": strategy,
            "vocabulary": vocabulary,
            "evidence": evidence,
            "setting": setting,
            "categories": categories,
            "category": category,
            "annotators": annotators,
        }


def _setting(stored: Mapping[str, Any], matrix: Array | None, score: Score, k: int) -> Setting:
    """The setting, if each entry has its type and belongs to the score and the labels."""
    plain = {name: value for name, value in stored.items() if name not in {"miss_rate", "assume", *_FINDINGS}}
    found = {name: None if stored[name] is None else Finding.from_dict(stored[name]) for name in _FINDINGS}
    for field in fields(Setting):
        if field.name in plain and type(plain[field.name]).__name__ != field.type and field.name != "domain":
            raise ValueError(f"setting.{field.name} is {plain[field.name]!r}")
    rate, assume = stored["miss_rate"], stored["assume"]
    if not isinstance(rate, str) or _FRACTION.fullmatch(rate) is None or not 0 <= Fraction(rate) < 1:
        raise ValueError(f"setting.miss_rate is {str(rate)[:40]!r}, expected a fraction below 1")
    declared = Assumption(assume["kind"], estimated=bool(assume["estimated"]))
    if matrix is not None:
        given = as_assumption(check_array(matrix, "assume", "f", (k, k), 0, 1), k)
        declared = replace(given, kind=declared.kind, estimated=declared.estimated)
    setting = Setting(**{**plain, **found, "miss_rate": Fraction(rate), "assume": declared})
    words = {"kind": declared.kind} | {name: getattr(setting, name) for name in _WORDS if name != "kind"}
    if setting.truth:
        read_truth(setting.truth if setting.truth in {"all", "one"} else float(setting.truth))
    odd = next((name for name, word in words.items() if word not in _WORDS[name]), None)
    belongs = (setting.conformity_score, setting.n_classes, setting.domain) == (score.name, k, score.domain)
    if odd or not belongs or not 0 <= setting.seed < _SEEDS or not 0 <= setting.top <= k:
        raise ValueError(f"setting: {odd or 'its entries'} cannot be")
    return setting


def _annotators(stored: Any, arrays: dict[str, Any], k: int) -> AnnotatorParameters | None:
    """The parameters of the annotators, if their arrays belong together."""
    if stored is None:
        if arrays:
            raise ValueError("annotators: arrays without annotators")
        return None
    names = None if stored["names"] is None else Vocabulary.from_file(stored["names"], "annotators")
    beta, shrink = stored["temperature"], stored["shrink"]
    if not all(isinstance(value, float) and math.isfinite(value) for value in (beta, shrink)) or shrink <= 0:
        raise ValueError("annotators: temperature and shrink are finite numbers")
    pairs, people = len(arrays["people"]), len(arrays["total"])
    answers = arrays["confusion"].shape[-1]
    if answers not in {k, 2 * k} or (names is not None and len(names) != people):
        raise ValueError("annotators: their names or answers do not belong to these labels")
    check_array(arrays["confusion"], "annotators.confusion", "f", (k, answers), 0, 1)
    check_array(arrays["people"], "annotators.people", "iu", (pairs,), 0, 0 if names is None else people - 1)
    check_array(arrays["said"], "annotators.said", "iu", (pairs,), 0, answers - 1)
    check_array(arrays["own"], "annotators.own", "f", (pairs, k), 0, 1)
    check_array(arrays["total"], "annotators.total", "f", (people, k), 0)
    check_array(arrays["shift"], "annotators.shift", "f", (k,))
    return AnnotatorParameters(names=names, temperature=beta, shrink=shrink, **arrays)


def _under(prefix: str, arrays: dict[str, Array]) -> dict[str, Any]:
    """Removes the arrays whose names begin with `prefix`, and returns them by the rest of their names."""
    names = [name for name in arrays if name.startswith(prefix)]
    return {name.removeprefix(prefix): arrays.pop(name) for name in names}


def _build(stored: Mapping[str, Any], registry: Mapping[str, Any]) -> Any:
    """A score or strategy out of its name and parameters."""
    return registry[stored["name"]](**{name: value for name, value in stored.items() if name != "name"})


def _describe(thing: Any, registry: Mapping[str, Any]) -> dict[str, Any]:
    """Name and parameters of a score or strategy."""
    name = next((name for name, kind in registry.items() if kind is type(thing)), None)
    if name is None:
        raise ValueError(f"save: {thing!r} is not part of setwise, so that a file cannot store it.")
    return {"name": name, **asdict(thing)}
