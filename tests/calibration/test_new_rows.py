"""New rows are read as the calibration rows were, once, and refused where they do not go with these."""

import numpy as np
import pytest

from setwise import TopK, Votes, conformalize


@pytest.fixture
def probabilities(rng):
    return rng.dirichlet([1, 1, 1], size=200)


@pytest.mark.parametrize(
    ("options", "needs"),
    [
        ({}, ()),
        ({"by": np.arange(200) % 2}, ("by",)),
        ({"by": "predicted"}, ()),
        ({"by": "size"}, ("candidates",)),
        ({"sample_weight": np.ones(200)}, ("sample_weight",)),
        ({"row_ids": np.arange(200)}, ()),
        ({"row_ids": np.arange(200), "conformity_score": "aps"}, ("row_ids",)),
    ],
)
def test_what_predict_set_needs_is_known(probabilities, options, needs):
    assert conformalize(probabilities, probabilities.argmax(axis=1), **options).reader.requirements == needs


def test_rows_are_read_in_the_precision_of_the_calibration(probabilities):
    reader = conformalize(probabilities.astype(np.float32), probabilities.argmax(axis=1)).reader
    assert reader.read(probabilities.astype(np.float32)).off == 0
    rows = reader.read(probabilities)
    assert rows.off > 0
    assert (rows.matrix == probabilities.astype(np.float32)).all()


def test_what_a_question_does_not_need_is_not_asked_for(probabilities):
    reader = conformalize(
        probabilities, probabilities.argmax(axis=1), by=np.arange(200) % 2, sample_weight=np.ones(200)
    ).reader
    rows = reader.read(probabilities[:5])
    assert (rows.predicted.label == probabilities[:5].argmax(axis=1)).all()
    with pytest.raises(ValueError, match="new rows need theirs too; pass by"):
        _ = rows.codes
    with pytest.raises(ValueError, match="sample_weight: calibrated with weights"):
        _ = rows.weight


def test_a_row_without_candidates_may_have_any_label(probabilities):
    sets = probabilities[:2] > 0
    sets[0] = False
    read = conformalize(probabilities, probabilities.argmax(axis=1)).reader.read(probabilities[:2], candidates=sets)
    assert read.candidates.sizes.tolist() == [3, 3]


def test_scores_of_all_labels_are_those_of_the_score_without_rounding(probabilities):
    cal = conformalize(probabilities, probabilities.argmax(axis=1), conformity_score="margin")
    assert (cal.reader.read(probabilities).scores == cal.conformity_score.score(probabilities)).all()


def test_scores_of_all_labels_need_their_probabilities(probabilities):
    top = TopK.of(probabilities, k=2)
    rows = conformalize(top, probabilities.argmax(axis=1)).reader.read(top)
    with pytest.raises(ValueError, match="scores: not defined where only the top 2 labels"):
        _ = rows.scores


def test_a_posterior_of_sharpened_probabilities_is_off_by_as_much_more(rng):
    y = rng.integers(0, 3, 600)
    p = 0.2 * np.eye(3)[y] + 0.8 / 3  # far less sure than it could be
    votes = Votes.from_matrix(
        np.where(rng.random((600, 3)) < 0.8, y[:, None], rng.integers(0, 3, (600, 3))), range(3)
    )
    made = conformalize(p, votes, verified=np.where(np.arange(600) < 100, y, None))
    rows = made.reader.read(p.astype(np.float32), candidates=votes)
    assert made.annotators.temperature > 1
    assert rows.posterior_off == rows.off * made.annotators.temperature
