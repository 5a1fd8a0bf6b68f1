"""`benchmarks/mutation.py`: which mutants are made, and where their code goes."""

import ast
import importlib
from pathlib import Path

import pytest

FILE = Path(__file__).parent.parent / "benchmarks" / "mutation.py"
SOURCE = """
from typing import Protocol

LIMIT = 3

class Shape(Protocol):
    sides = 4

class Square:
    side: int | None = 5
    def area(self, times: int = 6) -> int | None:
        if self.side > 7:
            raise ValueError(f"{8 + 1}" + "9" * 9)
        return self.side * times
    def __repr__(self):
        return "10" * 10
"""


@pytest.fixture(scope="module")
def mutation():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FILE.parent)
        yield importlib.import_module("mutation")


def test_annotations_messages_and_protocols_are_left_out(mutation):
    tree = ast.parse(SOURCE)
    left_out = mutation._left_out(tree)
    numbers = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, int)]
    kept = [n.value for n in numbers if not any(a <= (n.lineno, n.col_offset) < b for a, b in left_out)]
    assert sorted(kept) == [3, 5, 6, 7]
    assert not any(a <= (11, SOURCE.splitlines()[10].index("= 6")) < b for a, b in left_out)
    assert any(a <= (11, SOURCE.splitlines()[10].index("| None")) < b for a, b in left_out)


@pytest.mark.parametrize(
    ("old", "new", "functions"),
    [
        ("> 7", "> 8", ("Square.area:11",)),
        ("* times", "/ times", ("Square.area:11",)),
        ("LIMIT = 3", "LIMIT = 4", ()),
        ("times: int = 6", "times: int = 7", ()),
        ("> 7", "> (7)", None),
    ],
)
def test_code_is_exchanged_in_functions_and_imports_are_made_anew(old, new, functions, mutation):
    one, other = (compile(text, "square.py", "exec") for text in (SOURCE, SOURCE.replace(old, new)))
    assert mutation._changed(one, other) == functions


def test_exchanges_stay_within_their_family(mutation):
    for operator, serious in {
        "core/ReplaceBinaryOperator_Add_Sub": True,
        "core/ReplaceBinaryOperator_Add_LShift": False,
        "core/ReplaceComparisonOperator_Lt_LtE": True,
        "core/ReplaceComparisonOperator_Eq_Is": False,
        "core/ReplaceComparisonOperator_Is_IsNot": True,
        "core/AddNot": True,
    }.items():
        assert mutation._serious(operator) == serious
    assert mutation._stars("def f(a, *, b): ...") != mutation._stars("def f(a, /, b): ...")
