import io
import pickle
import zlib

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from setwise.data import DataError, read_mat

from .conftest import check_sentence

X = np.arange(12, dtype=float).reshape(4, 3)
Y = np.array([0, 2, 1, 2])
MASK = np.array([[1, 1, 0], [0, 0, 1], [1, 1, 1], [0, 1, 1]])
TRUE = np.eye(3, dtype=int)[Y]


def saved(path, variables, **options):
    scipy.io.savemat(path, variables, **options)
    return path


def by_columns(mask=MASK, true=TRUE, make=np.asarray):
    return {"data": X, "partial_target": make(mask.T.astype(float)), "target": make(true.T.astype(float))}


def by_rows(make=np.asarray):
    return {"features": X, "p_labels": make(MASK.astype(float)), "logitlabels": make(TRUE.astype(float))}


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csc_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("dialect", [by_columns, by_rows])
@pytest.mark.parametrize("packed", [True, False])
def test_both_dialects_are_read_alike_sparse_or_dense(tmp_path, dialect, make, packed):
    found = read_mat(saved(tmp_path / "a.mat", dialect(make=make), do_compression=packed))
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.candidates.to_mask(), MASK.astype(bool))
    np.testing.assert_array_equal(found.y, Y)


def test_truth_may_be_absent(tmp_path):
    assert read_mat(saved(tmp_path / "a.mat", {"data": X, "partial_target": MASK.T})).y is None


def negative_index(path):
    """A sparse matrix whose row indices were overwritten in the file."""
    saved(path, by_columns(make=scipy.sparse.csc_matrix), do_compression=False)
    content = path.read_bytes()
    rows = scipy.sparse.csc_matrix(MASK.T.astype(float)).indices.astype("<i4").tobytes()
    assert rows in content
    path.write_bytes(content.replace(rows, b"\xfe\xff\xff\xff" + rows[4:]))
    return path


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"data": X, "target": MASK.T}, "found data, target"),
        ({"something": X}, "found nothing"),
        ({"data": X, "partial_target": 2 * MASK.T}, "partial_target holds 2 for row 0, class 0"),
        ({"data": X[:3], "partial_target": MASK.T}, "3 rows of features, but candidates for 4"),
        (by_columns(true=MASK), "row 0 has 2 true labels"),
        ({"data": np.array([["a", "b"]], dtype=object), "partial_target": MASK.T}, "not a matrix of real numbers"),
        ({**by_columns(), "target": np.eye(4)}, "3 classes among the candidates, 4 among the truth"),
    ],
)
def test_a_mat_file_with_the_wrong_content_ends_in_one_sentence(tmp_path, variables, says):
    with pytest.raises(DataError, match=says) as error:
        read_mat(saved(tmp_path / "wrong.mat", variables))
    check_sentence(error.value, "wrong.mat")


def test_negative_indices_of_a_sparse_matrix_are_refused_and_never_followed(tmp_path):
    with pytest.raises(DataError, match="impossible indices"):
        read_mat(negative_index(tmp_path / "wild.mat"))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\x89HDF\r\n\x1a\n" + bytes(600), "HDF5"),
        (b"MATLAB 7.3 MAT-file".ljust(512) + b"\x89HDF\r\n\x1a\n" + bytes(100), "HDF5"),
        (pickle.dumps({"data": X}), "pickle"),
        (b"", "not a MATLAB file"),
        (b"hello" * 100, "not a MATLAB file"),
    ],
)
def test_files_of_other_kinds_are_refused_by_name(tmp_path, content, says):
    path = tmp_path / "other.mat"
    path.write_bytes(content)
    with pytest.raises(DataError, match=says):
        read_mat(path)


def test_a_truncated_mat_file_is_refused(tmp_path):
    path = saved(tmp_path / "short.mat", by_columns(), do_compression=True)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="breaks off"):
        read_mat(path)


def test_a_compressed_variable_that_unfolds_beyond_the_limit_is_refused(tmp_path):
    head = saved(tmp_path / "bomb.mat", by_columns()).read_bytes()[:128]
    bomb = zlib.compress(bytes(2**24))
    (tmp_path / "bomb.mat").write_bytes(head + (15).to_bytes(4, "little") + len(bomb).to_bytes(4, "little") + bomb)
    with pytest.raises(DataError, match="decompress to more than"):
        read_mat(tmp_path / "bomb.mat", max_bytes=2**22)


def plain_sample(make):
    stream = io.BytesIO()
    scipy.io.savemat(stream, by_columns(make=make), do_compression=False)
    return stream.getvalue()


SAMPLES = [plain_sample(np.asarray), plain_sample(scipy.sparse.csc_matrix)]


@settings(max_examples=300)
@given(data=st.data())
def test_no_damage_to_a_mat_file_does_worse_than_a_data_error(tmp_path, data):
    content = bytearray(data.draw(st.sampled_from(SAMPLES)))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(124, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(len(content) - 200, len(content)))]
    path = tmp_path / "fuzzed.mat"
    path.write_bytes(bytes(content))
    try:
        found = read_mat(path)
        assert found.candidates.shape[0] == len(found.X)
    except DataError as error:
        check_sentence(error, str(path))
