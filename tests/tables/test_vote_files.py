"""Votes written and read back: weights, annotators, and rows without answers."""

import numpy as np
import pytest

from setwise import Votes
from setwise.cli.app import run
from setwise.errors import DataError
from setwise.tables import from_annotators_long, read_table, read_votes, write_votes

FULL = Votes.from_table(
    {
        "item": ["b", "a", "b", "d", "a"],
        "annotator": ["x", "y", "y", "x", "x"],
        "label": ["dog", "cat", "owl", "cat", "dog"],
        "weight": [1.0, 0.25, 3.0, 1 / 3, 1.0],
    },
    weight="weight",
    items=["b", "c", "a", "d"],  # nobody answered c
)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".feather"])
@pytest.mark.parametrize(
    "votes",
    [
        FULL,
        Votes.from_table({"item": [3, 1, 3], "annotator": [7, 8, 9], "label": [0, 2, 0]}, items=[1, 2, 3]),
        Votes.from_table({"item": ["p", "q"], "label": ["1", "2"]}, annotator=None),
    ],
    ids=["everything", "numbers", "nameless"],
)
def test_votes_come_back_as_they_were(votes, suffix, tmp_path):
    write_votes(tmp_path / f"votes{suffix}", votes)
    again = read_votes(tmp_path / f"votes{suffix}", classes=votes.classes)
    assert again == votes
    assert again.sizes.tolist() == votes.sizes.tolist()
    frame = votes.to_frame()
    names = {name: name if name in frame else None for name in ("weight",)}
    worker = "annotator" if "annotator" in frame else None
    assert Votes.from_table(frame, annotator=worker, classes=votes.classes, **names) == votes


def test_votes_are_not_written_as_arrays(tmp_path):
    with pytest.raises(DataError, match=r"rows are not written as xlsx; use \.parquet"):
        write_votes(tmp_path / "votes.xlsx", FULL)


def test_a_file_with_answers_that_deny_a_label_is_refused(tmp_path):
    (tmp_path / "votes.csv").write_text("item,annotator,label,against\n1,ann,owl,true\n")
    with pytest.raises(DataError, match="'against', and answers that deny a label are no votes; make"):
        read_votes(tmp_path / "votes.csv")


def test_the_command_line_writes_votes_that_others_read(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "long.csv").write_text("task;worker;label\n1;ann;owl\n1;bob;cat\n2;ann;cat\n3;ann;\n")
    arguments = ["convert", "long.csv", "--from", "votes", "--delimiter", ";", "--out"]
    assert run([*arguments, "votes.parquet", "--to", "votes"]) == 0, capsys.readouterr().err
    votes = read_votes(tmp_path / "votes.parquet")
    assert votes.counts.tolist() == [[1, 1], [1, 0], [0, 0]]
    assert np.array_equal(votes.items, [1, 2, 3])
    known = ["--item", "item", "--annotator", "annotator", "--label", "label"]
    long = ["--item", "task", "--annotator", "worker", "--label", "label"]
    assert run(["annotators", "votes.parquet", *known, "--quiet"]) == 0, capsys.readouterr().err
    assert run(["annotators", "long.csv", "--delimiter", ";", *long, "--quiet"]) == 0
    (tmp_path / "scores.csv").write_text("task;cat;owl\n2;0.9;0.1\n1;0.4;0.6\n")
    given = ["--probabilities", "scores.csv", "--votes", "long.csv", "--key", "task", "--delimiter", ";"]
    assert run(["conformalize", *given, "--out", "model.cal", "--quiet"]) == 0, capsys.readouterr().err
    assert run(["convert", "long.csv", "--to", "votes", "--out", "x.csv"]) == 2
    assert "cannot be made from table" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:.*some annotators differ only in how they are written")
