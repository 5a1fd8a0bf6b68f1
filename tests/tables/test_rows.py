import csv
import itertools
import json
from dataclasses import replace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setwise import MisuseWarning, evaluate
from setwise.errors import InputError
from setwise.tables import DataError, RowRequest, VoteColumns, read_rows

ROWS = "id,x,place\nr1,1,north\nr2,2,south\n"


def written(path, text):
    path.write_text(text)
    return path


def asked(**more):
    return read_rows(RowRequest(**{"features": ["x"], "candidates": "answers", **more}))


@pytest.fixture
def rows(tmp_path):
    return written(tmp_path / "x.csv", ROWS)


def test_candidates_may_lie_in_a_file_of_their_own_by_row_or_by_key(rows, tmp_path):
    by_row = written(tmp_path / "s.jsonl", '{"answers": ["a", "b"]}\n{"answers": ["b"]}\n')
    assert asked(source=rows, labels=by_row).candidates.to_lists() == [["a", "b"], ["b"]]
    by_key = written(tmp_path / "s.csv", "id,answers\nr3,c\nr2,b\nr1,a|b\n")
    with pytest.warns(MisuseWarning, match=r"s.csv: 1 of 3 values of id are not in .*x.csv and are not used"):
        table = asked(source=rows, labels=by_key, key="id")
    assert table.candidates.to_lists() == [["a", "b"], ["b"]]
    with pytest.raises(DataError, match=r"3 rows for 2 rows of .*x.csv; use key=… to match them"):
        asked(source=rows, labels=by_key)
    short = written(tmp_path / "t.csv", "id,answers\nr1,a\n")
    with pytest.raises(DataError, match="no row with id = 'r2', which is row 1"):
        asked(source=rows, labels=short, key="id")


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize("unit", ["ms", "ns"])
def test_keys_that_are_times_keep_their_zone(zone, unit, tmp_path):
    hours = pa.array(range(0, 10**7, 3_600_000), pa.timestamp("ms"))
    zoned = hours.cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp(unit, zone))
    said = ["ab"[k % 2] for k in range(len(hours))]
    for name, times in (("x", zoned), ("plain", hours)):
        pq.write_table(pa.table({"id": times, "x": range(len(hours))}), tmp_path / f"{name}.parquet")
    columns = {"id": zoned.cast(pa.timestamp("us", "UTC"))[::-1], "answers": said[::-1], "who": ["ann"] * len(said)}
    pq.write_table(pa.table(columns), tmp_path / "s.parquet")
    votes = {
        "candidates": None,
        "votes": tmp_path / "s.parquet",
        "vote_columns": VoteColumns("id", "who", "answers"),
    }
    for answers in ({"labels": tmp_path / "s.parquet"}, votes):
        found = asked(source=tmp_path / "x.parquet", key="id", **answers)
        sets = found.candidates or found.votes.candidates()
        assert sets.to_lists() == [[label] for label in said]
        with pytest.raises(DataError, match="only one has a time zone; write the zone of both"):
            asked(source=tmp_path / "plain.parquet", key="id", **answers)


def test_true_labels_and_categories_stand_in_the_other_table_if_it_has_them(rows, tmp_path):
    other = written(tmp_path / "s.csv", "id,answers,right\nr2,b,b\nr1,a|b,a\n")
    table = asked(source=rows, labels=other, key="id", truth="right", by="place")
    assert (table.truth.tolist(), table.by) == (["a", "b"], ["north", "south"])
    other = written(tmp_path / "t.csv", "id,answers,place\nr2,b,up\nr1,a|b,down\n")
    assert asked(source=rows, labels=other, key="id", by="place").by == ["down", "up"]
    with pytest.raises(DataError, match="t.csv: there is no column 'right'"):
        asked(source=rows, labels=other, key="id", truth="right")


def test_votes_take_the_place_of_candidates_and_are_matched_by_the_key(rows, tmp_path):
    votes = written(tmp_path / "v.csv", "item,worker,label\nr2,ann,b\nr1,ann,a\nr1,bob,b\n")
    table = asked(source=rows, votes=votes, vote_columns=VoteColumns(item="item"), key="id")
    assert table.candidates is None
    assert table.votes.counts.tolist() == [[1, 1], [0, 1]] == table.answers.counts.tolist()
    with pytest.raises(InputError, match="matched with the rows by an identifier; use key="):
        asked(source=rows, votes=votes)


