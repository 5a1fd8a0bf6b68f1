"""How claims read."""

import json

import numpy as np
import pytest

from setwise import Claim, Guarantee, Premise, conformalize
from setwise.guarantees import _decimal
from tests.conftest import candidates_from, labels_from, simplex


def test_a_guarantee_reads_as_a_short_paragraph(rng):
    p = simplex(rng, 6000, 5)
    mask = candidates_from(rng, labels_from(rng, p), 5)
    assert str(conformalize(p, mask).guarantee(0.9)) == (
        "Strategy max with score LAC, 6,000 calibration examples.\n"
        "Promise: the set of a new example contains the true label with probability at least 0.90 (Theorem 1).\n"
        "If candidates arise for new examples as they did here (not knowable here): the set of a new example "
        "contains all of its candidate labels with probability at least 0.90 (Theorem 1).\n"
        "Rests on: new examples come from the same source as these (not knowable here); the true label is "
        "always a candidate (declared by you: miss rate 0).\n"
        "Given this calibration set of independent rows, the chance of containing all candidates (for the true "
        "label a floor) is between 0.892 and 0.907 in 95 of 100 cases.\n"
        "Smaller sets: 20 or more verified labels would justify rectified; if false labels enter by "
        "chance, declare it (assume='uniform'), and corrected is justified unless the data refute it."
    )


@pytest.mark.parametrize("strategy", ["max", "all", "mean", "min"])
def test_a_guarantee_is_plain_data_too(strategy, rng):
    p = simplex(rng, 60, 5)
    mask = candidates_from(rng, labels_from(rng, p), 5)
    plain = json.loads(json.dumps(conformalize(p, mask, strategy).guarantee(0.9).to_dict()))
    assert plain["strategy"] == strategy
    assert plain["n"] == 60
    assert plain["text"].startswith("Strategy")


def test_only_unconditional_claims_count_as_promised():
    unknown, refuted = (
        Premise("it rains", "not knowable here"),
        Premise("it snows", "refuted by the data", "look"),
    )
    claims = (
        Claim("truth", 0.95, "A", (refuted,)),
        Claim("truth", 0.9, "B", (unknown,)),
        Claim("truth", 0.8, "C"),
        Claim("overlap", 0.99, "D"),
    )
    guarantee = Guarantee("s", "lac", 10, 0.9, claims)
    assert guarantee.promised == 0.8
    text = str(guarantee)
    assert "Void: A, because a premise fails: it snows (refuted by the data: look)." in text
    assert "If it rains (not knowable here): the set" in text
    assert Guarantee("s", "lac", 10, 0.9, claims[:2]).promised is None
    assert "No unconditional guarantee." in str(Guarantee("s", "lac", 10, 0.9, claims[:2]))


def test_html_is_escaped():
    assert "<b>" not in Guarantee("<b>", "lac", 1, 0.9, ())._repr_html_()


def test_bounds_are_never_rounded_up():
    for probability in np.linspace(0, 1, 1234):
        assert float(_decimal(probability)) <= probability + 1e-9
    assert _decimal(0.9) == "0.90"
    assert _decimal(0.89999) == "0.8999"
    assert _decimal(1 - 0.1) == "0.90"
