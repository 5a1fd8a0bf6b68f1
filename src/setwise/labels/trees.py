"""Trees of labels: the leaves below a node, and the fewest leaves below a few nodes that hold a set.

The classes are the leaves. A tree maps a parent to its children, or lists (parent, child) pairs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeAlias

import numpy as np

from setwise._arrays import Ints
from setwise.errors import InputError, Remedy
from setwise.labels.constructors import as_collection

TreeLike: TypeAlias = "Mapping[Any, Any] | Iterable[tuple[Any, Any]]"
_NEVER = 2**60  # the cost of what cannot be; two of them still fit


def children_of(tree: TreeLike) -> dict[Hashable, list[Hashable]]:
    """The children of every node, in the order of the tree."""
    children: dict[Hashable, dict[Hashable, None]] = {}
    listed = (
        ((parent, child) for parent, below in tree.items() for child in as_collection(below))
        if isinstance(tree, Mapping)
        else tree
    )
    for parent, child in listed:
        children.setdefault(parent, {})[child] = None
        children.setdefault(child, {})
    return {node: [*below] for node, below in children.items()}


def leaves_below(tree: TreeLike) -> dict[Hashable, list[Hashable]]:
    """For every node the leaves under it; a leaf is under itself. A child may have several parents."""
    children, leaves = children_of(tree), dict[Hashable, list[Hashable]]()
    for node in _order(children):
        below = dict.fromkeys(leaf for child in children[node] for leaf in leaves[child])
        leaves[node] = [*below] or [node]
    return leaves


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree whose nodes are numbered in its order, each before those below it; node 0 stands above all roots."""

    names: list[Hashable]
    below: list[list[int]]
    """The children of each node."""
    size: Ints
    """How many leaves are under it."""
    leaf: Ints
    """The node of each class."""

    @classmethod
    def read(cls, tree: TreeLike, classes: Sequence[Hashable]) -> Tree:
        """The tree over these classes, which must be leaves; each node has one parent."""
        children = children_of(tree)
        order, parent = _order(children), dict[Hashable, Hashable]()
        for node in reversed(order):
            for child in children[node]:
                if child in parent:
                    problem = f"tree: {child!r} lies below both {parent[child]!r} and {node!r}"
                    raise ValueError(f"{problem}; leave out all but one of its parents.")
                parent[child] = node
        for label in classes:
            if children.get(label, True):
                what = "is an inner node of it" if label in children else "is not in it"
                raise ValueError(f"tree: the class {label!r} {what}; put the class below its parent as a leaf.")
        names: list[Hashable] = [None]
        below: list[list[int]] = [[]]
        pending = [(node, 0) for node in reversed(children) if node not in parent]
        while pending:
            node, above = pending.pop()
            below[above].append(len(names))
            pending += [(child, len(names)) for child in reversed(children[node])]
            names.append(node)
            below.append([])
        size = np.ones(len(names), dtype=np.int64)
        for number in reversed(range(len(names))):
            if below[number]:
                size[number] = size[below[number]].sum()
        number_of = {name: number for number, name in enumerate(names) if number}
        return cls(names, below, size, np.array([number_of[label] for label in classes], dtype=np.int64))

    def check_roots(self, at_most: int) -> None:
        """Refuses fewer nodes than there are roots, as a set may hold leaves of each."""
        if isinstance(at_most, bool) or not isinstance(at_most, (int, np.integer)) or at_most < 1:
            raise ValueError(f"at_most: {at_most!r} is not a number of nodes; use 1 or more.")
        if (roots := len(self.below[0])) > at_most:
            problem = f"at_most: the tree has {roots} roots, and a set may hold leaves of all"
            raise InputError(problem, Remedy("at_most", roots), "put one node above the roots")

    def cover(self, rows: Ints, codes: Ints, at_most: int) -> tuple[Ints, Ints]:
        """The (row, node) pairs of at most so many nodes for each row whose leaves hold its classes.

        For the classes of a row below a node, `cost[row, r]` is the least cost of at most r nodes: the leaves under
        them, then the number of nodes. A node costs the leaves under it, or what its children cost with r divided
        among them. Children are added one by one, and `spent` keeps how many nodes the last of them takes.
        """
        where: list[Ints] = [np.empty(0, dtype=np.int64)] * len(self.names)
        taken: list[Any] = [None] * len(self.names)
        spent: list[Any] = [None] * len(self.names)
        cost: dict[int, Ints] = {}
        by_code = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[by_code], np.arange(len(self.leaf)), side="right")
        for code, begin, end in zip(range(len(ends)), [0, *ends[:-1].tolist()], ends.tolist(), strict=True):
            where[self.leaf[code]] = rows[by_code[begin:end]]
        for node in reversed(range(len(self.names))):
            children = [child for child in self.below[node] if len(where[child])]
            if children:
                where[node] = np.unique(np.concatenate([where[child] for child in children]))
            best = np.zeros((len(where[node]), at_most + 1), dtype=np.int64)
            for child in children:
                at, own = np.searchsorted(where[node], where[child]), cost.pop(child)
                before, spent[child] = best[at], np.zeros(own.shape, dtype=np.int64)
                best[at, 0] = _NEVER
                for r in range(1, at_most + 1):
                    ways = before[:, r - 1 :: -1][:, :r] + own[:, 1 : r + 1]
                    spent[child][:, r] = ways.argmin(axis=1) + 1
                    best[at, r] = ways.min(axis=1)
            whole = int(self.size[node]) * (at_most + 1) + 1
            named = node > 0 and len(self.below[node]) != 1  # a chain is named by its end
            taken[node] = named & ((best > whole) if children else np.ones(best.shape, dtype=bool))
            taken[node][:, 0] = False
            best[taken[node]] = whole
            best[:, 0] = _NEVER
            cost[node] = best
        left = [np.zeros(len(found), dtype=np.int64) for found in where]
        left[0][:] = at_most
        pairs = []
        for node, found in enumerate(where):
            here = taken[node][np.arange(len(found)), left[node]]
            pairs.append((found[here], np.full(np.count_nonzero(here), node)))
            rest = np.where(here, 0, left[node])
            for child in reversed([child for child in self.below[node] if len(where[child])]):
                at = np.searchsorted(found, where[child])
                left[child] = spent[child][np.arange(len(at)), rest[at]]
                rest[at] -= left[child]
        row, number = (np.concatenate(part) for part in zip(*pairs, strict=True))
        return row, number


def _order(children: Mapping[Hashable, Sequence[Hashable]]) -> list[Hashable]:
    """The nodes, children before their parents."""
    try:
        return [*TopologicalSorter(children).static_order()]
    except CycleError as error:
        raise ValueError(f"tree: {error.args[1][0]!r} is its own descendant; an ontology has no cycles.") from None
