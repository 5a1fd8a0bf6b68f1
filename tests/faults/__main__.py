"""``python -m tests.faults --kills 100 --out FILE``: commands that are killed, interrupted and disturbed.

The exit status is 1 where one of them left something that it should not.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

from benchmarks.summary import machine

from tests.faults.commands import COMMANDS, surroundings
from tests.faults.disturbances import DISTURBANCES
from tests.faults.moments import KINDS
from tests.faults.survival import Case, cuts


def cases(options: argparse.Namespace, folder: Path) -> Iterator[Case]:
    """One after the other."""
    kinds, names = tuple(options.kind or KINDS), tuple(options.command or ())
    for times, happens in ((options.kills, signal.SIGKILL), (options.interruptions, signal.SIGINT)):
        yield from cuts(folder, times, happens, options.seed, kinds, names)
    if options.step:
        for disturb in DISTURBANCES.values():
            yield from disturb(folder, options.step)


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--interruptions", type=int, default=100)
    parser.add_argument("--step", type=int, default=1, help="of moments for disturbances: 1 is every one, 0 none")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--command", action="append", choices=COMMANDS, help="one of them; repeat it. Default: all")
    parser.add_argument("--kind", action="append", choices=KINDS, help="of moments. Default: all")
    parser.add_argument("--out", type=Path, help="where to write the counts as JSON")
    options = parser.parse_args()
    here, found = machine(), list[Case]()
    folder = Path(
        tempfile.mkdtemp(prefix="setwise-faults-")
    )  # no context manager: processes that are forked end too
    with surroundings():
        for case in cases(options, folder):
            found.append(case)
            if case.wrong:
                print(f"{case.command}, {case.what} at {case.moment}:", *case.wrong, sep="\n  ", flush=True)
    shutil.rmtree(folder)
    tried = Counter((case.what, case.command) for case in found)
    for (what, command), times in tried.items():
        print(f"{what:18} {command:16} {times:5}")
    wrong = [case for case in found if case.wrong]
    print(f"{len(found)} commands, {len(wrong)} left something that they should not")
    if options.out:
        kept = {
            "machine": here,
            "cases": {
                what: sum(case.what == what for case in found) for what in dict.fromkeys(c.what for c in found)
            },
            "commands": list(dict.fromkeys(case.command for case in found)),
            "wrong": [asdict(case) for case in wrong],
            "seed": options.seed,
        }
        root = f"{Path(__file__).parents[2]}/"  # no result names where it was measured
        options.out.write_text(json.dumps(kept, indent=1).replace(root, "") + "\n")
    return min(len(wrong), 1)


if __name__ == "__main__":
    sys.exit(main())
