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
KEY = ["question", "data", "setting", "method"]


def commit():
    """Of the repository; empty where there is none."""
    asked = ["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


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
    options = parser.parse_args()
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
                keep(found)
    if not found:
        sys.exit("no line was measured: name a folder with data by --data")


def keep(found):
    """Replaces the lines that were measured anew, and leaves the others."""
    new = pd.DataFrame(found).reindex(columns=runner.COLUMNS)
    if RESULTS.exists():
        old = pd.read_csv(RESULTS, dtype={"version": str, "commit": str, "note": str})
        same = pd.MultiIndex.from_frame(old[KEY]).isin(pd.MultiIndex.from_frame(new[KEY]))
        # What is not installed here keeps the line that was measured where it was.
        absent = new["note"].eq("not installed here") & pd.MultiIndex.from_frame(new[KEY]).isin(
            pd.MultiIndex.from_frame(old[KEY])
        )
        new = new[~absent]
        same = pd.MultiIndex.from_frame(old[KEY]).isin(pd.MultiIndex.from_frame(new[KEY]))
        new = pd.concat([old[~same], new])
    new.sort_values(KEY, kind="stable").to_csv(RESULTS, index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
