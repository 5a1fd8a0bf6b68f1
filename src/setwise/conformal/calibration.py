"""`Calibration` and `PooledCalibration`: sets, p-values and guarantees, triage and comparison of new rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from setwise._types import Candidates, Column, ProbabilityRows, Seed
from setwise.calibration.base import BaseCalibration
from setwise.calibration.pooled import BasePooledCalibration
from setwise.decisions.modes import Mode
from setwise.decisions.triage import Triage, triage_calibration_rows, triage_folds, triage_new_rows
from setwise.drift.comparison import Comparison, RowTally
from setwise.drift.monitor import Monitor
from setwise.errors import InputError, Omission, Remedy


class Calibration(BaseCalibration):
    """A calibration: gives sets, p-values and guarantees at any confidence level.

    `conformalize` and `Calibration.load` make it. You may ask it repeatedly and at any level; a list of levels
    gives a list of answers.
    """

    def triage(
        self,
        probabilities: ProbabilityRows | None = None,
        candidates: Candidates = None,
        max_error: float = 0.05,
        mode: Mode = "overall",
        *,
        by: Column = None,
        look: int = 1,
        random_state: Seed = None,
        comparison: Comparison | None = None,
    ) -> Triage:
        """Decides which rows may be accepted with the label proposed for them, and which go to review.

        Without new rows it decides the calibration rows that are not verified; for this the verified rows must have
        been drawn at random. The label proposed for a row is the most probable one by its votes and the model, or
        its most probable candidate, or without either the model's prediction.

        Parameters
        ----------
        probabilities
            (n, K) class probabilities of new rows.
        candidates
            Votes or candidate sets of the new rows, if the calibration rows had them too. By passing them you state
            that they arise in the same way.
        max_error, mode, look
            As in `setwise.triage`; of new rows ``"overall"`` counts the wrong labels among these alone.
        by
            As in `setwise.triage`. For new rows the calibration must have categories too.
        random_state
            Seeds the noise that breaks ties between confidences; default is the calibration's own seed.
        comparison
            What `compare` returned for the new rows: where they differ from the calibration rows, nothing is
            guaranteed. By default they are compared here, by the model's probabilities.
        """
        if probabilities is None:
            if candidates is not None:
                raise InputError("candidates: those of new rows", Remedy("probabilities", None, "for these rows"))
            return triage_calibration_rows(
                self.judgement, self.classes, max_error, mode, by=by, look=look, random_state=random_state
            )
        options: dict[str, Any] = {"by": by, "look": look, "random_state": random_state}
        return triage_new_rows(self, probabilities, candidates, max_error, mode, comparison=comparison, **options)

    def compare(
        self,
        probabilities: ProbabilityRows,
        *,
        by: Column = None,
        candidates: Candidates = None,
        groups: Column = None,
    ) -> Comparison:
        """Compares new rows with the calibration rows, by the most probable label and its probability.

        Parameters
        ----------
        probabilities
            The model's probabilities of the new rows.
        by, candidates
            As in `predict_set`: where rows are calibrated by category, they are compared within each category.
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
        The 400 new rows differ from the 500 calibration rows (p < 0.001).
        Guaranteed:    nothing for these rows.
        Seen:          the largest probability of a row is 0.758 ...
        """
        return RowTally(self).add(probabilities, by=by, candidates=candidates, groups=groups).compare()

    def monitor(
        self,
        delta: float = 0.05,
        *,
        random_state: Seed = None,
        resume: str | os.PathLike[str] | None = None,
    ) -> Monitor:
        """Watches new rows as they arrive, and raises an alarm once they are no longer like the calibration rows.

        Parameters
        ----------
        delta
            The probability that there is ever an alarm while rows come from the source of the calibration rows.
        random_state
            Seeds the noise that breaks ties.
        resume
            A file that `Monitor.save` wrote, to continue from; its `delta` and seed are used.

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
    """The calibrations of several folds as one: `probabilities` are one matrix per fold, from the fold's model."""

    def triage(
        self,
        probabilities: object = None,
        candidates: object = None,
        max_error: float = 0.05,
        mode: Mode = "overall",
        *,
        verified: Column = None,
        by: Column = None,
        look: int = 1,
        random_state: Seed = None,
    ) -> Triage:
        """Decides which calibration rows may be accepted, as `Calibration.triage` does; it cannot decide new rows.

        Parameters
        ----------
        verified
            The true label of each row, in the order in which rows were passed; None or NaN where it is not
            verified.
        """
        if probabilities is not None or candidates is not None:
            problem = "triage: folds score new rows and their own rows with different models"
            raise InputError(problem, "leave new rows out", Omission("cv", "ConformalClassifier"))
        return triage_folds(self, verified, max_error, mode, by=by, look=look, random_state=random_state)

    def compare(self, probabilities: Sequence[ProbabilityRows]) -> Comparison:
        """Compares new rows with the calibration rows of each fold, by the model of the fold."""
        return RowTally(self).add(probabilities).compare()

    def monitor(
        self, delta: float = 0.05, *, random_state: Seed = None, resume: str | os.PathLike[str] | None = None
    ) -> Monitor:
        """Watches new rows as they arrive, as `Calibration.monitor` does."""
        return Monitor(self, delta=delta, random_state=random_state, resume=resume)
