"""What `make test-lowest`, `make test-pythons` and `make licences` read and note."""

import importlib
import json
import re
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def script(request, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))  # as where it is run as a script
    return importlib.import_module(request.param)


@pytest.mark.parametrize("script", ["declared"], indirect=True)
def test_what_is_declared_is_what_the_project_says(script):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = {re.match(r"[\w-]+", line)[0] for line in project["optional-dependencies"]["learn"]}
    assert script.declared("learn") == asked
    assert {"typer", "pooch", "jinja2"} <= script.declared("cli"), "extras within extras are read"
    assert script.declared("core") == {"numpy", "scipy", "scikit-learn"}
    assert {"joblib", "threadpoolctl"} <= script.brought("core")
    assert not script.brought("core") & script.brought("learn")
    assert set(script.USED) - {"core"} == project["optional-dependencies"].keys() - {"all", "dev", "docs", "bench"}


@pytest.mark.parametrize("script", ["try_versions"], indirect=True)
def test_a_finished_run_is_noted_beside_the_others_and_an_interrupted_one_is_not(script, monkeypatch, tmp_path):
    monkeypatch.setattr(script, "RESULTS", tmp_path / "versions.json")
    monkeypatch.setattr(sys, "argv", ["", "3.12", "-q"])
    (tmp_path / "versions.json").write_text('{"lowest": {}}')

    def run(options, plugins):
        assert options == ["-q"]
        stats = {"passed": [1, 2], "failed": [3], "skipped": []}
        plugins[0].pytest_terminal_summary(SimpleNamespace(stats=stats))
        return status

    monkeypatch.setattr(script.pytest, "main", run)
    status = pytest.ExitCode.INTERRUPTED
    assert script.main() == 2
    assert json.loads((tmp_path / "versions.json").read_text()) == {"lowest": {}}
    status = pytest.ExitCode.TESTS_FAILED
    assert script.main() == 1
    noted = json.loads((tmp_path / "versions.json").read_text())
    assert noted.keys() == {"lowest", "3.12"}
    counts = {name: noted["3.12"][name] for name in ("passed", "failed", "error", "skipped")}
    assert counts == {"passed": 2, "failed": 1, "error": 0, "skipped": 0}
    assert {"numpy", "scipy"} <= noted["3.12"]["versions"].keys()


def declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    listed = [line for extra in project["optional-dependencies"].values() for line in extra]
    return dict(re.findall(r"^([a-z0-9-]+)(?:\[data\])?>=([0-9.]+)$", "\n".join(listed), re.MULTILINE))


def parts(text):
    return [int(part) for part in re.findall(r"\d+", text.partition("+")[0])]


HOLES = {
    "skops": "0.15", "torch": "2.11", "pyarrow": "24", "pillow": "13", "tqdm": "4.66.3", "jinja2": "3.1.6",
    "ray": "2.56", "mlflow-skinny": "3.17",
}  # fmt: skip
"""The first versions without the holes that SECURITY.md names."""


@pytest.mark.parametrize(("package", "oldest"), HOLES.items())
def test_no_version_with_a_known_hole_is_allowed_or_installed(package, oldest):
    assert parts(declared()[package]) >= parts(oldest)
    pinned = re.search(rf"^{package}==(.*)$", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE)
    assert parts(pinned[1]) >= parts(oldest)
    security = (ROOT / "SECURITY.md").read_text("utf-8")
    assert f" before {oldest}" in " ".join(security.split())


def test_typer_is_one_whose_help_is_tested():
    assert parts(version("typer")) >= parts(declared()["typer"]) >= parts("0.26.8")


def test_what_make_installs_has_hashes_and_the_versions_of_the_constraints():
    lines = (ROOT / "requirements-dev.txt").read_text("utf-8")
    locked = re.findall(r"^([\w.-]+)==(\S+).*\\\n((?: +--hash=sha256:\w{64}.*\n)+)", lines, re.MULTILINE)
    assert len(locked) == len(re.findall("==.* ", lines)) > 80
    assert "http" not in lines
    pinned = dict(re.findall(r"^([\w.-]+)==(.*)$", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE))
    assert {name: version for name, version, _ in locked if pinned.get(name, version) != version} == {}, (
        "run `make lock`"
    )
    made = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = made["project"]["optional-dependencies"]
    asked = [*made["project"]["dependencies"], *made["build-system"]["requires"]]
    asked += [line for extra in ("dev", "learn", "data", "cli", "report", "scale") for line in extras[extra]]
    names = {re.match(r"[\w.-]+", line)[0] for line in asked} - {"setwise", "torch"}
    assert names <= {name for name, *_ in locked}, "run `make lock`"
