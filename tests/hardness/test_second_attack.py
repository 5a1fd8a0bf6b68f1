"""What a second attack found, on model directories, calibration files and streams: a test for each fault."""

import importlib
import io
import json
import os
import shutil
import sys
import zipfile

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder
from sklearn.svm import SVC

from setwise import Calibration, ConformalClassifier, conformalize
from setwise.cli.app import run
from setwise.data import remote_files
from setwise.data.table_files import table_files
from setwise.decisions import monitor
from setwise.errors import DataError, InputError
from setwise.learn import CoveringClassifier, PartialLabelClassifier, light_skops, serialization
from setwise.learn.serialization import read_model, write_model
from setwise.parts import Parts, listing
from setwise.scale import CalibrationRows, calibration_rows
from tests.hardness.changed_files import added, altered, changed, rows, told

TEXTS, TOPICS = ["red apple", "red rose", "blue sea", "blue sky"] * 5, ["warm", "warm", "cold", "cold"] * 5


def read_again(model, folder, change=None, trusted=None):
    """The model out of its file, whose nodes were changed."""
    described = write_model(model, folder)
    part = folder / described["file"]
    if change is not None:
        with zipfile.ZipFile(part) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        schema = json.loads(members["schema.json"])
        change(schema, members)
        with zipfile.ZipFile(part, "w") as archive:
            for name, content in (members | {"schema.json": json.dumps(schema).encode()}).items():
                archive.writestr(name, content)
    return read_model(described, Parts(folder, {part.name: listing(part.read_bytes())}), trusted)


# ------------------------------------------------------------- scikit-learn's state, which it uses as it stands


def on_texts(vectorizer, **state):
    model = make_pipeline(vectorizer, LogisticRegression()).fit(TEXTS, TOPICS)
    vars(model.steps[0][1]).update(state)
    return model


VECTORIZERS = {
    "a word far outside (segmentation fault)": (CountVectorizer, {"vocabulary_": {"red": 2**30, "blue": 0}}),
    "a word before the first": (TfidfVectorizer, {"vocabulary_": {"red": -(2**30), "blue": 0}}),
    "two words at one place": (CountVectorizer, {"vocabulary_": {"red": 0, "blue": 0}}),
    "no columns (division by zero)": (HashingVectorizer, {"n_features": 0}),
    "an expression that takes for ever": (CountVectorizer, {"token_pattern": "(a+)+$"}),
    "rows that name files to read": (TfidfVectorizer, {"input": "filename"}),
}


@pytest.mark.parametrize("state", list(VECTORIZERS))
def test_a_vectorizer_whose_state_is_not_in_order_needs_to_be_vouched_for(state, tmp_path):
    kind, changed = VECTORIZERS[state]
    model = on_texts(kind(), **changed)
    name = f"sklearn.feature_extraction.text.{kind.__name__}"
    with pytest.raises(InputError, match=f"types that nobody vouched for: {name};"):
        read_again(model, tmp_path)
    assert write_model(model, tmp_path)["needs_trust"] == [name]
    assert vars(read_again(model, tmp_path, trusted=[name]).steps[0][1]).items() >= changed.items()


@pytest.mark.parametrize("kind", [CountVectorizer, TfidfVectorizer, HashingVectorizer])
def test_text_models_as_they_are_fitted_need_no_trust(kind, tmp_path):
    model = on_texts(kind())
    assert read_again(model, tmp_path).predict(TEXTS).tolist() == TOPICS


COLUMNS = np.column_stack([np.arange(40) % 7, np.arange(40) % 2, np.repeat([0, 1, 2, 3], [30, 8, 1, 1])])
ENCODERS = [
    OneHotEncoder(),
    OneHotEncoder(drop="first"),
    OneHotEncoder(drop="if_binary", min_frequency=6),
    OneHotEncoder(max_categories=3, handle_unknown="infrequent_if_exist"),
    KBinsDiscretizer(3, strategy="uniform"),
]


@pytest.mark.parametrize("encoder", ENCODERS, ids=repr)
def test_encoders_as_they_are_fitted_need_no_trust(encoder, tmp_path):
    model = make_pipeline(clone(encoder), LogisticRegression()).fit(COLUMNS, COLUMNS[:, 1])
    assert read_again(model, tmp_path).predict(COLUMNS).tolist() == COLUMNS[:, 1].tolist()


