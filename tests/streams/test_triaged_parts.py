"""Triage in folders of tables."""

from pathlib import Path

from tests.streams import conftest
from tests.streams.conftest import done, failed

parts, no_lines_about_time = conftest.parts, conftest.no_lines_about_time  # fixtures


def test_triage_into_folders_refuses_the_rows_of_the_calibration_of_which_some_were_checked(parts, capsys):
    parts()
    told = ["conformalize", "--probabilities", "in", "--candidates", "answers", "--ignore", "id"]
    done(capsys, *told, "--verified", "truth", "--out", "own.cal")
    for more in ([], ["--candidates", "answers"]):
        asked = ["triage", "own.cal", "--probabilities", "in", *more, "--out", "yes", "--review", "no"]
        line = failed(capsys, *asked)
        assert "own.cal: was calibrated on these rows, and folders take new ones; use --out … for a file" in line
        assert not [path for folder in ("yes", "no") for path in Path(folder).rglob("*.parquet")]
    assert done(capsys, *asked[:-4], "--out", "yes.parquet", "--review", "no.parquet")["checked"] == 300
    assert done(capsys, *asked[:1], "m.cal", *asked[2:], "--force")["rows"] == 300
