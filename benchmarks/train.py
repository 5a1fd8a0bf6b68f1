"""How fast training is: against loops written by hand, against the machine, and 45 models on a GPU.

    python benchmarks/train.py --out benchmarks/results/train-cpu.json
    python benchmarks/train.py --gpu --data DIR --out benchmarks/results/train-gpu.json

On a CPU: one PRODEN epoch of ours over one plain cross-entropy epoch written directly on tensors (at most
1.15), and over the loop as papers write it (at most 0.7). On a GPU: 3 sets × 3 contaminations × 5 seeds,
100 epochs of 54,000 examples, compilation and capture apart.
"""

from __future__ import annotations

import argparse
import gzip
import json
import platform
import time
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import scipy
import sklearn
import torch
from reproduction.presets import preset_settings
from reproduction.training import ScaledRows, train_models
from torch import nn
from torch.utils.data import DataLoader, Dataset

from setwise.learn import PartialLabelClassifier
from setwise.learn.batches import Resident
from setwise.learn.losses import as_loss
from setwise.learn.networks import build_network
from setwise.learn.scaling import fit_scaling
from setwise.learn.trainer import Plan, Trainer

ROWS, WIDTH, CLASSES, BATCH, HIDDEN = 54_000, 784, 10, 256, (300, 300, 300, 300)
IMAGES = ("mnist", "fashion_mnist", "kmnist")
CONTAMINATIONS = ("random 0.1", "random 0.7", "instance")
FLOPS = 6 * (WIDTH * 300 + 3 * 300 * 300 + 300 * CLASSES)
"""Of one example, forward and backward."""


# -------------------------------------------------------------------- data, also for accuracy.py


def load_images(folder):
    """Train and test pixels (rows, 784) as bytes, and labels, from the four idx files of a folder."""
    return [
        _read_idx(next(folder.glob(f"{part}-{kind}*")))
        for part in ("train", "t10k")
        for kind in ("images", "labels")
    ]


def _read_idx(path):
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        content = file.read()
    dimensions = content[3]
    shape = np.frombuffer(content, ">u4", count=dimensions, offset=4)
    values = np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)
    return values.reshape(len(values), -1).copy() if dimensions > 1 else values.astype(np.int64)


def contaminated(y, contamination, seed, supermodel):
    """Candidates as the paper makes them: at random with one wrong label at least, or by a supermodel."""
    rng = np.random.default_rng(seed)
    rows = np.arange(len(y))
    if contamination.startswith("random"):
        mask = rng.random((len(y), CLASSES)) < float(contamination.split()[1])
        mask[rows, y] = False
        wrong = (y + rng.integers(1, CLASSES, len(y))) % CLASSES
        alone = ~mask.any(axis=1)
        mask[rows[alone], wrong[alone]] = True
    else:
        p = supermodel.copy()
        p[rows, y] = 0
        top = p.max(axis=1, keepdims=True)
        mask = rng.random(p.shape) < np.divide(p, top, out=np.zeros_like(p), where=top > 0)
    mask[rows, y] = True
    return mask


def supermodel_probabilities(name, X, y, device):
    """Of a 784-100-10 network on raw pixels: Adam, 10 epochs, cross-entropy on the true labels."""
    labels = nn.functional.one_hot(torch.as_tensor(y), CLASSES).bool().to(device)[None]
    network = build_network("mlp", [0], (WIDTH,), CLASSES, hidden_sizes=(100,), batch_norm=False)
    trainer = Trainer(
        network.to(device),
        fit_scaling((0.5, 0.5) if name == "kmnist" else (0.1307, 0.3081), ()).to(device),
        as_loss("naive", len(y), 1),
        Resident(torch.as_tensor(X).to(device)),
        labels,
        plan=Plan(10, BATCH, "adam", 0.001, annealing_epochs=0),
        seeds=[0],
    ).fit()
    return trainer.logits()[0].double().softmax(-1).cpu().numpy()


def image_cases(data, n_seeds, device):
    """Every set, contamination and seed: names, a source of all pixels, candidates, and the truth for scoring."""
    cases, pixels, rows, masks, truths, tests = [], [], [], [], [], {}
    for position, name in enumerate(IMAGES):
        X, y, *tests[name] = load_images(data / name)
        pixels.append(torch.as_tensor(X))
        supermodel = supermodel_probabilities(name, X, y, device)
        for contamination in CONTAMINATIONS:
            for seed in range(n_seeds):
                kept = np.random.default_rng(1000 + seed).permutation(len(y))[:ROWS]
                cases.append((name, contamination, seed))
                rows.append(torch.as_tensor(kept) + position * len(y))
                masks.append(torch.as_tensor(contaminated(y, contamination, seed, supermodel)[kept]))
                truths.append(y[kept])
    source = Resident(torch.cat(pixels).to(device), torch.stack(rows).to(device))
    return cases, source, torch.stack(masks).to(device), truths, tests


