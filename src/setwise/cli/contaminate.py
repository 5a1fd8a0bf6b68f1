"""`setwise contaminate`: candidate sets out of precise labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np

from setwise import datasets
from setwise.cli import options as opt
from setwise.labels.vocabulary import Vocabulary, missing_labels

EXAMPLES = ("setwise contaminate labelled.csv --truth label --p 0.1 --out votes.csv",)


def contaminate(
    *,
    file: Annotated[list[Path], opt.FILES],
    truth: Annotated[str, opt.TRUTH],
    out: Annotated[Path, opt.OUT_FILE],
    p: Annotated[float, opt.option("--p PROBABILITY", "Probability that a false label becomes a candidate.")] = 0.1,
    probabilities: Annotated[Path | None, opt.PROBABILITIES] = None,
    key: Annotated[str | None, opt.KEY] = None,
    miss_rate: Annotated[float, opt.MISS_RATE] = 0.0,
    candidates: Annotated[str, opt.CANDIDATES] = "candidates",
    separator: Annotated[str, opt.SEPARATOR] = "|",
    text: opt.TextOptions,
    random_state: Annotated[int, opt.SEED] = 0,
    force: Annotated[bool, opt.FORCE] = False,
    display: opt.ScreenOptions,
) -> None:
    """Adds false candidates to exact labels, for experiments.

    With --probabilities they are the labels that the model confuses. Else each label joins with probability --p.
    """
    from setwise.cli.outputs import output_columns, write_candidates  # Arrow is loaded for files
    from setwise.streams.model_inputs import probability_layout
    from setwise.tables.arrow_reading import column_names
    from setwise.tables.rows import RowRequest, match_tables, read_rows

    screen = display.screen(out)
    opt.refuse_existing(out, force=force)
    if key is not None and probabilities is None:
        raise ValueError("--key: matches the rows of --probabilities FILE, which is not given; leave out --key.")
    source = text.files(file)
    with screen.working(f"reading {source}"):
        carried = output_columns(source, out, text=[truth, *([key] if key else [])])
        named: dict[str, Any] = {"key": key, "separator": separator}
        rows = read_rows(RowRequest(source=source, truth=truth, features=(), **named))
        y = np.asarray(rows.truth)
        unknown = missing_labels(y).nonzero()[0]
        if len(unknown):
            raise ValueError(f"{source}: row {unknown[0]} has no true label; contamination needs all of them.")
        vocabulary = Vocabulary.infer(y)
        how: Any = datasets.Random(p)
        if probabilities is not None:
            others = text.files(probabilities)
            layout = probability_layout(column_names(others), vocabulary.classes.tolist(), others)
            model = read_rows(RowRequest(source=others, features=layout.features, **named))
            how = datasets.InstanceDependent(model.X[match_tables(key, source, rows, others, model)])
        codes = vocabulary.encode(y)
        sets = datasets.contaminate(
            codes, how, len(vocabulary), miss_rate, random_state=random_state
        ).rename_classes(vocabulary)
    write_candidates(screen, out, sets, carried, candidates, separator)
