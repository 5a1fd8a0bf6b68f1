"""What people declare about their tables: how wrong labels arise, categories of rows, what separates labels."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from setwise.labels.label_sets import LabelSets


def assume_of(text: str, labels: list[Any]) -> Any:
    """What is declared about contamination: a word, or the matrix in a file, in the order of the labels.

    Entry (k, l) says how often label l is a candidate where k is true. A .npy file follows the order of the labels.
    A table has one column a label, named so, and its rows follow its columns or are named in one column more.
    """
    if text in {"nothing", "uniform", "class"}:
        return text
    path = Path(text)
    if not path.is_file():
        raise ValueError(f"--assume: {text!r} is neither nothing, uniform or class nor a file.")
    if path.suffix == ".npy":
        import numpy as np  # noqa: PLC0415 - needed here alone

        try:
            return np.load(path, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise ValueError(f"{path}: not an array of numbers as numpy.save writes it ({error}).") from None
    from setwise.data import read_table  # noqa: PLC0415 - Arrow is loaded for files
    from setwise.data.arrow_tables import column_names  # noqa: PLC0415
    from setwise.data.set_files import probability_columns  # noqa: PLC0415

    names = column_names(path)
    columns = probability_columns(names, labels) or []
    others = [name for name in names if name not in columns]
    if not columns or len(others) > 1:
        raise ValueError(
            f"{path}: expected one column for each of the labels {', '.join(map(str, labels[:8]))}, named so, and "
            f"at most one more that names the rows; it has {', '.join(names[:8])}."
        )
    table = read_table(path, features=columns, carry=others)
    rows = list(map(str, table.carried[others[0]])) if others else [name for name in names if name in columns]
    if sorted(rows) != sorted(columns) or len(table) != len(columns):
        raise ValueError(f"{path}: expected a row for each of the {len(columns)} labels, found {len(table)} rows.")
    return table.X[[rows.index(name) for name in columns]]


def categories_of(column: Any, name: str, file: Path, first_row: int = 0) -> list[str]:
    """A column of categories as text, so that 1 in Parquet is "1" in CSV; a row without one is named."""
    import pyarrow as pa  # noqa: PLC0415 - Arrow is loaded when a file is read
    import pyarrow.compute as pc  # noqa: PLC0415

    values = pc.cast(column if hasattr(column, "type") else pa.array(column, from_pandas=True), pa.string())
    texts: list[str] = values.to_pylist()
    gone = next((row for row, text in enumerate(texts) if not text), None)
    if gone is not None:
        raise ValueError(f"{file}, column {name!r}: row {first_row + gone} has no category; give it one.")
    return texts


def stands_for_prediction(by: str | None, file: Path, delimiter: str | None = None) -> bool:
    """Whether `--by predicted` means the most probable label; a column of that name comes first."""
    from setwise.data.arrow_tables import column_names, is_table  # noqa: PLC0415 - Arrow is loaded when a file is read

    return by == "predicted" and not (is_table(file) and by in column_names(file, delimiter))


def doubt_separator(sets: LabelSets, separator: str) -> None:
    """Warns where no row has two candidates, but labels look as if something else stood between several."""
    if len(sets) == 0 or sets.sizes.max() > 1:
        return
    for mark in "|,;/+&":
        several = [label for label in sets.classes.tolist() if isinstance(label, str) and mark in label.strip(mark)]
        if several and mark != separator:
            warnings.warn(
                f"every row has one candidate, such as {several[0]!r}; if {mark!r} stands between labels, say so "
                f"with --separator {mark!r}.",
                stacklevel=2,
            )
            return
