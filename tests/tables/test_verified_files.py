import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setwise import ConformalClassifier
from setwise.cli.app import run
from setwise.errors import DataError, MisuseWarning
from setwise.tables import from_label_studio
from setwise.tables.importers.label_studio import is_export
from setwise.tables.label_studio_tasks import write_tasks
from setwise.tables.verified_files import merge_verified, read_verified
from tests.conftest import check_sentence
from tests.streams import conftest
from tests.streams.conftest import CLASSES, failed, rows

IDS = ["a", "b", "c"]


def task(number, key, *labels, **more):
    """A task with one annotation for each label (None: without an answer)."""
    made = [
        {"result": [] if label is None else [{"from_name": "x", "value": {"choices": [label]}}], **more}
        for label in labels
    ]
    return {"id": number, "data": {"id": key}, "annotations": made}


def export(path, *tasks):
    path.write_text(json.dumps(tasks), encoding="utf-8")
    return path


def test_an_export_is_matched_by_the_data_of_its_tasks_not_by_their_numbers(tmp_path):
    file = export(tmp_path / "e.json", task(0, "c", "owl"), task(1, "a", None), task(2, "b"))
    assert read_verified(file, IDS, ["owl", "wren"], key="id")[0].tolist() == [None, None, "owl"]
    assert from_label_studio(file, missing="empty").ids.tolist() == [0, 1, 2]
    assert from_label_studio(file, key="id", missing="empty").ids.tolist() == ["c", "a", "b"]


def test_labels_that_are_numbers_come_back_as_numbers(tmp_path):
    file = export(tmp_path / "e.json", task(0, 11, "7"), task(1, 10, "8"))
    assert read_verified(file, [10, 11], [7, 8], key="id")[0].tolist() == [8, 7]


def test_the_ground_truth_outweighs_other_answers(tmp_path):
    both = task(0, "a", "owl", "wren")
    both["annotations"][1]["ground_truth"] = True
    file = export(tmp_path / "e.json", both, task(1, "b", "owl", "owl"))
    assert read_verified(file, IDS, ["owl", "wren"], key="id")[0].tolist() == ["wren", "owl", None]
    with pytest.raises(DataError, match="id = 'a' has several answers .owl, wren.; mark one as the ground truth"):
        read_verified(export(file, task(0, "a", "owl", "wren")), IDS, ["owl", "wren"], key="id")


def test_skipped_annotations_are_no_answers(tmp_path):
    file = export(tmp_path / "e.json", task(0, "a", "owl", was_cancelled=True))
    assert read_verified(file, IDS, ["owl"], key="id")[0].tolist() == [None] * 3


def test_several_exports_are_read_as_one(tmp_path):
    export(tmp_path / "e1.json", task(0, "a", "owl"))
    export(tmp_path / "e2.json", task(0, "c", "wren"))
    assert read_verified(tmp_path / "e*.json", IDS, ["owl", "wren"], key="id")[0].tolist() == ["owl", None, "wren"]


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"id": ["z"], "verified": ["owl"]}, "no row with id = 'z'"),
        ({"id": ["a", "a"], "verified": ["owl", "wren"]}, "id = 'a' has 2 verified labels; keep one of them"),
        ({"id": ["a"], "verified": ["Owl"]}, "id = 'a' has the label 'Owl', which is not one of 'owl', 'wren'"),
        ({"id": ["a"], "truth": ["owl"]}, "there is no column 'verified'"),
        ({"name": ["a"], "verified": ["owl"]}, "there is no column 'id'"),
        ({"id": [None], "verified": ["owl"]}, "row 0 has no id"),
    ],
)
def test_checks_that_do_not_fit_are_named(answers, message):
    with pytest.raises(DataError) as caught:
        read_verified(answers, IDS, ["owl", "wren"], key="id")
    assert message in str(caught.value)
    check_sentence(caught.value)


def test_a_row_named_twice_without_two_answers_is_no_mistake():
    answers = {"id": ["a", "a"], "verified": ["", "owl"]}
    assert read_verified(answers, IDS, ["owl"], key="id")[0].tolist() == ["owl", None, None]
    with pytest.raises(DataError, match="id = 'a' occurs twice"):
        read_verified({"id": ["a"], "verified": ["owl"]}, ["a", "a"], ["owl"], key="id")


def test_nobody_answered_anything():
    assert read_verified({"id": ["a"], "verified": [""]}, IDS, ["owl"], key="id")[0].tolist() == [None] * 3


