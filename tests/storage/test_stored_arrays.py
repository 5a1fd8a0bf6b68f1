"""Arrays are read from files without believing what they say of themselves."""

import zipfile

import numpy as np
import pytest

from setwise.cli.options import assume_of
from setwise.storage.stored_arrays import read_arrays
from tests.conftest import refused
from tests.toy_data import NAMES


def arrays_of(path):
    with path.open("rb") as file:
        return read_arrays(file, path)


def claiming(shape):
    header = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


@pytest.mark.parametrize("shape", [(10**12,), (2**62, 4), (-1,), (0, 10**12)])
def test_an_array_that_claims_more_than_it_has_is_never_made(shape, tmp_path):
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("X.npy", claiming(shape))
    assert "states the shape" in refused(arrays_of, tmp_path / "t.npz")


def test_arrays_of_objects_are_refused_without_advice_to_load_them_unsafely(tmp_path):
    objects = np.array([{"a": 1}], dtype=object)
    np.savez(tmp_path / "o.npz", X=objects, allow_pickle=True)
    assert "holds object, not numbers or text" in refused(arrays_of, tmp_path / "o.npz")
    np.save(tmp_path / "o.npy", objects, allow_pickle=True)
    refused(lambda path: assume_of(str(path), NAMES), tmp_path / "o.npy")
