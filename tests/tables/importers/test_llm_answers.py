"""A language model's answers, one JSON object per line."""

import gzip
import json

import pytest

from setwise.cli.app import run
from setwise.tables import (
    DataError,
    from_answers_jsonl,
)
from setwise.tables.importers.vote_sources import import_votes
from tests.conftest import check_sentence
from tests.tables.conftest import answered_task

# ------------------------------------------------------------------------------- answers that are packed, and piped


@pytest.mark.filterwarnings("ignore:.*several answers of one annotator count as one")
@pytest.mark.parametrize("packed", ["answers.jsonl.gz", "answers.jsonl", "export.json.gz"])
def test_answers_that_are_compressed_or_in_utf_16_are_found(packed, tmp_path):
    lines = "".join(json.dumps({"id": f"t{i}", "answers": ["cat", "dog"]}) + "\n" for i in range(3))
    text = lines if packed.startswith("answers") else json.dumps([answered_task(i, "cat", "dog") for i in range(3)])
    content = gzip.compress(text.encode()) if packed.endswith(".gz") else text.encode("utf-16")
    (tmp_path / packed).write_bytes(content)
    found = import_votes(tmp_path / packed, key="id")
    assert (found.ids.tolist(), found.votes.classes.tolist()) == (["t0", "t1", "t2"], ["cat", "dog"])
    kind = "answers" if packed.startswith("answers") else "label-studio"
    out = tmp_path / "c.csv"
    assert run(["convert", str(tmp_path / packed), "--from", kind, "--key", "id", "--out", str(out), "-q"]) == 0
    assert out.read_text().splitlines()[1:] == [f'"t{i}","cat|dog"' for i in range(3)]


def test_a_language_models_answers_come_as_json_lines(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_text(
        '{"id": "a", "answers": ["cat", "cat", "dog", null]}\n\n'
        '{"id": "b", "probabilities": {"owl": 0.9, "cat": 0.0}}\n'
        '{"id": "a", "answers": "dog"}\n'
        '{"id": "c", "answers": null}\n',
        encoding="utf-8",
    )
    found = from_answers_jsonl(path, missing="empty")
    assert found.ids.tolist() == ["a", "b", "c"]
    assert found.votes.counts.tolist() == [[0.5, 0.5, 0], [0, 0, 0.9], [0, 0, 0]]
    assert found.votes.sizes.tolist() == [1, 1, 0]
    assert found.candidates.to_lists() == [["cat", "dog"], ["owl"], []]
    assert from_answers_jsonl(path, rule="at_least:2", missing="empty").candidates.sizes.tolist() == [2, 0, 0]
    with pytest.raises(DataError, match="answers.jsonl: row 2 has no labels"):
        from_answers_jsonl(path)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "line 1 is not JSON"),
        ("7", "line 1 is int, not an object"),
        ('{"answers": ["a"]}', "'id' is None"),
        ('{"id": 1}', "either 'answers', a list, or 'probabilities'"),
        ('{"id": 1, "answers": [["a"]]}', r"an answer is \['a'\]"),
        ('{"id": 1, "answers": ["a"], "labels": ["a"]}', "either 'answers', a list, or 'probabilities'"),
        ('{"id": 1, "probabilities": [0.3, 0.7]}', "probabilities is list, not an object"),
        ('{"id": 1, "prediction": [{"label": "a"}]}', r"\{'label': 'a'\} has no label with a probability"),
        ('{"id": 1, "prediction": [{"label": "a", "p": 2}]}', "the probability of 'a' is 2"),
        ('{"id": 1, "prediction": [{"label": "a", "p": 1}, "b"]}', "'b' has no label with a probability"),
        ('{"id": 1, "probabilities": {"a": 1.5}}', "the probability of 'a' is 1.5"),
        ('{"id": 1, "probabilities": {"a": NaN}}', "the probability of 'a' is nan"),
        ('{"id": 1, "probabilities": ["a"]}', "probabilities is list, not an object"),
        ("[" * 100_000, "line 1 is not JSON"),
    ],
)
def test_broken_answer_lines_end_in_one_sentence(line, says):
    with pytest.raises(DataError, match=says) as error:
        from_answers_jsonl([line])
    check_sentence(error.value, "line")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"id": 1, "probabilities": {"cat": 0.5, "cat": 0.4}}', "line 1: 'cat' occurs twice"),
        ('{"id": 1, "answers": ["cat"], "answers": ["dog"]}', "line 1: 'answers' occurs twice"),
        ('{"id": 1, "answers": [1, "1"]}', "the label 1 also occurs as text"),
    ],
)
def test_answers_that_json_would_lose_or_part_are_errors(line, problem):
    with pytest.raises(DataError, match=problem):
        from_answers_jsonl([line])


def test_empty_answers_are_none_and_a_byte_order_mark_is_no_json(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_bytes('\ufeff{"id": 1, "answers": ["", "cat", null]}\r\n'.encode())
    assert from_answers_jsonl(path).votes.counts.tolist() == [[1]]
