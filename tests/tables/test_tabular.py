import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setwise import LabelSets
from setwise.errors import MisuseWarning
from setwise.tables import DataError, read_batches, read_table, tabular
from setwise.tables.arrow_reading import column_names
from tests.conftest import calls_in, check_sentence


def written(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


CSV = "x,z,answers,checked\n1,2.5,cat|dog,cat\n3,4,dog,\n5,6, owl | cat ,owl\n"


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz"])
def test_a_delimited_column_and_partial_truth_are_read_from_text(tmp_path, suffix):
    text = CSV.replace(",", "\t") if suffix == "tsv" else CSV
    path = written(tmp_path / f"votes.{suffix}", gzip.compress(text.encode()) if suffix.endswith("gz") else text)
    table = read_table(path, candidates="answers", truth="checked")
    assert table.candidates.to_lists() == [["cat", "dog"], ["dog"], ["cat", "owl"]]
    assert table.truth.tolist() == ["cat", None, "owl"]
    np.testing.assert_array_equal(table.X, [[1, 2.5], [3, 4], [5, 6]])
    assert table.feature_names == ("x", "z")
    assert table.source == str(path)


def test_integers_in_text_are_integers_and_follow_a_declared_vocabulary(tmp_path):
    path = written(tmp_path / "a.csv", "s,y\n0|2,2\n1,1\n")
    assert read_table(path, candidates="s", truth="y").candidates.classes.tolist() == [0, 1, 2]
    named = read_table(path, candidates="s", truth="y", classes=["0", "1", "2"])
    assert named.candidates.to_lists() == [["0", "2"], ["1"]]
    assert named.truth.tolist() == ["2", "1"]


def test_multi_hot_columns_are_found_by_their_common_start_or_by_name(tmp_path):
    path = written(tmp_path / "a.csv", "candidate:cat,candidate:dog,x\n1,1,0.5\n0,1,1.5\n")
    for named in ("candidate", "candidate:"):
        table = read_table(path, candidates=named)
        assert table.candidates.to_lists() == [["cat", "dog"], ["dog"]]
        assert table.candidates.vocabulary.declared
        assert table.feature_names == ("x",)
    listed = read_table(path, candidates=["candidate:cat", "candidate:dog"])
    assert listed.candidates.classes.tolist() == ["candidate:cat", "candidate:dog"]


def test_lists_from_json_lines_keep_their_types(tmp_path):
    path = written(tmp_path / "a.jsonl", '{"s": [1, "1"], "x": 1}\n{"s": ["2020-01-01"], "x": 2}\n')
    with pytest.warns(MisuseWarning, match="'1' and 1; write them alike"):
        sets = read_table(path, candidates="s").candidates
    rows = [{(type(label), label) for label in row} for row in sets]
    assert rows == [{(int, 1), (str, "1")}, {(str, "2020-01-01")}]


def test_one_column_of_arrays_is_a_feature_matrix_and_keeps_single_precision(tmp_path):
    column = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(6, dtype=np.float32)), 3)
    pq.write_table(pa.table({"emb": column, "s": [["a"], ["b"]]}), tmp_path / "e.parquet")
    table = read_table(tmp_path / "e.parquet", features="emb", candidates="s")
    np.testing.assert_array_equal(table.X, [[0, 1, 2], [3, 4, 5]])
    assert table.X.dtype == np.float32
    assert table.feature_names == ("emb[0]", "emb[1]", "emb[2]")
    with pytest.raises(DataError, match="row 1 has 1 numbers, but the first row has 2"):
        read_table({"emb": [[1.0, 2.0], [3.0]]}, features="emb")


@pytest.mark.parametrize("name", ["a.mat", "a.npy", "a.npz"])
def test_a_file_of_arrays_is_no_table_and_the_error_says_how_to_convert_it(name, tmp_path):
    (tmp_path / name).write_bytes(b"MATLAB 5.0 MAT-file")
    for read in (read_table, column_names):
        with pytest.raises(DataError, match="holds arrays, not a table with columns") as error:
            read(tmp_path / name)
        check_sentence(
            error.value,
            name,
            "scipy.io.loadmat",
            "DataFrame(P, columns=classes)",
            "from setwise.tables import write_sets; write_sets('rows.parquet', ",
        )


