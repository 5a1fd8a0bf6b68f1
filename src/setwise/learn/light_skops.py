"""skops without its surveys of scikit-learn, numpy and scipy, which are slow: the first imports torch.

skops trusts scikit-learn's estimators and the universal functions of numpy and scipy, and lists them all when it is
imported. Here it is imported with empty lists, as a copy that nobody else sees, and `is_estimator` and `is_ufunc`
answer for the few names that a file holds.
"""

from __future__ import annotations

import inspect
import re
import sys
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec, module_from_spec
from typing import Any

import numpy as np
import scipy.special  # noqa: F401 - its functions are known by name
import sklearn.utils
from sklearn.base import BaseEstimator

_SAFE = (0, 15)  # those before trust trees, whose state ends the process if it is made up
_NOT_ESTIMATORS = {"tests", "externals", "conftest", "experimental", "estimator_checks", "utils"}
_COMPILED = {
    *(f"sklearn.svm._classes.{name}" for name in ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")),
    *(f"sklearn.cluster._kmeans.{name}" for name in ("KMeans", "MiniBatchKMeans")),
}


@cache
def skops_io() -> Any:
    """The module `skops.io`; of versions that trust too much, an error."""
    installed = version("skops")
    if tuple(map(int, re.findall(r"\d+", installed)[:2])) < _SAFE:
        raise ValueError(f"skops {installed} trusts too much in files; pip install 'skops>=0.15'.")
    survey, others = sklearn.utils.all_estimators, _taken_out()  # what others imported trusts by its own list
    sklearn.utils.all_estimators = lambda *_, **__: []
    try:
        return _imported()
    finally:
        sklearn.utils.all_estimators = survey
        _taken_out()
        sys.modules.update(others)


def _taken_out() -> dict[str, Any]:
    return {name: sys.modules.pop(name) for name in [*sys.modules] if name.partition(".")[0] == "skops"}


def _imported() -> Any:
    spec = find_spec("skops.io")
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError("No module named 'skops.io'", name="skops")
    io = sys.modules["skops.io"] = module_from_spec(spec)
    utilities: Any = import_module("skops.io._utils")
    utilities.get_public_type_names = lambda **_: []  # before the module that calls it
    spec.loader.exec_module(io)
    return io


def is_estimator(name: str) -> bool:
    """Whether a full name is that of a public estimator of scikit-learn, as in its `all_estimators`.

    Those of libsvm and of k-means are left out: these take all sizes from their state, and end the process where
    they are wrong.

    >>> is_estimator("sklearn.linear_model._logistic.LogisticRegression"), is_estimator("os.system")
    (True, False)
    """
    module, _, own = name.rpartition(".")
    parts = module.split(".")
    if parts[0] != "sklearn" or own.startswith("_") or _NOT_ESTIMATORS & set(parts) or name in _COMPILED:
        return False
    try:
        found = getattr(import_module(module), own, None)
    except ImportError:
        return False
    return inspect.isclass(found) and issubclass(found, BaseEstimator) and not inspect.isabstract(found)


def is_ufunc(name: str) -> bool:
    """Whether a full name is that of a universal function in a module of numpy or scipy that is loaded.

    >>> is_ufunc("numpy.log1p"), is_ufunc("numpy.ma.log1p"), is_ufunc("numpy.load"), is_ufunc("os.system")
    (True, False, False, False)
    """
    module, _, own = name.rpartition(".")
    known = module.partition(".")[0] in {"numpy", "scipy"}
    return known and isinstance(getattr(sys.modules.get(module), own, None), np.ufunc)
