"""`triage`: which labels are accepted, that few of them are wrong, and what is refused."""

import re
import warnings
from contextlib import nullcontext
from fractions import Fraction
from itertools import combinations, product
from math import floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.naive_bayes import GaussianNB

import setwise
from setwise import (
    Calibration,
    ConformalClassifier,
    CrossConformalClassifier,
    MisuseWarning,
    Votes,
    conformalize,
)
from setwise.decisions.overall import allowed_wrong, joint_allowed
from setwise.decisions.triage import triage_calibration_rows
from setwise.errors import InputError
from setwise.evidence.evidence import Evidence
from setwise.labels.vocabulary import MISSING
from setwise.strategies.judgement import Judgement, Setting
from tests.conftest import labels_from, printed


def decided(confidence, wrong, checked, max_error, mode="average", seed=0, **options):
    """The triage of rows whose label is 0, and whose truth is 1 where that is wrong."""
    n, wrong = len(confidence), np.asarray(wrong)
    label = np.where(checked, wrong.astype(int), MISSING)
    zeros = np.zeros(n)
    evidence = Evidence(
        zeros, zeros, np.ones(n, int), truth=np.where(checked, 0.0, np.nan), label=label,
        consensus=np.zeros(n, int), consensus_confidence=np.asarray(confidence, float),
    )  # fmt: skip
    judged = Judgement(evidence, Setting("lac", 2, seed=seed))
    return triage_calibration_rows(judged, np.arange(2), max_error, mode, **options)


def selected(wrong, checked, alpha, plus=1, adjusted=True):
    """Conformal selection by its definition, of rows in the order of falling confidence: who is accepted."""
    m, n = sum(checked), len(wrong) - sum(checked)
    count, p = plus, {}
    for row in range(len(wrong)):
        count += bool(checked[row] and wrong[row])
        if not checked[row]:
            p[row] = Fraction(count, m + plus)
    if not adjusted:
        return {row for row in p if p[row] <= alpha}
    k = max((i for i, value in enumerate(sorted(p.values()), 1) if value <= alpha * Fraction(i, n)), default=0)
    return set(sorted(p, key=lambda row: (p[row], row))[:k])


def false_share(accepted, wrong):
    return Fraction(sum(bool(wrong[row]) for row in accepted), max(len(accepted), 1))


# -------------------------------------------------------------------- on average