def machine(device):
    """Date, versions and hardware."""
    gpu = device.type == "cuda"
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "device": torch.cuda.get_device_name(device) if gpu else f"CPU {platform.machine()}",
        "threads": torch.get_num_threads(),
    }


def write(path, result):
    """Keeps the result as JSON, and prints where it ran."""
    print(", ".join(f"{key} {value}" for key, value in result["machine"].items()))
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=1) + "\n")


# -------------------------------------------------------------------- on a CPU


def plain_module():
    layers, sizes = [], (WIDTH, *HIDDEN)
    for a, b in pairwise(sizes):
        layers += [nn.Linear(a, b), nn.BatchNorm1d(b), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], CLASSES))


def plain_epoch(X, labels):
    """Cross-entropy written directly on tensors: one epoch, as a callable."""
    model = plain_module()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-3)

    def run():
        for index in torch.randperm(len(X)).split(BATCH):
            loss = nn.functional.cross_entropy(model(X[index]), labels[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return run


class _Rows(Dataset):
    def __init__(self, X, targets, labels):
        self.X, self.targets, self.labels = X, targets, labels

    def __len__(self):
        return len(self.X)

    def __getitem__(self, i):
        return self.X[i], self.targets[i], self.labels[i], i


def paper_epoch(X, candidates, labels):
    """PRODEN with a loader of (features, targets, label, index) items, and targets written back row by row."""
    model = plain_module()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-3)
    targets = candidates.float() / candidates.sum(1, keepdim=True)
    loader = DataLoader(_Rows(X, targets, labels), batch_size=BATCH, shuffle=True)

    def run():
        for x, target, _, index in loader:
            output = model(x)
            loss = -(target * torch.log_softmax(output, 1)).sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            revised = torch.softmax(output.detach(), 1) * (target > 0)
            revised /= revised.sum(1, keepdim=True)
            for row, i in enumerate(index):
                targets[i, :] = revised[row, :]

    return run


def our_trainer(X, candidates, **plan):
    scale = (33.3, 78.6) if X.dtype == torch.uint8 else None
    return Trainer(
        build_network("mlp", [0], (WIDTH,), CLASSES, hidden_sizes=HIDDEN),
        fit_scaling(scale, ()),
        as_loss("proden", len(X), 1),
        Resident(X),
        candidates[None],
        plan=Plan(1000, BATCH, "sgd", 0.01, 1e-3, **plan),
        seeds=[0],
    )


def matmul_rate(size=2048, repeats=5, dtype=torch.float32):
    """The best GFLOP/s of a square product on this machine, now."""
    a, b = torch.randn(size, size).to(dtype), torch.randn(size, size).to(dtype)
    took = []
    for _ in range(repeats):
        began = time.perf_counter()
        a @ b
        took.append(time.perf_counter() - began)
    return 2 * size**3 / min(took) / 1e9


def on_cpu(options):
    """Epochs of each kind in turn, several times over: the quietest of each, and their ratios."""
    torch.set_num_threads(options.threads)
    rng = np.random.default_rng(0)
    n = options.rows
    pixels = torch.as_tensor(rng.integers(0, 256, (n, WIDTH), dtype=np.uint8))
    X = (pixels.float() - 127.5) / 73.9
    labels = torch.as_tensor(rng.integers(0, CLASSES, n))
    candidates = torch.as_tensor(rng.random((n, CLASSES)) < 0.3) | nn.functional.one_hot(labels, CLASSES).bool()
    kinds = {
        "plain cross-entropy on tensors": plain_epoch(X, labels),
        "setwise PRODEN": our_trainer(X, candidates).run_epoch,
        "setwise PRODEN, pixels as bytes": our_trainer(pixels, candidates).run_epoch,
        "setwise PRODEN, bfloat16": our_trainer(X, candidates, precision="bfloat16").run_epoch,
        "PRODEN as papers write it": paper_epoch(X, candidates, labels),
    }
    seconds = {name: [] for name in kinds}
    for _ in range(options.repeats + 1):  # the first round warms up
        for name, run in kinds.items():
            began = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - began)
    best = {name: min(values[1:]) for name, values in seconds.items()}
    ours, rate = best["setwise PRODEN"], matmul_rate()
    result = {
        "machine": machine(torch.device("cpu")),
        "rows": n,
        "seconds": best,
        "all_seconds": seconds,
        "to_plain": ours / best["plain cross-entropy on tensors"],
        "to_papers_loop": ours / best["PRODEN as papers write it"],
        "matmul_gflops": rate,
        "bfloat16_matmul_gflops": matmul_rate(dtype=torch.bfloat16),
        "reached_gflops": FLOPS * n / ours / 1e9,
        "fraction_of_matmul": FLOPS * n / ours / 1e9 / rate,
        "bfloat16_to_papers_loop": best["setwise PRODEN, bfloat16"] / best["PRODEN as papers write it"],
        "bfloat16_speedup": ours / best["setwise PRODEN, bfloat16"],
    }
    for name, value in best.items():
        print(f"{name:36s} {value:8.3f} s an epoch of {n:,}")
    print(f"to plain cross-entropy {result['to_plain']:.3f} (bar 1.15)")
    print(f"to the loop as papers write it {result['to_papers_loop']:.3f} in float32 (bar 0.7)")
    print(f"the same in bfloat16, which precision='auto' takes here: {result['bfloat16_to_papers_loop']:.3f}")
    print(f"{result['fraction_of_matmul']:.0%} of {rate:.0f} GFLOP/s; bfloat16 {result['bfloat16_speedup']:.2f}×")
    return result


