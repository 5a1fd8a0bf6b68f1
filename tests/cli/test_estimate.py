"""`setwise estimate`: figures from files of answers, of rows, of sets; what it writes and what it needs."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from setwise import Votes
from setwise import estimate as in_python
from setwise.cli.app import run

NAMES = np.array(["ant", "bee"])
N = 400


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Answers of three people, 120 verified rows, probabilities of a model, and sets."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    said = np.where(rng.random((N, 3)) < [0.9, 0.8, 0.7], y[:, None], 1 - y[:, None])
    ids = [f"r{i}" for i in range(N)]
    truth = np.where(rng.permutation(N) < 120, NAMES[y], "")
    lines = [(ids[i], f"w{j}", NAMES[label]) for i, row in enumerate(said) for j, label in enumerate(row)]
    pd.DataFrame(lines, columns=["item", "annotator", "label"]).to_csv("answers.csv", index=False)
    rows = pd.DataFrame({"item": ids, "truth": truth, "land": np.where(np.arange(N) < 150, "AT", "CH")})
    P = 0.8 * np.eye(2)[np.where(rng.random(N) < 0.9, y, 1 - y)] + 0.1
    rows = rows.assign(set=np.where(rng.random(N) < 0.3, "ant|bee", NAMES[said[:, 0]]), doc=np.arange(N) // 4)
    rows.to_csv("rows.csv", index=False)
    rows.assign(**{"p:ant": P[:, 0], "p:bee": P[:, 1]}).to_csv("scores.csv", index=False)
    return y, said, truth


def done(capsys, *arguments):
    assert run(["estimate", *arguments, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


VERIFIED = ("--verified", "rows.csv:truth")
ROWS = ("rows.csv", "--votes", "answers.csv", "--key", "item", "--verified", "truth")


def test_answers_alone_give_what_the_library_gives(here, capsys):
    _, said, truth = here
    told = done(capsys, "answers.csv", *VERIFIED, "--out", "figures.csv")
    votes = Votes.from_matrix(NAMES[said], annotators=["w0", "w1", "w2"])
    same = in_python(votes, [label or None for label in truth])
    assert told["figures"] == same.to_dict()["figures"]
    assert (told["rows"], told["verified"], told["out"]) == (N, 120, "figures.csv")
    written = pd.read_csv("figures.csv")
    np.testing.assert_allclose(written["lower"], same.lower)
    assert '"share","ant",,' in Path("figures.csv").read_text()  # no label is an empty cell
    assert written["name"].tolist() == same.name.tolist()


def test_a_table_of_the_rows_brings_categories_groups_and_probabilities(here, capsys):
    by = done(capsys, *ROWS, "--by", "land")["figures"]
    assert {one["category"] for one in by} == {None, "AT", "CH"}
    grouped, alone = done(capsys, *ROWS, "--groups", "doc"), done(capsys, *ROWS)
    assert grouped["figures"][0]["value"] == np.mean(here[2][here[2] != ""] == "ant")
    assert grouped["figures"] != alone["figures"]
    scores = ("--probabilities", "scores.csv", "--votes", "answers.csv", "--key", "item", "--verified", "truth")
    assert "model" in {one["name"] for one in done(capsys, *scores)["figures"]}


def test_sets_in_a_table_have_a_coverage(here, capsys):
    told = done(capsys, "rows.csv", "--candidates", "set", "--verified", "truth")["figures"]
    assert [one["what"] for one in told] == ["share", "share", "coverage"]


def test_the_positive_label_is_the_one_that_was_named(here, capsys):
    for positive in NAMES:
        told = done(capsys, "answers.csv", *VERIFIED, "--positive", positive)["figures"]
        assert {one["label"] for one in told if one["what"] == "sensitivity"} == {positive}


def test_people_read_a_table_and_what_holds(here, capsys):
    assert run(["estimate", "answers.csv", *VERIFIED]) == 0
    told = capsys.readouterr().out
    assert "120 of 400 rows are verified." in told
    assert "accuracy of w0" in told
    assert "sensitivity of w0" not in told
    assert "Guaranteed:" in told
    assert run(["estimate", "answers.csv", *VERIFIED, "--all"]) == 0
    assert "sensitivity of w0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["answers.csv"], "--verified: answers alone do not show who is right; name a FILE"),
        (["answers.csv", *VERIFIED, "--by", "land"], "--by: names a column of the rows. Give their table as FILE"),
        (["answers.csv", *VERIFIED, "--positive", "cow"], "positive: 'cow' is not one of two classes; name one of"),
        (["rows.csv", *VERIFIED], "rows.csv"),
        ([*VERIFIED], "estimate: give a FILE of answers"),
        (["answers.csv", "--verified", "none.csv"], "--verified: 'none.csv' is no file"),
        (["answers.csv", "--verified", "chosen.csv"], "chosen.csv: none of its rows was drawn at random"),
    ],
)
def test_an_error_names_what_is_wrong_and_the_remedy(here, capsys, arguments, said):
    table = pd.DataFrame({"item": ["r0", "r1"], "verified": ["ant", "bee"], "drawn": [False, False]})
    table.to_csv("chosen.csv", index=False)
    assert run(["estimate", *arguments]) == 2
    assert said in capsys.readouterr().err
