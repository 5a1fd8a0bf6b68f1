"""`CrossConformalClassifier`: every row is used for learning and for calibration, K models in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils.validation import check_is_fitted

from setwise._arrays import Ints
from setwise._types import Candidates, Column, Features, RandomState, Seed, Truth
from setwise.calibration.pooled import check_poolable
from setwise.conformal.calibration import Calibration, PooledCalibration
from setwise.conformal.conformalize import calibrate
from setwise.contamination.assumption import AssumptionLike
from setwise.decisions.modes import Mode
from setwise.decisions.triage import Triage
from setwise.drift.feature_summary import FeatureSummary
from setwise.errors import InputError, Omission
from setwise.estimators.adapters import as_y, learner_for
from setwise.estimators.base import BaseConformalClassifier
from setwise.estimators.default_learner import default_learner
from setwise.estimators.used_rows import UsedRows, take_probe
from setwise.evidence.row_facts import RowFacts
from setwise.evidence.row_names import check_row_names
from setwise.labels.label_sets import LabelSets
from setwise.labels.votes import Votes
from setwise.learn.base import clone_unfitted
from setwise.learn.feature_errors import FeatureError, naming_features
from setwise.probabilities.dense import precision_of
from setwise.probabilities.readers import read_probabilities
from setwise.scores import Score, as_score
from setwise.strategies import Strategy, as_strategy


class CrossConformalClassifier(BaseConformalClassifier):
    """Cross-conformal prediction sets: no row is spent on calibration alone.

    The guarantee is weaker: 1 − 2ε less a small term, instead of 1 − ε. In practice coverage is near 1 − ε.

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

    calibration_: PooledCalibration

    def __init__(
        self,
        estimator: Any = None,
        strategy: str | Strategy = "auto",
        conformity_score: str | Score = "lac",
        confidence_level: float = 0.9,
        cv: int = 5,
        random_state: RandomState = None,
        miss_rate: float = 0.0,
        assume: AssumptionLike = "nothing",
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
        X: Features,
        y: Candidates,
        groups: Column = None,
        verified: Column = None,
        by: Column = None,
        verified_probability: Column = None,
        truth: Truth = None,
    ) -> CrossConformalClassifier:
        """Learns K models, each without one fold, and scores every row with the model that did not see it.

        Strategies and arguments for which no cross-conformal method is known are refused before learning.
        """
        check_poolable(self.strategy, self.assume)
        task = (self.strategy, as_score(self.conformity_score), self.assume, 0)
        options: dict[str, Any] = {"groups": groups, "verified": verified, "by": by, "truth": truth}
        options["verified_probability"] = verified_probability
        for name, value in options.items():
            if value is not None:
                problem = f"{name}: no cross-conformal guarantee is known"
                raise InputError(problem, Omission("cv", "ConformalClassifier"))
        if isinstance(y, Votes) and as_strategy(self.strategy).adapts:
            problem = "y: no cross-conformal method uses votes"
            raise InputError(problem, "pass y.candidates()", Omission("cv", "ConformalClassifier"))
        (X,) = indexable(X)
        check_row_names(X=X, y=y)
        sets = self._read(X, y)
        rng = check_random_state(self.random_state)
        try:
            parts = list(KFold(self.cv, shuffle=True, random_state=rng).split(np.arange(len(sets))))
        except (TypeError, ValueError) as error:
            raise ValueError(f"cv: {self.cv!r} folds of {len(sets)} rows: {error}") from None
        model = learner_for(default_learner(*task) if self.estimator is None else self.estimator, sets, rng)
        kept = [rows for rows, _ in parts]
        with naming_features(X):
            fits = ((_safe_indexing(X, rows), as_y(sets[rows], model)) for rows in kept)
            self.estimators_ = [clone_unfitted(model).fit(*rows) for rows in fits]
        fold = np.empty(len(sets), dtype=int)
        for number, (_, held) in enumerate(parts):
            fold[held] = number
        self.used_rows_ = UsedRows.of(X, sets, np.arange(len(sets)), np.arange(len(sets)), fold)
        self._note_labels(sets, kept)
        self._note_rows(X, sets)
        self.summary_ |= {"learned_from": len(sets), "learner": type(model).__name__}
        self.probe_ = take_probe(X)
        self.feature_summary_ = FeatureSummary.of(X)
        seed = int(rng.randint(2**31 - 1))
        with naming_features(X, of=FeatureError):
            folds = [self._fold(i, X, sets, held, seed) for i, (_, held) in enumerate(parts)]
        self.calibration_ = PooledCalibration(tuple(folds))
        return self

    def triage(
        self,
        X: Features | None = None,
        candidates: Candidates = None,
        max_error: float = 0.05,
        mode: Mode = "overall",
        *,
        verified: Column = None,
        by: Column = None,
        look: int = 1,
        random_state: Seed = None,
    ) -> Triage:
        """Which rows of `fit` can be accepted with their proposed label, judged by verified rows.

        New rows cannot be decided; use `ConformalClassifier` for them. Arguments as in `Calibration.triage`.
        """
        check_is_fitted(self, "calibration_")
        options: dict[str, Any] = {"by": by, "look": look, "random_state": random_state}
        return self.calibration_.triage(X, candidates, max_error, mode, verified=verified, **options)

    @property
    def fitted_models(self) -> list[Any]:
        """The model of each fold."""
        return list(self.estimators_)

    def _set_parts(self, models: list[Any], calibrations: list[Calibration]) -> None:
        self.estimators_, self.calibration_ = models, PooledCalibration(tuple(calibrations))

    def _fold(self, i: int, X: Any, sets: LabelSets, held: Ints, seed: int) -> Calibration:
        task = (self.strategy, self.conformity_score, self.assume, 0)
        probabilities, score = self._calibration_matrix(self.estimators_[i], _safe_indexing(X, held), *task)
        candidates = sets[held].recode(self.vocabulary_)
        rows = read_probabilities(probabilities, score.domain, len(self.classes_))
        return calibrate(
            rows,
            candidates,
            RowFacts(position=held),
            self.strategy,
            score,
            miss_rate=self.miss_rate,
            random_state=seed,
            precision=precision_of(probabilities),
            novel=self._novel(candidates, self.estimators_[i]),
            equal=int(self.used_rows_.equal[held].sum()),
            also=("consensus",),
        )
