"""Trees: nodes that hold sets, against every choice of nodes there is."""

import tracemalloc
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setwise import LabelSets
from setwise.labels import label_sets
from setwise.labels.trees import leaves_below

TREE = {"animal": ["bird", "cat", "dog"], "bird": ["crow", "owl", "wren"]}
CLASSES = ["cat", "crow", "dog", "owl", "wren"]


@st.composite
def trees(draw):
    """A random forest of up to ten nodes as pairs, and its leaves; chains and several roots occur."""
    n = draw(st.integers(2, 10))
    parents = [draw(st.integers(-1, node - 1)) for node in range(1, n)]
    pairs = [(parent, node) for node, parent in enumerate(parents, 1) if parent >= 0]
    pairs = pairs or [(0, 1)]
    return draw(st.permutations(pairs)), sorted({c for _, c in pairs} - {p for p, _ in pairs})


def roots(tree):
    """How many nodes have no parent."""
    return len({parent for parent, _ in tree} - {child for _, child in tree})


def fewest(tree, wanted, at_most):
    """(leaves, nodes) of the best nodes by trying all."""
    leaves = leaves_below(tree)
    found = [(0, 0)] if not wanted else []
    for r in range(1, at_most + 1):
        for nodes in combinations(leaves, r):
            below = [leaf for node in nodes for leaf in leaves[node]]
            if wanted <= set(below) and len(below) == len(set(below)):
                found.append((len(below), r))
    return min(found)


@settings(max_examples=300)
@given(trees(), st.integers(1, 4), st.data())
def test_no_other_nodes_have_fewer_leaves(made, at_most, data):
    tree, classes = made
    at_most = max(at_most, roots(tree))
    rows = data.draw(st.lists(st.sets(st.sampled_from(classes)), max_size=6))
    sets = LabelSets.from_lists(rows, classes)
    nodes = sets.to_nodes(tree, at_most)
    leaves = LabelSets.from_hierarchy(nodes, tree, classes)
    assert sets.issubset(leaves).all()
    assert nodes.sizes.max(initial=0) <= at_most
    found = list(zip(leaves.sizes.tolist(), nodes.sizes.tolist(), strict=True))
    assert found == [fewest(tree, row, at_most) for row in rows]
    assert [sets[[i]].to_nodes(tree, at_most).to_lists()[0] for i in range(len(rows))] == nodes.to_lists()
    assert leaves.to_nodes(tree, at_most) == nodes


def test_of_equal_covers_the_first_branch_stays_fine():
    tree = {"all": ["a", "b", "other"], "a": ["a1", "a2", "a3"], "b": ["b1", "b2", "b3"]}
    sets = LabelSets.from_lists([["a1", "a2", "b1", "b2"]], ["a1", "a2", "a3", "b1", "b2", "b3", "other"])
    assert set(sets.to_nodes(tree, 3).to_lists()[0]) == {"a1", "a2", "b"}


def test_a_chain_is_named_by_its_end():
    tree = {"all": ["a", "b"], "a": ["middle"], "middle": ["leaf"]}
    assert LabelSets.from_labels(["leaf", "b"]).to_nodes(tree).to_lists() == [["leaf"], ["b"]]


def test_many_sets_are_worked_out_in_parts(monkeypatch):
    rng = np.random.default_rng(0)
    sets = LabelSets.from_mask(rng.random((50, 5)) < 0.4, CLASSES)
    whole = sets.to_nodes(TREE, 2)
    monkeypatch.setattr(label_sets, "_AT_ONCE", 20)
    assert sets.to_nodes(TREE, 2) == whole


def test_classes_may_be_numbers_beside_nodes_with_names():
    tree = {"low": [0, 1], "high": [2, 3], "all": ["low", "high"]}
    mask = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0, 1]], dtype=bool)
    assert LabelSets.from_mask(mask).to_nodes(tree).to_lists() == [["low"], ["all"], [], [3]]


@pytest.mark.parametrize(
    ("tree", "at_most", "says"),
    [
        (TREE, 0, "at_most: 0 is not a number of nodes"),
        (TREE, True, "at_most: True"),
        (
            {"bird": ["crow", "owl", "wren"], "pet": ["cat", "dog"]},
            1,
            "2 roots.*at_most=2, or put one node",
        ),
        ({"animal": ["bird", "cat"], "bird": ["crow", "owl", "wren"]}, 1, "class 'dog' is not in it"),
        (TREE | {"cat": ["tom"]}, 1, "class 'cat' is an inner node"),
        (TREE | {"pet": ["cat"]}, 2, "'cat' lies below both"),
        ({"a": ["b"], "b": ["a"]}, 1, "its own descendant"),
    ],
)
def test_a_tree_that_does_not_fit_is_refused(tree, at_most, says):
    with pytest.raises(ValueError, match=says):
        LabelSets.from_lists([["cat"]], CLASSES).to_nodes(tree, at_most)


def test_sets_of_nodes_become_the_leaves_of_all():
    nodes = LabelSets.from_lists([["bird", "cat"], ["dog"], [], ["animal", "bird"]])
    assert LabelSets.from_hierarchy(nodes, TREE).to_lists() == [
        ["cat", "crow", "owl", "wren"],
        ["dog"],
        [],
        CLASSES,
    ]


def test_long_branches_need_no_memory_for_every_pair_of_their_nodes():
    n = 1500
    chain = {f"to {i}": [i, f"to {i + 1}"] for i in range(n - 1)} | {f"to {n - 1}": [n - 1]}
    sets = LabelSets.from_lists([range(0, n, 2)] * 20, classes=range(n))
    sets.rows  # noqa: B018 - read before memory is measured
    tracemalloc.start()
    try:
        nodes = sets.to_nodes(chain, at_most=3)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert nodes.to_lists() == [[0, 2, "to 4"]] * 20
    assert peak < 60 * 2**20


@pytest.mark.parametrize("kind", ["nested", "pandas", "polars", "arrow"])
def test_a_tree_may_be_nested_or_a_frame(kind):
    nested = {"any": {"bird": {"owl": {}, "song": ["wren", "lark"]}, "rock": {}}}
    columns = {"child": ["bird", "rock", "owl", "song", "wren", "lark"]}
    columns["parent"] = ["any", "any", "bird", "bird", "song", "song"]
    frames = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
    tree = nested if kind == "nested" else frames[kind](columns)
    assert LabelSets.from_hierarchy(["song", "rock"], tree).to_lists() == [["lark", "wren"], ["rock"]]
    unnamed = pd.DataFrame([("any", "bird"), ("any", "rock")])
    assert LabelSets.from_hierarchy(["any"], unnamed).to_lists() == [["bird", "rock"]]
    sets = LabelSets.from_lists([["owl", "wren"], ["lark", "wren"]], classes=["lark", "owl", "rock", "wren"])
    assert sets.to_nodes(tree).to_lists() == [["bird"], ["song"]]
