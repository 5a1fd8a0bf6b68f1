"""Candidate sets as text in one cell."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setwise import LabelSets, conformalize
from setwise.cli.app import run
from setwise.errors import InputError
from setwise.tables import read_table
from setwise.tables.label_notation import decode_labels, encode_labels, match_classes
from tests.changed_files import NAMES, rows


def test_escapes_stay_in_delimited_text(tmp_path):
    (tmp_path / "t.csv").write_text("x,s,y\n1,a\\sb|c,a\\sb\n2,c,\\bowl\n")
    assert read_table(tmp_path / "t.csv", candidates="s", truth="y").truth.tolist() == ["a|b", " owl"]
    assert read_table(tmp_path / "t.csv", truth="y", features=["x"]).truth.tolist() == ["a|b", " owl"]
    beside = {"x": [1, 2], "s": ["a\\sb|c", "c"], "y": ["a\\sb", "c"]}  # a frame that came out of such a file
    assert read_table(beside, candidates="s", truth="y").truth.tolist() == ["a|b", "c"]


def test_whole_numbers_of_frames_with_gaps_are_integers_in_every_column():
    assert decode_labels(["7.0", "-8.0", None, "0"], "|") == [7, -8, None, 0]
    assert decode_labels(["7.0", "7"], "|") == ["7.0", "7"]
    assert decode_labels(["7.0", "x"], "|") == ["7.0", "x"]
    assert decode_labels(encode_labels(["7.0", "8"], "|"), "|") == ["7.0", "8"]


def test_a_label_that_is_no_class_is_the_only_class_that_reads_like_it():
    assert match_classes(["owl", "a|b", "7.0", "true"], ["owl ", "a\\sb", "7", True]) == [
        "owl ",
        "a\\sb",
        "7",
        True,
    ]
    assert match_classes(["owl\t", "owl"], ["owl ", " owl", "ant"]) == ["owl\t", "owl"]  # either could be meant
    assert match_classes(["C:\\\\new", "x\\\\sy"], ["C:\\new", "x\\sy"]) == ["C:\\new", "x\\sy"]  # copied from CSV
    assert decode_labels([" C:\\data", "ant"], "|", ["C:\\data", "ant"]) == ["C:\\data", "ant"]
    with pytest.raises(InputError, match="is not an escape; write a backslash as"):
        decode_labels(["C:\\data", "ant"], "|", ["ant"])


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


def test_true_labels_that_a_frame_with_gaps_wrote_as_floats_are_the_classes(numbered):
    report, labels, table = numbered
    assert report(labels) == 0
    assert "the promise is broken" not in (table.parent / "r.html").read_text()
    for classes in ([7, 8, 9], ["7", "8", "9"], ["7.0", "8.0", "9.0"]):
        read = read_table(table, truth="truth", features=[], classes=classes).truth
        assert {*read.tolist()} == {None, *classes}


def test_a_report_needs_true_labels_of_which_some_are_classes(numbered, capsys):
    report, labels, _ = numbered
    assert report([label and "x" for label in labels]) == 2
    assert "none of its labels, such as 'x', is a class of the sets; write them as" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_true_labels_that_are_empty_text_are_known_where_that_is_a_class(suffix, tmp_path):
    path = tmp_path / f"t.{suffix}"
    columns = {"truth": ["cat", "", None]}
    if suffix == "parquet":
        pq.write_table(pa.table(columns), path)
    else:
        path.write_text("".join(json.dumps({"truth": label}) + "\n" for label in columns["truth"]))
    for classes, known in ((["cat", ""], ["cat", "", None]), (["cat"], ["cat", None, None])):
        assert read_table(path, truth="truth", features=[], classes=classes).truth.tolist() == known
