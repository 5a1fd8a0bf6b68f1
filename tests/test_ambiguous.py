"""`benchmarks/ambiguous`: methods are registered as they must be, and formulas give the sets of the strategies."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from setwise import LabelSets, conformalize
from setwise.strategies import Mixture

FOLDER = Path(__file__).parent.parent / "benchmarks"
STRATEGIES = {"max": "max", "all": "all", "mean": "mean", "min": "min", "mixture": Mixture(mu=0.5)}


@pytest.fixture(scope="module")
def benchmark():
    sys.path.insert(0, str(FOLDER))  # as `make benchmark` runs it
    from ambiguous import data_sets, registry, runner
    from ambiguous.questions import sets

    yield SimpleNamespace(data_sets=data_sets, registry=registry, runner=runner, sets=sets)
    sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def tasks(benchmark):
    """A draw without verified rows, and one with 50, of rows with plausible false candidates."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(5), size=900)
    y = (P.cumsum(axis=1) > rng.random((900, 1))).argmax(axis=1)
    candidates = LabelSets.from_mask((np.arange(5) == y[:, None]) | (P > 0.3))
    data = benchmark.data_sets.DataSet(y, [*range(5)], P, candidates=candidates)
    settings = benchmark.sets.settings(data)
    return [benchmark.sets.task(data, setting, 0, lambda _key, make: make())[0] for setting in settings[:2]]


def methods(benchmark, question):
    return {method.name: method for method in benchmark.registry.methods(question)}


def test_every_method_states_a_known_guarantee_and_needs_what_tasks_have(benchmark):
    known = {value for name, value in vars(benchmark.registry).items() if name.isupper() and isinstance(value, str)}
    for question in benchmark.runner.QUESTIONS:
        if not (FOLDER / "ambiguous" / "questions" / f"{question}.py").exists():
            continue
        task = benchmark.runner.question(question).Task
        has = {*task.__dataclass_fields__, *vars(task)}
        for method in benchmark.registry.methods(question):
            assert method.guarantee in known, method.name
            assert has.issuperset(method.needs), method.name


def test_the_papers_rules_from_formulas_give_the_sets_of_the_strategies(benchmark, tasks):
    task, found = tasks[0], methods(benchmark, "sets")
    for rule, strategy in STRATEGIES.items():
        ours = conformalize(task.probabilities, task.candidates, strategy, classes=task.classes)
        sets = ours.predict_set(task.new, task.level).to_mask()
        assert (found[f"paper, {rule}"].function(task) == sets).all(), rule


def test_split_conformal_prediction_by_hand_is_that_of_setwise(benchmark, tasks):
    by_hand = methods(benchmark, "sets")["by hand, verified"].function(tasks[1])
    looked = tasks[1].looked
    ours = conformalize(tasks[1].probabilities[looked], tasks[1].verified[looked], classes=tasks[1].classes)
    assert (by_hand == ours.predict_set(tasks[1].new, tasks[1].level).to_mask()).all()


def test_the_sets_of_auto_contain_those_of_the_verified_rows_alone(benchmark, tasks):
    found = methods(benchmark, "sets")
    mask, stated = found["auto, verified"].function(tasks[1])
    assert stated
    assert mask[found["by hand, verified"].function(tasks[1])].all()


def test_a_method_that_fails_in_some_draws_is_measured_on_the_others_and_says_so(benchmark, tasks):
    def sometimes(task):
        if task is tasks[0]:
            raise ValueError("too few")
        return np.ones(task.new.shape, dtype=bool)

    method = SimpleNamespace(function=sometimes)
    truth = np.zeros(len(tasks[0].new), dtype=int)
    line = benchmark.runner.measured(benchmark.sets, method, [(task, truth) for task in (*tasks, tasks[1])], {})
    assert (line["draws"], line["kept"], line["note"]) == (2, "yes", "without 1 draws with ValueError: too few")
    failed = benchmark.runner.measured(benchmark.sets, method, [(tasks[0], truth)], {})
    assert failed == {"kept": "failed", "note": "in most draws ValueError: too few"}
