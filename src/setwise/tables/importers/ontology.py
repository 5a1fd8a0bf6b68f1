"""Reads ontologies from files, for `LabelSets.from_hierarchy`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from setwise.errors import DataError
from setwise.labels.trees import leaves_below
from setwise.labels.vocabulary import Classes, is_missing
from setwise.tables.arrow_reading import absent_column, arrow_table, reading
from setwise.tables.label_notation import match_classes


def read_tree(path: Any, classes: Classes = None) -> list[tuple[Any, Any]]:
    """The (parent, child) pairs of an ontology file; nodes that read like one of the classes are that class.

    The file is a table with the columns parent and child (or exactly two columns), or JSON: ``{"parent": ["child",
    …]}``, nested to any depth, or a list of pairs.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tree.json")
    >>> _ = path.write_text('{"animal": {"bird": ["owl", "wren"]}}')
    >>> read_tree(path)
    [('animal', 'bird'), ('bird', 'owl'), ('bird', 'wren')]
    """
    file = Path(path)
    pairs = _json_pairs(file) if file.suffix.lower() == ".json" else _table_pairs(file)
    try:
        leaves_below(pairs)
    except ValueError as error:
        raise DataError(f"{file}: {error}") from None
    parents, children = (match_classes(side, classes) for side in zip(*pairs, strict=True)) if pairs else ((), ())
    return [*zip(parents, children, strict=True)]


def _json_pairs(file: Path) -> list[tuple[Any, Any]]:
    with reading(file):
        try:
            return list(_edges(json.loads(file.read_bytes()), file))
        except RecursionError:
            raise DataError(f"{file}: nested too deeply for an ontology.") from None


def _table_pairs(file: Path) -> list[tuple[Any, Any]]:
    table = arrow_table(file)
    names = ("parent", "child") if {"parent", "child"} <= set(table.column_names) else tuple(table.column_names)
    if len(names) != 2:
        lacking = next(name for name in ("parent", "child") if name not in table.column_names)
        raise absent_column(lacking, table.column_names, str(file), " (of two, parent and child)")
    pairs = list(zip(table[names[0]].to_pylist(), table[names[1]].to_pylist(), strict=True))
    empty = next((i for i, pair in enumerate(pairs) if any(is_missing(node) or node == "" for node in pair)), None)
    if empty is not None:
        raise DataError(f"{file}: row {empty} lacks its parent or child.")
    return [(_node(parent, file), _node(child, file)) for parent, child in pairs]


def _edges(tree: Any, file: Path) -> Iterator[tuple[Any, Any]]:
    """Pairs from nested JSON: the keys of an object are parents of their values."""
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
    if not isinstance(value, (str, int)) and not (isinstance(value, float) and math.isfinite(value)):
        raise DataError(f"{file}: {value!r} is not a node of a tree; expected names, lists and objects.")
    return value
