"""Somebody's own files: each is read right, or with a warning or an error that names what is wrong with it."""

import contextlib
import io
import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.main import get_command

from setwise.cli.app import app, run
from setwise.tables import read_sets

from .conftest import rows
from .test_commands import failure

N = 60
X, LISTS, TRUTH = rows(N, 0)
CODES = {name: code for code, name in enumerate(sorted(set(TRUTH)))}


def lines(delimiter=",", decimal=".", cell="|".join, **more):
    """A table of four features and candidates as text, with further columns."""
    yield delimiter.join(["w", "x", "y", "z", "answers", *more])
    for i in range(N):
        numbers = (str(value).replace(".", decimal) for value in X[i])
        yield delimiter.join([*numbers, cell(LISTS[i]), *(str(of(i)) for of in more.values())])


def text(*arguments, **options):
    return "\n".join(lines(*arguments, **options)) + "\n"


def quoted(cell):
    return lambda labels: '"' + cell(labels).replace('"', '""') + '"'


def objects(answers):
    for i in range(N):
        yield {**dict(zip("wxyz", X[i].tolist(), strict=True)), "answers": answers(LISTS[i])}


def jsonl(answers):
    return "\n".join(map(json.dumps, objects(answers)))


def changed(number, new):
    table = list(lines())
    table[number] = new(table[number])
    return "\n".join(table) + "\n"


READ = {  # what is read as if nothing were unusual
    "plain.csv": text(),
    "utf16.csv": text().encode("utf-16"),
    "mark.csv": text().encode("utf-8-sig"),
    "semicolons.csv": text(";"),
    "tabs.csv": text("\t"),
    "tabs.tsv": text("\t"),
    "commas.tsv": text(),
    "blanks.txt": text("\t"),
    "table.data": text(),
    "pandas.csv": text(cell=quoted(repr)),
    "numpy.csv": text(cell=lambda labels: "[" + " ".join(map(repr, labels)) + "]"),
    "python-sets.csv": text(";", cell=lambda labels: repr(set(labels))),
    "json.csv": text(cell=quoted(json.dumps)),
    "lists.jsonl": jsonl(list),
    "lists.json": json.dumps(list(objects(list))),
    "utf16.jsonl": jsonl(list).encode("utf-16"),
}
NUMBERS = "the numbers beside the labels are left out; each label with a number above 0 is a candidate"
DOUBTED = {  # what is read, with a warning
    "objects.jsonl": (jsonl(lambda labels: dict.fromkeys(labels, 0.5)), NUMBERS),
    "objects.csv": (text(cell=quoted(lambda labels: repr(dict.fromkeys(labels, 0.5)))), NUMBERS),
    "id.csv": (text(id=lambda i: 7 * i), "the column 'id' has another value in every row"),
    "index.csv": (text(**{"Unnamed: 0": int}), "use --ignore 'Unnamed: 0' to keep it out of the features"),
    "code.csv": (text(code=lambda i: CODES[TRUTH[i]]), "the column 'code' tells which label is a candidate"),
    "case.csv": (
        text().replace("cat", "Cat", 5),
        "differ only in how they are written: 'Cat' and 'cat'; write them alike",
    ),
    "slash.csv": (text(cell="/".join), "use --separator / if '/' stands between labels"),
}
WRONG = {  # what is refused
    "long.csv": (changed(50, lambda line: line + ",9"), "row 49 has 6 fields, but the first line has 5"),
    "short.csv": (
        changed(50, lambda line: line.partition(",")[2]),
        "row 49 has 4 fields, but the first line has 5",
    ),
    "twice.csv": (changed(0, lambda line: line.replace("x", "w")), "the column 'w' occurs twice"),
    "nan.csv": (changed(50, lambda line: "NaN," + line.partition(",")[2]), "column 'w': row 49 is missing"),
    "inf.csv": (changed(50, lambda line: "inf," + line.partition(",")[2]), "column 'w': row 49 is infinite"),
    "zip.csv": (b"PK\x03\x04 and more", "zip.csv: is xlsx, not text; rename it to .xlsx"),
    "parquet.csv": (b"PAR1 and more", "parquet.csv: is parquet, not text"),
    "old.xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0", "old.xls: byte 8 is 0, which text cannot hold"),
    "broken.xlsx": (b"PK\x03\x04 and more", "broken.xlsx: "),
    "empty.csv": ("", "empty.csv: holds no rows"),
    "header.csv": ("w,answers\n", "header.csv: holds no rows"),
    "holes.csv": (changed(50, lambda line: line.rpartition(",")[0] + ","), "row 49 has no labels"),
    "text.jsonl": ('{"answers": ["a"]\n', "line 1 is not JSON"),
    "mixed.csv": (
        changed(50, lambda line: line.replace(line.split(",")[0], "much")),
        "row 49 is 'much', not a number",
    ),
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(name, content):
    Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    return name


