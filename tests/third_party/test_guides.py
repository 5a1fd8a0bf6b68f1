"""Pages about other libraries show what happens."""

import doctest
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent.parent / "docs"
NEEDS = runpy.run_path(str(DOCS / "conftest.py"))["NEEDS"]
pytestmark = pytest.mark.filterwarnings("default")  # other libraries' warnings are theirs


@pytest.mark.parametrize("page", NEEDS)
def test_every_example_of_the_page_holds(page):
    pytest.importorskip(NEEDS[page], reason=f"{NEEDS[page]} is not installed: run `make test-third-party`")
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    found = doctest.testfile(str(DOCS / page), module_relative=False, optionflags=flags)
    assert found.attempted > 10
    assert found.failed == 0
