"""`diagnose`: do the data refute what was declared about contamination? It can refute, and never confirm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from setwise._arrays import Bools
from setwise._types import Candidates, ProbabilityRows
from setwise.contamination.assumption import Assumption, AssumptionLike, as_assumption
from setwise.contamination.deficit_tests import Deficit, RankedRows
from setwise.contamination.inclusion import check_miss_rate, check_separable, maximise, on_the_same_columns
from setwise.errors import InputError, Remedy
from setwise.evidence.score_table import ScoreTable, Table
from setwise.findings import format_p_value
from setwise.labels.vocabulary import Classes
from setwise.ranks import as_level, clopper_pearson
from setwise.scores import LAC

_SHARES = {"rank": 1 / 2, "category": 1 / 6, "label": 1 / 6, "size": 1 / 6}
"""How the level is divided among the families of tests; inside a family it is divided equally."""
_POWER = 0.8
_LEVELS = {"uniform": 0.1, "class": 0.1, "matrix": 0.05}
"""True assumptions were refuted in at most 5 of 100 samples at these (`benchmarks/gate.py`)."""
_MEASURED = {"uniform": (5, 284), "class": (2, 24), "matrix": (5, 72)}
"""In how many of 100 samples at most, over how many settings."""
_NAMES = {
    "uniform": "Uniform contamination",
    "class": "Class-conditional contamination (with an estimated matrix, so approximately)",
    "matrix": "The declared inclusion matrix",
}


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """Whether the data refute the declared contamination, and where.

    Attributes
    ----------
    assumption
        ``"uniform"``, ``"class"`` (a matrix estimated from the same rows) or ``"matrix"``.
    p_value
        Of all tests together. Where the assumption is true it lies below `level` in at most 5 of 100 samples at the
        default level, as measured: the tests are many, depend on each other and are adjusted for their number.
    inclusion
        p̂ = (mean |S| − 1 + η)/(K − 1), the share of wrong labels that are candidates.
    findings
        The strongest test of each family (rank, category, label, size), p-values adjusted for all that were
        made; the first one is the strongest of all.
    rate, lower, upper
        How often the label at each predicted rank is a candidate, with exact 95 % binomial intervals.
    floor
        What each of these rates may not lie below: p̂, or for a matrix the mean of min M over the labels.
    detectable
        The smallest excess inclusion of the top label, beyond what these rows may hide, that so many would show
        in 80 of 100 cases; None where even a top label that is always a candidate would not show. An excess
        hides where as many truths lie at low ranks as it takes from them: candidates cannot tell the two apart.
    sizes
        The law of |S| − 1 beside Binomial(K − 1, p̂): a description that refutes nothing, since
        inclusions may depend on each other.
    """

    assumption: str
    n: int
    n_classes: int
    level: float
    p_value: float
    inclusion: float
    findings: tuple[Deficit, ...]
    rate: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    floor: tuple[float, ...]
    detectable: float | None
    sizes: dict[str, float]

    @property
    def refuted(self) -> bool:
        """Whether the p-value lies below the level."""
        return self.p_value < self.level

    @property
    def strongest(self) -> Deficit:
        """The test with the smallest adjusted p-value."""
        return self.findings[0]

    @property
    def sentence(self) -> str:
        """The answer in a sentence or two."""
        name = _NAMES[self.assumption]
        p = format_p_value(self.p_value)
        if self.refuted:
            return f"{name} is contradicted by {self.n:,} rows ({p}{self._alarms()}): {self._reason()}."
        if self.detectable is None:
            seen = "They are too few to show it even if the most probable label were always a candidate"
        else:
            excess = f"An excess of {100 * self.detectable:.2g} points at the most probable label"
            seen = f"{excess} would show, unless true labels at low ranks offset it"
        return f"The {self.n:,} rows do not contradict {name[0].lower()}{name[1:]} ({p}). {seen}."

    def _alarms(self) -> str:
        """How often a true assumption was refuted, where that was measured at this level or a larger one."""
        if self.level > _LEVELS[self.assumption]:
            return f"; level {self.level:g}"
        samples, settings = _MEASURED[self.assumption]
        return f"; where it holds, at most {samples} of 100 samples are refuted, measured over {settings} settings"

    def _reason(self) -> str:
        one, uniform = self.strongest, self.assumption == "uniform"
        if one.family == "size":
            what = "candidate sets hold" if uniform else "corrected candidate counts are"
            other = "elsewhere" if one.where != "all rows" else "expected"
            return f"{what} {one.seen:.3g} labels on average ({one.where}) and {one.expected:.3g} {other}"
        if uniform:
            what = (
                f"{one.where} is a candidate" if one.family == "label" else f"labels at {one.where} are candidates"
            )
            return f"{what} in {one.seen:.2%} of cases, below the floor of {one.expected:.2%}"
        return f"it gives {one.where} a share {one.seen:.2g} of the truths, which cannot be negative"

    def __repr__(self) -> str:
        top = ", ".join(f"{rate:.2f}" for rate in self.rate[:8]) + (", …" if self.n_classes > 8 else "")
        spread = f"{self.sizes['variance']:.3g}, Binomial would have {self.sizes['binomial_variance']:.3g}"
        lines = [
            self.sentence,
            f"Inclusion by predicted rank: {top}; floor {self.floor[0]:.2f}.",
            *(
                f"Test by {one.family}: {one.where}, adjusted {format_p_value(one.p_value)}."
                for one in self.findings
            ),
            f"|S| − 1: mean {self.sizes['mean']:.3g}, variance {spread} (described, not tested).",
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The diagnosis as plain data, ready for JSON."""
        return asdict(self) | {"refuted": self.refuted, "sentence": self.sentence}


