"""Outputs of language models' batches become votes; what names no label is counted."""

import json
import math

import pytest

from setwise.errors import MisuseWarning
from setwise.tables import DataError, VoteColumns, from_answers_jsonl, import_votes
from setwise.tables.importers.llm_batches import BatchReader
from tests.conftest import check_sentence

LABELS = ["games", "java", "net"]


def completion(name, *texts, logprobs=None):
    """A line with one choice per text, as chat completions come back."""
    tokens = None if logprobs is None else {"content": [{"token": "Label", "top_logprobs": []}, logprobs]}
    choices = [{"index": i, "message": {"content": text}, "logprobs": tokens} for i, text in enumerate(texts)]
    return {"custom_id": name, "response": {"status_code": 200, "body": {"choices": choices}}, "error": None}


def message(name, text):
    return {
        "custom_id": name,
        "result": {"type": "succeeded", "message": {"content": [{"type": "text", "text": text}]}},
    }


def token(text, **shares):
    top = [{"token": name, "logprob": math.log(share)} for name, share in shares.items()]
    return {"token": text, "logprob": -0.1, "top_logprobs": top}


def read(*lines, **options):
    return from_answers_jsonl([json.dumps(line) for line in lines], missing="empty", **options).votes


def test_each_choice_is_an_answer_and_lines_of_one_identifier_join():
    assert read(completion("a", "Label: games", "**java**."), classes=LABELS).counts.tolist() == [[0.5, 0.5, 0]]
    votes = read(message("a", "Label: net"), message("b", "java"), message("a", "NET"), classes=LABELS)
    assert votes.counts.tolist() == [[0, 0, 1], [0, 1, 0]]
    assert votes.items.tolist() == ["a", "b"]


def test_a_batch_may_begin_with_a_call_that_failed(tmp_path):
    lines = [{"custom_id": "a", "error": {"message": "x"}}, completion("b", "net")]
    (tmp_path / "batch.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with pytest.warns(MisuseWarning, match="1 of 2 answers name none of the labels and are left out"):
        votes = import_votes(tmp_path / "batch.jsonl", classes=LABELS).votes
    assert (votes.items.tolist(), votes.counts.tolist()) == (["a", "b"], [[0, 0, 0], [0, 0, 1]])
    answered = {"custom_id": "a", "answers": ["net"], "error": None}
    assert read(answered, ids="custom_id").classes.tolist() == ["net"]


def test_responses_are_read_like_chat_completions():
    output = [{"type": "reasoning"}, {"type": "message", "content": [{"type": "output_text", "text": "net"}]}]
    line = {"custom_id": "a", "response": {"status_code": 200, "body": {"output": output}}}
    assert read(line, classes=LABELS).counts.tolist() == [[0, 0, 1]]


def test_log_probabilities_share_an_answer_among_the_labels_that_a_token_starts():
    shares = token(" ga", **{" ga": 0.7, "ja": 0.2, "x": 0.1})
    assert read(completion("a", "Label: games", logprobs=shares), classes=LABELS).counts.tolist()[
        0
    ] == pytest.approx([0.7, 0.2, 0])
    unread = token("net", games=0.5)  # the token's own label is not among the top
    assert read(completion("a", "net", logprobs=unread), classes=LABELS).counts.tolist() == [[0, 0, 1]]


def test_a_pattern_finds_the_label_and_with_a_list_must_find_one_of_it():
    lines = [completion("a", "java? Label: games", "Label: games and net")]
    assert read(*lines, pattern=r"label: (\w+)").counts.tolist() == [[1]]
    with pytest.warns(
        MisuseWarning, match="1 of 2 answers name none of the labels and are left out, such as 'Label: g"
    ):
        assert read(*lines, pattern=r"label: (.+)", classes=LABELS).counts.tolist() == [[1, 0, 0]]


def test_refusals_failed_calls_and_answers_with_several_labels_are_counted_and_not_guessed():
    failed = {"custom_id": "c", "response": None, "error": {"code": "expired"}}
    lines = [completion("a", "I cannot say.", "net", "java or net"), completion("b", None), failed]
    with pytest.warns(MisuseWarning) as told:
        votes = read(*lines, classes=LABELS)
    assert votes.counts.tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]
    none, several = (str(one.message) for one in told)
    assert none == "the lines: 3 of 5 answers name none of the labels and are left out, such as 'I cannot say.'."
    assert several.startswith(
        "the lines: 1 of 5 answers name several labels and are left out, such as 'java or net'"
    )
    assert several.endswith("use pattern=… for the part that is the label, such as 'Label: (.+)'.")
    expired = {"custom_id": "a", "result": {"type": "expired"}}
    with pytest.warns(
        MisuseWarning, match="1 of 1 answers name none of the labels and are left out, such as 'no text'"
    ):
        assert read(expired, classes=LABELS).counts.tolist() == [[0, 0, 0]]


