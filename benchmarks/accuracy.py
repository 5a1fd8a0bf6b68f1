"""Test accuracy of the paper's settings and of ours on the real sets, and of ours on the images, over seeds.

    python benchmarks/accuracy.py --data DIR --part real --out benchmarks/results/accuracy-real-cpu.json
    python benchmarks/accuracy.py --data DIR --part images --out benchmarks/results/accuracy-images.json

The images train all seeds, sets and contaminations together, which wants a GPU. Nothing here looks at the
truth of a training row; every choice is made from candidates.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.io
import torch
from reproduction.presets import PRESETS
from train import CONTAMINATIONS, IMAGES, image_cases, machine, write

from setwise.learn import PartialLabelClassifier
from setwise.learn.batches import Resident
from setwise.learn.scaling import BYTES, Scaling
from setwise.learn.stacks import train_stack

REAL = ("lost", "MSRCv2", "BirdSong")
RECOMMENDED = {"epochs": 100, "ensemble": 5}
PAPER = {
    "lost": (73.96, 2.43),
    "MSRCv2": (48.58, 0.72),
    "BirdSong": (72.04, 0.89),
    "mnist random 0.1": (98.12, 0.13),
    "fashion_mnist random 0.1": (88.53, 0.44),
    "kmnist random 0.1": (90.66, 0.20),
    "mnist random 0.7": (96.88, 0.22),
    "fashion_mnist random 0.7": (85.70, 0.76),
    "kmnist random 0.7": (82.25, 0.38),
    "mnist instance": (96.93, 0.17),
    "fashion_mnist instance": (82.48, 0.69),
    "kmnist instance": (83.90, 0.31),
}
PAPER_TRAIN = {
    "lost": 86.54,
    "MSRCv2": 54.61,
    "BirdSong": 74.45,
    "mnist random 0.1": 99.50,
    "fashion_mnist random 0.1": 96.64,
    "kmnist random 0.1": 98.83,
    "mnist random 0.7": 97.29,
    "fashion_mnist random 0.7": 88.22,
    "kmnist random 0.7": 93.55,
    "mnist instance": 97.23,
    "fashion_mnist instance": 83.82,
    "kmnist instance": 93.86,
}


def load_mat(path):
    """Features, candidate mask and truth of a partial-label .mat file."""
    content = scipy.io.loadmat(path)
    data, target, partial = (
        np.asarray(a.todense() if hasattr(a, "todense") else a)
        for a in (content["data"], content["target"], content["partial_target"])
    )
    return data.astype(np.float64), partial.T > 0, target.argmax(axis=0)


def real(data, seeds, device, variants, names):
    """Every variant on the real sets: 20 % test; "-64" trains on 64 % as the paper did, else on 80 %."""
    rows = []
    for name in names:
        arrays = load_mat(data / "pll" / f"{name}.mat")
        for variant in variants:
            rows.append(_real_cell(name, variant, arrays, seeds, device))
            show(rows[-1])
    return rows


def _real_cell(name, variant, arrays, seeds, device):
    X, candidates, y = arrays
    began, test, train, chosen = time.perf_counter(), [], [], []
    for seed in seeds:
        order = np.random.default_rng(seed).permutation(len(y))
        cut = len(y) // 5
        kept = order[cut:]
        if variant.endswith("-64"):
            kept = kept[len(kept) // 5 :]
        given = {"default": {}, "paper": PRESETS.get(f"paper-{name.lower()}", {}), "recommended": RECOMMENDED}
        model = PartialLabelClassifier(**given[variant.removesuffix("-64")], random_state=seed, device=device)
        model.fit(X[kept], candidates[kept])
        test.append(100 * float((model.predict(X[order[:cut]]) == y[order[:cut]]).mean()))
        train.append(100 * float((model.predict(X[kept]) == y[kept]).mean()))
        chosen.append(max(model.choices_, key=model.choices_.get) if model.choices_ else "")
    return cell(name, variant, test, train, seconds=time.perf_counter() - began, chosen=chosen)


def images(options, device):
    """All image sets, contaminations and seeds as one training of many models."""
    together = image_cases(options.data, options.seeds, device)
    cases = together[0]
    began = time.perf_counter()
    test, train = _train_images(options.epochs, *together)
    took = time.perf_counter() - began
    rows = []
    for name in IMAGES:
        for contamination in CONTAMINATIONS:
            of = [i for i, case in enumerate(cases) if case[:2] == (name, contamination)]
            scores = [test[i] for i in of], [train[i] for i in of]
            rows.append(cell(f"{name} {contamination}", "recommended", *scores, seconds=took))
            show(rows[-1])
    return rows


def _train_images(epochs, *together):
    """Test and training accuracy of every case; the members of an ensemble are further models."""
    cases, source, candidates, truths, tests = together
    device = candidates.device
    settings = PartialLabelClassifier("mlp", **RECOMMENDED).settings()
    members = settings.ensemble
    seeds = [10_000 * member + seed for member in range(members) for *_, seed in cases]
    names = [name for name, *_ in cases] * members
    shift, spread = torch.tensor([BYTES], dtype=torch.float64).expand(len(names), 2).T
    trainer = train_stack(
        replace(settings, epochs=epochs or settings.epochs),
        Resident(source.features, source.selected.repeat(members, 1)),
        candidates.repeat(members, 1, 1),
        seeds,
        scaling=Scaling(shift.reshape(-1, 1, 1), spread.reshape(-1, 1, 1)),
    )
    fitted = average(trainer.logits(), members).argmax(-1).cpu().numpy()
    stacked = torch.cat([torch.as_tensor(tests[name][0]) for name in IMAGES]).to(device)
    n = len(stacked) // len(IMAGES)
    positions = torch.tensor([[n * IMAGES.index(name)] for name in names], device=device)
    held = Resident(stacked, positions + torch.arange(n, device=device))
    predicted = average(trainer.logits(held), members).argmax(-1).cpu().numpy()
    test = [100 * float((predicted[i] == tests[case[0]][1]).mean()) for i, case in enumerate(cases)]
    train = [100 * float((fitted[i] == truths[i]).mean()) for i in range(len(cases))]
    return test, train


def average(logits, members):
    """Mean probabilities over the members of each ensemble."""
    return logits.softmax(-1).view(members, -1, *logits.shape[1:]).mean(dim=0)


def cell(name, variant, test, train, *, seconds, chosen=()):
    paper, deviation = PAPER[name]
    mean = float(np.mean(test))
    return {
        "set": name,
        "variant": variant,
        "test": mean,
        "test_sd": float(np.std(test, ddof=1)) if len(test) > 1 else 0.0,
        "train": float(np.mean(train)),
        "paper_test": paper,
        "paper_sd": deviation,
        "paper_train": PAPER_TRAIN[name],
        "beats_paper_by_more_than_its_sd": mean > paper + deviation,
        "tests": test,
        "chosen": list(chosen),
        "seconds": seconds,
    }


def show(row):
    print(
        f"{row['set']:26s} {row['variant']:16s} test {row['test']:6.2f} ± {row['test_sd']:4.2f}"
        f"  train {row['train']:6.2f}"
        f"   paper {row['paper_test']:6.2f} ± {row['paper_sd']:4.2f} (train {row['paper_train']:6.2f})"
        f"   {'better by more than its s.d.' if row['beats_paper_by_more_than_its_sd'] else ''}"
        f"  {row['seconds']:.0f} s",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--part", choices=("real", "images", "all"), default="all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0, help="of the splits of the real sets")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--epochs", type=int, help="of the images; fewer to try the script out")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--sets", nargs="*", default=list(REAL))
    parser.add_argument("--variants", nargs="*", help="of the real sets")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    rows, device = [], torch.device(options.device)
    if options.part in {"real", "all"}:
        variants = options.variants or ["paper-64", "default", "recommended", "recommended-64"]
        rows += real(options.data, seeds, device, variants, options.sets)
    if options.part in {"images", "all"}:
        rows += images(options, device)
    write(options.out, {"machine": machine(device), "seeds": list(seeds), "rows": rows})


if __name__ == "__main__":
    main()
