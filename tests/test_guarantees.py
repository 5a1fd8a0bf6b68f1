"""How guarantees read."""

import json

import numpy as np
import pytest

from setwise import Claim, Guarantee, Premise, conformalize
from setwise.guarantees import _decimal
from tests.conftest import candidates_from, labels_from, printed, simplex


def test_a_guarantee_reads_as_a_headline_and_labelled_lines(rng):
    p = simplex(rng, 6000, 5)
    mask = candidates_from(rng, labels_from(rng, p), 5)
    assert str(conformalize(p, mask).guarantee(0.9)) == (
        "90 % prediction sets from 6,000 calibration rows\n"
        "Guaranteed:    a new row's set contains its true label with probability at least\n"
        "               0.90, on average over calibration rows drawn at random. If rows\n"
        "               are independent, this probability is at least 0.893 in 19 of 20\n"
        "               draws.\n"
        "You state:     the true label is always a candidate.\n"
        "Assumed:       new rows come from the same source; the model did not learn from\n"
        "               the calibration rows; the same model computes the new\n"
        "               probabilities in the same way; the true label is one of the 5\n"
        "               classes.\n"
        "Note:          For smaller sets, verify some rows drawn at random, and pass them\n"
        "               as verified to strategy auto (the default). This guarantee then\n"
        "               holds whatever the candidates are.\n"
        "Note:          If every false label is a candidate equally often, calibrate\n"
        "               again and state that (assume: uniform). Sets are then smaller,\n"
        "               unless the data contradict you."
    )


def test_what_categories_share_stands_once(rng):
    p = simplex(rng, 60, 3)
    y = labels_from(rng, p)
    even = str(conformalize(p, y, by=np.arange(60) % 2).guarantee(0.9))
    assert even.count("Guaranteed:") == even.count("Assumed:") == 1
    assert "Category 1: 30 rows\nEach category\nGuaranteed:" in even
    uneven = str(conformalize(p, y, by=np.arange(60) % 3 > 0).guarantee(0.9))
    assert uneven.count("Guaranteed:") == uneven.count("Category") == 2
    assert uneven.count("Assumed:") == 1
    assert "Each category" not in uneven


def test_exact_labels_are_not_called_candidates(rng):
    p = simplex(rng, 600, 5)
    text = printed(conformalize(p, labels_from(rng, p)).guarantee(0.9))
    assert "the labels are right" in text
    assert "candidate" not in text


@pytest.mark.parametrize("strategy", ["max", "all", "mean", "min"])
def test_a_guarantee_is_plain_data_too(strategy, rng):
    p = simplex(rng, 60, 5)
    mask = candidates_from(rng, labels_from(rng, p), 5)
    plain = json.loads(json.dumps(conformalize(p, mask, strategy).guarantee(0.9).to_dict()))
    assert plain["strategy"] == strategy
    assert plain["n"] == 60
    assert plain["text"].startswith("90 % prediction sets")
    worded = [premise["text"] for claim in plain["claims"] for premise in claim["premises"]]
    assert "the model did not learn from the calibration rows" in worded


def test_only_unconditional_claims_count_as_promised():
    unknown, refuted = Premise("calibrated", "assumed"), Premise("uniform", "refuted by the data", "look")
    claims = (
        Claim("truth", 0.95, "A", (refuted,)),
        Claim("truth", 0.9, "B", (unknown,)),
        Claim("truth", 0.8, "C"),
        Claim("overlap", 0.99, "D"),
    )
    guarantee = Guarantee("s", "lac", 10, 0.9, claims)
    assert guarantee.promised == 0.8
    text = printed(guarantee)
    assert f"Contradicted: {refuted}." in text
    assert f"Guaranteed if: {unknown}. Then a new row's set" in text
    assert Guarantee("s", "lac", 10, 0.9, claims[:2]).promised is None
    conditional = printed(Guarantee("s", "lac", 10, 0.9, claims[:2]))
    assert "nothing about the true label without the condition below" in conditional


def test_a_claim_cannot_rest_on_what_is_not_in_the_vocabulary():
    with pytest.raises(ValueError, match="'it rains' is not in the vocabulary; use one of same_source"):
        Premise("it rains", "assumed")


def test_standing_premises_void_a_promise_only_where_they_are_refuted():
    open_, gone = (Premise("unseen", status) for status in ("assumed", "refuted by the data"))
    assert Guarantee("s", "lac", 10, 0.9, (Claim("truth", 0.9, "A", (open_,)),)).promised == 0.9
    assert Guarantee("s", "lac", 10, 0.9, (Claim("truth", 0.9, "A", (gone,)),)).promised is None


def test_what_holds_in_95_of_100_samples_is_told_from_an_average():
    average, most = Claim("truth", 0.9, "A"), Claim("truth", 0.8, "B", delta=0.05)
    assert Guarantee("s", "lac", 10, 0.9, (average, most)).delta is None
    alone = Guarantee("s", "lac", 10, 0.9, (most,))
    assert (alone.promised, alone.delta, alone.to_dict()["delta"]) == (0.8, 0.05, 0.05)
    assert "in 19 of 20 draws of the calibration rows" in printed(alone)
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


def test_only_verified_rows_that_there_are_stand_in_the_headline():
    assert Guarantee("max", "lac", 10, 0.9, ()).headline == "90 % prediction sets from 10 calibration rows"


def test_accepted_labels_are_guaranteed_by_the_share_that_may_be_wrong_that_of_this_draw_first():
    labels = "the 7 accepted labels"
    average = Claim("accepted", 0.95, "A", subject=labels)
    bound = Claim("accepted", 0.9, "B", subject=labels, delta=0.05)
    assert printed(Guarantee("triage", "", 10, 0.95, (average, bound))).endswith(
        "Guaranteed: at most 10 % of the 7 accepted labels are wrong, in 19 of 20 draws of the verified rows. "
        "At most 5 % of the 7 accepted labels are wrong, on average over verified rows drawn at random."
    )


def test_a_condition_is_named_beside_the_true_label_where_the_condition_is_about_it():
    about_candidates = Claim("candidates", 0.9, "A", (Premise("calibrated", "assumed"),))
    text = printed(Guarantee("s", "lac", 10, 0.9, (Claim("truth", None, "B"), about_candidates)))
    assert "nothing about the true label." in text


def test_a_level_near_one_is_not_called_one(rng):
    p = simplex(rng, 200, 3)
    said = printed(conformalize(p, labels_from(rng, p)).guarantee(0.9999999))
    assert said.startswith("99.99999 % prediction sets")
    assert "confidence 0.9999999 needs at least 10,000,000 calibration rows" in said
