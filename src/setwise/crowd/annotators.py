"""`annotators`: who answers well, who answers at random, how much annotators agree, and their consensus."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from setwise._arrays import Array, Bools, Floats, Ints, frame_columns, frozen
from setwise._lazy import lazy
from setwise._types import ProbabilityRows
from setwise.crowd.alpha import krippendorff_alpha
from setwise.crowd.annotator_model import AnnotatorModel, fit_annotators
from setwise.crowd.dependence import Dependence, calibrate_agreement, dependence
from setwise.errors import check_length
from setwise.labels.coerce import as_candidates
from setwise.labels.votes import Votes
from setwise.probabilities.dense import as_probabilities
from setwise.ranks import clopper_pearson

_FEW = 10  # answers; an annotator with fewer gets no other remark
_ODD = 0.01  # how improbable the same answer every time must be to be remarked
_TOO_FEW = 4  # annotators; the intervals of so few are too narrow
_SHOWN = 10


@dataclass(frozen=True, eq=False, repr=False)
class Annotators:
    """What votes tell about their annotators; where votes are anonymous, about all annotators together.

    Attributes
    ----------
    names, answers
        The annotators, and how many answers each gave.
    accuracy, lower, upper
        The probability that each annotator answers right, with a 95 % interval. An answer counts as right with its
        posterior probability; the more doubtful that is, the wider the interval. The interval treats the other
        accuracies as known, so that it is too narrow for three or four annotators. Two annotators do not show which
        of them is right: an annotator needs two others (a classifier counts) such that every two of the three
        answered a common row. Otherwise the accuracy is NaN, and the interval is from 0 to 1.
    flags
        Remarks on each annotator.
    alpha
        Krippendorff's alpha for nominal data: 1 where all agree, 0 where they agree as by chance. NaN where no row
        has two answers.
    classes, consensus, posterior
        The labels; the most probable label of each row (None where it has no answers); and the (n, K) probabilities
        of the labels given all answers.
    """

    names: Array
    answers: Ints
    accuracy: Floats
    lower: Floats
    upper: Floats
    flags: tuple[tuple[str, ...], ...]
    alpha: float
    classes: Array
    consensus: Array
    posterior: Floats
    model: AnnotatorModel = field(repr=False)

    @lazy
    def dependence(self) -> Dependence | None:
        """Whether pairs of answers agree more often than those of annotators who err independently.

        None where too few rows have two answers. Computed at first use: it may take longer than all the rest.
        """
        return dependence(*calibrate_agreement(self.model))

    def __len__(self) -> int:
        return len(self.names)

    def confusion(self, name: Hashable = None) -> Floats:
        """(K, K): how often the annotator answers l where k is true; without a name, all annotators together.

        Few answers are shrunk to those of all annotators. Answers "not this label" are left out.
        """
        k, table = len(self.classes), self.model.parameters.confusion.copy()
        if name is not None:
            known = self.names.tolist()
            if name not in known:
                raise ValueError(f"name: there is no annotator {name!r} among the {len(known):,}.")
            people, said = self.model.parameters.people, self.model.parameters.said
            mine = people == known.index(name)
            own, said = self.model.parameters.own[mine].T, said[mine]
            table[:, said] = 0  # labels that the annotator never answered share the rest
            left = table.sum(axis=1, keepdims=True)
            table *= np.divide(1 - own.sum(axis=1, keepdims=True), left, out=np.zeros_like(left), where=left > 0)
            table[:, said] = own
        found: Floats = table[:, :k] / table[:, :k].sum(axis=1, keepdims=True)
        return found

    @property
    def worst_first(self) -> Ints:
        """Positions of the annotators: those with enough answers first, the least accurate of them on top."""
        return np.lexsort([self.accuracy, self.answers < _FEW])

    @property
    def agreement(self) -> str:
        """How much annotators agree: sentences."""
        if np.isnan(self.alpha):
            return "No row has two answers: agreement is unknown."
        unknown = "Too few rows have two answers to test whether annotators err independently."
        alpha = f"Agreement beyond chance is {self.alpha:.2f}, where 1 is perfect (Krippendorff's alpha)."
        return f"{self.dependence or unknown} {alpha}"

    @property
    def caution(self) -> str:
        """Why accuracies are too high or intervals too narrow; empty where nothing shows that."""
        if not (compared := np.count_nonzero(~np.isnan(self.accuracy))):
            return ""
        if self.dependence is not None and self.dependence.refuted and self.dependence.excess > 0:
            return "Accuracies are too high and intervals too narrow, because the annotators share their errors."
        if compared > _TOO_FEW:
            return ""
        return "With so few annotators the intervals are too narrow: each treats the other accuracies as known."

    def to_frame(self) -> Any:
        """A pandas frame with one annotator per line."""
        import pandas as pd  # pandas is optional

        return pd.DataFrame(
            {
                "annotator": self.names,
                "answers": self.answers,
                "accuracy": self.accuracy,
                "lower": self.lower,
                "upper": self.upper,
                "flags": ["; ".join(flags) for flags in self.flags],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Annotators and agreement as plain data, ready for JSON; NaN is None."""
        numbers = {name: getattr(self, name).tolist() for name in ("answers", "accuracy", "lower", "upper")}
        return {
            "annotators": [
                {"name": name, **{key: _plain(values[j]) for key, values in numbers.items()}, "flags": list(flags)}
                for j, (name, flags) in enumerate(zip(self.names.tolist(), self.flags, strict=True))
            ],
            "classes": self.classes.tolist(),
            "confusion": self.confusion().tolist(),
            "alpha": _plain(self.alpha),
            "agreement": self.agreement,
            "caution": self.caution,
            "dependence": None if self.dependence is None else self.dependence.to_dict(),
        }

    def __repr__(self) -> str:
        return self.describe()

    def describe(self, top: int | None = _SHOWN) -> str:
        """The table of annotators, at most `top` of them, the least accurate first; None shows all."""
        listed = self.worst_first[:top]
        cells = [("annotator", "answers", "accuracy", "95 % interval", "")] + [self._cells(j) for j in listed]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
        shown = lines if len(self) else []
        more = self._more(len(self) - len(listed))
        return "\n".join(line.rstrip() for line in [self._head(), *shown, *more, self.agreement])

    def _head(self) -> str:
        by = f"{len(self):,} annotators" if len(self) else "Anonymous annotators"
        return f"{by}, {len(self.consensus):,} rows, {len(self.classes):,} classes"

    def _more(self, left: int) -> list[str]:
        more = [f"… {left:,} more"] if left > 0 else []
        estimate = "Accuracies are estimates from the answers alone: they assume that annotators err independently."
        known = not np.isnan(self.accuracy).all()
        return [*more, *([estimate] if known else []), *filter(None, [self.caution])]

    def _cells(self, j: int) -> tuple[str, ...]:
        name, interval = str(self.names[j]), f"{self.lower[j]:.2f}–{self.upper[j]:.2f}"
        short = name if len(name) <= 30 else name[:29] + "…"
        right = "–" if np.isnan(self.accuracy[j]) else f"{self.accuracy[j]:.2f}"
        return " ".join(short.split()), f"{self.answers[j]:,}", right, interval, "; ".join(self.flags[j])


