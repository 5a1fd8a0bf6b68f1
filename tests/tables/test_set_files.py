import json
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import setwise
from setwise import LabelSets, Votes
from setwise.errors import DataError, InputError
from setwise.streams.model_inputs import probability_layout
from setwise.tables import read_batches, read_sets, read_table, write_sets, write_votes
from setwise.tables.arrow_reading import arrow_table
from setwise.tables.label_notation import decode_labels, encode_each, encode_labels
from setwise.tables.set_files import probability_columns, set_writer
from tests.conftest import check_sentence
from tests.streams.conftest import CLASSES, done, rows
from tests.tables.conftest import P_NAMES, new_table

FORMATS = ["csv", "tsv", "jsonl", "parquet", "feather", "arrow"]


KEEP_ALL = {"parquet", "feather", "arrow"}  # formats that keep the order and the labels that do not occur


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


@pytest.mark.parametrize("form", ["parquet", "arrow"])
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
    table = read_table(path, candidates="labels", features=["p:a\\sb", "p:c"], carry=["id"], missing="empty")
    assert table.carried["id"].tolist() == ["x", "y", "z"]
    np.testing.assert_array_equal(table.X, p)


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


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_a_file_keeps_that_sets_mean_every_label_seen(tmp_path, suffix):
    path = tmp_path / f"s{suffix}"
    write_sets(path, LabelSets.from_lists([["a"], ["b"], None], missing="full"))
    for sets in (read_sets(path), read_sets(path, classes=["b", "a"])):
        assert sets[2] == {"a", "b"}
        with pytest.raises(ValueError, match="some sets mean 'every label'"):
            sets.with_classes(["a", "b", "c"])
    with pytest.raises(DataError, match=f"s{suffix}: some sets mean 'every label'"):
        read_sets(path, classes=["a", "b", "c"])


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv", ".jsonl"])
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
    for suffix in (".csv", ".parquet"):
        write_sets(tmp_path / f"s{suffix}", LabelSets.from_lists([["a"]]))
        assert (tmp_path / f"s{suffix}").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_formulas_in_csv_come_back_as_they_were(tmp_path):
    labels = ["=1+1", "@SUM(A1)", "+cmd", "-2+3"]
    setwise.tables.write_sets(tmp_path / "s.csv", LabelSets.from_labels(labels, classes=labels))
    assert [row[0] for row in setwise.tables.read_sets(tmp_path / "s.csv").to_lists()] == labels


# ---------------------------------------------------------------------------- columns called like p-values


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_columns_of_the_user_that_are_called_like_p_values_are_not_taken_for_them(
    suffix, calibrated_folder, capsys
):
    own = np.random.default_rng(1).dirichlet(np.ones(4), size=20)
    carried = {**dict(zip(P_NAMES, own.T, strict=True)), "truth": rows(20, 5)[1].tolist()}
    sets = LabelSets.from_lists([["owl"]] * 20, classes=CLASSES)
    write_sets(f"s{suffix}", sets, carry=carried)
    right = carried["truth"].count("owl") / 20
    assert done(capsys, "evaluate", f"s{suffix}", "--truth", "truth")["coverage"] == right
    done(capsys, "report", f"s{suffix}", "--truth", "truth", "--out", "r.html")
    assert f"sets contain the true label: {right:.1%}" in (calibrated_folder / "r.html").read_text()
    with pytest.raises(InputError, match=r"column 'p:\w+' already, and the p-values need it; rename or remove it"):
        write_sets(f"again{suffix}", sets, carry=carried, p_values=own)
    assert not (calibrated_folder / f"again{suffix}").exists()


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_p_values_that_stand_behind_their_sets_are_used_and_others_there_are_not(suffix, calibrated_folder, capsys):
    pq.write_table(new_table(truth=rows(20, 5)[1].tolist()), "n.parquet")
    done(capsys, "predict", "m.cal", "--probabilities", "n.parquet", "--p-values", "--out", f"s{suffix}")
    assert done(capsys, "report", f"s{suffix}", "--truth", "truth", "--out", "r.html")
    with_slider = (calibrated_folder / "r.html").read_text()
    sets = read_sets(f"s{suffix}", classes=CLASSES)
    write_sets(f"t{suffix}", sets, p_values=np.random.default_rng(1).dirichlet(np.ones(4), size=20))
    capsys.readouterr()
    done(capsys, "report", f"t{suffix}", "--out", "t.html")
    assert 'type="range"' in with_slider
    assert 'type="range"' not in (calibrated_folder / "t.html").read_text()


# ---------------------------------------------------------------------------- lists, gaps and compressed files


def test_lists_of_text_are_written_to_csv_also_where_they_are_empty_or_hold_gaps(calibrated_folder, capsys):
    lists = pa.array([["a|b", "c"], ["a", None], [], None], pa.list_(pa.string()))
    pq.write_table(new_table(4, tags=lists, none=pa.array([[]] * 4, pa.list_(pa.string()))), "n.parquet")
    done(capsys, "predict", "m.cal", "--probabilities", "n.parquet", "--out", "s.csv")
    held = [line.partition(',"",')[0] for line in (calibrated_folder / "s.csv").read_text().splitlines()[1:]]
    assert held == ['"a\\sb|c"', '"[""a"", null]"', '""', ""]
    assert read_sets("s.csv", column="none").to_lists() == [[]] * 4