def test_two_sources_are_one_unless_they_differ():
    ours, others = np.array(["owl", None, "owl"], object), np.array(["owl", "wren", None], object)
    assert merge_verified(ours, others, source="t", other="c").tolist() == ["owl", "wren", "owl"]
    assert merge_verified(None, others, source="t", other="c") is others
    others[2] = "wren"
    with pytest.raises(
        DataError, match="c: the verified label of row 2 is 'wren', but 'owl' in t; correct one of them"
    ):
        merge_verified(ours, others, source="t", other="c")


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([{"id": 1, "data": {"text": "…"}, "annotations": []}], "its data have no 'id'; they have text"),
        ([{"id": 1, "data": {"id": [1]}, "annotations": []}], "its id is [1]; expected a number or text"),
        (
            [{"id": 1, "x": "owl"}],
            "its column id holds Label Studio's own numbers in place of yours; export as JSON",
        ),
    ],
)
def test_tasks_that_cannot_be_matched_are_named(tasks, message):
    with pytest.raises(DataError) as caught:
        from_label_studio(tasks, key="id", from_name="x")
    assert message in str(caught.value)


def test_a_table_is_no_export(tmp_path):
    assert is_export(export(tmp_path / "e.json", task(0, "a", "owl")))
    assert not is_export(export(tmp_path / "t.json", {"id": "a", "verified": "owl"}))
    assert not is_export(export(tmp_path / "u.json"))
    (tmp_path / "lines.json").write_text('{"id": "a"}\n{"id": "b"}\n', encoding="utf-8")
    assert not is_export(tmp_path / "lines.json")
    assert read_verified(tmp_path / "t.json", IDS, ["owl"], key="id")[0].tolist() == ["owl", None, None]


def test_tasks_hold_any_value_as_json(tmp_path):
    columns = {
        "id": ['"</script>\n', "b"],
        "x": [1.5, float("nan")],
        "when": pa.array([0, None], pa.timestamp("s")),
        "tags": [["a"], []],
    }
    write_tasks(tmp_path / "t.json", columns, [7, None], [0.25, 0.0], from_name="f", to_name="t")
    first, second = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    assert first["data"] == {"id": '"</script>\n', "x": 1.5, "when": "1970-01-01 00:00:00", "tags": ["a"]}
    assert second == {"data": {"id": "b", "x": None, "when": None, "tags": []}}
    (prediction,) = first["predictions"]
    assert prediction["score"] == 0.25
    assert prediction["result"] == [
        {"from_name": "f", "to_name": "t", "type": "choices", "value": {"choices": ["7"]}}
    ]


parts, no_lines_about_time = conftest.parts, conftest.no_lines_about_time  # fixtures


def test_fit_takes_the_verified_labels_beside_candidates_and_those_in_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, y, candidates = rows(120, 0)
    X = np.eye(4)[[CLASSES.tolist().index(label) for label in y]] + np.random.default_rng(0).normal(size=(120, 4))
    ids = [f"r{i}" for i in range(120)]
    known = [label if i % 3 == 0 else None for i, label in enumerate(y.tolist())]
    pq.write_table(pa.table({"id": ids, **{f"x{k}": X[:, k] for k in range(4)}}), "rows.parquet")
    pq.write_table(pa.table({"id": ids, "answers": candidates, "verified": known}), "labels.parquet")
    pq.write_table(pa.table({"id": ids[1::3], "verified": y[1::3].tolist()}), "checks.parquet")
    told = ["--labels", "labels.parquet", "--candidates", "answers", "--key", "id", "--verified", "checks.parquet"]
    more = ["--learner", "em", "--calibration-size", "0.9", "--quiet", "--out", "model"]
    assert run(["fit", "rows.parquet", *told, "--verified", "verified", *more]) == 0
    assert (ConformalClassifier.load("model").calibration_.evidence.label >= 0).sum() > 40


def test_verified_labels_that_are_neither_column_nor_file_are_an_error(parts, tmp_path, capsys):
    parts(".csv")
    region = {"from_name": "truth", "value": {"choices": ["owl"]}}
    task = {"id": 1, "data": {"id": 5}, "annotations": [{"result": [region]}]}
    (tmp_path / "checks.json").write_text(json.dumps([task]))
    asked = ["conformalize", "--probabilities", "in/0.csv", "--candidates", "answers", "--key", "id"]
    told = [*asked, "--ignore", "truth", "--out", "new.cal", "--verified"]
    line = failed(capsys, *told, "checks.json:truht")
    assert "checks.json: there is no control 'truht'; there is truth; use --from-name … to name the control" in line
    line = failed(capsys, *told, "truht")
    assert "--verified: 'truht' is neither a column of in/0.csv (" in line
    assert " nor a file; name a column, or FILE:COLUMN." in line


