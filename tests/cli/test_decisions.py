"""`setwise suggest` and `setwise triage`, and the checks that come back in a file of their own."""

import html
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from setwise import LabelSets
from setwise.cli.app import run
from setwise.cli.triage import _Decided
from setwise.tables import read_table
from setwise.tables.label_notation import encode_labels
from setwise.tables.set_files import set_writer
from tests.report.test_label_pages import data_of

from .conftest import setwise, write
from .test_commands import failure

LABELS = ["a|b", "7", " owl", 'c"d,e']  # text that files could take for something else
TEXT = dict(zip(LABELS, encode_labels(LABELS, "|"), strict=True))  # as labels are written in text
NAMES = ["=1+1", 'say "hi"', "two\nlines", "ü, ñ", "0007", "</script>"]
N, M = 300, 120


def world(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    X = np.round(2.3 * np.eye(4)[y] + rng.normal(size=(n, 4)), 4)
    mask = (np.eye(4)[y] + (rng.random((n, 4)) < 0.15)) > 0
    ids = [f"{NAMES[i % len(NAMES)]} {seed}-{i}" for i in range(n)]
    return ids, X, mask, [LABELS[k] for k in y], rng


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables, votes and checks; a split model and a calibration with and without them, and a cross model."""
    place = tmp_path_factory.mktemp("decisions")
    for name, n, seed in (("old", N, 0), ("new", M, 1)):
        ids, X, mask, truth, rng = world(n, seed)
        columns = {"id": ids, **dict(zip("wxyz", X.T, strict=True))}
        with set_writer(place / f"{name}.csv", column="answers", sizes=False) as writer:
            writer.append(LabelSets.from_mask(mask, LABELS), columns)
        P = np.exp(2 * X) / np.exp(2 * X).sum(axis=1, keepdims=True)
        scores = dict(zip([f"p:{text}" for text in TEXT.values()], P.T, strict=True))
        write(place / f"{name}-scores.csv", {"id": ids, **scores})
    ids, _, _, truth, rng = world(N, 0)
    said = np.where(rng.random((N, 3)) < 0.9, np.array([LABELS.index(t) for t in truth])[:, None], rng.integers(4))
    items, people = np.nonzero(np.ones_like(said))
    long = {"item": [ids[i] for i in items], "who": people, "label": [TEXT[LABELS[k]] for k in said[items, people]]}
    write(place / "votes.csv", long)
    drawn = rng.permutation(N)[:80]
    pq.write_table(
        pa.table({"id": [ids[i] for i in drawn], "verified": [truth[i] for i in drawn[:70]] + [None] * 10}),
        place / "checks.parquet",
    )
    fit = ("fit", "old.csv", "--candidates", "answers", "--key", "id", "--learner", "em", "-q", "--out")
    half = ("--calibration-size", "0.5")
    setwise(*fit, "model", *half, "--verified", "checks.parquet", folder=place)
    setwise(*fit, "unchecked", *half, folder=place)
    setwise(*fit, "crossed", "--cross", "3", folder=place)
    cal = ("conformalize", "--probabilities", "old-scores.csv", "--labels", "old.csv", "--candidates", "answers")
    setwise(*cal, "--key", "id", "--verified", "checks.parquet", "--out", "model.cal", "-q", folder=place)
    setwise(*cal, "--key", "id", "--out", "unchecked.cal", "-q", folder=place)
    return place


@pytest.fixture
def here(folder, tmp_path, monkeypatch):
    """The folder to read from is the present one; `tmp_path` is to write to."""
    monkeypatch.chdir(folder)
    return tmp_path


def rows_of(path):
    """The rows of a file by their columns; of tasks their data and what is predicted."""
    if path.suffix == ".json":
        tasks = json.loads(path.read_text(encoding="utf-8"))
        said = [task.get("predictions", [{"result": [{"value": {"choices": [None]}}]}])[0] for task in tasks]
        labels = [one["result"][0]["value"]["choices"][0] for one in said]
        return [task["data"] | {"label": label} for task, label in zip(tasks, labels, strict=True)]
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return pyarrow.csv.read_csv(
        path,
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False),
    ).to_pylist()


def decided(*arguments, to, suffix=".csv"):
    """What a triage says as numbers, and the rows of both files."""
    out, review = to / f"accepted{suffix}", to / f"review{suffix}"
    said = setwise("triage", *arguments, "--out", out, "--review", review, "--json", "--force", folder=".")
    return json.loads(said), rows_of(out), rows_of(review)


def ids_of(*parts):
    return sorted(row["id"] for part in parts for row in part)


# -------------------------------------------------------------------- triage


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl", ".json"])
def test_every_new_row_comes_out_once_with_its_columns_in_every_format(here, suffix):
    told, accepted, review = decided("model", "new.csv", "--max-error", "0.1", to=here, suffix=suffix)
    ids, X, _, truth, _ = world(M, 1)
    assert ids_of(accepted, review) == sorted(ids)
    assert (told["rows"], told["accepted"], told["review"]) == (M, len(accepted), len(review))
    assert told["accepted"] > 50
    one = accepted[0]
    assert float(one["w"]) == X[ids.index(one["id"]), 0]
    right = dict(zip(ids, truth, strict=True))
    if suffix == ".csv":
        read = read_table(here / "accepted.csv", truth="label", features=[], carry=["id"], classes=LABELS)
        labels = dict(zip(read.carried["id"], read.truth, strict=True))
    else:
        labels = {row["id"]: row["label"] for row in accepted}
    assert set(labels.values()) <= set(LABELS)
    assert np.mean([labels[name] == right[name] for name in labels]) > 0.85


def test_the_review_starts_with_the_least_confident_rows(here):
    told, accepted, review = decided("model", "new.csv", "--max-error", "0.15", "--mode", "accepted", to=here)
    confidence = [row["confidence"] for row in review]
    assert len(review) > 2
    assert confidence == sorted(confidence)
    assert [row["rank"] for row in review] == list(range(1, len(review) + 1))
    assert told["mode"] == "accepted"
    assert min(row["confidence"] for row in accepted) > confidence[-1] if accepted else told["threshold"] is None


def test_the_rows_of_the_fit_are_decided_accepted_reviewed_checked_or_learned_from(here):
    told, accepted, review = decided("model", "old.csv", "--max-error", "0.1", to=here)
    assert told["checked"] == 70
    assert told["undecided"] == N // 2
    assert told["rows"] == N == told["accepted"] + told["review"] + told["checked"] + told["undecided"]
    assert told["accepted"] + told["review"] == N // 2 - 70
    checked = {row["id"] for row in pq.read_table("checks.parquet").to_pylist() if row["verified"]}
    assert not checked & set(ids_of(accepted, review))
    places = [world(N, 0)[0].index(row["id"]) for row in accepted]
    assert places == sorted(places)
    learned = review[-N // 2 :]
    assert all(row["proposed"] is None and row["confidence"] is None for row in learned)
    assert all(row["proposed"] is not None for row in review[: -N // 2])
    said = setwise("triage", "model", "old.csv", "--out", here / "a.csv", "--review", here / "b.csv", folder=".")
    assert "150 rows are not decided, and stand last in" in said
    assert "the model learned from them" in said
    assert "70 rows were verified or reviewed before" in said


def test_a_cross_conformal_model_decides_every_row_and_takes_the_checks_here(here):
    checks = ("--verified", "checks.parquet", "--key", "id", "--max-error", "0.1")
    told, accepted, review = decided("crossed", "old.csv", *checks, to=here)
    assert (told["checked"], told["undecided"]) == (70, 0)
    checked = [row for row in pq.read_table("checks.parquet").to_pylist() if row["verified"]]
    assert ids_of(accepted, review, checked) == sorted(world(N, 0)[0])
    assert told["accepted"] > 100


def test_a_calibration_knows_its_own_rows_by_their_probabilities(here):
    told, accepted, review = decided("model.cal", "--probabilities", "old-scores.csv", to=here)
    assert (told["checked"], told["rows"]) == (70, N)
    assert len(accepted) + len(review) == N - 70
    assert "same source" not in told["guarantee"]["text"]
    told, accepted, review = decided("model.cal", "--probabilities", "new-scores.csv", to=here)
    assert (told["checked"], len(accepted) + len(review)) == (0, M)
    assert "new rows come from the same source" in told["guarantee"]["text"]


def test_rows_of_a_constant_model_are_not_taken_for_those_it_was_calibrated_on(here):
    rows = {"owl": [0.75] * 60, "wren": [0.25] * 60}
    for name in ("old", "new"):
        write(here / f"{name}.csv", {"id": [f"{name} {i}" for i in range(60)], **rows})
    write(here / "labels.csv", {"id": [f"old {i}" for i in range(60)], "candidates": ["owl", "owl|wren"] * 30})
    write(here / "checks.csv", {"id": [f"old {i}" for i in range(30)], "verified": ["owl"] * 30})
    given = ("--labels", here / "labels.csv", "--key", "id", "--verified", here / "checks.csv")
    setwise("conformalize", "--probabilities", here / "old.csv", *given, "--out", here / "c.cal", "-q", folder=here)
    told, accepted, review = decided(
        here / "c.cal", "--probabilities", here / "new.csv", "--max-error", "0.2", to=here
    )
    assert (told["rows"], told["checked"]) == (60, 0)
    assert sorted(row["id"] for row in (*accepted, *review)) == sorted(f"new {i}" for i in range(60))


def test_candidates_of_new_rows_count(here):
    plain, *_ = decided("model", "new.csv", "--max-error", "0.1", to=here)
    more, *_ = decided("model", "new.csv", "--candidates", "answers", "--max-error", "0.1", to=here)
    assert "candidates arise for new rows as they did" in more["guarantee"]["text"]
    assert "candidates arise" not in plain["guarantee"]["text"]


@pytest.mark.parametrize("file", [(), ("old.csv",)])
def test_votes_alone_will_do(here, file):
    votes = ("--votes", "votes.csv", "--item", "item", "--annotator", "who", "--label", "label", "--key", "id")
    told, accepted, review = decided(*file, *votes, "--verified", "checks.parquet", "--max-error", "0.1", to=here)
    assert (told["rows"], told["checked"]) == (N, 70)
    name = "id" if file else "item"
    checked = [row["id"] for row in pq.read_table("checks.parquet").to_pylist() if row["verified"]]
    assert sorted([row[name] for row in (*accepted, *review)] + checked) == sorted(world(N, 0)[0])
    assert told["accepted"] > 100


def test_votes_and_probabilities_decide_together_and_no_option_does_nothing(here, capsys):
    voted = ("triage", "--votes", "votes.csv", "--item", "item", "--annotator", "who", "--label", "label")
    rest = ("--key", "id", "--verified", "checks.parquet", "--review", str(here / "no.csv"), "--force", "-q")
    for out, more in (("alone.csv", ()), ("both.csv", ("--probabilities", "old-scores.csv"))):
        assert run([*voted, *rest, *more, "--out", str(here / out)]) == 0
    alone, both = (read_table(here / name, features=[], carry=["confidence"]) for name in ("alone.csv", "both.csv"))
    assert not np.array_equal(alone.carried["confidence"], both.carried["confidence"])
    arguments = [*voted[1:], *rest, "--out", str(here / "x.csv")]
    assert "none.csv: there is no such file" in failure(capsys, "triage", *arguments, "--probabilities", "none.csv")
    said = failure(capsys, "triage", "old.csv", *arguments, "--probabilities", "old-scores.csv")
    assert "--probabilities: this file holds the rows to decide; leave out FILE" in said


def test_tasks_may_be_called_by_numbers_and_by_text(here):
    names = [k if k % 2 else f"c{k}" for k in range(90)]
    region = {"from_name": "kind", "type": "choices", "value": {"choices": ["owl"]}}
    tasks = [{"data": {"call": name}, "annotations": [{"completed_by": 1, "result": [region]}]} for name in names]
    tasks[0]["annotations"][0]["result"] = [region | {"value": {"choices": ["wren"]}}]
    (here / "votes.json").write_text(json.dumps(tasks), encoding="utf-8")
    write(here / "checks.csv", {"call": list(map(str, names[10:80])), "verified": ["owl"] * 70})
    given = ("--votes", here / "votes.json", "--key", "call", "--verified", here / "checks.csv")
    told, accepted, review = decided(*given, to=here)
    assert sorted(row["call"] for row in (*accepted, *review)) == sorted(map(str, names[:10] + names[80:]))
    assert told["checked"] == 70


def test_accepted_rows_go_to_standard_output(here):
    said = setwise("triage", "model", "new.csv", "--out", "-", "--review", here / "r.csv", folder=".")
    assert said.startswith('"id","w","x","y","z","answers","label","confidence"')


def test_rows_that_are_lost_or_twice_are_our_fault():
    class Found:
        rows = np.array([0, 1])

    given = {"id": pa.array(["a", "b", "c"])}
    assert _Decided(given, [], Found, np.array([2])).undecided.tolist() == []
    assert _Decided(given, [], Found, np.array([], int)).undecided.tolist() == [2]
    assert _Decided(given, [], Found, np.array([1])).undecided.tolist() == [2]
    Found.rows = np.array([0, 0])
    with pytest.raises(RuntimeError, match="rows of 3"):
        _ = _Decided(given, [], Found, np.array([2])).undecided


VOTES = ("--votes", "votes.csv", "--item", "item", "--annotator", "who")
CHECKS = ("--verified", "checks.parquet", "--key", "id")
MISTAKES = {
    "no model": ((), "give a MODEL with verified rows, or --votes FILE with --verified"),
    "a table for a model": (("new.csv",), "name a MODEL before it, or --votes FILE"),
    "no checks": (("unchecked", "new.csv"), "give them to fit or conformalize with --verified"),
    "no checks in a calibration": (("unchecked.cal", "--probabilities", "new-scores.csv"), "with --verified"),
    "checks again": (
        ("model", "new.csv", *CHECKS),
        "--verified: model has the verified labels that it was calibrated with; leave out --verified",
    ),
    "folds and new rows": (("crossed", "new.csv"), "decides the rows that it was fitted on, in their order"),
    "a model alone": (("crossed",), "crossed: name the FILE with the rows to decide"),
    "folds without checks": (
        ("crossed", "old.csv"),
        "needs verified labels, to see how often proposals are wrong; use --verified",
    ),
    "votes without checks": (VOTES, "--verified: votes alone do not show who is right"),
    "votes without a key": (("old.csv", *VOTES, "--verified", "w"), "use --key … to name its column"),
    "votes of a table without checks": (
        ("old.csv", *VOTES, "--key", "id"),
        "needs verified labels, to see how often proposals are wrong; use --verified",
    ),
    "votes and candidates": ((*VOTES, *CHECKS, "--candidates", "answers"), "leave out --candidates"),
    "a calibration and a table": (("model.cal", "new.csv"), "needs probabilities; use --probabilities"),
    "no such mode": (
        ("model", "new.csv", "--mode", "fast"),
        "use --mode overall, or use --mode accepted, or use --mode average",
    ),
    "an error of 2": (("model", "new.csv", "--max-error", "2"), "max_error"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_have_a_remedy(here, capsys, mistake):
    arguments, message = MISTAKES[mistake]
    out = ("--out", here / "a.csv", "--review", here / "r.csv")
    assert message in failure(capsys, "triage", *arguments, *out)
    assert not list(here.iterdir())


def test_one_file_cannot_take_both(here, capsys):
    line = failure(capsys, "triage", "model", "new.csv", "--out", here / "a.csv", "--review", here / "a.csv")
    assert "--review: is the file of --out" in line


@pytest.mark.parametrize(
    ("column", "remedy"), [("label", "--answer"), ("confidence", "rename it"), ("rank", "rename it")]
)
def test_a_column_that_is_there_already_is_named(here, capsys, column, remedy):
    table = read_table("new.csv", features=[*"wxyz"], carry=["id"])
    write(here / "t.csv", {column: table.carried["id"].tolist(), **dict(zip("wxyz", table.X.T, strict=True))})
    arguments = ("triage", "model", here / "t.csv", "--out", here / "a.csv", "--review", here / "r.csv")
    line = failure(capsys, *arguments)
    assert f"there is a column {column!r} already" in line
    assert remedy in line
    assert [path.name for path in here.iterdir()] == ["t.csv"]
    if remedy == "--answer":
        assert run([*map(str, arguments), "--answer", "ours", "-q"]) == 0


@pytest.mark.parametrize(
    ("command", "name"), [("triage", "confidence"), ("triage", "proposed"), ("suggest", "drawn")]
)
def test_a_column_of_labels_cannot_be_called_as_another_that_is_written(here, capsys, command, name):
    arguments = {
        "triage": ("model", "new.csv", "--out", here / "a.csv", "--review", here / "r.csv"),
        "suggest": (*SUGGEST[1:], "--out", here / "a.csv"),
    }
    line = failure(capsys, command, *arguments[command], "--answer", name)
    assert f"{name!r} is the name of another column that is written" in line
    assert not list(here.iterdir())


# -------------------------------------------------------------------- suggest, and back


SUGGEST = ("suggest", "unchecked", "old.csv", "--candidates", "answers", "--key", "id", "--budget", "60")


def test_rows_are_drawn_in_random_order_with_their_columns_and_an_empty_one(here):
    said = json.loads(setwise(*SUGGEST, "--out", here / "t.csv", "--json", folder="."))
    rows = rows_of(here / "t.csv")
    ids = world(N, 0)[0]
    assert len({row["id"] for row in rows}) == 60 == said["drawn"]
    places = [ids.index(row["id"]) for row in rows]
    assert places != sorted(places)
    assert min(places) < N // 6 < 5 * N // 6 < max(places)
    assert said["chance"] == 60 / N
    assert {row["drawn"] for row in rows} == {True}
    assert rows[1]["draw"] == f"2 of 60 from {N} rows, seed 0"
    assert {row["verified"] for row in rows} == {""}
    assert said["size_then"] < said["size_now"]
    assert "50" in said["curve"]


def test_what_is_said_leads_back(here):
    said = setwise(*SUGGEST, "--out", here / "t.csv", "--answer", "truth", folder=".")
    assert "drew 60 of 300 rows to verify, each with probability 0.2" in said
    assert "if the model is right" in said
    assert "With other numbers of rows to verify: 10 rows: " in said
    assert "in random order" in said
    assert "--look 1, --look 2" in said
    assert said.splitlines()[-1].endswith("t.csv:truth --key id")
    rows, truth = rows_of(here / "t.csv"), dict(zip(*world(N, 0)[:4:3], strict=True))
    filled = [truth[row["id"]] for row in rows]
    pq.write_table(pa.table({"id": [row["id"] for row in rows], "truth": filled}), here / "t.parquet")
    fit = ("fit", "old.csv", "--candidates", "answers", "--learner", "em", "--out", here / "m")
    told = setwise(*fit, "--verified", f"{here}/t.parquet:truth", "--key", "id", folder=".")
    assert "from 60 calibration rows, all of them verified" in told


def test_rows_that_were_checked_are_not_drawn_again(here):
    setwise(*SUGGEST, *CHECKS[:2], "--out", here / "t.csv", folder=".")
    checked = {row["id"] for row in pq.read_table("checks.parquet").to_pylist() if row["verified"]}
    assert not checked & {row["id"] for row in rows_of(here / "t.csv")}
    table = read_table("old.csv", features=[*"wxyz"], carry=["id", "answers"])
    texts = [TEXT[label] if row < 100 else "" for row, label in enumerate(world(N, 0)[3])]
    columns = {**table.carried, **dict(zip("wxyz", table.X.T, strict=True)), "seen": texts}
    write(here / "old.csv", {name: list(values) for name, values in columns.items()})
    draw = ("suggest", "unchecked", here / "old.csv", "--candidates", "answers", "--budget", "60")
    setwise(*draw, "--verified", "seen", "--out", here / "u.csv", folder=".")
    rows = rows_of(here / "u.csv")
    assert {row["seen"] for row in rows} == {""}
    assert not set(table.carried["id"][:100]) & {row["id"] for row in rows}


def test_tasks_to_check_do_not_say_what_the_model_believes(here):
    setwise(*SUGGEST, "--out", here / "t.json", folder=".")
    tasks = json.loads((here / "t.json").read_text(encoding="utf-8"))
    assert len(tasks) == 60
    assert all(set(task) == {"data"} for task in tasks)
    assert "verified" not in tasks[0]["data"]


def test_a_page_shows_the_drawn_rows_and_nothing_that_tells_a_label(here):
    said = setwise(*SUGGEST, "--out", here / "t.csv", "--page", here / "verify.html", folder=".")
    held = data_of(here / "verify.html")
    assert [row["key"] for row in held["rows"]] == [row["id"] for row in rows_of(here / "t.csv")]
    assert held["columns"] == [*"wxyz"]
    assert held["labels"] == sorted(LABELS)
    assert held["header"] == ["id", "verified", "drawn", "draw", "note"]
    assert held["rows"][0]["marks"] == ["true", "1 of 60 from 300 rows, seed 0"]
    assert "which shows w, x, y, z" in said
    assert "has columns that tell labels: answers. Hide them from those who verify." in said
    setwise(*SUGGEST, "--out", here / "u.csv", "--page", here / "u.html", "--show", "w", folder=".")
    assert data_of(here / "u.html")["columns"] == ["w"]


def test_a_page_shows_the_rows_to_review_and_what_is_proposed(here):
    votes = ("old.csv", "--votes", "votes.csv", "--item", "item", "--annotator", "who", *CHECKS)
    page = ("--page", here / "review.html", "--max-error", "0.01")
    everything = ("--max-error", "0.99", "--out", here / "a.csv", "--review", here / "r.csv")
    said = setwise("triage", *votes, "--page", here / "none.html", *everything, folder=".")
    assert data_of(here / "none.html")["rows"] == []
    assert "and download reviewed.csv" in said
    _, _, rows = decided(*votes, *page, to=here)
    held = data_of(here / "review.html")
    assert [row["key"] for row in held["rows"]] == [row["id"] for row in rows]
    assert [held["written"][row["proposed"]] for row in held["rows"]] == [row["proposed"] for row in rows]
    assert held["header"][1] == "label"


def test_votes_are_decided_within_each_value_of_a_column(here):
    table = pyarrow.csv.read_csv("old.csv", parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True))
    site = ["north", "south"] * (N // 2)
    pq.write_table(table.append_column("site", pa.array(site)), here / "sites.parquet")
    votes = ("--votes", "votes.csv", "--item", "item", "--annotator", "who", *CHECKS)
    said, *_ = decided(here / "sites.parquet", *votes, "--by", "site", "--max-error", "0.3", to=here)
    assert set(said["by"]) == {"north", "south"}


def test_a_report_on_a_triage_stands_beside_its_files(here):
    votes = ("old.csv", "--votes", "votes.csv", "--item", "item", "--annotator", "who", *CHECKS)
    _, accepted, rows = decided(*votes, "--report", here / "r.html", "--max-error", "0.01", to=here)
    page = html.unescape((here / "r.html").read_text(encoding="utf-8"))
    assert f"{len(accepted)} labels are accepted, {len(rows)} rows go to review, and 70 were verified." in page
    assert page.index(rows[0]["id"]) < page.index(rows[1]["id"])
    setwise(
        "triage",
        "model",
        "new.csv",
        "--out",
        here / "a",
        "--review",
        here / "b",
        *("--report", here / "s.html"),
        folder=".",
    )
    assert "rows go to review, and" in (here / "s.html").read_text(encoding="utf-8")


def test_a_point_of_the_curve_is_chosen_after_it_was_seen(here, capsys):
    of_votes = ("old.csv", "--votes", "votes.csv", "--item", "item", "--annotator", "who", *CHECKS)
    for arguments in (of_votes, ("model.cal", "--probabilities", "old-scores.csv")):
        first, *_ = decided(*arguments, "--max-error", "0.05", to=here)
        chosen, accepted, _ = decided(*arguments, "--choose", "0.1", to=here)
        fixed, *_ = decided(*arguments, "--max-error", "0.1", to=here)
        assert chosen["max_error"] == 0.1
        assert first["rows"] == chosen["rows"]
        assert len(accepted) == chosen["accepted"] <= fixed["accepted"]
    out = ("--out", here / "a.csv", "--review", here / "b.csv", "--force")
    assert "choose one of 0.01, 0.02" in failure(capsys, "triage", *arguments, "--choose", "0.07", *out)


@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_a_chosen_point_gives_every_row_its_own_label_where_others_were_reviewed_before(here, crossed, suffix):
    ids, _, _, truth, rng = world(N, 0)
    looked = rng.permutation(N)[:180]
    drawn = ["true"] * 90 + ["false"] * 90
    known = {"id": [ids[i] for i in looked], "verified": [truth[i] for i in looked], "drawn": drawn}
    pq.write_table(pa.table(known), here / "known.parquet")
    of = ("crossed", "old.csv") if crossed else ("old.csv", *VOTES, "--label", "label")
    arguments = (*of, "--verified", here / "known.parquet", "--key", "id")
    pq.write_table(pa.table(known).drop_columns("drawn").slice(0, 90), here / "drawn.parquet")
    parts = decided(*of, "--verified", here / "drawn.parquet", "--key", "id", to=here, suffix=suffix)[1:]
    label = {row["id"]: row.get("label") or row.get("proposed") for part in parts for row in part}
    told, accepted, review = decided(*arguments, "--choose", "0.2", to=here, suffix=suffix)
    assert {row["id"] for row in (*accepted, *review)} == set(ids) - set(known["id"])
    assert len(accepted) == told["accepted"] > 20
    assert len(review) == told["review"]
    assert told["rows"] == told["accepted"] + told["review"] + told["checked"]
    for row in (*accepted, *(review if suffix == ".json" else [])):
        assert row["label"] == label[row["id"]]


def test_what_is_printed_counts_the_rows_that_were_reviewed_before(here):
    ids, _, _, truth, rng = world(N, 0)
    looked = rng.permutation(N)[:180]
    drawn = ["true"] * 90 + ["false"] * 90
    known = {"id": [ids[i] for i in looked], "verified": [truth[i] for i in looked], "drawn": drawn}
    pq.write_table(pa.table(known), here / "known.parquet")
    arguments = ("old.csv", *VOTES, "--label", "label", "--verified", here / "known.parquet", "--key", "id")
    out = ("--out", here / "a.csv", "--review", here / "r.csv", "--max-error", "0.05", "--force")
    said = " ".join(setwise("triage", *arguments, *out, folder=".").split())
    taken, open_rows, left = map(
        int, re.search(r"(\d+) of the (\d+) unverified .*?, (\d+) to review", said).groups()
    )
    assert (open_rows, taken + left) == (N - 90, N - 90)
    if left:
        assert f"once the {left} are corrected" in said
    before, after = map(int, re.search(r"count (\d+) of them as accepted and (\d+) as to", said).groups())
    assert before + after == 90
    assert f"a.csv ({taken - before} rows)" in said
    assert f"r.csv ({left - after} rows)" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*SUGGEST[:5], "--budget", "60", "--out", "t.csv"), "name its column with --key"),
        (("triage", "model", "new.csv", "--out", "a", "--review", "b"), "are for the rows of files"),
    ],
)
def test_a_page_that_cannot_be_written_is_refused(here, capsys, arguments, message):
    placed = [here / name if name in {"t.csv", "a", "b"} else name for name in arguments]
    assert message in failure(capsys, *placed, "--page", here / "p.html")
    assert not list(here.iterdir())


def test_probabilities_of_a_model_of_ones_own_will_do(here):
    ask = ("suggest", "unchecked.cal", "--probabilities", "old-scores.csv", "--labels", "old.csv", "--budget", "40")
    said = setwise(*ask, "--candidates", "answers", "--key", "id", "--out", here / "t.csv", folder=".")
    assert "drew 40 of 300 rows" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--budget", "3"), "confidence 0.9 needs at least 9 verified"),
        (("--budget", "1000"), "1000 of 300 rows"),
        (
            ("--probabilities", "old-scores.csv", "--budget", "20"),
            "give a FILE of rows for a model, or --probabilities",
        ),
        (("--votes", "votes.csv", "--budget", "20"), "give either --candidates (a column) or --votes"),
        (("--budget", "20", "--answer", "w"), "use --answer … for another name"),
    ],
)
def test_what_cannot_be_drawn_is_said(here, capsys, arguments, message):
    assert message in failure(capsys, *SUGGEST[:7], *arguments, "--out", here / "t.csv")
    assert not list(here.iterdir())


def test_answers_to_doubtful_rows_are_no_checks(here, capsys):
    """Whoever gives the reviewed rows as checks is told that these are unlike the others."""
    ids, X, _, truth, _ = world(N, 0)
    doubtful = np.sort(X, axis=1) @ [0, 0, -1, 1] < 1
    told = pa.table({"id": np.array(ids)[doubtful], "verified": np.array(truth)[doubtful]})
    pq.write_table(told, here / "c.parquet")
    cal = ("conformalize", "--probabilities", "old-scores.csv", "--labels", "old.csv", "--candidates", "answers")
    arguments = (*cal, "--key", "id", "--verified", here / "c.parquet", "--out", here / "c.cal", "-q")
    assert run([*map(str, arguments)]) == 0
    assert "not a random choice of the rows" in capsys.readouterr().err


def test_the_report_names_rows_by_their_column(here):
    setwise("report", "model", "new.csv", "--ids", "id", "--out", here / "r.html", folder=".")
    text = (here / "r.html").read_text(encoding="utf-8")
    names = [name for name in world(M, 1)[0] if name.startswith("0007")]
    assert any(f": {name}</span>" in text for name in names)


# -------------------------------------------------------------------- checks


def wrong(changes):
    """The checks with some rows changed or added."""
    rows = {row["id"]: row["verified"] for row in pq.read_table("checks.parquet").to_pylist()}
    listed = [*rows.items(), *changes]
    return pa.table({"id": [name for name, _ in listed], "verified": [label for _, label in listed]})


def a_checked_row():
    return next(row["id"] for row in pq.read_table("checks.parquet").to_pylist() if row["verified"])


@pytest.mark.parametrize("command", ["fit", "conformalize"])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (lambda: [("nobody", "7")], "no row with id = 'nobody'"),
        (lambda: [(a_checked_row(), "7")], "has 2 verified labels; keep one of them"),
        (
            lambda: [(world(N, 0)[0][int(np.argmax(unchecked()))], "emu")],
            "has the label 'emu', which is not one of",
        ),
    ],
)
def test_checks_that_do_not_fit_are_named(here, capsys, command, changes, message):
    pq.write_table(wrong(changes()), here / "c.parquet")
    asked = {
        "fit": ("fit", "old.csv", "--candidates", "answers", "--learner", "em"),
        "conformalize": ("conformalize", "--probabilities", "old-scores.csv", "--labels", "old.csv"),
    }[command]
    columns = ("--candidates", "answers") if command == "conformalize" else ()
    line = failure(capsys, *asked, *columns, "--key", "id", "--verified", here / "c.parquet", "--out", here / "m")
    assert message in line
    assert ("--classes" in line) == (command == "fit" and "emu" in line)


def unchecked():
    known = {row["id"] for row in pq.read_table("checks.parquet").to_pylist()}
    return [name not in known for name in world(N, 0)[0]]


def test_checks_need_a_key(here, capsys):
    fit = ("fit", "old.csv", "--candidates", "answers", "--learner", "em", "--ignore", "id", "--out", here / "m")
    assert "use --key … to name its column" in failure(capsys, *fit, "--verified", "checks.parquet")


def with_a_column(path, own):
    """The table with checks of its own, by identifier."""
    table = read_table("old.csv", features=[*"wxyz"], carry=["id", "answers"])
    columns = {name: values.tolist() for name, values in table.carried.items()}
    columns |= dict(zip("wxyz", table.X.T, strict=True))
    columns["verified"] = pa.array([own.get(name) for name in columns["id"]], pa.string())
    pq.write_table(pa.table(columns), path)
    return path


def test_checks_in_the_table_and_in_a_file_are_put_together(here, capsys):
    ids, _, _, truth, _ = world(N, 0)
    told = {row["id"]: row["verified"] for row in pq.read_table("checks.parquet").to_pylist() if row["verified"]}
    own = {name: TEXT[label] for name, label in zip(ids[:50], truth[:50], strict=True)}
    fit = ("--candidates", "answers", "--verified", "verified", *CHECKS, "--calibration-size", "0.5")
    fit = (*fit, "--learner", "em", "--out", here / "m", "--force")
    said = setwise("fit", with_a_column(here / "t.parquet", own), *fit, folder=".")
    assert f"{len({*own, *told})} of them verified" in said
    other = {a_checked_row(): next(text for text in TEXT.values() if text != told[a_checked_row()])}
    assert "; correct one of them" in failure(capsys, "fit", with_a_column(here / "u.parquet", other), *fit)


def test_a_column_of_verified_labels_comes_before_a_file_of_its_name(here, monkeypatch):
    own = {name: TEXT[label] for name, label in zip(world(N, 0)[0][:50], world(N, 0)[3][:50], strict=True)}
    monkeypatch.chdir(with_a_column(here / "t.parquet", own).parent)
    write(here / "verified", {"id": ["nobody"], "verified": ["emu"]})
    fit = ("fit", "t.parquet", "--candidates", "answers", "--learner", "em", "--calibration-size", "0.5")
    said = setwise(*fit, "--ignore", "id", "--verified", "verified", "--out", "m", folder=".")
    assert f"{len(own)} of them verified" in said


def test_verified_labels_may_stand_in_several_files_but_in_one_column_of_them(here, capsys):
    whole = pq.read_table("checks.parquet")
    for name, part in (("a.parquet", whole.slice(0, 40)), ("b.parquet", whole.slice(40))):
        pq.write_table(part, here / name)
    fit = ("fit", "old.csv", "--candidates", "answers", "--key", "id", "--learner", "em", "--out", here / "m")
    fit = (*fit, "--calibration-size", "0.5", "--verified", here / "a.parquet", "--verified")
    assert "70 of them verified" in setwise(*fit, here / "b.parquet", folder=".")
    assert "70 of them verified" in setwise(*fit[:-2], here / "?.parquet", "--force", folder=".")
    assert "--verified: names several columns" in failure(capsys, *fit, f"{here}/b.parquet:seen", "--force")


def test_checks_for_which_there_is_no_room_are_told(here):
    fit = ("fit", "old.csv", "--candidates", "answers", *CHECKS, "--learner", "em", "--out", here / "m", "--force")
    said = setwise(*fit, "--calibration-size", "0.2", folder=".")
    assert "60 of 70 verified rows are kept for calibration: use --calibration-size 0.24 to keep all" in said
    assert "verified rows are kept" not in setwise(*fit, "--calibration-size", "0.24", folder=".")


def test_a_look_makes_the_promise_hold_whenever_one_stops(here, capsys):
    cal = ("conformalize", "--probabilities", "old-scores.csv", "--labels", "old.csv", "--candidates", "answers")
    said = setwise(*cal, *CHECKS, "--look", "2", "--out", here / "c.cal", folder=".")
    assert "This holds at\n               whichever look you stop." in said
    assert "0.90, in 19 of 20 draws of the calibration rows." in said
    line = failure(capsys, *cal, *CHECKS, "--look", "2", "--strategy", "max", "--out", here / "d.cal")
    assert "--look: strategy 'max' does not use verified labels; leave out --strategy, or --look" in line
    line = failure(capsys, *cal, "--key", "id", "--look", "1", "--out", here / "d.cal")
    assert "needs verified labels; use --verified" in line
    fit = ("fit", "old.csv", "--candidates", "answers", "--learner", "em", *CHECKS, "--calibration-size", "0.5")
    assert "whichever look you stop" in setwise(*fit, "--look", "1", "--out", here / "m", folder=".")
