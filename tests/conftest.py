import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from setwise import Votes, conformalize
from tests.changed_files import calibrations_of_each_kind
from tests.toy_data import NAMES, sample_rows

# No test fails because the machine is slow. Where nobody is there to look into a new finding, examples are always
# the same; everywhere else they are new ones.
settings.register_profile(
    "steady",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("steady")


LONG = ("tests/observatory", "tests/statistical")


def pytest_collection_modifyitems(items):
    """Begins with what takes longest, so that workers end together."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


@pytest.fixture
def rng():
    return np.random.default_rng(20261115)


BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def benchmark_folder():
    named = os.environ.get("SETWISE_DATA")
    folder = Path(named) if named else BESIDE
    return folder if (folder / "pll" / "lost.mat").is_file() else None


@pytest.fixture
def benchmarks(monkeypatch):
    """The real benchmark files; tests that need them are skipped where they are absent."""
    folder = benchmark_folder()
    if folder is None:
        pytest.skip("the benchmark files are not here: set SETWISE_DATA to the folder that holds mnist/ and pll/")
    monkeypatch.setenv("SETWISE_DATA", str(folder))
    return folder


def check_sentence(error, *names):
    """A broken file's error is one line that names the file."""
    assert "\n" not in str(error)
    assert all(name in str(error) for name in names)


def calls_in(work):
    """How many functions are called meanwhile: a measure of work that does not depend on the machine."""
    seen = []
    sys.setprofile(lambda _frame, event, _argument: seen.append(1) if event.endswith("call") else None)
    try:
        work()
    finally:
        sys.setprofile(None)
    return len(seen)


def simplex(rng, n, k, sharpness=2.0):
    """Probabilities of a plausible model."""
    logits = sharpness * rng.normal(size=(n, k))
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def labels_from(rng, p):
    """Labels drawn from the probabilities."""
    return np.minimum((p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1), p.shape[1] - 1)


def candidates_from(rng, y, k, share=0.3):
    """The label itself, and each other one with a fixed probability."""
    mask = rng.random((len(y), k)) < share
    mask[np.arange(len(y)), y] = True
    return mask


@pytest.fixture(scope="session")
def saved_models(tmp_path_factory):
    """A model directory of each kind of part, and a calibration of each kind of evidence."""
    from sklearn.linear_model import LogisticRegression

    from setwise import ConformalClassifier
    from setwise.learn import PartialLabelClassifier

    folder = tmp_path_factory.mktemp("models")
    X, P, sets, y = sample_rows()
    ConformalClassifier(LogisticRegression(), random_state=0).fit(X, sets).save(folder / "skops")
    network = PartialLabelClassifier("mlp", hidden_sizes=(4,), epochs=1)
    ConformalClassifier(network, random_state=0).fit(X, sets).save(folder / "network")
    conformalize(P, sets).save(folder / "max.cal")
    conformalize(P, sets, "mean", by=y % 2).save(folder / "mean.cal")
    verified = np.where(np.arange(120) < 60, np.array(NAMES, dtype=object)[y], None)
    conformalize(P, sets, "rectified", verified=verified).save(folder / "rectified.cal")
    conformalize(P, sets, "corrected", assume="uniform").save(folder / "corrected.cal")
    said = np.random.default_rng(1).integers(0, 3, (120, 2))
    answers = [
        [NAMES[k], NAMES[k], NAMES[b] if i % 3 else NAMES[k]]
        for i, (k, (b, _)) in enumerate(zip(y, said, strict=True))
    ]
    votes = Votes.from_matrix(answers, annotators=["ann", "bob", "eve"], classes=NAMES)
    conformalize(P, votes, "crowd", assume="independent", verified=verified).save(folder / "votes.cal")
    return folder


@pytest.fixture
def saved_network(saved_models, tmp_path):
    shutil.copytree(saved_models / "network", tmp_path / "model")
    return tmp_path / "model"


def refused(load, path):
    """The one sentence of a refusal, which names the file."""
    with pytest.raises(ValueError, match=re.escape(str(path))) as error:
        load(path)
    assert "\n" not in str(error.value)
    assert "allow_pickle" not in str(error.value)
    return str(error.value)


@pytest.fixture(scope="session")
def calibrations():
    """A calibration of each kind, whose files tests change."""
    return calibrations_of_each_kind()


@pytest.fixture
def two_tables(calibrations, tmp_path):
    """A calibration, a folder with two tables of probabilities, and the command that predicts them."""
    calibrations["mean"].save(tmp_path / "mean.cal")
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        (tmp_path / "in" / f"{name}.csv").write_text("p:cat,p:dog,p:owl\n" + "0.5,0.25,0.25\n0.1,0.1,0.8\n" * 3)
    files = ["--probabilities", str(tmp_path / "in"), "--out", str(tmp_path / "out")]
    return tmp_path, ["predict", str(tmp_path / "mean.cal"), *files, "--json"]


def printed(answer):
    """What prints, in one line: where lines are broken does not matter."""
    return " ".join(str(answer).split())
