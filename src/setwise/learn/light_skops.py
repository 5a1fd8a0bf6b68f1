"""skops without its survey of scikit-learn, which imports every module of it, and torch with one of them.

skops trusts scikit-learn's estimators, and lists them all when it is imported. Here it is imported with an empty
list, as a copy that nobody else sees, and `is_estimator` answers for the few names that a file holds.
"""

from __future__ import annotations

import inspect
import re
import sys
from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import Any

import sklearn.utils
from sklearn.base import BaseEstimator

_SAFE = (0, 13)
_NOT_ESTIMATORS = {"tests", "externals", "conftest", "experimental", "estimator_checks"}


@cache
def skops_io() -> Any:
    """The module `skops.io`; of versions that run code from a file they call safe, an error."""
    installed = version("skops")
    if tuple(map(int, re.findall(r"\d+", installed)[:2])) < _SAFE:
        raise ValueError(f"skops {installed} runs code from files; pip install 'skops>=0.13'.")
    if "skops.io" in sys.modules:
        return sys.modules["skops.io"]
    survey = sklearn.utils.all_estimators
    sklearn.utils.all_estimators = lambda *_, **__: []
    try:
        return import_module("skops.io")
    finally:
        sklearn.utils.all_estimators = survey
        for name in [name for name in sys.modules if name.partition(".")[0] == "skops"]:
            del sys.modules[name]  # others import skops with its own list


def is_estimator(name: str) -> bool:
    """Whether a full name is that of a public estimator of scikit-learn, as in its `all_estimators`.

    >>> is_estimator("sklearn.linear_model._logistic.LogisticRegression"), is_estimator("os.system")
    (True, False)
    """
    module, _, own = name.rpartition(".")
    parts = module.split(".")
    if parts[0] != "sklearn" or own.startswith("_") or _NOT_ESTIMATORS & set(parts):
        return False
    try:
        found = getattr(import_module(module), own, None)
    except ImportError:
        return False
    return inspect.isclass(found) and issubclass(found, BaseEstimator) and not inspect.isabstract(found)
