"""States that would end the process, or keep it busy for ever, are refused before anything is made of them."""

import io
import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
)
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from tests.saved_files import attributes, entries, put, put_array, read_skops, skops_file

RNG = np.random.default_rng(0)
Y = np.repeat([0, 1, 2], 40)
X = 2 * np.eye(3)[Y] + RNG.normal(size=(120, 3))
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
    k=pd.Categorical(np.array(["x", "y", "z"])[RNG.permutation(Y)]), m=pd.Categorical(np.array(["u", "v", "w"])[Y])
)
FRAME = FRAME[["a", "k", "b", "m"]]
TREES = [
    DecisionTreeClassifier(random_state=0),
    DecisionTreeClassifier(random_state=0, max_leaf_nodes=4),
    DecisionTreeClassifier(random_state=0, ccp_alpha=0.02),
    DecisionTreeClassifier(max_leaf_nodes=2, min_samples_split=500),
    ExtraTreeClassifier(random_state=0),
    RandomForestClassifier(3, random_state=0),
    ExtraTreesClassifier(3, random_state=0, n_jobs=-1),
    HistGradientBoostingClassifier(max_iter=3, random_state=0),
]


def refused(content, folder, message="with a state that scikit-learn never makes"):
    with pytest.raises(ValueError, match=message) as error:
        read_skops(content, folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("model", TREES, ids=repr)
def test_trees_forests_and_gradient_boosting_come_back_without_trust(model, tmp_path):
    fitted = clone(model).fit(X, Y)
    again = read_skops(skops_file(fitted), tmp_path)
    assert np.array_equal(again.predict_proba(X), fitted.predict_proba(X))


@pytest.mark.parametrize("rows", [FRAME, FRAME[["a", "b", "m"]], FRAME[["m"]]], ids="".join)
def test_gradient_boosting_on_categories_comes_back_without_trust(rows, tmp_path):
    fitted = HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=2).fit(rows, Y > 0)
    again = read_skops(skops_file(fitted), tmp_path)
    assert np.array_equal(again.predict_proba(rows), fitted.predict_proba(rows))


# ----------------------------------------------------------------------------------------------------- trees


def at(field, place, value):
    def change(nodes):
        nodes[field][place] = value

    return change


def swapped(nodes):
    """With children and features in each other's place: scikit-learn goes by the names, and then by the places."""
    kinds = [(name, nodes.dtype[name]) for name in nodes.dtype.names]
    kinds[0], kinds[2] = kinds[2], kinds[0]
    other = np.zeros(len(nodes), dtype=np.dtype(kinds, align=True))
    for name, _ in kinds:
        other[name] = nodes[name]
    return other


NODES = {
    "a child outside": at("left_child", 0, 10**6),
    "a negative child": at("right_child", 0, -7),
    "one leaf of two": at("right_child", 0, -1),
    "the root as its own child": at("left_child", 0, 0),
    "a cycle": at("right_child", 2, 1),
    "a child of two": at("right_child", 0, 1),
    "a feature outside": at("feature", 0, 3),
    "a negative feature": at("feature", 0, -1),
    "no nodes": lambda nodes: nodes[:0],
    "fewer nodes": lambda nodes: nodes[:-1],
    "fields in another order": swapped,
    "nodes in two dimensions": lambda nodes: nodes[:, None],
    "numbers": lambda nodes: np.zeros((len(nodes), 7)),
}


@cache
def single_tree():
    return DecisionTreeClassifier(random_state=0).fit(X, Y)


@pytest.mark.parametrize("attack", NODES)
def test_nodes_that_form_no_tree_are_refused(attack, tmp_path):
    def change(schema, members):
        (tree,) = entries(schema, "Tree")
        put_array(tree["content"]["content"]["nodes"], members, NODES[attack])

    refused(skops_file(single_tree(), change), tmp_path, "holds a Tree with a state that scikit-learn never makes")


STATES = {
    "node_count": [10**9, -1, 1, 4.0, "5", None],
    "max_depth": [0, 1, -1, None],
}


@pytest.mark.parametrize(("entry", "value"), [(entry, value) for entry in STATES for value in STATES[entry]])
def test_numbers_of_a_tree_are_those_of_its_nodes(entry, value, tmp_path):
    def change(schema, _):
        (tree,) = entries(schema, "Tree")
        put(tree["content"]["content"][entry], value)

    refused(skops_file(single_tree(), change), tmp_path)


@pytest.mark.parametrize(("place", "value"), [(0, 10**9), (0, 2), (0, "3"), (2, 10**6), (2, 0), (2, -1)])
def test_what_a_tree_is_made_with_fits_its_nodes(place, value, tmp_path):
    def change(schema, _):
        (tree,) = entries(schema, "Tree")
        put(tree["__reduce__"]["args"]["content"][place], value)

    refused(skops_file(single_tree(), change), tmp_path)


