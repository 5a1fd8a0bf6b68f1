"""A short slice of `make fuzz`, the same in every run, and files that it found."""

import gzip
import io
import itertools
import json
import re
import resource
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setwise import Calibration, LabelSets
from setwise.datasets.idx import read_idx
from setwise.errors import DataError
from setwise.probabilities.dense import as_probabilities
from setwise.storage.stored_arrays import read_arrays
from setwise.streams.comparison_notes import read_note
from setwise.tables import from_label_studio, read_batches, read_sets, read_table, read_votes, write_sets
from setwise.tables.arrow_reading import arrow_batches
from setwise.tables.importers.ontology import read_tree
from setwise.tables.key_join import key_column
from setwise.tables.table_files import table_files
from tests.fuzz.mutation import mutations
from tests.fuzz.oracle import ENVIRONMENT, Finding, judge
from tests.fuzz.repair import sealed
from tests.fuzz.targets import TARGETS, Target, corpus, npz_file, tasks

INPUTS = 25  # of each target


@pytest.mark.parametrize("name", TARGETS)
def test_no_file_does_more_than_be_refused_by_name(name, tmp_path, monkeypatch):
    for variable, value in ENVIRONMENT.items():
        monkeypatch.setenv(variable, value)
    target, found = TARGETS[name], []
    inputs = list(itertools.islice(mutations(target.seeds(), target.words, target.change, 0), INPUTS))
    assert all(judge(target, tmp_path, content) for content in target.seeds())  # what our writers write is read
    for content in [*inputs, *(path.read_bytes() for path in corpus(name))]:
        try:
            judge(target, tmp_path, content)
        except Finding as finding:
            found.append((str(finding), content))
    assert found == []


def test_a_reader_that_fails_otherwise_is_found(tmp_path):
    def read(path):
        content = path.read_bytes()
        if b"crash" in content:
            raise IndexError("list index out of range")
        if b"unnamed" in content:
            raise ValueError("cannot be")
        if b"lines" in content:
            raise ValueError(f"{path}: cannot be\nread")
        raise ValueError(f"{path}: cannot be read")

    target = Target(read, "f", lambda: [b""])
    assert not judge(target, tmp_path, b"")
    for content, told in (
        (b"crash", "is no refusal"),
        (b"unnamed", "does not name"),
        (b"lines", "no plain sentence"),
    ):
        with pytest.raises(Finding, match=told):
            judge(target, tmp_path, content)


def test_a_pickled_array_in_a_model_is_refused_without_advice_to_run_it(tmp_path):
    """numpy's own words name a keyword that would."""
    packed = io.BytesIO()
    np.save(packed, np.array([object()]), allow_pickle=True)
    target = TARGETS["model skops"]
    source = zipfile.ZipFile(io.BytesIO(target.seeds()[0]))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as changed:
        for name in source.namelist():
            changed.writestr(name, packed.getvalue() if name.endswith(".npy") else source.read(name))
    assert not judge(target, tmp_path, made.getvalue())


def test_repairs_reach_what_lies_behind_a_digest(tmp_path):
    whole = TARGETS["calibration"].seeds()[0]
    assert sealed(whole) == whole
    place = whole.index(b'"n_classes": 3')
    changed = whole[: place + 13] + b"7" + whole[place + 14 :]
    (tmp_path / "c.cal").write_bytes(sealed(changed))
    with pytest.raises(ValueError, match="setting"):
        Calibration.load(tmp_path / "c.cal")
    (tmp_path / "c.cal").write_bytes(changed)
    with suppress(ValueError):
        Calibration.load(tmp_path / "c.cal")
        pytest.fail("a changed file was read")


# ---------------------------------------------------------------------------------------- what fuzzing found


