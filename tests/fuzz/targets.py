"""Every reader and loader with seeds that our own writers made, and what must hold of a file that is accepted.

A target reads one file. What it accepts is written again and read back, and must be the same.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import io
import json
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from setwise import Calibration, ConformalClassifier, LabelSets, Votes, conformalize
from setwise.calibration.calibration_file import FORMAT, VERSION
from setwise.datasets.idx import decompress, read_idx
from setwise.drift.feature_summary import FORMAT as SUMMARY
from setwise.drift.feature_summary import VERSION as SUMMARY_VERSION
from setwise.drift.feature_summary import FeatureSummary
from setwise.errors import DataError
from setwise.estimators.model_directory import load_calibrations
from setwise.estimators.used_rows import UsedRows, read_probe
from setwise.labels.trees import leaves_below
from setwise.learn import PartialLabelClassifier
from setwise.report.html_pages import embedded_picture
from setwise.storage.container import read_container
from setwise.storage.stored_arrays import read_arrays
from setwise.streams.comparison_notes import read_note
from setwise.tables import (
    from_annotators_long,
    from_answers_jsonl,
    from_label_studio,
    merge_labels,
    read_batches,
    read_sets,
    read_table,
    read_tree,
    read_votes,
    write_sets,
    write_votes,
)
from setwise.tables.table_files import table_files
from setwise.tables.verified_files import read_verified
from tests.fuzz.mutation import Change
from tests.fuzz.repair import listed_again, sealed
from tests.fuzz.structure import changed_arrays, changed_json, changed_members

NAMES = ["cat", "dog", "owl"]
ODD = ["a|b", " lead", "C:\\new", "7", "ü→猫", "", '"', "nan"]


@dataclass(frozen=True)
class Target:
    """A reader, the names of the files it is given, seeds, and words that such files are made of.

    `repair` makes digests right again that a mutation has broken: what comes after them is to be reached.
    """

    read: Callable[[Path], Any]
    name: str
    seeds: Callable[[], list[bytes]]
    repair: Callable[[bytes], bytes] = bytes
    words: tuple[bytes, ...] = ()

    @property
    def change(self) -> Change | None:
        """How such files are changed in what they mean."""
        by_suffix = {".json": changed_json, ".jsonl": changed_json, ".npz": changed_arrays, ".cal": changed_arrays}
        return (by_suffix | {".skops": changed_members}).get(Path(self.name).suffix)


def corpus(name: str) -> list[Path]:
    """Inputs of a target that reached new code, and what was found by them once: a few small files."""
    return sorted((Path(__file__).parent / "corpus" / name.replace(" ", "-")).glob("*"))


# -------------------------------------------------------------------------------------------------- material


def sample(n: int = 24) -> tuple[Any, Any, LabelSets, Any]:
    """Features, probabilities, candidates and true labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    X = np.round(2 * np.eye(3)[y] + rng.normal(size=(n, 3)), 2)
    mask = (np.eye(3)[y] + (rng.random((n, 3)) < 0.2)) > 0
    P = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    return X, P, LabelSets.from_mask(mask, NAMES), y


