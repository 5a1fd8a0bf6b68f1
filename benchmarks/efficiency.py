"""How close sets come to those of somebody who knows the truth, and what that rests on.

    SETWISE_DATA=DIR python benchmarks/efficiency.py --part images --device cuda --keep
    SETWISE_DATA=DIR python benchmarks/efficiency.py --part real --keep

Level 0.90, score LAC. Images: train and test rows are pooled and split anew, so that all are exchangeable; five models
a cell learn 40,000 contaminated rows; then 100 times for each model 6,000 (or 500) of the other 30,000 rows are drawn,
contaminated anew and calibrated on, and the rest of them are covered. Real sets: a new split for every run, the paper's
linear model, a fifth for testing, a fifth of the rest for calibration, 50 of these verified. The oracle is calibrated
with the true labels of the same rows on the same scores. `--keep` writes benchmarks/results/efficiency-PART.json.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
from joblib import Parallel, delayed
from reproduction.presets import preset_settings
from sklearn.base import clone
from train import machine, write

from setwise import AssumptionRefuted, ConformalClassifier, LabelSets, PartialLabelClassifier, conformalize
from setwise.datasets import Adversarial, ClassConditional, Random, contaminate, load
from setwise.strategies import Corrected

LEVEL, LEARNED, CALIBRATED = 0.9, 40_000, 6_000
IMAGES = ("mnist", "kmnist", "fashion_mnist")
REAL = ("lost", "msrcv2", "birdsong")
FURTHER = ("fg_net", "italian")


def asymmetric(k=10):
    """Inclusion probabilities between 0.02 and 0.4 that differ in both directions."""
    matrix = np.random.default_rng(2023).uniform(0.02, 0.4, (k, k))
    np.fill_diagonal(matrix, 1)
    return matrix


CONTAMINATIONS = {"random 0.1": Random(p=0.1), "random 0.7": Random(p=0.7), "class": ClassConditional(asymmetric())}


# -------------------------------------------------------------------- images


def images(options):
    """Rows of the table for every set and contamination."""
    for name in options.sets or IMAGES:
        data = load(name)
        X, y = np.asarray(data.X).reshape(len(data.y), -1), np.asarray(data.y)
        for contamination, generator in CONTAMINATIONS.items():
            began = time.perf_counter()
            held = held_out(name, X, y, generator, options)
            learned = time.perf_counter() - began
            jobs = [
                delayed(image_draws)(P, truth, contamination, draws, (model, part))
                for model, (P, truth) in enumerate(held)
                for part, draws in enumerate(np.diff(np.linspace(0, options.draws, 5).astype(int)).tolist())
            ]
            found = defaultdict(list)
            for part in Parallel(os.cpu_count())(jobs):
                for key, values in part.items():
                    found[key] += values
            accuracy = np.mean([(P.argmax(axis=1) == truth).mean() for P, truth in held])
            yield from summaries(f"{name}, {contamination}", found, accuracy=accuracy, learning_seconds=learned)


def held_out(name, X, y, generator, options):
    """Probabilities and truth of the rows that each model did not learn from."""
    orders = [np.random.default_rng(100 + seed).permutation(len(y)) for seed in range(options.models)]
    candidates = [
        contaminate(y[order[:LEARNED]], generator, n_classes=10, random_state=seed).to_mask()
        for seed, order in enumerate(orders)
    ]
    rows = np.concatenate([order[:LEARNED] for order in orders])
    parts = [np.arange(LEARNED) + LEARNED * i for i in range(options.models)]
    preset = preset_settings(f"paper-mlp-{name.removesuffix('_mnist')}")
    learner = PartialLabelClassifier(**preset | {"epochs": options.epochs}, random_state=0, device=options.device)
    masks = np.concatenate(candidates)
    models = [clone(learner).fit(X[rows[part]], masks[part]) for part in parts]
    return [
        (model.predict_proba(X[order[LEARNED:]]), y[order[LEARNED:]])
        for model, order in zip(models, orders, strict=True)
    ]


def image_draws(P, y, contamination, draws, seed):
    """For each strategy (coverage, size, size of the oracle on the same rows) over the draws."""
    rng, found = np.random.default_rng(seed), defaultdict(list)
    generator = CONTAMINATIONS[contamination]
    for draw in range(draws):
        order = rng.permutation(len(y))
        cal, new = order[:CALIBRATED], order[CALIBRATED:]
        mask = contaminate(y[cal], generator, n_classes=10, random_state=rng).to_mask()
        few = cal[:500]
        cases = {("oracle", 6000): (cal, y[cal], "max", {})}
        if contamination == "class":
            matrix = {"assume": asymmetric()}
            cases |= {
                ("corrected, matrix known", 6000): (cal, mask, Corrected(), matrix),
                ("corrected, matrix known, finite margin", 6000): (cal, mask, Corrected("finite"), matrix),
                ("corrected, matrix estimated", 6000): (cal, mask, Corrected(), {"assume": "class"}),
            }
        else:
            uniform = {"assume": "uniform"}
            cases |= {
                ("oracle", 500): (few, y[few], "max", {}),
                ("corrected", 6000): (cal, mask, Corrected(), uniform),
                ("corrected, finite margin", 6000): (cal, mask, Corrected("finite"), uniform),
                ("corrected", 500): (few, mask[:500], Corrected(), uniform),
            }
        if draw % 5 == 0:
            worst = contaminate(y[cal], Adversarial(P[cal]), n_classes=10, random_state=rng)
            cases |= {(name, 6000): (cal, mask, name, {}) for name in ("mean", "min", "all")}
            cases |= {("auto, nothing stated", 6000): (cal, mask, "auto", {})}
            cases |= {("auto, adversarial candidates", 6000): (cal, worst, "auto", {})}
        base = {}
        for key, (rows, told, strategy, declared) in cases.items():
            result = judged(P, y, rows, told, strategy, declared, new)
            if key[0] == "oracle":
                base[key[1]] = result[1]
            found[key].append((*result, base[key[1]]))
    if contamination != "class":
        found["formula", seed].append(formula(P, y, contamination))
    return found


def judged(P, y, rows, told, strategy, declared, new):
    """Coverage and mean size on new rows, also where the gate would stop it (as it may in 1 of 20 draws)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            limit = 1 - conformalize(P[rows], told, strategy, **declared).threshold(LEVEL)
        except AssumptionRefuted:
            strategy = Corrected(strategy.margin, if_refuted="continue")
            limit = 1 - conformalize(P[rows], told, strategy, **declared).threshold(LEVEL)
    own = P[new, y[new]] >= limit
    return float(own.mean()), float((P[new] >= limit).sum(axis=1).mean())


