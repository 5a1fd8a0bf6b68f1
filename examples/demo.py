"""Handwritten digits whose calibration labels are known only as candidate sets.

A scikit-learn model gives probabilities; 500 calibration images carry the true digit among some wrong ones;
each strategy turns both into prediction sets for 700 new images, and says what it may claim about them.
"""

import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import setwise
from setwise.strategies import Mixture

LEVEL = 0.9
STRATEGIES = ["max", "all", "mean", "min", Mixture(mu=0.5), Mixture(mu="verified")]


def main() -> None:
    start = time.perf_counter()
    rng = np.random.default_rng(0)
    X, y = load_digits(return_X_y=True)
    X = X + rng.normal(scale=4, size=X.shape)  # blurred, so that there is something to be unsure about
    X_train, X_rest, y_train, y_rest = train_test_split(X, y, train_size=597, random_state=0)
    X_cal, X_new, y_cal, y_new = train_test_split(X_rest, y_rest, train_size=500, random_state=0)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(X_train, y_train)

    mask = rng.random((500, 10)) < 0.2  # wrong digits enter with probability 0.2, the true one always
    mask[np.arange(500), y_cal] = True
    candidates = setwise.LabelSets.from_mask(mask)
    verified = [int(digit) if i < 200 else None for i, digit in enumerate(y_cal)]  # somebody checked these

    print(f"{len(candidates)} calibration images with {candidates.sizes.mean():.2f} candidate digits each, such as")
    print("  " + ", ".join("{" + ", ".join(map(str, row)) + "}" for row in candidates[:5].to_lists()))
    print(f"accuracy of the model on new images {model.score(X_new, y_new):.3f}, confidence level {LEVEL}\n")

    print(f"{'strategy':<34}{'coverage':>9}  {'95 % interval':<15}{'mean size':>10}   promised for the truth")
    guarantees = []
    for strategy in STRATEGIES:
        calibration = setwise.conformalize(model.predict_proba(X_cal), candidates, strategy, verified=verified)
        result = setwise.evaluate(calibration.predict_set(model.predict_proba(X_new), LEVEL), y_new)
        guarantee = calibration.guarantee(LEVEL)
        low, high = result["coverage_interval"]
        promised = "nothing" if guarantee.promised is None else f"≥ {guarantee.promised:.3f}"
        print(
            f"{guarantee.strategy:<34}{result['coverage']:>9.3f}  {f'[{low:.3f}, {high:.3f}]':<15}"
            f"{result['mean_size']:>10.2f}   {promised}"
        )
        guarantees.append(guarantee)

    print("\nWhat may be claimed, and why:")
    for guarantee in guarantees:
        print("\n" + str(guarantee))
    low, high = setwise.conformalize(model.predict_proba(X_cal), candidates, "mean").bracket(LEVEL)
    print(
        f"\nWithout any true label, the coverage of 'mean' is known to lie between {low:.3f} and {high:.3f} "
        f"(95 % confidence).\ndone in {time.perf_counter() - start:.1f} s"
    )


if __name__ == "__main__":
    main()
