import subprocess
import sys

import pytest

import setwise.tables


def test_every_public_name_is_there_and_an_unknown_one_is_not():
    for name in setwise.tables.__all__:
        assert getattr(setwise.tables, name) is not None
    assert dir(setwise.tables) == sorted(setwise.tables.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        setwise.tables.nonsense  # noqa: B018


def test_a_part_that_is_not_installed_is_named_with_the_remedy():
    without = "import sys; sys.modules['pyarrow'] = None; "
    code = without + "from setwise.datasets import load, contaminate; from setwise.tables import read_table"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (
        "setwise.tables.read_table needs pyarrow, which is not installed: pip install 'setwise[data]'."
        in done.stderr
    )


def test_nothing_heavy_is_imported_before_it_is_used():
    code = (
        "import sys, setwise, setwise.datasets as d, setwise.tables; d.load, d.contaminate, d.Random;"
        "bad = {'torch', 'pyarrow', 'pandas', 'polars', 'pooch', 'narwhals', 'scipy.io'} & set(sys.modules);"
        "print(bad); sys.exit(bool(bad))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