class AssumptionRefuted(InputError):  # noqa: N818 - a verdict, and a public name
    """The data speak against the contamination that was declared; `diagnosis` says how.

    >>> issubclass(AssumptionRefuted, ValueError)
    True
    """

    def __init__(self, diagnosis: Diagnosis) -> None:
        self.diagnosis = diagnosis
        super().__init__(
            diagnosis.sentence,
            Remedy("strategy", "max", "without this premise"),
            Remedy("strategy", "rectified", "with some labels verified"),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.diagnosis,)


def diagnose(
    probabilities: ProbabilityRows,
    candidates: Candidates,
    assume: AssumptionLike = "uniform",
    *,
    classes: Classes = None,
    miss_rate: float = 0.0,
    level: float | None = None,
) -> Diagnosis:
    """Asks whether the data refute the declared contamination; the answer is "refuted" or "not refuted".

    Parameters
    ----------
    probabilities
        A model's probabilities (n, K) for rows on which it was not trained.
    candidates
        The candidate sets of these rows.
    assume
        ``"uniform"``: every wrong label enters with the same probability; ``"class"``: with a probability that
        depends on the true class, estimated as by `estimate_inclusion`; or the K × K matrix M of these
        probabilities, M_kl = P(l ∈ S | y = k), whose diagonal is 1 − η.
    classes
        The labels in the order of the columns, where candidates are not positions or a mask.
    miss_rate
        η: how often the truth is absent from its candidate set.
    level
        What the p-value is held against. None is 0.10, and 0.05 for a matrix that is given: a true assumption was
        then refuted in at most 5 of 100 samples in each of 380 settings (``"class"``: with a calibrated model).

    Notes
    -----
    Four families of tests share the level: labels by predicted rank (one by one, and pooled from some rank
    on), the same within predicted classes and bins of confidence, labels over all rows, and the mean size of S,
    which may not differ between categories. What refutes is "below the floor", never "not flat": a weak
    model spreads the truth over all ranks. Under ``"uniform"`` each count is held against its law given |S| if
    wrong labels are exchangeable (hypergeometric counts, exact), and against a studentised test that lets
    inclusions depend on each other (asymptotic, corrected for skewness); the larger p-value counts. The
    size test is Welch's. With a matrix only the studentised test exists; with an estimated one its error enters
    by the delta method, as if the posterior were right, so that the answer is approximate. It is weak, too:
    K² numbers fitted to a few hundred rows leave little to contradict, and where ``"uniform"`` is refuted at
    once ``"class"`` may pass in silence. Rows count as independent: clustered ones are refuted too easily.

    What it cannot see: annotators who share the model's confusions (the wrong top label is nearly always a
    candidate, the rest uniform). Only a model that also ranks the labels below its top, or knows when it is
    wrong, gives them away. Ten classes, accuracy 0.84, p = 0.7, 6,000 rows (`benchmarks/gate.py`): with a
    calibrated model it was refuted in 100 of 100 runs; with one that knows its top label alone in 6, no more than
    by chance, because no rate lies below the floor then. Sets corrected for uniform contamination at
    0.90 cover about 0.79 there. "Not refuted" does not mean that the assumption is true.

    Examples
    --------
    >>> import numpy as np
    >>> from setwise import diagnose
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet(np.full(5, 0.2), size=1000)
    >>> y = (P.cumsum(axis=1) < rng.random((1000, 1))).sum(axis=1).clip(max=4)
    >>> S = (np.arange(5) == y[:, None]) | (rng.random((1000, 5)) < 0.3)
    >>> diagnose(P, S).refuted
    False
    >>> diagnose(P, S | (P > 0.1)).refuted  # annotators who keep whatever looks plausible
    True
    """
    P, sets = on_the_same_columns(probabilities, candidates, classes)
    mask, declared = sets.to_mask(), as_assumption(assume, P.shape[1])
    if declared.kind == "class" and declared.matrix is None:
        check_miss_rate(miss_rate)
        declared = replace(declared, matrix=maximise(P, mask, miss_rate), estimated=True)
    return examine(ScoreTable(LAC(), P), mask, declared, miss_rate, level, classes=sets.classes.tolist())


