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
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from setwise._arrays import Floats
from setwise._files import folder_of, locked, open_regular, temporary
from setwise._version import __version__
from setwise.calibration.calibration import Calibration
from setwise.calibration.pooled import PooledCalibration
from setwise.container import believing_nothing, check_version, read_json
from setwise.decisions.feature_summary import FeatureSummary
from setwise.errors import InputError, Remedy
from setwise.estimators.adapters import answers, as_trained
from setwise.estimators.fingerprint import UsedRows, read_probe, write_probe
from setwise.labels.vocabulary import Vocabulary
from setwise.learn.serialization import read_model, write_model
from setwise.parts import Parts, listing
from setwise.ranks import as_level

FORMAT, VERSION = "setwise-model", 1
_HEAD = "setwise.json"
_TOLERANCE = 1e-5
_USUAL = as_level(0.9)
_ENTRIES = {"kind": str, "classes": list, "files": dict, "members": list, "parameters": dict, "used_rows": str}
_JSON = {str: "text", list: "list", dict: "object"}
_PART = re.compile(r"(?:calibration|model|probe|used-rows|feature-summary)[a-z0-9-]*-([0-9a-f]{8})\.[a-z]+")
_TRIES = 20  # to read a directory that others replace meanwhile
_KINDS = {"U": "text", "i": "integer", "f": "number", "b": "boolean"}
_Model = TypeVar("_Model")
_Read = TypeVar("_Read")


