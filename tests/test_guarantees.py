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
        "Promise: the set of a new example contains the true label with probability at least 0.90 "
        "(Theorem 1, on average over calibration samples).\n"
        "If candidates arise for new examples as they did here (not knowable here): the set of a new example "
        "contains all of its candidate labels with probability at least 0.90 (Theorem 1, on average over "
        "calibration samples).\n"
        "Rests on: new examples come from the same source as these (not knowable here); the model was not "
        "trained on these rows (not knowable here); the probabilities of new examples are computed and "
        "written as those of these were (not knowable here); the true label is one of these 5 classes (not "
        "knowable here); the true label is always a candidate (declared by you: miss rate 0).\n"
        "In 95 of 100 calibration samples of independent rows the probability of containing all candidates (for "
        "the true label a floor) is at least 0.893.\n"
        "Smaller sets: with a few verified labels auto promises the level whatever the candidates are; if "
        "false labels enter by chance, declare it (assume: uniform), and corrected is justified unless the data "
        "refute it."
    )


@pytest.mark.parametrize("strategy", ["max", "all", "mean", "min"])
def test_a_guarantee_is_plain_data_too(strategy, rng):
    p = simplex(rng, 60, 5)
    mask = candidates_from(rng, labels_from(rng, p), 5)
    plain = json.loads(json.dumps(conformalize(p, mask, strategy).guarantee(0.9).to_dict()))
    assert plain["strategy"] == strategy
    assert plain["n"] == 60
    assert plain["text"].startswith("Strategy")
    worded = [premise["text"] for claim in plain["claims"] for premise in claim["premises"]]
    assert "the model was not trained on these rows" in worded


def test_only_unconditional_claims_count_as_promised():
    unknown, refuted = Premise("calibrated", "not knowable here"), Premise("uniform", "refuted by the data", "look")
    claims = (
        Claim("truth", 0.95, "A", (refuted,)),
        Claim("truth", 0.9, "B", (unknown,)),
        Claim("truth", 0.8, "C"),
        Claim("overlap", 0.99, "D"),
    )
    guarantee = Guarantee("s", "lac", 10, 0.9, claims)
    assert guarantee.promised == 0.8
    text = str(guarantee)
    assert f"Void: A, because a premise fails: {refuted}." in text
    assert f"If {unknown}: the set" in text
    assert Guarantee("s", "lac", 10, 0.9, claims[:2]).promised is None
    assert "No unconditional guarantee." in str(Guarantee("s", "lac", 10, 0.9, claims[:2]))


def test_a_claim_cannot_rest_on_what_is_not_in_the_vocabulary():
    with pytest.raises(ValueError, match="'it rains' is not in the vocabulary; use one of same_examples"):
        Premise("it rains", "not knowable here")


def test_standing_premises_void_a_promise_only_where_they_are_refuted():
    open_, gone = (Premise("unseen", status) for status in ("not knowable here", "refuted by the data"))
    assert Guarantee("s", "lac", 10, 0.9, (Claim("truth", 0.9, "A", (open_,)),)).promised == 0.9
    assert Guarantee("s", "lac", 10, 0.9, (Claim("truth", 0.9, "A", (gone,)),)).promised is None


def test_what_holds_in_95_of_100_samples_is_told_from_an_average():
    average, most = Claim("truth", 0.9, "A"), Claim("truth", 0.8, "B", delta=0.05)
    assert Guarantee("s", "lac", 10, 0.9, (average, most)).delta is None
    alone = Guarantee("s", "lac", 10, 0.9, (most,))
    assert (alone.promised, alone.delta, alone.to_dict()["delta"]) == (0.8, 0.05, 0.05)
    assert "in at least 95 of 100 calibration samples" in str(alone)
    both = Guarantee.of_categories({"a": Guarantee("s", "lac", 10, 0.9, (average,)), "b": alone})
    assert (both.promised, both.delta) == (0.8 * 0.95, None)  # the average that both have
    rarer = Guarantee("s", "lac", 10, 0.9, (Claim("truth", 0.8, "B", delta=0.01),))
    assert Guarantee.of_categories({"a": rarer, "b": alone}).promised == 0.8 * 0.95
    assert Guarantee.of_categories({"a": alone, "b": alone}).promised == 0.8


def test_html_is_escaped():
    assert "<b>" not in Guarantee("<b>", "lac", 1, 0.9, ())._repr_html_()


def test_bounds_are_never_rounded_up():
    for probability in np.linspace(0, 1, 1234):
        assert float(_decimal(probability)) <= probability + 1e-9
    assert _decimal(0.9) == "0.90"
    assert _decimal(0.89999) == "0.8999"
    assert _decimal(1 - 0.1) == "0.90"
