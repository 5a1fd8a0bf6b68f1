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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("SETWISE_DATA", "../shared/data")))
    parser.add_argument("--only", choices=runner.QUESTIONS, action="append")
    parser.add_argument("--set", action="append", help="a data set by name; may be repeated")
    parser.add_argument(
        "--package", action="append", help="methods of this package alone, or formulas; may be repeated"
    )
    parser.add_argument("--fast", action="store_true", help="few draws")
    parser.add_argument("--draws", type=int, help="draws per cell, in place of each question's own")
    parser.add_argument("--keep", action="store_true", help="replaces these lines of results.csv")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the table that --keep changes")
    parser.add_argument("--merge", type=Path, nargs="+", help="measures nothing; keeps the lines of these tables")
    options = parser.parse_args()
    if options.merge:
        for path in options.merge:
            keep(pd.read_csv(path, dtype=TEXTS), options.out)
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
                shown = {key: line.get(key) for key in ("kept", "measured", "gain", "seconds", "note")}
                print(*(line[key] for key in KEY), shown, sep=" | ", flush=True)
            if options.keep:
                keep(pd.DataFrame(found), options.out)
    if not found:
        sys.exit("no line was measured: name a folder with data by --data")


def keep(found, path):
    """Replaces the lines that were measured anew, and leaves the others."""
    new = found.reindex(columns=runner.COLUMNS)
    if path.exists():
        old = pd.read_csv(path, dtype=TEXTS)
        known, measured = (pd.MultiIndex.from_frame(part[KEY]) for part in (old, new))
        absent = new["note"].eq("not installed here") & measured.isin(
            known
        )  # the line from where it is installed stays
        new = new[~absent]
        new = pd.concat([old[~known.isin(measured[~absent])], new])
    new.sort_values(KEY, kind="stable").to_csv(path, index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
