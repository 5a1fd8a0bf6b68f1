"""`annotators`: what votes and verified rows tell of people who answer well, badly, at random or alike."""

import json

import numpy as np
import pandas as pd
import pytest

from setwise import Annotators, MisuseWarning, Votes, annotators
from setwise.crowd.alpha import krippendorff_alpha
from setwise.crowd.consensus import find_consensus
from setwise.crowd.resemblance import find_resemblance
from tests.conftest import labels_from, simplex


def crowd(rng, n=300, k=4, accuracies=(0.9, 0.8, 0.7, 0.6, 0.85), answered=1.0):
    """The truth, and one column of answers per annotator; errors are spread evenly."""
    y, right = rng.integers(0, k, n), np.array(accuracies)
    wrong = (y[:, None] + rng.integers(1, k, (n, len(right)))) % k
    cells = np.where(rng.random((n, len(right))) < right, y[:, None], wrong).astype(object)
    cells[rng.random(cells.shape) >= answered] = None
    return y, cells


def named(cells, k, names=None):
    return Votes.from_matrix(cells, classes=range(k), annotators=names or [f"a{j}" for j in range(cells.shape[1])])


@pytest.mark.parametrize(
    ("n", "k", "people", "each"), [(200, 2, 2, 2), (200, 2, 20, 2), (200, 4, 20, 3), (40, 2, 3, 3)]
)
def test_independent_annotators_are_rarely_called_dependent_however_few_their_answers(rng, n, k, people, each):
    refuted = 0
    for _ in range(12):
        _, cells = crowd(rng, n, k, [0.8] * people)
        cells[rng.permuted(np.tile(np.arange(people), (n, 1)), axis=1) >= each] = None
        refuted += annotators(named(cells, k)).dependence.refuted
    assert refuted <= 1


def test_without_verified_rows_no_accuracy_is_told_even_where_errors_are_independent(rng):
    _, cells = crowd(rng)
    found = annotators(named(cells, 4))
    assert not found.dependence.refuted
    assert np.isnan(found.accuracy).all()
    assert "accuracy" not in repr(found).splitlines()[1]
    assert "which does not exclude them" in " ".join(repr(found).split())


def test_confusions_are_those_the_annotators_have(rng):
    y, cells = crowd(rng, 4000, 3)
    swapped = rng.random(4000) < 0.4
    cells[:, 1] = np.where((y == 0) & swapped, 2, y)
    found = annotators(named(cells, 3))
    assert np.abs(found.confusion("a1") - [[0.6, 0, 0.4], [0, 1, 0], [0, 0, 1]]).max() < 0.04
    for name in (None, *found.names):
        assert np.allclose(found.confusion(name).sum(axis=1), 1)
    with pytest.raises(ValueError, match="no annotator 'zoe' among the 5"):
        found.confusion("zoe")


def test_odd_annotators_are_flagged_and_others_are_not(rng):
    y, cells = crowd(rng, 400, 3, (0.9, 0.9, 0.85, 0.9, 0.9, 0.9, 0.9))
    cells[:, 3] = rng.integers(0, 3, 400)
    cells[:, 4] = 1
    cells[:, 5] = (y + 1) % 3
    cells[9:, 6] = None
    flags = dict(zip("abcdefg", annotators(named(cells, 3, list("abcdefg"))).flags, strict=True))
    assert flags["a"] == flags["b"] == flags["c"] == ()
    assert flags["d"] == ("cannot be told from guessing",)
    assert flags["e"][:2] == ("always the same answer", "cannot be told from guessing")
    assert flags["f"] == ("worse than chance", "agrees least with the others")
    assert flags["g"] == ("few answers",)


def test_the_same_answer_is_not_odd_where_it_is_mostly_right(rng):
    y = (rng.random(60) < 0.02).astype(int)
    cells = np.where(rng.random((60, 4)) < 0.97, y[:, None], 1 - y[:, None]).astype(object)
    cells[:, 0] = 0
    assert annotators(named(cells, 2)).flags[0] == ()


