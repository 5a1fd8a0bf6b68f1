"""`conformalize`: from probabilities and candidate sets to a `Calibration`."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Hashable, Iterable
from dataclasses import replace
from typing import Any, Literal, Never

import numpy as np

from setwise._arrays import Floats, Ints, column_numbers, frame_columns, frozen, on_device
from setwise._types import Candidates, Column, ProbabilityRows, Seed, Truth
from setwise.calibration.new_rows import automatic_categories
from setwise.conformal.calibration import Calibration
from setwise.contamination.assumption import Assumption, AssumptionLike, as_assumption
from setwise.contamination.inclusion import check_separable, estimate_inclusion
from setwise.crowd.annotator_model import AnnotatorParameters, choose_shrinkage, fit_annotators
from setwise.crowd.dependence import calibrate_agreement, measure_agreement
from setwise.crowd.verifiers import with_votes
from setwise.crowd.vote_warnings import warn_of_unanswered
from setwise.errors import InputError, MisuseWarning, Remedy, refuse_names
from setwise.evidence.evidence import Evidence, gather
from setwise.evidence.right_labels import decide_right, leave_out_empty, read_truth
from setwise.evidence.row_facts import RowFacts, present_rows
from setwise.evidence.row_names import check_row_names
from setwise.evidence.verified_rows import warn_about_verified, warn_of_written
from setwise.findings import Finding
from setwise.labels.coerce import as_candidates, as_label_sets
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import MISSING, Classes, Vocabulary
from setwise.labels.votes import Votes
from setwise.probabilities.base import Probabilities
from setwise.probabilities.dense import precision_of
from setwise.probabilities.proposed_labels import most_probable
from setwise.probabilities.readers import read_mask, read_probabilities
from setwise.ranks import as_fraction
from setwise.row_noise import draw_seed
from setwise.scores import Score, as_score, check_order, with_classes
from setwise.strategies import Setting, Strategy, as_strategy


def conformalize(
    probabilities: ProbabilityRows,
    candidates: Candidates,
    strategy: str | Strategy = "auto",
    conformity_score: str | Score = "lac",
    *,
    classes: Iterable[Hashable] | None = None,
    by: Column = None,
    verified: Column = None,
    miss_rate: float = 0.0,
    assume: AssumptionLike = "nothing",
    sample_weight: Column = None,
    groups: Column = None,
    row_ids: Column = None,
    random_state: Seed = None,
    missing: Literal["error", "full", "drop"] | None = None,
    verified_probability: Column = None,
    truth: Truth = None,
    empty: Literal["error", "drop"] = "error",
    **others: Never,
) -> Calibration:
    """Calibrates prediction sets on rows whose labels are known only as candidate sets.

    Parameters
    ----------
    probabilities
        (n, K) class probabilities of a model that was not trained on these rows; for many classes, `TopK`. A torch
        tensor on a GPU stays there, for strategies that rank scores (``"max"``, ``"min"``, ``"mean"``,
        ``"mixture"``, ``"all"``). The array is kept without a copy until a comparison, a triage of new rows or a
        file needs the most probable labels; strategies that use all labels keep it for good. If it was changed in
        the meantime, an error says so.
    candidates
        One set of labels per row: `LabelSets`, a boolean mask, a label vector or lists of labels; or `Votes`, every
        one of which is used. Labels other than 0..K−1 need a declared vocabulary.
    strategy
        ``"auto"`` chooses. By name: ``"max"``, ``"corrected"``, ``"rectified"``, ``"posterior"``, ``"all"``,
        ``"mean"``, ``"min"``, ``"mixture"``; for votes also ``"votes"`` and ``"crowd"``. Or an object
        such as ``Mixture(mu=0.3)``.
    conformity_score
        ``"lac"``, ``"aps"``, ``"raps"``, ``"saps"``, ``"margin"``; where probabilities are shares of votes
        ``"ties"``; for ordered classes ``"rps"``; or an object, such as ``Nodes(tree)``.
    classes
        The K labels in the order of the columns.
    by
        A category per row; each category is calibrated separately and has its own guarantee (Mondrian).
        ``"label"`` gives each class a threshold and a guarantee of its own, from exact labels or from the verified
        rows alone (the candidates of others are then not used). ``"predicted"`` takes the most probable label,
        ``"size"`` the number of candidates (new rows then need candidates of their own).
    verified
        The true label where a row is verified, None or NaN elsewhere; with `truth` all right labels. By passing it
        you state that the rows to verify were drawn at random.
    miss_rate
        How often the true label may be missing from a candidate set (with weights: among new rows).
    assume
        What you state about how false labels become candidates: ``"nothing"``; ``"uniform"``, each with the
        same probability; ``"class"``, with probabilities that depend on the true class alone (estimated), or
        these as a K × K matrix M_kl = P(l ∈ S | y = k). For votes, ``"independent"``: annotators err independently
        given the true label, and who answers a row has nothing to do with it.
    sample_weight
        How much more often rows like each one occur among new rows (covariate shift).
    groups
        Which rows belong together (frames of one film, visits of one patient). The guarantee is then about rows of
        new groups, and the rank counts groups in place of rows.
    row_ids
        Integers or strings, all different, that seed the noise of randomised scores; default is the row's
        probabilities. New rows then need ids too.
    random_state
        Seeds that noise; None draws a seed and keeps it.
    missing
        What to do with rows without candidates: ``"error"``; ``"full"`` makes every label a candidate, which is
        always valid; ``"drop"`` leaves them out, which adds a premise to the guarantee. By default rows of votes
        that nobody answered are left out with a warning, and others are an error.
    verified_probability
        The probability with which each row could be drawn for verification, where it was not the same for all.
    truth
        Where several labels of a row may be right, how many of them a set must contain: ``"all"``, ``"one"``, or a
        share such as 0.9. Entries of `verified` are then sets of all right labels, or single labels; without
        `verified` the candidates themselves are the right labels.
    empty
        What to do with rows that have no right label at all: ``"error"``, or ``"drop"`` to leave them out. The
        guarantee is then about new rows with a right label, and rests on the verified rows alone.

    Examples
    --------
    >>> import numpy as np, setwise
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet([1, 1, 1], size=500)
    >>> S = P > rng.random((500, 3)) / 2
    >>> cal = setwise.conformalize(P, S | (P == P.max(axis=1, keepdims=True)))
    >>> cal.predict_set([[0.97, 0.02, 0.01]], confidence_level=0.8).to_lists()
    [[0]]

    With exact labels, or verified rows, each class can have its own threshold and guarantee:

    >>> setwise.conformalize(P, P.argmax(axis=1), by="label").threshold(0.9).round(2)
    array([0.57, 0.55, 0.59])

    Where several labels are right, sets can be made to contain all of them:

    >>> right = [np.flatnonzero(row).tolist() if i < 100 else None for i, row in enumerate(P > 0.4)]
    >>> cal = setwise.conformalize(P, np.ones((500, 3), bool), verified=right, truth="all", empty="drop")
    >>> print(cal.guarantee(0.9).claims[0].sentence)
    the set of a new row with a right label contains all of its right labels with ...
    """
    instead = "predict_set(…, confidence_level=1 - alpha)"
    refuse_names(others, alpha=instead, y="candidates", y_true="candidates", method="conformity_score")
    given: dict[str, Column] = {
        "verified": verified,
        "verified_probability": verified_probability,
        "sample_weight": sample_weight,
        "by": by,
        "groups": groups,
    }
    check_row_names(probabilities=probabilities, candidates=candidates, row_ids=row_ids, **given)
    score = as_score(conformity_score)
    rows = read_probabilities(probabilities, score.domain, device=on_device(probabilities), later=True)
    n, k = rows.shape
    if n == 0:
        raise ValueError("probabilities: no rows; calibration needs at least one.")
    votes = candidates if isinstance(candidates, Votes) else None
    sets = on_columns_of(probabilities, candidates, k, classes)
    if len(sets) != n:
        raise ValueError(f"candidates: {len(sets)} rows for {n} rows of probabilities.")
    if frame_columns(probabilities) or column_numbers(probabilities):
        rows = read_probabilities(probabilities, score.domain, k, sets.classes, later=True)
    needed = read_truth(truth)
    facts = RowFacts.read(n, sets.vocabulary, **given, truth=needed)
    if votes is not None:
        facts, sets = with_votes(facts, votes.recode(sets.vocabulary), sets)
    return calibrate(
        rows,
        sets,
        facts,
        strategy,
        score,
        by=by if isinstance(by, str) else "given",
        miss_rate=miss_rate,
        assume=assume,
        row_ids=row_ids,
        random_state=random_state,
        missing=missing,
        precision=precision_of(probabilities),
        truth=needed,
        empty=empty,
    )


def calibrate(
    rows: Probabilities,
    sets: LabelSets,
    facts: RowFacts,
    strategy: str | Strategy,
    score: Score,
    *,
    by: str = "given",
    miss_rate: float,
    assume: AssumptionLike = "nothing",
    row_ids: Column = None,
    random_state: Seed = None,
    missing: str | None = None,
    precision: str = "float64",
    novel: int = 0,
    seen: Finding | None = None,
    equal: int = 0,
    choice: Finding | None = None,
    written: bool = False,
    also: Collection[str] = (),
    truth: str = "",
    empty: str = "error",
) -> Calibration:
    """Does the same for rows that are read already: probabilities, sets on their columns, and facts about the rows.

    `choice` is how verified rows differ from rows that are not among these, if they do, and `written` whether these
    show that verified labels were written into the candidates; `also` names columns of evidence that are needed
    beyond those of the strategy.
    """
    chosen, score = as_strategy(strategy), with_classes(score, sets.classes.tolist())
    check_order(score, sets.vocabulary)
    rate = as_fraction(miss_rate, "miss_rate")
    if not 0 <= rate < 1:
        raise ValueError(f"miss_rate: {miss_rate} is not in [0, 1).")
    n, k = rows.shape
    declared = _read_assumption(assume, sets, facts)
    seed = draw_seed(random_state)
    if score.randomized or row_ids is not None or len(facts.verified_rows):
        facts = replace(facts, u=rows.uniforms(seed, row_ids, distinct=True))
    _refuse_single(chosen, declared, facts, by, truth)
    rows, sets, facts, none = leave_out_empty(rows, sets, facts, truth, empty)
    n = len(sets)
    sets, kept = _present_rows(sets, missing, votes=facts.votes is not None)
    if kept is not None:
        checked = len(facts.verified_rows)
        if facts.position is None:
            facts = replace(facts, position=np.arange(n))
        rows, facts = rows[kept], facts.take(kept)
        if lost := checked - len(facts.verified_rows):
            problem = f"missing: {lost:,} of the {n - len(kept):,} rows dropped for lack of candidates are verified"
            warnings.warn(MisuseWarning(problem, Remedy("missing", "full", "to keep them")), stacklevel=3)
    sets, facts = decide_right(score, rows, sets, facts, truth)
    if by not in {"given", "label"}:
        facts = replace(facts, category=automatic_categories(by, rows, sets.classes, sets))
    setting = Setting(
        score.name,
        k,
        rate,
        dropped=n - len(sets),
        single=sets.single,
        assume=declared,
        checked=len(facts.verified_rows),
        seed=seed,
        domain=score.domain,
        filled=sets.completed,
        novel=novel,
        seen=seen,
        equal=equal,
        votes=facts.votes is not None,
        named=row_ids is not None,
        by=by,
        precision=precision,
        top=rows.stored,
        truth=truth,
        empty=none,
    )
    needs = {*(() if by == "label" else chosen.needs(setting)), *also}
    rows.check_known(score, needs, verified=facts.verified is not None, votes=facts.votes is not None)
    if "table" in needs and declared.kind == "class":
        setting = replace(setting, assume=_complete_assumption(declared, rows.array, sets, float(rate)))
    if facts.votes is None:
        evidence, people = gather(score, rows, sets, facts, needs), None
    else:
        facts = _with_annotators(facts, rows.array, chosen, declared, needs)
        evidence, people = _with_answers(gather(score, rows, sets, facts, needs), facts, score, rows.array)
    if facts.category is not None:
        setting = replace(setting, scope=" of each category")
    known = None if facts.category is None else Vocabulary.infer(facts.category)
    codes = None if known is None or facts.category is None else frozen(known.encode(facts.category))
    misses = rate > 0 or (chosen.uses_verified_rows and len(facts.verified_rows) > 0) or facts.votes is not None
    written = written or warn_of_written(sets, facts.verified)
    differs, written = warn_about_verified(evidence, sets, facts, codes, misses=misses, written=written)
    setting = replace(setting, chosen=choice or differs, written=written)
    return Calibration(score, chosen, sets.vocabulary, evidence, setting, known, codes, people)


def _refuse_single(strategy: Strategy, declared: Assumption, facts: RowFacts, by: str, truth: str) -> None:
    """Refuses what is defined for one true label alone where several may be right."""
    if not truth:
        return
    if not strategy.several:
        problem = f"truth: strategy {strategy.name!r} is defined for one true label of each row"
        raise InputError(problem, Remedy("strategy", "auto"))
    if by == "label" or (by == "size" and facts.right is None):
        raise InputError(f"truth: by={by!r} is defined for one true label of each row", "leave out either")
    if declared.kind != "nothing":
        raise InputError("truth: several right labels with what assume states of false ones", "leave out either")
    if facts.votes is not None:
        problem = "truth: votes are weighed as answers about one true label"
        raise InputError(problem, "pass votes.candidates() in place of votes")


def _present_rows(sets: LabelSets, missing: str | None, *, votes: bool) -> tuple[LabelSets, Ints | None]:
    """The rows with candidates, as `present_rows`; by default those that somebody answered, if there are votes."""
    if missing is not None or not votes:
        return present_rows(sets, missing or "error")
    left, kept = present_rows(sets, "drop")
    if kept is not None:
        warn_of_unanswered(len(sets) - len(kept), len(sets))
    return left, kept


def _with_annotators(
    facts: RowFacts, matrix: Floats, strategy: Strategy, declared: Assumption, needs: Collection[str]
) -> RowFacts:
    """The facts with the annotator model's posterior, where there are votes and it is needed."""
    if facts.votes is None or not ("posterior" in needs or len(facts.verified_rows)):
        return facts
    modelled = declared.kind == "independent" or strategy.models_annotators
    shrink = {"shrink": choose_shrinkage(facts.votes, matrix)} if modelled else {}
    fitted = fit_annotators(facts.votes, matrix, **shrink)
    agreement = (calibrate_agreement if modelled else measure_agreement)(fitted)
    return replace(facts, posterior=fitted.posterior, agreed=agreement.agreed, excess=agreement.excess)


