"""A model as a directory: `setwise.json` to read, and beside it the parts that it names (docs/model-directory.md).

Parts carry their digest in their names and are written first; `setwise.json`, which says which parts count, takes
its place last and in one step. So a directory holds the old model or the new one at every moment.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sklearn.exceptions import InconsistentVersionWarning

from setwise._version import __version__
from setwise.conformal.calibration import Calibration
from setwise.drift.feature_summary import FeatureSummary
from setwise.errors import InputError, Remedy
from setwise.estimators.adapters import answers, as_trained, feature_readers
from setwise.estimators.used_rows import UsedRows, read_probe, write_probe
from setwise.labels.vocabulary import Vocabulary
from setwise.learn.serialization import read_model, write_model
from setwise.ranks import as_level
from setwise.storage.atomic_files import open_regular
from setwise.storage.container import VERSION_NUMBER, check_version, read_json, reading_untrusted
from setwise.storage.directory import Parts, listing, replacing_directory

FORMAT, VERSION = "setwise-model", 3
_HEAD = "setwise.json"
_TOLERANCE = 1e-5
_USUAL = as_level(0.9)
_PART = re.compile(r"(?:calibration|model|probe|used-rows|feature-summary)[a-z0-9-]*-([0-9a-f]{8})\.[a-z]+")
_KINDS = {"U": "text", "i": "integer", "f": "number", "b": "boolean"}
_Read = TypeVar("_Read")


class ModelNotKeptError(InputError):
    """A directory holds the calibration of a model, but not the model."""


@dataclass
class StoredModel:
    """The content of a directory: the classifier's parameters, and its models with a calibration each.

    `notes` holds the other attributes that `fit` sets, by name, as far as they are known.
    """

    parameters: dict[str, Any]
    models: list[Any]
    calibrations: list[Calibration]
    notes: dict[str, Any]


def save_model(model: Any, path: str | os.PathLike[str], feature_names: Sequence[str] | None = None) -> None:
    """Writes a fitted conformal classifier; an earlier model in the same place is replaced in one step.

    `feature_names` are those of the columns of X where the model was fitted on an array; loading makes them known.
    """
    target = Path(path)
    if not hasattr(model, "calibration_"):
        raise ValueError("save: the model is not fitted yet; call fit first.")
    check_target(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing_directory(target, _HEAD, _is_part) as stage:
        head = _head(model, stage)
        if feature_names is not None:
            head["features"]["names"] = list(feature_names)
        _name_by_digest(stage, head)
        (stage / _HEAD).write_text(json.dumps(head, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_stored(
    path: str | os.PathLike[str], kind: str, estimator: Any = None, trusted: Sequence[str] | None = None
) -> StoredModel:
    """Reads the content of a directory that a class called `kind` wrote; the others are arguments of `load`."""
    return _read_steadily(Path(path), lambda folder, head: _read_content(folder, head, kind, estimator, trusted))


def load_calibrations(path: str | os.PathLike[str]) -> list[Calibration]:
    """Reads the calibrations in a directory, one per model."""
    return _read_steadily(Path(path), lambda folder, head: _calibrations(Parts(folder, head["files"]), head))


def _read_steadily(folder: Path, read: Callable[[Path, dict[str, Any]], _Read]) -> _Read:
    """Reads a directory, and reads it again if another model takes its place meanwhile."""
    head = read_head(folder)
    with reading_untrusted(folder, FORMAT):
        try:
            return read(folder, head)
        except (ValueError, OSError):
            newer = read_head(folder)
            if newer == head:
                raise
            return read(folder, newer)


def _read_content(folder: Path, head: dict[str, Any], kind: str, estimator: Any, trusted: Any) -> StoredModel:
    if head["kind"] != kind:
        raise ValueError(f"{folder}: holds a {head['kind']}; use {head['kind']}.load.")
    parts, members = Parts(folder, head["files"]), head["members"]
    estimators = [None] * len(members) if estimator is None else estimator
    estimators = estimators if isinstance(estimators, (list, tuple)) else [estimators]
    if len(estimators) != len(members):
        raise ValueError(f"estimator: {len(estimators)} models for {len(members)} folds; give one per fold.")
    vocabulary = Vocabulary.declare(head["classes"])
    calibrations = _calibrations(parts, head)
    models, probe = [], None
    for member, own in zip(members, estimators, strict=True):
        others = _other_versions(head) if own is None else ""
        quiet: AbstractContextManager[None] = nullcontext()
        if others:  # answers are compared; for these alone, as filters of warnings are those of all threads
            quiet = warnings.catch_warnings(action="ignore", category=InconsistentVersionWarning)
        try:
            with reading_untrusted(folder, FORMAT), quiet:
                model, probe = _member(vocabulary, member, own, parts, trusted)
        except InputError:
            raise
        except ValueError as error:
            raise ValueError(f"{error}{others}") from error
        if probe is None and others:
            warnings.warn(f"{folder}: no rows were stored to compare its answers.{others}", stacklevel=6)
        models.append(model)
    named, labels = [member.get("learned") for member in members], np.arange(len(vocabulary))
    summary = head.get("feature_summary")
    notes = {
        "vocabulary_": vocabulary,
        "classes_": np.array(vocabulary.classes),
        "learned_": [None if places is None else np.isin(labels, places) for places in named],
        "used_rows_": UsedRows.read(parts[head["used_rows"]]),
        "feature_summary_": None if summary is None else FeatureSummary.read(parts[summary]),
        "summary_": {name: value for name, value in head.get("training", {}).items() if name != "calibrated_on"},
        **_features(head.get("features", {})),
        **({} if probe is None else {"probe_": probe}),
    }
    columns = notes.get("feature_names_in_")
    for reader in (reader for model in models for reader in feature_readers(model)):
        if columns is not None and hasattr(reader, "n_features_in_") and not hasattr(reader, "feature_names_in_"):
            reader.feature_names_in_ = columns
    return StoredModel(head["parameters"], models, calibrations, notes)


def read_head(folder: Path) -> dict[str, Any]:
    """Reads `setwise.json`; refuses what is not a model of setwise, or is too new."""
    if not folder.exists():
        raise FileNotFoundError(f"{folder}: there is no such model directory.")
    if not folder.is_dir() or not (folder / _HEAD).is_file():
        raise ValueError(f"{folder}: not a model directory; it has no {_HEAD}.")
    try:
        with open_regular(folder / _HEAD, follow=False) as file:
            head = read_json(file.read())
        kind, _ = head["format"], head["version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{folder / _HEAD}: cannot be read ({error!r}).") from error
    if kind != FORMAT:
        raise ValueError(f"{folder}: holds {str(kind)[:40]!r}, not a {FORMAT}.")
    check_version(head, VERSION, folder, again="fit the model again")
    if not isinstance(head.get("kind"), str) or not head.get("members"):
        raise ValueError(f"{folder / _HEAD}: lacks kind or members.")
    return dict(head)


def check_target(target: Path) -> None:
    """Refuses a place where a model must not be put: a file, or a directory with other things in it."""
    if target.exists() and not target.is_dir():
        raise ValueError(f"{target}: is a file; a model is saved as a directory.")
    if target.is_dir() and any(target.iterdir()) and not (target / _HEAD).is_file():
        raise ValueError(f"{target}: holds other files and no model; choose a new directory.")


# -------------------------------------------------------------------- writing


def _head(model: Any, stage: Path) -> dict[str, Any]:
    """Writes the parts into the stage, and returns the content of `setwise.json`."""
    models, calibrations = model.fitted_models, model.calibration_.parts
    members = []
    for number, (fitted, calibration) in enumerate(zip(models, calibrations, strict=True)):
        suffix = f"-{number}" if len(models) > 1 else ""
        calibration.save(stage / f"calibration{suffix}.npz")
        member: dict[str, Any] = {
            "calibration": f"calibration{suffix}.npz",
            "model": write_model(fitted, stage, f"model{suffix}"),
        }
        probe = getattr(model, "probe_", None)
        learned = (getattr(model, "learned_", None) or [None] * len(models))[number]
        if learned is not None:
            member["learned"] = np.flatnonzero(learned).tolist()
        if probe is not None:
            with warnings.catch_warnings(action="ignore", category=UserWarning):  # column names may be lost
                expected = answers(fitted, probe, model.vocabulary_)
            if write_probe(stage / f"probe{suffix}.npz", probe, expected):
                member["probe"] = f"probe{suffix}.npz"
        members.append(member)
    model.used_rows_.write(stage / "used-rows.npz")
    summary = getattr(model, "feature_summary_", None)
    if summary is not None:
        summary.write(stage / "feature-summary.npz")
    names = getattr(model, "feature_names_in_", None)
    first = calibrations[0]
    return {
        "format": FORMAT,
        "version": VERSION,
        "setwise": __version__,
        "versions": _library_versions(),
        "kind": type(model).__name__,
        "cross": len(members) > 1,
        "classes": model.classes_.tolist(),
        "class_type": _KINDS.get(model.classes_.dtype.kind, "mixed"),
        "conformity_score": first.conformity_score.name,
        "strategy": {"asked": first.strategy.name, "used": first.rules[0].claim(_USUAL).strategy},
        "features": {
            "number": getattr(model, "n_features_in_", None),
            "names": None if names is None else [str(name) for name in names],
        },
        "training": getattr(model, "summary_", {}) | {"calibrated_on": sum(c.evidence.n for c in calibrations)},
        "used_rows": "used-rows.npz",
        "feature_summary": None if summary is None else "feature-summary.npz",
        "parameters": _parameters(model),
        "members": members,
    }


def _parameters(model: Any) -> dict[str, Any]:
    """The constructor's parameters that JSON can hold; objects come back from the calibration."""
    plain = {}
    for name, value in model.get_params(deep=False).items():
        kept = value.item() if isinstance(value, np.generic) else value
        if name != "estimator" and (kept is None or isinstance(kept, (str, int, float, bool))):
            plain[name] = kept
    return plain


