"""What may be handed in as candidates, and how positions meet probability columns."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from setwise import LabelSets
from setwise.labels.coerce import as_candidates, as_label_sets

MASK = np.array([[True, True, False], [False, False, True]])


@pytest.mark.parametrize(
    "value",
    [
        MASK,
        MASK.tolist(),
        np.asfortranarray(MASK),
        pd.DataFrame(MASK),
        scipy.sparse.csr_array(MASK),
        LabelSets.from_mask(MASK),
        [[0, 1], [2]],
        [{0, 1}, {2}],
        [np.array([1, 0]), np.array([2])],
        pd.Series([[0, 1], [2]]),
        pl.Series([[0, 1], [2]]),
        pa.array([[0, 1], [2]]),
        pa.chunked_array([[[0, 1]], [[2]]]),
        np.array([[0, 1], [2]], dtype=object),
        LabelSets.from_lists([[0, 1], [2]]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_form_reads_the_same(value):
    assert as_candidates(value, 3).to_mask().tolist() == MASK.tolist()


@pytest.mark.parametrize("value", [[2, 0], np.array([2, 0]), np.array([[2], [0]]), pd.Series([2, 0]), (2, 0)])
def test_a_label_vector_gives_singletons(value):
    assert as_candidates(value, 3).to_lists() == [[2], [0]]


def test_integers_need_not_all_occur():
    assert as_candidates([[0], [2]], 4).n_classes == 4


def test_rows_without_labels_become_empty_for_the_caller_to_judge():
    assert as_candidates([[0], None, []], 2).sizes.tolist() == [1, 0, 0]
    assert as_candidates([0, None], 2).sizes.tolist() == [1, 0]
    assert as_candidates(np.array([0.0, np.nan]), 2).sizes.tolist() == [1, 0]


class Tensor:
    """Anything that numpy can read, such as a torch tensor."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype, copy=copy)

    def __iter__(self):
        raise AssertionError("not to be read item by item")


def test_tensors_are_read_as_arrays():
    assert as_candidates(Tensor(MASK), 3).to_mask().tolist() == MASK.tolist()
    assert as_candidates(Tensor([2, 0]), 3).to_lists() == [[2], [0]]


def test_masks_without_names_take_the_names_declared():
    for value in (MASK, scipy.sparse.csr_array(MASK), pd.DataFrame(MASK), LabelSets.from_mask(MASK)):
        made = as_candidates(value, 3, classes=["x", "y", "z"])
        assert made.to_lists() == [["x", "y"], ["z"]]


def test_rows_of_zeros_and_ones_are_not_taken_for_lists_of_labels():
    with pytest.raises(ValueError, match="look like a mask; use LabelSets.from_mask"):
        as_candidates([[1, 0, 0], [0, 1, 0]], 3)


def test_rows_may_be_generators_but_not_mappings():
    assert as_candidates([range(2), (i for i in [2])], 3).to_lists() == [[0, 1], [2]]
    with pytest.raises(TypeError, match="row 0 is"):
        as_candidates([{0: 0.4, 1: 0.6}], 3)


def test_an_undeclared_vocabulary_meeting_columns_is_an_error():
    for value in ([["b", "a"]], ["b"], LabelSets.from_lists([["a"]]), [[0.5]]):
        with pytest.raises(ValueError, match="classes="):
            as_candidates(value, 2)


def test_a_declared_vocabulary_orders_the_columns():
    expected = [[False, True]]
    assert as_candidates([["a"]], 2, classes=["b", "a"]).to_mask().tolist() == expected
    assert as_candidates(["a"], 2, classes=["b", "a"]).to_mask().tolist() == expected
    made = LabelSets.from_lists([["a"]], classes=["b", "a"])
    assert as_candidates(made, 2).to_mask().tolist() == expected
    other = LabelSets.from_lists([["a"]], classes=["a", "b"])
    assert as_candidates(other, 2, classes=["b", "a"]).to_mask().tolist() == expected


def test_a_frame_of_columns_in_another_order_is_brought_into_order():
    frame = pd.DataFrame({"a": [True], "b": [False]})
    assert as_candidates(frame, 2, classes=["b", "a"]).to_mask().tolist() == [[False, True]]


@pytest.mark.parametrize(
    ("value", "classes", "message"),
    [
        ([["a"]], ["a", "b", "c"], "3 labels for 2 probability columns"),
        (LabelSets.from_mask(MASK), None, "3 classes for 2 probability columns"),
        (np.array([[0, 1], [1, 0]]), None, "from_mask"),
        ([[0], [7]], None, "row 1: .*7"),
        ([-1], None, "row 0: .*-1"),
    ],
)
def test_what_does_not_fit_is_named(value, classes, message):
    with pytest.raises(ValueError, match=message):
        as_candidates(value, 2, classes)


@pytest.mark.parametrize("encode", [False, True])
def test_a_column_of_an_arrow_table_holds_one_label_a_row(encode):
    column = pa.chunked_array([["cat", None], ["dog", "cat"]])
    sets = as_label_sets(column.dictionary_encode() if encode else column)
    assert sets.to_lists() == [["cat"], [], ["dog"], ["cat"]]
