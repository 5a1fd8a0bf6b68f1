import json

import numpy as np
import pytest

from setwise import LabelSets
from setwise.datasets import load
from setwise.tables import inspect, read_table

SETS = LabelSets.from_lists(
    [["a", "b"], ["a", "b"], ["b"], ["b", "c"], ["a", "b", "c", "d"], []], classes=["a", "b", "c", "d", "e"]
)


def test_sizes_singletons_and_full_sets_are_counted():
    found = inspect(SETS)
    assert (found.rows, found.classes, found.singletons, found.full) == (6, 5, 1, 0)
    assert found.sizes == {0: 1, 1: 1, 2: 3, 4: 1}
    assert found.mean_size == pytest.approx(11 / 6)
    assert inspect(LabelSets.from_mask([[1, 1], [1, 0]])).full == 1


def test_the_most_confused_labels_come_first_with_the_share_of_the_rarer():
    first, *rest = inspect(SETS).confused
    assert first.labels == ("a", "b")
    assert first.rows == 3
    assert first.share == 1.0
    assert {pair.labels: pair.rows for pair in rest}[("b", "c")] == 2
    assert len(inspect(SETS, top=2).confused) == 2


def test_full_sets_say_nothing_about_confusion():
    assert inspect(LabelSets.from_mask(np.ones((5, 4), dtype=bool))).confused == ()


def test_classes_that_are_never_alone_or_never_occur_are_named():
    found = inspect(SETS)
    assert found.never_alone == ("a", "c", "d")
    assert found.never_occurs == ("e",)


def test_containment_counts_rows_where_the_truth_is_known():
    found = inspect(SETS, ["a", "c", None, "b", "zebra", None])
    assert found.containment == 0.5
    assert found.truth_known == 4
    assert inspect(SETS, [None] * 6).containment is None
    with pytest.raises(ValueError, match="truth: 1 labels for 6 sets"):
        inspect(SETS, ["a"])


def test_unlabelled_rows_are_counted_and_the_first_is_named():
    assert (inspect(SETS).unlabelled, inspect(SETS).first_unlabelled) == (1, 5)
    assert "without candidates: 1 (16.7%), first in row 5" in str(inspect(SETS))


def test_tables_are_inspected_with_their_truth(tmp_path):
    table = read_table({"x": [1.0, 2.0], "s": ["a|b", "b"], "y": ["a", "a"]}, candidates="s", truth="y")
    assert inspect(table).containment == 0.5
    with pytest.raises(ValueError, match="expected LabelSets"):
        inspect(read_table({"x": [1.0]}))


def test_the_result_is_plain_data_and_prints():
    found = inspect(SETS, ["a"] * 6)
    assert json.loads(json.dumps(found.to_dict()))["rows"] == 6
    assert str(found).startswith("6 rows, 5 classes, 1.83 candidates per row\n")


def test_sets_too_many_to_pair_are_sampled_and_still_close(monkeypatch, rng):
    from setwise.tables import inspection

    mask = rng.random((4000, 6)) < [0.9, 0.8, 0.1, 0.1, 0.1, 0.1]
    exact = inspect(LabelSets.from_mask(mask)).confused[0]
    monkeypatch.setattr(inspection, "_MAX_PAIRS", 2000)
    sampled = inspect(LabelSets.from_mask(mask)).confused[0]
    assert sampled.labels == exact.labels == (0, 1)
    assert sampled.rows == pytest.approx(exact.rows, rel=0.15)


def test_a_real_set_is_described(benchmarks):
    found = inspect(load("lost"))
    assert found.containment == 1.0
    assert found.rows == 1122
    assert len(found.never_occurs) == 0
