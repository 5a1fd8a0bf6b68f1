"""Ctrl-C at any moment, imports included: one sentence, the exit status of shells, and no traceback."""

import signal
import subprocess
import sys

import pytest
from sklearn.linear_model import LogisticRegression

from setwise import ConformalClassifier
from setwise.cli.interruption import SENTENCE, STATUS, watch_interruptions
from setwise.estimators.model_directory import save_model
from setwise.labels.label_sets import LabelSets

from .conftest import rows, table

PREDICT = ["predict", "model", "new.csv", "--out", "sets.csv", "--force"]
PRESSED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a terminal

class Presses:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            {press}

sys.meta_path.insert(0, Presses())
sys.argv[1:] = {arguments!r}
from setwise.cli import main
main()
"""
PRESS = "os.kill(os.getpid(), signal.SIGINT)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("interrupted")
    X, lists, _ = rows(200, 0)
    sets = LabelSets.from_lists(lists)
    model = ConformalClassifier(LogisticRegression(), random_state=0).fit(X, sets)
    save_model(model, folder / "model", feature_names=list("wxyz"))
    table(folder / "new.csv", 50, 1)
    (folder / "sets.csv").write_text("old")
    return folder


def pressed(folder, module, press=PRESS):
    """What is left of `setwise predict` where somebody pressed Ctrl-C as this module was to be imported."""
    program = PRESSED.format(module=module, press=press, arguments=PREDICT)
    return subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)


MOMENTS = ["typer", "setwise.cli.predict", "numpy.linalg", "pyarrow.compute", "sklearn.base"]


@pytest.mark.parametrize("module", MOMENTS)
def test_an_interrupted_import_leaves_one_sentence(folder, module):
    done = pressed(folder, module)
    assert (done.returncode, done.stdout, done.stderr) == (STATUS, "", SENTENCE)
    assert (folder / "sets.csv").read_text() == "old"


def test_a_library_does_not_take_the_interruption_for_an_error_of_its_own(folder):
    press = f"""
            import ctypes
            try:
                {PRESS}
            except Exception:
                raise ImportError("failed to import")
            except BaseException as error:  # printed by C code in the middle of an import, as numpy's does
                ctypes.pythonapi.PyErr_SetObject(ctypes.py_object(type(error)), ctypes.py_object(error))"""
    done = pressed(folder, "setwise.cli.predict", press)
    assert (done.returncode, done.stderr) == (STATUS, SENTENCE)


def test_a_second_time_ends_the_process_at_once(folder):
    press = f"""
            try:
                {PRESS}
            finally:
                {PRESS}"""
    done = pressed(folder, "setwise.cli.predict", press)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


def test_who_started_the_process_may_have_ctrl_c_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with watch_interruptions():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_command_that_cannot_be_imported_is_an_error_of_one_line(folder):
    done = pressed(folder, "setwise.cli.predict", "raise ModuleNotFoundError('No module named x', name='x')")
    assert (done.returncode, done.stderr) == (2, "error: No module named x\n")
