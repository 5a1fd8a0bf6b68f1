"""Benchmark sets by name, and candidate sets simulated from precise labels.

Each name is loaded when it is first used, so that nothing heavy is imported before it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from setwise._lazy import lazy_names

if TYPE_CHECKING:
    from setwise.datasets.benchmark_sets import Available as Available
    from setwise.datasets.benchmark_sets import Benchmark as Benchmark
    from setwise.datasets.benchmark_sets import available as available
    from setwise.datasets.benchmark_sets import fetch as fetch
    from setwise.datasets.benchmark_sets import load as load
    from setwise.datasets.simulated_contamination import Adversarial as Adversarial
    from setwise.datasets.simulated_contamination import ClassConditional as ClassConditional
    from setwise.datasets.simulated_contamination import InstanceDependent as InstanceDependent
    from setwise.datasets.simulated_contamination import Random as Random
    from setwise.datasets.simulated_contamination import contaminate as contaminate

_HOMES = {
    "benchmark_sets": ("Available", "Benchmark", "available", "fetch", "load"),
    "simulated_contamination": ("Adversarial", "ClassConditional", "InstanceDependent", "Random", "contaminate"),
}
__getattr__, __dir__, __all__ = lazy_names(__name__, _HOMES, extra="setwise[data]")
