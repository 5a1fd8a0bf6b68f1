"""Nonconformity scores: how atypical is a label for an example, given a model's probabilities f.

A larger score is more atypical ("stranger"). Scores are *stored* as the published score minus one (LAC: −f), so
that f = 1e-30 and f = 1e-20 stay apart (`margin` and `rps`, which need their precision near zero, as they are);
`offset` is what reading adds back. Each score is a frozen dataclass;
anything with the attributes and methods of `Score` serves as well.

========  =======================================================  ==========================================
name      published score s(x, y)                                  source
========  =======================================================  ==========================================
lac       1 − f_y                                                  Sadinle, Lei, Wasserman (JASA 2019)
aps       Σ_j f_j·1{f_j > f_y} + u·f_y                             Romano, Sesia, Candès (NeurIPS 2020)
raps      aps + λ·max(0, o_y − k)                                  Angelopoulos et al. (ICLR 2021)
saps      u·f_max if o_y = 1, else f_max + (o_y − 2 + u)·λ         Huang et al. (ICML 2024)
ties      1 − f_y, ties in random order                            Vovk, Gammerman, Shafer (2005), smoothing
margin    max_{j≠y} f_j − f_y                                      Johansson et al. (COPA 2017)
rps       Σ_{j<K} (F_j − 1{y ≤ j})² / (K − 1)                      Haas et al. (arXiv 2606.24959, 2026)
nodes     1 − mean of f over the labels that enter with y          after Mortier et al. (arXiv 2501.19038, 2025)
========  =======================================================  ==========================================

o_y = 1 + #{j: f_j > f_y} is the rank of the label: equal probabilities share rank and score. F_j is the probability
of the classes up to j, in their order, and no other score asks for one. u is one
uniform number per row (`row_noise`); the deterministic form, u = 1, is conservative. Sums run over
probabilities rounded to multiples of 2⁻⁵⁰: then every sum is exact in any order, and the score of one
label, of all labels, and the comparison with a threshold agree to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from setwise._arrays import Array, Bools, Floats, Ints, count_true, entries, for_blocks
from setwise._lazy import lazy
from setwise.labels.trees import Tree, TreeLike, children_of
from setwise.labels.vocabulary import Vocabulary
from setwise.row_noise import uniforms

Domain = Literal["simplex", "unit"]


@runtime_checkable
class Score(Protocol):
    """What a nonconformity score has to offer.

    `monotone`: within a row a more probable label never scores higher, so that the extremes over a
    candidate set are those of its most and least probable member. `elementwise`: the score depends on the
    label's own probability alone. Both are promises that let callers do less work.
    """

    name: ClassVar[str]
    offset: ClassVar[float]
    monotone: ClassVar[bool]
    elementwise: ClassVar[bool]

    @property
    def domain(self) -> Domain:
        """What the rows of probabilities must be: on the "simplex", or each entry in "unit" [0, 1]."""

    @property
    def randomized(self) -> bool:
        """Whether the score uses a uniform number per row."""

    def score(self, probabilities: Floats, labels: Ints | None = None, *, u: Floats | None = None) -> Floats:
        """The (n, K) stored scores, or the (n,) scores of one label position per row."""

    def below(self, probabilities: Floats, threshold: Any, *, u: Floats | None = None) -> Bools:
        """The (n, K) mask of labels whose stored score is at most the threshold (a number, or one per row)."""


@dataclass(frozen=True)
class LAC:
    """1 − f_y, the score of the paper ("least ambiguous sets").

    >>> import numpy as np
    >>> LAC().score(np.array([[0.7, 0.2, 0.1]]))
    array([[-0.7, -0.2, -0.1]])
    """

    domain: Domain = "simplex"
    name: ClassVar[str] = "lac"
    offset: ClassVar[float] = 1.0
    monotone: ClassVar[bool] = True
    elementwise: ClassVar[bool] = True
    randomized: ClassVar[bool] = False

    def score(self, probabilities: Floats, labels: Ints | None = None, *, u: Floats | None = None) -> Floats:  # noqa: ARG002
        """The stored scores −f."""
        return np.negative(_gather(probabilities, labels), dtype=np.float64)

    def below(self, probabilities: Floats, threshold: Any, *, u: Floats | None = None) -> Bools:  # noqa: ARG002
        """The mask f ≥ −threshold."""
        cut = least_included(threshold, probabilities.dtype)
        return probabilities >= (cut[0, 0] if cut.size == 1 else cut)  # a number is compared in half the time


@dataclass(frozen=True)
class RandomTies:
    """LAC, where labels of different rows with the same probability come in random order.

    Shares of votes take few values. With LAC whole ties are in the sets or not, which covers more than is asked for
    and makes sets larger. Probabilities within a factor of 1 ± 2⁻²⁶ count as tied. Labels of a row stay in order.

    >>> import numpy as np
    >>> RandomTies().score(np.array([[0.6, 0.4], [0.4, 0.6]]), u=np.array([0.2, 0.7])).round(3)
    array([[-0.6, -0.4],
           [-0.4, -0.6]])
    """

    domain: ClassVar[Domain] = "simplex"
    name: ClassVar[str] = "ties"
    offset: ClassVar[float] = 1.0
    monotone: ClassVar[bool] = True
    elementwise: ClassVar[bool] = False
    randomized: ClassVar[bool] = True

    def score(self, probabilities: Floats, labels: Ints | None = None, *, u: Floats | None = None) -> Floats:
        """The stored scores −f·(1 − u·2⁻²⁶), and for zeros u·2⁻¹⁰⁰⁰."""
        noise = uniforms(probabilities, 0) if u is None else np.asarray(u, dtype=np.float64)
        noise = noise[:, None] if labels is None else noise
        own = _gather(probabilities, labels).astype(np.float64, copy=False)
        return own * (noise * 2.0**-26 - 1) + noise * 2.0**-1000

    def below(self, probabilities: Floats, threshold: Any, *, u: Floats | None = None) -> Bools:
        """The mask of scores at most the threshold."""
        return _compare(self, probabilities, threshold, u)


@dataclass(frozen=True)
class Margin:
    """max_{j≠y} f_j − f_y: negative for a clear winner."""

    domain: Domain = "simplex"
    name: ClassVar[str] = "margin"
    offset: ClassVar[float] = 0.0
    monotone: ClassVar[bool] = True
    elementwise: ClassVar[bool] = False
    randomized: ClassVar[bool] = False

    def score(self, probabilities: Floats, labels: Ints | None = None, *, u: Floats | None = None) -> Floats:  # noqa: ARG002
        """The best other label's probability minus the label's own."""
        first, second = np.empty((2, len(probabilities)))

        def work(block: slice) -> None:
            ordered = np.partition(probabilities[block], -2, axis=1)
            first[block], second[block] = ordered[:, -1], ordered[:, -2]

        for_blocks(probabilities, work)
        own = _gather(probabilities, labels).astype(np.float64, copy=False)
        if labels is None:
            first, second = first[:, None], second[:, None]
        return np.where(own == first, second, first) - own

    def below(self, probabilities: Floats, threshold: Any, *, u: Floats | None = None) -> Bools:  # noqa: ARG002
        """The mask of scores at most the threshold."""
        return _compare(self, probabilities, threshold)


class _Ranked:
    """Scores that are one formula of a label's value, its rank, the mass above it, and the top value.

    `by_mass` and `by_rank` say which of these a formula uses, so that nothing else is computed.
    """

    by_mass: ClassVar[bool] = False
    by_rank: ClassVar[bool] = False

    offset: ClassVar[float] = 1.0
    monotone: ClassVar[bool] = True
    elementwise: ClassVar[bool] = False
    domain: ClassVar[Domain] = "simplex"
    randomized: bool

    def _formula(self, lead: Any, value: Floats, order: Any, top: Any, u: Floats) -> Array:  # noqa: ARG002
        """The stored score by the mass above the label minus one (`lead`), value, rank, top value and u."""
        raise AttributeError(f"{type(self).__name__} must define _formula.")

    def score(self, probabilities: Floats, labels: Ints | None = None, *, u: Floats | None = None) -> Floats:
        """The stored scores, of all labels or of one label per row."""
        noise = self._noise(probabilities, u)
        scores = np.empty(probabilities.shape if labels is None else len(probabilities))

        def work(block: slice) -> None:
            exact = _exact(probabilities[block])
            if labels is None:
                scores[block] = self._of_all(exact, noise[block, None])
            else:
                scores[block] = self._of_one(exact, labels[block], noise[block])

        for_blocks(probabilities, work)
        return scores

    def below(self, probabilities: Floats, threshold: Any, *, u: Floats | None = None) -> Bools:
        """The mask of scores at most the threshold: one sort of values, no permutation to undo.

        Within a tie the sorted positions carry too large a score except the first, which carries the right
        one; the cut is a value, so the whole tie follows its first member.
        """
        noise = self._noise(probabilities, u)
        limit = np.broadcast_to(np.asarray(threshold, dtype=np.float64).reshape(-1), len(probabilities))
        mask = np.empty(probabilities.shape, dtype=bool)

        def work(block: slice) -> None:
            exact = _exact(probabilities[block])
            ordered, scores = self._sort(exact, noise[block, None])
            inside = count_true(scores <= limit[block, None])
            last = exact.shape[1] - 1
            cut = np.take_along_axis(ordered, np.minimum(last + 1 - inside, last)[:, None], axis=1)
            cut[inside == 0] = np.inf
            np.greater_equal(exact, cut, out=mask[block])

        for_blocks(probabilities, work)
        return mask

    def _noise(self, probabilities: Floats, u: Floats | None) -> Floats:
        if not self.randomized:
            return np.ones(len(probabilities))
        return uniforms(probabilities, 0) if u is None else np.asarray(u, dtype=np.float64)

    def _of_one(self, exact: Floats, labels: Ints, u: Floats) -> Floats:
        value = _gather(exact, labels)
        above = exact > value[:, None]
        # A product with 0 and 1 is several times faster than np.where, and as exact.
        lead = (exact * above.astype(np.float64)).sum(axis=1) - 1.0 if self.by_mass else None
        order = count_true(above) + 1 if self.by_rank else None
        return self._formula(lead, value, order, None if self.by_mass else exact.max(axis=1), u)

    def _sort(self, exact: Floats, u: Floats, order: Ints | None = None) -> tuple[Floats, Floats]:
        """Values in ascending order and the scores by position."""
        ordered = np.sort(exact, axis=1) if order is None else np.take_along_axis(exact, order, axis=1)
        lead = None
        if self.by_mass:
            lead = np.cumsum(ordered, axis=1)
            np.subtract(lead[:, -1:] - 1.0, lead, out=lead)
        ranks = np.arange(ordered.shape[1], 0, -1)
        return ordered, self._formula(lead, ordered, ranks, ordered[:, -1:], u)

    def _of_all(self, exact: Floats, u: Floats) -> Floats:
        order = np.argsort(exact, axis=1)
        ordered, scores = self._sort(exact, u, order)
        last = np.broadcast_to(np.arange(exact.shape[1]), exact.shape).copy()
        last[:, :-1][ordered[:, :-1] == ordered[:, 1:]] = exact.shape[1]
        last = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]  # ties share their first member's score
        result = np.empty_like(exact)
        np.put_along_axis(result, order, np.take_along_axis(scores, last, axis=1), axis=1)
        return result


@dataclass(frozen=True)
class APS(_Ranked):
    """The probability of all labels more probable than this one, plus a random share of its own.

    >>> import numpy as np
    >>> APS(randomized=False).score(np.array([[0.5, 0.25, 0.25]]))
    array([[-0.5 , -0.25, -0.25]])
    """

    randomized: bool = True
    name: ClassVar[str] = "aps"
    by_mass: ClassVar[bool] = True

    def _formula(self, lead: Any, value: Floats, order: Any, top: Any, u: Floats) -> Array:  # noqa: ARG002
        scores: Array = lead + u * value
        return scores


@dataclass(frozen=True)
class RAPS(_Ranked):
    """APS plus a penalty λ (`penalty`) for every rank beyond k (`free_ranks`).

    The defaults λ = 0.01 and k = 5 are the fixed values of the authors' tutorial.
    """

    penalty: float = 0.01
    free_ranks: int = 5
    randomized: bool = True
    name: ClassVar[str] = "raps"
    by_mass: ClassVar[bool] = True
    by_rank: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (0 <= self.penalty < np.inf and self.free_ranks >= 0):
            raise ValueError("RAPS: penalty and free_ranks must be finite and not negative.")

    def _formula(self, lead: Any, value: Floats, order: Any, top: Any, u: Floats) -> Array:  # noqa: ARG002
        scores: Array = (lead + u * value) + self.penalty * np.maximum(order - self.free_ranks, 0)
        return scores


@dataclass(frozen=True)
class SAPS(_Ranked):
    """The top probability, plus λ (`weight`) for every rank: all other probabilities are ignored.

    The default λ = 0.2 is a common middle of the range the authors tune over.
    """

    weight: float = 0.2
    randomized: bool = True
    name: ClassVar[str] = "saps"
    by_rank: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.weight < np.inf:
            raise ValueError("SAPS: weight must be positive and finite.")

    def _formula(self, lead: Any, value: Floats, order: Any, top: Any, u: Floats) -> Array:  # noqa: ARG002
        scores: Array = np.where(order == 1, u * top - 1.0, (top - 1.0) + (order - 2.0 + u) * self.weight)
        return scores


class _Joint:
    """Scores that are computed for all labels of a row together, without noise."""

    name: ClassVar[str]
    offset: ClassVar[float]
    domain: ClassVar[Domain] = "simplex"
    monotone: ClassVar[bool] = False
    elementwise: ClassVar[bool] = False
    randomized: ClassVar[bool] = False

    def _of_all(self, rows: Floats) -> Floats:  # noqa: ARG002
        """The stored scores of some rows."""
        raise AttributeError(f"{type(self).__name__} must define _of_all.")

    def score(self, probabilities: Floats, labels: Ints | None = None, *, u: Floats | None = None) -> Floats:  # noqa: ARG002
        """The stored scores, of all labels or of one label per row."""
        scores = np.empty(probabilities.shape if labels is None else len(probabilities))

        def work(block: slice) -> None:
            every = self._of_all(np.ascontiguousarray(probabilities[block], dtype=np.float64))
            scores[block] = _gather(every, None if labels is None else labels[block])

        for_blocks(probabilities, work)
        return scores

    def below(self, probabilities: Floats, threshold: Any, *, u: Floats | None = None) -> Bools:  # noqa: ARG002
        """The mask of scores at most the threshold."""
        return _compare(self, probabilities, threshold)


@dataclass(frozen=True)
class RPS(_Joint):
    """The ranked probability score, for ordered classes: its sets are intervals around the median.

    The order is that of `classes`; labels other than numbers must be declared in it. With G_j = 1 − F_j the score
    times K − 1 is

        Σ_j min(F_j, G_j)² + Σ_{j<y} max(F_j − G_j, 0) + Σ_{j≥y} max(G_j − F_j, 0),

    since from one label to the next it grows by F_y² − G_y² = F_y − G_y. Such a difference is never below the one
    before, nor a rounded sum of positive numbers below its part: the second sum is zero up to the median and then
    rises, the third falls to zero there. So every set {y: score ≤ threshold} is an interval, to the last bit and
    with ties, whatever the threshold comes from: labels, candidate sets, votes or verified rows. With a threshold
    for each class, or a model for each fold, gaps are filled, which only adds labels. What is left of a set within
    a new row's own candidates may have gaps.

    >>> import numpy as np
    >>> RPS().score(np.array([[0.1, 0.6, 0.3, 0.0]])).round(2)
    array([[0.3 , 0.03, 0.17, 0.5 ]])
    """

    name: ClassVar[str] = "rps"
    offset: ClassVar[float] = 0.0

    def _of_all(self, rows: Floats) -> Floats:
        upto, beyond = np.cumsum(rows, axis=1)[:, :-1], np.cumsum(rows[:, ::-1], axis=1)[:, -2::-1]
        scores, growth = np.zeros_like(rows), upto - beyond
        np.cumsum(np.maximum(growth, 0), axis=1, out=scores[:, 1:])
        scores[:, :-1] += np.cumsum(np.maximum(-growth, 0)[:, ::-1], axis=1)[:, ::-1]
        scores += np.cumsum(np.minimum(upto, beyond) ** 2, axis=1)[:, -1:]  # in a fixed order, unlike a sum
        scores /= growth.shape[1]
        return scores


@dataclass(frozen=True)
class Nodes(_Joint):
    """Sets that are at most so many nodes of a tree: LAC, where labels enter by nodes.

    Each row has a sequence of sets, which starts empty. The next set adds all labels below one node, leaf or inner,
    and is at most `at_most` nodes itself. Of such nodes it takes the one where the labels that are added have the
    highest mean probability. The score of a label is minus the least of these means up to the set that it enters
    with. So every set {y: score ≤ threshold} is in the sequence. With room for all labels the score is LAC.

    A threshold for each class, a model for each fold, or candidates of new rows make other sets; use
    `LabelSets.to_nodes` on these.

    Parameters
    ----------
    tree
        A mapping from a parent to its children (nested or not), (parent, child) pairs, or a frame with the columns
        parent and child; the classes are leaves.
    at_most
        How many nodes a set may need.
    classes
        The classes in the order of the columns. `conformalize` knows them; otherwise they are 0..K−1.

    Examples
    --------
    >>> import numpy as np, setwise
    >>> tree = {"bird": ["owl", "wren"], "cat": ["lion", "tabby"], "any": ["bird", "cat"]}
    >>> classes = ["lion", "owl", "tabby", "wren"]
    >>> setwise.Nodes(tree, classes=classes).score(np.array([[0.25, 0.5, 0.05, 0.2]]))
    array([[-0.15, -0.5 , -0.15, -0.2 ]])
    >>> P = np.random.default_rng(0).dirichlet([1, 1, 1, 1], size=500)
    >>> labels = np.array(classes)[P.argmax(axis=1)]
    >>> cal = setwise.conformalize(P, labels, conformity_score=setwise.Nodes(tree), classes=classes)
    >>> cal.predict_set([[0.1, 0.35, 0.15, 0.4]], 0.99).to_nodes(tree).to_lists()
    [['bird']]
    """

    tree: TreeLike = field(repr=False)
    at_most: int = 1
    classes: Iterable[Any] | None = field(default=None, repr=False)
    name: ClassVar[str] = "nodes"
    offset: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        pairs = [(parent, child) for parent, below in children_of(self.tree).items() for child in below]
        if odd := [node for pair in pairs for node in pair if not isinstance(node, (str, int, float))]:
            raise ValueError(f"tree: the node {odd[0]!r} is neither text nor a plain number.")
        object.__setattr__(self, "tree", tuple(pairs))
        object.__setattr__(self, "classes", None if self.classes is None else tuple(self.classes))

    @lazy
    def _layout(self) -> tuple[Ints, ...]:
        """The columns in the order of the tree; for each node the range of its labels there, and its parent.

        Last comes the node behind all that are below it. Node 0, above all roots, has no labels.
        """
        leaves = sum(not below for below in children_of(self.tree).values())
        tree = Tree.read(self.tree, [*(range(leaves) if self.classes is None else self.classes)], self.at_most)
        columns, nodes = np.argsort(tree.leaf), np.arange(len(tree.parent))
        first, last = (np.searchsorted(tree.leaf[columns], ends) for ends in (nodes, tree.behind))
        last[0] = 0
        return columns, first, last, tree.parent, tree.behind

    def _of_all(self, rows: Floats) -> Floats:
        columns, first, last, parent, behind = self._layout
        if len(columns) != rows.shape[1]:
            raise ValueError(f"classes: {len(columns)} in the tree for {rows.shape[1]} columns of probabilities.")
        exact, places, nodes = _exact(rows)[:, columns], np.arange(len(columns)), np.arange(len(parent))
        inside, least = np.zeros(exact.shape, dtype=bool), np.full((len(exact), 1), np.inf)
        scores, left = np.empty_like(exact), np.arange(len(exact))
        while len(left):
            held = inside[left]
            lacking = _between(~held, first, last)
            whole = (lacking == 0) & (last > first)
            named = whole & ~whole[:, parent]  # the nodes that the set is
            merged = _between(named, nodes, behind)
            room = (lacking > 0) & (count_true(named)[:, None] - merged < self.at_most)
            mass = _between(np.where(held, 0, exact[left]), first, last)
            mean = np.where(room, mass / np.maximum(lacking, 1), -1)
            best = mean.argmax(axis=1)[:, None]
            least[left] = np.minimum(least[left], np.take_along_axis(mean, best, axis=1))
            added = ~held & (places >= first[best]) & (places < last[best])
            scores[left] = np.where(added, -least[left], scores[left])
            inside[left] = held | added
            left = left[~inside[left].all(axis=1)]
        result = np.empty_like(scores)
        result[:, columns] = scores
        return result


SCORES: dict[str, type[Any]] = {score.name: score for score in (LAC, RandomTies, APS, RAPS, SAPS, Margin, RPS)}


def as_score(score: str | Score) -> Score:
    """A score by name, or the object itself."""
    if isinstance(score, str):
        if score.lower() not in SCORES:
            raise ValueError(f"conformity_score: {score!r} is not known; use one of {', '.join(SCORES)}.")
        made: Score = SCORES[score.lower()]()
        return made
    if isinstance(score, type) or not isinstance(score, Score):
        raise TypeError(f"conformity_score: {score!r} is neither a name nor an object with score() and below().")
    return score


def check_order(score: str | Score, vocabulary: Vocabulary) -> None:
    """Refuses classes whose order nobody gave, for a score of ordered classes."""
    if isinstance(as_score(score), RPS):
        vocabulary.check_ordered()


def fill_gaps(score: Score, values: Array) -> Array:
    """Of a score of ordered classes: lowers each label's value to what labels on both sides have at most.

    The labels with values up to any limit are then an interval. Values of other scores stay as they are.
    """
    if not isinstance(score, RPS):
        return values
    left, right = (np.minimum.accumulate(side, axis=1) for side in (values, values[:, ::-1]))
    return np.maximum(left, right[:, ::-1])


def with_classes(score: Score, classes: Iterable[Any]) -> Score:
    """The score for columns with these classes, which matter where classes have a place in a tree."""
    if not isinstance(score, Nodes):
        return score
    bound = replace(score, classes=classes)
    bound._layout  # noqa: B018 - a tree that does not fit the classes is refused here
    return bound


def least_included(threshold: Any, dtype: np.dtype[Any]) -> Floats:
    """The least probability of this type with −f ≤ threshold, as a column: one for all rows, or one per row."""
    least = -np.asarray(threshold, dtype=np.float64).reshape(-1, 1)
    cut = least.astype(dtype)
    np.nextafter(cut, np.inf, out=cut, where=cut < least, dtype=cut.dtype)  # the first float32 ≥ the cut
    return cut


def _gather(values: Floats, labels: Ints | None) -> Array:
    return values if labels is None else entries(values, np.arange(len(values)), labels)


def _between(values: Array, first: Ints, last: Ints) -> Array:
    """Sums over ranges of columns."""
    sums = np.zeros((len(values), values.shape[1] + 1), dtype=np.float64 if values.dtype.kind == "f" else np.int32)
    np.cumsum(values, axis=1, out=sums[:, 1:])
    return sums[:, last] - sums[:, first]


def _compare(score: Score, probabilities: Floats, threshold: Any, u: Floats | None = None) -> Bools:
    return score.score(probabilities, u=u) <= np.asarray(threshold, dtype=np.float64).reshape(-1, 1)


def _exact(probabilities: Floats) -> Floats:
    """Rounded to multiples of 2⁻⁵⁰ (the spacing of doubles between 4 and 8): sums below 8 are then exact."""
    return (probabilities.astype(np.float64) + 4.0) - 4.0
