"""Where setwise warns, withdraws a guarantee or refuses for what the data show: found in its code."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.honest.judge import SOURCE

SHOWN = {"refuted", "truth_refuted", "seen", "differs", "chosen", "selection", "written"}
"""Attributes that hold what the data showed, on which a refusal may rest."""

_MADE = {
    "MisuseWarning": "warns",
    "SpellingWarning": "warns",
    "Finding": "withdraws",
    "AssumptionRefuted": "refuses",
}


def sites() -> dict[str, set[str]]:
    """Each such function, and what it does."""
    found: dict[str, set[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        for name, function in _functions(ast.parse(path.read_text(encoding="utf-8")), module):
            if does := {what for node in ast.walk(function) for what in _does(node)}:
                found[name] = does
    return found


def _functions(node: ast.AST, name: str) -> Iterator[tuple[str, ast.AST]]:
    """The functions of modules and of classes; what is defined inside a function belongs to it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield f"{name}.{child.name}", child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{name}.{child.name}")


def _does(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call):
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name in _MADE:
            yield _MADE[name]
        if name == "warn" and isinstance(called, ast.Attribute) and getattr(called.value, "id", "") == "warnings":
            yield "warns"
        if name == "Premise" and any(map(_says_refuted, ast.walk(node))):
            yield "withdraws"
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    if value is not None and any(map(_says_refuted, _outside_comparisons(value))):
        yield "withdraws"
    if isinstance(node, ast.If) and any(isinstance(inner, ast.Raise) for inner in node.body):
        tested = {one.attr for one in ast.walk(node.test) if isinstance(one, ast.Attribute)}
        if tested & SHOWN or any(map(_says_refuted, ast.walk(node.test))):
            yield "refuses"


def _says_refuted(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == "refuted by the data"


def _outside_comparisons(node: ast.AST) -> Iterator[ast.AST]:
    if not isinstance(node, ast.Compare):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from _outside_comparisons(child)
