"""Files of setwise with right digests, of which something was changed, and the rows that they are made of."""

import numpy as np

from setwise import LabelSets
from setwise.calibration.calibration_file import FORMAT, VERSION
from setwise.container import read_container, write_container

NAMES = ["cat", "dog", "owl"]


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


def added(name, amount):
    def change(_, arrays):
        arrays[name] += np.asarray(amount, dtype=arrays[name].dtype)

    return change


def told(**entries):
    return lambda header, _: header["setting"].update(entries)
