"""Annotators who disagree: everything anybody said is a candidate, and the disagreement need not be resolved."""

import numpy as np
from sklearn.datasets import load_iris

from setwise import ConformalClassifier
from setwise.learn import EMClassifier
from setwise.tables import from_annotators_long


def votes(y, names, rng):
    """Three annotators a flower, right in 90, 80 and 70 of 100 cases; one line an answer."""
    lines = {"item": [], "annotator": [], "label": []}
    for flower, truth in enumerate(y):
        for annotator, skill in {"ann": 0.9, "bob": 0.8, "cyd": 0.7}.items():
            said = truth if rng.random() < skill else rng.integers(0, 3)
            for name, value in zip(lines, (flower, annotator, names[said]), strict=True):
                lines[name].append(value)
    return lines


def main():
    rng = np.random.default_rng(0)
    X, y = load_iris(return_X_y=True)
    names = ["setosa", "versicolor", "virginica"]
    order = rng.permutation(150)
    known, new = order[:110], order[110:]

    imported = from_annotators_long(votes(y[known], names, rng))
    print(f"{len(imported)} flowers, {imported.candidates.sizes.mean():.2f} candidates each")
    # somebody is right nearly always, but not always: 0.1 · 0.2 · 0.3 · (2/3)³ is the chance that nobody is
    model = ConformalClassifier(EMClassifier(), confidence_level=0.8, random_state=0, miss_rate=0.01)
    model.fit(X[known], imported.candidates)
    print(model.guarantee())
    result = model.evaluate(X[new], [names[k] for k in y[new]])
    print(f"coverage {result['coverage']:.3f}, {result['mean_size']:.2f} species a set")
    return {"coverage": result["coverage"], "mean_size": result["mean_size"], "n": result["n"]}


if __name__ == "__main__":
    main()
