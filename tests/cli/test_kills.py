"""`kill -9` in the middle of a command leaves what was there before, whole."""

import hashlib
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression

from setwise import ConformalClassifier
from setwise.cli.app import run

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


FIT = ["fit", "votes.csv", "--candidates", "answers", "--ignore", "id", "--ignore", "truth", "--learner", "em"]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder with a table and a model of seed 0."""
    folder = tmp_path_factory.mktemp("kills")
    table(folder / "votes.csv", 300, 0)
    setwise(*FIT, "--out", "model", folder=folder)
    return folder


@pytest.mark.parametrize("moment", list(MOMENTS))
def test_a_kill_in_the_middle_of_fit_leaves_the_old_model(fitted, tmp_path, monkeypatch, moment):
    folder = shutil.copytree(fitted, tmp_path / "copy")
    before = digests(folder / "model")
    again = [*FIT, "--seed", "1", "--out", "model", "--force"]
    killed(MOMENTS[moment], *again, folder=folder)
    after = digests(folder / "model")
    assert {name: after[name] for name in before} == before
    assert ConformalClassifier.load(folder / "model").random_state == 0
    monkeypatch.chdir(folder)
    assert run([*again, "--quiet"]) == 0
    assert ConformalClassifier.load(folder / "model").random_state == 1


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
