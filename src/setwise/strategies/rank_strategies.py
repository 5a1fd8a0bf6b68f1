"""The paper's strategies: `max`, `all`, `mean`, `min` and the mixture of the extremes.

With s the score, S_j the candidates of calibration row j and 1−ε the level, the threshold is the
⌈(|E|+1)(1−ε)⌉-th smallest element of E, where E is (equations of the paper in brackets)

    max   { max_{y∈S_j} s(x_j, y) }                                          [10]
    all   { s(x_j, y) : y ∈ S_j }                                            [12]
    mean  { Σ_{y∈S_j} s(x_j, y) / |S_j| }                                    [14]
    min   { min_{y∈S_j} s(x_j, y) }                                          [15]
    μ     { μ·min_{y∈S_j} s(x_j, y) + (1−μ)·max_{y∈S_j} s(x_j, y) }          [16]

Every strategy with one score e per row satisfies P(y ∈ T) ≥ 1−ε−ρ with ρ = P(s(x, y) > e(x, S)), for any
score: P(y ∈ T) ≥ P(e ≤ q) − P(s(x, y) > e).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from setwise._arrays import Floats
from setwise.errors import InputError, Remedy
from setwise.evidence.evidence import Evidence
from setwise.guarantees import Claim, Premise, Status
from setwise.ranks import as_fraction, clopper_pearson, rank
from setwise.strategies.base import StrategyTraits
from setwise.strategies.judgement import DELTA, Setting
from setwise.strategies.threshold_rules import RankRule


@dataclass(frozen=True)
class Max(StrategyTraits):
    """The largest candidate score counts: valid however the candidate sets were made (Theorem 1).

    With a miss rate η it runs at ε − η, and so promises 1 − ε.
    """

    name: ClassVar[str] = "max"
    pooled: ClassVar[bool] = True
    covers_candidates: ClassVar[bool] = True
    allows_for_misses: ClassVar[bool] = True
    several: ClassVar[bool] = True

    def calibrate(self, evidence: Evidence, setting: Setting) -> RankRule:
        """One score per row: the largest over its candidates."""
        rule = RankRule(self, evidence, setting, evidence.high, evidence.instances, setting.miss_rate)
        if setting.single and evidence.precise:
            return replace(rule, states_law=True)
        return replace(rule, states_law=True, remarks=_advice(evidence, setting))

    def claims(self, rule: RankRule, level: Fraction) -> tuple[Claim, ...]:
        """Theorem 1, as a claim about the truth and as a claim about the candidates."""
        if rule.setting.single and rule.evidence.precise:
            return (rule.plain_claim(level),)
        run = float(min(level + rule.slack, Fraction(1)))
        claims = [
            rule.judged.claim("truth", float(level), "Theorem 1", "truth_is_candidate"),
            rule.judged.claim("candidates", run, "Theorem 1", "same_candidates"),
        ]
        if rule.judged.truth_refuted:
            claims.append(rule.rho_claim(level, "every candidate"))
        return tuple(claims)


@dataclass(frozen=True)
class Min(StrategyTraits):
    """The smallest candidate score counts: promises that T and S overlap, and nothing more about the truth.

    This is the weak coverage of Cauchois, Gupta, Ali and Duchi (JMLR 2024).
    """

    name: ClassVar[str] = "min"
    pooled: ClassVar[bool] = True

    def calibrate(self, evidence: Evidence, setting: Setting) -> RankRule:
        """One score per row: the smallest over its candidates."""
        return _one_score(self, evidence, setting, evidence.low, states_law=True)

    def claims(self, rule: RankRule, level: Fraction) -> tuple[Claim, ...]:
        """Weak coverage, and the ρ line."""
        if rule.evidence.precise:
            return (rule.plain_claim(level),)
        overlap = rule.judged.claim("overlap", float(level), "weak coverage", "same_candidates")
        return overlap, rule.rho_claim(level, "its least strange candidate")


@dataclass(frozen=True)
class Mean(StrategyTraits):
    """The mean candidate score counts: Theorem 3 if the truth never exceeds it, otherwise the ρ line."""

    name: ClassVar[str] = "mean"
    pooled: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("every",)

    def calibrate(self, evidence: Evidence, setting: Setting) -> RankRule:
        """One score per row: the average over its candidates."""
        return _one_score(self, evidence, setting, evidence.mean)

    def claims(self, rule: RankRule, level: Fraction) -> tuple[Claim, ...]:
        """Theorem 3 under the premise it really needs, and the ρ line.

        The paper asks for f_y ≥ 1/|S| in every row, which no singleton satisfies; the proof needs only
        that the truth is no stranger than the average candidate.
        """
        if rule.evidence.precise:
            return (rule.plain_claim(level),)
        below = _truth_below_mean(rule.evidence, rule.scores)
        theorem = rule.judged.claim("truth", float(level), "Theorem 3", below, "max_otherwise")
        return theorem, rule.rho_claim(level, "its average candidate")


@dataclass(frozen=True)
class Mixture(StrategyTraits):
    """μ times the least plus (1−μ) times the most strange candidate: μ = 0 is `max`, μ = 1 is `min`."""

    mu: float = 0.5
    pooled: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= as_fraction(self.mu, "mu") <= 1:
            raise ValueError(f"mu: {self.mu!r} is not in [0, 1].")

    @property
    def name(self) -> str:
        """With its μ, so that two mixtures can be told apart."""
        return f"mixture(μ={float(self.mu):g})"

    def calibrate(self, evidence: Evidence, setting: Setting) -> RankRule:
        """One score per row, between the extremes; at the ends it is `max` or `min`, with their claims."""
        if self.mu in (0, 1):
            extreme: Max | Min = Min() if self.mu else Max()
            return extreme.calibrate(evidence, setting)
        # so that equal extremes give themselves to the last bit
        blend = evidence.high + float(self.mu) * (evidence.low - evidence.high)
        return _one_score(self, evidence, setting, np.clip(blend, evidence.low, evidence.high))

    def claims(self, rule: RankRule, level: Fraction) -> tuple[Claim, ...]:
        """The ρ line."""
        if rule.evidence.precise:
            return (rule.plain_claim(level),)
        return (rule.rho_claim(level, "the mixture of its extreme candidates"),)


@dataclass(frozen=True)
class All(StrategyTraits):
    """Every candidate's score counts: Theorem 2, for the score LAC alone."""

    name: ClassVar[str] = "all"
    covers_candidates: ClassVar[bool] = True

    def needs(self, setting: Setting) -> tuple[str, ...]:
        """Every candidate's score; for Theorem 2 the rows' sums too, which are one up to rounding."""
        speaks = setting.conformity_score == "lac" and setting.domain == "simplex"
        return ("every", "total") if speaks else ("every",)

    def calibrate(self, evidence: Evidence, setting: Setting) -> RankRule:
        """All candidates' scores in one pool; the rank rule still counts rows."""
        if evidence.shares is not None:
            raise InputError(
                "strategy 'all' is not defined for weighted or grouped rows",
                Remedy("strategy", "max"),
                Remedy("strategy", "mean"),
            )
        if evidence.every is None:
            raise ValueError("strategy 'all' needs evidence gathered with needs={'every'}.")
        return RankRule(self, evidence, setting, evidence.every, evidence.n)

    def claims(self, rule: RankRule, level: Fraction) -> tuple[Claim, ...]:
        """Theorem 2 where it can apply; Theorem 1 if `max` would be used wherever its sets are larger."""
        evidence, setting = rule.evidence, rule.setting
        if evidence.precise:
            return (rule.plain_claim(level),)
        claims = []
        if rule.threshold(level) >= Max().calibrate(evidence, setting).threshold(level):
            needs: tuple[str | Premise, ...] = ("truth_is_candidate", "max_otherwise")
            claims.append(rule.judged.claim("truth", float(level), "Theorem 1", *needs))
        if "total" in self.needs(setting) and evidence.total is not None and setting.miss_rate == 0:
            quantile = _confident_truth(rule, level)
            needs = ("truth_is_candidate", size_certificate(rule, level), quantile, "max_otherwise")
            verified = ("verified",) if "verified rows" in quantile.detail else ()
            claims.append(rule.judged.claim("truth", float(level), "Theorem 2", *needs, *verified))
        if not claims:
            note = "Theorem 2 needs the score LAC and no misses, and on these rows the sets of max are larger"
            claims.append(rule.judged.claim("truth", None, "Theorem 2", note=note))
        return tuple(claims)


