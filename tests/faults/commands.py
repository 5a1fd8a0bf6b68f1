"""The commands that write, on small files: what each is given, and what it leaves when nothing disturbs it."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from sklearn.linear_model import LogisticRegression
from typer.main import get_command

from setwise import ConformalClassifier, LabelSets, cli, conformalize, datasets, report, tables
from setwise.cli.app import app
from setwise.datasets.registry import REGISTRY, Entry
from setwise.datasets.remote_files import RemoteFile
from setwise.estimators.model_directory import save_model

NAMES = ["wren", "owl", "ant", "cat"]
FEATURES = ["w", "x", "y", "z"]
ROWS, PARTS, CHECKED = 240, 3, 150
_OTHERS = ("skops.io", "jinja2", "markdown_it", "pooch", "requests", "typer._adapters", "pyarrow.json")


def _load_all() -> None:
    """Imports once, for all processes that are forked from this one, what each would import by itself."""
    for package in (cli, datasets, tables, report):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    for name in _OTHERS:
        with contextlib.suppress(ModuleNotFoundError):
            import_module(name)
    dict(get_command(app).commands)  # each is made when it is looked up


_load_all()


@dataclass(frozen=True)
class Command:
    """What is called in a folder, and what it writes there, of which an old version may lie there already."""

    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    old: bool = True


def _command(line: str, *outputs: str, old: bool = True) -> Command:
    return Command(tuple(line.split()), outputs, old)


COMMANDS = {
    "fit": _command(
        "fit rows.csv --candidates answers --ignore id --ignore truth --learner em --seed 1 --out model --force -q",
        "model",
    ),
    "predict": _command("predict model rows.parquet --out sets.parquet --force -q", "sets.parquet"),
    "predict to text": _command("predict model rows.csv --out sets.csv --force -q", "sets.csv"),
    "conformalize": _command(
        "conformalize --probabilities p.csv --labels rows.csv --candidates answers --key id --out c.cal --force -q",
        "c.cal",
    ),
    "triage": _command(
        "triage v.cal --probabilities p.csv --out accepted.csv --review review.json --force -q",
        *("accepted.csv", "review.json"),
    ),
    "suspects": _command(
        "suspects --probabilities given.csv --verified truth --out look.csv --force -q",
        "look.csv",
    ),
    "estimate": _command(
        "estimate given.csv --candidates label --verified truth --out figures.csv --force -q",
        "figures.csv",
    ),
    "report": _command("report model rows.csv --truth truth --out report.html --force -q", "report.html"),
    "fetch": _command("datasets fetch tiny -q", "cache", old=False),
    "streams": _command("predict model parts --out sets --resume -q", "sets", old=False),
    "triage streams": _command(
        "triage v.cal --probabilities p-parts --out accepted --review review --resume -q",
        *("accepted", "review"),
        old=False,
    ),
}


def write_inputs(folder: Path) -> None:
    """Tables, probabilities, a model and calibrations."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, ROWS)
    X = np.round(2.5 * np.eye(4)[y] + rng.normal(size=(ROWS, 4)), 4)
    mask = (np.eye(4)[y] + (rng.random((ROWS, 4)) < 0.1)) > 0
    sets, truth = LabelSets.from_mask(mask, NAMES), [NAMES[k] for k in y]
    P = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    ids = {"id": [f"r{i}" for i in range(ROWS)]}
    features = dict(zip(FEATURES, X.T, strict=True))
    texts = ["|".join(row) for row in sets.to_lists()]
    rows = pa.table({**ids, **features, "answers": texts, "truth": truth})
    pa.csv.write_csv(rows, folder / "rows.csv")
    pq.write_table(rows, folder / "rows.parquet", row_group_size=60)
    probabilities = pa.table({**ids, **{f"p:{n}": P[:, k] for k, n in enumerate(NAMES)}})
    pa.csv.write_csv(probabilities, folder / "p.csv")
    some = [label if row < CHECKED else "" for row, label in enumerate(truth)]
    given = probabilities.append_column("label", [truth[::-1]]).append_column("truth", [some])
    pa.csv.write_csv(given, folder / "given.csv")
    backwards = probabilities.take(np.arange(ROWS)[::-1])  # folders take no rows as they were calibrated on
    for table, parts in ((rows, folder / "parts"), (backwards, folder / "p-parts")):
        parts.mkdir()
        for number, first in enumerate(range(0, ROWS, ROWS // PARTS)):
            pq.write_table(table.slice(first, ROWS // PARTS), parts / f"{number}.parquet")
    made = ConformalClassifier(LogisticRegression(), random_state=0).fit(X, sets)
    save_model(made, folder / "model", feature_names=FEATURES)
    verified = np.where(np.arange(ROWS) < CHECKED, np.array(truth, dtype=object), None)
    conformalize(P, sets, verified=verified, random_state=0).save(folder / "v.cal")


def write_old(folder: Path, command: Command) -> None:
    """Something under the names that a command will write; the model is there already."""
    for name in command.outputs if command.old else ():
        if not (folder / name).exists():
            (folder / name).write_text("old\n")


@contextlib.contextmanager
def surroundings() -> Iterator[None]:
    """A benchmark set that a server on this machine has."""
    server = http.server.HTTPServer(("127.0.0.1", 0), _Handler)
    digest = hashlib.sha256(_Handler.content).hexdigest()
    file = RemoteFile("sub", "tiny-idx1-ubyte", f"http://127.0.0.1:{server.server_port}/tiny", digest)
    REGISTRY["tiny"] = Entry((file,), 1024, 1, 1, None, (), "", "", None)
    if (process := os.fork()) == 0:  # a process, not a thread: others are forked from this one
        server.serve_forever()
    server.socket.close()
    try:
        yield
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


class _Handler(http.server.BaseHTTPRequestHandler):
    content = bytes([0, 0, 8, 1, 0, 0, 4, 0]) + bytes(1024)

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()
        self.wfile.write(self.content)

    def log_message(self, *_: Any) -> None:
        pass
