"""Whether the state of an estimator, as a file describes it, is one that scikit-learn could have made.

Compiled code of scikit-learn and scipy uses positions and sizes in it unchecked, so that wild ones would end the
process, or keep it busy for ever. Each check looks at one kind of object before anything is made of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import numpy as np

from setwise._arrays import Array

Check = Callable[[Any], bool]
"""Whether a state is possible; an error means no."""

TREE = "sklearn.tree._tree.Tree"
TREE_ESTIMATORS = {"sklearn.tree._classes.DecisionTreeClassifier", "sklearn.tree._classes.ExtraTreeClassifier"}
CHECK_ARRAY = "sklearn.utils.validation.check_array"
_ROWS = 2**20  # the most of an array without bytes
_DEGREES = range(65)  # beyond, polynomial features would take for ever


@dataclass(frozen=True)
class Saved:
    """An object in a file: how skops loads it, the name of its type, and its attributes or other entries."""

    kind: str
    name: str
    state: Any


@dataclass(frozen=True, eq=False)
class SavedArray:  # noqa: PLW1641 - compared, and never looked up
    """An array in a file, which is read when a check needs it."""

    archive: ZipFile
    file: str

    def read(self) -> Array:
        """The array."""
        array: Array = np.load(BytesIO(self.archive.read(self.file)), allow_pickle=False)
        if math.prod(side for side in array.shape if side) > max(array.nbytes, _ROWS):
            raise ValueError("an array says that it has more entries than bytes")
        return array

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SavedArray):
            return False
        return self.file == other.file or self.archive.read(self.file) == self.archive.read(other.file)


# ----------------------------------------------------------------------------------------------------- trees


def tree(entries: dict[str, Any]) -> bool:
    """Nodes, values and depth of a `Tree` belong together."""
    from sklearn.tree._tree import NODE_DTYPE  # of scikit-learn's compiled modules, imported for trees alone

    (features, counts, outputs), state = entries["__reduce__"]["args"], entries["content"]
    nodes, values, classes = state["nodes"].read(), state["values"].read(), counts.read()
    leaf = nodes["left_child"] == -1
    inner = nodes[~leaf]
    return (
        all(type(number) is int for number in (features, outputs, state["node_count"], state["max_depth"]))
        and nodes.dtype == NODE_DTYPE
        and nodes.shape == (state["node_count"],)
        and classes.shape == (outputs,)
        and values.shape == (len(nodes), outputs, classes.max())
        and bool((classes > 0).all() and (inner["feature"] >= 0).all() and (inner["feature"] < features).all())
        and 0 <= _depth(nodes["left_child"], nodes["right_child"], leaf) <= state["max_depth"]
    )


def tree_estimator(state: dict[str, Any]) -> bool:
    """A tree is asked for as many features as its estimator compares rows with."""
    if "tree_" not in state:
        return True
    return is_tree(state["tree_"]) and _features(state) == state["tree_"].state["__reduce__"]["args"][0]


def is_tree(value: Any) -> bool:
    """Whether this is a `Tree`."""
    return isinstance(value, Saved) and (value.kind, value.name) == ("TreeNode", TREE)


def forest(state: dict[str, Any]) -> bool:
    """The trees of a forest, which do not count the features themselves, learned from as many."""
    trees = state.get("estimators_", [])
    return all(tree.name in TREE_ESTIMATORS and _features(tree.state) == _features(state) for tree in trees)


def boosting(state: dict[str, Any]) -> bool:
    """Histogram gradient boosting: features, children and categories of all nodes exist."""
    if "_predictors" not in state:
        return True
    features, preprocessor = _features(state), state["_preprocessor"]
    categorical = state["_bin_mapper"].state["is_categorical_"].read() != 0
    predictors = [predictor.state for group in state["_predictors"] for predictor in group]
    return (
        "_in_fit" not in state
        and categorical.shape == (features,)
        and (preprocessor is None or _keeps_columns(preprocessor.state, features))
        and all(_fits(predictor, categorical) for predictor in predictors)
    )


def _fits(predictor: dict[str, Any], categorical: Array) -> bool:
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE  # as NODE_DTYPE

    nodes, bitsets = predictor["nodes"].read(), predictor["raw_left_cat_bitsets"].read()
    leaf = nodes["is_leaf"] != 0
    inner = nodes[~leaf]
    feature, by_category = inner["feature_idx"], inner["is_categorical"] != 0
    return (
        nodes.dtype == PREDICTOR_RECORD_DTYPE
        and bitsets.shape == (len(bitsets), 8)
        and bool((feature >= 0).all() and (feature < len(categorical)).all())
        and bool(
            categorical[feature[by_category]].all() and (inner["bitset_idx"][by_category] < len(bitsets)).all()
        )
        and _depth(nodes["left"], nodes["right"], leaf) >= 0
    )


def _depth(left: Array, right: Array, leaf: Array) -> int:
    """The depth of a tree; -1 unless each node but the first is the child of one node before it."""
    inner = np.flatnonzero(~leaf)
    pairs = np.stack([left, right]).astype(np.int64)
    if not np.array_equal(np.sort(pairs[:, inner], axis=None), np.arange(1, len(leaf))):
        return -1
    if not len(leaf) or (pairs[:, inner] <= inner).any():
        return -1
    level, depth = np.zeros(1, dtype=np.int64), 0
    while len(level := level[~leaf[level]]):
        level, depth = pairs[:, level].ravel(), depth + 1
    return depth


def _keeps_columns(state: dict[str, Any], features: int) -> bool:
    """Whether each column goes to one of two steps, for categories and for numbers, and comes out as one."""
    encoder, numbers, *others = state["transformers_"]
    first, second = np.array(_entries(encoder[2])), np.array(_entries(numbers[2]))
    return (
        encoder[1].name == "sklearn.preprocessing._encoders.OrdinalEncoder"
        and numbers[1].name == "sklearn.preprocessing._function_transformer.FunctionTransformer"
        and numbers[1].state["func"].name == "functools.partial"
        and first.dtype == second.dtype == bool
        and first.shape == (features,)
        and np.array_equal(first, ~second)
        and all(  # by which columns of a frame are found
            _entries(state["_transformer_to_input_indices"][name]) == np.flatnonzero(columns).tolist()
            for name, columns in ((encoder[0], first), (numbers[0], second))
        )
        and all(step == "drop" for _, step, _ in others)
    )


def _features(state: dict[str, Any]) -> int:
    number = state["n_features_in_"]
    if type(number) is not int:
        raise TypeError
    return number


# ------------------------------------------------------------------------------------------------- other kinds


def one_hot(state: dict[str, Any]) -> bool:
    """The columns of an encoder, which scipy believes, are those of its categories, with rare ones as one."""
    if "categories_" not in state:
        return True
    none = [None] * len(state["categories_"])
    rare, dropped = state["_infrequent_enabled"], state["_drop_idx_after_grouping"]
    if type(rare) is not bool:  # an array of one False would count as both
        return False
    grouped = state["_default_to_infrequent_mappings"] if rare else none
    listed = state["_infrequent_indices"] if rare else none
    left_out = none if dropped is None else _entries(dropped)
    sizes = []
    for known, places, indices, drop in zip(state["categories_"], grouped, listed, left_out, strict=True):
        values = _entries(known)
        codes = list(range(len(values))) if places is None else _entries(places)
        if (places is None) != (indices is None) or len(codes) != len(values) or min(codes) < 0:
            return False
        size = max(codes) + 1
        if not _ends_with_largest(values) or (drop is not None and drop not in range(size)):
            return False
        sizes.append(size - (drop is not None))
    return bool(sizes == state["_n_features_outs"])


def _ends_with_largest(known: list[Any]) -> bool:
    """Whether a search among numbers, which takes them as sorted, cannot end behind the last."""
    numbers: list[Any] = [value for value in known if isinstance(value, (int, float, complex, np.number))]
    if not numbers or known[-1] is not numbers[-1]:
        return True
    return bool(np.array_equal(np.sort(numbers)[-1:], numbers[-1:], equal_nan=True))


def _entries(values: Any) -> list[Any]:
    entries = values.read().tolist() if isinstance(values, SavedArray) else values
    if not isinstance(entries, list):
        raise TypeError
    return entries


def stacking(state: dict[str, Any]) -> bool:
    """The methods that are called by their names are those of classifiers."""
    return {*state.get("stack_method_", [])} <= {"predict_proba", "decision_function", "predict"}


def function(state: dict[str, Any]) -> bool:
    """What is called are functions, and no types."""
    asked = [state["func"], state["inverse_func"]]
    return all(called is None or called.kind in {"FunctionNode", "PartialNode"} for called in asked)


def checks_arrays(entries: dict[str, Any]) -> bool:
    """A function with options is the check of arrays before histogram gradient boosting."""
    content = entries["content"]
    return content["func"].name == CHECK_ARRAY and not content["args"] and not content["namespace"]


def polynomial(state: dict[str, Any]) -> bool:
    """The degree is small."""
    return state.get("_max_degree", 0) in _DEGREES


def random_state(entries: dict[str, Any]) -> bool:
    """The next number is one of those that there are."""
    state = entries["content"]
    return bool(state["bit_generator"] == "MT19937" and state["state"]["pos"] in range(625))


def generator(entries: dict[str, Any]) -> bool:
    """Numpy's usual generator with a seed of the usual size."""
    state = entries["content"]
    return bool(state["bit_generator"]["bit_generator"] == "PCG64" and state["seed_seq"]["pool_size"] == 4)


def loss(entries: dict[str, Any]) -> bool:
    """Made of numbers alone."""
    return not entries["content"] and all(isinstance(value, float) for value in entries["__reduce__"]["args"])
