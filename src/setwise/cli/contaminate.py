"""`setwise contaminate`: candidate sets out of precise labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from setwise import data
from setwise.cli import options as opt
from setwise.cli.screen import Screen
from setwise.errors import DataError, Remedy
from setwise.labels.spellings import doubt_spellings
from setwise.labels.vocabulary import Vocabulary, missing_labels

if TYPE_CHECKING:
    from setwise.data.table_files import TableFiles

EXAMPLES = ("setwise contaminate labelled.csv --truth label --p 0.1 --out votes.csv",)


def contaminate(
    file: opt.Files,
    truth: opt.Truth,
    out: opt.OutFile,
    p: Annotated[float, typer.Option("--p", help="The probability with which a wrong label enters.")] = 0.1,
    probabilities: opt.OptionalProbabilities = None,
    key: opt.Key = None,
    miss_rate: opt.MissRate = 0.0,
    candidates: opt.Candidates = "candidates",
    separator: opt.Separator = "|",
    delimiter: opt.Delimiter = None,
    encoding: opt.Encoding = None,
    decimal: opt.Decimal = None,
    random_state: opt.Seed = 0,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Turns precise labels into candidate sets, to study what contamination does.

    With --probabilities those labels enter that the model confuses, else each with probability --p.
    """
    from setwise.cli.table_columns import whole_table, write_candidates  # noqa: PLC0415 - Arrow, for files
    from setwise.data.arrow_tables import DELIMITED, absent_column  # noqa: PLC0415
    from setwise.data.label_columns import truth_from_column  # noqa: PLC0415

    screen = Screen(quiet, as_json, out)
    opt.refuse_existing(out, force=force)
    if key is not None and probabilities is None:
        raise ValueError("--key: matches the rows of --probabilities FILE, which is not given; leave out --key.")
    source = opt.tables(file, delimiter, encoding, decimal)
    with screen.working(f"reading {source}"):
        table = whole_table(source, out, text=[truth, *([key] if key else [])])
        for name in filter(None, (truth, key)):
            if name not in table.column_names:
                raise absent_column(name, table.column_names, str(source))
        verbatim = DELIMITED not in (table.schema.metadata or {})
        where = f"{source}, column {truth!r}"
        y = truth_from_column(table[truth], where=where, separator=separator, verbatim=verbatim)
        unknown = missing_labels(y).nonzero()[0]
        if len(unknown):
            raise ValueError(f"{source}: row {unknown[0]} has no true label; contamination needs all of them.")
        vocabulary = Vocabulary.infer(y)
        doubt_spellings(vocabulary.classes.tolist(), str(source))
        how: Any = data.Random(p)
        if probabilities is not None:
            others = opt.tables(probabilities, delimiter, encoding, decimal)
            how = data.InstanceDependent(_matched(others, vocabulary.classes.tolist(), source, table, key))
        codes = vocabulary.encode(y)
        sets = data.contaminate(codes, how, len(vocabulary), miss_rate, random_state=random_state).named(vocabulary)
    carried = {name: table[name].combine_chunks() for name in table.column_names}
    write_candidates(screen, out, sets, carried, candidates, separator)


def _matched(probabilities: TableFiles, labels: list[Any], source: TableFiles, table: Any, key: str | None) -> Any:
    """The probabilities of the rows of a table, matched by a key or row by row."""
    from setwise.data.key_join import matching_rows, refuse_other_order  # noqa: PLC0415
    from setwise.scale.saved_models import probability_batches  # noqa: PLC0415 - Arrow is loaded for files

    batches = list(probability_batches(probabilities, labels))
    matrix = np.concatenate([values for values, _ in batches])
    if key is not None:
        if key not in batches[0][1]:
            raise DataError(
                f"{probabilities}: there is no column {key!r} to match its rows with those of {source}."
            )
        theirs = [value for _, carried in batches for value in carried[key].to_pylist()]
        files: dict[str, Any] = {"source": str(source), "other": str(probabilities)}
        return matrix[matching_rows(key, table[key].combine_chunks(), theirs, **files)]
    if len(matrix) != len(table):
        problem = f"{probabilities}: {len(matrix)} rows for {len(table)} rows of {source}"
        raise DataError(problem, Remedy("key", None, "to match them"))
    refuse_other_order(source, probabilities)
    return matrix