def test_missing_features_are_an_error_that_names_column_and_row_unless_filled():
    frame = {"x": [1.0, None, 3.0, 8.0], "s": ["a"] * 4}
    with pytest.raises(DataError, match=r"column 'x': row 1 is missing \(1 such rows\); use impute"):
        read_table(frame, candidates="s")
    assert read_table(frame, candidates="s", impute="median").X[1, 0] == 3
    assert read_table(frame, candidates="s", impute="mean").imputed == {"x": 4.0}
    assert np.isnan(read_table(frame, candidates="s", impute="nan").X[1, 0])
    learned = read_table(frame, candidates="s", impute="median").imputed
    assert read_table({"x": [None, 1.0]}, impute=learned).X[0, 0] == 3


def test_text_among_the_features_is_an_error_that_names_the_value_unless_encoded():
    frame = {"x": [1.0, 2.0, 3.0], "colour": ["red", "blue", None]}
    with pytest.raises(DataError, match=r"column 'colour': row 0 is 'red', not a number; use categories='onehot'"):
        read_table(frame)
    table = read_table(frame, categories="onehot")
    assert table.feature_names == ("x", "colour=blue", "colour=red")
    np.testing.assert_array_equal(table.X[:, 1:], [[0, 1], [1, 0], [0, 0]])
    again = read_table({"x": [1.0], "colour": ["red"]}, categories=table.categories)
    np.testing.assert_array_equal(again.X, [[1, 0, 1]])
    with pytest.raises(DataError, match="row 0 is 'green', which is not a known category"):
        read_table({"x": [1.0], "colour": ["green"]}, categories=table.categories)


def test_categorical_columns_of_a_frame_are_read_as_their_values():
    frame = pd.DataFrame({"x": pd.Categorical([3, 5, 3]), "s": pd.Categorical(["a|b", "b", "a"])})
    table = read_table(frame, candidates="s", truth="x", features=["x"])
    np.testing.assert_array_equal(table.X, [[3], [5], [3]])
    assert table.candidates.to_lists() == [["a", "b"], ["b"], ["a"]]
    assert table.truth.tolist() == [3, 5, 3]


def test_one_bad_cell_in_a_column_of_numbers_is_named(tmp_path):
    path = written(tmp_path / "a.csv", "x,s\n1.5,a\n2.5,b\noops,a\n")
    with pytest.raises(DataError, match="a.csv, column 'x': row 2 is 'oops'"):
        read_table(path, candidates="s")


def test_rows_without_candidates_are_an_error_or_full_or_empty():
    frame = {"s": ["a|b", None, " "]}
    with pytest.raises(DataError, match=r"row 1 has no labels \(2 such rows\)"):
        read_table(frame, candidates="s")
    assert read_table(frame, candidates="s", missing="full").candidates.sizes.tolist() == [2, 2, 2]
    assert read_table(frame, candidates="s", missing="empty").candidates.sizes.tolist() == [2, 0, 0]