def _with_answers(
    evidence: Evidence, facts: RowFacts, score: Score, matrix: Floats
) -> tuple[Evidence, AnnotatorParameters | None]:
    """The evidence with what the verified rows' answers say, and the annotator model of the other rows."""
    votes, verified, checked, n = facts.votes, facts.verified, facts.verified_rows, evidence.n
    if votes is None or verified is None:
        return evidence, None
    others = np.setdiff1d(np.arange(n), checked)
    # Fitted from scratch: a start from the fit to all rows would know the answers of verified rows.
    people = fit_annotators(votes[others], matrix[others]).parameters
    posterior = people.posterior(votes[checked], matrix[checked])
    proposed = most_probable(posterior)
    truth, confidence, label = np.full(n, np.nan), np.full(n, np.nan), np.full(n, MISSING)
    u = None if facts.u is None else facts.u[checked]
    truth[checked] = score.score(posterior, verified[checked], u=u)
    label[checked], confidence[checked] = proposed.label, proposed.confidence
    return replace(evidence, answered_truth=truth, answered=label, answered_confidence=confidence), people


def _read_assumption(assume: Any, sets: LabelSets, facts: RowFacts) -> Assumption:
    """What the user states about false labels or annotators."""
    declared = as_assumption(_by_name(assume, sets), sets.n_classes)
    if declared.kind == "independent" and facts.votes is None:
        raise InputError(
            "assume: 'independent' is about annotators, but candidates do not say who or how many gave them",
            "pass Votes in place of candidates",
            Remedy("assume", "nothing"),
        )
    return declared