def annotators(votes: Votes, probabilities: ProbabilityRows | None = None) -> Annotators:
    """Estimates how well each annotator answers, how much they agree, and their consensus, without any true label.

    Parameters
    ----------
    votes
        Who answered what.
    probabilities
        (n, K) class probabilities of a classifier that has not seen these answers. They are recalibrated and join
        the consensus.

    Notes
    -----
    The model assumes that annotators err independently given the truth, each with confusions of their own shrunk
    to those of all (Dawid and Skene, 1979; with a classifier Raykar et al., 2010). It assumes too that who answers
    a row has nothing to do with its label: of people who answer what they know, intervals are too narrow. Where
    annotators share their errors, every accuracy is too high and the consensus looks too certain; `dependence`
    tests that.

    Examples
    --------
    >>> import numpy as np
    >>> from setwise import Votes, annotators
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, (100, 1))
    >>> cells = np.where(rng.random((100, 4)) < [0.9, 0.8, 0.9, 0.5], y, 1 - y)
    >>> annotators(Votes.from_matrix(cells, annotators=["ann", "bob", "cyd", "dan"]))
    4 annotators, 100 rows, 2 classes
    annotator  answers  accuracy  95 % interval
    dan        100      0.47      0.36–0.59      may answer at random; contradicts the consensus most
    bob        100      0.74      0.63–0.84
    ann        100      0.84      0.73–0.92
    cyd        100      0.90      0.77–0.97
    Accuracies are estimates from the answers alone: they assume that annotators err independently.
    With so few annotators the intervals are too narrow: each treats the other accuracies as known.
    Two answers to a row agree in 60.5 % of cases. ...
    """
    if not isinstance(votes, Votes):
        raise TypeError(f"votes: expected Votes, got {type(votes).__name__}; make them with Votes.from_table.")
    if not len(votes.row):
        raise ValueError("votes: there is no answer.")
    matrix = None
    if probabilities is not None:
        matrix, votes = _with_columns(probabilities, votes)
    model = fit_annotators(votes, matrix)
    posterior = frozen(model.posterior)
    consensus = votes.classes[posterior.argmax(axis=1)].astype(object)
    if matrix is None:
        consensus[votes.sizes == 0] = None
    people = len(votes.annotators)
    answers = np.zeros(0, dtype=int) if votes.annotator is None else np.bincount(votes.annotator, minlength=people)
    accuracy, lower, upper = _accuracies(votes, posterior, _comparable(votes, with_model=matrix is not None))
    return Annotators(
        votes.annotators,
        frozen(answers),
        frozen(accuracy),
        frozen(lower),
        frozen(upper),
        _flags(votes, model, answers, accuracy, (lower, upper)),
        krippendorff_alpha(votes),
        votes.classes,
        frozen(consensus),
        posterior,
        model,
    )