@pytest.mark.parametrize(
    ("encoder", "state"),
    [
        (ENCODERS[0], {"_n_features_outs": [1, 1, 1]}),
        (ENCODERS[1], {"_drop_idx_after_grouping": np.array([2**30, 0, 0], dtype=object)}),
        (ENCODERS[3], {"_default_to_infrequent_mappings": [np.array([2**30] * 7), None, None]}),
    ],
)
def test_an_encoder_whose_columns_are_not_those_of_its_categories_needs_to_be_vouched_for(encoder, state, tmp_path):
    model = clone(encoder).fit(COLUMNS)
    vars(model).update(state)
    with pytest.raises(InputError, match=r"nobody vouched for: sklearn.preprocessing._encoders.OneHotEncoder;"):
        read_again(model, tmp_path)


def test_neighbours_without_rows_need_to_be_vouched_for_as_they_divide_by_their_number(tmp_path):
    model = KNeighborsClassifier(1, algorithm="brute").fit(COLUMNS, COLUMNS[:, 1])
    assert read_again(model, tmp_path).predict(COLUMNS).tolist() == COLUMNS[:, 1].tolist()
    model._fit_X = model._fit_X[:0]
    with pytest.raises(InputError, match="KNeighborsClassifier"):
        read_again(model, tmp_path)


def test_support_vector_machines_need_to_be_vouched_for_as_libsvm_believes_their_sizes(tmp_path):
    model = SVC().fit(np.eye(4), [0, 0, 1, 1])
    with pytest.raises(InputError, match=r"nobody vouched for: sklearn.svm._classes.SVC;"):
        read_again(model, tmp_path)


def test_what_others_imported_of_skops_vouches_for_nothing(tmp_path, monkeypatch):
    own = importlib.import_module("skops.io")
    monkeypatch.setattr(serialization, "skops_io", light_skops.skops_io.__wrapped__)
    with pytest.raises(InputError, match=r"nobody vouched for: sklearn.svm._classes.SVC;"):
        read_again(SVC().fit(np.eye(4), [0, 0, 1, 1]), tmp_path)
    assert sys.modules["skops.io"] is own


@pytest.mark.parametrize("wild", [{"indices": 2**30}, {"indices": -1}, {"indptr": [0, 2**63 - 1, -2, 3]}])
def test_a_sparse_matrix_that_poses_as_a_trusted_type_is_looked_at(wild, tmp_path):
    model = LogisticRegression().fit(np.eye(3), ["a", "b", "c"])
    model.sparsify()
    name = "scipy.sparse._csr.csr_matrix"

    def pose(schema, members):
        node = schema["content"]["content"]["coef_"]
        node |= {"__module__": "scipy.sparse._matrix", "__class__": "spmatrix"}
        with np.load(io.BytesIO(members[node["file"]])) as file:
            arrays = {**file}
        for entry, value in wild.items():
            arrays[entry] = np.broadcast_to(np.asarray(value, dtype=np.int64), arrays[entry].shape)
        content = io.BytesIO()
        np.savez(content, **arrays)
        members[node["file"]] = content.getvalue()

    with pytest.raises(ValueError, match=f"nobody vouched for: {name};|cannot be read by skops"):
        read_again(model, tmp_path, pose)


# --------------------------------------------------------------------------------- what a model's head says


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 90)
    X = (2 * np.eye(3)[y] + rng.normal(size=(90, 3))).astype(np.float32)
    inner = PartialLabelClassifier("mlp", hidden_sizes=(4,), epochs=1, device="cpu", random_state=0)
    parts = CoveringClassifier(inner, inner, device="cpu", random_state=0)
    folder = tmp_path_factory.mktemp("models") / "covering"
    ConformalClassifier(parts, random_state=0).fit(X, np.eye(3)[y] + (rng.random((90, 3)) < 0.3) > 0).save(folder)
    return folder


def with_head(folder, place, change):
    shutil.copytree(folder, place)
    head = json.loads((place / "setwise.json").read_text())
    change(head)
    (place / "setwise.json").write_text(json.dumps(head))
    return place


def test_a_file_names_no_checkpoint_and_no_device(network, tmp_path):
    def name(head):
        described = head["members"][0]["model"]
        for part in (described, described["posterior"]):
            part["parameters"] |= {"checkpoint": str(tmp_path / "victim"), "device": "cuda:7", "verbose": 1}
        del described["parameters"]["checkpoint"]

    loaded = ConformalClassifier.load(with_head(network, tmp_path / "model", name)).estimator_
    assert (loaded.device, loaded.verbose) == ("auto", 0)
    assert loaded.posterior_.checkpoint is None


def test_an_entry_that_a_head_has_twice_is_refused(network, tmp_path):
    place = with_head(network, tmp_path / "model", lambda _: None)
    text = (place / "setwise.json").read_text()
    (place / "setwise.json").write_text(text.replace('"classes":', '"classes": ["a", "b", "c"], "classes":', 1))
    with pytest.raises(ValueError, match="setwise.json: cannot be read .*twice"):
        ConformalClassifier.load(place)


