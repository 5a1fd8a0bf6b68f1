"""Which types in the file of a scikit-learn model need the reader's trust: all that are not listed here.

The description in a skops file (``schema.json``) is read before anything is made of it: every type must be listed,
for the kind of object that it is, and the state of some is looked at (`setwise.learn.saved_state`).
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Collection, Mapping
from importlib import import_module
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import numpy as np

from setwise.learn import saved_state as state
from setwise.learn.saved_state import Check, Saved, SavedArray
from setwise.storage.container import read_json
from setwise.storage.stored_arrays import BROKEN

_PROTOCOL = 2  # of skops: what a file means
_ENTRY = {"__class__", "__module__", "__loader__", "__id__"}
_PRIVATE = re.compile(r"_[A-Za-z]\w*?__|__")
"""How names begin that Python gives to attributes private to a class, or that numpy looks up to learn what an
object is: `__array_interface__` says where in memory its numbers are."""
_CONSTANTS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}  # one NaN, so that it equals itself
_JOBS = 64  # processes that a model may ask for on any machine
_MODULES = {
    "setwise.learn.em": "EMClassifier",
    "sklearn._loss.link": "Interval LogitLink MultinomialLogit",
    "sklearn._loss.loss": "HalfBinomialLoss HalfMultinomialLoss",
    "sklearn.calibration": "CalibratedClassifierCV _CalibratedClassifier _SigmoidCalibration _TemperatureScaling",
    "sklearn.compose._column_transformer": "ColumnTransformer _RemainderColsList make_column_selector",
    "sklearn.decomposition._pca": "PCA",
    "sklearn.decomposition._truncated_svd": "TruncatedSVD",
    "sklearn.discriminant_analysis": "LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis",
    "sklearn.dummy": "DummyClassifier",
    "sklearn.ensemble._bagging": "BaggingClassifier",
    "sklearn.ensemble._forest": "ExtraTreesClassifier RandomForestClassifier",
    "sklearn.ensemble._hist_gradient_boosting.binning": "_BinMapper",
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting": "HistGradientBoostingClassifier",
    "sklearn.ensemble._hist_gradient_boosting.predictor": "TreePredictor",
    "sklearn.ensemble._stacking": "StackingClassifier",
    "sklearn.ensemble._voting": "VotingClassifier",
    "sklearn.ensemble._weight_boosting": "AdaBoostClassifier",
    "sklearn.feature_selection._from_model": "SelectFromModel",
    "sklearn.feature_selection._univariate_selection": "SelectKBest SelectPercentile",
    "sklearn.feature_selection._variance_threshold": "VarianceThreshold",
    "sklearn.feature_extraction.text": "TfidfTransformer",
    "sklearn.frozen._frozen": "FrozenEstimator",
    "sklearn.impute._base": "MissingIndicator SimpleImputer",
    "sklearn.isotonic": "IsotonicRegression",
    "sklearn.linear_model._logistic": "LogisticRegression LogisticRegressionCV",
    "sklearn.linear_model._passive_aggressive": "PassiveAggressiveClassifier",
    "sklearn.linear_model._perceptron": "Perceptron",
    "sklearn.linear_model._ridge": "RidgeClassifier RidgeClassifierCV",
    "sklearn.linear_model._stochastic_gradient": "SGDClassifier",
    "sklearn.naive_bayes": "BernoulliNB CategoricalNB ComplementNB GaussianNB MultinomialNB",
    "sklearn.neural_network._multilayer_perceptron": "MLPClassifier",
    "sklearn.neural_network._stochastic_optimizers": "AdamOptimizer SGDOptimizer",
    "sklearn.pipeline": "FeatureUnion Pipeline",
    "sklearn.preprocessing._data": "Binarizer MaxAbsScaler MinMaxScaler Normalizer PowerTransformer"
    " QuantileTransformer RobustScaler StandardScaler",
    "sklearn.preprocessing._discretization": "KBinsDiscretizer",
    "sklearn.preprocessing._encoders": "OneHotEncoder OrdinalEncoder",
    "sklearn.preprocessing._function_transformer": "FunctionTransformer",
    "sklearn.preprocessing._label": "LabelBinarizer LabelEncoder",
    "sklearn.preprocessing._polynomial": "PolynomialFeatures",
    "sklearn.preprocessing._target_encoder": "TargetEncoder",
    "sklearn.svm._classes": "LinearSVC",
    "sklearn.tree._classes": "DecisionTreeClassifier ExtraTreeClassifier",
}
_CHECKS: dict[str, Check] = {
    "ExtraTreesClassifier": state.forest,
    "RandomForestClassifier": state.forest,
    "DecisionTreeClassifier": state.tree_estimator,
    "ExtraTreeClassifier": state.tree_estimator,
    "HistGradientBoostingClassifier": state.boosting,
    "StackingClassifier": state.stacking,
    "FunctionTransformer": state.function,
    "OneHotEncoder": state.one_hot,
    "PolynomialFeatures": state.polynomial,
}
SAFE: dict[str, Check | None] = {
    f"{module}.{name}": _CHECKS.get(name) for module, names in _MODULES.items() for name in names.split()
}
"""Estimators, and the objects inside them, that are loaded without trust, with the check of their state if any."""

_SCORES = "sklearn.feature_selection._univariate_selection."
_EARLY = "_loss"  # as Cython named the module of losses until scikit-learn 1.6
_LOSSES = [
    f"{module}.Cy{name}"
    for module in (_EARLY, "sklearn._loss._loss")
    for name in ("HalfBinomialLoss", "HalfMultinomialLoss")
]
_LOSSES += [f"sklearn.linear_model._sgd_fast.{name}" for name in ("Hinge", "ModifiedHuber", "SquaredHinge")]
_TYPES = dict.fromkeys(f"builtins.{name}" for name in ("bool", "float", "int", "str"))
_LISTED: dict[str, Mapping[str, Check | None]] = {
    "ObjectNode": SAFE,
    "ListNode": {"builtins.list": None},
    "TupleNode": {"builtins.tuple": None},
    "SetNode": {"builtins.set": None},
    "DictNode": {
        "builtins.dict": None,
        "collections.OrderedDict": None,
        "sklearn.utils._bunch.Bunch": lambda entries: not any(map(_is_private, entries["content"])),
    },
    "SliceNode": {"builtins.slice": None},
    "BytesNode": {"builtins.bytes": None},
    "BytearrayNode": {"builtins.bytearray": None},
    "TypeNode": _TYPES,
    "DTypeNode": {"numpy.dtype": None},
    "NdArrayNode": {"numpy.ndarray": None},
    "FunctionNode": dict.fromkeys([state.CHECK_ARRAY, f"{_SCORES}f_classif", f"{_SCORES}chi2"]),
    "PartialNode": {"functools.partial": state.checks_arrays},
    "RandomStateNode": {"numpy.random.mtrand.RandomState": state.random_state},
    "RandomGeneratorNode": {"numpy.random._generator.Generator": state.generator},
    "LossNode": dict.fromkeys(_LOSSES, state.loss),
    "TreeNode": {state.TREE: state.tree},
}
"""By the kind of entry in a file: the names of types, and the checks of their state."""
_UNUSUAL = {state.checks_arrays, state.function, state.polynomial}
"""Checks of what is possible, and needs trust where it is not as usual."""


def types_needing_trust(content: bytes, trusted: Collection[str] = ()) -> set[str]:
    """The full names of types in a skops file that are neither listed nor trusted.

    A ValueError says that the state of a listed type is impossible.
    """
    from skops.io import (
        get_untrusted_types,
    )  # looks through all of scikit-learn, and is needed for its models alone

    with ZipFile(BytesIO(content)) as archive:
        schema = read_json(archive.read("schema.json"))
        if schema["protocol"] != _PROTOCOL:
            raise ValueError(f"format {schema['protocol']!r} of skops, and only {_PROTOCOL} is known")
        reader = _Reader(archive, trusted)
        reader.read(schema)
    missing = reader.unlisted | ({state.TREE} - {*trusted} if reader.loose_trees else set())
    return missing or {*get_untrusted_types(data=content)} - reader.listed - {*trusted}


class _Reader:
    """Reads the entries of a file, without making what they describe, and sorts the names of their types."""

    def __init__(self, archive: ZipFile, trusted: Collection[str]) -> None:
        self.archive, self.trusted = archive, trusted
        self.listed: set[str] = set()
        self.unlisted: set[str] = set()
        self.loose_trees = 0
        self._known: dict[Any, Any] = {}

    def read(self, entry: dict[str, Any]) -> Any:
        """What an entry describes: plain values as they are, all else as `Saved` or `SavedArray`."""
        kind, name = entry["__loader__"], f"{entry['__module__']}.{entry['__class__']}"
        parts = {key: self._parts(part) for key, part in entry.items() if key not in _ENTRY}
        if "__id__" in entry and self._known.setdefault(entry["__id__"], [kind, name, parts]) != [
            kind,
            name,
            parts,
        ]:
            raise ValueError("two different objects have one id")  # of which skops reads the first
        if kind == "JsonNode":
            return json.loads(entry["content"], parse_constant=_CONSTANTS.get)
        if kind == "DictNode":
            parts["content"] = _dictionary(**parts)
        if name not in self.trusted:
            (self.listed if self._is_listed(kind, name, parts) else self.unlisted).add(name)
        self.loose_trees += (kind == "TreeNode") - _holds_tree(name, parts)
        if kind in {"DictNode", "ListNode", "SetNode", "TupleNode"}:
            return parts["content"]
        if kind == "NdArrayNode":
            return self._array(name, parts)
        return Saved(kind, name, parts.get("content") if kind == "ObjectNode" else parts)

    def _is_listed(self, kind: str, name: str, parts: dict[str, Any]) -> bool:
        """Whether an entry needs no trust; refuses the impossible state of a listed type."""
        listed = _LISTED.get(kind, {})
        if name not in listed:
            return _is_of_numpy(kind, name)
        check, held = listed[name], parts.get("content") if kind == "ObjectNode" else parts
        made = _class(name) if kind in {"ObjectNode", "LossNode"} else None
        try:
            fits = (kind != "ObjectNode" or _hides_nothing(made, held)) and (check is None or check(held))
        except BROKEN:
            fits = False
        if not fits and check not in _UNUSUAL:
            raise ValueError(f"holds a {name.rpartition('.')[2]} with a state that scikit-learn never makes")
        return fits and (kind != "ObjectNode" or _asks_for_few(held))

    def _parts(self, part: Any) -> Any:
        if isinstance(part, list):
            return [self._parts(inner) for inner in part]
        if not isinstance(part, dict):
            return part
        if "__loader__" in part or "__id__" in part:
            return self.read(part)
        return {key: self._parts(value) for key, value in part.items()}

    def _array(self, name: str, parts: dict[str, Any]) -> Any:
        if parts["type"] == "json":
            return parts["content"] if len(parts["shape"]) == 1 else Saved("NdArrayNode", name, parts)
        array = SavedArray(self.archive, parts["file"])
        held = array.read()
        return array if name == "numpy.ndarray" else held.item()


def _dictionary(content: dict[str, Any], key_types: list[Any]) -> dict[Any, Any]:
    """By its keys; those that will be no text stand with their types."""
    names = [kind.name for kind in key_types]
    return {
        key if kind == "builtins.str" else (kind, key): value
        for kind, (key, value) in zip(names, content.items(), strict=True)
    }


def _class(name: str) -> Any:
    """The class of a listed name."""
    module, _, short = name.rpartition(".")
    home = sys.modules.get(module) if module == _EARLY else import_module(module)  # no file of that name is run
    if not hasattr(home, short):
        raise ValueError(f"there is no {short} in the scikit-learn here")
    return getattr(home, short)


def _hides_nothing(made: Any, held: dict[str, Any] | None) -> bool:
    """Whether no attribute stands in for a method, or is private."""
    return not any(hasattr(made, attribute) or _is_private(attribute) for attribute in held or {})


def _is_private(attribute: Any) -> bool:
    """Whether this is the name of a private attribute; it may stand with its type, as numpy's text does."""
    return _PRIVATE.match(attribute if isinstance(attribute, str) else attribute[1]) is not None


def _asks_for_few(held: dict[str, Any] | None) -> bool:
    """Whether a model starts no crowd of processes."""
    jobs = (held or {}).get("n_jobs")
    return jobs is None or (type(jobs) is int and jobs <= max(_JOBS, os.cpu_count() or 1))


def _holds_tree(name: str, parts: dict[str, Any]) -> bool:
    return name in state.TREE_ESTIMATORS and state.is_tree((parts.get("content") or {}).get("tree_"))


def _is_of_numpy(kind: str, name: str) -> bool:
    """Whether this is a type of numbers or text, or a function that numpy and scipy apply to each number."""
    module, _, short = name.rpartition(".")
    held = getattr(sys.modules.get(module), short, None)
    if kind == "FunctionNode":
        return module.partition(".")[0] in {"numpy", "scipy"} and isinstance(held, np.ufunc)
    scalar = isinstance(held, type) and issubclass(held, (np.number, np.bool_, np.str_))
    return kind in {"NdArrayNode", "TypeNode"} and module == "numpy" and scalar
