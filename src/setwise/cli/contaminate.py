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
    miss_rate: Annotated[float, opt.MISS_RATE] = 0.0,
    candidates: Annotated[str, opt.CANDIDATES] = "candidates",
    separator: Annotated[str, opt.SEPARATOR] = "|",
    text: opt.TextOptions,
    random_state: Annotated[int, opt.SEED] = 0,
    force: Annotated[bool, opt.FORCE] = False,
    display: opt.ScreenOptions,
) -> None:
    """Adds false candidates to exact labels, for experiments: each label joins with probability --p."""
    from setwise.cli.outputs import output_columns, write_candidates  # Arrow is loaded for files
    from setwise.tables.rows import RowRequest, read_rows

    screen = display.screen(out)
    opt.refuse_existing(out, force=force)
    source = text.files(file)
    with screen.working(f"reading {source}"):
        carried = output_columns(source, out, text=[truth])
        rows = read_rows(RowRequest(source=source, truth=truth, features=(), separator=separator))
        y = np.asarray(rows.truth)
        unknown = missing_labels(y).nonzero()[0]
        if len(unknown):
            raise ValueError(f"{source}: row {unknown[0]} has no true label; contamination needs all of them.")
        vocabulary = Vocabulary.infer(y)
        options: dict[str, Any] = {"miss_rate": miss_rate, "random_state": random_state}
        sets = datasets.contaminate(vocabulary.encode(y), datasets.Random(p), len(vocabulary), **options)
        sets = sets.rename_classes(vocabulary)
    write_candidates(screen, out, sets, carried, candidates, separator)
