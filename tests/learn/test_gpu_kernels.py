"""The kernels follow the plain operations: on a GPU, and by Triton's interpreter where Triton is installed."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from setwise.learn import gpu_kernels
from setwise.learn.batches import Resident
from setwise.learn.losses import as_loss
from setwise.learn.networks import build_network
from setwise.learn.scaling import fit_scaling, stack_scalings
from setwise.learn.trainer import Plan, Trainer

ROWS, CLASSES = 70, 5
CASES = [
    (optimizer, loss, norm)
    for optimizer in ("sgd", "adam", "adamw")
    for loss in ("proden", "naive", "cc")
    for norm in (True, False)
]


def trained(optimizer, loss, norm, device):
    """Three models on rows of their own, with pixels of their own scaling, after two epochs."""
    draw = torch.Generator().manual_seed(1)
    pixels = torch.randint(0, 256, (150, 12), generator=draw).to(torch.uint8)
    rows = torch.stack([torch.randperm(150, generator=draw)[:ROWS] for _ in range(3)])
    candidates = torch.rand(3, ROWS, CLASSES, generator=draw) < 0.4
    candidates[..., 0], candidates[0, 3] = True, False
    trainer = Trainer(
        build_network("mlp", [0, 1, 2], (12,), CLASSES, hidden_sizes=(20, 37), batch_norm=norm).to(device),
        stack_scalings([fit_scaling((100.0 + i, 50.0 + i), ()) for i in range(3)]).to(device),
        as_loss(loss, ROWS, 3),
        Resident(pixels.to(device), rows.to(device)),
        candidates.to(device),
        plan=Plan(2, 16, optimizer, 0.05, 1e-3),
        seeds=[0, 1, 2],
    )
    trainer.optimizer.eps = 1e-2  # with 1e-8 Adam takes whole steps along slopes that are nothing but rounding
    return trainer.fit()


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
    subprocess.run([sys.executable, here.name], cwd=here.parent, env=environment, check=True)


def test_a_cpu_does_without_kernels():
    assert not gpu_kernels.usable(torch.zeros(2))


def interpreted():
    """Some cases with the kernels and without, in the host's memory: the interpreter is slow."""
    usable = gpu_kernels.usable
    for case in (("sgd", "proden", True), ("adam", "naive", False), ("adamw", "cc", True)):
        wanted = trained(*case, "cpu")
        gpu_kernels.usable = lambda *tensors: all(t.dtype == torch.float32 and t.is_contiguous() for t in tensors)
        found = trained(*case, "cpu")
        gpu_kernels.usable = usable
        compare(found, wanted)


if __name__ == "__main__":
    interpreted()
