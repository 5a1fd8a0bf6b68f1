"""`python -m tests.observatory`: all cells, in parallel; `--cell KEY` one of them, `--find TEXT` some.

In parts, on one machine or several:

    python -m tests.observatory --part 1/4 --keep part-1.jsonl
    python -m tests.observatory --merge part-*.jsonl --out benchmarks/results/observatory.json
"""

from __future__ import annotations

import argparse
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

from tests.observatory.cells import grid
from tests.observatory.judge import judge
from tests.observatory.record import merge, observe


def main() -> int:
    """The number of violations, as exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.observatory")
    parser.add_argument("--cell", help="the key of one cell")
    parser.add_argument("--find", help="cells whose key contains this", default="")
    parser.add_argument("--part", default="1/1", help="such as 2/4: the second of four parts of the cells")
    parser.add_argument("--share", type=float, default=1.0, help="which share of the calibration samples is drawn")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--out", help="where to write the results as JSON")
    parser.add_argument("--keep", help="a file that keeps each cell's verdict; a second run goes on where it ends")
    parser.add_argument("--merge", nargs="+", metavar="FILE", help="judges nothing: verdicts that --keep wrote")
    options = parser.parse_args()
    cells = grid()
    if options.cell:
        verdict = judge(cells[options.cell], options.share)
        print(verdict)
        return int(verdict.status == "violated")
    chosen = [cell for key, cell in cells.items() if options.find in key]
    if options.merge:
        return merge(chosen, options.merge, options.out)
    part, parts = map(int, options.part.split("/"))
    chosen = chosen[part - 1 :: parts]
    return observe(chosen, options.share, options.processes, options.out, options.keep)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
