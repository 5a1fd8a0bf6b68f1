"""`PartialLabelClassifier`: a network learned from candidate sets, as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from setwise.crowd.annotator_model import own_fits
from setwise.labels.votes import Votes
from setwise.learn.base import CandidateClassifier
from setwise.learn.batches import as_device, candidate_mask, read_examples, read_source
from setwise.learn.fitted_networks import (
    FEWEST,
    FittedNetworks,
    choose,
    fit_networks,
    out_of_sample,
)
from setwise.learn.seeds import draw_seeds
from setwise.learn.settings import Settings


class PartialLabelClassifier(CandidateClassifier):
    """Learns class probabilities from candidate sets: per row a set of labels, one of which is true.

    Parameters
    ----------
    network
        ``"linear"``, ``"mlp"``, ``"cnn"``, a callable that returns a torch module, or ``"auto"``: chosen
        together with `scale` by approximated accuracy on held-out training rows, which needs no true labels.
    loss
        ``"proden"``, ``"rc"``, ``"cc"``, ``"naive"``, ``"osl"``, ``"merit"``, ``"gce"``, ``"lws"``, ``"cavl"``,
        or a callable ``(n_examples, n_models)`` such as ``functools.partial(MeritLoss, beta=0.5)``. With `Votes`
        ``"proden"`` means ``"naive"``, as the posterior of votes includes the model's probabilities already.
    scale
        ``"standard"``, ``"rows"`` (unit length), None, a pair (shift, spread), or ``"auto"``: chosen as
        above, with a fixed pair for bytes in place of ``"standard"``.
    hidden_sizes, batch_norm, dropout
        Options of the ``"mlp"``. With few rows ``"auto"`` uses the first size alone.
    epochs, batch_size, optimizer, learning_rate, weight_decay
        None chooses what suits the network. The epochs are then 100; on a CPU with more than 10,000 rows as many as
        show a million rows, but at least 5. Optimizers: ``"sgd"`` (momentum 0.9), ``"adam"``, ``"adamw"``.
    device
        ``"auto"``, which is a GPU if there is one, or any device that torch knows.
    random_state
        Seeds weights and the order of examples. Same seed, same device: same weights, bit for bit.
    verbose
        0 is silent, 1 shows progress on stderr.
    ensemble
        Number of models with different seeds that are trained together and averaged.
    annealing_epochs
        Number of epochs over which the learning rate falls to zero along a cosine. None means all `epochs`; with
        more than these, training stops on the way down; with 0 the rate stays constant.
    shuffle, precision
        Whether to shuffle batches; the arithmetic: ``"auto"``, ``"float32"``, ``"tf32"``, ``"bfloat16"``.
    missing
        What to do with rows without candidates: ``"error"``, or ``"full"``, which makes every label a candidate.

    Attributes
    ----------
    classes_
        The labels, in the order of `predict_proba`'s columns.
    fitted_
        What was learned: networks, scaling and the settings as chosen.
    network_
        The networks, as one module.
    choices_
        The approximated accuracy of each option that ``"auto"`` tried.
    n_iter_
        Number of epochs run.

    Examples
    --------
    >>> import numpy as np
    >>> from setwise.learn import PartialLabelClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 90)
    >>> X = np.eye(3)[y] + 0.1 * rng.normal(size=(90, 3))
    >>> candidates = (np.eye(3)[y] + (rng.random((90, 3)) < 0.3)) > 0
    >>> model = PartialLabelClassifier("linear", epochs=20, random_state=0).fit(X, candidates)
    >>> model.predict(np.eye(3))
    array([0, 1, 2])
    """

    fitted_: FittedNetworks

    reads_votes = True

    def __init__(
        self,
        network: Any = "auto",
        loss: Any = "proden",
        scale: Any = "auto",
        hidden_sizes: Sequence[int] = (300, 300, 300, 300),
        *,
        epochs: int | None = None,
        batch_size: int | None = None,
        optimizer: str | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        device: Any = "auto",
        random_state: Any = None,
        verbose: int = 0,
        ensemble: int = 1,
        batch_norm: bool = True,
        dropout: float = 0.0,
        annealing_epochs: int | None = None,
        shuffle: bool = True,
        precision: str = "auto",
        missing: str = "error",
    ) -> None:
        self.network = network
        self.loss = loss
        self.scale = scale
        self.hidden_sizes = hidden_sizes
        self.epochs = epochs
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.ensemble = ensemble
        self.batch_norm = batch_norm
        self.dropout = dropout
        self.annealing_epochs = annealing_epochs
        self.shuffle = shuffle
        self.precision = precision
        self.missing = missing

    def fit(self, X: Any, y: Any = None) -> PartialLabelClassifier:
        """Learns from rows X and their candidates y (see `setwise.LabelSets`); a label vector is exact labels.

        For `setwise.Votes` the targets are the probabilities of the labels, given the answers (see `annotators`)
        and the recalibrated probabilities of networks that learned from other rows.
        """
        device = as_device(self.device)
        settings = self.settings()
        if isinstance(y, Votes) and settings.loss == "proden":  # see `loss`
            settings = replace(settings, loss="naive")
        source, sets = read_examples(self, X, y, device)
        votes = own_fits(y.recode(sets.vocabulary)) if isinstance(y, Votes) else None
        candidates = candidate_mask(sets, device, votes)
        seeds = draw_seeds(self.random_state, settings.ensemble)
        with own_generator(device, seeds[0]):
            if votes is not None and len(sets) >= FEWEST:
                settings, choices = choose(settings, source, candidates, seeds[0])
                own = out_of_sample(settings, source, candidates, seeds[0])
                targets = votes.label_targets(own.cpu().numpy())
                candidates = torch.tensor(targets).to(candidates)
                fitted = replace(fit_networks(settings, source, candidates, seeds), choices=choices)
            else:
                fitted = fit_networks(settings, source, candidates, seeds)
        self.fitted_, self.classes_ = fitted, np.array(sets.classes)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class, (n, K), averaged over the ensemble."""
        check_is_fitted(self)
        device = as_device(self.device)
        logits = self.fitted_.logits(read_source(self, X, device, reset=False), device)
        return logits.softmax(-1).mean(dim=0).cpu().numpy()

    @property
    def network_(self) -> torch.nn.Module:
        """The networks, as one module."""
        return self.fitted_.network

    @property
    def choices_(self) -> dict[str, float]:
        """The approximated accuracy of each option that ``"auto"`` tried."""
        return self.fitted_.choices

    @property
    def n_iter_(self) -> int:
        """Number of epochs run."""
        return self.fitted_.epochs

    # ---------------------------------------------------------------- parts

    def settings(self) -> Settings:
        """The parameters of this estimator that say how to train."""
        values = self.get_params(deep=False)
        for name in ("epochs", "ensemble"):
            if values[name] is not None and int(values[name]) < 1:
                raise ValueError(f"{name}: {values[name]} is not a positive number.")
        for name in ("batch_size", "learning_rate", "weight_decay", "annealing_epochs"):
            least = 0 if name in {"weight_decay", "annealing_epochs"} else 1e-300
            if values[name] is not None and not float(values[name]) >= least:
                raise ValueError(f"{name}: {values[name]} is {'negative' if least == 0 else 'not positive'}.")
        if not 0 <= float(values["dropout"]) < 1:
            raise ValueError(f"dropout: {values['dropout']} is not in [0, 1).")
        if values["precision"] not in (known := ("auto", "float32", "tf32", "bfloat16")):
            raise ValueError(f"precision: {values['precision']!r} is not known; use one of {', '.join(known)}.")
        outside = {"device", "random_state", "missing"}
        return Settings(**{name: value for name, value in values.items() if name not in outside})


@contextmanager
def own_generator(device: torch.device, seed: int) -> Iterator[None]:
    """Seeds torch's generator, from which dropout draws, and restores it afterwards."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
