"""Several right labels: which of them decides, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as some

from setwise import LabelSets, MisuseWarning, TopK, Votes, conformalize, evaluate
from setwise.conformal.calibration import Calibration
from setwise.evidence.right_labels import contains_enough, count_needed, read_truth

TRUTHS = ["all", "one", 0.5, 0.9]


@pytest.fixture(scope="module")
def rows():
    """400 rows of five labels: probabilities, right labels as a mask, candidates that hold these and more."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(5), 400)
    right = rng.random((400, 5)) < 2 * P
    right[np.arange(400), P.argmax(axis=1)] |= ~right.any(axis=1)
    return P, right, right | (rng.random((400, 5)) < 0.3)


def verified(right, m=100):
    return [np.flatnonzero(row).tolist() if i < m else None for i, row in enumerate(right)]


def share_of(truth):
    return {"all": 1.0, "one": 1e-9}.get(truth, truth)


@given(
    some.lists(some.lists(some.booleans(), min_size=4, max_size=4).filter(any), min_size=1, max_size=20),
    some.sampled_from([*TRUTHS, 1 / 3, 0.99]),
    some.sampled_from(["lac", "aps", "saps", "margin"]),
    some.integers(0, 2**31),
)
def test_a_set_contains_enough_right_labels_exactly_where_it_contains_the_one_that_decides(mask, truth, name, seed):
    """The sets of the scores up to t are tried for every t that makes a difference."""
    mask = np.array(mask)
    P = np.random.default_rng(seed).dirichlet(np.ones(4), len(mask))
    right = LabelSets.from_mask(mask)
    made = conformalize(P, right, "max", name, truth=truth, random_state=0)
    scores = made.reader.read(P).scores
    for t in np.unique(scores):
        enough = (mask & (scores <= t)).sum(axis=1) >= np.ceil(share_of(truth) * mask.sum(axis=1) - 1e-12)
        assert ((made.evidence.high <= t) == enough).all()
        assert (contains_enough(LabelSets.from_mask(scores <= t), right, read_truth(truth)) == enough).all()


@pytest.mark.parametrize(("truth", "rule"), [("all", "max"), ("one", "min")])
def test_exact_sets_give_the_thresholds_of_the_papers_rules(rows, truth, rule):
    P, right, _ = rows
    for level in (0.5, 0.9, 0.99):
        assert conformalize(P, right, truth=truth).threshold(level) == conformalize(P, right, rule).threshold(level)


@pytest.mark.parametrize("truth", TRUTHS)
def test_verified_sets_and_exact_sets_give_the_same_scores(rows, truth):
    P, right, S = rows
    checked = conformalize(P, S, verified=verified(right, 400), truth=truth)
    exact = conformalize(P, right, truth=truth)
    assert (checked.evidence.truth == exact.evidence.high).all()
    assert checked.threshold(0.9) == exact.threshold(0.9)


@pytest.mark.parametrize("truth", TRUTHS)
def test_single_labels_give_what_they_give_without_truth(rows, truth):
    P, right, S = rows
    labels = [int(row.argmax()) if i < 100 else None for i, row in enumerate(right)]
    plain = conformalize(P, S, verified=labels)
    for given_labels in (labels, [None if label is None else [label] for label in labels], np.array(labels, float)):
        assert conformalize(P, S, verified=given_labels, truth=truth).threshold(0.9) == plain.threshold(0.9)


