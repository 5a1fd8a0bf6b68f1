"""The order of rows, and how many of the first may be accepted."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest

from setwise.decisions.modes import OrderedRows
from setwise.decisions.overall import allowed_wrong
from setwise.probabilities.proposed_labels import Proposals


def ordered(kinds, *, new=False):
    """Rows in the order of the letters: verified ones that are right (v) or wrong (w), and rows to decide (r)."""
    kind, confidence = np.array(list(kinds)), np.linspace(1, 0, len(kinds))
    checked = kind != "r"
    proposed = Proposals(np.zeros(len(kind), np.intp), confidence)
    return OrderedRows(
        proposed[checked], (kind[checked] == "w").astype(np.intp), proposed[~checked], new=new, delta=0.05
    )


def test_the_smallest_share_of_the_rows_that_is_tried_is_a_twentieth():
    kinds = "r" * 7 + "w" * 9900 + "r" * 93
    assert ordered(kinds).accept("accepted", Fraction(1, 5)) == 7
    assert ordered("rrrr" + kinds[7:] + "rrr").accept("accepted", Fraction(1, 5)) == 0


def test_what_more_verified_rows_would_accept_is_what_stands_before_as_large_a_share_of_the_wrong_ones():
    own = ordered("rrrw" * 50)  # before the j-th wrong verified row stand 3j rows
    allowed = allowed_wrong(200, 40, 100, 0.05)
    assert own.expect(100, Fraction(1, 5)) == pytest.approx(3 * (allowed + 1) / 2 / 150)
    new = ordered("rw" * 100, new=True)
    allowed = allowed_wrong(300, floor(0.2 * 100), 200, 0.05)
    assert new.expect(200, Fraction(1, 5)) == pytest.approx((allowed + 1) / 2 / 100)
    assert ordered("rv" * 100).expect(150, Fraction(1, 5)) == 1
    assert own.expect(51, Fraction(1, 1000)) == 0
