"""Calibrations come back from their files as they were saved; what was changed in a file is refused and named."""

import numpy as np
import pytest

from setwise import Calibration
from setwise.calibration.calibration_file import FORMAT, VERSION
from setwise.storage.container import read_container, write_container
from tests.changed_files import (
    changed,
    rows,
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
    "a label that is none": ("max.cal", spoil("evidence.predicted", 3), "evidence.predicted"),
    "no probability": ("max.cal", spoil("evidence.confidence", 7.0), "evidence.confidence"),
    "fewer entries": ("mean.cal", halve("evidence.every"), "evidence.every"),
    "a category that is none": ("mean.cal", spoil("category", 2), "category"),
    "half of the categories": ("mean.cal", halve("category"), "category"),
    "a verified label that is none": ("rectified.cal", spoil("evidence.label", 9), "evidence.label"),
    "a share above one": ("rectified.cal", spoil("evidence.share", 1.5), "evidence.share"),
    "a table of other labels": ("corrected.cal", halve("evidence.table"), "evidence.table"),
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
    "another number of labels": ("max.cal", told(n_classes=7), "setting"),
    "a type for another": ("max.cal", told(votes="no"), "setting.votes"),
    "an unknown word": ("max.cal", told(by="moon"), "setting: by"),
    "an unknown word about right labels": ("max.cal", told(truth="most"), "most"),
    "a share beyond all right labels": ("max.cal", told(truth="1.5"), "truth: 1.5"),
    "classes twice": ("max.cal", lambda h, _: h.update(classes=["cat", "cat", "owl"]), "occurs twice"),
    "a strategy with a wild number": (
        "rectified.cal",
        lambda h, _: h["strategy"].update(delta=float("nan")),
        "delta: nan is not",
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


def test_what_was_saved_comes_back(calibrations, tmp_path):
    for calibration in calibrations.values():
        calibration.save(tmp_path / "x.cal")
        assert str(Calibration.load(tmp_path / "x.cal").guarantee()) == str(calibration.guarantee())


def test_whole_numbers_without_sign_are_read_as_any_others(calibrations, tmp_path):
    def unsigned(_, arrays):
        arrays["evidence.predicted"] = arrays["evidence.predicted"].astype(np.uint64)

    loaded = Calibration.load(changed(calibrations["mean"], tmp_path / "x.cal", unsigned))
    assert not loaded.compare(rows()[0]).refuted
