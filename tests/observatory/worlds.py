"""Worlds with known truth: how rows, probabilities, candidates, checks, groups and weights are drawn.

A world is a finite population. Calibration rows are drawn from it with replacement, so that the probability of an
event for a new row is a sum over the population, without an error of its own. Where a premise is about the law of
candidates given the row (uniform or class-conditional contamination, a calibrated model), labels and candidates are
drawn anew for every sample, and the truth is averaged over its law.

The tables and `holds` say which premises, by their names in `setwise.guarantees.PREMISES`, are true in which world.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

EVERYWHERE = {
    "same_source",
    "same_groups",
    "weights",
    "classes",
    "unseen",
    "same_digits",
    "same_candidates",
    "independent_rows",
    "labels_unseen",
    "unseen_by_annotators",
    "verified_right",
    "none_right",
}
"""Premises that hold unless a breach takes them away."""

CONTAMINATION = {
    "none": {"uniform", "class", "inclusion", "calibrated", "single_by_design", "truth_below_mean"},
    "uniform:0.1": {"uniform", "class", "calibrated"},
    "uniform:0.3": {"uniform", "class", "calibrated"},
    "uniform:0.7": {"uniform", "class", "calibrated"},
    "class": {"class"},
    "confusing": set(),
    "sizes": set(),
    "adversarial": set(),
    "decoy": set(),
    "harmless": {"truth_below_mean"},
}
"""What each way to add false labels satisfies; the truth is always a candidate."""

CHECKS = {
    "none": set(),
    "random": {"verified_at_random"},
    "few": {"verified_at_random"},
    "half": {"verified_at_random"},
    "all": {"verified_at_random"},
    "chances": {"known_chances"},
    "easy": set(),
    "singletons": set(),
}
"""How rows are chosen to be verified."""

MODELS = {
    "right": {"calibrated"},
    "overconfident": set(),
    "poor": set(),
    "tenths": set(),
    "leaves": set(),
    "saturated": set(),
    "constant": set(),
    "two kinds": set(),
    "long tail": {"calibrated"},
}
"""What the model's probabilities are worth: only the first are those of the truth."""

BREACHES: dict[str, set[str]] = {
    "": set(),
    "annotators": {
        "same_candidates",
        "uniform",
        "class",
        "calibrated",
        "inclusion",
        "single_by_design",
        "truth_below_mean",
    },
    "environment": {"independent_rows"},
    "float32": set(),
    "float64": set(),
    "upcast": {"same_digits"},
    "decimals": {"same_digits"},
    "seen": {"unseen"},
    "tail": {"classes"},
    "short tail": set(),
    "blank": {"missing_at_random", "calibrated"},
    "unnamed": {"missing_at_random", "uniform", "class", "calibrated", "inclusion"},
    "lost": {"truth_is_candidate", "uniform", "class", "calibrated", "inclusion", "truth_below_mean"},
    "lost as declared": {"uniform", "class", "calibrated", "inclusion", "truth_below_mean"},
}
"""Which premises a breach takes away."""

VOTES: dict[str, set[str]] = {
    "votes": {"independent", "same_annotators"},
    "votes, ambiguous": {"answers_as_truth", "same_annotators", "independent"},
    "votes, copied": {"same_annotators"},
    "votes, others": {"independent"},
    "votes, spammer": {"independent", "same_annotators"},
    "votes, one each": {"independent", "same_annotators"},
    "votes, 1 to 50": {"independent", "same_annotators"},
    "votes, one voice": {"same_annotators"},
}
"""How candidates that are votes arise, and what is true there."""

SEVERAL: dict[str, Any] = {
    "several, all": "all",
    "several, one": "one",
    "several, half": 0.5,
    "several, all, some without": "all",
}
"""How many of a row's right labels a set must contain; right are those that are candidates elsewhere."""

COARSER = {"float32", "float64", "upcast", "decimals"}
"""Breaches that change the precision of the probabilities of new rows, whose sets may then be larger."""