@pytest.mark.parametrize("max_error", [0.9, 0.0001])
def test_triage_writes_csv_also_where_no_row_is_left_for_one_of_its_files(max_error, calibrated_folder, capsys):
    pq.write_table(new_table(tags=[["a"]] * 20), "n.parquet")
    asked = ["--max-error", max_error, "--out", "a.csv", "--review", "r.csv"]
    done(capsys, "triage", "m.cal", "--probabilities", "n.parquet", *asked)
    sizes = [len((calibrated_folder / name).read_text().splitlines()) - 1 for name in ("a.csv", "r.csv")]
    assert sorted(sizes) == [0, 20]


def test_text_with_nul_is_refused_in_text_files_which_nobody_could_read(calibrated_folder):
    sets = LabelSets.from_lists([["a\0b"]])
    for carry in ({}, {"note": ["x\0"]}, {"no\0te": ["x"]}):
        held = sets if not carry else LabelSets.from_lists([["a"]])
        with pytest.raises(
            InputError, match="holds the character NUL, which text files cannot hold; write .parquet"
        ):
            write_sets("s.csv", held, carry=carry)
    with pytest.raises(InputError, match="holds the character NUL"):
        write_votes("v.tsv", Votes.from_matrix([["a\0b"]]))
    assert list(calibrated_folder.glob("*sv")) == []
    for path in ("s.jsonl", "s.parquet"):
        write_sets(path, sets)
        assert read_sets(path).to_lists() == [["a\0b"]]


def test_json_lines_hold_null_in_place_of_nan_and_infinity_and_times_with_all_digits(calibrated_folder):
    times = pa.array([1, None, 86_399_999_999_999], pa.time64("ns"))
    carry = {"x": [1.5, np.nan, -np.inf], "nested": [[np.inf, 1.0], [], None], "at": times}
    write_sets("s.jsonl", LabelSets.from_lists([["a"]] * 3), carry=carry)
    lines = [
        json.loads(line, parse_constant=pytest.fail)
        for line in (calibrated_folder / "s.jsonl").read_text().splitlines()
    ]
    assert [line["x"] for line in lines] == [1.5, None, None]
    assert [line["nested"] for line in lines] == [[None, 1.0], [], None]
    assert [line["at"] for line in lines] == ["00:00:00.000000001", None, "23:59:59.999999999"]


def test_times_in_nanoseconds_are_written_as_json_by_arrow(calibrated_folder):
    at = pa.array([1, None], pa.timestamp("ns"))
    inside = [pa.array([[1], None], pa.list_(at.type)), pa.array([{"t": 1}, None], pa.struct([("t", at.type)]))]
    columns = {"at": at, "list": inside[0], "object": inside[1], "long": pa.array([7, None], pa.duration("ns"))}
    write_sets("s.jsonl", LabelSets.from_lists([["a"]] * 2), carry=columns)
    first, second = map(json.loads, (calibrated_folder / "s.jsonl").read_text().splitlines())
    time = "1970-01-01 00:00:00.000000001"
    assert [first[name] for name in columns] == [time, [time], {"t": time}, "7"]
    assert [second[name] for name in columns] == [None] * 4


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_bytes_that_are_text_are_read_and_written_as_text(suffix, calibrated_folder):
    pq.write_table(pa.table({"note": pa.array([b"caf\xc3\xa9", None]), "x": [1, 2]}), "t.parquet")
    table = arrow_table("t.parquet")
    assert table["note"].to_pylist() == ["café", None]
    for held in (table["note"], pa.array([b"caf\xc3\xa9", None])):
        write_sets(f"s.{suffix}", LabelSets.from_lists([["a"]] * 2), carry={"note": held})
        assert arrow_table(f"s.{suffix}")["note"].to_pylist()[0] == "café"


def test_other_bytes_are_kept_by_formats_that_can_hold_them_and_refused_by_name_elsewhere(calibrated_folder):
    pq.write_table(pa.table({"image": pa.array([b"\xff\x00"]), "x": [1.0]}), "t.parquet")
    carry, sets = {"image": arrow_table("t.parquet")["image"]}, LabelSets.from_lists([["a"]])
    write_sets("s.parquet", sets, carry=carry)
    assert pq.read_table("s.parquet")["image"].to_pylist() == [b"\xff\x00"]
    for suffix in ("csv", "tsv", "jsonl"):
        with pytest.raises(InputError, match=r"column 'image' holds bytes, .*; write \.parquet"):
            write_sets(f"s.{suffix}", sets, carry=carry)
    for options in ({"candidates": "image"}, {"features": ["image"]}, {"truth": "image"}):
        with pytest.raises(DataError, match="image"):
            read_table("t.parquet", **options)


@pytest.mark.parametrize("mark", ["p:", ""])
def test_columns_of_probabilities_may_spell_text_that_reads_like_numbers_as_it_is(mark):
    for labels in (["10", "9"], ["a|b", " c"], [10, 9]):
        columns = [f"{mark}{label}" for label in labels]
        assert probability_columns(["id", *columns], labels) == columns
    assert probability_columns(["p:10", "9"], ["10", "9"]) is None


def test_columns_of_probabilities_of_which_some_are_marked_are_named():
    for names, absent in {("p:10", "9"): "p:9", ("p:10", "8"): "9", ("10", "p:8"): "9"}.items():
        with pytest.raises(ValueError, match=f"there is no column '{absent}'"):
            probability_layout([*names], ["10", "9"], "scores.csv")
