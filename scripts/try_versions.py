"""Runs the tests with what is installed here, and notes both in benchmarks/results/versions.json.

python scripts/try_versions.py lowest -n 2      (make test-lowest, test-pythons: in environments of their own)

The first argument names the environment; the others are pytest's.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from declared import USED, declared, installed

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.summary import machine

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results" / "versions.json"
OUTCOMES = ("passed", "failed", "error", "skipped")


class Counts:
    """How many tests ended how."""

    def __init__(self) -> None:
        self.found = dict.fromkeys(OUTCOMES, 0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Counts, once all is done."""
        self.found = {outcome: len(terminalreporter.stats.get(outcome, ())) for outcome in OUTCOMES}


def main() -> int:
    """The exit status of pytest; what an interrupted run found is not noted."""
    name, *options = sys.argv[1:]
    counts, here = Counts(), machine()
    status = pytest.main(options, plugins=[counts])
    if status not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
        return int(status)
    found = {extra: {one: installed(one) for one in declared(extra)} for extra in USED}
    there = {extra: versions for extra, versions in found.items() if None not in versions.values()}
    noted = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    noted[name] = {
        **{key: here[key] for key in ("date", "commit", "setwise", "python")},
        **counts.found,
        "versions": dict(sorted(pair for versions in there.values() for pair in versions.items())),
        "without": sorted(set(USED) - set(there)),
    }
    RESULTS.write_text(json.dumps(noted, indent=1, sort_keys=True) + "\n", "utf-8")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
