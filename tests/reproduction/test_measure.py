"""Measurements of a cell: the same as the public functions give, and what single precision does."""

import numpy as np
import pytest
from reproduction.measure import LEVELS, MUS, ORACLE, STRATEGIES, Rows, measure

from setwise import LabelSets, conformalize, evaluate
from setwise.strategies import Mixture
from tests.conftest import candidates_from, labels_from, simplex

K = 5


def some_rows(rng, n, sharpness=2.0):
    p = simplex(rng, n, K, sharpness)
    y = labels_from(rng, p)
    mask = candidates_from(rng, y, K)
    return Rows(np.log(p), LabelSets.from_mask(mask, classes=range(K)), y)


@pytest.fixture
def both(rng):
    return some_rows(rng, 400), some_rows(rng, 300)


def test_every_strategy_is_measured_as_the_public_functions_measure_it(both):
    cal, test = both
    found = measure(cal, test, 0.1)["strategies"]
    candidates = {
        **dict.fromkeys(STRATEGIES, cal.candidates),
        ORACLE: LabelSets.from_labels(cal.y, classes=range(K)),
    }
    for name, strategy in {**STRATEGIES, ORACLE: "max"}.items():
        made = conformalize(cal.probabilities(), candidates[name], strategy)
        sets = made.predict_set(test.probabilities(), 0.9)
        seen = evaluate(sets, test.y, candidates=test.candidates)
        assert found[name]["coverage"] == seen["coverage"]
        assert found[name]["efficiency"] == seen["mean_size"]
        assert found[name]["all_candidates"] == seen["all_candidates_rate"]
        assert found[name]["any_candidate"] == seen["any_candidate_rate"]
        assert found[name]["sizes"] == np.bincount(sets.sizes, minlength=K + 1).tolist()
        assert found[name]["threshold"] == made.threshold(0.9)
        assert tuple(found[name]["bracket"]) == made.bracket(0.9)


def test_curves_are_those_of_the_public_functions(both):
    cal, test = both
    found = measure(cal, test, 0.1)
    made = conformalize(cal.probabilities(), cal.candidates, "mean")
    for at, level in enumerate(LEVELS):
        seen = evaluate(made.predict_set(test.probabilities(), level), test.y)
        assert np.isclose(found["by_level"]["mean"]["coverage"][at], seen["coverage"], atol=1e-6)
        assert np.isclose(found["by_level"]["mean"]["size"][at], seen["mean_size"], atol=1e-6)
    for at, mu in enumerate(MUS):
        made = conformalize(cal.probabilities(), cal.candidates, Mixture(mu=mu))
        seen = evaluate(made.predict_set(test.probabilities(), 0.9), test.y)
        assert np.isclose(found["by_mu"]["coverage"][at], seen["coverage"], atol=1e-6)


def test_premises_are_counted_on_the_calibration_rows(both):
    cal, test = both
    found = measure(cal, test, 0.1)["premises"]
    f, mask = cal.probabilities(), cal.candidates.to_mask()
    truth = f[np.arange(len(f)), cal.y]
    means = np.array([row[own].mean() for row, own in zip(f, mask, strict=True)])
    least = np.array([row[own].max() for row, own in zip(f, mask, strict=True)])
    assert np.isclose(found["below_mean"], (truth < means - 1e-12).mean())
    assert np.isclose(found["rho"]["min"], (truth < least).mean())
    assert found["rho"]["max"] == 0
    assert np.isclose(found["below_one_over_size"], (truth < 1 / mask.sum(axis=1)).mean())
    assert np.isclose(found["q_of_truth"], np.sort(1 - truth)[int(np.ceil(401 * 0.9)) - 1])
    assert found["q_of_truth_at_most_half"] == (found["q_of_truth"] <= 0.5)


def test_single_precision_admits_every_label_where_double_precision_tells_them_apart(rng):
    """A fifth of the rows has a candidate with f about 1e-9: 1 − f is exactly 1 in single precision."""
    n = 1000
    logits = np.zeros((n, 3))
    logits[:, 0], logits[:, 2] = 40.0, 20.0 + rng.random(n)
    mask = np.zeros((n, 3), dtype=bool)
    mask[:, 0] = True
    mask[: n // 5, 2] = True
    rows = Rows(logits, LabelSets.from_mask(mask, classes=range(3)), np.zeros(n, dtype=np.int64))
    found = measure(rows, rows, 0.1)
    assert found["float32"]["max"]["admits_everything"]
    assert found["float32"]["max"]["share_exactly_one"] == 0.2
    assert found["float32"]["max"]["efficiency"] == 3.0
    assert found["strategies"]["max"]["efficiency"] < 2.5
    assert not found["float32"]["all"]["admits_everything"] or found["float32"]["all"]["efficiency"] == 3.0


def test_single_precision_changes_nothing_where_probabilities_are_not_tiny(both):
    cal, test = both
    found = measure(cal, test, 0.1)
    for name in ("max", "all"):
        single = found["float32"][name]
        assert not single["admits_everything"]
        assert np.isclose(single["efficiency"], found["strategies"][name]["efficiency"], atol=0.02)
