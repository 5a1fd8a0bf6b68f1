"""Saved models and calibrations, and the rows of a table, batch by batch, as they are asked about them."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from setwise.conformal.calibration import Calibration
from setwise.errors import InputError, Omission, Remedy
from setwise.learn.feature_frame import FeatureFrame
from setwise.learn.threads import use_one_thread
from setwise.probabilities.proposed_labels import Proposals
from setwise.tables.arrow_reading import absent_column, batches_with_origin, column_names
from setwise.tables.label_columns import one_chunk
from setwise.tables.set_files import probability_columns
from setwise.tables.tabular import Layout, interpret

ROWS = 8192  # at a time: fewer are slower, more take memory and are no faster


def load_asked_model(model: Path, device: str, trusted: list[str] | None) -> Any:
    """The model of a directory, split or cross."""
    if model.is_file():
        problem = f"{model}: is a file; a calibration file needs probabilities"
        raise InputError(problem, Remedy("probabilities", None, "with what your model says of the rows"))
    from setwise.estimators.adapters import feature_readers, last_step  # scikit-learn, for models alone
    from setwise.estimators.loading import load  # scikit-learn, for models alone
    from setwise.estimators.model_directory import ModelNotKeptError, read_head

    try:
        loaded: Any = load(model, trusted=trusted)
    except ModelNotKeptError as error:
        if len(read_head(model)["members"]) > 1:
            raise
        remedy = Remedy("probabilities", None, "with what the model says about the new rows")
        raise InputError(error.problem, remedy) from error
    from_arrays = isinstance(getattr(loaded, "probe_", None), np.ndarray)
    for fitted in loaded.fitted_models:
        part = last_step(fitted)
        if hasattr(part, "device"):
            part.device = device
        for reader in feature_readers(fitted) if from_arrays else ():
            vars(reader).pop("feature_names_in_", None)  # so it is asked with arrays here
    if network_of(loaded.fitted_models[0]) == "linear":
        use_one_thread()
    return loaded


def load_calibration(path: Path) -> Calibration:
    """A calibration file, or the calibration in a model directory."""
    if not path.is_dir():
        return Calibration.load(path)
    from setwise.estimators.model_directory import load_calibrations  # scikit-learn is loaded

    calibrations = load_calibrations(path)
    if len(calibrations) > 1:
        several = f"{path}: holds {len(calibrations)} models with a calibration each"
        raise InputError(f"{several}, and probabilities come from one", Omission("probabilities", "the model"))
    return calibrations[0]


def is_training_data(model: Any, X: Any) -> bool:
    """Whether these are the very rows that a model was fitted on, in their order."""
    from setwise.estimators.used_rows import digest  # scikit-learn is loaded

    placed = all(part.evidence.position is not None for part in model.calibration_.parts)
    known = model.summary_.get("data", {}).get("X")  # None of rows that have no digest, which may be any
    return placed and known is not None and digest(X) == known


def is_calibration_data(calibration: Calibration, predicted: Proposals) -> bool:
    """Whether these are the most probable labels of the very rows of a calibration, in their order."""
    evidence = calibration.evidence
    rows = np.arange(evidence.n) if evidence.position is None else evidence.position
    if evidence.predicted is None or evidence.confidence is None or len(predicted) <= rows.max(initial=-1):
        return False
    found = predicted[rows]
    same = np.array_equal(found.label, evidence.predicted) and np.array_equal(found.confidence, evidence.confidence)
    if not np.ptp(found.label) and not np.ptp(found.confidence):
        return False  # a model that says the same of all rows: these may be any
    return same and (evidence.position is not None or len(predicted) == evidence.n)


def category_column(model: Any) -> str | None:
    """The column of categories of the table that the model was fitted on, as `setwise fit` noted it."""
    return getattr(model, "summary_", {}).get("by")


def network_of(estimator: Any) -> str | None:
    """The network of an estimator, or of a pipeline's last step: linear, mlp or cnn; None where it has none."""
    from setwise.estimators.adapters import last_step  # scikit-learn, for models alone

    network = getattr(last_step(estimator), "network_", None)
    return None if network is None else type(network).__name__.lower()


def check_askable(asked: Any, model: Path) -> None:
    """Refuses what needs facts of new rows that no option can name: weights, ids, numbers of candidates."""
    words = {"sample_weight": "weights", "row_ids": "ids", "candidates": "candidates"}
    if needed := [words[name] for name in asked.parts[0].reader.requirements if name in words]:
        raise ValueError(
            f"{model}: was calibrated with the {needed[0]} of its rows, and no option names those of new rows; ask "
            "it in Python: setwise.Calibration.load(…).predict_set(…)."
        )


