"""`setwise report` on what people have: a model and a table, a calibration, a table of sets, a run's folder."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from sklearn.naive_bayes import GaussianNB

import setwise
from setwise.cli.app import run
from setwise.estimators.model_directory import save_model
from setwise.tables import write_sets

NAMES = ["wren", "owl", "ant"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A model directory, a calibration, and tables of new rows, of probabilities and of sets."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 500)
    X = 2 * np.eye(3)[y] + rng.normal(size=(500, 3))
    mask = (np.eye(3)[y] + (rng.random((500, 3)) < 0.1)) > 0
    S = setwise.LabelSets.from_mask(mask, classes=NAMES)
    model = setwise.ConformalClassifier(GaussianNB(), random_state=0).fit(X[:300], S[:300])
    save_model(model, "model", ["a", "b", "c"])
    model.calibration_.save("model.cal")
    new = {"a": X[300:, 0], "b": X[300:, 1], "c": X[300:, 2]}
    columns = {
        "answers": ["|".join(row) for row in S[300:].to_lists()],
        "truth": [NAMES[label] for label in y[300:]],
        "site": np.where(X[300:, 0] > 0, "north", "south").tolist(),
    }
    P = model.predict_proba(X[300:])
    sets = model.predict_set(X[300:], 0.8)
    found = {"labels": ["|".join(row) for row in sets.to_lists()]}
    values = {f"p:{name}": column for name, column in zip(NAMES, model.predict_p(X[300:]).T, strict=True)}
    for name, extra in {
        "new.csv": new,
        "scores.csv": dict(zip(NAMES, P.T, strict=True)),
        "sets.csv": found,
        "valued.csv": found | values,
    }.items():
        pa.csv.write_csv(pa.table({**columns, **extra}), name)
    carried = {"truth": columns["truth"], "pixels": list(X[300:])}
    write_sets("new.parquet", S[300:], carry=carried, column="answers")
    names = {"truth": "truth", "candidates": "answers", "features": "pixels"}
    (tmp_path / "run.json").write_text(
        json.dumps({"model": "model", "data": "new.parquet", "image": [1, 3], **names})
    )
    return tmp_path, model, X[300:], y[300:]


COLUMNS = ["--truth", "truth", "--candidates", "answers", "--by", "site"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["model", "new.csv", *COLUMNS],
        ["model", "new.parquet", "--truth", "truth", "--features", "pixels"],
        ["model.cal", "--probabilities", "scores.csv", *COLUMNS],
        ["model", "--probabilities", "scores.csv", *COLUMNS],
        ["."],
        ["valued.csv", *COLUMNS],
        ["sets.csv", *COLUMNS, "--confidence", "0.8"],
    ],
)
def test_each_kind_of_run_gives_its_report(folder, arguments, capsys):
    path, model, X, y = folder
    level = "0.8" if "--confidence" in arguments else "0.9"
    assert run(["report", *arguments, "--out", "report.html", "--json"]) == 0, capsys.readouterr().err
    told = json.loads(capsys.readouterr().out)
    text = (path / told["out"]).read_text(encoding="utf-8")
    assert told["bytes"] == len(text.encode())
    expected = model.evaluate(X, np.array(NAMES)[y], float(level))
    covered = round(expected["coverage"] * 200)
    assert f"{covered} of 200 sets" in text
    assert f'<dd id="mean-size" data-fact="mean_size">{expected["mean_size"]:.2f}</dd>' in text


@pytest.mark.parametrize("rows", [[], ["--key", "id"]], ids=["of other rows", "of these rows"])
def test_votes_bring_a_section_on_annotators(folder, rows, capsys):
    path, _, X, y = folder
    new = pa.table({"id": [f"r{i}" for i in range(200)], "a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    pa.csv.write_csv(new, "rows.csv", write_options=pa.csv.WriteOptions(delimiter=";"))
    rng, names = np.random.default_rng(1), np.array(NAMES)
    said = np.where(rng.random((200, 3)) < 0.8, y[:, None], rng.integers(0, 3, (200, 3)))
    columns = {
        "call": np.repeat(new["id"].to_numpy(zero_copy_only=False), 3)[::-1].tolist(),
        "who": np.tile(["ann", "bob", "cyd"], 200)[::-1].tolist(),
        "bird": names[said].ravel()[::-1].tolist(),
    }
    pa.csv.write_csv(pa.table(columns), "votes.csv", write_options=pa.csv.WriteOptions(delimiter=";"))
    about = ["--votes", "votes.csv", "--item", "call", "--annotator", "who", "--label", "bird", "--delimiter", ";"]
    assert run(["report", "model", "rows.csv", *about, *rows, "--out", "v.html"]) == 0, capsys.readouterr().err
    text = (path / "v.html").read_text(encoding="utf-8")
    assert "600 answers on 200 rows by 3 annotators" in text
    assert ('data-title="Candidates"' in text) == bool(rows)


def test_examples_show_images(folder, capsys):
    path, *_ = folder
    assert run(["report", "model", "new.csv", "--image", "3x1", "--out", "b.html"]) == 0
    assert "data:image/png" in (path / "b.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["model"], "give a FILE of new rows"),
        (["nowhere"], "no such file"),
        (["model", "new.csv", "--image", "2x2"], "is not the shape of 3 features"),
        (["model", "new.csv", "--image", "square"], "not a shape"),
        (["model", "new.csv", "--truth", "verity"], "verity"),
        (["model.cal", "--probabilities", "new.csv"], "there is no column 'wren'"),
    ],
)
def test_mistakes_are_one_line(folder, arguments, said, capsys):
    assert run(["report", *arguments, "--out", "r.html"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_report_is_not_overwritten_unasked(folder, capsys):
    arguments = ["report", "sets.csv", "--truth", "truth", "--out", "r.html"]
    assert run(arguments) == 0
    assert run(arguments) == 2
    assert "--force" in capsys.readouterr().err
    assert run([*arguments, "--force"]) == 0
