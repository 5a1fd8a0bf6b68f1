"""The engine `ray`, on a real cluster of a head and two nodes: the answers of the local engine, whoever dies."""

import gc
import os
import signal
import sys
import tempfile
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
from setwise.cli import options
from setwise.errors import InputError
from setwise.streams import BatchPredictor, ray_engine
from setwise.streams.engines import run_local
from setwise.streams.ray_engine import RayEngine, connect, import_ray
from setwise.tables import read_sets
from tests.streams.conftest import CLASSES, done, failed, rows, table, write

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
PARTS, STUCK = 200, 60
SMALL = 80 * 2**20  # bytes of shared memory of a node
FAST = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 300, "health_check_failure_threshold": 3}
PREDICT = ("predict", "m.cal", "--probabilities", "in", "--out")
OWN = ("conformalize", "--probabilities", "in", "--candidates", "answers", "--ignore", "id")
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
        ["evaluate", "in", "--candidates", "answers", "--column", "answers", "--labels", "in"],
    ],
)
def test_what_is_not_done_in_parts_is_not_done_on_a_cluster(parts, capsys, told):
    parts()
    assert failed(capsys, *told, *RAY).startswith("error: --engine: ")


# -------------------------------------------------------------------- a cluster


@pytest.fixture(scope="module")
def cluster():
    """A head without cores, and a node with one."""
    short = tempfile.TemporaryDirectory(prefix="ray")  # names of sockets are short: pytest's folders are not
    with short as folder, pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's own, about itself
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_TMPDIR", folder)  # where the address of the newest cluster is noted
        Path(folder, "ray").mkdir()
        ray = import_ray()
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "include_dashboard": False, "temp_dir": folder, "_system_config": FAST}
        made = Cluster(initialize_head=True, head_node_args=head | {"object_store_memory": SMALL})
        made.add_node(num_cpus=1, object_store_memory=SMALL, wait=False)
        connect(made.address)
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
    """A worker whose first copy that gets a certain part waits to be killed."""

    worker: Any

    def __call__(self, part):
        told = Path("stuck")
        if f"{STUCK:03d}.parquet" in str(part) and not told.exists():
            import ray

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

    def engine_of(name, *_):
        def run(parts, worker):
            killer = threading.Thread(target=kill, daemon=True)
            killer.start()
            yield from RayEngine(cluster.address)(parts, Stuck(worker))
            killer.join()

        return run if name == "ray" else run_local

    monkeypatch.setattr(options, "engine_of", engine_of)
    return killed


def test_sets_are_all_there_once_when_a_node_dies(many, dying, capsys):
    found = done(capsys, *PREDICT, "out", *RAY)
    assert len(dying) == 1
    assert found["rows"] == PARTS * 20
    assert sorted(path.name for path in Path("out").glob("*.parquet")) == [f"{i:03d}.parquet" for i in range(PARTS)]
    assert pq.read_table("out")["id"].to_pylist() == list(range(PARTS * 20))
    assert read_sets("out") == setwise.Calibration.load("m.cal").predict_set(many, 0.9)
    assert done(capsys, *PREDICT, "out", "--resume")["files_kept"] == PARTS


def test_calibration_rows_are_all_there_once_when_a_node_dies(many, dying, capsys):
    asked = (*OWN, "--ignore", "truth", "--memory-limit", "40KB", "--seed", 3)  # of a sample each part has a share
    found = done(capsys, *asked, "--out", "ray.cal", *RAY)
    assert len(dying) == 1
    local = done(capsys, *asked, "--out", "local.cal")
    assert "random sample of 512 of the 4,000 rows" in local["guarantee"]["text"]
    assert found == local | {"out": "ray.cal"}
    assert Path("ray.cal").read_bytes() == Path("local.cal").read_bytes()


# -------------------------------------------------------------------- the same answers


def test_what_is_known_of_rows_from_another_table_goes_with_their_part(cluster, parts, capsys):
    P, y, candidates = parts()
    write(table(P, y, candidates)[::-1], Path("labels.parquet"))
    for i in range(3):
        path = Path(f"in/{i}.parquet")
        pq.write_table(pq.read_table(path).drop_columns(["truth", "answers"]), path)
    pq.write_table(pq.read_table("in/1.parquet")[:0], "in/0a.parquet")  # a part without rows
    asked = ["conformalize", "--probabilities", "in", "--labels", "labels.parquet", "--key", "id"]
    asked += ["--candidates", "answers", "--verified", "truth", "--by", "predicted", "--conformity-score", "aps"]
    found = done(capsys, *asked, "--out", "ray.cal", *RAY)
    assert found == done(capsys, *asked, "--out", "local.cal") | {"out": "ray.cal"}
    assert Path("ray.cal").read_bytes() == Path("local.cal").read_bytes()