def made(name: str, write: Callable[[Path], object]) -> bytes:
    """The content of a file that a writer makes under a name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        write(path)
        return path.read_bytes()


def columns(n: int = 6) -> dict[str, list[Any]]:
    """A table with lists."""
    labels = (NAMES * n)[:n]
    return {
        "id": [f"r{i}" for i in range(n)],
        "x": [0.5 * i for i in range(n)],
        "w": list(range(n)),
        "s": [[label, "b"][: 1 + i % 2] for i, label in enumerate(labels)],
        "y": labels,
    }


def objects() -> list[dict[str, Any]]:
    return pa.table(columns()).to_pylist()


def delimited(delimiter: str) -> bytes:
    text = io.StringIO()
    rows = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    rows.writerow(columns())
    rows.writerows([row[name] if name != "s" else "|".join(row["s"]) for name in row] for row in objects())
    return text.getvalue().encode()


def arrow_file(table: Any, compression: str | None = None) -> bytes:
    options = pa.ipc.IpcWriteOptions(compression=compression)
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema, options=options) as file:
        file.write_table(table)
    return sink.getvalue()


def parquet_file(table: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def npz_file(**arrays: Any) -> bytes:
    sink = io.BytesIO()
    np.savez(sink, **arrays)
    return sink.getvalue()


def sets_of(suffix: str) -> list[bytes]:
    """Files of label sets of every kind of vocabulary."""
    kept = [
        LabelSets.from_lists([["cat", "dog"], [], ["owl"]], classes=NAMES),
        LabelSets.from_lists([[1, 2], [3]], classes=[1, 2, 3, 4]),
        LabelSets.from_lists([[*ODD[:4]], [ODD[4], ODD[6]], [ODD[7]]]),
        LabelSets.from_lists([["a", 1], [1.5]]),
        LabelSets.from_lists([[True, False], [True]]),
    ]
    plain = [made(f"s{suffix}", lambda path, sets=sets: write_sets(path, sets)) for sets in kept]
    ids = {"id": ["a", "b", "c"]}
    return [*plain, made(f"s{suffix}", lambda path: write_sets(path, kept[0], p_values=np.eye(3), carry=ids))]


def votes() -> Votes:
    answers = [["cat", "cat", "dog"], ["dog", None, "owl"], [None, None, None], ["owl", "owl", "owl"]]
    return Votes.from_matrix(answers, annotators=["ann", "bob", "eve"], classes=NAMES)


@cache
def calibrations() -> list[bytes]:
    """One of each kind of evidence."""
    _, P, sets, y = sample()
    verified = np.where(np.arange(len(y)) < 16, np.array(NAMES, dtype=object)[y], None)
    answers = [[NAMES[k], NAMES[k], NAMES[(k + i) % 3]] for i, k in enumerate(y)]
    voted = Votes.from_matrix(answers, annotators=["ann", "bob", "eve"], classes=NAMES)
    kinds: list[dict[str, Any]] = [
        {"candidates": sets},
        {"candidates": sets, "strategy": "mean", "by": y % 2},
        {"candidates": sets, "strategy": "rectified", "verified": verified},
        {"candidates": sets, "strategy": "corrected", "assume": "uniform"},
        {"candidates": voted, "strategy": "crowd", "assume": "independent", "verified": verified},
        {"candidates": voted, "strategy": "votes"},
    ]
    return [made("c.cal", conformalize(P, **kind).save) for kind in kinds]


EXACT: dict[str, Callable[[], Any]] = {  # learn from exact labels
    "forest": lambda: RandomForestClassifier(2, max_depth=3, random_state=0),
    "boosting": lambda: HistGradientBoostingClassifier(
        max_iter=2, min_samples_leaf=2, max_leaf_nodes=4, categorical_features=[0], random_state=0
    ),
    "encoder": lambda: make_pipeline(
        OneHotEncoder(max_categories=4, drop="first", handle_unknown="infrequent_if_exist"), LogisticRegression()
    ),
}
ESTIMATORS: dict[str, Callable[[], Any]] = EXACT | {
    "skops": LogisticRegression,
    "network": lambda: PartialLabelClassifier("mlp", hidden_sizes=(2,), epochs=1),
}


@cache
def model(kind: str) -> dict[str, bytes]:
    """The files of a model directory."""
    X, _, sets, y = sample(40)
    with warnings.catch_warnings(action="ignore"):  # of encoders, about categories that are new
        trained = ConformalClassifier(ESTIMATORS[kind](), random_state=0).fit(X, y if kind in EXACT else sets)
    with tempfile.TemporaryDirectory() as folder:
        trained.save(Path(folder, "model"))
        return {part.name: part.read_bytes() for part in Path(folder, "model").iterdir()}


def part(kind: str, start: str) -> bytes:
    """One file of a model directory by how its name starts."""
    return next(content for name, content in model(kind).items() if name.startswith(start))


def tasks(answers: Sequence[Any] = ("cat", ["a", "b"], "dog")) -> bytes:
    """An export of Label Studio's, with a choice, a taxonomy and a ground truth."""
    values = [{"choices": [one]} if isinstance(one, str) else {"taxonomy": [one, one[:1]]} for one in answers]
    listed = [
        {
            "id": i,
            "data": {"id": f"r{i}", "text": "t"},
            "annotations": [
                {
                    "completed_by": {"id": 1},
                    "ground_truth": i == 2,
                    "was_cancelled": False,
                    "result": [{"from_name": "c", "to_name": "t", "type": "choices", "value": value}],
                }
            ],
        }
        for i, value in enumerate(values)
    ]
    return json.dumps(listed).encode()


