"""Files as people have them, and the command line as they call it."""

import contextlib
import io
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from setwise import progress_lines
from setwise.cli.app import run

NAMES = ["wren", "owl", "ant", "cat"]  # not in alphabetical order


@pytest.fixture(autouse=True)
def no_lines_about_time(monkeypatch):
    """However slow the machine is, commands in tests say the same."""
    monkeypatch.setattr(progress_lines, "SECONDS", 3600.0)


def setwise(*arguments, folder):
    """What a command prints that succeeds in a folder, run in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run([*map(str, arguments)])
    assert status == 0, err.getvalue()
    return out.getvalue()


def setwise_process(*arguments, folder):
    """The command line as a process of its own."""
    command = [sys.executable, "-m", "setwise", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def write(path, columns):
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
        return
    texts = {
        name: ["|".join(v) for v in values] if isinstance(values[0], list) else values
        for name, values in columns.items()
    }
    pa.csv.write_csv(pa.table(texts), path)


def rows(n, seed):
    """Features, candidate lists and true labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    X = np.round(2.5 * np.eye(4)[y] + rng.normal(size=(n, 4)), 4)
    mask = (np.eye(4)[y] + (rng.random((n, 4)) < 0.1)) > 0
    lists = [[NAMES[k] for k in np.flatnonzero(row)] for row in mask]
    return X, lists, [NAMES[k] for k in y]


def table(path, n, seed):
    """A file with identifiers, features, candidates and truth."""
    X, lists, truth = rows(n, seed)
    features = {name: X[:, j] for j, name in enumerate(["w", "x", "y", "z"])}
    columns = {"id": [f"{i:04d}" for i in range(n)], **features, "answers": lists, "truth": truth}
    write(path, columns)
    return path


@pytest.fixture(scope="session", params=[".csv", ".parquet"])
def trained(request, tmp_path_factory):
    """A folder in which somebody trained a model by hand, and the suffix of the files there."""
    folder = tmp_path_factory.mktemp("trained")
    suffix = request.param
    table(folder / f"votes{suffix}", 200, 0)
    table(folder / f"new{suffix}", 150, 1)
    arguments = ["--candidates", "answers", "--ignore", "id", "--ignore", "truth", "--out", "model"]
    said = setwise("fit", f"votes{suffix}", *arguments, "--network", "linear", "--epochs", "5", folder=folder)
    return folder, suffix, said
