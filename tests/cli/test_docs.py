"""Every command that the documentation shows is run, in the order shown, and says what is shown."""

import csv
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow.csv

from setwise.cli.app import run
from tests.report.test_label_pages import data_of

from .conftest import write

ROOT = Path(__file__).parent.parent.parent
NAMES = ["wren", "owl", "lark", "crow"]  # not in alphabetical order


def birds(n, seed):
    """Calls of birds: measurements with gaps, what listeners said, which bird it was, and a model's guesses."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    X = np.round(2 * np.eye(4)[y] + rng.normal(size=(n, 4)), 3)
    heard = (np.eye(4)[y] + (rng.random((n, 4)) < 0.15)) > 0
    guesses = 0.4 * rng.dirichlet(np.ones(4), n) + 0.6 * np.eye(4)[y]
    return {
        "measured": {name: X[:, j] for j, name in enumerate(["length", "pitch", "trill", "pause"])},
        "id": [f"call-{seed}-{i:03d}" for i in range(n)],
        "site": [["marsh", "wood"][k] for k in (X[:, 0] > 0.5).astype(int)],
        "answers": [[NAMES[k] for k in np.flatnonzero(row)] for row in heard],
        "bird": [NAMES[k] for k in y],
        "guesses": dict(zip(NAMES, guesses.T, strict=True)),
    }


def files(folder, *beside, n=600):
    """What the documents speak of, with `n` rows to learn from; beside the measurements stand these columns."""
    old, new = birds(n, 0), birds(n // 2, 1)
    write(folder / "votes.csv", {**{k: old[k] for k in beside}, **old["measured"], "answers": old["answers"]})
    write(folder / "new.csv", {**{k: new[k] for k in beside}, **new["measured"], "bird": new["bird"]})
    write(folder / "calls.csv", {"id": old["id"], **old["measured"]})
    write(folder / "scores.csv", {"id": old["id"], **old["guesses"]})
    write(folder / "answers.csv", {"id": old["id"], "site": old["site"], "candidates": old["answers"]})
    write(folder / "new-scores.csv", {**{k: new[k] for k in (*beside, "bird")}, **new["guesses"]})
    write(folder / "labelled.csv", {**new["measured"], "bird": new["bird"]})
    heard = [(call, f"listener {j}", bird) for call, row in enumerate(old["answers"]) for j, bird in enumerate(row)]
    columns = zip(*heard, strict=True)
    write(folder / "listeners.csv", dict(zip(["task", "worker", "label"], columns, strict=True)))
    rng, truth = np.random.default_rng(2), np.array([NAMES.index(bird) for bird in old["bird"]])
    right = rng.random((n, 5)) < [0.9, 0.85, 0.8, 0.7, 0.0]
    said = np.where(right, truth[:, None], rng.integers(0, 4, (n, 5)))
    calls, people = np.nonzero(np.ones_like(said))
    write(
        folder / "answers-long.csv",
        {
            "call": [old["id"][i] for i in calls],
            "listener": [["ann", "bob", "cyd", "dan", "eve"][j] for j in people],
            "bird": [NAMES[k] for k in said[calls, people]],
        },
    )
    asked = rng.permutation(n)[: n // 6 + 5]
    answers = [old["bird"][i] for i in asked[:-5]] + [""] * 5
    write(folder / "verified.csv", {"id": [old["id"][i] for i in asked], "verified": answers})
    rates = np.full((4, 4), 0.15) + 0.85 * np.eye(4)
    write(folder / "rates.csv", dict(zip(NAMES, rates.T, strict=True)))
    return folder


def console_blocks(text):
    """(command, what it is shown to say) of every console block, in order."""
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown


def bare_commands(text):
    """Every line of a block and every span of a sentence that begins with setwise."""
    for number, part in enumerate(text.split("```")):
        found = part.splitlines() if number % 2 else re.findall(r"`([^`]*)`", part)
        yield from (line for line in found if line.startswith("setwise "))


def test_the_console_blocks_run_as_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(files(tmp_path, "id", "site"))
    shown = list(console_blocks((ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")))
    assert len(shown) > 10
    for command, expected in shown:
        assert command.startswith("setwise "), command
        assert run(shlex.split(command, comments=True)[1:]) == 0, (command, capsys.readouterr().err)
        got = capsys.readouterr().out
        assert says(got, expected), f"{command}\n{got}"


def says(got, shown):
    """Whether this was said, with anything in place of … and with any white space."""
    parts = ("".join(part.split()) for part in shown.split("…"))
    return not shown.strip() or re.fullmatch(".*".join(map(re.escape, parts)), "".join(got.split()))


def choices(*labels):
    return [{"from_name": "bird", "to_name": "audio", "type": "choices", "value": {"choices": list(labels)}}]


def project(folder):
    """A labelling project: calls, and an export in which three people answered; the true birds by call."""
    rng = np.random.default_rng(3)
    sources = {"calls.csv": (birds(500, 4), "c"), "new.csv": (birds(200, 5), "n")}
    truth = {}
    for file, (made, mark) in sources.items():
        names = [f"{mark}-{i:04d}" for i in range(len(made["bird"]))]
        audio = [f"https://example.org/{name}.ogg" for name in names]
        write(folder / file, {"call": names, **made["measured"], "audio": audio})
        truth |= dict(zip(names, made["bird"], strict=True))
    tasks = []
    for number, call in enumerate(name for name in truth if name.startswith("c")):
        heard = [truth[call] if rng.random() < 0.85 else NAMES[rng.integers(4)] for _ in range(3)]
        annotations = [{"completed_by": who, "result": choices(bird)} for who, bird in enumerate(heard)]
        tasks.append({"id": 7000 + number, "data": {"call": call}, "annotations": annotations})
    (folder / "export.json").write_text(json.dumps(tasks), encoding="utf-8")
    return truth


def answered(folder, truth):
    """What somebody who knows answers in Label Studio to the tasks drawn for it."""
    tasks = json.loads((folder / "to-verify.json").read_text(encoding="utf-8"))
    assert not any("predictions" in task for task in tasks)
    told = [
        {"id": i, **task, "annotations": [{"result": choices(truth[task["data"]["call"]])}]}
        for i, task in enumerate(tasks)
    ]
    (folder / "answers.json").write_text(json.dumps(told), encoding="utf-8")


def test_the_round_trip_runs_as_shown_and_accounts_for_every_call(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    truth = project(tmp_path)
    shown = list(console_blocks((ROOT / "docs" / "guide" / "round-trip.md").read_text(encoding="utf-8")))
    assert [command.split()[1] for command, _ in shown] == ["fit", "suggest", "triage", "fit", "triage"]
    for command, expected in shown:
        assert run(shlex.split(command)[1:]) == 0, (command, capsys.readouterr().err)
        got = capsys.readouterr().out
        assert says(got, expected), f"{command}\n{got}"
        if command.split()[1] == "suggest":
            answered(tmp_path, truth)
    accepted = pyarrow.csv.read_csv(tmp_path / "accepted.csv").to_pylist()
    review = json.loads((tmp_path / "review.json").read_text(encoding="utf-8"))
    checked = json.loads((tmp_path / "answers.json").read_text(encoding="utf-8"))
    calls = [row["call"] for row in accepted] + [task["data"]["call"] for task in (*review, *checked)]
    assert sorted(calls) == sorted(call for call in truth if call.startswith("c"))
    assert np.mean([row["label"] == truth[row["call"]] for row in accepted]) > 0.9
    (result,) = review[0]["predictions"][0]["result"]
    assert (result["from_name"], result["to_name"]) == ("bird", "audio")
    scores = [task["predictions"][0]["score"] for task in review]
    assert scores == sorted(scores)


TOPICS = {
    "health": "doctor vaccine clinic sleep",
    "money": "bank tax wage price",
    "space": "orbit probe moon star",
    "sport": "goal coach race match",
}


def batch(folder, n=1000):
    """Texts, and a language model's answers to them, three to each; the topics by text."""
    rng, names = np.random.default_rng(0), np.array([*TOPICS])
    ids, y, hard = [f"t-{i:04d}" for i in range(n)], rng.integers(0, 4, n), rng.random(n) < 0.3
    habit = np.where(rng.random(n) < np.where(hard, 0.5, 0.99), y, rng.integers(0, 4, n))
    steady = rng.random((n, 3)) < np.where(hard, 0.6, 0.98)[:, None]
    said = names[np.where(steady, habit[:, None], rng.integers(0, 4, (n, 3)))]
    texts = [" ".join(rng.choice(TOPICS[name].split(), 3)) for name in names[y]]
    write(folder / "texts.csv", {"id": ids, "text": texts})
    lines = [
        {
            "custom_id": name,
            "response": {"body": {"choices": [{"message": {"content": f"Topic: {topic}"}} for topic in row]}},
        }
        for name, row in zip(ids, said, strict=True)
    ]
    (folder / "batch.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return dict(zip(ids, names[y].tolist(), strict=True))


def download(page, truth):
    """What somebody who knows downloads from a page."""
    held = data_of(page)
    with (page.parent / held["file"]).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(held["header"])
        writer.writerows([row["key"], truth[row["key"]], *row["marks"], ""] for row in held["rows"])


def test_the_guide_on_shipping_runs_as_shown_and_keeps_its_guarantee(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    truth = batch(tmp_path)
    shown = list(console_blocks((ROOT / "docs" / "guide" / "ship-a-data-set.md").read_text(encoding="utf-8")))
    assert [command.split()[1] for command, _ in shown] == ["suggest", "triage", "merge"]
    for command, expected in shown:
        assert run(shlex.split(command)[1:]) == 0, (command, capsys.readouterr().err)
        got = capsys.readouterr().out
        assert says(got, expected), f"{command}\n{got}"
        if "--page" in command:
            download(tmp_path / re.findall(r"--page (\S+)", command)[0], truth)
    final = pyarrow.csv.read_csv(tmp_path / "final.csv").to_pylist()
    assert [row["id"] for row in final] == [*truth]
    wrong = [row for row in final if row["label"] != truth[row["id"]]]
    assert 0 < len(wrong) <= 50
    assert {row["source"] for row in wrong} == {"accepted"}
    page = (ROOT / "docs" / "guide" / "ship-a-data-set.md").read_text(encoding="utf-8")
    assert f"In this example {len(wrong) / 1000:.1%}".replace("%", " %") in page.replace("\n", " ")


def test_the_commands_of_the_readme_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(files(tmp_path, "id", n=160))
    (tmp_path / "votes.csv").rename(tmp_path / "photos.csv")
    truth = {f"r{row}": "jay" if row % 3 else "crow" for row in range(400)}
    write(tmp_path / "rows.csv", {"id": [*truth], "text": [f"a bird, {row}" for row in truth]})
    answers = [
        (row, who, "crow" if (number + place) % 11 == 0 else bird)
        for number, (row, bird) in enumerate(truth.items())
        for place, who in enumerate("abc")
    ]
    write(
        tmp_path / "answers.csv", dict(zip(("id", "annotator", "label"), zip(*answers, strict=True), strict=True))
    )
    named = bare_commands((ROOT / "README.md").read_text(encoding="utf-8"))
    commands = [command for command in named if command.split()[1] != "demo"]  # test_commands.py runs it
    assert {command.split()[1] for command in commands} >= {"inspect", "fit", "predict", "evaluate", "conformalize"}
    for command in commands:
        assert run(shlex.split(command, comments=True)[1:]) == 0, (command, capsys.readouterr().err)
        if "--page" in command:
            download(tmp_path / re.findall(r"--page (\S+)", command)[0], truth)
    assert len(pyarrow.csv.read_csv(tmp_path / "final.csv")) == 400


def test_every_command_and_the_json_of_each_are_documented():
    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    ran = {command.split()[1] for command, _ in console_blocks(text)}
    assert ran >= {"inspect", "fit", "predict", "conformalize", "evaluate", "contaminate", "convert", "datasets"}
    for option in ("--by", "--cross", "--assume", "--json", "--quiet", "--seed", "--force", "--install-completion"):
        assert option in text
