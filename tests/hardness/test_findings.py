"""What a first attack on the package found, one test or more for each finding, named after it.

Files here are crafted to break readers: each must end in one sentence that names the file.
"""

import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression

import setwise
from setwise import Calibration, ConformalClassifier, LabelSets, _files, conformalize
from setwise.calibration.calibration_file import FORMAT, VERSION
from setwise.cli.app import run
from setwise.cli.screen import visible
from setwise.container import read_container, write_container
from setwise.contamination.assumption import as_assumption
from setwise.data import arrow_tables, from_snorkel, read_table
from setwise.data.json_depth import DEEPEST, check_depth
from setwise.errors import DataError
from setwise.labels.vocabulary import MISSING
from setwise.learn import PartialLabelClassifier, light_skops
from setwise.limits import VARIABLE
from setwise.strategies import corrected

NAMES = ["cat", "dog", "owl"]
LIMIT = 2**20


def sample(n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = 2 * np.eye(3)[y] + rng.normal(size=(n, 3))
    mask = (np.eye(3)[y] + (rng.random((n, 3)) < 0.2)) > 0
    P = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    return X, P, LabelSets.from_mask(mask, NAMES), y


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A model directory of each kind of part, and a calibration of each kind of evidence."""
    folder = tmp_path_factory.mktemp("models")
    X, P, sets, y = sample()
    ConformalClassifier(LogisticRegression(), random_state=0).fit(X, sets).save(folder / "skops")
    network = PartialLabelClassifier("mlp", hidden_sizes=(4,), epochs=1)
    ConformalClassifier(network, random_state=0).fit(X, sets).save(folder / "network")
    conformalize(P, sets).save(folder / "max.cal")
    conformalize(P, sets, "mean", by=y % 2).save(folder / "mean.cal")
    verified = np.where(np.arange(120) < 60, np.array(NAMES, dtype=object)[y], None)
    conformalize(P, sets, "rectified", verified=verified).save(folder / "rectified.cal")
    conformalize(P, sets, "corrected", assume="uniform").save(folder / "corrected.cal")
    said = np.random.default_rng(1).integers(0, 3, (120, 2))
    answers = [
        [NAMES[k], NAMES[k], NAMES[b] if i % 3 else NAMES[k]]
        for i, (k, (b, _)) in enumerate(zip(y, said, strict=True))
    ]
    votes = setwise.Votes.from_matrix(answers, annotators=["ann", "bob", "eve"], classes=NAMES)
    conformalize(P, votes, "crowd", assume="independent", verified=verified).save(folder / "votes.cal")
    return folder


@pytest.fixture
def model(models, tmp_path):
    shutil.copytree(models / "network", tmp_path / "model")
    return tmp_path / "model"


def head_of(folder):
    return json.loads((folder / "setwise.json").read_text())


def with_head(folder, head):
    (folder / "setwise.json").write_text(json.dumps(head))


def crafted(models, name, path, change):
    """A calibration file with a right digest, of which something was changed."""
    header, arrays = read_container(models / name, FORMAT, VERSION)
    arrays = {key: value.copy() for key, value in arrays.items()}
    change(header, arrays)
    write_container(path, header, arrays)
    return path


def refused(load, path):
    """The one sentence of a refusal, which names the file."""
    with pytest.raises(ValueError, match=re.escape(str(path))) as error:
        load(path)
    assert "\n" not in str(error.value)
    assert "allow_pickle" not in str(error.value)
    return str(error.value)


# ---------------------------------------------------------------------------------------------------- high


def declared():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    listed = [line for extra in project["optional-dependencies"].values() for line in extra]
    return dict(re.findall(r"^([a-z]+)>=([0-9.]+)$", "\n".join(listed), re.MULTILINE))


@pytest.mark.parametrize(
    ("package", "oldest"), [("skops", "0.15"), ("torch", "2.10"), ("pyarrow", "24"), ("typer", "0.26.8")]
)
def test_high_1_and_3_medium_7_no_version_with_a_known_hole_is_allowed(package, oldest):
    def parts(text):
        return [int(part) for part in re.findall(r"\d+", text.partition("+")[0])]

    assert parts(declared()[package]) >= parts(oldest)
    assert parts(version(package)) >= parts(oldest)


def test_high_1_an_old_skops_is_not_used_even_where_it_is_installed(monkeypatch):
    monkeypatch.setattr(light_skops, "version", lambda _: "0.11.0")
    with pytest.raises(ValueError, match="skops 0.11.0 trusts too much in files"):
        light_skops.skops_io.__wrapped__()


def test_high_1_nodes_that_pose_as_our_own_class_run_nothing(models, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(models / "skops", folder)
    part = next(folder.glob("model-*.skops"))
    schema = {
        "__class__": "EMClassifier",
        "__module__": "setwise.learn.em",
        "__loader__": "ReduceNode",
        "__id__": 1,
        "content": {
            "__class__": "tuple",
            "__module__": "builtins",
            "__loader__": "TupleNode",
            "__id__": 2,
            "content": [],
        },
        "constructor": {"__class__": "system", "__module__": "os", "__loader__": "TypeNode", "__id__": 3},
        "protocol": 2,
        "_skops_version": version("skops"),
    }
    with zipfile.ZipFile(part, "w") as archive:
        archive.writestr("schema.json", json.dumps(schema))
    head = head_of(folder)
    content = part.read_bytes()
    head["files"][part.name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    with_head(folder, head)
    refused(ConformalClassifier.load, folder)


WILD = {
    "wrapping": [0, 2**63 - 1, -2, 3],
    "falling": [0, 3, 1, 3],
    "beyond": [0, 1, 2, 4],
    "not from zero": [1, 2, 3, 3],
    "unsigned": np.array([0, 2**64 - 1, 2, 3], dtype=np.uint64),
    "none": np.empty(0, dtype=int),
}


@pytest.mark.parametrize("offsets", list(WILD))
def test_high_2_offsets_that_wrap_are_refused_in_npz(offsets, tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, X=np.zeros((3, 1)), candidates_indptr=WILD[offsets], candidates_indices=[0, 1, 2])
    assert "must rise from 0" in refused(read_table, path)


@pytest.mark.parametrize("size", [2**63 - 1, 0, -1, 99])
def test_high_2_sizes_that_wrap_are_refused_in_calibrations(size, models, tmp_path):
    def change(_, arrays):
        arrays["evidence.sizes"][[0, 2]] = size

    path = crafted(models, "mean.cal", tmp_path / "x.cal", change)
    assert "evidence.sizes" in refused(Calibration.load, path)


def test_high_3_slices_of_large_text_are_read_right():
    column = pa.array(["x" * 9, "", "cat|dog", " ", "owl"], pa.large_string()).slice(1)
    sets = read_table(pa.table({"s": column}), candidates="s", features=[], missing="empty").candidates
    assert sets.to_lists() == [[], ["cat", "dog"], [], ["owl"]]


DEEP = {
    "one line": '{"a":' + "[" * 20_000 + "]" * 20_000 + "}\n",
    "many lines": '{"a":\n' + "[\n" * 20_000 + "]\n" * 20_000 + "}\n",
    "behind closing brackets in quotes": '{"b":"' + "]" * 20_000 + '","a":' + "[" * 20_000 + "]" * 20_000 + "}\n",
    "objects": '{"a":' * 20_000 + "1" + "}" * 20_000 + "\n",
}


@pytest.mark.parametrize("deep", list(DEEP))
def test_high_4_json_lines_nested_beyond_measure_are_refused(deep, tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": [1]}\n' + DEEP[deep])
    assert f"more than {DEEPEST} lists and objects deep" in refused(lambda p: read_table(p, candidates="a"), path)
    refused(lambda p: list(arrow_tables.arrow_batches(p, 10)), path)


def test_high_4_brackets_in_quotes_and_long_flat_lines_are_no_depth():
    for line in ({"a": "[" * 5000}, {"a": '\\"[' * 5000}, {"a": [[i] for i in range(5000)]}, {"a": "}\n{" * 900}):
        check_depth((json.dumps(line) + "\n").encode() * 3, "t")
    check_depth(b"", "t")


# -------------------------------------------------------------------------------------------------- medium


def spoil(name, value):
    def change(_, arrays):
        arrays[name].reshape(-1)[0] = value

    return change


def halve(name):
    def change(_, arrays):
        arrays[name] = arrays[name][: len(arrays[name]) // 2]

    return change


def swap_types(header, arrays):
    arrays["evidence.low"] = arrays["evidence.low"].astype("U9")


def told(**changes):
    def change(header, _):
        header["setting"] |= changes

    return change


def drop_an_answer(_, arrays):
    arrays["annotators.confusion"] = arrays["annotators.confusion"][:, :2]


CHANGES = {
    "NaN scores": ("max.cal", spoil("evidence.high", np.nan), "evidence.high"),
    "infinite scores": ("max.cal", spoil("evidence.low", -np.inf), "evidence.low"),
    "half of the scores": ("max.cal", halve("evidence.high"), "evidence.high"),
    "half of all rows": ("max.cal", halve("evidence.low"), "evidence.high"),
    "scores as text": ("max.cal", swap_types, "evidence.low"),
    "low above high": ("max.cal", spoil("evidence.low", 7.0), "low and high"),
    "a label that is none": ("max.cal", spoil("evidence.predicted", 3), "evidence.predicted"),
    "no probability": ("max.cal", spoil("evidence.confidence", 7.0), "evidence.confidence"),
    "fewer entries": ("mean.cal", halve("evidence.every"), "evidence.every"),
    "a category that is none": ("mean.cal", spoil("category", 2), "category"),
    "half of the categories": ("mean.cal", halve("category"), "category"),
    "a verified label that is none": ("rectified.cal", spoil("evidence.label", 9), "evidence.label"),
    "a score without its label": ("rectified.cal", spoil("evidence.label", MISSING), "truth and label"),
    "a truth without a score": ("rectified.cal", spoil("evidence.truth", np.nan), "truth and"),
    "a share above one": ("rectified.cal", spoil("evidence.share", 1.5), "evidence.share"),
    "a table of other labels": ("corrected.cal", halve("evidence.table"), "evidence.table"),
    "a candidate too many": ("corrected.cal", lambda _, a: a["evidence.named"].fill(True), "named and sizes"),
    "an annotator that is none": ("votes.cal", spoil("annotators.people", 99), "annotators.people"),
    "an annotator after the last": ("votes.cal", spoil("annotators.people", 3), "annotators.people"),
    "annotators of other names": (
        "votes.cal",
        lambda h, _: h["annotators"].update(names=["ann"]),
        "their names or",
    ),
    "answers of other labels": ("votes.cal", drop_an_answer, "their names or answers"),
    "an answer that is none": ("votes.cal", spoil("annotators.said", -1), "annotators.said"),
    "a confusion above one": ("votes.cal", spoil("annotators.confusion", 2.0), "annotators.confusion"),
    "an unknown array": ("max.cal", lambda _, a: a.update(more=np.zeros(1)), "more is not known"),
    "another number of labels": ("max.cal", told(n_classes=7), "setting"),
    "a type for another": ("max.cal", told(votes="no"), "setting.votes"),
    "an unknown word": ("max.cal", told(by="moon"), "setting: by"),
    "a negative count": ("max.cal", told(checked=-1), "setting"),
    "classes twice": ("max.cal", lambda h, _: h.update(classes=["cat", "cat", "owl"]), "occurs twice"),
    "a strategy with a wild number": (
        "rectified.cal",
        lambda h, _: h["strategy"].update(delta=float("nan")),
        "delta of rectified",
    ),
    "no strategy": ("max.cal", lambda h, _: h.pop("strategy"), "strategy"),
    "an unknown strategy": ("max.cal", lambda h, _: h["strategy"].update(name="os.system"), "KeyError"),
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_medium_5_every_array_of_a_calibration_is_checked(change, models, tmp_path):
    name, craft, message = CHANGES[change]
    path = crafted(models, name, tmp_path / "x.cal", craft)
    assert message in refused(Calibration.load, path)


def test_medium_5_annotators_may_have_answered_less_than_one_whole_row(models, tmp_path):
    path = crafted(models, "votes.cal", tmp_path / "x.cal", spoil("annotators.total", 0.25))
    assert Calibration.load(path).annotators.total[0, 0] == 0.25


def test_medium_5_a_changed_calibration_is_noticed_by_its_digest(models, tmp_path):
    with np.load(models / "max.cal") as file:
        arrays = dict(file)
    arrays["evidence.low"] = arrays["evidence.low"] - 0.001
    np.savez(tmp_path / "x.npz", **arrays)
    assert "changed or damaged" in refused(Calibration.load, tmp_path / "x.npz")
    del arrays["digest"]
    np.savez(tmp_path / "x.npz", **arrays)
    assert "changed or damaged" in refused(Calibration.load, tmp_path / "x.npz")


@pytest.mark.parametrize("name", ["max", "mean", "rectified", "corrected", "votes"])
def test_medium_5_what_was_saved_passes(name, models):
    loaded = Calibration.load(models / f"{name}.cal")
    assert loaded.evidence.n == 120
    if name == "votes":
        header, _ = read_container(models / "votes.cal", FORMAT, VERSION)
        assert loaded.annotators.shrink == header["annotators"]["shrink"]


@pytest.mark.parametrize("text", ["1e400000000", "0." + "1" * 10**6, "1/0", "-1/2", "3/2", 0.1, None, "nan"])
def test_medium_6_a_miss_rate_in_a_file_is_a_short_fraction(text, models, tmp_path):
    path = crafted(models, "max.cal", tmp_path / "x.cal", told(miss_rate=text))
    assert len(refused(Calibration.load, path)) < 500


def test_medium_8_a_parquet_file_that_shrinks_while_it_is_read_is_an_error(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": np.random.default_rng(0).normal(size=40_000)}), path, row_group_size=2000)
    batches = arrow_tables.arrow_batches(path, 1000)
    next(batches)
    os.truncate(path, path.stat().st_size // 3)
    with pytest.raises(DataError, match=r"t.parquet: changed while it was read"):
        list(batches)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_medium_8_a_text_file_that_shrinks_while_it_is_read_is_an_error(suffix, tmp_path):
    path, line = tmp_path / f"t{suffix}", "1,2\n" if suffix == ".csv" else '{"a": 1, "b": 2}\n'
    path.write_text(("a,b\n" if suffix == ".csv" else "") + line * 400_000)
    batches = arrow_tables.arrow_batches(path, 1000)
    next(batches)
    os.truncate(path, 200_000 * len(line))
    with pytest.raises(DataError, match="changed while it was read"):
        list(batches)


def test_medium_8_fewer_rows_than_parquet_promises_are_an_error(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": np.arange(5000.0)}), path, row_group_size=1000)
    some = pq.ParquetFile.iter_batches

    def lossy(self, *given, **named):
        yield from list(some(self, *given, **named))[:-1]

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lossy)
    with pytest.raises(DataError, match=r"gave 4,000 rows of the 5,000"):
        list(arrow_tables.arrow_batches(path, 1000))


ODD = [" lead", "C:\\new", "a|b", "\\q7", "7", "\\", "trail "]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".arrow", ".json"])
def test_medium_9_true_labels_outside_delimited_text_are_what_they_are(suffix, tmp_path):
    path = tmp_path / f"t{suffix}"
    columns = {"x": list(map(float, range(7))), "s": [[label, "b"] for label in ODD], "y": ODD}
    rows = pa.table(columns).to_pylist()
    if suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif suffix == ".json":
        path.write_text(json.dumps(rows))
    elif suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        with pa.ipc.new_file(str(path), pa.table(columns).schema) as file:
            file.write_table(pa.table(columns))
    table = read_table(path, candidates="s", truth="y")
    assert table.truth.tolist() == ODD
    assert table.candidates.contains(table.truth).all()


def test_medium_9_escapes_stay_in_delimited_text(tmp_path):
    (tmp_path / "t.csv").write_text("x,s,y\n1,a\\sb|c,a\\sb\n2,c,\\bowl\n")
    assert read_table(tmp_path / "t.csv", candidates="s", truth="y").truth.tolist() == ["a|b", " owl"]
    assert read_table(tmp_path / "t.csv", truth="y", features=["x"]).truth.tolist() == ["a|b", " owl"]
    beside = {"x": [1, 2], "s": ["a\\sb|c", "c"], "y": ["a\\sb", "c"]}  # a frame that came out of such a file
    assert read_table(beside, candidates="s", truth="y").truth.tolist() == ["a|b", "c"]


def test_medium_10_lists_and_objects_are_carried_into_csv(models, tmp_path):
    X, *_ = sample(6)
    rows = [{"f0": a, "f1": b, "f2": c, "tags": [1, 2], "seen": ["a|b", "c"], "more": {"k": 1}} for a, b, c in X]
    (tmp_path / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = [word for name in ("f0", "f1", "f2") for word in ("--features", name)]
    with contextlib.chdir(tmp_path):
        assert run(["predict", str(models / "skops"), "new.jsonl", "--out", "x.csv", "-q", *options]) == 0
    carried = read_table(tmp_path / "x.csv", candidates="seen", features=[], carry=["tags", "more"])
    assert carried.carried["tags"].tolist() == ["[1, 2]"] * 6
    assert json.loads(carried.carried["more"][0]) == {"k": 1}
    assert carried.candidates.to_lists()[0] == ["a|b", "c"]


def packed_npz(path):
    np.savez_compressed(path, X=np.zeros((LIMIT // 4, 1)))


def packed_text(path):
    with gzip.open(path, "wb") as file:
        file.write(b"x,y\n" + b"0,0\n" * LIMIT if ".csv" in path.name else b'{"x": 0, "y": 0}\n' * LIMIT)


def packed_parquet(path):
    pq.write_table(pa.table({"x": np.zeros(LIMIT)}), path, compression="zstd")


def packed_feather(path):
    with pa.ipc.new_file(
        str(path), pa.schema({"x": pa.float64()}), options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as file:
        for _ in range(8):
            file.write_table(pa.table({"x": np.zeros(LIMIT // 16)}))


def packed_excel(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b" " * 4 * LIMIT)


PACKED = {
    "t.npz": packed_npz,
    "t.csv.gz": packed_text,
    "t.jsonl.gz": packed_text,
    "t.parquet": packed_parquet,
    "t.arrow": packed_feather,
    "t.xlsx": packed_excel,
}


@pytest.mark.parametrize("name", list(PACKED))
def test_medium_11_nothing_unpacks_to_more_than_the_limit(name, tmp_path, monkeypatch):
    PACKED[name](tmp_path / name)
    monkeypatch.setenv(VARIABLE, "1M")
    said = refused(read_table, tmp_path / name)
    assert "unpacks to more than 1,048,576 bytes" in said
    assert VARIABLE in said
    monkeypatch.setenv(VARIABLE, "64M")
    if name != "t.xlsx":
        assert len(read_table(tmp_path / name)) >= LIMIT // 4


def test_medium_11_the_limit_is_a_number_of_bytes(tmp_path, monkeypatch):
    packed_npz(tmp_path / "t.npz")
    monkeypatch.setenv(VARIABLE, "plenty")
    with pytest.raises(ValueError, match=f"{VARIABLE}: 'plenty' is not a number of bytes"):
        read_table(tmp_path / "t.npz")


def test_medium_11_a_calibration_holds_no_more_than_its_bytes(models, tmp_path):
    with np.load(models / "max.cal") as file:
        np.savez_compressed(tmp_path / "x.npz", **(dict(file) | {"evidence.low": np.zeros(10**6)}))
    assert "claim more bytes than it has" in refused(Calibration.load, tmp_path / "x.npz")


def claiming(shape):
    header = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


@pytest.mark.parametrize("shape", [(10**12,), (2**62, 4), (-1,), (0, 10**12)])
def test_medium_11_an_array_that_claims_more_than_it_has_is_never_made(shape, tmp_path):
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("X.npy", claiming(shape))
    assert "claims the shape" in refused(read_table, tmp_path / "t.npz")


SIZES = {"hidden_sizes": [10**9], "ensemble": 10**9, "shape": [10**9], "classes": NAMES * 2, "temperature": 0.0}


@pytest.mark.parametrize("entry", list(SIZES))
def test_medium_11_a_network_is_no_larger_than_its_weights(entry, model):
    head = head_of(model)
    head["members"][0]["model"][entry] = SIZES[entry]
    with_head(model, head)
    refused(ConformalClassifier.load, model)


def test_medium_11_a_label_far_beyond_all_others_is_a_gap():
    with pytest.raises(DataError, match=r"matrix: the label 100000000 would make 100,000,001 classes.*−1"):
        from_snorkel([[0, 1], [1, 100_000_000]])


def test_medium_11_corrected_needs_no_table_of_all_pairs_of_labels():
    assert corrected._uniform_spread(300_000, 0.0) == 150_000  # such a table would take 670 GiB
    with pytest.raises(ValueError, match="assume: 'class' needs a table of 300,000 × 300,000 probabilities"):
        as_assumption("class", 300_000)


@pytest.mark.parametrize("k", [2, 3, 4, 7, 20])
@pytest.mark.parametrize("rate", [0.0, 0.05, 0.6])
def test_medium_11_the_spread_is_that_of_all_pairs_of_sizes(k, rate):
    size, below = np.ogrid[1 : k + 1, 0 : k + 1]
    r = (size - 1 + rate) / (k - 1)
    most, least = np.minimum(size, below) - r * below, np.maximum(0, size + below - k) - r * below
    all_pairs = max((most - L * (1 - rate - r)).max() - (least - L * (1 - rate - r)).min() for L in (0, 1))
    assert corrected._uniform_spread(k, rate) == all_pairs


def test_medium_12_a_load_begins_again_where_another_model_took_the_place(models, model, monkeypatch):
    from setwise.estimators import model_directory

    other, first, replaced = models / "skops", model_directory.read_head, []

    def while_replaced(folder):
        head = first(folder)
        if not replaced:  # the moment after the head was read
            replaced.append(head)
            for part in head["files"]:
                (folder / part).unlink()
            shutil.copytree(other, folder, dirs_exist_ok=True)
        return head

    monkeypatch.setattr(model_directory, "read_head", while_replaced)
    assert "EMClassifier" in repr(ConformalClassifier.load(model).estimator_)


def test_medium_12_a_part_that_is_missing_is_an_error_where_nothing_was_replaced(model):
    next(model.glob("calibration-*")).unlink()
    assert "is missing" in refused(ConformalClassifier.load, model)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_medium_13_every_encoding_of_standard_output_will_do(encoding, tmp_path, monkeypatch):
    _, P, _, y = sample()
    pq.write_table(pa.table(dict(zip(("p:cat", "p:dog", "p:ü→猫"), P.T, strict=True))), tmp_path / "p.parquet")
    truth = np.array(["cat", "dog", "ü→猫"])[y].tolist()
    pq.write_table(pa.table({"candidates": [[label] for label in truth]}), tmp_path / "s.parquet")
    monkeypatch.chdir(tmp_path)
    for extra in ([], ["--json"]):
        out = io.BytesIO()
        with contextlib.redirect_stdout(io.TextIOWrapper(out, encoding=encoding)) as stream:
            files = ["--probabilities", "p.parquet", "--labels", "s.parquet", "--out", "m.cal", "--force"]
            assert run(["conformalize", *files, *extra]) == 0
            stream.flush()
            said = out.getvalue().decode(encoding)
        assert json.loads(said)["classes"][2] == "ü→猫" if extra else "auto -> max" in said


def test_medium_13_a_table_on_standard_output_is_utf_8(models, tmp_path, monkeypatch):
    pq.write_table(pa.table({name: [1.0, 0.0] for name in ("p:cat", "p:dog", "p:owl")}), tmp_path / "p.parquet")
    monkeypatch.chdir(tmp_path)
    table = pa.table({"p:cat": [1.0], "p:dog": [0.0], "p:owl": [0.0], "id": ["ü→猫"]})
    pq.write_table(table, tmp_path / "p.parquet")
    out = io.BytesIO()
    with contextlib.redirect_stdout(io.TextIOWrapper(out, encoding="ascii")) as stream:
        assert run(["predict", str(models / "max.cal"), "--probabilities", "p.parquet", "--out", "-"]) == 0
        stream.flush()
        assert "ü→猫" in out.getvalue().decode()


def test_medium_14_a_device_or_a_pipe_is_not_replaced(models, tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe: is a device or a pipe"):
        Calibration.load(models / "max.cal").save(tmp_path / "pipe")
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "t.parquet")
    arguments = ["predict", models / "skops", tmp_path / "t.parquet", "--out", tmp_path / "pipe", "--force"]
    assert run([*map(str, arguments)]) == 2
    assert "is a device or a pipe" in capsys.readouterr().err
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_medium_14_temporary_names_are_new_each_time_and_follow_no_link(tmp_path):
    (tmp_path / "victim").write_text("mine")
    seen = set()
    for _ in range(3):
        with _files.replacing(tmp_path / "report.html") as beside:
            seen.add(beside.name)
            beside.write_text("whole")
    assert len(seen) == 3
    (tmp_path / "link.html").symlink_to(tmp_path / "victim")
    with _files.replacing(tmp_path / "link.html") as beside:
        beside.write_text("new")
    assert (tmp_path / "victim").read_text() == "mine"


def test_medium_15_others_may_read_the_parts_of_a_model(model):
    before = os.umask(0o022)
    try:
        ConformalClassifier.load(model).save(model.parent / "again")
    finally:
        os.umask(before)
    assert {stat.S_IMODE(part.stat().st_mode) for part in (model.parent / "again").iterdir()} == {0o644}


# ----------------------------------------------------------------------------------------------------- low


KINDS_OF_DAMAGE = {
    "no zip": lambda b: b"PK\x03\x04" + b[40:],
    "empty": lambda _: b"",
    "half": lambda b: b[: len(b) // 2],
    "flipped": lambda b: b[:200] + bytes([b[200] ^ 255]) + b[201:],
    "a pickle": lambda _: b"\x80\x04cos\nsystem\n(S'echo'\ntR.",
}


@pytest.mark.parametrize("damage", list(KINDS_OF_DAMAGE))
def test_low_damaged_files_are_named_and_never_called_a_fault_of_ours(damage, models, tmp_path, capsys):
    whole = (models / "max.cal").read_bytes()
    (tmp_path / "x.cal").write_bytes(KINDS_OF_DAMAGE[damage](whole))
    np.savez(tmp_path / "whole.npz", X=np.zeros((3, 1)))
    (tmp_path / "x.npz").write_bytes(KINDS_OF_DAMAGE[damage]((tmp_path / "whole.npz").read_bytes()))
    pq.write_table(pa.table({"p:cat": [1.0]}), tmp_path / "p.parquet")
    for arguments in (
        ["predict", tmp_path / "x.cal", "--probabilities", tmp_path / "p.parquet", "--out", tmp_path / "o.csv"],
        ["inspect", tmp_path / "x.npz", "--candidates", "s"],
    ):
        assert run([*map(str, arguments)]) == 2
        said = capsys.readouterr().err
        assert "fault in setwise" not in said
        assert "/x." in said


WRONG = {
    "a list for classes": lambda h: h.update(classes={"a": 1}),
    "members of nothing": lambda h: h.update(members=[None]),
    "no members": lambda h: h.update(members=[]),
    "a model that is none": lambda h: h["members"][0].update(model=[]),
    "an unknown kind of model": lambda h: h["members"][0]["model"].update(kind="pickle"),
    "layers in each other": lambda h: h["members"][0].update(
        model=json.loads('{"kind":"frozen","model":' * 900 + "1" + "}" * 900)
    ),
    "files without digests": lambda h: h.update(files=dict.fromkeys(h["files"], 1)),
    "classes of another calibration": lambda h: h.update(classes=["x", "y", "z"]),
    "a version that is text": lambda h: h.update(version="1"),
    "parameters of another class": lambda h: h.update(parameters={"moon": 1}),
}


@pytest.mark.parametrize("wrong", list(WRONG))
def test_low_a_description_that_cannot_be_is_one_error_that_names_the_model(wrong, model):
    head = head_of(model)
    WRONG[wrong](head)
    with_head(model, head)
    refused(ConformalClassifier.load, model)


@pytest.mark.parametrize(
    "name", ["../secret.npz", "/etc/hostname", "not-listed.npz", ".", "sub/part.npz", ".hidden"]
)
@pytest.mark.parametrize("listed", [True, False])
def test_low_only_listed_parts_inside_the_directory_are_read(name, listed, model):
    part = next(model.glob("used-rows-*"))
    content = part.read_bytes()
    if not name.startswith("/"):
        place = model / name
        place.parent.mkdir(exist_ok=True)
        if not place.is_dir():
            place.write_bytes(content)
    head = head_of(model)
    if listed and name != "not-listed.npz":
        head["files"][name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    head["used_rows"] = name
    with_head(model, head)
    assert "part" in refused(ConformalClassifier.load, model)


@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_low_a_part_that_is_no_file_is_refused_at_once(kind, model):
    part = next(model.glob("calibration-*"))
    elsewhere = model.parent / "elsewhere"
    part.rename(elsewhere)
    if kind == "pipe":
        os.mkfifo(part)
    elif kind == "link":
        part.symlink_to(elsewhere)
    else:
        part.mkdir()
    said = refused(ConformalClassifier.load, model)
    assert "regular file" in said or "symbolic link" in said


def test_low_saving_again_deletes_nothing_but_parts_of_its_own(model):
    keep = {"thesis.tex": b"years", "model-notes.txt": b"more", "model-12345678.npz": b"a name like ours"}
    for name, content in keep.items():
        (model / name).write_bytes(content)
    (model.parent / "outside-12345678.npz").write_bytes(b"outside")
    head = head_of(model)
    for name, content in keep.items():
        head["files"][name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    head["files"]["../outside-12345678.npz"] = {"sha256": "12345678", "bytes": 7}
    old = set(head_of(model)["files"])
    loaded = ConformalClassifier.load(model)
    with_head(model, head)
    X, _, sets, _ = sample(seed=5)
    loaded.conformalize(X, sets).save(model)
    assert set(keep) <= {part.name for part in model.iterdir()}
    assert (model.parent / "outside-12345678.npz").exists()
    assert not {name for name in old if name.startswith("calibration")} & {part.name for part in model.iterdir()}
    ConformalClassifier.load(model)


LEAVES = """
import os, signal, sys
from pathlib import Path
from setwise import _files
here = Path(sys.argv[1])
with _files.temporary(here, "sets.csv") as file, _files.temporary(here, "model", folder=True):
    file.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_low_what_a_killed_process_left_is_swept_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "_swept", set())
    subprocess.run([sys.executable, "-c", LEAVES, str(tmp_path)], check=False)
    assert len(list(tmp_path.iterdir())) == 2
    (tmp_path / ".mine.0123456789abcdef.tmp").write_text("of another program")
    (tmp_path / ".sets.csv.0123456789abcdef.setwise.tmp").symlink_to(tmp_path / "nowhere")
    with _files.temporary(tmp_path, "busy") as busy:
        _files._swept.clear()
        with _files.replacing(tmp_path / "other.csv") as beside:
            beside.write_text("whole")
        assert busy.exists()  # its process lives
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".mine.0123456789abcdef.tmp",
        ".sets.csv.0123456789abcdef.setwise.tmp",
        "other.csv",
    ]


