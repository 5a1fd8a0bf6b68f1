"""What a third attack found, on tables in streams and folders: a test for each fault."""

import json

import pytest

from setwise import Calibration
from setwise.cli.app import run
from setwise.data.arrow_tables import column_names, has_column, located_batches
from setwise.errors import DataError
from tests.scale import conftest
from tests.scale.conftest import CLASSES, failed, rows

parts, no_lines_about_time = conftest.parts, conftest.no_lines_about_time  # fixtures


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
    for more, known in ([], 40), (["--checks", "checks.csv", "--key", "id"], 40 + len(checked)):
        arguments = [*asked, "--ignore", "id", *more, "--out", "m.cal", "--force", "--quiet"]
        assert run(arguments) == 0
        assert (Calibration.load("m.cal").evidence.label >= 0).sum() == known


def test_a_field_that_only_late_lines_have_is_an_error_and_not_left_out(tmp_path):
    path = tmp_path / "long.jsonl"
    lines = [json.dumps({"id": i, "note": "x" * 1000}) for i in range(2000)]
    path.write_text("\n".join([*lines, json.dumps({"id": 2000, "verified": "owl"})]))
    assert column_names(path) == ["id", "note"]
    with pytest.raises(DataError, match=r"a line after line 2,000 has the field 'verified', which the first lines"):
        list(located_batches(path, 500))
    with pytest.raises(DataError, match="give it to the first line"):
        has_column(path, "verified")
    path.write_text("\n".join([json.dumps({"id": 0, "verified": None}), *lines]))
    assert has_column(path, "verified")
    assert {tuple(batch.column_names) for *_, batch in located_batches(path, 500)} == {("id", "verified", "note")}


def test_a_column_of_verified_labels_that_neither_file_has_is_an_error(parts, tmp_path, capsys):
    parts(".csv")
    task = {"id": 1, "data": {"id": 5}, "annotations": [{"result": []}]}
    (tmp_path / "checks.json").write_text(json.dumps([task]))
    asked = ["conformalize", "--probabilities", "in/0.csv", "--candidates", "answers", "--key", "id"]
    told = [*asked, "--ignore", "truth", "--checks", "checks.json", "--verified", "truht", "--out", "new.cal"]
    line = failed(capsys, *told)
    assert "there is no column 'truht', and checks.json is an export, which has none; leave out --verified" in line
