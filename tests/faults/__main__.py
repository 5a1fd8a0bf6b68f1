"""``python -m tests.faults --kills 100 --out FILE``: commands that are killed, and interrupted, at random moments.

The exit status is 1 where one of them left something that it should not.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

from tests.faults.commands import COMMANDS, surroundings
from tests.faults.moments import KINDS
from tests.faults.survival import Cut, cuts


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--interruptions", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--command", action="append", choices=COMMANDS, help="one of them; repeat it. Default: all")
    parser.add_argument("--kind", action="append", choices=KINDS, help="of moments. Default: all")
    parser.add_argument("--pictures", action="store_true", help="let reproduce draw its pictures")
    parser.add_argument("--out", type=Path, help="where to write the counts as JSON")
    options = parser.parse_args()
    found: list[Cut] = []
    folder = Path(tempfile.mkdtemp(prefix="setwise-faults-"))  # no context manager: processes that are forked end too
    with surroundings(pictures=options.pictures):
        for times, happens in ((options.kills, signal.SIGKILL), (options.interruptions, signal.SIGINT)):
            root = folder / signal.Signals(happens).name
            root.mkdir()
            kinds, names = tuple(options.kind or KINDS), tuple(options.command or ())
            for cut in cuts(root, times, happens, options.seed, kinds, names):
                found.append(cut)
                if cut.wrong:
                    print(f"{cut.command}, {cut.signal} at {cut.kind} {cut.moment}:", *cut.wrong, sep="\n  ", flush=True)
    shutil.rmtree(folder)
    bad = [cut for cut in found if cut.wrong]
    tried = Counter((cut.signal, cut.command) for cut in found)
    for (happens, command), times in sorted(tried.items()):
        print(f"{happens:8} {command:16} {times:5}")
    print(f"{len(found)} commands cut short, {len(bad)} left something that they should not")
    if options.out:
        counts = {kind: {name: times for (k, name), times in tried.items() if k == kind} for kind in ("SIGKILL", "SIGINT")}
        kept = {"seed": options.seed, "cut": counts, "wrong": [asdict(cut) for cut in bad]}
        kept |= {"moments": list(options.kind or KINDS), "python": platform.python_version()}
        options.out.write_text(json.dumps(kept, indent=1) + "\n")
    return min(len(bad), 1)


if __name__ == "__main__":
    sys.exit(main())
