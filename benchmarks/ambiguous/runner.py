"""Runs methods on the draws of a data set, and makes one line of each: the tidy table."""

from __future__ import annotations

import time
import warnings
from importlib import import_module

import numpy as np

from ambiguous.registry import methods

QUESTIONS = ("sets", "keep", "suspects", "estimates", "consensus")
COLUMNS = (
    "question", "data", "setting", "verified", "method", "package", "version", "guarantee", "stated", "kept", "measured",
    "error", "gain", "spread", "looked_at", "seconds", "draws", "seed", "note", "python", "machine", "date", "commit",
)  # fmt: skip


def question(name):
    """The module of a question."""
    return import_module(f"ambiguous.questions.{name}")


def lines(asked, name, data, draws, only=None):
    """The lines of a data set, one per setting and method that applies."""
    kept = {}

    def once(key, make):
        if key not in kept:
            kept[key] = make()
        return kept[key]

    for setting in asked.settings(data):
        # A setting in which all draws are alike says so by "draws".
        wanted = min(draws, setting.get("draws", draws))
        tasks = [asked.task(data, setting, draw, once) for draw in range(wanted)]
        for given, _ in tasks:
            freeze(given)
        for method in methods(asked.QUESTION):
            if (only and (method.package or "formulas") not in only) or not method.applies(tasks[0][0]):
                continue
            if method.slow and draws <= asked.FAST:
                continue
            line = {"question": asked.QUESTION, "data": name, **setting, "method": method.name}
            line |= {"package": method.package or "formulas", "guarantee": method.guarantee, "seed": 0}
            if not method.installed:
                yield line | {"note": "not installed here"}
                continue
            found = measured(asked, method, tasks, setting)
            if found is not None:
                yield line | {"version": method.version} | found


def freeze(task):
    """Makes the arrays of a task read-only: methods share them."""
    for value in vars(task).values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False


def measured(asked, method, tasks, setting):
    """What a method achieves over the draws; a note where it fails or declines in some, None where it always declines."""
    values, seconds, failures, declined = [], [], [], 0
    for given, hidden in tasks:
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answer = method.function(given)
            took = time.perf_counter() - start
            if answer is None:
                declined += 1
                continue
            values.append(asked.judge(answer, hidden))
            seconds.append(took)
        except Exception as error:  # noqa: BLE001 - whatever a rival raises is its answer
            first, *_ = [*str(error).strip().splitlines(), ""]
            failures.append(f"{type(error).__name__}: {first[:200]}")
            if 2 * len(failures) > len(tasks):
                return {"note": f"in most draws {failures[0]}", "kept": "failed"}
    if not values:
        return None
    found = asked.summarise(values, setting) | {"seconds": sorted(seconds)[len(seconds) // 2], "draws": len(values)}
    notes = [f"without {len(failures)} draws with {failures[0]}"] if failures else []
    notes += [f"without {declined} draws that it declines"] if declined else []
    if len(values) < 2 and setting.get("draws") is None:
        found["kept"] = None  # one draw says nothing
    return found | ({"note": "; ".join(notes)} if notes else {})
