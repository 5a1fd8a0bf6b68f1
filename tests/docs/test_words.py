"""Prose for users stays short, and says things in the words of the glossary."""

import json
import re

import pytest

from .conftest import DOCS, FENCE, ROOT

PAGES = ["index.md", "install.md", "five-minutes.md", "glossary.md", "command-line.md", "data-files.md"]
USERS = [ROOT / "README.md", *(DOCS / page for page in PAGES), *sorted((DOCS / "guide").glob("*.*"))]
GENERATED = "## What it costs"  # the end of guide/scale.md, which a benchmark writes
GLOSSARY = "annotator calibration candidates confidence guarantee item max error set strategy triage verified votes"
OTHER_WORDS = (
    r"promises?|claims?|premises?|whoever|speaks against|not knowable|samples of checks|checks|checked|in words"
)


def prose(page):
    """The words that somebody reads: no code, tables, addresses or directives."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    text = FENCE.sub("", text.split(GENERATED)[0])
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"`[^`]*`", "CODE", text)
    lines = (line for line in text.splitlines() if not line.startswith(("|", "    ", ":::")))
    return "\n".join(lines)


def count(page):
    return len(re.findall(r"\w[\w’'.-]*", prose(page)))


def test_the_pages_for_users_have_at_most_15_000_words_and_the_readme_900():
    assert count(ROOT / "README.md") <= 900
    assert sum(map(count, USERS)) <= 15_000


def test_the_glossary_has_the_twelve_words():
    page = (DOCS / "glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^(\w[\w ]*)\n: ", page, re.MULTILINE)
    assert " ".join(terms) == GLOSSARY
    assert len(terms) == 12


@pytest.mark.parametrize("page", USERS, ids=lambda page: page.name)
def test_pages_for_users_use_the_words_of_the_glossary(page):
    found = re.findall(rf"\b(?:{OTHER_WORDS})\b", prose(page), re.IGNORECASE)
    assert not found


@pytest.mark.parametrize("page", USERS, ids=lambda page: page.name)
def test_no_sentence_for_users_begins_with_of(page):
    assert not re.findall(r"(?:^|[.!?:]\s+)Of\s.*", prose(page), re.MULTILINE)


@pytest.mark.parametrize("page", sorted((DOCS / "guide").glob("*.md")), ids=lambda page: page.name)
def test_every_guide_ends_with_what_was_gained(page):
    headings = re.findall(r"^## .*", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    assert page.name == "index.md" or headings[-1] in ("## What was gained", GENERATED)