def test_low_labels_do_not_steer_the_terminal(tmp_path, capsys):
    assert visible("a\x1b[31m\x07\u202e\x9b") == "a\\x1b[31m\\x07\\u202e\\x9b"
    assert visible("tab\tline\nü→猫👩‍⚕️") == "tab\tline\nü→猫👩‍⚕️"
    (tmp_path / "t.csv").write_text("x,s\n" + "1,[red]\x1b[2Jcat|dog\n2,dog\n" * 10)
    assert run(["inspect", str(tmp_path / "t.csv"), "--candidates", "s"]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "[red]\\x1b[2Jcat" in said


def test_low_formulas_in_csv_come_back_as_they_were(tmp_path):
    labels = ["=1+1", "@SUM(A1)", "+cmd", "-2+3"]
    setwise.data.write_sets(tmp_path / "s.csv", LabelSets.from_labels(labels, classes=labels))
    assert [row[0] for row in setwise.data.read_sets(tmp_path / "s.csv").to_lists()] == labels


def test_low_masked_arrays_keep_their_mask_or_are_refused():
    _, P, sets, _ = sample()
    hidden = np.arange(120) == 7
    with pytest.raises(ValueError, match="probabilities: a masked array"):
        conformalize(np.ma.array(P, mask=np.broadcast_to(hidden[:, None], P.shape)), sets)
    with pytest.raises(ValueError, match="sample_weight: row 7 is masked"):
        conformalize(P, sets, sample_weight=np.ma.array(np.ones(120), mask=hidden))
    with pytest.raises(ValueError, match="mask: a masked array"):
        LabelSets.from_mask(np.ma.array(sets.to_mask(), mask=np.broadcast_to(hidden[:, None], P.shape)))
    labels = np.ma.array(np.arange(120) % 3, mask=hidden)
    assert conformalize(P, labels, missing="drop").evidence.n == 119
    assert from_snorkel(np.ma.array([[0, 1]], mask=[[False, True]]), classes=NAMES).candidates.to_lists() == [
        ["cat"]
    ]


def test_low_no_advice_to_load_unsafely(tmp_path):
    objects = np.array([{"a": 1}], dtype=object)
    np.savez(tmp_path / "o.npz", X=objects, allow_pickle=True)
    assert "holds object, not numbers or text" in refused(read_table, tmp_path / "o.npz")
    np.save(tmp_path / "o.npy", objects, allow_pickle=True)
    from setwise.cli.options import assume_of

    refused(lambda path: assume_of(str(path), NAMES), tmp_path / "o.npy")


def test_low_help_works_with_the_installed_click(capsys):
    assert run(["predict", "--help"]) == 0
    assert "--out" in capsys.readouterr().out


def test_low_every_fetched_set_has_a_checksum_or_is_known_to_have_none():
    from setwise.data.registry import REGISTRY

    bare = {name for name, entry in REGISTRY.items() for file in entry.files if file.url and not file.sha256}
    assert bare == {"soccer_player", "yahoo_news"}  # no copy to take it from; loading compares shape and classes


def test_low_an_archive_in_rar_unpacks_up_to_the_limit(tmp_path, monkeypatch):
    import rarfile

    from setwise.data import remote_files

    class Archive:
        def __init__(self, _):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def infolist(self):
            return [type("Info", (), {"filename": "a.mat"})]

        def open(self, _):
            return io.BytesIO(bytes(3 * LIMIT))

    monkeypatch.setattr(rarfile, "RarFile", Archive)
    monkeypatch.setenv(VARIABLE, "2M")
    (tmp_path / "a.rar").write_bytes(b"rar")
    file = remote_files.RemoteFile("pll", "a.mat", "http://localhost/a.rar")
    with pytest.raises(DataError, match=r"a.rar: unpacks to more than 2,097,152 bytes"):
        remote_files._unpack(file, tmp_path / "a.rar", tmp_path, tmp_path / "a.mat")
