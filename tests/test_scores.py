"""Scores: golden values, and one definition behind every way of asking for it."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from setwise import (
    APS,
    LAC,
    RAPS,
    RPS,
    SAPS,
    Calibration,
    ConformalClassifier,
    CrossConformalClassifier,
    LabelSets,
    Margin,
    Nodes,
    RandomTies,
    TopK,
    Votes,
    conformalize,
)
from setwise.row_noise import uniforms
from setwise.scores import Score, as_score
from tests.conftest import simplex
from tests.labels.test_trees import roots, trees

ALL_SCORES = [
    LAC(),
    Margin(),
    RPS(),
    RandomTies(),
    *(kind(randomized=flag) for kind in (APS, RAPS, SAPS) for flag in (True, False)),
    RAPS(penalty=0.3, free_ranks=0),
    SAPS(weight=0.01),
]


def published(score, row, y, u):
    """The score of one label in exact arithmetic, as its paper writes it."""
    f = [Fraction(float(v)) for v in row]
    head = sum((v for v in f if v > f[y]), Fraction(0))
    order = 1 + sum(v > f[y] for v in f)
    u = Fraction(float(u)) if score.randomized else Fraction(1)
    match score:
        case LAC():
            return 1 - f[y]
        case RandomTies():
            return 1 - f[y] * (1 - u / 2**26)
        case Margin():
            return max(v for j, v in enumerate(f) if j != y) - f[y]
        case APS():
            return head + u * f[y]
        case RAPS():
            return head + u * f[y] + Fraction(score.penalty) * max(0, order - score.free_ranks)
        case SAPS():
            return u * max(f) if order == 1 else max(f) + (order - 2 + u) * Fraction(score.weight)
        case RPS():
            upto = [sum(f[: j + 1]) for j in range(len(f) - 1)]
            return sum((mass - (y <= j)) ** 2 for j, mass in enumerate(upto)) / len(upto)


rows_with_ties = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(2, 7)),
    elements=st.sampled_from([0.0, 1.0, 2.0, 3.0, 1e-12]),
).map(
    lambda a: (a + (a.sum(axis=1, keepdims=True) == 0)) / (a + (a.sum(axis=1, keepdims=True) == 0)).sum(1)[:, None]
)


@pytest.mark.parametrize("score", ALL_SCORES, ids=repr)
@settings(max_examples=60)
@given(rows_with_ties)
def test_scores_are_those_of_their_papers_ties_included(score, p):
    u = uniforms(p, 0)
    made = score.score(p, u=u) + score.offset
    for i, row in enumerate(p):
        for y in range(p.shape[1]):
            assert np.isclose(made[i, y], float(published(score, row, y, u[i])), atol=1e-13)


@pytest.mark.parametrize("score", ALL_SCORES, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_label_all_labels_and_sets_agree_to_the_last_bit(score, dtype, rng):
    for k, n in ((2, 300), (10, 300), (400, 40), (3, 2), (3, 1)):
        p = simplex(rng, n, k).astype(dtype)
        p[: n // 4] = np.round(p[: n // 4], 2)  # ties
        p[0] = np.eye(k)[0]
        u = uniforms(p, 3)
        every = score.score(p, u=u)
        for _ in range(3):
            y = rng.integers(0, k, n)
            assert np.array_equal(score.score(p, y, u=u), every[np.arange(n), y])
        for limit in (*rng.choice(every.ravel(), 20), -np.inf, np.inf):
            assert np.array_equal(score.below(p, limit, u=u), every <= limit)
        limits = rng.choice(every.ravel(), n)
        assert np.array_equal(score.below(p, limits, u=u), every <= limits[:, None])


@pytest.mark.parametrize("score", [score for score in ALL_SCORES if score.monotone], ids=repr)
def test_more_probable_labels_never_score_higher(score, rng):
    p = simplex(rng, 500, 12)
    every = score.score(p, u=uniforms(p, 0))
    order = np.argsort(p, axis=1)
    assert (np.diff(np.take_along_axis(every, order, axis=1), axis=1) <= 0).all()


@pytest.mark.parametrize("score", ALL_SCORES, ids=repr)
def test_scores_do_not_depend_on_the_batch_and_do_not_touch_it(score, rng):
    p = simplex(rng, 200, 6)
    p.flags.writeable = False
    kept = p.copy()
    whole = score.score(p, u=uniforms(p, 9))
    single = np.concatenate([score.score(p[i : i + 1], u=uniforms(p[i : i + 1], 9)) for i in range(len(p))])
    assert np.array_equal(whole, single)
    assert np.array_equal(p, kept)
    assert np.array_equal(score.score(np.asfortranarray(p), u=uniforms(p, 9)), whole)


def test_golden_values():
    p = np.array([[0.5, 0.25, 0.125, 0.125]])
    u = np.array([0.5])
    assert LAC().score(p).tolist() == [[-0.5, -0.75 + 0.5, -0.125, -0.125]]
    assert (APS().score(p, u=u) + 1).tolist() == [[0.25, 0.625, 0.8125, 0.8125]]
    assert (APS(randomized=False).score(p) + 1).tolist() == [[0.5, 0.75, 0.875, 0.875]]
    raps = RAPS(penalty=0.5, free_ranks=1).score(p, u=u) + 1
    assert raps.tolist() == [[0.25, 1.125, 1.8125, 1.8125]]
    saps = SAPS(weight=0.25).score(p, u=u) + 1
    assert saps.tolist() == [[0.25, 0.625, 0.875, 0.875]]
    assert Margin().score(p).tolist() == [[-0.25, 0.25, 0.375, 0.375]]
    assert (3 * RPS().score(p)).tolist() == [[0.328125, 0.328125, 0.828125, 1.578125]]


def test_defaults_are_those_of_the_page():
    assert RAPS() == RAPS(penalty=0.01, free_ranks=5, randomized=True)
    assert SAPS() == SAPS(weight=0.2, randomized=True)
    assert APS() == APS(randomized=True)
    assert [made().randomized for made in (LAC, Margin, APS, RAPS, SAPS)] == [False, False, True, True, True]
    assert [made.elementwise for made in (LAC, Margin, APS, RAPS, SAPS)] == [True, False, False, False, False]


def test_random_ties_make_sets_of_shares_of_votes_smaller_and_still_cover(rng):
    found = {"lac": [], "ties": []}
    for draw in range(60):
        votes = rng.multinomial(5, [0.25] * 4, size=1060)
        votes = (votes + rng.multinomial(5, [0.7, 0.1, 0.1, 0.1], size=1060)) / 10
        y = (votes.cumsum(axis=1) > rng.random((1060, 1))).argmax(axis=1)
        for score, measured in found.items():
            cal = conformalize(votes[:60], y[:60], conformity_score=score, row_ids=range(60), random_state=draw)
            mask = cal.predict_set(votes[60:], 0.9, row_ids=range(60, 1060) if score == "ties" else None).to_mask()
            measured.append((mask[np.arange(1000), y[60:]].mean(), mask.sum(axis=1).mean()))
    (plain, large), (covered, small) = (np.mean(measured, axis=0) for measured in found.values())
    assert plain > 0.92
    assert 0.89 < covered < 0.915
    assert small < 0.95 * large


@pytest.mark.parametrize("score", [LAC(), RandomTies()], ids=repr)
def test_tiny_probabilities_keep_their_order(score):
    p = np.array([[1.0, 1e-20, 1e-30, 0.0]])
    scores = score.score(p)[0]
    assert (np.diff(scores) > 0).all()
    assert score.below(p, scores[1]).tolist() == [[True, True, False, False]]


def test_random_ties_order_equal_probabilities_and_zeros_of_different_rows_by_their_noise():
    p, u = np.array([[0.7, 0.3, 0.0]] * 3), np.array([0.5, 0.25, 0.75])
    assert np.argsort(RandomTies().score(p, u=u), axis=0).T.tolist() == [[1, 0, 2]] * 3


def test_a_float64_threshold_is_not_rounded_to_float32():
    p = np.array([[0.1, 0.9]], dtype=np.float32)
    stored = float(p[0, 0])
    assert LAC().below(p, -stored)[0, 0]
    assert not LAC().below(p, -np.nextafter(stored, 1))[0, 0]
    assert LAC().below(p, -np.nextafter(stored, 0))[0, 0]


def test_without_noise_given_it_comes_from_the_row(rng):
    p = simplex(rng, 50, 4)
    assert np.array_equal(APS().score(p), APS().score(p[::-1])[::-1])
    assert np.array_equal(APS().score(p), APS().score(p, u=uniforms(p, 0)))


def test_scores_by_name_or_object():
    assert as_score("LAC") == LAC()
    assert as_score(RAPS(penalty=1.0)).penalty == 1.0
    for made in ALL_SCORES:
        assert isinstance(made, Score)
        assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301
    with pytest.raises(ValueError, match="score: 'topk' is not known"):
        as_score("topk")
    for bad in (LAC, 3, object()):
        with pytest.raises(TypeError, match="score"):
            as_score(bad)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RAPS(penalty=-1),
        lambda: RAPS(penalty=float("nan")),
        lambda: RAPS(free_ranks=-1),
        lambda: SAPS(weight=0),
        lambda: SAPS(weight=float("nan")),
        lambda: SAPS(weight=float("inf")),
        lambda: RAPS(penalty=float("inf")),
    ],
)
def test_senseless_parameters_are_refused(make):
    with pytest.raises(ValueError, match="RAPS|SAPS"):
        make()


def is_interval(mask):
    """Whether the labels of each row follow one another."""
    ends = np.diff(np.pad(mask.astype(int), ((0, 0), (1, 1))), axis=1)
    return (ends == 1).sum(axis=1) <= 1


@settings(max_examples=300)
@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float64]),
        st.tuples(st.integers(1, 5), st.integers(2, 9)),
        elements=st.sampled_from([0.0, 0.125, 0.25, 1.0]) | st.floats(0, 1, width=32),
    )
)
def test_with_rps_the_labels_up_to_any_threshold_are_an_interval(p):
    for rows in (p, p[:, ::-1], p / np.maximum(p.sum(axis=1, keepdims=True), 1e-30)):
        for limit in np.unique(RPS().score(rows)):  # between two of them nothing changes
            assert is_interval(RPS().below(rows, limit)).all()


def test_sums_of_squares_from_both_sides_would_leave_gaps_where_they_are_rounded(rng):
    halves = rng.dirichlet(np.ones(4), (2, 1000)) / 2
    p = np.hstack([halves[0], np.zeros((1000, 4)), halves[1]])  # level around the median
    upto = np.pad(p.cumsum(axis=1)[:, :-1], ((0, 0), (1, 1)), constant_values=(0, 1))
    plain = np.cumsum(upto**2, axis=1)[:, :-1] + np.cumsum((1 - upto[:, ::-1]) ** 2, axis=1)[:, -2::-1]
    ours = 11 * RPS().score(p)
    assert np.allclose(ours, plain, atol=1e-14)
    assert not all(is_interval(plain <= limit[:, None]).all() for limit in plain.T)
    assert all(is_interval(ours <= limit[:, None]).all() for limit in ours.T)


ORDERED = ["poor", "fair", "good", "great", "superb"]


def ordered_rows(rng, n=600, k=5):
    """Probabilities that may have two peaks, the truth, and candidates with gaps."""
    p = rng.dirichlet(np.full(k, 0.4), n)
    y = (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return p, y, (rng.random((n, k)) < 0.25) | (np.arange(k) == y[:, None])


def test_every_prediction_set_with_rps_is_an_interval(rng):
    p, y, mask = ordered_rows(rng)
    assert not is_interval(conformalize(p[:300], y[:300]).predict_mask(p[300:], 0.9)).all()  # LAC leaves gaps
    votes = Votes.from_lists([[int(t), *rng.choice(5, 2, p=row)] for t, row in zip(y, p, strict=True)], range(5))
    verified = [int(label) if i < 150 else None for i, label in enumerate(y[:300])]
    calls = [
        ("max", y, {}),
        ("max", mask, {}),
        ("mean", mask, {}),
        ("auto", mask, {"verified": verified}),
        ("posterior", mask, {}),
        ("corrected", mask, {"assume": "uniform"}),
        ("max", y, {"by": "label"}),
        ("votes", votes, {}),
        ("crowd", votes, {"assume": "independent"}),
    ]
    for strategy, given_, options in calls:
        cal = conformalize(p[:300], given_[:300], strategy, "rps", random_state=0, **options)
        for level in (0.5, 0.8, 0.9):
            assert is_interval(cal.predict_mask(p[300:], level)).all(), strategy
            assert is_interval(cal.predict_mask(p[300:], level, allow_empty=False)).all(), strategy
            assert is_interval(cal.predict_p(p[300:]) > 1 - level).all(), strategy
    voted = conformalize(p[:300], votes[:300], conformity_score="rps", verified=verified, random_state=0)
    assert is_interval(voted.predict_mask(p[300:], 0.9, candidates=votes[300:])).all()  # votes cut nothing off
    cut = conformalize(p[:300], mask[:300], "max", "rps").predict_set(p[300:], 0.9, candidates=mask[300:])
    assert not is_interval(cut.to_mask()).all()  # the candidates of new rows have gaps of their own


def test_a_threshold_for_each_class_and_a_model_for_each_fold_need_gaps_filled(rng, monkeypatch):
    p, y, _ = ordered_rows(rng)
    X = rng.normal(size=(600, 8))  # about which models of different folds disagree
    by_class = conformalize(p[:300], y[:300], conformity_score="rps", by="label")
    folds = CrossConformalClassifier(KNeighborsClassifier(3), conformity_score="rps", cv=5, random_state=0)
    folds = folds.fit(X[:300], y[:300])

    def answers():
        found = [by_class.predict_mask(p[300:], level) for level in (0.5, 0.7)]
        return found, [folds.predict_set(X[300:], level).to_mask() for level in (0.5, 0.6)]

    filled = answers()
    for module in ("probabilities.dense", "calibration.pooled"):
        monkeypatch.setattr(f"setwise.{module}.fill_gaps", lambda _, values: values)
    for bare, whole in zip(answers(), filled, strict=True):
        assert not all(is_interval(found).all() for found in bare)
        assert all(is_interval(found).all() for found in whole)
        assert all((before <= after).all() for before, after in zip(bare, whole, strict=True))


@pytest.mark.parametrize("kind", [ConformalClassifier, CrossConformalClassifier])
def test_rps_wants_to_know_the_order_of_text(rng, kind):
    p, y, _ = ordered_rows(rng)
    names, X = np.array(ORDERED)[y], np.log(p + 0.05)
    model = kind(LogisticRegression(), conformity_score="rps", random_state=0)
    with pytest.raises(ValueError, match=r"'fair' to 'superb' is alphabetical; use classes=… to list them"):
        model.fit(X, names)
    model.fit(X, LabelSets.from_labels(names, classes=ORDERED))
    assert model.classes_.tolist() == ORDERED
    found = model.predict_set(X, 0.7).to_mask()
    assert is_interval(found).all()
    numbers = kind(LogisticRegression(), conformity_score="rps", random_state=0).fit(X, y)  # need no declaration
    assert np.array_equal(numbers.predict_set(X, 0.7).to_mask(), found)


def test_rps_is_refused_for_a_model_that_learned_text_without_its_order(rng):
    p, y, _ = ordered_rows(rng)
    names, X = np.array(ORDERED)[y], np.log(p + 0.05)
    model = ConformalClassifier(LogisticRegression(), random_state=0).fit(X, names)
    with pytest.raises(ValueError, match="alphabetical"):
        model.conformalize(X, names, conformity_score="rps")


def test_rps_comes_back_from_a_file(rng, tmp_path):
    p, y, _ = ordered_rows(rng)
    cal = conformalize(p[:300], y[:300], conformity_score="rps")
    cal.save(tmp_path / "cal")
    again = Calibration.load(tmp_path / "cal")
    assert again.conformity_score == RPS()
    assert again.predict_set(p) == cal.predict_set(p)
    assert cal.threshold(0.9) == np.sort(RPS().score(p[:300], y[:300]))[270]


ANIMALS = {"bird": ["owl", "wren"], "cat": ["lion", "tabby"], "any": ["bird", "cat", "dog"]}
NAMES = ["lion", "owl", "tabby", "wren", "dog"]


def test_labels_enter_by_the_node_whose_added_labels_are_most_probable_on_average():
    p = np.array([[0.04, 0.5, 0.06, 0.15, 0.25]])  # owl, then bird before any
    assert np.allclose(Nodes(ANIMALS, 1, NAMES).score(p), [[-0.35 / 3, -0.5, -0.35 / 3, -0.15, -0.35 / 3]])
    assert np.allclose(Nodes(ANIMALS, 2, NAMES).score(p), [[-0.05, -0.5, -0.05, -0.15, -0.25]])
    assert np.allclose(Nodes(ANIMALS, 3, NAMES).score(p), [[-0.04, -0.5, -0.06, -0.15, -0.25]])


@settings(max_examples=150)
@given(trees(), st.integers(1, 4), st.integers(0, 2**32 - 1), st.booleans())
def test_sets_below_any_threshold_are_at_most_so_many_nodes(made, at_most, seed, rounded):
    tree, classes = made
    at_most = max(at_most, roots(tree))
    p = simplex(np.random.default_rng(seed), 8, len(classes))
    p = np.round(p, 1) if rounded else p
    score = Nodes(tree, at_most, classes)
    every = score.score(p)
    assert np.isfinite(every).all()
    assert np.array_equal(score.score(p[3:5]), every[3:5])
    for limit in np.unique(every):
        sets = LabelSets.from_mask(score.below(p, limit), classes)
        nodes = sets.to_nodes(tree, at_most)
        assert LabelSets.from_hierarchy(nodes, tree, classes) == sets


@given(rows_with_ties)
def test_with_room_for_all_labels_nodes_are_lac(p):
    k = p.shape[1]
    tree = {"low": list(range(k // 2)), "high": list(range(k // 2, k)), "all": ["low", "high"]}
    assert np.allclose(Nodes(tree, k).score(p), LAC().score(p), atol=1e-15)


def test_nodes_know_the_classes_of_a_calibration_and_come_back_from_its_file(rng, tmp_path):
    p = simplex(rng, 200, 5)
    y = np.array(NAMES)[p.argmax(axis=1)]
    cal = conformalize(p, y, conformity_score=Nodes(ANIMALS), classes=NAMES)
    assert cal.conformity_score.classes == tuple(NAMES)
    assert "owl" not in repr(cal.conformity_score)
    sets = cal.predict_set(p, [0.3, 0.8])
    assert all(one.to_nodes(ANIMALS).sizes.max() <= 1 for one in sets)
    cal.save(tmp_path / "nodes.cal")
    loaded = Calibration.load(tmp_path / "nodes.cal")
    assert loaded.conformity_score == cal.conformity_score
    assert loaded.predict_set(p, 0.8) == sets[1]


def test_nodes_refuse_what_does_not_fit(rng):
    p = simplex(rng, 30, 5)
    y = p.argmax(axis=1)
    with pytest.raises(ValueError, match="the class 0 is not in it"):
        conformalize(p, y, conformity_score=Nodes(ANIMALS))
    with pytest.raises(ValueError, match="2 roots"):
        conformalize(p, y, conformity_score=Nodes({"a": [0, 1], "b": [2, 3, 4]}))
    with pytest.raises(ValueError, match="3 in the tree for 5 columns"):
        Nodes({"a": [0, 1, 2]}).score(p)
    with pytest.raises(ValueError, match="neither text nor a plain number"):
        Nodes({"a": [("x", "y")]})
    with pytest.raises(ValueError, match="tree: the node None is neither text"):
        Nodes({None: [0, 1]})
    with pytest.raises(ValueError, match="needs the probabilities of all labels"):
        conformalize(TopK.of(p, 2), y, conformity_score=Nodes({"a": [0, 1, 2, 3, 4]}))