@dataclass(frozen=True)
class Rows:
    """A calibration sample, with its truth."""

    probabilities: np.ndarray
    truth: np.ndarray
    candidates: np.ndarray
    verified: np.ndarray | None = None
    chance: np.ndarray | None = None
    category: np.ndarray | None = None
    weight: np.ndarray | None = None
    group: np.ndarray | None = None

    @property
    def refuted(self) -> frozenset[str]:
        """Premises that whoever is given these rows can see to be false."""
        found = set()
        if self.verified is not None:
            rows = np.flatnonzero(~np.isnan(self.verified))
            if (~self.candidates[rows, self.truth[rows]] & self.candidates[rows].any(axis=1)).any():
                found |= {"truth_is_candidate", "labels_right"}
        if self.chance is not None and np.ptp(self.chance) > 0:
            found.add("verified_at_random")
        return frozenset(found)


@dataclass(frozen=True)
class Population:
    """All rows there are. `share` is how likely each is to be the new one; `group_share` one of a random group.

    `fixed` populations have one truth and one candidate set per row; in others both are drawn anew.
    """

    seen: np.ndarray
    asked: np.ndarray
    posterior: np.ndarray
    truth: np.ndarray
    candidates: np.ndarray
    later: np.ndarray
    easy: np.ndarray
    category: np.ndarray
    share: np.ndarray
    fixed: bool = True
    contaminate: Callable[..., np.ndarray] | None = None
    weight: np.ndarray | None = None
    group: np.ndarray | None = None
    group_share: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.truth)

    def drawn(self, rng: np.random.Generator, n: int, checks: str = "none") -> Rows:
        """A sample of n rows (n groups where there are groups)."""
        if self.group is not None:
            return self._drawn_groups(rng, n)
        rows = rng.integers(len(self), size=n)
        truth, sets = self.truth[rows], self.candidates[rows]
        if not self.fixed:
            truth = labels_of(rng, self.posterior[rows])
            sets = self.contaminate(rng, self.seen[rows], truth)
        verified, chance = checked(rng, truth, sets, self.easy[rows], checks)
        weight = None if self.weight is None else self.weight[rows]
        return Rows(self.seen[rows], truth, sets, verified, chance, self.category[rows], weight)

    def _drawn_groups(self, rng: np.random.Generator, n: int) -> Rows:
        order = np.argsort(self.group, kind="stable")
        sizes = np.bincount(self.group)
        starts = np.append(0, np.cumsum(sizes))
        which = rng.integers(len(sizes), size=n)
        rows = np.concatenate([order[starts[g] : starts[g + 1]] for g in which])
        group = np.repeat(np.arange(n), sizes[which])
        return Rows(
            self.seen[rows], self.truth[rows], self.candidates[rows], group=group, category=self.category[rows]
        )

    def new(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Truth and candidates of the rows as new rows."""
        if self.fixed:
            return self.truth, self.later
        truth = labels_of(rng, self.posterior)
        return truth, self.contaminate(rng, self.asked, truth)


def labels_of(rng: np.random.Generator, posterior: np.ndarray) -> np.ndarray:
    """One label per row, drawn from its law."""
    return np.minimum(
        (posterior.cumsum(axis=1) < rng.random((len(posterior), 1))).sum(axis=1), posterior.shape[1] - 1
    )


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def one_hot(y: np.ndarray, k: int) -> np.ndarray:
    return np.arange(k) == y[:, None]


def inclusion_matrix(k: int) -> np.ndarray:
    """P(l ∈ S | y = k) of the class-conditional worlds."""
    matrix = np.random.default_rng(7).uniform(0.0, min(0.6, 6 / k), (k, k))
    np.fill_diagonal(matrix, 1.0)
    return matrix


def contaminated(kind: str, k: int) -> Callable[..., np.ndarray]:
    """How false labels become candidates, as a function of a generator, probabilities and truths."""
    matrix = inclusion_matrix(k)

    def made(rng: np.random.Generator, p: np.ndarray, y: np.ndarray) -> np.ndarray:
        own, u = one_hot(y, k), rng.random(p.shape)
        of_truth = p[np.arange(len(y)), y][:, None]
        top = one_hot(p.argmax(axis=1), k)
        if kind == "none":
            return own
        if kind.startswith("uniform:"):
            return own | (u < float(kind.partition(":")[2]))
        if kind == "class":
            return own | (u < matrix[y])
        if kind == "confusing":
            return own | (u < np.clip(0.3 * k * p, 0, 1))
        if kind == "sizes":
            return own | (u < 0.3 * (1.6 - 1.2 * p.max(axis=1, keepdims=True)))
        if kind == "adversarial":
            easy = of_truth >= np.median(of_truth)
            return own | (easy & (p > of_truth)) | (~easy & top)
        if kind == "decoy":
            return own | top
        if kind == "harmless":
            return own | ((p < of_truth) & (u < 0.4))
        raise ValueError(kind)

    return made


def checked(
    rng: np.random.Generator, truth: np.ndarray, sets: np.ndarray, easy: np.ndarray, how: str
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Verified labels (NaN where nobody looked), and the chances where they are told."""
    if how == "none":
        return None, None
    n, chance = len(truth), None
    if how in {"random", "few", "half", "all"}:
        m = {"random": max(n // 4, min(n, 10)), "few": min(n, 20), "half": (n + 1) // 2, "all": n}[how]
        chosen = np.zeros(n, dtype=bool)
        chosen[rng.permutation(n)[:m]] = True
    elif how == "chances":
        chance = np.where(easy, 0.5, 0.02)
        chosen = rng.random(n) < chance
    elif how == "easy":
        chosen = easy & (rng.random(n) < 0.5)
    else:
        chosen = sets.sum(axis=1) == 1
    return np.where(chosen, truth, np.nan), chance


def answer_law(cell: Any, *, new: bool = False) -> np.ndarray:
    """P(answer = l | truth = k): people are right in 7 of 10 cases; the others who answer new rows in 3.

    Of three answers a spammer gives one, at random.
    """
    right = 0.3 if new and cell.shape == "votes, others" else 0.7
    right *= 2 / 3 if new and cell.shape == "votes, spammer" else 1
    return right * np.eye(cell.k) + (1 - right) / cell.k


def answered(cell: Any, rng: np.random.Generator, rows: Rows) -> np.ndarray:
    """Three answers per row, or as many as the shape says; missing ones are −1."""
    people = {"votes, one each": 1, "votes, 1 to 50": 50}.get(cell.shape, 3)
    ambiguous = cell.shape == "votes, ambiguous"
    law = rows.probabilities if ambiguous else answer_law(cell)[rows.truth]
    answers = np.stack([labels_of(rng, law) for _ in range(people)], axis=1)
    if cell.shape == "votes, copied":
        answers[:, 1] = answers[:, 0]
    if cell.shape == "votes, one voice":
        answers[:] = answers[:, :1]
    if cell.shape == "votes, spammer":
        answers[:, 2] = rng.integers(0, cell.k, len(answers))
    if cell.shape == "votes, 1 to 50":
        given = rng.random(answers.shape).argsort(axis=1) < rng.integers(1, 51, len(answers))[:, None]
        answers = np.where(given, answers, -1)
    return answers


def probabilities(
    rng: np.random.Generator, size: int, k: int, model: str, score: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What the model gives, the law of the truth, and which rows are easy."""
    if model == "two kinds":  # in a third of rows the truth is nearly impossible and a decoy likely
        easy = rng.random(size) >= 0.3
        own = np.where(easy, rng.uniform(0.6, 0.95, size), rng.uniform(0.0, 0.05, size))
        p = np.full((size, k), 1.0)
        p[:, 1] = 1 if k == 2 else 9.0 * (k - 2)
        p[:, 0] = 0
        p *= ((1 - own) / p.sum(axis=1))[:, None]
        p[:, 0] = own
        law = one_hot(np.zeros(size, dtype=int), k).astype(float)
        turn = rng.integers(0, k, size)  # so that every class occurs
        columns = (np.arange(k) + turn[:, None]) % k
        return np.take_along_axis(p, columns, 1), np.take_along_axis(law, columns, 1), easy
    z = 2.0 * rng.normal(size=(size, k))
    if model == "long tail":  # the last class is seen a hundred times less often than the first
        z += np.log(np.geomspace(1, 0.01, k))
    law = softmax(z)
    if score == "unit":
        given = 1 / (1 + np.exp(-z))
        return given, law, given.max(axis=1) > 0.9
    given = {
        "right": lambda: law,
        "long tail": lambda: law,
        "overconfident": lambda: softmax(3 * z),
        "poor": lambda: softmax(0.5 * z + rng.normal(size=z.shape)),
        "tenths": lambda: rng.multinomial(10, law) / 10,
        "leaves": lambda: law,
        "constant": lambda: np.tile((np.arange(k) + 1.0) / (np.arange(k) + 1.0).sum(), (size, 1)),
        "saturated": lambda: np.where(law < 0.05, 0, law) / np.where(law < 0.05, 0, law).sum(axis=1, keepdims=True),
    }[model]()
    if model == "leaves":  # a tree: the rows of a leaf share their probabilities, thirds of a few labels
        leaf = rng.integers(0, 12, size)
        given = (rng.multinomial(3, softmax(2 * rng.normal(size=(12, k)))) / 3)[leaf]
        law = 0.8 * given + 0.2 * law
    top = given.max(axis=1)
    return given, law, top >= np.quantile(top, 0.3)


def population(cell: Any, rng: np.random.Generator) -> tuple[Population, ...]:
    """The population of a cell; several, one for each sample, where rows depend on each other."""
    if cell.shape.startswith("groups"):
        return (_groups(cell, rng),)
    if cell.breach == "environment":
        easy, hard = (_rows(replace(cell, breach=""), rng, model) for model in ("right", "poor"))
        return easy, hard
    return (_rows(cell, rng, cell.model),)


def _rows(cell: Any, rng: np.random.Generator, model: str) -> Population:
    k, size = cell.k, 2000 if cell.score == "lac" else 1000
    given, law, easy = probabilities(rng, size, k, model, cell.score)
    add = contaminated(cell.contamination, k)
    if cell.breach == "blank":  # a fifth of rows come from where the model is arbitrary, and there candidates lack
        odd = rng.random(size) < 0.2
        law = np.where(odd[:, None], 1 / k, law)
    truth = labels_of(rng, law)
    if cell.breach == "unnamed":  # the model doubts the last class in its own rows, and knows all others
        truth = rng.integers(0, k, size)
        z = np.where((truth == k - 1)[:, None], np.arange(k) < k - 1, 3.0 * one_hot(truth, k))
        given = softmax(z + 0.3 * rng.normal(size=(size, k)))
    sets = add(rng, given, truth)
    later = sets
    if cell.breach == "annotators":  # of new rows the hard ones get second labels, here the easy ones
        hard = ~easy
        second = one_hot(np.where(given.argmax(axis=1) == truth, (truth + 1) % k, given.argmax(axis=1)), k)
        own = one_hot(truth, k)
        sets, later = own | (second & easy[:, None]), own | (second & hard[:, None])
    if cell.breach in {"lost", "lost as declared"}:  # where the model doubts the truth most, it is no candidate
        own = given[np.arange(size), truth]
        gone = own <= np.quantile(own, 0.15 if cell.breach == "lost" else cell.miss_rate * (1 - 1 / size))
        wrong = np.where(given.argmax(axis=1) == truth, (truth + 1) % k, given.argmax(axis=1))
        sets = np.where(gone[:, None], one_hot(wrong, k), sets)
        later = sets
    seen, asked = _in_precisions(cell.breach, given)
    if cell.breach == "seen":
        seen = 0.3 * given + 0.7 * one_hot(truth, k)
    contaminate = add
    if cell.breach == "blank":
        gone = odd & (rng.random(size) < 0.9)
        where = {row.tobytes(): True for row in given[gone]}

        def contaminate(rng: np.random.Generator, p: np.ndarray, y: np.ndarray) -> np.ndarray:
            blank = np.fromiter((row.tobytes() in where for row in p), dtype=bool, count=len(p))
            return add(rng, p, y) & ~blank[:, None]

        sets = sets & ~gone[:, None]
        later = sets | (gone[:, None] & (cell.missing == "full"))
    if cell.breach == "unnamed":  # the last class is never named: its rows are blank
        sets = sets & (truth != k - 1)[:, None]
        sets[:, -1] = False
    category = (given[:, 0] * 1e6).astype(int) % 2 + (~easy)
    share = np.full(size, 1 / size)
    weight = None
    if cell.shape == "weights":
        weight = np.exp(2 * given[:, 0] - 1.5 * given[:, 1])
        share = weight / weight.sum()
    return Population(
        seen, asked, law, truth, sets, later, easy, category, share, cell.fixed, contaminate, weight=weight
    )


def _in_precisions(breach: str, given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The probabilities as they are calibrated on, and as new rows bring them."""
    single = given.astype(np.float32)
    return {
        "float32": (given, single),
        "float64": (single, given),
        "upcast": (given, single.astype(np.float64)),  # float32 that came through a list or a frame
        "decimals": (given, given.round(6)),  # written to a text file
    }.get(breach, (given, given))


def _groups(cell: Any, rng: np.random.Generator) -> Population:
    """Groups; informative sizes: a tenth of them are large and hard."""
    k, count = cell.k, 200
    if cell.shape == "groups, informative":
        large = rng.random(count) < 0.1
        sizes = np.where(large, 40, 1)
    else:
        large = rng.random(count) < 0.3
        sizes = rng.integers(1, 6, count)
    group = np.repeat(np.arange(count), sizes)
    hard, size = np.repeat(large, sizes), len(group)
    shift = rng.normal(size=(count, k))[group]
    law = softmax(1.5 * rng.normal(size=(size, k)) + shift)
    truth = labels_of(rng, law)
    given = softmax(np.log(law) + np.where(hard, -4.0, 2.0)[:, None] * one_hot(truth, k))
    sets = contaminated(cell.contamination, k)(rng, given, truth)
    of_group = 1 / sizes[group] / count
    return Population(
        given,
        given,
        one_hot(truth, k).astype(float),
        truth,
        sets,
        sets,
        ~hard,
        np.zeros(size, dtype=int),
        np.full(size, 1 / size),
        group=group,
        group_share=of_group,
    )


def holds(cell: Any) -> frozenset[str]:
    """The premises that are true in the world of a cell."""
    here = EVERYWHERE | {"missing_at_random", "misses_at_random", "miss_rate", "error_rate", "max_otherwise"}
    of_contamination = CONTAMINATION[cell.contamination]
    if cell.score == "unit" or "calibrated" not in MODELS[cell.model]:
        of_contamination = of_contamination - {"calibrated"}
    here |= of_contamination | CHECKS[cell.checks]
    if cell.assume in {"matrix", "nothing", "uniform"}:
        here.add("inclusion")
    here -= BREACHES[cell.breach]
    if not cell.breach.startswith("lost"):
        here |= {"truth_is_candidate", "labels_right"}
    if cell.n >= 2000:
        here.add("large_sample")
    if cell.shape.startswith("groups"):
        here.discard("independent_rows")
    if cell.shape.endswith("rows, votes"):
        here.add("same_annotators")
    if cell.shape in VOTES:
        here |= VOTES[cell.shape] | ({"recalibrated"} if cell.model in {"right", "overconfident"} else set())
        here -= {"truth_is_candidate", "labels_right"}
    return frozenset(here)
