"""What may be chosen: categories, folds, assumptions; and that the shell completes it."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.pipeline import Pipeline

import setwise as library
from setwise import ConformalClassifier, CrossConformalClassifier
from setwise.cli.app import run
from setwise.cli.options import assume_of
from setwise.estimators.default_learner import default_learner
from setwise.learn import CoveringClassifier, PartialLabelClassifier
from setwise.tables import read_sets, read_table
from setwise.tables.label_columns import categories_of

from .conftest import NAMES, rows, write
from .test_commands import failure

QUICK = ("--learner", "em")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Two tables whose rows come from two wards, numbered in one file and spelled in another."""
    monkeypatch.chdir(tmp_path)
    for name, n, seed in (("votes.parquet", 240, 0), ("new.csv", 150, 1)):
        X, lists, truth = rows(n, seed)
        ward = np.where(X[:, 0] > 1, 7, 12)
        features = {feature: X[:, j] for j, feature in enumerate("wxyz")}
        write(tmp_path / name, {"id": np.arange(n), **features, "ward": ward, "answers": lists, "truth": truth})
    return tmp_path


def read(name):
    """Features as a frame, and the ward of each row as text."""
    table = read_table(name, candidates="answers", carry=["id", "truth", "ward"])
    return pd.DataFrame(table.X, columns=table.feature_names), [str(ward) for ward in table.carried["ward"]]


FIT = ("fit", "votes.parquet", "--candidates", "answers", "--ignore", "id", "--ignore", "truth", *QUICK)


def said(capsys, *arguments):
    assert run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_categories_are_calibrated_each_for_itself_and_found_again_by_name(here, capsys):
    result = said(capsys, *FIT, "--by", "ward", "--out", "model")
    assert set(result["guarantee"]["by_category"]) == {"7", "12"}
    assert all(claim["promised"] == 0.9 for claim in result["guarantee"]["by_category"].values())
    result = said(capsys, "predict", "model", "new.csv", "--out", "sets.csv")
    assert (result["promised"], result["promised_by_category"]) == (0.9, {"7": 0.9, "12": 0.9})
    X, ward = read("new.csv")
    expected = ConformalClassifier.load("model").predict_set(X, by=ward)
    assert read_sets("sets.csv", classes=expected.classes) == expected
    found = said(capsys, "evaluate", "sets.csv", "--truth", "truth", "--by", "ward")
    assert set(found["by_category"]) == {"7", "12"}


def test_a_person_reads_one_claim_a_category(here, capsys):
    assert run([*FIT, "--by", "ward", "--out", "model"]) == 0
    said = capsys.readouterr().out
    assert "Category '7': 15 rows" in said
    assert "Category '12': 33 rows" in said


def test_the_predicted_label_may_be_the_category(here, capsys):
    result = said(capsys, *FIT, "--ignore", "ward", "--by", "predicted", "--confidence", "0.8", "--out", "model")
    assert set(result["guarantee"]["by_category"]) == set(NAMES)
    result = said(capsys, "predict", "model", "new.csv", "--out", "sets.csv")
    assert (result["promised"], result["promised_by_category"]) == (0.8, dict.fromkeys(NAMES, 0.8))
    expected = ConformalClassifier.load("model").predict_set(read("new.csv")[0])
    assert read_sets("sets.csv", classes=expected.classes) == expected
    X, lists, _ = rows(300, 2)
    P = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    write(here / "scores.csv", dict(zip(NAMES, P.T, strict=True)))
    write(here / "answers.csv", {"candidates": lists})
    files = ("--probabilities", "scores.csv", "--labels", "answers.csv")
    result = said(capsys, "conformalize", *files, "--by", "predicted", "--out", "model.cal")
    assert set(result["guarantee"]["by_category"]) == set(NAMES)
    assert run(["predict", "model.cal", "--probabilities", "scores.csv", "--out", "own.csv", "-q"]) == 0
    cal = library.conformalize(P, library.LabelSets.from_lists(lists, NAMES), by="predicted", random_state=0)
    assert read_sets("own.csv", classes=NAMES) == cal.predict_set(P)


