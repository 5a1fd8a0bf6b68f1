"""The way from votes to the final table: draw, verify, triage, review, merge; the same from every kind of votes."""

import csv
import json

import numpy as np
import pytest

from setwise.cli.app import run

from .conftest import setwise
from .test_commands import failure

N, LABELS = 400, ["ant", "cat", "owl"]
TRUTH = np.array(LABELS)[np.random.default_rng(0).integers(0, 3, N)].tolist()


def votes():
    """Who answered what about which item; nobody answered the last five."""
    rng = np.random.default_rng(1)
    for i in range(N - 5):
        for who in ("ann", "bob", "cyd"):
            yield f"c{i}", who, TRUTH[i] if rng.random() < 0.6 else LABELS[rng.integers(3)]


def as_table(folder):
    with (folder / "votes.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("custom_id", "worker", "answer"), *votes()])
    (folder / "items.csv").write_text("custom_id,text\n" + "".join(f"c{i},call {i}\n" for i in range(N)))
    return ["--votes", "votes.csv", "items.csv", "--key", "custom_id"]


def as_export(folder):
    tasks = {f"c{i}": {"id": i, "data": {"call": f"c{i}"}, "annotations": []} for i in range(N)}
    for item, who, label in votes():
        region = {"from_name": "bird", "type": "choices", "value": {"choices": [label]}}
        tasks[item]["annotations"].append({"completed_by": {"email": who}, "result": [region]})
    (folder / "export.json").write_text(json.dumps([*tasks.values()]))
    return ["--votes", "export.json", "--key", "call"]


def as_rows(folder):
    rows = [
        {"id": int(item[1:]), "call": item, "bird": label, "annotator": who, "annotation_id": i, "lead_time": 1}
        for i, (item, who, label) in enumerate(votes())
    ]
    rows += [
        {"id": i, "call": f"c{i}", "bird": "", "annotator": "", "annotation_id": "", "lead_time": ""}
        for i in range(N - 5, N)
    ]
    with (folder / "export.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, sorted(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return ["--votes", "export.csv", "--key", "call"]


def as_batch(folder):
    lines = [
        {"custom_id": item, "result": {"message": {"content": [{"type": "text", "text": f"Label: {label}"}]}}}
        for item, _, label in votes()
    ]
    lines += [{"custom_id": f"c{i}", "result": {"type": "errored"}} for i in range(N - 5, N)]
    (folder / "batch.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return ["--votes", "batch.jsonl", "--classes", "|".join(LABELS)]


def fill(path, column):
    """Somebody who knows writes the true label into each row."""
    with path.open(newline="") as file:
        rows = [*csv.DictReader(file)]
    for row in rows:
        row[column] = TRUTH[int(next(iter(row.values()))[1:])]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return rows


@pytest.mark.parametrize("given", [as_table, as_export, as_rows, as_batch])
def test_five_commands_lead_from_votes_to_the_final_table(tmp_path, given):
    told = given(tmp_path)
    key = told[told.index("--key") + 1] if "--key" in told else "custom_id"
    said = setwise("suggest", *told, "--budget", 100, "--out", "to-verify.csv", folder=tmp_path)
    assert f"drew 100 of {N} rows to verify" in said
    named = f" --key {key}" if "--key" in told else ""
    assert f"give triage  --verified to-verify.csv{named}\n" in said
    assert fill(tmp_path / "to-verify.csv", "verified")[1]["draw"] == f"2 of 100 from {N} rows, seed 0"
    triage = ("triage", *told, "--verified", "to-verify.csv", "--max-error", 0.1)
    setwise(*triage, "--out", "accepted.csv", "--review", "review.csv", folder=tmp_path)
    setwise(*triage, "--out", "again.csv", "--review", "r.csv", folder=tmp_path)
    assert (tmp_path / "accepted.csv").read_text() == (tmp_path / "again.csv").read_text()
    reviewed = fill(tmp_path / "review.csv", "label")
    assert {row["drawn"] for row in reviewed} == {"false"}
    files = ("accepted.csv", "to-verify.csv", "review.csv")
    said = setwise("merge", *files, "--key", key, "--out", "final.csv", folder=tmp_path)
    assert f"{N} rows have one label each" in said
    with (tmp_path / "final.csv").open(newline="") as file:
        final = {row[key]: row for row in csv.DictReader(file)}
    assert len(final) == N
    wrong = sum(row["label"] != TRUTH[int(name[1:])] for name, row in final.items())
    assert wrong <= 0.1 * N
    assert {row["source"] for row in final.values()} == {"accepted", "verified", "reviewed"}
    # the final table as a file of verified rows: the drawn ones decide again, nothing is left to review
    known = ("--verified", "final.csv:label", "--max-error", 0.1, "--out", "b.csv", "--review", "c.csv")
    said = setwise("triage", *told, *known, folder=tmp_path)
    assert "rows were verified or reviewed before" in said
    assert (tmp_path / "b.csv").read_text() == (tmp_path / "accepted.csv").read_text()
    assert len((tmp_path / "c.csv").read_text().splitlines()) == 1


def test_answers_from_review_are_refused_as_verified(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = as_export(tmp_path)
    setwise("suggest", *told, "--budget", 100, "--out", "v.csv", folder=tmp_path)
    fill(tmp_path / "v.csv", "verified")
    setwise("triage", *told, "--verified", "v.csv", "--out", "a.csv", "--review", "r.csv", folder=tmp_path)
    fill(tmp_path / "r.csv", "label")
    capsys.readouterr()
    assert run(["triage", *told, "--verified", "r.csv:label", "--out", "b.csv", "--review", "c.csv"]) == 2
    assert "error: r.csv: none of its rows was drawn at random" in capsys.readouterr().err


def test_tasks_for_label_studio_say_which_rows_were_drawn(tmp_path):
    told = as_export(tmp_path)
    setwise("suggest", *told, "--budget", 100, "--out", "v.json", folder=tmp_path)
    tasks = json.loads((tmp_path / "v.json").read_text())
    assert [task["data"]["drawn"] for task in tasks] == [True] * 100
    assert tasks[0]["data"]["draw"] == f"1 of 100 from {N} rows, seed 0"
    for task in tasks:
        region = {"from_name": "bird", "value": {"choices": [TRUTH[int(task["data"]["call"][1:])]]}}
        task["annotations"] = [{"completed_by": 1, "result": [region]}]
    (tmp_path / "verified.json").write_text(json.dumps(tasks))
    setwise("triage", *told, "--verified", "verified.json", "--out", "a.csv", "--review", "r.json", folder=tmp_path)
    assert {task["data"]["drawn"] for task in json.loads((tmp_path / "r.json").read_text())} == {False}


def test_what_a_draw_without_a_model_cannot_use_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = as_export(tmp_path)
    line = failure(capsys, "suggest", *told, "--budget", 10, "--out", "v.csv", "--confidence", 0.9)
    assert "--confidence: has no effect without a MODEL; leave it out" in line
    assert run(["suggest", *told, "--budget", "401", "--out", "v.csv"]) == 2
    assert "error: budget: 401 of 400 rows; draw 1 to 400 rows" in capsys.readouterr().err
    line = failure(capsys, "suggest", "--budget", 10, "--out", "v.csv")
    assert "give a MODEL and rows, or --votes FILE" in line


def test_a_project_of_texts_is_told_that_votes_need_no_model(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["fit", *as_table(tmp_path), "--ignore", "text", "--out", "m"]) == 2
    assert "items.csv: no column is left for the features. Votes alone need no model" in capsys.readouterr().err
