"""Accept or review: which proposed labels may be accepted unseen, so that few of them are wrong.

Every row has a proposed label and a confidence in it, by one function that treats verified and other rows alike and
never sees a verified label. The verified rows, m of them drawn at random, show how often proposals are wrong.

``"rate"`` bounds the expected share α of wrong labels among those accepted. Row j has the p-value

    p_j = (1 + #{verified rows whose proposal is wrong, with a confidence of at least that of j}) / (m + 1)

and Benjamini–Hochberg at α accepts the k most confident rows, k the largest number with p_(k) ≤ α·k/n (conformal
selection: Jin and Candès, JMLR 2023, with the clipped score; noise breaks ties). It holds for every n and m if
verified rows are exchangeable with those to decide, and a random choice of the rows to verify makes them so. A
second bound says how wrong the accepted rows of this draw may be: the m + n rows, ordered by confidence, have
upper parts of sizes fixed beforehand (`_PARTS`); from the wrong proposals among the verified rows of a part the
exact binomial bound at δ/len(_PARTS) bounds those in the whole part, and so among the accepted rows, which lie in
it.

``"confident"`` bounds the share itself in 19 of 20 draws of the verified rows: the exact binomial bound on the
error among the verified rows above a threshold, for thresholds fixed by confidences alone, from the highest that
could pass without an error downwards until one fails (learn then test with a fixed sequence: Angelopoulos, Bates,
Candès, Jordan and Lei, 2021). For the calibration rows themselves it is conservative, because the verified ones are
drawn from them without replacement.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from html import escape
from typing import Any, Literal

import numpy as np

from setwise._arrays import Array, Bools, Floats, Ints, frozen
from setwise._types import Candidates, Column, Features, ProbabilityRows, Seed
from setwise.calibration.base import BaseCalibration
from setwise.calibration.new_rows import NewRows
from setwise.calibration.pooled import BasePooledCalibration
from setwise.crowd.annotator_model import fit_annotators
from setwise.crowd.verifiers import leave_out_verifiers
from setwise.drift.comparison import Comparison, RowTally
from setwise.errors import InputError, Remedy, check_length
from setwise.evidence.evidence import Evidence, gather
from setwise.evidence.row_facts import RowFacts
from setwise.evidence.row_names import check_row_names
from setwise.evidence.verified_rows import compare_verified, refuse_written, warn_about_choice
from setwise.findings import format_share
from setwise.guarantees import Claim, Guarantee, Premise, format_lines
from setwise.labels.vocabulary import MISSING
from setwise.labels.votes import Votes
from setwise.probabilities.dense import DenseRows, as_probabilities
from setwise.probabilities.proposed_labels import Proposals, among_candidates, most_probable
from setwise.ranks import as_level, upper_bound
from setwise.row_noise import draw_seed, uniforms
from setwise.scores import LAC
from setwise.strategies.judgement import DELTA, Judgement, Setting
from setwise.strategies.new_row_votes import check_answered

Mode = Literal["rate", "confident"]
Extra = Literal["nothing", "candidates", "votes"]
"""What new rows come with beside their probabilities."""

_FEWEST = 3  # the least α·m: with fewer verified rows one error more or less would decide in rate mode
_PARTS = (1.0, 0.95, 0.9, 0.8, 0.65, 0.5, 0.3, 0.15)
_THRESHOLDS = 50
_MODES: tuple[Mode, ...] = ("rate", "confident")
_LOOKED_AT = 3  # contradicted proposals that are named


@dataclass(frozen=True, eq=False, repr=False)
class Triage:
    """Which rows may be accepted with which label, and which go to review.

    Attributes
    ----------
    rows
        The positions of the rows that were decided: among the rows passed, or, where none were, among the
        calibration rows, of those that are not verified. All that follows has one entry for each, in this order.
    labels
        The proposed label.
    confidence
        The confidence in it, by which rows are accepted; only comparable within one triage.
    accepted
        Whether it may be accepted.
    threshold
        The lowest confidence that is accepted; infinite where nothing is.
    guarantee
        How many of the accepted labels may be wrong, and what that rests on.
    mode, max_error
        The mode and the max error that were passed.
    verified
        How many verified rows the guarantee rests on.
    """

    rows: Ints
    labels: Array
    confidence: Floats
    accepted: Bools
    threshold: float
    guarantee: Guarantee
    mode: Mode
    max_error: float
    verified: int

    @property
    def review(self) -> Ints:
        """The positions (as in `rows`) to review, the least confident first: there a look changes most labels."""
        return self.rows[self._left]

    @property
    def _left(self) -> Ints:
        """Which entries are not accepted, in the order of review."""
        left = np.flatnonzero(~self.accepted)
        return left[np.argsort(self.confidence[left], kind="stable")]

    def to_frame(self) -> Any:
        """A pandas frame with one line per row; `review` is the place in the list of rows to review, from 1 on."""
        import pandas as pd  # pandas is optional

        place = pd.array([pd.NA] * len(self.rows), dtype="Int64")
        place[self._left] = np.arange(1, len(self._left) + 1)
        return pd.DataFrame(
            {
                "row": self.rows,
                "label": self.labels,
                "confidence": self.confidence,
                "accepted": self.accepted,
                "review": place,
            }
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        if not len(self):
            return "No row is left to decide."
        taken = int(self.accepted.sum())
        share = f"{taken:,} of {len(self):,} labels accepted ({format_share(taken / len(self), 1)})"
        head = f"{share}, {len(self) - taken:,} to review."
        return "\n".join([head, *format_lines(self.guarantee.lines)])

    def __repr__(self) -> str:
        taken = int(self.accepted.sum())
        return f"Triage({taken:,} of {len(self):,} accepted, mode={self.mode!r}, max_error={self.max_error:g})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def triage(
    votes: Votes,
    verified: Column,
    probabilities: ProbabilityRows | None = None,
    max_error: float = 0.05,
    mode: Mode = "rate",
    *,
    random_state: Seed = None,
) -> Triage:
    """Decides which rows may be accepted with the label that their annotators give them, and which go to review.

    Use this with votes alone; with a calibrated model use `Calibration.triage`, which also decides new rows.

    Parameters
    ----------
    votes
        Who answered what.
    verified
        The true label where a row is verified, None or NaN elsewhere. By passing it you state that the rows to
        verify were drawn at random.
    probabilities
        (n, K) class probabilities of a model that was not trained on the verified labels. With a good model more
        labels are accepted.
    max_error
        Which share of the accepted labels may be wrong.
    mode
        ``"rate"`` bounds that share on average over draws of the verified rows; a draw in which nothing is accepted
        counts as zero. ``"confident"`` bounds it in 19 of 20 draws, and accepts fewer labels.
    random_state
        Seeds the noise that breaks ties between confidences.

    Examples
    --------
    >>> import numpy as np, setwise
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 1000)
    >>> answers = np.where(rng.random((1000, 3)) < 0.8, y[:, None], rng.integers(0, 3, (1000, 3)))
    >>> votes = setwise.Votes.from_matrix(answers)
    >>> verified = np.full(1000, None)
    >>> verified[:100] = y[:100]
    >>> setwise.triage(votes, verified, max_error=0.05, random_state=0)
    Triage(898 of 900 accepted, mode='rate', max_error=0.05)
    """
    if not isinstance(votes, Votes):
        raise InputError("votes: expected Votes", "for candidate sets use the triage of what conformalize returns")
    check_row_names(votes=votes, verified=verified, probabilities=probabilities)
    n, k = votes.shape
    matrix = None
    if probabilities is not None:
        matrix = as_probabilities(probabilities, "simplex", k, classes=votes.classes)
        check_length("probabilities", len(matrix), n, "rows of votes")
    facts = RowFacts.read(n, votes.vocabulary, verified=verified)
    votes = leave_out_verifiers(votes, facts.verified)
    posterior = fit_annotators(votes, matrix).posterior
    sets = votes.candidates(missing="full")
    evidence = gather(LAC(), DenseRows(posterior), sets, RowFacts(verified=facts.verified, posterior=posterior))
    refuse_written(evidence)
    chosen, seed = warn_about_choice(compare_verified(evidence, votes=votes)), draw_seed(random_state)
    setting = Setting("", k, votes=True, checked=len(facts.verified_rows), chosen=chosen, seed=seed)
    return triage_calibration_rows(Judgement(evidence, setting), votes.classes, max_error, mode)


def triage_calibration_rows(
    judged: Judgement, classes: Array, max_error: float, mode: Mode, random_state: Seed = None
) -> Triage:
    """Decides the calibration rows that are not verified: they and the verified rows are one population."""
    evidence, setting = judged.evidence, judged.setting
    label = _read_verified(judged)
    if setting.sampled:
        problem = f"triage: only a random sample of the {setting.sampled:,} calibration rows was kept"
        raise InputError(problem, Remedy("probabilities", None, "for the rows to decide"))
    if evidence.truth is None or evidence.consensus is None or evidence.consensus_confidence is None:
        raise InputError(
            "triage: every calibration row has its label, so that none is left to decide",
            Remedy("probabilities", None, "for new rows"),
        )
    refuse_written(evidence, written=setting.written)
    # Noise belongs to the row, verified or not, in a stream of its own: a user who draws the rows to verify with
    # the same seed would otherwise choose them by it.
    seed = setting.seed if random_state is None else draw_seed(random_state)
    noise = uniforms(np.empty((evidence.n, 0)), seed, np.arange(evidence.n))
    proposed = Proposals(evidence.consensus, evidence.consensus_confidence, noise)
    open_rows = np.flatnonzero(label == MISSING)
    verified_rows = np.flatnonzero(label != MISSING)
    blind = Premise("labels_unseen", "assumed")

    def claim(probability: float, source: str, **options: Any) -> Claim:
        return Claim("accepted", probability, source, (*judged.verification, blind), **options)

    decision = _Decision(
        _positions(evidence, verified_rows),
        proposed[verified_rows],
        label[verified_rows],
        proposed[open_rows],
        as_level(max_error, "max_error"),
        proposed.confidence,
        claim,
        "all labels with confidence {:.4g} or more (verified ones included)",
    )
    return decision.decide(mode, classes, _positions(evidence, open_rows))


def triage_folds(
    calibration: BasePooledCalibration, verified: Column, max_error: float, mode: Mode, random_state: Seed = None
) -> Triage:
    """Decides the rows of all folds that are not verified; `verified` are the labels of the others."""
    evidence = calibration.evidence
    labels = RowFacts.read(evidence.n, calibration.vocabulary, verified=verified).verified
    truth = None if labels is None else np.where(labels == MISSING, np.nan, evidence.low)
    held = None if labels is None else np.asarray(evidence.consensus == labels)
    evidence = replace(evidence, label=labels, truth=truth, held=held)
    refuse_written(evidence)
    count = 0 if labels is None else int((labels != MISSING).sum())
    chosen = warn_about_choice(compare_verified(evidence))
    setting = replace(calibration.parts[0].setting, checked=count, chosen=chosen)
    judged = Judgement(evidence, setting)
    return triage_calibration_rows(judged, calibration.classes, max_error, mode, random_state)


def triage_new_rows(
    calibration: BaseCalibration,
    probabilities: ProbabilityRows,
    candidates: Candidates,
    max_error: float,
    mode: Mode,
    *,
    random_state: Seed = None,
    comparison: Comparison | None = None,
    tally: RowTally | None = None,
    X: Features | None = None,
) -> Triage:
    """Decides new rows, after comparing them with the calibration rows where no `comparison` is passed.

    `tally` counts them for that, with their features `X`.
    """
    calibration.reader.need_all_labels("triage")
    rows = calibration.reader.read(probabilities, candidates=candidates)
    proposed, extra = propose_labels(calibration, rows)
    if comparison is None and len(rows) and not calibration.setting.differs:
        tally = RowTally(calibration, by_category=False) if tally is None else tally
        comparison = tally.add_read([rows], X=X).compare()
    return triage_proposals(calibration, proposed, extra, max_error, mode, random_state, comparison)


def propose_labels(calibration: BaseCalibration, rows: NewRows) -> tuple[Proposals, Extra]:
    """The labels proposed for a batch of new rows, and what these rows come with."""
    proposed, off = rows.predicted, rows.off
    extra: Extra = "nothing"
    if rows.votes is not None:
        check_answered(calibration.evidence)
        proposed, extra, off = most_probable(rows.posterior), "votes", rows.posterior_off
    elif rows.candidates is not None:
        proposed, extra = among_candidates(rows.matrix, rows.candidates), "candidates"
    if calibration.evidence.noise is not None and not calibration.setting.named:
        proposed = replace(proposed, noise=uniforms(rows.matrix, calibration.setting.seed))
    if off:  # a row that equals a verified one must not seem surer because it was rounded
        proposed = replace(proposed, confidence=proposed.confidence - off)
    return proposed, extra


def triage_proposals(
    calibration: BaseCalibration,
    rows: Proposals,
    extra: Extra,
    max_error: float,
    mode: Mode,
    random_state: Seed = None,
    comparison: Comparison | None = None,
) -> Triage:
    """Decides all new rows together, by the labels that `propose_labels` gave."""
    judged = calibration.judgement
    if comparison is not None and not judged.setting.differs:
        judged = replace(judged, setting=replace(judged.setting, differs=comparison.differs))
    evidence, setting = judged.evidence, judged.setting
    label = _read_verified(judged)
    if extra != "nothing":
        refuse_written(evidence, written=setting.written)
    proposed, confidence = {
        "nothing": (evidence.predicted, evidence.confidence),
        "candidates": (None, None) if setting.votes else (evidence.consensus, evidence.consensus_confidence),
        "votes": (evidence.answered, evidence.answered_confidence),
    }[extra]
    if proposed is None or confidence is None:
        problem = "candidates: the verified calibration rows have none of this kind to judge new ones by"
        raise InputError(problem, "leave them out")
    verified_rows = np.flatnonzero(label != MISSING)
    by_design = evidence.truth is None
    needs: list[str | Premise] = ["truth_is_candidate" if by_design else "verified"]
    if extra != "nothing":
        like = "same_annotators" if extra == "votes" else "same_candidates"
        needs.append(Premise(like, "stated by you"))

    def claim(probability: float, source: str, **options: Any) -> Claim:
        return judged.claim("accepted", probability, source, *needs, **options)

    verified = Proposals(proposed, confidence, evidence.noise if rows.noise is not None else None)
    if random_state is not None:
        seed = draw_seed(random_state)
        verified, rows = (replace(part, noise=_redraw_noise(part.noise, seed)) for part in (verified, rows))
    decision = _Decision(
        _positions(evidence, verified_rows),
        verified[verified_rows],
        label[verified_rows],
        rows,
        as_level(max_error, "max_error"),
        rows.confidence,
        claim,
        "the new labels with confidence {:.4g} or more",
    )
    return decision.decide(mode, calibration.classes, np.arange(len(rows)))


def _positions(evidence: Evidence, rows: Ints) -> Ints:
    """The positions of some calibration rows among the rows that were passed."""
    return rows if evidence.position is None else evidence.position[rows]


def _redraw_noise(noise: Floats | None, seed: int) -> Floats | None:
    """New noise from the same rows and another seed."""
    return None if noise is None else uniforms(noise[:, None], seed)


def _read_verified(judged: Judgement) -> Ints:
    """The code of each verified label, `MISSING` elsewhere; refuses what the theory does not cover."""
    evidence = judged.evidence
    if evidence.shares is not None:
        raise InputError("triage: no method is known for weighted or grouped rows", "calibrate without them")
    if evidence.chance is not None:
        problem = "triage: rows were verified with unequal probabilities, but it counts all verified rows alike"
        raise InputError(problem, "verify rows drawn at random")
    if evidence.label is None or (evidence.truth is None and judged.setting.miss_rate):
        raise InputError(
            "triage needs verified labels, to see how often proposals are wrong",
            Remedy("verified", None, "for the true labels of rows drawn at random, missing elsewhere"),
        )
    return evidence.label


@dataclass(frozen=True)
class _Decision:
    """The verified rows with their truth, the rows to decide, the error α that is allowed, and what makes claims.

    Confident thresholds are taken from the `reference` confidences; `subject` names the labels that they bound, and
    `numbers` are the positions of the verified rows among the calibration rows.
    """

    numbers: Ints
    verified: Proposals
    truth: Ints
    rows: Proposals
    error: Fraction
    reference: Floats
    claim: Callable[..., Claim]
    subject: str

    def decide(self, mode: Mode, classes: Array, numbers: Ints) -> Triage:
        """The triage."""
        if mode not in _MODES:
            raise InputError(f"mode: {mode!r} is not known", *(Remedy("mode", mode) for mode in _MODES))
        m = len(self.verified)
        accepted, threshold, claims, fewest = self._by_rate() if mode == "rate" else self._confidently()
        remarks = []
        if len(self.rows) and not accepted.any():
            few = f"max error {float(self.error):g} needs at least {fewest:,} verified rows, and there are {m:,}"
            share = f"{int(self.wrong.sum()):,} of {m:,} labels proposed for verified rows"
            wrong = f"{share} are wrong, too many of them with high confidence"
            remarks.append(f"Nothing is accepted: {few if m < fewest else wrong}.")
        unit = "verified rows" if m != 1 else "verified row"
        guarantee = Guarantee(
            f"Triage at max error {format_share(float(self.error))} ({mode})",
            "",
            m,
            float(1 - self.error),
            claims,
            remarks=tuple(remarks),
            unit=unit,
            look_first=self._look_first(),
        )
        return Triage(
            frozen(numbers),
            np.asarray(classes)[self.rows.label],
            frozen(self.rows.confidence),
            frozen(accepted),
            threshold,
            guarantee,
            mode,
            float(self.error),
            m,
        )

    def _by_rate(self) -> tuple[Bools, float, tuple[Claim, ...], int]:
        """The accepted rows, the lowest confidence among them, claims, and the fewest verified rows it takes."""
        fewest = math.ceil(_FEWEST / self.error)
        accepted, bound = np.zeros(len(self.rows), dtype=bool), None
        if len(self.verified) >= fewest and len(self.rows):
            accepted, bound = self._select()
        note, subject = "A draw in which nothing is accepted counts as 0 %", "the accepted labels"
        claims = [self.claim(float(1 - self.error), "conformal selection", subject=subject, note=note)]
        if bound is not None and bound < 1:
            subject = f"the {int(accepted.sum()):,} accepted labels"
            claims.append(self.claim(1 - bound, "binomial bound", subject=subject, delta=DELTA))
        return accepted, float(self.rows.confidence[accepted].min(initial=math.inf)), tuple(claims), fewest

    def _confidently(self) -> tuple[Bools, float, tuple[Claim, ...], int]:
        fewest = math.ceil(math.log(DELTA) / math.log1p(-float(self.error)))  # 1 − δ^(1/n) ≤ α without an error
        threshold = self._lowest(fewest)
        subject = self.subject.format(threshold) if math.isfinite(threshold) else "the accepted labels"
        source = "fixed sequence of binomial bounds"
        claim = self.claim(float(1 - self.error), source, subject=subject, delta=DELTA)
        return self.rows.confidence >= threshold, threshold, (claim,), fewest

    @property
    def wrong(self) -> Bools:
        """Which verified rows have a wrong proposal."""
        differ: Bools = self.verified.label != self.truth
        return differ

    def _look_first(self) -> str:
        """The verified rows that decide most: their proposals are confident, and their labels say otherwise."""
        wrong = np.flatnonzero(self.wrong)
        first = wrong[np.argsort(-self.verified.confidence[wrong], kind="stable")][:_LOOKED_AT]
        if not len(first):
            return ""
        rows = ", ".join(f"{row:,}" for row in self.numbers[first].tolist())
        if len(first) == 1:
            return f"calibration row {rows}, the only proposal that a verified label contradicts."
        return f"calibration rows {rows}, the most confident proposals that a verified label contradicts."

    def _select(self) -> tuple[Bools, float | None]:
        """Benjamini–Hochberg on conformal p-values; and the bound on the error among the accepted rows."""
        m, n = len(self.verified), len(self.rows)
        both = (self.verified, self.rows)
        confidence = np.concatenate([part.confidence for part in both])
        noise = np.concatenate([np.zeros(len(part)) if part.noise is None else part.noise for part in both])
        # Where confidence and noise are equal, verified rows come first: a tie counts against acceptance.
        order = np.lexsort((np.arange(m + n) >= m, -noise, -confidence))
        wrong_above = np.cumsum(np.append(self.wrong, np.zeros(n, bool))[order])
        to_decide = order >= m
        above, places = wrong_above[to_decide], np.flatnonzero(to_decide)
        # p_(k) ≤ α·k/n in whole numbers: k is at least (1 + wrong)·n / (α·(m + 1)).
        needed = [math.ceil((1 + wrong) * n / (self.error * (m + 1))) for wrong in range(int(self.wrong.sum()) + 1)]
        k = int(np.flatnonzero(np.arange(1, n + 1) >= np.array(needed)[above]).max(initial=-1)) + 1
        accepted = np.zeros(n, dtype=bool)
        if k == 0:
            return accepted, None
        accepted[order[places[:k]] - m] = True
        # Parts end where rows differ, so that which rows are in them does not depend on which are verified.
        differ = (np.diff(confidence[order]) != 0) | (np.diff(noise[order]) != 0)
        ends = np.append(np.flatnonzero(differ), m + n - 1) + 1
        sizes = ends[np.searchsorted(ends, np.ceil(np.array(_PARTS) * (m + n)))]
        return accepted, self._bound(order[: sizes[sizes > places[k - 1]].min()], k)

    def _bound(self, part: Ints, k: int) -> float:
        """The share of wrong labels among the k accepted rows, which are in this part of all rows."""
        checked = part[part < len(self.verified)]
        wrong = int(self.wrong[checked].sum())
        most = math.floor(upper_bound(wrong, len(checked), DELTA / len(_PARTS)) * len(part)) - wrong
        return min(most / k, 1.0)

    def _lowest(self, fewest: int) -> float:
        """The lowest threshold of the sequence above which errors are few; infinite where the first one fails."""
        lowest, m, descending = math.inf, len(self.verified), np.sort(self.reference)[::-1]
        shares = np.arange(1, _THRESHOLDS + 1) / _THRESHOLDS
        places = np.ceil(shares * len(descending)).astype(int) - 1 if len(descending) else ()
        for threshold in dict.fromkeys(descending[list(places)].tolist()):
            share = float((self.reference >= threshold).mean())
            # Skipped by confidences alone: too few verified rows may lie above it, even if all are right.
            if m * share - 2 * math.sqrt(m * share * (1 - share)) < fewest:
                continue
            above = self.verified.confidence >= threshold
            if upper_bound(int(self.wrong[above].sum()), int(above.sum()), DELTA) > self.error:
                break
            lowest = threshold
        return lowest
