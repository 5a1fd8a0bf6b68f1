"""A calibration of four classes, and tables of probabilities in parts."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import setwise
from setwise import progress_lines
from setwise.cli.app import run

CLASSES = np.array(["wren", "owl", "ant", "cat"])


@pytest.fixture(autouse=True)
def no_lines_about_time(monkeypatch):
    monkeypatch.setattr(progress_lines, "SECONDS", 3600.0)


def rows(n, seed):
    """Probabilities in single precision, true labels and candidate lists."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(4), size=n).astype(np.float32)
    y = (P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    mask = (np.eye(4)[y] + (rng.random((n, 4)) < 0.15)) > 0
    return P, CLASSES[y], [CLASSES[row].tolist() for row in mask]


def table(P, y, candidates, first=0):
    columns = {"id": np.arange(first, first + len(P)), **{f"p:{c}": P[:, k] for k, c in enumerate(CLASSES)}}
    return pa.table({**columns, "truth": y.tolist(), "answers": candidates})


def write(made, path):
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(made, path, row_group_size=60)
    elif path.suffix == ".arrow":
        pa.feather.write_feather(made, path, compression="uncompressed")
    else:
        texts = pa.array(["|".join(labels) for labels in made["answers"].to_pylist()])
        pa.csv.write_csv(made.set_column(made.column_names.index("answers"), "answers", texts), path)


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """A folder `in` with three parts of a table, and a calibration m.cal with some verified rows."""
    monkeypatch.chdir(tmp_path)
    P, y, candidates = rows(400, 0)
    checked = np.where(np.random.default_rng(1).random(400) < 0.5, y.astype(object), None)
    setwise.conformalize(P, candidates, classes=CLASSES, verified=checked, random_state=0).save("m.cal")

    def made(suffix=".parquet", n=100):
        P, y, candidates = rows(3 * n, 2)
        for i in range(3):
            part = slice(i * n, (i + 1) * n)
            write(table(P[part], y[part], candidates[part], i * n), tmp_path / "in" / f"{i}{suffix}")
        return P, y, candidates

    return made


def done(capsys, *arguments):
    """What a command says that succeeds, as data."""
    capsys.readouterr()
    status = run([*map(str, arguments), "--json"])
    out, err = capsys.readouterr()
    assert status == 0, err
    return json.loads(out)


def failed(capsys, *arguments):
    """The line that a command says when it fails."""
    capsys.readouterr()
    assert run([*map(str, arguments)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line