_ANNOTATIONS = [
    {"text": "t", "id": i // 2, "c": label, "annotator": i, "annotation_id": i, "lead_time": 1.5}
    for i, label in enumerate(["cat", "owl", {"choices": ["cat", "dog"]}, [{"taxonomy": [["a", "b"], ["a"]]}]])
]
_ANNOTATED = b"""annotation_id,annotator,c,id,lead_time,text
1,4,cat,1,2.5,t
2,5,"{""choices"": [""cat"", ""owl""]}",1,2.5,t
,,,2,,u
"""
_TOP = [{"token": "cat", "logprob": -0.1}, {"token": "owl", "logprob": -2.5}]
_CHOICE = {"message": {"content": "Label: cat"}, "logprobs": {"content": [{"token": "cat", "top_logprobs": _TOP}]}}
_BATCH = b"\n".join(
    json.dumps(line).encode()
    for line in (
        {"custom_id": "a", "response": {"body": {"choices": [_CHOICE, {"message": {"content": None}}]}}},
        {"custom_id": "b", "response": {"body": {"output": [{"content": [{"text": "owl"}]}]}}},
        {"custom_id": "c", "result": {"type": "succeeded", "message": {"content": [{"text": "cat or owl"}]}}},
    )
)


# --------------------------------------------------------------------------------------------------- oracles


def same_sets(before: LabelSets, after: LabelSets) -> None:
    assert before.to_lists() == after.to_lists()
    assert list(map(type, before.classes.tolist())) == list(map(type, after.classes.tolist()))


def sets_round(sets: LabelSets, suffix: str, path: Path) -> None:
    """Sets come back from a file as they were."""
    again = path.with_name(f"again{suffix}")
    try:
        write_sets(again, sets)
    except ValueError as error:  # what no file can hold is refused by name
        assert "sets" in str(error) or "again" in str(error), error  # noqa: PT017
        return
    classes = sets.classes.tolist() if suffix in {".csv", ".tsv", ".jsonl"} else None
    same_sets(sets, read_sets(again, classes=classes))


def table(path: Path) -> None:
    """Whole and in batches a table has the same rows; its candidates come back from files."""
    options: dict[str, Any] = {"candidates": "s", "truth": "y", "carry": ["id"], "missing": "empty"}
    whole = read_table(path, **options)
    assert len(whole) == len(whole.candidates) == len(whole.truth) == len(whole.carried["id"])
    assert np.isfinite(whole.X).all()
    try:
        batches = list(read_batches(path, batch_rows=4, **options))
    except DataError as error:  # types come from the first batch there
        assert str(path) in str(error)  # noqa: PT017
    else:
        assert sum(map(len, batches)) == len(whole)
        rows = [{*row} for batch in batches for row in batch.candidates.to_lists()]
        assert rows == [{*row} for row in whole.candidates.to_lists()]
    sets_round(whole.candidates, ".parquet", path)
    right = read_table(path, **options, several=True).truth
    assert right is None or all(row is None or isinstance(row, tuple) for row in right)


def arrays(path: Path) -> None:
    with path.open("rb") as file:
        found = read_arrays(file, path)
    assert all(array.dtype.kind != "O" for array in found.values())


def images(path: Path) -> None:
    found = read_idx(decompress(path), path)
    kind = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}[found.dtype.str[1:]]
    head = bytes([0, 0, kind, found.ndim]) + b"".join(size.to_bytes(4, "big") for size in found.shape)
    content = path.read_bytes()
    plain = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    assert head + found.astype(found.dtype.newbyteorder(">")).tobytes() == plain


def sets(path: Path) -> None:
    found = read_sets(path)
    sets_round(found, path.suffix, path)
    sets_round(found, ".parquet", path)


def same_votes(before: Votes, path: Path) -> None:
    """Votes come back from a file, where a file can hold them."""
    again = path.with_name("again.parquet")
    try:
        write_votes(again, before)
    except ValueError as error:  # columns of mixed types, or two rows of one name
        assert "has one type" in str(error) or "items" in str(error), error  # noqa: PT017
        return
    after = read_votes(again, classes=before.classes)
    assert after.counts.tolist() == before.counts.tolist()
    assert after.sizes.tolist() == before.sizes.tolist()