def examine(
    scores: Table,
    mask: Bools,
    assume: Any = "uniform",
    miss_rate: float = 0.0,
    level: float | None = None,
    *,
    classes: Sequence[Any] | None = None,
) -> Diagnosis:
    """As `diagnose`, from scores (n, K) of which a smaller one is more plausible, and a mask of candidates.

    Scores are no posterior, so a class-conditional assumption comes with its matrix, given or estimated.
    """
    n, n_classes = mask.shape
    check_miss_rate(miss_rate)
    if n < 2:
        raise ValueError(f"candidates: {n} row; nothing can be tested on fewer than two.")
    names = list(range(n_classes)) if classes is None else list(classes)
    declared = as_assumption(assume, n_classes)
    _check_matrix(declared, miss_rate, names)
    kind = "matrix" if declared.kind == "class" and not declared.estimated else declared.kind
    alpha = _LEVELS[kind] if level is None else float(as_level(level, "level"))
    rows = RankedRows(scores, mask, declared, miss_rate, names)
    families = [rows.by_rank(), rows.by_category(), rows.by_label(), rows.by_size()]
    strongest = [_adjust(family) for family in families if family]
    hits, floor = rows.inclusion_by_rank()
    intervals = [clopper_pearson(int(count), n, 0.05) for count in hits]
    inclusion = float((mask.sum() / n - 1 + miss_rate) / (n_classes - 1))
    excess = rows.detectable(alpha * _SHARES["rank"] / len(families[0]), _POWER)
    others = mask.sum(axis=1) - 1
    return Diagnosis(
        assumption=kind,
        n=n,
        n_classes=n_classes,
        level=alpha,
        p_value=min(one.p_value for one in strongest),
        inclusion=inclusion,
        findings=tuple(sorted(strongest, key=lambda one: one.p_value)),
        rate=tuple((hits / n).tolist()),
        lower=tuple(low for low, _ in intervals),
        upper=tuple(high for _, high in intervals),
        floor=tuple(floor.tolist()),
        detectable=excess if excess <= 1 - inclusion else None,
        sizes={
            "mean": float(others.mean()),
            "variance": float(others.var(ddof=1)),
            "binomial_variance": (n_classes - 1) * inclusion * (1 - inclusion),
        },
    )


def _adjust(family: list[Deficit]) -> Deficit:
    """The strongest test of a family, its p-value multiplied by all that were made and by the family's share."""
    one = min(family, key=lambda deficit: deficit.p_value)
    return replace(one, p_value=min(1.0, one.p_value * len(family) / _SHARES[one.family]))


def _check_matrix(declared: Assumption, miss_rate: float, names: list[Any]) -> None:
    """Whether there is something to test, and a matrix that can be inverted where one is needed."""
    if declared.kind == "uniform":
        return
    if declared.kind == "nothing":
        raise ValueError("assume: 'nothing' cannot be refuted; use 'uniform', 'class' or a K × K matrix.")
    M = declared.matrix
    if M is None:
        raise ValueError("assume: 'class' needs its matrix here; setwise.estimate_inclusion finds one.")
    if miss_rate and not np.allclose(np.diag(M), 1 - miss_rate, atol=1e-6):
        raise ValueError(f"assume: the diagonal of the matrix is not 1 − miss_rate = {1 - miss_rate:g}.")
    check_separable(M, names)
