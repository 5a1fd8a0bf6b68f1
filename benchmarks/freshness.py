"""Whether code has changed since a commit: by git, and by what the code says, not by comments or how it is laid out."""

from __future__ import annotations

import ast
import tomllib

from summary import ROOT, git

ASKED = ("requires-python", "dependencies", "optional-dependencies")
"""What of pyproject.toml decides which versions are tested."""


def history():
    """Whether git knows all commits here: not in a source distribution, a shallow clone or a folder of another project."""
    return git("rev-parse", "--is-shallow-repository", "--show-cdup") == "false"


def changed(commit, paths):
    """Up to four files among these paths (git's) that say something else than at the commit; None where it is unknown."""
    if git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}") is None:
        return None
    names = (git("diff", "--name-only", "--no-renames", "--relative", commit, "--", *paths) or "").splitlines()
    found = []
    for name in names:
        file = ROOT / name
        now = file.read_text("utf-8") if file.exists() else None
        before = git("show", f"{commit}:./{name}")
        if now is None or before is None or meaning(name, now) != meaning(name, before):
            found.append(name)
        if len(found) == 4:
            break
    return found


def meaning(name, text):
    """What a file says: code without comments and docstrings, which packages are asked for, or lines."""
    if name.endswith(".py"):
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(body := getattr(node, "body", None), list):
                node.body = [one for one in body if not is_text(one)]
        return ast.dump(tree)
    if name == "pyproject.toml":
        return {key: tomllib.loads(text)["project"].get(key) for key in ASKED}
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def is_text(statement):
    """Whether a statement is a docstring, of whatever it stands below."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
