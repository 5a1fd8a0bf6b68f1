"""Rows shown as examples: some of the largest sets, of the empty ones, of those that miss the truth, and of all."""

from __future__ import annotations

import io
from fractions import Fraction
from typing import Any

import numpy as np

from setwise._arrays import Array, Ints
from setwise.labels.vocabulary import UNKNOWN
from setwise.report.html_pages import data_address
from setwise.report.label_entry_levels import EntrySource, Sweep
from setwise.report.reported_rows import Rows

_EACH = 12  # examples of each kind
_LABELS = 40  # labels of an example that are listed
_SIDE = 96  # pixels; larger images are made smaller


def example_facts(source: EntrySource, sweep: Sweep, rows: Rows, level: Fraction) -> list[dict[str, Any]]:
    """One dictionary per example."""
    shown = _choose_rows(sweep, sweep.levels.index(level))
    entries, p_values = source.entries(shown), source.p_values(shown)
    names = [str(label) for label in rows.vocabulary.classes.tolist()]
    facts = []
    for i, row in enumerate(shown.tolist()):
        values = None if p_values is None else p_values[i]
        strangeness = entries[i] if values is None else -values
        order = np.lexsort((np.arange(len(names)), strangeness, entries[i]))[:_LABELS]
        own = () if rows.candidates is None else np.flatnonzero(rows.candidates[[row]].to_mask()[0]).tolist()
        code = UNKNOWN if rows.codes is None else int(rows.codes[row])
        enters = None if sweep.truth is None or sweep.truth[row] < 0 else int(sweep.truth[row])
        fact: dict[str, Any] = {
            "number": int(rows.numbers[row]),
            "id": None if rows.ids is None else str(rows.ids[row]),
            "sizes": sweep.sizes[row].tolist(),
            "enters": enters,
            "truth": None if rows.y is None or enters is None else str(rows.y[row]),
            "labels": [
                {
                    "name": names[k],
                    "enters": int(entries[i, k]),
                    "p": "" if values is None else p_text(values[k]),
                    "candidate": k in own,
                    "true": k == code,
                }
                for k in order.tolist()
            ],
            "candidates": None if rows.candidates is None else [names[k] for k in own[:_LABELS]],
            "more_candidates": max(len(own) - _LABELS, 0),
        }
        if rows.images is not None:
            fact["image"] = png(rows.images[row])
        facts.append(fact)
    return facts


def png(image: Array) -> str:
    """An image of shape (h, w), (h, w, 3) or (h, w, 4) as a data address; numbers that are no bytes are scaled."""
    from PIL import Image  # optional, needed for images alone

    array = np.asarray(image)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if array.ndim not in {2, 3} or (array.ndim == 3 and array.shape[2] not in {3, 4}):
        raise ValueError(f"images: expected (rows, height, width) or (…, 3), got one of shape {array.shape}.")
    if array.dtype != np.uint8:
        low, high = float(array.min()), float(array.max())
        array = np.round(255 * (array - low) / max(high - low, 1e-12)).astype(np.uint8)
    picture = Image.fromarray(array)
    picture.thumbnail((_SIDE, _SIDE))
    held = io.BytesIO()
    picture.save(held, "PNG", optimize=True)
    return data_address("png", held.getvalue())


def p_text(value: float) -> str:
    """A p-value in three digits, and never as zero.

    >>> p_text(0.5), p_text(0.0001), p_text(1.0)
    ('0.500', '<0.001', '1.000')
    """
    return f"{value:.3f}" if value >= 0.0005 else "<0.001"


def _choose_rows(sweep: Sweep, at: int) -> Ints:
    """The rows to show, each once: drawn evenly with a fixed seed, the largest by size."""
    rng, sizes = np.random.default_rng(0), sweep.sizes[:, at]
    kinds = [_some(rng, np.arange(len(sizes)))]
    if sweep.truth is not None:
        kinds.append(_some(rng, np.flatnonzero(sweep.truth > at)))
    kinds += [_some(rng, np.flatnonzero(sizes == 0)), np.argsort(-sizes, kind="stable")[:_EACH]]
    return np.array(list(dict.fromkeys(np.concatenate(kinds).tolist())), dtype=np.intp)


def _some(rng: np.random.Generator, rows: Ints) -> Ints:
    return rows if len(rows) <= _EACH else np.sort(rng.choice(rows, _EACH, replace=False))
