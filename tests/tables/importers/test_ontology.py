"""Files that hold a tree of labels."""

import json

import pytest

from setwise import LabelSets
from setwise.tables import (
    DataError,
    read_tree,
)

TREE = {"animal": {"bird": ["owl", "wren"], "cat": None}, "plant": ["fern"]}


@pytest.mark.parametrize("name", ["tree.json", "pairs.json", "tree.csv", "two.tsv"])
def test_a_tree_file_turns_inner_nodes_into_leaves(tmp_path, name):
    pairs = [["animal", "bird"], ["animal", "cat"], ["bird", "owl"], ["bird", "wren"], ["plant", "fern"]]
    lines = {
        "tree.json": json.dumps(TREE),
        "pairs.json": json.dumps(pairs),
        "tree.csv": "child,parent\n" + "".join(f"{child},{parent}\n" for parent, child in pairs),
        "two.tsv": "above\tbelow\n" + "".join(f"{parent}\t{child}\n" for parent, child in pairs),
    }
    path = tmp_path / name
    path.write_text(lines[name])
    assert sorted(read_tree(path)) == sorted(map(tuple, pairs))
    found = LabelSets.from_hierarchy(["bird", "fern", "animal", "bird"], read_tree(path))
    assert found.to_lists() == [["owl", "wren"], ["fern"], ["cat", "owl", "wren"], ["owl", "wren"]]
    assert found.classes.tolist() == ["cat", "fern", "owl", "wren"]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.json", '{"a": ["b"], "b": ["a"]}', "its own descendant"),
        ("a.json", '{"a": [', "a.json: cannot be read"),
        ("a.json", "7", "expected an object of parents"),
        ("a.csv", "a,b,c\n1,2,3\n", "no column .parent. .of two, parent and child"),
        ("a.csv", "parent,child\nx,y\n,z\n", "row 1 lacks its parent or child"),
    ],
)
def test_a_broken_tree_file_ends_in_one_sentence(tmp_path, name, text, says):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(DataError, match=says):
        read_tree(path)
