"""What a type checker sees in a user's file: the signatures of public names that load on first use."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import setwise
import setwise.datasets
import setwise.learn
import setwise.report
import setwise.strategies
import setwise.tables

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
    "setwise.ConformalClassifier().predict_set([], no_such=1)",
    "setwise.ConformalClassifier().predict_p([], no_such=1)",
    "setwise.ConformalClassifier().guarantee(no_such=1)",
    "setwise.EMClassifier(None, no_such=1)",
    "setwise.PartialLabelClassifier(no_such=1)",
    "setwise.CoveringClassifier(no_such=1)",
    "setwise.estimate_inclusion([], [], no_such=1)",
    "setwise.suggest_verification(None, [], [], budget=1, no_such=1)",
    "setwise.plot_sets([], no_such=1)",
    "setwise.plot_sizes([], no_such=1)",
    "setwise.learn.PartialLabelClassifier(no_such=1)",
    "setwise.learn.EMClassifier(no_such=1)",
    "setwise.learn.ProdenLoss(no_such=1)",
    "setwise.datasets.contaminate([], setwise.datasets.Random(0.1), no_such=1)",
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
    assert "probabilities: Any" not in said
    assert "miss_rate: " in said  # of estimate_inclusion
    assert "confidence_level: " in said  # of predict_set


def test_models_answer_with_sets_and_guarantees_of_known_types(mypy):
    text = """
import setwise

model = setwise.ConformalClassifier(random_state=0)
reveal_type(model.predict_set([[1.0]]))
reveal_type(model.predict_set([[1.0]], [0.8, 0.9]))
reveal_type(model.guarantee())
reveal_type(model.guarantee([0.8, 0.9]))
"""
    one, several, claim, claims = (line.partition("Revealed type is ")[2] for line in mypy(text).splitlines())
    assert one.endswith('LabelSets"')
    assert "list[" in several
    assert "LabelSets]" in several
    assert claim.endswith('Guarantee"')
    assert "list[" in claims


READABLE = """
import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import setwise


class Tensor:
    def __array__(self, dtype=None):  # type: ignore[no-untyped-def]
        return np.ones((3, 2))


class Images:
    def __getitem__(self, index: int) -> Tensor:
        return Tensor()


P = np.full((3, 2), 0.5)
frame = pd.DataFrame(P, columns=["a", "b"])
votes = setwise.Votes.from_table({"item": [0, 1, 2], "annotator": ["x", "y", "x"], "label": ["a", "b", "a"]})
sets = setwise.LabelSets.from_lists([{"a"}, {"a", "b"}, {"b"}])
found = setwise.conformalize(P, [{0}, {0, 1}, {1}], random_state=0, by=["u", None, "v"], row_ids=[3, 4, 5])
setwise.conformalize([[0.5, 0.5]], [[0, 1]], verified=[None], sample_weight=[1.0], miss_rate=0)
setwise.conformalize(frame, sets, verified=pd.Series(["a", None, None]), random_state=np.random.default_rng(0))
setwise.conformalize(Tensor(), Tensor(), groups=Tensor(), assume=np.eye(2))
setwise.conformalize(P, votes, "crowd", classes=["a", "b"], assume="independent", random_state=np.int64(1))
top = setwise.TopK(np.array([[1, 0]]), np.array([[0.6, 0.4]]), 9)
found.predict_set(top, 0.8, candidates=votes, by="size").to_lists()
float(found.threshold(0.8, by=("u", 1)))
model = setwise.ConformalClassifier(random_state=np.random.RandomState(0)).fit(frame, [{"a"}, {"b"}, ["a", "b"]])
model.conformalize(Tensor(), votes, random_state=0, missing="drop", row_ids=["r", "s", "t"])
model.predict_set(Images())
setwise.evaluate(sets, ["a", None, "b"], by=pd.Series(["u", "v", "u"]))
setwise.evaluate(P > 0.4, [0, 1, 1], candidates=[{0}, (0, 1), frozenset([1])])
"""


def test_whatever_can_be_read_is_accepted(mypy):
    assert mypy(READABLE) == ""


def test_what_cannot_be_read_is_refused(mypy):
    calls = [
        "setwise.conformalize([[0.5, 0.5]], [[0]], random_state='seed')",
        "setwise.conformalize([[0.5, 0.5]], len)",
        "setwise.ConformalClassifier().conformalize([[1.0]], [[0]], no_such=1)",
        "setwise.ConformalClassifier().conformalize([[1.0]], [[0]], missing='ignore')",
        "setwise.ConformalClassifier().fit(None, [[0]])",
    ]
    said = mypy("import setwise\n\n" + "\n".join(calls))
    assert [call for line, call in enumerate(calls, start=3) if f"user.py:{line}: error: " not in said] == []


def test_a_wrong_argument_is_refused(mypy):
    text = "import setwise, setwise.datasets, setwise.tables\nimport setwise.learn\n\n\n" + "\n".join(CALLS)
    said = mypy(text)
    missed = [call for line, call in enumerate(CALLS, start=5) if f"user.py:{line}: error: Unexpected" not in said]
    assert missed == []


PACKAGES = [setwise, setwise.datasets, setwise.tables, setwise.learn, setwise.report, setwise.strategies]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_imported_where_a_type_checker_sees_it(package):
    tree = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    plain = [node for outer in tree.body for node in (outer.body if isinstance(outer, ast.If) else [outer])]
    imported = {
        alias.asname or alias.name for node in plain if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert set(package.__all__) - imported == set()
