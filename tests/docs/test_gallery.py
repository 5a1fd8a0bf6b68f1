"""Every script of the gallery runs as it stands, draws, and reads nothing but what comes with scikit-learn."""

import runpy

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt

from .conftest import DOCS

SCRIPTS = sorted((DOCS / "gallery").glob("*.py"))


def test_there_are_at_least_eight():
    assert len(SCRIPTS) >= 8
    assert all(script.name.startswith("plot_") for script in SCRIPTS)  # others would not be run by the build


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_script_runs_and_draws(script, monkeypatch):
    monkeypatch.setattr("socket.socket.connect", _no_network)
    mpl.use("Agg")
    plt.close("all")
    runpy.run_path(str(script), run_name="__main__")
    assert plt.get_fignums()
    assert all(figure.axes for figure in map(plt.figure, plt.get_fignums()))
    plt.close("all")


def _no_network(*_):
    raise AssertionError("a script of the gallery asked the network")
