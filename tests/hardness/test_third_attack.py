"""What a third attack found, on stored files whose parts contradict each other: a test for each fault."""

import json

import numpy as np
import pytest

from setwise import Calibration, Votes, conformalize
from setwise.cli.app import run
from setwise.decisions import monitor
from setwise.scale import CalibrationRows, calibration_rows
from tests.hardness.changed_files import NAMES, added, altered, changed, rows, told

CHECKED = np.arange(200) % 3 == 0


def verified():
    return np.where(CHECKED, rows()[2], None)


def said():
    """Three answers about each row but the first, of which two are right."""
    wrong = np.roll(rows()[2], 1)
    answers = [[right, right, other] for right, other in zip(rows()[2], wrong, strict=True)]
    return Votes.from_lists([[], *answers[1:]], classes=NAMES)


@pytest.fixture(scope="module")
def calibrations():
    P, sets, truth = rows()
    every = {"verified": verified(), "random_state": 0}
    return {
        "max": conformalize(P, sets, "max"),
        "one label": conformalize(P, truth, classes=NAMES),
        "one label of all": conformalize(P, truth, "corrected", assume="uniform", classes=NAMES),
        "checked max": conformalize(P, sets, "max", **every),
        "checked mean": conformalize(P, sets, "mean", **every),
        "checked corrected": conformalize(P, sets, "corrected", assume="uniform", **every),
        "rectified": conformalize(P, sets, "rectified", **every),
        "some chances": conformalize(P, sets, "rectified", verified_probability=np.full(200, 1 / 3), **every),
        "answers": conformalize(P, said(), missing="full", **every),
        "votes": conformalize(P, said(), "votes", missing="full"),
        "all": conformalize(P, sets, "all"),
        "groups": conformalize(P, sets, "max", groups=np.arange(200) // 2),
        "weights": conformalize(P, sets, sample_weight=np.arange(1, 201), **every),
        "categories": conformalize(P, sets, "max", by=np.arange(200) % 2),
        "dropped": conformalize(P, said(), missing="drop"),
    }


def put(name, rows_of, value):
    """Another value in some rows of a column, which are told from all columns."""

    def change(_, arrays):
        arrays[f"evidence.{name}"][rows_of(arrays)] = value

    return change


def unchecked(arrays):
    return np.isnan(arrays["evidence.truth"])


def without(name):
    return lambda _, arrays: arrays.pop(f"evidence.{name}")


def guessed(_, arrays):
    arrays["evidence.label"] = arrays["evidence.predicted"].copy()


def held_though_not_named(_, arrays):
    """A verified label that is no candidate, with a score between those of the candidates, and held."""
    low, high, label = (arrays[f"evidence.{name}"] for name in ("low", "high", "label"))
    other = np.argmin(arrays["evidence.named"], axis=1)
    score = np.take_along_axis(arrays["evidence.table"], other[:, None], axis=1)[:, 0]
    row = np.flatnonzero(CHECKED & (arrays["evidence.sizes"] == 2) & (score > low) & (score < high))[0]
    label[row], arrays["evidence.truth"][row], arrays["evidence.held"][row] = other[row], score[row], True


def between_candidates(_, arrays):
    """A truth between the scores of its row's candidates, and held."""
    row = np.flatnonzero(CHECKED & (arrays["evidence.sizes"] == 2))[0]
    arrays["evidence.truth"][row] = (arrays["evidence.low"][row] + arrays["evidence.high"][row]) / 2
    arrays["evidence.held"][row] = True


AT_ODDS = {
    "triage of nobody: labels without checks": ("max", guessed, "label without truth"),
    "triage of nobody: of some rows": ("one label", put("label", lambda _: [5], -2), "label without truth"),
    "triage of nobody: not by design": ("one label", told(single=False), "label without truth"),
    "triage of nobody: labels that are none": ("rectified", put("label", unchecked, -1), "evidence.label"),
    "triage of nobody: not the label of the row": ("one label of all", guessed, "named and label"),
    "held left out": ("checked max", without("held"), "truth without label and held"),
    "held left out: label too": ("checked max", without("label"), "truth without label and held"),
    "held left out: truth too": ("checked max", without("truth"), "held without truth"),
    "held left out: held, though not named": ("checked corrected", held_though_not_named, "named, label and held"),
    "held left out: held, though nobody checked": ("checked max", put("held", unchecked, True), "truth and held"),
    "held left out: the score of no candidate": ("checked mean", between_candidates, "every, truth and held"),
    "held left out: not the score of the label": (
        "checked corrected",
        lambda _, a: a.update({"evidence.truth": np.where(CHECKED, a["evidence.low"], np.nan)}),
        "table, truth and label",
    ),
    "answers of nobody: scores": ("answers", put("answered_truth", unchecked, -1.0), "truth and answered_truth"),
    "answers of nobody: labels": ("answers", put("answered", unchecked, 0), "truth and answered"),
    "answers of nobody: confidences": (
        "answers",
        put("answered_confidence", unchecked, 1.0),
        "truth and answered_confidence",
    ),
    "small totals": ("all", lambda _, a: a.update({"evidence.total": a["evidence.total"] * 1e-9}), "total"),
    "small totals: answers of nothing": ("votes", lambda _, a: a["evidence.backing"].fill(0), "backing"),
    "small totals: no answer among some": ("votes", put("backing", lambda _: [-2, -1], [np.nan, 0]), "backing"),
    "small totals: a row twice": ("dropped", added("evidence.position", -np.eye(199)[7]), "position"),
    "small totals: a category without rows": ("categories", lambda h, _: h["categories"].append(2), "categories"),
    "small totals: categories of no scope": ("categories", told(scope=""), "categories"),
    "small totals: a scope of no categories": ("max", told(scope=" of each category"), "setting.scope"),
    "torn groups": ("groups", told(sampled=10**6), "random sample"),
    "torn groups: chances": ("some chances", told(sampled=10**6), "random sample"),
    "torn groups: verified rows counted too often": ("checked max", told(sampled=10**6), "random sample"),
    "torn groups: the same with weights": ("weights", told(sampled=10**6), "random sample"),
}


@pytest.mark.parametrize("odd", list(AT_ODDS))
def test_a_calibration_whose_columns_contradict_each_other_is_refused(odd, calibrations, tmp_path):
    name, change, message = AT_ODDS[odd]
    place = changed(calibrations[name], tmp_path / "x.cal", change)
    with pytest.raises(ValueError, match=rf"x.cal: a setwise-calibration file .*{message}"):
        Calibration.load(place)


def test_calibrations_as_they_were_saved_come_back(calibrations, tmp_path):
    for calibration in calibrations.values():
        calibration.save(tmp_path / "x.cal")
        assert str(Calibration.load(tmp_path / "x.cal").guarantee()) == str(calibration.guarantee())


def test_samples_of_rows_come_back(tmp_path):
    P, sets, _ = rows()
    few = CalibrationRows(max_rows=50, random_state=0)
    few.add(P, sets, verified=verified())
    few.conformalize("auto").save(tmp_path / "x.cal")
    assert Calibration.load(tmp_path / "x.cal").setting.sampled == 200


# ---------------------------------------------------------------------------- rows that are saved and go on

TORN = {
    "groups": (
        {"groups": np.arange(200) // 2},
        {"max_rows": 200},
        lambda h, _: h.update(seen=10**6),
        "cannot be a sample",
    ),
    "chances": (
        {"verified": verified(), "verified_probability": np.full(200, 1 / 3)},
        {},
        lambda h, _: h.update(seen=10**6),
        "cannot be a sample",
    ),
    "groups beyond the limit": (
        {"groups": np.arange(200) // 2},
        {},
        lambda h, _: h.update(max_rows=100),
        "cannot be a sample",
    ),
    "room for all": ({}, {"max_rows": 5000}, lambda h, _: h.update(seen=10**6), "cannot be a sample"),
    "other keys than those of the ids": (
        {"sampling_ids": np.arange(200)},
        {"max_rows": 50},
        lambda _, a: a.update(key=a["key"][::-1]),
        "keys",
    ),
    "another domain": ({}, {}, lambda h, _: h.update(domain="moon"), "domain"),
    "another array": ({}, {}, lambda _, a: a.update(moon=a["key"]), "moon is not known"),
    "arrays of no rows": ({}, {}, lambda h, _: h.update(classes=None, seen=0), "rows without classes"),
    "rows that are not there": (
        {},
        {},
        lambda h, a: (h.update(classes=None), a.clear()),
        "rows without classes",
    ),
    "one label by design, of several": ({}, {}, lambda h, _: h["flags"].update(single=True), "one label by design"),
}


@pytest.mark.parametrize("torn", list(TORN))
def test_torn_groups_rows_that_cannot_be_the_sample_they_are_said_to_be(torn, tmp_path):
    facts, limits, change, message = TORN[torn]
    kept, place = CalibrationRows(random_state=0, **limits), tmp_path / "x.rows"
    kept.add(*rows()[:2], **facts)
    kept.save(place)
    assert len(CalibrationRows.load(place)) == len(kept)
    altered(place, calibration_rows.FORMAT, calibration_rows.VERSION, change)
    with pytest.raises(ValueError, match=f"x.rows: a setwise-calibration-rows file .*{message}"):
        CalibrationRows.load(place)


def test_rows_of_no_known_domain_are_not_begun():
    with pytest.raises(ValueError, match="domain: 'moon' is not known"):
        CalibrationRows(domain="moon")


# ---------------------------------------------------------------------------- monitors that go on

FLAT = np.full((300, 3), 1 / 3)


def hushed(header, _):
    header.update(best=0.0, first_row=None, loudest=0)


def poor(header, arrays):
    """No gambler has won anything."""
    hushed(header, arrays)
    for name, array in arrays.items():
        if name.startswith(("capital", "invested")):
            array[:] = 0 if name.startswith("capital") else -np.inf


def forgetful(header, arrays):
    """The values of the new rows alone, each as often as it has to be."""
    hushed(header, arrays)
    for name, array in arrays.items():
        if name.startswith(("capital", "invested")):
            array[:] = -0.9
        elif name.startswith("values"):
            array[:] = array[array.size // 2]


@pytest.mark.parametrize("change", [hushed, poor, forgetful])
def test_hushed_monitor_its_alarm_and_rows_are_not_taken_away(change, calibrations, tmp_path):
    watching, place = calibrations["max"].monitor(random_state=0), tmp_path / "x.monitor"
    assert watching.update(FLAT).alarm
    watching.save(place)
    assert calibrations["max"].monitor(resume=place).state == watching.state
    altered(place, monitor.FORMAT, monitor.VERSION, change)
    with pytest.raises(ValueError, match="x.monitor: .*do not belong together"):
        calibrations["max"].monitor(resume=place)


def test_monitors_of_any_length_go_on(calibrations, tmp_path):
    watching = calibrations["categories"].monitor(random_state=0)
    for n in (0, 1, 2, 60):
        watching.update(rows()[0][:n], by=np.arange(n) % 2)
        watching.save(tmp_path / "x.monitor")
        assert calibrations["categories"].monitor(resume=tmp_path / "x.monitor").state == watching.state


# ---------------------------------------------------------------------------- notes beside tables of sets


@pytest.fixture
def noted(calibrations, tmp_path):
    """A table of sets, and a note of the comparison in which its rows differ."""
    (tmp_path / "sets.csv").write_text("y,labels,size\n" + "cat,cat|dog,2\ndog,dog,1\n" * 30)
    note = tmp_path / "sets.csv.differs.json"
    note.write_text(json.dumps(calibrations["max"].compare(FLAT).to_dict()))
    return note, ["evaluate", str(tmp_path / "sets.csv"), "--truth", "y"]


def rewritten(**entries):
    return lambda text: json.dumps(json.loads(text) | entries)


NOTES = {
    "silent in its p-value": rewritten(p_value=0.9),
    "silent throughout but for a finding": rewritten(p_value=0.9, refuted=False),
    "silent in a word": rewritten(refuted=False),
    "without a finding": rewritten(findings=[]),
    "another finding": rewritten(findings=[{"p_value": 1e-9, "sentence": "the largest probability differs"}]),
    "an entry twice": lambda text: text.replace('{"p_value"', '{"p_value": 0.9, "p_value"', 1),
    "lists in each other": lambda _: "[" * 10**5,
}


@pytest.mark.parametrize("odd", list(NOTES))
def test_note_at_odds_with_itself(odd, noted, capsys):
    note, command = noted
    assert run(command) == 0
    assert "differ from the 200 calibration rows" in "".join(capsys.readouterr())
    note.write_text(NOTES[odd](note.read_text()))
    assert run(command) == 2
    assert "sets.csv.differs.json: is not what `setwise predict` wrote" in capsys.readouterr().err
