"""Fitted models as files, without pickle: networks as safetensors and settings, scikit-learn's by skops.

`write_model` puts a model into a folder and returns a description that JSON can hold; `read_model` makes the model
again from both. A `ColumnEncoder` before other steps stands in the description itself. A model that could only
come back by running code from the file (a network made by a callable, a class that is neither scikit-learn's nor
ours) is described as `"external"`: the user must pass it on loading.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from setwise.errors import InputError, Remedy
from setwise.labels.vocabulary import Vocabulary
from setwise.learn.column_encoder import ColumnEncoder
from setwise.learn.needed_trust import types_needing_trust
from setwise.storage.directory import Part, Parts
from setwise.storage.limits import check_unpacked
from setwise.storage.stored_arrays import PARSING

_SAFE_SKOPS = (0, 15)  # earlier ones trust trees, whose state can end the process if forged
_ADDRESS = re.compile(r'("__id__": |"file": ")([0-9a-f-]+)')
_OF_THE_MACHINE = {"device", "verbose"}

Description = dict[str, Any]


def write_model(model: Any, folder: Path, stem: str = "model") -> Description:
    """Writes the files a model needs into the folder; the description says which, and how to read them."""
    if isinstance(model, FrozenEstimator):
        inner = write_model(model.estimator, folder, stem)
        return inner if inner["kind"] == "external" else {"kind": "frozen", "model": inner}
    if write := _writer_of(model):
        return write(model, folder, stem)
    if isinstance(model, Pipeline) and isinstance(model.steps[0][1], ColumnEncoder):
        (_, encoder), *others = model.steps
        encoded = write_model(others[0][1] if len(others) == 1 else Pipeline(others), folder, stem)
        name = others[0][0] if len(others) == 1 else None
        described = {"kind": "encoded", "encoder": encoder.to_json(), "name": name, "model": encoded}
        return _external(model) if encoded["kind"] == "external" else described
    if isinstance(model, Pipeline) and _writer_of(model.steps[-1][1]) and len(model.steps) > 1:
        last = write_model(model.steps[-1][1], folder, stem)
        before = _write_skops(Pipeline(model.steps[:-1]), folder, f"{stem}-steps")
        if "external" in {last["kind"], before["kind"]}:
            return _external(model)
        return {"kind": "pipeline", "steps": before, "name": model.steps[-1][0], "last": last}
    if type(model).__module__.partition(".")[0] in {"sklearn", "setwise", "lightgbm", "xgboost"}:
        return _write_skops(model, folder, stem)
    return _external(model)


def read_model(description: Description, parts: Parts, trusted: Sequence[str] | None) -> Any:
    """The model that `write_model` described; None where the user must pass it."""
    kind = description["kind"]
    if kind == "external":
        return None
    if kind == "frozen":
        return FrozenEstimator(read_model(description["model"], parts, trusted))
    if kind == "network":
        return _read_network(description, parts)
    if kind == "covering":
        return _read_covering(description, parts)
    if kind == "pipeline":
        steps = _read_skops(description["steps"], parts, trusted).steps
        return Pipeline([*steps, (description["name"], read_model(description["last"], parts, trusted))])
    if kind == "encoded":
        model = read_model(description["model"], parts, trusted)
        steps = model.steps if description["name"] is None else [(description["name"], model)]
        return Pipeline([("columns", ColumnEncoder.from_json(description["encoder"])), *steps])
    if kind == "skops":
        return _read_skops(description, parts, trusted)
    raise ValueError(f"{parts.folder}: holds a model of the kind {kind!r}, which this setwise does not know.")


# -------------------------------------------------------------------- networks


def _writer_of(model: Any) -> Callable[[Any, Path, str], Description] | None:
    """What writes our own networks; they are known by their names, as torch must not be imported for others."""
    kind = type(model)
    return _WRITERS.get(kind.__qualname__) if kind.__module__.startswith("setwise.learn.") else None


def _write_network(model: Any, folder: Path, stem: str) -> Description:
    from safetensors.torch import save  # as torch, needed here alone

    from setwise.learn.networks import Single

    fitted = model.fitted_
    if isinstance(fitted.network, Single):
        return _external(model)
    tensors = {f"network.{name}": tensor for name, tensor in fitted.network.state_dict().items()}
    tensors |= {f"scaling.{name}": tensor for name, tensor in fitted.scaling.state_dict().items()}
    file = f"{stem}.safetensors"
    content = save({name: tensor.contiguous() for name, tensor in tensors.items()})
    (folder / file).write_bytes(content)  # safetensors itself would let nobody else read the file
    return {
        "kind": "network",
        "file": file,
        "network": fitted.settings.network,
        "hidden_sizes": [int(size) for size in fitted.settings.hidden_sizes],
        "batch_norm": any(name.startswith("network.norms.") for name in tensors),
        "ensemble": fitted.n_models,
        "shape": _shape(fitted.network),
        "classes": model.classes_.tolist(),
        "rows_of_unit_length": bool(fitted.scaling.rows),
        "epochs_run": int(fitted.epochs),
        "choices": {name: float(value) for name, value in fitted.choices.items()},
        "parameters": _simple(model.get_params(deep=False)),
        **_features(model),
    }


def _read_network(description: Description, parts: Parts) -> Any:
    try:
        from setwise.learn.classifier import PartialLabelClassifier  # torch is needed here alone
        from setwise.learn.fitted_networks import FittedNetworks

        part = parts[description["file"]]
        weights, scaling = _read_tensors(description, part)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{parts.folder}: the model is a network and needs {error.name}: pip install 'setwise[learn]'.",
            name=error.name,
        ) from error
    from setwise.learn.networks import network_of_weights
    from setwise.learn.scaling import Scaling

    parameters = _own_parameters(description)
    if isinstance(parameters.get("hidden_sizes"), list):
        parameters["hidden_sizes"] = tuple(parameters["hidden_sizes"])
    model = PartialLabelClassifier(**parameters)
    try:
        network = network_of_weights(
            weights,
            description["network"],
            description["ensemble"],
            description["shape"],
            len(description["classes"]),
            hidden_sizes=description["hidden_sizes"],
            batch_norm=description["batch_norm"],
        )
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"{part}: other weights than described ({error}).") from error
    model.fitted_ = FittedNetworks(
        network,
        Scaling(scaling.get("shift"), scaling.get("spread"), rows=description["rows_of_unit_length"]),
        replace(model.settings(), network=description["network"], hidden_sizes=tuple(description["hidden_sizes"])),
        description["epochs_run"],
        description["choices"],
    )
    model.classes_ = np.array(Vocabulary.declare(description["classes"]).classes)
    if description.get("n_features") is not None:
        model.n_features_in_ = description["n_features"]
    if description.get("feature_names") is not None:
        model.feature_names_in_ = np.array(description["feature_names"], dtype=object)
    return model


def _read_tensors(description: Description, part: Part) -> tuple[dict[str, Any], dict[str, Any]]:
    """The weights and the scaling in a safetensors file, finite, and the scaling no larger than described."""
    from safetensors import SafetensorError  # as torch, needed here alone
    from safetensors.torch import load

    try:
        tensors = load(part.content)
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{part}: not a safetensors file ({error}).") from error
    if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
        raise ValueError(f"{part}: holds weights that are not finite.")
    weights, scaling = (
        {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}
        for start in ("network.", "scaling.")
    )
    features, models = math.prod(description["shape"]), description["ensemble"]
    sizes = [(tensor.numel(), tensor.shape[-1:]) for tensor in scaling.values()]
    fits = all(n <= (models if last == (1,) else features * models) for n, last in sizes)
    if not fits or ("spread" in scaling and not bool((scaling["spread"] > 0).all())):
        raise ValueError(f"{part}: a scaling of other features than described, or by no positive spread.")
    return weights, scaling


def _write_covering(model: Any, folder: Path, stem: str) -> Description:
    """Two networks and the weight between them."""
    parts = {"posterior": model.posterior_, "inclusion": model.inclusion_}
    written = {
        name: None if part is None else _write_network(part, folder, f"{stem}-{name}")
        for name, part in parts.items()
    }
    if any(part is not None and part["kind"] == "external" for part in written.values()):
        return _external(model)
    return {
        "kind": "covering",
        **written,
        "weight": float(model.weight_),
        "choices": model.choices_,
        "parameters": _simple(model.get_params(deep=False)),
    }


_WRITERS = {"PartialLabelClassifier": _write_network, "CoveringClassifier": _write_covering}


def _read_covering(description: Description, parts: Parts) -> Any:
    posterior = _read_network(description["posterior"], parts)
    inclusion = None if description["inclusion"] is None else _read_network(description["inclusion"], parts)
    from setwise.learn.covering_classifier import CoveringClassifier  # needs torch, which the parts did

    weight = description["weight"]
    alike = inclusion is None or inclusion.classes_.tolist() == posterior.classes_.tolist()
    if not alike or not isinstance(weight, float) or not 0 <= weight <= 1:
        raise ValueError(f"{parts.folder}: describes two networks that do not belong together.")
    model = CoveringClassifier(**_own_parameters(description))
    model.posterior_, model.inclusion_ = posterior, inclusion
    model.weight_, model.choices_ = weight, description["choices"]
    model.classes_ = posterior.classes_
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(posterior, name):
            setattr(model, name, getattr(posterior, name))
    return model


def _shape(network: Any) -> list[int]:
    """The shape of one example, as far as the network depends on it."""
    if hasattr(network, "shape"):  # images
        return [int(size) for size in network.shape]
    first = network.hidden[0] if getattr(network, "hidden", None) else network.output
    return [int(first.weight.shape[-1])]


def _simple(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters that JSON can hold; what it cannot (callables, generators) does not matter for prediction."""
    plain: dict[str, Any] = {}
    for name, value in parameters.items():
        kept = list(value) if isinstance(value, tuple) else value
        simple = kept if isinstance(kept, list) else [kept]
        if name not in _OF_THE_MACHINE and all(
            part is None or isinstance(part, (str, int, float)) for part in simple
        ):
            plain[name] = kept
    return plain


