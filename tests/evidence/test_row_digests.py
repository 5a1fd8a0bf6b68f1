"""Rows are recognised by their digests; copies are told from discrete features."""

from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris

from setwise.evidence.row_digests import agreement, coincidence, copies, row_digests
from setwise.labels.vocabulary import MISSING


def found_copies(X, rng, share=0.2):
    part = (rng.permutation(X.shape[0]) < share * X.shape[0]).astype(int)
    return copies(X, row_digests(X), part, np.flatnonzero(part))


def test_a_row_has_the_same_digest_in_every_container(rng):
    X = np.round(rng.normal(size=(50, 6)) * 2)  # with zeros
    wanted = row_digests(X)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    forms = [
        X.tolist(),
        X.astype(np.float32),
        X.astype(np.int16),
        np.asfortranarray(X),
        -0.0 + X,
        X.reshape(50, 2, 3),
        sparse.csr_matrix(X),
        sparse.coo_array(X),
        frame,
        frame.astype({"a": "Int64", "b": "float32"}),
        pl.from_pandas(frame),
    ]
    for form in forms:
        np.testing.assert_array_equal(row_digests(form), wanted)
    assert len(np.unique(wanted)) == len(np.unique(X, axis=0))
    np.testing.assert_array_equal(row_digests(X[7:9]), wanted[7:9])


def test_text_times_and_missing_values_are_read():
    frame = pd.DataFrame(
        {
            "name": ["owl", "wren", "owl", None, "owl"],
            "kind": pd.Categorical(["a", "b", "a", "a", "a"]),
            "seen": pd.to_datetime(["2024-01-01", "2024-01-01", "2024-01-01", "2024-01-01", "2024-01-02"]),
            "weight": [1.0, np.nan, 1.0, np.nan, 1.0],
        }
    )
    one, two, three, four, five = row_digests(frame)
    assert one == three
    assert len({one, two, four, five}) == 4
    np.testing.assert_array_equal(
        row_digests(["owl", "wren", "owl"])[[0, 0]], row_digests(pd.Series(["owl", "owl"]))
    )


@pytest.mark.parametrize("X", [[[1], [1, 2]], 3, object(), np.array([{1}, {2}])])
def test_what_is_neither_numbers_nor_text_has_no_digests(X):
    assert row_digests(X) is None


def test_columns_and_values_that_change_places_change_the_digest(rng):
    X = rng.integers(0, 3, (2000, 8))
    assert len(np.unique(row_digests(X))) == len(np.unique(X, axis=0))


# ------------------------------------------------------------------ rows seen before


@pytest.mark.parametrize("columns", [1, 4])
def test_rows_that_come_again_are_found(columns, rng):
    X = rng.normal(size=(500, columns))
    found = coincidence(row_digests(X), row_digests(X[100:]))
    assert (found.rows, found.share, found.first) == (400, 0.8, 100)
    assert coincidence(row_digests(X[:20]), row_digests(X)).rows == 20
    some = np.vstack([rng.normal(size=(380, columns)), X[:20]])
    assert coincidence(row_digests(some), row_digests(X)).first == 380
    assert coincidence(row_digests(some[:380]), row_digests(X)) is None


def test_rows_of_few_distinct_values_that_come_again_by_chance_are_no_misuse():
    rng = np.random.default_rng(1)

    def table(n, spread, columns):
        return row_digests(np.round(rng.normal(size=(n, columns)) * spread))

    alarms = total = 0
    for spread in (0.5, 1, 3, 10, 50, 500):
        for columns in (1, 2, 4):
            for known, n in ((80, 20), (400, 100), (400, 5), (50, 1000)):
                for _ in range(10):
                    alarms += coincidence(table(n, spread, columns), table(known, spread, columns)) is not None
                    total += 1
    assert alarms <= 0.005 * total
    X = np.round(rng.normal(size=(500, 4)) * 3)  # a fifth of the rows occurs twice or more
    assert coincidence(row_digests(X), row_digests(X[:400])).rows >= 400