@pytest.mark.parametrize(
    "content", [b"null", b"null{", b" null", b"\n\nnull\n", b'null{"a": 1}', b'{"a": 1}\n null\n']
)
def test_found_a_line_that_is_null_ended_the_process_in_arrow(content, tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(content)
    for read in (read_table, lambda path: list(arrow_batches(path, 1))):
        with pytest.raises(DataError, match=re.escape(str(path)) + r": line \d is null; expected"):
            read(path)


def test_found_a_header_that_is_no_python_was_a_token_error(tmp_path):
    content = npz_file(X=np.zeros((2, 1)))
    place = content.index(b"}", content.index(b"descr"))
    (tmp_path / "t.npz").write_bytes(sealed(content[:place] + b"(" + content[place + 1 :]))
    with (
        pytest.raises(DataError, match=r"t.npz: not a readable npz archive"),
        (tmp_path / "t.npz").open("rb") as file,
    ):
        read_arrays(file, tmp_path / "t.npz")


def test_found_an_array_without_entries_was_too_large_for_numpy():
    path = Path("t-idx3-ubyte")
    with pytest.raises(DataError, match=r"t-idx3-ubyte: not an idx file"):
        read_idx(bytes([0, 0, 8, 3, 0, 0, 0, 0]) + b"\xff" * 8, path)
    assert read_idx(bytes([0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0, 28]), path).shape == (0, 28, 28)


@pytest.mark.parametrize("code", [0x110000, 0xFFFFFFFF, 0xD800])
@pytest.mark.parametrize("order", "<>")
def test_found_text_that_is_not_unicode_was_a_system_error(code, order, tmp_path):
    names = np.array(["cat", "dog"]).astype(f"{order}U3")
    names.view(f"{order}u4")[1] = code
    (tmp_path / "t.npz").write_bytes(npz_file(classes=names))
    with (
        pytest.raises(DataError, match=r"t.npz: .*classes holds text that is not Unicode"),
        (tmp_path / "t.npz").open("rb") as file,
    ):
        read_arrays(file, tmp_path / "t.npz")


WRONG_NOTES = [
    {"p_value": "0"},
    {"p_value": 10**400},
    {"calibration_rows": float("inf")},
    {"findings": [{"p_value": 0, "sentence": 1}]},
]


@pytest.mark.parametrize("wrong", WRONG_NOTES)
def test_found_a_note_about_rows_held_anything(wrong, tmp_path):
    note = json.loads(TARGETS["note"].seeds()[0]) | wrong
    (tmp_path / "s.csv.differs.json").write_text(json.dumps(note))
    with pytest.raises(ValueError, match=r"s.csv.differs.json: is not what `setwise predict` wrote"):
        read_note(table_files(tmp_path / "s.csv"))


def changed_container(content, path, **entries):
    """A container whose header says something else, with a right digest."""
    path.write_bytes(content)
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(arrays["header"].tobytes()) | entries
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    path.write_bytes(sealed(npz_file(**arrays)))


@pytest.mark.parametrize("wrong", [{"rows": 2**63}, {"seed": -1}, {"seed": 2**64}])
def test_found_a_monitor_loaded_that_could_not_go_on(wrong, tmp_path):
    changed_container(TARGETS["monitor"].seeds()[0], tmp_path / "m.npz", **wrong)
    with pytest.raises(ValueError, match=r"m.npz: a setwise-monitor file whose parts do not belong together"):
        TARGETS["monitor"].read(tmp_path / "m.npz")


def test_found_a_calibration_loaded_that_could_not_be_saved(tmp_path):
    changed_container(TARGETS["calibration"].seeds()[0], tmp_path / "c.cal", classes=["cat", 1, "owl"])
    with pytest.raises(ValueError, match=r"c.cal: .*classes are not all of one kind"):
        Calibration.load(tmp_path / "c.cal")


def test_found_an_empty_choice_was_a_label_and_a_long_number_no_key(tmp_path):
    (tmp_path / "e.json").write_bytes(tasks(("cat", "", "dog")))
    with pytest.raises(DataError, match=r"e.json: task 1: '' is neither a choice nor a taxonomy path"):
        from_label_studio(tmp_path / "e.json")
    assert key_column([10**400, 7]).to_pylist() == [str(10**400), "7"]


@pytest.mark.parametrize("text", ["item,worker\n1,ann\n", "item,label\n,cat\n", "a,b\n1,2\n"])
def test_found_errors_about_votes_did_not_name_their_file(text, tmp_path):
    path = tmp_path / "v.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=re.escape(str(path))):
        read_votes(path)


def test_found_a_broken_column_name_broke_the_sentence(tmp_path):
    (tmp_path / "s.csv").write_bytes(b'"lab\nels","size"\n"a",1\n')
    with pytest.raises(DataError, match=r"there is no column 'labels'; it has 'lab\\nels', size") as error:
        read_table(tmp_path / "s.csv", candidates="labels")
    assert "\n" not in str(error.value)


def test_found_a_line_break_after_a_backslash_broke_the_sentence(tmp_path):
    (tmp_path / "s.csv").write_bytes(b'"labels"\n"a\\\nb"\n"c"\n')
    with pytest.raises(DataError, match=r"where '\\\\\\n' is not an escape") as error:
        read_table(tmp_path / "s.csv", candidates="labels", features=[])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "damage", [(b"PK\x01\x02", b"PK\x01\x03"), (b"</sheetData>", b"</sheetDat >"), (b"<row ", b"<rom ")]
)
def test_found_damaged_workbooks_were_other_errors(damage, tmp_path):
    pytest.importorskip("openpyxl")
    (tmp_path / "t.xlsx").write_bytes(TARGETS["xlsx"].seeds()[0])
    with zipfile.ZipFile(tmp_path / "t.xlsx") as packed, zipfile.ZipFile(tmp_path / "u.xlsx", "w") as plain:
        for name in packed.namelist():
            plain.writestr(name, packed.read(name))
    content = (tmp_path / "u.xlsx").read_bytes()
    assert damage[0] in content
    (tmp_path / "u.xlsx").write_bytes(sealed(content.replace(*damage)))
    with pytest.raises(DataError, match=r"u.xlsx"):
        read_table(tmp_path / "u.xlsx", candidates="s")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"x": 1, "s": [[]]}\n', "its lists hold list<item: null>, not labels"),
        ('{"x": 1, "s": {}}\n', "holds struct<>; expected labels, or objects with a number per label"),
        ('{"s": ["a"]}\n{"x": "-1", "s": ["a"]}\n', "row 1 is '-1', not a number"),
    ],
)
def test_found_lists_of_lists_and_text_after_a_gap_were_other_errors(text, told, tmp_path):
    (tmp_path / "t.jsonl").write_text(text)
    with pytest.raises(DataError, match=told):
        read_table(tmp_path / "t.jsonl", candidates="s")


