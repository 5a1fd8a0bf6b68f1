"""Trees of labels: the leaves below a node, and the fewest leaves below a few nodes that hold a set.

The classes are the leaves. A tree maps a parent to its children, nested or not, lists (parent, child) pairs, or is
a frame with the columns parent and child (or exactly two).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeAlias

import numpy as np

from setwise._arrays import Ints
from setwise.errors import InputError, Remedy
from setwise.labels.constructors import as_collection

TreeLike: TypeAlias = "Mapping[Any, Any] | Iterable[tuple[Any, Any]]"
_NEVER = 2**60  # the cost of what cannot be; two of them still fit


def children_of(tree: TreeLike) -> dict[Any, list[Any]]:
    """The children of every node, in the order of the tree."""
    children: dict[Hashable, dict[Hashable, None]] = {}
    if hasattr(tree, "columns"):  # a frame
        names = list(getattr(tree, "column_names", tree.columns))
        names = ["parent", "child"] if {"parent", "child"} <= {*names} else names
        tree = zip(*(np.asarray(tree[name]).tolist() for name in names), strict=True)  # type: ignore[index]
    for parent, child in _pairs(tree) if isinstance(tree, Mapping) else tree:
        children.setdefault(parent, {})[child] = None
        children.setdefault(child, {})
    try:
        TopologicalSorter(children).prepare()
    except CycleError as error:
        raise ValueError(f"tree: {error.args[1][0]!r} is its own descendant; an ontology has no cycles.") from None
    return {node: [*below] for node, below in children.items()}


def _pairs(tree: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    for parent, below in tree.items():
        nested = isinstance(below, Mapping)
        yield from ((parent, child) for child in (below if nested else as_collection(below)))
        yield from _pairs(below) if nested else ()


def leaves_below(tree: TreeLike) -> dict[Any, list[Any]]:
    """For every node the leaves under it; a leaf is under itself. A child may have several parents."""
    children, leaves = children_of(tree), dict[Hashable, list[Hashable]]()
    for node in TopologicalSorter(children).static_order():  # children before their parents
        below = dict.fromkeys(leaf for child in children[node] for leaf in leaves[child])
        leaves[node] = [*below] or [node]
    return leaves


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree whose nodes are numbered in its order, each before those below it; node 0 stands above all roots."""

    names: list[Hashable]
    parent: Ints
    behind: Ints
    """The first number behind those below a node."""
    size: Ints
    """How many leaves are below it."""
    leaf: Ints
    """The node of each class."""
    depth: Ints
    """How many nodes are above it; none above node 0."""

    @classmethod
    def read(cls, tree: TreeLike, classes: Sequence[Hashable], at_most: int) -> Tree:
        """The tree over these classes, which must be leaves; each node has one parent, and there are few roots."""
        if isinstance(at_most, bool) or not isinstance(at_most, (int, np.integer)) or at_most < 1:
            raise ValueError(f"at_most: {at_most!r} is not a number of nodes; use 1 or more.")
        children, above = children_of(tree), dict[Hashable, Hashable]()
        for node, child in ((node, child) for node, below in children.items() for child in below):
            if above.setdefault(child, node) != node:
                both = f"{above[child]!r} and {node!r}"
                raise ValueError(f"tree: {child!r} lies below both {both}; leave out all but one of its parents.")
        for label in classes:
            if children.get(label, True):
                what = "is an inner node of it" if label in children else "is not in it"
                raise ValueError(f"tree: the class {label!r} {what}; put the class below its parent as a leaf.")
        pending = [(node, 0) for node in reversed(children) if node not in above]
        if (roots := len(pending)) > at_most:
            problem = f"at_most: the tree has {roots} roots, and a set may hold leaves of all"
            raise InputError(problem, Remedy("at_most", roots), "put one node above the roots")
        number, parents, depth = dict[Hashable, int](), [0], [0]
        while pending:
            node, over = pending.pop()
            number[node] = len(parents)
            pending += [(child, len(parents)) for child in reversed(children[node])]
            parents.append(over)
            depth.append(depth[over] + 1)
        parent, behind = np.array(parents), np.arange(1, len(parents) + 1)
        for node in range(len(parents) - 1, 0, -1):
            behind[parent[node]] = max(behind[parent[node]], behind[node])
        leaves = np.append(0, np.cumsum(behind == np.arange(1, len(behind) + 1)))
        leaf = np.array([number[label] for label in classes], dtype=np.intp)
        return cls([*number], parent, behind, leaves[behind] - leaves[:-1], leaf, np.array(depth))

    def cover(self, rows: Ints, codes: Ints, at_most: int) -> tuple[Ints, Ints]:
        """The (row, node) pairs of at most so many nodes for each row whose leaves hold its classes.

        A place is a row and a node with classes of the row below it, in this order. `cost` is what the classes from
        a place to the end of its row cost with r nodes. Either the node is named, for its leaves (and 1, so that
        fewer nodes win a tie), and the others begin behind it; or they begin with the next place.
        """
        n, deep = len(self.parent), self.depth[self.leaf[codes]]
        held, above, touched = rows * n + self.leaf[codes], rows[:0], [rows[:0]]
        for depth in range(deep.max(initial=0), 0, -1):  # each place once, however long the branches
            touched.append(np.unique(np.concatenate([above, held[deep == depth]])))
            row, node = np.divmod(touched[-1], n)
            above = row * n + self.parent[node]
        keys = np.sort(np.concatenate(touched))
        row, node = np.divmod(keys, n)
        end, jump = (np.searchsorted(keys, row * n + until) for until in (n, self.behind[node]))
        jump[jump == end] = len(keys)
        cost = np.zeros((len(keys) + 1, at_most + 1), dtype=np.int64)
        cost[:-1, 0], named = _NEVER, np.zeros(cost.shape, dtype=bool)
        to_end = end - np.arange(len(keys))
        inner, price = self.behind[node] > node + 1, self.size[node] * (at_most + 1) + 1
        for at in np.split(np.argsort(to_end, kind="stable"), np.cumsum(np.bincount(to_end)[1:])[:-1]):
            without = np.where(inner[at, None], cost[at + 1, 1:], _NEVER)
            itself = cost[jump[at], :-1] + price[at, None]
            named[at, 1:], cost[at, 1:] = itself < without, np.minimum(itself, without)
        at, taken = np.flatnonzero(np.diff(row, prepend=-1)), [rows[:0]]
        left = np.full(len(at), at_most)
        while len(at):
            takes = named[at, left]
            taken.append(at[takes])
            at, left = np.where(takes, jump[at], at + 1), left - takes
            at, left = at[at < len(keys)], left[at < len(keys)]
        places = np.concatenate(taken)
        return row[places], node[places]