@settings(max_examples=150)
@given(st.integers(3, 40), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_accepted_are_those_of_benjamini_hochberg_on_conformal_p_values(m, n, seed):
    rng = np.random.default_rng(seed)
    confidence = np.sort(rng.random(m + n))[::-1]
    wrong = rng.random(m + n) < (1 - confidence) * rng.random()
    checked = np.isin(np.arange(m + n), rng.permutation(m + n)[:m])
    alpha = Fraction(3, m) + Fraction(int(rng.integers(0, 20)), 100)
    if alpha < 1:
        found = decided(confidence, wrong, checked, alpha)
        assert set(found.rows[found.accepted].tolist()) == selected(wrong, checked, alpha)


def test_over_all_choices_of_checks_the_false_share_is_at_most_alpha_and_both_corrections_are_needed():
    """Every pattern of wrong labels among 7 rows, every choice of 4 or 5 rows to check: exact expectations."""
    worst = dict.fromkeys(("as it is", "without the +1", "without Benjamini–Hochberg"), Fraction(0))
    for alpha, m in ((Fraction(1, 3), 4), (Fraction(1, 2), 5)):
        for wrong in product((False, True), repeat=7):
            sums = dict.fromkeys(worst, Fraction(0))
            choices = list(combinations(range(7), m))
            for chosen in choices:
                checked = [row in chosen for row in range(7)]
                sums["as it is"] += false_share(selected(wrong, checked, alpha), wrong)
                sums["without the +1"] += false_share(selected(wrong, checked, alpha, plus=0), wrong)
                loose = selected(wrong, checked, alpha, adjusted=False)
                sums["without Benjamini–Hochberg"] += false_share(loose, wrong)
            for name in worst:
                worst[name] = max(worst[name], sums[name] / len(choices) / alpha)
    assert worst["as it is"] <= 1
    assert worst["as it is"] > 0.75
    assert worst["without the +1"] > 1
    assert worst["without Benjamini–Hochberg"] > 1


@pytest.mark.parametrize("levels", [1, 3])
def test_ties_are_broken_by_noise_of_the_row_and_stay_valid_whatever_the_seed(rng, levels):
    shares, taken = [], []
    for _ in range(600):
        confidence = rng.integers(0, levels, 120) / levels
        wrong = rng.random(120) < 0.12
        checked = np.isin(np.arange(120), rng.permutation(120)[:60])
        found = decided(confidence, wrong, checked, 0.1, seed=3)
        shares.append(float(false_share(found.rows[found.accepted], wrong)))
        taken.append(found.accepted.mean())
    assert np.mean(shares) <= 0.1 + 3 * np.std(shares) / np.sqrt(600)
    assert np.mean((np.array(taken) > 0) & (np.array(taken) < 1)) > 0, "a block of ties can be accepted in part"


def test_the_average_is_kept_over_samples_of_checks_and_so_is_the_bound_printed_beside_it(rng):
    """Proposals that are wrong where the model is sure: without the correction the share would be above."""
    shares, broken = [], []
    for _ in range(500):
        confidence = rng.random(260)
        wrong = rng.random(260) < np.where(confidence > 0.5, 0.06, 0.3)
        checked = np.isin(np.arange(260), rng.permutation(260)[:60])
        found = decided(confidence, wrong, checked, 0.05)
        shares.append(float(false_share(found.rows[found.accepted], wrong)))
        if found.accepted.any():
            broken.append(shares[-1] > found.bound + 1e-9)
            assert found.guarantee.claims[0].delta == 0.05, "the bound for this draw is printed first"
    assert np.mean(shares) <= 0.05 + 3 * np.std(shares) / np.sqrt(500)
    assert np.mean(shares) > 0.01
    assert binom.sf(sum(broken) - 1, 500, 0.05) > 1e-3


def test_the_average_is_kept_at_whichever_of_several_looks_accepts_most(rng):
    """Stopping where most is accepted picks the looks that were lucky: each at the whole error, it fails."""
    n, sizes = 400, (20, 30, 45, 70, 100)
    confidence, shares = np.linspace(1, 0, n), {1: [], len(sizes): []}
    for _ in range(300):
        wrong, order = rng.random(n) < np.linspace(0, 1, n), rng.permutation(n)
        for looks, kept in shares.items():
            each = [
                decided(confidence, wrong, np.isin(np.arange(n), order[:m]), 0.1, "average", look=looks)
                for m in sizes
            ]
            most = max(each, key=lambda one: int(one.accepted.sum()))
            kept.append(float(false_share(most.rows[most.accepted], wrong)))
    assert np.mean(shares[1]) > 0.1 + 3 * np.std(shares[1]) / np.sqrt(300)
    assert np.mean(shares[len(sizes)]) <= 0.1
    found = decided(confidence, np.zeros(n, bool), np.arange(n) % 2 == 0, 0.1, "average", look=5)
    assert printed(found).count("This holds at whichever of 5 looks you stop") == 2
    few = decided(confidence, np.zeros(n, bool), np.arange(n) < 20, 0.1, "average", look=5)
    assert "max error 10 % needs at least 49 verified rows, and there are 20" in printed(few)


def test_on_average_as_few_rows_decide_as_validity_needs():
    """p ≥ 1/(m + 1), and all n rows need p ≤ α: 19 verified rows at 5 %."""
    for m, expected in ((18, False), (19, True)):
        found = decided(np.linspace(1, 0, 200), np.zeros(200, bool), np.arange(200) < m, 0.05)
        assert found.accepted.all() if expected else not found.accepted.any()
        assert ("needs at least 19 verified rows, and there are 18" in printed(found)) != expected
    assert "counts as 0 %" in printed(found)
    assert printed(found).index("19 of 20") < printed(found).index("on average")
    assert "rely on it, and not on the average" in printed(found)


# -------------------------------------------------------------------- of the accepted rows


def worst_order(n, m, limit, allowed):
    """A row order and wrong labels that break a limit as often as any: the first limit + allowed + 1 rows."""
    return np.linspace(1, 0, n), np.arange(n) < limit + allowed + 1


def test_of_the_accepted_rows_few_are_wrong_in_19_of_20_draws_because_all_sizes_hold_together(rng, monkeypatch):
    """Wrong rows so that each size is broken in one of 20 draws where it stands alone."""
    n, m, error = 2000, 400, 0.1
    sizes = [(n - m) * part // 20 for part in range(1, 21)]
    alone = [allowed_wrong(n, floor(error * size), m, 0.05) for size in sizes]
    wrong, before = np.zeros(n, bool), 0
    for size, allowed in zip(sizes, alone, strict=True):
        if allowed is not None:
            end, count = int(0.94 * size * n / (n - m)), floor(error * size) + allowed + 1
            wrong[end - count + before : end] = True
            before = count
    broken = {"together": 0, "each alone": 0}
    for _ in range(400):
        checked = rng.permutation(n) < m
        for way in broken:
            with monkeypatch.context() as undone:
                if way == "each alone":
                    undone.setattr("setwise.decisions.modes.joint_allowed", lambda *_: alone)
                found = decided(np.linspace(1, 0, n), wrong, checked, error, "accepted")
            broken[way] += wrong[found.rows][found.accepted].sum() > error * found.accepted.sum()
    assert binom.sf(broken["together"] - 1, 400, 0.05) > 1e-3
    assert binom.sf(broken["each alone"] - 1, 400, 0.05) < 1e-2


def test_the_accepted_share_is_promised_of_the_accepted_rows():
    confidence, checked = np.linspace(1, 0, 1000), np.arange(1000) % 2 == 0
    found = decided(confidence, np.arange(1000) >= 600, checked, 0.05, "accepted")
    assert 280 <= found.accepted.sum() <= 310
    assert found.accepted.sum() == (found.confidence >= found.threshold).sum()
    assert (found.guarantee.promised, found.guarantee.delta, found.bound) == (0.95, 0.05, 0.05)
    few = decided(confidence, np.zeros(1000, bool), np.arange(1000) < 50, 0.05, "accepted")
    assert "at least 60 verified rows, and there are 50" in printed(few)
    assert decided(confidence, np.zeros(1000, bool), np.arange(1000) < 60, 0.05, "accepted").accepted.all()


# -------------------------------------------------------------------- of the finished data set


def share_broken(rng, mode, confidence, wrong, m, limit, draws=400, **options):
    """In which share of draws more than `limit` labels are accepted and wrong."""
    broken = 0
    for seed in range(draws):
        checked = rng.permutation(len(wrong)) < m
        found = decided(confidence, wrong, checked, 0.05, mode, seed, **options)
        broken += wrong[found.rows][found.accepted].sum() > limit
    return broken / draws


def test_of_the_finished_data_set_few_labels_are_wrong_and_not_one_verified_error_more_is_allowed(rng, monkeypatch):
    n, m, limit = 400, 100, 20
    confidence, wrong = worst_order(n, m, limit, allowed_wrong(n, limit, m, 0.05))
    kept = share_broken(rng, "overall", confidence, wrong, m, limit)
    assert binom.sf(round(kept * 400) - 1, 400, 0.05) > 1e-3
    monkeypatch.setattr("setwise.decisions.modes.allowed_wrong", lambda *sizes: allowed_wrong(*sizes) + 1)
    confidence, wrong = worst_order(n, m, limit, allowed_wrong(n, limit, m, 0.05) + 1)
    assert share_broken(rng, "overall", confidence, wrong, m, limit) > 0.1


def test_ties_are_decided_by_noise_and_keep_the_bound(rng):
    wrong = np.arange(400) < 30
    for confidence in (np.zeros(400), np.arange(400) % 3):
        kept = share_broken(rng, "overall", confidence, wrong, 100, 20)
        assert binom.sf(round(kept * 400) - 1, 400, 0.05) > 1e-3


@pytest.mark.parametrize("mode", ["overall", "accepted", "average"])
def test_all_wrong_none_wrong_and_next_to_no_rows(mode):
    for n, m in ((1, 0), (2, 1), (3, 2), (40, 1), (40, 39), (100, 60)):
        confidence, checked = np.linspace(1, 0, n), np.arange(n) < m
        for wrong in (np.zeros(n, bool), np.ones(n, bool)):
            found = decided(confidence, wrong, checked, 0.05, mode)
            assert len(found) == n - m
            assert not (found.accepted & wrong[found.rows]).sum() > 0.05 * n
            assert (found.curve.accepted <= n - m).all()
            str(found)
    assert decided(confidence, np.zeros(n, bool), checked, 0.1, mode).accepted.all()


def test_where_all_rows_but_as_many_as_may_be_wrong_are_verified_the_rest_is_accepted():
    checked = np.arange(100) < 95
    assert decided(np.linspace(1, 0, 100), np.ones(100, bool), checked, 0.05, "overall").accepted.all()
    assert not decided(np.linspace(1, 0, 100), np.ones(100, bool), checked, 0.04, "overall").accepted.any()


def test_too_few_verified_rows_accept_nothing_and_the_number_needed_is_named():
    for n, needed in ((100, 39), (2000, 57)):
        right, confidence = np.zeros(n, bool), np.linspace(1, 0, n)
        few = decided(confidence, right, np.arange(n) < needed - 1, 0.05, "overall")
        assert not few.accepted.any()
        assert few.guarantee.promised is None
        assert f"max error 5 % needs at least {needed} verified rows, and there are {needed - 1}" in printed(few)
        assert "By the curve, max error 10 % would accept" in printed(few)
        assert decided(confidence, right, np.arange(n) < needed, 0.05, "overall").accepted.all()


def test_what_is_printed_is_the_number_of_labels_that_may_be_wrong():
    confidence, checked = np.linspace(1, 0, 584), np.arange(584) % 5 == 0
    found = decided(confidence, confidence < 0.3, checked, 0.05, "overall")
    left = int((~found.accepted).sum())
    assert f"once the {left} are corrected, at most 29 of all 584 labels are wrong (5 %), in 19 of 20" in printed(
        found
    )
    assert found.bound == 29 / 584
    assert found.guarantee.promised == pytest.approx(1 - 29 / 584)
    first = found.deciding[0]
    assert f"Look first at: rows {first}" in printed(found)
    assert checked[found.deciding].all()
    assert (confidence[found.deciding] < 0.3).all()


def test_the_curve_holds_at_all_points_and_you_may_choose_by_it(rng):
    """Choosing the error that accepts something, among all of them, at δ each, fails too often."""
    n, m = 400, 100
    confidence = np.linspace(1, 0, n)
    errors = (0.01, 0.02, 0.05, 0.1, 0.2)
    broken = {"curve": 0, "each alone": 0}
    wrong = np.zeros(n, bool)
    for error in errors[1:]:  # as many wrong rows at the top as break this error, one after the other
        allowed = allowed_wrong(n, floor(error * n), m, 0.05)
        wrong[: floor(error * n) + (0 if allowed is None else allowed) + 1] = True
    for _ in range(400):
        checked = rng.permutation(n) < m
        found = decided(confidence, wrong, checked, 0.05, "overall")
        unseen = [wrong[found.rows][np.argsort(-found.confidence)][:k].sum() for k in found.curve.accepted]
        broken["curve"] += (np.array(unseen) > np.array(errors) * n).any()
        each = [decided(confidence, wrong, checked, error, "overall") for error in errors]
        broken["each alone"] += any(
            wrong[one.rows][one.accepted].sum() > e * n for one, e in zip(each, errors, strict=True)
        )
    assert binom.sf(broken["curve"] - 1, 400, 0.05) > 1e-3
    assert broken["each alone"] > broken["curve"]
    chosen = found.choose(0.2)
    assert (chosen.mode, chosen.max_error, int(chosen.accepted.sum())) == ("overall", 0.2, found.curve.accepted[-1])
    assert "at most 80 of all 400 labels are wrong (20 %)" in printed(chosen)
    with pytest.raises(InputError, match="0.07 is not on the curve; choose one of 0.01, 0.02, 0.05, 0.1, 0.2"):
        found.choose(0.07)
    assert list(found.curve.to_frame()["max_error"]) == list(errors)
    assert str(found.curve).endswith("take the first decision, or choose from the curve alone.")
    assert found.curve.least is None or found.curve.least in errors


def test_to_keep_the_first_decision_and_else_to_choose_is_not_advised(rng):
    """Only where no verified label can have an influence may a refused first decision lead to the curve."""
    n, m, error = 400, 180, 0.01
    limits = tuple(floor(each * n) for each in (0.01, 0.02, 0.05, 0.1, 0.2))
    first, together = allowed_wrong(n, limits[0], m, 0.05), joint_allowed(n, limits, m, 0.05)
    assert (first, together[0]) == (0, None), "alone the first error accepts, on the curve it does not"
    marked = [limits[0] + first + 1, *(limit + k + 1 for limit, k in zip(limits[1:], together[1:], strict=True))]
    gap, wrong, ends, place = (n - marked[-1]) // len(marked), np.zeros(n, bool), [], 0
    for more in np.diff([0, *marked]):  # wrong rows that break each bound, then right ones
        wrong[place : place + more] = True
        ends.append((place + more + gap / 2) / n)
        place += more + gap
    broken = {"keep or choose": 0, "curve alone": 0}
    for _ in range(500):
        found = decided(np.linspace(1, 0, n), wrong, rng.permutation(n) < m, error, "overall")
        unseen = np.cumsum(wrong[found.rows][np.argsort(-found.confidence)])
        for rule in broken:
            taken = found.curve.accepted.copy()
            taken[0] = found.accepted.sum() if rule == "keep or choose" else taken[0]
            at = next((i for i, (k, end) in enumerate(zip(taken, ends, strict=True)) if k / len(found) > end), 4)
            broken[rule] += taken[at] > 0 and unseen[taken[at] - 1] > limits[at]
    assert binom.sf(broken["curve alone"] - 1, 500, 0.05) > 1e-3
    assert binom.sf(broken["keep or choose"] - 1, 500, 0.05) < 1e-3
    none = decided(np.linspace(1, 0, n), np.arange(n) < 60, np.arange(n) % 2 == 0, error, "overall")
    assert not none.accepted.any()
    assert "with high confidence" in printed(none)
    assert "By the curve" not in printed(none)


def test_looks_that_were_planned_share_delta(rng):
    """Three looks at growing numbers of verified rows; whoever stops at the first that accepts all rows."""
    n, limit, sizes = 400, 20, (60, 100, 140)
    confidence, wrong = np.zeros(n), np.arange(n) < limit + 8
    broken = {1: 0, 3: 0}
    for seed in range(500):
        order = rng.permutation(n)
        for looks in broken:
            for m in sizes:
                found = decided(
                    confidence, wrong, np.isin(np.arange(n), order[:m]), 0.05, "overall", seed, look=looks
                )
                if found.accepted.all():
                    break
            broken[looks] += wrong[found.rows][found.accepted].sum() > limit
    assert binom.sf(broken[3] - 1, 500, 0.05) > 1e-3
    assert broken[1] > 1.5 * broken[3]
    assert "This holds at whichever of 3 looks you stop" in printed(
        decided(confidence, np.zeros(n, bool), np.arange(n) < 200, 0.05, "overall", look=3)
    )
    for bad in (0, 1.5, True, "two"):
        with pytest.raises(InputError, match="look: .* is no number of looks; use look=1 for a single look"):
            decided(confidence, wrong, np.arange(n) < 60, 0.05, look=bad)


def test_nothing_is_accepted_where_the_surest_rows_are_wrong():
    confidence, checked = np.linspace(1, 0, 1000), np.arange(1000) % 2 == 0
    for mode in ("average", "accepted"):
        found = decided(confidence, confidence > 0.7, checked, 0.05, mode)
        assert not found.accepted.any()
        assert found.threshold == np.inf
        assert "labels proposed for verified rows are wrong" in printed(found)


def test_the_verified_rows_that_decide_are_named():
    confidence = np.linspace(1, 0, 100)
    for wrong, told in (
        ([10], "row 10, the only one whose verified label contradicts the proposal."),
        ([10, 4], "rows 4 and 10, whose verified labels contradict the most confident proposals."),
    ):
        found = decided(confidence, np.isin(np.arange(100), wrong), np.arange(100) % 2 == 0, 0.2, "overall")
        assert found.guarantee.look_first.startswith(f"{told} See whether")
    wrong = np.arange(100) >= 40
    found = decided(confidence, wrong, np.arange(100) % 2 == 0, 0.2, "overall")
    contradicted = np.flatnonzero(wrong & (np.arange(100) % 2 == 0))
    before = int((contradicted < found.rows[found.accepted].max()).sum())
    assert before > 3
    assert found.deciding.tolist() == contradicted[: before + 1].tolist()


def test_more_verified_rows_are_advised_where_they_would_accept_much_more():
    confidence, wrong = np.linspace(1, 0, 1000), np.arange(1000) % 10 == 9
    few = decided(confidence, wrong, np.arange(1000) % 10 > 8, 0.05, "overall")
    assert "verified rows about" not in printed(few), "nothing is accepted"
    some = decided(confidence, wrong & (np.arange(1000) > 300), np.arange(1000) % 7 == 0, 0.05, "overall")
    more = decided(confidence, wrong & (np.arange(1000) > 300), np.arange(1000) % 7 < 2, 0.05, "overall")
    assert f"With {2 * some.verified} verified rows about " in printed(some)
    told = int(re.search(r"verified rows about (\d+) % would be accepted", printed(some))[1])
    assert abs(told / 100 - more.accepted.mean()) < 0.1
    assert told / 100 > some.accepted.mean()


# -------------------------------------------------------------------- of a calibration


@pytest.fixture(scope="module")
def world():
    """Probabilities, truth, candidate sets and votes of 900 rows, of which 200 are verified."""
    rng = np.random.default_rng(6)
    p = rng.dirichlet(np.full(4, 0.25), 900)
    y = labels_from(rng, p)
    sets = (np.arange(4) == y[:, None]) | (rng.random((900, 4)) < 0.2)
    said = np.where(rng.random((900, 3)) < 0.7, y[:, None], rng.integers(0, 4, (900, 3)))
    votes = Votes.from_matrix(said, classes=range(4), annotators=["ann", "bob", "cyd"])
    verified = np.full(900, None)
    verified[rng.permutation(900)[:200]] = 1
    verified = np.where(verified == 1, y, None)
    return p, y, sets, votes, verified


def error(found, truth):
    return (found.labels != truth[found.rows])[found.accepted].mean()


@pytest.mark.parametrize("kind", ["sets", "votes"])
@pytest.mark.parametrize("mode", ["overall", "average", "accepted"])
def test_own_rows_are_those_that_nobody_checked_and_labels_are_the_users(world, kind, mode):
    p, y, sets, votes, verified = world
    names = np.array(["ant", "bee", "cat", "dog"])
    given = setwise.LabelSets.from_mask(sets, names) if kind == "sets" else votes.recode(
        setwise.LabelSets.from_mask(sets, names).vocabulary
    )  # fmt: skip
    made = conformalize(p, given, verified=[None if v is None else names[v] for v in verified], random_state=0)
    found = made.triage(max_error=0.1, mode=mode)
    assert found.rows.tolist() == np.flatnonzero([v is None for v in verified]).tolist()
    assert len(found) == len(found.labels) == len(found.accepted) == len(found.confidence) == 700
    assert set(found.labels.tolist()) <= set(names.tolist())
    assert found.accepted.mean() > 0.3
    assert error(found, names[y]) < 0.12
    assert found.verified == 200
    named = {premise.name for premise in found.guarantee.premises}
    assert named == {"verified_at_random", "verified_right", "labels_unseen"}
    assert found.guarantee.promised == pytest.approx(1 - found.bound)
    again = made.triage(max_error=0.1, mode=mode)
    assert np.array_equal(again.accepted, found.accepted)


@pytest.mark.parametrize("brought", ["nothing", "candidates", "votes"])
def test_new_rows_are_decided_by_what_they_bring_and_survive_a_file(world, brought, tmp_path):
    p, y, sets, votes, verified = world
    given = votes if brought == "votes" else sets
    made = conformalize(p[:600], given[:600], verified=verified[:600], random_state=0)
    new = None if brought == "nothing" else given[600:]
    found = made.triage(p[600:], new, max_error=0.1)
    assert found.rows.tolist() == list(range(300))
    assert error(found, y[600:]) < 0.2
    assert found.guarantee.promised == 0.9
    named = {premise.name for premise in found.guarantee.premises}
    assert {"same_source", "unseen", "verified_at_random"} <= named
    assert ("same_candidates" in named) == (brought == "candidates")
    assert ("same_annotators" in named) == (brought == "votes")
    made.save(tmp_path / "made")
    again = Calibration.load(tmp_path / "made").triage(p[600:], new, max_error=0.1)
    assert np.array_equal(again.accepted, found.accepted)
    assert str(again.guarantee) == str(found.guarantee)


def test_votes_and_model_together_accept_more_than_either(world):
    p, _, _, votes, verified = world
    both = conformalize(p, votes, verified=verified, random_state=0).triage(max_error=0.03).accepted.mean()
    alone = setwise.triage(votes, verified, max_error=0.03, random_state=0).accepted.mean()
    model = conformalize(p, np.ones((900, 4), bool), verified=verified, random_state=0).triage(max_error=0.03)
    assert both > max(alone, model.accepted.mean())
    together = setwise.triage(votes, verified, p, max_error=0.03, random_state=0).accepted.mean()
    assert together == pytest.approx(both, abs=0.01)


@pytest.mark.parametrize("kind", ["sets", "votes"])
def test_proposals_never_see_a_verified_label(world, kind):
    p, _, sets, votes, verified = world
    given = sets if kind == "sets" else votes
    other = np.array([None if v is None else (v + 1) % 4 for v in verified], dtype=object)
    with pytest.warns(MisuseWarning) if kind == "sets" else nullcontext():
        lying = conformalize(p[:600], given[:600], "max", verified=other[:600], random_state=0)
    honest = conformalize(p[:600], given[:600], "max", verified=verified[:600], random_state=0)
    for rows in ((None, None), (p[600:], given[600:])):
        a, b = honest.triage(*rows), lying.triage(*rows)
        assert np.array_equal(a.labels, b.labels)
        assert np.array_equal(a.confidence, b.confidence)
    checked = honest.evidence.consensus
    assert np.array_equal(checked, lying.evidence.consensus)


def test_the_function_of_a_row_is_the_same_for_checked_and_new_rows(world):
    """A checked row that comes again as a new one, with the same votes, has the same label and confidence."""
    p, _, _, votes, verified = world
    made = conformalize(p, votes, verified=verified)
    rows = np.flatnonzero([v is not None for v in verified])
    again = made.triage(p[rows], votes[rows])
    assert np.array_equal(again.labels, made.evidence.answered[rows])
    assert np.array_equal(again.confidence, made.evidence.answered_confidence[rows])


def test_a_label_vector_counts_as_verified(world):
    p, y, sets, _, _ = world
    made = conformalize(p[:600], y[:600])
    found = made.triage(p[600:], max_error=0.1)
    assert found.verified == 600
    assert error(found, y[600:]) < 0.2
    assert "the labels are right" in printed(found)
    with pytest.raises(InputError, match="every calibration row has its label.*probabilities=…"):
        made.triage()
    with pytest.raises(InputError, match="candidates: .*leave them out"):
        made.triage(p[600:], sets[600:])
    with pytest.raises(InputError, match="verified=…"):
        conformalize(p, y, miss_rate=0.05).triage(p)


def test_labels_of_one_annotator_with_some_verified_are_proposals(world):
    p, y, _, _, verified = world
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(900) < 0.15, rng.integers(0, 4, 900), y)
    with pytest.warns(MisuseWarning, match="not among its candidates"):
        found = conformalize(p, noisy, "max", verified=verified, random_state=0).triage(max_error=0.1)
    assert np.array_equal(found.labels, noisy[found.rows])
    assert found.accepted.mean() > 0.5


def test_review_is_ordered_by_confidence_and_the_frame_says_all(world):
    p, _, sets, _, verified = world
    found = conformalize(p, sets, verified=verified, random_state=0).triage(max_error=0.05)
    of_row = dict(zip(found.rows.tolist(), found.confidence.tolist(), strict=True))
    order = [of_row[row] for row in found.review.tolist()]
    assert order == sorted(order)
    assert set(found.review.tolist()) == set(found.rows[~found.accepted].tolist())
    frame = found.to_frame()
    assert list(frame.columns) == ["row", "label", "confidence", "accepted", "review"]
    listed = frame.dropna(subset="review").sort_values("review")
    assert listed["row"].tolist() == found.review.tolist()
    assert listed["review"].tolist() == list(range(1, len(found.review) + 1))
    first = str(found).splitlines()[0]
    assert first.startswith(f"{int(found.accepted.sum()):,} of the 700 unverified labels accepted, ")
    assert first.endswith(f", {len(found.review):,} to review.")
    assert "<pre>" in found._repr_html_()


def test_nothing_to_decide_is_no_error(world):
    p, y, sets, votes, verified = world
    every = conformalize(p[:200], sets[:200], verified=y[:200])
    for mode in ("average", "accepted"):
        found = every.triage(mode=mode)
        assert len(found) == len(found.review) == 0
        assert str(found) == "No row is left to decide."
        none = conformalize(p, votes, verified=verified).triage(p[:0], votes[:0], mode=mode)
        assert len(none) == 0
        assert len(none.to_frame()) == 0


@pytest.mark.parametrize("bad", [0, 1, -0.1, 1.5, float("nan"), "much"])
def test_the_error_allowed_is_between_zero_and_one(world, bad):
    p, _, sets, _, verified = world
    made = conformalize(p, sets, verified=verified)
    with pytest.raises((ValueError, TypeError), match="max_error"):
        made.triage(max_error=bad)


def test_what_the_theory_does_not_cover_is_refused(world):
    p, y, sets, votes, verified = world
    made = conformalize(p, sets, verified=verified)
    with pytest.raises(
        InputError,
        match="mode: 'sure' is not known; use mode='overall', or use mode='accepted', or use mode='average'",
    ):
        made.triage(mode="sure")
    with pytest.raises(InputError, match="triage needs verified labels.*use verified=…"):
        conformalize(p, sets).triage()
    share = np.mean([label is not None for label in verified])
    with pytest.raises(InputError, match="unequal probabilities"):
        conformalize(p, sets, verified=verified, verified_probability=share * np.linspace(0.9, 1.1, 900)).triage()
    with pytest.raises(InputError, match="weighted or grouped"):
        conformalize(p, sets, "max", verified=verified, groups=np.arange(900) // 2).triage()
    with pytest.raises(InputError, match="weighted or grouped"):
        conformalize(p, sets, "max", verified=verified, sample_weight=np.ones(900) + (y > 1)).triage()
    with pytest.raises(InputError, match="candidates: those of new rows; use probabilities=…"):
        made.triage(candidates=sets)
    with pytest.raises(InputError, match="votes of new rows are used where calibration rows have votes"):
        made.triage(p, votes)
    with pytest.raises(InputError, match="leave them out"):
        conformalize(p, votes, verified=verified).triage(p, sets)
    with pytest.raises(ValueError, match="candidates: 899 rows for 900"):
        made.triage(p, sets[1:])
    with pytest.raises(InputError, match="expected Votes"):
        setwise.triage(sets, verified)
    with pytest.raises(InputError, match="use verified=…"):
        setwise.triage(votes, None)


def test_checks_that_were_not_drawn_at_random_void_the_claim(world):
    p, y, sets, votes, _ = world
    sure = np.argsort(-p.max(axis=1))[:200]
    verified = np.full(900, None)
    verified[sure] = y[sure]
    for brought in (sets, votes):
        with pytest.warns(MisuseWarning, match="not a random choice"):
            found = conformalize(p, brought, verified=verified).triage()
        assert found.guarantee.promised is None
        assert "Contradicted" in printed(found)
    with pytest.warns(MisuseWarning, match="not a random choice"):
        assert setwise.triage(votes, verified, p).guarantee.promised is None


def test_each_category_is_decided_by_its_own_verified_rows(world):
    p, y, sets, votes, verified = world
    half = np.where(np.arange(900) % 2, "odd", "even")
    found = setwise.triage(votes, verified, p, max_error=0.1, by=half, random_state=0)
    assert list(found.by_category) == ["even", "odd"]
    assert found.rows.tolist() == [row for row in range(900) if verified[row] is None]
    for name, part in found.by_category.items():
        mine = half[found.rows] == name
        assert np.array_equal(part.accepted, found.accepted[mine])
        alone = np.where(half == name, verified, None)
        assert part.verified == sum(label is not None for label in alone)
        limit = floor(0.1 * (half == name).sum() + 1e-9)
        wrong = (part.labels != y[part.rows])[part.accepted].sum()
        assert wrong <= limit
        assert f"at most {limit} of all 450 labels of category {name!r} are wrong" in printed(found)
    assert (found.curve, found.bound, found.guarantee.by_category.keys()) == (None, None, {"even", "odd"})
    with pytest.raises(InputError, match="choose in by_category"):
        found.choose(0.2)
    by_label = setwise.triage(votes, verified, p, max_error=0.2, by="predicted", random_state=0)
    assert set(by_label.by_category) == {0, 1, 2, 3}
    made = conformalize(p[:600], sets[:600], verified=verified[:600], by=half[:600], random_state=0)
    new = made.triage(p[600:], sets[600:], max_error=0.2, by=half[600:])
    assert list(new.by_category) == ["even", "odd"]
    assert "of the 150 new labels of category 'odd' are wrong" in printed(new)
    assert made.triage(max_error=0.2, by=half[:600]).by_category.keys() == {"even", "odd"}
    assert set(made.triage(p[600:], sets[600:], by="predicted").by_category) == {0, 1, 2, 3}
    with pytest.raises(
        InputError, match="by: the calibration rows have no categories; pass by=… to conformalize too"
    ):
        conformalize(p[:600], sets[:600], verified=verified[:600]).triage(p[600:], by=half[600:])
    with pytest.raises(InputError, match="by: 'size' is not known; use by='predicted'"):
        setwise.triage(votes, verified, by="size")


@pytest.mark.parametrize("answered", ["by all", "not by some"])
def test_there_is_one_category_for_each_row_of_the_votes(world, rng, answered):
    y = rng.integers(0, 2, 200)
    lists = [[] if answered != "by all" and i < 9 else [int(label)] * 2 for i, label in enumerate(y)]
    votes, verified = Votes.from_lists(lists, range(2)), np.where(np.arange(200) % 2, y, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MisuseWarning)  # nobody answered some
        for n in (150, 199, 201, 400):
            with pytest.raises(ValueError, match=f"by: {n} entries for 200 rows; give one per row"):
                setwise.triage(votes, verified, max_error=0.2, by=np.repeat("a", n))
        mixed = np.array(["a", 1], dtype=object)[rng.integers(0, 2, 200)]
        found = setwise.triage(votes, verified, max_error=0.2, by=mixed, random_state=0)
    assert set(found.by_category) == {"a", 1}
    for name, part in found.by_category.items():
        assert set(mixed[part.rows]) == {name}


def test_categories_that_end_before_the_rows_are_refused(world):
    p, _, sets, _, verified = world
    gone = sets.copy()
    gone[3] = False
    dropped = np.array([None if i == 3 else v for i, v in enumerate(verified)], dtype=object)
    made = conformalize(p, gone, verified=dropped, missing="drop")
    with pytest.raises(ValueError, match="by: 800 entries for 900 rows"):
        made.triage(by=np.repeat("a", 800))


def test_categories_of_sets_make_no_difference(world):
    p, _, sets, _, verified = world
    plain = conformalize(p, sets, verified=verified, random_state=0)
    by = conformalize(p, sets, verified=verified, by="predicted", random_state=0)
    for rows in (None, p[:50]):
        assert np.array_equal(plain.triage(rows).accepted, by.triage(rows).accepted)


def test_rows_without_candidates_that_were_dropped_keep_their_numbers(world):
    p, _, sets, _, verified = world
    gone = sets.copy()
    gone[[3, 500]] = False
    dropped = np.array([None if i in {3, 500} else v for i, v in enumerate(verified)], dtype=object)
    found = conformalize(p, gone, verified=dropped, missing="drop").triage()
    assert found.rows.tolist() == [i for i, v in enumerate(dropped) if v is None and i not in {3, 500}]


# -------------------------------------------------------------------- estimators


@pytest.fixture(scope="module")
def features(world):
    _, y, *_ = world
    return 2 * np.eye(4)[y] + np.random.default_rng(2).normal(size=(900, 4))


def test_a_classifier_decides_its_calibration_rows_and_new_ones(world, features, tmp_path):
    _, y, sets, votes, verified = world
    for brought in (sets, votes):
        model = ConformalClassifier(GaussianNB(), calibration_size=0.5, random_state=0)
        model.fit(features[:800], brought[:800], verified=verified[:800])
        own = model.triage(max_error=0.1)
        assert set(own.rows.tolist()) < set(model.calibration_rows_.tolist())
        assert all(verified[row] is None for row in own.rows)
        assert error(own, y) < 0.15
        new = model.triage(features[800:], brought[800:], max_error=0.1, mode="accepted")
        assert len(new) == 100
    model.save(tmp_path / "model")
    again = ConformalClassifier.load(tmp_path / "model")
    assert np.array_equal(again.triage(max_error=0.1).rows, own.rows)
    with pytest.warns(MisuseWarning):
        model.triage(features[:100])


def test_rows_that_the_model_has_seen_void_the_claim_for_new_rows_only(world, features):
    _, y, sets, _, verified = world
    model = ConformalClassifier(GaussianNB(), random_state=0).fit(features[:400], y[:400])
    with pytest.warns(MisuseWarning):
        model.conformalize(features[:400], sets[:400], verified=verified[:400])
    assert model.triage(features[400:]).guarantee.promised is None
    assert model.triage().guarantee.promised == 0.95


def test_cross_conformal_rows_are_all_decided(world, features, tmp_path):
    _, y, sets, _, verified = world
    model = CrossConformalClassifier(GaussianNB(), "max", cv=3, random_state=0).fit(features, sets)
    found = model.triage(max_error=0.1, verified=verified)
    assert found.rows.tolist() == [i for i, v in enumerate(verified) if v is None]
    assert f"the {len(y) - len(found.rows)} verified rows were drawn at random" in printed(found)
    assert error(found, y) < 0.12
    assert found.accepted.mean() > 0.5
    model.save(tmp_path / "model")
    again = CrossConformalClassifier.load(tmp_path / "model").triage(max_error=0.1, verified=verified)
    assert np.array_equal(again.accepted, found.accepted)
    with pytest.raises(InputError, match="use ConformalClassifier"):
        model.triage(features[:5] + 0.1)
    plain = CrossConformalClassifier(GaussianNB(), "max", cv=3, random_state=0).fit(features, y)
    for asked in (model, plain):
        with pytest.raises(InputError, match="use verified=…"):
            asked.triage()
    sure = np.where(model.predict_proba(features).max(axis=1) > 0.9, y, None)
    with pytest.warns(MisuseWarning, match="not a random choice"):
        chosen = model.triage(verified=sure)
    assert chosen.guarantee.promised is None


def test_ties_of_new_rows_are_broken_by_noise_of_the_row_unless_ids_are_its_source(rng):
    rest = rng.uniform(0.05, 0.25, 900)
    p = np.stack([np.full(900, 0.7), rest, 0.3 - rest], axis=1)  # all are equally confident, and no two are equal
    y = np.where(np.arange(900) % 10 > 0, 0, 1)
    every = np.ones((600, 3), bool)
    made = conformalize(p[:600], every, verified=y[:600], random_state=0)
    parts = [made.triage(p[600:], max_error=0.05, random_state=seed).accepted for seed in (None, 1, 1, 2)]
    assert all(0 < part.mean() < 0.7 for part in parts)
    assert np.array_equal(parts[1], parts[2])
    assert not np.array_equal(parts[0], parts[1])
    assert not np.array_equal(parts[1], parts[3])
    named = conformalize(p[:600], every, verified=y[:600], row_ids=np.arange(600), random_state=0)
    for seed in (None, 1):
        assert not named.triage(p[600:], max_error=0.05, random_state=seed).accepted.any()


def test_rows_chosen_with_the_seed_of_the_noise_are_a_random_choice():
    wrong_shares = []
    for seed in range(40):
        rng = np.random.default_rng([seed, 1])
        y = rng.integers(0, 2, 500)
        said = np.where(rng.random(500) < 0.9, y, 1 - y)  # one answer each: two confidences, tied throughout
        checked = np.random.default_rng(seed).random(500) < 0.2
        verified = np.where(checked, y, None)
        found = setwise.triage(Votes.from_matrix(said[:, None]), verified, None, 0.05, "average", random_state=seed)
        wrong_shares.append((found.labels != y[found.rows])[found.accepted].mean() if found.accepted.any() else 0)
    assert np.mean(wrong_shares) < 0.05  # 0.1 if the noise were that by which rows were chosen


def test_new_rows_that_differ_are_promised_nothing(rng):
    P = rng.dirichlet([1, 1, 1], 800)
    for cal in (conformalize(P[:400], labels_from(rng, P[:400])), _by_size(rng, P[:400])):
        assert cal.triage(P[400:], max_error=0.3).guarantee.claims[0].promised
        sharp = P[400:] ** 4 / (P[400:] ** 4).sum(axis=1, keepdims=True)
        claims = cal.triage(sharp, max_error=0.3).guarantee.claims
        assert not any(claim.promised for claim in claims)
        assert "come from the same source (the largest probability" in printed(cal.triage(sharp, max_error=0.3))


def _by_size(rng, P):
    """Calibrated by category, which makes no difference to triage."""
    return conformalize(P, labels_from(rng, P), by=rng.choice(["a", "b"], len(P)))


def test_rows_with_other_features_or_learned_from_are_promised_nothing(rng):
    y = rng.integers(0, 2, 900)
    X = np.c_[2 * y + rng.normal(size=900), rng.normal(size=900)]
    model = ConformalClassifier(GaussianNB(), random_state=0).fit(X[:600], y[:600])
    assert model.triage(X[600:], max_error=0.2).guarantee.claims[0].promised
    moved = X[600:] + np.array([0, 0.5])  # a feature that says nothing of the label
    assert "feature '1' is at most" in printed(model.triage(moved, max_error=0.2).guarantee)
    assert not model.triage(moved, max_error=0.2).guarantee.claims[0].promised
    with pytest.warns(MisuseWarning, match="learned from or calibrated on"):
        found = model.triage(X[:600][::-1], max_error=0.2)
    assert "600 rows (100%, the first is row 0) were learned from" in printed(found)


def test_verified_labels_left_among_votes_without_names_are_noticed(rng):
    y = rng.integers(0, 2, 400)
    said = np.where(rng.random((400, 5)) < 0.8, y[:, None], 1 - y[:, None]).astype(object)
    checked = rng.permutation(400)[:60]
    verified = np.full(400, None)
    verified[checked] = y[checked]
    honest = setwise.triage(Votes.from_matrix(said), verified, random_state=0)
    assert honest.guarantee.claims[0].promised
    unnamed = [[label for label in row if label is not None] for row in np.c_[said, verified].tolist()]
    with pytest.warns(MisuseWarning, match=r"the number of answers \(6.00 on average, 5.00 elsewhere"):
        found = setwise.triage(Votes.from_lists(unnamed), verified, random_state=0)
    assert not found.guarantee.claims[0].promised


def two_kinds(rng, n):
    """Rows of which the model is sure, with 10 % of errors, and rows with 40 %; only two rows are distinct."""
    unsure = rng.random(n) < 0.5
    p = np.where(unsure[:, None], [0.6, 0.4], [0.9, 0.1])
    return p, (rng.random(n) > p[:, 0]).astype(int), unsure


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_rows_in_another_floating_type_tie_with_the_verified_rows_that_they_equal(kind, rng):
    p, y, _ = two_kinds(rng, 600)
    new, _, unsure = two_kinds(rng, 400)
    made = conformalize(p, np.ones((600, 2), bool), verified=y, random_state=0)
    for max_error in (0.2, 0.3):
        wanted, found = made.triage(new, max_error=max_error), made.triage(new.astype(kind), max_error=max_error)
        assert found.accepted[~unsure].all()
        assert found.accepted[unsure].mean() <= wanted.accepted[unsure].mean()
    reverse = conformalize(p.astype(kind), np.ones((600, 2), bool), verified=y, random_state=0)
    assert not reverse.triage(new, max_error=0.2).accepted[unsure].any()


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_votes_of_rows_in_another_floating_type_cover_as_before(kind, rng):
    y = rng.integers(0, 3, 900)
    p = np.where(np.arange(3) == ((y + (rng.random(900) < 0.3)) % 3)[:, None], 0.8, 0.1)
    votes = Votes.from_matrix(
        np.where(rng.random((900, 2)) < 0.7, y[:, None], rng.integers(0, 3, (900, 2))), range(3)
    )
    verified = np.full(500, None)
    verified[:100] = y[:100]
    made = conformalize(p[:500], votes[:500], verified=verified, random_state=0)
    for level in np.arange(0.3, 0.96, 0.05):
        covered = made.predict_set(p[500:], level, candidates=votes[500:]).contains(y[500:])
        again = made.predict_set(p[500:].astype(kind), level, candidates=votes[500:]).contains(y[500:])
        assert (again >= covered).all()
    assert made.triage(p[500:].astype(kind), votes[500:], max_error=0.3).accepted.any()
    by = conformalize(p[:500], y[:500], by="predicted")
    assert (by.predict_set(p[500:].astype(kind)).contains(y[500:])).mean() > 0.8


def test_rows_that_nobody_answered_are_left_out(rng):
    y = rng.integers(0, 3, 300)
    lists = [[] if i % 50 == 7 else [int(label), int(label)] for i, label in enumerate(y)]
    verified = np.full(300, None)
    verified[:60] = y[:60]
    with pytest.warns(MisuseWarning, match="nobody answered 6 of 300 rows, which are left out"):
        found = setwise.triage(Votes.from_lists(lists, range(3)), verified, max_error=0.2, random_state=0)
    assert found.verified == 58
    assert 107 not in found.rows
    assert len(found) == 300 - 60 - 4
    p = np.eye(3)[y] * 0.8 + 0.05
    everything = setwise.triage(Votes.from_lists(lists, range(3)), verified, p / p.sum(axis=1, keepdims=True), 0.2)
    assert len(everything) == 240  # of these a model knows something


def test_categories_are_those_of_the_rows_that_were_passed_where_nobody_answered_some(rng):
    y, by = rng.integers(0, 2, 400), np.repeat(["a", "b"], 200)
    lists = [[] if i < 5 else [int(label), int(label)] for i, label in enumerate(y)]
    verified = np.where(rng.random(400) < 0.3, y, np.nan)
    with pytest.warns(MisuseWarning, match="nobody answered 5 of 400 rows"):
        found = setwise.triage(Votes.from_lists(lists, range(2)), verified, max_error=0.2, by=by, random_state=0)
    wanted = {name: int((np.isnan(verified) & (by == name) & (np.arange(400) >= 5)).sum()) for name in ("a", "b")}
    assert found.accepted.all()
    assert len(found) == sum(wanted.values())
    assert (by[found.rows] == "a").sum() == wanted["a"]


def test_chosen_rows_are_told_without_a_remedy_that_triage_does_not_take(rng):
    y = rng.integers(0, 3, 900)
    said = np.where(rng.random((900, 5)) < 0.7, y[:, None], rng.integers(0, 3, (900, 5)))
    sure = (said == y[:, None]).sum(axis=1)
    easy = rng.permutation(np.flatnonzero(sure > 3))[:150]
    verified = np.where(np.isin(np.arange(900), easy), y, np.nan)
    with pytest.warns(UserWarning, match="not a random choice") as warned:
        setwise.triage(setwise.Votes.from_matrix(said, classes=range(3)), verified)
    told = str(warned[0].message)
    assert "draw the rows to verify at random" in told
    assert "verified_probability" not in told
    assert "groups" not in told
