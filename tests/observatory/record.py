"""Judges many cells in parallel, and writes what was found: counts, the closest cells, squares of the picture."""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import time
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import setwise
from tests.observatory.cells import Cell
from tests.observatory.judge import FAMILY, TESTS, Verdict, judge

DIMENSIONS = ("n", "k", "contamination", "score", "shape", "checks", "model", "breach", "assume")


def observe(cells: list[Cell], share: float, processes: int, out: str | None, keep: str | None = None) -> int:
    """Judges the cells and prints violations as they are found; how many there are."""
    start, verdicts = time.perf_counter(), {}
    by_key = {cell.key: cell for cell in cells}
    kept = Path(keep or os.devnull)
    if keep and kept.exists():
        known = [Verdict(**json.loads(line)) for line in kept.read_text().splitlines()]
        verdicts = {verdict.key: verdict for verdict in known if verdict.key in by_key}
    missing = [cell for key, cell in by_key.items() if key not in verdicts]
    with multiprocessing.get_context("forkserver").Pool(processes) as pool, kept.open("a") as lines:
        for verdict in pool.imap_unordered(partial(judge, share=share), missing, chunksize=4):
            verdicts[verdict.key] = verdict
            print(json.dumps(asdict(verdict)), file=lines, flush=True)
            if verdict.status == "violated":
                print(verdict, flush=True)
    counts = Counter(verdict.status for verdict in verdicts.values())
    tests = sum(verdict.tests for verdict in verdicts.values())
    print(
        f"{len(verdicts):,} cells, {tests:,} statements, {dict(counts)}, "
        f"{time.perf_counter() - start:.0f} s on {processes} processes"
    )
    if out:
        found = {
            "machine": _machine(processes),
            "cells": len(verdicts),
            "statements": tests,
            "samples": sum(verdict.samples for verdict in verdicts.values()),
            "core_seconds": round(sum(verdict.seconds for verdict in verdicts.values())),
            "family_wise": FAMILY,
            "p_value_of_a_violation": FAMILY / TESTS,
            "counts": dict(counts),
            "violations": [str(verdict) for verdict in verdicts.values() if verdict.status == "violated"],
            "closest": [str(v) for v in sorted(verdicts.values(), key=lambda v: v.p_value)[:20] if v.p_value < 1],
            "squares": _squares([(by_key[key], verdict) for key, verdict in verdicts.items()]),
        }
        Path(out).write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n")
    return counts["violated"]


def _machine(processes: int) -> dict[str, Any]:
    libraries = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {
        "date": datetime.now(tz=UTC).date().isoformat(),
        "cpu": platform.machine(),
        "cores": os.cpu_count(),
        "processes": processes,
        "python": platform.python_version(),
        "setwise": setwise.__version__,
        **libraries,
    }


def _squares(judged: list[tuple[Cell, Verdict]]) -> list[dict[str, Any]]:
    """For each strategy and each value of each dimension: how many cells, and the median of their margins."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for cell, verdict in judged:
        for name in DIMENSIONS:
            place = (cell.strategy, name, str(getattr(cell, name)))
            square = found.setdefault(place, {"counts": Counter(), "margins": []})
            square["counts"][verdict.status] += 1
            if verdict.margin is not None:
                square["margins"].append(verdict.margin)
    names = ("strategy", "dimension", "value")
    for square in found.values():
        margins = square.pop("margins")
        square["margin"] = round(median(margins), 4) if margins else None
    return [dict(zip(names, place, strict=True)) | square for place, square in found.items()]
