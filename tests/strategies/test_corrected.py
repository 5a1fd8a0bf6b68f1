"""`corrected`: unbiased for contamination that does not depend on the example, and refused where data refute it."""

from fractions import Fraction

import numpy as np
import pytest

from setwise import AssumptionRefuted, Calibration, LabelSets, conformalize
from setwise.contamination.assumption import as_assumption
from setwise.evidence.evidence import gather
from setwise.probabilities.dense import DenseRows
from setwise.scores import LAC
from setwise.strategies import Corrected, Setting, corrected
from setwise.strategies.corrected import _centre, label_weights
from setwise.strategies.curves import Curve
from setwise.strategies.step_function_sums import Steps
from tests.conftest import candidates_from, labels_from, printed, simplex
from tests.test_scores import ALL_SCORES

NINE = Fraction(9, 10)
K = 5


def rows(rng, n, share=0.3, k=K):
    p = simplex(rng, n, k)
    y = labels_from(rng, p)
    return p, y, candidates_from(rng, y, k, share)


def asymmetric(rng, k=K):
    matrix = rng.uniform(0.05, 0.5, (k, k))
    np.fill_diagonal(matrix, 1)
    return matrix


def all_sets(k):
    """Every subset of k labels, as masks."""
    return (np.arange(2**k)[:, None] >> np.arange(k)) % 2 == 1


def probability(sets, inclusion):
    """The chance of each subset if labels enter independently."""
    return np.where(sets, inclusion, 1 - inclusion).prod(axis=1)


def evidence_of(p, mask):
    return gather(LAC(), DenseRows(p), LabelSets.from_mask(mask), needs={"table"})


@pytest.mark.parametrize("miss_rate", [0, Fraction(1, 20)])
def test_the_uniform_weights_are_unbiased_for_the_truth_without_knowing_p(miss_rate):
    """Exact expectations over all candidate sets: the weights have mean c·1{l = y}, d has mean c."""
    sets, share, y = all_sets(K), 0.35, 2
    chance = probability(sets, np.where(np.arange(K) == y, 1 - float(miss_rate), share))
    kept = chance > 0
    mask, chance = sets[kept & sets.any(axis=1)], chance[kept & sets.any(axis=1)]
    empty = 1 - chance.sum()
    setting = Setting("lac", K, Fraction(miss_rate), assume=as_assumption("uniform", K))
    weights, d, _, _ = label_weights(evidence_of(np.full((len(mask), K), 1 / K), mask), setting)
    r_empty = (0 - 1 + float(miss_rate)) / (K - 1)  # what an empty set would have contributed
    mean_weight = chance @ weights + empty * (0 - r_empty)
    mean_d = chance @ d + empty * (1 - float(miss_rate) - r_empty)
    assert np.allclose(mean_weight, mean_d * (np.arange(K) == y))
    assert np.isclose(mean_d, 1 - float(miss_rate) - share)


def test_the_matrix_weights_are_unbiased_for_the_truth_in_every_class_and_sum_to_one(rng):
    matrix = asymmetric(rng)
    setting = Setting("lac", K, assume=as_assumption(matrix, K))
    sets = all_sets(K)[1:]
    weights, d, _, _ = label_weights(evidence_of(np.full((len(sets), K), 1 / K), sets), setting)
    assert np.allclose(weights.sum(axis=1), 1)
    assert (d == 1).all()
    for y in range(K):
        assert np.allclose(probability(sets, matrix[y]) @ weights, np.arange(K) == y)


def test_dependent_inclusions_do_no_harm(rng):
    """ "Add one if none" makes inclusions dependent; only their probabilities matter."""
    n = 20_000
    p = simplex(rng, n, K, 1.0)
    y = labels_from(rng, p)
    mask = candidates_from(rng, y, K, 0.1)
    alone = np.flatnonzero(mask.sum(axis=1) == 1)
    mask[alone, (y[alone] + rng.integers(1, K, len(alone))) % K] = True
    limit = -conformalize(p, mask, "corrected", assume="uniform").threshold(0.9) + 1
    assert abs((p[np.arange(n), y] >= limit).mean() - 0.9) < 0.01


