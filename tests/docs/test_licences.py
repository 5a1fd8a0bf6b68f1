"""docs/licences.md names every package that setwise asks for."""

import re
import tomllib

from .conftest import DOCS, ROOT

PAGE = (DOCS / "licences.md").read_text("utf-8")
DEVELOPERS = {"dev", "docs", "bench"}


def test_every_declared_dependency_is_in_the_list_of_licences():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for name in extras.keys() - DEVELOPERS for line in extras[name])]
    declared = {re.match(r"[\w-]+", line)[0] for line in lines} - {"setwise"}
    listed = dict(re.findall(r"^\| \*\*([\w-]+)\*\* \| \S+ \| (.+?) \|", PAGE, re.MULTILINE))
    assert listed.keys() == declared, "run `make licences`"
    assert "not stated" not in listed.values()


def test_the_list_has_the_packages_that_these_bring():
    table = re.findall(r"^\| ([\w-]+) \|", PAGE, re.MULTILINE)
    assert {"joblib", "threadpoolctl"} <= set(table)
