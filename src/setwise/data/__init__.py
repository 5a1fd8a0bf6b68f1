"""Where features and candidate sets come from: benchmark sets, contamination, files, and labelling tools.

Each name is loaded when it is first used, so that nothing heavy is imported before it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from setwise._lazy import lazy_names
from setwise.errors import DataError

if TYPE_CHECKING:
    from setwise.data.benchmark_sets import Available, Benchmark, available, fetch, load
    from setwise.data.contamination_rules import (
        Adversarial,
        ClassConditional,
        InstanceDependent,
        Random,
        contaminate,
    )
    from setwise.data.idx import read_idx
    from setwise.data.importers.annotator_tables import from_annotators_long, from_annotators_wide
    from setwise.data.importers.answer_lines import from_answers_jsonl
    from setwise.data.importers.imported import Imported
    from setwise.data.importers.label_studio import from_label_studio
    from setwise.data.importers.ontology import read_tree
    from setwise.data.importers.snorkel import from_snorkel
    from setwise.data.inspection import Inspection, inspect
    from setwise.data.mat import read_mat
    from setwise.data.set_files import read_sets, write_sets
    from setwise.data.tabular import Table, read_batches, read_table
    from setwise.data.vote_files import read_votes, write_votes

_HOMES = {
    "benchmark_sets": ("Available", "Benchmark", "available", "fetch", "load"),
    "contamination_rules": ("Adversarial", "ClassConditional", "InstanceDependent", "Random", "contaminate"),
    "idx": ("read_idx",),
    "importers.annotator_tables": ("from_annotators_long", "from_annotators_wide"),
    "importers.answer_lines": ("from_answers_jsonl",),
    "importers.imported": ("Imported",),
    "importers.label_studio": ("from_label_studio",),
    "importers.ontology": ("read_tree",),
    "importers.snorkel": ("from_snorkel",),
    "inspection": ("Inspection", "inspect"),
    "mat": ("read_mat",),
    "set_files": ("read_sets", "write_sets"),
    "tabular": ("Table", "read_batches", "read_table"),
    "vote_files": ("read_votes", "write_votes"),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES, extra="setwise[data]")

__all__ = [
    "Adversarial",
    "Available",
    "Benchmark",
    "ClassConditional",
    "DataError",
    "Imported",
    "Inspection",
    "InstanceDependent",
    "Random",
    "Table",
    "available",
    "contaminate",
    "fetch",
    "from_annotators_long",
    "from_annotators_wide",
    "from_answers_jsonl",
    "from_label_studio",
    "from_snorkel",
    "inspect",
    "load",
    "read_batches",
    "read_idx",
    "read_mat",
    "read_sets",
    "read_table",
    "read_tree",
    "read_votes",
    "write_sets",
    "write_votes",
]