@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
@pytest.mark.parametrize(
    "values", [["007", "7"], ["18446744073709551617", "18446744073709551616"], ["NA", "null"], ["1e5", "100000"]]
)
def test_names_that_read_as_the_same_number_or_as_nothing_stay_apart(suffix, values, tmp_path):
    votes = Votes.from_table({"item": values, "annotator": values, "label": ["a", "b"]})
    write_votes(tmp_path / f"votes.{suffix}", votes)
    assert read_votes(tmp_path / f"votes.{suffix}") == votes


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_labels_come_back_from_votes_as_from_every_other_column(suffix, tmp_path):
    labels = ["owl ", "C:\\new", "x\\sy", "a|b", "7", "8.0", "[a]", " ", "line\nfeed"]
    votes = Votes.from_table({"item": [*range(9)], "annotator": ["x"] * 9, "label": labels})
    path = tmp_path / f"votes.{suffix}"
    write_votes(path, votes)
    assert read_votes(path) == read_votes(path, classes=votes.classes) == votes
    assert from_annotators_long(path).votes == votes
    truth = read_table(path, truth="label", features=(), carry=["item", "annotator"]).truth
    assert truth.tolist() == labels


def test_a_backslash_that_starts_no_escape_is_named_with_its_row(tmp_path):
    (tmp_path / "v.csv").write_text("item,annotator,label\n1,x,owl\n2,x,C:\\data\n")
    for read in (from_annotators_long, read_votes):
        with pytest.raises(DataError, match=r"v.csv, column 'label': row 1 has the label 'C:\\\\data'") as found:
            read(tmp_path / "v.csv")
        assert str(found.value).endswith("is not an escape; write a backslash as \\\\.")  # there is no escapes=


def test_labels_with_zeros_in_front_and_labels_like_na_stay_apart(tmp_path):
    for labels in (["01", "1"], ["NA", "null"]):
        votes = Votes.from_table({"item": ["a", "b"], "annotator": ["x", "y"], "label": labels})
        write_votes(tmp_path / "votes.csv", votes)
        assert read_votes(tmp_path / "votes.csv") == votes


def test_a_column_of_several_types_is_not_written(tmp_path):
    votes = Votes.from_table({"item": [1, "1"], "annotator": ["x", "y"], "label": ["a", "b"]})
    with pytest.raises(DataError, match="item: holds int, str; a column of a file has one type"):
        write_votes(tmp_path / "votes.csv", votes)


def test_the_command_line_says_which_answers_it_does_not_use_and_takes_rows_without(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "votes.csv").write_text(
        "id,worker,label\n007,ann,owl\n007,bob,cat\n08,ann,cat\n9,ann,cat\n9,bob,owl\n"
    )
    (tmp_path / "scores.csv").write_text("id,cat,owl\n08,0.9,0.1\n007,0.4,0.6\n7,0.5,0.5\n")
    given = [
        "conformalize",
        "--probabilities",
        "scores.csv",
        "--votes",
        "votes.csv",
        "--key",
        "id",
        "--out",
        "model.cal",
    ]
    assert run([*given, "--missing", "error", "--quiet"]) == 2
    said = capsys.readouterr().err
    assert "votes.csv: 1 of 3 values of id are not in scores.csv and are not used" in said
    assert "row 2 is empty (1 such rows); use --missing full" in said
    assert run([*given, "--quiet"]) == 0
    assert "votes.csv: nobody answered 1 of 3 rows." in capsys.readouterr().err
    assert run([*given, "--missing", "full", "--force", "--quiet"]) == 0, capsys.readouterr().err


def test_votes_go_to_standard_output(tmp_path, capfdbinary):
    (tmp_path / "v.csv").write_text("task,worker,label\n1,a,cat\n1,b,dog\n")
    assert run(["convert", str(tmp_path / "v.csv"), "--from", "votes", "--to", "votes", "--out", "-"]) == 0
    assert capfdbinary.readouterr().out == b'"item","annotator","label"\n1,"a","cat"\n1,"b","dog"\n'