def test_a_share_counts_as_many_labels_as_the_written_decimal_needs():
    sizes = np.arange(1, 21)
    assert count_needed(sizes, "0.9").tolist() == [-(-9 * size // 10) for size in range(1, 21)]
    assert (count_needed(sizes, "all") == sizes).all()
    assert (count_needed(sizes, "one") == 1).all()


@pytest.mark.parametrize("truth", TRUTHS)
def test_a_file_keeps_what_sets_must_contain(rows, truth, tmp_path):
    P, right, S = rows
    made = conformalize(P, S, verified=verified(right), truth=truth)
    made.save(tmp_path / "a.cal")
    loaded = Calibration.load(tmp_path / "a.cal")
    assert loaded.predict_set(P, 0.8) == made.predict_set(P, 0.8)
    assert str(loaded.guarantee(0.8)) == str(made.guarantee(0.8))


def test_the_guarantee_says_how_many_right_labels_a_set_contains(rows):
    P, right, S = rows
    for truth, words in {
        "all": "all of its right labels",
        "one": "at least one of its right labels",
        0.9: "at least 90 % of its right labels",
    }.items():
        made = conformalize(P, S, verified=verified(right), truth=truth).guarantee(0.9)
        assert made.claims[0].sentence.startswith(
            f"a new row's set contains {words} with probability at least 0.90"
        )
        assert made.promised == 0.9
        assert "true label" not in str(made)
        assert "no right label is missing" in str(made)


@pytest.mark.filterwarnings("ignore:verified. too few:setwise.MisuseWarning")
@pytest.mark.parametrize("strategy", ["max", "auto", "rectified"])
def test_candidates_that_lack_right_labels_are_refuted(rows, strategy):
    P, right, _ = rows
    fewer = right & ((right.cumsum(axis=1) == 1) | (np.arange(400) % 3 > 0)[:, None])
    every = conformalize(P, fewer, strategy, verified=verified(right), truth="all")
    some_of_them = conformalize(P, fewer, strategy, verified=verified(right), truth="one")
    assert every.judgement.truth_refuted
    assert not some_of_them.judgement.truth_refuted
    assert every.judgement.verification_counts[1] == (right & ~fewer)[:100].any(axis=1).sum()


def test_candidates_that_lack_right_labels_are_named(rows):
    P, right, S = rows
    fewer = S.copy()
    fewer[3] &= ~right[3]
    fewer[3, right[3].argmin()] = True
    with pytest.warns(MisuseWarning, match=r"too few of the right labels of row 3 .* \(1 of 100 verified rows"):
        conformalize(P, fewer, "max", verified=verified(right), truth="one")


def test_every_sentence_is_about_right_labels(rows):
    P, right, S = rows
    fewer = LabelSets.from_labels(P.argmax(axis=1), range(5))
    for candidates, strategy, options in (
        (fewer, "auto", {"verified": verified(right, 6)}),
        (S, "max", {"verified": verified(right, 6), "miss_rate": 0.02}),
        (right, "max", {"miss_rate": 0.02}),
    ):
        text = " ".join(str(conformalize(P, candidates, strategy, truth="all", **options).guarantee(0.9)).split())
        assert "all of its right labels" in text
        assert "true label" not in text
    assert "at most 0.02 of the rows have a wrong label or lack a right one" in text


def test_rows_without_a_right_label_are_an_error_or_left_out(rows):
    P, right, S = rows
    none = right.copy()
    none[7::10] = False
    for candidates, options in ((none, {}), (S, {"verified": verified(none)})):
        with pytest.raises(ValueError, match=r"row 7 has no right label \(\d+ such rows\); use empty='drop'"):
            conformalize(P, candidates, truth="all", **options)
    made = conformalize(P, S, verified=verified(none), truth="all", empty="drop")
    kept = np.setdiff1d(np.arange(100), np.arange(7, 100, 10))
    alone = conformalize(P[kept], S[kept], verified=verified(right[kept]), truth="all")
    assert made.evidence.n == 90
    assert made.threshold(0.9) == alone.threshold(0.9)
    assert made.evidence.position.tolist() == kept.tolist()
    text = " ".join(str(made.guarantee(0.9)).split())
    assert "the set of a new row with a right label contains all of its right labels" in text
    assert "rows with no right label are left out (10 dropped)" in text
    by_luck = conformalize(P[:7], S[:7], verified=verified(none[:7], 5), truth="all", empty="drop")
    assert by_luck.evidence.n == 5  # nobody knows whether the other two have a right label
    assert "(0 dropped)" in str(by_luck.guarantee(0.8))
    exact = conformalize(P, none, truth="all", empty="drop")
    assert exact.threshold(0.9) == conformalize(P[none.any(axis=1)], none[none.any(axis=1)], truth="all").threshold(
        0.9
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"truth": None}, r"verified: row \d+ is \[.*\], not one label; use truth='all'"),
        ({"truth": "most"}, "truth: 'most' is not known; use 'all', 'one', or a share"),
        ({"truth": 0}, "truth: 0 is not known"),
        ({"truth": 1.5}, "truth: 1.5 is not known"),
        ({"strategy": "posterior"}, "truth: strategy 'posterior' is defined for one true label"),
        ({"strategy": "mean"}, "truth: strategy 'mean' is defined for one true label"),
        ({"assume": "uniform"}, "truth: several right labels with what assume states"),
        ({"by": "label"}, "truth: by='label' is defined for one true label"),
        ({"by": "size", "verified": None}, "truth: by='size' is defined for one true label"),
        ({"empty": "skip"}, "empty: 'skip' is not known; use 'error' or 'drop'"),
        ({"truth": None, "verified": None, "empty": "drop"}, "empty: only where several labels may be right"),
        ({"verified": [[0, 9]] * 400}, "verified: row 0: 9 is not among the 5 classes"),
        ({"verified": [[0, 1]] * 7}, "verified: 7 entries for 400 rows"),
        ({"verified": [[]] * 400, "empty": "drop"}, r"verified: row 0 has no right label \(400 such rows\)\.$"),
        ({"verified": [[], [1]] * 200, "empty": "drop", "groups": range(400)}, "groups: not where rows without"),
    ],
)
def test_what_cannot_be_is_refused_by_name(rows, change, message):
    P, right, S = rows
    options = {"verified": verified(right), "truth": "all"} | change
    with pytest.raises(ValueError, match=message):
        conformalize(P, S, **options)


