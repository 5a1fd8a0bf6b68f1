"""`python -m tests.honest`: every honest design and planted mistake; `--find TEXT` some; `--out` keeps them."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks.summary import machine

from tests.honest.designs import DESIGNS
from tests.honest.judge import run
from tests.honest.mistakes import MISTAKES


def main() -> int:
    """The number of designs without their guarantee or without what was guaranteed, as exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.honest")
    parser.add_argument("--samples", type=int, default=200, help="samples of each design")
    parser.add_argument("--find", default="", help="designs whose name contains this")
    parser.add_argument("--out", type=Path, help="where to write the results as JSON")
    options = parser.parse_args()
    here, kept, started = machine(), {}, time.perf_counter()
    for name, trial in DESIGNS.items():
        if options.find not in name:
            continue
        begun = time.perf_counter()
        found = kept[name] = run(name, trial, options.samples).to_dict()
        took = time.perf_counter() - begun
        reasons = "; ".join(f"{count}: {reason}" for reason, count in found["reasons"].items())
        print(
            f"{found['verdict']:8} guaranteed {found['guaranteed']:.3f}  covered {found['coverage']:.3f} "
            f"(bound {found['bound']:.3f})  {took:5.1f} s  {name}  {reasons[:200]}",
            flush=True,
        )
    noticed = {}
    for name, (trial, guards) in MISTAKES.items():
        if options.find in name:
            found = noticed[name] = run(name, trial, max(options.samples // 4, 1)).to_dict()
            print(f"noticed in {min(found['guards'].get(guard, 0.0) for guard in guards):.0%}  {name}", flush=True)
    if options.out is not None:
        result: dict[str, object] = {
            "machine": here,
            "samples": options.samples,
            "seconds": round(time.perf_counter() - started),
        }
        options.out.write_text(
            json.dumps(result | {"designs": kept, "mistakes": noticed}, indent=1, ensure_ascii=False) + "\n"
        )
    return sum(found["verdict"] != "kept" for found in kept.values())


if __name__ == "__main__":
    sys.exit(min(main(), 1))
