"""Runs many cells in parallel and writes what was found."""

from __future__ import annotations

import datetime
import json
import multiprocessing
import os
import platform
import time
from collections import Counter
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.observatory.cells import Cell
from tests.observatory.judge import FAMILY, TESTS, Verdict, judge


def observe(cells: list[Cell], samples: int | None, processes: int, out: str | None) -> int:
    """Judges the cells, prints violations as they are found; how many there are."""
    start, verdicts = time.perf_counter(), []
    with multiprocessing.get_context("forkserver").Pool(processes) as pool:
        for verdict in pool.imap_unordered(partial(judge, samples=samples), cells, chunksize=4):
            verdicts.append(verdict)
            if verdict.status == "violated":
                print(verdict, flush=True)
    counts = Counter(verdict.status for verdict in verdicts)
    seconds = time.perf_counter() - start
    tests = sum(verdict.tests for verdict in verdicts)
    print(f"{len(verdicts):,} cells, {tests:,} statements, {dict(counts)}, {seconds:.0f} s on {processes} processes")
    if out:
        Path(out).write_text(json.dumps(_record(verdicts, counts, tests, seconds, processes), ensure_ascii=False))
    return counts["violated"]


def _record(verdicts: list[Verdict], counts: Counter[str], tests: int, seconds: float, processes: int) -> dict[str, Any]:
    libraries = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    machine = {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "cpu": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **libraries,
    }
    rows = [
        [v.key, v.status, v.statement, _short(v.promised), _short(v.measured), float(f"{v.p_value:.2g}"), v.tests, v.samples]
        for v in sorted(verdicts, key=lambda v: v.key)
    ]
    return {
        "machine": machine,
        "command": "make observatory",
        "family_wise": FAMILY,
        "p_value_of_a_violation": FAMILY / TESTS,
        "cells": len(verdicts),
        "statements": tests,
        "counts": dict(counts),
        "seconds": round(seconds),
        "processes": processes,
        "violations": [str(v) for v in verdicts if v.status == "violated"],
        "columns": ["cell", "status", "statement", "promised", "measured", "p", "statements", "samples"],
        "rows": rows,
    }


def _short(number: float | None) -> float | None:
    return None if number is None else round(number, 4)
