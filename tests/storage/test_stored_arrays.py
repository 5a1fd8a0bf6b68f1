"""Arrays are read from files without believing what they say of themselves."""

import zipfile

import pytest

from setwise.tables import read_table
from tests.conftest import refused


def claiming(shape):
    header = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


@pytest.mark.parametrize("shape", [(10**12,), (2**62, 4), (-1,), (0, 10**12)])
def test_an_array_that_claims_more_than_it_has_is_never_made(shape, tmp_path):
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("X.npy", claiming(shape))
    assert "states the shape" in refused(read_table, tmp_path / "t.npz")
