"""What stands in README and docs is run, linked and true."""

import doctest
import fnmatch
import importlib
import re
import runpy
import tomllib

import pytest

import setwise

from .conftest import DOCS, FENCE, ROOT, pages

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NOT_CODE = {"", "text", "json", "bibtex"}  # output, formats; commands of the README are run by tests/cli
COMMANDS = ("command-line.md", "round-trip.md", "ship-a-data-set.md")
RUN_BY_OTHERS = {page: {"console"} for page in COMMANDS}  # by tests/cli/test_docs.py
EXAMPLES = re.compile(r"^>>> ", re.MULTILINE)


def ids(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", pages(), ids=ids)
def test_every_python_block_is_a_doctest_that_pytest_runs(page):
    text = page.read_text(encoding="utf-8")
    for _, language, body in FENCE.findall(text):
        if language == "python":
            assert body.startswith(">>> "), f"{page.name}: a block that no test runs:\n{body}"
        elif not language.startswith("{"):
            assert language in NOT_CODE | RUN_BY_OTHERS.get(page.name, set()), (
                f"{page.name}: a block of {language!r}"
            )
    shown = len(EXAMPLES.findall(text))
    assert len(doctest.DocTestParser().get_examples(text)) == shown


def test_pytest_looks_at_every_page():
    options = PROJECT["tool"]["pytest"]["ini_options"]
    assert {"README.md", "docs"} <= set(options["testpaths"])
    assert "--doctest-glob='*.md'" in options["addopts"]
    ours = runpy.run_path(str(DOCS / "conftest.py"))
    for page in pages()[1:]:
        inside = str(page.relative_to(DOCS))
        left_out = any(fnmatch.fnmatch(inside, pattern) for pattern in ours["collect_ignore_glob"])
        assert left_out == (inside in ours["NEEDS"]), inside  # tests/third_party/test_guides.py runs these


@pytest.mark.parametrize("page", pages(), ids=ids)
def test_links_to_files_lead_somewhere(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://", "#")):
            continue
        path = (page.parent / target.split("#")[0]).resolve()
        if "auto_examples" in path.parts:
            made_from = DOCS / "gallery" / path.with_suffix(".py").name
            assert path.name == "index.rst" or made_from.exists(), f"{page.name}: {target}"
        else:
            assert path.exists(), f"{page.name}: {target}"


def test_every_page_can_be_reached_from_the_first():
    listed = {}
    for page in [*pages()[1:], DOCS / "reference" / "api.rst"]:
        text = page.read_text(encoding="utf-8")
        blocks = [body for _, language, body in FENCE.findall(text) if language == "{toctree}"]
        names = [line for block in blocks for line in block.splitlines() if line and not line.startswith(":")]
        paths = [re.sub(r".*<(.*)>$", r"\1", name) for name in names]
        listed[page] = {(page.parent / path).resolve() for path in paths}
    reached, waiting = set(), [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        for entry in listed.get(page, ()):
            found = {one for one in listed if fnmatch.fnmatch(str(one.with_suffix("")), str(entry))}
            waiting += found - reached
    assert reached == set(listed)


@pytest.mark.parametrize(
    "name",
    ["setwise", "setwise.learn", "setwise.tables", "setwise.datasets", "setwise.strategies", "setwise.report"],
)
def test_every_public_name_is_in_the_reference(name):
    text = (DOCS / "reference" / "api.rst").read_text(encoding="utf-8")
    words = set(re.findall(r"[A-Za-z_]+", text))
    public = set(importlib.import_module(name).__all__) - {"__version__", "strategies"}
    assert public <= words, sorted(public - words)


@pytest.mark.parametrize(
    ("badge", "says"),
    [
        ("licence", PROJECT["project"]["license"]),
        ("python", PROJECT["project"]["requires-python"].removeprefix(">=") + " or newer"),
        ("types", "mypy strict" if PROJECT["tool"]["mypy"]["strict"] else ""),
    ],
)
def test_the_badges_are_true(badge, says):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    picture = (DOCS / "badges" / f"{badge}.svg").read_text(encoding="utf-8")
    assert f">{says}<" in picture
    assert f": {says}](docs/badges/{badge}.svg)" in readme


def test_the_badge_that_says_that_there_is_no_pickle_is_true():
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    assert not [
        text for text in sources if re.search(r"^\s*(import|from) (pickle|joblib|dill)\b", text, re.MULTILINE)
    ]
    assert not [text for text in sources if re.search(r"allow_pickle=True|weights_only=False", text)]


def test_the_readme_shows_nothing_from_a_network():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert not re.search(r"!\[[^\]]*\]\(https?:", readme)


def test_the_example_that_learns_prints_the_same_where_sums_are_rounded_otherwise():
    """As several threads do, which a fit that has not converged shows."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (learns,) = [body for _, _, body in FENCE.findall(text) if "X / 16" in body]
    example = ">>> import numpy as np, setwise\n" + learns.replace("X / 16", "X * (1 - 1e-9) / 16")
    block = doctest.DocTestParser().get_doctest(example, {}, "README.md", "README.md", 0)
    assert doctest.DocTestRunner(verbose=False).run(block).failed == 0


def test_the_readme_says_what_to_run_in_a_clone_and_promises_no_index():
    first = (ROOT / "README.md").read_text(encoding="utf-8").split("```")[1]
    assert "pip install '.[cli,learn]'" in first
    assert "pip install 'setwise[cli,learn]' once it is on an index" in first


def test_versions_agree():
    for file in ("docs/comparison.md", "CITATION.cff", "docs/citation.md", "CHANGELOG.md"):
        assert setwise.__version__ in (ROOT / file).read_text(encoding="utf-8"), file
