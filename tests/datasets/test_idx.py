import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setwise.datasets.idx import decompress, read_idx
from setwise.storage.limits import VARIABLE
from setwise.tables import DataError
from tests.conftest import check_sentence

from .conftest import gzipped, idx_bytes

SAMPLE = idx_bytes(np.arange(24, dtype=np.uint8).reshape(2, 3, 4))


def read(path):
    return read_idx(decompress(path), path)


@pytest.mark.parametrize(
    ("code", "dtype"), [(8, "u1"), (9, "i1"), (11, ">i2"), (12, ">i4"), (13, ">f4"), (14, ">f8")]
)
@pytest.mark.parametrize("pack", [bytes, gzipped])
def test_every_type_of_idx_comes_back_as_it_was(tmp_path, code, dtype, pack):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    (tmp_path / "file").write_bytes(pack(idx_bytes(array, code)))
    found = read(tmp_path / "file")
    np.testing.assert_array_equal(found, array)
    assert found.dtype.isnative


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not an idx file"),
        (b"\x00\x00\x07\x01" + bytes(8), "not an idx file"),
        (b"\x00\x04\x0b\x00\x0b\x00", "not an idx file"),
        (b"PK\x03\x04" + bytes(30), "not an idx file"),
        (SAMPLE[:9], "not an idx file"),
        (SAMPLE[:20], "not an idx file .cannot reshape"),
        (SAMPLE + b"x", "not an idx file .cannot reshape"),
        (gzipped(SAMPLE)[:-12], "break off"),
        (gzipped(SAMPLE[:-1]), "not an idx file .cannot reshape"),
        (b"\x1f\x8b" + bytes(20), "gzip data are damaged"),
    ],
)
def test_a_broken_idx_file_ends_in_one_sentence_that_names_it(tmp_path, content, says):
    path = tmp_path / "broken-idx3-ubyte.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=says) as error:
        read(path)
    check_sentence(error.value, str(path))


@pytest.mark.parametrize("pack", [bytes, gzipped])
def test_a_claim_of_ten_gigabytes_is_refused_before_anything_is_allocated(tmp_path, pack):
    import tracemalloc

    path = tmp_path / "huge"
    two_sizes = bytes([0, 0, 8, 2]) + (10 * 2**20).to_bytes(4, "big") + (2**10).to_bytes(4, "big")
    path.write_bytes(pack(two_sizes + bytes(100)))
    tracemalloc.start()
    with pytest.raises(DataError, match="cannot reshape"):
        read(path)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_a_gzip_bomb_unfolds_no_further_than_the_limit(tmp_path, monkeypatch):
    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(idx_bytes(np.zeros(10, dtype=np.uint8)) + bytes(2**24)))
    monkeypatch.setenv(VARIABLE, "1M")
    with pytest.raises(DataError, match="bomb: unpacks to more than 1,048,576 bytes"):
        read(path)


@settings(max_examples=150)
@given(data=st.data())
def test_no_damage_to_an_idx_file_does_worse_than_a_data_error(tmp_path, data):
    content = bytearray(SAMPLE)
    for _ in range(data.draw(st.integers(0, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = bytes(content[: data.draw(st.integers(0, len(content)))])
    if data.draw(st.booleans()):
        content = bytearray(gzipped(content))
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(0, 255))
    path = tmp_path / "fuzzed"
    path.write_bytes(bytes(content))
    try:
        assert read(path).nbytes <= 64
    except DataError as error:
        check_sentence(error, str(path))