def test_items_of_votes_are_rows_where_there_is_no_other_table(tmp_path):
    votes = written(tmp_path / "v.csv", "call,worker,label\nr2,ann,b\nr1,ann,a\n")
    verified = {"call": ["r1"], "verified": ["a"]}
    table = read_rows(RowRequest(source=None, votes=votes, verified=verified, key="call"))
    assert table.carried["call"].tolist() == ["r2", "r1"]
    assert table.truth.tolist() == [None, "a"]


def test_verified_labels_of_a_file_complete_the_column_of_true_labels_and_must_agree_with_it(rows):
    frame = pd.DataFrame({"id": ["r1", "r2"], "x": [1, 2], "answers": ["a|b", "b"], "right": ["a", None]})
    more = {"source": frame, "verified": {"id": ["r2"], "seen": ["b"]}, "verified_column": "seen", "key": "id"}
    assert asked(**more, truth="right").truth.tolist() == ["a", "b"]
    assert asked(**more).truth.tolist() == [None, "b"]
    with pytest.raises(DataError, match="the verified label of row 0 is 'b', but 'a' in the table"):
        asked(**more | {"verified": {"id": ["r1"], "seen": ["b"]}}, truth="right")
    with pytest.raises(DataError, match="there is no column 'verified'; it has id, seen; use verified="):
        asked(**more | {"verified_column": None})


def test_features_are_the_columns_that_are_named_nothing_else(rows):
    frame = {"id": ["r1", "r2"], "x": [1, 2], "s:a": [1, 0], "s:b": [1, 1], "t": ["a", "b"]}
    table = read_rows(RowRequest(source=frame, candidates="s", truth="t", key="id"))
    assert table.feature_names == ("x",)
    assert table.candidates.to_lists() == [["a", "b"], ["b"]]


def test_what_labels_mean_is_read_from_all_of_them_and_not_from_a_batch(tmp_path):
    many = 20_000
    labels = ["1"] * many + ["x"]
    pd.DataFrame({"id": range(many + 1), "right": labels}).to_csv(tmp_path / "x.csv", index=False)
    request = RowRequest(source=tmp_path / "x.csv", truth="right", features=())
    assert read_rows(request).truth.tolist() == labels
    assert read_rows(replace(request, classes=["1", "x"])).truth.tolist() == labels
    ids = read_rows(replace(request, truth=None, carry=["id"])).carried["id"]
    assert ids.tolist() == [str(row) for row in range(many + 1)]


def test_a_table_in_memory_without_rows_is_an_error_that_says_so():
    with pytest.raises(DataError, match="the table: holds no rows"):
        read_rows(RowRequest(source={"x": [], "said": []}, candidates="said"))


# ---------------------------------------------------------------- one reading of a label wherever it stands

SPELLED = ["owl ", "C:\\new", "x\\sy", "ant"]  # as exports of other programs hold them
FORMS = ("csv", "jsonl", "parquet")


def exported(path, **columns):
    """The columns in a file of that format, each label as it is."""
    rows = list(zip(*columns.values(), strict=True))
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows))
    else:
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([list(columns), *rows])
    return path


@pytest.mark.parametrize("kind", ["votes", "candidates", "lists"])
@pytest.mark.parametrize(("form", "other"), [*itertools.product(FORMS, FORMS)])
def test_labels_are_the_same_wherever_they_stand(tmp_path, kind, form, other):
    ids, y = [f"r{i}" for i in range(40)], [SPELLED[i % 4] for i in range(40)]
    said = [SPELLED[(i + (i % 5 == 0)) % 4] for i in range(40)]
    rows = {"source": exported(tmp_path / "rows.csv", id=ids), "key": "id", "features": ()}
    if kind == "votes":
        votes = exported(tmp_path / f"votes.{form}", id=ids, who=["ann"] * 40, said=said)
        known = {"votes": votes, "vote_columns": VoteColumns(annotator="who", label="said")}
    else:
        cells = said if kind == "candidates" or form == "csv" else [[label] for label in said]
        known = {"labels": exported(tmp_path / f"s.{form}", id=ids, said=cells), "candidates": "said"}
    known["verified"] = exported(tmp_path / f"verified.{other}", id=ids, verified=y)
    read = read_rows(RowRequest(**rows, **known))
    sets = read.answers.candidates() if kind == "votes" else read.answers
    labels = exported(tmp_path / f"truth.{other}", id=ids, truth=y)
    truth = read_rows(RowRequest(**rows, labels=labels, truth="truth", classes=sets.classes)).truth
    assert evaluate(sets, read.truth)["coverage"] == evaluate(sets, truth)["coverage"] == 0.8