def voted(path: Path) -> None:
    same_votes(read_votes(path), path)


def long_answers(path: Path) -> None:
    found = from_annotators_long(path, missing="empty")
    assert len(found.candidates) == len(found.ids) == len(found.votes)
    same_votes(found.votes, path)


def checks(path: Path) -> None:
    ids = [f"r{i}" for i in range(6)]
    found, _ = read_verified(path, ids, NAMES, key="id")
    assert {label for label in found if label is not None} <= set(NAMES)
    several, _ = read_verified(path, ids, NAMES, key="id", several=True)
    given = [row if isinstance(row, tuple) else (row,) for row in several if row is not None]  # exports have one
    assert {label for row in given for label in row} <= set(NAMES)


def exported(path: Path) -> None:
    found = from_label_studio(path, missing="empty")
    assert len(found.candidates) == len(found.ids) == len(found.votes)
    same_votes(found.votes, path)


def batch(path: Path) -> None:
    found = from_answers_jsonl(path, classes=NAMES, missing="empty")
    assert len(found.candidates) == len(found.ids) == len(found.votes)


def final(path: Path) -> None:
    accepted = {"id": ["a", "b"], "label": ["cat", "owl"], "confidence": [0.9, 0.8]}
    found = merge_labels([(accepted, None), (path, None)], key="id")
    assert len({*map(len, found.values())}) == 1
    assert {*found["source"].to_pylist()} <= {"accepted", "verified", "reviewed"}


def answers(path: Path) -> None:
    found = from_answers_jsonl(path, missing="empty")
    assert len(found.candidates) == len(found.ids) == len(found.votes)


def tree(path: Path) -> None:
    pairs = read_tree(path)
    again = path.with_name("again.json")
    again.write_text(json.dumps(pairs))
    assert leaves_below(read_tree(again)) == leaves_below(pairs)


def calibration(path: Path) -> None:
    """A calibration that loads gives sets and a guarantee, and comes back from its file."""
    found = Calibration.load(path)
    again = path.with_name("again.cal")
    found.save(again)
    first, second = (read_container(one, FORMAT, VERSION) for one in (path, again))
    assert {name: value.tobytes() for name, value in first[1].items()} == {
        name: value.tobytes() for name, value in second[1].items()
    }
    k = len(found.classes)
    if k > 64:
        return
    rows = np.full((2, k), 1 / k)
    by = None if found.categories is None else [found.categories.classes.tolist()[0]] * 2
    asked = {} if found.setting.by != "given" or by is None else {"by": by}
    try:
        with np.errstate(all="ignore"):
            assert len(found.predict_set(rows, 0.8, **asked)) == 2
            str(found.guarantee(0.8))
    except ValueError as error:
        raise DataError(f"{path}: {error}") from None  # a calibration that answers nothing says why


def summary(path: Path) -> None:
    found = FeatureSummary.read(path)
    again = path.with_name("again.npz")
    found.write(again)
    first, second = (read_container(one, SUMMARY, SUMMARY_VERSION)[1] for one in (path, again))
    for name, value in second.items():
        assert np.array_equal(first[name], value, equal_nan=value.dtype.kind == "f")


def used_rows(path: Path) -> None:
    found = UsedRows.read(path)
    again = path.with_name("again.npz")
    found.write(again)
    assert UsedRows.read(again).learned.tolist() == found.learned.tolist()


@cache
def _watched() -> Calibration:
    _, P, sets, _ = sample()
    return conformalize(P, sets)


def watched() -> list[bytes]:
    _, P, _, _ = sample()
    watching = _watched().monitor(random_state=0)
    first = made("m.npz", watching.save)
    watching.update(P)
    return [first, made("m.npz", watching.save)]


def monitor(path: Path) -> None:
    found = _watched().monitor(resume=path)
    again = path.with_name("again.npz")
    found.save(again)
    found.update(np.full((2, 3), 1 / 3))
    _watched().monitor(resume=again)


def head(path: Path) -> None:
    """A model whose `setwise.json` is this file."""
    folder = path.parent / "model"
    folder.mkdir(exist_ok=True)
    for name, content in model("skops").items():
        if name != "setwise.json" and not (folder / name).exists():
            (folder / name).write_bytes(content)
    (folder / "setwise.json").write_bytes(path.read_bytes())
    with _named(path, folder):
        load_calibrations(folder)
        ConformalClassifier.load(folder)


