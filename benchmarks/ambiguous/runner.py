"""Runs methods on the draws of a data set, and makes one line of each: the tidy table."""

from __future__ import annotations

import time
import warnings
from importlib import import_module

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


def measured(asked, method, tasks, setting):
    """What a method achieves over the draws; a note where it fails in some, None where it declines."""
    values, seconds, failures = [], [], []
    for given, hidden in tasks:
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answer = method.function(given)
        except Exception as error:  # noqa: BLE001 - whatever a rival raises is its answer
            first, *_ = [*str(error).strip().splitlines(), ""]
            failures.append(f"{type(error).__name__}: {first[:200]}")
            if 2 * len(failures) > len(tasks):
                return {"note": f"in most draws {failures[0]}", "kept": "failed"}
            continue
        seconds.append(time.perf_counter() - start)
        if answer is None:
            return None
        values.append(asked.judge(answer, hidden))
    best = sorted(seconds)[len(seconds) // 2]
    note = {"note": f"without {len(failures)} draws with {failures[0]}"} if failures else {}
    return asked.summarise(values, setting) | {"seconds": best, "draws": len(values)} | note