HEADS = {
    "notes": (lambda head: head.update(notes=1.5), "notes"),
    "how to read a table": (lambda head: head.update(notes={"reading": 5}), "notes"),
    "digests of the data": (lambda head: head["training"].update(data=[]), "training"),
    "weight": (lambda head: head["members"][0]["model"].update(weight=float("nan")), "weight nan"),
    "classes": (lambda head: head["members"][0]["model"]["inclusion"].update(classes=[2, 1, 0]), "other classes"),
}


@pytest.mark.parametrize("entry", list(HEADS))
def test_every_entry_of_a_head_that_is_used_later_is_looked_at(entry, network, tmp_path):
    change, message = HEADS[entry]
    with pytest.raises(ValueError, match=f"{tmp_path / 'model'}.*{message}"):
        ConformalClassifier.load(with_head(network, tmp_path / "model", change))


# ------------------------------------------------- calibrations of which each part could be, and not all together


@pytest.fixture(scope="module")
def calibrations():
    P, sets, truth = rows()
    verified = np.where(np.arange(200) % 3 == 0, truth, None)
    return {
        "mean": conformalize(P, sets, "mean"),
        "verified": conformalize(P, sets, "rectified", verified=verified),
        "mixture": conformalize(P, sets, "posterior", random_state=0),
        "corrected": conformalize(P, sets, "corrected", assume="uniform"),
        "by predicted": conformalize(P, sets, by="predicted"),
        "by size": conformalize(P, sets, by="size"),
    }


MIXED_UP = {
    "scores of candidates beyond their extremes": ("mean", added("evidence.every", -0.5), "every, low and high"),
    "a table of other scores": ("corrected", added("evidence.table", -0.5), "table, low and high"),
    "shares of more than all": ("mixture", lambda _, a: a["evidence.share"].fill(1.0), "share"),
    "a truth that is no candidate, held": ("verified", added("evidence.truth", 5.0), "truth and held"),
    "fewer checks than verified rows": ("verified", told(checked=3), "setting"),
    "checks without verified rows": ("mean", told(checked=3), "setting"),
    "a sample of fewer rows than it has": ("mean", told(sampled=7), "setting"),
    "more labels with a probability than there are": ("mean", told(top=4), "setting"),
    "a seed that is none": ("mean", told(seed=-1), "setting"),
    "declarations that its strategy refuses": ("corrected", told(filled=True), "weighs candidates"),
    "a premise in words of its own": ("mean", told(scope=" of no row at all"), "setting: scope"),
    "categories that rows do not have": (
        "by predicted",
        lambda _, a: a.update(category=a["category"][::-1]),
        "by predicted",
    ),
    "numbers of candidates that rows do not have": (
        "by size",
        lambda _, a: a.update(category=a["category"][::-1]),
        "by size",
    ),
    "categories of nowhere": ("mean", told(by="predicted"), "setting.by"),
}


@pytest.mark.parametrize("mixed", list(MIXED_UP))
def test_parts_of_a_calibration_that_do_not_agree_are_refused(mixed, calibrations, tmp_path):
    name, change, message = MIXED_UP[mixed]
    place = changed(calibrations[name], tmp_path / "x.cal", change)
    with pytest.raises(ValueError, match=f"x.cal: .*{message}"):
        Calibration.load(place)


def test_what_was_saved_comes_back(calibrations, tmp_path):
    for calibration in calibrations.values():
        calibration.save(tmp_path / "x.cal")
        assert str(Calibration.load(tmp_path / "x.cal").guarantee()) == str(calibration.guarantee())


def test_whole_numbers_without_sign_are_read_as_any_others(calibrations, tmp_path):
    def unsigned(_, arrays):
        arrays["evidence.predicted"] = arrays["evidence.predicted"].astype(np.uint64)

    loaded = Calibration.load(changed(calibrations["mean"], tmp_path / "x.cal", unsigned))
    assert not loaded.compare(rows()[0]).refuted


def test_a_file_cannot_keep_silent_that_verified_rows_were_not_chosen_at_random(tmp_path):
    P, sets, truth = rows()
    easy = np.where(P.max(axis=1) > np.median(P.max(axis=1)), truth, None)
    with pytest.warns(UserWarning, match="not a random choice"):
        honest = conformalize(P, sets, "rectified", verified=easy)
    assert honest.guarantee().promised is None
    silent = changed(honest, tmp_path / "x.cal", told(chosen=""))
    assert str(Calibration.load(silent).guarantee()) == str(honest.guarantee())


# -------------------------------------------------------------------------------------- folders and what is in them