def test_found_an_indicator_without_a_label_and_sets_of_bytes_did_not_name_their_file(tmp_path):
    (tmp_path / "s.csv").write_text("labels:,size\n1,1\n")
    with pytest.raises(DataError, match=r"s.csv: the name of column 'labels:' has an empty label"):
        read_sets(tmp_path / "s.csv")
    table = pa.table({"labels": pa.array([[b"a"]]), "size": [1]})
    pq.write_table(table, tmp_path / "s.parquet")
    with pytest.raises(DataError, match=r"s.parquet, column 'labels': its lists hold binary, not labels"):
        read_sets(tmp_path / "s.parquet")


def test_found_columns_of_an_ontology_broke_the_sentence(tmp_path):
    (tmp_path / "t.csv").write_text('a,b,"c\nd"\n1,2,3\n')
    with pytest.raises(DataError, match=r"no column 'parent' \(of two, parent and child\); it has a, b, 'c\\nd'"):
        read_tree(tmp_path / "t.csv")


def test_found_a_node_of_a_table_was_none_of_a_tree(tmp_path):
    (tmp_path / "t.csv").write_text("parent,child\n1.5,2.5\n1.5,inf\n")
    with pytest.raises(DataError, match=r"t.csv: inf is not a node of a tree"):
        read_tree(tmp_path / "t.csv")
    (tmp_path / "t.json").write_text("[[1.5, 2.5]]")
    read_tree(tmp_path / "t.json")


@pytest.mark.parametrize("second", ["[]", '["b"]'])
@pytest.mark.parametrize("first", ["[null, null]", '[null, "a"]'])
def test_found_a_list_that_begins_with_null_broke_arrows_array(first, second, tmp_path):
    (tmp_path / "s.jsonl").write_text(f'{{"labels": {first}}}\n{{"labels": {second}}}\n')
    with pytest.raises(DataError, match=r"s.jsonl, column 'labels': row 0: a label is missing"):
        read_sets(tmp_path / "s.jsonl")