# ------------------------------------------------------------------------------------------- rows drawn at random


@pytest.mark.parametrize("column", ["drawn", "source"])
def test_only_rows_drawn_at_random_are_verified(column):
    marks = {"drawn": [True, False, False], "source": ["verified", "reviewed", "accepted"]}[column]
    answers = {
        "id": ["a", "b", "c"],
        "verified": ["owl", "wren", "owl" if column == "source" else ""],
        column: marks,
    }
    with pytest.warns(
        MisuseWarning, match="1 rows with a known label were not drawn at random.*verified rows; 1 do"
    ):
        labels, known = read_verified(answers, IDS, ["owl", "wren"], key="id")
    assert (labels.tolist(), known.tolist()) == (["owl", None, None], [False, True, False])


@pytest.mark.parametrize(
    "marks", [["True", "FALSE", " no"], [1, 0, 0], [1.0, 0.0, float("nan")], ["1", "0.0", ""], ["yes", "0", None]]
)
def test_true_and_false_are_read_as_people_write_them(marks):
    answers = pd.DataFrame({"id": IDS, "verified": ["owl", "wren", None], "drawn": marks})
    with pytest.warns(MisuseWarning, match="1 rows with a known label were not drawn at random"):
        labels, known = read_verified(answers, IDS, ["owl", "wren"], key="id")
    assert (labels.tolist(), known.tolist()) == (["owl", None, None], [False, True, False])


@pytest.mark.parametrize(("mark", "named"), [("maybe", "'maybe'"), ("2", "2"), ("", "nothing")])
def test_a_label_needs_true_or_false_in_drawn(tmp_path, mark, named):
    marks = {"maybe": ("true", "false"), "2": ("1", "0"), "": ("true", "false")}[mark]
    lines = [f"{name},owl,{drawn}" for name, drawn in zip(IDS, (*marks, mark), strict=True)]
    (tmp_path / "v.csv").write_text("\n".join(["id,verified,drawn", *lines]))
    said = rf"v.csv: row 2 \(id = 'c'\) has {named} in the column 'drawn'; say true or false in drawn"
    with pytest.raises(DataError, match=said) as caught:
        read_verified(tmp_path / "v.csv", IDS, ["owl"], key="id")
    check_sentence(caught.value, ".csv")


@pytest.mark.parametrize(
    ("marks", "named"),
    [({"drawn": [False] * 3}, "drawn"), ({"rank": [1, 2, 3], "proposed": ["owl"] * 3}, "rank")],
)
def test_answers_from_review_are_refused_as_verified(tmp_path, marks, named):
    pd.DataFrame({"id": IDS, "verified": ["owl"] * 3, **marks}).to_csv(tmp_path / "review.csv", index=False)
    with pytest.raises(
        DataError, match=f"review.csv: none of its rows was drawn at random, as its column '{named}' says"
    ):
        read_verified(tmp_path / "review.csv", IDS, ["owl"], key="id")
    if named == "drawn":
        tasks = [task(i, name, "owl") for i, name in enumerate(IDS)]
        for one in tasks:
            one["data"] |= {"drawn": False}
        with pytest.raises(DataError, match="e.json: none of its rows was drawn at random"):
            read_verified(export(tmp_path / "e.json", *tasks), IDS, ["owl"], key="id")


def test_several_right_labels_of_a_file_are_matched_and_none_is_strange():
    answers = {"id": ["b", "a", "c"], "verified": ["owl|wren", "", "wren"]}
    options = {"key": "id", "several": True}
    found, _ = read_verified(answers, ["a", "b", "c"], ["owl", "wren"], **options)
    assert found.tolist() == [None, ("owl", "wren"), ("wren",)]
    with pytest.raises(DataError, match="id = 'b' has the label 'owl', which is not one of 'wren'"):
        read_verified(answers, ["a", "b", "c"], ["wren"], **options)


def test_numbers_of_json_are_the_text_of_a_table(tmp_path):
    (tmp_path / "v.jsonl").write_text('{"id": "a", "verified": 1}\n{"id": "c", "verified": 2}\n')
    assert read_verified(tmp_path / "v.jsonl", IDS, ["1", "2"], key="id")[0].tolist() == ["1", None, "2"]
