"""What needs no torch works without it; what needs it names it in the error."""

import subprocess
import sys

BLOCKED = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        found = (finder.find_spec(name, path, target) for finder in others if name.split(".")[0] != "torch")
        return next((spec for spec in found if spec is not None), None)

others, sys.meta_path = sys.meta_path, [NoTorch()]
"""


def run(code):
    return subprocess.run([sys.executable, "-c", BLOCKED + code], capture_output=True, text=True, check=False)


def test_em_needs_no_torch():
    done = run(
        "from setwise.learn import EMClassifier\n"
        "X, y = [[0.0], [0.1], [0.9], [1.0]] * 5, [['a'], ['a', 'b'], ['a', 'b'], ['b']] * 5\n"
        "print(*EMClassifier().fit(X, y).predict([[0.0], [1.0]]))"
    )
    assert done.stdout.split() == ["a", "b"], done.stderr


def test_what_needs_torch_names_the_extra():
    done = run("import setwise; setwise.PartialLabelClassifier")
    assert "pip install 'setwise[learn]'" in done.stderr


def test_all_names_of_the_package_are_those_that_work():
    done = run("from setwise import *\nprint(EMClassifier, conformalize)")
    assert done.returncode == 0, done.stderr
