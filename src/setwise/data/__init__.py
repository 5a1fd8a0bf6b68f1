"""Where features and candidate sets come from: benchmark sets, contamination, files, and labelling tools.

Each name is loaded when it is first used, so that nothing heavy is imported before it is needed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from setwise.errors import DataError

if TYPE_CHECKING:
    from setwise.data.annotators import from_annotators_long, from_annotators_wide, from_snorkel
    from setwise.data.benchmark_sets import Available, Benchmark, available, fetch, load
    from setwise.data.contamination_rules import (
        Adversarial,
        ClassConditional,
        InstanceDependent,
        Random,
        contaminate,
    )
    from setwise.data.idx import read_idx
    from setwise.data.imported import Imported
    from setwise.data.importers import (
        from_complementary,
        from_hierarchy,
        from_multihot,
        from_proposals,
        read_tree,
    )
    from setwise.data.inspection import Inspection, inspect
    from setwise.data.label_studio import from_label_studio
    from setwise.data.mat import read_mat
    from setwise.data.set_files import read_sets, write_sets
    from setwise.data.supermodel import PIXELS, Supermodel, train_supermodel
    from setwise.data.tabular import Table, read_batches, read_table

_HOMES = {
    "annotators": ("from_annotators_long", "from_annotators_wide", "from_snorkel"),
    "benchmark_sets": ("Available", "Benchmark", "available", "fetch", "load"),
    "contamination_rules": ("Adversarial", "ClassConditional", "InstanceDependent", "Random", "contaminate"),
    "idx": ("read_idx",),
    "imported": ("Imported",),
    "importers": ("from_complementary", "from_hierarchy", "from_multihot", "from_proposals", "read_tree"),
    "inspection": ("Inspection", "inspect"),
    "label_studio": ("from_label_studio",),
    "mat": ("read_mat",),
    "supermodel": ("PIXELS", "Supermodel", "train_supermodel"),
    "tabular": ("Table", "read_batches", "read_table"),
    "set_files": ("read_sets", "write_sets"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "PIXELS",
    "Adversarial",
    "Available",
    "Benchmark",
    "ClassConditional",
    "DataError",
    "Imported",
    "Inspection",
    "InstanceDependent",
    "Random",
    "Supermodel",
    "Table",
    "available",
    "contaminate",
    "fetch",
    "from_annotators_long",
    "from_annotators_wide",
    "from_complementary",
    "from_hierarchy",
    "from_label_studio",
    "from_multihot",
    "from_proposals",
    "from_snorkel",
    "inspect",
    "load",
    "read_batches",
    "read_idx",
    "read_mat",
    "read_sets",
    "read_table",
    "read_tree",
    "train_supermodel",
    "write_sets",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("setwise"):
            raise
        raise ModuleNotFoundError(
            f"{name} needs {(error.name or '').partition('.')[0]}, which is not installed; `pip install setwise[data]` brings it.",
            name=error.name,
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