def test_labels_with_marks_and_numbers_are_found_whole():
    votes = read(message("a", "C++"), message("b", "it is C"), message("c", "12"), classes=["C", "C++", 1, 12])
    assert votes.candidates().to_lists() == [["C++"], ["C"], [12]]


def test_free_text_needs_a_list_or_a_pattern():
    with pytest.raises(
        DataError, match="its answers are free text; use classes=… to list the labels, or use pattern=…"
    ):
        read(message("a", "net"))
    with pytest.raises(ValueError, match=r"pattern: '\(' is not a regular expression"):
        read(message("a", "net"), pattern="(")


@pytest.mark.parametrize(
    "line",
    [
        {"custom_id": "a", "response": {"body": {"choices": 3}}},
        {"custom_id": "a", "response": {"body": {"choices": [{}]}}},
        {"custom_id": "a", "response": "gone"},
        {"custom_id": "a", "result": []},
        {"custom_id": "a", "result": {"message": {"content": [7]}}},
        completion("a", "net", logprobs={"token": 3}),
        completion("a", "net", logprobs={"token": "net", "top_logprobs": [{"token": "net", "logprob": 2}]}),
        completion("a", "net", logprobs={"token": "net", "top_logprobs": [{"token": "net", "logprob": "x"}]}),
        {"id": 7, "answers": ["net"]},
        {"custom_id": [1], "result": {}},
    ],
)
def test_a_broken_line_is_named_by_file_and_number(tmp_path, line):
    path = tmp_path / "batch.jsonl"
    path.write_text("\n".join(map(json.dumps, [message("z", "net"), line])))
    with pytest.raises(DataError, match="line 2") as error:
        import_votes(path, VoteColumns(classes=tuple(LABELS)))
    check_sentence(error.value, "batch.jsonl")


def test_a_model_with_other_labels_is_not_mixed_with_a_list(tmp_path):
    path = tmp_path / "batch.jsonl"
    path.write_text(json.dumps(message("z", "net")))
    assert (
        import_votes(path, VoteColumns(classes=tuple(LABELS)), classes=LABELS[::-1]).votes.classes.tolist()
        == LABELS[::-1]
    )
    with pytest.raises(ValueError, match="classes: the model has other labels; leave them out"):
        import_votes(path, VoteColumns(classes=("net",)), classes=LABELS)


def test_an_answer_that_does_not_match_the_pattern_may_be_the_label_itself():
    def line(text, number):
        choice = {"message": {"content": text}}
        return {"custom_id": str(number), "response": {"status_code": 200, "body": {"choices": [choice]}}}

    texts = ["Label: net.", "games", "Label: games", "I cannot say."]
    reader = BatchReader.of("Label: (.+)", ["games", "net"], "the lines")
    found = [[label for label, _ in reader.read(line(text, i), "line")] for i, text in enumerate(texts)]
    assert found == [["net"], ["games"], ["games"], []]
