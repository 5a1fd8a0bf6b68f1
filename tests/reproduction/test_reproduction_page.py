"""The generated page says what the results say, and leaves out what they do not."""

from dataclasses import replace

from reproduction.cells import cells_of
from reproduction.record import Record
from reproduction.reproduction_page import page

from .conftest import result

RUN = {"date": "2026-11-15", "device": "GPU", "cells": 45, "absent": [], "seconds": {"wall": 60.0, "train": 45.0}}


def test_a_faithful_record_has_every_table_and_no_differences(faithful):
    text = page(faithful, [RUN])
    assert [f"## Table {n}\n" in text for n in range(1, 7)] == 6 * [True]
    assert "None is larger than 2 standard deviations." in text
    assert "72 of 72 requirements hold." in text
    assert "| 2026-11-15 | GPU | 45 | 60.0 | train 45.0 |" in text
    assert "## Shift" not in text  # nothing was split anew
    assert ">>>" not in text  # the page is not a session to be run


def test_shift_is_told_from_calibration_where_both_splits_are_there(faithful):
    cells = [replace(cell, protocol="resplit") for cell in cells_of(2, range(2))]
    again = [result(cell, changed=[("max", "coverage", 0.99)]) for cell in cells]
    official = [result(cell, changed=[("oracle", "coverage", 0.79)]) for cell in cells_of(2, range(2))]
    text = page(Record((*again, *official)), [])
    (line,) = [line for line in text.splitlines() if line.startswith("| 2 | KMNIST | 0.790 (1.50) | 0.900 (1.50)")]
    assert "0.0035" in line


def test_pictures_are_linked_from_where_the_page_is(faithful, tmp_path):
    plots = tmp_path / "results" / "plots"
    plots.mkdir(parents=True)
    (plots / "real-mu.svg").write_text("<svg/>")
    text = page(faithful, [], plots, tmp_path / "docs")
    assert "](../results/plots/real-mu.svg)" in text
    assert text.count("![") == 1


def test_other_trainings_stand_beside_ours_where_they_were_tried(faithful):
    assert "## How the models were trained" not in page(faithful, [])
    tried = [result(cell) for cell in cells_of(2, range(2), variants=("annealed",))]
    text = page(Record((*faithful.results, *tried)), [])
    assert "A search found them" in text
    assert "Other settings miss more." in " ".join(text.split())
    assert "ours: 0 of 144; 100 epochs annealed over 100: " in text
    (line,) = [line for line in text.splitlines() if line.startswith("| 2 | MNIST | mean | efficiency")]
    assert line == "| 2 | MNIST | mean | efficiency | 1.01 ± 0.00 | **1.50 ± 0.00** | – | – | – | 1.01 ± 0.00 |"
