"""`kill -9` in the middle of a command leaves what was there before, whole."""

import hashlib
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setwise import ConformalClassifier

from .conftest import rows, setwise, table

FIT = ["fit", "votes.csv", "--candidates", "answers", "--ignore", "id", "--ignore", "truth", "--learner", "em"]
FIT += ["--out", "model", "--force"]
AGAIN = [*FIT, "--seed", "1"]
PREDICT = ["predict", "model", "new.parquet", "--out", "sets.csv", "--force"]
MOMENTS = {
    "while it learns": (AGAIN, "from setwise.learn.em import EMClassifier as it; it.fit = kill"),
    "before the model takes its place": (
        AGAIN,
        "import setwise.estimators.model_directory as it; it._put_in_place = kill",
    ),
    "before the new parts count": (
        AGAIN,
        """
from pathlib import Path
replace = Path.replace
Path.replace = lambda self, target: kill() if self.name == "setwise.json" else replace(self, target)
""",
    ),
    "at the second batch": (
        PREDICT,
        """
from setwise.calibration.calibration import Calibration
first, calls = Calibration.predict_set, []
Calibration.predict_set = lambda *given, **named: kill() if calls else calls.append(1) or first(*given, **named)
""",
    ),
}
PROGRAM = f"""
import os, signal
import pyarrow.csv, pyarrow.parquet, skops.io, sklearn.linear_model, sklearn.pipeline  # once for all
from setwise.cli.app import run
kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
for folder, (arguments, moment) in {MOMENTS!r}.items():
    if (child := os.fork()) == 0:
        os.chdir(folder)
        exec(moment)
        os._exit(run(arguments))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, folder
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """What was in a folder, by digest, and copies of it in which commands were killed, as a machine that fails
    would do it, at the moment that each is named after.
    """
    folder = tmp_path_factory.mktemp("kills")
    whole = folder / "whole"
    whole.mkdir()
    table(whole / "votes.csv", 300, 0)
    setwise(*FIT, folder=whole)
    many = np.tile(rows(400, 0)[0], (50, 1))
    pq.write_table(pa.table(dict(zip("wxyz", many.T, strict=True))), whole / "new.parquet")
    (whole / "sets.csv").write_text("old")
    for moment in MOMENTS:
        shutil.copytree(whole, folder / moment)
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=folder, check=True)
    return folder, digests(whole / "model")


def digests(folder):
    return {part.name: hashlib.sha256(part.read_bytes()).hexdigest() for part in folder.iterdir()}


@pytest.mark.parametrize("moment", [name for name, (command, _) in MOMENTS.items() if command is AGAIN])
def test_a_kill_in_the_middle_of_fit_leaves_the_old_model(killed, moment):
    folder, before = killed
    folder = folder / moment
    after = digests(folder / "model")
    assert {name: after[name] for name in before} == before
    assert ConformalClassifier.load(folder / "model").random_state == 0
    setwise(*AGAIN, folder=folder)
    assert ConformalClassifier.load(folder / "model").random_state == 1
    assert not list(folder.glob(".*.tmp"))  # what the killed one left is swept


def test_a_kill_in_the_middle_of_predict_leaves_the_old_sets(killed):
    folder = killed[0] / "at the second batch"
    assert len(list(folder.glob(".sets.csv.*.tmp"))) == 1  # it was writing
    assert (folder / "sets.csv").read_text() == "old"
    setwise(*PREDICT, folder=folder)
    assert not list(folder.glob(".*.tmp"))  # what the killed one left is swept
