"""Two questions of `benchmarks/ambiguous`: estimates with intervals, and the aggregation of votes."""

import importlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from setwise import Votes

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def benchmark():
    """The modules by name, as where the benchmark is run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield lambda name: importlib.import_module(f"ambiguous.{name}")


@pytest.fixture(scope="module")
def data(benchmark):
    """A panel of five people and its truth."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 240)
    said = np.where(rng.random((240, 5)) < 0.8, y[:, None], rng.integers(0, 3, (240, 5)))
    return benchmark("data_sets").panel(Votes.from_matrix(said, classes=range(3)), y)


@pytest.mark.parametrize("name", ["estimates", "consensus"])
def test_methods_are_registered_with_a_known_guarantee_and_what_they_need(benchmark, name):
    registry, question = benchmark("registry"), benchmark(f"questions.{name}")
    found = registry.methods(name)
    keys = [(method.name, method.package) for method in found]
    known = {value for key, value in vars(registry).items() if key.isupper() and isinstance(value, str)}
    assert len(keys) == len(set(keys))
    assert found[0].own
    assert {method.guarantee for method in found} <= known
    assert set(question.DATA) <= set(benchmark("data_sets").CARDS)
    fields = {*question.Task.__dataclass_fields__, *vars(question.Task)}
    assert all(set(method.needs) <= fields for method in found)


@pytest.mark.parametrize("name", ["estimates", "consensus"])
def test_own_methods_and_formulas_answer_each_setting(benchmark, data, name):
    question, kept = benchmark(f"questions.{name}"), {}

    def once(key, make):
        return kept.setdefault(key, None) or kept.setdefault(key, make()) or make()

    for setting in question.settings(data):
        tasks = [question.task(data, setting, draw, once) for draw in range(2)]
        own = [one for one in benchmark("registry").methods(name) if one.own or one.package is None]
        answers = {one.name: [one.function(task) for task, _ in tasks] for one in own if one.applies(tasks[0][0])}
        given = {key: values for key, values in answers.items() if values[0] is not None}
        assert given, setting
        for values in given.values():
            pairs = zip(values, tasks, strict=True)
            line = question.summarise([question.judge(value, hidden) for value, (_, hidden) in pairs], setting)
            assert "gain" in line or line["kept"] == "no interval"


def test_the_exact_interval_holds_all_numbers_of_hits_that_are_not_refuted(benchmark):
    exact = benchmark("rivals.formulas_of_votes").exact
    for x, m, n in ((0, 5, 20), (3, 10, 40), (10, 10, 30)):
        hits = np.arange(n + 1)
        allowed = hits[(hypergeom.cdf(x, n, hits, m) > 0.025) & (hypergeom.sf(x - 1, n, hits, m) > 0.025)]
        assert exact(x, m, n) == (allowed.min(), allowed.max())


def test_clopper_pearson_leaves_a_fortieth_on_each_side(benchmark):
    lower, upper = benchmark("questions.estimates").clopper_pearson(np.array([0, 7, 20]), np.array([20, 20, 20]))
    assert lower[0] == 0
    assert upper[2] == 1
    np.testing.assert_allclose(binom.sf(6, 20, lower[1]), 0.025)
    np.testing.assert_allclose(binom.cdf([0, 7], 20, upper[:2]), 0.025)


def test_intervals_that_hold_too_seldom_are_said(benchmark):
    question = benchmark("questions.estimates")
    true, alone = np.array([0.5, 0.5]), np.ones(2)
    good, bad = np.array([[0.5, 0.4, 0.6]] * 2), np.array([[0.5, 0.4, 0.6], [0.9, 0.8, 1.0]])
    for share, kept in ((0.0, "yes"), (0.05, "yes"), (0.3, "no")):
        values = [question.judge(bad if draw < 100 * share else good, (true, alone)) for draw in range(100)]
        line = question.summarise(values, {})
        assert line["kept"] == kept
        assert line["spread"] == 1 - share
    missing = question.judge(np.array([[0.5, np.nan, np.nan]] * 2), (true, alone))
    assert question.summarise([missing], {})["kept"] == "no interval"


def test_rows_that_were_verified_are_not_scored_and_equal_labels_are_right_in_part(benchmark, data):
    question = benchmark("questions.consensus")
    task, hidden = question.task(data, {"verified": 50}, 0, None)
    assert (hidden[task.looked] == -1).all()
    assert question.judge(hidden, hidden) == (1.0, 190)
    assert question.judge(np.ones((240, 3)), hidden)[0] == pytest.approx(1 / 3)


def test_rows_are_alike_in_all_draws_without_verified_rows(benchmark, data):
    runner, question = benchmark("runner"), benchmark("questions.estimates")
    asked = SimpleNamespace(**{key: getattr(question, key) for key in ("QUESTION", "task", "judge", "summarise")})
    asked.settings = lambda found: question.settings(found)[:1]
    assert {line["draws"] for line in runner.lines(asked, "panel", data, 9, ["setwise"])} == {1}
