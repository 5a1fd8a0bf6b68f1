"""``python -m tests.first_use`` notes in benchmarks/results/bad_inputs.json how many bad inputs end how."""

import json
from collections import Counter
from pathlib import Path

from benchmarks.summary import machine

from tests.first_use.test_bad_inputs import CALLS, COMMANDS, READ

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "bad_inputs.json"


def counts():
    """Of files, command lines and calls, how many end in an error, with a warning, or with the right result."""
    tables = {"files": READ, "command lines": COMMANDS, "calls": CALLS}
    return {name: dict(Counter(row[-1].kind for row in table.values())) for name, table in tables.items()}


if __name__ == "__main__":
    RESULTS.write_text(json.dumps({"machine": machine(), "ends": counts()}, indent=1) + "\n")
