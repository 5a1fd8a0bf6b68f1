"""`CoveringClassifier`: learns to cover whole candidate sets, for guarantees that assume nothing about them.

Strategy `max` has to cover a row's strangest candidate, however the candidate sets arose. Its sets are small where
the score puts all of S first: inclusion probabilities g_y(x) = P(y ∈ S | x), mixed with the class posterior f as
w·g + (1 − w)·f. Everything, w included, is chosen on training rows by the mean size of the sets that `max` would
give there. The calibration rows are not used, so that Theorem 1 applies unchanged.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from setwise._arrays import Bools, Floats
from setwise.learn.base import CandidateClassifier
from setwise.learn.batches import Resident, as_device, candidate_mask, read_examples, read_source
from setwise.learn.classifier import PartialLabelClassifier, own_generator
from setwise.learn.fitted_networks import FEWEST, compare, trial_rows, try_out
from setwise.learn.losses import InclusionLoss
from setwise.learn.seeds import draw_seeds
from setwise.learn.settings import Settings, inclusion_epochs
from setwise.ranks import as_level, order_statistic, rank

_WEIGHTS = (0.75, 1.0, 0.5, 0.25, 0.0)  # the first is taken where rows are too few to tell
_TRIAL_EPOCHS = 20  # of inclusion models in trials; the final one gets `inclusion_epochs`


class CoveringClassifier(CandidateClassifier):
    """Learns which labels are candidates, to conformalize with strategy `max` and ``LAC(domain="unit")``.

    Parameters
    ----------
    posterior
        A `PartialLabelClassifier` for the class posterior; None means one with its defaults.
    inclusion
        A `PartialLabelClassifier` for the inclusion probabilities (its loss is replaced); None means a network
        with dropout, or the ``"cnn"`` for images. What is left at ``"auto"`` is chosen by the size of the sets.
    confidence_level
        The level for which the sets are to be small. The model serves other levels as well.
    device, random_state, verbose, missing
        As in `PartialLabelClassifier`; they apply to both models.

    Attributes
    ----------
    classes_
        The labels, in the order of the columns.
    posterior_, inclusion_
        The two models; `inclusion_` is None where w is 0, as for exact labels, where f is P(y ∈ S | x).
    weight_
        The weight w of the inclusion probabilities.
    choices_
        The mean size of the sets with each option that was tried, on held-out training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from setwise import LAC, conformalize
    >>> from setwise.learn import CoveringClassifier, PartialLabelClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 6, 900)
    >>> X = np.eye(6)[y] + 0.1 * rng.normal(size=(900, 6))
    >>> candidates = np.eye(6)[y] + np.eye(6)[y - 1] > 0  # each label comes with its neighbour
    >>> small = PartialLabelClassifier("linear", scale="standard", epochs=20)
    >>> model = CoveringClassifier(small, small, random_state=0).fit(X[:600], candidates[:600])
    >>> calibration = conformalize(
    ...     model.predict_inclusion(X[600:]), candidates[600:], "max", LAC(domain="unit")
    ... )
    >>> calibration.predict_set(model.predict_inclusion(np.eye(6)[:2]), 0.9).to_lists()
    [[0, 5], [0, 1]]
    """

    posterior_: PartialLabelClassifier
    inclusion_: PartialLabelClassifier | None
    weight_: float
    choices_: dict[str, float]

    def __init__(
        self,
        posterior: Any = None,
        inclusion: Any = None,
        *,
        confidence_level: float = 0.9,
        device: Any = "auto",
        random_state: Any = None,
        verbose: int = 0,
        missing: str = "error",
    ) -> None:
        self.posterior = posterior
        self.inclusion = inclusion
        self.confidence_level = confidence_level
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.missing = missing

    def fit(self, X: Any, y: Any = None) -> CoveringClassifier:
        """Learns from rows X and their candidates y, as `PartialLabelClassifier.fit` does."""
        as_level(self.confidence_level)  # refused before learning
        device = as_device(self.device)
        first, second, third = draw_seeds(self.random_state, 3)
        source, sets = read_examples(self, X, y, device)
        posterior = self._part(self.posterior, "posterior", first)
        inclusion = self._part(self.inclusion, "inclusion", second, images=len(source.shape) > 1)
        values: dict[str, float] = {}
        self.weight_, self.choices_ = 0.0, {}
        if (sets.sizes > 1).any():
            with own_generator(device, third):
                values = self._choose(source, candidate_mask(sets, device), posterior, inclusion, third)
        posterior.fit(X, sets)
        if values:
            posterior.fitted_ = replace(posterior.fitted_, choices=values)
        if self.inclusion is None and inclusion.network == "mlp":
            inclusion.set_params(epochs=inclusion_epochs(len(sets), device))
        self.inclusion_ = inclusion.fit(X, sets) if self.weight_ else None
        self.classes_, self.posterior_ = posterior.classes_, posterior
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The class posterior, (n, K): rows sum to one."""
        check_is_fitted(self)
        return self.posterior_.predict_proba(X)

    def predict_inclusion(self, X: Any) -> NDArray[np.float64]:
        """The probability that each label is a candidate, (n, K), on which `max` should be calibrated."""
        probabilities = self.predict_proba(X)
        if self.inclusion_ is None:
            return probabilities
        device = as_device(self.device)
        source = read_source(self.inclusion_, X, device, reset=False)
        inclusion = self.inclusion_.fitted_.logits(source, device).sigmoid().mean(dim=0).cpu().numpy()
        return _mix(inclusion, probabilities, self.weight_)

    # ---------------------------------------------------------------- parts

    def _part(self, model: Any, name: str, seed: int, *, images: bool = False) -> PartialLabelClassifier:
        """One of the two models, unfitted, with this estimator's seed and device."""
        if model is not None and not isinstance(model, PartialLabelClassifier):
            raise TypeError(f"{name}: expected a PartialLabelClassifier or None, got {type(model).__name__}.")
        part: PartialLabelClassifier
        if model is not None:
            part = clone(model)
        elif name == "posterior" or images:
            part = PartialLabelClassifier()
        else:  # the depth, width, dropout and decay that served all data sets tried
            part = PartialLabelClassifier(
                "mlp", hidden_sizes=(300, 300, 300), dropout=0.5, weight_decay=1.0, epochs=_TRIAL_EPOCHS
            )
        if name == "inclusion":
            part.set_params(loss=InclusionLoss)
        part.set_params(device=self.device, random_state=seed, verbose=self.verbose, missing=self.missing)
        return part

    def _choose(
        self,
        source: Resident,
        candidates: Tensor,
        posterior: PartialLabelClassifier,
        inclusion: PartialLabelClassifier,
        seed: int,
    ) -> dict[str, float]:
        """Chooses both models on held-out training rows, the inclusion model and the weight by the size of sets."""
        choices, options = posterior.settings().alternatives(source), inclusion.settings().alternatives(source)
        best, self.weight_ = options[0], _WEIGHTS[0]
        if len(candidates) < FEWEST:
            _settle(inclusion, best)
            return {}
        chosen, values, logits = compare(choices, source, candidates, seed)
        _settle(posterior, chosen)
        rates = [(choice.network, str(choice.scale), v) for choice, v in zip(choices, values.values(), strict=True)]
        worse = {(name, scale) for name, scale, v in rates if v < max(w for other, _, w in rates if other == name)}
        held = trial_rows(len(candidates), seed, candidates.device)[1]
        mask: Bools = candidates[held].cpu().numpy()
        probabilities, smallest = logits.double().softmax(-1).cpu().numpy(), np.inf
        for option in options:
            if (option.network, str(option.scale)) in worse:  # a scale that suits the one network suits the other
                continue
            included = try_out(option, source, candidates, seed).double().sigmoid().cpu().numpy()
            for weight in _WEIGHTS:
                size = covering_size(_mix(included, probabilities, weight), mask, as_level(self.confidence_level))
                self.choices_[f"{option.network}, scale {option.scale}, weight {weight:g}"] = size
                if size < smallest:
                    best, self.weight_, smallest = option, weight, size
        _settle(inclusion, best)
        return values if len(choices) > 1 else {}


def covering_size(inclusion: Floats, candidates: Bools, level: Fraction) -> float:
    """The mean size of the sets that `max` gives at a level on its own calibration rows.

    >>> inclusion = np.array([[0.9, 0.8, 0.1], [0.7, 0.1, 0.6], [0.2, 0.9, 0.3]])
    >>> candidates = np.array([[True, True, False], [True, False, True], [False, True, False]])
    >>> covering_size(inclusion, candidates, Fraction(3, 4))
    1.6666666666666667
    """
    worst = np.where(candidates, -inclusion, -np.inf).max(axis=1)
    threshold = order_statistic(worst, rank(len(worst), level))
    return float((-inclusion <= threshold).sum(axis=1).mean())


def _settle(model: PartialLabelClassifier, chosen: Settings) -> None:
    model.set_params(network=chosen.network, scale=chosen.scale, hidden_sizes=chosen.hidden_sizes)


def _mix(inclusion: Floats, probabilities: Floats, weight: float) -> NDArray[np.float64]:
    return weight * inclusion + (1.0 - weight) * probabilities
