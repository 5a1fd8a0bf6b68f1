import re
import shutil

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from setwise.datasets import available, fetch, load
from setwise.tables import DataError

from .conftest import gzipped, idx_bytes

IMAGES = ["mnist", "kmnist", "fashion_mnist"]
PARTIAL = {  # rows, features, classes, classes that occur, average size
    "lost": (1_122, 108, 16, 14, 2.23),
    "msrcv2": (1_758, 48, 23, 23, 3.16),
    "birdsong": (4_998, 38, 13, 13, 2.18),
    "fg_net": (1_002, 262, 78, 63, 7.48),
    "italian": (21_878, 519, 90, 77, 1.60),
}
ABSENT = {  # the name of a file, then as above
    "soccer_player": ("spd.mat", 17_472, 279, 171, 2.09),
    "yahoo_news": ("Yahoo! News.mat", 22_991, 163, 219, 1.91),
}


@pytest.mark.parametrize("name", IMAGES)
def test_the_image_sets_have_their_shape_their_split_and_every_class(benchmarks, name):
    found = load(name)
    assert found.X.shape == (70_000, 784)
    assert found.X.dtype == np.uint8
    assert found.candidates is None
    assert [len(found.split[part]) for part in ("train", "test")] == [60_000, 10_000]
    assert np.unique(found.y).tolist() == list(range(10))
    assert found.n_classes == len(found.class_names) == 10
    assert found.citation
    assert found.licence
    assert not found.X.flags.writeable


@pytest.mark.parametrize("name", PARTIAL)
def test_the_partial_label_sets_have_the_stated_shapes_and_sizes(benchmarks, name):
    rows, features, classes, occurring, size = PARTIAL[name]
    found = load(name)
    assert found.X.shape == (rows, features)
    assert found.candidates.shape == (rows, classes)
    assert round(float(found.candidates.sizes.mean()), 2) == size
    assert len(np.unique(found.y)) == occurring
    assert found.candidates.contains(found.y).all()
    assert found.split is None


def test_a_third_of_birdsong_is_precise(benchmarks):
    assert round(float((load("birdsong").candidates.sizes == 1).mean()), 3) == 0.327


def partial_label_file(path, shape, size, *, by_rows):
    """A file of the same dialect and shape as a set that is not here."""
    rows, features, classes = shape
    rng = np.random.default_rng(0)
    y = rng.integers(classes, size=rows)
    mask = rng.random((rows, classes)) < (size - 1) / (classes - 1)
    mask[np.arange(rows), y] = True
    true = scipy.sparse.csc_matrix(np.eye(classes)[y])
    X = rng.integers(0, 9, size=(rows, features)).astype(np.uint8)
    sets = scipy.sparse.csc_matrix(mask.astype(float))
    content = {"data": X, "partial_target": sets.T.tocsc(), "target": true.T.tocsc()}
    if by_rows:
        content = {"features": X, "p_labels": sets, "logitlabels": true}
    scipy.io.savemat(path, content)
    return y


@pytest.mark.parametrize("name", ABSENT)
def test_the_two_large_sets_load_from_files_of_their_dialect_and_shape(nothing_here, monkeypatch, tmp_path, name):
    file, rows, features, classes, size = ABSENT[name]
    (tmp_path / "pll").mkdir()
    y = partial_label_file(tmp_path / "pll" / file, (rows, features, classes), size, by_rows=file == "spd.mat")
    monkeypatch.setenv("SETWISE_DATA", str(tmp_path))
    with pytest.warns(UserWarning, match=rf"{re.escape(file)}: no checksum is known of .*; loaded as it is"):
        found = load(name)
    assert found.X.shape == (rows, features)
    assert abs(found.candidates.sizes.mean() - size) < 0.05
    np.testing.assert_array_equal(found.y, y)


def test_a_file_of_another_shape_is_refused_unless_asked_for(nothing_here, monkeypatch, tmp_path):
    (tmp_path / "pll").mkdir()
    partial_label_file(tmp_path / "pll" / "spd.mat", (20, 5, 171), 2, by_rows=True)
    monkeypatch.setenv("SETWISE_DATA", str(tmp_path))
    said = r"20 × 5 features and 171 classes, but soccer_player has 17472 × 279 and 171"
    with pytest.warns(UserWarning, match="no checksum"), pytest.raises(DataError, match=said):
        load("soccer_player")
    assert load("soccer_player", verify=False).X.shape == (20, 5)


def test_a_file_that_differs_in_one_byte_is_refused_unless_asked_for(benchmarks, monkeypatch, tmp_path):
    shutil.copytree(benchmarks / "pll", tmp_path / "pll", copy_function=shutil.copyfile)
    place = tmp_path / "pll" / "lost.mat"
    (tmp_path / "pll").chmod(0o755)
    content = bytearray(place.read_bytes())
    content[20] ^= 1  # in the text of the header, which nobody reads
    place.write_bytes(content)
    monkeypatch.setenv("SETWISE_DATA", str(tmp_path))
    with pytest.raises(DataError, match="SHA-256") as error:
        load("lost")
    assert str(place) in str(error.value)
    assert len(load("lost", verify=False).y) == 1122


def test_idx_files_may_lie_there_unpacked_and_images_must_match_their_labels(nothing_here, monkeypatch, tmp_path):
    folder = tmp_path / "mnist"
    folder.mkdir()
    for part, images, labels in (("train", 4, 4), ("t10k", 2, 3)):
        (folder / f"{part}-images-idx3-ubyte").write_bytes(idx_bytes(np.zeros((images, 2, 2), dtype=np.uint8)))
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzipped(idx_bytes(np.zeros(labels, dtype=np.uint8))))
    monkeypatch.setenv("SETWISE_DATA", str(tmp_path))
    with pytest.raises(DataError, match="t10k-labels.*for 2 images"):
        load("mnist", verify=False)
    with pytest.raises(DataError, match="SHA-256"):
        load("mnist")


def test_the_list_of_sets_says_what_is_here(nothing_here):
    listed = {entry.name: entry for entry in available()}
    assert list(listed) == [
        *IMAGES,
        "lost",
        "msrcv2",
        "birdsong",
        "soccer_player",
        "yahoo_news",
        "fg_net",
        "italian",
    ]
    assert all(entry.found is None for entry in listed.values())


def test_the_list_of_sets_names_the_files_found(benchmarks):
    listed = {entry.name: entry for entry in available()}
    assert [place.name for place in listed["lost"].found] == ["lost.mat"]
    assert fetch("lost") == listed["lost"].found
    assert len(listed["mnist"].found) == 4


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="'cifar' is not a known set; known are mnist"):
        load("cifar")


def test_a_set_without_a_public_home_says_where_to_place_it(nothing_here):
    with pytest.raises(DataError, match=r"no public home is known; obtain it and place it at .*pll.FG-NET.mat"):
        load("fg_net")


def test_a_set_without_a_known_checksum_is_not_fetched(nothing_here):
    where = r"no checksum is known by which to verify it; download it from http.*rar, unpack it and place it at"
    for load_or_fetch in (load, fetch):
        with pytest.raises(DataError, match=where):
            load_or_fetch("yahoo_news")