def _with_columns(probabilities: Any, votes: Votes) -> tuple[Floats, Votes]:
    """Probabilities and votes over the same labels; a frame's columns are matched by name."""
    matrix, names = as_probabilities(probabilities), frame_columns(probabilities)
    check_length("probabilities", len(matrix), len(votes), "rows of votes")
    sets = as_candidates(votes.candidates(missing="empty"), matrix.shape[1], names)
    if names is not None:
        matrix = as_probabilities(probabilities, n_classes=len(sets.classes), classes=sets.classes)
    return matrix, votes.recode(sets.vocabulary)


def _right(votes: Votes, posterior: Floats) -> Floats:
    """The probability that each answer is right."""
    named = posterior[votes.row, votes.label]
    return named if votes.against is None else np.where(votes.against, 1 - named, named)


def _comparable(votes: Votes, *, with_model: bool) -> Bools:
    """Which annotators are one of three such that every two answered a common row; a model answers every row."""
    if votes.annotator is None:
        return np.zeros(0, dtype=bool)
    people = len(votes.annotators)
    cells = np.unique(votes.row * people + votes.annotator)
    row, who = np.divmod(cells, people)
    given = sparse.csr_array((np.ones(len(cells)), (row, who)), shape=(len(votes), people))
    heads = np.bincount(row, minlength=len(votes))
    found: Bools = np.bincount(who, heads[row] >= (2 if with_model else 3), people) > 0
    others = np.flatnonzero(~found)  # on each row they have at most one other annotator beside them
    if with_model or not len(others):
        return found
    met = (given[:, others].T @ given > 0).astype(float)
    met[np.arange(len(others)), others] = 0
    met.eliminate_zeros()
    both = met @ given.T  # how many of an annotator's partners answered each row: two of them share that row
    found[others] = both.max(axis=1).toarray().ravel() > 1 if both.nnz else False
    return found


