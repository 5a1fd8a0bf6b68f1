"""Panels of people and language models with their truth, as the benchmarks on votes read them.

The folder holds panels/llmjudge.csv, panels/media-bias-*.csv, crowd/dog-*.csv, crowd/duck-*.csv and crowd/cifar10n.npz
(not in the repository).
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from setwise import Votes


def panels(data):
    """The name of each panel, its votes, and the positions of the true labels."""
    table = pd.read_csv(data / "panels" / "llmjudge.csv")
    answers = table.iloc[:, 3:].where(table.iloc[:, 3:].isin([0, 1, 2, 3]))
    yield "llmjudge", Votes.from_matrix(answers.to_numpy(dtype=object), classes=range(4)), table["human"].to_numpy()
    for name in ("media-bias-zero-shot", "media-bias-cot"):
        table = pd.read_csv(data / "panels" / f"{name}.csv", dtype=str)
        answers = table[[column for column in table if column.endswith("_label")]]
        answers = answers.where(answers.isin(["0", "1"]))
        answered = answers.notna().any(axis=1)
        votes = Votes.from_matrix(answers[answered].to_numpy(dtype=object), classes=["0", "1"])
        yield name, votes, table["label"][answered].astype(int).to_numpy()
    for name in ("dog", "duck"):
        table, truth = (pd.read_csv(data / "crowd" / f"{name}-{part}.csv") for part in ("answers", "truth"))
        table = table[table["question"].isin(truth["question"])]
        columns = {"item": "question", "annotator": "worker", "label": "answer"}
        classes = sorted(truth["truth"].unique().tolist())
        votes = Votes.from_table(table, items=truth["question"].tolist(), classes=classes, **columns)
        yield name, votes, votes.vocabulary.encode(truth["truth"].to_numpy())
    held = np.load(data / "crowd" / "cifar10n.npz")
    yield "cifar10n", Votes.from_matrix(held["votes"].astype(object), classes=range(10)), held["y"].astype(int)
