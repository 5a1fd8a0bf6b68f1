"""The consensus: the annotator model where other annotators confirm it, counting where it follows a family."""

import numpy as np

from setwise import Votes
from setwise.crowd.annotator_model import fit_annotators
from setwise.crowd.consensus import answer_certainty, complete_shares, find_consensus, learn_consensus, weigh_votes


def answers(rng, y, shares):
    """One column of answers per annotator, right with the given probability."""
    return np.column_stack([np.where(rng.random(len(y)) < p, y, rng.integers(0, 4, len(y))) for p in shares])


def right(probabilities, y):
    return (probabilities.argmax(axis=1) == y).mean()


def test_of_independent_annotators_the_good_ones_count_more(rng):
    y = rng.integers(0, 4, 1000)
    votes = Votes.from_matrix(answers(rng, y, [0.95, 0.5, 0.4, 0.3]), classes=range(4))
    found = weigh_votes(votes)
    assert right(found, y) > right(votes.counts, y) + 0.05
    assert np.allclose(found.sum(axis=1), 1)
    model = np.eye(4)[y] * 0.6 + 0.1
    assert np.array_equal(weigh_votes(votes, model), fit_annotators(votes, model).posterior)


def test_copies_of_a_poor_annotator_do_not_outvote_the_others(rng):
    """Three copies that know next to nothing, and six people who are often wrong: a model follows the copies."""
    y = rng.integers(0, 4, 1000)
    said = np.column_stack([np.repeat(answers(rng, y, [0.1]), 3, axis=1), answers(rng, y, [0.5] * 6)])
    votes = Votes.from_matrix(said, classes=range(4))
    assert right(fit_annotators(votes).posterior, y) < right(votes.counts, y) - 0.2
    assert right(weigh_votes(votes), y) > right(votes.counts, y) + 0.1


def test_rows_without_an_answer_have_the_shares_of_all(rng):
    y = rng.integers(0, 4, 200)
    votes = Votes.from_lists([[], *answers(rng, y, [0.9, 0.9]).tolist()], classes=range(4))
    found = weigh_votes(votes)
    assert np.isfinite(found).all()
    assert found[0].max() < 0.5


def panels(rng, n=1500):
    """Panels whose counting is right where the model follows a family, and the other way round."""

    def noisy(base, share, k):
        return np.where(rng.random(len(base)) < share, base, rng.integers(0, k, len(base)))

    y = rng.integers(0, 4, n)
    families = [(6, 0.5), (5, 0.55), (3, 0.65), (1, 0.7)]
    said = []
    for size, share in families:
        root = noisy(y, share, 4)
        said += [noisy(root, 0.85, 4) for _ in range(size)]
    yield "families", np.column_stack(said), y, False
    yield "two good ones", np.column_stack([noisy(y, s, 4) for s in [0.4] * 7 + [0.9] * 2]), y, True


def test_counting_stands_where_a_family_leads_the_model_astray_and_the_model_where_it_finds_the_good_ones(rng):
    for name, said, y, modelled in panels(rng):
        votes = Votes.from_matrix(said, classes=range(4))
        found = find_consensus(votes)
        assert found.modelled is modelled, name
        model, counted = (right(values, y) for values in (fit_annotators(votes).posterior, votes.counts))
        assert right(found.confidence, y) >= max(model, counted) - 0.02, name


def test_near_copies_of_a_poor_annotator_count_once(rng):
    y = rng.integers(0, 3, 1500)
    poor = answers(rng, y, [0.5])[:, 0] % 3
    copies = [np.where(rng.random(1500) < 0.95, poor, rng.integers(0, 3, 1500)) for _ in range(5)]
    others = [np.where(rng.random(1500) < 0.75, y, rng.integers(0, 3, 1500)) for _ in range(6)]
    votes = Votes.from_matrix(np.column_stack(copies + others), classes=range(3))
    found = find_consensus(votes)
    assert right(found.confidence, y) > right(votes.counts, y) + 0.1
    assert np.allclose(found.resemblance.weights, [1 / 5] * 5 + [1] * 6)


def test_few_rows_are_counted(rng):
    y = rng.integers(0, 4, 12)
    votes = Votes.from_matrix(answers(rng, y, [0.9, 0.5, 0.4]), classes=range(4))
    assert not find_consensus(votes).modelled


def test_the_confidence_of_a_proposal_orders_rows_and_does_not_change_its_label():
    sure = [0.95, 0.5, 0.2, 1.0]
    named = Votes.from_proposals([{label: share} for label, share in zip("abba", sure, strict=True)])
    columns = {"item": range(4), "label": [*"abba"], "confidence": sure}
    for votes in (named, Votes.from_table(columns, annotator=None, weight="confidence")):
        found = weigh_votes(votes)
        assert np.allclose(found.max(axis=1), [0.975, 0.75, 0.6, 1.0])
        assert votes.classes[found.argmax(axis=1)].tolist() == [*"abba"]


def test_weights_above_one_stay_and_near_copies_are_no_doubt():
    columns = {"item": [0, 0, 1], "annotator": [*"xyx"], "label": [0, 1, 1], "weight": [3, 1, 0.5]}
    votes = Votes.from_table(columns, weight="weight", classes=range(2))
    assert answer_certainty(votes).tolist() == [1, 0.5]
    halved = answer_certainty(votes, np.array([0.5, 1]))
    assert halved.tolist() == [1, 0.5]
    assert complete_shares(np.array([[0.75, 0.25], [0, 1]]), halved).tolist() == [[0.75, 0.25], [0.25, 0.75]]


def test_probabilities_are_not_dropped_where_rows_have_one_answer_or_answers_are_counted(rng):
    y = rng.integers(0, 4, 1000)
    model = 0.6 * np.eye(4)[np.where(rng.random(1000) < 0.8, y, rng.integers(0, 4, 1000))] + 0.1
    one = Votes.from_matrix(answers(rng, y, [0.7]), classes=range(4))
    assert np.array_equal(weigh_votes(one, model), fit_annotators(one, model).posterior)
    copies = np.repeat(answers(rng, y, [0.5]), 2, axis=1)
    copies[:, 1] = np.where(rng.random(1000) < 0.9, copies[:, 1], rng.integers(0, 4, 1000))
    found = find_consensus(Votes.from_matrix(copies, classes=range(4)), model)
    assert right(found.shares, y) > right(found.votes.counts, y) + 0.02


def test_verified_rows_change_the_rule_for_more_than_luck():
    changed = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 4, 300)
        votes = Votes.from_matrix(answers(rng, y, [0.6] * 8), classes=range(4))  # all alike: no rule is better
        found = find_consensus(votes)
        changed += learn_consensus(found, np.where(np.arange(300) < 50, y, -1))[1] != found.rule
    assert changed <= 2


def test_verified_rows_show_who_outshines_a_panel(rng):
    y = rng.integers(0, 4, 400)
    root = answers(rng, y, [0.3])
    said = np.column_stack([answers(rng, root[:, 0], [0.7] * 7), answers(rng, y, [0.95])])
    found = find_consensus(Votes.from_matrix(said, classes=range(4)))
    confidence, rule = learn_consensus(found, np.where(np.arange(400) < 60, y, -1))
    assert rule != found.rule
    assert right(confidence, y) > right(found.confidence, y) + 0.2
