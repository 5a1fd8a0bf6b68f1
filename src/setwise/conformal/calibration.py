"""`Calibration` and `PooledCalibration`: what calibration found, and what it says of new rows beside it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from setwise._types import Candidates, Column, ProbabilityRows, Seed
from setwise.calibration.base import BaseCalibration
from setwise.calibration.pooled import BasePooledCalibration
from setwise.decisions.triage import Mode, Triage, triage_calibration_rows, triage_folds, triage_new_rows
from setwise.drift.comparison import Comparison, RowTally
from setwise.drift.monitor import Monitor
from setwise.errors import InputError, Omission, Remedy


class Calibration(BaseCalibration):
    """What calibration found: asks for a confidence level, answers with sets, p-values and claims.

    Made by `conformalize` or `Calibration.load`. Every question may be asked at any level, afterwards and
    repeatedly; a list of levels gives a list of answers.
    """

    def triage(
        self,
        probabilities: ProbabilityRows | None = None,
        candidates: Candidates = None,
        max_error: float = 0.05,
        mode: Mode = "rate",
        *,
        random_state: Seed = None,
        comparison: Comparison | None = None,
    ) -> Triage:
        """Which rows may be accepted with the label proposed for them, and which go to review.

        Without new rows it decides the calibration rows that nobody checked, which needs no more than that the
        verified rows were chosen at random. The label of a row is the most probable one by its votes and the model
        (of candidate sets, the most probable candidate; without either, what the model says). Categories make no
        difference here.

        Parameters
        ----------
        probabilities
            (n, K) class probabilities of new rows.
        candidates
            Votes or candidate sets of the new rows, if the calibration rows had them too. Passing them declares
            that they arise as those did.
        max_error
            How many of the accepted labels may be wrong.
        mode
            ``"rate"``: on average over samples of checks, where one in which nothing is accepted counts as zero; at
            least 3/`max_error` checks are needed. ``"confident"``: in 95 of 100 samples of checks.
        random_state
            Seeds the noise that breaks ties between confidences; default is the calibration's own seed.
        comparison
            What `compare` found of the new rows: where they differ from the calibration rows nothing is promised.
            By default they are compared here, by what the model says of them.
        """
        if probabilities is None:
            if candidates is not None:
                raise InputError("candidates: those of new rows", Remedy("probabilities", None, "for these rows"))
            return triage_calibration_rows(self.judgement, self.classes, max_error, mode, random_state)
        return triage_new_rows(
            self, probabilities, candidates, max_error, mode, random_state=random_state, comparison=comparison
        )

    def compare(
        self,
        probabilities: ProbabilityRows,
        *,
        by: Column = None,
        candidates: Candidates = None,
        groups: Column = None,
    ) -> Comparison:
        """Whether new rows are like the calibration rows, by the most probable label and its probability.

        Parameters
        ----------
        probabilities
            The model's probabilities of the new rows.
        by, candidates
            As in `predict_set`: calibrated by category, rows are compared within each.
        groups
            Rows that belong together, where the calibration rows have groups.

        Examples
        --------
        >>> import numpy as np, setwise
        >>> rng = np.random.default_rng(0)
        >>> P = rng.dirichlet([1, 1, 1], size=900)
        >>> cal = setwise.conformalize(P[:500], P[:500].argmax(axis=1))
        >>> cal.compare(P[500:]).refuted
        False
        >>> print(cal.compare(P[500:] ** 2 / (P[500:] ** 2).sum(axis=1, keepdims=True)))
        The 400 new rows differ from the 500 calibration rows: the largest probability of a row is 0.758 ...
        """
        return RowTally(self).add(probabilities, by=by, candidates=candidates, groups=groups).compare()

    def monitor(
        self,
        delta: float = 0.05,
        *,
        random_state: Seed = None,
        resume: str | os.PathLike[str] | None = None,
    ) -> Monitor:
        """Watches new rows that arrive in time, and raises an alarm where they are no longer like these.

        Parameters
        ----------
        delta
            The probability of an alarm, at any time, as long as rows come from the source of the calibration rows.
        random_state
            Seeds what breaks ties.
        resume
            A file that `Monitor.save` wrote, to go on from; its `delta` and seed count.

        Examples
        --------
        >>> import numpy as np, setwise
        >>> rng = np.random.default_rng(0)
        >>> P = rng.dirichlet([1, 1, 1], size=900)
        >>> cal = setwise.conformalize(P[:500], P[:500].argmax(axis=1))
        >>> monitor = cal.monitor(random_state=0)
        >>> monitor.update(P[500:]).alarm
        False
        >>> print(monitor.update(rng.dirichlet([9, 9, 9], size=200)))
        Alarm at row ...: rows are no longer like the calibration rows; what differs is the largest probability ...
        """
        return Monitor(self, delta=delta, random_state=random_state, resume=resume)


class PooledCalibration(BasePooledCalibration):
    """Calibrations of folds, asked together: `probabilities` are one matrix per fold, from the fold's model."""

    def triage(
        self,
        probabilities: object = None,
        candidates: object = None,
        max_error: float = 0.05,
        mode: Mode = "rate",
        *,
        verified: Column = None,
        random_state: Seed = None,
    ) -> Triage:
        """Which of its own rows may be accepted, as in `Calibration.triage`; of new rows nothing is known.

        Parameters
        ----------
        verified
            The true label of each row, in the order in which they were given, None or NaN where nobody checked.
        """
        if probabilities is not None or candidates is not None:
            problem = "triage: folds score new rows and their own rows with different models"
            raise InputError(problem, "leave new rows out", Omission("cv", "ConformalClassifier"))
        return triage_folds(self, verified, max_error, mode, random_state)

    def compare(self, probabilities: Sequence[ProbabilityRows]) -> Comparison:
        """Whether new rows are like the calibration rows: those of each fold, by the model of the fold."""
        return RowTally(self).add(probabilities).compare()

    def monitor(
        self, delta: float = 0.05, *, random_state: Seed = None, resume: str | os.PathLike[str] | None = None
    ) -> Monitor:
        """Watches new rows that arrive in time; as `Calibration.monitor`."""
        return Monitor(self, delta=delta, random_state=random_state, resume=resume)
