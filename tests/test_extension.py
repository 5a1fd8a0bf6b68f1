"""A score and a strategy from outside the package: registered by name, they work wherever a name does."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import setwise
from setwise.cli import options
from setwise.cli.app import run
from setwise.guarantees import Claim
from setwise.scores import SCORES
from setwise.strategies import RankRule, StrategyTraits
from setwise.strategies.registry import STRATEGIES


@dataclass(frozen=True)
class Logarithmic:
    """−log f_y, with a floor for f."""

    floor: float = 1e-12
    domain: ClassVar[str] = "simplex"
    name: ClassVar[str] = "logarithmic"
    offset: ClassVar[float] = 0.0
    monotone: ClassVar[bool] = True
    elementwise: ClassVar[bool] = True
    randomized: ClassVar[bool] = False

    def score(self, probabilities, labels=None, *, u=None):
        chosen = probabilities if labels is None else probabilities[np.arange(len(probabilities)), labels]
        return -np.log(np.maximum(chosen, self.floor))

    def below(self, probabilities, threshold, *, u=None):
        return self.score(probabilities) <= np.reshape(threshold, (-1, 1))


@dataclass(frozen=True)
class Between(StrategyTraits):
    """The score at a share of the way from the smallest to the largest candidate score."""

    share: float = 0.5
    name: ClassVar[str] = "between"
    pooled: ClassVar[bool] = True

    def needs(self, setting):
        return ()

    def calibrate(self, evidence, setting):
        scores = (1 - self.share) * evidence.low + self.share * evidence.high
        return RankRule(self, evidence, setting, scores, evidence.n)

    def claims(self, rule, level):
        return (Claim("truth", None, "nothing"),)


NAMES = {"strategy": "between", "conformity_score": "logarithmic"}


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setitem(SCORES, "logarithmic", Logarithmic)
    monkeypatch.setitem(STRATEGIES, "between", Between)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    X = np.eye(3)[y] + 0.6 * rng.normal(size=(400, 3))
    mask = (np.eye(3)[y] + (rng.random((400, 3)) < 0.2)) > 0
    P = np.exp(3 * X)
    return X, P / P.sum(axis=1, keepdims=True), mask


@pytest.mark.usefixtures("registered")
def test_both_are_used_by_name_and_come_back_from_a_file(rows, tmp_path):
    _, P, mask = rows
    cal = setwise.conformalize(P, mask, **NAMES, random_state=0)
    candidates = np.where(mask, -np.log(P), np.nan)
    e = (np.nanmin(candidates, axis=1) + np.nanmax(candidates, axis=1)) / 2
    assert cal.threshold(0.9) == np.sort(e)[int(np.ceil(0.9 * 401)) - 1]
    assert (cal.predict_set(P, 0.9).to_mask() == (-np.log(P) <= cal.threshold(0.9))).all()
    assert cal.guarantee(0.9).promised is None
    assert cal.guarantee(0.9).strategy == "between"

    cal.save(tmp_path / "own.cal")
    again = setwise.Calibration.load(tmp_path / "own.cal")
    assert (again.strategy, again.conformity_score) == (Between(), Logarithmic())
    assert again.predict_set(P, 0.8) == cal.predict_set(P, 0.8)


@pytest.mark.usefixtures("registered")
def test_parameters_of_their_own_are_kept_in_the_file(rows, tmp_path):
    _, P, mask = rows
    cal = setwise.conformalize(P, mask, Between(share=0.25), Logarithmic(floor=1e-6))
    cal.save(tmp_path / "own.cal")
    again = setwise.Calibration.load(tmp_path / "own.cal")
    assert (again.strategy, again.conformity_score) == (Between(share=0.25), Logarithmic(floor=1e-6))


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("kind", [setwise.ConformalClassifier, setwise.CrossConformalClassifier])
def test_the_estimators_take_them_by_name_and_save_them(rows, tmp_path, kind):
    X, _, mask = rows
    model = kind(LogisticRegression(), **NAMES, random_state=0).fit(X, mask)
    sets = model.predict_set(X[:20], 0.9)
    model.save(tmp_path / "model")
    again = kind.load(tmp_path / "model")
    assert again.get_params()["strategy"] == "between"
    assert again.predict_set(X[:20], 0.9) == sets


@pytest.mark.usefixtures("registered")
def test_the_command_line_takes_their_names_from_the_registries(rows, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    _, P, mask = rows
    np.savetxt("scores.csv", P, delimiter=",", header="p:a,p:b,p:c", comments="", fmt="%.17g")
    texts = ["|".join(np.array(["a", "b", "c"])[row]) for row in mask]
    (tmp_path / "answers.csv").write_text("\n".join(["candidates", *texts]) + "\n")
    files = ["conformalize", "--probabilities", "scores.csv", "--labels", "answers.csv", "--out", "own.cal"]
    assert run([*files, "--strategy", "between", "--conformity-score", "logarithmic"]) == 0
    made = setwise.Calibration.load("own.cal")
    assert (made.strategy.name, made.conformity_score.name) == ("between", "logarithmic")
    capsys.readouterr()
    assert run([*files, "--force", "--strategy", "betwixt"]) == 2
    assert "between" in capsys.readouterr().err
    offered = [option.autocompletion for option in (options.STRATEGY, options.CONFORMITY_SCORE)]
    assert [complete("betw") + complete("log") for complete in offered] == [["between"], ["logarithmic"]]


def test_a_name_that_is_not_registered_is_refused(rows):
    _, P, mask = rows
    with pytest.raises(ValueError, match="strategy: 'between' is not known"):
        setwise.conformalize(P, mask, "between")
    with pytest.raises(ValueError, match="conformity_score: 'logarithmic' is not known"):
        setwise.conformalize(P, mask, conformity_score="logarithmic")
    with pytest.raises(ValueError, match="a file cannot store it"):
        setwise.conformalize(P, mask, Between()).save("never.cal")