BROKEN = {
    "ragged": (
        "a.csv",
        "x,s\n1,a\n2\n3,b\n",
        "row 1 has 1 field, but the first line has 2; put a field that holds the delimiter in quotes",
    ),
    "no such column": ("a.csv", "x,t\n1,a\n", "there is no column 's'; it has x, t"),
    "label outside the classes": ("a.csv", "x,s\n1,a\n2,a|zebra\n", "row 1: 'zebra' is not among the 2 classes"),
    "column twice": ("a.csv", "x,s,x\n1,a,2\n", "the column 'x' occurs twice"),
    "not UTF-8": ("a.csv", b"x,s\n1,a\n2,\xff\xfe\n", r"byte 10 .line 3. is 0xFF; use encoding='cp1252'"),
    "not UTF-8 JSON": (
        "a.jsonl",
        b'{"s": ["a"]}\n{"s": ["\xff"]}\n',
        r"a.jsonl: not utf-8 text: byte 21 .line 2. is 0xFF",
    ),
    "empty label": ("a.csv", "x,s\n1,a||b\n", "row 0 has an empty label between separators"),
    "unknown escape": ("a.csv", "x,s\n1,a\n2,a\\d\n", r"row 1 has the label .* write a backslash as"),
    "empty file": ("a.csv", "", "a.csv: holds no rows"),
    "JSON breaks off": ("a.jsonl", '{"s": ["a"]}\n{"s": ["b"\n', "line 2 is not JSON"),
    "JSON of another kind": ("a.jsonl", '{"s": ["a"]}\n[1, 2]\n', "line 2 is not a JSON object"),
    "JSON of two types": (
        "a.jsonl",
        '{"s": "a", "x": 1}\n{"s": "b", "x": "u"}\n',
        "column 'x' mixes int, str; give",
    ),
    "JSON of two objects": (
        "a.jsonl",
        '{"s": "a", "x": {"y": 1}}\n{"s": "b", "x": {"y": "u"}}\n',
        "column 'x' cannot be read .Could not convert 'u'",
    ),
    "null in a list": ("a.jsonl", '{"s": ["a"]}\n{"s": ["b", null]}\n', "row 1: a label is missing"),
    "a flag of 2": ("a.csv", "s:a,s:b\n1,0\n0,2\n", "row 1 holds 2 in 's:b'; expected 0 or 1"),
    "infinite feature": ("a.csv", "x,s\n1,a\ninf,b\n", "column 'x': row 1 is infinite"),
    "truncated gzip": ("a.csv.gz", gzip.compress(CSV.encode() * 50)[:-20], "a.csv.gz: cannot be read"),
    "no Parquet": ("a.parquet", b"hello", "a.parquet: cannot be read"),
    "no Arrow": ("a.arrow", b"hello, this is text", "a.arrow: cannot be read"),
    "text of zeros": ("a.csv", b"x,s\n1,\0a\n", "byte 6 is 0, which text cannot hold; save the table as"),
    "Parquet called text": ("a.csv", b"PAR1 and more", "is parquet, not text; rename it to .parquet"),
    "a list that breaks off": ("a.csv", "x;s\n1;['a']\n2;['a' b]\n", r"row 1 is .\['a' b\]., which is not a list"),
    "objects of text": ("a.jsonl", '{"s": {"a": "much"}}\n', "expected labels, or objects with a number per label"),
    "lists of objects": ("a.jsonl", '{"s": [{"p": 1}]}\n', "its lists hold struct<p: int64>, not labels"),
    "a JSON array of numbers": ("a.json", "[1, 2]", "entry 0 is not a JSON object"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_table_ends_in_one_sentence_that_names_the_file(tmp_path, kind):
    name, content, says = BROKEN[kind]
    path = written(tmp_path / name, content)
    with pytest.raises(DataError, match=says) as error:
        read_table(path, candidates="s", classes=["a", "b"])
    check_sentence(error.value, name)


def test_a_file_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        read_table(tmp_path / "absent.csv")


def test_batches_share_one_vocabulary_and_count_rows_through_the_file(tmp_path):
    lines = "".join(f"{i},{'b|a' if i < 5000 else 'z'}\n" for i in range(9999)) + "0.5,y\n"
    path = written(tmp_path / "a.csv", "x,s\n" + lines)
    parts = list(read_batches(path, candidates="s", batch_rows=4000))
    assert sum(map(len, parts)) == 10_000
    assert {tuple(part.candidates.classes) for part in parts} == {("a", "b", "y", "z")}
    assert parts[-1].X[-1, 0] == 0.5  # integers in the first block, a fraction in the last
    written(path, "x,s\n" + lines + "1,\n")
    with pytest.raises(DataError, match="row 10000 has no labels"):
        list(read_batches(path, candidates="s", batch_rows=4000))


def test_rows_of_json_lines_may_leave_out_what_they_do_not_have(tmp_path):
    path = written(tmp_path / "a.jsonl", '{"x": 1, "s": ["a"], "y": "a"}\n{"x": 2.5, "s": ["b"]}\n{"x": 3}\n')
    options = {"candidates": "s", "truth": "y", "missing": "full"}
    parts = list(read_batches(path, batch_rows=1, **options))
    whole = read_table(path, **options)
    assert [part.truth.tolist() for part in parts] == [["a"], [None], [None]]
    assert whole.truth.tolist() == ["a", None, None]
    assert [row for part in parts for row in part.candidates.to_lists()] == whole.candidates.to_lists()
    assert whole.candidates.to_lists() == [["a"], ["b"], ["a", "b"]]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_the_memory_of_batches_follows_the_batch_and_not_the_file(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    n = 1_500_000 if suffix == "csv" else 200_000  # text is read ahead by some 30 megabytes
    if suffix == "csv":
        written(path, "x,s\n" + "".join(f"{i // 2},label{i % 97}|label{i % 89}\n" for i in range(n)))
    elif suffix == "jsonl":
        written(path, "".join(f'{{"x": {i // 2}, "s": ["label{i % 97}"]}}\n' for i in range(n)))
    else:
        columns = {"x": np.arange(n) // 2, "s": [f"label{i % 97}" for i in range(n)]}
        pq.write_table(pa.table(columns), path, row_group_size=10_000)

    def peak(work):
        before = pa.default_memory_pool()
        watched = pa.proxy_memory_pool(before)
        pa.set_memory_pool(watched)
        try:
            rows = work()
        finally:
            pa.set_memory_pool(before)
        assert rows == n
        return watched.max_memory()

    whole = peak(lambda: len(read_table(path, candidates="s")))
    parts = peak(lambda: sum(map(len, read_batches(path, candidates="s", batch_rows=5_000))))
    assert parts < whole / 2


def test_statistics_of_the_whole_are_not_invented_from_a_batch():
    with pytest.raises(ValueError, match="a batch does not know the statistics"):
        next(read_batches({"x": [1.0]}, impute="mean"))


@pytest.mark.filterwarnings("ignore::setwise.MisuseWarning")  # damage may make "caT" of "cat", which is said
@settings(max_examples=150)
@given(data=st.data(), name=st.sampled_from(["f.csv", "f.tsv", "f.jsonl"]))
def test_no_damage_to_a_text_table_does_worse_than_a_data_error(tmp_path, data, name):
    whole = CSV if name.endswith("csv") else CSV.replace(",", "\t")
    if name.endswith("jsonl"):
        whole = (
            '{"x": 1, "answers": ["cat", "dog"], "checked": "cat"}\n{"x": 2, "answers": ["dog"], "checked": null}\n'
        )
    content = bytearray(whole.encode())
    for _ in range(data.draw(st.integers(0, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = written(tmp_path / name, bytes(content[: data.draw(st.integers(0, len(content)))]))
    try:
        table = read_table(path, candidates="answers", truth="checked", missing="empty", impute="nan")
        assert len(table.candidates) == len(table.truth) == len(table)
    except DataError as error:
        check_sentence(error)


def test_sets_are_read_without_a_python_loop_over_rows(tmp_path):
    rng = np.random.default_rng(0)
    names = np.array([f"label{i}" for i in range(100)])
    rows = ["|".join(row) for row in names[rng.integers(100, size=(20_000, 3))]]
    many, few = (written(tmp_path / f"{n}.csv", "s\n" + "\n".join(rows[:n]) + "\n") for n in (len(rows), 2_000))
    assert read_table(many, candidates="s").candidates == LabelSets.from_strings(pd.read_csv(many)["s"])
    calls = {path: calls_in(lambda path=path: read_table(path, candidates="s")) for path in (few, many)}
    assert calls[many] < calls[few] + 1_000


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_every_label_seen_cannot_be_stretched_over_more_classes(tmp_path, suffix):
    """Otherwise the truth could silently leave the candidate sets."""
    path = tmp_path / f"s{suffix}"
    if suffix == ".csv":
        path.write_text('s\na|b\n""\n')
    elif suffix == ".jsonl":
        path.write_text('{"s": ["a", "b"]}\n{"s": null}\n')
    else:
        pq.write_table(pa.table({"s": [["a", "b"], None]}), path)
    whole = read_table(path, candidates="s", missing="full").candidates
    batches = [batch.candidates for batch in read_batches(path, candidates="s", missing="full", batch_rows=1)]
    for sets in (whole, batches[1]):
        assert sets[-1] == {"a", "b"}
        with pytest.raises(ValueError, match="some sets mean 'every label'"):
            sets.with_classes(["a", "b", "c"])
    declared = read_table(path, candidates="s", missing="full", classes=["a", "b", "c"]).candidates
    assert declared[1] == {"a", "b", "c"}


def test_names_of_many_columns_are_asked_for_once():
    """Arrow makes the list of them anew each time: of a thousand columns that took longer than all else."""

    class Named:
        asked = 0

        @property
        def column_names(self):
            self.asked += 1
            return [f"p:{k}" for k in range(1000)]

    named = Named()
    tabular._require(named, [f"p:{k}" for k in range(1000)], "a table")
    assert named.asked == 1
    with pytest.raises(DataError, match="a table: there is no column 'q'"):
        tabular._require(named, ["p:1", "q"], "a table")
