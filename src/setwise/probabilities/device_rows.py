"""Probabilities that are torch tensors: checked, scored and compared on their device, without a copy to the host.

Results are those of `dense`, `row_noise`, `scores` and `evidence` to the last bit: the same comparisons and
exact sums, and products and sums rounded one by one (but for `total`, a sum that is about one). What comes to the
host has one entry per row, or one per candidate. Work goes through blocks of rows, so that temporaries in double
precision stay small.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Never

import numpy as np
import torch
from torch import Tensor

from setwise._arrays import Floats, Ints, frozen
from setwise._lazy import lazy
from setwise.errors import InputError
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import Vocabulary
from setwise.probabilities.dense import TOLERANCE, check_shape, explain
from setwise.probabilities.device_noise import as_words, mix, shift_right
from setwise.probabilities.proposed_labels import Proposals, restrict
from setwise.row_noise import multipliers, uniforms_of_ids
from setwise.scores import APS, LAC, RAPS, SAPS, Domain, Margin, Score, least_included

_CELLS = 2**25  # of a block: a temporary in double precision takes 256 MB
_CHUNK = 4096  # rows that are looked at again
_ON_HOST = "pass probabilities.cpu().numpy()"
_TYPES = {torch.float16: torch.float32, torch.float32: torch.float32, torch.float64: torch.float64}


class DeviceRows:
    """The rows of a tensor of probabilities (n, K), checked; see `Probabilities`."""

    stored = 0

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.shape = tuple(tensor.shape)

    @classmethod
    def read(cls, values: Tensor, domain: Domain = "simplex", n_classes: int | None = None) -> DeviceRows:
        """Checks a tensor as `as_probabilities` does an array; one small copy to the host says that all is well."""
        values = values.detach()
        if values.dtype not in _TYPES:
            found = str(values.dtype).removeprefix("torch.")
            raise TypeError(f"probabilities: expected float16, float32 or float64, got {found}; use .float().")
        if values.ndim != 2:
            raise ValueError(f"probabilities: expected shape (rows, classes), got {tuple(values.shape)}.")
        check_shape(values.shape[1], n_classes)
        values = values.to(_TYPES[values.dtype])
        if len(values) and not _fine(values, domain):
            rows = torch.nonzero(_doubtful(values, domain)).flatten()
            for some in torch.tensor_split(rows, tuple(range(_CHUNK, len(rows), _CHUNK))):
                explain(values[some].double().cpu().numpy(), some.cpu().numpy(), domain)
        return cls(values)

    def __len__(self) -> int:
        return len(self.tensor)

    def __getitem__(self, rows: Ints) -> DeviceRows:
        return DeviceRows(self.tensor[torch.tensor(rows, device=self.tensor.device)])

    @property
    def array(self) -> Floats:
        """There is none on the host."""
        self._refuse()

    @lazy
    def proposed(self) -> Proposals:
        """The most probable label of each row (the first of equals), and its probability, on the host."""
        label = self.tensor.argmax(dim=1, keepdim=True)
        values = self.tensor.gather(1, label).double()
        return Proposals(label[:, 0].cpu().numpy(), values[:, 0].cpu().numpy())

    def astype(self, dtype: Any) -> DeviceRows:
        """The same probabilities rounded to another type."""
        return DeviceRows(self.tensor.to(getattr(torch, np.dtype(dtype).name)))

    # ---------------------------------------------------------------- calibration

    def uniforms(self, seed: int, row_ids: Any = None, *, distinct: bool = False) -> Floats:
        """One number in [0, 1) for each row, as `row_noise.uniforms` gives it."""
        if row_ids is not None:
            return uniforms_of_ids(row_ids, len(self), seed, distinct=distinct)
        factors = torch.tensor(multipliers(self.shape[1], seed).view(np.int64), device=self.tensor.device)
        sums = torch.empty(len(self), dtype=torch.int64, device=self.tensor.device)
        for block in self._blocks():
            sums[block] = (as_words(self.tensor[block]) * factors[:-1]).sum(dim=1)
        return (shift_right(mix(sums + factors[-1]), 11).double() * 2.0**-53).cpu().numpy()

    def check_known(self, score: Score, needs: Collection[str], *, verified: bool, votes: bool) -> None:
        """Strategies that rank scores are worked out here; others look at more than is brought to the host."""
        _check_known(score)
        if verified or votes or not {*needs} <= {"every", "total"}:
            what = "verified rows and votes are" if verified or votes else "this strategy is"
            raise InputError(f"probabilities: {what} worked out on the host", _ON_HOST)

    def score_candidates(
        self, score: Score, candidates: LabelSets, u: Floats | None, *, every: bool
    ) -> tuple[Floats, Floats, Floats | None]:
        """The extremes of the candidates' scores, and all of them if asked."""
        n, device = len(self), self.tensor.device
        indptr, indices = candidates.rows
        low, high = np.empty((2, n))
        kept = np.empty(len(indices)) if every else None
        for block in self._blocks():
            rows, inside = self.tensor[block], slice(indptr[block.start], indptr[block.stop])
            sizes = torch.tensor(candidates.sizes[block], device=device)
            where = torch.repeat_interleave(torch.arange(len(rows), device=device), sizes)
            columns = torch.tensor(indices[inside].astype(np.int64), device=device)
            values, noise = rows[where, columns], self._noise(score, u, block)
            if score.elementwise or every:
                scores = -values.double() if score.elementwise else _of_all(score, rows, noise)[where, columns]
                low[block], high[block] = (
                    _extremes(scores, where, len(rows), how).cpu() for how in ("amin", "amax")
                )
                if kept is not None:
                    kept[inside] = scores.cpu()
            else:
                likeliest, unlikeliest = (_extremes(values, where, len(rows), how) for how in ("amax", "amin"))
                low[block] = _of_one(score, rows, likeliest, noise).cpu()
                high[block] = _of_one(score, rows, unlikeliest, noise).cpu()
        return low, high, kept

    def _refuse(self, *_: Any) -> Never:
        raise InputError("probabilities: this is worked out on the host", _ON_HOST)

    score_labels = among = values_of = _refuse  # of verified rows, which `check_known` refuses

    def totals(self) -> Floats:
        """The sum of each row."""
        sums = [self.tensor[rows].sum(dim=1, dtype=torch.float64) for rows in self._blocks()]
        return torch.cat(sums).cpu().numpy()

    # ---------------------------------------------------------------- prediction

    def mask(
        self, score: Score, limits: Floats, u: Floats | None, inside: LabelSets | None, *, allow_empty: bool
    ) -> Tensor:
        """The labels with scores within the limits (a number, one per row, or one per label), as a tensor."""
        _check_known(score)
        p, device = self.tensor, self.tensor.device
        if isinstance(score, LAC) and limits.ndim < 2:
            cut = torch.from_numpy(least_included(limits, np.dtype(str(p.dtype).removeprefix("torch."))))
            found = p >= (float(cut) if cut.numel() == 1 else cut.to(device))
        else:
            found = torch.empty(p.shape, dtype=torch.bool, device=device)
            limit = torch.tensor(np.atleast_1d(limits), device=device)
            limit = limit.expand(len(self), *limit.shape[1:]) if len(limit) == 1 else limit
            for block in self._blocks():
                noise = self._noise(score, u, block)
                if limit.ndim == 2:
                    found[block] = _of_all(score, p[block], noise) <= limit[block]
                else:
                    found[block] = _below(score, p[block], limit[block, None], noise)
        allowed = None if inside is None else torch.tensor(inside.to_mask(), device=device)
        kept: Tensor = restrict(found, p, allowed, allow_empty=allow_empty)
        return kept

    def as_sets(self, mask: Tensor, vocabulary: Vocabulary) -> LabelSets:
        """The sets of a mask, on the host."""
        return label_sets(mask, vocabulary)

    # ---------------------------------------------------------------- helpers

    def _blocks(self) -> Iterator[slice]:
        step = max(1, _CELLS // self.shape[1])
        return (slice(start, min(start + step, len(self))) for start in range(0, len(self), step))

    def _noise(self, score: Score, u: Floats | None, block: slice) -> Tensor:
        """The noise of a block as a column; one where the score has none, which is conservative."""
        rows, device = block.stop - block.start, self.tensor.device
        if u is None or not score.randomized:
            return torch.ones(rows, 1, dtype=torch.float64, device=device)
        return torch.tensor(u[block], device=device)[:, None]


def label_sets(mask: Tensor, vocabulary: Vocabulary) -> LabelSets:
    """The sets of a mask (n, K) on the host: positions where they take less memory than the mask, else the mask."""
    sizes = mask.sum(dim=1).cpu().numpy()
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    indices = np.empty(indptr[-1], dtype=np.int32)
    if indices.nbytes >= mask.numel():
        return LabelSets(vocabulary, len(mask), _mask=frozen(mask.cpu().numpy()))
    step = max(1, _CELLS // mask.shape[1])
    for start in range(0, len(mask), step):
        stop = min(start + step, len(mask))
        indices[indptr[start] : indptr[stop]] = mask[start:stop].nonzero()[:, 1].int().cpu()
    return LabelSets(vocabulary, len(mask), _rows=(frozen(indptr), frozen(indices)))


def read_candidates(given: Tensor) -> Any:
    """A mask on a device as label sets, of which candidates' positions are copied; other tensors as arrays."""
    if given.dtype == torch.bool and given.ndim == 2:
        return label_sets(given, Vocabulary.positions(given.shape[1]))
    return given.detach().cpu().numpy()


# -------------------------------------------------------------------- checks


def _fine(p: Tensor, domain: Domain) -> bool:
    if domain == "unit":
        least, most = torch.aminmax(p)
        return bool((least >= 0) & (most <= 1))
    return bool((p.amin() >= 0) & ((p.sum(dim=1) - 1).abs() <= TOLERANCE).all())


def _doubtful(p: Tensor, domain: Domain) -> Tensor:
    """The rows to look at again in double precision."""
    fits = p.amax(dim=1) <= 1 if domain == "unit" else (p.sum(dim=1) - 1).abs() <= TOLERANCE
    return ~((p.amin(dim=1) >= 0) & fits)


def _check_known(score: Score) -> None:
    if type(score) not in {LAC, Margin, APS, RAPS, SAPS}:
        raise InputError(f"conformity_score: {score.name!r} is computed on the host", _ON_HOST)


# -------------------------------------------------------------------- scores, as in `scores`


def _below(score: Score, p: Tensor, limit: Tensor, u: Tensor) -> Tensor:
    """The mask of scores at most the limit; of ranked ones a value is the cut, so that ties stay together."""
    if isinstance(score, Margin):
        return _of_all(score, p, u) <= limit
    ordered, scores = _sort(score, p, u)
    inside = (scores <= limit).sum(dim=1, keepdim=True)
    cut = ordered.gather(1, (p.shape[1] - inside).clamp_max(p.shape[1] - 1))
    return _exact(p) >= cut.masked_fill(inside == 0, torch.inf)


def _of_all(score: Score, p: Tensor, u: Tensor) -> Tensor:
    """The stored scores of all labels."""
    if isinstance(score, LAC):
        return -p.double()
    if isinstance(score, Margin):
        return _margin(p, p.double())
    ordered, scores = _sort(score, p, u)
    places = torch.searchsorted(ordered, _exact(p), right=True) - 1  # of a tie the last position
    return scores.gather(1, places)


def _of_one(score: Score, p: Tensor, values: Tensor, u: Tensor) -> Tensor:
    """The stored scores of one label per row, by its probability."""
    if isinstance(score, Margin):
        return _margin(p, values.double()[:, None])[:, 0]
    exact, value = _exact(p), _exact(values)[:, None]
    above = exact > value
    lead = torch.where(above, exact, 0.0).sum(dim=1, keepdim=True) - 1.0
    order = above.sum(dim=1, keepdim=True).double() + 1
    return _formula(score, lead, value, order, exact.amax(dim=1, keepdim=True), u)[:, 0]


def _margin(p: Tensor, own: Tensor) -> Tensor:
    first, second = p.topk(2, dim=1).values.double().T[:, :, None]
    return torch.where(own == first, second, first) - own


def _sort(score: Score, p: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """Values in ascending order, and the scores by position."""
    ordered = _exact(p.sort(dim=1).values)  # rounding keeps the order, and single precision sorts faster
    lead = ordered.cumsum(dim=1)
    lead = (lead[:, -1:] - 1.0) - lead
    ranks = torch.arange(p.shape[1], 0, -1, dtype=torch.float64, device=p.device)
    return ordered, _formula(score, lead, ordered, ranks, ordered[:, -1:], u)


def _formula(score: Score, lead: Tensor, value: Tensor, order: Tensor, top: Tensor, u: Tensor) -> Tensor:
    if isinstance(score, SAPS):
        return torch.where(order == 1, u * top - 1.0, (top - 1.0) + (order - 2.0 + u) * score.weight)
    scores = lead + u * value
    if isinstance(score, RAPS):
        scores = scores + (order - score.free_ranks).clamp_min(0) * score.penalty
    return scores


def _exact(p: Tensor) -> Tensor:
    """Rounded to multiples of 2⁻⁵⁰: sums are then exact in any order."""
    return (p.double() + 4.0) - 4.0


def _extremes(values: Tensor, where: Tensor, n: int, how: str) -> Tensor:
    """The largest or smallest value of each row."""
    start = -torch.inf if how == "amax" else torch.inf
    return torch.full((n,), start, dtype=values.dtype, device=values.device).scatter_reduce(0, where, values, how)
