"""Temperature scaling: one number T for softmax(z / T), fitted on held-out rows.

With true labels this is the usual proper fit. With candidates it maximises their likelihood Σ_S p, which is
consistent only where candidates arise at random given the truth; where the model's own top labels make the
candidates, T runs to zero. In that case it raises an error.
"""

from __future__ import annotations

import math

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from setwise.learn.criteria import covering_rate

LOWEST, HIGHEST = 0.05, 20.0
_TOO_COVERED = 0.995


class TemperatureError(ValueError):
    """The rows held out do not determine a temperature."""


def fit_temperature(logits: Tensor, candidates: Tensor, *, verified: bool = False) -> float:
    """The temperature that makes the candidates most likely.

    Parameters
    ----------
    logits
        (n, K), or (M, n, K) for an ensemble, of rows the model was not trained on.
    candidates
        Boolean mask (n, K); singletons where labels are verified.
    verified
        Whether the candidates are verified labels: then the fit is proper, and only a temperature at its bound is
        an error.

    Examples
    --------
    >>> z = torch.tensor([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 0.0]])
    >>> y = torch.tensor([[True, False], [True, False], [False, True], [False, True]])
    >>> round(fit_temperature(z, y, verified=True), 2)
    1.82
    """
    z = logits.detach().double().reshape(-1, *logits.shape[-2:])
    inside = ~candidates.to(z.device)
    covered = float(covering_rate(z.softmax(-1).mean(0), candidates.to(z.device)))
    if not verified and covered > _TOO_COVERED:
        raise TemperatureError(
            f"temperature: the top label is a candidate in {covered:.1%} of the held-out rows, so candidates "
            "say nothing about confidence; use verified labels or temperature=False."
        )

    def loss(log_t: float) -> float:
        log_p = (z / math.exp(log_t)).log_softmax(-1).logsumexp(0) - math.log(len(z))
        return -float(log_p.masked_fill(inside, -torch.inf).logsumexp(-1).mean())

    low, high = math.log(LOWEST), math.log(HIGHEST)
    found = float(minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-6}).x)
    if min(found - low, high - found) < 0.01:
        raise TemperatureError(
            f"temperature: the fit reached its bound {math.exp(found):.3g}; candidates here seem to depend on "
            "the model's own choice. Use verified labels or temperature=False."
        )
    return math.exp(found)