def epsilon_bound(n: int, n_classes: int) -> Fraction:
    """The paper's bound on ε in Theorem 2: min(1/4, (n + K)/(K(n + 1)))."""
    return min(Fraction(1, 4), Fraction(n + n_classes, n_classes * (n + 1)))


def size_certificate(rule: RankRule, level: Fraction) -> Premise:
    """That the set sizes, which can be seen, let the proof of Theorem 2 through.

    Below q(E₁), the t-th smallest true score with t = ⌈(n+1)(1−ε)⌉, lie at most t−1 true scores and, of the
    n−t other rows, at most |S|−1 false ones each. So q(E_all) ≥ q(E₁) if the rank of `all` is at least
    t + Σ(|S|−1) over the n−t largest sets. The paper instead bounds ε and takes |S| ≥ 2 for granted.
    """
    n, extra = rule.n, np.sort(rule.evidence.sizes - 1)
    t = min(rank(n, level), n)
    position, needed = rank(len(rule.scores), level), t + int(extra[t:].sum())
    bound = epsilon_bound(n, rule.setting.n_classes)
    side = "within" if 1 - level <= bound and extra[0] >= 1 else "outside"
    paper = f"the paper's own premise, ε ≤ {float(bound):.4f} and |S| ≥ 2"
    detail = f"rank {position:,}, and {needed:,} is enough; {side} {paper}"
    status: Status = "shown by the data" if position >= needed else "assumed"
    return Premise("certificate", status, detail)