@pytest.fixture
def parts(calibrations, tmp_path):
    """A calibration, a folder with two tables of probabilities, and the command that predicts them."""
    calibrations["mean"].save(tmp_path / "mean.cal")
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        (tmp_path / "in" / f"{name}.csv").write_text("p:cat,p:dog,p:owl\n" + "0.5,0.25,0.25\n0.1,0.1,0.8\n" * 3)
    files = ["--probabilities", str(tmp_path / "in"), "--out", str(tmp_path / "out")]
    return tmp_path, ["predict", str(tmp_path / "mean.cal"), *files, "--json"]


ODD = {
    "a link to nowhere": (lambda path: path.symlink_to("nowhere"), "is no file"),
    "a pipe": (os.mkfifo, "is no file"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "is no file"),
    "a link to a folder": (lambda path: path.symlink_to(path.parents[1]), "is a link to a folder"),
}


@pytest.mark.parametrize("odd", list(ODD))
def test_what_is_no_file_in_a_folder_of_tables_is_not_left_out_silently(odd, parts, capsys):
    folder, command = parts
    make, message = ODD[odd]
    make(folder / "in" / "c.csv")
    assert run(command) == 2
    assert f"c.csv: {message}" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["pipe.csv", "pip*.csv"])
def test_a_pipe_in_the_place_of_a_table_is_refused_and_not_waited_for(name, tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match=r"pipe.csv: is a pipe or a device, not a file; pass it to standard input"):
        table_files(tmp_path / name)


RECORDS = {
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "a link": lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
    "sizes of nothing": lambda path: rewrite(path, {"rows": 6, "sizes": {"x": "y"}}),
    "rows fewer than none": lambda path: rewrite(path, {"rows": -6, "sizes": {"1": -6}}),
    "rows of other sizes": lambda path: rewrite(path, {"rows": 600, "sizes": {"1": 6}}),
    "lists in each other": lambda path: path.write_text("[" * 10**5),
}


def rewrite(path, found):
    path.write_text(json.dumps(json.loads(path.read_text()) | {"found": found}))


@pytest.mark.parametrize("record", list(RECORDS))
def test_a_part_whose_record_is_odd_is_made_again(record, parts, capsys):
    folder, command = parts
    assert run(command) == 0
    before = json.loads(capsys.readouterr().out)
    RECORDS[record](folder / "out" / ".a.csv.done.json")
    assert run([*command, "--resume"]) == 0
    after = json.loads(capsys.readouterr().out)
    assert (after["rows"], after["mean_size"], after["files_kept"]) == (12, before["mean_size"], 1)


# ------------------------------------------------------------------ rows and monitors that are saved and go on


ROWS = {
    "infinitely many": lambda header, _: header.update(seen=float("inf")),
    "more than it has seen": lambda header, _: header.update(seen=7),
    "a seed that is none": lambda header, _: header.update(seeds=[float("inf")]),
    "a limit that is none": lambda header, _: header.update(max_rows=float("nan")),
    "a wild generator": lambda header, _: header["random"].update(uinteger=-1),
    "ids that are neither numbers nor text": lambda _, arrays: arrays.update(
        {"facts.row_ids": arrays["facts.row_ids"] / 2}
    ),
}


@pytest.mark.parametrize("wild", list(ROWS))
def test_calibration_rows_with_wild_counts_are_one_error_that_names_the_file(wild, tmp_path):
    kept = CalibrationRows(random_state=0)
    kept.add(*rows()[:2], row_ids=np.arange(200))
    kept.save(tmp_path / "x.rows")
    assert len(CalibrationRows.load(tmp_path / "x.rows")) == 200
    place = altered(tmp_path / "x.rows", calibration_rows.FORMAT, calibration_rows.VERSION, ROWS[wild])
    with pytest.raises(ValueError, match=r"x.rows: a setwise-calibration-rows file with a broken or missing part"):
        CalibrationRows.load(place)


@pytest.mark.parametrize("silent", [{"best": 1e6}, {"best": float("inf")}, {"best": 0.0, "first_row": 3}])
def test_the_alarm_of_a_monitor_is_what_its_numbers_say(silent, calibrations, tmp_path):
    watching = calibrations["mean"].monitor(random_state=0)
    watching.update(rows()[0][:20])
    watching.save(tmp_path / "x.monitor")
    place = altered(
        tmp_path / "x.monitor", monitor.FORMAT, monitor.VERSION, lambda header, _: header.update(silent)
    )
    with pytest.raises(ValueError, match="x.monitor: .*do not belong together"):
        calibrations["mean"].monitor(resume=place)


def test_the_lock_of_a_download_follows_no_link(tmp_path):
    (tmp_path / "victim").write_text("mine")
    (tmp_path / ".set.mat.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic links"), remote_files._locked(tmp_path / "set.mat"):
        pass
    assert (tmp_path / "victim").read_text() == "mine"
