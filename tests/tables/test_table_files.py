"""How files show their encoding, delimiter and lists, and what several of them make together."""

import bz2
import gzip
import io
import json
import os
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from setwise import LabelSets, Votes
from setwise.cli.app import run
from setwise.errors import DataError, MisuseWarning
from setwise.tables import RowRequest, read_batches, read_rows, read_table, write_sets, write_votes
from setwise.tables.arrow_reading import arrow_table, column_names, row_count
from setwise.tables.table_files import spool_stream, table_files
from tests.streams.conftest import done
from tests.tables.conftest import new_table

LISTS = [["kät", "dog"], ["dog"], ["owl", "kät"], ["owl"]]


X = [[0.5, 10.0], [-1.25, 20.0], [3.0, 30.5], [4.75, 40.0]]


def text(delimiter=",", decimal=".", cell="|".join):
    rows = [
        [*(str(value).replace(".", decimal) for value in row), cell(labels)]
        for row, labels in zip(X, LISTS, strict=True)
    ]
    return "\n".join(delimiter.join(row) for row in [["x", "y", "s"], *rows]) + "\n"


def check(table):
    assert table.feature_names == ("x", "y")
    assert table.X.tolist() == X
    assert table.candidates == LabelSets.from_lists(LISTS)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.json", "a.txt", "a"])
def test_a_byte_order_mark_shows_the_encoding(tmp_path, name, encoding):
    objects = [{"x": x, "y": y, "s": labels} for (x, y), labels in zip(X, LISTS, strict=True)]
    content = {"a.jsonl": "\n".join(json.dumps(one, ensure_ascii=False) for one in objects) + "\n"}
    content["a.json"] = json.dumps(objects, ensure_ascii=False)
    path = tmp_path / name
    path.write_bytes(content.get(name, text()).encode(encoding))
    check(read_table(path, candidates="s"))
    batches = list(read_batches(path, candidates="s", batch_rows=3))
    assert [len(batch) for batch in batches] == [3, 1]
    assert np.concatenate([batch.X for batch in batches]).tolist() == X


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16-le"])
def test_other_encodings_are_declared_as_the_error_says(tmp_path, encoding):
    path = tmp_path / "a.csv"
    path.write_bytes(text().encode(encoding))
    with pytest.raises(DataError, match=r"a.csv: .*byte \d+ .*; use encoding='") as error:
        read_table(path, candidates="s")
    (remedy,) = error.value.remedies
    check(read_table(path, candidates="s", **{remedy.argument: remedy.value}))
    check(read_table(path, candidates="s", encoding=encoding))
    with pytest.raises(DataError, match="use encoding="):
        list(read_batches(path, candidates="s"))


def test_an_encoding_that_is_wrong_or_unknown_is_doubted_or_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(text(), encoding="utf-8")
    with pytest.warns(MisuseWarning, match="is UTF-8 text; read as cp1251, some letters are wrong"):
        read_table(path, candidates="s", encoding="cp1251")
    with pytest.raises(ValueError, match="encoding: 'klingon' is not known; use utf-8"):
        read_table(path, candidates="s", encoding="klingon")
    with pytest.raises(DataError, match="not ascii text: byte"):
        read_table(path, candidates="s", encoding="ascii")


@pytest.mark.parametrize("declared", ["cp1252", "latin-1"])
def test_files_of_windows_stand_beside_files_that_setwise_wrote(declared, tmp_path):
    (tmp_path / "rows.csv").write_text("id,größe\n1,2\n2,3\n", encoding="cp1252")
    (tmp_path / "ours.csv").write_text("id,größe,s\n2,3,Kälte\n1,2,Wärme\n", encoding="utf-8")
    files = {"source": tmp_path / "rows.csv", "labels": tmp_path / "ours.csv"}
    files = {name: table_files(path, encoding=declared) for name, path in files.items()}
    with pytest.warns(MisuseWarning, match=f"ours.csv: is read as the UTF-8 text that it is, not as {declared}"):
        table = read_rows(RowRequest(**files, candidates="s", key="id", features=["größe"]))
    assert table.candidates.to_lists() == [["Wärme"], ["Kälte"]]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("suffix", ["csv", "tsv", "txt"])
def test_the_first_lines_show_the_delimiter(tmp_path, suffix, delimiter):
    path = tmp_path / f"a.{suffix}"
    path.write_text(text(delimiter, cell="/".join))
    check(read_table(path, candidates="s", separator="/"))
    assert column_names(path) == ["x", "y", "s"]


