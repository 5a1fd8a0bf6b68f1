"""``python -m tests.fuzz``: every reader and loader, each for some seconds in a process of its own.

With atheris, where it is installed, inputs are guided by coverage; else bytes of the seeds are changed at random.
The exit status is 1 where something was found; the inputs then lie in the folder that is printed.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fuzz.oracle import ENVIRONMENT
from tests.fuzz.targets import TARGETS

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "fuzz.json"
_VERSIONS = ("numpy", "scipy", "pyarrow", "skops", "safetensors", "torch", "openpyxl", "atheris")


def fuzz(name: str, seconds: float, seed: int, folder: Path) -> dict:
    """What came of one target: a process that dies is a finding, and another goes on until the time is over."""
    began, total, deaths = time.monotonic(), {"executions": 0, "accepted": 0}, 0
    while (left := seconds - (time.monotonic() - began)) > 1 or not total["executions"]:
        place = folder / name.replace(" ", "-") / str(deaths)
        command = [
            sys.executable,
            "-m",
            "tests.fuzz.worker",
            name,
            str(place),
            str(max(left, 1)),
            str(seed + deaths),
        ]
        done = subprocess.run(command, env=os.environ | ENVIRONMENT, capture_output=True, text=True, check=False)
        if (place / "counts.json").exists():
            counts = json.loads((place / "counts.json").read_text())
            total = {key: total[key] + counts[key] for key in total}
        if done.returncode != 0:
            deaths += 1
            said = [line for line in done.stderr.splitlines() if not line.startswith("INFO: Instrumenting")]
            (place / "died.txt").write_text("\n".join([f"exit status {done.returncode}", *said, ""]))
            if deaths > 9:
                break
    return {
        "executions": total["executions"],
        "accepted": total["accepted"],
        "seconds": round(time.monotonic() - began, 1),
        "findings": sorted({told.read_text().strip() for told in folder.glob(f"{name.replace(' ', '-')}/*/findings/*.txt")})
        + [f"a process died: {told.read_text().splitlines()[0]}" for told in folder.glob(f"{name.replace(' ', '-')}/*/died.txt")],
    }  # fmt: skip


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60, help="for each target")
    parser.add_argument("--target", action="append", choices=TARGETS, help="one of them; repeat it. Default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where inputs that were found are left")
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/fuzz.json")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="setwise-fuzz-"))
    guided = importlib.util.find_spec("atheris") is not None
    print(
        f"{'guided by coverage' if guided else 'mutations of seeds'}, {options.seconds:g} s for each target; {folder}"
    )
    made = {}
    with ThreadPoolExecutor(options.processes) as pool:
        waiting = {
            name: pool.submit(fuzz, name, options.seconds, options.seed, folder)
            for name in options.target or TARGETS
        }
        for name, result in waiting.items():
            made[name] = found = result.result()
            told = f"{found['executions']:>9,} executions, {found['accepted']:>8,} accepted"
            print(f"{name:20} {told}, {found['seconds']:.0f} s, {len(found['findings'])} findings", flush=True)
            for line in found["findings"]:
                print(f"  {line}", flush=True)
    found = sum(len(one["findings"]) for one in made.values())
    executions = sum(one["executions"] for one in made.values())
    print(f"{executions:,} executions of {len(made)} targets, {found} findings")
    if options.keep:
        kept = {
            "guided": guided,
            "executions": executions,
            "findings": found,
            "targets": made,
            "python": platform.python_version(),
            "versions": {name: version for name in _VERSIONS if (version := _version(name))},
        }
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
    return min(found, 1)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    sys.exit(main())
