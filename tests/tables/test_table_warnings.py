"""What looks like a mistake is named, and what does not is left alone."""

import warnings

import numpy as np
import pyarrow as pa
import pytest

from setwise.errors import MisuseWarning
from setwise.tables import read_table
from setwise.tables.table_warnings import identifiers

N = 120
rng = np.random.default_rng(0)
Y = rng.integers(0, 3, N)
NAMES = np.array(["cat", "dog", "owl"])
SETS = [
    "|".join(sorted({NAMES[y], *NAMES[rng.random(3) < 0.2]})) for y in Y
]  # each wrong label with probability 0.2
X = Y + rng.normal(size=N)


def doubts(columns, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_table(columns, candidates="s", **options)
    return [str(one.message) for one in caught]


def test_labels_that_differ_by_case_or_spaces_are_named():
    (said,) = doubts({"x": [1.0, 2.0, 3.0], "s": [["Cat", "dog"], ["cat "], ["no  dog", "No dog"]]})
    assert "'Cat' and 'cat '" in said
    assert "'No dog' and 'no  dog'" in said
    assert said.startswith("the table: ")
    (said,) = doubts({"x": [1.0, 2.0], "s": ["cat", "dog"], "t": ["Cat", "dog"]}, truth="t")
    assert "'Cat' and 'cat'" in said
    assert not doubts({"x": [1.0, 2.0], "s": ["cat", "Cat"]}, classes=["cat", "Cat"])
    assert not doubts({"x": [1.0, 2.0], "s": ["cat", "dog"]})


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("x", np.arange(N)),
        ("Unnamed: 0", np.arange(N)),
        ("row", np.arange(N)[::-1]),
        ("patient_id", rng.permutation(10 * N)[:N]),
        ("caseID", rng.permutation(10 * N)[:N]),
        ("ref", [f"P{i}" for i in rng.permutation(N)]),
    ],
)
def test_a_column_that_numbers_the_rows_is_named(name, values):
    (said,) = doubts({"x1": X, name: values, "s": SETS}, categories="onehot")
    assert f"the column {name!r} has another value in every row" in said
    assert f"carry={name!r}" in said
    assert not doubts({"x1": X, name: values, "s": SETS}, categories="onehot", carry=name)
    assert not doubts({"x1": X, name: values, "s": SETS}, categories="onehot", features=["x1", name])


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("humid", X),
        ("id", X),
        ("age", rng.permutation(10 * N)[:N]),
        ("group_id", np.arange(N) // 2),
        ("flag", rng.integers(0, 2, N)),
        ("noisy", np.where(np.arange(N) < 6, (Y + 1) % 3, Y)),
    ],
)
def test_an_ordinary_column_is_left_alone(name, values):
    assert not doubts({name: values, "s": SETS})


@pytest.mark.parametrize(
    ("values", "shows"),
    [
        (NAMES[Y], "holds labels"),
        (Y, "tells which label is a candidate in every row"),
        (np.array(["A", "B", "C"])[Y], "tells which label is a candidate in every row"),
    ],
)
def test_a_column_that_gives_the_label_away_is_named(values, shows):
    (said,) = doubts({"x": X, "final": values, "s": SETS}, categories="onehot")
    assert f"the column 'final' {shows}; if it is the truth, new rows will lack it" in said
    assert "carry='final'" in said


@pytest.mark.parametrize("value", [[1.0], {"a": 1}, b"x", 1.5, True, None])
def test_only_text_and_whole_numbers_can_be_identifiers(value):
    assert identifiers(pa.table({"id": pa.array([value] * 30), "n": range(30)}), ["id", "n"]) == ["n"]


def test_few_rows_show_nothing():
    few = {"x": [1, 2, 3], "s": ["a", "b", "a"]}
    assert not doubts(few)
    with pytest.warns(MisuseWarning):
        read_table({"x": np.arange(N), "s": SETS}, candidates="s")
