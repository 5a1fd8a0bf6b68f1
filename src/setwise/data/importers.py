"""Candidate sets from answers that are not votes: "not this one", nodes of an ontology, a model's proposals."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setwise.data.arrow_tables import arrow_table, is_path, reading
from setwise.data.imported import Classes, Imported, row_ids
from setwise.errors import DataError
from setwise.labels import constructors
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import is_missing
from setwise.probabilities import as_probabilities


def from_complementary(not_y: Any, *, classes: Iterable[Hashable], ids: ArrayLike | None = None) -> Imported:
    """Answers of the kind "not this one": everything else is a candidate; `classes` says what there is.

    >>> from_complementary(["dog"], classes=["cat", "dog", "owl"], ids=["r1"]).candidates
    LabelSets(1 rows, 3 classes): {cat, owl}
    """
    sets = LabelSets.from_complementary(not_y, list(classes))
    if (sets.sizes == 0).any():
        raise DataError(
            f"not_y: row {int(np.flatnonzero(sets.sizes == 0)[0])} excludes every class; nothing is left."
        )
    return Imported(sets, row_ids(ids, len(sets)))


def from_hierarchy(
    nodes: Iterable[Hashable], tree: Any, *, classes: Classes = None, ids: ArrayLike | None = None
) -> Imported:
    """Labels at any level of an ontology: the candidates are the leaves below.

    `tree` is a file for `read_tree`, a mapping of parents to children, or (parent, child) pairs.

    >>> from_hierarchy(["bird"], {"bird": ["owl", "wren"]}).candidates
    LabelSets(1 rows, 2 classes): {owl, wren}
    """
    known = read_tree(tree) if is_path(tree) else tree
    where = str(tree) if is_path(tree) else "tree"
    listed = list(nodes)
    try:
        leaves = constructors.leaves_below(known)
    except ValueError as error:
        raise DataError(f"{where}: {error}") from None
    distinct = list(dict.fromkeys(listed))
    unknown = next((node for node in distinct if node not in leaves), None)
    if unknown is not None or None in distinct:
        raise DataError(
            f"nodes: row {listed.index(unknown)}, {unknown!r}, is not in {where}; add it or correct its name."
        )
    below = LabelSets.from_lists(
        [leaves[node] for node in distinct],
        classes if classes is not None else sorted((n for n, held in leaves.items() if held == [n]), key=str),
    )
    position = {node: i for i, node in enumerate(distinct)}
    rows = np.fromiter((position[node] for node in listed), dtype=np.intp, count=len(listed))
    return Imported(below[rows], row_ids(ids, len(listed)))


def from_proposals(
    probabilities: ArrayLike,
    *,
    k: int | None = None,
    mass: float | None = None,
    classes: Classes = None,
    ids: ArrayLike | None = None,
) -> Imported:
    """A model's or language model's proposals: the k most probable labels, or the fewest that reach `mass`.

    Nothing makes such sets hold the truth; tell `conformalize` how often they may not (`miss_rate`).

    >>> from_proposals([[0.6, 0.3, 0.1]], k=2, classes=["cat", "dog", "owl"]).candidates
    LabelSets(1 rows, 3 classes): {cat, dog}
    """
    sets = LabelSets.from_top_k(as_probabilities(probabilities, "unit"), k=k, mass=mass, classes=classes)
    return Imported(sets, row_ids(ids, len(sets)))


def from_multihot(mask: ArrayLike, *, classes: Classes = None, ids: ArrayLike | None = None) -> Imported:
    """An (n, K) array of 0 and 1.

    >>> from_multihot([[1, 0, 1]], classes=["cat", "dog", "owl"]).candidates
    LabelSets(1 rows, 3 classes): {cat, owl}
    """
    sets = LabelSets.from_mask(mask, classes)
    return Imported(sets, row_ids(ids, len(sets)))


def read_tree(path: Any) -> list[tuple[Any, Any]]:
    """The (parent, child) pairs of an ontology file.

    A table with the columns parent and child (or exactly two columns), or JSON: ``{"parent": ["child", …]}``,
    nested as deep as you like, or a list of pairs.
    """
    file = Path(path)
    if file.suffix.lower() == ".json":
        with reading(file):
            try:
                return list(_edges(json.loads(file.read_bytes()), file))
            except RecursionError:
                raise DataError(f"{file}: nested too deeply for an ontology.") from None
    table = arrow_table(file)
    names = ("parent", "child") if {"parent", "child"} <= set(table.column_names) else tuple(table.column_names)
    if len(names) != 2:
        raise DataError(f"{file}: expected the columns parent and child; it has {', '.join(table.column_names)}.")
    pairs = list(zip(table[names[0]].to_pylist(), table[names[1]].to_pylist(), strict=True))
    empty = next((i for i, pair in enumerate(pairs) if any(is_missing(node) or node == "" for node in pair)), None)
    if empty is not None:
        raise DataError(f"{file}: row {empty} lacks its parent or child.")
    return pairs


def _edges(tree: Any, file: Path) -> Iterator[tuple[Any, Any]]:
    """Pairs out of nested JSON: an object's keys are parents of what they hold."""
    if isinstance(tree, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in tree):
        yield from ((_node(parent, file), _node(child, file)) for parent, child in tree)
        return
    if not isinstance(tree, Mapping):
        raise DataError(f"{file}: expected an object of parents and children, or a list of pairs.")
    pending = list(tree.items())
    while pending:
        parent, below = pending.pop()
        for part in below if isinstance(below, list) else [below]:
            if isinstance(part, Mapping):
                yield from ((parent, child) for child in part)
                pending.extend(part.items())
            elif part is not None:
                yield parent, _node(part, file)


def _node(value: Any, file: Path) -> Any:
    if not isinstance(value, (str, int)):
        raise DataError(f"{file}: {value!r} is no node of a tree; expected names, lists and objects.")
    return value