def _accuracies(votes: Votes, posterior: Floats, compared: Bools) -> tuple[Floats, Floats, Floats]:
    """Each annotator's accuracy with an interval, from the counts that doubtful answers leave.

    Of n answers, right with probabilities r, the observed information about their mean a is that of
    n·(1 − mean r(1 − r)/(a(1 − a))) answers known to be right or wrong (Louis, 1982); there, a counts one right and
    one wrong answer more, so that it is not 0 or 1.
    """
    n = len(votes.annotators)
    if votes.annotator is None:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    weight = np.ones(len(votes.row)) if votes.weight is None else votes.weight
    right = _right(votes, posterior)
    total, squares, good, doubt = (
        np.bincount(votes.annotator, values, n)
        for values in (weight, weight**2, weight * right, weight * right * (1 - right))
    )
    some = np.maximum(total, np.finfo(float).tiny)
    accuracy = np.where(compared, np.minimum(good / some, 1.0), np.nan)
    answers = total**2 / np.maximum(squares, np.finfo(float).tiny)
    near = (answers * np.nan_to_num(accuracy) + 1) / (answers + 2)
    counts = answers * np.clip(1 - doubt / some / (near * (1 - near)), 0, 1)
    bounds = [
        clopper_pearson(share * count, count, 0.05) if count and known else (0.0, 1.0)
        for share, count, known in zip(accuracy.tolist(), counts.tolist(), compared.tolist(), strict=True)
    ]
    lower, upper = np.array(bounds).reshape(-1, 2).T
    return accuracy, lower, upper


def _flags(
    votes: Votes, model: AnnotatorModel, answers: Ints, accuracy: Floats, bounds: tuple[Floats, Floats]
) -> tuple[tuple[str, ...], ...]:
    """Remarks on each annotator; with few answers, only that they are few."""
    if votes.annotator is None:
        return ()
    (lower, upper), n, k = bounds, len(votes.annotators), votes.n_classes
    overall = float(_right(votes, model.posterior).mean())
    chance = _chance(votes, model.posterior)
    answer = votes.label if votes.against is None else votes.label + k * votes.against
    same = np.bincount(np.unique(votes.annotator * 2 * k + answer) // (2 * k), minlength=n) == 1
    odds = np.log((model.posterior[votes.row] * model.parameters.confusion[:, answer].T).sum(axis=1))
    same &= np.bincount(votes.annotator, odds, n) < np.log(_ODD)
    enough = answers >= _FEW
    below = enough & (upper < overall)
    guess, worse = below & (lower <= chance) & (chance <= upper), below & (upper < chance)
    worst = int(np.argmin(np.where(below, accuracy, np.inf))) if below.any() else -1
    remarks = {
        "few answers": ~enough,
        "not comparable, because too few others answered the same rows": enough & np.isnan(accuracy),
        "always the same answer": enough & same,
        "may answer at random": guess,
        "worse than chance": worse,
        "contradicts the consensus most": np.arange(n) == worst,
    }
    return tuple(tuple(text for text, holds in remarks.items() if holds[j]) for j in range(n))


def _chance(votes: Votes, posterior: Floats) -> Floats:
    """How often each annotator would be right if the answers did not depend on the rows."""
    n, k = len(votes.annotators), votes.n_classes
    who = np.zeros(0, dtype=int) if votes.annotator is None else votes.annotator
    shares = np.zeros((n, k))
    for label in range(k):  # the share of each label among the rows that an annotator answers
        shares[:, label] = np.bincount(who, posterior[votes.row, label], n)
    shares /= np.maximum(np.bincount(who, minlength=n), 1)[:, None]
    right = shares[who, votes.label]
    if votes.against is not None:
        right = np.where(votes.against, 1 - right, right)
    chance: Floats = np.bincount(who, right, n) / np.maximum(np.bincount(who, minlength=n), 1)
    return chance


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else value
