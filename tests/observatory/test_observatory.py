"""A slice of the observatory (`make observatory` is all of it), and that it would notice what it looks for."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from setwise.guarantees import PREMISES
from tests.observatory import worlds
from tests.observatory.cells import BLOCKS, Cell, grid, shapes, triage, verified, votes
from tests.observatory.judge import judge
from tests.observatory.record import merge, observe
from tests.statistical.sampling import average_p

EVERY, SELDOM = 31, 127
"""One of so many cells is in the slice, and of samples above 50 in blocks that take long: these show least.

Primes do not step along with the numbers of options whose product the cells are.
"""
LONG = (verified, shapes, votes, triage)
SILENT = 8  # samples without a statement to test, after which a cell has none

FROM_DATA = {"certificate", "confident_truth", "large_sample", "truth_is_candidate", "labels_right", "error_rate"}
"""Premises that a world does not fix by itself."""

ELSEWHERE = {"groups_at_random", "verified_written", "different_events", "who_answers"}
"""Premises that no world has: the designs in `tests/honest` do."""


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.__name__)
def test_no_promise_is_broken_in_the_slice(block):
    small, large = ([cell for cell in block() if (cell.n <= 50) == few] for few in (True, False))
    cells = [*small[::EVERY], *large[:: SELDOM if block in LONG else EVERY]]
    verdicts = [judge(cell, share=0.25, silent=SILENT) for cell in cells]
    broken = [str(verdict) for verdict in verdicts if verdict.status == "violated"]
    assert not broken, "\n".join(broken)
    assert any(verdict.status == "kept" for verdict in verdicts)


@pytest.mark.parametrize(
    "mutant",
    [lambda n, level: math.ceil(n * level), lambda n, level: math.floor((n + 1) * level)],
    ids=["without the +1", "without the ceiling"],
)
def test_a_rank_that_is_one_too_small_is_found(mutant, monkeypatch):
    cell = Cell("max", n=14, contamination="none")
    assert judge(cell).status == "kept"
    monkeypatch.setattr("setwise.strategies.threshold_rules.rank", mutant)
    assert judge(cell).status == "violated"


def test_every_premise_of_the_vocabulary_has_its_place_in_the_table_of_worlds():
    tables = (worlds.CONTAMINATION, worlds.CHECKS, worlds.BREACHES, worlds.VOTES)
    named = {name for table in tables for premises in table.values() for name in premises} | {"recalibrated"}
    assert named | FROM_DATA | ELSEWHERE | worlds.EVERYWHERE | {
        "miss_rate",
        "misses_at_random",
        "max_otherwise",
    } == set(PREMISES)


def test_there_are_at_least_three_thousand_cells_and_every_breach_has_some():
    cells = grid().values()
    assert len(cells) >= 3000
    assert {cell.breach for cell in cells} == set(worlds.BREACHES)
    assert {cell.checks for cell in cells} == set(worlds.CHECKS)


def test_the_page_names_a_cell_that_exists():
    page = Path(__file__).parents[2] / "docs" / "trust.md"
    (key,) = re.findall(r'--cell "(.*?)"', page.read_text(encoding="utf-8"))
    assert key in grid()


def test_the_e_value_of_a_true_average_is_rarely_large_and_that_of_a_false_one_is():
    rng = np.random.default_rng(3)
    coverage = rng.beta(19, 2, size=(2000, 100))  # mean 19/21
    true = [average_p(np.full(100, 19 / 21), row) for row in coverage]
    assert np.mean(np.array(true) < 0.05) <= 0.05
    assert average_p(np.full(100, 0.97), coverage[0]) < 1e-6


def test_parts_that_are_merged_give_what_one_run_gives_and_a_missing_part_is_noticed(tmp_path, capsys):
    cells = [Cell("max", n=20), Cell("min", n=20), Cell("auto", n=20)]
    parts = [str(tmp_path / f"{part}.jsonl") for part in range(2)]
    observe(cells, 0.02, 1, str(tmp_path / "whole.json"))
    for part, file in enumerate(parts):
        observe(cells[part::2], 0.02, 1, keep=file)
    assert merge(cells, parts[1:], None) == 2
    assert "2 cells are in none of the files, such as 'max; lac; plain; n=20" in capsys.readouterr().out
    assert merge(cells, parts, str(tmp_path / "merged.json")) == 0
    whole, merged = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("whole", "merged"))
    for result in (whole, merged):
        assert {"commit", "python", "processes"} <= result.pop("machines")[0].keys()
        del result["core_seconds"]
    assert merged == whole
