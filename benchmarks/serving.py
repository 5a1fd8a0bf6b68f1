"""Serving and streams that last: what a request costs, whether memory grows, and whether nodes may die.

    python benchmarks/serving.py --part process --part server --keep
    python benchmarks/serving.py --part stream --minutes 60 --keep
    python benchmarks/serving.py --part nodes --keep

`process`: `ServedModel.predict`, which MLflow calls, beside `predict_proba` of the same scikit-learn model on the same rows, in
turns within one process: processor time, medians. `server`: MLflow's scoring app in uvicorn, one worker, with setwise and with
the scikit-learn model alone (`mlflow.sklearn`, `predict_proba`), one after the other: so many requests each of one row and of 100,
by four clients that keep their connections. Every answer is compared with that of this process. Memory is that of
the server after a tenth of the requests and after all. Both need an environment with MLflow:

    python -m venv serve && serve/bin/pip install -c constraints.txt -e ".[mlflow]" fastapi uvicorn

`stream`: `setwise predict` over a folder, and `BatchPredictor` over its batches, again and again in one process.
`nodes`: `setwise predict --engine ray` on a cluster of real `ray start` processes, one node of which is killed (SIGKILL) and replaced
whenever so many parts more are finished; its tables are compared with those of this process byte for byte,
and what its notes count.

`--keep` writes benchmarks/results/serving.json, other parts of which stay. Ratios and growth hold on a busy machine too, seconds do not.
"""

from __future__ import annotations

import argparse
import filecmp
import http.client
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from streams import write_tables
from summary import RESULTS, load, machine, show

import setwise

LIMIT = 2.0
"""How many times the model's own `predict_proba` a served row may cost, where columns have names."""
CLIENTS, BODIES = 4, 40


