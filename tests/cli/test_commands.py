"""Single commands in this process: what they refuse, what they write, and how they fail."""

import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression
from typer.main import get_command

import setwise
from setwise import ConformalClassifier, LabelSets, progress_lines
from setwise.cli import inspect, screen
from setwise.cli.app import app, run
from setwise.cli.demo import demo_commands
from setwise.tables import read_sets, read_table

from .conftest import NAMES, rows, table, write

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "votes.csv", 120, 0)
    return tmp_path


def quick_model(folder, **options):
    X, lists, _ = rows(200, 0)
    sets = LabelSets.from_lists(lists, classes=NAMES)
    model = ConformalClassifier(LogisticRegression(), random_state=0, **options).fit(X, sets)
    model.save(folder / "model")
    return model


def failure(capsys, *arguments, status=2):
    """The one line that a command says when it fails."""
    assert run(list(map(str, arguments))) == status
    said = capsys.readouterr()
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    return said.err


FIT = ("fit", "votes.csv", "--candidates", "answers", "--out", "model")
BAD = {
    "no such file": (("fit", "no.csv", "--candidates", "answers", "--out", "m"), "no such file"),
    "no such column": (("inspect", "votes.csv", "--candidates", "answer"), "there is no column 'answer'"),
    "text features": ((*FIT, "--ignore", "id"), "--one-hot"),
    "option missing": (("fit", "votes.csv", "--out", "m"), "--candidates"),
    "unknown command": (("fti", "votes.csv"), "No such command"),
    "unknown strategy": (
        (*FIT, "--ignore", "id", "--ignore", "truth", "--learner", "em", "--strategy", "best"),
        "'best' is not known",
    ),
    "unknown learner": ((*FIT, "--ignore", "truth", "--learner", "magic"), "'magic' is not known"),
    "impute by nothing": ((*FIT, "--ignore", "truth", "--impute", "much"), "median, mean or a number"),
    "no truth": (("evaluate", "votes.csv"), "--truth COLUMN"),
    "no folder": ((*FIT[:-1], "no/where"), "does not exist"),
    "no input": (("predict", "model", "--out", "sets.csv"), "give a FILE of new rows"),
    "no format": (("convert", "votes.csv", "--candidates", "answers", "--out", "sets"), "known format"),
    "a broken file": (("inspect", "broken.parquet", "--candidates", "answers"), "cannot be read"),
}


@pytest.mark.parametrize("mistake", list(BAD))
def test_a_mistake_is_one_line_and_status_2(here, capsys, mistake):
    (here / "broken.parquet").write_bytes(b"PAR1 and nothing more")
    arguments, message = BAD[mistake]
    assert message in failure(capsys, *arguments)
    assert not (here / "model").exists()


def test_evaluate_of_a_model_says_to_write_sets_first(here, capsys):
    (here / "model").mkdir()
    (here / "model" / "setwise.json").write_text("{}")
    said = failure(capsys, "evaluate", "model", "votes.csv", "--truth", "truth")
    assert said == (
        "error: model: is a model, and evaluate reads prediction sets; write them first: "
        "setwise predict MODEL FILE --out sets.csv.\n"
    )


