"""Agreement is that of different annotators: who repeats itself agrees with nobody."""

import numpy as np
import pytest

from setwise import Votes
from setwise.crowd.annotator_model import fit_annotators
from setwise.crowd.dependence import dependence, measure_agreement


@pytest.fixture
def cells(rng):
    y = rng.integers(0, 3, 300)
    return np.where(rng.random((300, 4)) < 0.7, y[:, None], rng.integers(0, 3, (300, 4)))


@pytest.mark.filterwarnings("ignore:annotator 0 gives 3 labels")
def test_saying_it_three_times_is_no_evidence_and_no_agreement(cells):
    row, who = np.repeat(np.arange(300), 4), np.tile(np.arange(4), 300)
    table = {"item": np.tile(row, 3), "annotator": np.tile(who, 3), "label": np.tile(cells.ravel(), 3)}
    once, thrice = fit_annotators(Votes.from_matrix(cells)), fit_annotators(Votes.from_table(table))
    np.testing.assert_allclose(thrice.posterior, once.posterior, rtol=0, atol=1e-9)
    for seen, expected in zip(measure_agreement(thrice), measure_agreement(once), strict=True):
        np.testing.assert_allclose(seen, expected, rtol=0, atol=1e-6)


def test_the_labels_of_one_answer_do_not_disagree_with_each_other(cells):
    sure = [{int(a): 0.7, int((a + 1) % 3): 0.3} for a in cells[:, 0]]
    calls = [[{int(a): 1.0} for a in row] for row in cells]
    for votes in (Votes.from_proposals(sure), Votes.from_proposals(calls)):
        assert dependence(*measure_agreement(fit_annotators(votes))) is None