def test_a_delimiter_that_is_declared_comes_first(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(text("^"))
    check(read_table(path, candidates="s", delimiter="^"))
    path.write_text(text("\t"))
    for written in ("\t", "\\t", "tab"):
        check(read_table(path, candidates="s", delimiter=written))
    with pytest.raises(DataError, match="there is no column 's'"):
        read_table(path, candidates="s", delimiter=",")
    with pytest.raises(ValueError, match="delimiter: ';;' must be one mark"):
        read_table(path, candidates="s", delimiter=";;")


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_decimal_commas_are_named_and_read_when_declared(tmp_path, delimiter):
    path = tmp_path / "a.csv"
    path.write_text(text(delimiter, decimal=","))
    with pytest.raises(DataError, match="row 0 is '0,5', not a number; use decimal=',' if the comma is the"):
        read_table(path, candidates="s")
    check(read_table(path, candidates="s", decimal=","))
    with pytest.raises(DataError, match="separates the columns and cannot also be the decimal mark"):
        read_table(path, candidates="s", decimal=delimiter)


@pytest.mark.parametrize(
    "cell", [repr, tuple, set, json.dumps, lambda labels: "[" + " ".join(map(repr, labels)) + "]"]
)
def test_lists_that_python_pandas_numpy_or_json_wrote_are_lists(tmp_path, cell):
    path = tmp_path / "a.csv"
    pd.DataFrame({"x": [row[0] for row in X], "y": [row[1] for row in X], "s": map(str, map(cell, LISTS))}).to_csv(
        path, index=False
    )
    check(read_table(path, candidates="s"))
    batches = read_batches(path, candidates="s", batch_rows=1)
    assert [batch.candidates.to_lists()[0] for batch in batches] == [sorted(labels) for labels in LISTS]
    assert read_table({"s": ["[0 2]", "[1]", ""]}, candidates="s", missing="empty").candidates.to_lists() == [
        [0, 2],
        [1],
        [],
    ]


def test_labels_in_brackets_stay_labels():
    assert read_table({"s": ["[UNK]", "(none)", "[PAD]"]}, candidates="s").candidates.to_lists() == [
        ["[UNK]"],
        ["(none)"],
        ["[PAD]"],
    ]


@pytest.mark.parametrize(
    "cells",
    [
        [{"cat": 0.7, "dog": 0.3}, {"dog": 1, "owl": 0.0}, None],
        ['{"cat": 0.7, "dog": 0.3}', "{'dog': 1, 'owl': 0}", ""],
    ],
)
def test_of_labels_with_numbers_the_labels_are_candidates_and_it_is_said(tmp_path, cells):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"s": cell}) + "\n" for cell in cells))
    with pytest.warns(MisuseWarning, match="numbers beside the labels are left out"):
        sets = read_table(path, candidates="s", missing="empty").candidates
    assert sets.to_lists() == [["cat", "dog"], ["dog"], []]


def test_objects_with_whole_numbers_for_names_have_integer_labels(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"s": {"0": 0.5, "2": 0.5}}\n{"s": {"1": 1.0}}\n')
    with pytest.warns(MisuseWarning, match="left out"):
        assert read_table(path, candidates="s").candidates.to_lists() == [[0, 2], [1]]


def test_several_files_and_patterns_are_read_as_one_table(tmp_path):
    lines = text().splitlines()
    (tmp_path / "part-0.csv").write_text("\n".join(lines[:3]))
    (tmp_path / "part-1.csv").write_text("s;x;y\nowl|kät;3;30.5\nowl;4.75;40")
    for source in (str(tmp_path / "part-*.csv"), [tmp_path / "part-0.csv", tmp_path / "part-1.csv"]):
        check(read_table(source, candidates="s"))
        rows = [batch.X for batch in read_batches(source, candidates="s", batch_rows=10)]
        assert np.concatenate(rows).tolist() == X
    with pytest.raises(FileNotFoundError, match=r"none-\*.csv: no file has such a name"):
        read_table(tmp_path / "none-*.csv")
    (tmp_path / ".part-0.csv.done.json").write_text("{}")  # hidden files are no tables
    (tmp_path / "sub.csv").mkdir()
    for source in (tmp_path, tmp_path / "*", tmp_path / "sub.csv" / ".." / "*"):
        check(read_table(source, candidates="s"))
    assert table_files(tmp_path / ".*.json").paths == (tmp_path / ".part-0.csv.done.json",)
    (tmp_path / "part-2.csv").symlink_to(tmp_path / "part-0.csv")
    with pytest.raises(DataError, match="part-2.csv: is the same file as .*part-0.csv"):
        read_table(tmp_path, candidates="s")
    (tmp_path / "part-2.csv").unlink()
    (tmp_path / "part-2.csv").write_text("x,s\n1,owl\n")
    with pytest.raises(DataError, match="part-2.csv: there is no column 'y', which .*part-0.csv has"):
        read_table(tmp_path / "part-*.csv", candidates="s")
    with pytest.raises(DataError, match="there is no column 'y'"):
        list(read_batches(tmp_path / "part-*.csv", candidates="s"))