def _own_parameters(description: Description) -> dict[str, Any]:
    """The parameters of a file, without those of the machine."""
    return {name: value for name, value in description["parameters"].items() if name not in _OF_THE_MACHINE}


def _features(model: Any) -> dict[str, Any]:
    names = getattr(model, "feature_names_in_", None)
    return {
        "n_features": getattr(model, "n_features_in_", None),
        "feature_names": None if names is None else [str(name) for name in names],
    }


# -------------------------------------------------------------------- scikit-learn


def _write_skops(model: Any, folder: Path, stem: str) -> Description:
    io = _skops("save")
    try:
        content = _without_addresses(io.dumps(model))
        foreign = types_needing_trust(content)
    except Exception:  # noqa: BLE001 - skops has no common error for what it cannot hold
        return _external(model)
    if any(name.partition(".")[0] in {"torch", "setwise", "__main__", "builtins"} for name in foreign):
        return _external(model)
    file = f"{stem}.skops"
    (folder / file).write_bytes(content)
    return {"kind": "skops", "file": file, "class": _name(model)}


def _without_addresses(content: bytes) -> bytes:
    """The same archive with numbers for addresses in memory, and no times: equal models have equal files."""
    numbers: dict[str, str] = {}
    with ZipFile(BytesIO(content)) as old, ZipFile(made := BytesIO(), "w") as new:
        schema = _ADDRESS.sub(
            lambda at: at[1] + numbers.setdefault(at[2], str(len(numbers))), old.read("schema.json").decode()
        )
        for name in old.namelist():
            address, _, kind = name.partition(".")
            text = schema if name == "schema.json" else old.read(name)
            new.writestr(ZipInfo(f"{numbers.get(address, address)}.{kind}"), text)
    return made.getvalue()


