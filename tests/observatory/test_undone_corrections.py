"""Where a correction is undone, and promises are false again, the observatory finds the fault."""

from dataclasses import replace

import numpy as np
import pytest

from setwise import LabelSets
from setwise.calibration import base as calibration
from setwise.calibration import new_rows
from setwise.decisions import modes, overall
from setwise.decisions.overall import allowed_wrong, joint_allowed, joint_wrong
from setwise.estimators.base import BaseConformalClassifier
from setwise.evidence import right_labels
from setwise.ranks import beta_interval, rank
from setwise.strategies import by_label, corrected, rank_strategies, threshold_rules
from setwise.strategies.judgement import DELTA, Judgement
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
    honest = threshold_rules.RankRule.rho_claim

    def rho_claim(self, level, stranger_than):
        plain = replace(self.evidence, chance=None)
        told = replace(self.setting, judged=Judgement(plain, self.setting))
        return honest(replace(self, evidence=plain, setting=told), level, stranger_than)

    patch.setattr(threshold_rules.RankRule, "rho_claim", rho_claim)


def labels_of_calibration_rows_count_as_learned(patch):
    patch.setattr(BaseConformalClassifier, "_note_labels", lambda self, sets, parts: setattr(self, "learned_", []))
    forget(patch, "classes")


def every_label_is_every_label_seen(patch):
    honest = LabelSets.from_keys.__func__

    def from_keys(cls, vocabulary, n, keys, *, relative=False):
        return honest(cls, vocabulary, n, keys)

    patch.setattr(LabelSets, "from_keys", classmethod(from_keys))


def candidates_of_new_rows_are_not_mentioned(patch):
    forget(patch, "same_candidates")


def a_row_of_a_random_group_is_a_new_row(patch):
    forget(patch, subject="a new row")


def the_bracket_forgets_what_checks_refute(patch):
    patch.setattr(calibration, "_miss_rate", lambda part, setting, judged, delta: (float(setting.miss_rate), delta))


def filled_rows_are_weighed(patch):
    patch.setattr(corrected, "not_filled", lambda setting, name: None)


def precisions_are_not_compared(patch):
    patch.setattr(new_rows, "in_precision", lambda matrix, given, here: (matrix, 0.0))


def the_law_is_its_upper_end(patch):
    def law_bound(self, level):
        position = rank(self.n, level + self.slack)
        if not self.states_law or position > self.n:
            return None
        return beta_interval(self.n, position, DELTA)[1]

    patch.setattr(threshold_rules.RankRule, "law_bound", law_bound)


def samples_without_the_claim_are_not_mentioned(patch):
    forget(patch, "max_otherwise")


def classes_share_a_threshold(patch):
    def threshold(self, level, new_weight=None):
        pooled = rank_strategies.Max().calibrate(self.evidence, self.setting).threshold(level)
        return np.full((1, len(self.parts)), pooled)

    patch.setattr(by_label.LabelRule, "threshold", threshold)


def one_right_label_less_is_needed(patch):
    needed = right_labels.count_needed
    patch.setattr(right_labels, "count_needed", lambda sizes, truth: np.maximum(needed(sizes, truth) - 1, 1))


def one_wrong_row_more_is_allowed(patch):
    def one_more(*sizes):
        found = allowed_wrong(*sizes)
        return 0 if found is None else found + 1

    patch.setattr(modes, "allowed_wrong", one_more)
    patch.setattr(overall, "allowed_wrong", one_more)  # by which the observatory makes rows that are hardest


def the_curve_allows_one_more(patch):
    def one_more(*sizes):
        return [0 if found is None else found + 1 for found in joint_allowed(*sizes)]

    patch.setattr(modes, "joint_allowed", one_more)
    one_wrong_row_more_is_allowed(patch)


def new_rows_share_the_limit_of_all(patch):
    patch.setattr(modes.OrderedRows, "total", property(lambda rows: rows.n))


def p_values_lack_their_one(patch):
    def accept(self, error):
        n = len(self.rows)
        enough = np.arange(1, n + 1) * error * self.m >= self.above * n
        return int(np.flatnonzero(enough).max(initial=-1)) + 1

    patch.setattr(modes.OrderedRows, "_take_average", accept)


