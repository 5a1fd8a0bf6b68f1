"""Probabilities at the border."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from setwise import conformalize
from setwise.probabilities import dense
from setwise.probabilities.dense import as_probabilities
from setwise.probabilities.readers import in_precision, read_probabilities
from setwise.scores import LAC, Margin

GOOD = np.array([[0.5, 0.25, 0.25], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize(
    "values",
    [
        GOOD,
        GOOD.astype(np.float32),
        GOOD.astype(np.float16),
        np.asfortranarray(GOOD),
        GOOD.tolist(),
        pd.DataFrame(GOOD, columns=list("abc")),
        pl.DataFrame(GOOD),
        np.eye(3, dtype=int),
        np.broadcast_to(GOOD[0], (4, 3)),
    ],
    ids=lambda values: type(values).__name__,
)
def test_numbers_in_any_container_are_accepted(values):
    made = as_probabilities(values)
    assert made.dtype in (np.float32, np.float64)
    assert np.array_equal(made, np.asarray(values))


def test_floats_are_not_copied_and_never_changed():
    for dtype in (np.float32, np.float64):
        values = GOOD.astype(dtype)
        values.flags.writeable = False
        assert as_probabilities(values) is values


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([0.5, np.nan, 0.5], r"row 70000 holds nan in column 1"),
        ([0.5, np.inf, 0.5], r"row 70000 holds inf in column 1"),
        ([3.2, -1.0, 0.3], r"row 70000 .* logits: pass their softmax"),
        ([1.5, -0.5, 0.0], r"row 70000 has entries from -0.5 to 1.5, outside"),
        ([0.5, 0.2, 0.2], r"row 70000 sums to 0.9, not to 1 \(tolerance 0.01\)"),
    ],
)
def test_the_first_bad_row_is_named_with_a_remedy(row, message):
    values = np.tile(GOOD[0], (100_000, 1))
    values[70_000] = row
    values[80_000] = np.nan
    for dtype in (np.float32, np.float64):
        with pytest.raises(ValueError, match=message):
            as_probabilities(values.astype(dtype))


def test_rows_on_the_border_of_the_tolerance_never_break_the_check(rng):
    for total in (0.99, 1.01):
        for _ in range(300):
            values = rng.dirichlet(np.ones(3), 20).astype(np.float32) * np.float32(total)
            assert as_probabilities(values) is values
    as_probabilities([[0.33, 0.33, 0.33]])
    with pytest.raises(ValueError, match="row 0 sums to 0.98"):
        as_probabilities([[0.33, 0.33, 0.32]])


def test_the_unit_domain_asks_for_the_unit_interval_only():
    as_probabilities([[0.9, 0.8], [0.0, 0.1]], "unit")
    with pytest.raises(ValueError, match="row 1 .* outside"):
        as_probabilities([[0.9, 0.8], [0.0, 1.001]], "unit")
    with pytest.raises(ValueError, match="row 0 holds nan"):
        as_probabilities([[np.nan, 0.8]], "unit")


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ([0.5, 0.5], ValueError, "shape"),
        (np.zeros((2, 2, 2)), ValueError, "shape"),
        ([[1.0], [1.0]], ValueError, "1 class"),
        (np.array([[0.5, 0.5]], dtype=object), TypeError, "object"),
        ([["a", "b"]], TypeError, "expected numbers"),
        ([[0.5, 0.5j]], TypeError, "complex"),
        ([[0.5], [0.5, 0.5]], TypeError, "cannot be read"),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused(values, error, message):
    with pytest.raises(error, match=message):
        as_probabilities(values)


def test_the_number_of_columns_must_match_the_classes():
    with pytest.raises(ValueError, match="3 columns, but there are 4 classes"):
        as_probabilities(GOOD, n_classes=4)


@pytest.mark.parametrize("types", [("float32", "float64"), ("float64", "float32"), ("float16", "float32")])
def test_another_type_is_compared_with_a_tolerance_of_the_coarser_one(types):
    given, wanted = types
    rows = np.array([[1 / 3, 2 / 3]])
    matrix, off = in_precision(rows.astype("float32" if given == "float16" else given), given, wanted)
    assert off == 4 * max(np.finfo(given).eps, np.finfo(wanted).eps)
    assert in_precision(matrix, wanted, wanted) == (matrix, 0.0)
    if wanted == "float32":
        assert matrix.tolist() == rows.astype(np.float32).tolist()


def test_of_faults_in_several_blocks_the_first_row_is_named():
    p = np.full((300_000, 2), 0.5)
    p[-1, 0], p[200_000] = -1, 2.0
    with pytest.raises(ValueError, match="row 200000 "):
        as_probabilities(p)
    p[200_000], p[250_000, 0] = 0.5, np.nan
    with pytest.raises(ValueError, match="row 250000 holds nan"):
        as_probabilities(p)


@pytest.mark.parametrize("score", [LAC(), LAC(domain="unit"), Margin()], ids=["lac", "unit", "margin"])
@pytest.mark.parametrize("limits", [np.array(-0.4), np.linspace(-0.6, 0.1, 90_000)], ids=["one", "one per row"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_new_rows_in_many_blocks_have_the_masks_of_all_rows_at_once(score, limits, dtype, rng):
    p = rng.dirichlet([1, 1, 1, 1], size=90_000).astype(dtype)
    rows = read_probabilities(p, score.domain)
    for _ in range(2):  # checked and compared, then compared
        assert np.array_equal(rows.mask(score, limits, None, None, allow_empty=True), score.below(p, limits))
    assert rows.array is p


@pytest.mark.parametrize("ask", ["predict_set", "predict_p", "predict_mask", "conformalize"])
@pytest.mark.parametrize("row", [[np.nan, 0.5], [0.5, np.inf], [1.5, -0.5], [0.5, 0.4]])
def test_a_bad_row_is_refused_in_the_same_words_whatever_is_asked(ask, row):
    p = np.full((200_000, 2), 0.5)
    cal = conformalize(p[:50], np.zeros(50, int), classes=[0, 1])
    p[150_000] = row
    with pytest.raises(ValueError, match="row 150000 ") as expected:
        as_probabilities(p)
    with pytest.raises(ValueError, match="row 150000 ") as found:
        conformalize(p, np.zeros(len(p), int)) if ask == "conformalize" else getattr(cal, ask)(p)
    assert str(found.value) == str(expected.value)


def test_new_rows_are_checked_once_at_any_number_of_levels(monkeypatch, rng):
    p, asked, checked = rng.dirichlet([1, 1, 1], size=50), [], dense.checked_blocks
    cal = conformalize(p, p.argmax(axis=1))
    monkeypatch.setattr(dense, "checked_blocks", lambda *given: asked.append(1) or checked(*given))
    assert cal.predict_set(p, [0.7, 0.9]) == [cal.predict_set(p, 0.7), cal.predict_set(p, 0.9)]
    assert len(asked) == 3
