"""How alike annotators answer: who errs together, who is a near-copy of whom, and how many votes that leaves.

Two annotators err together if their errors are correlated over the rows that both answered. Verified labels tell
errors; without them an answer counts as wrong where it differs from what most of the others say, the two left out.
Near-copies err together and give the same answers too, with more common errors than chance explains in any of the
pairs. They count once where the errors of the others are judged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform

from setwise._arrays import Bools, Floats, Ints, entries, frozen, take_rows
from setwise.crowd.rectified_shares import single_answers
from setwise.labels.votes import Votes
from setwise.ranks import hypergeometric_cdf

_ROWS = 20_000  # that are compared; of more rows a part is used
_MET = 1e8  # pairs of answers to the same row that are counted
_PAIRS = 5_000  # of annotators that are compared, those with most common rows
_ALIKE = 2_000  # common rows of a pair that are compared
_BLOCK = 50_000  # answers that are compared at once
_COMMON = 50  # rows that a pair must have answered; of pairs with fewer nothing is said
_JUDGED = 20  # of them with a known truth
FEWEST_VERIFIED = 50
"""Fewer verified rows do not show how errors are correlated."""
_OTHERS = 5  # annotators without the two, whose majority counts as the truth where that is unknown
_COPY = 0.8  # how far errors are correlated, and answers agree beyond chance, in near-copies
_TIE = 1e-9  # noise that breaks ties without the truth
_CHANCE = 0.01  # how probable so many common errors of one of all pairs are, at most, by chance
_FAMILY = 0.4  # how far errors are correlated within a family


@dataclass(frozen=True)
class Resemblance:
    """How alike pairs of annotators answer, those with enough common rows."""

    first: Ints  # the annotators of each pair
    second: Ints
    common: Ints  # how many rows both answered
    agree: Floats  # the share of these in which they agree
    beyond: Floats  # how far that exceeds chance (Cohen's kappa)
    together: Floats  # the correlation of their errors; NaN where too few are known
    copies: Ints  # for each annotator, the number of its group of near-copies
    per_row: float  # how many annotators answered a row, on average over the rows with answers

    @property
    def weights(self) -> Floats:
        """What the answer of each annotator counts, so that a group of near-copies counts once."""
        return 1 / np.bincount(self.copies)[self.copies]

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
        return np.unique(found, return_inverse=True)[1]


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
    found = pairs.judge(np.arange(len(pairs.sizes)), truth)
    if truth is None and (found.weights < 1).any():
        found = replace(pairs.judge(found.copies, None), copies=found.copies)
    return found


_Errors = Callable[[Ints, Ints], tuple[Bools, Bools, Bools]]
"""Of two answers each to the same rows: whether the truth is known, and whether either is wrong."""


@dataclass(frozen=True)
class _Pairs:
    """The answers of all annotators, ordered by annotators, and the pairs to compare."""

    row: Ints
    who: Ints
    label: Ints
    n: int
    classes: int
    sizes: Ints
    pairs: tuple[Ints, Ints]

    @classmethod
    def of(cls, votes: Votes) -> _Pairs:
        (row, who, label), people = single_answers(votes), len(votes.annotators)
        sizes = np.bincount(who, minlength=people)
        often = sizes[who] >= _COMMON
        given = sparse.csr_array((np.ones(often.sum()), (row[often], who[often])), shape=(len(votes), people))
        both = sparse.triu(given.T @ given, 1).tocoo()
        enough = np.flatnonzero(both.data >= _COMMON)
        enough = np.sort(enough[np.argsort(-both.data[enough], kind="stable")][:_PAIRS])
        order = np.argsort(who, kind="stable")
        pairs = both.row[enough].astype(np.intp), both.col[enough].astype(np.intp)
        return cls(row[order], who[order], label[order], len(votes), votes.n_classes, sizes, pairs)

    def judge(self, copies: Ints, truth: Ints | None) -> Resemblance:
        """Compares all pairs; a group of copies counts once in what the others say."""
        errors = self._most_voted(1 / np.bincount(copies)[copies]) if truth is None else self._by_truth(truth)
        first, second = self.pairs
        cost = self.sizes[second] + self.n * (np.diff(first, prepend=-1) > 0)
        block = np.cumsum(cost) // _BLOCK
        parts = [self._compare(np.flatnonzero(block == b), errors) for b in np.unique(block)]
        columns = np.concatenate([np.empty((8, 0)), *parts], axis=1)
        common, agree, beyond, together, judged, both, one, other = columns
        near = np.flatnonzero((together >= _COPY) & (beyond >= _COPY))
        n, x, i, j = (counts[near] for counts in (judged, both, one, other))
        near = near[hypergeometric_cdf(i - x, n, i, n - j) * len(first) <= _CHANCE]
        links = sparse.coo_array((np.ones(len(near)), (first[near], second[near])), shape=(len(self.sizes),) * 2)
        groups = connected_components(links, directed=False)[1]
        per_row = len(self.row) / max(int(np.count_nonzero(np.bincount(self.row))), 1)
        return Resemblance(first, second, common.astype(int), agree, beyond, together, frozen(groups), per_row)

    def _compare(self, some: Ints, errors: _Errors) -> Floats:
        """Some pairs: common rows, how they agree and err together, and counts of errors where these are known."""
        pair, mine, theirs = self._common(*(side[some] for side in self.pairs))
        p, k, said = len(some), self.classes, (self.label[mine], self.label[theirs])
        flags = said[0] == said[1], *errors(mine, theirs)
        code = sum(flag.astype(np.intp) << place for flag, place in zip(flags, (3, 2, 1, 0), strict=True))
        counts = np.bincount(pair * 16 + code, minlength=p * 16).reshape(p, 2, 2, 2, 2)
        common, agree = counts.sum(axis=(1, 2, 3, 4)), counts[:, 1].sum(axis=(1, 2, 3))
        known = counts[:, :, 1].sum(axis=1)
        judged, both = known.sum(axis=(1, 2)), known[:, 1, 1]
        one, other = known[:, 1].sum(axis=1), known[:, :, 1].sum(axis=1)
        mine, theirs = (np.bincount(pair * k + labels, minlength=p * k).reshape(p, k) for labels in said)
        chance = (mine * theirs).sum(axis=1) / common**2
        beyond = np.divide(agree / common - chance, 1 - chance, out=np.zeros(p), where=chance < 1)
        spread = np.sqrt(one * (judged - one) * other * (judged - other))
        tells = (judged >= _JUDGED) & (spread > 0)
        together = np.divide(judged * both - one * other, spread, out=np.full(p, np.nan), where=tells)
        return np.stack([common, agree / common, beyond, together, judged, both, one, other])

    def _common(self, i: Ints, j: Ints) -> tuple[Ints, Ints, Ints]:
        """The rows that both of each pair answered, or a part of many: number of the pair, both answers."""
        inside, local = np.unique(i, return_inverse=True)
        table = np.full((len(inside), self.n), -1)
        own = take_rows(self.sizes, inside)
        table[np.repeat(np.arange(len(inside)), self.sizes[inside]), self.row[own]] = own
        pair, theirs = np.repeat(np.arange(len(j)), self.sizes[j]), take_rows(self.sizes, j)
        mine = entries(table, np.repeat(local, self.sizes[j]), self.row[theirs])
        both = np.flatnonzero(mine >= 0)
        shared = np.bincount(pair[both], minlength=len(j))
        if shared.max(initial=0) > _ALIKE:
            place = np.arange(len(both)) - (np.cumsum(shared) - shared)[pair[both]]
            both = both[place % -(-shared // _ALIKE)[pair[both]] == 0]
        return pair[both], mine[both], theirs[both]

    def _by_truth(self, truth: Ints) -> _Errors:
        """Errors by verified labels."""
        known = truth[self.row] >= 0
        wrong = self.label != truth[self.row]
        return lambda mine, theirs: (known[mine], wrong[mine] & known[mine], wrong[theirs] & known[theirs])

    def _most_voted(self, weights: Floats) -> _Errors:
        """Errors by what most others say, the two left out; known where there are enough others.

        Only the three labels of a row that weigh most matter: two answers less, the first is still among them.
        """
        k, weight = self.classes, weights[self.who]
        noise = np.random.default_rng(0).random((self.n, k)) * _TIE
        counts = np.bincount(self.row * k + self.label, weight, noise.size).reshape(noise.shape)
        totals = np.pad(counts + noise, ((0, 0), (0, max(3 - k, 0))), constant_values=-np.inf)
        labels = np.argpartition(-totals, 2, axis=1)[:, :3]
        ranks = np.full(totals.shape, 3)
        np.put_along_axis(ranks, labels, np.arange(3)[None], axis=1)
        rank = entries(ranks, self.row, self.label)
        loss = np.stack([(rank == place) * weight for place in range(3)])
        left = np.take_along_axis(totals, labels, axis=1).T[:, self.row] - loss
        enough = np.bincount(self.row, minlength=self.n)[self.row] >= 2 + _OTHERS

        def errors(mine: Ints, theirs: Ints) -> tuple[Bools, Bools, Bools]:
            first, second, third = (own[theirs] - lost[mine] for own, lost in zip(left, loss, strict=True))
            best = np.where(third > np.maximum(first, second), 2, second > first)
            known = enough[mine]
            return known, (rank[mine] != best) & known, (rank[theirs] != best) & known

        return errors
