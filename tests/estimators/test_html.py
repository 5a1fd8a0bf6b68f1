"""Estimators in a notebook, as scikit-learn shows them, and with their nested parameters."""

import re
from html import unescape

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from setwise import APS, ConformalClassifier, CrossConformalClassifier
from setwise.learn import CoveringClassifier, EMClassifier, PartialLabelClassifier
from setwise.strategies import Corrected

X = np.random.default_rng(0).normal(size=(90, 3))
Y = np.array(["ant", "owl", "wren"])[X.argmax(axis=1)]
QUICK = {"network": "linear", "epochs": 1, "random_state": 0}
PIPE = make_pipeline(StandardScaler(), LogisticRegression())
ESTIMATORS = {
    "a pipeline inside": (ConformalClassifier(PIPE), "estimator: Pipeline", "LogisticRegression"),
    "a default": (
        ConformalClassifier(estimator=PartialLabelClassifier(**QUICK)),
        "estimator: PartialLabelClassifier",
    ),
    "trained before": (
        ConformalClassifier(FrozenEstimator(GaussianNB().fit(X, Y))),
        "FrozenEstimator",
        "GaussianNB",
    ),
    "objects": (
        ConformalClassifier(EMClassifier(GaussianNB()), Corrected(margin="finite"), APS(), assume="uniform"),
        "APS(randomized=True)",
        "estimator: EMClassifier",
        "estimator: GaussianNB",
    ),
    "cross": (CrossConformalClassifier(GaussianNB(), cv=3), "estimator: GaussianNB", "cv"),
    "em": (EMClassifier(GaussianNB()), "estimator: GaussianNB", "max_iter"),
    "network": (PartialLabelClassifier(**QUICK), "hidden_sizes"),
    "covering": (
        CoveringClassifier(PartialLabelClassifier(**QUICK), random_state=0),
        "posterior: PartialLabelClassifier",
    ),
    "in a pipeline": (
        make_pipeline(StandardScaler(), ConformalClassifier(GaussianNB())),
        "ConformalClassifier",
        "GaussianNB",
    ),
    "in a search": (
        GridSearchCV(ConformalClassifier(LogisticRegression()), {"estimator__C": [0.1, 1.0]}, cv=2),
        "ConformalClassifier",
        "LogisticRegression",
    ),
}


def shown(estimator):
    """The words of the page."""
    page = re.sub(r"<(style|script).*?</\1>", "", estimator._repr_html_(), flags=re.DOTALL)
    return unescape(re.sub(r"<[^>]+>", "", page))


@pytest.fixture(scope="module")
def not_shown():
    """What this version of scikit-learn shows of no estimator: parameters before 1.7, attributes for longer."""
    page = shown(LogisticRegression().fit(X, Y))
    parameters = set() if "max_iter" in page else {"max_iter", "hidden_sizes", "n_neighbors"}
    return parameters | (set() if "classes_" in page else {"classes_"})


@pytest.mark.filterwarnings("ignore::setwise.SmallCalibrationWarning")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_shows_what_it_is_made_of_before_and_after_it_is_fitted(name, not_shown):
    estimator, *words = ESTIMATORS[name]
    words = [word for word in words if word not in not_shown]
    before = shown(clone(estimator))
    assert [word for word in (*words, "Not fitted", type(estimator).__name__) if word not in before] == []
    after = shown(clone(estimator).fit(X, Y))
    assert [word for word in (*words, *({"classes_"} - not_shown)) if word not in after] == []
    assert "Not fitted" not in after


@pytest.mark.parametrize("name", ESTIMATORS)
def test_parameters_of_every_depth_survive_cloning_and_can_be_set(name):
    estimator = ESTIMATORS[name][0]
    copy = clone(estimator)
    assert copy is not estimator
    assert repr(copy) == repr(estimator)
    assert copy.get_params().keys() == estimator.get_params().keys()


def test_parameters_deep_inside_are_set_on_a_copy_alone():
    inside = ConformalClassifier(EMClassifier(make_pipeline(StandardScaler(), LogisticRegression())))
    copy = clone(inside).set_params(estimator__estimator__logisticregression__C=7.0, confidence_level=0.8)
    assert copy.estimator.estimator[-1].C == copy.get_params()["estimator__estimator__logisticregression__C"] == 7.0
    assert inside.estimator.estimator[-1].C == 1.0
    assert (copy.confidence_level, inside.confidence_level) == (0.8, 0.9)
    with pytest.raises(ValueError, match="Invalid parameter 'levels' for estimator ConformalClassifier"):
        copy.set_params(levels=3)
