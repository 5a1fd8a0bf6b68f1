"""Files appear whole or not at all."""

import os
import stat
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setwise import Calibration
from setwise.cli.app import run
from setwise.storage import atomic_files as _files


def test_a_device_or_a_pipe_is_not_replaced(saved_models, tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe: is a device or a pipe"):
        Calibration.load(saved_models / "max.cal").save(tmp_path / "pipe")
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "t.parquet")
    arguments = ["predict", saved_models / "skops", tmp_path / "t.parquet", "--out", tmp_path / "pipe", "--force"]
    assert run([*map(str, arguments)]) == 2
    assert "is a device or a pipe" in capsys.readouterr().err
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_temporary_names_are_new_each_time_and_follow_no_link(tmp_path):
    (tmp_path / "victim").write_text("mine")
    seen = set()
    for _ in range(3):
        with _files.replacing(tmp_path / "report.html") as beside:
            seen.add(beside.name)
            beside.write_text("whole")
    assert len(seen) == 3
    (tmp_path / "link.html").symlink_to(tmp_path / "victim")
    with _files.replacing(tmp_path / "link.html") as beside:
        beside.write_text("new")
    assert (tmp_path / "victim").read_text() == "mine"


LEAVES = """
import os, signal, sys
from pathlib import Path
from setwise.storage import atomic_files as _files
here = Path(sys.argv[1])
with _files.temporary(here, "sets.csv") as file, _files.temporary(here, "model", folder=True):
    file.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_is_swept_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "_swept", set())
    subprocess.run([sys.executable, "-c", LEAVES, str(tmp_path)], check=False)
    assert len(list(tmp_path.iterdir())) == 2
    (tmp_path / ".mine.0123456789abcdef.tmp").write_text("of another program")
    (tmp_path / ".sets.csv.0123456789abcdef.setwise.tmp").symlink_to(tmp_path / "nowhere")
    with _files.temporary(tmp_path, "busy") as busy:
        _files._swept.clear()
        with _files.replacing(tmp_path / "other.csv") as beside:
            beside.write_text("whole")
        assert busy.exists()  # its process lives
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".mine.0123456789abcdef.tmp",
        ".sets.csv.0123456789abcdef.setwise.tmp",
        "other.csv",
    ]
