"""`conformalize`: rows become a calibration."""

import sys

import numpy as np
import pandas as pd
import pytest

from setwise import LabelSets, Votes, conformalize
from tests.toy_data import NAMES, sample_rows


def test_masked_arrays_keep_their_mask_or_are_refused():
    _, P, sets, _ = sample_rows()
    hidden = np.arange(120) == 7
    with pytest.raises(ValueError, match="probabilities: a masked array"):
        conformalize(np.ma.array(P, mask=np.broadcast_to(hidden[:, None], P.shape)), sets)
    with pytest.raises(ValueError, match="sample_weight: row 7 is masked"):
        conformalize(P, sets, sample_weight=np.ma.array(np.ones(120), mask=hidden))
    with pytest.raises(ValueError, match="mask: some entries are masked"):
        LabelSets.from_mask(np.ma.array(sets.to_mask(), mask=np.broadcast_to(hidden[:, None], P.shape)))
    labels = np.ma.array(np.arange(120) % 3, mask=hidden)
    assert conformalize(P, labels, missing="drop").evidence.n == 119


def test_classes_stand_in_the_order_declared_whatever_the_order_of_the_columns():
    _, P, sets, _ = sample_rows()
    frame, order = pd.DataFrame(P, columns=NAMES), NAMES[::-1]
    made = conformalize(frame, sets.to_lists(), classes=order)
    assert made.classes.tolist() == order
    assert made.threshold() == conformalize(P, sets).threshold()


def test_votes_alone_need_no_model_of_the_annotators(monkeypatch):
    _, P, _, y = sample_rows()
    votes = Votes.from_matrix(np.stack([y, y], axis=1), classes=range(3))
    wanted = conformalize(P, votes, "votes").threshold()
    monkeypatch.setattr(sys.modules["setwise.conformal.conformalize"], "fit_annotators", None)
    assert conformalize(P, votes, "votes").threshold() == wanted


@pytest.mark.parametrize("names", [[1, 2, 5, 10], ["10", "5", "2", "1"], [3, 2, 1, 0], [1.0, 2.0, 3.0, 4.0]])
def test_whole_numbers_go_by_the_names_of_the_columns(names):
    rng = np.random.default_rng(0)
    P = rng.dirichlet([0.4] * 4, size=400)
    numbers, frame = [int(float(name)) for name in names], pd.DataFrame(P, columns=names)
    labels = np.array(numbers)[P.argmax(axis=1)]
    some = labels != numbers[3]  # with one class that does not occur, the others could pass for positions
    for rows in (slice(None), some):
        cal = conformalize(frame[rows], labels[rows])
        sets = cal.predict_set(frame, 0.9)
        assert cal.classes.tolist() == numbers
        assert sets.contains(labels)[some].mean() > 0.85
        if numbers != [3, 2, 1, 0]:
            assert cal.predict_set(frame[names[::-1]], 0.9).to_lists() == sets.to_lists()
    mask = np.eye(4, dtype=bool)[P.argmax(axis=1)]  # has no names: as the columns are
    assert conformalize(frame, mask).predict_set(P).to_lists() == conformalize(P, mask).predict_set(P).to_lists()


def test_verified_labels_beside_a_mask_say_how_to_name_the_classes():
    P, verified = np.full((20, 3), 1 / 3), ["cat"] * 10 + [None] * 10
    for by in (None, "label"):
        with pytest.raises(ValueError, match=r"row 0 holds 'cat', .* use classes=…"):
            conformalize(P, np.ones((20, 3), dtype=bool), verified=verified, by=by)