def test_agreement_at_its_ends(rng):
    assert annotators(Votes.from_lists([["a", "a"], ["b", "b"]])).alpha == 1
    chance = rng.integers(0, 3, (5000, 4))
    assert abs(annotators(Votes.from_matrix(chance)).alpha) < 0.03
    alone = annotators(Votes.from_lists([["a"], ["b"]]))
    assert np.isnan(alone.alpha)
    assert "no row has two answers" in repr(alone)
    assert alone.to_dict()["alpha"] is None


def test_annotators_who_copy_are_found_dependent(rng):
    y, cells = crowd(rng, 2000, 4, (0.7, 0.7, 0.7, 0.7))
    assert annotators(named(cells, 4)).dependence.p_value > 0.01
    shared = rng.random(2000) < 0.3  # rows that mislead everybody in the same way
    cells[shared] = ((y[shared] + rng.integers(0, 2, shared.sum())) % 4)[:, None]
    found = annotators(Votes.from_lists(cells.tolist(), classes=range(4)))
    assert found.dependence.excess > 0
    assert found.dependence.p_value < 0.01
    assert "share their errors" in repr(annotators(named(cells, 4)))


def test_independent_annotators_with_few_answers_each_are_seldom_called_dependent():
    """The model has more to fit than so few answers tell; as it is, it would call four of ten samples dependent."""
    refuted = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y, skill = rng.integers(0, 4, 200), rng.uniform(0.5, 0.95, 40)
        said = np.where(rng.random((200, 40)) < skill, y[:, None], rng.integers(0, 4, (200, 40)))
        given = rng.random((200, 40)).argsort(axis=1) < 3
        found = annotators(Votes.from_matrix(np.where(given, said, -1), classes=range(4), missing=-1))
        refuted.append(found.dependence.refuted)
    assert sum(refuted) <= 2


def test_perfect_agreement_refutes_nothing(rng):
    y = np.repeat(rng.integers(0, 3, 100)[:, None], 3, axis=1)
    noise = rng.dirichlet(np.full(3, 0.5), size=100)
    P = 0.5 * np.eye(3)[y[:, 0]] + 0.5 * noise
    assert not annotators(Votes.from_matrix(y, classes=range(3)), probabilities=P).dependence.refuted


def test_the_consensus_beats_the_majority_where_people_differ(rng):
    y, cells = crowd(rng, 1000, 3, (0.95, 0.45, 0.45, 0.45, 0.45))
    votes = named(cells, 3)
    found = annotators(votes)
    assert (found.consensus == y).mean() > (votes.counts.argmax(axis=1) == y).mean() + 0.05
    assert np.allclose(found.confidence.sum(axis=1), 1)


def test_a_classifier_joins_the_consensus_with_its_columns_by_name(rng):
    p = simplex(rng, 1000, 3)
    y = labels_from(rng, p)
    names = np.array(["ant", "bee", "cat"])
    cells = names[np.where(rng.random((1000, 2)) < 0.6, y[:, None], rng.integers(0, 3, (1000, 2)))]
    votes = Votes.from_matrix(cells, classes=names)
    alone, joined = annotators(votes), annotators(votes, probabilities=p)
    assert (joined.consensus == names[y]).mean() > (alone.consensus == names[y]).mean()
    turned = annotators(votes, probabilities=pd.DataFrame(p, columns=names)[["cat", "ant", "bee"]])
    assert (turned.consensus == joined.consensus).all()
    with pytest.raises(ValueError, match="999 rows for 1,000"):
        annotators(votes, probabilities=p[:999])


def test_anonymous_votes_tell_what_all_have_in_common(rng):
    y, cells = crowd(rng)
    found = annotators(Votes.from_lists(cells.tolist(), classes=range(4)))
    assert len(found) == 0
    assert found.flags == ()
    assert found.confusion().shape == (4, 4)
    assert (found.consensus == y).mean() > 0.9
    assert "Anonymous annotators" in repr(found)
    assert found.to_frame().empty


