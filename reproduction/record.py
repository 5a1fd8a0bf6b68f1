"""Everything that is made from finished cells, under one folder: tables, one JSON, one Parquet, pictures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from reproduction import result_plots
from reproduction.cells import CONTAMINATIONS, NAMES, TABLES, Protocol, Variant
from reproduction.result_tables import CAPTIONS, latex, markdown
from reproduction.results import Result, write_text
from reproduction.summary import Entry, entries, sizes_and_supermodels
from setwise.storage.atomic_files import replacing


@dataclass(frozen=True, eq=False)
class Record:
    """All finished cells of a folder of one make: full or quick runs are not mixed in a table."""

    results: tuple[Result, ...]
    absent: tuple[str, ...] = ()

    def learned(self, table: int, protocol: Protocol = "official", variant: Variant = "paper") -> list[Result]:
        """The trained cells of one of Tables 2 to 5."""
        how = {number: name for name, number in CONTAMINATIONS.items()}.get(table, "original")
        wanted = (how, protocol, variant)
        chosen = [
            r
            for r in self.results
            if r.cell.preset and (r.cell.contamination, r.cell.protocol, r.cell.variant) == wanted
        ]
        return _longest(chosen)

    def entries(self, table: int, protocol: Protocol = "official", variant: Variant = "paper") -> list[Entry]:
        """The numbers of a table."""
        if table in {2, 3, 4, 5}:
            return entries(table, self.learned(table, protocol, variant))
        own = [r for r in self.results if r.cell.preset is None]
        sizes, supermodels = sizes_and_supermodels(own)
        return sizes if table == 1 else supermodels

    @property
    def missing_data(self) -> list[str]:
        """Data sets that were not present and of which nothing is known."""
        known = {result.cell.data for result in self.results}
        return [name for name in self.absent if name not in known]


def _longest(results: list[Result]) -> list[Result]:
    """Of each data set the cells trained for the most epochs, as the paper orders them.

    So a quick run does not water down a full one.
    """
    most: dict[str, int] = {}
    for result in results:
        most[result.cell.data] = max(most.get(result.cell.data, 0), result.cell.epochs)
    kept = [result for result in results if result.cell.epochs == most[result.cell.data]]
    order = list(NAMES)
    return sorted(kept, key=lambda result: (order.index(result.cell.data), result.cell.seed))


def write_outputs(record: Record, out: Path) -> list[Path]:
    """Writes tables (Markdown, LaTeX), ``results.json``, and with their libraries at hand pictures and Parquet."""
    written = []
    for table in TABLES:
        for protocol in ("official", "resplit") if table in {2, 3, 4} else ("official",):
            found = record.entries(table, protocol)
            if not found:
                continue
            stem = f"table-{table}" + ("" if protocol == "official" else "-resplit")
            (out / "tables").mkdir(parents=True, exist_ok=True)
            for suffix, make in (("md", markdown), ("tex", latex)):
                path = out / "tables" / f"{stem}.{suffix}"
                text = make(table, found, record.missing_data)
                if suffix == "md":
                    text = f"Table {table}. {CAPTIONS[table]}\n\n{text}"
                write_text(path, text)
                written.append(path)
    write_text(out / "results.json", json.dumps([result.to_dict() for result in record.results]) + "\n")
    written.append(out / "results.json")
    if find_spec("pyarrow") is not None:
        write_parquet(record.results, out / "results.parquet")
        written.append(out / "results.parquet")
    if result_plots.can_plot():
        images = [result for table in (2, 3, 4) for result in record.learned(table)]
        written += result_plots.draw(images, "images", out / "plots")
        written += result_plots.draw(record.learned(5), "real", out / "plots")
    return written


def flat_rows(results: Sequence[Result]) -> list[dict[str, Any]]:
    """A line for each cell and strategy (one without a strategy where nothing was learned)."""
    lines = []
    for result in results:
        cell, measured = result.cell, result.measured
        head = {
            "key": result.key,
            **{
                name: getattr(cell, name)
                for name in ("data", "contamination", "seed", "protocol", "variant", "preset", "epochs")
            },
            **{name: result.environment[name] for name in ("setwise", "torch", "device")},
            "average_size": measured["sets"]["average_size"],
            **{name: measured.get(name) for name in ("train_accuracy", "test_accuracy")},
        }
        if not cell.preset:
            lines.append(head)
            continue
        truth = {
            name: measured["premises"][name]
            for name in ("q_of_truth", "below_mean", "below_one_over_size", "size_certificate")
        }
        for strategy, found in measured["strategies"].items():
            lower, upper = found["bracket"]
            plain = {name: v for name, v in found.items() if name != "bracket"}
            rho = measured["premises"]["rho"].get(strategy)
            curve = {f"{name}_by_level": values for name, values in measured["by_level"][strategy].items()}
            single = {f"float32_{name}": v for name, v in measured["float32"].get(strategy, {}).items()}
            line = {
                **head,
                "strategy": strategy,
                **plain,
                "bracket_lower": lower,
                "bracket_upper": upper,
                "rho": rho,
            }
            lines.append({**line, **truth, **curve, **single})
    return lines


def write_parquet(results: Sequence[Result], path: Path) -> None:
    """All results as one table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    lines = flat_rows(results)
    names = list(dict.fromkeys(name for line in lines for name in line))
    with replacing(path) as beside:
        pq.write_table(pa.table({name: [line.get(name) for line in lines] for name in names}), beside)
