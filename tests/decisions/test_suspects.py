"""`suspects`: few of the labels that it finds are right, and most wrong ones are found."""

import numpy as np
import pytest
from scipy.stats import binom

import setwise
from setwise import MisuseWarning, Votes
from setwise.errors import InputError
from tests.conftest import printed

N, M = 800, 200


def world(rng, wrong=0.15, sharp=0.97):
    """True labels, given labels, and the probabilities of a model that errs on its own."""
    y = rng.integers(0, 4, N)
    given = np.where(rng.random(N) < wrong, (y + rng.integers(1, 4, N)) % 4, y)
    seen = np.where(rng.random(N) < sharp, y, rng.integers(0, 4, N))
    weight = rng.uniform(0.4, 0.97, (N, 1))
    P = np.eye(4)[seen] * weight + (1 - weight) / 4
    return y, given, P


def verify(rng, y):
    return np.where(rng.permutation(N) < M, y, None)


@pytest.mark.filterwarnings("ignore::setwise.MisuseWarning")  # one draw in a hundred looks chosen
def test_few_of_the_labels_found_are_right_on_average_and_in_this_draw(rng):
    shares, broken, recall = [], 0, []
    for seed in range(200):
        y, given, P = world(rng)
        verified = verify(rng, y)
        found = setwise.suspects(given, verified, probabilities=P, max_false=0.2, random_state=seed)
        right = (given == y)[found.rows]
        shares.append(right.mean() if len(found) else 0)
        broken += len(found) > 0 and right.mean() > found.bound
        hidden = (given != y) & np.equal(verified, None)
        recall.append((~right).sum() / hidden.sum())
    assert np.mean(shares) <= 0.2 + 3 * np.std(shares) / np.sqrt(200)
    assert binom.sf(broken - 1, 200, 0.05) > 1e-3
    assert np.mean(recall) > 0.6


@pytest.mark.filterwarnings("ignore::setwise.MisuseWarning")  # one draw in a hundred looks chosen
def test_without_the_one_that_is_added_too_many_would_be_right(rng, monkeypatch):
    """Few verified rows, and a score that tells nothing: whatever is found is a false alarm as often as not."""
    from setwise.decisions.modes import OrderedRows

    class Bold(OrderedRows):
        def _take_average(self, error):
            n = len(self.rows)
            enough = np.arange(1, n + 1) * error * self.m >= self.above * n
            return int(np.flatnonzero(enough).max(initial=-1)) + 1

    shares = {"as it is": [], "without the +1": []}
    for seed in range(300):
        y, given, _ = world(rng, wrong=0.5)
        P = rng.dirichlet(np.ones(4), N)
        verified = np.where(rng.permutation(N) < 12, y, None)
        for way, values in shares.items():
            with monkeypatch.context() as undone:
                if way != "as it is":
                    undone.setattr("setwise.decisions.suspects.OrderedRows", Bold)
                found = setwise.suspects(given, verified, probabilities=P, max_false=0.2, random_state=seed)
            values.append((given == y)[found.rows].mean() if len(found) else 0)
    assert np.mean(shares["as it is"]) <= 0.2 + 3 * np.std(shares["as it is"]) / np.sqrt(300)
    assert np.mean(shares["without the +1"]) > 0.3


def test_votes_a_model_or_both_name_the_label_instead(rng):
    y, given, P = world(rng)
    names = np.array(["ant", "bee", "cat", "dog"])
    said = np.where(rng.random((N, 3)) < 0.7, y[:, None], rng.integers(0, 4, (N, 3)))
    votes = Votes.from_matrix(names[np.c_[given, said]], classes=names)
    verified = np.where(rng.permutation(N) < M, names[y], None)
    counts = {}
    for name, more in {"votes": {}, "both": {"probabilities": P}}.items():
        found = setwise.suspects(names[given], verified, votes, max_false=0.2, random_state=0, **more)
        counts[name] = len(found)
        assert (found.labels == names[given][found.rows]).all()
        assert (found.proposed != found.labels).all()
        assert (found.proposed == names[y][found.rows]).mean() > 0.6
        assert not set(found.rows) & set(np.flatnonzero(~np.equal(verified, None)))
        assert (np.diff(found.suspicion) <= 0).all()
    assert counts["both"] > counts["votes"] > 0
    assert list(found.to_frame()) == ["row", "label", "proposed", "suspicion"]
    text = printed(found)
    assert f"{len(found)} labels look wrong; {found.wrong} of 200 given labels that were verified are wrong" in text
    assert text.index("19 of 20 draws") < text.index("on average over verified rows")
    assert "<pre>" in found._repr_html_()


