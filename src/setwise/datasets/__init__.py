"""Benchmark sets by name, and candidate sets simulated from precise labels.

Each name is loaded when it is first used, so that nothing heavy is imported before it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from setwise._lazy import lazy_names

if TYPE_CHECKING:
    from setwise.datasets.benchmark_sets import Available, Benchmark, available, fetch, load
    from setwise.datasets.simulated_contamination import (
        Adversarial,
        ClassConditional,
        InstanceDependent,
        Random,
        contaminate,
    )

_HOMES = {
    "benchmark_sets": ("Available", "Benchmark", "available", "fetch", "load"),
    "simulated_contamination": ("Adversarial", "ClassConditional", "InstanceDependent", "Random", "contaminate"),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES, extra="setwise[data]")

__all__ = [
    "Adversarial",
    "Available",
    "Benchmark",
    "ClassConditional",
    "InstanceDependent",
    "Random",
    "available",
    "contaminate",
    "fetch",
    "load",
]