def test_the_word_label_calibrates_each_true_class_whatever_columns_there_are(here, capsys):
    X, lists, truth = rows(300, 2)
    P = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    write(here / "scores.csv", dict(zip(NAMES, P.T, strict=True)))
    write(here / "answers.csv", {"candidates": lists, "label": truth})
    asked = ["conformalize", "--probabilities", "scores.csv", "--labels", "answers.csv", "--by", "label"]
    said(capsys, *asked, "--verified", "label", "--out", "model.cal")
    own = library.conformalize(P, np.array([NAMES.index(name) for name in truth]), by="label")
    cal = library.load("model.cal")
    assert np.array_equal(cal.threshold(0.9), own.threshold(0.9))
    assert run(["predict", "model.cal", "--probabilities", "scores.csv", "--out", "own.csv", "-q"]) == 0
    assert read_sets("own.csv", classes=NAMES) == cal.predict_set(P)
    result = said(capsys, *FIT[:-2], *QUICK, "--verified", "truth", "--by", "label", "--out", "model")
    assert "any one true class" in result["guarantee"]["text"].replace("\n               ", " ")
    error = failure(capsys, *asked, "--out", "other.cal")
    assert "by: 'label' needs true labels" in error
    assert "--verified" in error


def test_rows_without_a_category_are_named(here, capsys):
    assert run([*FIT, "--by", "ward", "--out", "model", "-q"]) == 0
    lines = (here / "new.csv").read_text().splitlines()
    (here / "less.csv").write_text("\n".join(line.replace(",7,", ",,") for line in lines))
    row = next(i for i, line in enumerate(lines[1:]) if ",7," in line)
    assert f"row {row} has no category" in failure(capsys, "predict", "model", "less.csv", "--out", "sets.csv")
    (here / "none.csv").write_text("\n".join(lines).replace("ward", "unit"))
    assert "no column 'ward'" in failure(capsys, "predict", "model", "none.csv", "--out", "sets.csv")
    assert run(["predict", "model", "none.csv", "--by", "unit", "--out", "sets.csv"]) == 0
    assert run([*FIT, "--ignore", "ward", "--out", "plain", "-q"]) == 0
    capsys.readouterr()
    wrong = failure(capsys, "predict", "plain", "new.csv", "--by", "ward", "--out", "no.csv")
    assert "give it when you fit or conformalize" in wrong
    assert "a column has one role" in failure(capsys, *FIT, "--by", "ward", "--features", "ward", "--out", "m")


def test_the_category_of_a_row_is_the_same_text_in_every_format():
    for column in (pa.array([1, 2]), pa.array(["1", "2"]), pa.array([1.0, 2.0]), np.array([1, 2])):
        assert categories_of(column, "ward", "file") == ["1", "2"]
    with pytest.raises(ValueError, match="file, column 'ward': row 11 has no category"):
        categories_of(pa.array([1, None]), "ward", "file", 10)


@pytest.mark.parametrize("place", ["scores", "answers"])
def test_probabilities_from_outside_may_have_categories_too(here, capsys, place):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(4), 300)
    sets = library.LabelSets.from_mask(P.max(axis=1, keepdims=True) * 0.7 < P, NAMES)
    ward, order = np.where(rng.random(300) < 0.5, "a", "b"), rng.permutation(300)
    files = {
        "scores": {"key": np.arange(300), **dict(zip(NAMES, P.T, strict=True))},
        "answers": {"key": order, "candidates": sets[order].to_lists()},
    }
    files[place]["ward"] = ward if place == "scores" else ward[order]
    for name, columns in files.items():
        write(here / f"{name}.csv", columns)
    common = ["--probabilities", "scores.csv", "--labels", "answers.csv", "--key", "key", "--by", "ward"]
    made = said(capsys, "conformalize", *common, "--out", "model.cal")["guarantee"]
    assert set(made["by_category"]) == {"a", "b"}
    write(here / "fresh.csv", {"ward": ward[:50], **dict(zip(NAMES, P[:50].T, strict=True))})
    predict = ("predict", "model.cal", "--probabilities", "fresh.csv", "--out", "sets.csv")
    assert "use --by … to name it" in failure(capsys, *predict)
    assert run([*predict, "--by", "ward", "-q"]) == 0
    expected = library.conformalize(P, sets, by=ward, random_state=0).predict_set(P[:50], by=ward[:50])
    assert read_sets("sets.csv", classes=NAMES) == expected


