"""Writes rows as tasks for Label Studio, with or without a proposed label, in the JSON that it imports.

The columns of a row become the data of its task. An export therefore returns them with the answer
(`setwise.tables.from_label_studio` with ``key=``).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from setwise._version import __version__
from setwise.storage.atomic_files import replacing
from setwise.tables.json_objects import json_text


def write_tasks(
    path: str | os.PathLike[str],
    columns: Mapping[str, Any],
    labels: Sequence[Any] | None = None,
    scores: Sequence[float] | None = None,
    *,
    from_name: str = "choice",
    to_name: str = "text",
) -> None:
    """Writes one task per row, which shows these columns; the file appears whole or not at all.

    `labels` are those proposed (None for none), with their `scores`; `from_name` and `to_name` the names of the
    control (`Choices`) and of the object that it labels, as in the labelling interface.

    >>> import json, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tasks.json")
    >>> write_tasks(path, {"id": ["a7"], "text": ["ki-ki-ki"]}, ["owl"], [0.5])
    >>> json.loads(path.read_text())[0]["predictions"][0]["result"][0]["value"]
    {'choices': ['owl']}
    """
    rows = pa.table(dict(columns)).to_pylist()
    proposed = [None] * len(rows) if labels is None else list(labels)
    sure = [math.nan] * len(rows) if scores is None else list(scores)
    names = {"from_name": from_name, "to_name": to_name}
    tasks: list[dict[str, Any]] = [{"data": row} for row in rows]
    for task, label, score in zip(tasks, proposed, sure, strict=True):
        if label is not None:
            result = {**names, "type": "choices", "value": {"choices": [str(label)]}}
            made = {"model_version": f"setwise {__version__}", "score": float(score), "result": [result]}
            task["predictions"] = [made]
    with replacing(path) as beside:
        beside.write_text(json_text(tasks, indent=1) + "\n", encoding="utf-8")
