"""`kill -9` in the middle of a command leaves what was there before, whole."""

import hashlib
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression

from setwise import ConformalClassifier

from .conftest import ONE_THREAD, rows, setwise, table

KILL = "import os, signal; kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
MOMENTS = {
    "while it learns": "from setwise.learn.em import EMClassifier as it; it.fit = kill",
    "before the model takes its place": "import setwise.estimators.model_directory as it; it._put_in_place = kill",
    "before the new parts count": """
from pathlib import Path
replace = Path.replace
Path.replace = lambda self, target: kill() if self.name == "setwise.json" else replace(self, target)
""",
}
SECOND_BATCH = """
from setwise.calibration.calibration import Calibration
first, calls = Calibration.predict_set, []
Calibration.predict_set = lambda *given, **named: kill() if calls else calls.append(1) or first(*given, **named)
"""


def killed(moment, *arguments, folder):
    """Runs a command that is killed, as a machine that fails would do it, at this moment."""
    program = f"{KILL}\n{moment}\nimport sys\nfrom setwise.cli.app import run\nsys.exit(run(sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", program, *arguments], cwd=folder, env=ONE_THREAD, check=False)
    assert done.returncode == -9


def digests(folder):
    return {part.name: hashlib.sha256(part.read_bytes()).hexdigest() for part in folder.iterdir()}


@pytest.mark.parametrize("moment", list(MOMENTS))
def test_a_kill_in_the_middle_of_fit_leaves_the_old_model(tmp_path, moment):
    table(tmp_path / "votes.csv", 300, 0)
    fit = ["fit", "votes.csv", "--candidates", "answers", "--ignore", "id", "--ignore", "truth", "--learner", "em"]
    setwise(*fit, "--out", "model", folder=tmp_path)
    before = digests(tmp_path / "model")
    killed(MOMENTS[moment], *fit, "--seed", "1", "--out", "model", "--force", folder=tmp_path)
    after = digests(tmp_path / "model")
    assert {name: after[name] for name in before} == before
    assert ConformalClassifier.load(tmp_path / "model").random_state == 0
    setwise(*fit, "--seed", "1", "--out", "model", "--force", folder=tmp_path)
    assert ConformalClassifier.load(tmp_path / "model").random_state == 1


def test_a_kill_in_the_middle_of_predict_leaves_the_old_sets(tmp_path):
    X, lists, _ = rows(400, 0)
    ConformalClassifier(LogisticRegression(), random_state=0).fit(X, lists).save(tmp_path / "model")
    many = np.tile(X, (50, 1))
    pq.write_table(pa.table(dict(zip("wxyz", many.T, strict=True))), tmp_path / "new.parquet")
    (tmp_path / "sets.csv").write_text("old")
    names = [part for name in "wxyz" for part in ("--features", name)]
    predict = ["predict", "model", "new.parquet", "--out", "sets.csv", "--force", *names]
    killed(SECOND_BATCH, *predict, folder=tmp_path)
    assert len(list(tmp_path.glob(".sets.csv.*.tmp"))) == 1  # it was writing
    assert (tmp_path / "sets.csv").read_text() == "old"
