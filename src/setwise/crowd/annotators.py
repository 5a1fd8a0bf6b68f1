"""`annotators`: how far annotators agree, how often each is right, and what they say together."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from setwise._arrays import Array, Floats, Ints, frame_columns, frozen
from setwise._types import Column, ProbabilityRows
from setwise.crowd.alpha import krippendorff_alpha
from setwise.crowd.consensus import Consensus, find_consensus, learn_consensus
from setwise.crowd.dependence import Dependence
from setwise.crowd.members import Members, compare_members
from setwise.crowd.rectified_shares import annotator_shares, single_answers
from setwise.crowd.resemblance import FEWEST_VERIFIED, Resemblance, find_resemblance
from setwise.crowd.verifiers import add_verified
from setwise.errors import check_length
from setwise.evidence.evidence import gather
from setwise.evidence.row_facts import RowFacts
from setwise.evidence.row_names import check_row_names
from setwise.evidence.verified_rows import compare_verified, refuse_sole_answers, warn_about_choice
from setwise.findings import Finding, format_p_value, join_names
from setwise.guarantees import format_lines
from setwise.labels.coerce import as_candidates
from setwise.labels.vocabulary import MISSING
from setwise.labels.votes import Votes
from setwise.probabilities.dense import DenseRows, as_probabilities
from setwise.ranks import binomial_bounds
from setwise.scores import LAC

_FEW = 10  # answers; an annotator with fewer gets no other remark
_ODD = 0.01  # how improbable the same answer every time must be to be remarked
_SHOWN = 10
_NAMED = 3
_DRAWS = "in 19 of 20 draws of the verified rows"
_VERIFY = "Verify 100 rows drawn at random."


@dataclass(frozen=True, eq=False, repr=False)
class Annotators:
    """What votes tell about their annotators; where votes are anonymous, about all annotators together.

    Attributes
    ----------
    names, answers
        The annotators, and how many rows each answered.
    agreement
        The share of the others' answers to the same rows that are the same. NaN where there are none.
    accuracy, lower, upper
        How often each annotator is right on the rows it answered, with a 95 % interval that holds whatever the
        annotators do. Without verified rows accuracies are NaN, and intervals go from 0 to 1.
    flags
        Remarks on each annotator.
    alpha
        Krippendorff's alpha: 1 where all agree, 0 where they agree as by chance. NaN where no row has two answers.
        If `ordered`, answers disagree by the square of how far apart their classes are.
    effective_votes
        The answers to a row tell about as much as so many independent ones: J / (1 + (J − 1)·r̄) for J answers
        whose errors have the mean correlation r̄. NaN where that cannot be judged.
    near_copies
        Groups of annotators who give the same answers, wrong ones too.
    classes, consensus, confidence
        The labels; the label of each row on which the annotators settle (None where it has no answers); and the
        (n, K) confidence in each label, by which rows can be ordered. These are no probabilities.
    rule
        How the consensus is found.
    verified
        How many verified rows took part.
    """

    names: Array
    answers: Ints
    agreement: Floats
    accuracy: Floats
    lower: Floats
    upper: Floats
    flags: tuple[tuple[str, ...], ...]
    alpha: float
    effective_votes: float
    near_copies: tuple[tuple[Hashable, ...], ...]
    classes: Array
    consensus: Array
    confidence: Floats
    rule: str
    verified: int
    found: Consensus = field(repr=False)
    reference: Ints = field(repr=False)
    members: Members | None = field(repr=False)
    chosen: Finding | None = field(repr=False)
    ordered: bool = False

    @property
    def dependence(self) -> Dependence | None:
        """Whether pairs of answers agree more often than those of annotators who err independently.

        None where too few rows have two answers.
        """
        return self.found.dependence

    def __len__(self) -> int:
        return len(self.names)

    @property
    def best(self) -> list[Hashable]:
        """The annotators who may be the best, the most accurate first; in 19 of 20 draws the best is among them.

        Two are compared by the rows that both answered; the best is the one whom no other beats there.
        """
        found = np.zeros(0, dtype=int) if self.members is None else self.members.best
        return list(self.names[found[np.argsort(-self.accuracy[found], kind="stable")]])

    def confusion(self, name: Hashable = None) -> Floats:
        """(K, K): how often the annotator answers l where k is true; without a name, all annotators together.

        Verified labels say what is true; without any, the consensus does. NaN where no such row was answered.
        """
        votes = self.found.votes
        row, who, label = single_answers(votes)
        if votes.annotator is None:
            row, label, who = votes.row, votes.label, np.zeros(len(votes.row), dtype=int)
        use = self.reference[row] != MISSING
        if name is not None:
            known = self.names.tolist()
            if name not in known:
                raise ValueError(f"name: there is no annotator {name!r} among the {len(known):,}.")
            use &= who == known.index(name)
        k = len(self.classes)
        counts = np.bincount(self.reference[row[use]] * k + label[use], minlength=k * k).reshape(k, k)
        total = counts.sum(axis=1, keepdims=True)
        shares: Floats = np.divide(counts, total, out=np.full((k, k), np.nan), where=total > 0)
        return shares

    @property
    def worst_first(self) -> Ints:
        """Positions of the annotators: those with enough answers first, the worst of them on top."""
        return np.lexsort([self.agreement, self.accuracy, self.answers < _FEW])

    @property
    def facts(self) -> list[tuple[str, str]]:
        """How far annotators agree, how many votes that is worth, and near-copies, as headed lines."""
        if np.isnan(self.alpha):
            return [("Agreement", "not known, for no row has two answers.")]
        by = "Krippendorff's alpha by squared distances" if self.ordered else "Krippendorff's alpha"
        agreed = f"{self.alpha:.2f}, where 0 is luck and 1 is full agreement ({by})."
        if not np.isnan(self.effective_votes):
            how = "verified rows" if self.verified >= FEWEST_VERIFIED else "what the others say"
            each = _in_digits(self.found.resemblance.per_row, 3) if self.found.resemblance else ""
            told = f"The {each} answers to a row tell as much as about {_in_digits(self.effective_votes, 2)}"
            agreed += f" {told} from unrelated annotators, judged by {how}."
        groups = [join_names([str(name) for name in group], _SHOWN) for group in self.near_copies[:_NAMED]]
        if len(self.near_copies) > _NAMED:
            groups.append("…")
        copies = [("Near-copies", f"{'; '.join(groups)}. Each group counts as one annotator.")] if groups else []
        return [("Agreement", agreed), *copies]

    @property
    def basis(self) -> list[tuple[str, str]]:
        """What accuracies and intervals rest on, as headed lines."""
        if self.chosen is not None:
            stated = f"the {self.verified:,} rows were drawn at random ({self.chosen.sentence})."
            return [("Guaranteed", "nothing about these intervals."), ("Contradicted", stated)]
        if self.verified:
            return [
                (
                    "Guaranteed",
                    f"each interval contains that annotator's accuracy on all rows it answered, {_DRAWS}.",
                ),
                ("You state", f"the {self.verified:,} rows were drawn at random; their labels are right."),
                *self._comparison,
            ]
        if not len(self) or np.isnan(self.alpha):
            return []
        found = self.dependence
        if found is None:
            told = "Too few rows have two answers to test whether annotators err independently."
        elif found.refuted:
            how = "share their errors" if found.excess > 0 else "avoid each other's answers"
            told = f"The annotators {how} ({format_p_value(found.p_value)})."
        else:
            told = f"A test finds no shared errors ({format_p_value(found.p_value)}), which does not exclude them."
        return [("Not known", f"how often each is right. {told} {_VERIFY}")]

    @property
    def _comparison(self) -> list[tuple[str, str]]:
        """What verified rows say of the best annotator and of the panel."""
        best, found = self.best, self.members
        if found is None or not best or len(self) < 2:
            return []
        everywhere = (self.answers == np.count_nonzero(self.found.votes.sizes)).all()
        first = f"{'' if everywhere else 'By rows that two answered, '}{best[0]} is the most accurate"
        others = len(best) - 1
        some = f"{best[1]} may be as good" if others == 1 else f"{others:,} others may be as good"
        told = "no other is as good" if not others else some
        panel = f"{self.found.rule[0].upper()}{self.found.rule[1:]}"
        if found.beaten:
            judged = f"{panel} is right more often than every annotator."
        elif len(found.better):
            names = join_names([str(name) for name in self.names[found.better]], _NAMED)
            judged = f"{names} {'is' if len(found.better) == 1 else 'are'} right more often than {self.found.rule}."
        else:
            judged = f"The verified rows do not show whether {self.found.rule} beats the best annotator."
        lines = [("Best", f"{first}; {told}. {judged}")]
        if self.rule != self.found.rule:
            lines.append(("Consensus", f"{self.rule}; this is right most often in the verified rows."))
        return lines

    def to_frame(self) -> Any:
        """A pandas frame with one annotator per line."""
        import pandas as pd  # pandas is optional

        columns = {name: getattr(self, name) for name in ("answers", "agreement", "accuracy", "lower", "upper")}
        return pd.DataFrame(
            {"annotator": self.names, **columns, "flags": ["; ".join(flags) for flags in self.flags]}
        )

    def to_dict(self) -> dict[str, Any]:
        """Annotators and agreement as plain data, ready for JSON; NaN is None."""
        columns = ("answers", "agreement", "accuracy", "lower", "upper")
        numbers = {name: getattr(self, name).tolist() for name in columns}
        return {
            "annotators": [
                {"name": name, **{key: _plain(values[j]) for key, values in numbers.items()}, "flags": list(flags)}
                for j, (name, flags) in enumerate(zip(self.names.tolist(), self.flags, strict=True))
            ],
            "classes": self.classes.tolist(),
            "confusion": [[_plain(share) for share in line] for line in self.confusion().tolist()],
            "alpha": _plain(self.alpha),
            "effective_votes": _plain(self.effective_votes),
            "copies": [list(group) for group in self.near_copies],
            "verified": self.verified,
            "rule": self.rule,
            "best": self.best,
            **{head.lower().replace(" ", "_"): text for head, text in [*self.facts, *self.basis]},
            "dependence": None if self.verified or self.dependence is None else self.dependence.to_dict(),
        }

    def __repr__(self) -> str:
        return self.describe()

    def describe(self, top: int | None = _SHOWN) -> str:
        """The table of annotators, the worst first, at most `top` of them; None shows all.

        With verified rows half of these are the best, and stand first.
        """
        order, middle = self.worst_first, None
        if self.verified and top is not None and len(self) > top:  # people look for the best judge, too
            order = order[: np.count_nonzero(self.answers >= _FEW)][::-1]
            middle = top // 2
            order = np.concatenate([order[:middle], order[middle:][-(top - middle) :]])
        listed = order[:top]
        known = not np.isnan(self.accuracy).all()
        head = ("annotator", "answers", "agreement", *(("accuracy", "95 % interval") if known else ()), "")
        cells = [head] + [self._cells(j, known=known) for j in listed]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
        if left := len(self) - len(listed):
            lines.insert(len(lines) if middle is None else middle + 1, f"… {left:,} more")
        parts = [self._head(), *(lines if len(self) else []), *format_lines([*self.facts, *self.basis])]
        return "\n".join(line.rstrip() for line in parts)

    def _head(self) -> str:
        by = f"{len(self):,} annotator{'s' * (len(self) > 1)}" if len(self) else "Anonymous annotators"
        rows = f"{len(self.consensus):,} rows{f' ({self.verified:,} verified)' if self.verified else ''}"
        return f"{by}, {rows}, {len(self.classes):,} classes"

    def _cells(self, j: int, *, known: bool) -> tuple[str, ...]:
        name = " ".join(str(self.names[j]).split())
        agreed, right = (
            "–" if np.isnan(share[j]) else f"{share[j]:.2f}" for share in (self.agreement, self.accuracy)
        )
        told = (right, f"{self.lower[j]:.2f}–{self.upper[j]:.2f}") if known else ()
        short = name if len(name) <= 30 else name[:29] + "…"
        return short, f"{self.answers[j]:,}", agreed, *told, "; ".join(self.flags[j])


def annotators(
    votes: Votes,
    verified: Column = None,
    probabilities: ProbabilityRows | None = None,
    *,
    ordered: bool = False,
) -> Annotators:
    """Says how far annotators agree, how often each is right, and what they say together.

    Without verified rows agreement is all that is known. A hundred rows that were drawn at random and verified tell
    how often each annotator is right, whatever the annotators do.

    Parameters
    ----------
    votes
        Who answered what.
    verified
        The true label where a row is verified, None or NaN elsewhere. By passing it you state that the rows to
        verify were drawn at random.
    probabilities
        (n, K) class probabilities of a classifier that has not seen these answers. They join the consensus.
    ordered
        Whether the classes of the votes have an order: then `alpha` counts answers that are far apart for more.

    Notes
    -----
    With verified rows each interval is that of `setwise.estimate`: the rows an annotator answered are a finite
    population, and what the consensus says is a proxy that no verified label has influenced. The consensus that
    is shown is chosen by the verified rows. It serves learning and reading; triage, suspects and estimates use
    one that has not seen a verified label.

    Answers alone give accuracies only to a model in which annotators err independently (Dawid and Skene, 1979).
    Real panels seldom do, and a test often cannot tell: on rows of which some are hard such intervals held for none
    of three annotators. The model takes part in the consensus, where other answers confirm it.

    Examples
    --------
    >>> import numpy as np
    >>> from setwise import Votes, annotators
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 400)
    >>> cells = np.where(rng.random((400, 4)) < [0.9, 0.8, 0.9, 0.5], y[:, None], 1 - y[:, None])
    >>> verified = np.where(np.arange(400) < 100, y, np.nan)
    >>> annotators(Votes.from_matrix(cells, annotators=["ann", "bob", "cyd", "dan"]), verified)
    4 annotators, 400 rows (100 verified), 2 classes
    annotator  answers  agreement  accuracy  95 % interval
    dan        400      0.53       0.53      0.49–0.57      cannot be told from guessing; least accurate
    bob        400      0.65       0.80      0.75–0.84
    cyd        400      0.69       0.87      0.82–0.90
    ann        400      0.70       0.94      0.90–0.96
    Agreement:     0.28, where 0 is luck and 1 is full agreement (Krippendorff's
                   alpha). The 4 answers to a row tell as much as about 4 from
                   unrelated annotators, judged by verified rows.
    Guaranteed:    each interval contains that annotator's accuracy on all rows it
                   answered, in 19 of 20 draws of the verified rows.
    You state:     the 100 rows were drawn at random; their labels are right.
    Best:          ann is the most accurate; cyd may be as good. The verified rows
                   do not show whether the annotator model beats the best annotator.
    """
    if not isinstance(votes, Votes):
        raise TypeError(f"votes: expected Votes, got {type(votes).__name__}; make them with Votes.from_table.")
    if not len(votes.row):
        raise ValueError("votes: there is no answer.")
    check_row_names(votes=votes, verified=verified, probabilities=probabilities)
    if ordered:
        votes.vocabulary.check_ordered()
    matrix = None
    if probabilities is not None:
        matrix, votes = _with_columns(probabilities, votes)
    votes, facts = add_verified(votes, verified)
    truth = facts.verified
    found = find_consensus(votes, matrix)
    alike = found.resemblance if truth is None or votes.annotator is None else find_resemblance(votes, truth)
    confidence, rule = found.confidence, found.rule
    proposed = frozen(confidence.argmax(axis=1))
    row, who, label = single_answers(votes)
    agreement = _agreement(votes, row, who, label)
    chosen = None
    if truth is None:
        people = len(votes.annotators)
        met = np.bincount(who, np.bincount(row, minlength=len(votes))[row] > 1, people)
        rates = agreement, *binomial_bounds(np.nan_to_num(agreement) * met, met, 0.05)
        accuracy, (lower, upper), members = np.full(people, np.nan), np.repeat([[0.0], [1.0]], people, 1), None
    else:
        sets = votes.candidates(missing="full")
        refuse_sole_answers("annotators", sets, truth)
        accuracy, lower, upper = rates = annotator_shares(votes, proposed, truth)[:3]
        use = truth[row] != MISSING
        panel = np.where(truth == MISSING, 0.0, proposed == truth)
        answered = np.bincount(who, minlength=len(votes.annotators))
        evidence = gather(LAC(), DenseRows(confidence), sets, RowFacts(verified=truth))
        chosen = warn_about_choice(compare_verified(evidence, votes=votes), chances=False, groups=False)
        members = compare_members(row[use], who[use], truth[row[use]] == label[use], panel, answered)
        before = found.resemblance
        differ = before is not None and alike is not None and (alike.copies != before.copies).any()
        # Verified rows may tell who is a copy; which families err together all rows tell better.
        confidence, rule = learn_consensus(find_consensus(votes, matrix, alike) if differ else found, truth)
    consensus = votes.classes[confidence.argmax(axis=1)].astype(object)
    if matrix is None:
        consensus[votes.sizes == 0] = None
    reference = proposed if truth is None else truth
    answers = np.bincount(votes.answers[1], minlength=len(votes.annotators))[: len(votes.annotators)]
    copies = _near_copies(votes, alike)
    return Annotators(
        votes.annotators,
        frozen(answers),
        frozen(agreement),
        frozen(accuracy),
        frozen(lower),
        frozen(upper),
        _flags(votes, who * votes.n_classes + label, answers, agreement, rates, truth, copies),
        krippendorff_alpha(votes, ordered=ordered),
        float("nan") if alike is None else alike.effective_votes,
        copies,
        votes.classes,
        frozen(consensus),
        frozen(confidence),
        rule,
        0 if truth is None else int(np.count_nonzero(truth != MISSING)),
        found,
        reference,
        members,
        chosen,
        ordered,
    )


def _with_columns(probabilities: Any, votes: Votes) -> tuple[Floats, Votes]:
    """Probabilities and votes over the same labels; a frame's columns are matched by name."""
    matrix, names = as_probabilities(probabilities), frame_columns(probabilities)
    check_length("probabilities", len(matrix), len(votes), "rows of votes")
    sets = as_candidates(votes.candidates(missing="empty"), matrix.shape[1], names)
    if names is not None:
        matrix = as_probabilities(probabilities, n_classes=len(sets.classes), classes=sets.classes)
    return matrix, votes.recode(sets.vocabulary)


