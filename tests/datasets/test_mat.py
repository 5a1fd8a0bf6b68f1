import pickle

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from setwise.datasets.mat import read_mat
from setwise.tables import DataError
from tests.conftest import check_sentence

X = np.arange(12, dtype=float).reshape(4, 3)
Y = np.array([0, 2, 1, 2])
MASK = np.array([[1, 1, 0], [0, 0, 1], [1, 1, 1], [0, 1, 1]])
TRUE = np.eye(3, dtype=int)[Y]


def saved(path, variables, **options):
    scipy.io.savemat(path, variables, **options)
    return path


def read(path):
    return read_mat(path.read_bytes(), path)


def by_columns(mask=MASK, true=TRUE, make=np.asarray):
    return {"data": X, "partial_target": make(mask.T.astype(float)), "target": make(true.T.astype(float))}


def by_rows(make=np.asarray):
    return {"features": X, "p_labels": make(MASK.astype(float)), "logitlabels": make(TRUE.astype(float))}


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csc_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("dialect", [by_columns, by_rows])
@pytest.mark.parametrize("packed", [True, False])
def test_both_dialects_are_read_alike_sparse_or_dense(tmp_path, dialect, make, packed):
    features, candidates, y = read(saved(tmp_path / "a.mat", dialect(make=make), do_compression=packed))
    np.testing.assert_array_equal(features, X)
    np.testing.assert_array_equal(candidates.to_mask(), MASK.astype(bool))
    np.testing.assert_array_equal(y, Y)


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"data": X, "target": MASK.T}, "found data, target"),
        ({"something": X}, "found something"),
        ({"data": X, "partial_target": MASK.T}, "found data, partial_target"),
        (by_columns(mask=2 * MASK), "do not hold numbers, 0 or 1 for each candidate"),
        ({**by_columns(), "data": X[:3]}, r"data \(3, 3\), partial_target \(3, 4\), target \(3, 4\)"),
        (by_columns(true=MASK), "1 for the one true label of each row"),
        ({**by_columns(), "data": np.array([["a", "b"]], dtype=object)}, "do not hold numbers"),
        ({**by_columns(), "target": np.eye(4)}, r"target \(4, 4\)"),
    ],
)
def test_a_mat_file_with_the_wrong_content_ends_in_one_sentence(tmp_path, variables, says):
    with pytest.raises(DataError, match=says) as error:
        read(saved(tmp_path / "wrong.mat", variables))
    check_sentence(error.value, "wrong.mat")


@pytest.mark.parametrize(
    "content",
    [
        b"\x89HDF\r\n\x1a\n" + bytes(600),
        b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM" + bytes(384) + b"\x89HDF\r\n\x1a\n" + bytes(100),
        pickle.dumps({"data": X}),
        b"",
        b"hello" * 100,
    ],
)
def test_files_of_other_kinds_are_refused_by_name(tmp_path, content):
    path = tmp_path / "other.mat"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"scipy.io.loadmat does not read it \(") as error:
        read(path)
    check_sentence(error.value, "other.mat")


def test_a_truncated_mat_file_is_refused(tmp_path):
    path = saved(tmp_path / "short.mat", by_columns(), do_compression=True)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="short.mat: "):
        read(path)