def bounds_of_a_draw_are_half(patch):
    patch.setattr(modes, "joint_wrong", lambda *sizes: [limit // 2 for limit in joint_wrong(*sizes)])


TWO_KINDS = {"contamination": "decoy", "checks": "chances", "model": "two kinds", "n": 1000}
PRECISION = {"n": 300, "k": 5, "contamination": "none", "model": "tenths"}
BLANK = {"n": 4000, "k": 5, "contamination": "uniform:0.1", "assume": "uniform", "missing": "full"}
LOST = {"n": 1000, "k": 4, "contamination": "none", "checks": "random", "breach": "lost"}
DECIDED = {"n": 30, "contamination": "none", "level": 0.9}
MANY = {"n": 300, "contamination": "none", "level": 0.9}
FEW = {"n": 3, "contamination": "none", "level": 0.8}
UNNAMED = {"k": 4, "contamination": "none", "breach": "unnamed", "missing": "full"}

FAULTS = [
    (unequal_chances_count_as_random_checks, Cell("min", **TWO_KINDS), "ρ line"),
    (
        labels_of_calibration_rows_count_as_learned,
        Cell("max", shape="classifier", n=400, k=5, contamination="none", breach="tail"),
        "truth",
    ),
    (every_label_is_every_label_seen, Cell("max", shape="table", n=200, **UNNAMED), "Theorem 1"),
    (
        candidates_of_new_rows_are_not_mentioned,
        Cell("max", shape="by size", n=500, model="two kinds", breach="annotators"),
        "Theorem 1 (truth) in category 2",
    ),
    (
        a_row_of_a_random_group_is_a_new_row,
        Cell("max", shape="groups, informative", contamination="none"),
        "truth",
    ),
    (the_bracket_forgets_what_checks_refute, Cell("rectified", **LOST), "bracket"),
    (filled_rows_are_weighed, Cell("corrected finite", **BLANK, breach="blank"), "corrected"),
    (precisions_are_not_compared, Cell("max", **PRECISION, breach="float64"), "truth"),
    (the_law_is_its_upper_end, Cell("max", n=9, contamination="none", model="tenths", level=0.9), "law"),
    (
        samples_without_the_claim_are_not_mentioned,
        Cell("all", n=19, k=2, contamination="decoy", checks="all"),
        "Theorem 2",
    ),
    (
        classes_share_a_threshold,
        Cell("auto", shape="by label", n=1000, k=10, contamination="none", model="long tail"),
        "of class 9",
    ),
    (one_right_label_less_is_needed, Cell("auto", shape="several, all", checks="half"), "truth"),
    (one_wrong_row_more_is_allowed, Cell("decide overall", shape="at hand, hardest", **DECIDED), "hypergeometric"),
    (one_wrong_row_more_is_allowed, Cell("decide overall", shape="to come, ties", **DECIDED), "hypergeometric"),
    (
        one_wrong_row_more_is_allowed,
        Cell("decide per class", shape="at hand, hardest", **DECIDED),
        "hypergeometric",
    ),
    (the_curve_allows_one_more, Cell("decide curve", shape="at hand, hardest", **DECIDED), "curve"),
    (
        new_rows_share_the_limit_of_all,
        Cell("decide overall", shape="to come, spread", **MANY),
        "hypergeometric",
    ),
    (p_values_lack_their_one, Cell("decide average", shape="at hand, all wrong", **FEW), "conformal selection"),
    (p_values_lack_their_one, Cell("decide suspects", shape="at hand, all wrong", **FEW), "conformal selection"),
    (
        bounds_of_a_draw_are_half,
        Cell("decide average", shape="at hand, ties", **MANY | {"n": 100}),
        "joint hypergeometric",
    ),
]


SLOW = {
    labels_of_calibration_rows_count_as_learned,
    every_label_is_every_label_seen,
    filled_rows_are_weighed,
    samples_without_the_claim_are_not_mentioned,
    one_wrong_row_more_is_allowed,
    the_curve_allows_one_more,
    new_rows_share_the_limit_of_all,
    bounds_of_a_draw_are_half,
}
"""Faults that take all samples of their cell to show; a fifth of them shows the others with p below 1e-10."""


@pytest.mark.parametrize(("undo", "cell", "statement"), FAULTS, ids=[undo.__name__ for undo, _, _ in FAULTS])
def test_a_correction_undone_is_found(undo, cell, statement, monkeypatch):
    share = 1.0 if undo in SLOW else 0.2
    kept = judge(cell, share)
    assert kept.status != "violated", kept
    undo(monkeypatch)
    found = judge(cell, share)
    assert found.status == "violated", found
    assert any(statement in name for name in found.violated), found