def test_weights_and_rows_without_answers(rng):
    y, cells = crowd(rng, 200, 3)
    cells[:3] = None
    rows, people = np.nonzero(cells != None)  # noqa: E711 - elementwise
    labels = cells[rows, people].astype(int)
    weight = rng.uniform(0.5, 2, len(rows))
    votes = Votes.of(200, rows, labels, people.astype(object), weight, classes=range(3))
    found = annotators(votes)
    assert found.consensus[:3].tolist() == [None] * 3
    assert (found.consensus[3:] == y[3:]).mean() > 0.85
    assert found.confusion(0).shape == (3, 3)
    assert found.answers.sum() == len(rows)
    sliced = annotators(votes[votes.sizes > 0][[0, 1]])  # the vocabulary keeps all names
    assert len(sliced) == 5


def test_what_is_shown_is_short_and_plain_data(rng):
    _, cells = crowd(rng, 50, 3, (0.8,) * 15)
    names = ["<script>alert(1)</script>", "a\nb", "x" * 200, *(f"w{j}" for j in range(12))]
    found = annotators(named(cells, 3, names))
    assert isinstance(found, Annotators)
    assert len(repr(found).splitlines()) <= 20
    assert max(map(len, repr(found).splitlines()[:12])) < 120
    assert json.loads(json.dumps(found.to_dict()))["annotators"][2]["name"] in names
    assert found.to_frame().shape == (15, 7)


def test_what_is_no_vote_is_refused():
    with pytest.raises(TypeError, match="expected Votes, got list"):
        annotators([["a"], ["b"]])
    with pytest.raises(ValueError, match="there is no answer"):
        annotators(Votes.from_lists([[], []], classes=["a", "b"]))


def test_a_survey_that_thousands_answered_is_described():
    """All pairs of 20,000 people would be 400 million."""
    n, people = 3, 20_000
    rows, who = np.repeat(np.arange(n), people), np.tile(np.arange(people), n)
    votes = Votes.from_codes(n, rows, ["x", "y"], rows % 2, range(people), who)
    found = annotators(votes)
    assert found.agreement[0] == pytest.approx(1)
    assert np.isnan(found.accuracy).all()
    assert "Too few rows" in repr(found)


@pytest.mark.parametrize("n", [40, 300, 3000])
@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_annotators_who_are_nearly_always_right_are_not_called_dependent(n, wrong, rng):
    y = rng.integers(0, 3, n)
    answers = np.repeat(y[:, None], 3, axis=1)
    answers[np.arange(wrong), np.arange(wrong)] = (y[:wrong] + 1) % 3
    p = np.where(np.eye(3)[y], 0.8, 0.1)
    for probabilities in (None, p):
        assert not annotators(Votes.from_matrix(answers), probabilities=probabilities).dependence.refuted


def copying_panel(rng, n=1500):
    """Eight near-copies of one, two others who are better; a matrix of answers and the truth."""
    y = rng.integers(0, 3, n)

    def noisy(base, share):
        return np.where(rng.random(n) < share, base, rng.integers(0, 3, n))

    root = noisy(y, 0.6)
    return np.column_stack([noisy(root, 0.97) for _ in range(8)] + [noisy(y, 0.75) for _ in range(2)]), y


def draw(rng, y, m):
    """The truth of m rows drawn at random, None elsewhere."""
    verified = np.full(len(y), None)
    rows = rng.choice(len(y), m, replace=False)
    verified[rows] = y[rows]
    return verified


@pytest.mark.filterwarnings("ignore:verified. not a random choice")  # in 1 of 100 draws
@pytest.mark.parametrize("m", [40, 100, 300])
def test_intervals_from_verified_rows_hold_however_annotators_copy_each_other(rng, m):
    held = []
    for _ in range(60):
        said, y = copying_panel(rng, 600)
        found = annotators(named(said, 3), draw(rng, y, m))
        accuracy = (said == y[:, None]).mean(axis=0)
        held.append((found.lower <= accuracy) & (accuracy <= found.upper))
    assert np.mean(held) > 0.93


