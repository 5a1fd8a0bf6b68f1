"""Curves look at every score; of very many entries at rounded ones, with sums that are exact."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from setwise import Calibration, LabelSets, _arrays, conformalize, diagnose
from setwise.errors import InputError
from setwise.strategies import Corrected
from setwise.strategies import step_function_sums as step_sums
from setwise.strategies.curves import Curve, _factors
from setwise.strategies.step_function_sums import Steps
from tests.conftest import candidates_from, labels_from, simplex

LEVELS = [Fraction(j, 40) for j in range(1, 40)]


def every_score(made, margin, delta=0.05):
    """Thresholds and levels as they are defined: N of every row at every score, and no cell."""
    thresholds = np.unique(made.table)
    jumps = made.weigh(slice(None))
    N = np.array([(jumps * (made.table <= t)).sum(axis=1) for t in thresholds])
    d, total, all_d = made.d, N.sum(axis=1), float(made.d.sum())
    if all_d <= 0:
        return thresholds, np.zeros(len(thresholds))
    if margin == "none":
        raw, end = total / (all_d + made.new), jumps.sum(axis=1)
        level = np.array([(raw[: j + 1].max() + raw[j:].min()) / 2 for j in range(len(raw))]).clip(0, 1).round(12)
        g = np.clip(total / all_d, 0, 1)
        exact = g * (1 - g) * made.new / all_d
        noise = np.square(N - g[:, None] * end).sum(axis=1) / all_d**2
        noise = np.where(np.isclose(noise, exact, rtol=1e-9, atol=1e-15), exact, noise)
        at, middles = np.linspace(0, 1, 201), (np.arange(400) + 0.5) / 400

        def mean_coverage(variance):
            known = np.interp(middles, np.append(0, level), np.append(0, variance), right=0)
            return ndtr((at[:, None] - middles) / np.sqrt(np.maximum(known, 1e-18))).mean(axis=1)

        gained = mean_coverage(noise) - mean_coverage(exact)
        return thresholds, np.maximum.accumulate(level + np.interp(level, at, gained)).clip(0, 1).round(12)
    c, less = _factors(made, delta)
    mean_d, v_dd = d.mean(), d.var(ddof=1)
    lead = mean_d**2 - c**2 * v_dd
    if lead <= 0:
        return thresholds, np.zeros(len(thresholds))
    found = []
    for row in N:
        a, v_nn, v_nd = row.mean() - less, row.var(ddof=1), np.cov(row, d)[0, 1]
        half = a * mean_d - c**2 * v_nd
        found.append((half - np.sqrt(max(half**2 - lead * (a**2 - c**2 * v_nn), 0))) / lead)
    levels = np.array(found)
    return thresholds, np.minimum.accumulate(levels[::-1])[::-1].clip(0, 1).round(12)


@st.composite
def made_steps(draw):
    """Rows with ties within and between them, and signed weights that sum to about d."""
    n, k = draw(st.integers(3, 40)), draw(st.integers(2, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scores = -simplex(rng, n, k, 3.0)
    if (digits := draw(st.sampled_from([None, 1, 2]))) is not None:
        scores = scores.round(digits)
    if draw(st.booleans()):
        scores = scores.astype(np.float32)
    named = candidates_from(rng, labels_from(rng, -scores), k, draw(st.sampled_from([0.0, 0.2, 0.6])))
    r = (named.sum(axis=1) - 1) / (k - 1)
    d = 1 - r
    new = float(d @ d / d.sum()) if d.sum() > 0 else 1.0
    return Steps(scores, (named - r[:, None]).__getitem__, d, spread=2.0, new=new)


@pytest.mark.parametrize("margin", ["none", "finite"])
@settings(max_examples=25)
@given(made=made_steps())
def test_a_curve_is_that_of_every_score(margin, made):
    curve = Curve(made, margin, 0.05).certified
    thresholds, levels = every_score(made, margin)
    for level in LEVELS:
        slack = 1e-11  # by which a sum in another order may miss a level that is reached exactly
        lowest = np.append(thresholds, np.inf)[np.searchsorted(levels, float(level) - slack)]
        highest = np.append(thresholds, np.inf)[np.searchsorted(levels, float(level) + slack)]
        assert lowest <= curve.threshold(level) <= highest
    scores = np.append(thresholds, [-2.0, 2.0])
    before = np.searchsorted(thresholds, scores)
    assert np.allclose(curve.p_values(scores), 1 - np.append(0, levels)[before], rtol=0, atol=1e-11)


@pytest.mark.parametrize("margin", ["none", "finite"])
def test_thresholds_of_many_entries_are_rounded_and_their_sums_are_not(margin, rng, monkeypatch):
    p = simplex(rng, 4000, 60, 3.0).astype(np.float32)
    mask = candidates_from(rng, labels_from(rng, p), 60, 0.2)
    made = []
    for exact in (1000, p.size):
        monkeypatch.setattr(step_sums, "EXACT", exact)
        made.append(conformalize(p, mask, Corrected(margin), assume="uniform"))
    curves = [one.rules[0].curve for one in made]
    for level in LEVELS:
        rounded, exact = (curve.certified.threshold(level) for curve in curves)
        assert np.isclose(rounded, exact, rtol=1e-3)
    scores, (total, *_) = step_sums.step_sums(curves[0].steps, products=True)
    some = rng.choice(len(scores), 20)
    table, weights = np.asarray(curves[0].steps.table), curves[0].steps.weigh(slice(None))
    assert np.allclose(total[some], [weights[table <= t].sum() for t in scores[some]])


def test_a_category_is_calibrated_as_if_it_were_alone(rng):
    p = simplex(rng, 900, 6).astype(np.float32)
    mask, by = candidates_from(rng, labels_from(rng, p), 6), rng.integers(0, 2, 900)
    strategy = Corrected(if_refuted="continue")
    whole = conformalize(p, mask, strategy, assume="uniform", by=by)
    for code in range(2):
        alone = conformalize(p[by == code], mask[by == code], strategy, assume="uniform")
        assert [whole.threshold(float(level), by=code) for level in LEVELS] == [
            alone.threshold(float(level)) for level in LEVELS
        ]


# ---------------------------------------------------------------- what is held


def peak(work):
    """The most memory that is allocated meanwhile, in bytes."""
    tracemalloc.start()
    try:
        kept = work()
        return tracemalloc.get_traced_memory()[1], kept
    finally:
        tracemalloc.stop()


def test_no_table_of_scores_is_made(rng):
    p = simplex(rng, 20_000, 150, 4.0).astype(np.float32)
    sets = LabelSets.from_mask(candidates_from(rng, labels_from(rng, p), 150, 0.1))
    assert sets.sizes.min() > 0
    assert peak(lambda: diagnose(p, sets))[0] < 1.25 * p.nbytes  # of so few rows blocks are a larger part
    assert peak(lambda: conformalize(p, sets, "corrected", assume="uniform"))[0] < 2**28  # however many there are
    calibration = conformalize(p, sets, "max")
    largest, values = peak(lambda: calibration.predict_p(p))
    assert largest < values.nbytes + 0.75 * p.nbytes


def test_probabilities_that_were_changed_after_calibration_are_refused(rng, tmp_path):
    p = simplex(rng, 300, 4)
    mask = candidates_from(rng, labels_from(rng, p), 4)
    calibration = conformalize(p, mask, "corrected", assume="uniform")
    calibration.save(tmp_path / "cal")
    limit = calibration.threshold(0.8)
    p[7] = p[7, ::-1].copy()
    for work in (lambda: calibration.guarantee(0.8), lambda: calibration.save(tmp_path / "other")):
        with pytest.raises(InputError, match="changed after it was calibrated on"):
            work()
    assert calibration.threshold(0.8) == limit == Calibration.load(tmp_path / "cal").threshold(0.8)


def test_sums_are_those_of_all_entries_whatever_the_blocks(rng, monkeypatch):
    p = simplex(rng, 200, 4)
    jumps = candidates_from(rng, labels_from(rng, p), 4) - 0.1
    made = Steps(-p, jumps.__getitem__, np.ones(200), spread=2.0)
    monkeypatch.setattr(_arrays, "_BLOCK_BYTES", 2**8)
    scores, sums = step_sums.step_sums(made)
    assert np.allclose(sums[0], [jumps[made.table <= t].sum() for t in scores])