def test_our_own_fault_is_status_1_with_a_hint(here, capsys, monkeypatch):
    monkeypatch.setattr(inspect, "tables", None)
    arguments = ("inspect", "votes.csv", "--candidates", "answers")
    assert "Please report it" in failure(capsys, *arguments, status=1)
    assert run([*arguments, "--traceback"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_feature_that_is_gone_is_named_with_the_counts(here, capsys):
    frame = pd_frame(rows(200, 0)[0])
    model = ConformalClassifier(LogisticRegression(), random_state=0)
    model.fit(frame, LabelSets.from_lists(rows(200, 0)[1])).save(here / "model")
    write(here / "less.csv", {"w": [0.1], "x": [0.2], "z": [0.3]})
    said = failure(capsys, "predict", "model", "less.csv", "--out", "sets.csv")
    assert said == (
        "error: less.csv: there is no column 'y', which the model was trained on (4 features expected, 3 found); "
        "it has w, x, z.\n"
    )
    assert not (here / "sets.csv").exists()


def pd_frame(X):
    import pandas as pd

    return pd.DataFrame(X, columns=["w", "x", "y", "z"])


def test_features_are_found_by_name_in_any_order_and_everything_else_comes_along(here):
    X, _, truth = rows(50, 3)
    model = ConformalClassifier(LogisticRegression(), random_state=0)
    model.fit(pd_frame(rows(200, 0)[0]), LabelSets.from_lists(rows(200, 0)[1])).save(here / "model")
    columns = {name: X[:, j] for j, name in enumerate("wxyz")}
    mixed = {"n": pa.array([None, *range(49)], pa.int64()), "z": columns["z"], "truth": truth}
    pq.write_table(pa.table(mixed | {name: columns[name] for name in "xwy"}), here / "new.parquet")
    assert run(["predict", "model", "new.parquet", "--out", "sets.parquet", "--quiet"]) == 0
    written = pq.read_table(here / "sets.parquet")
    assert written.column_names == ["n", "truth", "labels", "size"]
    assert written["n"].to_pylist() == [None, *range(49)]
    assert read_sets(here / "sets.parquet") == model.predict_set(pd_frame(X))


def test_a_model_without_names_asks_for_them(here, capsys):
    model = quick_model(here)
    assert "name its 4 features" in failure(capsys, "predict", "model", "votes.csv", "--out", "sets.csv")
    names = [part for name in "wxyz" for part in ("--features", name)]
    assert run(["predict", "model", "votes.csv", "--out", "sets.csv", *names]) == 0
    assert read_sets(here / "sets.csv", classes=NAMES) == model.predict_set(rows(120, 0)[0])


def test_nothing_is_overwritten_unasked(here, capsys):
    (here / "out.csv").write_text("precious")
    (here / "folder").mkdir()
    (here / "folder" / "thesis.tex").write_text("precious")
    arguments = ("contaminate", "votes.csv", "--truth", "truth", "--out", "out.csv")
    assert "--force" in failure(capsys, *arguments)
    assert (here / "out.csv").read_text() == "precious"
    assert run([*arguments, "--force"]) == 0
    assert (here / "out.csv").read_text() != "precious"
    fit = (*FIT[:-1], "folder", "--learner", "em", "--ignore", "id", "--ignore", "truth", "--force")
    assert "holds other files and no model" in failure(capsys, *fit)


def test_fit_without_torch_keeps_categories_and_filled_gaps_for_the_next_file(here, capsys):
    X, lists, _ = rows(150, 0)
    x = [None, *X[1:, 0]]
    colour = ["red", "blue", "green"] * 50
    write(here / "t.parquet", {"x": x, "y": X[:, 1], "colour": colour, "answers": lists})
    write(here / "u.csv", {"colour": ["blue"], "x": pa.array([None], pa.float64()), "y": [1.0]})
    options = ["--learner", "em", "--impute", "median", "--one-hot"]
    assert run(["fit", "t.parquet", "--candidates", "answers", "--out", "model", *options, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["features"], said["classes"], said["calibrated_on"]) == (3, 4, 30)
    assert run(["predict", "model", "u.csv", "--out", "u.parquet"]) == 0
    frame = pd.DataFrame({"x": [None], "y": [1.0], "colour": ["blue"]})
    assert read_sets(here / "u.parquet") == setwise.load(here / "model").predict_set(frame)
    write(here / "v.csv", {"colour": ["pink"], "x": [1.0], "y": [1.0]})
    assert "not a known category" in failure(capsys, "predict", "model", "v.csv", "--out", "v.parquet")


def test_verified_rows_and_groups_reach_the_calibration(here, capsys):
    X, lists, truth = rows(300, 0)
    checked = [label if i % 2 else "" for i, label in enumerate(truth)]
    write(here / "t.csv", {"x": X[:, 0], "y": X[:, 1], "s": lists, "checked": checked, "who": np.arange(300) // 5})
    common = ["fit", "t.csv", "--candidates", "s", "--learner", "em", "--json"]
    mixture = ["--verified", "checked", "--strategy", "mixture:0.5", "--calibration-size", "0.5"]
    assert run([*common, "--out", "a", "--ignore", "who", *mixture]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["strategy"]["asked"] == "mixture(μ=0.5)"
    assert "verified rows" in said["guarantee"]["text"]
    assert run([*common, "--out", "b", "--ignore", "checked", "--groups", "who"]) == 0
    assert json.loads(capsys.readouterr().out)["guarantee"]["unit"] == "groups"


def test_contaminated_labels_keep_their_names_and_the_table_its_cells(here):
    assert run(["contaminate", "votes.csv", "--truth", "truth", "--p", "0.3", "--out", "made.csv"]) == 0
    made = read_table(here / "made.csv", candidates="candidates", truth="truth", carry=["id", "answers"])
    assert made.candidates.contains(made.truth).all()
    assert made.candidates.sizes.min() >= 2
    assert made.carried["id"].tolist() == [f"{i:04d}" for i in range(120)]
    before = read_table(here / "votes.csv", candidates="answers", truth="truth", carry=["id"])
    np.testing.assert_array_equal(made.X, before.X)


def test_votes_become_candidates(here):
    write(here / "v.csv", {"task": [1, 1, 2], "worker": ["ann", "bob", "ann"], "label": ["owl", "cat", "cat"]})
    assert run(["convert", "v.csv", "--from", "votes", "--out", "v.parquet"]) == 0
    assert read_sets(here / "v.parquet", column="candidates").to_lists() == [["cat", "owl"], ["cat"]]
    write(here / "w.csv", {"call": [1, 1, 2], "who": ["ann", "bob", "ann"], "bird": ["owl", "cat", "cat"]})
    columns = ["--item", "call", "--annotator", "who", "--label", "bird"]
    assert run(["convert", "w.csv", "--from", "votes", *columns, "--candidates", "s", "--out", "w.parquet"]) == 0
    assert read_sets(here / "w.parquet", column="s").to_lists() == [["cat", "owl"], ["cat"]]
    assert run(["convert", "votes.csv", "--candidates", "answers", "--out", "w.jsonl"]) == 0
    first = json.loads((here / "w.jsonl").read_text().splitlines()[0])
    assert sorted(first) == ["answers", "id", "truth", "w", "x", "y", "z"]
    assert isinstance(first["w"], float)


def test_the_demo_shows_what_votes_and_checks_buy_and_writes_what_it_made(here, capsys):
    assert run(["demo", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    answers, votes, crowd, best = said["strategies"]
    assert [each["strategy"] for each in (answers, votes, crowd)] == ["max", "votes", "crowd"]
    assert answers["mean_size"] > votes["mean_size"] > 2 * best["mean_size"] > 2 * crowd["mean_size"]
    assert [each["promised"] for each in (votes, crowd, best)] == [None, None, 0.9]
    assert all(each["coverage_interval"][1] >= 0.9 for each in said["strategies"])
    for page in (ROOT / "README.md", ROOT / "docs" / "index.md"):
        shown = re.findall(r"^\| the .*?\| ([\d.]+) \| ([\d.]+) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
        found = [[each["mean_size"], each["coverage"]] for each in said["strategies"]]
        np.testing.assert_allclose(np.array(shown, dtype=float), found, atol=0.1)
    report = (here / "demo" / "report.html").read_text(encoding="utf-8")
    assert '<th scope="row">hal</th>' in report
    assert '<span class="flag">least accurate</span>' in report
    assert ConformalClassifier.load(here / "demo" / "model").classes_.tolist() == list(range(10))
    assert run(["evaluate", "demo/sets.csv", "--truth", "digit", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["coverage"] == best["coverage"]
    for command in demo_commands(Path("demo")):
        quicker = ["--learner", "em"] if command.startswith("setwise fit") else []
        assert run([*command.split()[1:], *quicker, "--quiet"]) == 0, capsys.readouterr().err
    assert len(read_sets(here / "demo" / "own.csv")) == 497


def test_benchmark_sets_are_listed(capsys):
    assert run(["datasets", "list"]) == 0
    assert "lost" in capsys.readouterr().out
    assert "atlantis" in failure(capsys, "datasets", "fetch", "atlantis")


COMMANDS = [name for name in get_command(app).commands if name != "datasets"]


@pytest.mark.parametrize("command", [*COMMANDS, "datasets list", "datasets fetch"])
def test_help_shows_an_example(capsys, command):
    assert run([*command.split(), "--help"]) == 0
    shown = capsys.readouterr().out.replace("Examples:", "Example:")
    assert f"setwise {command}" in shown.split("Example:")[1]


def test_help_loads_nothing_heavy():
    heavy = ("torch", "pandas", "pyarrow", "sklearn", "matplotlib", "jinja2")
    program = (
        "import sys; from setwise.cli.app import run; run(['--help']);"
        f"[run([name, '--help']) for name in {COMMANDS}];"
        f"sys.exit(', '.join(m for m in {heavy} if m in sys.modules) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_models_of_scikit_learn_are_asked_and_learned_without_what_they_do_not_need(here):
    quick_model(here)
    heavy = ["matplotlib", "jinja2", "pooch", "openpyxl", "setwise.report", "reproduction", "setwise.plots"]
    heavy += ["setwise.learn.classifier", *(f"setwise.cli.{name}" for name in COMMANDS if name != "predict")]
    features = [word for name in "wxyz" for word in ("--features", name)]
    arguments = ["predict", "model", "votes.csv", "--out", "sets.csv", "--quiet", *features]
    learned = [*FIT[:-1], "em", "--ignore", "id", "--ignore", "truth", "--learner", "em", "--quiet"]
    program = (
        f"import sys; from setwise.cli.app import run; assert run({arguments}) == 0\n"
        f"assert not (found := [m for m in {heavy} if m in sys.modules]), found\n"
        f"assert run({learned}) == 0\n"
        f"assert not (found := [m for m in {heavy[:2]} if m in sys.modules]), found\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_command_loads_no_other_and_help_shows_them_all(capsys):
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    for name, command in get_command(app).commands.items():
        assert f" {name} " in shown
        assert " ".join(command.help.split()[:3]) in shown
    assert "Did you mean 'predict'" in failure(capsys, "predic")


def test_an_interrupted_command_leaves_one_sentence(here, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(ConformalClassifier, "fit", interrupted)
    arguments = (*FIT, "--ignore", "id", "--ignore", "truth", "--learner", "em")
    assert run([*arguments]) == 130
    assert capsys.readouterr().err == "interrupted: what was not finished is not written.\n"
    assert not (here / "model").exists()


@pytest.mark.parametrize("quiet", [False, True])
def test_without_a_terminal_a_line_now_and_then_says_what_runs(capsys, monkeypatch, quiet):
    told = threading.Event()
    stream = sys.stderr

    class Watched:
        def write(self, text):
            stream.write(text)
            told.set()

        def flush(self):
            stream.flush()

        def isatty(self):
            return False

    monkeypatch.setattr(progress_lines, "SECONDS", 0.001)
    monkeypatch.setattr(sys, "stderr", Watched())
    with screen.Screen(quiet=quiet).working("learning", shows_itself=True):
        assert quiet or told.wait(60)
    said = capsys.readouterr().err
    assert said == "" if quiet else said.startswith("learning: 0 s so far\n")


# -------------------------------------------------------------------- what newcomers stumble over


@pytest.fixture
def german(here):
    """A table as spreadsheets in half of Europe write it, with labels between slashes."""
    X, lists, truth = rows(200, 0)
    columns = {"id": [f"P{i}" for i in range(200)], "x": X[:, 0], "y": X[:, 1], "z": X[:, 2]}
    lines = [";".join(map(str, row)) for row in zip(*columns.values(), map("/".join, lists), truth, strict=True)]
    (here / "visits.csv").write_text("\n".join(["id;x;y;z;opinions;final", *lines]) + "\n")
    return here


def test_columns_between_other_marks_are_recognised(german, capsys):
    inspect = ("inspect", "visits.csv", "--candidates", "opinions", "--separator", "/", "--truth", "final")
    assert run([*inspect]) == 0
    advised = capsys.readouterr().out.splitlines()[-1].removeprefix("try:  setwise ").split()
    assert advised[-7:] == ["/", "--ignore", "final", "--ignore", "id", "--out", "model/"]
    assert run([*advised, "--learner", "em", "-q"]) == 0
    assert run(["predict", "model", "visits.csv", "--out", "sets.csv", "-q"]) == 0
    assert read_table("sets.csv", candidates="labels", truth="final", carry=["id", "opinions"]).X.shape == (200, 1)
    for mark in (",", "^"):
        (german / "plain.csv").write_text((german / "visits.csv").read_text().replace(";", mark))
        options = ["--delimiter", mark, "--out", "again.csv", "--force", "-q"]
        assert run(["predict", "model", "plain.csv", *options]) == 0
        assert (german / "again.csv").read_text() == (german / "sets.csv").read_text()


def test_labels_that_were_read_as_one_raise_a_doubt(german, capsys):
    arguments = ["visits.csv", "--candidates", "opinions", "--delimiter", ";"]
    doubt = "use --separator / if '/' stands between labels"
    assert run(["inspect", *arguments]) == 0
    assert doubt in capsys.readouterr().err
    fit = ["fit", *arguments, "--ignore", "id", "--ignore", "final", "--learner", "em", "--out", "model", "-q"]
    assert run(fit) == 0
    assert doubt in capsys.readouterr().err
    assert run([*fit, "--separator", "/", "--force"]) == 0
    assert capsys.readouterr().err == ""


def test_truth_among_the_features_raises_a_doubt(german, capsys):
    fit = [
        "fit",
        "visits.csv",
        "--candidates",
        "opinions",
        "--delimiter",
        ";",
        "--separator",
        "/",
        "--out",
        "model",
    ]
    assert run([*fit, "--ignore", "id", "--one-hot", "--learner", "em", "-q"]) == 0
    assert "the column 'final' holds labels" in capsys.readouterr().err


def test_annotators_describes_people_and_writes_their_consensus(tmp_path, capsys):
    file, out = tmp_path / "votes.csv", tmp_path / "consensus.csv"
    lines = [(i, who, i % 2 if who != "zed" else 0) for i in range(20) for who in ("ann", "bob", "cyd", "zed")]
    file.write_text(
        "task,who,said,w\n" + "".join(f"{i},{who},{said},2\n" for i, who, said in lines) + "20,ann,,1\n"
    )
    options = ["annotators", str(file), "--item", "task", "--annotator", "who", "--label", "said"]
    assert run([*options, "--weight", "w", "--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["answers"], told["out"]) == (21, 80, str(out))
    assert [one["name"] for one in told["annotators"]] == ["ann", "bob", "cyd", "zed"]
    assert told["annotators"][3]["flags"][0] == "always the same answer"
    written = pd.read_csv(out)
    assert written.columns.tolist() == ["task", "consensus", "p:0", "p:1"]
    assert written["consensus"][:20].tolist() == [i % 2 for i in range(20)]
    assert written["consensus"].isna().tolist() == [False] * 20 + [True]
    assert run([*options, "--out", str(out)]) == 2
    assert "--force" in capsys.readouterr().err
    assert run([*options[:-1], "answer"]) == 2
    assert "there is no column 'answer'" in capsys.readouterr().err


def test_annotators_are_all_listed_where_asked(tmp_path, capsys):
    file = tmp_path / "votes.csv"
    file.write_text("task,who,said\n" + "".join(f"{i},w{j},{i % 2}\n" for i in range(12) for j in range(13)))
    options = ["annotators", str(file), "--item", "task", "--annotator", "who", "--label", "said"]
    for more, names in (([], 10), (["--all"], 13)):
        assert run([*options, *more]) == 0
        told = capsys.readouterr().out
        assert len(re.findall(r"^w\d+ ", told, re.MULTILINE)) == names
        assert ("… 3 more" in told) == (not more)


def test_votes_take_the_place_of_candidates_and_are_matched_by_their_key(here, capsys):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = np.eye(3)[y] * 2 + rng.normal(size=(300, 3))
    said = np.where(rng.random((300, 3)) < 0.8, y[:, None], rng.integers(0, 3, (300, 3)))
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(id=[f"r{i}" for i in range(300)])
    frame.to_csv("x.csv", index=False)
    scores = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    checked = [NAMES[k] if i < 60 else None for i, k in enumerate(y)]
    pd.DataFrame(scores, columns=NAMES[:3]).assign(id=frame["id"], checked=checked).to_csv("p.csv", index=False)
    lines = [(f"r{i}", f"w{j}", NAMES[said[i, j]]) for i in rng.permutation(300) for j in range(3)]
    pd.DataFrame(lines, columns=["id", "worker", "label"]).to_csv("v.csv", index=False)
    shared = ["--votes", "v.csv", "--key", "id", "--json"]
    assert run(["fit", "x.csv", *shared, "--learner", "em", "--out", "m"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["features"], told["strategy"]["used"]) == (300, 3, "votes")
    model = ConformalClassifier.load("m")
    assert (
        model.predict(frame[["a", "b", "c"]]) == np.array(NAMES)[y]
    ).mean() > 0.7  # rows were matched, not taken in the file's order
    told = {}
    for name, more in {
        "votes": [],
        "crowd": ["--assume", "independent"],
        "auto": ["--verified", "checked"],
    }.items():
        ignored = [] if name == "auto" else ["--ignore", "checked"]
        options = ["conformalize", "--probabilities", "p.csv", *shared, *more, *ignored, "--out", f"{name}.cal"]
        assert run(options) == 0, capsys.readouterr().err
        told[name] = json.loads(capsys.readouterr().out)
    assert told["votes"]["strategy"]["used"] == "votes"
    assert told["crowd"]["strategy"]["used"] == "crowd"
    assert told["auto"]["guarantee"]["promised"] == 0.9
    for wrong, says in (
        (["--votes", "v.csv"], "--key"),
        ([], "--candidates (a column) or --votes"),
        (["--votes", "v.csv", "--candidates", "a"], "--candidates (a column) or --votes"),
        (["--votes", "v.csv", "--key", "a", "--ignore", "id"], "there is no column 'a'"),
    ):
        assert run(["fit", "x.csv", *wrong, "--out", "other"]) == 2
        assert says in capsys.readouterr().err


def test_verified_rows_tell_how_often_annotators_are_right(tmp_path, capsys):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    said = np.where(rng.random((300, 4)) < [0.9, 0.8, 0.7, 0.2], y[:, None], rng.integers(0, 3, (300, 4)))
    lines = (f"t{i},w{j},{said[i, j]}\n" for i in range(300) for j in range(4))
    (tmp_path / "votes.csv").write_text("task,who,said\n" + "".join(lines))
    (tmp_path / "true.csv").write_text("task,verified\n" + "".join(f"t{i},{y[i]}\n" for i in range(100)))
    asked = ["annotators", str(tmp_path / "votes.csv"), "--item", "task", "--annotator", "who", "--label", "said"]
    assert run([*asked, "--verified", str(tmp_path / "true.csv"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["verified"], told["rows"]) == (100, 300)
    for j, one in enumerate(told["annotators"]):
        assert one["lower"] <= (said[:, j] == y).mean() <= one["upper"]
    assert told["you_state"] == "the 100 rows were drawn at random; their labels are right."
    assert run([*asked, "--votes", "votes.csv"]) == 2
    assert "FILE already names the answers" in capsys.readouterr().err
