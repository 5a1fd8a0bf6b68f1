"""Calibrations come back from their files as they were saved; what was changed in a file is refused and named."""

import numpy as np
import pytest

from setwise import Calibration, conformalize
from setwise.calibration.calibration_file import FORMAT, VERSION
from setwise.labels.vocabulary import MISSING
from setwise.storage.container import read_container, write_container
from tests.changed_files import (
    IS_CHECKED,
    changed,
    rows,
    with_added,
    with_setting,
)
from tests.conftest import refused


def crafted(saved_models, name, path, change):
    """A calibration file with a right digest, of which something was changed."""
    header, arrays = read_container(saved_models / name, FORMAT, VERSION)
    arrays = {key: value.copy() for key, value in arrays.items()}
    change(header, arrays)
    write_container(path, header, arrays)
    return path


@pytest.mark.parametrize("size", [2**63 - 1, 0, -1, 99])
def test_sizes_that_wrap_are_refused_in_calibrations(size, saved_models, tmp_path):
    def change(_, arrays):
        arrays["evidence.sizes"][[0, 2]] = size

    path = crafted(saved_models, "mean.cal", tmp_path / "x.cal", change)
    assert "evidence.sizes" in refused(Calibration.load, path)


def spoil(name, value):
    def change(_, arrays):
        arrays[name].reshape(-1)[0] = value

    return change


