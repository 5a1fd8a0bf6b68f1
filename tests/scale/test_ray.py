"""The engine `ray`, on a real cluster of a head and two nodes: the answers of the local engine, whoever dies."""

import gc
import sys
import threading
import time
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import setwise
from setwise.cli import conformalize as conformalize_command
from setwise.cli import predict as predict_command
from setwise.data import read_sets
from setwise.scale import BatchPredictor, engines
from setwise.scale.ray_engine import RayEngine, connected, imported
from tests.scale.conftest import CLASSES, done, failed, rows, table, write

pytestmark = [
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed"),
    pytest.mark.xdist_group("ray"),  # one cluster for all
]
PARTS, STUCK = 200, 60
SMALL = 80 * 2**20  # bytes of shared memory of a node
FAST = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 300, "health_check_failure_threshold": 3}
PREDICT = ("predict", "m.cal", "--probabilities", "in", "--out")
OWN = ("conformalize", "--probabilities", "in", "--candidates", "answers", "--ignore", "id", "--verified", "truth")
RAY = ("--engine", "ray")


def test_an_address_at_which_nothing_listens_is_named(parts, capsys, monkeypatch):
    parts()
    line = failed(capsys, *PREDICT, "out", *RAY, "--address", "127.0.0.1:1")
    assert line.startswith("error: address: no Ray cluster answers at '127.0.0.1:1' (")
    assert line.endswith("start one there: ray start --head.")
    for name in ("ray", "ray.exceptions"):
        monkeypatch.setitem(sys.modules, name, None)
    line = failed(capsys, *PREDICT, "out", *RAY, "--force")
    assert line == "error: the engine ray needs Ray: pip install 'setwise[scale]'."


@pytest.mark.parametrize(
    "told",
    [
        [*PREDICT, "out.parquet"],
        ["triage", "m.cal", "--probabilities", "in", "--out", "a.csv", "--review", "b.csv"],
        ["evaluate", "in", "--candidates", "answers", "--column", "answers", "--report", "r.html"],
    ],
)
def test_what_is_not_done_in_parts_is_not_done_on_a_cluster(parts, capsys, told):
    parts()
    assert failed(capsys, *told, *RAY).startswith("error: --engine: ")


# -------------------------------------------------------------------- a cluster


@pytest.fixture(scope="module")
def cluster():
    """A head without cores, and a node with one."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's own, about itself
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray = imported()
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "object_store_memory": SMALL, "include_dashboard": False, "_system_config": FAST}
        made = Cluster(initialize_head=True, head_node_args=head)
        made.add_node(num_cpus=1, object_store_memory=SMALL, wait=False)
        connected(made.address)
        yield made
        ray.shutdown()
        made.shutdown()
        gc.collect()


@pytest.fixture
def many(tmp_path, monkeypatch):
    """A folder `in` with 200 parts of a table, and a calibration m.cal."""
    monkeypatch.chdir(tmp_path)
    P, y, candidates = rows(400, 0)
    setwise.conformalize(P, candidates, classes=CLASSES, random_state=0).save("m.cal")
    P, y, candidates = rows(PARTS * 20, 2)
    for i in range(PARTS):
        part = slice(20 * i, 20 * i + 20)
        write(table(P[part], y[part], candidates[part], 20 * i), tmp_path / "in" / f"{i:03d}.parquet")
    return P


@dataclass
class Stuck:
    """Makes workers, of which the first that gets a certain part leaves half a file and waits until it is killed."""

    make_worker: Any
    worker: Any = None

    def __call__(self):
        self.worker = self.make_worker()
        return self.work

    def work(self, part):
        told = Path("stuck")
        if f"{STUCK:03d}.parquet" in str(part) and not told.exists():
            import ray

            Path("out").mkdir(exist_ok=True)
            Path(f"out/.{STUCK:03d}.parquet.01234567.tmp").write_bytes(b"PAR1")
            told.with_suffix(".new").write_text(ray.get_runtime_context().get_node_id())
            told.with_suffix(".new").rename(told)
            threading.Event().wait()
        return self.worker(part)


@pytest.fixture
def dying(cluster, monkeypatch):
    """An engine on two nodes, of which one is killed in the middle of its work."""
    cluster.add_node(num_cpus=1, object_store_memory=SMALL)
    killed = []

    def kill():
        while not Path("stuck").exists():
            time.sleep(0.02)
        name = Path("stuck").read_text()
        node = next(node for node in cluster.list_all_nodes() if node.node_id == name)
        cluster.remove_node(node, allow_graceful=False)
        killed.append(name)

    def engine_of(*_):
        def run(parts, make_worker):
            killer = threading.Thread(target=kill, daemon=True)
            killer.start()
            yield from RayEngine(cluster.address)(parts, Stuck(make_worker))
            killer.join()

        return run

    for module in (predict_command, engines):
        monkeypatch.setattr(module, "engine_of", engine_of)
    return killed


def test_sets_are_all_there_once_when_a_node_dies(many, dying, capsys):
    found = done(capsys, *PREDICT, "out")
    assert len(dying) == 1
    assert found["rows"] == PARTS * 20
    assert sorted(path.name for path in Path("out").glob("*.parquet")) == sorted(
        path.name for path in Path("in").iterdir()
    )
    assert not list(Path("out").glob("*.tmp"))
    assert pq.read_table("out")["id"].to_pylist() == list(range(PARTS * 20))
    assert read_sets("out") == setwise.Calibration.load("m.cal").predict_set(many, 0.9)


def test_calibration_rows_are_all_there_once_when_a_node_dies(many, dying, capsys, monkeypatch):
    found = done(capsys, *OWN, "--memory-limit", "40KB", "--seed", 3, "--out", "ray.cal")
    assert len(dying) == 1
    monkeypatch.undo()
    local = done(capsys, *OWN, "--memory-limit", "40KB", "--seed", 3, "--out", "local.cal")
    assert found == local | {"out": "ray.cal"}
    assert Path("ray.cal").read_bytes() == Path("local.cal").read_bytes()
