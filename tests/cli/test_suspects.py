"""`setwise suspects`: the rows whose given label looks wrong, from votes or a model, and what it needs."""

import json

import numpy as np
import pandas as pd
import pytest

import setwise as library
from setwise.cli.app import run

NAMES = np.array(["ant", "bee", "cat"])
N = 600


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Given labels with 15 % wrong, 200 verified rows, votes and probabilities."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, N)
    given = np.where(rng.random(N) < 0.15, (y + 1) % 3, y)
    seen = np.where(rng.random(N) < 0.995, y, rng.integers(0, 3, N))
    P = 0.9 * np.eye(3)[seen] + 0.1 / 3
    said = np.where(rng.random((N, 5)) < 0.85, y[:, None], rng.integers(0, 3, (N, 5)))
    truth = np.where(rng.permutation(N) < 200, NAMES[y], "")
    table = pd.DataFrame({"id": [f"r{i}" for i in range(N)], "label": NAMES[given], "truth": truth})
    table.to_csv("labels.csv", index=False)
    table.assign(**{f"p:{name}": P[:, k] for k, name in enumerate(NAMES)}).to_csv("scores.csv", index=False)
    lines = [(f"r{i}", f"w{j}", NAMES[label]) for i, row in enumerate(said) for j, label in enumerate(row)]
    pd.DataFrame(lines, columns=["id", "worker", "label"]).to_csv("votes.csv", index=False)
    return table, P, y, given


def done(capsys, *arguments):
    assert run([*arguments, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


VOTES = ("--votes", "votes.csv", "--key", "id")


@pytest.mark.parametrize(
    "how", [("labels.csv", *VOTES), ("--probabilities", "scores.csv"), ("--probabilities", "scores.csv", *VOTES)]
)
def test_the_rows_found_are_written_most_suspect_first(here, capsys, how):
    table, _, y, given = here
    told = done(capsys, "suspects", *how, "--verified", "truth", "--max-false", "0.2", "--out", "look.csv")
    found = pd.read_csv("look.csv", keep_default_na=False)
    assert told["found"] == len(found) > 40
    assert (told["verified"], told["rows"]) == (200, N)
    assert told["wrong"] == (NAMES[given] != NAMES[y])[table["truth"] != ""].sum()
    assert (np.diff(found["suspicion"]) <= 0).all()
    assert (found["truth"] == "").all()
    rows = found["id"].str[1:].astype(int).to_numpy()
    assert (given != y)[rows].mean() > 0.7
    assert (found["proposed"] == NAMES[y][rows]).mean() > 0.7
    assert 0 < told["bound"] < 0.6


def test_the_command_finds_what_the_function_finds(here, capsys):
    table, P, *_ = here
    told = done(capsys, "suspects", "--probabilities", "scores.csv", "--verified", "truth", "--out", "look.csv")
    verified = np.where(table["truth"] == "", None, table["truth"])
    scores = pd.DataFrame(P, columns=NAMES)
    found = library.suspects(table["label"], verified, probabilities=scores, random_state=0)
    assert pd.read_csv("look.csv")["id"].tolist() == table["id"][found.rows].tolist()
    assert told["bound"] == found.bound
    assert run(["suspects", "--probabilities", "scores.csv", "--verified", "truth", "--out", "more.csv"]) == 0
    text = capsys.readouterr().out
    assert "labels look wrong" in text
    assert "the most suspect first" in text


MISTAKES = {
    "give a FILE with labels and --votes": ("--verified", "truth"),
    "name --votes FILE, or --probabilities FILE": ("labels.csv", "--verified", "truth"),
    "has no column 'lable'": ("labels.csv", *VOTES, "--verified", "truth", "--given", "lable"),
    "suspects needs verified labels; use --verified": ("labels.csv", *VOTES),
    "use --key": ("labels.csv", "--votes", "votes.csv", "--verified", "truth"),
    "max_false": ("--probabilities", "scores.csv", "--verified", "truth", "--max-false", "2"),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_have_a_remedy(here, capsys, tmp_path, message):
    assert run(["suspects", *MISTAKES[message], "--out", "look.csv"]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "look.csv").exists()
