"""How alike annotators answer: who errs together, who is a near-copy of whom, and how many votes that leaves.

Two annotators err together if their errors are correlated over the rows that both answered. Verified labels tell
errors; without them an answer counts as wrong where it differs from what most of the others say, the two left out.
Near-copies err together and give the same answers too, with more common errors than chance explains in any of the
pairs. They count once where the errors of the others are judged.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform

from setwise._arrays import Bools, Floats, Ints, frozen
from setwise.crowd.rectified_shares import single_answers
from setwise.labels.votes import Votes
from setwise.ranks import hypergeometric_cdf

_ROWS = 20_000  # that are compared; of more rows a part is used
_MET = 1e8  # pairs of answers to the same row that are counted
_PAIRS = 5_000  # of annotators that are compared, those with most common rows
_ALIKE = 2_000  # common rows of a pair that are compared
_COMMON = 50  # rows that a pair must have answered; of pairs with fewer nothing is said
_JUDGED = 20  # of them with a known truth
FEWEST_VERIFIED = 50
"""Fewer verified rows do not show how errors are correlated."""
_OTHERS = 5  # annotators without the two, whose majority counts as the truth where that is unknown
_COPY = 0.8  # how far errors are correlated, and answers agree beyond chance, in near-copies
_CHANCE = 0.01  # how probable so many common errors of one of all pairs are, at most, by chance
_FAMILY = 0.4  # how far errors are correlated within a family


@dataclass(frozen=True)
class Resemblance:
    """How alike pairs of annotators answer.

    Attributes
    ----------
    first, second
        The annotators of each pair, those with enough common rows.
    common, agree, beyond
        How many rows both answered, the share in which they agree, and how far that exceeds chance (Cohen's kappa).
    together
        The correlation of their errors; NaN where too few are known.
    copies
        For each annotator, the number of its group of near-copies.
    per_row
        How many annotators answered a row, on average over the rows with answers.
    """

    first: Ints
    second: Ints
    common: Ints
    agree: Floats
    beyond: Floats
    together: Floats
    copies: Ints
    per_row: float

    @property
    def weights(self) -> Floats:
        """What the answer of each annotator counts, so that a group of near-copies counts once."""
        shares: Floats = 1 / np.bincount(self.copies)[self.copies]
        return shares

    @property
    def effective_votes(self) -> float:
        """How many annotators with independent errors tell as much as those who answer a row; NaN if unknown."""
        known = ~np.isnan(self.together)
        if not known.any():
            return float("nan")
        mean = max(float(np.average(self.together[known], weights=self.common[known])), 0.0)
        return self.per_row / (1 + (self.per_row - 1) * mean) if self.per_row > 1 else self.per_row

    @property
    def families(self) -> Ints:
        """For each annotator, the number of its family: annotators who err together, on average over pairs."""
        people = len(self.copies)
        alike = np.nan_to_num(self.together)
        inside = np.unique(np.concatenate([self.first[alike >= _FAMILY], self.second[alike >= _FAMILY]]))
        found = np.arange(people) + people
        if len(inside) > 1:
            place = np.full(people, -1)
            place[inside] = np.arange(len(inside))
            near = (place[self.first] >= 0) & (place[self.second] >= 0)
            distance = np.ones((len(inside), len(inside)))
            i, j = place[self.first[near]], place[self.second[near]]
            distance[i, j] = distance[j, i] = 1 - alike[near]
            np.fill_diagonal(distance, 0)
            tree = linkage(squareform(np.clip(distance, 0, 2), checks=False), "average")
            found[inside] = fcluster(tree, 1 - _FAMILY, "distance")
        families: Ints = np.unique(found, return_inverse=True)[1]
        return families


def find_resemblance(votes: Votes, truth: Ints | None = None) -> Resemblance:
    """How alike the annotators answer; `truth` has the positions of the verified labels, negative where unknown."""
    order = np.random.default_rng(0).permutation(len(votes))
    if truth is not None and np.count_nonzero(truth >= 0) < FEWEST_VERIFIED:
        truth = None
    if truth is not None:
        order = order[np.argsort(truth[order] < 0, kind="stable")]  # verified rows first
    rows = np.sort(order[: max(int(np.searchsorted(np.cumsum(votes.sizes[order] ** 2.0), _MET)), _COMMON)][:_ROWS])
    votes, truth = votes[rows], None if truth is None else truth[rows]
    pairs = _Pairs.of(votes)
    found = pairs.judge(np.arange(len(votes.annotators)), truth)
    if truth is None and (found.weights < 1).any():
        found = replace(pairs.judge(found.copies, None), copies=found.copies)
    return found


@dataclass(frozen=True)
class _Pairs:
    """The answers of all annotators, and the pairs to compare."""

    row: Ints
    who: Ints
    label: Ints
    n: int
    classes: int
    people: int
    by_person: list[tuple[Ints, Ints]] = field(repr=False)
    pairs: tuple[Ints, Ints]

    @classmethod
    def of(cls, votes: Votes) -> _Pairs:
        (row, who, label), people = single_answers(votes), len(votes.annotators)
        often = np.bincount(who, minlength=people)[who] >= _COMMON
        given = sparse.csr_array((np.ones(often.sum()), (row[often], who[often])), shape=(len(votes), people))
        both = sparse.triu(given.T @ given, 1).tocoo()
        enough = np.flatnonzero(both.data >= _COMMON)
        enough = enough[np.argsort(-both.data[enough], kind="stable")][:_PAIRS]
        order = np.argsort(who, kind="stable")
        bounds = np.cumsum(np.bincount(who, minlength=people))[:-1]
        by_person = list(zip(np.split(row[order], bounds), np.split(label[order], bounds), strict=True))
        pairs = both.row[enough].astype(np.intp), both.col[enough].astype(np.intp)
        return cls(row, who, label, len(votes), votes.n_classes, people, by_person, pairs)

    def judge(self, copies: Ints, truth: Ints | None) -> Resemblance:
        """Compares all pairs; a group of copies counts once in what the others say."""
        weights = 1 / np.bincount(copies)[copies]
        tops = self._most_voted(weights) if truth is None else None
        lines = []
        for i, j in zip(*self.pairs, strict=True):
            rows, mine, theirs = self._common(i, j)
            same = mine == theirs
            marginal = [np.bincount(said, minlength=self.classes) / len(rows) for said in (mine, theirs)]
            chance = float(marginal[0] @ marginal[1])
            beyond = (same.mean() - chance) / (1 - chance) if chance < 1 else 0.0
            if tops is None:
                known = truth[rows] >= 0  # type: ignore[index]
                reference = truth[rows]  # type: ignore[index]
            else:
                reference, known = tops.without(rows, (mine, weights[i]), (theirs, weights[j]))
            errors = (mine != reference)[known], (theirs != reference)[known]
            counts = np.count_nonzero(errors[0] & errors[1]), *map(np.count_nonzero, errors)
            lines.append((len(rows), same.mean(), beyond, _correlation(*errors), len(errors[0]), *counts))
        common, agree, beyond, together, judged, both, one, other = np.array(lines, dtype=float).reshape(-1, 8).T
        first, second = self.pairs
        by_chance = hypergeometric_cdf(one - both, judged, one, judged - other) * len(first)
        near = (together >= _COPY) & (beyond >= _COPY) & (by_chance <= _CHANCE)
        links = sparse.coo_array((np.ones(near.sum()), (first[near], second[near])), shape=(self.people,) * 2)
        groups = connected_components(links, directed=False)[1]
        per_row = len(self.row) / max(len(np.unique(self.row)), 1)
        return Resemblance(first, second, common.astype(int), agree, beyond, together, frozen(groups), per_row)

    def _common(self, i: int, j: int) -> tuple[Ints, Ints, Ints]:
        """The rows that both answered, and both answers; of many rows a part."""
        (rows, mine), (others, theirs) = self.by_person[i], self.by_person[j]
        shared, a, b = np.intersect1d(rows, others, assume_unique=True, return_indices=True)
        step = slice(None, None, -(-len(shared) // _ALIKE))
        return shared[step], mine[a][step], theirs[b][step]

    def _most_voted(self, weights: Floats) -> _MostVoted:
        keys = self.row * self.classes + self.label
        noise = np.random.default_rng(0).random((self.n, self.classes)) * _TIE  # breaks ties without the truth
        totals: Floats = np.bincount(keys, weights[self.who], noise.size).reshape(noise.shape) + noise
        labels: Ints = np.argsort(-totals, axis=1)[:, :3]
        answers = np.bincount(self.row, minlength=self.n)
        return _MostVoted(labels, np.take_along_axis(totals, labels, axis=1), answers)


_TIE = 1e-9


class _MostVoted(NamedTuple):
    """The three labels of each row that weigh most: two answers less, the first is still among them."""

    labels: Ints
    weights: Floats
    answers: Ints

    def without(self, rows: Ints, *answers: tuple[Ints, float]) -> tuple[Ints, Bools]:
        """What most others say, and whether there are enough of them, if these answers are left out."""
        labels, left = self.labels[rows], self.weights[rows]
        for said, weight in answers:
            left = left - weight * (labels == said[:, None])
        best = left.argmax(axis=1)
        each = np.arange(len(rows))
        return labels[each, best], self.answers[rows] >= len(answers) + _OTHERS


def _correlation(a: Bools, b: Bools) -> float:
    """The correlation of two errors over the rows where they are known; NaN where too few are."""
    if len(a) < _JUDGED or a.all() or b.all() or not (a.any() and b.any()):
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1])
