"""State of a fitted scikit-learn model that scikit-learn uses as it stands, and a file may have made up.

Compiled code takes positions and sizes from it without a look, so that wild ones end the process; text vectorizers
open the files that rows name, and search them by any regular expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Number
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse

_PLAIN = (str, bytes, int, float, complex, type(None), np.generic, type, ModuleType)
_USUAL_TOKENS = r"(?u)\b\w\w+\b"
_MOST_FEATURES = 2**31 - 1  # of scikit-learn's hashing


def doubtful_types(model: Any) -> set[str]:
    """The types of those parts of a model whose state is not plainly in order."""
    return {
        f"{type(part).__module__}.{type(part).__qualname__}" for part in _parts(model) if not _is_in_order(part)
    }


def _parts(model: Any) -> Iterator[Any]:
    """The model, and whatever is in it."""
    seen: dict[int, Any] = {}
    todo = [model]
    while todo:
        part = todo.pop()
        if isinstance(part, _PLAIN) or id(part) in seen:
            continue
        seen[id(part)] = part
        yield part
        if isinstance(part, dict):
            todo += part.values()
        elif isinstance(part, (list, tuple, set, frozenset)):
            todo += part
        elif isinstance(part, np.ndarray):
            todo += part.ravel().tolist() if part.dtype == object else []
        else:
            todo += getattr(part, "__dict__", {}).values()


def _is_in_order(part: Any) -> bool:
    if sparse.issparse(part):
        return _is_whole(part)
    held = getattr(part, "__dict__", {})
    vocabularies = [held[name] for name in ("vocabulary", "vocabulary_") if isinstance(held.get(name), dict)]
    return (
        all(map(_is_numbered, vocabularies))
        and held.get("input", "content") == "content"
        and held.get("token_pattern") in {None, _USUAL_TOKENS}
        and ("alternate_sign" not in held or held.get("n_features") in range(1, _MOST_FEATURES + 1))
        and ("_fit_X" not in held or min(np.shape(held["_fit_X"]), default=0) > 0)
        and all(isinstance(value, Number) for value in held.get("effective_metric_params_", {}).values())
        and ("_y" not in held or "classes_" not in held or _labels_inside(held))
        and ("_n_features_outs" not in held or _encodes_inside(held))
    )


def _is_numbered(vocabulary: dict[Any, Any]) -> bool:
    """Whether each word has a column of its own: 0, 1, 2 and so on."""
    return set(vocabulary.values()) == set(range(len(vocabulary)))


def _labels_inside(neighbors: dict[str, Any]) -> bool:
    """Whether each row that neighbours are sought among has the position of one class; of several outputs not."""
    codes, classes = neighbors["_y"], neighbors["classes_"]
    return (
        all(isinstance(array, np.ndarray) and array.ndim == 1 for array in (codes, classes))
        and codes.dtype.kind in "iu"
        and codes.shape == np.shape(neighbors.get("_fit_X", ()))[:1]
        and bool((codes >= 0).all() and (codes < len(classes)).all())
    )


def _encodes_inside(encoder: dict[str, Any]) -> bool:
    """Whether the indicators of categories are among the columns that an encoder counts, with rare ones as one."""
    none = [None] * len(encoder["categories_"])
    grouped = encoder["_default_to_infrequent_mappings"] if encoder["_infrequent_enabled"] else none
    dropped = none if encoder["_drop_idx_after_grouping"] is None else encoder["_drop_idx_after_grouping"]
    sizes = []
    for known, places, left_out in zip(encoder["categories_"], grouped, dropped, strict=True):
        if places is not None and (len(places) != len(known) or places.min() < 0):
            return False
        size = len(known) if places is None else int(places.max()) + 1
        if left_out is not None and left_out not in range(size):
            return False
        sizes.append(size - (left_out is not None))
    return sizes == list(encoder["_n_features_outs"])


def _is_whole(matrix: Any) -> bool:
    """Whether the entries of a sparse matrix are inside it; scipy looks at differences, which may wrap around."""
    try:
        matrix.check_format(full_check=True)
    except (AttributeError, ValueError):  # of another format than by rows or by columns
        return False
    return bool((matrix.indptr[1:] >= matrix.indptr[:-1]).all())
