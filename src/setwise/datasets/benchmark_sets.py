"""The paper's benchmark sets by name: `load("mnist")`, `load("lost")`, …; `available()` lists them."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from setwise._arrays import Array, Ints, frozen
from setwise.datasets.idx import decompress, read_idx
from setwise.datasets.mat import read_mat
from setwise.datasets.registry import REGISTRY, Entry
from setwise.datasets.remote_files import RemoteFile, find, obtain
from setwise.errors import DataError, Remedy
from setwise.labels.label_sets import LabelSets

_LISTED = ("rows", "features", "classes", "average_size", "licence", "home")


@dataclass(frozen=True, eq=False)
class Benchmark:
    """One benchmark set.

    Attributes
    ----------
    name
        The name it was asked for by.
    X
        Features, (n, d), as stored: pixels are bytes 0..255.
    candidates
        Candidate sets over 0..K−1, or None where labels are precise.
    y
        True labels 0..K−1.
    class_names
        A name for every class; the class's number where its source gives none.
    split
        The official split as row numbers, such as ``{"train": …, "test": …}``, or None.
    citation, licence
        As stated at its source.
    """

    name: str
    X: Array = field(repr=False)
    candidates: LabelSets | None
    y: Ints = field(repr=False)
    class_names: tuple[str, ...] = field(repr=False)
    split: Mapping[str, Ints] | None = field(repr=False)
    citation: str = field(repr=False)
    licence: str

    @property
    def n_classes(self) -> int:
        """How many classes there are, whether or not each occurs."""
        return len(self.class_names)


@dataclass(frozen=True)
class Available:
    """One line of the list of benchmark sets: what it is, and where its files lie (None: not here yet)."""

    name: str
    rows: int
    features: int
    classes: int
    average_size: float | None
    licence: str
    home: str | None
    found: tuple[Path, ...] | None


def available() -> list[Available]:
    """The benchmark sets that `load` knows, and which of them are on this machine.

    >>> [entry.name for entry in available()][:4]
    ['mnist', 'kmnist', 'fashion_mnist', 'lost']
    """
    listed = []
    for name, entry in REGISTRY.items():
        found = tuple(place for file in entry.files if (place := find(file)) is not None)
        known = {field: getattr(entry, field) for field in _LISTED}
        listed.append(Available(name, **known, found=found if len(found) == len(entry.files) else None))
    return listed


def fetch(name: str, *, progress: bool = True) -> tuple[Path, ...]:
    """Makes sure that a set's files are on this machine, and returns their paths.

    Files already in the folder named by `SETWISE_DATA` or in the cache are used as they are; others come from
    their public home, verified before they take their final name. `progress` shows a bar (needs tqdm).
    """
    return tuple(_obtain(file, progress=progress) for file in _entry(name).files)


def load(name: str, *, verify: bool = True, progress: bool = True) -> Benchmark:
    """Loads a benchmark set, fetching it first if it is not on this machine.

    Parameters
    ----------
    name
        One of ``mnist``, ``kmnist``, ``fashion_mnist``, ``lost``, ``msrcv2``, ``birdsong``,
        ``soccer_player``, ``yahoo_news``, ``fg_net``, ``italian``.
    verify
        Compare the decompressed content with its known checksum. Switch it off to read another version
        of a set that you trust (for Lost two are in circulation). A file of which no checksum is known is
        loaded as it is, with a warning.
    progress
        Show a progress bar while downloading.

    Examples
    --------
    >>> lost = load("lost")  # doctest: +SKIP
    >>> lost.candidates.sizes.mean()  # doctest: +SKIP
    2.2317290552584672
    """
    entry = _entry(name)
    paths = [_obtain(file, progress=progress) for file in entry.files]
    contents = [_content(file, place, verify=verify) for file, place in zip(entry.files, paths, strict=True)]
    X, candidates, y, split = (
        _load_idx(paths, contents) if len(paths) > 1 else (*read_mat(contents[0], paths[0]), None)
    )
    names = entry.class_names if candidates is None else tuple(map(str, range(candidates.n_classes)))
    if verify and (*X.shape, len(names)) != (entry.rows, entry.features, entry.classes):
        raise DataError(
            f"{paths[0]}: {len(X)} × {X.shape[1]} features and {len(names)} classes, but {name} has "
            f"{entry.rows} × {entry.features} and {entry.classes}",
            Remedy("verify", False, "to read it all the same"),
        )
    return Benchmark(name, X, candidates, y, names, split, entry.citation, entry.licence)


def _entry(name: str) -> Entry:
    if name not in REGISTRY:
        raise ValueError(f"name: {name!r} is not a known set; known are {', '.join(REGISTRY)}.")
    return REGISTRY[name]


def _obtain(file: RemoteFile, *, progress: bool) -> Path:
    return obtain(file, lambda place: _content(file, place, verify=True), progress=progress)


def _content(file: RemoteFile, place: Path, *, verify: bool) -> bytes:
    """The decompressed content, compared with its checksum where one is known."""
    content = decompress(place)
    if not verify:
        return content
    if file.sha256 is None or place.name in file.others:
        warnings.warn(f"{place}: no checksum is known of {place.name}; loaded as it is.", stacklevel=3)
        return content
    digest = hashlib.sha256(content).hexdigest()
    if digest != file.sha256:
        raise DataError(
            f"{place}: its content has SHA-256 {digest[:12]}…, expected {file.sha256[:12]}…; "
            "it is damaged or another version",
            "remove it to fetch it anew",
            Remedy("verify", False, "if you trust who made it"),
        )
    return content


def _load_idx(paths: list[Path], contents: list[bytes]) -> tuple[Array, None, Ints, Mapping[str, Ints]]:
    (train_X, train_y, test_X, test_y) = map(read_idx, contents, paths)
    for images, labels, place in ((train_X, train_y, paths[1]), (test_X, test_y, paths[3])):
        if labels.ndim != 1 or len(images) != len(labels):
            raise DataError(f"{place}: labels of shape {labels.shape} for {len(images)} images; fetch both again.")
    X = np.concatenate([train_X.reshape(len(train_X), -1), test_X.reshape(len(test_X), -1)])
    y = np.concatenate([train_y, test_y]).astype(np.intp)
    train, test = np.split(np.arange(len(y)), [len(train_y)])
    return frozen(X), None, frozen(y), {"train": frozen(train), "test": frozen(test)}
