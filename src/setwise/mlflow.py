"""Models of MLflow: conformal classifiers and calibrations saved, logged, loaded, and served as `pyfunc`.

A model is kept in its own format, as a model directory or a calibration file, without pickle. As `pyfunc` it
answers with one line per row: the most probable `label`, the `labels` of the prediction set, and how many (`size`).
"""

from __future__ import annotations

import os
import sys
import tempfile
from abc import ABC, abstractmethod
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

try:
    import pandas as pd
    from mlflow import artifacts, pyfunc
    from mlflow.exceptions import MlflowException
    from mlflow.models import Model, ModelSignature, infer_signature
    from mlflow.types import ColSpec, DataType, Schema
    from mlflow.types.schema import Array as ListOf
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"setwise.mlflow needs {error.name}: pip install 'setwise[mlflow]'.", name=error.name
    ) from error

from setwise._arrays import Array
from setwise._version import __version__
from setwise.conformal.calibration import Calibration
from setwise.errors import InputError
from setwise.estimators.cross import CrossConformalClassifier
from setwise.estimators.loading import load
from setwise.estimators.model_directory import ModelNotKeptError
from setwise.estimators.split import ConformalClassifier
from setwise.tables.label_notation import encode_labels
from setwise.tables.set_files import probability_columns

FLAVOR = "setwise"
_KEPT = "model"
_READERS = {".skops": ("skops",), ".safetensors": ("torch", "safetensors")}
_TYPES = {"U": DataType.string, "i": DataType.long, "u": DataType.long, "f": DataType.double, "b": DataType.boolean}
"""Of labels, which are of one kind in what can be saved."""


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    input_example: Any = None,
    trusted: list[str] | None = None,
    mlflow_model: Any = None,
    **options: Any,
) -> None:
    """Saves a model for MLflow as a directory, which must not exist or be empty.

    Parameters
    ----------
    model
        A fitted `ConformalClassifier` or `CrossConformalClassifier`, or a `Calibration`, which is asked with the
        probabilities of a model that lives elsewhere.
    path
        The directory.
    input_example
        A few rows, kept with the model; the signature is made from them. Without, it is made from the types of the
        rows that the model was fitted on, as far as they are known.
    trusted
        Types that a scikit-learn model may be made of beyond scikit-learn's plain ones, as for
        `ConformalClassifier.load`. They are noted, and trusted whenever MLflow loads the model.
    mlflow_model
        The `mlflow.models.Model` to describe; by default a new one.
    **options
        Further arguments of `mlflow.pyfunc.save_model`: `metadata`, `pip_requirements`, `signature`.
    """
    if not isinstance(model, (ConformalClassifier, CrossConformalClassifier, Calibration)):
        kinds = "ConformalClassifier, CrossConformalClassifier or Calibration"
        raise InputError(f"model: a {type(model).__name__}, which predicts no sets", f"use a {kinds}")
    with tempfile.TemporaryDirectory() as place:
        kept = Path(place, _KEPT)
        model.save(kept)
        served = _load_pyfunc(kept, {"trusted": trusted})  # what could not be loaded again is refused here
        if needs := served.calibration.parts[0].reader.requirements:
            problem = f"model: predict_set needs {needs[0]} of new rows, which MLflow cannot pass on"
            raise InputError(problem, "calibrate without it, or serve predict_set from code of your own")
        described = Model() if mlflow_model is None else mlflow_model
        described.add_flavor(FLAVOR, setwise_version=__version__, data=f"data/{_KEPT}")
        told = {"signature": served.signature(model, input_example), "pip_requirements": _requirements(kept)}
        pyfunc.save_model(
            os.fspath(path),
            loader_module=__name__,
            data_path=str(kept),
            mlflow_model=described,
            input_example=input_example,
            model_config={"trusted": list(trusted)} if trusted else None,
            **(told | options),
        )


def log_model(model: Any, name: str = "model", **options: Any) -> Any:
    """Logs a model in the active run, and returns MLflow's `ModelInfo`.

    Parameters
    ----------
    model
        As in `save_model`.
    name
        The name of the model.
    **options
        Those of `save_model`, and of `mlflow.models.Model.log`: `registered_model_name`, `params`, `tags`.
    """
    return Model.log(None, sys.modules[__name__], name=name, model=model, **options)


def load_model(model_uri: str | os.PathLike[str], trusted: list[str] | None = None) -> Any:
    """The classifier or calibration itself, with `predict_set`, `guarantee` and `compare`.

    Parameters
    ----------
    model_uri
        A directory that `save_model` wrote, or an address of MLflow such as ``models:/birds/1``.
    trusted
        As for `ConformalClassifier.load`. What the model itself notes as trusted counts for MLflow alone, which
        runs code of a model as it is.
    """
    folder = Path(artifacts.download_artifacts(os.fspath(model_uri)))
    flavors = Model.load(str(folder)).flavors
    if FLAVOR not in flavors:
        raise InputError(f"model_uri: {model_uri} holds a model of {', '.join(flavors)}, none of setwise")
    if flavors[FLAVOR].get("data") != f"data/{_KEPT}":
        raise InputError(f"model_uri: {model_uri} keeps its model elsewhere than save_model does")
    return _load_pyfunc(folder / "data" / _KEPT, {"trusted": trusted}).model


