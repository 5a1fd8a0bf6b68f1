"""Parts of a scikit-learn model that are loaded from a file only if the user trusts it.

Their compiled code uses positions and sizes in the fitted state unchecked, so that wild ones end the process; text
vectorizers open the files that rows name, and search them by any regular expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse

_KINDS = {
    "sklearn.cluster._kmeans._BaseKMeans",
    "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
    "sklearn.feature_extraction._dict_vectorizer.DictVectorizer",
    "sklearn.feature_extraction._hash.FeatureHasher",
    "sklearn.feature_extraction.text._VectorizerMixin",
    "sklearn.neighbors._base.NeighborsBase",
    "sklearn.svm._base.BaseLibSVM",
}
"""Trees are not among them: skops itself refuses these."""
_PLAIN = (str, bytes, int, float, complex, type(None), np.generic, type, ModuleType)


def types_needing_trust(model: Any) -> set[str]:
    """The full names of such types in a model; an encoder counts only where its columns do not add up."""
    return {_name(type(part)) for part in _parts(model) if _needs_trust(part)}


def _needs_trust(part: Any) -> bool:
    state = getattr(part, "__dict__", {})
    by_kind = sparse.issparse(part) or any(_name(kind) in _KINDS for kind in type(part).__mro__)
    return by_kind or ("_n_features_outs" in state and not _columns_add_up(state))


def _parts(model: Any) -> Iterator[Any]:
    """The model, and everything in it."""
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


def _columns_add_up(encoder: dict[str, Any]) -> bool:
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


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
