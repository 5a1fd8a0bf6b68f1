"""Many classes: the k largest probabilities of a row, and one rule for the labels outside."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import setwise
from setwise import APS, LabelSets, TopK, Votes, conformalize
from setwise.probabilities import top_probabilities
from tests.conftest import labels_from, simplex

SCORES = ["lac", "aps", "raps", "saps", "margin", APS(randomized=False)]


def padded(rng, p, top):
    """The same rows with the labels outside sharing what is left equally: what a row of `top` stands for."""
    whole = np.repeat(((1 - top.values.sum(axis=1)) / (p.shape[1] - top.k))[:, None], p.shape[1], axis=1)
    np.put_along_axis(whole, top.indices, top.values, axis=1)
    return whole


@pytest.mark.parametrize("score", SCORES, ids=str)
@pytest.mark.parametrize("strategy", ["max", "min", "mean", "all", "auto"])
def test_with_all_labels_stored_sets_are_those_of_the_whole_table(rng, score, strategy):
    p, q = simplex(rng, 300, 6), simplex(rng, 200, 6)
    candidates = (rng.random((300, 6)) < 0.3) | (np.arange(6) == labels_from(rng, p)[:, None])
    top = TopK(np.tile(np.arange(6), (300, 1)), p, 6)
    new = TopK(np.tile(np.arange(6), (200, 1)), q, 6)
    options = {"strategy": strategy, "conformity_score": score, "random_state": 0, "row_ids": np.arange(300)}
    whole, stored = conformalize(p, candidates, **options), conformalize(top, candidates, **options)
    assert stored.threshold(0.9) == whole.threshold(0.9)
    ids = {"row_ids": np.arange(200)}
    assert stored.predict_set(new, 0.9, **ids) == whole.predict_set(q, 0.9, **ids)


@pytest.mark.parametrize("score", ["lac", "aps", "raps", "saps", "margin"])
def test_rows_count_as_if_labels_outside_had_equal_shares(rng, score):
    p, q = simplex(rng, 400, 40, 4.0), simplex(rng, 300, 40, 4.0)
    y = labels_from(rng, p)
    candidates = (rng.random((400, 40)) < 0.05) | (np.arange(40) == y[:, None])
    top, new = TopK.of(p, 5), TopK.of(q, 5)
    options = {"conformity_score": score, "random_state": 0, "row_ids": np.arange(400)}
    stored, whole = (
        conformalize(top, candidates, **options),
        conformalize(padded(rng, p, top), candidates, **options),
    )
    for level in (0.5, 0.8, 0.9):
        made = stored.predict_set(new, level, row_ids=np.arange(300))
        same = whole.predict_set(padded(rng, q, new), level, row_ids=np.arange(300))
        assert (made.to_mask() != same.to_mask()).mean() < 1e-3  # equal shares may differ in the last bit


def test_the_promise_holds_and_breaks_where_labels_outside_count_as_certain(rng):
    """Removing the rule for labels outside (taking their score for that of a probable label) loses truths."""
    covered = []
    for _ in range(30):
        p = simplex(rng, 900, 60, 1.5)
        y = labels_from(rng, p)
        top = TopK.of(p, 8)  # the truth is outside in a third of the rows
        cal = conformalize(top[:300], y[:300])
        covered.append(cal.predict_set(top[300:]).contains(y[300:]).mean())
    error = np.std(covered) / np.sqrt(len(covered))
    assert np.mean(covered) > 0.9 - 3 * error
    inside = top.columns_of(np.arange(900), y) < 8
    assert inside.mean() < 0.8  # without the labels outside no set could cover as promised


@given(st.data())
def test_columns_are_found(data):
    k = data.draw(st.integers(1, 5))
    rows = data.draw(st.lists(st.permutations(range(6)), min_size=1, max_size=6))
    indices = np.array([row[:k] for row in rows])
    top = TopK(indices, np.full(indices.shape, 1 / 6), 6)
    for label in range(6):
        found = top.columns_of(np.arange(len(rows)), np.full(len(rows), label))
        assert found.tolist() == [list(row).index(label) if label in row else k for row in indices.tolist()]


def test_verified_rows_count_with_the_labels_that_were_given(rng):
    p = simplex(rng, 500, 50, 3.0)
    y = labels_from(rng, p)
    candidates = LabelSets.from_lists([[int(label), int((label + 1) % 50)] for label in y], classes=range(50))
    verified = np.where(np.arange(500) < 100, y, -1).astype(object)
    verified[100:] = None
    top = TopK.of(p, 6)
    cal = conformalize(top, candidates, verified=verified)
    assert cal.evidence.held[:100].all()
    assert cal.evidence.label[:100].tolist() == y[:100].tolist()
    assert cal.evidence.predicted.tolist() == p.argmax(axis=1).tolist()
    assert cal.guarantee().promised == 0.9
    wrong = verified.copy()
    wrong[:100] = (y[:100] + 2) % 50
    assert not conformalize(top, candidates, verified=wrong).evidence.held.any()


def test_ordered_classes_need_the_probabilities_of_all_labels(rng):
    p = simplex(rng, 50, 8)
    with pytest.raises(ValueError, match=r"'rps' needs the probabilities of all labels, in their order; pass them"):
        conformalize(TopK.of(p, 3), p.argmax(axis=1), conformity_score="rps")


def test_a_hundred_thousand_classes_need_no_table(rng):
    n, k, classes = 2000, 20, 100_000
    values = np.sort(rng.dirichlet(np.full(k + 1, 0.5), size=n), axis=1)[:, ::-1]
    indices = rng.permuted(np.tile(np.arange(3 * k), (n, 1)), axis=1)[:, :k] + rng.integers(
        0, classes - 3 * k, (n, 1)
    )
    y = np.take_along_axis(indices, (rng.random((n, 1)) * 4).astype(int), axis=1)[:, 0]
    top = TopK(indices, values[:, :k], classes, values[:, k:].sum(axis=1))
    candidates = LabelSets.from_lists(
        [[label, (label + 7) % classes] for label in y.tolist()], classes=range(classes)
    )
    tracemalloc.start()
    cal = conformalize(top[:1000], candidates[:1000], "min")
    sets = cal.predict_set(top[1000:], 0.9)
    found = setwise.evaluate(sets, y[1000:])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6  # a table of the new rows would be 800 MB
    assert found["coverage"] > 0.85


def test_where_labels_outside_are_in_the_set_all_are(monkeypatch):
    top = TopK([[3, 0], [1, 2]] * 10, [[0.6, 0.3], [0.5, 0.4]] * 10, 5)
    cal = conformalize(top, [4] * 20)
    assert cal.predict_set(top[:1], 0.9).to_lists() == [[0, 1, 2, 3, 4]]
    assert "all are" in str(cal.guarantee(0.9))
    monkeypatch.setattr(top_probabilities, "_MOST", 99)
    with pytest.raises(
        ValueError, match="in 20 of 20 rows labels outside .* 100 labels in all.* store more labels"
    ):
        cal.predict_set(top, 0.9)


@pytest.mark.parametrize(
    ("indices", "values", "classes", "rest", "message"),
    [
        ([[0, 9]], [[0.5, 0.4]], 5, None, "row 0 holds 9"),
        ([[1, 1]], [[0.5, 0.4]], 5, None, "row 0 holds 1 twice"),
        ([[0, 1]], [[0.5, np.nan]], 5, None, "row 0 holds nan"),
        ([[0, 1]], [[0.9, 0.4]], 5, None, "row 0 sums to 1.3"),
        ([[0, 1]], [[0.5, 0.4]], 5, [0.5], "row 0 sums to 1.4"),
        ([[0, 1]], [[0.1, 0.1]], 4, None, "store the largest"),
        ([[0, 1]], [[0.5]], 5, None, "alike"),
        ([[0.0, 1.0]], [[0.5, 0.4]], 5, None, "whole numbers"),
        ([[0, 1]], [[0.5, 0.4]], 1, None, "n_classes"),
    ],
)
def test_what_is_no_top_of_probabilities_is_refused(indices, values, classes, rest, message):
    with pytest.raises((ValueError, TypeError), match=message):
        TopK(indices, values, classes, rest)


def test_what_needs_all_labels_says_so(rng):
    p = simplex(rng, 60, 8)
    top, y = TopK.of(p, 3), labels_from(rng, p)
    with pytest.raises(ValueError, match="those of all labels"):
        conformalize(top, y, "corrected", assume="uniform")
    with pytest.raises(ValueError, match="votes are not defined"):
        conformalize(top, Votes.from_lists([[label] for label in y.tolist()], classes=range(8)))
    cal = conformalize(top, y)
    for asked in (cal.predict_p, cal.compare, cal.triage):
        with pytest.raises(ValueError, match="only the top 3"):
            asked(top)
    for other in (p, TopK.of(p, 4)):
        with pytest.raises(ValueError, match=r"TopK\.of\(probabilities, k=3\)"):
            cal.predict_set(other)
    with pytest.raises(ValueError, match="all labels out of 8"):
        conformalize(p, y).predict_set(top)


def test_rows_are_calibrated_by_the_label_predicted(rng):
    p = simplex(rng, 400, 8)
    top, y = TopK.of(p, 3), labels_from(rng, p)
    cal = conformalize(top[:300], y[:300], by="predicted")
    assert cal.category.tolist() == p[:300].argmax(axis=1).tolist()
    sets = cal.predict_set(top[300:], 0.5)
    for label in np.unique(p[300:].argmax(axis=1)):
        rows = 300 + np.flatnonzero(p[300:].argmax(axis=1) == label)
        assert cal.predict_set(top[rows], 0.5) == sets[rows - 300]


def test_it_is_saved_with_the_calibration(rng, tmp_path):
    p = simplex(rng, 60, 8)
    top = TopK.of(p, 3)
    cal = conformalize(top, labels_from(rng, p))
    cal.save(tmp_path / "a.cal")
    again = setwise.Calibration.load(tmp_path / "a.cal")
    assert again.predict_set(top) == cal.predict_set(top)
    assert again.setting.top == 3


def test_rows_of_one_id_share_their_noise_and_calibration_wants_each_once(rng):
    p = simplex(rng, 4, 3)
    top = TopK.of(p, 2)
    assert len(set(top.uniforms(0, ["a", "a", "b", "b"]).tolist())) == 2
    with pytest.raises(ValueError, match="row_ids"):
        top.uniforms(0, ["a", "a", "b", "b"], distinct=True)


@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.uint64])
def test_positions_may_be_of_any_kind_and_arrays_stay_the_callers(rng, kind):
    p = simplex(rng, 60, 8)
    top, y = TopK.of(p, 3), labels_from(rng, p)
    indices, values = top.indices.astype(kind), top.values.copy()
    other = TopK(indices, values, 8)
    assert conformalize(other, y).predict_set(other) == conformalize(top, y).predict_set(top)
    assert indices.flags.writeable
    assert values.flags.writeable
    assert not other.values.flags.writeable


def test_sums_that_rounding_left_beside_one_are_those_of_whole_rows():
    top = TopK(
        [[2, 0], [1, 2]], np.array([[1 + 1e-7, 0.0], [0.6, 0.4 + 1e-7]], dtype=np.float32), 5, rest=[0, -1e-7]
    )
    assert top.rest.tolist() == [0, 0]
    assert TopK.of(np.array([[1 + 1e-7, 0.0, 0.0]]), 2).proposed.label.tolist() == [0]
    with pytest.raises(ValueError, match=r"with rest in the last column: row 0 has entries from -0\.1"):
        TopK([[0, 1]], [[0.6, 0.5]], 5, rest=[-0.1])
    with pytest.raises(ValueError, match="row 0 holds nan in column 2"):
        TopK([[0, 1]], [[0.6, 0.4]], 5, rest=[np.nan])
