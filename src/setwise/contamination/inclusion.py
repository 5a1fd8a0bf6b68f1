"""How often each label is a candidate when another one is true: M_kl = P(l ∈ S | y = k), estimated without truth.

Expectation–maximisation with a model's posterior f: the chance that k is the truth of a row is taken as
proportional to f_k(x) · Π_l M_kl^[l ∈ S] (1 − M_kl)^[l ∉ S], and M_kl is the weighted share of rows with l ∈ S.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import softmax

from setwise._arrays import Bools, Floats, frame_columns, frozen
from setwise._types import Candidates, ProbabilityRows
from setwise.errors import InputError, Remedy, check_length
from setwise.evidence.row_facts import present_rows
from setwise.labels.coerce import as_candidates
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import Classes
from setwise.probabilities.dense import as_probabilities

_EDGE = 1e-6  # how near to 0 and 1 an estimated inclusion probability may come
_SETTLED = 1e-5  # how far entries may still move in the last of
_STEPS = 200  # steps at most
_SEPARABLE = 0.02
"""The smallest singular value of M that is still inverted: errors in M grow by its inverse."""
_SAME = 0.1  # rows of M that differ nowhere by more are named together


def estimate_inclusion(
    probabilities: ProbabilityRows,
    candidates: Candidates,
    *,
    classes: Classes = None,
    miss_rate: float = 0.0,
) -> Floats:
    """The (K, K) matrix of inclusion probabilities M_kl = P(l ∈ S | y = k), from candidates and a posterior.

    Parameters
    ----------
    probabilities
        The model's posterior (n, K) for rows on which it was not trained.
    candidates
        Their candidate sets.
    classes
        The labels in the order of the columns, where candidates are not positions or a mask.
    miss_rate
        η: how often the truth is absent. The diagonal is 1 − η.

    Notes
    -----
    Starts at uniform inclusion and adds one imaginary row of that kind to every class, so that a class nobody
    meets is as the average. The answer is as good as the posterior: where the model errs with confidence, its
    errors are read as inclusion, and inclusion that depends on x is averaged away. Inclusions are taken as
    independent given the truth, which only weighs the rows; the estimate is of first-order probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from setwise import estimate_inclusion
    >>> y = np.arange(3000) % 3
    >>> P = np.where(np.arange(3) == y[:, None], 0.98, 0.01)
    >>> S = np.arange(3) == y[:, None]
    >>> S[y == 0, 1] = np.arange(1000) % 2 == 0  # a zero is a one in every other set
    >>> estimate_inclusion(P, S).round(2)
    array([[1. , 0.5, 0. ],
           [0. , 1. , 0. ],
           [0. , 0. , 1. ]])
    """
    P, sets = on_the_same_columns(probabilities, candidates, classes)
    check_miss_rate(miss_rate)
    return frozen(maximise(P, sets.to_mask(), miss_rate))


def check_miss_rate(miss_rate: float) -> None:
    """Refuses what is no share of candidate sets, or all of them."""
    if not 0 <= miss_rate < 1:
        raise ValueError(f"miss_rate: {miss_rate} is not in [0, 1).")


def on_the_same_columns(probabilities: Any, candidates: Any, classes: Classes) -> tuple[Floats, LabelSets]:
    """Probabilities and candidate sets of the same rows and labels; named columns in the order of the classes.

    Candidates that are positions take the names of a frame's columns.
    """
    P, names = as_probabilities(probabilities), frame_columns(probabilities)
    sets, _ = present_rows(as_candidates(candidates, P.shape[1], classes), "error")
    check_length("candidates", len(sets), len(P), "rows of probabilities")
    if names is None:
        return P, sets
    if sets.classes.tolist() == list(range(P.shape[1])):
        return P, LabelSets.from_mask(sets.to_mask(), names)
    return as_probabilities(probabilities, classes=sets.classes), sets


def maximise(P: Floats, mask: Bools, miss_rate: float) -> Floats:
    """The estimate of M from checked arrays."""
    n_classes = mask.shape[1]
    held = mask.astype(np.float64)
    share = (held.sum(axis=1).mean() - 1 + miss_rate) / (n_classes - 1)
    prior = _with_diagonal(np.full((n_classes, n_classes), share), miss_rate)
    with np.errstate(divide="ignore"):
        log_f = np.log(P.astype(np.float64))
    if miss_rate == 0:
        log_f = np.where(mask, log_f, -np.inf)
    lost = ~np.isfinite(log_f).any(axis=1)
    log_f[lost] = np.where(mask[lost], 0.0, -np.inf)  # the model excludes every candidate: none is preferred
    M = prior
    for _ in range(_STEPS):
        weight, before = responsibilities(log_f, held, M), M
        M = _with_diagonal((weight.T @ held + prior) / (weight.sum(axis=0) + 1)[:, None], miss_rate)
        if np.abs(M - before).max() < _SETTLED:
            break
    return M


def responsibilities(log_f: Floats, held: Floats, M: Floats) -> Floats:
    """The chance of each class being the truth of each row, given its candidates and M."""
    inside = np.clip(M, _EDGE, 1 - _EDGE)
    odds = np.log(inside) - np.log1p(-inside)
    likelihood = held @ odds.T + np.log1p(-inside).sum(axis=1)
    chances: Floats = softmax(log_f + likelihood, axis=1)
    return chances


def check_separable(M: Floats, classes: Any = None) -> None:
    """Raises an error that names the classes which M cannot tell apart by their candidate sets.

    M is inverted by everything that corrects for it; where its smallest singular value is near zero (labels
    that always come together, as with coarse labels) the inverse is noise.

    >>> check_separable(np.eye(3))
    >>> check_separable([[1, 1, 0], [1, 1, 0], [0, 0, 1]], ["cat", "dog", "owl"])
    Traceback (most recent call last):
    ...
    setwise.errors.InputError: assume: candidate sets cannot tell these classes apart: {cat, dog} ...
    """
    matrix = np.asarray(M, dtype=np.float64)
    directions, values, _ = np.linalg.svd(matrix)
    smallest = float(values[-1])
    if smallest >= _SEPARABLE:
        return
    names = [str(k) for k in range(len(matrix))] if classes is None else [str(label) for label in classes]
    involved = np.abs(directions[:, values < _SEPARABLE]).max(axis=1) > _SAME
    groups = _groups(matrix, np.flatnonzero(involved).tolist())
    named = ", ".join("{" + ", ".join(names[k] for k in group) + "}" for group in groups)
    raise InputError(
        f"assume: candidate sets cannot tell these classes apart: {named} (they come together; smallest "
        f"singular value of the inclusion matrix {smallest:.2g}, at least {_SEPARABLE} is needed)",
        "merge them into one class each",
        Remedy("strategy", "max", "or another strategy that needs no correction"),
    )


def _groups(matrix: Floats, involved: list[int]) -> list[list[int]]:
    """Classes whose rows nearly coincide, group by group; all involved ones where no two do."""
    groups: list[list[int]] = []
    for k in involved:
        for group in groups:
            if np.abs(matrix[group[0]] - matrix[k]).max() <= _SAME:
                group.append(k)
                break
        else:
            groups.append([k])
    together = [group for group in groups if len(group) > 1]
    return together or [involved]


def _with_diagonal(matrix: Floats, miss_rate: float) -> Floats:
    np.fill_diagonal(matrix, 1 - miss_rate)
    return matrix