def test_evaluation_and_triage_are_those_of_this_process(cluster, parts, capsys):
    parts()
    done(capsys, *PREDICT, "out")
    asked = ("evaluate", "out", "--truth", "truth", "--candidates", "answers", "--by", "truth")
    assert done(capsys, *asked, *RAY) == done(capsys, *asked)
    asked = ("triage", "m.cal", "--probabilities", "in", "--max-error", 0.3)
    one = done(capsys, *asked, "--out", "yes", "--review", "no")
    two = done(capsys, *asked, "--out", "yes2", "--review", "no2", *RAY)
    assert two == one | {"out": "yes2", "review_out": "no2"}
    assert 0 < one["accepted"] < 300
    for folder in ("yes", "no"):
        assert pq.read_table(folder).equals(pq.read_table(f"{folder}2"))


def test_a_bad_row_is_named_as_by_this_process(cluster, parts, capsys):
    P, y, candidates = parts()
    for i in (1, 2):
        P[100 * i + 40] = np.nan
        part = slice(100 * i, 100 * i + 100)
        write(table(P[part], y[part], candidates[part]), Path(f"in/{i}.parquet"))
    triage = ("triage", "m.cal", "--probabilities", "in", "--out", "yes", "--review", "no")
    for told in ((*PREDICT, "out"), (*OWN, "--verified", "truth", "--out", "n.cal"), triage):
        line = failed(capsys, *told, *RAY, "--force")
        assert line == failed(capsys, *told, "--force")
        assert "in/1.parquet" in line
        assert "row 40" in line
    assert len(read_sets("out/0.parquet")) == 100


def warned(part):
    warnings.warn(f"part {part}", stacklevel=1)
    return part


def test_what_workers_warn_of_is_warned_of_here(cluster):
    with pytest.warns(UserWarning, match="part") as said:
        assert list(RayEngine()([1, 2], warned)) == [1, 2]
    assert [str(one.message) for one in said] == ["part 1", "part 2"]


def faulty(part):
    raise KeyError(part)


def test_a_fault_of_ours_arises_here_with_where_it_arose_there(cluster):
    with pytest.raises(KeyError, match="'b'") as told:
        list(RayEngine()("b", faulty))
    assert "in faulty" in str(told.value.__cause__)


def died(part):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_part_that_kills_every_process_is_named(cluster, monkeypatch):
    monkeypatch.setattr(ray_engine, "RETRIES", 0)
    with pytest.raises(ChildProcessError, match=r"^a.parquet: its process died .* tried 1 times"):
        list(RayEngine()(["a.parquet"], died))


def test_a_gpu_that_is_not_there_is_not_waited_for(cluster):
    with pytest.raises(InputError, match="the cluster has no GPU; use device='cpu'"):
        list(RayEngine(device="cuda")([1], warned))


def test_one_callable_serves_a_loop_ray_and_spark(cluster, parts):
    import ray

    P, y, candidates = parts()
    predictor = BatchPredictor("m.cal", 0.8)
    whole = table(P, y, candidates)
    made = predictor(whole)
    loop = [predictor(batch) for i in range(3) for batch in pq.ParquetFile(f"in/{i}.parquet").iter_batches(33)]
    assert pa.concat_tables(loop).equals(made)

    schema = made.schema.set(3, pa.field("labels", pa.list_(pa.string())))  # Spark's lists

    def in_arrow(batches):  # as Spark calls it: an iterator of batches in, one out
        return (part for batch in batches for part in predictor(batch).cast(schema).to_batches())

    spark = pa.Table.from_batches(in_arrow(iter(whole.to_batches(max_chunksize=70))))
    assert spark.cast(made.schema).equals(made)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's own
        ray.data.DataContext.get_current().enable_progress_bars = False
        absolute = BatchPredictor(Path("m.cal").absolute(), 0.8)
        data = ray.data.from_arrow(whole)
        rows_of_ray = data.map_batches(absolute, batch_format="pyarrow", batch_size=50).take_all()
    assert sorted(rows_of_ray, key=lambda row: row["id"]) == made.to_pylist()
