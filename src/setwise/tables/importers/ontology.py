"""Reads ontologies from files, for `LabelSets.from_hierarchy`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from setwise.errors import DataError
from setwise.labels.trees import children_of
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
    tree = _read_json(file) if file.suffix.lower() == ".json" else _read_table(file)
    try:
        children = children_of(tree)
    except TypeError:
        raise DataError(f"{file}: a node is a list or an object; give each a name.") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file}: {error}") from None
    strange = [
        node
        for node in children
        if not isinstance(node, (str, int, float)) or (isinstance(node, float) and not math.isfinite(node))
    ]
    if strange:
        raise DataError(f"{file}: {strange[0]!r} is not a node of a tree; expected names, lists and objects.")
    names = dict(zip(children, match_classes([*children], classes), strict=True))
    return [(names[parent], names[child]) for parent, below in children.items() for child in below]


def _read_json(file: Path) -> Any:
    with reading(file):
        try:
            tree = json.loads(file.read_bytes())
        except RecursionError:
            raise DataError(f"{file}: nested too deeply for an ontology.") from None
    if isinstance(tree, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in tree):
        return tree
    if not isinstance(tree, Mapping):
        raise DataError(f"{file}: expected an object of parents and children, or a list of pairs.")
    return tree


def _read_table(file: Path) -> list[tuple[Any, Any]]:
    table = arrow_table(file)
    names = ("parent", "child") if {"parent", "child"} <= set(table.column_names) else tuple(table.column_names)
    if len(names) != 2:
        lacking = next(name for name in ("parent", "child") if name not in table.column_names)
        raise absent_column(lacking, table.column_names, str(file), " (of two, parent and child)")
    pairs = list(zip(table[names[0]].to_pylist(), table[names[1]].to_pylist(), strict=True))
    if empty := [i for i, pair in enumerate(pairs) if any(is_missing(node) or node == "" for node in pair)]:
        raise DataError(f"{file}: row {empty[0]} lacks its parent or child.")
    return pairs