def halve(name):
    def change(_, arrays):
        arrays[name] = arrays[name][: len(arrays[name]) // 2]

    return change


def swap_types(header, arrays):
    arrays["evidence.low"] = arrays["evidence.low"].astype("U9")


def told(**changes):
    def change(header, _):
        header["setting"] |= changes

    return change


def drop_an_answer(_, arrays):
    arrays["annotators.confusion"] = arrays["annotators.confusion"][:, :2]


def forget_names(header, arrays):
    header["annotators"].update(names=None)
    np.minimum(arrays["annotators.people"], 1, out=arrays["annotators.people"])


CHANGES = {
    "NaN scores": ("max.cal", spoil("evidence.high", np.nan), "evidence.high"),
    "infinite scores": ("max.cal", spoil("evidence.low", -np.inf), "evidence.low"),
    "half of the scores": ("max.cal", halve("evidence.high"), "evidence.high"),
    "half of all rows": ("max.cal", halve("evidence.low"), "evidence.high"),
    "scores as text": ("max.cal", swap_types, "evidence.low"),
    "low above high": ("max.cal", spoil("evidence.low", 7.0), "low and high"),
    "a label that is none": ("max.cal", spoil("evidence.predicted", 3), "evidence.predicted"),
    "no probability": ("max.cal", spoil("evidence.confidence", 7.0), "evidence.confidence"),
    "fewer entries": ("mean.cal", halve("evidence.every"), "evidence.every"),
    "a category that is none": ("mean.cal", spoil("category", 2), "category"),
    "half of the categories": ("mean.cal", halve("category"), "category"),
    "a verified label that is none": ("rectified.cal", spoil("evidence.label", 9), "evidence.label"),
    "a score without its label": ("rectified.cal", spoil("evidence.label", MISSING), "truth and label"),
    "a truth without a score": ("rectified.cal", spoil("evidence.truth", np.nan), "truth and"),
    "a share above one": ("rectified.cal", spoil("evidence.share", 1.5), "evidence.share"),
    "a table of other labels": ("corrected.cal", halve("evidence.table"), "evidence.table"),
    "a candidate too many": ("corrected.cal", lambda _, a: a["evidence.named"].fill(True), "named and sizes"),
    "an annotator that is none": ("votes.cal", spoil("annotators.people", 99), "annotators.people"),
    "an annotator after the last": ("votes.cal", spoil("annotators.people", 3), "annotators.people"),
    "annotators without names": ("votes.cal", forget_names, "annotators.people"),
    "annotators of other names": (
        "votes.cal",
        lambda h, _: h["annotators"].update(names=["ann"]),
        "their names or",
    ),
    "answers of other labels": ("votes.cal", drop_an_answer, "their names or answers"),
    "an answer that is none": ("votes.cal", spoil("annotators.said", -1), "annotators.said"),
    "a confusion above one": ("votes.cal", spoil("annotators.confusion", 2.0), "annotators.confusion"),
    "an unknown array": ("max.cal", lambda _, a: a.update(more=np.zeros(1)), "more is not known"),
    "another number of labels": ("max.cal", told(n_classes=7), "setting"),
    "a type for another": ("max.cal", told(votes="no"), "setting.votes"),
    "an unknown word": ("max.cal", told(by="moon"), "setting: by"),
    "a negative count": ("max.cal", told(checked=-1), "setting"),
    "classes twice": ("max.cal", lambda h, _: h.update(classes=["cat", "cat", "owl"]), "occurs twice"),
    "a strategy with a wild number": (
        "rectified.cal",
        lambda h, _: h["strategy"].update(delta=float("nan")),
        "delta of rectified",
    ),
    "no strategy": ("max.cal", lambda h, _: h.pop("strategy"), "strategy"),
    "an unknown strategy": ("max.cal", lambda h, _: h["strategy"].update(name="os.system"), "KeyError"),
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_every_array_of_a_calibration_is_checked(change, saved_models, tmp_path):
    name, craft, message = CHANGES[change]
    path = crafted(saved_models, name, tmp_path / "x.cal", craft)
    assert message in refused(Calibration.load, path)


def test_annotators_may_have_answered_less_than_one_whole_row(saved_models, tmp_path):
    path = crafted(saved_models, "votes.cal", tmp_path / "x.cal", spoil("annotators.total", 0.25))
    assert Calibration.load(path).annotators.total[0, 0] == 0.25


def test_a_changed_calibration_is_noticed_by_its_digest(saved_models, tmp_path):
    with np.load(saved_models / "max.cal") as file:
        arrays = dict(file)
    arrays["evidence.low"] = arrays["evidence.low"] - 0.001
    np.savez(tmp_path / "x.npz", **arrays)
    assert "changed or damaged" in refused(Calibration.load, tmp_path / "x.npz")
    del arrays["digest"]
    np.savez(tmp_path / "x.npz", **arrays)
    assert "changed or damaged" in refused(Calibration.load, tmp_path / "x.npz")


@pytest.mark.parametrize("name", ["max", "mean", "rectified", "corrected", "votes"])
def test_a_calibration_of_each_kind_of_evidence_comes_back(name, saved_models):
    loaded = Calibration.load(saved_models / f"{name}.cal")
    assert loaded.evidence.n == 120
    if name == "votes":
        header, _ = read_container(saved_models / "votes.cal", FORMAT, VERSION)
        assert loaded.annotators.shrink == header["annotators"]["shrink"]


@pytest.mark.parametrize("text", ["1e400000000", "0." + "1" * 10**6, "1/0", "-1/2", "3/2", 0.1, None, "nan"])
def test_a_miss_rate_in_a_file_is_a_short_fraction(text, saved_models, tmp_path):
    path = crafted(saved_models, "max.cal", tmp_path / "x.cal", told(miss_rate=text))
    assert len(refused(Calibration.load, path)) < 500


def test_a_calibration_holds_no_more_than_its_bytes(saved_models, tmp_path):
    with np.load(saved_models / "max.cal") as file:
        np.savez_compressed(tmp_path / "x.npz", **(dict(file) | {"evidence.low": np.zeros(10**6)}))
    assert "are larger than the file" in refused(Calibration.load, tmp_path / "x.npz")


# ------------------------------------------------- calibrations of which each part could be, and not all together


MIXED_UP = {
    "scores of candidates beyond their extremes": (
        "mean",
        with_added("evidence.every", -0.5),
        "every, low and high",
    ),
    "a table of other scores": ("corrected", with_added("evidence.table", -0.5), "table, low and high"),
    "shares of more than all": ("mixture", lambda _, a: a["evidence.share"].fill(1.0), "share"),
    "a truth that is no candidate, held": ("verified", with_added("evidence.truth", 5.0), "truth and held"),
    "fewer checks than verified rows": ("verified", with_setting(checked=3), "setting"),
    "checks without verified rows": ("mean", with_setting(checked=3), "setting"),
    "a sample of fewer rows than it has": ("mean", with_setting(sampled=7), "setting"),
    "more labels with a probability than there are": ("mean", with_setting(top=4), "setting"),
    "a seed that is none": ("mean", with_setting(seed=-1), "setting"),
    "declarations that its strategy refuses": ("corrected", with_setting(filled=True), "weighs candidates"),
    "a premise in words of its own": ("mean", with_setting(scope=" of no row at all"), "setting: scope"),
    "categories that rows do not have": (
        "by predicted",
        lambda _, a: a.update(category=a["category"][::-1]),
        "by predicted",
    ),
    "numbers of candidates that rows do not have": (
        "by size",
        lambda _, a: a.update(category=a["category"][::-1]),
        "by size",
    ),
    "categories of nowhere": ("mean", with_setting(by="predicted"), "setting.by"),
}


@pytest.mark.parametrize("mixed", list(MIXED_UP))
def test_parts_of_a_calibration_that_do_not_agree_are_refused(mixed, calibrations, tmp_path):
    name, change, message = MIXED_UP[mixed]
    place = changed(calibrations[name], tmp_path / "x.cal", change)
    with pytest.raises(ValueError, match=f"x.cal: .*{message}"):
        Calibration.load(place)


def test_what_was_saved_comes_back(calibrations, tmp_path):
    for calibration in calibrations.values():
        calibration.save(tmp_path / "x.cal")
        assert str(Calibration.load(tmp_path / "x.cal").guarantee()) == str(calibration.guarantee())


def test_whole_numbers_without_sign_are_read_as_any_others(calibrations, tmp_path):
    def unsigned(_, arrays):
        arrays["evidence.predicted"] = arrays["evidence.predicted"].astype(np.uint64)

    loaded = Calibration.load(changed(calibrations["mean"], tmp_path / "x.cal", unsigned))
    assert not loaded.compare(rows()[0]).refuted


def test_a_file_cannot_keep_silent_that_verified_rows_were_not_chosen_at_random(tmp_path):
    P, sets, truth = rows()
    easy = np.where(P.max(axis=1) > np.median(P.max(axis=1)), truth, None)
    with pytest.warns(UserWarning, match="not a random choice"):
        honest = conformalize(P, sets, "rectified", verified=easy)
    assert honest.guarantee().promised is None
    silent = changed(honest, tmp_path / "x.cal", with_setting(chosen=None))
    assert str(Calibration.load(silent).guarantee()) == str(honest.guarantee())


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
    row = np.flatnonzero(IS_CHECKED & (arrays["evidence.sizes"] == 2) & (score > low) & (score < high))[0]
    label[row], arrays["evidence.truth"][row], arrays["evidence.held"][row] = other[row], score[row], True


def between_candidates(_, arrays):
    """A truth between the scores of its row's candidates, and held."""
    row = np.flatnonzero(IS_CHECKED & (arrays["evidence.sizes"] == 2))[0]
    arrays["evidence.truth"][row] = (arrays["evidence.low"][row] + arrays["evidence.high"][row]) / 2
    arrays["evidence.held"][row] = True


AT_ODDS = {
    "triage of nobody: labels without checks": ("max", guessed, "label without truth"),
    "triage of nobody: of some rows": ("one label", put("label", lambda _: [5], -2), "label without truth"),
    "triage of nobody: not by design": ("one label", with_setting(single=False), "label without truth"),
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
        lambda _, a: a.update({"evidence.truth": np.where(IS_CHECKED, a["evidence.low"], np.nan)}),
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
    "small totals: a row twice": ("dropped", with_added("evidence.position", -np.eye(199)[7]), "position"),
    "small totals: a category without rows": ("categories", lambda h, _: h["categories"].append(2), "categories"),
    "small totals: categories of no scope": ("categories", with_setting(scope=""), "categories"),
    "small totals: a scope of no categories": ("max", with_setting(scope=" of each category"), "setting.scope"),
    "torn groups": ("groups", with_setting(sampled=10**6), "random sample"),
    "torn groups: chances": ("some chances", with_setting(sampled=10**6), "random sample"),
    "torn groups: verified rows counted too often": ("checked max", with_setting(sampled=10**6), "random sample"),
    "torn groups: the same with weights": ("weights", with_setting(sampled=10**6), "random sample"),
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
