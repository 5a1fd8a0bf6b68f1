import gzip

import pytest


@pytest.fixture
def nothing_here(monkeypatch, tmp_path):
    """No data folder, and an empty cache."""
    monkeypatch.delenv("SETWISE_DATA", raising=False)
    monkeypatch.setenv("SETWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def idx_bytes(array, kind=8):
    """An array of bytes as an idx file's content."""
    head = bytes([0, 0, kind, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    return head + array.tobytes()


def gzipped(content):
    return gzip.compress(content, mtime=0)
