"""Small good files and frames, which the rows of the table spoil, and the command line in this process."""

import contextlib
import io
import json
import shlex
import sys

import numpy as np
import pandas as pd
from typer.main import get_command

from setwise import LabelSets
from setwise.cli import app

N = 60
NAMES = ["wren", "owl", "ant"]  # not in alphabetical order
_rng = np.random.default_rng(0)
Y = np.arange(N) % 3
X = np.round(3.0 * np.eye(3)[Y] + _rng.normal(size=(N, 3)), 3)
MASK = (np.eye(3)[Y] + (_rng.random((N, 3)) < 0.15)) > 0
LISTS = [[NAMES[k] for k in np.flatnonzero(row)] for row in MASK]
TRUTH = [NAMES[k] for k in Y]
OTHER = np.round(3.0 * np.eye(3)[Y] + _rng.normal(size=(N, 3)), 3)  # rows that the models learn from
P = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
FRAME = pd.DataFrame(X, columns=["x", "y", "z"])
SETS = LabelSets.from_lists(LISTS, classes=NAMES)
CHECKED = [label if i % 2 else None for i, label in enumerate(TRUTH)]


def lines(delimiter=",", decimal=".", cell="|".join, **more):
    """A table of three features and candidates as lines of text, with further columns."""
    yield delimiter.join(["x", "y", "z", "answers", *more])
    for i in range(N):
        numbers = (str(value).replace(".", decimal) for value in X[i].tolist())
        yield delimiter.join([*numbers, cell(LISTS[i]), *(str(of(i)) for of in more.values())])


def text(*arguments, **options):
    return "\n".join(lines(*arguments, **options)) + "\n"


def quoted(cell):
    return lambda labels: '"' + cell(labels).replace('"', '""') + '"'


def changed(number, new, **options):
    """The text with one of its lines changed; line 0 is the header, row 9 is line 10."""
    table = list(lines(**options))
    table[number] = new(table[number])
    return "\n".join(table) + "\n"


def field(place, value, row=9):
    """The text with one field of a row changed."""

    def new(line):
        fields = line.split(",")
        fields[place] = value
        return ",".join(fields)

    return changed(row + 1, new)


def jsonl(answers, **more):
    def one(i):
        return {
            **dict(zip("xyz", X[i].tolist(), strict=True)),
            "answers": answers(LISTS[i]),
            **{name: of(i) for name, of in more.items()},
        }

    return "\n".join(json.dumps(one(i)) for i in range(N)) + "\n"


def csv(**columns):
    return pd.DataFrame(columns).to_csv(index=False)


def votes(**changes):
    """Three people's answers about the rows 0, 1, …, one per line; `changes` replace columns."""
    rng = np.random.default_rng(1)
    right = rng.random((N, 3)) < [0.95, 0.9, 0.8]
    said = np.where(right, Y[:, None], (Y[:, None] + 1) % 3)
    columns = {
        "id": np.repeat(np.arange(N), 3),
        "who": np.tile(["ann", "bob", "cyd"], N),
        "label": np.array(NAMES)[said.ravel()],
        "weight": np.ones(3 * N),
    }
    return csv(**columns | {name: change(columns[name]) for name, change in changes.items()})


def replaced(row, value):
    """A column in which one entry is another."""

    def change(column):
        changed = np.array(column, dtype=object)
        changed[row] = value
        return changed

    return change


def probabilities(values=P, names=NAMES, **more):
    return csv(**dict(zip(names, np.asarray(values).T, strict=True)), **more)


def make(folder):
    """The good files, in a folder: tables, votes, checks, probabilities, models, a calibration, and sets."""
    ids, back = np.arange(N), np.arange(N)[::-1]
    joined = ["|".join(labels) for labels in LISTS]
    learned = pd.DataFrame(OTHER, columns=["x", "y", "z"]).assign(answers=joined, truth=TRUTH)
    files = {
        "plain.csv": text(),
        "rows.csv": FRAME.assign(id=ids).to_csv(index=False),
        "answers.csv": csv(id=back, answers=np.array(joined)[back], truth=np.array(TRUTH)[back]),
        "full.csv": FRAME.assign(id=ids, answers=joined, truth=TRUTH).to_csv(index=False),
        "train.csv": learned.to_csv(index=False),
        "votes.csv": votes(),
        "checks.csv": csv(id=ids, verified=CHECKED),
        "p.csv": probabilities(),
        "scored.csv": probabilities(id=ids, answers=joined, truth=TRUTH),
    }
    for name, content in files.items():
        (folder / name).write_text(content)
    conformalize = (
        "conformalize --probabilities scored.csv --labels scored.csv --candidates answers --verified truth"
    )
    with contextlib.chdir(folder):
        for line in (
            "fit train.csv --candidates answers --ignore truth --learner em --out model",
            "fit train.csv --candidates answers --verified truth --learner em --out checked",
            f"{conformalize} --ignore id --ignore truth --ignore answers --out model.cal",
            "predict model rows.csv --out sets.csv",
        ):
            status, _, said = command(line)
            assert (status, said) == (0, "")
    return folder


COMMAND = get_command(app.app)


def command(line, stdin=b""):
    """Status, standard output and standard error of a command line, run in this process."""
    out, err = io.StringIO(), io.StringIO()
    typed = io.TextIOWrapper(io.BytesIO(stdin))
    before, sys.stdin = sys.stdin, typed
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = app.run(shlex.split(line))
    finally:
        sys.stdin = before
    return status, out.getvalue(), err.getvalue()