def test_votes_with_several_right_labels_are_refused(rows):
    P, right, S = rows
    with pytest.raises(
        ValueError, match="truth: votes are weighed as answers about one true label; pass votes.cand"
    ):
        conformalize(
            P, Votes.from_lists(LabelSets.from_mask(S).to_lists(), range(5)), verified=verified(right), truth="all"
        )


def test_triage_counts_any_right_label_and_refuses_to_propose_several(rows):
    P, right, S = rows
    with pytest.raises(ValueError, match="triage: one label is proposed .*use truth='one'"):
        conformalize(P, S, verified=verified(right), truth="all").triage()
    made = conformalize(P, S, verified=verified(right), truth="one", random_state=0)
    wrong = [not right[i, made.evidence.consensus[i]] for i in range(100)]
    assert ((made.evidence.label != made.evidence.consensus)[:100] == wrong).all()
    assert made.triage(max_error=0.3).accepted.any()


@pytest.mark.parametrize("truth", ["one", 0.5])
def test_what_needs_every_right_label_among_the_candidates_is_refused(rows, truth):
    P, right, S = rows
    made = conformalize(P, S, verified=verified(right), truth=truth)
    with pytest.raises(ValueError, match="candidates: sets cut down .*truth='all'"):
        made.predict_set(P, candidates=S)
    with pytest.raises(ValueError, match="bracket: .*truth='all'"):
        made.bracket()


def test_sets_cut_down_to_candidates_still_contain_all_right_labels(rows):
    P, right, S = rows
    made = conformalize(P, S, verified=verified(right), truth="all")
    whole, cut = made.predict_set(P), made.predict_set(P, candidates=S)
    assert evaluate(whole, LabelSets.from_mask(right), truth="all")["coverage"] == pytest.approx(
        evaluate(cut, LabelSets.from_mask(right), truth="all")["coverage"]
    )
    low, high = made.bracket()
    assert low < evaluate(whole, LabelSets.from_mask(right), truth="all")["coverage"] < high


def test_the_largest_probabilities_alone_give_the_same_scores(rows):
    P, right, S = rows
    top = TopK.of(P, k=5)
    whole = conformalize(P, S, "max", verified=verified(right), truth=0.9)
    assert np.allclose(
        conformalize(top, S, "max", verified=verified(right), truth=0.9).evidence.truth,
        whole.evidence.truth,
        equal_nan=True,
    )


def test_verified_labels_may_come_in_any_column_of_sets(rows):
    pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    P, right, S = rows
    lists = verified(right, 400)
    expected = conformalize(P, S, verified=lists, truth="all").threshold(0.9)
    for column in (pa.array(lists), pd.Series(lists), LabelSets.from_mask(right), map(tuple, lists)):
        assert conformalize(P, S, verified=column, truth="all").threshold(0.9) == expected


@pytest.mark.parametrize("truth", TRUTHS)
def test_rows_that_were_given_every_label_do_not_count_as_right_in_all(rows, truth):
    """With ``truth="one"`` such a row would be covered by its most probable label, and thresholds be too small."""
    P, right, _ = rows
    known = [np.flatnonzero(row).tolist() if i % 3 else None for i, row in enumerate(right)]
    filled = LabelSets.from_lists(known, classes=range(5), missing="full")
    for sets in (filled, LabelSets.from_lists(known, range(5), missing="empty").fill_empty()):
        with pytest.raises(
            ValueError, match="rows without labels were given every label, and not all of these are"
        ):
            conformalize(P, sets, truth=truth)
    assert conformalize(P, filled, verified=verified(right), truth=truth).setting.filled


@pytest.mark.parametrize("make", [list, pd.Series, pl.Series, lambda rows: [row and np.array(row) for row in rows]])
def test_sets_of_right_labels_come_in_any_container(make):
    rows = [["a", "b"]] * 10 + [["c"]] * 5 + [None] * 5
    P = np.random.default_rng(0).dirichlet([1, 1, 1], size=20)
    cal = conformalize(P, np.ones((20, 3), dtype=bool), classes=list("abc"), verified=make(rows), truth="all")
    same = conformalize(P, np.ones((20, 3), dtype=bool), classes=list("abc"), verified=rows, truth="all")
    assert cal.predict_set(P, 0.5).to_lists() == same.predict_set(P, 0.5).to_lists()
