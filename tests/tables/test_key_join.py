"""Rows of two tables matched by a key."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from setwise import Calibration, conformalize
from setwise.errors import MisuseWarning
from setwise.tables import DataError
from setwise.tables.key_join import matching_rows, refuse_other_order
from tests.streams.conftest import CLASSES, done, rows, table

pytest.importorskip("pyarrow", reason="pyarrow is not installed: joins are not tested")


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
    with pytest.warns(MisuseWarning, match="x.csv: 2 rows repeat the id of another row and share its row of s.csv"):
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


# ------------------------------------------------------------------------------------------ keys


def id_column(ids, kind):
    return pa.array(map(str, ids)) if kind == "string" else pa.array(ids, kind)


KEYS = [
    (("int64", 2**60), ("uint64", 2**60 + 150)),
    (("int64", 2**60), ("uint64", 2**63)),
    (("uint64", 2**63), ("int64", 2**60)),
    (("int64", 2**60), ("string", 2**60 + 150)),
]


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("theirs", ["uint64", "string"])
def test_keys_of_two_types_in_two_files_are_not_rounded(keys, theirs, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    P, y, candidates = rows(300, 0)
    made = table(P, y, candidates).drop_columns(["id", "truth", "answers"])
    Path("in").mkdir()
    ids = []
    for n, (kind, first) in enumerate(keys):
        ids += range(first, first + 150)
        column = id_column(ids[-150:], kind)
        pq.write_table(made.slice(150 * n, 150).append_column("id", column), f"in/{n}.parquet")
    order = np.random.default_rng(3).permutation(300)
    labels = {"id": id_column([ids[i] for i in order], theirs), "candidates": [candidates[i] for i in order]}
    pq.write_table(pa.table(labels), "labels.parquet")
    told = ["conformalize", "--probabilities", "in", "--labels", "labels.parquet", "--key", "id"]
    done(capsys, *told, "--out", "m.cal")
    alone = conformalize(P, candidates, classes=CLASSES, random_state=0)
    assert Calibration.load("m.cal").threshold(0.9) == alone.threshold(0.9)


NAMES_OF_ROWS = [f"r{i:03}" for i in range(40)]


@pytest.mark.parametrize(
    "change", [lambda ids: ids, lambda ids: [*ids[:-1], ids[0]], lambda ids: ["R001", *ids[1:]]]
)
def test_another_order_is_seen_though_a_name_occurs_twice_or_is_misspelt(change):
    other = {"id": change(NAMES_OF_ROWS[::-1])}
    with pytest.raises(DataError, match="'id' names the rows of the table in another order; use --key id|key="):
        refuse_other_order({"id": NAMES_OF_ROWS}, other)


@pytest.mark.parametrize(
    "other", [["a", "b"] * 20, [f"s{i}" for i in range(40)], [*NAMES_OF_ROWS[:30], *["?"] * 10], NAMES_OF_ROWS[:20]]
)
def test_columns_that_name_no_rows_or_the_same_ones_are_no_other_order(other):
    refuse_other_order({"id": NAMES_OF_ROWS}, {"id": other})
    refuse_other_order({"id": ["a", "b", "b", "a"] * 10}, {"id": ["b", "a", "a", "b"] * 10})


HOURS = [dt.datetime(2026, 3, 28, hour, tzinfo=dt.UTC) for hour in range(24)]


def hours(zone):
    """The hours of a day in UTC, as clocks in a zone show them."""
    times = pa.array(HOURS, pa.timestamp("us", "UTC"))
    return times.cast(pa.timestamp("us", zone)) if zone else times.cast(pa.timestamp("ms"))


@pytest.mark.parametrize("zones", [("UTC", None), (None, "Europe/Berlin")])
def test_times_with_a_zone_are_not_matched_with_times_without_one(zones):
    told = r"at: x.csv holds timestamp.*, s.csv holds timestamp.*: only one has a time zone; write the zone of both"
    with pytest.raises(DataError, match=told):
        matching_rows("at", *map(hours, zones), source="x.csv", other="s.csv")


def test_times_of_two_zones_are_matched_by_the_moment():
    found = matching_rows("at", hours("UTC")[5:9], hours("Europe/Berlin"), source="x.csv", other="s.csv")
    assert found.tolist() == [5, 6, 7, 8]


@pytest.mark.parametrize("key", [[[1], [2]], [{"a": 1}, {"a": 2}]])
def test_lists_and_objects_are_no_keys(key):
    with pytest.raises(DataError, match="id: holds .*, which names no row; name a column of text or numbers"):
        matching_rows("id", key, key, source="x.parquet", other="s.parquet")
