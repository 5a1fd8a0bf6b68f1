from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from setwise import LabelSets
from setwise.data import DataError, read_batches, read_sets, read_table, write_sets
from setwise.data.arrow_tables import arrow_table
from setwise.data.delimited import decode_labels, encode_each, encode_labels
from setwise.data.set_files import set_writer

from .conftest import check_sentence

FORMATS = ["csv", "tsv", "jsonl", "parquet", "feather", "arrow", "npz"]
KEEP_ALL = {"parquet", "feather", "arrow", "npz"}  # formats that keep the order and the labels that do not occur
SLOW = settings(max_examples=60)

# numpy cuts trailing NUL characters off text, so the vocabulary itself cannot hold such labels
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
awkward = st.sampled_from(
    ["", "|", "\\", '"', "'", ",", "\n", "\r\n", " ", "\t", " a ", "7", "-7", "007", "0", "-0", "NA"]
)
numerals = st.sampled_from(
    ["null", "NaN", "true", "1e5", "1.5", "2020-01-01", "\\q7", "\\e", "é", "日本", "𝄞", "\\s"]
)
strings = st.one_of(texts, awkward, numerals)
integers = st.integers(-(2**62), 2**62)
vocabularies = st.one_of(
    st.lists(strings, min_size=1, max_size=6, unique=True),
    st.lists(integers, min_size=1, max_size=6, unique=True),
    st.lists(st.one_of(strings, integers), min_size=1, max_size=6, unique=True),
)


@st.composite
def label_sets(draw):
    classes = draw(vocabularies)
    rows = draw(st.lists(st.lists(st.sampled_from(classes), unique=True), min_size=1, max_size=6))
    return LabelSets.from_lists(rows, classes=classes)


def typed(sets):
    """Each row's labels with their types: True, 1 and "1" are three things."""
    return [{(type(label), label) for label in row} for row in sets.to_lists()]


@pytest.mark.filterwarnings("ignore:.*(how they are written|missing label)")
@pytest.mark.parametrize("form", FORMATS)
@SLOW
@given(sets=label_sets())
@example(sets=LabelSets.from_lists([["['a']"], ["{1}", "(x)"]]))
def test_any_labels_come_back_exactly(tmp_path, form, sets):
    path = tmp_path / f"sets.{form}"
    write_sets(path, sets)
    found = read_sets(path)
    assert typed(found) == typed(sets)
    if form in KEEP_ALL:
        assert found.classes.tolist() == sets.classes.tolist()
        assert found.vocabulary.declared == sets.vocabulary.declared
    declared = read_sets(path, classes=sets.classes)
    assert typed(declared) == typed(sets)
    assert declared.classes.tolist() == sets.classes.tolist()


@pytest.mark.filterwarnings("ignore:.*(how they are written|missing label)")
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "arrow"])
@SLOW
@given(sets=label_sets(), batch_rows=st.integers(1, 4))
def test_batches_add_up_to_the_whole(tmp_path, form, sets, batch_rows):
    path = tmp_path / f"sets.{form}"
    write_sets(path, sets, carry={"id": np.arange(len(sets))})
    options = {"candidates": "labels", "features": ["size"], "carry": ["id"], "missing": "empty"}
    parts = list(read_batches(path, batch_rows=batch_rows, **options))
    whole = read_table(path, **options)
    assert [row for part in parts for row in typed(part.candidates)] == typed(whole.candidates)
    assert all(part.candidates.classes.tolist() == whole.candidates.classes.tolist() for part in parts)
    assert [part.first_row for part in parts] == np.cumsum([0, *map(len, parts[:-1])]).tolist()
    assert max(map(len, parts)) <= batch_rows


@pytest.mark.parametrize("form", ["parquet", "arrow", "npz"])
@SLOW
@given(data=st.data())
def test_no_damage_to_a_binary_file_does_worse_than_a_data_error(tmp_path, form, data):
    path = tmp_path / f"sets.{form}"
    write_sets(path, LabelSets.from_lists([["a", "b"], ["c"]] * 3), carry={"id": list("abcdef")})
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content))
    try:
        assert read_sets(path).n_classes <= 8
    except DataError as error:
        check_sentence(error, path.name)


@given(labels=vocabularies, separator=st.sampled_from("|;,/ \t:_~"))
def test_delimited_text_never_contains_its_separator_and_decodes_to_the_labels(labels, separator):
    expected = [(type(label), label) for label in labels]
    pieces = encode_labels(labels, separator)
    assert not any(separator in piece or "\n" in piece for piece in pieces)
    assert [(type(label), label) for label in decode_labels(pieces, separator)] == expected
    assert [(type(label), label) for label in decode_labels(encode_each(labels), "|")] == expected


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, pa.table, dict], ids=["pandas", "polars", "arrow", "dict"]
)
def test_frames_in_memory_are_read_like_files(make):
    columns = {
        "x": [1.0, 2.0, 3.0],
        "flag": [True, False, True],
        "text": ["cat|dog", "dog", "owl|cat"],
        "lists": [["cat", "dog"], ["dog"], ["owl", "cat"]],
        "when": [date(2026, 1, 1)] * 3,
        "id": ["a", "b", "c"],
    }
    expected = LabelSets.from_lists(columns["lists"])
    for column, other in (("text", "lists"), ("lists", "text")):
        found = read_table(make(columns), candidates=column, carry=["id", "when", other])
        assert found.candidates == expected
        assert found.feature_names == ("x", "flag")
        np.testing.assert_array_equal(found.X, [[1, 1], [2, 0], [3, 1]])
        assert found.carried["id"].tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("form", FORMATS)
