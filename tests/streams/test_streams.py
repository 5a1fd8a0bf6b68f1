"""Commands over files, patterns and folders: the answers as at once, parts that stay, bad rows by their names."""

import json
import os
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import setwise
from setwise import LabelSets, MisuseWarning
from setwise.drift.comparison import RowTally
from setwise.errors import DataError, InputError
from setwise.storage.atomic_files import lock_folder
from setwise.streams import BatchPredictor, CalibrationRows, calibration_tables, model_inputs, predicted_parts
from setwise.streams.calibration_tables import ProbabilityTable
from setwise.streams.engines import engine_of
from setwise.streams.prefetch import ahead
from setwise.streams.table_parts import parts_of
from setwise.tables import read_sets, read_table
from setwise.tables.table_files import table_files
from tests.streams.conftest import CLASSES, done, failed, rows, table, write

IGNORED = ("--ignore", "id", "--ignore", "truth")
CONFORMALIZE = ("conformalize", "--probabilities", "in", "--candidates", "answers", *IGNORED)
PREDICT = ("predict", "m.cal", "--probabilities", "in", "--out", "out")


# -------------------------------------------------------------------- prediction


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow"])
def test_a_folder_becomes_a_folder_and_a_file_alike(parts, capsys, suffix):
    P, y, _ = parts(suffix)
    found = done(capsys, *PREDICT)
    assert sorted(p.name for p in Path("out").glob("*.*") if p.name[0] != ".") == [f"{i}{suffix}" for i in range(3)]
    one = done(capsys, *PREDICT[:-1], "out.parquet")
    shared = ("rows", "mean_size", "singleton_rate", "promised", "comparison")
    assert [found[name] for name in shared] == [one[name] for name in shared]
    if suffix != ".csv":  # where numbers are written with other digits, another precision leaves sets larger
        sets = setwise.Calibration.load("m.cal").predict_set(P, 0.9)
        assert read_sets("out", classes=CLASSES) == sets
        assert read_sets("out.parquet") == sets
    assert read_table("out", truth="truth", features=[]).truth.tolist() == y.tolist()
    assert "classes" not in failed(capsys, *PREDICT)
    assert "use --resume to go on with what is not finished, or use --force" in failed(capsys, *PREDICT)


def test_batches_do_not_matter(parts, capsys, monkeypatch):
    parts(n=300)
    one = done(capsys, *PREDICT[:-1], "one.parquet", "--p-values")
    monkeypatch.setattr(model_inputs, "ROWS", 7)
    other = done(capsys, *PREDICT[:-1], "other.parquet", "--p-values")
    assert pq.read_table("one.parquet").equals(pq.read_table("other.parquet"))
    assert one["comparison"] == other["comparison"]


def test_what_a_stream_counts_in_parts_is_what_it_counts_at_once():
    P, y, _ = rows(900, 0)
    calibration = setwise.conformalize(P[:300], y[:300], classes=CLASSES, by=y[:300])
    whole, merged = RowTally(calibration), RowTally(calibration)
    whole.add(P[300:], by=y[300:])
    for part in (slice(600, 900), slice(300, 600)):
        alone = RowTally(calibration)
        alone.add(P[part], by=y[part])
        merged.include(pickle.loads(pickle.dumps(alone.export())))  # noqa: S301 - our own
    assert merged.compare().to_dict() == whole.compare().to_dict()


def test_of_a_long_stream_every_eighth_row_is_compared():
    P, y, _ = rows(1200, 0)
    calibration = setwise.conformalize(P[:200], y[:200], classes=CLASSES, by=y[:200])
    found = RowTally(calibration)
    found.add(P[200:], by=y[200:].tolist(), first_row=2**17 - 200)
    some = np.r_[200:400, 400:1200:8]
    assert replace(found.compare(), left_out=0).to_dict() == calibration.compare(P[some], by=y[some]).to_dict()


def test_features_are_counted_in_parts_too(tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=600), "b": rng.integers(0, 400, 600).astype(str), "c": rng.random(600)})
    X.loc[rng.random(600) < 0.1, "c"] = None
    summary = setwise.drift.feature_summary.FeatureSummary.of(X[:200])
    whole, merged = (setwise.drift.feature_summary.FeatureTally(summary) for _ in range(2))
    for part in (X[200:400], X[400:]):
        whole.add(part)
        alone = setwise.drift.feature_summary.FeatureTally(summary)
        alone.add(part)
        merged.include(alone.export())
    assert [kind.p_values.tolist() for kind in merged.tests()] == [kind.p_values.tolist() for kind in whole.tests()]


# -------------------------------------------------------------------- parts that are finished


def stamps():
    return {path.name: path.stat().st_mtime_ns for path in Path("out").glob("*.parquet")}


