"""Output files: nothing is overwritten unasked."""

from __future__ import annotations

from pathlib import Path


def refuse_existing(path: Path, *, force: bool) -> None:
    """Nothing is overwritten unasked."""
    if path.exists() and not force:
        raise ValueError(f"{path} exists already; use --force to replace it.")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"{path}: the folder {path.absolute().parent} does not exist.")