CROSS = {
    "em": (QUICK, Pipeline),
    "network": (("--learner", "network", "--network", "linear", "--epochs", "3"), PartialLabelClassifier),
    "by default": (("--network", "linear", "--epochs", "1"), CoveringClassifier),
}


@pytest.mark.parametrize(
    ("needed", "options"),
    [
        ("weights", {"sample_weight": np.ones(40)}),
        ("ids", {"row_ids": np.arange(40), "conformity_score": "aps"}),
        ("candidates", {"by": "size"}),
    ],
)
def test_facts_of_new_rows_that_no_option_names_are_asked_for_in_python(tmp_path, capsys, needed, options):
    P = np.random.default_rng(0).dirichlet([1, 1, 1], 40)
    library.conformalize(P, P > 0.3, classes=["a", "b", "c"], missing="full", **options).save(tmp_path / "m.cal")
    write(tmp_path / "p.csv", {name: P[:, j] for j, name in enumerate("abc")})
    line = ["predict", str(tmp_path / "m.cal"), "--probabilities", str(tmp_path / "p.csv")]
    assert f"was calibrated with the {needed} of its rows" in failure(
        capsys, *line, "--out", str(tmp_path / "s.csv")
    )


@pytest.mark.parametrize("learner", list(CROSS))
def test_a_cross_conformal_model_is_saved_loaded_and_predicts(here, capsys, learner):
    options, learned = CROSS[learner]
    common = ("fit", "votes.parquet", "--candidates", "answers", "--ignore", "id", "--ignore", "truth")
    result = said(capsys, *common, "--ignore", "ward", *options, "--cross", "3", "--out", "model")
    assert result["calibrated_on"] == 240
    assert result["strategy"] == {"asked": "auto", "used": "max over 3 folds"}
    assert 0.75 < result["guarantee"]["promised"] < 0.8
    result = said(capsys, "predict", "model", "new.csv", "--out", "sets.parquet", "--p-values")
    assert 0.75 < result["promised"] < 0.8
    model, (X, _) = CrossConformalClassifier.load("model"), read("new.csv")
    assert [type(one) for one in model.estimators_] == [learned] * 3
    assert read_sets("sets.parquet") == model.predict_set(X)
    table = pq.read_table("sets.parquet").to_pydict()
    p = np.column_stack([table[f"p:{label}"] for label in model.classes_])
    np.testing.assert_array_equal(p, model.predict_p(X))
    assert model.feature_names_in_.tolist() == ["w", "x", "y", "z"]


@pytest.mark.parametrize("option", ["--groups", "--by"])
def test_what_cross_conformal_cannot_do_is_one_line(here, capsys, option):
    line = failure(capsys, *FIT, option, "ward", "--cross", "3", "--out", "model")
    assert "leave out --cross" in line.splitlines()[-1]


LEARNERS = [
    (),
    ("--strategy", "max", "--assume", "uniform"),
    ("--strategy", "all"),
    ("--strategy", "mean"),
    ("--assume", "uniform"),
    ("--conformity-score", "aps"),
    ("--verified", "few"),
    ("--verified", "many"),
]


@pytest.mark.parametrize("folds", [(), ("--cross", "3")], ids=["split", "cross"])
@pytest.mark.parametrize("options", LEARNERS, ids=" ".join)
def test_the_library_chooses_the_learner(tmp_path, monkeypatch, options, folds):
    monkeypatch.chdir(tmp_path)
    X, lists, truth = rows(200, 0)
    checked = {name: [*truth[:m], *[None] * (200 - m)] for name, m in (("few", 5), ("many", 100))}
    write(tmp_path / "t.parquet", {"x": X[:, 0], "y": X[:, 1], **checked, "answers": lists})
    ignored = [word for name in checked if name not in options for word in ("--ignore", name)]
    chosen = []

    def fit(model, *_, **__):
        chosen.append(model.estimator)
        raise ValueError("enough")

    monkeypatch.setattr(CrossConformalClassifier if folds else ConformalClassifier, "fit", fit)
    arguments = ["fit", "t.parquet", "--candidates", "answers", *ignored, *options, *folds, "--out", "model"]
    assert run(arguments) == 2
    given = dict(zip(options[::2], options[1::2], strict=True))
    strategy, score = given.get("--strategy", "auto"), given.get("--conformity-score", "lac")
    verified = {"few": 5, "many": 100}.get(given.get("--verified"), 0)
    expected = default_learner(strategy, score, given.get("--assume", "nothing"), verified)
    assert [type(learner) for learner in chosen] == [type(expected)]


