"""Columns of rare Arrow types come along, and the column that no format holds is named."""

import json
import uuid

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from setwise import LabelSets
from setwise.tables import read_sets, read_table, write_sets
from tests.streams.conftest import done, failed
from tests.tables.conftest import new_table

# ---------------------------------------------------------------------------- types of columns


def write_arrow(made, path):
    with pa.ipc.new_file(path, made.schema) as file:
        file.write_table(made)


VIEWS = pa.array(["x", None], pa.string_view())


CODED = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["cat", "owl"], pa.string_view()))


NUMBER = uuid.UUID(int=7)


RARE = {
    "text as polars writes it": (VIEWS, ["x", None]),
    "categories as polars writes them": (CODED, ["cat", "owl"]),
    "lists of categories": (pa.ListArray.from_arrays(pa.array([0, 1, 2]), CODED), [["cat"], ["owl"]]),
    "objects with views": (pa.StructArray.from_arrays([VIEWS], ["a"]), [{"a": "x"}, {"a": None}]),
    "views of lists": (pa.array([["x"], None], pa.list_view(pa.string())), [["x"], None]),
    "uuid": (
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([NUMBER.bytes, None], pa.binary(16))),
        [str(NUMBER), None],
    ),
    "json": (pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", None])), ["{}", None]),
    "bool8": (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None], pa.int8())), [True, None]),
    "runs": (pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array(["x"])), ["x", "x"]),
}


@pytest.mark.parametrize("kind", list(RARE))
def test_columns_of_rare_types_come_along(kind, calibrated_folder, capsys):
    column, values = RARE[kind]
    write_arrow(new_table(2, note=column), "n.arrow")
    asked = ["--probabilities", "n.arrow", "--out"]
    done(capsys, "predict", "m.cal", *asked, "s.jsonl")
    assert [json.loads(line)["note"] for line in (calibrated_folder / "s.jsonl").read_text().splitlines()] == values
    done(capsys, "predict", "m.cal", *asked, "s.csv")
    done(capsys, "predict", "m.cal", *asked, "s.parquet")
    assert pq.read_table("s.parquet")["note"].to_pylist() == values
    done(capsys, "triage", "m.cal", *asked, "a.csv", "--review", "r.parquet", "--max-error", 0.5)


@pytest.mark.parametrize("kind", list(RARE))
def test_arrays_of_rare_types_are_written_to_text(kind, calibrated_folder):
    column, values = RARE[kind]
    for path in ("s.csv", "s.jsonl"):
        write_sets(path, LabelSets.from_lists([["owl"], ["owl"]]), carry={"note": column})
    assert [json.loads(line)["note"] for line in (calibrated_folder / "s.jsonl").read_text().splitlines()] == values


def test_lists_of_polars_categories_are_candidates_and_notes_of_columns_stay(calibrated_folder):
    write_arrow(pa.table({"candidates": RARE["lists of categories"][0]}), "k.arrow")
    assert read_sets("k.arrow", column="candidates").to_lists() == [["cat"], ["owl"]]
    write_sets("s.arrow", LabelSets.from_lists([["cat"]], classes=["owl", "cat", "ant"]))
    held = pa.ipc.open_file("s.arrow").read_all()
    coded = pa.LargeListArray.from_arrays(pa.array([0, 1], pa.int64()), CODED[:1])
    notes = held.schema.field("labels").metadata
    write_arrow(pa.table([coded], schema=pa.schema([pa.field("labels", coded.type, metadata=notes)])), "s.arrow")
    assert read_sets("s.arrow").classes.tolist() == ["owl", "cat", "ant"]


def test_a_file_of_no_rows_may_have_columns_of_rare_types(calibrated_folder):
    write_arrow(pa.table({"x": [1.5, 2.5], "c": CODED}).slice(0, 0), "n.arrow")
    assert len(read_table("n.arrow", carry=["c"])) == 0


def test_a_column_that_no_format_holds_is_named(calibrated_folder, capsys):
    write_arrow(new_table(1, note=pa.array([(1, 2, 3)], pa.month_day_nano_interval())), "n.arrow")
    line = failed(capsys, "predict", "m.cal", "--probabilities", "n.arrow", "--out", "s.csv")
    assert "n.arrow: the column 'note' holds month_day_nano_interval; write it as text or numbers." in line