def _agreement(votes: Votes, row: Ints, who: Ints, label: Ints) -> Floats:
    """The share of the others' answers to the same rows that are the same, for each annotator."""
    people = len(votes.annotators)
    place = np.unique(row * votes.n_classes + label, return_inverse=True)[1]
    same = np.bincount(place)[place] - 1
    others = np.bincount(row, minlength=len(votes))[row] - 1
    share = np.divide(same, others, out=np.zeros(len(row)), where=others > 0)
    met = np.bincount(who, others > 0, people)
    agreed: Floats = np.divide(np.bincount(who, share, people), met, out=np.full(people, np.nan), where=met > 0)
    return agreed


def _near_copies(votes: Votes, alike: Resemblance | None) -> tuple[tuple[Hashable, ...], ...]:
    """The names in each group of near-copies."""
    if alike is None:
        return ()
    names = votes.annotators
    large = np.flatnonzero(np.bincount(alike.copies) > 1)
    return tuple(tuple(names[alike.copies == group].tolist()) for group in large.tolist())


def _flags(
    votes: Votes,
    said_by: Ints,
    answers: Ints,
    agreement: Floats,
    rates: tuple[Floats, Floats, Floats],
    truth: Ints | None,
    copies: tuple[tuple[Hashable, ...], ...],
) -> tuple[tuple[str, ...], ...]:
    """Remarks on each annotator, as its number of answers allows them; of few answers only that they are few.

    `said_by` are single answers, as annotator times K plus label; `rates` are how often each annotator is right, or
    agrees with the others, with an interval.
    """
    if votes.annotator is None:
        return ()
    (rate, lower, upper), n, k = rates, len(votes.annotators), votes.n_classes
    said = np.bincount(said_by, minlength=n * k).reshape(n, k)
    true = said.sum(axis=0) - said if truth is None else np.bincount(truth[truth >= 0], minlength=k)[None]
    chance = (said * true).sum(axis=1) / np.maximum(said.sum(axis=1) * true.sum(axis=1), 1)
    enough = answers >= _FEW
    same = enough & (np.count_nonzero(said, axis=1) == 1) & (np.nan_to_num(agreement) ** answers < _ODD)
    judged = enough & ~np.isnan(rate)
    below = judged & (upper < (np.median(rate[judged]) if judged.any() else 0.0))
    guess, worse = below & (lower <= chance) & (chance <= upper), below & (upper < chance)
    worst = int(np.argmin(np.where(below, rate, np.inf))) if below.any() else -1
    group = {name: names for names in copies for name in names}
    remarks = {
        "few answers": ~enough,
        "nobody else answered the same rows": enough & np.isnan(agreement),
        "always the same answer": same,
        "cannot be told from guessing": guess,
        "worse than chance": worse,
        "least accurate" if truth is not None else "agrees least with the others": np.arange(n) == worst,
    }
    flags = [[text for text, holds in remarks.items() if holds[j]] for j in range(n)]
    for name, found in zip(votes.annotators.tolist(), flags, strict=True):
        others = [str(other) for other in group.get(name, ()) if other != name]
        if others:
            found.append(f"near-copy of {join_names(others, 1)}")
    return tuple(map(tuple, flags))


def _in_digits(value: float, digits: int) -> str:
    return f"{float(f'{value:.{digits}g}'):,g}"


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else value
