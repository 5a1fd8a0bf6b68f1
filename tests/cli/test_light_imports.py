"""What commands leave out when they import scikit-learn is there for whoever uses it."""

import subprocess
import sys

PROGRAM = """
import sys
from setwise.cli.light_imports import load_sklearn, settle_arrow

load_sklearn()
settle_arrow()
left_out = ("pandas", "rich.progress", "scipy.stats")
assert not any(name in sys.modules for name in left_out), "left out"

import numpy as np
from sklearn._loss.link import MultinomialLogit
from sklearn.isotonic import check_increasing
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import label_ranking_loss
from sklearn.preprocessing import PowerTransformer

assert "scipy.stats" not in sys.modules, "imported by scikit-learn"
assert check_increasing(range(9), range(9))
import scipy.stats
assert isinstance(scipy.stats.norm.ppf(0.5), float) and sys.modules["scipy.stats"].chi2(3).mean() == 3
MultinomialLogit().link(np.full((2, 3), 1 / 3))
X = np.random.default_rng(0).normal(size=(40, 3)) ** 2
PowerTransformer().fit(X)
import sklearn.covariance
sklearn.covariance.EllipticEnvelope(random_state=0).fit(X)

import pandas as pd
import pyarrow as pa
import rich.progress
frame = pd.DataFrame(X, columns=list("abc"))
assert LogisticRegression().fit(frame, np.arange(40) % 2).feature_names_in_.tolist() == list("abc")
assert pa.array(np.arange(3)).to_pylist() == pa.array([0, 1, 2]).to_pylist()
"""


def test_what_was_left_out_is_there_when_it_is_used():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
