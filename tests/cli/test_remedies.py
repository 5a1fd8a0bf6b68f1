"""Advice in an error names options that the command has, and following it helps."""

import ast
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from typer.main import get_command

from setwise import ConformalClassifier, CrossConformalClassifier, LabelSets
from setwise.cli.app import app, run
from setwise.tables import arrow_reading as arrow_tables
from setwise.tables import read_table

from .conftest import NAMES, rows, write
from .test_commands import failure

N = 200


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A table with everything that can be wrong in a column of its own, and probabilities with candidates."""
    monkeypatch.chdir(tmp_path)
    X, lists, truth = rows(N, 0)
    days = np.datetime64("2024-01-01") + np.arange(N)
    columns = {
        "x": X[:, 0],
        "y": X[:, 1],
        "z": X[:, 2],
        "gap": [None, *X[1:, 3]],
        "colour": ["red", "blue"] * (N // 2),
        "day": pa.array(days),
        "who": np.arange(N) // 4,
        "answers": lists,
        "holes": [None, *lists[1:]],
        "pairs": [["ant", "cat"] if label in {"ant", "cat"} else [label] for label in truth],
        "unknown": [""] * N,
        "checked": [label if i % 2 else None for i, label in enumerate(truth)],
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    P = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    scores = dict(zip(NAMES, P.T, strict=True))
    write(tmp_path / "scores.csv", scores)
    write(tmp_path / "noted.csv", {"note": ["a"] * N, **scores})
    write(tmp_path / "keyed.csv", {"id": np.arange(N), **scores})
    said = [(i, label) for i, labels in enumerate(lists) for label in labels]
    told = {"task": [i for i, _ in said], "by": [f"w{j % 5}" for j in range(len(said))], "n": [1] * len(said)}
    write(tmp_path / "votes.csv", {**told, "said": [label for _, label in said]})
    regions = [{"from_name": name, "value": {"choices": ["owl"]}} for name in ("kind", "size")]
    tasks = [{"id": 1, "data": {}, "annotations": [{"completed_by": 1, "result": regions}]}]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    message = {"role": "assistant", "content": [{"type": "text", "text": "Label: owl"}]}
    line = {"custom_id": "a", "result": {"type": "succeeded", "message": message}}
    (tmp_path / "batch.jsonl").write_text(json.dumps(line))
    write(tmp_path / "accepted.csv", {"id": ["a"], "label": ["owl"], "confidence": [0.9]})
    write(tmp_path / "verified.csv", {"id": ["b"], "verified": ["ant"], "draw": ["1 of 1 from 3 rows, seed 0"]})
    write(tmp_path / "few.csv", {"id": ["b", "a"]})
    more = {"id": [*range(N), N], "candidates": [*lists, ["owl"]]}
    write(tmp_path / "more.csv", more)
    write(tmp_path / "seen.csv", {"id": np.arange(0, N, 2), "seen": truth[::2]})
    pq.write_table(
        pa.table({name: columns[name] for name in ("answers", "holes", "pairs", "checked")}), tmp_path / "a.parquet"
    )
    return tmp_path


PLAIN = ("--features", "x", "--features", "y", "--features", "z", "--learner", "em")
FIT = ("fit", "t.parquet", "--candidates", "answers", "--out", "model")
HOLES = ("fit", "t.parquet", "--candidates", "holes", "--out", "model", *PLAIN)
COLUMNS = ("--features", "x", "--learner", "em", "--features")
CAL = ("conformalize", "--probabilities", "scores.csv", "--labels", "a.parquet", "--out", "c.cal", "--candidates")
NOTED = ("conformalize", "--probabilities", "noted.csv", "--labels", "a.parquet", "--candidates", "answers")
VOTED = (
    *("fit", "keyed.csv", "--votes", "votes.csv", "--key", "id", "--learner", "em", "--out", "model"),
    *("--label", "said", "--annotator", "by", "--item", "task"),
)
OTHERS = tuple(
    word for name in ("who", "gap", "colour", "day", "holes", "pairs", "unknown") for word in ("--ignore", name)
)
ADVICE = {
    "no candidates, fit": (HOLES, {"--missing full": ("--missing", "full", "--classes", "|".join(NAMES))}),
    "every label, fit": ((*HOLES, "--missing", "full"), {"--classes …": ("--classes", "|".join(NAMES))}),
    "no candidates, convert": (
        ("convert", "t.parquet", "--candidates", "holes", "--out", "o.csv"),
        {"--missing full": ("--missing", "full")},
    ),
    "no candidates, conformalize": ((*CAL, "holes"), {"--missing full": ("--missing", "full")}),
    "a gap": ((*FIT, *COLUMNS, "gap"), {"--impute median": ("--impute", "median")}),
    "text": (
        (*FIT, "--learner", "em", *OTHERS[:4], *OTHERS[6:], "--ignore", "checked"),
        {
            "--ignore colour": ("--ignore", "colour"),
            "--features …": ("--features", "x"),
            "--one-hot": ("--one-hot",),
        },
    ),
    "dates": (
        (*FIT, "--learner", "em", *OTHERS[:6], *OTHERS[8:], "--ignore", "checked"),
        {"--ignore …": ("--ignore", "day"), "--features …": ("--features", "x")},
    ),
    "text among probabilities": ((*NOTED, "--out", "c.cal"), {"--ignore note": ("--ignore", "note")}),
    "votes without the key": (VOTED[:-2], {"--item …": ("--item", "task")}),
    "votes without the annotators": ((*VOTED[:12], *VOTED[14:]), {"--annotator …": ("--annotator", "by")}),
    "votes without the answers": ((*VOTED[:10], *VOTED[12:]), {"--label …": ("--label", "said")}),
    "votes without the weights": ((*VOTED, "--weight", "sure"), {"--weight …": ("--weight", "n")}),
    "items of annotators": (
        ("annotators", "votes.csv", "--item", "id", "--annotator", "by", "--label", "said"),
        {"--item …": ("--item", "task")},
    ),
    "votes to convert": (
        ("convert", "votes.csv", "--from", "votes", "--item", "task", "--annotator", "by", "--out", "o.csv"),
        {"--label …": ("--label", "said")},
    ),
    "free text": (
        ("annotators", "batch.jsonl"),
        {"--classes …": ("--classes", "owl|wren"), "--pattern …": ("--pattern", "Label: (.+)")},
    ),
    "two controls": (
        ("convert", "export.json", "--from", "label-studio", "--out", "o.csv"),
        {"--from-name …": ("--from-name", "kind")},
    ),
    "rows that no file has": (
        ("merge", "accepted.csv", "verified.csv", "--key", "id", "--out", "final.csv"),
        {"--rows …": ("--rows", "few.csv")},
    ),
    "nothing declared": (
        (*FIT, *PLAIN, "--strategy", "corrected"),
        {
            "--assume uniform": ("--assume", "uniform"),
            "--assume class": ("--assume", "class"),
            "--strategy max": ("--strategy", "max"),
        },
    ),
    "nothing verified": (
        (*CAL, "answers", "--strategy", "rectified"),
        {"--verified …": ("--verified", "checked"), "--strategy max": ("--strategy", "max")},
    ),
    "groups of every candidate": (
        (*FIT, *PLAIN, "--groups", "who", "--strategy", "all"),
        {"--strategy max": ("--strategy", "max"), "--strategy mean": ("--strategy", "mean")},
    ),
    "groups on a curve": (
        (*FIT, *PLAIN, "--groups", "who", "--strategy", "posterior"),
        {"--strategy max": ("--strategy", "max")},
    ),
    "a miss rate": (
        (*FIT, *PLAIN, "--miss-rate", "0.1", "--strategy", "posterior"),
        {"--miss-rate 0.0": ("--miss-rate", "0.0"), "--strategy max": ("--strategy", "max")},
    ),
    "classes that come together": (
        (*CAL, "pairs", "--strategy", "corrected", "--assume", "class"),
        {"--strategy max": ("--strategy", "max")},
    ),
    "rows to match": (
        (
            "conformalize",
            "--probabilities",
            "keyed.csv",
            "--ignore",
            "id",
            "--labels",
            "more.csv",
            "--out",
            "c.cal",
        ),
        {"--key": ("--key", "id")},
    ),
    "a network for images": (
        (*FIT, *PLAIN[:4], "--learner", "network", "--epochs", "1", "--network", "cnn"),
        {"--network mlp": ("--network", "mlp")},
    ),
    "a device that is not there": (
        (*FIT, *PLAIN[:4], "--learner", "network", "--epochs", "1", "--device", "mars"),
        {"--device auto": ("--device", "auto")},
    ),
    "a contamination that the data refute": (
        (*CAL, "pairs", "--strategy", "corrected", "--assume", "uniform"),
        {
            "--strategy max": ("--strategy", "max"),
            "--strategy rectified": ("--strategy", "rectified", "--verified", "checked"),
        },
    ),
    "no truth at all": (
        ("evaluate", "t.parquet", "--column", "answers", "--truth", "unknown"),
        {"--candidates …": ("--candidates", "pairs")},
    ),
    "lists as truth": (
        ("evaluate", "t.parquet", "--column", "answers", "--truth", "pairs"),
        {"--candidates …": ("--candidates", "pairs")},
    ),
}


def options_in(line):
    return set(re.findall(r"--[a-z-]+", line))


def options_of(name):
    return {option for one in get_command(app).commands[name].params for option in one.opts}


@pytest.mark.parametrize("mistake", list(ADVICE))
def test_advice_names_options_of_the_command_and_works(here, capsys, mistake):
    arguments, advice = ADVICE[mistake]
    line = failure(capsys, *arguments)
    assert options_in(line) == {words.split()[0] for words in advice}
    assert options_in(line) <= options_of(arguments[0])
    for words, followed in advice.items():
        assert words in line
        given = [*arguments, *followed]
        if "--truth" in given and "--candidates" in followed:  # instead of the truth
            place = given.index("--truth")
            del given[place : place + 2]
        more = ["--force"] if "--out" in given else []
        assert run([*given, *more]) == 0, (words, capsys.readouterr().err)
        capsys.readouterr()


def table_text(delimiter=",", decimal=".", **more):
    """A table as text; a function of the row gives each further column."""
    X, lists, _ = rows(N, 0)
    lines = [["w", "x", "y", "z", "answers", *more]]
    for i, (values, labels) in enumerate(zip(X.tolist(), lists, strict=True)):
        numbers = (str(value).replace(".", decimal) for value in values)
        lines.append([*numbers, "|".join(labels).replace("cat", "käfer"), *(str(of(i)) for of in more.values())])
    return "\n".join(map(delimiter.join, lines)) + "\n"


READ = ("--candidates", "answers", "--learner", "em", "--out", "model")
FILES = {  # what is in the file, and how it is read
    "cp1252": (table_text().encode("cp1252"), READ),
    "latin-1": (table_text().replace("ä", "\x81").encode("latin-1"), READ),
    "UTF-8 read as something else": (table_text().encode(), (*READ, "--encoding", "cp1251")),
    "UTF-16 without a mark": (table_text().encode("utf-16-le"), READ),
    "UTF-16 without a mark, the other way": (table_text().encode("utf-16-be"), READ),
    "decimal commas": (table_text(";", ",").encode(), READ),
    "labels between slashes": (table_text().replace("|", "/").encode(), READ),
    "an identifier": (table_text(id=int).encode(), READ),
    "the truth": (table_text(final=lambda i: rows(N, 0)[2][i]).encode(), (*READ, "--one-hot")),
    "text": (table_text(colour=lambda i: "red" if i % 3 else "blue").encode(), READ),
    "an identifier in text": (table_text(row=lambda i: f"r{i}").encode(), READ),
    "a gap": (table_text(gap=lambda i: i % 7 or "").encode(), READ),
}
MEANT = {"--ignore": "colour", "--features": "w"}  # what a user of these tables means by …


def suggested(said):
    """Each way out that a message suggests, as words of the command line."""
    for way in re.findall(r"(?:use|leave out) (--.*?)(?=,? or use |,? or [a-z]|[.;]? *$)", said.strip()):
        words = shlex.split(re.split(r" (?:to|if|for|with|when) ", way + " ")[0])
        yield [MEANT.get(words[0], "?") if word == "…" else word for word in words]


@pytest.mark.parametrize("case", FILES)
def test_what_a_message_suggests_is_done_to_the_letter_and_the_message_is_gone(tmp_path, monkeypatch, capsys, case):
    monkeypatch.chdir(tmp_path)
    content, options = FILES[case]
    (tmp_path / "own.csv").write_bytes(content)
    arguments = ["fit", "own.csv", *options]
    status = run(arguments)
    said = capsys.readouterr().err
    assert status in {0, 2}
    assert said.count("\n") == 1
    ways = list(suggested(said))
    assert ways, said
    for way in ways:
        followed = [*arguments, *way, *(["--force"] if "--force" not in way else [])]
        assert run(followed) == 0, (way, capsys.readouterr().err)
        assert capsys.readouterr().err == "", way


def test_each_remedy_of_the_readers_is_followed_somewhere_above():
    """An argument that a file's message names and that is an option appears in one of the tables of this module."""
    folder = Path(arrow_tables.__file__).parent
    calls = [
        node
        for path in sorted(folder.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Remedy"
    ]
    named = {call.args[0].value for call in calls}
    assert named == {
        "annotator", "candidates", "carry", "categories", "classes", "column", "decimal", "delimiter", "encoding",
        "features", "from_name", "impute", "item", "key", "label", "pattern", "rows",
        "separator", "verified", "weight",
    }  # fmt: skip
    options = {one.name: one.opts[0] for command in get_command(app).commands.values() for one in command.params}
    followed = {words.split()[0] for _, advice in ADVICE.values() for words in advice}
    followed |= {"--verified", "--encoding", "--decimal", "--separator"} | set(MEANT) | {"--column", "--delimiter"}
    assert {options[name] for name in named if name in options} <= followed


def test_verified_labels_in_a_column_of_another_name(here, capsys):
    fit = (*VOTED, "--calibration-size", "0.5", "--verified")
    line = failure(capsys, *fit, "seen.csv")
    assert "use --verified seen.csv:COLUMN to name that of true labels" in line
    assert run([*fit, "seen.csv:seen", "-q"]) == 0


def test_a_column_that_the_sets_need_and_a_mark_that_means_two_things(here, capsys):
    cal = ("conformalize", "--probabilities", "scores.csv", *CAL[3:], "answers")
    assert run([*cal, "-q"]) == 0
    write(here / "named.csv", {"labels": ["a"] * 3, **dict.fromkeys(NAMES, [0.25] * 3)})
    predict = ("predict", "c.cal", "--probabilities", "named.csv", "--out", "s.csv")
    assert "use --column … to name that of the sets" in failure(capsys, *predict)
    assert run([*predict, "--column", "sets", "-q"]) == 0
    assert "differ from the 200 calibration rows" in capsys.readouterr().err  # these three know nothing
    (here / "marks.csv").write_text(table_text("^", ","))
    fit = ("fit", "marks.csv", *READ, "--decimal", ",")
    assert "use --delimiter … to say what stands between columns" in failure(capsys, *fit)
    assert run([*fit, "--delimiter", "^", "-q"]) == 0


def test_the_command_that_inspect_suggests_runs_without_a_doubt(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.csv").write_text(table_text(id=int, row=lambda i: f"r{i}", n=lambda i: i % 7))
    assert run(["inspect", "own.csv", "--candidates", "answers"]) == 0
    tried = capsys.readouterr().out.splitlines()[-1]
    assert tried == "try:  setwise fit own.csv --candidates answers --ignore id --ignore row --out model/"
    assert run([*shlex.split(tried)[2:], "--learner", "em"]) == 0
    assert capsys.readouterr().err == ""


def test_an_identifier_is_left_out_before_it_is_made_indicators(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.csv").write_text(table_text(row=lambda i: f"r{i}"))
    line = failure(capsys, "fit", "own.csv", *READ)
    assert "row 0 is 'r0', not a number; use --ignore row to keep an identifier out" in line
    assert "--one-hot" not in line
    (tmp_path / "own.csv").write_text(table_text().replace(table_text().split(",")[4].split()[1], "much", 1))
    assert "is 'much', not a number; use --one-hot" in failure(capsys, "fit", "own.csv", *READ)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_gaps_in_new_rows_are_filled_where_the_fit_was_told_how(here, capsys, kind):
    write(here / f"gaps.{kind}", {"x": [None, 1.0], "y": [0.0, 1.0], "z": [0.0, 1.0]})
    predict = ["predict", "model", f"gaps.{kind}", "--out", "s.csv"]
    assert run([*FIT, *PLAIN, "--quiet"]) == 0
    line = failure(capsys, *predict)
    advised = re.search(r"row 0 is missing .*when the model is fitted \(impute='(\w+)'\)", line)[1]
    assert run([*FIT, *PLAIN, "--quiet", "--force", "--impute", advised]) == 0  # no row there has a gap
    assert run([*predict, "--quiet"]) == 0


ANSWERS = {
    "answers": lambda label: {"answers": [label, label, "owl"]},
    "labels": lambda label: {"labels": [label]},
    "probabilities": lambda label: {"probabilities": {label: 0.7, "owl" if label != "owl" else "ant": 0.2}},
    "prediction": lambda label: {
        "prediction": [
            {"label": label, "probability": 0.7},
            {"label": "emu", "score": 0},
            {"label": "ant", "p": 0.2},
        ]
    },
}


@pytest.mark.parametrize("form", ANSWERS)
def test_lines_of_a_language_model_are_votes_candidates_and_probabilities(here, capsys, form):
    truth = rows(N, 0)[2]
    lines = [{"id": i, **ANSWERS[form](label)} for i, label in enumerate(truth)]
    (here / "llm.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run(["fit", "keyed.csv", "--votes", "llm.jsonl", "--key", "id", "--learner", "em", "--out", "m"]) == 0
    for target in ("candidates", "votes", "probabilities"):
        out = f"{target}.csv".replace("votes", "said")
        assert run(["convert", "llm.jsonl", "--from", "answers", "--to", target, "--out", out, "--json"]) == 0
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["rows"] == N
    shares = read_table("probabilities.csv", features=[f"p:{name}" for name in sorted(set(truth))]).X
    assert np.allclose(shares.sum(axis=1), 1)
    assert (np.array(sorted(set(truth)))[shares.argmax(axis=1)] == truth).all()
    cal = ("conformalize", "--labels", "candidates.csv", "--key", "id", "--out", "c.cal", "--probabilities")
    if form == "prediction":
        line = failure(capsys, *cal, "llm.jsonl")
        source, target = re.search(r"convert the (answers) to (probabilities)", line).groups()
        told = ["--from", source, "--to", target, "--out", "probabilities.csv", "--force"]
        assert run(["convert", "llm.jsonl", *told]) == 0
    assert run([*cal, "probabilities.csv"]) == 0


NO_OPTION = {
    "a label that is no class": (
        ("conformalize", "--probabilities", "few.csv", *CAL[3:], "answers"),
        "correct the",
    ),
    "a suffix that is unknown": (("convert", "t.parquet", "--out", "o.xls"), "rename the file to .csv"),
    "a format that is not written": (("convert", "t.parquet", "--out", "o.xlsx"), "not written as xlsx; use .parq"),
    "a backslash": (("inspect", "odd.csv", "--candidates", "answers"), "write a backslash as"),
    "text where numbers were": (("predict", "model", "words.csv", "--out", "s.csv"), "'much', not a number."),
    "an unknown network": (
        (*FIT, *PLAIN[:4], "--learner", "network", "--network", "resnet"),
        "'resnet' is not known; use auto, linear, mlp or cnn.",
    ),
    "an unknown score": (
        (*FIT, *PLAIN, "--conformity-score", "best"),
        "'best' is not known; use one of lac, ties, aps, raps, saps, margin, rps.",
    ),
}


@pytest.mark.parametrize("mistake", list(NO_OPTION))
def test_advice_that_the_command_has_no_option_for_is_left_out(here, capsys, mistake):
    write(here / "few.csv", {"wren": [0.5] * N, "owl": [0.5] * N})
    (here / "odd.csv").write_text("answers\na\\x|b\n")
    (here / "words.csv").write_text("x,y,z\nmuch,1,2\n")
    arguments, message = NO_OPTION[mistake]
    if arguments[0] == "predict":
        assert run([*FIT, *PLAIN, "--quiet"]) == 0
    line = failure(capsys, *arguments)
    assert message in line
    assert "=" not in line  # no argument of Python
    assert not options_in(line)


@pytest.mark.parametrize("option", ["--groups", "--by", "--verified"])
def test_what_has_no_cross_conformal_form_is_learned_without_cross(here, capsys, option):
    arguments = (*FIT, *PLAIN, option, "checked" if option == "--verified" else "who")
    line = failure(capsys, *arguments, "--cross", "3")
    assert line.endswith("leave out --cross.\n")
    assert run([*arguments, "--confidence", "0.5"]) == 0


def test_types_that_nobody_vouched_for_are_trusted_one_by_one(here, capsys):
    X, lists, _ = rows(N, 0)
    sets = LabelSets.from_lists(lists, classes=NAMES)
    boosted = GradientBoostingClassifier(n_estimators=2)
    ConformalClassifier(boosted, random_state=0).fit(X, sets).save(here / "boosted")
    write(here / "new.csv", dict(zip("wxyz", X.T, strict=True)))
    arguments = ["predict", "boosted", "new.csv", "--out", "s.csv"]
    arguments += [word for name in "wxyz" for word in ("--features", name)]
    line = failure(capsys, *arguments)
    advised = re.search(r"use ((--trusted \S+ )+)", line)[1].split()
    assert run([*arguments, *advised]) == 0


class Foreign(LogisticRegression):
    """A model that no directory keeps."""


def test_a_model_that_was_not_kept_is_asked_elsewhere(here, capsys):
    X, lists, truth = rows(N, 0)
    sets = LabelSets.from_lists(lists, classes=NAMES)
    model = FrozenEstimator(Foreign().fit(X, truth))
    ConformalClassifier(model, random_state=0).fit(X, sets).save(here / "own")
    write(here / "new.csv", dict(zip("wxyz", X.T, strict=True)))
    line = failure(capsys, "predict", "own", "new.csv", "--out", "s.csv")
    assert "use --probabilities … with what the model says about the new rows." in line
    assert run(["predict", "own", "--probabilities", "scores.csv", "--out", "s.csv"]) == 0
    assert "differ from the 200 calibration rows" in capsys.readouterr().err
    CrossConformalClassifier(LogisticRegression(), cv=3, random_state=0).fit(X, sets).save(here / "folds")
    line = failure(capsys, "predict", "folds", "--probabilities", "scores.csv", "--out", "t.csv")
    assert line.endswith("probabilities come from one; leave out --probabilities.\n")


def test_what_was_calibrated_by_category_asks_for_the_column(here, capsys):
    write(
        here / "wards.csv", {"ward": ["a", "b"] * (N // 2), **dict(zip(NAMES, np.full((4, N), 0.25), strict=True))}
    )
    cal = ("conformalize", "--probabilities", "wards.csv", "--labels", "a.parquet", "--candidates", "answers")
    assert run([*cal, "--by", "ward", "--out", "c.cal", "-q"]) == 0
    for command, out in (("predict", "s.csv"), ("report", "r.html")):
        arguments = (command, "c.cal", "--probabilities", "wards.csv", "--out", out)
        assert options_in(failure(capsys, *arguments)) == {"--by"}
        assert run([*arguments, "--by", "ward"]) == 0
        capsys.readouterr()


def test_warnings_of_misuse_name_options_too(here, capsys):
    X, lists, _ = rows(N, 0)
    twice = [*range(N), *range(N)]
    columns = dict(zip("wxyz", X[twice].T, strict=True))
    write(here / "twice.csv", {**columns, "row": twice, "answers": [lists[i] for i in twice]})
    arguments = ["fit", "twice.csv", "--candidates", "answers", "--out", "model", "--learner", "em", "--force"]
    assert run([*arguments, "--ignore", "row"]) == 0
    line = capsys.readouterr().err
    assert "calibration rows (the first is row" in line
    assert "remove the copies, or use --groups … with one number for each distinct row" in line
    assert run([*arguments, "--groups", "row"]) == 0
    assert "copies" not in capsys.readouterr().err
    write(here / "once.csv", {**dict(zip("wxyz", X.T, strict=True)), "answers": lists})
    assert run([*arguments[:1], "once.csv", *arguments[2:]]) == 0
    assert run(["report", "model", "once.csv", "--candidates", "answers", "--out", "r.html"]) == 0
    assert f"X: {N} rows (100%, the first is row 0) were learned from or calibrated on" in capsys.readouterr().err