@pytest.mark.parametrize("score", ALL_SCORES, ids=repr)
def test_with_precise_labels_it_is_split_conformal_prediction(score, rng):
    p, y, _ = rows(rng, 211)
    q = simplex(rng, 60, K)
    plain = conformalize(p, y, "max", score, random_state=1)
    for assume in ("uniform", np.eye(K)):
        made = conformalize(p, y, "corrected", score, assume=assume, random_state=1)
        for level in (0.5, 0.9, 0.99):
            assert made.threshold(level) == plain.threshold(level)
            assert made.predict_set(q, level) == plain.predict_set(q, level)
        assert np.allclose(made.predict_p(q), plain.predict_p(q), atol=1e-12)


@pytest.mark.parametrize("score", ALL_SCORES, ids=repr)
def test_it_finds_the_oracles_threshold_whatever_the_score(score, rng):
    p, y, mask = rows(rng, 20_000)
    oracle = conformalize(p, y, "max", score, random_state=1)
    made = conformalize(p, mask, "corrected", score, assume="uniform", random_state=1)
    q = simplex(rng, 2000, K)
    assert abs(made.predict_set(q).sizes.mean() - oracle.predict_set(q).sizes.mean()) < 0.06


def test_a_known_matrix_and_an_estimated_one_find_it_too(rng):
    matrix = asymmetric(rng)
    p = simplex(rng, 20_000, K)
    y = labels_from(rng, p)
    mask = rng.random(p.shape) < matrix[y]
    oracle = conformalize(p, y, "max").threshold(0.9)
    for assume, tolerance in ((matrix, 0.01), ("class", 0.03)):
        made = conformalize(p, mask, "corrected", assume=assume)
        assert abs(made.threshold(0.9) - oracle) < tolerance
    assert made.setting.assume.estimated
    assert np.abs(made.setting.assume.matrix - matrix).max() < 0.1


@pytest.mark.parametrize("margin", ["none", "finite"])
def test_p_values_and_sets_tell_the_same_story(margin, rng):
    p, _, mask = rows(rng, 3000)
    q = simplex(rng, 200, K)
    made = conformalize(p, mask, Corrected(margin=margin), assume="uniform")
    values = made.predict_p(q)
    for level in (0.6, 0.8, 0.85, 0.9):
        inside = made.predict_set(q, level).to_mask()
        far = np.abs(values - (1 - level)) > 1e-9
        assert np.array_equal(inside[far], (values > 1 - level)[far])


def test_thresholds_grow_with_level_and_margin(rng):
    p, _, mask = rows(rng, 3000)
    made = {m: conformalize(p, mask, Corrected(margin=m), assume="uniform") for m in ("none", "finite")}
    levels = [0.5, 0.7, 0.8, 0.85]
    table = np.array([[made[m].threshold(level) for level in levels] for m in made])
    assert (np.diff(table, axis=0) >= 0).all()
    assert (np.diff(table, axis=1) >= 0).all()


def test_where_too_little_is_known_every_label_is_in_the_set(rng):
    p, _, mask = rows(rng, 60, share=0.8)
    made = conformalize(p, mask, Corrected(margin="finite"), assume="uniform")
    with pytest.warns(UserWarning, match="justify no smaller set"):
        assert made.predict_set(p).to_mask().all()
    few = conformalize(p[:8], mask[:8], "corrected", assume="uniform")
    with pytest.warns(UserWarning, match="needs at least 9 calibration rows"):
        assert few.predict_set(p).to_mask().all()


def test_full_candidate_sets_certify_nothing(rng):
    p = simplex(rng, 200, K)
    made = conformalize(p, np.ones((200, K), bool), Corrected(if_refuted="continue"), assume="uniform")
    with pytest.warns(UserWarning, match="every label"):
        assert made.predict_set(p).to_mask().all()


def test_it_refuses_without_a_declaration_with_weights_and_with_words_it_does_not_know(rng):
    p, _, mask = rows(rng, 200)
    with pytest.raises(ValueError, match="use assume='uniform'"):
        conformalize(p, mask, "corrected")
    with pytest.raises(ValueError, match="not defined for weighted"):
        conformalize(p, mask, "corrected", assume="uniform", sample_weight=np.ones(200))
    with pytest.raises(ValueError, match="margin: 'wide' is not known"):
        Corrected(margin="wide")
    with pytest.raises(ValueError, match="if_refuted"):
        Corrected(if_refuted="ignore")