def test_verified_rows_tell_copies_the_best_and_a_better_consensus(rng):
    said, y = copying_panel(rng)
    votes = named(said, 3)
    found = annotators(votes, draw(rng, y, 200))
    assert found.effective_votes < 3
    assert set(found.near_copies) == {tuple(f"a{j}" for j in range(8))}
    assert set(found.best) <= {"a8", "a9"}
    assert (found.consensus == y).mean() > (votes.counts.argmax(axis=1) == y).mean() + 0.05
    assert "near-copy of a1, …" in found.flags[0]
    told = " ".join(repr(found).split())
    for words in ("(200 verified)", "Guaranteed:", "the 200 rows were drawn at random", "is the most accurate"):
        assert words in told
    assert annotators(votes).consensus.tolist() != found.consensus.tolist()


def test_where_errors_are_shared_no_accuracy_is_told_without_verified_rows(rng):
    said, _ = copying_panel(rng)
    found = annotators(named(said, 3))
    assert found.dependence.refuted
    assert np.isnan(found.accuracy).all()
    assert "accuracy" not in repr(found).splitlines()[1]
    assert "Verify 100 rows drawn at random" in " ".join(repr(found).split())
    assert found.to_dict()["annotators"][0]["accuracy"] is None


def test_where_annotators_avoid_each_other_no_accuracy_is_told_either(rng):
    y, who_errs = rng.integers(0, 2, 1000), rng.integers(0, 5, (1000, 1))
    said = np.where(who_errs == np.arange(4), 1 - y[:, None], y[:, None])  # at most one of them in a row
    found = annotators(named(said, 2))
    assert found.dependence.refuted
    assert np.isnan(found.accuracy).all()
    assert "avoid each other's answers" in " ".join(repr(found).split())


def test_rows_chosen_because_they_are_easy_void_the_intervals(rng):
    y, cells = crowd(rng, 600, 3)
    votes, verified = named(cells, 3), np.full(600, None)
    easy = np.argsort(-votes.counts.max(axis=1), kind="stable")[100:200]
    verified[easy] = y[easy]
    with pytest.warns(MisuseWarning, match="not a random choice"):
        found = annotators(votes, verified)
    told = " ".join(repr(found).split())
    assert "Guaranteed: nothing about these intervals. Contradicted: the 100 rows were drawn at random" in told
    assert "Best:" not in told


def test_the_best_annotator_may_be_one_whose_answers_were_not_verified(rng):
    y, cells = crowd(rng, 600, 3, (0.98, *[0.6] * 20), answered=0.1)
    verified = draw(rng, y, 100)
    cells[verified != None, 0] = None  # noqa: E711 - elementwise
    found = annotators(named(cells, 3), verified)
    assert found.best[-1] == "a0"
    assert not found.members.beaten
    assert "is right more often than every annotator" not in " ".join(repr(found).split())


def test_the_panel_beats_all_only_if_verified_rows_show_it_of_each(rng):
    y, cells = crowd(rng, 800, 3, [0.6] * 15)
    verified = draw(rng, y, 400)
    assert annotators(named(cells, 3), verified).members.beaten
    cells[:, 0] = None
    cells[np.flatnonzero(verified == None)[:10], 0] = 0  # noqa: E711 - elementwise
    assert not annotators(named(cells, 3), verified).members.beaten


def test_who_answers_easy_rows_is_compared_by_the_rows_that_two_answered(rng):
    y, cells = crowd(rng, 2000, 2, (0.9, 0.99, 0.6))
    hard = np.arange(2000) % 2 == 0
    cells[hard, 0] = None
    cells[hard, 1] = np.where(rng.random(hard.sum()) < 0.6, y[hard], 1 - y[hard])
    found = annotators(named(cells, 2), draw(rng, y, 400))
    assert found.accuracy[0] > found.accuracy[1]
    assert found.best[0] == "a1"
    assert "By rows that two answered, a1 is the most accurate" in " ".join(repr(found).split())


