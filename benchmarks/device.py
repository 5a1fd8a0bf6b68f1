"""Probabilities on a GPU: prediction sets there against a copy of the probabilities, and against arrays on the host.

    python benchmarks/device.py --keep

Float32 probabilities of a million rows and 1,000 classes lie on the device. Timed are a copy from device to device, the
sets as a mask (`predict_mask`, which checks the probabilities first) for LAC and APS, and the same rows as arrays on all
cores, of which fewer are taken; each the best of several, by the clock, with the device waited for. With `--keep` figures
go to benchmarks/results/device.json.
"""

from __future__ import annotations

import argparse
import time

import torch
from summary import RESULTS, machine, show

import setwise

BARS = {"lac_to_copy": 2, "aps_host_to_device": 20}
CALIBRATION = 20_000


def probabilities(rows, classes, device):
    """Softmaxes, made in parts."""
    torch.manual_seed(0)
    made = torch.empty(rows, classes, device=device)
    for part in made.split(100_000):
        part.copy_(torch.softmax(2 * torch.randn(part.shape, device=device), dim=1))
    return made


def best(work, repeats):
    """The fastest of several, in seconds, after one that does not count."""
    found = []
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        found.append(time.perf_counter() - start)
    return min(found[1:])


def copy_seconds(p, repeats):
    """From device to device, into memory that is there."""
    other = torch.empty_like(p)
    return best(lambda: other.copy_(p), repeats)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--host-rows", type=int, default=100_000)
    parser.add_argument("--classes", type=int, default=1_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    p = probabilities(options.rows, options.classes, "cuda")
    host = p[: options.host_rows].cpu().numpy()
    candidates = p[:CALIBRATION] > torch.rand(CALIBRATION, options.classes, device="cuda") / 10
    candidates.scatter_(1, p[:CALIBRATION].argmax(dim=1, keepdim=True), value=True)
    result = {"machine": {**machine("torch"), "gpu": torch.cuda.get_device_name()}, "rows": options.rows}
    result |= {"classes": options.classes, "host_rows": options.host_rows}
    seconds = {"copy": copy_seconds(p, options.repeats)}
    for score in ("lac", "aps"):
        began = time.perf_counter()
        cal = setwise.conformalize(p[:CALIBRATION], candidates, "max", score, random_state=0)
        seconds[f"{score}: conformalize"] = time.perf_counter() - began
        seconds[f"{score}: sets"] = best(lambda: cal.predict_mask(p), options.repeats)  # noqa: B023
        seconds[f"{score}: sets on the host"] = best(lambda: cal.predict_mask(host), options.repeats)  # noqa: B023
        assert (cal.predict_mask(p[: options.host_rows]).cpu().numpy() == cal.predict_mask(host)).all()
    per_row = options.host_rows / options.rows
    result["seconds"] = seconds
    result["lac_to_copy"] = seconds["lac: sets"] / seconds["copy"]
    result["aps_host_to_device"] = seconds["aps: sets on the host"] / per_row / seconds["aps: sets"]
    result["bars"] = BARS
    show(result, RESULTS / "device.json" if options.keep else None)


if __name__ == "__main__":
    main()