@pytest.mark.parametrize("counts", [[10**9], [0], [-1], [2], [3, 3]])
def test_a_tree_has_as_many_classes_as_values(counts, tmp_path):
    def change(schema, members):
        (tree,) = entries(schema, "Tree")
        put_array(tree["__reduce__"]["args"]["content"][1], members, lambda _: np.array(counts))

    refused(skops_file(single_tree(), change), tmp_path)


def test_a_tree_stands_in_an_estimator_of_trees_alone(tmp_path):
    def in_the_place_of_a_step(schema, _):
        steps = attributes(schema, "steps")
        steps[1]["content"][1] = next(entries(schema, "Tree"))

    def beside_another(schema, _):
        next(entries(schema, "FunctionTransformer"))["content"]["content"]["kw_args"] = next(
            entries(schema, "Tree")
        )

    pipeline = make_pipeline(FunctionTransformer(np.sqrt), single_tree())
    for change in (in_the_place_of_a_step, beside_another):
        refused(skops_file(pipeline, change), tmp_path, r"need your trust: sklearn.tree._tree.Tree;")


def test_a_tree_is_made_by_its_own_kind_of_entry(tmp_path):
    def change(schema, _):
        tree = next(entries(schema, "Tree"))
        arguments = tree["__reduce__"]["args"]
        tree |= {"__loader__": "ConstructorFromReduceNode", "content": arguments}

    refused(skops_file(single_tree(), change), tmp_path, r"scikit-learn never makes|need your trust: .*Tree;")


@pytest.mark.parametrize("features", [2, 4, None, 3.0, [3]])
@pytest.mark.parametrize("model", [TREES[0], TREES[5]], ids=repr)
def test_an_estimator_of_trees_counts_the_features_of_its_trees(model, features, tmp_path):
    def change(schema, _):
        put(attributes(schema)["n_features_in_"], features)

    refused(skops_file(clone(model).fit(X, Y), change), tmp_path)


def test_an_estimator_of_trees_counts_its_features(tmp_path):
    def change(schema, _):
        del attributes(schema)["n_features_in_"], schema["content"]["key_types"]["content"][0]

    for model in (TREES[0], TREES[5], TREES[-1]):
        refused(skops_file(clone(model).fit(X, Y), change), tmp_path)


# ------------------------------------------------------------------------------------------ gradient boosting


def whole(name, value):
    return lambda nodes: nodes[name].__setitem__(slice(None), value)


PREDICTORS = {
    "a child outside": at("left", 0, 10**6),
    "the root as its own child": at("right", 0, 0),
    "a cycle": whole("right", 0),
    "no leaf": whole("is_leaf", 0),
    "a feature outside": at("feature_idx", 0, 4),
    "a far feature": at("feature_idx", 0, 2**40),
    "a negative feature": at("feature_idx", 0, -1),
    "categories that are not there": whole("bitset_idx", 2**31),
    "categories of numbers": whole("is_categorical", 1),
    "no nodes": lambda nodes: nodes[:0],
    "other fields": lambda nodes: nodes[[name for name in nodes.dtype.names if name != "bitset_idx"]],
}


@cache
def boosted():
    odd = (FRAME["a"] > 0.5) ^ (FRAME["k"] == "x")
    return HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=2, random_state=0).fit(FRAME, odd)


def in_predictor(entry, change):
    def changed(schema, members):
        first = next(entries(schema, "TreePredictor"))
        put_array(first["content"]["content"][entry], members, change)

    return changed


@pytest.mark.parametrize("attack", PREDICTORS)
def test_nodes_of_gradient_boosting_that_form_no_tree_are_refused(attack, tmp_path):
    assert 0 < boosted()._predictors[0][0].nodes["is_categorical"].sum() < 10
    refused(skops_file(boosted(), in_predictor("nodes", PREDICTORS[attack])), tmp_path)


@pytest.mark.parametrize("change", [lambda sets: sets[:0], lambda sets: sets[:, :1], lambda sets: sets.ravel()])
def test_sets_of_categories_are_as_many_and_as_long_as_nodes_ask_for(change, tmp_path):
    refused(skops_file(boosted(), in_predictor("raw_left_cat_bitsets", change)), tmp_path)


BOOSTED = {
    "other columns": lambda held: put(held["n_features_in_"], 400),
    "in the middle of fitting": lambda held: held.update(_in_fit=held["n_features_in_"]),
    "no columns of categories": lambda held: put(
        held["_bin_mapper"]["content"]["content"]["is_categorical_"], None
    ),
    "another step before": lambda held: held.update(_preprocessor=held["_bin_mapper"]),
}