@pytest.mark.parametrize("value", [2**63 + 1, 10**400])
def test_found_integers_beyond_64_bits_became_one_float(value, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text(f'{{"labels": [{value}]}}\n{{"labels": [{value + 1}, -1]}}\n')
    assert read_sets(path).to_lists() == [[value], [-1, value + 1]]
    path.write_text(f'{{"x": 1, "s": {value}}}\n{{"x": 1, "s": {value + 1}}}\n')
    for read in (read_table, lambda path, **columns: list(read_batches(path, batch_rows=8, **columns))):
        with pytest.raises(DataError, match=f"the column 's' holds the integer {value}, which would be rounded"):
            read(path, candidates="s")


def test_integers_that_a_float_holds_stay_beside_decimals(tmp_path):
    lines = [f'{{"x": {value}, "s": "a"}}\n' for value in (2**60, 2.5, 1e300)]
    (tmp_path / "t.jsonl").write_text("".join(lines))
    assert read_table(tmp_path / "t.jsonl", candidates="s").X.ravel().tolist() == [2.0**60, 2.5, 1e300]


@pytest.mark.parametrize("names", [["a", 1], ["a", None], [10**30, 1]])
def test_found_names_of_several_kinds_loaded_that_could_not_be_saved(names, tmp_path):
    by_category = TARGETS["calibration"].seeds()[1]
    changed_container(by_category, tmp_path / "c.cal", categories=names)
    with pytest.raises(ValueError, match=r"c.cal: .*categories are not all of one kind"):
        Calibration.load(tmp_path / "c.cal")


def test_found_a_summary_of_more_rows_than_there_can_be(tmp_path):
    changed_container(TARGETS["feature summary"].seeds()[0], tmp_path / "s.npz", rows=2**63)
    with pytest.raises(ValueError, match=r"s.npz: .*do not belong together"):
        TARGETS["feature summary"].read(tmp_path / "s.npz")


def test_found_half_a_character_was_a_label_that_no_file_holds(tmp_path):
    (tmp_path / "e.json").write_bytes(tasks(("cat", "\ud83d", "dog")))
    with pytest.raises(DataError, match=r"e.json: the label '\\ud83d' is not text"):
        from_label_studio(tmp_path / "e.json")
    (tmp_path / "e.json").write_bytes(tasks(("cat", "\U0001f600", "dog")))
    assert "\U0001f600" in from_label_studio(tmp_path / "e.json").candidates.classes


def test_found_half_floats_and_types_of_others_among_labels(tmp_path):
    table = pa.table({"x": [1.0, 2.0], "s": pa.array(np.array([1, 2], dtype=np.float16))})
    pq.write_table(table, tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet", candidates="s").candidates.to_lists() == [[1], [2]]
    held = pa.array([[1.5], [2.5, 1.5]], pa.list_(pa.float16()))
    pq.write_table(pa.table({"labels": held}), tmp_path / "s.parquet")
    assert read_sets(tmp_path / "s.parquet").to_lists() == [[1.5], [1.5, 2.5]]
    for kind in (pa.json_(), pa.list_(pa.json_())):
        stored = pa.array(["cat"]) if kind == pa.json_() else pa.array([["cat"]])
        pq.write_table(pa.table({"labels": stored.cast(kind)}), tmp_path / "s.parquet")
        assert read_sets(tmp_path / "s.parquet").to_lists() == [["cat"]]


def test_found_a_huge_number_in_a_column_of_zeros_and_ones_did_not_name_its_file(tmp_path):
    (tmp_path / "t.json").write_text('[{"s: a": 1000000000002000000, "x": 1}]')
    with pytest.raises(DataError, match=r"t.json.* row 0 holds 1000000000002000000 in 's: a'; expected 0 or 1"):
        read_table(tmp_path / "t.json", candidates="s")


def test_found_sets_over_no_classes_came_back_over_one(tmp_path):
    write_sets(tmp_path / "s.parquet", LabelSets.from_mask(np.zeros((2, 0), dtype=bool), []))
    assert len(read_sets(tmp_path / "s.parquet").classes) == 0


def test_found_a_refused_file_took_memory_for_good(tmp_path):
    """Arrow's `read` loses the memory that it was to fill where unpacking fails."""
    path = tmp_path / "t.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"x": 1, "s": "a"}\n' * 2**14, mtime=0)[:-40] + bytes(40))

    def refused():
        with pytest.raises(DataError, match=re.escape(str(path))):
            read_table(path, candidates="s")
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()

    before = [refused() for _ in range(3)][-1]
    assert [refused() for _ in range(20)][-1] - before < 2**26  # each took 16 MB


def test_found_sums_beyond_all_numbers_warned():
    with warnings.catch_warnings(action="error"), pytest.raises(ValueError, match="row 0 sums to 0.2, not to 1"):
        as_probabilities(np.array([[0.1, 0.1], [1e308, 1e308], [1e308, 1e308]]), "simplex", 2)
