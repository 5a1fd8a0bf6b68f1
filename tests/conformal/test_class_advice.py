"""What helps classes that are covered too seldom, or that are in every set."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from setwise import ConformalClassifier, LabelSets, conformalize, evaluate
from setwise.conformal.class_advice import class_advice

NAMES = np.array(["wren", "tit", "crow", "owl"])


@pytest.fixture
def birds(rng):
    """A model that hardly believes in owls, of which there are six among 400 rows, and many among new ones."""
    y, new = np.repeat(np.arange(4), [250, 104, 40, 6]), np.repeat(np.arange(4), 50)

    def believed(truth):
        logits = rng.normal(size=(len(truth), 4)) + 2 * np.eye(4)[truth] - [0, 0, 1, 6]
        return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)

    return believed(y), y, believed(new), NAMES[new]


def advised(birds, level, candidates=None, **options):
    p, y, new, truth = birds
    given = NAMES[y] if candidates is None else LabelSets.from_mask(candidates, NAMES.tolist())
    made = conformalize(p, given, classes=NAMES.tolist(), **options)
    found = evaluate(made.predict_set(new, level), truth)["by_class"]
    return class_advice(made, found, Fraction(str(level)))


def test_classes_below_the_level_are_named_with_what_a_threshold_of_their_own_needs(birds):
    assert advised(birds, 0.95) == [
        "Covered less often than 0.95: 'owl', 'crow'. Use by=\"label\" for a guarantee within each class.",
        "Class 'owl' has 6 calibration rows: 13 more are needed for a threshold at 0.95.",
    ]


def test_by_label_only_the_rows_that_are_missing_are_named(birds):
    assert advised(birds, 0.95, by="label") == [
        "Class 'owl' has 6 calibration rows: 13 more are needed for a threshold at 0.95."
    ]
    assert advised(birds, 0.8, by="label") == []


def test_candidates_need_verified_rows_first(birds):
    _, y, _, _ = birds
    (line,) = advised(birds, 0.8, np.eye(4)[y] > 0)
    assert line.endswith('Verify rows and use by="label".')


def test_classes_that_are_covered_or_guaranteed_already_need_no_advice(birds):
    p, y, *_ = birds
    made = conformalize(p, NAMES[y], classes=NAMES.tolist())
    owls = {"owl": {"coverage_interval": (0.1, 0.3)}}
    assert class_advice(made, {"owl": {"coverage_interval": None}}, Fraction(9, 10)) == []
    assert class_advice(made, {"owl": {"coverage_interval": (0.8, 0.91)}}, Fraction(9, 10)) == []
    assert len(class_advice(made, owls, Fraction(9, 10))) == 2


def test_a_model_evaluates_with_advice(rng):
    y = np.repeat(np.arange(3), [400, 150, 50])
    X = np.eye(3)[y] + rng.normal(size=(600, 3))
    model = ConformalClassifier(GaussianNB(), random_state=0).fit(X, y)
    new = np.repeat(np.arange(3), 100)
    Z = np.eye(3)[new] + np.random.default_rng(1).normal(size=(300, 3))
    found = model.evaluate(Z, new)
    assert list(found["by_class"])[-1] == 0
    assert found["advice"][0].startswith("Covered less often than 0.9: 2")
