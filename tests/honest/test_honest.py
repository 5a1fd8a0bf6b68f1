"""Honest designs get their guarantee in a few samples (`make honest` draws 200 of each); mistakes are noticed."""

import functools

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from setwise import ConformalClassifier
from tests.honest.designs import DESIGNS, features, of_model
from tests.honest.guards import GUARDS, NO_GUARDS
from tests.honest.judge import Outcome, Record, run
from tests.honest.mistakes import MISTAKES, SLIGHT
from tests.honest.sites import sites

SAMPLES = 5


@pytest.mark.parametrize("name", DESIGNS)
def test_an_honest_design_gets_its_guarantee_and_its_coverage(name):
    found = run(name, DESIGNS[name], SAMPLES)
    assert found.verdict == "kept", found.to_dict()


def test_a_guarantee_that_is_false_and_one_that_is_missing_are_told_from_others():
    def false(rng):
        return Outcome(0.9, float((rng.random(400) < 0.85).mean()))

    def missing(rng):
        X, y = features(rng, 200)
        model = ConformalClassifier(KNeighborsClassifier(3), random_state=0).fit(X[:150], y[:150])
        kept = np.setdiff1d(np.arange(150), model.calibration_rows_)
        return of_model(model.conformalize(X[kept], y[kept]), X[150:], y[150:])

    assert run("false", false, 30).verdict == "broken"
    assert run("missing", missing, 5).verdict == "refused"


def test_a_bound_that_holds_in_most_draws_is_counted_and_not_averaged():
    record = Record()
    for covered in (0.95,) * 60 + (0.5,) * 40:
        record.add([Outcome(0.9, covered, delta=0.05)], "", set())
    assert record.verdict == "broken"
    assert (record.failed, record.counted) == (40, 100)


@functools.cache
def _found():
    return sites()


def test_no_guard_in_the_code_is_missing_from_the_list_and_none_in_the_list_from_the_code():
    known = GUARDS.keys() | NO_GUARDS.keys()
    assert _found().keys() <= known, (
        "new guards: say in tests/honest/guards.py what they see, and plant the mistake"
    )
    assert known - _found().keys() <= {"evidence.verified_rows.refuse_written"}
    assert {guard for _, guards in MISTAKES.values() for guard in guards} == GUARDS.keys()


@pytest.mark.parametrize("name", [name for name in MISTAKES if name not in SLIGHT])
def test_a_planted_mistake_is_noticed_by_its_guards(name):
    trial, guards = MISTAKES[name]
    assert set(guards) <= run(name, trial, 1).guards.keys()
