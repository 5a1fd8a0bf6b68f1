"""`scripts/check_tree.py`, which `make lint` runs, finds cycles, repeated names, and tests far from modules."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "check_tree.py"


@pytest.fixture
def check(tmp_path):
    def run(files, tests=()):
        written = {f"shop/{name}": text for name, text in files.items()} | dict.fromkeys(tests, "")
        for name, text in written.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        folders = [tmp_path / "shop", *([tmp_path / "tests"] if tests else [])]
        done = subprocess.run([sys.executable, SCRIPT, *folders], capture_output=True, text=True, check=False)
        assert not done.stderr
        return done.returncode, done.stdout

    return run


def test_an_orderly_tree_passes(check):
    files = {
        "__init__.py": "from shop.b import thing",
        "a.py": "import os",
        "b.py": "from shop import a\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import shop.c",
        "c.py": "from .b import thing",
        "sub/__init__.py": "from shop.sub.base import x",
        "sub/base.py": "",
        "base.py": "",
        "cli/a.py": "",
    }
    assert check(files) == (0, "8 modules: in order.\n")


def test_cycles_are_found_also_where_a_function_hides_them(check):
    code, said = check(
        {
            "a.py": "from shop.sub import b",
            "sub/__init__.py": "",
            "sub/b.py": "def f():\n    from ..c import g",
            "c.py": "import shop.a",
        }
    )
    assert code == 1
    assert "shop.a imports shop.sub.b" in said
    assert "b.py:2)" in said
    assert "shop.c imports shop.a" in said


def test_names_that_occur_twice_are_found(check):
    code, said = check({"plots.py": "", "sub/plots.py": "", "cli/plots.py": ""})
    assert code == 1
    assert "plots occurs 2 times" in said


def test_tests_lie_under_the_path_of_their_module_or_among_the_exceptions(check):
    files = {"a.py": "", "_b.py": "", "sub/c.py": ""}
    kept = [
        "tests/test_a.py",
        "tests/test_b.py",
        "tests/sub/test_c.py",
        "tests/docs/test_d.py",
        "tests/sub/data.py",
    ]
    assert check(files, kept)[0] == 0
    code, said = check(files, ["tests/sub/test_a.py", "tests/test_c.py"])
    assert code == 1
    assert "test_a.py tests no module of its name" in said
    assert "test_c.py tests no module" in said
    assert said.count("tests no module") == 2


def test_a_public_name_of_two_things_is_found(check):
    files = {
        "a.py": "def read(): ...\ndef _own(): ...",
        "sub/b.py": "class read: ...\ndef _own(): ...",
        "sub/__init__.py": "",
    }
    code, said = check(files)
    assert code == 1
    assert "read is the name of 2 things" in said
    assert "_own" not in said
