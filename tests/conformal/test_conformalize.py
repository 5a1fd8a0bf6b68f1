"""`conformalize`: rows become a calibration."""

import numpy as np
import pytest

from setwise import LabelSets, conformalize
from setwise.tables import from_snorkel
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
    assert from_snorkel(np.ma.array([[0, 1]], mask=[[False, True]]), classes=NAMES).candidates.to_lists() == [
        ["cat"]
    ]