def test_data_that_refute_the_declaration_stop_it_unless_told_to_go_on(rng):
    p, _, mask = rows(rng, 2000)
    mask |= p > 0.1  # whatever looks plausible is kept
    with pytest.raises(AssumptionRefuted, match="refuted") as caught:
        conformalize(p, mask, "corrected", assume="uniform")
    assert caught.value.diagnosis.refuted
    made = conformalize(p, mask, Corrected(if_refuted="continue"), assume="uniform")
    assert made.guarantee().promised is None
    assert "Contradicted" in printed(made.guarantee())


def test_inseparable_classes_are_named(rng):
    p, _, _ = rows(rng, 300, k=4)
    together = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0.1], [0, 0, 0.1, 1]])
    names = ["cat", "kitten", "dog", "bird"]
    mask = np.zeros((300, 4), bool)
    mask[:, :2] = True
    with pytest.raises(ValueError, match="cat.*kitten"):
        conformalize(p, mask, "corrected", assume=together, classes=names)


def test_what_it_claims_rests_on_the_declaration_and_on_the_size_of_the_sample(rng):
    p, _, mask = rows(rng, 3000)
    loose = conformalize(p, mask, "corrected", assume="uniform").guarantee(0.8)
    assert loose.promised is None
    assert "the calibration sample is large" in printed(loose)
    assert "the data do not contradict it" in printed(loose)
    proved = conformalize(p, mask, Corrected(margin="finite"), assume="uniform").guarantee(0.8)
    assert proved.promised == 0.8
    assert "in 19 of 20 draws of the calibration rows" in printed(proved)
    assert "holds" not in printed(proved)


def test_a_saved_calibration_answers_alike(rng, tmp_path):
    p, _, mask = rows(rng, 500)
    for assume in ("uniform", asymmetric(rng)):
        made = conformalize(p, mask, Corrected(margin="finite", if_refuted="continue"), assume=assume)
        made.save(tmp_path / "cal")
        read = Calibration.load(tmp_path / "cal")
        assert read.threshold(0.8) == made.threshold(0.8)
        assert str(read.guarantee(0.8)) == str(made.guarantee(0.8))


def test_the_spread_holds_every_possible_row(rng):
    """The finite margin rests on an interval for N − L·d: no set, no order of labels may leave it."""
    sets = all_sets(K)[1:]
    orders = np.array([rng.permutation(K) for _ in range(60)])
    for assume in ("uniform", asymmetric(rng)):
        setting = Setting("lac", K, assume=as_assumption(assume, K))
        weights, d, _, spread = label_weights(evidence_of(np.full((len(sets), K), 1 / K), sets), setting)
        partial = np.concatenate([np.cumsum(weights[:, order], axis=1) for order in orders], axis=1)
        partial = np.column_stack([np.zeros(len(sets)), partial])
        for level in (0.0, 0.5, 1.0):
            values = partial - level * d[:, None]
            assert values.max() - values.min() <= spread + 1e-9


def test_the_certified_level_is_the_root_it_is_said_to_be(rng):
    """mean(N − L·d) equals the margin at the level of the curve."""
    p, _, mask = rows(rng, 400)
    setting = Setting("lac", K, assume=as_assumption("uniform", K))
    evidence = evidence_of(p, mask)
    table, (weights, d, *_) = np.asarray(evidence.table), label_weights(evidence, setting)
    curve = Curve(Steps(table, weights.__getitem__, d, spread=0.0), "finite", 0.05)
    level = Fraction(7, 10)
    row = np.where(table <= curve.certified.threshold(level), weights, 0).sum(axis=1)
    slack = np.sqrt(2 * np.log(2 / 0.05)) / np.sqrt(400)
    value = row - float(level) * d
    assert value.mean() >= slack * value.std(ddof=1) - 1e-12


def test_ranks_are_exact_for_every_number_of_rows(rng):
    for n in range(2, 60):
        p, y, _ = rows(rng, n)
        plain = conformalize(p, y, "max")
        for strategy, told in (("corrected", {"assume": "uniform"}), ("posterior", {})):
            made = conformalize(p, y, strategy, **told)
            for level in (Fraction(1, 2), Fraction(4, 5), NINE):
                assert made.rules[0].threshold(level) == plain.rules[0].threshold(level)


