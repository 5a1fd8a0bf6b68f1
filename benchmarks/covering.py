"""Sets without any assumption on how candidates arise: the class posterior, and the learner that covers candidates.

    SETWISE_DATA=DIR python benchmarks/covering.py --keep
    SETWISE_DATA=DIR python benchmarks/covering.py --part images --device cuda --splits 1 --keep

Level 0.90, score LAC. Every split is new: a fifth of the rows to test on, a fifth of the others to calibrate on, the
rest to learn from (images: train and test rows pooled). `max` has the proof of Theorem 1; `all` has none, and is used
as it stands, with nothing tuned. "all of S" is how often a set holds every candidate of a new row. Images are
contaminated as in the paper ("random 0.1": every wrong label enters with that probability), or not at all: then `max`
is split conformal prediction. `--keep` writes benchmarks/results/covering-PART.json.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from joblib import Parallel, delayed
from supermodel import PIXELS, train_supermodel
from train import machine, write

from setwise import LAC, CoveringClassifier, LabelSets, PartialLabelClassifier, conformalize
from setwise.datasets import InstanceDependent, Random, contaminate, load
from setwise.ranks import clopper_pearson

LEVEL = 0.9
REAL = ("lost", "msrcv2", "birdsong")
IMAGES = ("fashion_mnist",)
CONTAMINATIONS = ("precise", "random 0.1", "random 0.7", "instance")
PAPER = {"lost": 10.7, "msrcv2": 18.16, "birdsong": 9.80}  # labels in the sets of its `all`
BARS = {"max": 0.8, "all": 0.6}  # of the paper's `all`, for the covering learner
RULES = (("posterior", "max"), ("covering", "max"), ("posterior", "all"), ("covering", "all"))


def real(options):
    """The table's rows for every real set."""
    for name in options.sets or REAL:
        data = load(name)
        jobs = [delayed(measure)(data.X, data.candidates, data.y, split, "cpu") for split in range(options.splits)]
        yield from summary(name, Parallel(options.jobs)(jobs))


def images(options):
    """The table's rows for every set of images and contamination."""
    for name in options.sets or IMAGES:
        data = load(name)
        X = np.asarray(data.X).reshape(len(data.y), -1)
        shift, scale = PIXELS[name]
        supermodel = train_supermodel(X[data.split["train"]], data.y[data.split["train"]], shift=shift, scale=scale)
        for contamination in CONTAMINATIONS:
            found = []
            for split in range(options.splits):
                sets = contaminated(contamination, X, data.y, supermodel, split)
                found.append(measure(X, sets, data.y, split, options.device))
            yield from summary(f"{name} {contamination}", found)


def contaminated(contamination, X, y, supermodel, seed):
    """Candidate sets for images, as in the paper."""
    if contamination == "precise":
        return LabelSets.from_labels(y, classes=range(10))
    how = (
        InstanceDependent(supermodel.predict_proba(X))
        if contamination == "instance"
        else Random(p=float(contamination[7:]))
    )
    return contaminate(y, how, n_classes=10, random_state=seed)


def measure(X, candidates, y, split, device):
    """Sizes, and hits of the truth and of all candidates, of every rule on one split."""
    torch.set_num_threads(1)
    order = np.random.default_rng(split).permutation(len(y))
    test, others = np.split(order, [len(y) // 5])
    calibrated, learned = np.split(others, [len(others) // 5])
    model, took = timed(CoveringClassifier(random_state=split, device=device), X[learned], candidates[learned])
    plain = PartialLabelClassifier(random_state=split, device=device)
    alone = timed(plain, X[learned], candidates[learned])[1] if split == 0 else None
    scores = {"posterior": (model.predict_proba, LAC()), "covering": (model.predict_inclusion, LAC(domain="unit"))}
    given = np.array(candidates[test].to_mask())
    scale = None if model.inclusion_ is None else str(model.inclusion_.scale)
    found = {"seconds": took, "alone": alone, "chosen": [scale, model.weight_]}
    for learner, strategy in RULES:
        matrix, score = scores[learner]
        calibration = conformalize(matrix(X[calibrated]), candidates[calibrated], strategy, score)
        sets = np.array(calibration.predict_set(matrix(X[test]), LEVEL).to_mask())
        found[learner, strategy] = (
            float(sets.sum(axis=1).mean()),
            int(sets[np.arange(len(test)), y[test]].sum()),
            int((sets | ~given).all(axis=1).sum()),
            len(test),
        )
    return found


def timed(model, X, candidates):
    """The model, fitted, and the seconds it took."""
    began = time.perf_counter()
    return model.fit(X, candidates), time.perf_counter() - began


def summary(name, splits):
    """One row of the table for every rule."""
    for learner, strategy in RULES:
        sizes, truth, whole, rows = (
            np.array(part) for part in zip(*[s[learner, strategy] for s in splits], strict=True)
        )
        low, high = clopper_pearson(int(truth.sum()), int(rows.sum()), 0.05)
        row = {
            "set": name,
            "learner": learner,
            "strategy": strategy,
            "splits": len(splits),
            "size": float(sizes.mean()),
            "size_sd": float(sizes.std(ddof=1)) if len(splits) > 1 else 0.0,
            "coverage": float(truth.sum() / rows.sum()),
            "coverage_interval": [low, high],
            "coverage_sd": float((truth / rows).std(ddof=1)) if len(splits) > 1 else 0.0,
            "all_candidates": float(whole.sum() / rows.sum()),
            "sizes": sizes.tolist(),
            "chosen": [s["chosen"] for s in splits],
            "seconds": splits[0]["seconds"],
            "seconds_of_the_posterior_alone": splits[0]["alone"],
        }
        if name in PAPER and learner == "covering":
            row["share_of_the_papers_all"] = row["size"] / PAPER[name]
            row["bar"] = BARS[strategy]
        show(row)
        yield row


def show(row):
    """A line of the table."""
    share = row.get("share_of_the_papers_all")
    against = "" if share is None else f"   {share:.0%} of the paper's all (bar {row['bar']:.0%})"
    print(
        f"{row['set']:24s} {row['learner']:10s} {row['strategy']:4s} size {row['size']:6.2f} ± {row['size_sd']:5.2f}"
        f"   truth {row['coverage']:.3f} [{row['coverage_interval'][0]:.3f}, {row['coverage_interval'][1]:.3f}]"
        f"   all of S {row['all_candidates']:.3f}{against}"
        f"   {row['seconds']:.0f} s (posterior alone {row['seconds_of_the_posterior_alone']:.0f} s)",
        flush=True,
    )


def main():
    """Runs what was asked for, prints it, and keeps it with --keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("real", "images"), default="real")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--jobs", type=int, default=1, help="processes, for the real sets")
    parser.add_argument("--device", default="cpu", help="for the images")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    rows = list((real if options.part == "real" else images)(options))
    path = Path(__file__).resolve().parent / "results" / f"covering-{options.part}.json"
    device = torch.device("cpu" if options.part == "real" else options.device)
    write(path if options.keep else None, {"machine": machine(device), "level": LEVEL, "rows": rows})


if __name__ == "__main__":
    main()
