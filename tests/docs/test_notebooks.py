"""Notebooks run as they stand (`make docs` shows what comes out), and are kept without output."""

import json

import pytest
from matplotlib import pyplot as plt

from .conftest import DOCS

NOTEBOOKS = sorted((DOCS / "guide").glob("*.ipynb"))


def test_there_is_one():
    assert NOTEBOOKS


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_the_notebook_runs(notebook):
    cells = [cell for cell in json.loads(notebook.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    names = {}
    for cell in cells:
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
        exec("".join(line for line in cell["source"] if not line.startswith("%")), names)  # noqa: S102
    plt.close("all")
