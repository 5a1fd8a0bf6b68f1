"""``by="label"``: each class is calibrated on the rows whose true label it is, and guaranteed for such rows.

The threshold of class k is the ⌈(n_k + 1)(1−ε)⌉-th smallest of the scores s(x_i, k) of the n_k rows with label k.
These are exchangeable with the score of a new row of class k, so that P(k ∈ T | y = k) ≥ 1 − ε: a Mondrian
conformal predictor whose categories are the labels (Vovk, Gammerman and Shafer, 2005, section 4.5). With fewer rows
than the rank the threshold is +∞, and the class is in every set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from setwise._arrays import Floats, Ints
from setwise._lazy import lazy
from setwise.errors import InputError, Remedy
from setwise.evidence.evidence import Evidence
from setwise.guarantees import Guarantee
from setwise.labels.vocabulary import MISSING
from setwise.ranks import instances_needed
from setwise.strategies.base import Strategy
from setwise.strategies.judgement import Setting, judgement
from setwise.strategies.new_row_votes import check_answered, vote_rule
from setwise.strategies.rank_strategies import Max
from setwise.strategies.rectified import calibrate_verified
from setwise.strategies.threshold_rules import RankRule, format_law

_NAMED = 5  # classes that a sentence names


def calibrate_by_label(strategy: Strategy, evidence: Evidence, setting: Setting) -> LabelRule:
    """One rule for each class: from the verified rows alone, or from exact labels."""
    exact = not evidence.verified.any()
    _refuse_others(strategy, evidence, setting, exact=exact)
    rule = _of_each_class(strategy.name, evidence, setting, Max().calibrate if exact else calibrate_verified)
    alone = "The sets rest on the verified rows alone, and not on the candidates of other rows."
    return rule if exact or evidence.verified.all() else replace(rule, remarks=(alone,))


def vote_rule_by_label(evidence: Evidence, setting: Setting) -> LabelRule:
    """The same for new rows with votes of their own."""
    check_answered(evidence)
    return _of_each_class("answers of new rows", evidence, setting, vote_rule)


def _of_each_class(
    name: str, evidence: Evidence, setting: Setting, calibrate: Callable[[Evidence, Setting], RankRule]
) -> LabelRule:
    label: Any = evidence.label
    order = np.argsort(label, kind="stable")
    order = order[label[order] != MISSING]
    ends = np.searchsorted(label[order], np.arange(setting.n_classes), side="right")
    parts = (calibrate(evidence.rows(rows), setting) for rows in np.split(order, ends[:-1]))
    return LabelRule(name, evidence, setting, tuple(parts))


def _refuse_others(strategy: Strategy, evidence: Evidence, setting: Setting, *, exact: bool) -> None:
    """Refuses rows without true labels, and what a calibration by label would not use."""
    if exact and not (setting.single and evidence.precise and evidence.label is not None):
        raise InputError(
            "by: 'label' needs true labels, and candidate sets do not tell them",
            Remedy("verified", None, "for the true labels of rows drawn at random"),
            "leave out by",
        )
    if not strategy.adapts and not (exact and strategy.pooled):
        problem = f"by: 'label' ranks the scores of true labels, which strategy {strategy.name!r} does not"
        raise InputError(problem, Remedy("strategy", "auto"), "leave out by")
    if setting.top:
        problem = f"by: 'label' compares all labels, and rows store the top {setting.top} alone"
        raise InputError(problem, "pass the probabilities of all labels", "leave out by")
    if setting.assume.kind != "nothing":
        raise InputError("assume: 'label' uses true labels alone, which need no assumption", "leave it out")
    if exact and setting.miss_rate:
        raise InputError(
            "miss_rate: wrong labels stand among the rows of other classes, and 'label' cannot allow for them",
            Remedy("verified", None, "for the true labels of rows drawn at random"),
            "leave out by",
        )
    for name, given in {"sample_weight": evidence.weight, "verified_probability": evidence.chance}.items():
        if given is not None:
            raise InputError(f"{name}: rows of a class count alike where by is 'label'", "leave out one of both")
    if evidence.group is not None and not exact and not evidence.verified_by_group:
        raise InputError("groups: 'label' counts groups, and some are verified in part", "verify whole groups")


@dataclass(frozen=True)
class LabelRule:
    """K thresholds, each from the rows of one class, and a claim about the rows of any one class."""

    name: str
    evidence: Evidence
    setting: Setting
    parts: tuple[RankRule, ...]
    """The rule of each class."""
    remarks: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """How many rows there are, verified or not; of grouped rows how many groups."""
        return self.evidence.instances

    @lazy
    def counts(self) -> Ints:
        """How many rows (or groups) each class is calibrated on."""
        return np.array([part.n for part in self.parts])

    def threshold(self, level: Fraction, new_weight: Floats | None = None) -> Floats:  # noqa: ARG002 - unweighted
        """The (1, K) stored scores up to which labels are in the set."""
        return np.array([[float(part.threshold(level)) for part in self.parts]])

    def p_values(self, scores: Floats, new_weight: Floats | None = None) -> Floats:  # noqa: ARG002 - unweighted
        """The (n, K) p-values: each label ranks among the rows of its class."""
        values = np.empty(scores.shape)
        for k, part in enumerate(self.parts):
            values[:, k] = part.p_values(scores[:, [k]])[:, 0]
        return values

    def claim(self, level: Fraction) -> Guarantee:
        """The claim of split conformal prediction, within each class."""
        largest = self.parts[int(self.counts.argmax())]
        alone = self.evidence.group is None
        subject = f"a {'new ' * alone}row of any one true class{'' if alone else ' in a random new group'}"
        claims = tuple(replace(claim, subject=subject) for claim in largest.claimant.claims(largest, level))
        laws = [low for part in self.parts if (low := part.law_bound(level)) is not None]
        return Guarantee(
            self.name,
            self.setting.conformity_score,
            self.n,
            float(level),
            claims,
            "" if claims[0].refuted else format_law(min(laws, default=None), " for a class chosen beforehand"),
            (*self._about_classes(level), *self.remarks),
            unit=self.evidence.unit,
            verified=self.evidence.verified_instances,
        )

    def shortage(self, level: Fraction) -> str:
        """Why every label is in every set, and what would help; empty where this is not so."""
        if self.counts.max() >= (needed := fewest_rows(level)):
            return ""
        least = f"confidence {float(level):.12g} needs at least {needed:,} {self.evidence.unit} of a class"
        return f"{least}, and the largest has {self.counts.max():,}"

    def short_classes(self, level: Fraction) -> dict[Any, int]:
        """How many rows each class has that has too few for a threshold, fewest first."""
        order = np.argsort(self.counts, kind="stable")
        short = order[self.counts[order] < fewest_rows(level)].tolist()
        return {self._names[k]: int(self.counts[k]) for k in short}

    def _about_classes(self, level: Fraction) -> tuple[str, ...]:
        """Which classes are in every set, and which is the smallest."""
        smallest, short, unit = int(self.counts.argmin()), self.short_classes(level), self.evidence.unit
        last = f"The smallest class is {self._names[smallest]!r} with {self.counts[smallest]:,} {unit}."
        if not short:
            return (last,)
        named = format_classes([f"{name!r} ({n:,})" for name, n in short.items()])
        why = f"confidence {float(level):.12g} needs at least {fewest_rows(level):,} {unit} of a class"
        return (f"Too few {unit}: {named}. Every set contains such a class, because {why}.",)

    @property
    def _names(self) -> tuple[Any, ...]:
        return judgement(self.evidence, self.setting).classes or tuple(range(len(self.parts)))


def fewest_rows(level: Fraction) -> int:
    """How many rows a class needs for a threshold at a level below one."""
    return instances_needed(level) or 0


def format_classes(names: Sequence[str]) -> str:
    """The first of some classes, and how many more there are."""
    more = f" and {len(names) - _NAMED:,} more classes" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
