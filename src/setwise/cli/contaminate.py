"""`setwise contaminate`: candidate sets out of precise labels."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from setwise import data
from setwise.cli import options as opt
from setwise.cli.screen import Screen
from setwise.labels.vocabulary import Vocabulary, missing_labels

EXAMPLES = ("setwise contaminate labelled.csv --truth label --p 0.1 --out votes.csv",)


def contaminate(
    file: opt.File,
    truth: opt.Truth,
    out: opt.OutFile,
    p: Annotated[float, typer.Option("--p", help="The probability with which a wrong label enters.")] = 0.1,
    probabilities: opt.OptionalProbabilities = None,
    miss_rate: opt.MissRate = 0.0,
    column: opt.CandidatesColumn = "candidates",
    separator: opt.Separator = "|",
    random_state: opt.Seed = 0,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Turns precise labels into candidate sets, to study what contamination does.

    With --probabilities those labels enter that the model confuses, else each with probability --p.
    """
    from setwise.cli.saved_models import probability_batches  # noqa: PLC0415
    from setwise.cli.table_columns import whole_table, write_candidates  # noqa: PLC0415 - Arrow, for files
    from setwise.data.label_columns import truth_from_column  # noqa: PLC0415

    screen = Screen(quiet, as_json)
    opt.refuse_existing(out, force=force)
    with screen.working(f"reading {file}"):
        table = whole_table(file, out, text=[truth])
        if truth not in table.column_names:
            raise ValueError(f"{file}: there is no column {truth!r}; it has {', '.join(table.column_names[:8])}.")
        y = truth_from_column(table[truth], where=f"{file}, column {truth!r}", separator=separator)
        unknown = missing_labels(y).nonzero()[0]
        if len(unknown):
            raise ValueError(f"{file}: row {unknown[0]} has no true label; contamination needs all of them.")
        vocabulary = Vocabulary.infer(y)
        how: Any = data.Random(p)
        if probabilities is not None:
            batches = probability_batches(probabilities, vocabulary.classes.tolist())
            how = data.InstanceDependent(np.concatenate([values for values, _ in batches]))
        codes = vocabulary.encode(y)
        sets = data.contaminate(codes, how, len(vocabulary), miss_rate, random_state=random_state).named(vocabulary)
    carried = {name: table[name].combine_chunks() for name in table.column_names}
    write_candidates(screen, out, sets, carried, column, separator)
