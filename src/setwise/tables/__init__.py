"""From files to rows and back: tables, sets, votes, and what labelling tools export.

Each name is loaded when it is first used, so that nothing heavy is imported before it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from setwise._lazy import lazy_names
from setwise.errors import DataError

if TYPE_CHECKING:
    from setwise.tables.importers.annotator_tables import from_annotators_long, from_annotators_wide
    from setwise.tables.importers.imported import Imported
    from setwise.tables.importers.label_studio import from_label_studio
    from setwise.tables.importers.llm_answers import from_answers_jsonl
    from setwise.tables.importers.ontology import read_tree
    from setwise.tables.importers.snorkel import from_snorkel
    from setwise.tables.importers.vote_sources import VoteColumns, import_votes
    from setwise.tables.inspection import Inspection, inspect
    from setwise.tables.rows import RowRequest, read_rows
    from setwise.tables.set_files import read_sets, write_sets
    from setwise.tables.tabular import Table, read_batches, read_table
    from setwise.tables.vote_files import read_votes, write_votes

_HOMES = {
    "importers.annotator_tables": ("from_annotators_long", "from_annotators_wide"),
    "importers.llm_answers": ("from_answers_jsonl",),
    "importers.imported": ("Imported",),
    "importers.label_studio": ("from_label_studio",),
    "importers.ontology": ("read_tree",),
    "importers.snorkel": ("from_snorkel",),
    "importers.vote_sources": ("VoteColumns", "import_votes"),
    "inspection": ("Inspection", "inspect"),
    "rows": ("RowRequest", "read_rows"),
    "set_files": ("read_sets", "write_sets"),
    "tabular": ("Table", "read_batches", "read_table"),
    "vote_files": ("read_votes", "write_votes"),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES, extra="setwise[data]")

__all__ = [
    "DataError",
    "Imported",
    "Inspection",
    "RowRequest",
    "Table",
    "VoteColumns",
    "from_annotators_long",
    "from_annotators_wide",
    "from_answers_jsonl",
    "from_label_studio",
    "from_snorkel",
    "import_votes",
    "inspect",
    "read_batches",
    "read_rows",
    "read_sets",
    "read_table",
    "read_tree",
    "read_votes",
    "write_sets",
    "write_votes",
]
