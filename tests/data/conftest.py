import gzip
import os
from pathlib import Path

import pytest

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"


def benchmark_folder():
    named = os.environ.get("SETWISE_DATA")
    folder = Path(named) if named else BESIDE
    return folder if (folder / "pll" / "lost.mat").is_file() else None


@pytest.fixture
def benchmarks(monkeypatch):
    """The real benchmark files; tests that need them are skipped where they are absent."""
    folder = benchmark_folder()
    if folder is None:
        pytest.skip("the benchmark files are not here: set SETWISE_DATA to the folder that holds mnist/ and pll/")
    monkeypatch.setenv("SETWISE_DATA", str(folder))
    return folder


@pytest.fixture
def nothing_here(monkeypatch, tmp_path):
    """No data folder, and an empty cache."""
    monkeypatch.delenv("SETWISE_DATA", raising=False)
    monkeypatch.setenv("SETWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def check_sentence(error, *names):
    """A broken file's error is one line that names the file."""
    assert "\n" not in str(error)
    assert all(name in str(error) for name in names)


def idx_bytes(array, kind=8):
    """An array of bytes as an idx file's content."""
    head = bytes([0, 0, kind, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    return head + array.tobytes()


def gzipped(content):
    return gzip.compress(content, mtime=0)
