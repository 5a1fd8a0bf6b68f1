"""`PartialLabelClassifier`: a network learned from candidate sets, as a scikit-learn estimator."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from setwise.labels.label_sets import LabelSets
from setwise.learn.fitting import Settings, choose, resume, train
from setwise.learn.inputs import read_candidates
from setwise.learn.networks import Single
from setwise.learn.presets import preset_settings
from setwise.learn.scaling import Scaling
from setwise.learn.scoring import CandidateClassifier
from setwise.learn.sources import CHUNK, Source, read_source


class PartialLabelClassifier(CandidateClassifier):
    """Learns class probabilities from candidate sets: one set of labels a row, one of which is true.

    Parameters
    ----------
    network
        ``"linear"``, ``"mlp"``, ``"cnn"``, a callable that returns a torch module, or ``"auto"``: chosen
        together with `scale` by approximated accuracy on held-out training rows, without any truth.
    loss
        ``"proden"``, ``"rc"``, ``"cc"``, ``"naive"``, ``"osl"``, ``"merit"``, ``"gce"``, ``"lws"``, ``"cavl"``,
        or a callable ``(n_examples, n_models)`` such as ``functools.partial(MeritLoss, beta=0.5)``.
    scale
        ``"standard"``, ``"rows"`` (unit length), None, a pair (shift, spread), or ``"auto"``: chosen as
        above, with a fixed pair for bytes in place of ``"standard"``.
    hidden_sizes, batch_norm, dropout
        Of the ``"mlp"``. ``"auto"`` uses the first size alone where rows are few.
    epochs, batch_size, optimizer, learning_rate, weight_decay
        None takes what suits the network. Optimizers: ``"sgd"`` (momentum 0.9), ``"adam"``, ``"adamw"``.
    device
        ``"auto"`` is a GPU where there is one, or anything torch understands.
    random_state
        Seeds weights and the order of examples. Same seed, same device: same weights, bit for bit.
    verbose
        0 is silent, 1 shows progress on stderr.
    preset
        Fills in every parameter left at its default; see `setwise.learn.PRESETS`.
    ensemble
        How many models, differing by their seeds, are trained together and averaged.
    cleaning
        ``"pop"``, ``"conformal"``, a callable that makes a cleaner, or None: thins out candidates on the way.
    early_stopping, patience, validation_fraction
        Stop by ``"covering"`` or ``"approximate"`` on that fraction of the rows, held out.
    temperature
        Fit a temperature on held-out training rows (see `fit_temperature` for when it refuses; the model is
        then fitted nonetheless, with temperature 1).
    annealing_epochs
        Over how many epochs the learning rate falls to zero along a cosine. None: over all `epochs`. More than
        `epochs`: training stops on the way down. 0: the rate stays constant.
    shuffle, precision
        Shuffled batches; ``"auto"``, ``"float32"``, ``"tf32"``, ``"bfloat16"``.
    checkpoint, checkpoint_every
        A file that holds the run so far; a fit that finds it goes on from there.
    missing
        Rows without candidates: ``"error"``, or ``"full"``, every label (unlabelled rows).

    Attributes
    ----------
    classes_
        The labels, in the order of `predict_proba`'s columns.
    network_, scaling_, temperature_
        What was learned.
    choices_
        The approximated accuracy of each option that ``"auto"`` tried.
    n_iter_
        Epochs run.

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

    network_: torch.nn.Module
    scaling_: Scaling
    temperature_: float
    choices_: dict[str, float]
    n_iter_: int
    _moments: list[torch.Tensor]
    _settled: dict[str, Any]

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
        preset: str | None = None,
        ensemble: int = 1,
        cleaning: Any = None,
        early_stopping: str | None = None,
        patience: int = 10,
        validation_fraction: float = 0.1,
        temperature: bool = False,
        batch_norm: bool = True,
        dropout: float = 0.0,
        annealing_epochs: int | None = None,
        shuffle: bool = True,
        precision: str = "auto",
        checkpoint: Any = None,
        checkpoint_every: int = 1,
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
        self.preset = preset
        self.ensemble = ensemble
        self.cleaning = cleaning
        self.early_stopping = early_stopping
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.temperature = temperature
        self.batch_norm = batch_norm
        self.dropout = dropout
        self.annealing_epochs = annealing_epochs
        self.shuffle = shuffle
        self.precision = precision
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.missing = missing

    def fit(self, X: Any, y: Any = None) -> PartialLabelClassifier:
        """Learns from rows X and their candidates y (see `setwise.LabelSets`); a label vector is exact labels.

        With a torch `Dataset` of (features, candidate mask or label) items, y may be left out.
        """
        source, sets = self._read(X, y, None, reset=True)
        return self._learn(source, sets, self.settings())

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> PartialLabelClassifier:
        """One more epoch on these rows, from the weights so far, at the full learning rate.

        The first call needs `classes` where not every label occurs in it, and settles network and scaling.
        """
        again = hasattr(self, "network_")
        source, sets = self._read(X, y, self.classes_ if again else classes, reset=not again)
        settings = self.settings()
        if again:
            return self._learn(source, sets, settings, again=True)
        if settings.open_questions:
            settings, _ = choose(settings, source, _mask(sets, self.device), 0)
        return self._learn(source, sets, replace(settings, epochs=1, annealing_epochs=0))

    def fit_many(self, X: Any, y: Any, parts: Sequence[Any]) -> list[PartialLabelClassifier]:
        """Fitted clones, one for each array of row positions, trained together; see `setwise.learn.together`."""
        from setwise.learn.together import fit_many  # noqa: PLC0415 - it knows this class

        seeds = [_seeds(self.random_state, 1)[0] for _ in parts]
        return fit_many(self, X, y, parts, seeds, _device(self.device))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class, (n, K), averaged over the ensemble."""
        check_is_fitted(self)
        device = _device(self.device)
        source = read_source(self, X, device, reset=False)
        logits = self._logits(source, device) / self.temperature_
        probabilities: NDArray[np.float64] = logits.softmax(-1).mean(dim=0).cpu().numpy()
        return probabilities

    # ---------------------------------------------------------------- parts

    def _read(self, X: Any, y: Any, classes: Any, *, reset: bool) -> tuple[Source, LabelSets]:
        if y is None and isinstance(X, torch.utils.data.Dataset):
            y = np.stack([np.asarray(X[i][1]) for i in range(len(X))])  # type: ignore[arg-type]
        source = read_source(self, X, _device(self.device), reset=reset)
        sets = read_candidates(y, classes, missing=self.missing)
        if len(sets) != source.n_rows:
            raise ValueError(f"y: inconsistent numbers of samples, {len(sets)} rows for {source.n_rows} rows of X.")
        return source, sets

    def _learn(
        self, source: Source, sets: LabelSets, settings: Settings, *, again: bool = False
    ) -> PartialLabelClassifier:
        device = _device(self.device)
        candidates = _mask(sets, device)
        seeds = _seeds(self.random_state, settings.ensemble)
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(seeds[0])
            if again:
                settings = replace(settings, **self._settled)
                seeds = [seed + self.n_iter_ for seed in seeds]
                network, scaling = copy.deepcopy(self.network_), copy.deepcopy(self.scaling_)
                earlier = (network.to(device), scaling.to(device), self._moments)
                trained = resume(settings, source, candidates, seeds, earlier)
            else:
                trained = train(settings, source, candidates, seeds)
                self.temperature_, self.choices_, self.n_iter_ = trained.temperature, trained.choices, 0
        self.classes_ = np.array(sets.classes)
        self.network_, self.scaling_ = trained.network.cpu(), trained.scaling.cpu()
        self.n_iter_ += trained.trainer.epoch
        self._moments = [tensor.cpu() for tensor in trained.trainer.optimizer.tensors()]
        self._settled = {name: getattr(trained.settings, name) for name in ("network", "scale", "hidden_sizes")}
        if trained.refusal is not None:  # the training is kept, with temperature 1
            raise trained.refusal
        return self

    def settings(self) -> Settings:
        """Own parameters, the preset's where they were left at their defaults."""
        values = self.get_params(deep=False)
        for name, value in preset_settings(self.preset).items():
            if _same(values[name], _DEFAULTS[name]):
                values[name] = value
        values["epochs"] = 100 if values["epochs"] is None else values["epochs"]
        for name in ("epochs", "ensemble", "patience", "checkpoint_every"):
            if int(values[name]) < 1:
                raise ValueError(f"{name}: {values[name]} is not a positive number.")
        for name in ("batch_size", "learning_rate", "weight_decay", "annealing_epochs"):
            least = 0 if name in {"weight_decay", "annealing_epochs"} else 1e-300
            if values[name] is not None and not float(values[name]) >= least:
                raise ValueError(f"{name}: {values[name]} is {'negative' if least == 0 else 'not positive'}.")
        if not 0 <= float(values["dropout"]) < 1:
            raise ValueError(f"dropout: {values['dropout']} is not in [0, 1).")
        if values["precision"] not in {"auto", "float32", "tf32", "bfloat16"}:
            raise ValueError(
                f"precision: {values['precision']!r} is not known; use 'auto', 'float32', 'tf32' or 'bfloat16'."
            )
        if values["checkpoint"] is not None and self.random_state is None:
            raise ValueError(
                "checkpoint: an interrupted run can only be taken up with the same seed; set random_state."
            )
        outside = {"device", "random_state", "preset", "missing"}
        return Settings(**{name: value for name, value in values.items() if name not in outside})

    @torch.no_grad()
    def _logits(self, source: Source, device: torch.device) -> torch.Tensor:
        """In float64 for our own networks, so that a row's answer does not depend on its batch."""
        network = copy.deepcopy(self.network_).to(device).eval()
        scaling = copy.deepcopy(self.scaling_).to(device)
        if not isinstance(network, Single):
            network, scaling.dtype = network.double(), torch.float64
        parts = []
        for start in range(0, source.n_rows, CHUNK):
            index = torch.arange(start, min(start + CHUNK, source.n_rows), device=device)
            batch = scaling(source.batch(index[None]))
            models = 1 if isinstance(network, Single) else len(next(network.parameters()))
            parts.append(network(batch.expand(models, *batch.shape[1:])).double())
        return torch.cat(parts, dim=1)


_DEFAULTS = {
    name: parameter.default
    for name, parameter in inspect.signature(PartialLabelClassifier.__init__).parameters.items()
}


def _mask(sets: LabelSets, device: Any) -> torch.Tensor:
    return torch.from_numpy(np.array(sets.to_mask())).to(_device(device))


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))


def _seeds(random_state: Any, n: int) -> list[int]:
    return [int(s) for s in check_random_state(random_state).randint(0, 2**31 - 1, size=n)]


def _device(device: Any) -> torch.device:
    if isinstance(device, str) and device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(device)
