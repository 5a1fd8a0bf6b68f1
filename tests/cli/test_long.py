"""Promises that take minutes to check: coverage on real sets with defaults, and a file of a million rows."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import binom

from setwise.cli.app import run
from setwise.datasets import load

from .conftest import table, write

SPLITS = 20


def halves(name, seed):
    """Rows to learn from and rows to try, in which the truth stands beside."""
    data = load(name, progress=False)
    order = np.random.default_rng(seed).permutation(len(data.y))
    columns = {f"f{j}": data.X[:, j] for j in range(data.X.shape[1])}
    lists = data.candidates.to_lists()
    for part, rows in {"votes": order[: len(order) * 4 // 5], "new": order[len(order) * 4 // 5 :]}.items():
        taken = {key: np.asarray(values, dtype=np.float64)[rows] for key, values in columns.items()}
        yield part, {**taken, "answers": [lists[i] for i in rows], "truth": data.y[rows]}


@pytest.mark.long
@pytest.mark.parametrize("name", ["lost", "msrcv2", "birdsong"])
def test_fit_with_defaults_keeps_its_promise_on_real_sets(name, benchmarks, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    covered = total = 0
    for seed in range(SPLITS):
        for part, columns in halves(name, seed):
            write(tmp_path / f"{part}.parquet", columns)
        fit = ["fit", "votes.parquet", "--candidates", "answers", "--ignore", "truth", "--out", "model"]
        assert run([*fit, "--seed", str(seed), "--force", "--quiet"]) == 0
        predict = ["predict", "model", "new.parquet", "--out", "sets.parquet", "--force", "--quiet"]
        assert run(predict) == 0
        capsys.readouterr()
        assert run(["evaluate", "sets.parquet", "--truth", "truth", "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        covered, total = covered + round(result["coverage"] * result["n"]), total + result["n"]
    assert binom.cdf(covered, total, 0.9) > 1e-3


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")
def test_a_million_rows_are_predicted_in_bounded_memory(tmp_path):
    table(tmp_path / "votes.parquet", 2000, 0)
    rng = np.random.default_rng(0)
    extra = {f"f{j}": rng.normal(size=2000) for j in range(46)}
    known = pq.read_table(tmp_path / "votes.parquet").drop_columns(["id", "truth"])
    pq.write_table(
        pa.table({**dict(zip(known.column_names, known.columns, strict=True)), **extra}), tmp_path / "t.parquet"
    )
    names = ["w", "x", "y", "z", *extra]
    pq.write_table(pa.table({name: rng.normal(size=1_000_000) for name in names}), tmp_path / "new.parquet")
    fit = [
        "fit",
        "t.parquet",
        "--candidates",
        "answers",
        "--learner",
        "network",
        "--network",
        "linear",
        "--epochs",
        "5",
        "--out",
        "m",
        "-q",
    ]
    assert run_here(tmp_path, fit)[0] == ""
    said, peak = run_here(tmp_path, ["predict", "m", "new.parquet", "--out", "s.parquet", "--json"])
    assert peak < 600_000
    assert json.loads(said)["rows"] == 1_000_000


PROGRAM = """
import sys
from pathlib import Path
from setwise.cli.app import run
status = run(sys.argv[1:])
high = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
sys.exit(status or high.split()[1])
"""


def run_here(folder, arguments):
    """What a command said, and its peak memory in kB."""
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    return done.stdout, int(done.stderr.splitlines()[-1])