def test_whoever_wrote_the_verified_labels_is_left_out(rng):
    said, y = copying_panel(rng, 400)
    verified = draw(rng, y, 100)
    said = np.column_stack([said.astype(object), verified])
    with pytest.warns(UserWarning, match="annotator 'a10' are the verified labels"):
        found = annotators(named(said, 3), verified)
    assert "a10" not in found.names


def test_a_label_that_nobody_answered_is_wrong_for_everybody(rng):
    said, y = copying_panel(rng, 400)
    verified = draw(rng, y, 100)
    rows = np.flatnonzero(verified != None)  # noqa: E711 - elementwise
    names = np.array(["ant", "bee", "cat"], dtype=object)
    votes = Votes.from_matrix(names[said])
    plain = annotators(votes, [None if label is None else names[label] for label in verified])
    verified[rows[:50]] = -1
    with pytest.warns(UserWarning, match="'dog', which nobody answered; it counts as a class"):
        found = annotators(votes, [None if y is None else "dog" if y < 0 else names[y] for y in verified])
    assert (found.accuracy < plain.accuracy - 0.1).all()
    with pytest.raises(ValueError, match="not among the classes"):
        annotators(votes, [None if y is None else "Ant" for y in verified])


def test_annotators_of_ordered_classes_agree_by_distances(rng):
    stars = ["poor", "fair", "good", "great"]
    near = np.clip(rng.integers(0, 4, (200, 1)) + rng.integers(-1, 2, (200, 3)), 0, 3)
    votes = Votes.from_lists([[stars[k] for k in row] for row in near], classes=stars)
    plain, ordered = annotators(votes), annotators(votes, ordered=True)
    assert ordered.alpha == krippendorff_alpha(votes, ordered=True) > plain.alpha + 0.3
    assert "(Krippendorff's alpha by squared distances)" in " ".join(repr(ordered).split())
    undeclared = Votes.from_lists([[stars[k] for k in row] for row in near])
    with pytest.raises(ValueError, match="'fair' to 'poor' is alphabetical; use classes=…"):
        annotators(undeclared, ordered=True)
    verified = [stars[k] for k in near[:, 0]]
    assert annotators(votes, verified, ordered=True).alpha == ordered.alpha


def test_verified_labels_that_replaced_the_answers_are_refused(rng):
    said, y = copying_panel(rng, 400)
    verified = draw(rng, y, 100)
    rows = np.flatnonzero(verified != None)  # noqa: E711 - elementwise
    said = said.astype(object)
    said[rows] = verified[rows, None]
    with pytest.raises(ValueError, match="annotators: the verified labels are the only answers"):
        annotators(named(said, 3), verified)


def test_many_answers_are_counted_in_digits():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    cells = np.where(rng.random((150, 160)) < 0.6, y[:, None], rng.integers(0, 3, (150, 160)))
    said = str(annotators(Votes.from_matrix(cells), np.where(np.arange(150) < 60, y, np.nan)))
    assert "160 answers to a row tell as much as about 1" in said
    assert "e+" not in said


def test_which_annotators_err_together_all_rows_tell_better_than_fifty():
    """Of these rows 50 verified ones would have counting follow where all rows confirm the model."""
    rng = np.random.default_rng(16)
    y, share = rng.integers(0, 2, 108), rng.uniform(0.5, 0.85, 39)
    lead = np.where((rng.random(108) < 0.35) & (rng.random(108) < 0.6), 1 - y, y)
    said = [
        np.where(rng.random(108) < p, np.where(rng.random(108) < 0.5, lead, y), rng.integers(0, 2, 108))
        for p in share
    ]
    votes, truth = Votes.from_matrix(np.column_stack(said), classes=range(2)), np.where(np.arange(108) < 50, y, -1)
    found = find_consensus(votes)
    assert found.rule == "the annotator model"
    assert find_consensus(votes, None, find_resemblance(votes, truth)).rule == "counting"
    assert annotators(votes, np.where(truth < 0, np.nan, truth)).rule == found.rule
