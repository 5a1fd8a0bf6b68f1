"""`CrossConformalClassifier`: every row is used for learning and for calibration, K models in turn.

Row i is scored by the model of the fold it was left out of. A label y of a new row x gets

    p(y) = (1 + Σ_k #{i in fold k: e_i ≥ s_k(x, y)}) / (n + 1)

where s_k is the score under the model of fold k, and is in the set where p(y) > ε. With e_i the largest score
over a row's candidates (`max`) the set contains the one that true labels would give, so that it covers with
probability at least 1 − 2ε less the term of Barber, Candès, Ramdas and Tibshirani (2021, Theorem 4):
min{2(1 − 1/K)/(n/K + 1), (1 − K/n)/(K + 1)}.
"""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils.validation import check_is_fitted

from setwise._arrays import Floats, Ints, frozen
from setwise.calibration.calibration import Calibration, SmallCalibrationWarning, each_level
from setwise.calibration.conformalize import conformalize
from setwise.errors import InputError, Omission
from setwise.estimators.adapters import as_y, learner_for
from setwise.estimators.fingerprint import take_probe
from setwise.estimators.split import ConformalClassifier
from setwise.guarantees import Claim, Guarantee
from setwise.labels.label_sets import LabelSets
from setwise.ranks import rank
from setwise.strategies.base import SAME_WITH_CANDIDATES


