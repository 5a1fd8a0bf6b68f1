"""Saved scikit-learn models are read without torch, and nobody's skops is changed by it."""

import subprocess
import sys

import numpy as np
from scipy.special import cbrt
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import all_estimators

from setwise import ConformalClassifier
from setwise.learn.light_skops import is_estimator, is_ufunc


def test_a_saved_model_is_read_without_torch_and_skops_stays_as_it_was(tmp_path):
    y = np.arange(120) % 3
    X = 3 * np.eye(3)[y] + np.random.default_rng(0).normal(size=(120, 3))
    estimator = make_pipeline(FunctionTransformer(np.arcsinh), FunctionTransformer(cbrt), LogisticRegression())
    ConformalClassifier(estimator, random_state=0).fit(X, np.eye(3)[y] > 0).save(tmp_path / "model")
    code = (
        "import sys\n"
        "from setwise import ConformalClassifier\n"
        f"model = ConformalClassifier.load({str(tmp_path / 'model')!r})\n"
        "print(model.predict_set([[3.0, 0.0, 0.0]]).to_lists(), 'torch' in sys.modules, 'skops' in sys.modules)\n"
        "from skops.io import dumps, get_untrusted_types\n"
        "print(get_untrusted_types(data=dumps(model.estimator_)))\n"
        "from skops.io._trusted_types import NUMPY_UFUNC_TYPE_NAMES as numpys, SCIPY_UFUNC_TYPE_NAMES as scipys\n"
        "from setwise.learn.light_skops import is_ufunc\n"
        "print(len(numpys) > 50, len(scipys) > 50, all(map(is_ufunc, numpys + scipys)))\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines() == ["[[0]] False False", "[]", "True True True"]


def test_estimators_are_those_that_scikit_learn_lists():
    listed = {f"{kind.__module__}.{kind.__name__}" for _, kind in all_estimators()}
    compiled = {name for name in listed if name.startswith("sklearn.svm.") and ".Linear" not in name}
    compiled |= {name for name in listed if name.startswith("sklearn.cluster._kmeans.")}
    assert len(compiled) == 7  # they believe the sizes in their state
    assert {name for name in listed if not is_estimator(name)} == compiled
    others = ["sklearn.base.clone", "sklearn.tests.test_base.MyEstimator", "sklearn.no_such.Thing", "os.system"]
    assert not any(is_estimator(name) for name in [*others, "sklearn.linear_model._base._x", "LogisticRegression"])


def test_of_numpy_and_scipy_universal_functions_alone_are_trusted():
    assert is_ufunc("numpy.log1p")
    others = ["numpy.load", "numpy.ma.log1p", "numpy.no_such.log1p", "numpy.ufunc", "log1p", "setwise.scores.expit"]
    assert not any(map(is_ufunc, others))
