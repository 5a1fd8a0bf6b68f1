"""Files become Arrow tables, whole or in batches."""

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from setwise import Calibration, LabelSets
from setwise.cli.app import run
from setwise.errors import DataError, InputError
from setwise.tables import arrow_reading as arrow_tables
from setwise.tables import set_files, write_sets
from setwise.tables.arrow_reading import arrow_table, batches_with_origin, column_names, has_column
from tests.streams.conftest import CLASSES, done, rows
from tests.tables.conftest import P_NAMES, new_table


def test_a_parquet_file_that_shrinks_while_it_is_read_is_an_error(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": np.random.default_rng(0).normal(size=40_000)}), path, row_group_size=2000)
    batches = arrow_tables.arrow_batches(path, 1000)
    next(batches)
    os.truncate(path, path.stat().st_size // 3)
    with pytest.raises(DataError, match=r"t.parquet: changed while it was read"):
        list(batches)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_text_file_that_shrinks_while_it_is_read_is_an_error(suffix, tmp_path):
    path, line = tmp_path / f"t{suffix}", "1,2\n" if suffix == ".csv" else '{"a": 1, "b": 2}\n'
    path.write_text(("a,b\n" if suffix == ".csv" else "") + line * 400_000)
    batches = arrow_tables.arrow_batches(path, 1000)
    next(batches)
    os.truncate(path, 200_000 * len(line))
    with pytest.raises(DataError, match="changed while it was read"):
        list(batches)


def test_fewer_rows_than_parquet_promises_are_an_error(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": np.arange(5000.0)}), path, row_group_size=1000)
    some = pq.ParquetFile.iter_batches

    def lossy(self, *given, **named):
        yield from list(some(self, *given, **named))[:-1]

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lossy)
    with pytest.raises(DataError, match=r"gave 4,000 of its 5,000 rows"):
        list(arrow_tables.arrow_batches(path, 1000))


LATER = {
    "text": pa.array(["x"] * 20),
    "numbers": pa.array(range(20)),
    "times": pa.array(range(20), pa.timestamp("s")),
    "lists": pa.array([["x"]] * 20),
}


@pytest.mark.parametrize("later", list(LATER))
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".arrow"])
def test_a_column_may_hold_nothing_in_the_first_file(later, suffix, calibrated_folder, capsys):
    (calibrated_folder / "in").mkdir()
    for name, column in {"a": pa.nulls(20), "b": pa.nulls(20), "c": LATER[later], "d": pa.nulls(20)}.items():
        pq.write_table(new_table(note=column), f"in/{name}.parquet")
    done(capsys, "predict", "m.cal", "--probabilities", "in", "--out", f"s{suffix}")
    held = arrow_table(f"s{suffix}", text=["note"])["note"].to_pylist()
    assert len(held) == 80
    assert [*held[:40], *held[60:]] in ([None] * 60, [""] * 60)
    assert held[59] not in (None, "")


def test_a_column_that_gets_its_type_too_late_is_named_with_a_remedy(calibrated_folder, monkeypatch):
    monkeypatch.setattr(set_files, "_WAITING", 0)
    sets = LabelSets.from_lists([["owl"], ["cat"]])
    with set_files.set_writer("s.parquet") as writer:
        for note in ([None, None], [None, None]):
            writer.append(sets, {"note": note})
        with pytest.raises(
            InputError, match="holds string, but null in the rows before; .* or write .csv or .jsonl"
        ):
            writer.append(sets, {"note": ["x", "y"]})


# ---------------------------------------------------------------------------- text in columns that nobody asks for


def test_text_that_comes_late_in_a_column_of_csv_that_is_not_asked_for_is_no_fault(calibrated_folder, capsys):
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
    assert (calibrated_folder / "s.csv").stat().st_size > 2**20  # the block of text from which types are known
    assert done(capsys, "evaluate", "s.csv", "--truth", "truth")["n"] == n


# ------------------------------------------------------------------------------------------ JSON lines


def json_lines(path, every, n=120):
    """Rows whose field `verified` some of them have: those at each place of `every` three."""
    P, y, candidates = rows(n, 0)
    with path.open("w") as file:
        for i in range(n):
            row = {"id": f"r{i}", **{f"p:{c}": float(P[i, k]) for k, c in enumerate(CLASSES)}}
            row["answers"] = candidates[i]
            file.write(json.dumps(row | ({"verified": y[i]} if i % 3 == every else {})) + "\n")
    return y


@pytest.mark.parametrize("every", [0, 1])
def test_verified_labels_count_wherever_the_first_line_that_has_one_stands(every, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    y = json_lines(tmp_path / "rows.jsonl", every)
    checked = [i for i in range(120) if i % 3 == 2][::2]
    (tmp_path / "checks.csv").write_text("id,verified\n" + "".join(f"r{i},{y[i]}\n" for i in checked))
    asked = ["conformalize", "--probabilities", "rows.jsonl", "--candidates", "answers", "--verified", "verified"]
    for more, known in ([], 40), (["--verified", "checks.csv", "--key", "id"], 40 + len(checked)):
        arguments = [*asked, "--ignore", "id", *more, "--out", "m.cal", "--force", "--quiet"]
        assert run(arguments) == 0
        assert (Calibration.load("m.cal").evidence.label >= 0).sum() == known


def test_a_field_that_only_late_lines_have_is_an_error_and_not_left_out(tmp_path):
    path = tmp_path / "long.jsonl"
    lines = [json.dumps({"id": i, "note": "x" * 1000}) for i in range(2000)]
    path.write_text("\n".join([*lines, json.dumps({"id": 2000, "verified": "owl"})]))
    assert column_names(path) == ["id", "note"]
    with pytest.raises(DataError, match=r"a line after line 2,000 has the field 'verified', which the first lines"):
        list(batches_with_origin(path, 500))
    with pytest.raises(DataError, match="give it to the first line"):
        has_column(path, "verified")
    path.write_text("\n".join([json.dumps({"id": 0, "verified": None}), *lines]))
    assert has_column(path, "verified")
    assert {tuple(batch.column_names) for *_, batch in batches_with_origin(path, 500)} == {
        ("id", "verified", "note")
    }