def test_files_over_other_vocabularies_are_not_mixed(tmp_path):
    for number, classes in enumerate((["a", "b"], ["b", "a"])):
        write_sets(tmp_path / f"{number}.parquet", LabelSets.from_lists([["a"], ["b"]], classes))
    with pytest.raises(DataError, match=r"1.parquet: 'labels' has other classes than in .*0.parquet"):
        read_table(tmp_path / "*.parquet", candidates="labels")
    assert row_count(tmp_path / "*.parquet") == 4


def test_a_column_of_other_values_in_one_file_is_named(tmp_path):
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"x": ["a"]}), tmp_path / "1.parquet")
    with pytest.raises(DataError, match="a column has different types in different files"):
        read_table(tmp_path / "*.parquet")


def test_a_stream_is_kept_until_it_is_read():
    files = spool_stream(io.BytesIO(text().encode()))
    check(read_table(files, candidates="s"))
    check(read_table(files, candidates="s"))
    held = files.paths[0]
    with pytest.raises(DataError, match="standard input: there is no column 't'"):
        read_table(files, candidates="t")
    del files
    assert not held.exists()
    with pytest.raises(DataError, match="standard input: is empty"):
        spool_stream(io.BytesIO(b""))


def test_a_stream_shows_its_format(tmp_path):
    pq.write_table(pa.table({"x": [1.0], "s": [["a"]]}), tmp_path / "a.parquet")
    stream = io.BytesIO((tmp_path / "a.parquet").read_bytes())
    assert read_table(spool_stream(stream), candidates="s").candidates.to_lists() == [["a"]]
    assert len(arrow_table(spool_stream(io.BytesIO(b'{"x": 1}\n{"x": 2}\n')))) == 2
    assert len(arrow_table(spool_stream(io.BytesIO(b'[{"x": 1}, {"x": 2}]')))) == 2


def test_a_line_without_labels_is_a_row_where_it_is_the_only_column(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("s\na|b\n\nb\n")
    assert read_table(path, candidates="s", missing="empty").candidates.to_lists() == [["a", "b"], [], ["b"]]
    assert sum(map(len, read_batches(path, candidates="s", missing="empty"))) == 3


class Sheet:
    """What openpyxl gives of a sheet."""

    def __init__(self, rows):
        self.values = rows


@pytest.fixture
def openpyxl(monkeypatch):
    """A stand-in for openpyxl that reads a workbook with two sheets."""
    books = {}

    def load_workbook(file, *, read_only, data_only):
        if not file.read():
            raise KeyError("no workbook")
        return books[Path(file.name).name]

    class Book(dict):
        @property
        def sheetnames(self):
            return list(self)

    module = types.ModuleType("openpyxl")
    module.load_workbook = load_workbook
    monkeypatch.setitem(sys.modules, "openpyxl", module)
    rows = [
        ("x", "y", "s"),
        *((x, y, "|".join(labels)) for (x, y), labels in zip(X, LISTS, strict=True)),
        (None,) * 3,
    ]
    books["one.xlsx"] = Book({"data": Sheet(rows)})
    books["two.xlsx"] = Book({"data": Sheet(rows), "notes": Sheet([])})
    books["empty.xlsx"] = Book({"data": Sheet([])})
    return books


def test_the_first_sheet_of_a_workbook_is_a_table(tmp_path, openpyxl):
    for name in openpyxl:
        (tmp_path / name).write_bytes(b"PK\x03\x04")
    check(read_table(tmp_path / "one.xlsx", candidates="s"))
    with pytest.warns(MisuseWarning, match="only the first of 2 sheets, 'data', is read"):
        check(read_table(tmp_path / "two.xlsx", candidates="s"))
    with pytest.raises(DataError, match="the sheet 'data' is empty"):
        read_table(tmp_path / "empty.xlsx", candidates="s")
    (tmp_path / "one.xlsx").write_bytes(b"")
    with pytest.raises(DataError, match="is not a readable Excel workbook"):
        read_table(tmp_path / "one.xlsx", candidates="s")


def test_a_real_workbook_is_read(tmp_path):
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame(X, columns=["x", "y"]).assign(s=["|".join(labels) for labels in LISTS])
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    check(read_table(tmp_path / "a.xlsx", candidates="s"))


def test_without_openpyxl_one_sentence_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "a.xlsx").write_bytes(b"PK\x03\x04")
    with pytest.raises(DataError, match=r"pip install 'setwise\[excel\]', or save the sheet as .csv"):
        read_table(tmp_path / "a.xlsx")


