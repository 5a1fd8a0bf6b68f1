"""`kill -9` in the middle of a command leaves what was there before, whole."""

import hashlib
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from setwise import ConformalClassifier
from setwise.estimators.split import FrozenEstimator
from setwise.learn import PartialLabelKNN

from .conftest import ONE_THREAD, rows, setwise, table


def digests(folder):
    return {part.name: hashlib.sha256(part.read_bytes()).hexdigest() for part in folder.iterdir()}


def test_a_kill_in_the_middle_of_fit_leaves_the_old_model(tmp_path):
    table(tmp_path / "votes.csv", 300, 0)
    common = [
        "fit",
        "votes.csv",
        "--candidates",
        "answers",
        "--ignore",
        "id",
        "--ignore",
        "truth",
        "--out",
        "model",
    ]
    setwise(*common, "--learner", "em", folder=tmp_path)
    before = digests(tmp_path / "model")
    command = [sys.executable, "-m", "setwise", *common, "--force", "--network", "mlp", "--epochs", "100000"]
    with subprocess.Popen(command, cwd=tmp_path, env=ONE_THREAD, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().startswith("read votes.csv")  # from here on it learns
        time.sleep(0.5)
        process.kill()
    assert process.returncode == -9
    assert digests(tmp_path / "model") == before
    ConformalClassifier.load(tmp_path / "model")


def test_a_kill_in_the_middle_of_predict_leaves_the_old_sets(tmp_path):
    X, lists, _ = rows(400, 0)
    slow = PartialLabelKNN().fit(X, lists)
    ConformalClassifier(FrozenEstimator(slow), random_state=0).fit(X, lists).save(tmp_path / "model")
    many = np.tile(X, (500, 1))
    pq.write_table(pa.table(dict(zip("wxyz", many.T, strict=True))), tmp_path / "new.parquet")
    (tmp_path / "sets.csv").write_text("old")
    names = [part for name in "wxyz" for part in ("--features", name)]
    command = [sys.executable, "-m", "setwise", "predict", "model", "new.parquet", "--out", "sets.csv", "--force"]
    with subprocess.Popen([*command, *names], cwd=tmp_path, env=ONE_THREAD) as process:
        deadline = time.monotonic() + 60
        while not any(part.stat().st_size for part in tmp_path.glob(".sets.csv.*.tmp")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.kill()
    assert process.returncode == -9
    assert (tmp_path / "sets.csv").read_text() == "old"