def _by_name(assume: Any, sets: LabelSets) -> Any:
    """A frame whose rows and columns are named for the classes, in their order; anything else unchanged."""
    names = sets.classes.tolist()
    if not hasattr(assume, "loc") or set(assume.columns) != set(names) or set(assume.index) != set(names):
        return assume
    return assume.loc[names, names]


def _complete_assumption(declared: Assumption, matrix: Floats, sets: LabelSets, rate: float) -> Assumption:
    """A class-conditional assumption with an invertible matrix, which is estimated where it was not passed."""
    found = declared.matrix
    if found is None:
        found = frozen(estimate_inclusion(matrix, sets, miss_rate=rate))
    check_separable(found, sets.classes.tolist())
    return replace(declared, matrix=found)


def on_columns_of(probabilities: Any, candidates: Any, k: int, classes: Classes) -> LabelSets:
    """The candidates in the order of the probability columns; a frame's column names declare the classes."""
    if on_device(candidates):
        candidates = read_mask(candidates)
    names, numbers = frame_columns(probabilities), column_numbers(probabilities)
    if classes is None and len(set(numbers or names or ())) == k:
        candidates = as_label_sets(candidates)
        known = candidates.vocabulary
        if not (known.declared or known.holds_numbers):
            return as_candidates(candidates, k, names)
        if numbers and len(known) and not known.declared and {*known.classes.tolist()} <= {*numbers}:
            return as_candidates(candidates, k, numbers)
    return as_candidates(candidates, k, classes)