def _name_by_digest(stage: Path, head: dict[str, Any]) -> None:
    """Renames every part to carry its digest, and lists them under `files`."""
    new_names, head["files"] = {}, {}
    for part in sorted(stage.iterdir()):
        listed = listing(part.read_bytes())
        name = f"{part.stem}-{listed['sha256'][:8]}{part.suffix}"
        head["files"][name] = listed
        new_names[part.name] = name
        part.rename(stage / name)
    head["members"] = _rename(head["members"], new_names)
    head["used_rows"] = new_names[head["used_rows"]]
    head["feature_summary"] = new_names.get(head["feature_summary"])


def _rename(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        keys = {"file", "calibration", "probe"}
        return {k: names[v] if k in keys and isinstance(v, str) else _rename(v, names) for k, v in value.items()}
    return [_rename(part, names) for part in value] if isinstance(value, list) else value


def _is_part(path: Path) -> bool:
    """Whether a file is a part as `save_model` writes it: its name carries the digest of its content."""
    named = _PART.fullmatch(path.name)
    if named is None or path.is_symlink() or not path.is_file():
        return False
    return hashlib.sha256(path.read_bytes()).hexdigest().startswith(named[1])


# -------------------------------------------------------------------- reading


def _calibrations(parts: Parts, head: dict[str, Any]) -> list[Calibration]:
    """One calibration per model."""
    return [Calibration.load(parts[member["calibration"]]) for member in head["members"]]


def _member(
    vocabulary: Vocabulary, member: dict[str, Any], own: Any, parts: Parts, trusted: Sequence[str] | None
) -> tuple[Any, Any]:
    """One model, from the directory or from the user, and the stored rows on which it was compared."""
    described, folder = member["model"], parts.folder
    model = read_model(described, parts, trusted) if own is None else as_trained(own, vocabulary.classes)
    if model is None:
        raise ModelNotKeptError(
            f"{folder}: a {described['class']} cannot be loaded without running code from the file, so only its "
            "calibration was saved",
            Remedy("estimator", None, "to pass the model"),
        )
    if "probe" not in member:
        if own is not None:
            warnings.warn(f"{folder}: no rows were stored on which the estimator could be compared.", stacklevel=4)
        return model, None
    rows, expected = read_probe(parts[member["probe"]])
    try:
        with np.errstate(all="ignore"):
            values = answers(model, rows, vocabulary)
    except InputError as error:
        if own is not None:
            raise
        raise ValueError(f"{folder}: the model cannot be asked ({error.problem}).") from error
    apart = float(np.abs(values - expected).max()) if values.shape == expected.shape else float("inf")
    if not apart <= _TOLERANCE:
        whose = "estimator: it is not the model that was calibrated; its" if own is not None else f"{folder}: the"
        raise ValueError(f"{whose} probabilities on the stored rows differ by up to {apart:.2g}.")
    return model, rows


def _library_versions() -> dict[str, str]:
    """The versions of what reads and asks a model of scikit-learn."""
    found = {}
    for name in ("scikit-learn", "numpy", "skops"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _other_versions(head: dict[str, Any]) -> str:
    """A sentence on the versions that a model was saved with, if they are not those here."""
    noted, here = head.get("versions", {}), _library_versions()
    other = [name for name, number in here.items() if noted.get(name, number) != number]
    if not other or not all(VERSION_NUMBER.fullmatch(str(noted[name])) for name in other):
        return ""
    saved = " and ".join(f"{name} {noted[name]}" for name in other)
    found = " and ".join(f"{name} {here[name]}" for name in other)
    return f" It was saved with {saved}, and this is {found}. Install these versions again, or fit the model again."


def _features(described: dict[str, Any]) -> dict[str, Any]:
    """Number and names of the columns of X, as far as they are known."""
    number, names = described.get("number"), described.get("names")
    known = {
        "n_features_in_": number,
        "feature_names_in_": None if names is None else np.array(names, dtype=object),
    }
    return {name: value for name, value in known.items() if value is not None}
