"""From files to rows and back: tables, sets, votes, and what labelling tools export.

Each name is loaded when it is first used, so that nothing heavy is imported before it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from setwise._lazy import lazy_names

if TYPE_CHECKING:
    from setwise.errors import DataError as DataError
    from setwise.tables.importers.annotator_tables import from_annotators_long as from_annotators_long
    from setwise.tables.importers.imported import Imported as Imported
    from setwise.tables.importers.label_studio import from_label_studio as from_label_studio
    from setwise.tables.importers.llm_answers import from_answers_jsonl as from_answers_jsonl
    from setwise.tables.importers.ontology import read_tree as read_tree
    from setwise.tables.importers.vote_sources import VoteColumns as VoteColumns
    from setwise.tables.importers.vote_sources import import_votes as import_votes
    from setwise.tables.inspection import Inspection as Inspection
    from setwise.tables.inspection import inspect as inspect
    from setwise.tables.merged_labels import merge_labels as merge_labels
    from setwise.tables.rows import RowRequest as RowRequest
    from setwise.tables.rows import read_rows as read_rows
    from setwise.tables.set_files import read_sets as read_sets
    from setwise.tables.set_files import write_sets as write_sets
    from setwise.tables.tabular import Table as Table
    from setwise.tables.tabular import read_batches as read_batches
    from setwise.tables.tabular import read_table as read_table
    from setwise.tables.vote_files import read_votes as read_votes
    from setwise.tables.vote_files import write_votes as write_votes

_HOMES = {
    ".errors": ("DataError",),
    "importers.annotator_tables": ("from_annotators_long",),
    "importers.llm_answers": ("from_answers_jsonl",),
    "importers.imported": ("Imported",),
    "importers.label_studio": ("from_label_studio",),
    "importers.ontology": ("read_tree",),
    "importers.vote_sources": ("VoteColumns", "import_votes"),
    "inspection": ("Inspection", "inspect"),
    "merged_labels": ("merge_labels",),
    "rows": ("RowRequest", "read_rows"),
    "set_files": ("read_sets", "write_sets"),
    "tabular": ("Table", "read_batches", "read_table"),
    "vote_files": ("read_votes", "write_votes"),
}
__getattr__, __dir__, __all__ = lazy_names(__name__, _HOMES, extra="setwise[data]")
