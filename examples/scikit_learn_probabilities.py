"""Any scikit-learn classifier gives probabilities; candidate sets calibrate them.

The forest was trained by somebody on exact labels. The rows to calibrate on are known only up to some candidates.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import setwise
from setwise.datasets import Random, contaminate


def main():
    X, y = load_digits(return_X_y=True)
    X_train, X_rest, y_train, y_rest = train_test_split(X, y, train_size=600, random_state=0)
    X_cal, X_new, y_cal, y_new = train_test_split(X_rest, y_rest, train_size=600, random_state=0)
    forest = RandomForestClassifier(100, random_state=0).fit(X_train, y_train)

    candidates = contaminate(y_cal, Random(p=0.1), n_classes=10, random_state=0)
    verified = [int(digit) if i < 150 else None for i, digit in enumerate(y_cal)]  # somebody checked these
    calibration = setwise.conformalize(
        forest.predict_proba(X_cal),
        candidates,
        strategy="rectified",
        verified=verified,
        random_state=0,
    )
    sets = calibration.predict_set(forest.predict_proba(X_new), confidence_level=0.97)
    print(calibration.guarantee(0.97))
    result = setwise.evaluate(sets, y_new)
    print(f"coverage {result['coverage']:.3f}, {result['mean_size']:.2f} digits a set, such as {sets[0]}")
    return {"coverage": result["coverage"], "mean_size": result["mean_size"], "n": len(np.asarray(y_new))}


if __name__ == "__main__":
    main()