def _read_skops(description: Description, parts: Parts, trusted: Sequence[str] | None) -> Any:
    io, part = _skops("load"), parts[description["file"]]
    with ZipFile(BytesIO(part.content)) as archive:
        check_unpacked(part, len(part.content), sum(member.file_size for member in archive.infolist()))
    allowed = {*(trusted or ())}
    try:
        with PARSING:
            missing = types_needing_trust(part.content, allowed)
            if not missing:
                return io.loads(part.content, trusted=io.get_untrusted_types(data=part.content))
    except Exception as error:
        said = " ".join(str(error).split()) or type(error).__name__
        why = "it holds pickled objects" if "allow_pickle" in said else said  # numpy says how to run them
        raise ValueError(f"{part}: cannot be read by skops ({why}).") from error
    raise InputError(
        f"{part}: holds types that need your trust: {', '.join(sorted(missing))}",
        Remedy("trusted", sorted(missing | allowed), "if you trust who saved the model"),
    )


def _skops(what: str) -> Any:
    """The module `skops.io`, imported for scikit-learn models alone: it looks through all of scikit-learn."""
    try:
        import skops.io
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{what}: scikit-learn models are kept by skops, which is not installed: pip install skops.",
            name=error.name,
        ) from error
    if tuple(map(int, re.findall(r"\d+", skops.__version__)[:2])) < _SAFE_SKOPS:
        raise ValueError(f"skops {skops.__version__} trusts too much in files; pip install 'skops>=0.15'.")
    return skops.io


def _external(model: Any) -> Description:
    return {
        "kind": "external",
        "class": _name(getattr(model, "module", model)),
    }  # a wrapped torch module has its own class


def _name(model: Any) -> str:
    return f"{type(model).__module__}.{type(model).__qualname__}"
