"""What a third attack found on labels that merge, vanish or change on their way through files: a test for each."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setwise.cli.app import run
from setwise.data import (
    from_annotators_long,
    from_annotators_wide,
    from_label_studio,
    read_table,
    read_votes,
    write_votes,
)
from setwise.data.arrow_tables import arrow_table
from setwise.errors import DataError, InputError
from setwise.labels.label_sets import LabelSets
from setwise.labels.votes import Votes

from .test_second_attack import NAMES, rows


def task(number, *choices):
    given = [
        {"completed_by": who, "result": [{"from_name": "c", "type": "choices", "value": {"choices": [choice]}}]}
        for who, choice in enumerate(choices)
    ]
    return {"id": number, "data": {"id": f"t{number}"}, "annotations": given}


# -------------------------------------------------------------------------------------- several files, of which one was read


@pytest.mark.parametrize("given", [["a.json", "b.json"], ["."], ["*.json"]])
def test_04_exports_in_several_files_are_refused_and_not_read_in_part(given, tmp_path, capsys):
    for name, number in (("a", 1), ("b", 2)):
        (tmp_path / f"{name}.json").write_text(json.dumps([task(number, "cat")]))
    files = [str(tmp_path / name) for name in given]
    assert run(["convert", *files, "--from", "label-studio", "--out", str(tmp_path / "c.csv")]) == 2
    assert "exports of Label Studio are read one by one; export all tasks as one file" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------- votes in delimited text

ALIKE = {
    "powers of ten": ["1e3", "1000", "2"],
    "hexadecimal": ["0x1", "1", "2"],
    "cases": ["true", "TRUE", "false"],
    "no answer that is one": ["NA", "1", "2"],
    "versions": ["1.1", "1.10", "1.2"],
    "a point": ["8", "8.0", "9"],
    "signs": ["+1", "1", "-0"],
    "times": ["10:30", "10:31", "10:30:00"],
    "many digits": ["0.1234567890123456", "0.12345678901234561", "2"],
}


@pytest.mark.filterwarnings("ignore:.*(only in how they are written|looks like a missing label)")
@pytest.mark.parametrize("alike", list(ALIKE))
def test_10_labels_in_csv_that_are_not_written_as_numbers_are_stay_text(alike, tmp_path):
    labels = ALIKE[alike]
    path = tmp_path / "v.csv"
    path.write_text("task,worker,label\n" + "".join(f"{i},w{i % 2},{labels[i % 3]}\n" for i in range(9)))
    votes = from_annotators_long(path).votes
    assert (sorted(votes.classes), len(votes.row)) == (sorted(labels), 9)
    path.write_text("ann,bob\n" + "".join(f"{label},{label}\n" for label in labels))
    assert sorted(from_annotators_wide(path).votes.classes) == sorted(labels)


@pytest.mark.parametrize(("cells", "labels"), [(["7", "-8", ""], [-8, 7]), (["7.0", "8.0", ""], [7, 8])])
def test_10_labels_that_are_written_as_numbers_are_stay_numbers(cells, labels, tmp_path):
    (tmp_path / "v.csv").write_text("task,worker,label\n" + "".join(f"{i},a,{c}\n" for i, c in enumerate(cells)))
    votes = from_annotators_long(tmp_path / "v.csv", missing="empty").votes
    assert (votes.classes.tolist(), len(votes), len(votes.row)) == (labels, 3, 2)


def test_10_items_that_are_written_differently_are_two(tmp_path):
    (tmp_path / "v.csv").write_text("task,worker,label\n0x10,a,cat\n16,a,dog\n")
    assert from_annotators_long(tmp_path / "v.csv").ids.tolist() == ["0x10", "16"]


@pytest.mark.filterwarnings("ignore:.*only in how they are written")
def test_10_votes_find_the_classes_that_they_are_written_as(tmp_path):
    (tmp_path / "v.csv").write_text("task,worker,label\n1,a,true\n2,a,false\n")
    for classes in (["true", "false"], [False, True]):
        assert from_annotators_long(tmp_path / "v.csv", classes=classes).votes.classes.tolist() == classes
    (tmp_path / "w.csv").write_text("ann,bob\n7,8\n7.0,\n")
    assert from_annotators_wide(tmp_path / "w.csv", classes=[7, 8]).votes.counts.tolist() == [[1, 1], [1, 0]]
    votes = Votes.from_matrix([[True, False], [True, None]])
    write_votes(tmp_path / "b.csv", votes)
    assert read_votes(tmp_path / "b.csv", classes=[False, True]).counts.tolist() == votes.counts.tolist()


def test_20_choices_of_label_studio_are_the_numbers_that_they_read_as():
    marked = task(2, "9")
    marked["annotations"][0]["ground_truth"] = True
    found = from_label_studio([task(1, "7", "8"), marked], classes=[7, 8, 9])
    assert found.candidates.to_lists() == [[7, 8], [9]]
    assert found.truth.tolist() == [None, 9]


# ------------------------------------------------------------------------------------------------------------- JSON

TWICE = {
    "rows.jsonl": ('{"id": 1, "c": ["a"]}\n{"id": 1, "id": 2, "c": ["a"]}\n', "line 2: 'id' occurs twice"),
    "nested.jsonl": ('{"c": ["a"], "m": {"b": 1, "b": 2}}\n', "line 1: 'b' occurs twice"),
    "rows.json": ('[{"id": 1, "id": 2, "c": ["a"]}]', "'id' occurs twice in one object, as 1 and as 2"),
}


@pytest.mark.parametrize("name", list(TWICE))
def test_12_a_field_that_an_object_has_twice_is_refused(name, tmp_path):
    content, message = TWICE[name]
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=f"{name}: .*{message}"):
        read_table(tmp_path / name, candidates="c", features=[])
    (tmp_path / "export.json").write_text(json.dumps([task(1, "cat")]).replace('"id": 1', '"id": 1, "id": 2'))
    with pytest.raises(DataError, match="export.json: 'id' occurs twice"):
        from_label_studio(tmp_path / "export.json")


LONG = 2**63 + 1


@pytest.mark.parametrize(
    "held", [[{"label": LONG, "p": 0.5}], {"uid": LONG}, {"deep": [{"uid": [LONG]}]}, [[LONG]]]
)
def test_13_integers_in_lists_and_objects_are_not_rounded(held, tmp_path):
    (tmp_path / "t.jsonl").write_text(json.dumps({"c": held}) + "\n" + json.dumps({"c": held}) + "\n")
    with pytest.raises(DataError, match=f"'c' holds the integer {LONG}, which would be rounded; write it as text"):
        arrow_table(tmp_path / "t.jsonl")


def test_13_dates_in_objects_stay_the_texts_that_they_are(tmp_path):
    held = {"meta": {"when": "2024-01-01", "at": [{"hour": "2024-01-01T10:00:00Z"}], "size": 2**52 + 1}}
    (tmp_path / "t.jsonl").write_text(json.dumps(held) + "\n")
    assert arrow_table(tmp_path / "t.jsonl").to_pylist() == [held]


@pytest.mark.parametrize("labels", [[True, 1], [0, False], [1.0, "a", True]])
def test_13_a_truth_value_and_the_number_that_it_equals_are_no_two_labels(labels, tmp_path):
    with pytest.raises(InputError, match="are equal in Python; write both as text"):
        LabelSets.from_lists([[label] for label in labels])
    (tmp_path / "t.jsonl").write_text("".join(json.dumps({"c": [label]}) + "\n" for label in labels))
    with pytest.raises(InputError, match="are equal in Python"):
        read_table(tmp_path / "t.jsonl", candidates="c", features=[])
    assert len(LabelSets.from_lists([[True], [2], ["1"]]).classes) == 3