def test_what_is_finished_when_a_part_fails_stays_and_is_not_made_again(parts, capsys):
    P, y, candidates = parts()
    broken = P[100:200].copy()
    broken[40] = np.nan
    write(table(broken, y[100:200], candidates[100:200]), Path("in/1.parquet"))
    line = failed(capsys, *PREDICT)
    assert "in/1.parquet" in line
    assert "row 40" in line
    assert list(stamps()) == ["0.parquet"]
    assert len(read_sets("out/0.parquet")) == 100
    before = stamps()
    write(table(P[100:200], y[100:200], candidates[100:200], 100), Path("in/1.parquet"))
    found = done(capsys, *PREDICT, "--resume")
    assert (found["rows"], found["files_kept"]) == (300, 1)
    assert stamps()["0.parquet"] == before["0.parquet"]
    assert read_sets("out", classes=CLASSES) == setwise.Calibration.load("m.cal").predict_set(P, 0.9)
    again = done(capsys, *PREDICT, "--resume")
    assert (again["files_kept"], again["mean_size"]) == (3, found["mean_size"])


CHANGES = {
    "another level": lambda: ["--confidence", "0.8"],
    "p-values": lambda: ["--p-values"],
    "another calibration": lambda: setwise.conformalize(*rows(300, 9)[:2], classes=CLASSES).save("m.cal"),
    "another input": lambda: os.utime("in/0.parquet", ns=(1, 1)),
    "a cut output": lambda: os.truncate("out/0.parquet", 100),
    "no output": lambda: Path("out/0.parquet").unlink(),
    "a broken note": lambda: os.truncate("out/.0.parquet.done.json", 2),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_part_that_is_not_this_answer_to_this_input_is_made_again(parts, capsys, change):
    parts()
    done(capsys, *PREDICT)
    more = CHANGES[change]() or []
    kept = 0 if change in list(CHANGES)[:3] else 2
    assert done(capsys, *PREDICT, "--resume", *more)["files_kept"] == kept
    assert len(read_sets("out/0.parquet")) == 100


def test_rows_that_are_lost_between_a_file_and_its_output_are_an_error(parts, capsys, monkeypatch):
    parts()
    real = predicted_parts.PartWriter.__call__

    def lossy(self, part):
        found = real(self, part)
        if part.number == 1:
            pq.write_table(pq.read_table(part.out)[:99], part.out)
        return found

    monkeypatch.setattr(predicted_parts.PartWriter, "__call__", lossy)
    line = failed(capsys, *PREDICT)
    assert line == "error: in/1.parquet: has 100 rows, and out/1.parquet 99; use --resume to make it again."


def test_parts_of_files_that_are_gone_do_not_stay_unnoticed(parts, capsys):
    parts()
    done(capsys, *PREDICT)
    Path("in/2.parquet").unlink()
    assert "out/2.parquet: was made of a file that is not given now" in failed(capsys, *PREDICT, "--resume")
    assert done(capsys, *PREDICT, "--force")["rows"] == 200
    assert len(read_sets("out")) == 200


def test_files_of_one_name_keep_their_folders(parts, capsys):
    parts()
    Path("in/a").mkdir()
    Path("in/b").mkdir()
    Path("in/0.parquet").rename("in/a/0.parquet")
    Path("in/1.parquet").rename("in/b/0.parquet")
    done(capsys, *PREDICT)
    assert sorted(map(str, Path("out").rglob("[0-9].parquet"))) == [
        "out/2.parquet",
        "out/a/0.parquet",
        "out/b/0.parquet",
    ]
    write(table(*rows(9, 0)), Path("in/2.csv"))
    assert "holds tables of several formats" in failed(capsys, *PREDICT, "--force")


def test_a_part_without_rows_has_no_output(parts, capsys):
    P, y, candidates = parts()
    pq.write_table(table(P[:0], y[:0], candidates[:0]), "in/0.parquet")
    asked = ["triage", "m.cal", "--probabilities", "in", "--max-error", "0.3"]
    for more in ([], ["--resume"]):
        assert done(capsys, *PREDICT, *more)["rows"] == 200
        assert done(capsys, *asked, "--out", "yes", "--review", "no", *more)["rows"] == 200
    assert sorted(stamps()) == ["1.parquet", "2.parquet"]


# -------------------------------------------------------------------- what is wrong in the middle


def spoilt(P, y, candidates, how):
    made = table(P, y, candidates)
    if how == "no column":
        return made.drop_columns(["p:owl"])
    if how == "one column more":
        return made.append_column("extra", made["id"])
    if how == "text":
        texts = pa.array(["0.5" if i != 33 else "half" for i in range(len(P))])
        return made.set_column(1, "p:wren", texts)
    if how == "other ids":
        return made.set_column(0, "id", pa.array([f"x{i}" for i in range(len(P))]))
    P = P.copy()
    P[33] = {"nan": np.nan, "sum": [0.5, 0.5, 0.5, 0.5], "infinite": np.inf}[how]
    return table(P, y, candidates)


SPOILT = {
    "no column": "in/1.parquet: there is no column 'p:owl', which ",
    "one column more": "in/1.parquet: there is a column 'extra', which ",
    "text": "in/1.parquet, column 'p:wren': row 33 is 'half'",
    "nan": "in/1.parquet, column 'p:wren': row 33",
    "sum": "in/1.parquet: row 33 sums to 2",
    "infinite": "in/1.parquet, column 'p:wren': row 33 is infinite",
}


@pytest.mark.parametrize("how", SPOILT)
@pytest.mark.parametrize("command", ["one", "parts", "conformalize", "triage"])
def test_a_bad_row_is_named_by_its_file_and_number(parts, capsys, how, command):
    P, y, candidates = parts()
    pq.write_table(spoilt(P[100:200], y[100:200], candidates[100:200], how), "in/1.parquet")
    told = {
        "one": [*PREDICT[:-1], "out.parquet"],
        "parts": PREDICT,
        "conformalize": ["conformalize", "--probabilities", "in", "--candidates", "answers", "--out", "n.cal"],
        "triage": ["triage", "m.cal", "--probabilities", "in", "--out", "out", "--review", "review"],
    }[command]
    if command == "conformalize":
        told = [*told, "--verified", "truth", "--ignore", "id"]
    assert SPOILT[how] in failed(capsys, *told)
    assert not Path("out.parquet").exists()
    assert Path("out/0.parquet").exists() == (command == "parts")


@pytest.mark.parametrize("suffix", [".arrow", ".csv"])
@pytest.mark.parametrize("how", ["no column", "one column more", "text", "nan"])
def test_a_bad_row_of_arrow_and_csv_is_named_and_what_is_finished_stays(parts, capsys, how, suffix):
    P, y, candidates = parts(suffix)
    bad = Path(f"in/1{suffix}")
    write(spoilt(P[100:200], y[100:200], candidates[100:200], how), bad)
    message = SPOILT[how].replace(".parquet", suffix)
    own = CONFORMALIZE
    for told in (
        PREDICT,
        [*own, "--out", "n.cal"],
        ["triage", "n.cal", "--probabilities", "in", "--out", "yes", "--review", "no", "--max-error", "0.3"],
    ):
        if told[0] == "triage":  # with probabilities as these files hold them
            checked = np.where(np.arange(100) < 60, y[:100].astype(object), None)
            held = read_table(f"in/0{suffix}", features=[f"p:{name}" for name in CLASSES], classes=CLASSES).X
            setwise.conformalize(held, candidates[:100], classes=CLASSES, verified=checked).save("n.cal")
        assert message in failed(capsys, *told)
    assert not [*Path("yes").glob("*.*"), *Path("no").glob("*.*")]
    assert len(read_sets(f"out/0{suffix}", classes=CLASSES)) == 100
    write(table(P[100:200], y[100:200], candidates[100:200], 100), bad)
    found = done(capsys, *PREDICT, "--resume")
    assert (found["rows"], found["files_kept"]) == (300, 1)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv"])
def test_what_is_wrong_in_the_middle_of_evaluated_files_is_named(parts, capsys, suffix):
    P, y, candidates = parts(suffix)
    asked = ["evaluate", "in", "--column", "answers", "--truth", "truth"]
    for how in ("no column", "one column more"):
        write(spoilt(P[100:200], y[100:200], candidates[100:200], how), Path(f"in/1{suffix}"))
        assert SPOILT[how].replace(".parquet", suffix) in failed(capsys, *asked)
    odd = [*candidates[:130], ["yeti"], *candidates[131:]]
    for i in range(3):  # with p-values behind the sets, whose classes are those of all files
        made = table(*(values[100 * i : 100 * (i + 1)] for values in (P, y, odd)), 100 * i)
        write(
            made.select(sorted(made.column_names, key=lambda name: name.startswith("p:"))), Path(f"in/{i}{suffix}")
        )
    assert f"in/1{suffix}, column 'answers': row 30: 'yeti' is not among" in failed(capsys, *asked)
    asked = ["triage", "m.cal", "--probabilities", "in", "--out", "yes", "--review", "no"]
    if suffix != ".csv":
        line = failed(capsys, *asked, "--candidates", "answers")
        assert f"in/1{suffix}, column 'answers': row 30: 'yeti' is not among" in line
    write(table(P[100:200], np.append(y[100:199], "yeti"), candidates[100:200]), Path(f"in/1{suffix}"))
    found = done(capsys, "evaluate", "in", "--column", "answers", "--truth", "truth")
    assert found["unknown_labels"] == 1  # a label that is no class is missed, and counted


def test_a_column_of_another_type_is_named(parts, capsys):
    P, y, candidates = parts()
    pq.write_table(spoilt(P[100:200], y[100:200], candidates[100:200], "other ids"), "in/1.parquet")
    line = failed(capsys, *PREDICT[:-1], "out.parquet")
    assert "in/1.parquet: the column 'id' holds string, but int64 in the rows before" in line
    assert not Path("out.parquet").exists()


ODD = {
    "string": ["007"] * 100,
    "timestamp": [np.datetime64("2020-01-01", "us")] * 100,
    "double": [2.5] * 100,
}


@pytest.mark.parametrize("kind", ODD)
def test_no_value_of_a_carried_column_changes_for_the_type_of_an_earlier_file(parts, capsys, kind):
    P, y, candidates = parts()
    made = table(P[100:200], y[100:200], candidates[100:200])
    pq.write_table(made.set_column(0, "id", pa.array(ODD[kind])), "in/1.parquet")
    assert f"in/1.parquet: the column 'id' holds {kind}" in failed(capsys, *PREDICT[:-1], "out.parquet")
    pq.write_table(made.set_column(0, "id", pa.array([1.0] * 100)), "in/1.parquet")
    assert done(capsys, *PREDICT[:-1], "out.parquet")["rows"] == 300
    single = made.append_column("share", pa.array([0.1] * 100, pa.float32()))
    pq.write_table(single, "in/0.parquet")
    pq.write_table(made.append_column("share", pa.array([0.1, *[np.nan] * 99])), "in/1.parquet")
    Path("in/2.parquet").unlink()
    assert "'share' holds double, but float in" in failed(capsys, *PREDICT[:-1], "other.parquet")
    pq.write_table(made.append_column("share", pa.array([0.5, *[np.nan] * 99])), "in/1.parquet")
    assert done(capsys, *PREDICT[:-1], "other.parquet")["rows"] == 200


def test_probabilities_of_another_precision_are_named(parts, capsys):
    P, y, candidates = parts()
    write(table(P[100:200].astype(np.float64), y[100:200], candidates[100:200]), Path("in/1.parquet"))
    told = ["conformalize", "--probabilities", "in", "--candidates", "answers", "--out", "n.cal"]
    line = failed(capsys, *told, "--ignore", "truth", "--ignore", "id")
    assert line.startswith("error: in/1.parquet: probabilities: 4 columns of float64 here")


def test_an_unknown_label_is_named_by_its_file_and_number(parts, capsys):
    P, y, candidates = parts()
    own = ["conformalize", "--probabilities", "in", "--candidates", "answers", "--ignore", "id", "--out", "n.cal"]
    odd = [*candidates[100:130], ["yeti"], *candidates[131:200]]
    write(table(P[100:200], y[100:200], odd), Path("in/1.parquet"))
    line = failed(capsys, *own, "--ignore", "truth")
    assert "in/1.parquet, column 'answers': row 30" in line
    assert "yeti" in line
    write(table(P[100:200], np.append(y[100:199], "yeti"), candidates[100:200]), Path("in/1.parquet"))
    line = failed(capsys, *own, "--verified", "truth")
    assert "in/1.parquet: the verified label of row 99 is 'yeti'" in line


# -------------------------------------------------------------------- calibration


def test_candidates_in_the_same_files_are_calibrated_on_bit_for_bit(parts, capsys):
    P, y, candidates = parts()
    own = [
        "conformalize",
        "--probabilities",
        "in",
        "--candidates",
        "answers",
        "--verified",
        "truth",
        "--ignore",
        "id",
    ]
    found = done(capsys, *own, "--seed", 3, "--conformity-score", "aps", "--out", "n.cal")
    assert found["rows"] == 300
    whole = setwise.conformalize(P, candidates, "auto", "aps", classes=CLASSES, verified=y, random_state=3)
    whole.save("whole.cal")
    assert Path("n.cal").read_bytes() == Path("whole.cal").read_bytes()
    Path("in").rename("all")
    assert "lacks 'nothing'" in failed(capsys, *own[:2], "all", "--candidates", "nothing", "--out", "k.cal")


def test_beyond_the_limit_a_sample_that_batches_do_not_change(parts, capsys, monkeypatch):
    parts()
    own = CONFORMALIZE
    found = done(capsys, *own, "--memory-limit", "4KB", "--out", "few.cal")
    told = "Calibrated on a random sample of 51 of the 300 rows."
    assert told in " ".join(found["guarantee"]["text"].split())
    monkeypatch.setattr(calibration_tables, "_ROWS", 7)
    done(capsys, *own, "--memory-limit", "4KB", "--out", "again.cal")
    assert Path("few.cal").read_bytes() == Path("again.cal").read_bytes()
    assert "--memory-limit: 'much' is not a number of bytes" in failed(
        capsys, *own, "--memory-limit", "much", "--out", "x.cal"
    )


def test_rows_of_parts_merge_to_those_of_the_whole(parts):
    parts()
    told = setwise.tables.tabular.Layout(candidates="answers")
    names = {"id", "truth", "answers"}

    def read(path):
        made = CalibrationRows(max_rows=50, random_state=0)
        ProbabilityTable.of(table_files(path), names).add_to(made, told, None)
        return made

    assert len(read("in")) == 50
    with pytest.raises(DataError, match="there is no column 'none'"):
        ProbabilityTable.of(table_files("in"), {"none"})


# -------------------------------------------------------------------- evaluation, triage


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_sets_in_a_folder_are_evaluated_as_at_once(parts, capsys, suffix):
    _, y, candidates = parts(suffix)
    done(capsys, *PREDICT)
    found = done(capsys, "evaluate", "out", "--truth", "truth", "--candidates", "answers", "--by", "truth")
    sets = read_sets("out", classes=found_classes(found))
    whole = setwise.evaluate(sets, y, candidates=candidates, by=y)
    assert found == json.loads(json.dumps(whole))


def found_classes(found):
    return list(found["by_class"]) + [c for c in CLASSES.tolist() if c not in found["by_class"]]


def test_a_note_that_rows_differ_is_found_beside_the_folder(parts, capsys):
    parts()
    P, y, candidates = rows(300, 5)
    write(table((P**4 / (P**4).sum(axis=1, keepdims=True)).astype(np.float32), y, candidates), Path("in/9.parquet"))
    found = done(capsys, *PREDICT)
    assert found["promised"] is None
    assert Path("out.differs.json").is_file()
    assert done(capsys, "evaluate", "out", "--truth", "truth")["comparison"]["refuted"]
    kept = done(capsys, *PREDICT, "--resume")  # as it was counted then
    assert (kept["files_kept"], kept["comparison"]) == (4, found["comparison"])
    assert kept["promised"] is None
    assert Path("out.differs.json").is_file()


def test_rows_that_the_model_knows_are_known_of_finished_files_too(tmp_path, capsys, monkeypatch):
    pd = pytest.importorskip("pandas")
    from sklearn.linear_model import LogisticRegression

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = pd.DataFrame(2 * np.eye(3)[y] + rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    setwise.ConformalClassifier(LogisticRegression(), random_state=0).fit(X, y).save("model")
    Path("in").mkdir()
    X.to_parquet("in/0.parquet")
    told = ["predict", "model", "in", "--out", "out"]
    found = [done(capsys, *told, *more) for more in ([], ["--resume"])]
    assert [one["files_kept"] for one in found] == [0, 1]
    assert [one["promised"] for one in found] == [None, None]


@pytest.mark.parametrize(
    ("mode", "error"),
    [("overall", 0.3), ("overall", 0.31), ("average", 0.3), ("accepted", 0.55), ("overall", 0.06)],
)
def test_a_triage_in_two_passes_decides_as_at_once(parts, capsys, mode, error):
    parts()
    asked = ["triage", "m.cal", "--probabilities", "in", "--max-error", error, "--mode", mode]
    asked += ["--candidates", "answers"] if error < 0.1 else []
    asked += ["--by", "predicted"] if (mode, error) == ("overall", 0.3) else []
    one = done(capsys, *asked, "--out", "yes.parquet", "--review", "no.parquet")
    found = done(capsys, *asked, "--out", "yes", "--review", "no")
    for name in ("rows", "accepted", "review", "threshold", "guarantee"):
        assert found[name] == one[name], name
    assert 0 < found["accepted"] < 300
    columns = ["id", "label", "confidence"]
    assert pq.read_table("yes").select(columns).equals(pq.read_table("yes.parquet").select(columns))
    columns = ["id", "proposed", "confidence", "rank"]
    assert pq.read_table("no").select(columns).sort_by("rank").equals(pq.read_table("no.parquet").select(columns))
    before = Path("yes/1.parquet").stat().st_mtime_ns
    Path("no/0.parquet").unlink()
    done(capsys, *asked, "--out", "yes", "--review", "no", "--resume")
    assert len(pq.read_table("no")) == one["review"]
    assert Path("yes/1.parquet").stat().st_mtime_ns == before
    os.utime("in/2.parquet", ns=(1, 1))  # a file that changed may change what is accepted in the others
    done(capsys, *asked, "--out", "yes", "--review", "no", "--resume")
    assert Path("yes/1.parquet").stat().st_mtime_ns > before


def test_a_triage_with_votes_goes_into_files_as_its_refusal_says(parts, capsys):
    """Votes are one table for all parts, matched by a key: rows are decided in memory, and written to two files."""
    P, y, _ = parts()
    old, truth, _ = rows(300, 5)
    rng = np.random.default_rng(3)

    def answers(y):
        return np.where(rng.random((300, 3)) < 0.8, y[:, None], CLASSES[rng.integers(0, 4, (300, 3))])

    checked = np.where(np.arange(300) < 200, truth.astype(object), None)
    votes = setwise.Votes.from_matrix(answers(truth), classes=CLASSES)
    calibration = setwise.conformalize(old, votes, verified=checked, random_state=0)
    calibration.save("v.cal")
    said = answers(y)
    lines = [f"{i},{who},{said[i, who]}" for i in range(300) for who in range(3)]
    Path("votes.csv").write_text("\n".join(["id,worker,label", *lines]) + "\n")
    own = ["--votes", "votes.csv", "--key", "id", "--item", "id", "--annotator", "worker", "--label", "label"]
    asked = ["triage", "v.cal", "--probabilities", "in", *own, "--max-error", "0.2"]
    line = failed(capsys, *asked, "--out", "yes", "--review", "no")
    assert "With --votes or --verified name files" in line
    found = done(capsys, *asked, "--out", "yes.parquet", "--review", "no.parquet")
    at_once = calibration.triage(P, setwise.Votes.from_matrix(said, classes=CLASSES), max_error=0.2)
    assert found["accepted"] == int(at_once.accepted.sum()) > 0
    assert found["accepted"] + found["review"] == 300


MISTAKES = {
    "--resume: completes a folder": [*PREDICT[:-1], "out.csv", "--resume"],
    "--engine: 'spark' is not known": [*PREDICT, "--engine", "spark"],
    "--address: the local engine": [*PREDICT, "--address", "here"],
    "--review: name a folder": ["triage", "m.cal", "--probabilities", "in", "--out", "a", "--review", "b.csv"],
    "--resume: completes folders": [
        *("triage", "m.cal", "--probabilities", "in", "--out", "a.csv", "--review", "b.csv", "--resume")
    ],
    "folders take new rows of a MODEL": ["triage", "m.cal", "--out", "a", "--review", "b"],
    "there is no table in this folder": ["predict", "m.cal", "--probabilities", "none", "--out", "out"],
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_are_named(parts, capsys, message):
    parts()
    Path("none").mkdir()
    assert message.replace("--engine: ", "").replace("--address: ", "") in failed(capsys, *MISTAKES[message])


# -------------------------------------------------------------------- one callable


def test_the_predictor_travels_by_path_and_answers_alike(parts):
    P, y, candidates = parts()
    predictor = BatchPredictor("m.cal", 0.8, p_values=True)
    whole = table(P, y, candidates)
    made = predictor(whole)
    held = pickle.dumps(predictor)
    assert len(held) < 1000
    copy = pickle.loads(held)  # noqa: S301 - our own
    pieces = [copy(batch) for batch in whole.to_batches(max_chunksize=33)]
    assert pa.concat_tables(pieces).equals(made)
    assert made.column_names == ["id", "truth", "answers", "labels", "size", *(f"p:{c}" for c in CLASSES)]
    calibration = setwise.Calibration.load("m.cal")
    assert made["labels"].to_pylist() == calibration.predict_set(P, 0.8).to_lists()
    assert np.array_equal(np.stack([made[f"p:{c}"] for c in CLASSES], axis=1), calibration.predict_p(P))
    in_memory = BatchPredictor(calibration, 0.8, p_values=True)
    assert pickle.loads(pickle.dumps(in_memory))(whole).equals(made)  # noqa: S301 - our own
    with pytest.raises(InputError, match="save it, and name its path"):
        in_memory.describe()


def test_what_is_no_arrow_table_of_distinct_columns_is_refused(parts):
    parts()
    predictor, made = BatchPredictor("m.cal"), pq.read_table("in/0.parquet")
    for other in (made.to_pandas(), {name: made[name].to_numpy() for name in made.column_names}):
        with pytest.raises(TypeError, match="expected an Arrow table, got .*; in Ray use batch_format='pyarrow'"):
            predictor(other)
    with pytest.raises(InputError, match="two columns have the same name"):
        predictor(made.append_column("p:owl", made["p:owl"]))


def test_categories_are_named_where_there_are_any(parts):
    P, y, candidates = parts()
    by = np.arange(300) % 2
    setwise.conformalize(P, candidates, classes=CLASSES, by=by.astype(str)).save("by.cal")
    whole = table(P, y, candidates).append_column("side", pa.array(by))
    found = BatchPredictor("by.cal", by="side")(whole)
    expected = setwise.Calibration.load("by.cal").predict_set(P, 0.9, by=by.astype(str))
    assert found["labels"].to_pylist() == expected.to_lists()
    with pytest.raises(InputError, match=r"by.cal: was calibrated by category.*use by="):
        BatchPredictor("by.cal")(whole)
    with pytest.raises(InputError, match="m.cal: was not calibrated by a column of categories; leave it out"):
        BatchPredictor("m.cal", by="side")(whole)
    with pytest.raises(DataError, match="the table: there is no column 'side'"):
        BatchPredictor("by.cal", by="side")(table(P, y, candidates))


def test_a_model_directory_predicts_from_features(tmp_path):
    pd = pytest.importorskip("pandas")
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = pd.DataFrame(2 * np.eye(3)[y] + rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    model = setwise.ConformalClassifier(LogisticRegression(), random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    new = pa.table({"id": [1, 2], "c": [0.0, 2.0], "a": [2.0, 0.0], "b": [0.1, 0.2]})
    frame = pd.DataFrame({"a": [2.0, 0.0], "b": [0.1, 0.2], "c": [0.0, 2.0]})
    found = BatchPredictor(tmp_path / "model")(new)
    assert found["labels"].to_pylist() == model.predict_set(frame).to_lists()
    assert found.column_names == ["id", "labels", "size"]


# -------------------------------------------------------------------- small pieces


def test_an_error_arises_where_the_item_would_have_been():
    def items():
        yield 1
        raise KeyError("two")

    with ahead(items()) as found:
        assert next(found) == 1
        with pytest.raises(KeyError, match="two"):
            next(found)
    closed = []

    def endless():
        try:
            while True:
                yield 0
        finally:
            closed.append(True)

    with ahead(endless()) as found:
        next(found)
    assert closed == [True]


def test_engines_are_known_by_name():
    assert list(engine_of()([1, 2], lambda part: part + 1)) == [2, 3]


def test_sets_are_put_below_each_other():
    parts = [LabelSets.from_lists([["b"], []], ["a", "b"]), LabelSets.from_mask([[True, True]], ["a", "b"])]
    found = LabelSets.concatenate(iter(parts))
    assert found.to_lists() == [["b"], [], ["a", "b"]]
    assert LabelSets.concatenate([found[:0], found]) == found
    singles = [LabelSets.from_labels(["a"], ["a", "b"]), LabelSets.from_labels(["b"], ["b", "a"])]
    assert LabelSets.concatenate(singles).single
    assert LabelSets.concatenate(singles).to_lists() == [["a"], ["b"]]
    assert not LabelSets.concatenate([*singles, parts[0]]).single
    filled = LabelSets.from_lists([None], ["a", "b"], missing="full")
    assert LabelSets.concatenate([filled, parts[0]]).completed
    with pytest.raises(InputError, match="part 1 has other classes than part 0"):
        LabelSets.concatenate([parts[0], LabelSets.from_lists([["c"]], ["a", "c"])])
    with pytest.raises(ValueError, match="there are no sets"):
        LabelSets.concatenate([])
    some = LabelSets.from_lists([["a"], None], missing="full")
    with pytest.raises(InputError, match="every label"):
        LabelSets.concatenate([some, LabelSets.from_lists([["b"]])])


def test_identifiers_among_the_probabilities_raise_a_doubt(parts):
    parts()
    made = CalibrationRows(random_state=0)
    P, _, _ = rows(100, 0)
    columns = {"id": np.arange(100), "0": P[:, 0] / 2, "1": P[:, 0] / 2, "2": 1 - P[:, 0]}
    pq.write_table(pa.table(columns | {"s": ["1"] * 100}), "odd.parquet")
    table = ProbabilityTable.of(table_files("odd.parquet"), {"s"})
    told = setwise.tables.tabular.Layout(candidates="s")
    with pytest.warns(MisuseWarning, match="'id' has another value"), pytest.raises(ValueError, match="row 1 "):
        table.add_to(made, told, None)


# -------------------------------------------------------------------- folders of answers to one question


TRIAGE = ("triage", "d.cal", "--probabilities", "in", "--max-error", "0.3")


def double(n=600):
    """A calibration d.cal in double precision with verified rows, as text files need it."""
    P, y, candidates = rows(n, 0)
    P = P.astype(np.float64)
    P /= P.sum(axis=1, keepdims=True)
    setwise.conformalize(P, candidates, classes=CLASSES, verified=y, random_state=0).save("d.cal")


def held(folder):
    """How many rows the files of a folder hold."""
    return sum(len(read_table(path, features=[])) for path in Path(folder).glob("[0-9]*.*"))


def test_outputs_of_another_question_do_not_stay_when_a_part_fails(parts, capsys):
    P, y, candidates = parts()
    done(capsys, *PREDICT)
    broken = P[100:200].copy()
    broken[40] = np.nan
    write(table(broken, y[100:200], candidates[100:200]), Path("in/1.parquet"))
    failed(capsys, *PREDICT, "--confidence", "0.5", "--resume")
    assert list(stamps()) == ["0.parquet"]


def test_text_that_is_read_otherwise_is_another_question(parts, capsys):
    parts(".csv")
    for path in Path("in").iterdir():
        path.write_text(path.read_text().replace("wren", "wrén").replace("p:wrén", "p:wren"), encoding="latin-1")
    done(capsys, *PREDICT, "--encoding", "cp1251")
    assert done(capsys, *PREDICT, "--encoding", "latin-1", "--resume")["files_kept"] == 0
    assert "wrén" in Path("out/0.csv").read_text()


def test_another_file_of_the_same_name_size_and_time_is_another_input(parts, capsys):
    P, y, candidates = parts(".arrow")
    os.utime("in/0.arrow", (0, 0))
    done(capsys, *PREDICT)
    size = Path("in/0.arrow").stat().st_size
    write(table(P[:100][::-1], y[:100], candidates[:100]), Path("in/0.arrow"))
    os.utime("in/0.arrow", (0, 0))
    assert Path("in/0.arrow").stat().st_size == size
    assert done(capsys, *PREDICT, "--resume")["files_kept"] == 2


def test_an_output_that_somebody_changed_is_made_again(parts, capsys):
    parts(".csv")
    done(capsys, *PREDICT)
    path = Path("out/0.csv")
    before = path.read_bytes()
    path.write_bytes(before.replace(b"owl", b"awl"))
    assert done(capsys, *PREDICT, "--resume")["files_kept"] == 2
    assert path.read_bytes() == before


def test_rows_to_review_that_another_run_replaced_are_written_again(parts, capsys):
    parts(".csv")
    double()
    done(capsys, *TRIAGE, "--out", "yes", "--review", "no")
    done(capsys, *TRIAGE[:-1], "0.05", "--out", "other", "--review", "no", "--force")
    done(capsys, *TRIAGE, "--out", "yes", "--review", "no", "--resume")
    assert held("yes") + held("no") == 300


def test_rows_to_review_of_files_that_are_gone_do_not_stay(parts, capsys):
    parts(".csv")
    double()
    done(capsys, *TRIAGE, "--out", "all", "--review", "all/no")
    assert done(capsys, *TRIAGE, "--out", "all", "--review", "all/no", "--resume")["rows"] == 300
    Path("in/2.csv").unlink()
    Path("in/1.csv").write_text(Path("in/1.csv").read_text().partition("\n")[0] + "\n")
    done(capsys, *TRIAGE, "--out", "all", "--review", "all/no", "--force")
    assert held("all") + held("all/no") == 100


def test_a_calibration_by_category_decides_parts_as_it_does_one_file(parts, capsys):
    P, y, candidates = rows(600, 7)
    parts()
    by = np.array(["north", "south"])[np.arange(600) % 2]
    setwise.conformalize(P, candidates, classes=CLASSES, by=by, verified=y, random_state=0).save("d.cal")
    found = done(capsys, *TRIAGE, "--out", "yes", "--review", "no")
    one = done(capsys, *TRIAGE, "--out", "yes.parquet", "--review", "no.parquet")
    assert 0 < found["accepted"] == one["accepted"] < 300
    assert found["guarantee"] == one["guarantee"]
    for told in (PREDICT, [*PREDICT[:-1], "out.csv"]):
        assert "d.cal: was calibrated by category" in failed(capsys, "predict", "d.cal", *told[2:])
        assert not Path(told[-1]).exists()


def test_accepted_rows_and_rows_to_review_go_to_different_places(parts, capsys):
    parts(".csv")
    double()
    assert "--review: is the file of --out" in failed(capsys, *TRIAGE, "--out", "t", "--review", "in/../t")


def test_one_run_at_a_time_writes_into_a_folder(parts, capsys):
    parts()
    done(capsys, *PREDICT)
    with lock_folder(Path("out"), wait=False):
        assert "out: another run writes into this folder" in failed(capsys, *PREDICT, "--resume")
    assert done(capsys, *PREDICT, "--resume")["files_kept"] == 3


def test_a_folder_in_the_place_of_an_output_is_named(parts, capsys):
    parts()
    Path("out/1.parquet").mkdir(parents=True)
    assert "out/1.parquet: is a folder, which no file replaces" in failed(capsys, *PREDICT, "--force")


def test_text_among_numbers_is_named_however_late_it_comes(parts, capsys):
    parts()
    line = "0,0.25,0.25,0.25,0.25\n"
    Path("late.csv").write_text(f"id,{','.join(f'p:{c}' for c in CLASSES)}\n{line * 60_000}0,x,0.5,0.25,0.25\n")
    told = failed(capsys, "predict", "m.cal", "--probabilities", "late.csv", "--out", "out.csv")
    assert told == "error: late.csv: row 60000, column 2: invalid value 'x', but numbers before; correct it."


def test_outputs_stay_in_their_folder_wherever_inputs_are(parts):
    parts()
    Path("deep/a").mkdir(parents=True)
    Path("in/0.parquet").rename("deep/0.parquet")
    Path("in/1.parquet").rename("deep/a/1.parquet")
    found = parts_of(table_files(["deep/a/1.parquet", "deep/a/../0.parquet"]), Path("out"))
    assert [str(part.out) for part in found] == ["out/a/1.parquet", "out/0.parquet"]


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".jsonl", ".csv"])
def test_batches_of_which_all_or_no_rows_are_accepted_are_written_as_others(parts, capsys, monkeypatch, suffix):
    double()
    P, y, candidates = parts()
    order = np.argsort(P.max(axis=1))  # all rows to review come first
    made = table(P.astype(np.float64)[order], y[order], [candidates[i] for i in order])
    Path("in").rename("old")
    if suffix == ".jsonl":
        Path("in").mkdir()
        Path("in/0.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made.to_pylist()))
        Path("in/1.jsonl").write_text("")
    else:
        write(made, Path("in") / f"0{suffix}")
    monkeypatch.setattr(model_inputs, "ROWS", 7)
    found = done(capsys, *TRIAGE, "--out", "yes", "--review", "no")
    assert 0 < found["accepted"] < 300
    one = done(capsys, *TRIAGE, "--out", "yes.csv", "--review", "no.csv")
    assert (one["accepted"], one["review"]) == (found["accepted"], found["review"])
    for folder, column in (("yes", "label"), ("no", "proposed")):
        labels, others = (read_table(s, truth=column, features=[]).truth for s in (folder, f"{folder}.csv"))
        assert sorted(labels) == sorted(others)