class ModelNotKeptError(InputError):
    """A directory holds the calibration of a model, and not the model."""


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    notes: dict[str, Any] | None = None,
    feature_names: Sequence[str] | None = None,
) -> None:
    """Writes a fitted conformal classifier; an earlier model in the same place is replaced in one step.

    Parameters
    ----------
    model
        A fitted `ConformalClassifier` or `CrossConformalClassifier`.
    path
        The directory. One that exists must be empty or hold a model.
    notes
        Anything JSON can hold that should travel with the model.
    feature_names
        The names of the columns of X, where the model was fitted on an array; `load_model` makes them known.
    """
    target = Path(path)
    if not hasattr(model, "calibration_"):
        raise ValueError("save: the model is not fitted yet; call fit first.")
    check_target(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with temporary(folder_of(target), target.name, folder=True) as stage:
        head = _head(model, stage) | {"notes": getattr(model, "notes_", {}) if notes is None else notes}
        if feature_names is not None:
            head["features"]["names"] = list(feature_names)
        _name_by_digest(stage, head)
        (stage / _HEAD).write_text(json.dumps(head, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        _put_in_place(stage, target)


def load_model(
    kind: type[_Model],
    path: str | os.PathLike[str],
    estimator: Any = None,
    trusted: Sequence[str] | None = None,
) -> _Model:
    """The classifier of class `kind` that lies in a directory.

    Parameters
    ----------
    kind
        `ConformalClassifier` or `CrossConformalClassifier`.
    path
        The directory.
    estimator
        The model itself where the directory holds its calibration alone (a list of models, one per fold, for a
        cross-conformal classifier). Its probabilities are compared on stored rows.
    trusted
        Names of types that a skops file may hold, for `skops.io.load`.
    """
    return _while_it_stays(Path(path), lambda folder, head: _loaded(kind, folder, head, estimator, trusted))


def load_calibrations(path: str | os.PathLike[str]) -> list[Calibration]:
    """The calibrations that lie in a directory, one per model."""

    def read(folder: Path, head: dict[str, Any]) -> list[Calibration]:
        return _calibrations(Parts(folder, head["files"]), head)[0]

    return _while_it_stays(Path(path), read)


def _while_it_stays(folder: Path, read: Callable[[Path, dict[str, Any]], _Read]) -> _Read:
    """What `read` makes of a directory; again where another model took its place meanwhile."""
    for left in reversed(range(_TRIES)):
        head = read_head(folder)
        try:
            with believing_nothing(folder, FORMAT):
                return read(folder, head)
        except (ValueError, OSError):
            if not left or read_head(folder) == head:
                raise
    raise ValueError(f"{folder}: is replaced all the time.")


def _loaded(kind: type[_Model], folder: Path, head: dict[str, Any], estimator: Any, trusted: Any) -> _Model:
    if head["kind"] != kind.__name__:
        raise ValueError(f"{folder}: holds a {head['kind']}; use {head['kind']}.load.")
    parts, members = Parts(folder, head["files"]), head["members"]
    brought = [None] * len(members) if estimator is None else estimator
    brought = brought if isinstance(brought, (list, tuple)) else [brought]
    if len(brought) != len(members):
        raise ValueError(f"estimator: {len(brought)} models for {len(members)} folds; give one per fold.")
    try:
        made: Any = kind(**head["parameters"])
    except TypeError as error:
        raise ValueError(f"{folder / _HEAD}: parameters of another class ({error}).") from error
    if hasattr(made, "cv") != (len(members) > 1):
        raise ValueError(f"{folder}: {len(members)} members make no {head['kind']}.")
    made.vocabulary_ = Vocabulary.declare(head["classes"])
    made.classes_ = np.array(made.vocabulary_.classes)
    calibrations, made.used_rows_ = _calibrations(parts, head)
    models = []
    for member, calibration, given in zip(members, calibrations, brought, strict=True):
        if not calibration.vocabulary.same_order(made.vocabulary_):
            raise ValueError(f"{folder}: its calibration is about other classes.")
        if calibration.setting.top:
            raise ValueError(
                f"{folder}: its calibration is about the most probable labels alone, its model is not."
            )
        try:
            models.append(_member(made, member, given, parts, trusted))
        except KeyError as error:
            raise ValueError(f"{folder / _HEAD}: lacks the entry {error}.") from error
    summary = head.get("feature_summary")
    made.feature_summary_ = None if summary is None else FeatureSummary.read(parts[summary])
    k = len(made.classes_)
    named = [member.get("learned") for member in members]
    made.learned_ = [None if places is None else np.isin(np.arange(k), places) for places in named]
    _restore(made, head, models, calibrations)
    return made  # type: ignore[no-any-return]


def read_head(folder: Path) -> dict[str, Any]:
    """What `setwise.json` says; anything that is no model of ours, or too new, is refused by name."""
    if not folder.exists():
        raise FileNotFoundError(f"{folder}: there is no such model directory.")
    if not folder.is_dir() or not (folder / _HEAD).is_file():
        raise ValueError(f"{folder}: not a model directory; it has no {_HEAD}.")
    try:
        with open_regular(folder / _HEAD, follow=False) as file:
            head = read_json(file.read())
        found, _ = head["format"], head["version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{folder / _HEAD}: cannot be read ({error!r}).") from error
    if found != FORMAT:
        raise ValueError(f"{folder}: holds {str(found)[:40]!r}, not a {FORMAT}.")
    check_version(head, VERSION, folder)
    if missing := sorted(_ENTRIES.keys() - head.keys()):
        raise ValueError(f"{folder / _HEAD}: lacks {', '.join(missing)}.")
    for name, kind in _ENTRIES.items():
        if not isinstance(head[name], kind):
            raise ValueError(f"{folder / _HEAD}: its entry {name} is no {_JSON[kind]}.")  # noqa: TRY004 - of a file
    members = head["members"]
    if not members or not all(isinstance(member, dict) and "calibration" in member for member in members):
        raise ValueError(f"{folder / _HEAD}: its members are no models with a calibration.")
    return dict(head)


def check_target(target: Path) -> None:
    """Refuses a place where a model must not be put: a file, or a directory with other things in it."""
    if target.exists() and not target.is_dir():
        raise ValueError(f"{target}: is a file; a model is saved as a directory.")
    if target.is_dir() and any(target.iterdir()) and not (target / _HEAD).is_file():
        raise ValueError(f"{target}: holds other files and no model; choose a new directory.")


# -------------------------------------------------------------------- writing


def _head(model: Any, stage: Path) -> dict[str, Any]:
    """Writes the parts into the stage, and says what they are."""
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
        if probe is not None and write_probe(stage / f"probe{suffix}.npz", probe, _answers(model, fitted, probe)):
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
        "kind": type(model).__name__,
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
    head["members"] = _renamed(head["members"], new_names)
    head["used_rows"] = new_names[head["used_rows"]]
    head["feature_summary"] = new_names.get(head["feature_summary"])


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        keys = {"file", "calibration", "probe"}
        return {k: names[v] if k in keys and isinstance(v, str) else _renamed(v, names) for k, v in value.items()}
    return [_renamed(part, names) for part in value] if isinstance(value, list) else value


def _put_in_place(stage: Path, target: Path) -> None:
    """A new directory appears by one rename; in an old one `setwise.json` changes last, then other parts go."""
    if not target.exists():
        try:
            stage.rename(target)
        except OSError:
            if not target.exists():  # it does where another process was first
                raise
        else:
            return
    with locked(target):  # the parts of another process that is at it would look like those of one that was killed
        parts = [part for part in stage.iterdir() if part.name != _HEAD]
        for part in parts:
            part.replace(target / part.name)
        (stage / _HEAD).replace(target / _HEAD)
        for other in {*target.iterdir()} - {target / part.name for part in parts}:
            if _is_part(other):
                other.unlink(missing_ok=True)


def _is_part(path: Path) -> bool:
    """Whether a file is a part as `save_model` writes it: its name carries the digest of its content."""
    named = _PART.fullmatch(path.name)
    if named is None or path.is_symlink() or not path.is_file():
        return False
    return hashlib.sha256(path.read_bytes()).hexdigest().startswith(named[1])


# -------------------------------------------------------------------- reading


def _calibrations(parts: Parts, head: dict[str, Any]) -> tuple[list[Calibration], UsedRows]:
    """One calibration per model, and the rows that were used, which speak where a calibration is silent."""
    found = [Calibration.load(parts[member["calibration"]]) for member in head["members"]]
    used = UsedRows.read(parts[head["used_rows"]])
    seen = used.seen_by_digests(PooledCalibration(tuple(found)).fold if len(found) > 1 else None)
    if seen and not found[0].setting.seen:
        found = [replace(part, setting=replace(part.setting, seen=seen)) for part in found]
    return found, used


def _member(made: Any, member: dict[str, Any], given: Any, parts: Parts, trusted: Sequence[str] | None) -> Any:
    """One model, out of the directory or brought along, checked on the stored rows."""
    described, folder = member["model"], parts.folder
    model = read_model(described, parts, trusted) if given is None else as_trained(given, made.classes_)
    if model is None:
        raise ModelNotKeptError(
            f"{folder}: holds the calibration of a {described['class']}, which cannot be kept without running code "
            "from the file",
            Remedy("estimator", None, "to bring the model along"),
        )
    if "probe" not in member:
        if given is not None:
            warnings.warn(f"{folder}: no rows were kept to check the estimator with.", stacklevel=4)
        return model
    rows, expected = read_probe(parts[member["probe"]])
    made.probe_ = rows
    found = _answers(made, model, rows)
    apart = float(np.abs(found - expected).max()) if found.shape == expected.shape else float("inf")
    if not apart <= _TOLERANCE:
        whose = "estimator: it is not the model that was calibrated; its" if given is not None else f"{folder}: the"
        raise ValueError(f"{whose} probabilities on the stored rows differ by up to {apart:.2g}.")
    return model


def _answers(conformal: Any, model: Any, rows: Any) -> Floats:
    """The model's probabilities on the rows it is recognised by, which may have lost their column names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found: Floats = answers(model, rows, conformal.vocabulary_)
    return found


def _restore(made: Any, head: dict[str, Any], models: list[Any], calibrations: list[Calibration]) -> None:
    made.estimator = models[0]
    if hasattr(made, "cv"):
        made.estimators_, made.calibration_ = models, PooledCalibration(tuple(calibrations))
    else:
        made.estimator_, made.calibration_ = models[0], calibrations[0]
    first = calibrations[0]
    objects = {
        "strategy": first.strategy,
        "conformity_score": first.conformity_score,
        "assume": first.setting.assume,
    }
    for name, value in objects.items():
        if name not in head["parameters"]:
            made.set_params(**{name: value})
    number, names = _features(head.get("features", {}))
    if number is not None:
        made.n_features_in_ = number
    if names is not None:
        made.feature_names_in_ = np.array(names, dtype=object)
        for part in (part for model in models for part in _readers(model)):
            if hasattr(part, "n_features_in_") and not hasattr(part, "feature_names_in_"):
                part.feature_names_in_ = made.feature_names_in_
    made.summary_ = {k: v for k, v in head.get("training", {}).items() if k != "calibrated_on"}
    made.notes_ = notes = head.get("notes", {})
    if not isinstance(notes, dict) or not isinstance(notes.get("reading") or {}, dict):
        raise ValueError("notes: is no object, or how to read a table is none")  # noqa: TRY004 - of a file
    if not isinstance(made.summary_.get("data", {}), dict):
        raise ValueError("training: its data is no object")  # noqa: TRY004 - of a file


def _features(described: dict[str, Any]) -> tuple[int | None, list[str] | None]:
    """Number and names of the columns of X, as far as they are known."""
    number, names = described.get("number"), described.get("names")
    if number is not None and (type(number) is not int or number < 0):
        raise ValueError(f"features: {str(number)[:40]!r} is no number of columns")
    if names is None:
        return number, None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("features: the names of columns are no list of texts")
    if number not in {None, len(names)}:
        raise ValueError(f"features: {len(names)} names for {number} columns")
    return number, names


def _readers(model: Any) -> list[Any]:
    """What in a model reads X: the model itself and the networks of a covering one, or a pipeline's first step."""
    first = model.steps[0][1] if hasattr(model, "steps") else model
    networks = [getattr(first, name, None) for name in ("posterior_", "inclusion_")]
    return [first, *(network for network in networks if network is not None)]