def feature_layout(names: list[str], model: Any, features: list[str] | None, where: Any) -> Layout:
    """The columns of features by the names that the model knows, in its order."""
    from setwise.learn.column_encoder import ColumnEncoder  # scikit-learn, for models alone

    known = features or _columns_in(names, list(getattr(model, "feature_names_in_", [])))
    if not known:
        raise InputError(
            "the model was trained on arrays and knows no column names",
            Remedy("columns", None, f"to name its {model.n_features_in_} features in order"),
        )
    absent = [name for name in known if name not in names]
    if absent:
        found = f"{len(known)} features expected, {len(known) - len(absent)} found"
        raise absent_column(absent[0], names, str(where), f", which the model was trained on ({found})")
    encoder = getattr(model.fitted_models[0], "steps", [("", None)])[0][1]  # those of several folds know the same
    if not isinstance(encoder, ColumnEncoder):
        return Layout(features=known, impute={})
    return Layout(features=known, impute=encoder.fillings_, categories=encoder.categories or {}, as_frame=True)


def _columns_in(names: list[str], known: list[str]) -> list[str]:
    """The columns that features of these names come from: of pixels[0], pixels[1], … a column of lists."""
    lists = known[0].removesuffix("[0]") if known else ""
    numbered = known == [f"{lists}[{place}]" for place in range(len(known))]
    return [lists] if numbered and lists in names else known


def probability_layout(names: list[str], labels: list[Any], where: Any) -> Layout:
    """The columns of probabilities by the names of the labels."""
    columns = probability_columns(names, labels)
    if columns is None:
        unmarked = [str(label) for label in labels if f"p:{label}" not in names]
        absent = next((name for name in unmarked if name not in names), f"p:{unmarked[0]}")  # some columns lack p:
        raise absent_column(absent, names, str(where), f", which is one of the {len(labels)} classes")
    return Layout(features=columns)


def all_features(file: Any, model: Any, features: list[str] | None) -> Any:
    """The features of all rows by the names the model knows, in its order."""
    return _read_all(file, feature_layout(column_names(file), model, features, file))


def all_probabilities(file: Any, labels: list[Any]) -> Any:
    """The probabilities of all rows in the order of the labels, by whose names columns are found."""
    return _read_all(file, probability_layout(column_names(file), labels, file))


def _read_all(file: Any, layout: Layout) -> Any:
    """The features of all rows; other columns are not kept."""
    columns, text = list(layout.features or ()), list(layout.categories or ())
    batches = batches_with_origin(file, ROWS, text=text, only=columns)
    parts = [interpret(batch, layout, where, first).X for where, first, batch in batches]
    return FeatureFrame.concatenate(parts) if isinstance(parts[0], FeatureFrame) else np.concatenate(parts)


def read_batch(batch: Any, layout: Layout, where: str, first_row: int) -> tuple[Any, dict[str, Any]]:
    """The features of some rows, and the other columns."""
    features = list(layout.features or ())
    wanted = {*features}
    carried = {name: one_chunk(batch[name]) for name in batch.column_names if name not in wanted}
    return interpret(batch.select(features), layout, where, first_row).X, carried


def text_columns(names: list[str], layout: Layout) -> list[str]:
    """The columns of text files that are to be read as text: those carried along, and those of categories."""
    wanted = {*(layout.features or ())}
    return [name for name in names if name not in wanted] + list(layout.categories or ())


def with_names(model: Any, X: Any) -> Any:
    """Features as a frame with the names that a model learned from, where it learned from a frame.

    Columns were matched by name already. A model that is asked with an array would doubt that, with a warning that
    only filters of the whole process could silence.
    """
    from setwise.estimators.adapters import feature_readers  # scikit-learn, for models alone

    readers = [reader for part in model.fitted_models for reader in feature_readers(part)]
    named = isinstance(X, np.ndarray) and any(hasattr(reader, "feature_names_in_") for reader in readers)
    if not named or X.shape[1:] != model.feature_names_in_.shape:  # which the model refuses
        return X
    try:
        import pandas as pd  # heavy, and for models that learned from frames alone
    except ModuleNotFoundError:  # they were of another library
        return pa.table(dict(zip(model.feature_names_in_, X.T, strict=True)))
    return pd.DataFrame(X, columns=model.feature_names_in_)


@contextmanager
def no_name_warnings() -> Iterator[None]:
    """Columns were matched by name already, so that arrays without names are right here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield


def content_digest(path: Path) -> str:
    """A digest of a calibration file, or of all files of a model directory."""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    found = hashlib.sha256()
    for file in files:
        found.update(f"{file.relative_to(path) if file != path else ''}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as content:
            found.update(hashlib.file_digest(content, "sha256").digest())
    return found.hexdigest()