def part_of(kind: str, start: str) -> Callable[[Path], None]:
    """A model of which one part is this file, listed with its right size and digest."""

    def read(path: Path) -> None:
        folder = path.parent / "model"
        folder.mkdir(exist_ok=True)
        held = model(kind)
        name = next(name for name in held if name.startswith(start))
        content = path.read_bytes()
        for other, whole in held.items():
            if other not in {name, "setwise.json"} and not (folder / other).exists():
                (folder / other).write_bytes(whole)
        (folder / name).write_bytes(content)
        (folder / "setwise.json").write_bytes(listed_again(held["setwise.json"], name, content))
        with _named(path, folder):
            found = ConformalClassifier.load(folder)
        try:
            with np.errstate(all="ignore"):
                found.predict_set(sample(9)[0])
        except ValueError as error:
            raise DataError(f"{path}: {error}") from None  # a model that answers nothing says why

    return read


class _named:  # noqa: N801 - used as a context manager
    """An error that names the directory names the file."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path, self.folder = path, folder

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, ValueError) and str(self.folder) in str(error):
            raise DataError(f"{self.path}: {error}") from error


def probe(path: Path) -> None:
    rows, probabilities = read_probe(path)
    assert len(probabilities) == rows.shape[0]


def note(path: Path) -> None:
    sets = path.with_name(path.name.removesuffix(".differs.json"))
    found = read_note(table_files(sets))
    str(found)
    assert type(found).from_dict(json.loads(json.dumps(found.to_dict()))).to_dict() == found.to_dict()


def notes() -> list[bytes]:
    rng = np.random.default_rng(1)
    found = _watched().compare(rng.dirichlet(np.ones(3), 40))
    return [json.dumps(found.to_dict()).encode()]


def workbook() -> list[bytes]:
    from openpyxl import Workbook

    book = Workbook()
    for row in [list(columns()), *([*row.values()] for row in objects())]:
        book.active.append(["|".join(cell) if isinstance(cell, list) else cell for cell in row])
    return [made("t.xlsx", book.save)]


def pictures() -> list[bytes]:
    """A drawing and a photograph."""
    grey = Image.fromarray(np.arange(48, dtype=np.uint8).reshape(6, 8))
    return [made("p.png", grey.save), made("p.jpg", grey.convert("RGB").save)]


# --------------------------------------------------------------------------------------------------- targets


_TEXT = (
    b'"',
    b"|",
    b"\n",
    b"\\s",
    b"\\",
    b"nan",
    b"null",
    b"1e999",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\0",
    b"[",
)
_JSON = (b"{", b"}", b"[", b"]", b":", b",", b'"', b"null", b"true", b"1e400", b"-1", b"NaN", b'"\\ud800"', b"[[[[")
_LONG = b"task,worker,label\n1,ann,cat\n1,bob,dog\n2,ann,007\n2,bob,7\n"
_LINES = (
    b'{"id": 1, "answers": ["cat", "cat", "dog"]}\n{"id": 2, "probabilities": {"cat": 0.7, "owl": 0.3}}\n'
    b'{"id": "a", "answers": null}\n'
)
_CANDIDATE_ARRAYS = {"candidates_indptr": [0, 1, 3], "candidates_indices": [0, 1, 2]}


def _idx() -> list[bytes]:
    plain = bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3]) + bytes(6)
    wide = bytes([0, 0, 13, 1, 0, 0, 0, 2]) + bytes(8)
    return [plain, wide, gzip.compress(plain, mtime=0)]


TARGETS: dict[str, Target] = {
    "csv": Target(table, "t.csv", lambda: [delimited(","), delimited(";")], words=_TEXT),
    "tsv": Target(table, "t.tsv", lambda: [delimited("\t")], words=_TEXT),
    "jsonl": Target(
        table,
        "t.jsonl",
        lambda: ["".join(json.dumps(row) + "\n" for row in objects()).encode()],
        words=_JSON,
    ),
    "json": Target(table, "t.json", lambda: [json.dumps(objects()).encode()], words=_JSON),
    "parquet": Target(
        table,
        "t.parquet",
        lambda: [
            parquet_file(pa.table(columns())),
            parquet_file(pa.table(columns()), compression="none", use_dictionary=False, row_group_size=2),
        ],
    ),
    "arrow": Target(
        table, "t.arrow", lambda: [arrow_file(pa.table(columns())), arrow_file(pa.table(columns()), "lz4")]
    ),
    "npz": Target(
        arrays,
        "t.npz",
        lambda: [
            npz_file(X=np.zeros((2, 1)), mask=np.eye(2, dtype=bool), y=[0, 1], classes=["a", "b"]),
            npz_file(X=np.zeros((2, 1)), **_CANDIDATE_ARRAYS, y=[np.nan, 1.0], ids=["a", "b"]),
        ],
        sealed,
    ),
    "idx": Target(images, "t-idx3-ubyte", _idx),
    **{
        f"sets{suffix}": Target(sets, f"s{suffix}", lambda suffix=suffix: sets_of(suffix), words=words)
        for suffix, words in ((".csv", _TEXT), (".jsonl", _JSON), (".parquet", ()), (".arrow", ()))
    },
    "votes.csv": Target(voted, "v.csv", lambda: [made("v.csv", lambda p: write_votes(p, votes()))], words=_TEXT),
    "votes.parquet": Target(voted, "v.parquet", lambda: [made("v.parquet", lambda p: write_votes(p, votes()))]),
    "long answers": Target(long_answers, "v.csv", lambda: [_LONG], words=_TEXT),
    "checks": Target(
        checks, "c.csv", lambda: [b"id,verified,drawn\nr0,cat,true\nr1,,false\nr2,owl,true\n"], words=_TEXT
    ),
    "checked tasks": Target(checks, "c.json", lambda: [tasks(("cat", "owl", "dog"))], words=_JSON),
    "label studio": Target(exported, "e.json", lambda: [tasks()], words=_JSON),
    "label studio rows": Target(exported, "e.json", lambda: [json.dumps(_ANNOTATIONS).encode()], words=_JSON),
    "label studio table": Target(exported, "e.csv", lambda: [_ANNOTATED], words=_TEXT),
    "batch": Target(batch, "b.jsonl", lambda: [_BATCH], words=_JSON),
    "merged table": Target(final, "v.csv", lambda: [b"id,verified,drawn\nc,cat,true\nd,owl,true\n"], words=_TEXT),
    "merged tasks": Target(final, "c.json", lambda: [tasks(("cat", "owl"))], words=_JSON),
    "answer lines": Target(answers, "a.jsonl", lambda: [_LINES], words=_JSON),
    "picture": Target(embedded_picture, "p.png", pictures),
    "ontology": Target(
        tree, "t.json", lambda: [b'{"animal": {"bird": ["owl", "wren"]}}', b'[["a", "b"], ["b", "c"]]'], words=_JSON
    ),
    "ontology table": Target(tree, "t.csv", lambda: [b"parent,child\nanimal,bird\nbird,owl\n"], words=_TEXT),
    "calibration": Target(calibration, "c.cal", calibrations, sealed, _JSON),
    "feature summary": Target(summary, "f.npz", lambda: [part("skops", "feature-summary")], sealed, _JSON),
    "used rows": Target(used_rows, "u.npz", lambda: [part("skops", "used-rows")], sealed),
    "probe": Target(probe, "p.npz", lambda: [part("skops", "probe")], sealed, _JSON),
    "monitor": Target(monitor, "m.npz", watched, sealed, _JSON),
    "note": Target(note, "s.csv.differs.json", notes, words=_JSON),
    "model head": Target(head, "setwise.json", lambda: [model("skops")["setwise.json"]], words=_JSON),
    "model skops": Target(part_of("skops", "model"), "m.skops", lambda: [part("skops", "model")], sealed, _JSON),
    **{
        f"model {kind}": Target(
            part_of(kind, "model"), "m.skops", lambda kind=kind: [part(kind, "model")], sealed, _JSON
        )
        for kind in EXACT
    },
    "model network": Target(
        part_of("network", "model"), "m.safetensors", lambda: [part("network", "model")], words=_JSON
    ),
    "model calibration": Target(
        part_of("skops", "calibration"), "c.npz", lambda: [part("skops", "calibration")], sealed, _JSON
    ),
}
if importlib.util.find_spec("openpyxl"):
    TARGETS["xlsx"] = Target(table, "t.xlsx", workbook, sealed)
