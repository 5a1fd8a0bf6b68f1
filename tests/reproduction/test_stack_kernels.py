"""The kernels follow the plain operations: on a GPU, and by Triton's interpreter where Triton is installed."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from reproduction import gpu_kernels, stack_kernels
from reproduction.stacked_optimizers import StackedAdam
from reproduction.training import ScaledRows, stack_scalings, train_models

from setwise.learn import PartialLabelClassifier
from setwise.learn.batches import Resident
from setwise.learn.scaling import fit_scaling

ROWS, CLASSES = 70, 5
CASES = [
    (optimizer, loss, norm)
    for optimizer in ("sgd", "adam")
    for loss in ("proden", "naive")
    for norm in (True, False)
]


def trained(optimizer, loss, norm, device):
    """Three models on rows of their own, with pixels of their own scaling, after two epochs."""
    draw = torch.Generator().manual_seed(1)
    pixels = torch.randint(0, 256, (150, 12), generator=draw).to(torch.uint8)
    rows = torch.stack([torch.randperm(150, generator=draw)[:ROWS] for _ in range(3)])
    candidates = torch.rand(3, ROWS, CLASSES, generator=draw) < 0.4
    candidates[..., 0], candidates[0, 3] = True, False
    settings = PartialLabelClassifier(
        "mlp",
        loss,
        None,
        (20, 37),
        epochs=2,
        batch_size=16,
        optimizer=optimizer,
        batch_norm=norm,
        precision="float32",
    ).settings()
    usual = StackedAdam.eps
    StackedAdam.eps = 1e-2  # with 1e-8 it takes whole steps along slopes that are nothing but rounding
    try:
        return train_models(
            settings,
            ScaledRows(
                Resident(pixels.to(device), rows.to(device)),
                stack_scalings([fit_scaling((100.0 + i, 50.0 + i), ()) for i in range(3)]),
            ),
            candidates.to(device),
            [0, 1, 2],
            learning_rates=[0.05, 0.1, 0.02],
            weight_decays=[1e-3, 0.0, 1e-2],
        )
    finally:
        StackedAdam.eps = usual


def compare(found, wanted):
    torch.testing.assert_close(found.losses.cpu(), wanted.losses, rtol=1e-4, atol=1e-5)
    for a, b in zip(found.tensors(), wanted.tensors(), strict=True):
        torch.testing.assert_close(a.cpu(), b, rtol=1e-3, atol=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="NOT TESTED: no GPU")
@pytest.mark.parametrize(("optimizer", "loss", "norm"), CASES)
def test_kernels_on_a_gpu_follow_the_plain_operations(optimizer, loss, norm):
    assert gpu_kernels.usable(torch.zeros(2, device="cuda"))
    compare(trained(optimizer, loss, norm, "cuda"), trained(optimizer, loss, norm, "cpu"))


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="NOT TESTED: no Triton")
def test_interpreted_kernels_follow_the_plain_operations():
    here = Path(__file__)
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, str(here)], cwd=here.parents[2], env=environment, check=True)


def test_a_cpu_does_without_kernels():
    assert not gpu_kernels.usable(torch.zeros(2))


@pytest.mark.parametrize(
    ("scale", "dtype", "at_once"),
    [
        ((1.0, 2.0), torch.uint8, True),
        ((1.0, 2.0), torch.float32, True),
        ((1.0, 2.0), torch.float64, False),
        ("standard", torch.float32, False),
        ("rows", torch.float32, False),
        (None, torch.float32, False),
    ],
)
def test_only_features_with_one_shift_are_scaled_at_once(scale, dtype, at_once, monkeypatch):
    taken = []

    def scaled_batch(features, selected, index, *_):
        taken.append(index)
        return torch.zeros(*index.shape, features.shape[1])

    monkeypatch.setattr(stack_kernels, "usable", lambda *_: True)
    monkeypatch.setattr(stack_kernels, "scaled_batch", scaled_batch)
    features = (100 * torch.rand(9, 3)).to(dtype)
    one = fit_scaling(scale, [features])
    for scaling in (
        one,
        stack_scalings([one] * 3),
        stack_scalings([one, fit_scaling(scale, [features[:4] + 1]), one]),
    ):
        assert ScaledRows(Resident(features), scaling).batch(torch.zeros(3, 2, dtype=torch.int64)).shape == (
            3,
            2,
            3,
        )
    assert len(taken) == (3 if at_once else 0)


def interpreted():
    """Some cases with the kernels and without, in the host's memory: the interpreter is slow."""
    usable = gpu_kernels.usable
    for case in (("sgd", "proden", True), ("adam", "naive", False)):
        wanted = trained(*case, "cpu")
        anywhere = lambda *tensors: all(t.dtype == torch.float32 and t.is_contiguous() for t in tensors)  # noqa: E731
        gpu_kernels.usable = stack_kernels.usable = anywhere
        found = trained(*case, "cpu")
        gpu_kernels.usable = stack_kernels.usable = usable
        compare(found, wanted)


if __name__ == "__main__":
    interpreted()
