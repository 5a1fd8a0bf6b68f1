"""Eleven promises were once false. Each mending is undone here, and the observatory must find the fault again."""

from dataclasses import replace

import pytest

from setwise import LabelSets
from setwise.calibration import calibration
from setwise.estimators.base import BaseConformalClassifier
from setwise.ranks import beta_interval, order_statistic, rank
from setwise.strategies import base, corrected, rank_based
from setwise.strategies.premises import DELTA, Judgement
from tests.observatory.cells import Cell
from tests.observatory.judge import judge


def forget(patch, *names, **changes):
    """Claims no longer name these premises; other fields are changed."""
    honest = Judgement.claim

    def claim(self, *given, **options):
        made = honest(self, *given, **options)
        return replace(made, premises=tuple(p for p in made.premises if p.name not in names), **changes)

    patch.setattr(Judgement, "claim", claim)


def unequal_chances_count_as_random_checks(patch):
    honest = base.RankRule.rho_claim

    def rho_claim(self, level, stranger_than):
        plain = replace(self.evidence, chance=None)
        told = replace(self.setting, judged=Judgement(plain, self.setting))
        return honest(replace(self, evidence=plain, setting=told), level, stranger_than)

    patch.setattr(base.RankRule, "rho_claim", rho_claim)


def labels_of_calibration_rows_count_as_learned(patch):
    patch.setattr(BaseConformalClassifier, "_note_learned", lambda self, sets, parts: setattr(self, "learned_", []))
    forget(patch, "classes")


def every_label_is_every_label_seen(patch):
    honest = LabelSets.from_keys.__func__

    def from_keys(cls, vocabulary, n, keys, *, relative=False):
        return honest(cls, vocabulary, n, keys)

    patch.setattr(LabelSets, "from_keys", classmethod(from_keys))


def candidates_of_new_rows_are_not_mentioned(patch):
    forget(patch, "same_candidates")


def a_row_of_a_random_group_is_a_new_example(patch):
    forget(patch, subject="a new example")


def the_fallback_forgets_what_checks_refute(patch):
    patch.setattr(rank_based, "judgement", lambda evidence, setting: None)


def the_bracket_forgets_what_checks_refute(patch):
    patch.setattr(calibration, "_miss_rate", lambda part, setting, judged, delta: (float(setting.miss_rate), delta))


def filled_rows_are_weighed(patch):
    patch.setattr(corrected, "not_filled", lambda setting, name: None)


def precisions_are_not_compared(patch):
    patch.setattr(calibration, "in_precision", lambda matrix, given, here: (matrix, 0.0))


def the_law_has_an_upper_end(patch):
    def law(self, level):
        position = rank(self.n, level + self.slack)
        if not self.contained or position > self.n:
            return ""
        low, high = beta_interval(self.n, position, DELTA)
        tied = (self.scores == order_statistic(self.scores, position)).sum() > 1
        between = f"at least {low:.3f}" if tied else f"between {low:.3f} and {high:.3f}"
        return f"the probability of containing {self.contained} is {between}."

    patch.setattr(base.RankRule, "_law", law)


def samples_without_the_claim_are_not_mentioned(patch):
    forget(patch, "max_otherwise")


TWO_KINDS = {"contamination": "decoy", "checks": "chances", "model": "two kinds", "n": 1000}
PRECISION = {"n": 300, "k": 5, "contamination": "none", "model": "tenths"}
BLANK = {"n": 4000, "k": 5, "contamination": "uniform:0.1", "assume": "uniform", "missing": "full"}
LOST = {"n": 1000, "k": 4, "contamination": "none", "checks": "random", "breach": "lost"}
UNNAMED = {"k": 4, "contamination": "none", "breach": "unnamed", "missing": "full"}

FAULTS = {
    1: (unequal_chances_count_as_random_checks, Cell("min", **TWO_KINDS), "ρ line"),
    2: (
        labels_of_calibration_rows_count_as_learned,
        Cell("max", shape="classifier", n=400, k=5, contamination="none", breach="tail"),
        "truth",
    ),
    3: (every_label_is_every_label_seen, Cell("max", shape="table", n=200, **UNNAMED), "Theorem 1"),
    4: (
        candidates_of_new_rows_are_not_mentioned,
        Cell("max", shape="by size", n=500, model="two kinds", breach="annotators"),
        "Theorem 1 (truth) in category 2",
    ),
    5: (
        a_row_of_a_random_group_is_a_new_example,
        Cell("max", shape="groups, informative", contamination="none"),
        "truth",
    ),
    6: (the_fallback_forgets_what_checks_refute, Cell("mixture verified", **LOST), "(truth), average"),
    7: (the_bracket_forgets_what_checks_refute, Cell("rectified", **LOST), "bracket"),
    8: (filled_rows_are_weighed, Cell("corrected finite", **BLANK, breach="blank"), "corrected"),
    9: (precisions_are_not_compared, Cell("max", **PRECISION, breach="float64"), "truth"),
    10: (the_law_has_an_upper_end, Cell("max", n=9, contamination="none", model="tenths", level=0.9), "law"),
    11: (
        samples_without_the_claim_are_not_mentioned,
        Cell("all", n=19, k=2, contamination="decoy", checks="all"),
        "Theorem 2",
    ),
}


SLOW = {2, 3, 8, 11}
"""Faults that take all samples of their cell to show; a fifth of them shows the others with p below 1e-10."""


@pytest.mark.parametrize("number", FAULTS)
def test_a_mending_undone_is_found(number, monkeypatch):
    undo, cell, statement = FAULTS[number]
    share = 1.0 if number in SLOW else 0.2
    kept = judge(cell, share)
    assert kept.status != "violated", kept
    undo(monkeypatch)
    found = judge(cell, share)
    assert found.status == "violated", found
    assert any(statement in name for name in found.violated), found