def rss_mb(pid="self"):
    """The memory that a process holds."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


# -------------------------------------------------------------------- one process


def fitted(estimator, *, named, score="lac"):
    """A classifier of three classes by ten features."""
    import pandas as pd

    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 3_000)
    X = np.eye(3, 10)[y] + rng.normal(size=(3_000, 10))
    rows = pd.DataFrame(X, columns=[f"x{k}" for k in range(10)]) if named else X
    model = setwise.ConformalClassifier(estimator, conformity_score=score, random_state=0)
    return model.fit(rows, np.array(["ant", "owl", "wren"])[y]), rows


def in_turns(works, times):
    """The median processor time of each, in microseconds."""
    seconds = [[] for _ in works]
    for _ in range(times + 10):
        for held, work in zip(seconds, works, strict=True):
            began = time.thread_time()
            work()
            held.append(time.thread_time() - began)
    return [float(np.median(held[10:])) * 1e6 for held in seconds]


def measure_process(times):
    """Ratios for several models and numbers of rows."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import setwise.mlflow as flavor

    models = {
        "logistic": LogisticRegression(),
        "scaled logistic": make_pipeline(StandardScaler(), LogisticRegression()),
        "forest of 100 trees": RandomForestClassifier(100, random_state=0, n_jobs=1),
    }
    found = []
    for name, estimator in models.items():
        for named, score in ((True, "lac"), (True, "aps"), (False, "lac")):
            model, X = fitted(estimator, named=named, score=score)
            served, own = flavor.ServedClassifier(model), model.estimator_
            for n in (1, 100, 1_000):
                rows, more = X[:n], {"p_values": True}
                works = [
                    lambda own=own, rows=rows: own.predict_proba(rows),
                    lambda served=served, rows=rows: served.predict(rows),
                    lambda served=served, rows=rows, more=more: served.predict(rows, more),
                ]
                alone, sets, p = in_turns(works, max(20, times // (20 if n > 1 or "forest" in name else 1)))
                case = {"model": name, "columns": "named" if named else "array", "score": score, "rows": n}
                ratios = {"ratio": round(sets / alone, 2), "ratio_with_p_values": round(p / alone, 2)}
                found.append(case | {"predict_proba_us": round(alone), "served_us": round(sets)} | ratios)
    return {"limit": LIMIT, "cases": found}


# -------------------------------------------------------------------- a server


def free_port():
    """A port of this machine that nobody listens at."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """MLflow's scoring app with a model, on this machine alone."""

    def __init__(self, folder):
        from mlflow.pyfunc import scoring_server

        self.port = free_port()
        command, environment = scoring_server.get_cmd(str(folder), port=self.port, host="127.0.0.1", nworkers=1)
        called = [sys.executable, "-m", *shlex.split(command), "--log-level", "warning"]
        self.process = subprocess.Popen(called, env=environment, stdout=subprocess.DEVNULL)
        while not self.answers():
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with status {self.process.returncode}")
            time.sleep(0.2)

    def answers(self):
        """Whether the server is ready."""
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port)
            connection.request("GET", "/ping")
            return connection.getresponse().status == 200
        except OSError:
            return False

    def ask(self, bodies, expected, count):
        """Sends so many requests, one client's share after the other within its thread: seconds of each, and wrong answers."""

        def client(first):
            connection, seconds, wrong = http.client.HTTPConnection("127.0.0.1", self.port), [], 0
            for number in range(first, count, CLIENTS):
                began = time.perf_counter()
                body = bodies[number % len(bodies)]
                connection.request("POST", "/invocations", body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                content = answer.read()
                seconds.append(time.perf_counter() - began)
                wrong += answer.status != 200 or json.loads(content) != expected[number % len(bodies)]
            return seconds, wrong

        with ThreadPoolExecutor(CLIENTS) as pool:
            parts, wrong = zip(*pool.map(client, range(CLIENTS)), strict=True)
        return np.concatenate(parts), sum(wrong)

    def end(self):
        """Ends the server."""
        self.process.terminate()
        self.process.wait()


def measure_server(requests):
    """Requests a second, how long they take and what the server holds, with setwise and without."""
    from io import StringIO

    import mlflow
    from mlflow.models import infer_signature
    from mlflow.pyfunc.scoring_server import predictions_to_json
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import setwise.mlflow as flavor

    model, X = fitted(make_pipeline(StandardScaler(), LogisticRegression()), named=True)
    found = {"requests": requests, "clients": CLIENTS, "cases": []}
    with tempfile.TemporaryDirectory() as name:
        folders = {"setwise": Path(name, "setwise"), "scikit-learn alone": Path(name, "alone")}
        flavor.save_model(model, folders["setwise"], input_example=X[:3])
        about = {"signature": infer_signature(X[:3]), "pip_requirements": ["scikit-learn"]}
        trusted = {"serialization_format": "cloudpickle", "pyfunc_predict_fn": "predict_proba"}
        mlflow.sklearn.save_model(model.estimator_, folders["scikit-learn alone"], **about, **trusted)
        for what, folder in folders.items():
            here, server = mlflow.pyfunc.load_model(str(folder)), Server(folder)
            try:
                for n in (1, 100):
                    tables = [X[start : start + n] for start in range(0, BODIES * n, n)]
                    tables = [table if len(table) == n else X[:n] for table in tables]
                    asked = [{"dataframe_split": one.to_dict(orient="split", index=False)} for one in tables]
                    expected = []
                    for table in tables:
                        predictions_to_json(here.predict(table), text := StringIO())
                        expected.append(json.loads(text.getvalue()))
                    bodies = [json.dumps(one).encode() for one in asked]
                    server.ask(bodies, expected, 50)  # what is loaded at the first requests is loaded
                    began, (early, bad) = time.perf_counter(), server.ask(bodies, expected, requests // 10)
                    held = rss_mb(server.process.pid)
                    late, worse = server.ask(bodies, expected, requests - requests // 10)
                    wall, seconds = time.perf_counter() - began, np.concatenate([early, late])
                    p50, p99 = np.quantile(seconds, [0.5, 0.99]) * 1e3
                    case = {"server": what, "rows": n, "per_second": round(requests / wall), "wrong": bad + worse}
                    case |= {"p50_ms": round(float(p50), 1), "p99_ms": round(float(p99), 1)}
                    memory = {"mb_after_a_tenth": held, "mb_at_the_end": rss_mb(server.process.pid)}
                    found["cases"].append(case | memory)
            finally:
                server.end()
    return found


# -------------------------------------------------------------------- a long stream


def measure_stream(minutes, rows=2_000_000, part=125_000):
    """The memory of one process while it predicts, again and again."""
    import pyarrow.parquet as pq

    from setwise.cli.app import run
    from setwise.streams import BatchPredictor

    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        write_tables(Path(name), rows, part)
        predictor, done, rounds, held = BatchPredictor("model.cal"), 0, 0, []
        began = noted = time.monotonic()
        while (now := time.monotonic()) < began + 60 * minutes or rounds < 3:
            assert run(["predict", "model.cal", "--probabilities", "in", "--out", "out", "--force", "--quiet"]) == 0
            for path in sorted(Path("in").iterdir()):
                for batch in pq.ParquetFile(path).iter_batches(batch_size=16_384):
                    done += len(predictor(batch))
            done, rounds = done + rows, rounds + 1
            if rounds == 2 or now - noted > 60:  # the first round loads and sets up what stays
                held.append(rss_mb())
                noted = now
        wall = time.monotonic() - began
        os.chdir("/")
    return {
        "minutes": round(wall / 60, 1),
        "rows": done,
        "parts": rounds * (rows // part),
        "classes": 20,
        "mb_after_two_rounds": held[0],
        "mb_at_the_end": rss_mb(),
        "mb_most": max(held),
        "mb_noted": held,
    }


# -------------------------------------------------------------------- nodes that die


class Node:
    """A node of a cluster in a session of its own."""

    def __init__(self, *options, folder):
        environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": folder}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
        command = [Path(sys.executable).with_name("ray"), "start", "--block", "--disable-usage-stats", *options]
        self.process = subprocess.Popen(list(map(str, command)), start_new_session=True, **quiet)

    def kill(self):
        """Kills all processes of the session at once."""
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if os.getsid(int(entry.name)) == self.process.pid:
                        os.kill(int(entry.name), signal.SIGKILL)
                except ProcessLookupError:
                    continue
        self.process.wait()


def same_answers(one, other):
    """Whether two folders hold the same files byte for byte, and notes of them that found the same, at other times."""
    names = sorted(path.name for path in one.iterdir())
    if names != sorted(path.name for path in other.iterdir()):
        return False
    notes = [name for name in names if name.endswith(".done.json")]
    tables = [name for name in names if name not in notes]
    found = ([json.loads((folder / name).read_text())["found"] for name in notes] for folder in (one, other))
    return filecmp.cmpfiles(one, other, tables, shallow=False)[0] == tables and next(found) == next(found)


def measure_nodes(rows, parts, deaths):
    """Whether what a cluster writes, while nodes die, is what this process writes."""
    with tempfile.TemporaryDirectory(prefix="ray") as short, tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        write_tables(folder, rows, rows // parts)
        predict = [sys.executable, "-m", "setwise", "predict", "model.cal", "--probabilities", "in", "--quiet"]
        subprocess.run([*predict, "--out", "local"], cwd=folder, check=True)
        small = ("--object-store-memory", 80 * 2**20)
        head = Node("--head", "--port", port, "--num-cpus", 0, "--include-dashboard", "false", *small, folder=short)
        nodes, killed, at = [], [], f"127.0.0.1:{port}"

        def add():
            nodes.append(Node("--address", at, "--num-cpus", 1, *small, folder=short))

        try:
            while socket.socket().connect_ex(("127.0.0.1", port)):
                time.sleep(0.2)
            add(), add()
            told = ["--out", "ray", "--engine", "ray", "--address", at]
            work = subprocess.Popen([*predict, *told], cwd=folder)
            began = time.perf_counter()
            while work.poll() is None:
                made = len(list((folder / "ray").glob("*.parquet")))
                if len(killed) < deaths and made >= (len(killed) + 1) * parts // (deaths + 2):
                    nodes.pop(0).kill()
                    killed.append(made)
                    add()
                time.sleep(0.02)
            wall = time.perf_counter() - began
            same = work.returncode == 0 and same_answers(folder / "local", folder / "ray")
        finally:
            for node in (*nodes, head):
                node.kill()
    return {
        "rows": rows,
        "parts": parts,
        "nodes": 2,
        "killed_after_parts": killed,
        "seconds": round(wall, 1),
        "status": work.returncode,
        "equal_to_local": same,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = ["process", "server", "stream", "nodes"]
    parser.add_argument("--part", choices=known, action="append")
    parser.add_argument("--times", type=int, default=2_000)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rows", type=int, default=8_000_000, help="that the cluster predicts")
    parser.add_argument("--deaths", type=int, default=4)
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    measures = {
        "process": (lambda: measure_process(arguments.times), ("mlflow-skinny",)),
        "server": (lambda: measure_server(arguments.requests), ("mlflow-skinny", "uvicorn")),
        "stream": (lambda: measure_stream(arguments.minutes), ("pyarrow",)),
        "nodes": (lambda: measure_nodes(arguments.rows, 160, arguments.deaths), ("pyarrow", "ray")),
    }
    result = load("serving") or {}
    for part in arguments.part or known:
        measure, packages = measures[part]
        began = round(os.getloadavg()[0], 1)
        result[part] = {"machine": machine(*packages), "load": began, **measure()}
    show(result, RESULTS / "serving.json" if arguments.keep else None)


if __name__ == "__main__":
    main()