def test_all_wrong_none_wrong_and_too_few_verified(rng):
    y, _, P = world(rng)
    every = setwise.suspects((y + 1) % 4, verify(rng, y), probabilities=P, random_state=0)
    assert len(every) == N - M
    none = setwise.suspects(y, verify(rng, y), probabilities=P, random_state=0)
    assert (len(none), none.bound, none.proposed.size) == (0, None, 0)
    few = setwise.suspects((y + 1) % 4, np.where(np.arange(N) < 8, y, None), probabilities=P, random_state=0)
    assert len(few) == 0
    assert "more verified rows find more" in printed(few)
    assert len(setwise.suspects((y + 1) % 4, np.where(np.arange(N) < 9, y, None), probabilities=P)) > 0
    full = setwise.suspects((y + 1) % 4, y, probabilities=P)
    assert len(full) == 0


def test_what_cannot_be_judged_is_refused_by_name(rng):
    y, given, P = world(rng)
    verified = verify(rng, y)
    with pytest.raises(InputError, match="nothing shows which labels look wrong; use votes=… for answers"):
        setwise.suspects(given, verified)
    with pytest.raises(InputError, match="suspects needs verified labels; use verified=…"):
        setwise.suspects(given, None, probabilities=P)
    with pytest.raises(InputError, match="labels: row 0 has 2 labels; leave rows out"):
        setwise.suspects(setwise.LabelSets.from_lists([[0, 1]] * N, classes=range(4)), verified, probabilities=P)
    with pytest.raises(InputError, match="probabilities: 799 rows for 800 labels"):
        setwise.suspects(given, verified, probabilities=P[1:])
    with pytest.raises(ValueError, match="max_false: 1 is not between 0 and 1"):
        setwise.suspects(given, verified, probabilities=P, max_false=1)
    sure = np.where(P.max(axis=1) > 0.9, y, None)
    with pytest.warns(MisuseWarning, match="not a random choice"):
        found = setwise.suspects(given, sure, probabilities=P)
    assert found.guarantee.promised is None


def test_verified_labels_that_took_the_place_of_the_answers_are_refused(rng):
    y, given, _ = world(rng)
    verified = verify(rng, y)
    answers = zip(verified, given.tolist(), strict=True)
    lists = [[one, (one + 1) % 4] if label is None else [label, label] for label, one in answers]
    with pytest.raises(InputError, match="pass the votes as they were before rows were verified"):
        setwise.suspects(given, verified, votes=Votes.from_lists(lists, range(4)))


def test_text_labels_need_the_classes_of_the_columns_and_are_found_like_positions(rng):
    names = np.array(["owl", "cat, big", "ὗς"])
    y = rng.integers(0, 3, 600)
    given = np.where(rng.random(600) < 0.7, y, rng.integers(0, 3, 600))
    P = 0.9 * np.eye(3)[np.where(rng.random(600) < 0.95, y, rng.integers(0, 3, 600))] + 0.1 / 3
    checked, named = np.full(600, None), np.full(600, None)
    checked[:200], named[:200] = y[:200], names[y[:200]]
    with pytest.raises(ValueError, match="labels: .* use classes="):
        setwise.suspects(names[given], named, probabilities=P)
    by_name = setwise.suspects(names[given], named, probabilities=P, max_false=0.2, classes=names, random_state=0)
    by_position = setwise.suspects(given, checked, probabilities=P, max_false=0.2, random_state=0)
    assert len(by_name)
    assert np.array_equal(by_name.rows, by_position.rows)
    assert by_name.proposed.tolist() == names[by_position.proposed].tolist()