@pytest.mark.parametrize("attack", BOOSTED)
def test_gradient_boosting_reads_the_columns_that_it_learned_from(attack, tmp_path):
    def change(schema, _):
        names = schema["content"]["key_types"]["content"]
        BOOSTED[attack](attributes(schema))
        names += names[: len(attributes(schema)) - len(names)]

    refused(skops_file(boosted(), change), tmp_path)


@pytest.mark.parametrize("place", [0, 1])
def test_what_sorts_categories_hands_on_all_columns(place, tmp_path):
    def change(schema, members):
        steps = next(entries(schema, "ColumnTransformer"))["content"]["content"]["transformers_"]["content"]
        put_array(steps[place]["content"][2], members, np.zeros_like)

    refused(skops_file(boosted(), change), tmp_path)


def test_what_sorts_categories_hands_on_all_columns_of_a_frame_too(tmp_path):
    def change(schema, _):
        places = next(entries(schema, "ColumnTransformer"))["content"]["content"]["_transformer_to_input_indices"]
        del places["content"]["numerical"]["content"][1:]

    refused(skops_file(boosted(), change), tmp_path)


# ------------------------------------------------------------------------------------------------ other kinds

COLUMNS = np.column_stack([np.arange(40) % 7, np.arange(40) % 2, np.repeat([0.0, 1, 2, 3], [30, 8, 1, 1])])
ENCODERS = [
    OneHotEncoder(),
    OneHotEncoder(drop="first"),
    OneHotEncoder(drop="if_binary", min_frequency=6),
    OneHotEncoder(max_categories=3, handle_unknown="infrequent_if_exist"),
    KBinsDiscretizer(3, strategy="uniform"),
]


@pytest.mark.parametrize("encoder", ENCODERS, ids=repr)
@pytest.mark.parametrize(
    "columns", [COLUMNS, COLUMNS.astype(str), COLUMNS.astype(object)], ids=lambda rows: rows.dtype.kind
)
def test_encoders_as_they_are_fitted_need_no_trust(encoder, columns, tmp_path):
    if isinstance(encoder, KBinsDiscretizer):
        columns = COLUMNS
    model = make_pipeline(clone(encoder), LogisticRegression()).fit(columns, COLUMNS[:, 1])
    again = read_skops(skops_file(model), tmp_path)
    assert np.array_equal(again.predict_proba(columns), model.predict_proba(columns))


FITTED = {
    "columns": (0, {"_n_features_outs": [1, 1, 1]}),
    "dropped": (1, {"_drop_idx_after_grouping": np.array([2**30, 0, 0], dtype=object)}),
    "mapped": (3, {"_default_to_infrequent_mappings": [np.array([2**30] * 7), None, None]}),
    "negative": (3, {"_default_to_infrequent_mappings": [np.array([-1] * 7), None, None]}),
    "rare and not mapped": (3, {"_infrequent_indices": [np.array([2**30]), np.array([2**30]), None]}),
    "unsorted": (0, {"categories_": [np.arange(7.0), np.arange(2.0), np.array([3.0, 1, 2, 0])]}),
    "behind nothing": (0, {"categories_": [np.arange(7.0), np.arange(2.0), np.array([np.nan, 0, 1, 2])]}),
    "unsorted objects": (
        0,
        {"categories_": [np.arange(7.0), np.arange(2.0), np.array([3, 1, 2, 0], dtype=object)]},
    ),
    "unsorted long numbers": (
        0,
        {"categories_": [np.arange(7.0), np.arange(2.0), np.array([3, 1, 2, 0], dtype=np.longdouble)]},
    ),
    "unsorted complex numbers": (
        0,
        {"categories_": [np.arange(7.0), np.arange(2.0), np.array([3, 1, 2, 0], dtype=complex)]},
    ),
    "rare or not": (3, {"_infrequent_enabled": np.array(False)}),
    "no list": (0, {"categories_": "abc"}),
}


@pytest.mark.parametrize(("kind", "shape"), [("<U0", (2**40,)), ("<f8", (2**20, 2**20, 0))])
def test_an_array_of_no_bytes_says_nothing_often(kind, shape, tmp_path):
    """As a list it would not fit into memory."""

    def change(schema, members):
        made = io.BytesIO()
        np.lib.format.write_array_header_1_0(made, {"descr": kind, "fortran_order": False, "shape": shape})
        members[attributes(schema)["classes_"]["file"]] = made.getvalue()

    content = skops_file(LogisticRegression().fit(X, Y), change)
    refused(content, tmp_path, "an array says that it has more entries than bytes")


