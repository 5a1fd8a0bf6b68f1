"""JSON nested deeper than any table is refused before it is parsed."""

import json

import pytest

from setwise.tables import arrow_reading as arrow_tables
from setwise.tables import read_table
from setwise.tables.json_depth import DEEPEST, check_depth
from tests.conftest import refused

DEEP = {
    "one line": '{"a":' + "[" * 20_000 + "]" * 20_000 + "}\n",
    "many lines": '{"a":\n' + "[\n" * 20_000 + "]\n" * 20_000 + "}\n",
    "behind closing brackets in quotes": '{"b":"' + "]" * 20_000 + '","a":' + "[" * 20_000 + "]" * 20_000 + "}\n",
    "objects": '{"a":' * 20_000 + "1" + "}" * 20_000 + "\n",
}


@pytest.mark.parametrize("deep", list(DEEP))
def test_json_lines_nested_beyond_measure_are_refused(deep, tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": [1]}\n' + DEEP[deep])
    assert f"more than {DEEPEST} levels deep" in refused(lambda p: read_table(p, candidates="a"), path)
    refused(lambda p: list(arrow_tables.arrow_batches(p, 10)), path)


def test_brackets_in_quotes_and_long_flat_lines_are_no_depth():
    for line in ({"a": "[" * 5000}, {"a": '\\"[' * 5000}, {"a": [[i] for i in range(5000)]}, {"a": "}\n{" * 900}):
        check_depth((json.dumps(line) + "\n").encode() * 3, "t")
    check_depth(b"", "t")
