"""Rows of two tables matched by a key."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

from setwise.data import DataError

pytest.importorskip("pyarrow", reason="pyarrow is not installed: joins are not tested")

from setwise.data.key_join import matching_rows


def matched(ours, theirs):
    return matching_rows("id", ours, theirs, source="x.csv", other="s.csv").tolist()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (["b", "a"], ["a", "b"]),
        ([2, 1], [1, 2]),
        (np.array([2, 1], dtype=np.uint8), np.array([1.0, 2.0])),
        (np.array(["2", "1"], dtype=object), np.array([1, 2])),
        (np.array([2.0, 1.0]), ["1", "2"]),
        ([dt.date(2024, 1, 2), dt.date(2024, 1, 1)], ["2024-01-01", "2024-01-02"]),
        (np.array(["a7", 7], dtype=object), np.array(["7", "a7"])),
        (
            np.array(["2024-01-02", "2024-01-01"], dtype="M8[D]"),
            np.array(["2024-01-01", "2024-01-02"], dtype="M8[s]"),
        ),
    ],
)
def test_values_are_compared_by_what_they_are_and_as_text_where_one_side_is_text(ours, theirs):
    assert matched(ours, theirs) == [1, 0]


def test_numbers_beyond_doubles_stay_apart():
    assert matched([2**53 + 1, 2**53], np.array([2**53, 2**53 + 1], dtype=np.uint64)) == [1, 0]


@pytest.mark.parametrize(
    ("ours", "theirs", "problem"),
    [
        (["a"], ["a", "b", "b"], "s.csv: id = 'b' occurs twice"),
        (["a", "z"], ["a"], "s.csv: no row with id = 'z', which is row 1 of x.csv"),
        (["a", None], ["a"], "x.csv: row 1 has no id"),
        (np.array(["a", 7, np.nan], dtype=object), ["a"], "x.csv: row 2 has no id"),
        ([1.0, 2.0], np.array([1.0, np.nan, 2.0]), "s.csv: row 1 has no id"),
        ([True], [1], "x.csv holds bool, s.csv holds int64"),
    ],
)
def test_an_ambiguous_or_missing_key_is_an_error_that_names_value_and_file(ours, theirs, problem):
    with pytest.raises(DataError, match=problem):
        matched(ours, theirs)


def test_values_that_the_other_side_lacks_are_at_minus_one_where_that_may_be():
    files = {"source": "x.csv", "other": "s.csv", "absent": True}
    assert matching_rows("id", ["b", "z"], ["a", "b"], **files).tolist() == [1, -1]
    with pytest.raises(DataError, match="no row with id = 'y'"):  # none at all: another column is meant
        matching_rows("id", ["y", "z"], ["a", "b"], **files)
