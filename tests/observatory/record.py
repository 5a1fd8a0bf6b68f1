"""Judges many cells in parallel, and writes what was found: counts, the closest cells, squares of the picture."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.summary import machine

from tests.observatory.cells import Cell
from tests.observatory.judge import FAMILY, TESTS, Verdict, judge

DIMENSIONS = ("n", "k", "contamination", "score", "shape", "checks", "model", "breach", "assume")


def observe(
    cells: list[Cell], share: float = 1.0, processes: int = 1, out: str | None = None, keep: str | None = None
) -> int:
    """Judges the cells and prints violations as they are found; how many there are."""
    start, kept, here = time.perf_counter(), Path(keep or os.devnull), machine() | {"processes": processes}
    machines, verdicts = _kept([kept] if keep and kept.exists() else [])
    missing = [cell for cell in cells if cell.key not in verdicts]
    with multiprocessing.get_context("forkserver").Pool(processes) as pool, kept.open("a") as lines:
        if missing:
            machines.append(here)
            print(json.dumps(here), file=lines, flush=True)
        for verdict in pool.imap_unordered(partial(judge, share=share), missing, chunksize=4):
            verdicts[verdict.key] = verdict
            print(json.dumps(asdict(verdict)), file=lines, flush=True)
            if verdict.status == "violated":
                print(verdict, flush=True)
    print(f"{time.perf_counter() - start:.0f} s on {processes} processes")
    return _summary(cells, machines, verdicts, out)


def merge(cells: list[Cell], parts: list[str], out: str | None) -> int:
    """Summarises what several commands judged; how many violations there are, or cells that none of them judged."""
    machines, verdicts = _kept(map(Path, parts))
    missing = [cell.key for cell in cells if cell.key not in verdicts]
    if missing:
        print(f"{len(missing):,} cells are in none of the files, such as {missing[0]!r}.")
        return len(missing)
    return _summary(cells, machines, verdicts, out)


def _kept(files: Iterable[Path]) -> tuple[list[dict[str, Any]], dict[str, Verdict]]:
    """The machines on which cells were judged, and the verdicts by their keys."""
    lines = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    machines = [line for line in lines if "key" not in line]
    return machines, {line["key"]: Verdict(**line) for line in lines if "key" in line}


def _summary(
    cells: list[Cell], machines: list[dict[str, Any]], verdicts: dict[str, Verdict], out: str | None
) -> int:
    """Prints how many cells ended how, and writes what the page shows; how many violations there are."""
    judged = [(cell, verdicts[cell.key]) for cell in cells]
    found = [verdict for _, verdict in judged]
    counts = Counter(verdict.status for verdict in found)
    tests = sum(verdict.tests for verdict in found)
    print(f"{len(found):,} cells, {tests:,} statements, {dict(counts)}")
    if out:
        result = {
            "machines": list({str(one | {"date": ""}): one for one in machines}.values()),
            "cells": len(found),
            "statements": tests,
            "samples": sum(verdict.samples for verdict in found),
            "core_seconds": round(sum(verdict.seconds for verdict in found)),
            "family_wise": FAMILY,
            "p_value_of_a_violation": FAMILY / TESTS,
            "counts": dict(counts),
            "violations": [str(verdict) for verdict in found if verdict.status == "violated"],
            "closest": [str(v) for v in sorted(found, key=lambda v: v.p_value)[:20] if v.p_value < 1],
            "squares": _squares(judged),
        }
        Path(out).write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n")
    return counts["violated"]


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
