"""`python -m ambiguous`: the whole benchmark, or a part of it."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from ambiguous import data_sets, runner
from ambiguous.registry import methods

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.csv"
TEXTS = {"version": str, "commit": str, "note": str}
KEY = ["question", "data", "setting", "package", "method"]


def commit():
    """Of the repository, or as SETWISE_COMMIT says where there is none."""
    asked = ["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() or os.environ.get(
        "SETWISE_COMMIT", ""
    )


def read_options():
    """The options, whose names and folders exist."""
    parser = argparse.ArgumentParser(prog="python -m ambiguous", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("SETWISE_DATA", "../shared/data")))
    parser.add_argument("--only", choices=runner.QUESTIONS, action="append")
    parser.add_argument("--set", action="append", help="a data set by name; may be repeated")
    parser.add_argument(
        "--package", action="append", help="methods of this package alone, or formulas; may be repeated"
    )
    parser.add_argument("--fast", action="store_true", help="few draws")
    parser.add_argument("--draws", type=int, help="draws per setting, in place of each question's own")
    parser.add_argument("--keep", action="store_true", help="replaces these lines of results.csv")
    parser.add_argument("--out", type=Path, help="a table to keep lines in, in place of results.csv")
    parser.add_argument("--merge", type=Path, nargs="+", help="measures nothing; keeps the lines of these tables")
    options = parser.parse_args()
    known = {one.package or "formulas" for name in runner.QUESTIONS for one in methods(name)}
    for asked, there in (("set", data_sets.CARDS), ("package", known)):
        if unknown := set(getattr(options, asked) or ()).difference(there):
            parser.error(f"--{asked}: no {', '.join(sorted(unknown))}; there are {', '.join(sorted(there))}")
    if options.draws is not None and options.draws < 1:
        parser.error("--draws: at least 1")
    options.table = (options.out or RESULTS) if options.keep or options.out or options.merge else None
    if options.table and not options.table.parent.is_dir():
        parser.error(f"--out: there is no folder {options.table.parent}")
    return options


def main():
    options = read_options()
    if options.merge:
        for path in options.merge:
            keep(pd.read_csv(path, dtype=TEXTS), options.table)
        print(f"{len(options.merge)} tables are in {options.table}")
        return
    facts = {
        "python": platform.python_version(),
        "machine": f"CPU {platform.machine()}, {os.cpu_count()} cores",
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
    }
    found = []
    for name in options.only or runner.QUESTIONS:
        asked = runner.question(name)
        for one in asked.DATA:
            if options.set and one not in options.set:
                continue
            data = data_sets.load(one, options.data)
            if data is None:
                continue
            draws = options.draws or (asked.FAST if options.fast else asked.DRAWS)
            for line in runner.lines(asked, one, data, draws, options.package):
                found.append(line | facts)
                shown = [f"{key} {line[key]:.4g}" for key in ("measured", "gain", "seconds") if key in line]
                print(
                    *(line[key] for key in KEY),
                    line.get("kept"),
                    *shown,
                    line.get("note", ""),
                    sep=" | ",
                    flush=True,
                )
            if options.table and found:
                keep(pd.DataFrame(found), options.table)
    if not found:
        sys.exit(
            "no line was measured: the questions have no setting for these data sets, or the data are not in --data"
        )


def keep(found, path):
    """Replaces the lines that were measured anew with as many draws, and leaves the others."""
    new = found.reindex(columns=runner.COLUMNS)
    if path.exists():
        old = pd.read_csv(path, dtype=TEXTS)
        known, measured = (pd.MultiIndex.from_frame(part[KEY]) for part in (old, new))
        absent = new["note"].eq("not installed here") & measured.isin(
            known
        )  # the line from where it is installed stays
        draws = old.set_index(KEY)["draws"] if "draws" in old else pd.Series(dtype=float)
        before = draws[~draws.index.duplicated()].reindex(measured).to_numpy(dtype=float)
        fewer = new["draws"].to_numpy(dtype=float) < before
        if fewer.any():
            print(f"{fewer.sum()} lines are not kept: {path} has them with more draws")
            absent |= fewer
        new = new[~absent]
        new = pd.concat([old[~known.isin(measured[~absent])], new])
    new.sort_values(KEY, kind="stable").to_csv(path, index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
