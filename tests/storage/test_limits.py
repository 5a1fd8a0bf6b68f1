"""Packed files unpack up to a limit."""

import gzip
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setwise.storage.limits import VARIABLE
from setwise.storage.stored_arrays import read_arrays
from setwise.tables import read_table
from tests.conftest import refused

LIMIT = 2**20


def read(path):
    if path.suffix != ".npz":
        return read_table(path)
    with path.open("rb") as file:
        return read_arrays(file, path)["X"]


def packed_npz(path):
    np.savez_compressed(path, X=np.zeros((LIMIT // 4, 1)))


def packed_text(path):
    with gzip.open(path, "wb") as file:
        file.write(b"x,y\n" + b"0,0\n" * LIMIT if ".csv" in path.name else b'{"x": 0, "y": 0}\n' * LIMIT)


def packed_parquet(path):
    pq.write_table(pa.table({"x": np.zeros(LIMIT)}), path, compression="zstd")


def packed_feather(path):
    with pa.ipc.new_file(
        str(path), pa.schema({"x": pa.float64()}), options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as file:
        for _ in range(8):
            file.write_table(pa.table({"x": np.zeros(LIMIT // 16)}))


def packed_excel(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b" " * 4 * LIMIT)


PACKED = {
    "t.npz": packed_npz,
    "t.csv.gz": packed_text,
    "t.jsonl.gz": packed_text,
    "t.parquet": packed_parquet,
    "t.arrow": packed_feather,
    "t.xlsx": packed_excel,
}


@pytest.mark.parametrize("name", list(PACKED))
def test_nothing_unpacks_to_more_than_the_limit(name, tmp_path, monkeypatch):
    PACKED[name](tmp_path / name)
    monkeypatch.setenv(VARIABLE, "1M")
    said = refused(read, tmp_path / name)
    assert "unpacks to more than 1,048,576 bytes" in said
    assert VARIABLE in said
    monkeypatch.setenv(VARIABLE, "64M")
    if name != "t.xlsx":
        assert len(read(tmp_path / name)) >= LIMIT // 4


def test_the_limit_is_a_number_of_bytes(tmp_path, monkeypatch):
    packed_npz(tmp_path / "t.npz")
    monkeypatch.setenv(VARIABLE, "plenty")
    with pytest.raises(ValueError, match=f"{VARIABLE}: 'plenty' is not a number of bytes"):
        read(tmp_path / "t.npz")
