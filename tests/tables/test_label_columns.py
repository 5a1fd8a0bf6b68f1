"""Labels in columns of tables."""

import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from setwise.tables import DataError, read_batches, read_table


def test_slices_of_large_text_are_read_right():
    column = pa.array(["x" * 9, "", "cat|dog", " ", "owl"], pa.large_string()).slice(1)
    sets = read_table(pa.table({"s": column}), candidates="s", features=[], missing="empty").candidates
    assert sets.to_lists() == [[], ["cat", "dog"], [], ["owl"]]


ODD = [" lead", "C:\\new", "a|b", "\\q7", "7", "\\", "trail "]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".arrow", ".json"])
def test_true_labels_outside_delimited_text_are_what_they_are(suffix, tmp_path):
    path = tmp_path / f"t{suffix}"
    columns = {"x": list(map(float, range(7))), "s": [[label, "b"] for label in ODD], "y": ODD}
    rows = pa.table(columns).to_pylist()
    if suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif suffix == ".json":
        path.write_text(json.dumps(rows))
    elif suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        with pa.ipc.new_file(str(path), pa.table(columns).schema) as file:
            file.write_table(pa.table(columns))
    table = read_table(path, candidates="s", truth="y")
    assert table.truth.tolist() == ODD
    assert table.candidates.contains(table.truth).all()


def test_multi_hot_columns_are_numbers_where_no_other_column_is_asked_for(calibrated_folder):
    pa.csv.write_csv(pa.table({"note": ["x", "7"], "c:owl": [1, 0], "c:cat": [1, 1]}), "m.csv")
    for candidates in ("c", ["c:owl", "c:cat"]):
        (batch,) = read_batches("m.csv", candidates=candidates, features=[])
        assert batch.candidates.sizes.tolist() == [2, 1]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["cat | dog", "", "dog"]),
        pa.array([["cat", "dog"], None, ["dog"]]),
        pa.array(["['cat', 'dog']", None, '["dog"]']),
    ],
)
def test_right_labels_are_read_as_tuples(column):
    table = read_table(pa.table({"x": [1, 2, 3], "y": column}), truth="y", several=True)
    assert table.truth.tolist() == [("cat", "dog"), None, ("dog",)]


def test_an_empty_list_is_a_row_without_right_labels_and_classes_are_recognised():
    frame = pa.table({"y": pa.array([[], ["7"], None]), "s": pa.array([[7], [7, 8], [8]])})
    assert read_table(frame, candidates="s", truth="y", several=True, features=[]).truth.tolist() == [
        (),
        (7,),
        None,
    ]
    single = pa.table({"y": pa.array([7, None]), "x": [1, 2]})
    assert read_table(single, truth="y", several=True).truth.tolist() == [(7,), None]


@pytest.mark.parametrize(
    "cells", [[["a"], [], ["b"]], [["a"], None, ["b"]], ["a", "", "b"], ["['a']", "[]", "['b']"]]
)
def test_an_empty_list_is_a_row_without_labels_as_an_empty_cell_is(cells):
    columns = {"x": [1.0, 2.0, 3.0], "s": cells}
    with pytest.raises(DataError, match="row 1 has no labels"):
        read_table(columns, candidates="s")
    assert read_table(columns, candidates="s", missing="full").candidates.to_lists() == [["a"], ["a", "b"], ["b"]]
    assert read_table(columns, candidates="s", missing="empty").candidates.to_lists() == [["a"], [], ["b"]]