@pytest.mark.parametrize("true_rate", [0.0, 0.05, 0.1])
@pytest.mark.parametrize("margin", ["none", "finite"])
def test_a_declared_miss_rate_may_be_larger_than_the_true_one(true_rate, margin, rng):
    """ "At most" is what is declared: treating it as "exactly" covered 0.835 where 0.90 was promised."""
    n = 6000
    p = simplex(rng, n, 10)
    y = labels_from(rng, p)
    mask = candidates_from(rng, y, 10, 0.15)
    missed = rng.random(n) < true_rate
    mask[missed, y[missed]] = False
    mask[~mask.any(axis=1), 0] = True
    made = conformalize(p, mask, Corrected(margin, if_refuted="continue"), assume="uniform", miss_rate=0.1)
    own = 1 - p[np.arange(n), y]
    assert (own <= made.threshold(0.8)).mean() > 0.79
    values = made.predict_p(p[:200])
    assert np.array_equal(made.predict_set(p[:200], 0.8).to_mask(), values > 0.2)


def test_small_samples_do_not_stop_too_early(rng):
    """With a weak model and many false labels the first crossing covered 0.85 at n = 100."""
    covered = []
    for _ in range(150):
        p = simplex(rng, 100, 10, 1.0)
        y = labels_from(rng, p)
        mask = candidates_from(rng, y, 10, 0.7)
        limit = conformalize(p, mask, Corrected(if_refuted="continue"), assume="uniform").rules[0].threshold(NINE)
        q = simplex(rng, 500, 10, 1.0)
        covered.append((-q[np.arange(500), labels_from(rng, q)] <= limit).mean())
    assert np.mean(covered) > 0.88


def test_a_frame_says_its_inclusion_probabilities_by_name(rng):
    pandas = pytest.importorskip("pandas")
    names = ["d", "b", "c", "a", "e"]
    matrix = asymmetric(rng)
    p = simplex(rng, 2000, K)
    y = labels_from(rng, p)
    mask = rng.random(p.shape) < matrix[y]
    frame = pandas.DataFrame(matrix, index=names, columns=names)
    shuffled = frame.loc[sorted(names), sorted(names)]
    made = [conformalize(p, mask, "corrected", assume=a, classes=names).threshold(0.9) for a in (matrix, shuffled)]
    assert made[0] == made[1]


def test_an_estimated_matrix_is_a_condition_of_the_claim(rng):
    p, _, mask = rows(rng, 3000)
    made = conformalize(p, mask, Corrected("finite", if_refuted="continue"), assume="class").guarantee(0.8)
    assert made.promised is None
    assert "estimated inclusion probabilities are right" in printed(made)


def test_the_weights_of_the_control_variate_follow_the_noise_of_the_candidates():
    """z = noise·M⁻¹ over its sum, and equal weights where the candidates have no noise."""
    matrix = np.array([[1.0, 0.1, 0.3], [0.2, 1.0, 0.1], [0.1, 0.2, 1.0]])
    inverse = np.linalg.inv(matrix)
    omega = inverse.sum(axis=1)
    noise = (matrix * (1 - matrix)).mean(axis=0) * omega
    assert 0 < noise @ omega < 1
    centred, z, _ = _centre(as_assumption(matrix, 3))
    assert np.allclose(z, noise @ inverse / (noise @ omega))
    assert np.allclose(centred, inverse - np.outer(omega, z))
    assert np.allclose(_centre(as_assumption(np.eye(3), 3))[1], 1 / 3)


def test_corrected_needs_no_table_of_all_pairs_of_labels():
    assert corrected._uniform_spread(300_000, 0.0) == 150_000  # such a table would take 670 GiB
    with pytest.raises(ValueError, match="assume: 'class' needs a table of 300,000 × 300,000 probabilities"):
        as_assumption("class", 300_000)


@pytest.mark.parametrize("k", [2, 3, 4, 7, 20])
@pytest.mark.parametrize("rate", [0.0, 0.05, 0.6])
def test_the_spread_is_that_of_all_pairs_of_sizes(k, rate):
    size, below = np.ogrid[1 : k + 1, 0 : k + 1]
    r = (size - 1 + rate) / (k - 1)
    most, least = np.minimum(size, below) - r * below, np.maximum(0, size + below - k) - r * below
    all_pairs = max((most - L * (1 - rate - r)).max() - (least - L * (1 - rate - r)).min() for L in (0, 1))
    assert corrected._uniform_spread(k, rate) == all_pairs