@pytest.mark.parametrize("attack", FITTED)
def test_an_encoder_whose_columns_are_not_those_of_its_categories_is_refused(attack, tmp_path):
    place, state = FITTED[attack]
    model = clone(ENCODERS[place]).fit(COLUMNS)
    vars(model).update(state)
    refused(skops_file(model), tmp_path)


def stacked():
    return StackingClassifier([("a", LogisticRegression()), ("b", GaussianNB())], cv=2).fit(X, Y)


OTHERS = {
    "a method by its name": (stacked, {"stack_method_": ["predict_proba", "tofile"]}),
    "a degree": (lambda: PolynomialFeatures(2).fit(X), {"_max_degree": 10**9}),
    "a type that is called": (lambda: FunctionTransformer(str).fit(X), {}),
    "a crowd of processes": (lambda: RandomForestClassifier(2).fit(X, Y), {"n_jobs": 10**6}),
    "a float of processes": (lambda: RandomForestClassifier(2).fit(X, Y), {"n_jobs": 1e6}),
    "a method that is hidden": (lambda: RandomForestClassifier(2).fit(X, Y), {"_validate_X_predict": np.sqrt}),
    "a private attribute": (
        lambda: GaussianNB().fit(X, Y),
        {"_HTMLDocumentationLinkMixin__doc_link_template": "x"},
    ),
}


@pytest.mark.parametrize("key", ["str", "str_"])
@pytest.mark.parametrize("name", ["sklearn.utils._bunch.Bunch", "sklearn.preprocessing._data.Normalizer"])
def test_no_object_says_where_in_memory_its_numbers_are(name, key, tmp_path):
    """Numpy reads what `__array_interface__` points to, which ended the process."""
    module, _, short = name.rpartition(".")
    listed = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
    text = {"__class__": key, "__module__": "builtins" if key == "str" else "numpy", "__loader__": "TypeNode"}

    def change(schema, _):
        held = {"__class__": "dict", "__module__": "builtins", "__loader__": "DictNode"}
        held |= {"content": {"__array_interface__": {}}, "key_types": listed | {"content": [text]}}
        put(held["content"]["__array_interface__"], {"data": [4096, False], "shape": [3], "typestr": "<f8"})
        bunch = held | {"__class__": short, "__module__": module}
        other = {"__class__": short, "__module__": module, "__loader__": "ObjectNode", "content": held}
        scaler = next(entries(schema, "MinMaxScaler"))
        scaler["content"]["content"]["scale_"] = bunch if short == "Bunch" else other

    refused(skops_file(make_pipeline(MinMaxScaler(), LogisticRegression()).fit(X, Y), change), tmp_path)


@pytest.mark.parametrize("attack", OTHERS)
def test_what_would_be_called_or_started_is_what_scikit_learn_calls(attack, tmp_path):
    make, state = OTHERS[attack]
    model = make()
    vars(model).update(state)
    refused(skops_file(model), tmp_path, "with a state that scikit-learn never makes|need your trust: .*")


def test_the_place_of_a_generator_is_among_its_numbers(tmp_path):
    def change(schema, _):
        for generator in entries(schema, "RandomState"):
            put(generator["content"]["content"]["state"]["content"]["pos"], 10**9)

    model = MLPClassifier((2,), max_iter=1, random_state=np.random.RandomState(0))
    with pytest.warns(UserWarning, match="iterations"):
        model.fit(X, Y)
    assert np.array_equal(read_skops(skops_file(model), tmp_path).predict_proba(X), model.predict_proba(X))
    refused(skops_file(model, change), tmp_path, "holds a RandomState")


@pytest.mark.parametrize(
    ("place", "entry", "value"), [("bit_generator", "bit_generator", "MT19937"), ("seed_seq", "pool_size", 2**20)]
)
def test_a_generator_is_the_usual_one_with_a_seed_of_the_usual_size(place, entry, value, tmp_path):
    def change(schema, _):
        put(next(entries(schema, "Generator"))["content"][place]["content"][entry], value)

    refused(skops_file(boosted(), change), tmp_path, "holds a Generator")


def test_a_class_of_another_scikit_learn_is_named_and_no_file_of_its_name_is_run(tmp_path, monkeypatch):
    def change(schema, _):
        next(entries(schema, "CyHalfBinomialLoss"))["__module__"] = "_loss"

    content = skops_file(boosted(), change)
    (tmp_path / "_loss.py").write_text("raise SystemExit('run')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "_loss", raising=False)
    refused(content, tmp_path, "there is no CyHalfBinomialLoss in the scikit-learn here")