class CrossConformalClassifier(ConformalClassifier):
    """Cross-conformal prediction sets: no row is spent on calibration alone.

    The promise is weaker, 1 − 2ε less a small term instead of 1 − ε, and `guarantee` says so; in practice coverage
    is near 1 − ε.

    Parameters
    ----------
    estimator, strategy, conformity_score, confidence_level, random_state, miss_rate, assume
        As in `ConformalClassifier`; strategies with one score per row (not ``"all"``).
    cv
        The number of folds.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from setwise import CrossConformalClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 200)
    >>> X = 3 * np.eye(3)[y] + rng.normal(size=(200, 3))
    >>> model = CrossConformalClassifier(LogisticRegression(), cv=5, random_state=0).fit(X, y)
    >>> model.predict_set([[3.0, 0.0, 0.0]]).to_lists()
    [[0]]
    """

    def __init__(
        self,
        estimator: Any = None,
        strategy: Any = "auto",
        conformity_score: Any = "lac",
        confidence_level: float = 0.9,
        cv: int = 5,
        random_state: Any = None,
        miss_rate: float = 0.0,
        assume: Any = "nothing",
    ) -> None:
        self.estimator = estimator
        self.strategy = strategy
        self.conformity_score = conformity_score
        self.confidence_level = confidence_level
        self.cv = cv
        self.random_state = random_state
        self.miss_rate = miss_rate
        self.assume = assume

    def fit(
        self,
        X: Any,
        y: Any,
        groups: Any = None,
        verified: Any = None,
        by: Any = None,
        verified_probability: Any = None,
    ) -> CrossConformalClassifier:
        """Learns K models, each without one fold, and scores every row with the model that did not see it."""
        given = {"groups": groups, "verified": verified, "by": by, "verified_probability": verified_probability}
        for name, value in given.items():
            if value is not None:
                problem = f"{name}: no cross-conformal guarantee is known"
                raise InputError(problem, Omission("cv", "ConformalClassifier"))
        (X,) = indexable(X)
        sets = self._read(X, y)
        rng = check_random_state(self.random_state)
        parts = list(KFold(self.cv, shuffle=True, random_state=rng).split(np.arange(len(sets))))
        model = learner_for(self.estimator, sets, rng)
        kept = [rows for rows, _ in parts]
        if hasattr(model, "fit_many"):  # trains the folds together
            self.estimators_ = model.fit_many(X, sets, kept)
        else:
            self.estimators_ = [clone(model).fit(_safe_indexing(X, rows), as_y(sets[rows], model)) for rows in kept]
        self.estimator_ = self.estimators_[0]
        self._fitted_on(X, sets)
        self._summary |= {"learned_from": len(sets), "learner": type(model).__name__}
        self._probe = take_probe(X)
        seed = int(rng.randint(2**31 - 1))
        self.folds_ = [self._calibrate(i, X, sets, held, seed) for i, (_, held) in enumerate(parts)]
        return self

    def conformalize(self, X: Any, y: Any, **options: Any) -> ConformalClassifier:  # noqa: ARG002
        """Not possible: the rows that calibrate are those that were learned from."""
        raise ValueError("conformalize: a cross-conformal model calibrates in fit; use ConformalClassifier.")

    # ---------------------------------------------------------------- predict

    def predict_proba(self, X: Any) -> Floats:
        """The average of the K models' probabilities."""
        check_is_fitted(self, "estimators_")
        self._check_names(X)
        average: Floats = np.mean([self._probabilities(model, X) for model in self.estimators_], axis=0)
        return average

    def predict_p(self, X: Any, **options: Any) -> Floats:
        """The (n, K) p-values."""
        below, total = self._below(X, **options)
        values: Floats = (total + 1 - below) / (total + 1) + float(self.folds_[0].rank_rule.slack)
        return np.minimum(values, 1.0)

    def predict_set(self, X: Any, confidence_level: Any = None, **options: Any) -> Any:
        """Prediction sets as `LabelSets` (a list of them for a list of levels)."""
        below, total = self._below(X, **options)

        def answer(level: Fraction) -> LabelSets:
            position = rank(total, level + self.folds_[0].rank_rule.slack)
            if position > total:
                text = f"every label is in the set: {total} rows are too few for confidence {float(level):g}."
                warnings.warn(text, SmallCalibrationWarning, stacklevel=4)
            return LabelSets(self._vocabulary, len(below), _mask=frozen(below < position))

        return each_level(self._level(confidence_level), answer)

    def guarantee(self, confidence_level: Any = None) -> Any:
        """What may be claimed, and why: 1 − 2ε less a small term, for `max`."""
        check_is_fitted(self, "folds_")

        def answer(level: Fraction) -> Guarantee:
            rule, n, k = self.folds_[0].rank_rule, sum(fold.evidence.n for fold in self.folds_), len(self.folds_)
            term = min(2 * (1 - 1 / k) / (n / k + 1), (1 - k / n) / (k + 1))
            claim = Claim("truth", None, "cross-conformal", note="only max has a cross-conformal guarantee")
            if rule.claimant.name == "max":
                promised = max(0.0, float(1 - 2 * (1 - level)) - term)
                note = f"1 − 2ε less {term:.4f}, and in practice near 1 − ε"
                claim = Claim("truth", promised, "cross-conformal prediction", (rule.held_premise(),), note)
            name = f"{rule.claimant.name} over {k} folds"
            return Guarantee(
                name, rule.setting.conformity_score, n, float(level), (claim,), (SAME_WITH_CANDIDATES,)
            )

        return each_level(self._level(confidence_level), answer)

    # ---------------------------------------------------------------- parts

    def _calibrate(self, fold: int, X: Any, sets: LabelSets, held: Ints, seed: int) -> Calibration:
        probabilities = self._probabilities(self.estimators_[fold], _safe_indexing(X, held))
        settings = {"miss_rate": self.miss_rate, "assume": self.assume, "random_state": seed}
        candidates = sets[held].recoded(self._vocabulary)
        made = conformalize(probabilities, candidates, self.strategy, self.conformity_score, **settings)
        if made.strategy.name == "all":
            raise ValueError(
                "strategy: 'all' has no cross-conformal form; use 'max' or another with one score a row."
            )
        return made

    def _below(self, X: Any, **options: Any) -> tuple[Ints, int]:
        """For each label the number of calibration scores strictly below its own, over all folds."""
        check_is_fitted(self, "folds_")
        self._check_names(X)
        pairs = zip(self.folds_, self.estimators_, strict=True)
        below = sum(fold.count_below(self._probabilities(model, X), **options) for fold, model in pairs)
        return np.asarray(below), sum(fold.evidence.n for fold in self.folds_)