def _confident_truth(rule: RankRule, level: Fraction) -> Premise:
    """q(E₁) ≤ 1 − s/2 with s the largest sum of a row (one, up to rounding): f_y ≥ s/2 in at least t rows."""
    total = rule.evidence.total
    half = (1.0 if total is None else float(total.max())) / 2
    name, values = "confident_truth", (f"{float(level):.12g}", f"{half:.4g}")
    checked, truth = rule.evidence.verified, rule.evidence.truth
    if truth is None or not checked.any() or rule.evidence.chance is not None:
        return Premise(name, "assumed", "verified labels would show it", values)
    m, good = int(checked.sum()), int((truth[checked] <= -half).sum())
    share = rank(rule.n, level) / rule.n
    if m == rule.n:
        status: Status = "shown by the data" if good >= rank(rule.n, level) else "refuted by the data"
        return Premise(name, status, f"{good} of all {m} rows", values)
    low, high = clopper_pearson(good, m, 2 * DELTA)
    detail = f"{good} of {m} verified rows, with {1 - DELTA:.0%} confidence"
    if low >= share:
        return Premise(name, "shown by the data", detail, values)
    return Premise(name, "refuted by the data" if high < share else "assumed", detail, values)


def _truth_below_mean(evidence: Evidence, scores: Floats) -> Premise:
    """That s(x, y) ≤ e in every row: candidates never refute it, verified rows can."""
    checked, truth = evidence.verified, evidence.truth
    if truth is None or not checked.any():
        return Premise("truth_below_mean", "assumed", "verified labels could refute it")
    broken, m = int((truth > scores)[checked].sum()), int(checked.sum())
    status: Status = "shown by the data" if m == evidence.n else "assumed"
    detail = f"fails in {broken} of {m} verified rows"
    return Premise("truth_below_mean", "refuted by the data" if broken else status, detail)


def _one_score(
    strategy: Min | Mean | Mixture,
    evidence: Evidence,
    setting: Setting,
    scores: Floats,
    *,
    states_law: bool = False,
) -> RankRule:
    states_law |= setting.single and evidence.precise
    return RankRule(strategy, evidence, setting, scores, evidence.instances, states_law=states_law)


def _advice(evidence: Evidence, setting: Setting) -> tuple[str, ...]:
    """What would make the sets smaller; nothing where weights or groups leave `max` alone."""
    if evidence.shares is not None:
        return ()
    more = "more" if evidence.verified.any() else "some"
    verify = f"For smaller sets, verify {more} rows drawn at random, and pass them as verified to strategy auto"
    advice = [f"{verify} (the default). This guarantee then holds whatever the candidates are."]
    if setting.assume.kind == "nothing" and not setting.truth:
        advice.append(
            "If every false label is a candidate equally often, calibrate again and state that (assume: uniform). "
            "Sets are then smaller, unless the data contradict you."
        )
    return tuple(advice)
