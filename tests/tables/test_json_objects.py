"""Objects in JSON: nothing in them is rounded, read twice or taken for something else, nor nested without end."""

import json

import numpy as np
import pandas as pd
import pytest

from setwise import LabelSets
from setwise.errors import DataError, InputError
from setwise.tables import (
    from_label_studio,
    read_table,
)
from setwise.tables.arrow_reading import arrow_batches, arrow_table
from setwise.tables.json_objects import DEEPEST, check_depth
from tests.conftest import refused
from tests.tables.conftest import answered_task

# ------------------------------------------------------------------------------------------------------------- JSON

TWICE = {
    "rows.jsonl": ('{"id": 1, "c": ["a"]}\n{"id": 1, "id": 2, "c": ["a"]}\n', "line 2: 'id' occurs twice"),
    "nested.jsonl": ('{"c": ["a"], "m": {"b": 1, "b": 2}}\n', "line 1: 'b' occurs twice"),
    "rows.json": ('[{"id": 1, "id": 2, "c": ["a"]}]', "'id' occurs twice in one object, as 1 and as 2"),
}


@pytest.mark.parametrize("name", list(TWICE))
def test_a_field_that_an_object_has_twice_is_refused(name, tmp_path):
    content, message = TWICE[name]
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=f"{name}: .*{message}"):
        read_table(tmp_path / name, candidates="c", features=[])
    (tmp_path / "export.json").write_text(
        json.dumps([answered_task(1, "cat")]).replace('"id": 1', '"id": 1, "id": 2')
    )
    with pytest.raises(DataError, match="export.json: 'id' occurs twice"):
        from_label_studio(tmp_path / "export.json")


LONG = 2**63 + 1


@pytest.mark.parametrize(
    "held", [[{"label": LONG, "p": 0.5}], {"uid": LONG}, {"deep": [{"uid": [LONG]}]}, [[LONG]]]
)
def test_integers_in_lists_and_objects_are_not_rounded(held, tmp_path):
    (tmp_path / "t.jsonl").write_text(json.dumps({"c": held}) + "\n" + json.dumps({"c": held}) + "\n")
    with pytest.raises(DataError, match=f"'c' holds the integer {LONG}, which would be rounded; write it as text"):
        arrow_table(tmp_path / "t.jsonl")


def test_dates_in_objects_stay_the_texts_that_they_are(tmp_path):
    held = {"meta": {"when": "2024-01-01", "at": [{"hour": "2024-01-01T10:00:00Z"}], "size": 2**52 + 1}}
    (tmp_path / "t.jsonl").write_text(json.dumps(held) + "\n")
    assert arrow_table(tmp_path / "t.jsonl").to_pylist() == [held]


@pytest.mark.parametrize("labels", [[True, 1], [0, False], [1.0, "a", True]])
def test_a_truth_value_and_the_number_that_it_equals_are_no_two_labels(labels, tmp_path):
    with pytest.raises(InputError, match="are equal in Python; write both as text"):
        LabelSets.from_lists([[label] for label in labels])
    (tmp_path / "t.jsonl").write_text("".join(json.dumps({"c": [label]}) + "\n" for label in labels))
    with pytest.raises(InputError, match="are equal in Python"):
        read_table(tmp_path / "t.jsonl", candidates="c", features=[])
    assert len(LabelSets.from_lists([[True], [2], ["1"]]).classes) == 3
    assert len(LabelSets.from_labels(np.array([1, pd.NA, 0], dtype=object), missing="empty").classes) == 2


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
    refused(lambda p: list(arrow_batches(p, 10)), path)


def test_brackets_in_quotes_and_long_flat_lines_are_no_depth():
    for line in ({"a": "[" * 5000}, {"a": '\\"[' * 5000}, {"a": [[i] for i in range(5000)]}, {"a": "}\n{" * 900}):
        check_depth((json.dumps(line) + "\n").encode() * 3, "t")
    check_depth(b"", "t")