def test_a_replicate_of_a_design_is_no_use_of_its_rows():
    design = row_digests(np.array(list(product(range(3), repeat=4))))
    assert coincidence(design, np.tile(design, 8)) is None
    assert coincidence(design, design).rows == 81  # of a single replicate only the labels can tell


def test_equal_rows_agree_with_themselves_and_with_others_by_chance(rng):
    things = row_digests(np.arange(300.0)[:, None])
    x, labels = things[rng.integers(0, 300, 900)], rng.integers(0, 2, 900)
    labels[:100] = MISSING
    met, alike = agreement(x[:200], labels[:200], x[200:], labels[200:])
    assert 80 <= met <= 100
    assert 0.6 < alike / met < 0.95  # of several equal rows one agrees more often than half of the time
    assert agreement(x[:200], labels[:200], x, labels) == (100, 100)
    pairs, agreed = agreement(x, labels, x, labels)
    assert 0.6 < agreed / pairs < 0.95


# ------------------------------------------------------------------ copies across a split


@pytest.mark.parametrize("spread", [None, 100, 10])
@pytest.mark.parametrize("kind", ["three times", "bootstrap", "one class ten times"])
def test_copies_are_found(spread, kind, rng):
    X = rng.normal(size=(300, 6))
    X = X if spread is None else np.round(X * spread)
    rows = {
        "three times": np.repeat(np.arange(300), 3),
        "bootstrap": rng.integers(0, 300, 300),
        "one class ten times": np.concatenate([np.arange(300), rng.integers(0, 30, 270)]),
    }[kind]
    found = found_copies(X[rows], rng)
    assert found.share > 0.3
    assert found_copies(X, rng) is None


def test_a_few_copies_are_found_among_rows_of_numbers(rng):
    X = rng.normal(size=(1000, 3))
    X[rng.permutation(1000)[:60]] = X[:60]
    assert 0.01 < found_copies(X, rng).share < 0.1
    X = rng.normal(size=(1000, 3))
    X[990:] = X[:10]  # about two of 200 calibration rows
    assert found_copies(X, np.random.default_rng(0)) is None


def test_every_row_twice_is_found_however_discrete_the_features_are(rng):
    X = rng.integers(0, 3, (300, 4))
    assert found_copies(X, rng) is None
    assert found_copies(np.vstack([X, X]), rng).share > 0.9


def natural_tables(rng):
    """Tables in which equal rows are no copies."""
    yield np.eye(7)[rng.integers(0, 7, 300)]
    yield np.hstack([np.eye(2)[rng.integers(0, 2, 300)] for _ in range(5)])
    yield rng.integers(0, 2, (60, 2))
    blank = rng.random((500, 30))
    blank[rng.random(500) < 0.1] = 0
    yield blank
    shop = rng.integers(0, 50, 1000)
    yield np.column_stack([shop, rng.normal(size=(50, 3))[shop]])
    yield sparse.csr_array((rng.random((500, 200)) < 0.01).astype(float))  # words of short texts
    ages = np.where(rng.random(900) < 0.2, np.nan, rng.gamma(6, 5, 900).round())
    yield np.column_stack([rng.integers(1, 4, 900), rng.integers(0, 2, 900), ages, rng.poisson(0.5, 900)])
    for spread in (1, 3, 10, 50):
        for n in (100, 500):
            for columns in (1, 2, 3, 6):
                shared = rng.normal(size=(n, 1))
                yield np.round((shared + rng.normal(size=(n, columns))) * spread)
    for load in (load_iris, load_digits, load_breast_cancer):
        yield load().data


def test_equal_rows_of_discrete_features_are_not_taken_for_copies():
    rng = np.random.default_rng(2)
    for _ in range(5):
        for X in natural_tables(rng):
            assert found_copies(X, rng) is None