# -------------------------------------------------------------------- on a GPU


def on_gpu(options):
    """The 45 models of the paper's benchmarks in one training."""
    device = torch.device(options.device)
    cases, source, candidates, _, tests = image_cases(options.data, options.seeds, device)
    decay = {"mnist": 1e-3, "kmnist": 1e-4, "fashion_mnist": 1e-5}
    told = {"epochs": options.epochs, "precision": options.precision}
    settings = PartialLabelClassifier(**preset_settings("paper-mlp-text") | told).settings()
    wait = torch.cuda.synchronize if device.type == "cuda" else int
    wait()
    began = time.perf_counter()
    trainer = train_models(
        settings,
        ScaledRows(source, fit_scaling((33.3, 78.6), ())),
        candidates,
        [seed for *_, seed in cases],
        weight_decays=[decay[name] for name, *_ in cases],
    )
    wait()
    prepared = 0.0 if trainer.captured is None else trainer.captured.seconds
    took = time.perf_counter() - began - prepared
    accuracy = _test_accuracy(trainer, cases, tests, device)
    result = {
        "machine": machine(device),
        "models": len(cases),
        "epochs": options.epochs,
        "precision": options.precision,
        "seconds_compile_and_capture": prepared,
        "seconds_training": took,
        "tflops": FLOPS * ROWS * len(cases) * options.epochs / took / 1e12,
        "peak_gpu_gib": torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else 0.0,
        "test_accuracy": accuracy,
    }
    print(
        f"{len(cases)} models, {options.epochs} epochs, {options.precision}: {took:.2f} s of training (bar 25, "
        f"aim 10), {prepared:.1f} s of compilation and capture, {result['tflops']:.1f} TFLOP/s"
    )
    for name, value in accuracy.items():
        print(f"{name:28s} test accuracy {value:.2f}")
    return result


def _test_accuracy(trainer, cases, tests, device):
    stacked = torch.cat([torch.as_tensor(tests[name][0]) for name in IMAGES]).to(device)
    n = len(stacked) // len(IMAGES)
    offsets = torch.tensor([IMAGES.index(name) * n for name, *_ in cases], device=device)[:, None]
    held = ScaledRows(Resident(stacked, offsets + torch.arange(n, device=device)), trainer.source.scaling)
    predicted = trainer.logits(held).argmax(-1).cpu().numpy()
    right = {}
    for at, (name, contamination, _) in enumerate(cases):
        right.setdefault(f"{name} {contamination}", []).append((predicted[at] == tests[name][1]).mean())
    return {name: 100 * float(np.mean(values)) for name, values in right.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--device", default="cuda", help="where --gpu runs; cpu only to try the script out")
    parser.add_argument("--data", type=Path, help="the folder that holds mnist, fashion_mnist and kmnist")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--precision", choices=("float32", "tf32", "bfloat16"), default="tf32")
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of an epoch on the CPU")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    write(options.out, on_gpu(options) if options.gpu else on_cpu(options))


if __name__ == "__main__":
    main()
