"""Builds sdist and wheel, checks what they hold and say, and uses the wheel where nothing else is installed.

python scripts/check_release.py PYTHON        (make release-check: in an environment with build and twine)

With PYTHON, which has what tests need, the tests of the unpacked sdist run that look at the repository.
"""

from __future__ import annotations

import email
import email.message
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PARTS = ("py.typed", "report/templates/report.html", "report/vendor/chart.umd.min.js")
"""What is no module, and must be in the wheel."""
KEPT = (
    "LICENSE",
    "README.md",
    "CHANGELOG.md",
    "pyproject.toml",
    "hatch_build.py",
    "tests/conftest.py",
    "docs/conf.py",
    "benchmarks/results/observatory.json",
    "requirements-dev.txt",
)
_OF_FILES = "ambiguous benchmarks check_tree examples extension mutation plain_words public_api typing versions"
TESTS = ("tests/docs", "tests/reproduction", *(f"tests/test_{name}.py" for name in _OF_FILES.split()))
"""Tests that look at files beside the package."""
FIELDS = (
    "Name",
    "Version",
    "Summary",
    "License-Expression",
    "Requires-Python",
    "Keywords",
    "Project-URL",
    "Author",
)
MEGABYTES = 5
FIRST_USE = """
import numpy, setwise
P = numpy.random.default_rng(0).dirichlet([1, 1, 1], 200)
sets = setwise.conformalize(P[:100], P[:100].argmax(axis=1)).predict_set(P[100:])
assert sets.shape == (100, 3), sets
import doctest, sys
flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
sys.exit(doctest.testfile(sys.argv[1], module_relative=False, optionflags=flags).failed)
"""


def main() -> int:
    """Prints what is wrong; the number of findings."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _run(sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT))
        (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
        _run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(source))
        found = [*_contents(wheel, source), *_description(wheel), *_use(wheel, folder / "empty")]
        found += _test(source, folder / "unpacked", *sys.argv[1:])
    for finding in found:
        print(finding)
    print(f"{wheel.name}, {source.name}: {f'{len(found)} findings.' if found else 'in order.'}")
    return len(found)


def _contents(wheel: Path, source: Path) -> Iterator[str]:
    inside = zipfile.ZipFile(wheel).namelist()
    yield from (f"{wheel.name}: has no {part}" for part in PARTS if f"setwise/{part}" not in inside)
    odd = {name.split("/")[0] for name in inside} - {"setwise", wheel.name.split("-py3")[0] + ".dist-info"}
    yield from (f"{wheel.name}: holds {name}, which is no part of the package" for name in sorted(odd))
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    yield from (f"{source.name}: has no {name}" for name in KEPT if name not in names)
    for built in (wheel, source):
        if built.stat().st_size > MEGABYTES * 2**20:
            yield f"{built.name}: {built.stat().st_size / 2**20:.1f} MB; what is in it that should not be?"


def _description(wheel: Path) -> Iterator[str]:
    """What the package says of itself, and whether its files say the same."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        told = email.message_from_bytes(archive.read(name))
    yield from (f"metadata: no {field}" for field in FIELDS if not told[field])
    for needed in told.get_all("Requires-Dist", []):
        requirement = needed.partition(";")[0].strip()
        if ">=" not in requirement and not requirement.startswith("setwise["):
            yield f"metadata: {requirement} has no lower bound"
    text = told.get_payload()
    yield from (
        f"README: {link} leads nowhere on the index" for link in re.findall(r"\]\((?!https?:|#)[^)]*\)", str(text))
    )
    heading = next(
        line for line in (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines() if line.startswith("## ")
    )
    if heading != f"## {told['Version']}":
        yield f"CHANGELOG.md: begins with {heading!r}, and the version is {told['Version']}"


def _use(wheel: Path, place: Path) -> Iterator[str]:
    """Installs the wheel alone, and does what a newcomer does first."""
    _run(sys.executable, "-m", "venv", str(place))
    python = place / "bin" / "python"
    _run(str(python), "-m", "pip", "install", "--quiet", "--constraint", str(ROOT / "constraints.txt"), str(wheel))
    alone = os.environ | {"OMP_NUM_THREADS": "1"}  # as in the tests
    done = subprocess.run([python, "-c", FIRST_USE, ROOT / "README.md"], cwd=place, env=alone, check=False)
    if done.returncode:
        yield f"the README's examples: {done.returncode} do not hold with the core alone"
    asked = subprocess.run([place / "bin" / "setwise"], cwd=place, check=False, capture_output=True, text=True)
    said = "error: the command line needs typer: pip install 'setwise[cli]'.\n"
    if (asked.returncode, asked.stderr) != (2, said):
        yield f"setwise without the extra cli: {asked.returncode}, {asked.stderr!r}"


def _test(source: Path, place: Path, python: str = "") -> Iterator[str]:
    """Runs the tests of the sdist that look at the repository, where there is a Python for them."""
    if python:
        with tarfile.open(source) as archive:
            archive.extractall(place, filter="data")
        (unpacked,) = place.iterdir()
        command = [ROOT / python, "-m", "pytest", "-q", "-n", "2", *TESTS]
        own = os.environ | {"PYTHONPATH": str(unpacked / "src")}
        if subprocess.run(command, cwd=unpacked, env=own, check=False).returncode:
            yield f"{source.name}: its own tests fail"


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)


if __name__ == "__main__":
    sys.exit(bool(main()))
