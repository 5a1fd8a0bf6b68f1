"""Checkpoints: a killed run goes on where it was, and other files are refused."""

import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch

from setwise.learn import PartialLabelClassifier

DATA = """
import numpy as np
rng = np.random.default_rng(0)
y = rng.integers(0, 3, 400)
X = rng.normal(size=(400, 20)) + 2 * np.eye(20)[y]
candidates = (rng.random((400, 3)) < 0.4) | np.eye(3, dtype=bool)[y]
settings = dict(network="mlp", hidden_sizes=(32, 32), scale="standard", epochs=40, random_state=0,
                ensemble=2)
"""


def fitted(path):
    names = {}
    exec(DATA, names)  # noqa: S102
    model = PartialLabelClassifier(checkpoint=path, **names["settings"])
    return model.fit(names["X"], names["candidates"]), names


def test_a_run_killed_in_the_middle_resumes_to_the_same_weights(tmp_path):
    file = tmp_path / "run.pt"
    program = textwrap.dedent(f"""
        import os, signal
        from setwise.learn import PartialLabelClassifier, checkpoints
        save = checkpoints.Checkpoint.save
        def save_and_die(self, trainer):
            save(self, trainer)
            if trainer.epoch == 25:
                os.kill(os.getpid(), signal.SIGKILL)
        checkpoints.Checkpoint.save = save_and_die
        {{}}
        PartialLabelClassifier(checkpoint={str(file)!r}, **settings).fit(X, candidates)
    """).format(DATA)
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -signal.SIGKILL
    assert torch.load(file, weights_only=True)["state"]["epoch"] == 25
    resumed, _ = fitted(file)
    whole, _ = fitted(tmp_path / "whole.pt")
    assert resumed.n_iter_ == whole.n_iter_ == 40
    for a, b in zip(resumed.network_.state_dict().values(), whole.network_.state_dict().values(), strict=True):
        assert torch.equal(a, b)


def test_a_finished_run_is_not_run_again(tmp_path):
    model, _ = fitted(tmp_path / "run.pt")
    before = (tmp_path / "run.pt").stat().st_mtime_ns
    again, names = fitted(tmp_path / "run.pt")
    np.testing.assert_array_equal(again.predict_proba(names["X"]), model.predict_proba(names["X"]))
    assert (tmp_path / "run.pt").stat().st_mtime_ns == before


def test_files_of_other_trainings_and_broken_files_are_refused(tmp_path):
    file = tmp_path / "run.pt"
    _, names = fitted(file)
    with pytest.raises(ValueError, match="other data or settings; delete it"):
        PartialLabelClassifier(checkpoint=file, **names["settings"] | {"random_state": 1}).fit(
            names["X"], names["candidates"]
        )
    with pytest.raises(ValueError, match="other data or settings"):
        PartialLabelClassifier(checkpoint=file, **names["settings"]).fit(names["X"][::-1], names["candidates"])
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(ValueError, match="cannot be read"):
        fitted(file)
    torch.save({"weights": torch.ones(2)}, file)
    with pytest.raises(ValueError, match="not written by setwise"):
        fitted(file)
    assert not list(tmp_path.glob("*.tmp"))
