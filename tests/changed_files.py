"""Files of setwise with right digests, of which something was changed, and the rows that they are made of."""

import hashlib
import json

import numpy as np

from setwise import LabelSets, Votes, conformalize
from setwise.calibration.calibration_file import FORMAT, VERSION
from setwise.storage.container import read_container, write_container
from tests.toy_data import NAMES

IS_CHECKED = np.arange(200) % 3 == 0
FLAT = np.full((300, 3), 1 / 3)  # a model that knows nothing


def rows(n=200):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    X = 2 * np.eye(3)[y] + rng.normal(size=(n, 3))
    sets = LabelSets.from_mask(np.eye(3)[y] + (rng.random((n, 3)) < 0.3) > 0, NAMES)
    return np.exp(X) / np.exp(X).sum(axis=1, keepdims=True), sets, np.array(NAMES, dtype=object)[y]


def altered(place, kind, version, change):
    """The file with another header or other arrays."""
    header, arrays = read_container(place, kind, version)
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(header, arrays)
    write_container(place, header, arrays)
    return place


def changed(calibration, place, change):
    """The file of a calibration, of which something was changed."""
    calibration.save(place)
    return altered(place, FORMAT, VERSION, change)


def with_added(name, amount):
    def change(_, arrays):
        arrays[name] += np.asarray(amount, dtype=arrays[name].dtype)

    return change


def with_setting(**entries):
    return lambda header, _: header["setting"].update(entries)


def verified_labels():
    return np.where(IS_CHECKED, rows()[2], None)


def said():
    """Three answers about each row but the first, of which two are right."""
    wrong = np.roll(rows()[2], 1)
    answers = [[right, right, other] for right, other in zip(rows()[2], wrong, strict=True)]
    return Votes.from_lists([[], *answers[1:]], classes=NAMES)


def feature_rows(n=120):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    X = 2 * np.eye(3)[y] + rng.normal(size=(n, 3))
    return X, LabelSets.from_mask(np.eye(3)[y] + (rng.random((n, 3)) < 0.3) > 0, NAMES)


def edited(folder, change, member=0):
    """Changes the calibration of one member of a model directory, and lists it with its new digest."""
    head = json.loads((folder / "setwise.json").read_text())
    name = head["members"][member]["calibration"]
    header, arrays = read_container(folder / name, FORMAT, VERSION)
    arrays = {key: array.copy() for key, array in arrays.items()}
    change(header, arrays)
    write_container(folder / name, header, arrays)
    content = (folder / name).read_bytes()
    head["files"][name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    (folder / "setwise.json").write_text(json.dumps(head))


def calibrations_of_each_kind():
    P, sets, truth = rows()
    every = {"verified": verified_labels(), "random_state": 0}
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
        "mean": conformalize(P, sets, "mean"),
        "verified": conformalize(P, sets, "rectified", verified=verified_labels()),
        "mixture": conformalize(P, sets, "posterior", random_state=0),
        "corrected": conformalize(P, sets, "corrected", assume="uniform"),
        "by predicted": conformalize(P, sets, by="predicted"),
        "by size": conformalize(P, sets, by="size"),
    }
