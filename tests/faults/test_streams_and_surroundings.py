"""Standard streams that are closed, full or of another encoding, and surroundings that lack what is usual."""

import contextlib
import os
import subprocess
import sys

import numpy as np
import pytest

from setwise import LabelSets, conformalize
from setwise.cli.app import run
from tests.cli.conftest import NAMES, write

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="streams as POSIX has them")
PREDICT = ["predict", "c.cal", "--probabilities", "p.csv", "--force"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams")
    P, new = np.split(np.random.default_rng(0).dirichlet(np.ones(4), 120), 2)
    conformalize(P, LabelSets.from_labels(np.array(NAMES)[P.argmax(axis=1)], classes=NAMES)).save(folder / "c.cal")
    write(folder / "p.csv", {f"p:{name}": new[:, k] for k, name in enumerate(NAMES)})
    return folder


def setwise(folder, *arguments, **surroundings):
    """How a command ends in a process of its own, and what it says."""
    command = [sys.executable, "-m", "setwise", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **surroundings)


def test_a_command_runs_where_nobody_listens(folder):
    def close():  # as a shell does for >&-
        for number in (0, 1, 2):
            os.close(number)

    assert setwise(folder, *PREDICT, "--out", "closed.csv", preexec_fn=close).returncode == 0
    assert len((folder / "closed.csv").read_text().splitlines()) == 61
    assert setwise(folder, *PREDICT, "--out", "-", preexec_fn=close).returncode == 2  # the rows would be lost


@pytest.mark.parametrize("extra", [["--out", "-"], ["--out", "s.csv", "--json"]])
def test_a_result_that_was_to_go_to_a_closed_output_is_an_error(folder, extra, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "__stdout__", None)
    assert run([*PREDICT, *extra]) == 2
    assert capsys.readouterr().err.startswith("error: standard output is closed, and the result was to go there")


@pytest.mark.parametrize("extra", [["--out", "-"], ["--out", "s.csv"], ["--out", "s.csv", "--json"]])
def test_a_full_output_is_named(folder, extra, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    full = open("/dev/full", "w")  # noqa: PTH123, SIM115
    with contextlib.redirect_stdout(full):
        assert run([*PREDICT, *extra]) == 2
    assert capsys.readouterr().err == "error: standard output: cannot be written: No space left on device.\n"
    with contextlib.suppress(OSError):
        full.close()


def test_a_full_error_output_hides_nothing(folder, monkeypatch):
    monkeypatch.chdir(folder)
    full = open("/dev/full", "w")  # noqa: PTH123, SIM115
    with contextlib.redirect_stderr(full):
        assert run(["predict", "none.cal", "--probabilities", "p.csv", "--out", "x.csv"]) == 2
    with contextlib.suppress(OSError):
        full.close()


def test_no_home_no_locale_and_no_other_variable(folder):
    kept = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    bare = kept | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = setwise(folder, *PREDICT, "--out", "bare.csv", env=bare)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_name_that_is_not_text_is_shown_as_it_is(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    odd = os.fsdecode(b"\xfc.csv")
    for arguments in (["--probabilities", odd, "--out", "s.csv"], ["--probabilities", "p.csv", "--out", odd]):
        assert run(["predict", "c.cal", "--force", *arguments]) == 2
        assert "\\udcfc.csv': the name of this file is not UTF-8 text; rename it." in capsys.readouterr().err


def test_a_cache_that_cannot_be_written_is_named_with_the_way_out(folder, monkeypatch, capsys):
    (folder / "file").write_text("no folder")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SETWISE_CACHE", "file")
    monkeypatch.delenv("SETWISE_DATA", raising=False)
    assert run(["datasets", "fetch", "lost"]) == 2
    assert "error: file/pll: cannot be made: Not a directory; name a folder" in capsys.readouterr().err


def test_a_user_without_a_home_is_told_how_to_fetch(monkeypatch, capsys):
    def unknown(_):
        raise KeyError

    for name in ("HOME", "XDG_CACHE_HOME", "SETWISE_CACHE", "SETWISE_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert run(["datasets", "fetch", "lost"]) == 2
    said = "error: this user has no home folder, where fetched files would be kept; name a folder for fetched files"
    assert capsys.readouterr().err.startswith(said)


def test_a_working_folder_that_is_gone_is_one_sentence(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    given = ["predict", str(folder / "c.cal"), "--probabilities", str(folder / "p.csv")]
    assert run([*given, "--out", "s.csv"]) == 2
    said = "error: s.csv: cannot be written: the folder that this runs in is gone.\n"
    assert capsys.readouterr().err == said


def test_what_an_interrupted_process_could_not_remove_goes_when_it_ends(tmp_path):
    program = """
import sys
from pathlib import Path
from setwise.storage import atomic_files as _files
_files._remove, remove = lambda path: None, _files._remove  # as if Ctrl-C had come just then
with _files.replacing(Path(sys.argv[1], "a.txt")) as beside, _files.temporary(Path(sys.argv[1]), "b", folder=True):
    beside.write_text("whole")
assert len(list(Path(sys.argv[1]).iterdir())) == 2
_files._unfinished |= {(0, Path(sys.argv[1], "of another process"))}
_files._unfinished |= {(__import__("os").getpid(), path) for path in Path(sys.argv[1]).glob(".b.*")}
_files._remove = remove
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
