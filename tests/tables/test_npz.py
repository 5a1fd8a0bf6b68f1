"""Tables in NumPy's format."""

import numpy as np
import pytest

from setwise.streams.model_inputs import array_batch
from setwise.tables import read_table
from setwise.tables.table_files import table_files
from tests.conftest import refused
from tests.toy_data import NAMES

WILD = {
    "wrapping": [0, 2**63 - 1, -2, 3],
    "falling": [0, 3, 1, 3],
    "beyond": [0, 1, 2, 4],
    "not from zero": [1, 2, 3, 3],
    "unsigned": np.array([0, 2**64 - 1, 2, 3], dtype=np.uint64),
    "none": np.empty(0, dtype=int),
}


@pytest.mark.parametrize("offsets", list(WILD))
def test_offsets_that_wrap_are_refused_in_npz(offsets, tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, X=np.zeros((3, 1)), candidates_indptr=WILD[offsets], candidates_indices=[0, 1, 2])
    assert "must rise from 0" in refused(read_table, path)


def test_arrays_of_objects_are_refused_without_advice_to_load_them_unsafely(tmp_path):
    objects = np.array([{"a": 1}], dtype=object)
    np.savez(tmp_path / "o.npz", X=objects, allow_pickle=True)
    assert "holds object, not numbers or text" in refused(read_table, tmp_path / "o.npz")
    np.save(tmp_path / "o.npy", objects, allow_pickle=True)
    from setwise.cli.options import assume_of

    refused(lambda path: assume_of(str(path), NAMES), tmp_path / "o.npy")


# ---------------------------------------------------------------------------- small ones


def test_identifiers_of_npz_come_along(tmp_path):
    np.savez(tmp_path / "n.npz", X=np.ones((2, 3)), ids=np.array(["a", "b"]), y=np.array(["owl", ""]))
    X, carried = array_batch(table_files(tmp_path / "n.npz"))
    assert X.shape == (2, 3)
    assert {name: values.to_pylist() for name, values in carried.items()} == {"ids": ["a", "b"], "y": ["owl", None]}
