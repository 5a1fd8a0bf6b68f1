"""Two files that belong together: a process that ends between their renames leaves no old one beside a new one."""

import errno
import os
import signal
import sys
from pathlib import Path

import pytest

from setwise.storage import atomic_files as _files
from setwise.storage.atomic_files import replacing_together

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kills and sweeps as Linux has them")


@pytest.fixture
def pair(tmp_path):
    places = tmp_path / "accepted.csv", tmp_path / "review.csv"
    for place in places:
        place.write_text("old")
    return places


def write(pair):
    with replacing_together(*pair) as beside:
        for path in beside:
            path.write_text("new")


def after_the_first(monkeypatch, happens):
    """Something happens when the first file is in place."""
    rename = Path.replace

    def renamed(path, target):
        rename(path, target)
        monkeypatch.undo()
        happens()

    monkeypatch.setattr(Path, "replace", renamed)


def test_a_killed_process_leaves_the_second_missing_and_the_next_run_sweeps(pair, monkeypatch):
    if (process := os.fork()) == 0:
        after_the_first(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGKILL))
        write(pair)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
    assert pair[0].read_text() == "new"
    assert not pair[1].exists()
    _files._swept.discard(pair[0].parent)
    write(pair)
    assert sorted(pair[0].parent.iterdir()) == sorted(pair)


@pytest.mark.parametrize("pressed", [KeyboardInterrupt, SystemExit])
def test_an_interruption_between_the_two_comes_after_both(pressed, pair, monkeypatch):
    def press():
        raise pressed

    after_the_first(monkeypatch, press)
    with pytest.raises(pressed):
        write(pair)
    assert [place.read_text() for place in pair] == ["new", "new"]


@pytest.mark.parametrize("which", [0, 1])
def test_where_one_cannot_be_written_both_stay_and_it_is_named(which, pair):
    def write_one_alone():
        with replacing_together(*pair) as both:
            for number, path in enumerate(both):
                with _files.replacing(path) as beside:
                    if number == which:
                        raise OSError(errno.ENOSPC, "No space left on device")
                    beside.write_text("new")

    with pytest.raises(OSError, match=f"/{pair[which].name}: cannot be written: No space"):
        write_one_alone()
    assert [place.read_text() for place in pair] == ["old", "old"]
    assert sorted(pair[0].parent.iterdir()) == sorted(pair)


def test_another_process_waits_until_both_are_in_place(pair, monkeypatch):
    waited = []

    def look():
        other = os.open(pair[0].parent, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            _files.fcntl.flock(other, _files.fcntl.LOCK_EX | _files.fcntl.LOCK_NB)
        os.close(other)
        waited.append(True)

    after_the_first(monkeypatch, look)
    write(pair)
    assert waited
