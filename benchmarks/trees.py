"""Answers that are nodes of a tree: sets named afterwards (`to_nodes`) beside sets that are nodes (`Nodes`).

    SETWISE_DATA=DIR python benchmarks/trees.py [--draws 100] [--keep]

Sets at most r nodes of a tree, r = 1, 2, 3: mean labels, mean nodes and mean coverage over draws of 1,000
calibration rows and 2,000 new ones, with the standard error of the mean coverage. `lac` are the sets without a tree.

CIFAR-100's published classes and superclasses, with probabilities that are simulated: a model's logits are normal
around the true class and around its superclass, so that errors stay within a superclass more often than not. Fashion-MNIST
and CIFAR-10 are real: a linear model of 5,000 images, and the probabilities that come with CIFAR-10N. Their
trees are of garments, and of animals and vehicles. `--keep` writes benchmarks/results/trees.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from setwise import LabelSets, Nodes, __version__, conformalize
from setwise.datasets import load
from setwise.datasets.remote_files import data_folder

RESULTS = Path(__file__).resolve().parent / "results" / "trees.json"
LEVEL, CALIBRATED, NEW = 0.9, 1000, 2000
MODELS = {"accurate": (2.3, 3.0), "middling": (1.5, 3.0), "poor": (2.0, 1.5)}
"""How far the logit of the true class, and that of its superclass, stand out."""

CIFAR100 = """
aquatic mammals: beaver, dolphin, otter, seal, whale
fish: aquarium fish, flatfish, ray, shark, trout
flowers: orchid, poppy, rose, sunflower, tulip
food containers: bottle, bowl, can, cup, plate
fruit and vegetables: apple, mushroom, orange, pear, sweet pepper
household electrical devices: clock, keyboard, lamp, telephone, television
household furniture: bed, chair, couch, table, wardrobe
insects: bee, beetle, butterfly, caterpillar, cockroach
large carnivores: bear, leopard, lion, tiger, wolf
large man-made outdoor things: bridge, castle, house, road, skyscraper
large natural outdoor scenes: cloud, forest, mountain, plain, sea
large omnivores and herbivores: camel, cattle, chimpanzee, elephant, kangaroo
medium-sized mammals: fox, porcupine, possum, raccoon, skunk
non-insect invertebrates: crab, lobster, snail, spider, worm
people: baby, boy, girl, man, woman
reptiles: crocodile, dinosaur, lizard, snake, turtle
small mammals: hamster, mouse, rabbit, shrew, squirrel
trees: maple tree, oak tree, palm tree, pine tree, willow tree
vehicles 1: bicycle, bus, motorcycle, pickup truck, train
vehicles 2: lawn mower, rocket, streetcar, tank, tractor
"""
SUPERCLASSES = {
    name: below.split(", ") for name, below in (line.split(": ") for line in CIFAR100.split("\n") if line)
}
GARMENTS = {
    "tops": ["T-shirt/top", "Pullover", "Coat", "Shirt"],
    "shoes": ["Sandal", "Sneaker", "Ankle boot"],
    "worn": ["tops", "Trouser", "Dress", "shoes"],
    "any": ["worn", "Bag"],
}
THINGS = {
    "mammals": ["cat", "deer", "dog", "horse"],
    "animals": ["bird", "frog", "mammals"],
    "road vehicles": ["automobile", "truck"],
    "vehicles": ["airplane", "ship", "road vehicles"],
    "any": ["animals", "vehicles"],
}
CIFAR10 = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def simulated(rng: np.random.Generator, of_class: float, of_superclass: float) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and true labels of rows whose model knows the superclass better than the class."""
    n = CALIBRATED + NEW
    y = rng.integers(100, size=n)
    logits = of_class * (rng.normal(size=(n, 100)) + of_class * np.eye(100)[y])
    above = of_superclass * (rng.normal(size=(n, 20)) + of_superclass * np.eye(20)[y // 5])
    return softmax(logits + above.repeat(5, axis=1), axis=1), y


def draws_of(
    name: str, draws: int
) -> tuple[dict[str, list[str]], list[str], Iterator[tuple[np.ndarray, np.ndarray]]]:
    """The tree, the classes, and for each draw probabilities and labels of calibration rows and new ones."""
    rng = np.random.default_rng(0)
    if name in MODELS:
        tree = SUPERCLASSES | {"any": [*SUPERCLASSES]}
        classes = [name for below in SUPERCLASSES.values() for name in below]
        return tree, classes, (simulated(rng, *MODELS[name]) for _ in range(draws))
    if name == "CIFAR-10":
        arrays = np.load(data_folder() / "crowd" / "cifar10n.npz")
        tree, classes, p, y = THINGS, CIFAR10, arrays["P"].astype(float), arrays["y"].astype(int)
    else:
        found = load("fashion_mnist")
        X = found.X / 255.0
        model = LogisticRegression(C=0.01, max_iter=200).fit(X[:5000], found.y[:5000])
        p, y = model.predict_proba(X[5000:25000]), found.y[5000:25000]
        tree, classes = GARMENTS, list(found.class_names)
    chosen = (rng.choice(len(y), CALIBRATED + NEW, replace=False) for _ in range(draws))
    return tree, classes, ((p[rows], y[rows]) for rows in chosen)


def measure(name: str, draws: int) -> dict[str, Any]:
    """Mean labels, nodes and coverage of every kind of set."""
    tree, classes, rows = draws_of(name, draws)
    found: dict[str, list[tuple[float, float, float]]] = {}
    right = []
    for p, y in rows:
        labels, new = np.array(classes)[y], p[CALIBRATED:]
        right.append(float((p.argmax(axis=1) == y).mean()))
        plain = conformalize(p[:CALIBRATED], labels[:CALIBRATED], classes=classes).predict_set(new, LEVEL)
        kinds: dict[str, tuple[LabelSets, LabelSets]] = {"lac": (plain, plain)}
        for r in (1, 2, 3):
            nodes = plain.to_nodes(tree, r)
            kinds[f"to_nodes {r}"] = LabelSets.from_hierarchy(nodes, tree, classes), nodes
            score = Nodes(tree, r)
            sets = conformalize(
                p[:CALIBRATED], labels[:CALIBRATED], conformity_score=score, classes=classes
            ).predict_set(new, LEVEL)
            kinds[f"Nodes {r}"] = sets, sets.to_nodes(tree, r)
        for kind, (sets, nodes) in kinds.items():
            covered = float(sets.contains(labels[CALIBRATED:]).mean())
            found.setdefault(kind, []).append((float(sets.sizes.mean()), float(nodes.sizes.mean()), covered))
    table = {}
    for kind, values in found.items():
        size, nodes, coverage = np.mean(values, axis=0)
        error = np.std([value[2] for value in values], ddof=1) / np.sqrt(draws)
        table[kind] = {"labels": size, "nodes": nodes, "coverage": coverage, "error": float(error)}
        print(f"{name:13} {kind:11} {size:6.2f} labels, {nodes:4.2f} nodes, coverage {coverage:.4f} ± {error:.4f}")
    return {"model": name, "right": float(np.mean(right)), "sets": table}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--keep", action="store_true")
    asked = parser.parse_args()
    tables = [measure(name, asked.draws) for name in (*MODELS, "CIFAR-10", "Fashion-MNIST")]
    if asked.keep:
        kept = {"setwise": __version__, "level": LEVEL, "draws": asked.draws, "tables": tables}
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