def _load_pyfunc(path: str | os.PathLike[str], model_config: dict[str, Any] | None = None) -> ServedModel:
    """What MLflow calls to load the model that lies at `path`."""
    try:
        model = load(path, trusted=(model_config or {}).get("trusted"))
    except ModelNotKeptError as error:
        problem = f"model: {error.problem.partition(': ')[2]}"
        raise InputError(problem, "save model.calibration_, and ask it with the model's probabilities") from error
    return ServedCalibration(model) if isinstance(model, Calibration) else ServedClassifier(model)


class ServedModel(ABC):
    """What MLflow serves: rows in, a frame of prediction sets out."""

    level = 0.9

    def __init__(self, model: Any) -> None:
        self.model, self.calibration = model, getattr(model, "calibration_", model)
        self.classes: Array = self.calibration.classes
        plain = [str(label) for label in self.classes.tolist()]
        self.names = plain if len({*plain}) == len(plain) else encode_labels(self.classes, "|")
        columns = pd.Index(["label", "labels", "size", *(f"p:{name}" for name in self.names)])
        self.columns = columns[:3], columns  # made once, as text takes long

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """One line per row: `label`, `labels`, `size`; with `p_values` also one column ``p:label`` per class.

        Parameters
        ----------
        model_input
            A frame or an array: features, or probabilities with one column per class.
        params
            `confidence_level` and `p_values`.
        """
        asked = self.params | (params or {})
        try:
            labels, probabilities = self.ask(model_input)
            sets = self.calibration.predict_set(probabilities, asked["confidence_level"])
            columns = [labels, sets.to_lists(), sets.sizes.copy()]
            if asked["p_values"]:
                columns += [*self.calibration.predict_p(probabilities).T]
        except (TypeError, ValueError) as error:  # of these a server says what they say, of others where they arose
            raise MlflowException.invalid_parameter_value(str(error)) from error
        frame = pd.DataFrame(dict(enumerate(columns)), copy=False)
        frame.columns = self.columns[bool(asked["p_values"])].view()  # callers may give an index a name
        return frame

    def signature(self, fitted: Any, example: Any = None) -> ModelSignature:
        """Columns and types of rows and answers, and the parameters; `fitted` knows rows that it learned from."""
        kind = _TYPES[self.classes.dtype.kind]
        answers = [ColSpec(kind, "label"), ColSpec(ListOf(kind), "labels"), ColSpec(DataType.long, "size")]
        return ModelSignature(
            inputs=self.inputs(fitted) if example is None else infer_signature(example).inputs,
            outputs=Schema(answers),
            params=infer_signature(params=self.params).params,
        )

    @property
    def params(self) -> dict[str, Any]:
        """The parameters and what they are by default."""
        return {"confidence_level": float(self.level), "p_values": False}

    @abstractmethod
    def ask(self, given: Any) -> tuple[Array, Any]:
        """Of what came from MLflow: the most probable label of each row, and what the calibration is asked with."""

    @abstractmethod
    def inputs(self, fitted: Any) -> Schema | None:
        """Columns and types of rows, as far as they are known."""


class ServedClassifier(ServedModel):
    """A classifier, asked with features."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.level = model.confidence_level
        names = getattr(model, "feature_names_in_", None)
        self.features = None if names is None else names.tolist()

    def ask(self, given: Any) -> tuple[Array, Any]:
        labels: Array
        labels, probabilities = self.model.predict_with_conformed(self.in_order(given))
        return labels, probabilities

    def in_order(self, given: Any) -> Any:
        """The columns of a frame in the order of the model, which refuses by name what is not there."""
        names = list(getattr(given, "columns", []))
        if not names or names == self.features:
            return given
        if self.features is None:
            return given.to_numpy()
        return given[self.features] if {*self.features} <= {*names} else given

    def inputs(self, fitted: Any) -> Schema | None:
        rows = getattr(fitted, "probe_", None)
        named = isinstance(rows, np.ndarray) and hasattr(self.model, "feature_names_in_")  # of columns that it lost
        if named or not (isinstance(rows, np.ndarray) or hasattr(rows, "iloc")):
            return None
        try:
            return infer_signature(rows).inputs
        except MlflowException:  # columns of types that MLflow has no name for
            return None


class ServedCalibration(ServedModel):
    """A calibration, asked with probabilities: columns are found by the names of the labels."""

    def ask(self, given: Any) -> tuple[Array, Any]:
        if hasattr(given, "columns"):
            columns = probability_columns(list(given.columns), self.classes.tolist())
            if columns is None:
                absent = next(name for name in self.names if name not in given.columns)
                raise InputError(f"model_input: there is no column {absent!r}, which is one of the classes")
            given = given[columns].to_numpy()
        probabilities = np.asarray(given)
        return self.classes[probabilities.argmax(axis=-1)], probabilities

    def inputs(self, fitted: Any) -> Schema:  # noqa: ARG002
        return Schema([ColSpec(DataType.double, name) for name in self.names])


def _requirements(kept: Path) -> list[str]:
    """What must be installed to load a model: setwise, and the versions of what its parts are read with."""
    suffixes = {part.suffix for part in kept.iterdir()} if kept.is_dir() else set()
    readers = [name for suffix, names in _READERS.items() if suffix in suffixes for name in names]
    pinned = [f"{name}=={version(name).partition('+')[0]}" for name in ("numpy", "scipy", "scikit-learn", *readers)]
    return [f"setwise[mlflow]=={__version__}", *pinned]


__all__ = ["load_model", "log_model", "save_model"]
