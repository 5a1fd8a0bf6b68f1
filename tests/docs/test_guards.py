"""The generated part of docs/guards.md is what the kept results say, and holds every design and every guard."""

import importlib
import json

import pytest

from tests.docs.conftest import DOCS, ROOT
from tests.honest.guards import GUARDS


@pytest.fixture
def guards(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("guards")


def test_the_page_is_what_the_kept_results_say(guards):
    assert (DOCS / "guards.md").read_text("utf-8") == guards.page(), "run `python benchmarks/guards.py`"


def test_at_least_forty_designs_got_their_guarantee_and_its_coverage():
    result = json.loads((ROOT / "benchmarks" / "results" / "honest.json").read_text("utf-8"))
    assert len(result["designs"]) >= 40
    assert {found["verdict"] for found in result["designs"].values()} == {"kept"}


def test_every_guard_has_a_row():
    text = (DOCS / "guards.md").read_text("utf-8")
    assert all(f"| `{guard}` |" in text for guard in GUARDS)