FIT = ("--candidates", "answers", "--learner", "em", "--out", "model", "--force")


def fitted(capsys, *arguments):
    """What fit says of the rows it read, and its warnings."""
    assert run(["fit", *arguments, *FIT, "--json"]) == 0, capsys.readouterr().err
    said = capsys.readouterr()
    found = json.loads(said.out)
    return [found[name] for name in ("rows", "features", "classes")], found["candidates_per_row"], said.err


MEAN = pytest.approx(np.mean([len(labels) for labels in LISTS]))


@pytest.mark.parametrize("name", READ)
def test_what_files_show_by_themselves_is_read(here, capsys, name, from_plain):
    assert fitted(capsys, put(name, READ[name])) == ([N, 4, 4], MEAN, "")
    assert run(["predict", "model", name, "--out", "sets.csv", "-q"]) == 0
    assert read_sets("sets.csv") == from_plain


@pytest.fixture(scope="module")
def from_plain(tmp_path_factory):
    """The prediction sets of a model that read the plain file."""
    with contextlib.chdir(tmp_path_factory.mktemp("plain")):
        put("plain.csv", READ["plain.csv"])
        assert run(["fit", "plain.csv", *FIT, "-q"]) == 0
        assert run(["predict", "model", "plain.csv", "--out", "sets.csv", "-q"]) == 0
        return read_sets("sets.csv")


@pytest.mark.parametrize("name", DOUBTED)
def test_what_looks_like_a_mistake_is_read_with_a_warning(here, capsys, name):
    content, says = DOUBTED[name]
    (count, *_), _, warned = fitted(capsys, put(name, content))
    assert count == N
    assert says in warned
    assert warned.count("warning: ") == warned.count("\n") == 1


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_read_is_one_line(here, capsys, name):
    content, says = WRONG[name]
    assert says in failure(capsys, "fit", put(name, content), *FIT)
    assert not (here / "model").exists()


def test_a_folder_a_pattern_and_a_file_that_is_not_there(here, capsys):
    Path("parts").mkdir()
    table = list(lines())
    put("parts/0.csv", "\n".join(table[:31]) + "\n")
    put("parts/1.csv", "\n".join([table[0], *table[31:]]) + "\n")
    for files in (["parts"], ["parts/*.csv"], ["parts/0.csv", "parts/1.csv"]):
        assert fitted(capsys, *files) == ([N, 4, 4], MEAN, "")
    assert run(["predict", "model", "parts/*.csv", "--out", "sets.csv", "-q"]) == 0
    assert "60 rows (100%, the first is row 0) were learned from or calibrated on" in capsys.readouterr().err
    assert len(read_sets("sets.csv")) == N
    assert "no file has such a name" in failure(capsys, "fit", "none/*.csv", *FIT)
    assert "there is no such file" in failure(capsys, "fit", "none.csv", *FIT)


