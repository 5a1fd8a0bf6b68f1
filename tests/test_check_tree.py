"""`scripts/check_tree.py`, which `make lint` runs, finds import cycles and repeated names of modules."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "check_tree.py"


@pytest.fixture
def check(tmp_path):
    def run(files):
        for name, text in files.items():
            path = tmp_path / "shop" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, SCRIPT, tmp_path / "shop"], capture_output=True, text=True, check=False
        )
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
