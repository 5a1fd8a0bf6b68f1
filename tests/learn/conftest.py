"""One thread per test process: many small products are slower on two, and runs share the machine."""

import subprocess
import sys

import pytest
import torch

from ..data.conftest import benchmarks  # noqa: F401, TID252 - a fixture


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def bfloat16():
    """Skips where bfloat16 does not run: some virtual machines report instructions that end the process."""
    probe = (
        "import torch; torch.nn.functional.linear(*(torch.ones(64, 64, dtype=torch.bfloat16) for _ in range(2)))"
    )
    if subprocess.run([sys.executable, "-c", probe], capture_output=True, check=False).returncode:
        pytest.skip("this machine reports bfloat16 instructions and does not execute them")