def test_lists_and_objects_beside_the_sets_can_be_written_as_text(tmp_path):
    carry = {"s": pa.array([["a|b", "7"], None]), "n": pa.array([[1, 2], [3]]), "o": pa.array([{"p": 0.5}, None])}
    write_sets(tmp_path / "a.csv", LabelSets.from_lists([["x"], ["y"]]), carry=carry)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        back = read_table(tmp_path / "a.csv", candidates="s", features=[], missing="empty")
    assert back.candidates.to_lists() == [["7", "a|b"], []]
    assert read_table(tmp_path / "a.csv", candidates="n", features=[]).candidates.to_lists() == [[1, 2], [3]]
    assert '"{""p"": 0.5}"' in (tmp_path / "a.csv").read_text()


def test_what_is_declared_about_files_stays_when_more_is():
    files = table_files(table_files("a.csv", delimiter=";"), delimiter=",", decimal=",")
    assert (files.delimiter, files.decimal, files.name, str(table_files(["a.csv", "b.csv"]))) == (
        ";",
        ",",
        "a.csv",
        "a.csv and 1 more file",
    )


# -------------------------------------------------------------------------------------- folders and what is in them


ODD = {
    "a link to nowhere": (lambda path: path.symlink_to("nowhere"), "is a pipe, a device or a broken link"),
    "a pipe": (os.mkfifo, "is a pipe, a device or a broken link"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "is a pipe, a device or a broken link"),
    "a link to a folder": (lambda path: path.symlink_to(path.parents[1]), "is a link to a folder"),
}


@pytest.mark.parametrize("odd", list(ODD))
def test_what_is_no_file_in_a_folder_of_tables_is_not_left_out_silently(odd, two_tables, capsys):
    folder, command = two_tables
    make, message = ODD[odd]
    make(folder / "in" / "c.csv")
    assert run(command) == 2
    assert f"c.csv: {message}" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["pipe.csv", "pip*.csv"])
def test_a_pipe_in_the_place_of_a_table_is_refused_and_not_waited_for(name, tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match=r"pipe.csv: is a pipe, a device .*; pass it to standard input"):
        table_files(tmp_path / name)


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_folders_hold_every_table_that_is_read_by_its_name(suffix, pack, calibrated_folder, capsys):
    (calibrated_folder / "in").mkdir()
    pa.csv.write_csv(new_table(), "in/a.csv")
    (calibrated_folder / f"in/b.csv{suffix}").write_bytes(pack((calibrated_folder / "in/a.csv").read_bytes()))
    assert done(capsys, "predict", "m.cal", "--probabilities", "in", "--out", "s.csv")["rows"] == 40
    done(capsys, "predict", "m.cal", "--probabilities", "in", "--out", "out/")
    assert {path.name for path in (calibrated_folder / "out").glob("[!.]*")} == {"a.csv", "b.csv"}
    with pytest.raises(DataError, match=f"tables are written without compression; leave out {suffix}"):
        write_sets(f"s.csv{suffix}", LabelSets.from_lists([["owl"]]))
    with pytest.raises(DataError, match="tables are written without compression"):
        write_votes(f"v.csv{suffix}", Votes.from_matrix([["owl"]]))


def test_a_file_that_is_packed_twice_is_not_to_be_renamed_to_the_name_that_it_has(tmp_path):
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(gzip.compress(b"a,b\n1,2\n")))
    with pytest.raises(DataError, match="is a .gz file, not text; unpack it") as error:
        read_table(path)
    assert "rename" not in str(error.value)
