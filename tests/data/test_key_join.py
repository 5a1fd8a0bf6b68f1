"""Rows of two tables matched by a key."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

from setwise.data import DataError

pytest.importorskip("pyarrow", reason="pyarrow is not installed: joins are not tested")

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from setwise.data.key_join import matching_rows, refuse_other_order
from setwise.errors import MisuseWarning


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
    assert matched([2**62 + 1], np.array([2**63 + 1, 2**62, 2**62 + 1], dtype=np.uint64)) == [2]


@pytest.mark.parametrize(
    ("ours", "theirs", "problem"),
    [
        (["a"], ["a", "b", "b"], "s.csv: id = 'b' occurs twice"),
        (["a", "z"], ["a"], "s.csv: no row with id = 'z', which is row 1 of x.csv"),
        (["a", None], ["a"], "x.csv: row 1 has no id"),
        (np.array(["a", 7, np.nan], dtype=object), ["a"], "x.csv: row 2 has no id"),
        ([1.0, 2.0], np.array([1.0, np.nan, 2.0]), "s.csv: row 1 has no id"),
        ([True], [1], "x.csv holds bool, s.csv holds int64"),
        ([2**53, 2**53 + 1], [2.0**53, 0.5], "x.csv holds int64, s.csv holds double, which would be rounded"),
        (pa.array([1.0, float("nan")]), [1.0], "x.csv: row 1 has no id"),
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


def test_rows_that_share_a_row_of_the_other_table_are_said():
    with pytest.warns(MisuseWarning, match="x.csv: 2 rows have the id of another row, and share its row of s.csv"):
        rows = matching_rows("id", [1, 2, 1, 1], [2, 1], source="x.csv", other="s.csv", all_used=True)
    assert rows.tolist() == [1, 0, 1, 1]


def test_another_order_is_seen_whatever_the_formats(tmp_path):
    """And of the tables only the columns are read that both have."""
    for i in range(2):
        part = pa.table({"id": [2 * i, 2 * i + 1], "sets": [["a"], ["b"]], "p": [0.5, 0.5]})
        pq.write_table(part, tmp_path / f"part-{i}.parquet")
    parts = tmp_path / "part-*.parquet"
    for ids, wrong in (([0, 1, 2, 3], False), ([0, 1, 3, 2], True), ([0, 1, 2, 9], False)):
        pa.csv.write_csv(pa.table({"id": ids, "answers": [*"abab"]}), tmp_path / "s.csv")
        pq.write_table(pa.table({"id": ids, "sets": [["a"]] * 4}), tmp_path / "s.parquet")
        for other in ("s.csv", "s.parquet"):
            if wrong:
                with pytest.raises(DataError, match="the column 'id' names the rows of .* in another order"):
                    refuse_other_order(parts, tmp_path / other)
            else:
                refuse_other_order(parts, tmp_path / other)
