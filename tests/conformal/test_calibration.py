"""What users meet of a calibration: its names, what keeps its type, and that new rows are read once."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from setwise import Calibration, ConformalClassifier, CrossConformalClassifier, conformalize
from setwise.calibration.new_rows import RowReader
from setwise.conformal.calibration import PooledCalibration
from setwise.findings import Finding
from tests.conftest import printed


@pytest.fixture
def reads(monkeypatch):
    """The arguments of each reading of new rows."""
    found, honest = [], RowReader.read

    def read(self, probabilities, **given):
        found.append(given)
        return honest(self, probabilities, **given)

    monkeypatch.setattr(RowReader, "read", read)
    return found


@pytest.fixture
def checked(rng):
    """Rows with candidate sets, of which half are verified."""
    y = rng.integers(0, 3, 400)
    X = 2 * np.eye(3)[y] + rng.normal(size=(400, 3))
    candidates = (np.arange(3) == y[:, None]) | (rng.random((400, 3)) < 0.2)
    verified = np.full(400, None)
    verified[:200] = y[:200]
    return X, candidates, verified


def test_what_is_loaded_copied_or_withdrawn_is_a_calibration_still(rng, tmp_path):
    P = rng.dirichlet([1, 1, 1], size=100)
    cal = conformalize(P, P.argmax(axis=1))
    cal.save(tmp_path / "made.cal")
    others = [Calibration.load(tmp_path / "made.cal"), pickle.loads(pickle.dumps(cal)), copy.deepcopy(cal)]  # noqa: S301
    others += [*cal.parts, cal.withdraw(Finding(None, "in everything"))]
    assert {type(other) for other in others} == {Calibration}
    assert {repr(other) for other in others} == {repr(cal)}


def test_the_public_names_are_those_of_the_contract_and_few_more(rng):
    P = rng.dirichlet([1, 1, 1], size=100)
    questions = {"threshold", "predict_set", "predict_mask", "predict_p", "guarantee", "bracket", "triage"}
    parts = {"conformity_score", "strategy", "vocabulary", "evidence", "setting", "categories", "category"}
    assert {name for name in dir(conformalize(P, P.argmax(axis=1))) if not name.startswith("_")} == (
        questions
        | {"compare", "monitor", "withdraw", "save", "load"}
        | parts
        | {"annotators", "rules", "classes", "category_names", "judgement", "reader", "parts"}
    )


@pytest.mark.parametrize("by", [None, "predicted"])
def test_triage_reads_new_rows_once_and_compares_what_it_read(checked, reads, rng, by):
    _, candidates, verified = checked
    P = rng.dirichlet([1, 1, 1], size=400)
    cal = conformalize(P, candidates | (P.max(axis=1, keepdims=True) == P), verified=verified, by=by, miss_rate=0.5)
    assert "Contradicted" in printed(cal.triage(np.full((90, 3), 1 / 3), max_error=0.5).guarantee)
    assert len(reads) == 1


def test_new_rows_that_were_compared_already_are_not_compared_again(checked, rng):
    _, candidates, verified = checked
    P = rng.dirichlet([1, 1, 1], size=400)
    cal = conformalize(P, candidates | (P.max(axis=1, keepdims=True) == P), verified=verified, miss_rate=0.5)
    new = np.full((90, 3), 1 / 3)
    assert "Contradicted" in printed(cal.triage(new, max_error=0.5).guarantee)
    assert "Contradicted" not in printed(cal.triage(new, max_error=0.5, comparison=cal.compare(P[:90])).guarantee)


def test_a_model_reads_the_rows_to_decide_once_and_compares_their_features(checked, reads):
    X, candidates, verified = checked
    model = ConformalClassifier(LogisticRegression(), random_state=0).fit(X, candidates, verified=verified)
    found = model.triage(X + np.array([0, 0, 9]), max_error=0.2)
    assert len(reads) == 1
    assert "feature '2'" in printed(found.guarantee)


def test_folds_decide_their_own_rows_alone(checked, reads):
    X, candidates, verified = checked
    model = CrossConformalClassifier(LogisticRegression(), random_state=0, strategy="max").fit(X, candidates)
    assert isinstance(model.calibration_, PooledCalibration)
    assert len(model.triage(max_error=0.2, verified=verified)) == 200
    half = model.calibration_.triage(max_error=0.5, verified=verified)
    assert half.accepted.any()
    assert "looks" not in printed(half)
    assert model.calibration_.monitor().delta == 0.05
    with pytest.raises(ValueError, match="folds score new rows and their own rows with different models"):
        model.triage(X)
    assert not reads
