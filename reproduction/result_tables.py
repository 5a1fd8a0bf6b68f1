"""The paper's tables in Markdown and LaTeX: its layout, with ours and its value side by side."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from reproduction.cells import FURTHER, IMAGES, NAMES, REAL
from reproduction.measure import ORACLE, STRATEGIES
from reproduction.summary import Entry, Value, published

CAPTIONS = {
    1: "Description of the benchmark and real data sets.",
    2: "Calibration approaches on benchmark data sets with random contamination (p = 0.1).",
    3: "Calibration approaches on benchmark data sets with random contamination (p = 0.7).",
    4: "Calibration approaches on benchmark data sets with instance-dependent contamination.",
    5: "Calibration approaches on real-world data sets.",
    6: "Accuracies of the supermodels used for instance-dependent contamination.",
}
ABSENT = "data not present"
_QUANTITIES = {
    "train_accuracy": "Train acc.",
    "test_accuracy": "Test acc.",
    "efficiency": "Efficiency",
    "coverage": "Coverage",
}
_LATEX = {
    **{name: rf"$\mathcal{{E}}_\text{{{name}}}$" for name in ("max", "all", "mean", "min")},
    **{name: rf"$\mathcal{{E}}_{{\mu={name[3:]}}}$" for name in STRATEGIES if name.startswith("mu=")},
    ORACLE: "oracle",
    "model": "",
}
_CONTAMINATIONS = {
    "original": "Original",
    "instance_dependent": "Instance-dependent contamination",
    "random_p0.1": "Random contamination (p=0.1)",
    "random_p0.7": "Random contamination (p=0.7)",
}

Row = tuple[str, str, list[Entry | None]]
"""The first two columns, and an entry for each data set (None: nothing was measured)."""


def columns_of(table: int) -> tuple[str, ...]:
    """The data sets of a table, as the paper orders them; ours that it does not have come last."""
    if table == 1:
        return (*IMAGES, *REAL, *FURTHER)
    return (*REAL, *FURTHER) if table == 5 else IMAGES


def rows_of(table: int, entries: Sequence[Entry]) -> list[Row]:
    """The lines of a table in the paper's order; Tables 2 to 5 end with the oracle, which it does not have."""
    known = {(e.strategy, e.quantity, e.data, e.contamination if table == 1 else ""): e for e in entries}

    def line(strategy: str, quantity: str, how: str = "") -> list[Entry | None]:
        return [known.get((strategy, quantity, data, how)) for data in columns_of(table)]

    if table == 1:
        return [("Avg. CSS", label, line("sets", "average_size", how)) for how, label in _CONTAMINATIONS.items()]
    if table == 6:
        return [
            ("", f"{part} accuracy".capitalize(), line("supermodel", f"{part}_accuracy"))
            for part in ("train", "test")
        ]
    rows: list[Row] = [("", _QUANTITIES[q], line("model", q)) for q in ("train_accuracy", "test_accuracy")]
    for strategy in (*STRATEGIES, ORACLE):
        rows += [(strategy, _QUANTITIES[q], line(strategy, q)) for q in ("efficiency", "coverage")]
    return rows


def markdown(table: int, entries: Sequence[Entry], absent: Collection[str] = ()) -> str:
    """Each place holds ours / the paper's (difference in standard deviations), in bold where they are far apart.

    `absent` are data sets that were not on the machine; what is empty otherwise was not run.
    """
    columns, rows = columns_of(table), rows_of(table, entries)
    lines = ["| | | " + " | ".join(NAMES[data] for data in columns) + " |", "|---|---|" + "---|" * len(columns)]
    if table == 1:
        classes = published()["classes"]
        lines.append(
            "| | Num. of classes | " + " | ".join(str(classes.get(data, "")) or "–" for data in columns) + " |"
        )
    last = None
    for label, quantity, found in rows:
        gone = [data in absent and (table == 5 or quantity == "Original") for data in columns]
        shown = [ABSENT if missing else _plain(e) for missing, e in zip(gone, found, strict=True)]
        lines.append(f"| {label if label != last else ''} | {quantity} | " + " | ".join(shown) + " |")
        last = label
    return "\n".join(lines) + "\n"


def latex(table: int, entries: Sequence[Entry], absent: Collection[str] = ()) -> str:
    """A table for a paper: for each data set ours, the paper's and the difference in standard deviations."""
    columns, rows = columns_of(table), rows_of(table, entries)
    heads = " & ".join(rf"\multicolumn{{3}}{{c}}{{{_escaped(NAMES[data])}}}" for data in columns)
    lines = [
        r"\begin{table}[t]",
        rf"\caption{{{_escaped(CAPTIONS[table])} Ours, the paper's, and the difference in standard deviations.}}",
        r"\begin{center}\resizebox{\columnwidth}{!}{",
        rf"\begin{{tabular}}{{l l {'c c c ' * len(columns)}}}",
        r"\toprule",
        rf" & & {heads} \\",
        " & " + " & ours & paper & $\\Delta$" * len(columns) + r" \\",
    ]
    last = None
    for label, quantity, found in rows:
        if label != last:
            lines.append(r"\midrule")
        gone = [data in absent and (table == 5 or quantity == "Original") for data in columns]
        word = rf"\multicolumn{{3}}{{c}}{{{ABSENT}}}"
        shown = [word if missing else _triple(e) for missing, e in zip(gone, found, strict=True)]
        head = (
            rf"\multirow{{2}}{{*}}{{{_LATEX.get(label, label)}}}"
            if label in _LATEX and label and label != last
            else ""
        )
        head = label if table == 1 and label != last else head
        lines.append(f"{head} & {_escaped(quantity)} & " + " & ".join(shown) + r" \\")
        last = label
    lines += [r"\bottomrule", r"\end{tabular}}", r"\end{center}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def shown_rows(table: int, entries: Sequence[Entry]) -> tuple[list[str], list[list[str]]]:
    """The data sets that have numbers, and the table's lines for them, for a screen."""
    present = {entry.data for entry in entries}
    columns = [data for data in columns_of(table) if data in present]
    lines = []
    for label, quantity, found in rows_of(table, entries):
        own = [_plain(e).strip("*") for data, e in zip(columns_of(table), found, strict=True) if data in present]
        lines.append([f"{label} {quantity}".strip(), *own])
    return columns, lines


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Any table in Markdown.

    >>> print(grid(["a", "b"], [["1", "2"]]), end="")
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def signed(number: float, digits: int = 1) -> str:
    """With its sign, and a minus that is one.

    >>> signed(-0.25), signed(3)
    ('−0.2', '+3.0')
    """
    return f"{number:+.{digits}f}".replace("-", "−")


def _plain(entry: Entry | None) -> str:
    if entry is None:
        return "–"
    if entry.paper is None or entry.apart is None:
        return str(entry.ours)
    paper = str(entry.paper) if entry.paper.n else f"{entry.paper.mean:.2f}"
    shown = f"{entry.ours} / {paper} ({signed(entry.apart)})"
    return f"**{shown}**" if entry.far else shown


def _triple(entry: Entry | None) -> str:
    if entry is None:
        return " & & "
    if entry.paper is None or entry.apart is None:
        return f"{_dollars(entry.ours)} & & "
    return f"{_dollars(entry.ours)} & {_dollars(entry.paper)} & ${entry.apart:+.1f}$"


def _dollars(value: Value) -> str:
    return rf"${value.mean:.2f}\pm{value.deviation:.2f}$"


def _escaped(text: str) -> str:
    return text.replace("%", r"\%").replace("_", r"\_")
