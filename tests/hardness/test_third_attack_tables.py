"""What a third attack found on the tables that are read and written: a test for each fault."""

import bz2
import gzip
import json
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from setwise import LabelSets, Votes, conformalize
from setwise.data import read_batches, read_sets, read_table, set_files, write_sets, write_votes
from setwise.data.arrow_tables import arrow_table
from setwise.data.table_files import table_files
from setwise.errors import DataError, InputError
from setwise.scale.saved_models import array_batch
from tests.scale.conftest import CLASSES, done, failed, rows

P_NAMES = [f"p:{label}" for label in CLASSES]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a calibration m.cal; commands run in it."""
    monkeypatch.chdir(tmp_path)
    P, y, candidates = rows(200, 0)
    verified = np.where(np.arange(200) % 3 == 0, y.astype(object), None)
    conformalize(P, candidates, classes=CLASSES, verified=verified, random_state=0).save("m.cal")
    return tmp_path


def new(n=20, **others):
    """A table of probabilities and other columns."""
    return pa.table(dict(zip(P_NAMES, rows(n, 5)[0].T, strict=True)) | others)


# ---------------------------------------------------------------------------- columns called like p-values


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_columns_of_the_user_that_are_called_like_p_values_are_not_taken_for_them(suffix, folder, capsys):
    own = np.random.default_rng(1).dirichlet(np.ones(4), size=20)
    carried = {**dict(zip(P_NAMES, own.T, strict=True)), "truth": rows(20, 5)[1].tolist()}
    sets = LabelSets.from_lists([["owl"]] * 20, classes=CLASSES)
    write_sets(f"s{suffix}", sets, carry=carried)
    right = carried["truth"].count("owl") / 20
    assert done(capsys, "evaluate", f"s{suffix}", "--truth", "truth")["coverage"] == right
    done(capsys, "report", f"s{suffix}", "--truth", "truth", "--out", "r.html")
    assert f"{right:.1%}) have their true label in the set" in (folder / "r.html").read_text()
    with pytest.raises(InputError, match=r"column 'p:\w+' already, and the p-values need it; rename or remove it"):
        write_sets(f"again{suffix}", sets, carry=carried, p_values=own)
    assert not (folder / f"again{suffix}").exists()


def test_p_values_are_refused_beside_carried_arrays_of_their_names(folder):
    with pytest.raises(InputError, match="the p-values need it"):
        write_sets("s.npz", LabelSets.from_lists([["owl"]]), carry={"p:owl": [0.5]}, p_values=[[1.0]])


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_p_values_that_stand_behind_their_sets_are_used_and_others_there_are_not(suffix, folder, capsys):
    pq.write_table(new(truth=rows(20, 5)[1].tolist()), "n.parquet")
    done(capsys, "predict", "m.cal", "--probabilities", "n.parquet", "--p-values", "--out", f"s{suffix}")
    assert done(capsys, "report", f"s{suffix}", "--truth", "truth", "--out", "r.html")
    with_slider = (folder / "r.html").read_text()
    sets = read_sets(f"s{suffix}", classes=CLASSES)
    write_sets(f"t{suffix}", sets, p_values=np.random.default_rng(1).dirichlet(np.ones(4), size=20))
    capsys.readouterr()
    done(capsys, "report", f"t{suffix}", "--out", "t.html")
    assert 'type="range"' in with_slider
    assert 'type="range"' not in (folder / "t.html").read_text()


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
def test_columns_of_rare_types_come_along(kind, folder, capsys):
    column, values = RARE[kind]
    write_arrow(new(2, note=column), "n.arrow")
    asked = ["--probabilities", "n.arrow", "--out"]
    done(capsys, "predict", "m.cal", *asked, "s.jsonl")
    assert [json.loads(line)["note"] for line in (folder / "s.jsonl").read_text().splitlines()] == values
    done(capsys, "predict", "m.cal", *asked, "s.csv")
    done(capsys, "predict", "m.cal", *asked, "s.parquet")
    assert pq.read_table("s.parquet")["note"].to_pylist() == values
    done(capsys, "triage", "m.cal", *asked, "a.csv", "--review", "r.parquet", "--max-error", 0.5)


@pytest.mark.parametrize("kind", list(RARE))
def test_arrays_of_rare_types_are_written_to_text(kind, folder):
    column, values = RARE[kind]
    for path in ("s.csv", "s.jsonl"):
        write_sets(path, LabelSets.from_lists([["owl"], ["owl"]]), carry={"note": column})
    assert [json.loads(line)["note"] for line in (folder / "s.jsonl").read_text().splitlines()] == values


def test_lists_of_polars_categories_are_candidates_and_notes_of_columns_stay(folder):
    write_arrow(pa.table({"candidates": RARE["lists of categories"][0]}), "k.arrow")
    assert read_sets("k.arrow", column="candidates").to_lists() == [["cat"], ["owl"]]
    write_sets("s.arrow", LabelSets.from_lists([["cat"]], classes=["owl", "cat", "ant"]))
    held = pa.ipc.open_file("s.arrow").read_all()
    coded = pa.LargeListArray.from_arrays(pa.array([0, 1], pa.int64()), CODED[:1])
    notes = held.schema.field("labels").metadata
    write_arrow(pa.table([coded], schema=pa.schema([pa.field("labels", coded.type, metadata=notes)])), "s.arrow")
    assert read_sets("s.arrow").classes.tolist() == ["owl", "cat", "ant"]


def test_a_file_of_no_rows_may_have_columns_of_rare_types(folder):
    write_arrow(pa.table({"x": [1.5, 2.5], "c": CODED}).slice(0, 0), "n.arrow")
    assert len(read_table("n.arrow", carry=["c"])) == 0


def test_a_column_that_no_format_holds_is_named(folder, capsys):
    write_arrow(new(1, note=pa.array([(1, 2, 3)], pa.month_day_nano_interval())), "n.arrow")
    line = failed(capsys, "predict", "m.cal", "--probabilities", "n.arrow", "--out", "s.csv")
    assert "n.arrow: the column 'note' holds month_day_nano_interval; write it as text or numbers." in line


# ---------------------------------------------------------------------------- lists, gaps and compressed files


def test_lists_of_text_are_written_to_csv_also_where_they_are_empty_or_hold_gaps(folder, capsys):
    lists = pa.array([["a|b", "c"], ["a", None], [], None], pa.list_(pa.string()))
    pq.write_table(new(4, tags=lists, none=pa.array([[]] * 4, pa.list_(pa.string()))), "n.parquet")
    done(capsys, "predict", "m.cal", "--probabilities", "n.parquet", "--out", "s.csv")
    held = [line.partition(',"",')[0] for line in (folder / "s.csv").read_text().splitlines()[1:]]
    assert held == ['"a\\sb|c"', '"[""a"", null]"', '""', ""]
    assert read_sets("s.csv", column="none").to_lists() == [[]] * 4


@pytest.mark.parametrize("max_error", [0.9, 0.0001])
def test_triage_writes_csv_also_where_no_row_is_left_for_one_of_its_files(max_error, folder, capsys):
    pq.write_table(new(tags=[["a"]] * 20), "n.parquet")
    asked = ["--max-error", max_error, "--out", "a.csv", "--review", "r.csv"]
    done(capsys, "triage", "m.cal", "--probabilities", "n.parquet", *asked)
    sizes = [len((folder / name).read_text().splitlines()) - 1 for name in ("a.csv", "r.csv")]
    assert sorted(sizes) == [0, 20]


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_folders_hold_every_table_that_is_read_by_its_name(suffix, pack, folder, capsys):
    (folder / "in").mkdir()
    pa.csv.write_csv(new(), "in/a.csv")
    (folder / f"in/b.csv{suffix}").write_bytes(pack((folder / "in/a.csv").read_bytes()))
    assert done(capsys, "predict", "m.cal", "--probabilities", "in", "--out", "s.csv")["rows"] == 40
    done(capsys, "predict", "m.cal", "--probabilities", "in", "--out", "out/")
    assert {path.name for path in (folder / "out").glob("[!.]*")} == {"a.csv", "b.csv"}
    with pytest.raises(DataError, match=f"tables are written unpacked; leave out {suffix}"):
        write_sets(f"s.csv{suffix}", LabelSets.from_lists([["owl"]]))
    with pytest.raises(DataError, match="tables are written unpacked"):
        write_votes(f"v.csv{suffix}", Votes.from_matrix([["owl"]]))


LATER = {
    "text": pa.array(["x"] * 20),
    "numbers": pa.array(range(20)),
    "times": pa.array(range(20), pa.timestamp("s")),
    "lists": pa.array([["x"]] * 20),
}


@pytest.mark.parametrize("later", list(LATER))
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".arrow"])
def test_a_column_may_hold_nothing_in_the_first_file(later, suffix, folder, capsys):
    (folder / "in").mkdir()
    for name, column in {"a": pa.nulls(20), "b": pa.nulls(20), "c": LATER[later], "d": pa.nulls(20)}.items():
        pq.write_table(new(note=column), f"in/{name}.parquet")
    done(capsys, "predict", "m.cal", "--probabilities", "in", "--out", f"s{suffix}")
    held = arrow_table(f"s{suffix}", text=["note"])["note"].to_pylist()
    assert len(held) == 80
    assert [*held[:40], *held[60:]] in ([None] * 60, [""] * 60)
    assert held[59] not in (None, "")


def test_a_column_that_gets_its_type_too_late_is_named_with_a_remedy(folder, monkeypatch):
    monkeypatch.setattr(set_files, "_WAITING", 0)
    sets = LabelSets.from_lists([["owl"], ["cat"]])
    with set_files.set_writer("s.parquet") as writer:
        for note in ([None, None], [None, None]):
            writer.append(sets, {"note": note})
        with pytest.raises(
            InputError, match="holds string, and null in the rows before; .* or write .csv or .jsonl"
        ):
            writer.append(sets, {"note": ["x", "y"]})


# ---------------------------------------------------------------------------- text in columns that nobody asks for


def test_text_that_comes_late_in_a_column_of_csv_that_is_not_asked_for_is_no_fault(folder, capsys):
    n = 30_000
    P, y, candidates = rows(n, 5)
    ids = [str(i) if i < n - 9 else f"A{i}" for i in range(n)]
    texts = {"id": ids, "truth": y.tolist(), "candidates": ["|".join(labels) for labels in candidates]}
    pa.csv.write_csv(pa.table(dict(zip(P_NAMES, P.T, strict=True)) | texts), "n.csv")
    asked = ["conformalize", "--probabilities", "n.csv", "--ignore", "truth"]
    assert done(capsys, *asked, "--ignore", "id", "--out", "a.cal")["rows"] == n
    pa.csv.write_csv(pa.table({"id": ids, "candidates": texts["candidates"]}), "l.csv")
    assert (
        done(capsys, *asked, "--labels", "l.csv", "--key", "id", "--ignore", "candidates", "--out", "b.cal")["rows"]
        == n
    )
    write_sets(
        "s.csv", LabelSets.from_lists(candidates), carry={"id": ids, "truth": y.tolist(), "note": ["long text"] * n}
    )
    assert (folder / "s.csv").stat().st_size > 2**20  # the block of text from which types are known
    assert done(capsys, "evaluate", "s.csv", "--truth", "truth")["n"] == n


def test_multi_hot_columns_are_numbers_where_no_other_column_is_asked_for(folder):
    pa.csv.write_csv(pa.table({"note": ["x", "7"], "c:owl": [1, 0], "c:cat": [1, 1]}), "m.csv")
    for candidates in ("c", ["c:owl", "c:cat"]):
        (batch,) = read_batches("m.csv", candidates=candidates, features=[])
        assert batch.candidates.sizes.tolist() == [2, 1]


# ---------------------------------------------------------------------------- small ones


def test_identifiers_of_npz_come_along(tmp_path):
    np.savez(tmp_path / "n.npz", X=np.ones((2, 3)), ids=np.array(["a", "b"]), y=np.array(["owl", ""]))
    X, carried = array_batch(table_files(tmp_path / "n.npz"))
    assert X.shape == (2, 3)
    assert {name: values.to_pylist() for name, values in carried.items()} == {"ids": ["a", "b"], "y": ["owl", None]}


def test_text_with_nul_is_refused_in_text_files_which_nobody_could_read(folder):
    sets = LabelSets.from_lists([["a\0b"]])
    for carry in ({}, {"note": ["x\0"]}, {"no\0te": ["x"]}):
        held = sets if not carry else LabelSets.from_lists([["a"]])
        with pytest.raises(InputError, match="holds the character NUL, which text files do not; write .parquet"):
            write_sets("s.csv", held, carry=carry)
    with pytest.raises(InputError, match="holds the character NUL"):
        write_votes("v.tsv", Votes.from_matrix([["a\0b"]]))
    assert list(folder.glob("*sv")) == []
    for path in ("s.jsonl", "s.parquet"):
        write_sets(path, sets)
        assert read_sets(path).to_lists() == [["a\0b"]]


def test_json_lines_hold_null_in_place_of_nan_and_infinity_and_times_with_all_digits(folder):
    times = pa.array([1, None, 86_399_999_999_999], pa.time64("ns"))
    carry = {"x": [1.5, np.nan, -np.inf], "nested": [[np.inf, 1.0], [], None], "at": times}
    write_sets("s.jsonl", LabelSets.from_lists([["a"]] * 3), carry=carry)
    lines = [json.loads(line, parse_constant=pytest.fail) for line in (folder / "s.jsonl").read_text().splitlines()]
    assert [line["x"] for line in lines] == [1.5, None, None]
    assert [line["nested"] for line in lines] == [[None, 1.0], [], None]
    assert [line["at"] for line in lines] == ["00:00:00.000000001", None, "23:59:59.999999999"]