def test_p_values_and_identifiers_are_written_beside_the_sets(tmp_path, form, rng):
    sets = LabelSets.from_lists([["a|b"], ["c"], []], classes=["a|b", "c"])
    p = rng.random((3, 2))
    path = tmp_path / f"sets.{form}"
    write_sets(path, sets, p_values=p, carry={"id": ["x", "y", "z"]})
    if form == "npz":
        stored = np.load(path)
        found = np.column_stack([stored["p:a\\sb"], stored["p:c"]])
        assert stored["id"].tolist() == ["x", "y", "z"]
    else:
        table = read_table(path, candidates="labels", features=["p:a\\sb", "p:c"], carry=["id"], missing="empty")
        found = table.X
        assert table.carried["id"].tolist() == ["x", "y", "z"]
    np.testing.assert_array_equal(found, p)


def test_a_column_of_the_wrong_length_or_p_values_of_the_wrong_shape_are_refused(tmp_path):
    sets = LabelSets.from_lists([["a"], ["b"]])
    with pytest.raises(ValueError, match="'id' has 3 values for 2 sets"):
        write_sets(tmp_path / "s.csv", sets, carry={"id": [1, 2, 3]})
    with pytest.raises(ValueError, match=r"p_values: shape \(2, 3\)"):
        write_sets(tmp_path / "s.csv", sets, p_values=np.zeros((2, 3)))
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file_as_it_was(tmp_path):
    path = tmp_path / "sets.csv"
    path.write_text("old")
    with pytest.raises(TypeError, match="neither text nor a number"):
        write_sets(path, LabelSets.from_lists([[("a", "b")]]))
    assert path.read_text() == "old"
    assert [place.name for place in tmp_path.iterdir()] == ["sets.csv"]


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".npz"])
def test_a_file_keeps_that_sets_mean_every_label_seen(tmp_path, suffix):
    path = tmp_path / f"s{suffix}"
    write_sets(path, LabelSets.from_lists([["a"], ["b"], None], missing="full"))
    for sets in (read_sets(path), read_sets(path, classes=["b", "a"])):
        assert sets[2] == {"a", "b"}
        with pytest.raises(ValueError, match="sets that mean 'every label'"):
            sets.with_classes(["a", "b", "c"])
    with pytest.raises(DataError, match=f"s{suffix}: sets that mean 'every label'"):
        read_sets(path, classes=["a", "b", "c"])


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".npz", ".csv", ".jsonl"])
def test_declared_classes_are_matched_by_label_and_not_by_position(tmp_path, suffix):
    path = tmp_path / f"s{suffix}"
    write_sets(path, LabelSets.from_lists([["a"], ["b"]], classes=["a", "b"]))
    assert read_sets(path, classes=["c", "b", "a"]).to_lists() == [["a"], ["b"]]


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv", ".tsv", ".jsonl"])
def test_batches_make_the_same_file_as_one_call(tmp_path, suffix):
    sets = LabelSets.from_lists([["a", 7], [], ["b"], [7]], classes=["a", 7, "b"])
    columns = {"id": [1, 2, None, 4], "tags": [["x"], None, [], ["y", "z"]], "day": [date(2024, 1, 2)] * 4}
    if suffix in {".csv", ".tsv"}:
        del columns["tags"]
    p = np.arange(12).reshape(4, 3) / 12
    write_sets(tmp_path / f"whole{suffix}", sets, carry=columns, p_values=p)
    with set_writer(tmp_path / f"parts{suffix}") as writer:
        for rows in (slice(0, 3), slice(3, 4)):
            writer.append(sets[rows], {name: pa.array(values)[rows] for name, values in columns.items()}, p[rows])
    whole, parts = (arrow_table(tmp_path / f"{name}{suffix}") for name in ("whole", "parts"))
    assert whole.equals(parts)
    assert read_sets(tmp_path / f"parts{suffix}", classes=["a", 7, "b"]) == sets


def test_a_file_that_cannot_be_finished_does_not_appear(tmp_path):
    sets = LabelSets.from_lists([["a"]])
    path = tmp_path / "s.parquet"

    def of_two_vocabularies():
        with set_writer(path) as writer:
            writer.append(sets)
            writer.append(LabelSets.from_lists([["b"]]))

    with pytest.raises(ValueError, match="other classes than those written before"):
        of_two_vocabularies()
    with pytest.raises(ValueError, match="column 'size' already"):
        write_sets(path, sets, carry={"size": [3]})
    with pytest.raises(ValueError, match="use column=… to name that of the sets"):
        write_sets(path, sets, carry={"labels": [3]})
    assert list(tmp_path.iterdir()) == []


def test_a_written_file_has_the_permissions_of_any_other_file(tmp_path):
    (tmp_path / "plain").touch()
    for suffix in (".csv", ".npz"):
        write_sets(tmp_path / f"s{suffix}", LabelSets.from_lists([["a"]]))
        assert (tmp_path / f"s{suffix}").stat().st_mode == (tmp_path / "plain").stat().st_mode
