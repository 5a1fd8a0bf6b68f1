"""Probabilities of XGBoost or of LightGBM, whichever is installed; without both scikit-learn's own trees stand in.

A model trained elsewhere goes into `ConformalClassifier` as `FrozenEstimator(model)`: it is only calibrated.
"""

from importlib.util import find_spec

from sklearn.datasets import load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

from setwise import ConformalClassifier
from setwise.datasets import Random, contaminate


def trees():
    """The first of the two libraries that there is, or a stand-in."""
    if find_spec("xgboost"):
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=50, max_depth=3)
    if find_spec("lightgbm"):
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_estimators=50, num_leaves=7, verbose=-1)
    print("neither XGBoost nor LightGBM is installed: scikit-learn's boosted trees stand in")
    return HistGradientBoostingClassifier(max_iter=50, max_depth=3, random_state=0)


def main():
    X, y = load_wine(return_X_y=True)
    X_train, X_rest, y_train, y_rest = train_test_split(X, y, train_size=70, random_state=0, stratify=y)
    X_cal, X_new, y_cal, y_new = train_test_split(X_rest, y_rest, train_size=60, random_state=0)
    model = trees().fit(X_train, y_train)

    tasters = contaminate(y_cal, Random(p=0.2), n_classes=3, random_state=0)  # tasters who name several cultivars
    wines = ConformalClassifier(FrozenEstimator(model), confidence_level=0.8, random_state=0).fit(X_cal, tasters)
    print(f"{type(model).__name__}\n{wines.guarantee()}")
    result = wines.evaluate(X_new, y_new)
    print(f"coverage {result['coverage']:.3f}, {result['mean_size']:.2f} cultivars a set")
    return {"coverage": result["coverage"], "mean_size": result["mean_size"], "n": result["n"]}


if __name__ == "__main__":
    main()