RATES = np.array([[1, 0.1, 0.2, 0.3], [0.4, 1, 0.5, 0.6], [0.7, 0.8, 1, 0.9], [0.15, 0.25, 0.35, 1]])


@pytest.mark.parametrize("form", ["plain.csv", "named.csv", "named.parquet", "rates.npy"])
def test_rates_of_confusion_come_from_a_file_in_the_order_of_the_labels(tmp_path, form):
    path = tmp_path / form
    order = [2, 0, 3, 1]
    columns = {NAMES[k]: RATES[order][:, k] if "named" in form else RATES[np.ix_(order, [k])][:, 0] for k in order}
    if form == "rates.npy":
        np.save(path, RATES)
    elif form == "plain.csv":
        write(path, columns)
    else:
        write(path, {"truth": [NAMES[k] for k in order], **columns})
    np.testing.assert_array_equal(assume_of(str(path), NAMES), RATES)


def test_a_file_of_rates_that_does_not_fit_is_refused(here, capsys):
    write(here / "three.csv", {name: [1.0, 1.0, 1.0] for name in NAMES[:3]})
    write(here / "short.csv", {name: [1.0, 1.0, 1.0] for name in NAMES})
    write(here / "strange.csv", {name: [1.0] * 4 for name in [*NAMES, "a", "b"]})
    (here / "broken.npy").write_bytes(b"no array")
    fit = (*FIT, "--ignore", "ward", "--out", "model", "--assume")
    assert "expected one column for each of the labels ant, cat, owl, wren" in failure(capsys, *fit, "three.csv")
    assert "expected a row for each of the 4 labels, found 3" in failure(capsys, *fit, "short.csv")
    assert "at most one more" in failure(capsys, *fit, "strange.csv")
    assert "not an array of numbers" in failure(capsys, *fit, "broken.npy")
    assert "no file; name one, or use nothing, uniform, class or independent" in failure(capsys, *fit, "evenly")


def test_what_is_assumed_reaches_the_calibration_and_is_kept(here):
    write(here / "rates.csv", dict(zip(sorted(NAMES), RATES.T, strict=True)))
    for assume in ("uniform", "class", "rates.csv"):
        fit = [*FIT, "--ignore", "ward", "--out", "model", "--assume", assume, "-q", "--force"]
        assert run(fit) == 0
        kept = ConformalClassifier.load("model").calibration_.setting.assume
        assert kept.kind == ("uniform" if assume == "uniform" else "class")
    np.testing.assert_array_equal(kept.matrix, RATES)
    assert not kept.estimated


# -------------------------------------------------------------------- completion


def marks(line):
    """What bash sets when it asks what may follow on this line."""
    return {
        "_SETWISE_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
    }


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("setwise fi", ["fit"]),
        ("setwise fit votes.parquet --cr", ["--cross"]),
        ("setwise fit votes.parquet --assume u", ["uniform"]),
        ("setwise fit votes.parquet --strategy mix", ["mixture", "mixture:0.5"]),
        ("setwise conformalize --assume c", ["class"]),
    ],
)
def test_options_and_words_are_completed(here, monkeypatch, capsys, line, offered):
    for name, value in marks(line).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        run([])
    said = capsys.readouterr()
    assert (said.out.split(), said.err) == (offered, "")


def test_the_shell_asks_the_program(here):
    program = "import sys; sys.argv[0] = 'setwise'; from setwise.cli import main; main()"
    asked = {**os.environ, **marks("setwise fit votes.parquet --assume u")}
    done = subprocess.run([sys.executable, "-c", program], env=asked, capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr) == (["uniform"], "")


