"""What a third attack found on labels that merge, vanish or change on their way through files: a test for each."""

import gzip
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setwise import LabelSets, conformalize
from setwise.cli.app import run
from setwise.cli.table_columns import imported_votes
from setwise.data import (
    from_annotators_long,
    from_annotators_wide,
    from_label_studio,
    read_table,
    read_votes,
    write_votes,
)
from setwise.data.arrow_tables import arrow_table
from setwise.data.table_files import table_files
from setwise.errors import DataError, InputError
from setwise.labels.votes import Votes
from tests.hardness.changed_files import NAMES, rows


def task(number, *choices):
    given = [
        {"completed_by": who, "result": [{"from_name": "c", "type": "choices", "value": {"choices": [choice]}}]}
        for who, choice in enumerate(choices)
    ]
    return {"id": number, "data": {"id": f"t{number}"}, "annotations": given}


# ----------------------------------------------------------------------------- several files, of which one was read


@pytest.mark.parametrize("given", [["a.json", "b.json"], ["."], ["*.json"]])
def test_04_exports_in_several_files_are_refused_and_not_read_in_part(given, tmp_path, capsys):
    for name, number in (("a", 1), ("b", 2)):
        (tmp_path / f"{name}.json").write_text(json.dumps([task(number, "cat")]))
    files = [str(tmp_path / name) for name in given]
    assert run(["convert", *files, "--from", "label-studio", "--out", str(tmp_path / "c.csv")]) == 2
    assert "exports of Label Studio are read one by one; export all tasks as one file" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------ votes in delimited text

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
    assert len(LabelSets.from_labels(np.array([1, pd.NA, 0], dtype=object), missing="empty").classes) == 2


# ------------------------------------------------------------------------------ true labels that read as classes do


@pytest.fixture
def numbered(tmp_path):
    """A calibration of the classes 7, 8 and 9, and the command that reports on a table of its rows."""
    P, sets, truth = rows()
    conformalize(P, LabelSets.from_mask(sets.to_mask(), [7, 8, 9])).save(tmp_path / "n.cal")
    table = tmp_path / "n.csv"
    told = ["--probabilities", str(table), "--truth", "truth", "--out", str(tmp_path / "r.html"), "-q"]

    def report(labels):
        cells = np.column_stack([P.astype(str), labels])
        table.write_text("p:7,p:8,p:9,truth\n" + "".join(",".join(row) + "\n" for row in cells))
        return run(["report", str(tmp_path / "n.cal"), *told])

    return report, [str(7.0 + NAMES.index(label)) if i % 2 else "" for i, label in enumerate(truth)], table


def test_11_true_labels_that_a_frame_with_gaps_wrote_as_floats_are_the_classes(numbered):
    report, labels, table = numbered
    assert report(labels) == 0
    assert "the promise is broken" not in (table.parent / "r.html").read_text()
    for classes in ([7, 8, 9], ["7", "8", "9"], ["7.0", "8.0", "9.0"]):
        read = read_table(table, truth="truth", features=[], classes=classes).truth
        assert {*read.tolist()} == {None, *classes}


def test_11_a_report_needs_true_labels_of_which_some_are_classes(numbered, capsys):
    report, labels, _ = numbered
    assert report([label and "x" for label in labels]) == 2
    assert "none of its labels, such as 'x', is a class of the sets; write them as" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_19_true_labels_that_are_empty_text_are_known_where_that_is_a_class(suffix, tmp_path):
    path = tmp_path / f"t.{suffix}"
    columns = {"truth": ["cat", "", None]}
    if suffix == "parquet":
        pq.write_table(pa.table(columns), path)
    else:
        path.write_text("".join(json.dumps({"truth": label}) + "\n" for label in columns["truth"]))
    for classes, known in ((["cat", ""], ["cat", "", None]), (["cat"], ["cat", None, None])):
        assert read_table(path, truth="truth", features=[], classes=classes).truth.tolist() == known


# ------------------------------------------------------------------------------- answers that are packed, and piped


@pytest.mark.filterwarnings("ignore:.*all answers are by one annotator")
@pytest.mark.parametrize("packed", ["answers.jsonl.gz", "answers.jsonl", "export.json.gz"])
def test_20_answers_that_are_compressed_or_in_utf_16_are_found(packed, tmp_path):
    lines = "".join(json.dumps({"id": f"t{i}", "answers": ["cat", "dog"]}) + "\n" for i in range(3))
    text = lines if packed.startswith("answers") else json.dumps([task(i, "cat", "dog") for i in range(3)])
    content = gzip.compress(text.encode()) if packed.endswith(".gz") else text.encode("utf-16")
    (tmp_path / packed).write_bytes(content)
    found = imported_votes(table_files(tmp_path / packed), "id", (None, None, None, None))
    assert (found.ids.tolist(), found.votes.classes.tolist()) == (["t0", "t1", "t2"], ["cat", "dog"])
    kind = "answers" if packed.startswith("answers") else "label-studio"
    out = tmp_path / "c.csv"
    assert run(["convert", str(tmp_path / packed), "--from", kind, "--key", "id", "--out", str(out), "-q"]) == 0
    assert out.read_text().splitlines()[1:] == [f'"t{i}","cat|dog"' for i in range(3)]


def test_20_votes_go_to_standard_output(tmp_path, capfdbinary):
    (tmp_path / "v.csv").write_text("task,worker,label\n1,a,cat\n1,b,dog\n")
    assert run(["convert", str(tmp_path / "v.csv"), "--from", "votes", "--to", "votes", "--out", "-"]) == 0
    assert capfdbinary.readouterr().out == b'"item","worker","label"\n1,"a","cat"\n1,"b","dog"\n'
