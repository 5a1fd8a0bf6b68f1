"""Values computed on first use: once, and without making threads wait for each other."""

import subprocess
import sys

from setwise._lazy import lazy


def test_a_value_is_computed_once_for_each_object():
    class Thing:
        calls = 0

        @lazy
        def value(self):
            """What it is."""
            Thing.calls += 1
            return self

    one, other = Thing(), Thing()
    assert one.value is one.value
    assert other.value is other
    assert Thing.calls == 2
    assert Thing.value.__doc__ == "What it is."


def test_threads_that_need_each_others_properties_do_not_wait_forever():
    code = """
import numpy as np, sys
from concurrent.futures import ThreadPoolExecutor
from setwise import LabelSets
sys.setswitchinterval(1e-6)
mask = np.random.default_rng(0).random((2000, 20)) < 0.3

def work(i):
    sets = LabelSets.from_mask(mask) if i % 2 else LabelSets.from_lists([[0, 1]] * 500, classes=range(3))
    return (sets.rows, sets.sizes) if i % 4 < 2 else (sets.sizes, sets.rows)

with ThreadPoolExecutor(8) as pool:
    print(len(list(pool.map(work, range(400)))))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=900, check=True
    )  # a deadlock
    assert done.stdout.strip() == "400"