def test_standard_input_and_output_take_the_place_of_files(here, capsys, monkeypatch):
    put("plain.csv", text())

    def typed(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    typed(text(";").encode("utf-16"))
    assert fitted(capsys, "-") == ([N, 4, 4], MEAN, "")
    typed(jsonl(list).encode())
    assert run(["predict", "model", "-", "--out", "-"]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("warning: standard input: 60 rows (100%, the first is row 0) were learned from")
    assert run(["predict", "model", "plain.csv", "--out", "sets.csv", "-q"]) == 0
    assert out == (here / "sets.csv").read_text()
    typed(out.encode())
    assert run(["evaluate", "-", "--candidates", "answers", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n"] == N
    assert run(["convert", "plain.csv", "--candidates", "answers", "--out", "-"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == N + 1
    assert "--json: standard output is taken" in failure(
        capsys, "predict", "model", "plain.csv", "--out", "-", "--json"
    )
    typed(b"")
    assert "standard input: is empty" in failure(capsys, "predict", "model", "-", "--out", "-")
    assert "standard input is read alone" in failure(capsys, "predict", "model", "-", "plain.csv", "--out", "-")


def test_rows_and_votes_without_a_model_come_from_standard_input(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    truth = [["ant", "owl"][k] for k in rng.integers(2, size=90)]
    rows = "id,x\n" + "".join(f"r{i},{i}\n" for i in range(90))
    votes = "id,annotator,label\n" + "".join(f"r{i},{who},{truth[i]}\n" for i in range(90) for who in "ab")
    (tmp_path / "votes.csv").write_text(votes)
    (tmp_path / "seen.csv").write_text("id,verified\n" + "".join(f"r{i},{truth[i]}\n" for i in range(60)))

    def status(text, *arguments):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        return run([*arguments, "-q"]), capsys.readouterr().err

    told = ["--votes", "votes.csv", "--key", "id"]
    assert status(votes, "annotators", "-", "--out", "said.csv") == (0, "")
    assert status(rows, "suggest", "-", *told, "--budget", "9", "--out", "draw.csv") == (0, "")
    files = ["--verified", "seen.csv", "--out", "yes.csv", "--review", "no.csv"]
    assert status(rows, "triage", "-", *told, *files) == (0, "")
    counted = [len((tmp_path / name).read_text().splitlines()) - 1 for name in ("said.csv", "draw.csv", "yes.csv")]
    assert counted == [90, 9, 30]


@pytest.fixture
def joined(here):
    """Features, candidates, checks and probabilities of the same rows in files of their own, in other orders."""
    ids, back = np.arange(N), np.arange(N)[::-1]
    pd.DataFrame(X, columns=list("wxyz")).assign(id=ids).to_csv("calls.csv", index=False)
    answers = pd.DataFrame({"id": ids, "answers": ["|".join(labels) for labels in LISTS], "checked": TRUTH})
    answers.iloc[back].to_csv("answers.csv", index=False, sep=";")
    answers.iloc[1:].to_csv("fewer.csv", index=False)
    answers.assign(answers="owl", **dict(zip("wxyz", X.T, strict=True))).drop(columns=["checked"]).to_csv(
        "labelled.csv", index=False
    )
    P = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    pd.DataFrame(P, columns=["wren", "owl", "ant", "cat"]).assign(id=ids).iloc[back].to_csv("p.csv", index=False)
    return here


def test_tables_are_joined_by_a_key_in_every_command(joined, capsys):
    both = ("--labels", "answers.csv", "--key", "id")
    assert fitted(capsys, "calls.csv", *both)[:2] == ([N, 4, 4], MEAN)
    put("plain.csv", text())
    assert run(["predict", "model", "plain.csv", "--out", "sets.csv", "-q"]) == 0
    joint = read_sets("sets.csv")
    fitted(capsys, "plain.csv")
    assert run(["predict", "model", "plain.csv", "--out", "sets.csv", "--force", "-q"]) == 0
    assert read_sets("sets.csv") == joint  # rows found each other
    assert fitted(capsys, "calls.csv", *both, "--verified", "checked")[0] == [N, 4, 4]
    assert run(["predict", "model", "calls.csv", "--out", "own.csv", "-q"]) == 0
    evaluate = ("evaluate", "own.csv", "--labels", "answers.csv", "--truth", "checked", "--candidates", "answers")
    assert run([*evaluate, "--key", "id", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["n"] == found["n_truth"] == N
    assert found["coverage"] > 0.8


def test_rows_in_are_rows_out_or_an_error(joined, capsys):
    fitted(capsys, "calls.csv", "--labels", "answers.csv", "--key", "id")
    assert run(["predict", "model", "calls.csv", "--out", "own.csv", "-q"]) == 0
    capsys.readouterr()
    commands = {
        "fit": ("fit", "calls.csv", "--labels", "fewer.csv", *FIT, "--ignore", "id"),
        "evaluate": ("evaluate", "own.csv", "--labels", "fewer.csv", "--truth", "checked"),
        "conformalize": (
            "conformalize", "--probabilities", "p.csv", "--ignore", "id", "--labels", "fewer.csv", "--candidates",
            "answers", "--out", "c.cal",
        ),
    }  # fmt: skip
    for arguments in commands.values():
        line = failure(capsys, *arguments)
        assert re.search(r"\d+ rows for \d+ rows of .*; use --key … to match them", line)
        assert "no row with id = " in failure(capsys, *arguments, "--key", "id")
    line = failure(capsys, "evaluate", "own.csv", "--truth", "w", "--key", "id")
    assert "is not given; leave out --key" in line
    pd.read_csv("fewer.csv").drop(columns="id").to_csv("nameless.csv", index=False)
    line = failure(capsys, *commands["fit"], "--labels", "nameless.csv", "--key", "id")
    assert "nameless.csv: there is no column 'id'" in line
    lines_in = (joined / "calls.csv").read_text().splitlines()
    (joined / "gaps.csv").write_text("\n\n".join(lines_in))
    assert run(["predict", "model", "gaps.csv", "--out", "gaps-out.csv", "-q"]) == 0
    assert len(read_sets("gaps-out.csv")) == N


def test_inspect_advises_a_fit_that_has_features(joined, capsys):
    assert run(["inspect", "answers.csv", "--candidates", "answers", "--truth", "checked"]) == 0
    advice = shlex.split(capsys.readouterr().out.splitlines()[-1].removeprefix("try:  setwise "))
    assert advice[:4] == ["fit", "answers.csv", "--candidates", "answers"]
    pd.read_csv("answers.csv", sep=";")[["answers"]].to_csv("only.csv", index=False)
    assert run(["inspect", "only.csv", "--candidates", "answers"]) == 0
    advice = shlex.split(capsys.readouterr().out.splitlines()[-1].removeprefix("try:  setwise "))
    assert advice[:4] == ["fit", "FEATURES.csv", "--labels", "only.csv"]
    followed = ["calls.csv" if word == "FEATURES.csv" else word for word in advice]
    assert run([*followed, "--ignore", "id", "--learner", "em", "-q"]) == 0


def test_a_decimal_mark_is_declared_for_text_with_columns_alone(here, capsys):
    put("german.csv", text(";", ","))
    put("lists.jsonl", jsonl(list))
    assert fitted(capsys, "german.csv", "--decimal", ",") == ([N, 4, 4], MEAN, "")
    assert fitted(capsys, "lists.jsonl", "--decimal", ",") == ([N, 4, 4], MEAN, "")
    assert run(["predict", "model", "german.csv", "--decimal", ",", "--out", "sets.csv", "-q"]) == 0
    capsys.readouterr()
    assert "use --decimal , if" in failure(capsys, "predict", "model", "german.csv", "--out", "more.csv")


def test_fit_advises_a_prediction_that_can_be_written(here, capsys):
    assert run(["fit", put("own.json", READ["lists.json"]), *FIT]) == 0
    advice = capsys.readouterr().out.splitlines()[-1].partition("try:  setwise ")[2].split()
    assert run([word.replace("new", "own") for word in advice]) == 0
    assert len(read_sets("sets.csv")) == N


def test_percentages_and_identifiers_among_probabilities_are_named(joined, capsys):
    P = pd.read_csv("p.csv")
    (100 * P.drop(columns="id")).to_csv("percent.csv", index=False)
    answers = ("--labels", "answers.csv", "--candidates", "answers", "--out", "c.cal")
    line = failure(capsys, "conformalize", "--probabilities", "percent.csv", *answers)
    assert "these look like percentages: divide them by 100" in line
    assert run(["conformalize", "--probabilities", "p.csv", *answers]) == 2
    assert "the column 'id' has another value in every row" in capsys.readouterr().err


def test_arguments_are_checked_before_the_file_is_read(here, capsys):
    fit = ("fit", "none.csv", "--candidates", "answers", "--out", "model")
    assert "did you mean 0.95?" in failure(capsys, *fit, "--confidence", "95")
    assert "'magic' is not known; use auto" in failure(capsys, *fit, "--learner", "magic")
    line = failure(capsys, *fit, "--learner", "em", "--epochs", "3")
    assert line.endswith("has no effect with --learner em; leave out --epochs.\n")
    conformalize = ("conformalize", "--probabilities", "none.csv", "--labels", "none.csv", "--out", "c.cal")
    assert "did you mean 0.95?" in failure(capsys, *conformalize, "--confidence", "95")


# -------------------------------------------------------------------- one meaning per option


def commands(group=None, start=()):
    for name, command in (group or get_command(app)).commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*start, name))
        else:
            yield " ".join((*start, name)), command


def test_an_option_has_one_meaning_in_every_command():
    meanings = {}
    for name, command in commands():
        for one in command.params:
            if one.opts[0].startswith("--"):
                # Two say what the command writes, one what it does in a category; further sentences are its own.
                help_text = (
                    ""
                    if one.opts[0] in {"--out", "--report", "--by"}
                    else one.help.partition(". ")[0].removesuffix(".")
                )
                kind_of_value = getattr(one, "bare_type", lambda one=one: one.type.name)()  # typer before 0.29
                kind = (str(kind_of_value), one.multiple, one.is_flag, help_text)
                meanings.setdefault(one.opts[0], {}).setdefault(kind, []).append(name)
    assert {option: found for option, found in meanings.items() if len(found) > 1} == {}


READERS = {
    "fit",
    "inspect",
    "annotators",
    "estimate",
    "merge",
    "predict",
    "conformalize",
    "evaluate",
    "contaminate",
    "convert",
    "report",
    "suggest",
    "triage",
    "suspects",
}


def test_every_command_that_reads_tables_is_told_how_text_is_written():
    offered = {name: {one.opts[0] for one in command.params} for name, command in commands()}
    assert {name for name, found in offered.items() if "--encoding" in found} == READERS
    for name in READERS:
        assert {"--delimiter", "--encoding", "--decimal"} <= offered[name]
    joins = {name for name, found in offered.items() if found & {"--labels", "--votes"}}
    assert all("--key" in offered[name] for name in joins)


def test_a_table_in_a_column_store_is_read_in_every_guise_too(here, capsys):
    columns = dict(zip("wxyz", X.T, strict=True))
    pq.write_table(pa.table({**columns, "answers": [repr(labels) for labels in LISTS]}), "text.parquet")
    assert fitted(capsys, "text.parquet") == ([N, 4, 4], MEAN, "")
