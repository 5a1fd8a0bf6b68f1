"""`estimate`: which figures it gives, that each interval holds in most draws, and what breaks that."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import hypergeom

from setwise import LabelSets, MisuseWarning, Votes, estimate
from setwise.crowd import estimates
from setwise.errors import InputError

N = 600


@pytest.fixture(scope="module")
def panel():
    """Truth, and votes of five annotators of whom three are near-copies."""
    rng = np.random.default_rng(0)
    y = rng.choice(3, N, p=[0.5, 0.3, 0.2])
    first = np.where(rng.random(N) < 0.65, y, rng.integers(0, 3, N))
    copies = [np.where(rng.random(N) < 0.95, first, rng.integers(0, 3, N)) for _ in range(3)]
    others = [np.where(rng.random(N) < share, y, rng.integers(0, 3, N)) for share in (0.6, 0.8)]
    cells = np.column_stack([*copies, *others])
    return y, cells, Votes.from_matrix(cells, annotators=list("abcde"), classes=range(3))


def verify(y, m, seed=0):
    known = np.full(len(y), None)
    rows = np.random.default_rng(seed).permutation(len(y))[:m]
    known[rows] = y[rows]
    return known


def truth_of(frame, y, cells, votes):
    """The true value of each figure."""
    consensus = np.asarray(estimates.weigh_votes(votes)).argmax(axis=1)
    said = dict(zip("abcde", cells.T, strict=True)) | {"consensus": consensus}
    values = []
    for what, name, label in zip(frame["what"], frame["name"], frame["label"], strict=True):
        if what == "share":
            values.append((y == name).mean())
        else:
            rows = slice(None) if what == "accuracy" else y == label
            values.append((said[name] == y)[rows].mean())
    return np.array(values)


@pytest.mark.parametrize("m", [30, 100])
def test_each_interval_holds_in_nineteen_of_twenty_draws(panel, m, monkeypatch):
    y, cells, votes = panel
    support = estimates.weigh_votes(votes)  # it is the same in each draw
    monkeypatch.setattr(estimates, "weigh_votes", lambda *_: support)
    held = {}
    for seed in range(120):
        frame = estimate(votes, verify(y, m, seed)).to_frame()
        inside = (frame["lower"] <= (true := truth_of(frame, y, cells, votes))) & (true <= frame["upper"])
        for key, one in zip(zip(frame["what"], frame["name"], frame["label"], strict=True), inside, strict=True):
            held.setdefault(str(key), []).append(one)
    assert len(held) == 3 + 6 + 18
    assert min(np.mean(one) for one in held.values()) >= 0.95 - 3.5 * (0.05 * 0.95 / 120) ** 0.5


def test_a_consensus_that_has_seen_the_verified_labels_breaks_it(panel, monkeypatch):
    y, _, votes = panel
    blind = estimates.weigh_votes(votes).copy()
    held = []
    monkeypatch.setattr(estimates, "warn_about_choice", lambda found, **_: found)
    for seed in range(40):
        known = verify(y, 150, seed)
        seeing = blind.copy()
        rows = np.flatnonzero(known != None)  # noqa: E711
        seeing[rows] = np.eye(3)[y[rows]]
        monkeypatch.setattr(estimates, "weigh_votes", lambda *_, seeing=seeing: seeing)
        found = estimate(votes, known).to_frame()
        share = (blind.argmax(axis=1) == y).mean()
        right = found[(found["what"] == "accuracy") & (found["name"] == "consensus")].iloc[0]
        held.append(right["lower"] <= share <= right["upper"])
    assert np.mean(held) < 0.2


def test_the_binomial_interval_of_recalls_holds_for_rows_drawn_without_replacement():
    for n in (4, 11, 30, 75):
        for m in range(1, n + 1):
            x = np.arange(m + 1)
            lower, upper = estimates.binomial_bounds(x, np.full(m + 1, m), 0.05)
            marked = np.arange(n + 1)[:, None]
            inside = (lower <= marked / n + 1e-12) & (marked / n <= upper + 1e-12)
            assert (hypergeom.pmf(x, n, marked, m) * inside).sum(axis=1).min() >= 0.95 - 1e-9


def test_all_rows_verified_give_the_figures_themselves(panel):
    y, cells, votes = panel
    frame = estimate(votes, y).to_frame()
    exact = frame[frame["what"] != "recall"]
    np.testing.assert_allclose(exact["value"], truth_of(exact, y, cells, votes))
    np.testing.assert_allclose(exact["lower"], exact["upper"])
    np.testing.assert_allclose(frame["value"], truth_of(frame, y, cells, votes))


def test_a_model_is_judged_and_narrows_the_accuracy_of_a_labeller(panel):
    y, cells, _ = panel
    P = 0.9 * np.eye(3)[np.where(np.random.default_rng(1).random(N) < 0.95, y, 0)] + 0.1 / 3
    frames = [estimate(cells[:, 4], verify(y, 150), probabilities=p).to_frame() for p in (None, P)]
    right = [frame[(frame["what"] == "accuracy") & (frame["name"] == "labels")].iloc[0] for frame in frames]
    for one in right:
        assert one["lower"] <= (cells[:, 4] == y).mean() <= one["upper"]
    width = [one["upper"] - one["lower"] for one in right]
    assert width[1] < 0.8 * width[0]
    model = frames[1].query("what == 'accuracy' and name == 'model'").iloc[0]
    assert model["lower"] <= (P.argmax(axis=1) == y).mean() <= model["upper"]
    assert set(frames[0]["what"]) == {"share", "accuracy", "recall"}


def test_a_label_that_only_verified_rows_have_has_a_share():
    labels = ["cat"] * 90
    found = estimate(labels, ["cat"] * 20 + ["dog"] * 10 + [None] * 60).to_frame()
    assert found[found["what"] == "share"]["name"].tolist() == ["cat", "dog"]
    assert found["value"].tolist()[:2] == [20 / 30, 10 / 30]


def test_delivered_sets_have_a_coverage(panel):
    y, cells, votes = panel
    mask = (np.arange(3) == cells[:, [4]]) | (np.arange(3) == cells[:, [3]])
    sets = LabelSets.from_mask(mask)
    covered = sets.contains(y).mean()
    for found in (estimate(sets, verify(y, 150)), estimate(votes, verify(y, 150), sets=sets)):
        one = found.to_frame().query("what == 'coverage'").iloc[0]
        assert one["lower"] <= covered <= one["upper"]


def test_two_classes_have_sensitivity_and_specificity():
    y = np.arange(200) % 2
    said = np.where(np.arange(200) < 180, y, 1)
    last, first = (
        estimate(said, y, positive=positive).to_frame().set_index("what")["value"] for positive in (None, 0)
    )
    assert (last["sensitivity"], last["specificity"]) == (1, 0.9)
    assert (first["sensitivity"], first["specificity"]) == (0.9, 1)
    with pytest.raises(InputError, match="positive: 7 is not one of two classes"):
        estimate(said, y, positive=7)


def test_each_category_has_figures_of_its_own_rows(panel):
    y, _, votes = panel
    by = np.where(np.arange(N) < 200, "old", "new")
    known = verify(y, 300)
    frame = estimate(votes, known, by=by).to_frame()
    old = frame[frame["category"] == "old"]
    alone = estimate(votes[:200], known[:200]).to_frame()
    shares = old[old["what"] == "share"]
    assert shares["verified"].tolist() == [int((known[:200] != None).sum())] * 3  # noqa: E711
    assert old["what"].tolist() == alone["what"].tolist()
    true = np.array([(y[:200] == k).mean() for k in range(3)])
    assert ((shares["lower"] <= true) & (true <= shares["upper"])).all()
    assert frame["category"].isna().sum() == len(frame) - (frame["category"].notna()).sum() == 27


def test_rows_of_groups_count_as_groups():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(60), 10)
    y = np.repeat(rng.integers(0, 2, 60), 10)  # all rows of a group are alike
    said = np.where(rng.random(600) < 0.9, y, 1 - y)
    known = np.where(np.isin(group, rng.permutation(60)[:30]), y.astype(object), None)
    alone, grouped = (estimate(said, known, groups=groups) for groups in (None, group))
    share = [(one.upper - one.lower)[one.what == "share"] for one in (alone, grouped)]
    assert (share[1] > 2 * share[0]).all()
    assert "the 30 verified groups were drawn at random" in " ".join(str(grouped).split())
    few = estimate(said, np.where(group < 15, y.astype(object), None), groups=group)
    assert np.isnan(few.lower).all()
    assert "Fewer than 20 verified groups" in str(few)


def test_rows_for_a_width_are_about_as_many_as_it_takes(panel):
    y, _, votes = panel
    before = estimate(votes, verify(y, 100))
    more = before.rows_for(0.06)
    shares = before.what == "share"
    after = estimate(votes, verify(y, 100 + int(more[shares].max())))
    half = ((after.upper - after.lower) / 2)[shares].max()
    assert 0.05 < half < 0.066
    assert (before.rows_for(0.5) == 0).all()
    assert (before.rows_for(0.001) <= 500).all()
    one = estimate(votes, verify(y, 1))
    assert one.rows_for(0.06)[one.what == "share"].min() > 100
    with pytest.raises(InputError, match="use 0.03 for ± 3 points"):
        before.rows_for(3)


def test_what_is_printed_says_what_is_guaranteed_stated_and_assumed(panel):
    y, _, votes = panel
    told = " ".join(str(estimate(votes, verify(y, 100))).split())
    assert told.startswith("100 of 600 rows are verified.")
    held = "each interval, by itself, contains the true value of its figure for all rows at hand"
    assert f"{held}, in 19 of 20 draws" in told
    assert re.search(r"You state: the 100 verified rows were drawn at random; the verified labels are right", told)
    assert "neither the model nor the annotators saw the verified labels" in told
    assert re.search(r"Note: \d+ more verified rows bring all shares to about ± 3 points\.", told)
    assert "… 15 more" in told  # recalls of annotators


def test_plain_data_has_no_number_that_json_lacks(panel):
    y, _, votes = panel
    known = verify(y, 40)
    found = estimate(votes, known, groups=np.arange(N) // 100)
    plain = found.to_dict()
    assert all(one["lower"] is None for one in plain["figures"])
    assert plain["more_rows"] == [None] * len(found)
    assert (plain["rows"], plain["verified"]) == (N, 40)


def test_easy_rows_verified_void_the_intervals(panel):
    y, _, votes = panel
    sure = np.argsort(-estimates.weigh_votes(votes).max(axis=1), kind="stable")[:150]
    known = np.full(N, None)
    known[sure] = y[sure]
    with pytest.warns(MisuseWarning, match="not a random choice"):
        found = estimate(votes, known)
    assert found.guarantee.promised is None
    assert "Guaranteed:    nothing about these intervals" in str(found)


def test_an_annotator_whose_answers_are_the_verified_labels_is_left_out(panel):
    y, cells, _ = panel
    known = verify(y, 100)
    table = np.column_stack([cells.astype(object), known])
    with pytest.warns(MisuseWarning, match="annotator 'expert'"):
        found = estimate(Votes.from_matrix(table, annotators=[*"abcde", "expert"]), known)
    assert "expert" not in found.name.tolist()


def test_an_annotator_called_like_the_consensus_is_told_from_it(panel):
    y, cells, _ = panel
    votes = Votes.from_matrix(cells[:, :3], annotators=["ann", "consensus", "bob"])
    found = estimate(votes, verify(y, 100, 0))
    assert found.name[found.what == "accuracy"].tolist() == ["consensus", "ann", "bob", "annotator consensus"]


def test_what_cannot_be_estimated_is_refused(panel):
    y, _, votes = panel
    with pytest.warns(MisuseWarning, match="no row has a label"), pytest.raises(InputError, match="needs verified"):
        estimate(votes, [None] * N)
    with pytest.raises(ValueError, match="verified: 3 entries for 600 rows"):
        estimate(votes, [0, 1, None])
    known = verify(y, 200)
    replaced = Votes.from_lists([[0, 1] if label is None else [label] for label in known], classes=range(3))
    with pytest.raises(InputError, match="the only answers to their rows"):
        estimate(replaced, known)
    with pytest.raises(TypeError, match=r"verified: row 0 is \[0, 1\], not one label"):
        estimate(votes, [[0, 1], *[None] * (N - 1)])
    with pytest.raises(InputError, match="pass a frame whose columns are named like the labels"):
        estimate(["a", "b"] * 30, ["a", *[None] * 59], probabilities=np.full((60, 2), 0.5))
    with pytest.raises(TypeError, match="verified_probability"):
        estimate(votes, verify(y, 100), verified_probability=np.full(N, 0.1))


def test_a_frame_holds_one_figure_per_line(panel):
    y, _, votes = panel
    frame = estimate(votes, verify(y, 100)).to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame) == ["what", "name", "label", "value", "lower", "upper", "verified"]
    assert (frame["lower"] <= frame["value"]).all()
    assert (frame["value"] <= frame["upper"]).all()
