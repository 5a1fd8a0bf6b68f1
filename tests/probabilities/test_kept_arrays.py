"""Arrays kept without a copy: what was changed since is refused, and what was found is kept in their place."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

from setwise import conformalize
from setwise.errors import InputError
from setwise.probabilities.kept_arrays import Digest
from setwise.streams import CalibrationRows
from tests.conftest import labels_from, simplex


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(40, 3), (3000, 7), (60_000, 11)])
def test_any_change_is_noticed_whatever_the_layout(dtype, shape, rng):
    for p in (simplex(rng, *shape).astype(dtype), np.asfortranarray(simplex(rng, *shape).astype(dtype))):
        digest, kept = Digest.of(p), p.copy()
        digest.check(p)

        def swap_columns(p):
            p[:, [0, 1]] = p[:, [1, 0]]

        def swap_rows(p):
            p[[0, -1]] = p[[-1, 0]]

        def change_one_bit(p):
            p[-1, -1] = np.nextafter(p[-1, -1], 2, dtype=dtype)

        def turn_around(p):
            p[:] = p[::-1].copy()

        def sort_rows(p):
            p.sort(axis=1)

        for change in (swap_columns, swap_rows, change_one_bit, turn_around, sort_rows):
            change(p)
            with pytest.raises(InputError, match="changed after it was calibrated on; calibrate on a copy"):
                digest.check(p)
            p[:] = kept
            digest.check(p)


@pytest.mark.parametrize("shape", [(3000, 3), (3000, 10), (250, 1021), (250, 1019)])
def test_rows_that_change_places_are_noticed_at_any_distance(shape, rng):
    p = simplex(rng, *shape)
    digest = Digest.of(p)
    for distance in (1, 2, shape[0] // 2, 1019, 1021):
        if distance < shape[0]:
            p[[0, distance]] = p[[distance, 0]]
            with pytest.raises(InputError, match="changed after"):
                digest.check(p)
            p[[0, distance]] = p[[distance, 0]]
    p[:] = p[rng.permutation(shape[0])]
    with pytest.raises(InputError, match="changed after"):
        digest.check(p)


def test_one_hot_rows_whose_columns_are_swapped_are_noticed():
    p = np.tile([1.0, 0.0], (5000, 1))
    digest = Digest.of(p)
    with pytest.raises(InputError, match="changed after"):
        digest.check(p[:, ::-1])


def test_comparisons_and_files_refuse_an_array_that_was_changed_since(rng, tmp_path):
    p = simplex(rng, 300, 4)
    calibration, again = (conformalize(p, labels_from(rng, p)) for _ in range(2))
    sets = calibration.predict_set(p).to_mask()
    wanted = p.argmax(axis=1)
    assert (again.evidence.predicted == wanted).all()
    p[:] = p[:, ::-1].copy()
    assert (calibration.predict_set(p[:, ::-1]).to_mask() == sets).all()
    for ask in (lambda: calibration.compare(p), lambda: calibration.save(tmp_path / "c.cal")):
        with pytest.raises(InputError, match="the array was changed after it was calibrated on"):
            ask()
    assert (again.evidence.predicted == wanted).all()
    again.save(tmp_path / "c.cal")


def test_copies_hold_what_was_found_and_the_array_is_given_back(rng):
    p = simplex(rng, 300, 4)
    y, wanted = labels_from(rng, p), p.argmax(axis=1)
    for same in (copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c)), lambda c: c):  # noqa: S301 - its own
        given = p.copy()
        calibration = same(conformalize(given, y))
        assert (calibration.evidence.predicted == wanted).all()
        kept = weakref.ref(given)
        del given
        gc.collect()
        assert kept() is None


def test_rows_that_were_added_in_batches_are_let_go(rng):
    rows = CalibrationRows(random_state=0)
    p = simplex(rng, 300, 4)
    rows.add(p, labels_from(rng, p))
    calibration = rows.conformalize()
    kept = weakref.ref(rows._parts[0].matrix)
    del rows
    gc.collect()
    assert kept() is None
    assert calibration.compare(p).p_value == 1