SHELLS = {  # what the script begins with, and where it is put
    "bash": ("_setwise_completion() {", ".bash_completions/setwise.sh"),
    "zsh": ("#compdef setwise", ".zfunc/_setwise"),
    "fish": ("complete --command setwise", ".config/fish/completions/setwise.fish"),
}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_for_the_shell_is_shown_and_installed(shell, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")  # typer then takes its name
    monkeypatch.setenv("HOME", str(tmp_path))
    script, place = SHELLS[shell]
    for option in ("--show-completion", "--install-completion"):
        with pytest.raises(SystemExit) as ended:
            run([option, shell])
        assert ended.value.code in {0, None}
        assert (script if option == "--show-completion" else shell) in capsys.readouterr().out
    assert script in (tmp_path / place).read_text()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_learns_it_by_the_name_of_the_command(tmp_path):
    line = f'eval "$({sys.executable} -m setwise --show-completion)" && complete -p setwise'
    done = subprocess.run(
        [shutil.which("bash"), "-c", line], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (done.stdout, done.stderr) == ("complete -o default -F _setwise_completion setwise\n", "")


def test_rows_that_nobody_answered_are_left_out_and_counted(tmp_path, capsys):
    write(tmp_path / "calls.csv", {"id": np.arange(40), "x": np.arange(40.0)})
    given = {"id": np.arange(39), "worker": list("abc") * 13, "label": [None, *["cat", "dog"] * 19]}
    write(tmp_path / "votes.csv", given)
    line = [
        "fit",
        tmp_path / "calls.csv",
        "--votes",
        tmp_path / "votes.csv",
        "--key",
        "id",
        "--annotator",
        "worker",
    ]
    assert run([*map(str, line), "--out", str(tmp_path / "m"), *QUICK]) == 0
    said = capsys.readouterr()
    assert "votes.csv: nobody answered 2 of 40 rows." in said.err
    assert "38 rows, 1 features, 2 classes" in said.out
    assert run([*map(str, line), "--missing", "error", "--out", str(tmp_path / "n"), *QUICK]) == 2
    assert "row 0 has no labels (2 such rows)" in capsys.readouterr().err


def test_full_keeps_verified_rows_that_nobody_answered(tmp_path, capsys):
    said = np.array(["cat", "dog"])[np.arange(60) % 2]
    write(tmp_path / "calls.csv", {"id": np.arange(100), "x": np.arange(100) % 2 + np.arange(100) / 1000})
    write(tmp_path / "votes.csv", {"id": np.arange(60), "worker": ["a", "b", "c"] * 20, "label": said})
    verified = np.array(["cat", "dog"])[np.arange(30, 100) % 2]
    write(tmp_path / "verified.csv", {"id": np.arange(30, 100), "verified": verified})
    line = ["fit", "calls.csv", "--votes", "votes.csv", "--key", "id", "--annotator", "worker"]
    placed = [str(tmp_path / name) if name.endswith(".csv") else name for name in line]
    more = ["--verified", str(tmp_path / "verified.csv"), "--calibration-size", "0.7", "--missing", "full"]
    assert run([*placed, *more, "--out", str(tmp_path / "m"), *QUICK]) == 0
    told = capsys.readouterr()
    assert "from 70 calibration rows, all of them verified" in told.out
    assert "dropped" not in told.err


STARS = ["poor", "fair", "good", "great"]


def test_classes_in_order_have_intervals_and_distances(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, seed in (("old", 0), ("new", 1)):
        rng = np.random.default_rng(seed)
        P = rng.dirichlet(np.full(4, 0.5), 300)
        stars = [STARS[(row.cumsum() > u).argmax()] for row, u in zip(P, rng.random(300), strict=True)]
        ids = {"id": [f"{name}{i}" for i in range(300)]}
        write(tmp_path / f"{name}-scores.csv", {**ids, **dict(zip(STARS, P.T, strict=True))})
        write(tmp_path / f"{name}.csv", {**ids, "x": np.round(P[:, 0], 3), "y": P[:, 3], "stars": stars})
    files = ("--probabilities", "old-scores.csv", "--labels", "old.csv", "--candidates", "stars", "--key", "id")
    said(capsys, "conformalize", *files, "--conformity-score", "rps", "--out", "stars.cal")  # as columns are
    said(capsys, "predict", "stars.cal", "--probabilities", "new-scores.csv", "--out", "sets.csv")
    beside = ("--labels", "new.csv", "--key", "id", "--truth", "stars", "--ordered")
    assert "use --classes … to list them from lowest to highest" in failure(capsys, "evaluate", "sets.csv", *beside)
    result = said(capsys, "evaluate", "sets.csv", *beside, "--classes", "|".join(STARS))
    assert result["gap_rate"] == 0
    assert result["distance"] < result["distance_missed"]

    fit = ("fit", "old.csv", "--candidates", "stars", "--ignore", "id", "--conformity-score", "rps", *QUICK)
    assert "use --classes … to list them" in failure(capsys, *fit, "--out", "model")
    said(capsys, *fit, "--classes", "|".join(STARS), "--out", "model")
    said(capsys, "predict", "model", "new.csv", "--out", "fitted.csv")
    assert "use --classes …" in failure(capsys, "evaluate", "fitted.csv", "--truth", "stars", "--ordered")
    listed = ("--truth", "stars", "--ordered", "--classes", "|".join(STARS))
    assert run(["evaluate", "fitted.csv", *listed]) == 0
    assert "sets with gaps: 0.0%" in capsys.readouterr().out
    said(capsys, "predict", "model", "new.csv", "--out", "fitted.parquet")  # keeps the order
    result = said(capsys, "evaluate", "fitted.parquet", "--truth", "stars", "--ordered")
    assert result == said(capsys, "evaluate", "fitted.csv", *listed)


@pytest.fixture
def several(tmp_path, monkeypatch):
    """Probabilities and candidates, and all right labels of a hundred rows beside them, or in other files."""
    monkeypatch.chdir(tmp_path)
    X, lists, _ = rows(300, 2)
    P = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    right = (P > 0.2) | (P.max(axis=1, keepdims=True) == P)
    shown = [[NAMES[k] for k in np.flatnonzero(row)] for row in right]
    said_by_people = [sorted({*own, *more}) for own, more in zip(shown, lists, strict=True)]
    columns = {f"p:{name}": P[:, k] for k, name in enumerate(NAMES)} | {"id": [f"r{i}" for i in range(300)]}
    seen = ["|".join(row) if i < 100 else "" for i, row in enumerate(shown)]
    write(tmp_path / "scores.csv", columns | {"said": said_by_people, "seen": seen})
    write(tmp_path / "seen.csv", {"id": columns["id"][:100], "verified": seen[:100]})
    lists = [row if i < 100 else None for i, row in enumerate(shown)]
    lists[7] = []
    pq.write_table(pa.table(columns | {"said": said_by_people, "seen": lists}), tmp_path / "scores.parquet")
    write(tmp_path / "shown.csv", {"labels": said_by_people, "shown": shown})
    return P, library.LabelSets.from_lists(said_by_people, NAMES), shown


CALIBRATE = ("conformalize", "--candidates", "said", "--out", "m.cal")


@pytest.mark.parametrize("right", ["all", "one", "0.6"])
@pytest.mark.parametrize("where", ["seen", "seen.csv"])
def test_verified_cells_may_hold_several_right_labels(several, capsys, right, where):
    P, sets, shown = several
    files = ("--probabilities", "scores.csv", *(("--key", "id") if where == "seen.csv" else ("--ignore", "id")))
    made = said(capsys, *CALIBRATE, *files, "--verified", where, "--right", right)
    truth = right if right in {"all", "one"} else float(right)
    known = [row if i < 100 else None for i, row in enumerate(shown)]
    own = library.conformalize(P, sets, verified=known, truth=truth, random_state=0)
    assert library.load("m.cal").threshold(0.9) == pytest.approx(own.threshold(0.9))
    assert "of its right labels" in made["guarantee"]["text"]


def test_candidates_are_the_right_labels_where_no_row_is_verified(several, capsys):
    P, sets, _ = several
    said(
        capsys, *CALIBRATE, "--probabilities", "scores.csv", "--ignore", "id", "--ignore", "seen", "--right", "all"
    )
    own = library.conformalize(P, sets, "max")
    assert library.load("m.cal").threshold(0.9) == pytest.approx(own.threshold(0.9))


def test_rows_verified_to_have_no_right_label_are_an_error_or_left_out(several, capsys):
    asked = (
        *CALIBRATE,
        "--probabilities",
        "scores.parquet",
        "--ignore",
        "id",
        "--verified",
        "seen",
        "--right",
        "all",
    )
    assert "row 7 has no right label (1 such rows); use --empty drop to leave them out" in failure(capsys, *asked)
    made = said(capsys, *asked, "--empty", "drop")
    assert "a new row with a right label" in " ".join(made["guarantee"]["text"].split())
    assert library.load("m.cal").evidence.n == 99


def test_rows_whose_only_evidence_is_an_empty_cell_are_an_error_or_left_out(several, capsys):
    asked = ("conformalize", "--candidates", "seen", "--ignore", "id", "--ignore", "said", "--out", "m.cal")
    asked += ("--probabilities", "scores.csv", "--right", "one")
    assert "row 100 has no right label (200 such rows); use --empty drop" in failure(capsys, *asked)
    assert "not all of these are right" in failure(capsys, *asked, "--missing", "full")
    said(capsys, *asked, "--empty", "drop")
    assert library.load("m.cal").evidence.n == 100


def test_evaluate_counts_right_labels_as_sets_were_calibrated(several, capsys):
    _, sets, shown = several
    for right, truth in {"all": "all", "one": "one", "0.6": 0.6}.items():
        found = said(capsys, "evaluate", "shown.csv", "--truth", "shown", "--right", right)
        assert found["coverage"] == library.evaluate(sets, shown, truth=truth)["coverage"]
    beside = ("--labels", "shown.csv", "--truth", "shown", "--right", "all")
    assert said(capsys, "evaluate", "shown.csv", *beside)["coverage"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--right", "most"), "--right: 'most' is neither all, one nor a share such as 0.9"),
        (("--right", "2"), "2.0 is not known; use 'all', 'one', or a share"),
        (("--right", "all", "--by", "label"), "by='label' is defined for one true label"),
        (
            ("--right", "all", "--strategy", "mean"),
            "strategy 'mean' is defined for one true label of each row; use --str",
        ),
        (("--right", "all", "--memory-limit", "10KB"), "only a sample of the rows was kept; use --memory-limit"),
        (
            (),
            "label of row 4 is 'owl|ant', which is not among the classes; correct the label, or use --right all",
        ),
    ],
)
def test_what_cannot_be_with_several_right_labels_is_refused(several, capsys, arguments, message):
    files = ("--probabilities", "scores.csv", "--ignore", "id", "--verified", "seen")
    assert message in failure(capsys, *CALIBRATE, *files, *arguments)


def test_right_and_empty_need_what_they_are_about(several, capsys):
    files = ("--probabilities", "scores.csv", "--ignore", "id", "--ignore", "seen")
    assert "several labels may be right; use --right all" in failure(capsys, *CALIBRATE, *files, "--empty", "drop")
    asked = ("evaluate", "shown.csv", "--right", "all")
    assert "--right: counts labels of --truth" in failure(capsys, *asked, "--candidates", "shown")


def test_agreement_on_classes_in_order_counts_distances(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    said_by = [("ann", "poor", "great"), ("bob", "fair", "great"), ("cyd", "poor", "good")] * 3
    lines = [f"{item},{who}{i},{stars[item]}" for i, (who, *stars) in enumerate(said_by) for item in range(2)]
    (tmp_path / "answers.csv").write_text("\n".join(["item,annotator,label", *lines]) + "\n")
    asked = ("annotators", "answers.csv", "--ordered")
    assert "use --classes … to list them from lowest to highest" in failure(capsys, *asked)
    listed = said(capsys, *asked, "--classes", "|".join(STARS))
    assert listed["alpha"] > 0.7 > said(capsys, "annotators", "answers.csv")["alpha"]


def test_fit_takes_several_right_labels(here, capsys):
    X, lists, _ = rows(240, 0)
    seen = ["|".join(row) if i < 100 else "" for i, row in enumerate(lists)]
    write(here / "seen.csv", {name: X[:, j] for j, name in enumerate("wxyz")} | {"seen": seen, "answers": lists})
    fit = ("fit", "seen.csv", "--candidates", "answers", *QUICK, "--right", "all")
    made = said(capsys, *fit, "--verified", "seen", "--out", "model")
    assert "all of its right labels" in " ".join(made["guarantee"]["text"].split())
    assert library.load("model").calibration_.setting.truth == "all"
    refused = failure(capsys, *fit, "--ignore", "seen", "--cross", "3", "--out", "other")
    assert "truth: no cross-conformal guarantee is known; leave out --cross" in refused
