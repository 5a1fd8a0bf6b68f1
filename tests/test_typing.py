"""What a type checker sees in a user's file: the signatures of public names that load on first use."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import setwise
import setwise.data
import setwise.learn
import setwise.report

GOOD = """
import numpy as np
import setwise
from setwise.learn import PartialLabelClassifier

model = setwise.ConformalClassifier(random_state=0)
reveal_type(model)
reveal_type(setwise.CrossConformalClassifier(cv=3))
reveal_type(setwise.EMClassifier)
reveal_type(setwise.estimate_inclusion)
reveal_type(setwise.plot_sets)
reveal_type(PartialLabelClassifier(random_state=0))
reveal_type(model.predict_set)
"""

CALLS = [
    "setwise.ConformalClassifier(no_such=1)",
    "setwise.CrossConformalClassifier(no_such=1)",
    "setwise.EMClassifier(None, no_such=1)",
    "setwise.PartialLabelClassifier(no_such=1)",
    "setwise.CoveringClassifier(no_such=1)",
    "setwise.estimate_inclusion([], [], no_such=1)",
    "setwise.suggest_verification(None, [], [], budget=1, no_such=1)",
    "setwise.plot_sets([], no_such=1)",
    "setwise.plot_sizes([], no_such=1)",
    "setwise.learn.PartialLabelClassifier(no_such=1)",
    "setwise.learn.PartialLabelKNN(no_such=1)",
    "setwise.learn.ProdenLoss(no_such=1)",
    "setwise.data.contaminate([], setwise.data.Random(0.1), no_such=1)",
]


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    """What mypy says of a file, line by line, with the installed package."""
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("typing")

    def check(text):
        file = folder / "user.py"
        file.write_text(text, encoding="utf-8")
        settings = "[mypy]\nstrict = True\nfollow_imports = silent\n[mypy-torch.*]\nfollow_imports = skip\n"
        (folder / "mypy.ini").write_text(settings, encoding="utf-8")
        source = Path(setwise.__file__).parents[1]
        found = subprocess.run(
            [sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir=cache", file.name],
            cwd=folder,
            env={**os.environ, "MYPYPATH": str(source)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert not found.stderr
        return found.stdout

    return check


def test_lazily_loaded_names_have_their_types(mypy):
    said = mypy(GOOD)
    assert "error" not in said
    assert '"Any"' not in said
    for name in ("ConformalClassifier", "CrossConformalClassifier", "EMClassifier", "PartialLabelClassifier"):
        assert f".{name}" in said
    assert said.count("probabilities: Any") == 1  # of estimate_inclusion
    assert "confidence_level: " in said  # of predict_set


def test_a_wrong_argument_is_refused(mypy):
    text = "import setwise\nimport setwise.data\nimport setwise.learn\n\n" + "\n".join(CALLS)
    said = mypy(text)
    missed = [call for line, call in enumerate(CALLS, start=5) if f"user.py:{line}: error: Unexpected" not in said]
    assert missed == []


@pytest.mark.parametrize("package", [setwise, setwise.data, setwise.learn, setwise.report, setwise.strategies])
def test_every_public_name_is_imported_where_a_type_checker_sees_it(package):
    tree = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    plain = [node for outer in tree.body for node in (outer.body if isinstance(outer, ast.If) else [outer])]
    imported = {
        alias.asname or alias.name for node in plain if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert set(package.__all__) - imported == set()