def formula(P, y, contamination):
    """√((G(1 − G) + p/(1 − p)·E[false labels below t])/500) at the oracle's threshold."""
    p = float(contamination.split()[1])
    p += (1 - p) ** 9 / 9  # one wrong label is added where there is none
    own = P[np.arange(len(y)), y]
    limit = np.quantile(own, 1 - LEVEL)
    false_below = ((limit <= P).sum(axis=1) - (own >= limit)).mean()
    return float(np.sqrt((LEVEL * (1 - LEVEL) + p / (1 - p) * false_below) / 500))


# -------------------------------------------------------------------- real sets


def real(options):
    """Rectified with 50 verified rows, and `auto` with nothing declared, on every real set."""
    for name in options.sets or REAL:
        data = load(name)
        X, S, y = np.asarray(data.X, float), data.candidates.to_mask(), np.asarray(data.y)
        orders = [np.random.default_rng(1000 + run).permutation(len(y)) for run in range(options.splits)]
        cut = len(y) // 5
        held = [(order[:cut], *np.split(order[cut:], [(len(y) - cut) // 5])) for order in orders]
        learner = PartialLabelClassifier(**preset_settings(f"paper-{name}"), random_state=0, device="cpu")
        models = [clone(learner).fit(X[learned], S[learned]) for *_, learned in held]
        found = defaultdict(list)
        for run, (model, (new, cal, _)) in enumerate(zip(models, held, strict=True)):
            for again in range(options.verifications):
                real_draw(found, model, X, S, y, new, cal, np.random.default_rng((run, again)))
        yield from summaries(name, found)


def real_draw(found, model, X, S, y, new, cal, rng):
    """One draw of verified rows of one split."""
    P, Q, K = model.predict_proba(X[cal]), model.predict_proba(X[new]), S.shape[1]
    checked = rng.choice(len(cal), 50, replace=False)
    verified = np.full(len(cal), None, object)
    verified[checked] = y[cal][checked]
    truth = LabelSets.from_labels(y[cal], classes=range(K))
    cases = {
        ("oracle", len(cal)): (P, truth, "max", {}),
        ("verified rows alone", 50): (P[checked], truth[checked], "max", {}),
        ("rectified", len(cal)): (P, S[cal], "rectified", {"verified": verified}),
        **{(name, len(cal)): (P, S[cal], name, {}) for name in ("max", "all", "mean", "min", "posterior")},
    }
    base = None
    for key, (rows, told, strategy, declared) in cases.items():
        sets = conformalize(rows, told, strategy, **declared).predict_set(Q, LEVEL)
        result = float(sets.contains(y[new]).mean()), float(sets.sizes.mean())
        base = result[1] if key[0] == "oracle" else base
        found[key].append((*result, base))


def auto(options):
    """`ConformalClassifier()` as a newcomer uses it, on every real set and on adversarial candidates."""
    for name in options.sets or (*REAL, *FURTHER):
        data = load(name)
        X, y, K = np.asarray(data.X, float), np.asarray(data.y), data.candidates.n_classes
        rough = PartialLabelClassifier("linear", epochs=20, random_state=0, device="cpu").fit(X, data.candidates)
        worst = contaminate(y, Adversarial(rough.predict_proba(X)), n_classes=K, random_state=0)
        found = defaultdict(list)
        for kind, sets in (("as given", data.candidates), ("adversarial", worst)):
            jobs = [delayed(auto_split)(X, sets, y, run) for run in range(options.splits)]
            found[f"auto, candidates {kind}", len(y) * 4 // 25] += Parallel(os.cpu_count())(jobs)
        yield from summaries(name, found)


def auto_split(X, sets, y, run):
    """Coverage and size on the test rows of one split."""
    torch.set_num_threads(1)
    order = np.random.default_rng(1000 + run).permutation(len(y))
    new, old = order[: len(y) // 5], order[len(y) // 5 :]
    made = ConformalClassifier(random_state=run).fit(X[old], sets[old]).predict_set(X[new])
    return float(made.contains(y[new]).mean()), float(made.sizes.mean()), np.nan


# -------------------------------------------------------------------- tables


def summaries(name, found, **more):
    """One line for each strategy: coverage with spread and standard error, size, size over the oracle's."""
    formulas = [value for key, values in found.items() if key[0] == "formula" for value in values]
    for key, values in found.items():
        if key[0] == "formula":
            continue
        coverage, size, oracle = np.array(values).T
        line = {
            "case": name,
            "strategy": key[0],
            "n": key[1],
            "runs": len(coverage),
            "coverage": float(coverage.mean()),
            "coverage_sd": float(coverage.std(ddof=1)),
            "coverage_se": float(coverage.std(ddof=1) / np.sqrt(len(coverage))),
            "at_least_level": float((coverage >= LEVEL).mean()),
            "size": float(size.mean()),
            "size_over_oracle": float(size.mean() / oracle.mean()),
            **more,
        }
        if formulas and key[0] == "corrected" and key[1] == 500:
            line["formula_sd"] = float(np.mean(formulas))
        print(
            f"{name:28}{key[0]:40}{key[1]:>6} cov {line['coverage']:.4f} ± {line['coverage_se']:.4f} "
            f"sd {line['coverage_sd']:.4f} ≥ {line['at_least_level']:.2f} size {line['size']:.3f} "
            f"×{line['size_over_oracle']:.3f}"
            + (f" formula {line['formula_sd']:.4f}" if "formula_sd" in line else ""),
            flush=True,
        )
        yield line


def main() -> None:
    """Reads the arguments, measures, prints and keeps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["images", "real", "auto"], required=True)
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--models", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--splits", type=int, default=None)
    parser.add_argument("--verifications", type=int, default=4)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / "results")
    options = parser.parse_args()
    options.splits = options.splits or {"real": 100}.get(options.part, 20)
    rows = list({"images": images, "real": real, "auto": auto}[options.part](options))
    device = torch.device("cuda" if torch.cuda.is_available() and options.part == "images" else "cpu")
    path = options.out / f"efficiency-{options.part}.json" if options.keep else None
    settings = {key: str(value) for key, value in vars(options).items() if key not in {"out", "keep"}}
    write(path, {"machine": machine(device), "settings": settings, "rows": rows})


if __name__ == "__main__":
    main()
