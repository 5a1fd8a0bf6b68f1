"""``python -m tests.fuzz``: every reader and loader, each for some seconds in a process of its own.

With atheris, where it is installed, inputs are guided by coverage; else bytes of the seeds are changed at random.
The exit status is 1 where something was found; the inputs then lie in the folder that is printed.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.summary import machine

from tests.fuzz.oracle import ENVIRONMENT
from tests.fuzz.targets import TARGETS, corpus

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "fuzz.json"
_SMALL = 2048  # bytes
_VERSIONS = ("numpy", "scipy", "pyarrow", "skops", "safetensors", "torch", "openpyxl", "atheris")


def fuzz(name: str, seconds: float, seed: int, folder: Path) -> dict:
    """What came of one target: a process that dies is a finding, and another goes on until the time is over."""
    began, total, found = time.monotonic(), Counter(), []
    while (left := seconds - (time.monotonic() - began)) > 1 or not total:
        number = len(found)
        place = folder / name.replace(" ", "-") / str(number)
        command = [sys.executable, "-m", "tests.fuzz.worker", name, place, str(max(left, 1)), str(seed + number)]
        done = subprocess.run(command, env=os.environ | ENVIRONMENT, capture_output=True, text=True, check=False)
        if (place / "counts.json").exists():
            total.update(json.loads((place / "counts.json").read_text()))
        found += [told.read_text().strip() for told in sorted(place.glob("findings/*.txt"))]
        if done.returncode == 0:
            break
        said = [line for line in done.stderr.splitlines() if not line.startswith("INFO: Instrumenting")]
        (place / "died.txt").write_text("\n".join(said))
        found.append(f"a process died with exit status {done.returncode}: {place.relative_to(folder)}")
        if len(found) > 9:
            break
    counts = {name: total[name] for name in ("executions", "accepted")}
    return counts | {"seconds": round(time.monotonic() - began, 1), "findings": sorted(set(found))}


def grow(name: str, folder: Path, most: int) -> None:
    """Adds the smallest inputs that reached new code to those that stay with the tests."""
    place = Path(__file__).parent / "corpus" / name.replace(" ", "-")
    held = {hashlib.sha256(path.read_bytes()).digest() for path in corpus(name)}
    reached = (folder / name.replace(" ", "-")).glob("*/corpus/[0-9a-f]*")
    small = sorted(
        (path for path in reached if 0 < path.stat().st_size <= _SMALL), key=lambda path: path.stat().st_size
    )
    for path in [path for path in small if hashlib.sha256(path.read_bytes()).digest() not in held][:most]:
        place.mkdir(parents=True, exist_ok=True)
        (place / path.name[:12]).write_bytes(path.read_bytes())


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60, help="for each target")
    parser.add_argument("--target", action="append", choices=TARGETS, help="one of them; repeat it. Default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where inputs that were found are left")
    parser.add_argument(
        "--grow", type=int, default=0, help="so many small inputs of each are put into tests/fuzz/corpus"
    )
    parser.add_argument("--keep", action="store_true", help="into benchmarks/results/fuzz.json")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="setwise-fuzz-"))
    guided = importlib.util.find_spec("atheris") is not None
    how = "guided by coverage" if guided else "mutations of seeds"
    print(f"{how}, {options.seconds:g} s for each target; what is found lies in {folder}", flush=True)
    made, here = {}, machine()
    with ThreadPoolExecutor(options.processes) as pool:
        waiting = {
            name: pool.submit(fuzz, name, options.seconds, options.seed, folder)
            for name in options.target or TARGETS
        }
        for name, result in waiting.items():
            made[name] = found = result.result()
            grow(name, folder, options.grow)
            told = f"{found['executions']:>9,} executions, {found['accepted']:>8,} accepted"
            print(f"{name:20} {told}, {found['seconds']:.0f} s, {len(found['findings'])} findings", flush=True)
            for line in found["findings"]:
                print(f"  {line}", flush=True)
            if options.keep:
                about = {key: here[key] for key in ("date", "commit", "python")}
                keep(name, found | {"guided": guided} | about)
    found = sum(len(one["findings"]) for one in made.values())
    executions = sum(one["executions"] for one in made.values())
    print(f"{executions:,} executions of {len(made)} targets, {found} findings")
    return min(found, 1)


def keep(name: str, made: dict) -> None:
    """Puts what came of a target beside what came of the others, and the versions that its Python had."""
    earlier = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"targets": {}, "versions": {}}
    targets = earlier["targets"] | {name: made}
    pythons = {one["python"] for one in targets.values()}
    versions = {name: version for name in _VERSIONS if (version := _version(name))}
    kept = {
        "executions": sum(one["executions"] for one in targets.values()),
        "findings": sum(len(one["findings"]) for one in targets.values()),
        "targets": {name: targets[name] for name in TARGETS if name in targets},
        "versions": {
            python: found
            for python, found in (earlier["versions"] | {platform.python_version(): versions}).items()
            if python in pythons
        },
    }
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    sys.exit(main())
