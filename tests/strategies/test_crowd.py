"""`votes` and `crowd`: what they promise of a random answer and of the truth, and what refutes it."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setwise import Calibration, MisuseWarning, SmallCalibrationWarning, Votes, _arrays, conformalize
from setwise.crowd.annotator_model import fit_annotators
from setwise.strategies.curves import Curve
from setwise.strategies.random_answer import _unit
from setwise.strategies.step_function_sums import Steps
from tests.conftest import labels_from, printed, simplex

K = 4


def answered(rng, y, people=3, right=0.8, k=K):
    """Answers of people who err independently."""
    return np.where(rng.random((len(y), people)) < right, y[:, None], rng.integers(0, k, (len(y), people)))


@pytest.fixture
def crowd(rng):
    p = simplex(rng, 3000, K)
    y = labels_from(rng, p)
    return p, y, answered(rng, y)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 25), st.integers(1, 99), st.integers(0, 2**32 - 1))
def test_the_threshold_is_that_of_conformal_risk_control(n, percent, seed):
    """The smallest t with (Σ share of answers above t + 1)/(n + 1) ≤ ε, in exact arithmetic."""
    rng = np.random.default_rng(seed)
    p = simplex(rng, n, 3)
    lists = [rng.integers(0, 3, rng.integers(1, 8)).tolist() for _ in range(n)]
    made = conformalize(p, Votes.from_lists(lists, classes=range(3)), "votes")
    epsilon = 1 - Fraction(percent, 100)

    def loss(t):
        return sum(Fraction(sum(1 - p[i, a] > t for a in row), len(row)) for i, row in enumerate(lists))

    fine = [
        t
        for t in sorted({1 - p[i, a] for i, row in enumerate(lists) for a in row})
        if loss(t) + 1 <= epsilon * (n + 1)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallCalibrationWarning)
        assert made.threshold(Fraction(percent, 100)) == pytest.approx(min(fine, default=np.inf))


def test_a_random_answer_is_covered_and_nothing_is_promised_of_the_truth(rng, crowd):
    p, _y, answers = crowd
    covered = []
    for _ in range(100):
        rows = rng.permutation(3000)
        c, t = rows[:200], rows[200:]
        made = conformalize(p[c], Votes.from_matrix(answers[c], classes=range(K)), "votes")
        mask = made.predict_set(p[t]).to_mask()
        covered.append(mask[np.arange(2800)[:, None], answers[t]].mean())
    assert 0.895 < np.mean(covered) < 0.915  # without the +1 of the new row 0.005 less
    guarantee = made.guarantee()
    assert guarantee.promised is None
    assert [claim.event for claim in guarantee.claims] == ["answer", "truth"]
    assert "an answer drawn at random" in printed(guarantee)


def test_crowd_covers_the_truth_without_one_true_label(rng, crowd):
    p, y, answers = crowd
    for power in (1.0, 3.0, 0.5):
        f = p**power / (p**power).sum(axis=1, keepdims=True)
        gaps = []
        for _ in range(10):
            rows = rng.permutation(3000)
            c, t = rows[:1500], rows[1500:]
            made = conformalize(
                f[c], Votes.from_matrix(answers[c], classes=range(K)), "crowd", assume="independent"
            )
            gaps.append(made.predict_set(f[t]).contains(y[t]).mean() - 0.9)
        assert abs(np.mean(gaps)) < 0.015, power
    assert made.guarantee().strategy == "crowd"
    assert "independently" in printed(made.guarantee())


def dense_posterior(answers, f, shrink):
    """EM over whole tables: answers (n, people), probabilities f."""
    k = f.shape[1]
    z, beta, shift, last = np.log(np.maximum(f, 1e-12)), 1.0, np.zeros(k), -np.inf
    prior = np.full((k, k), 1 / k) + 2 * np.eye(k)
    said = np.eye(k)[answers]  # (n, people, k)
    own = np.broadcast_to(prior / prior.sum(axis=1, keepdims=True), (answers.shape[1], k, k))
    for _ in range(200):
        q = np.exp(beta * z + shift)
        q /= q.sum(axis=1, keepdims=True)
        joint = q * np.exp(np.einsum("ijl,jkl->ik", said, np.log(own)))
        r, mean = joint / joint.sum(axis=1, keepdims=True), np.log(joint.sum(axis=1)).mean()
        counts = np.einsum("ijl,ik->jkl", said, r)
        shared = counts.sum(axis=0) + prior
        shared /= shared.sum(axis=1, keepdims=True)
        own = (counts + shrink * shared) / (counts.sum(axis=2, keepdims=True) + shrink)
        shift = shift + np.log((r.sum(axis=0) + 1 / k) / (q.sum(axis=0) + 1 / k))
        centred = z - (q * z).sum(axis=1, keepdims=True)
        beta = max(beta + ((r - q) * z).sum() / (q * centred**2).sum(), 0.0)
        if abs(mean - last) < 1e-5:
            return r
        last = mean
    return r


def test_curve_and_posterior_from_blocks_are_those_of_whole_tables(monkeypatch, crowd):
    monkeypatch.setattr(_arrays, "_BLOCK_BYTES", 2**13)  # some rows at a time, also of these few
    p, _, answers = crowd
    votes = Votes.from_matrix(answers, classes=range(K))
    posterior = fit_annotators(votes, p, shrink=20.0).posterior
    np.testing.assert_allclose(posterior, dense_posterior(answers, p, 20.0), rtol=0, atol=1e-12)
    made = conformalize(p, votes, "crowd", assume="independent")
    held = made.evidence.posterior
    dense = Curve(Steps(-p, held.__getitem__, np.ones(len(p))))
    scores = np.linspace(-1, 0, 101)
    np.testing.assert_allclose(
        made.rules[0].curve.certified.p_values(scores), dense.certified.p_values(scores), rtol=0, atol=1.1e-12
    )
    assert [made.rules[0].curve.certified.threshold(Fraction(j, 20)) for j in range(1, 20)] == [
        dense.certified.threshold(Fraction(j, 20)) for j in range(1, 20)
    ]


def test_annotators_who_copy_refute_independence(rng, crowd):
    p, _y, answers = crowd
    copied = answers.copy()
    copied[:, 2] = np.where(rng.random(3000) < 0.5, copied[:, 1], copied[:, 2])
    made = conformalize(
        p, Votes.from_counts(Votes.from_matrix(copied, classes=range(K)).counts), "crowd", assume="independent"
    )
    (claim,) = made.guarantee().claims
    assert [premise.name for premise in claim.refuted] == ["independent"]
    assert made.guarantee().promised is None
    assert made.predict_set(p[:5]).sizes.max() <= K  # the sets are still given
    assert printed(made.guarantee()).endswith(
        "Verify at least 50 rows drawn at random: auto then gives a guarantee that rests on them alone."
    )
    taken = conformalize(
        p, Votes.from_counts(Votes.from_matrix(copied, classes=range(K)).counts), assume="independent"
    )
    assert taken.guarantee().strategy == "votes"
    assert "crowd would give" in printed(taken.guarantee())


def test_independent_annotators_are_seldom_called_dependent(rng):
    refuted = 0
    for _ in range(60):
        p = simplex(rng, 600, K)
        votes = Votes.from_matrix(answered(rng, labels_from(rng, p)), classes=range(K))
        made = conformalize(p, votes, "crowd", assume="independent")
        refuted += bool(made.guarantee().claims[0].refuted)
    assert refuted <= 4  # 1 of 100 expected


def test_auto_takes_votes_crowd_or_checks(rng, crowd):
    p, y, answers = crowd
    votes = Votes.from_matrix(answers, classes=range(K))
    assert conformalize(p, votes).guarantee().strategy == "votes"
    assert conformalize(p, votes, assume="independent").guarantee().strategy == "crowd"
    verified = np.full(3000, None)
    some = rng.permutation(3000)[:50]
    verified[some] = y[some]
    made = conformalize(p, votes, verified=verified)
    assert made.guarantee().promised == 0.9
    assert made.guarantee(0.999).strategy == "votes"


def test_the_posterior_never_sees_verified_labels(rng, crowd):
    p, y, answers = crowd
    votes = Votes.from_matrix(answers, classes=range(K))
    verified = np.full(3000, None)
    verified[:100] = y[:100]
    wrong = verified.copy()
    wrong[:100] = (y[:100] + 1) % K
    made = [conformalize(p, votes, verified=told).evidence.posterior for told in (verified, wrong)]
    assert np.array_equal(*made)


@pytest.mark.parametrize("told", [{}, {"by": "predicted"}, {"assume": "independent"}])
@pytest.mark.parametrize("strategy", ["votes", "crowd"])
def test_saved_calibrations_of_votes_answer_alike(strategy, told, crowd, tmp_path):
    p, _, answers = crowd
    made = conformalize(p, Votes.from_matrix(answers, classes=range(K)), strategy, "aps", **told)
    made.save(tmp_path / "cal")
    read = Calibration.load(tmp_path / "cal")
    assert read.predict_set(p[:50]) == made.predict_set(p[:50])
    assert str(read.guarantee()) == str(made.guarantee())


def test_weights_and_groups_enter_the_random_answer(rng, crowd):
    p, _, answers = crowd
    votes = Votes.from_matrix(answers[:200], classes=range(K))
    plain = conformalize(p[:200], votes, "votes")
    equal = conformalize(p[:200], votes, "votes", sample_weight=np.full(200, 2.0))
    assert equal.threshold(0.9, sample_weight=2.0) == plain.threshold(0.9)
    alone = conformalize(p[:200], votes, "votes", groups=np.arange(200))
    assert alone.threshold(0.9) == plain.threshold(0.9)
    twice = np.repeat(np.arange(200), 2)
    together = conformalize(p[twice], votes[twice], "votes", groups=twice)
    assert together.threshold(0.9) == plain.threshold(0.9)


def test_rows_without_answers_count_as_their_worst_label(crowd):
    p, _, answers = crowd
    held = answers[:200].astype(object)
    held[:10] = None
    made = conformalize(p[:200], Votes.from_matrix(held, classes=range(K)), "votes", missing="full")
    worst = 1 - p[:10].min(axis=1)
    assert np.isin(np.round(worst, 12), np.round(1 + made.rules[0].scores, 12)).all()


@pytest.mark.parametrize("strategy", ["votes", "crowd"])
def test_candidates_that_are_no_votes_are_refused(strategy, crowd):
    p, y, _ = crowd
    with pytest.raises(ValueError, match=f"strategy '{strategy}' is about votes"):
        conformalize(p, y, strategy)


def test_one_answer_per_row_and_fifty(rng):
    p = simplex(rng, 2000, K)
    y = labels_from(rng, p)
    for people in (1, 50):
        made = conformalize(p, Votes.from_matrix(answered(rng, y, people), classes=range(K)), "crowd")
        assert abs(made.predict_set(p).contains(y).mean() - 0.9) < 0.03


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("light", [1e-300, 1e-12, 1e12])
def test_one_answer_may_outweigh_all_others(rng, light):
    p = simplex(rng, 60, 3)
    y = labels_from(rng, p)
    given = np.column_stack([y, (y + 1) % 3]).ravel()
    row, weight = np.repeat(np.arange(60), 2), np.tile([1.0, light], 60)
    votes = Votes.of(60, row, given, np.tile([0, 1], 60), weight, classes=range(3))
    made = conformalize(p, votes, verified=y)
    assert np.isfinite(made.evidence.posterior).all()
    assert made.guarantee().promised == 0.9


@pytest.mark.filterwarnings("ignore::setwise.SmallCalibrationWarning")
def test_votes_without_any_answer_by_named_annotators(rng):
    votes = Votes.from_table({"item": [0, 1], "annotator": ["a", "b"], "label": [None, None]}, classes=range(3))
    made = conformalize(simplex(rng, 2, 3), votes, missing="full", verified=[0, 1])
    assert made.predict_set(simplex(rng, 5, 3)).sizes.tolist() == [3] * 5


def test_independent_annotators_are_no_contamination_of_candidate_sets(rng):
    p = simplex(rng, 60, 3)
    y = labels_from(rng, p)
    with pytest.raises(ValueError, match="'independent' is about annotators, but candidates do not say who"):
        conformalize(p, y, assume="independent")
    votes = Votes.from_lists([[int(label)] for label in y], range(3))
    with pytest.raises(ValueError, match="strategy 'corrected' needs to know how false labels become candidates"):
        conformalize(p, votes, "corrected", assume="independent")


def test_a_model_fitted_to_the_same_rows_claims_no_proof(crowd):
    p, _, answers = crowd
    votes = Votes.from_matrix(answers[:500], classes=range(K))
    made = conformalize(p[:500], votes, "crowd", assume="independent").guarantee()
    (claim,) = made.claims
    (large,) = [premise for premise in claim.premises if premise.name == "large_sample"]
    assert "besides that of the annotator model" in printed(large)
    assert claim.note == "This is approximate"


def test_few_answers_per_annotator_and_class_do_not_confirm_an_overconfident_model(rng):
    """Thirty people with two hundred answers each over twenty classes: with shrinkage 5, 0.59 were covered."""
    k, n = 20, 3000
    p = np.exp(3 * rng.normal(size=(2 * n, k)))
    p /= p.sum(axis=1, keepdims=True)
    y = labels_from(rng, p)
    sure = p**3 / (p**3).sum(axis=1, keepdims=True)
    row, who = np.repeat(np.arange(n), 2), rng.permuted(np.tile(np.arange(30), (n, 1)), axis=1)[:, :2].ravel()
    right = rng.random(2 * n) < np.where(rng.random(30) < 0.3, 1 / k, 0.5)[who]
    said = np.where(right, y[row], (y[row] + rng.integers(1, k, 2 * n)) % k)
    votes = Votes.from_codes(n, row, range(k), said, range(30), who, classes=range(k))
    made = conformalize(sure[:n], votes, "crowd", assume="independent")
    assert made.predict_set(sure[n:]).contains(y[n:]).mean() > 0.84


def test_shares_of_answers_are_counted_in_whole_numbers_where_there_is_a_unit():
    assert _unit(np.array([0.5, 1 / 3, 0.0, 1.0])) == 6
    assert _unit(np.array([0.5, np.pi / 4])) == 1


def test_crowd_believes_the_annotator_model_whether_or_not_that_is_declared(rng):
    p = simplex(rng, 400, K)
    y = labels_from(rng, p)
    row, who = np.repeat(np.arange(400), 2), rng.integers(0, 60, 800)
    said = np.where(rng.random(800) < 0.6, y[row], rng.integers(0, K, 800))
    votes = Votes.from_codes(400, row, range(K), said, range(60), who, classes=range(K))
    declared, silent = (conformalize(p, votes, "crowd", assume=told) for told in ("independent", "nothing"))
    assert np.array_equal(silent.evidence.posterior, declared.evidence.posterior)
    assert silent.threshold(0.8) == declared.threshold(0.8)


def test_what_no_data_can_contradict_is_not_guaranteed(rng):
    p = simplex(rng, 300, K)
    y = labels_from(rng, p)
    alone = Votes.from_matrix(answered(rng, y, 1), classes=range(K))
    calls = Votes.from_proposals([[{int(a): 1.0} for a in row] for row in answered(rng, y, 5)], classes=range(K))
    for votes in (alone, calls):  # repeated calls are no second opinion
        guarantee = conformalize(p, votes, "crowd", assume="independent").guarantee()
        assert "independent" in {premise.name for premise in guarantee.claims[0].conditions}
        assert guarantee.promised is None
        assert "too few rows with two answers to tell" in printed(guarantee)
        assert "Verify at least 50 rows" in printed(guarantee)
        assert conformalize(p, votes, assume="independent").guarantee().strategy == "votes"


def test_who_answers_is_stated_only_by_those_who_state_the_model(crowd):
    p, _, answers = crowd
    votes = Votes.from_matrix(answers, classes=range(K))
    for assume, status in (("independent", "stated by you"), ("nothing", "assumed")):
        (claim,) = conformalize(p, votes, "crowd", assume=assume).guarantee().claims
        assert {premise.name: premise.status for premise in claim.premises}["who_answers"] == status


@pytest.mark.parametrize(("level", "rows"), [(0.9, 50), (0.99, 99)])
def test_votes_say_how_many_rows_to_verify(crowd, level, rows):
    p, _, answers = crowd
    votes = Votes.from_matrix(answers, classes=range(K))
    assert f"Verify {rows} rows drawn at random: auto then" in printed(conformalize(p, votes).guarantee(level))
    grouped = conformalize(p, votes, groups=np.arange(3000) // 2).guarantee(level)
    assert "Verify" not in printed(grouped)


def judged(rng, n=400, k=4):
    """A panel of near-copies, of whom most are wrong in one row of three, and the shares of their votes."""
    y = rng.integers(0, k, n)
    said = np.where(rng.random(n) < 0.65, y, rng.integers(0, k, n))[:, None].repeat(8, axis=1)
    said = np.column_stack([said, answered(rng, y, 4, 0.4, k)])
    said = np.where(rng.random(said.shape) < 0.15, rng.integers(0, k, said.shape), said)
    votes = Votes.from_matrix(said, classes=range(k))
    return votes, votes.counts / votes.counts.sum(axis=1, keepdims=True), y


def test_a_panel_of_near_copies_guarantees_nothing_until_rows_are_verified(rng):
    found = []
    for _ in range(40):
        votes, p, y = judged(rng)
        verified = np.full(200, None)
        verified[:50] = y[:50]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MisuseWarning)  # one sample in a hundred looks odd
            sets = conformalize(p[:200], votes[:200], verified=verified).predict_set(p[200:])
        alone = conformalize(p[:50], y[:50]).predict_set(p[200:])
        found.append((sets.contains(y[200:]).mean(), sets.sizes.mean(), alone.sizes.mean()))
    coverage, size, alone_size = np.mean(found, axis=0)
    assert coverage > 0.9 - 3 * np.std(found, axis=0)[0] / 40**0.5
    assert size <= 1.05 * alone_size
    for strategy, assume in (
        ("auto", "nothing"),
        ("auto", "independent"),
        ("votes", "nothing"),
        ("crowd", "independent"),
    ):
        guarantee = conformalize(p, votes, strategy, assume=assume).guarantee()
        assert guarantee.promised is None
        assert "Verify" in printed(guarantee)
    crowd = conformalize(p, votes, "crowd", assume="independent")
    assert crowd.predict_set(p).contains(y).mean() < 0.8
