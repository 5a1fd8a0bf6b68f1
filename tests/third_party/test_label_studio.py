"""A real Label Studio: votes leave it, rows to verify and to review go back, and the final table comes together.

It starts the server named by LABEL_STUDIO, or the `label-studio` of the path; `make test-third-party` installs one.
"""

import csv
import json
import os
import shutil
import socket
import subprocess
import urllib.request

import numpy as np
import pytest

from setwise.cli.app import run
from setwise.tables import import_votes

PROGRAM = os.environ.get("LABEL_STUDIO") or shutil.which("label-studio")
TOKEN = "0123456789abcdef0123456789abcdef01234567"  # noqa: S105 - of a server that lives as long as these tests
LABELS = ["ant", "cat", "owl"]
N = 60
TRUTH = np.array(LABELS)[np.random.default_rng(0).integers(0, 3, N)].tolist()
FORMS = {"JSON": "json", "JSON_MIN": "json", "CSV": "csv", "TSV": "tsv"}

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="Label Studio is not installed")


class Server:
    def __init__(self, address):
        self.address = address

    def ask(self, path, data=None):
        """The bytes of an answer; with data the request posts them."""
        content = None if data is None else json.dumps(data).encode()
        heads = {"Authorization": f"Token {TOKEN}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.address}/api/{path}", content, heads)  # noqa: S310 - on this machine
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            return answer.read()

    def project(self, tasks, choice="single"):
        """A new project with these tasks: its number, and the numbers of its tasks by their call."""
        choices = "".join(f'<Choice value="{label}"/>' for label in LABELS)
        control = f'<Choices name="bird" toName="text" choice="{choice}">{choices}</Choices>'
        config = f'<View><Text name="text" value="$text"/>{control}</View>'
        number = json.loads(self.ask("projects", {"title": "calls", "label_config": config}))["id"]
        self.ask(f"projects/{number}/import", tasks)
        listed = json.loads(self.ask(f"tasks?project={number}&fields=all&page_size=1000"))["tasks"]
        return number, {task["data"]["call"]: task["id"] for task in listed}

    def annotate(self, task, *labels, **more):
        region = {"from_name": "bird", "to_name": "text", "type": "choices", "value": {"choices": list(labels)}}
        self.ask(f"tasks/{task}/annotations/", {"result": [region] if labels else [], **more})

    def export(self, project, form, folder):
        path = folder / f"{project}-{form}.{FORMS[form]}"
        path.write_bytes(self.ask(f"projects/{project}/export?exportType={form}&download_all_tasks=true"))
        return path


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studio")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ["start", "--no-browser", "--port", str(port), "--internal-host", "127.0.0.1"]
    person = ["--username", "a@example.org", "--password", "secret-1234", "--user-token", TOKEN]
    own = {"LABEL_STUDIO_BASE_DATA_DIR": str(folder), "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true"}
    quiet = {"LATEST_VERSION_CHECK": "false", "COLLECT_ANALYTICS": "false"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen([PROGRAM, *options, *person], env={**os.environ, **own, **quiet}, **pipes)
    try:
        said = []
        for line in process.stdout:
            said.append(line)
            if "Quit the server" in line:
                break
        else:
            pytest.fail("".join(said[-20:]))
        yield Server(f"http://127.0.0.1:{port}")
    finally:
        process.kill()
        process.communicate()


def calls():
    return [{"data": {"call": f"c{i}", "text": f"call {i}, it says"}} for i in range(N)]


@pytest.fixture(scope="module")
def panel(server):
    """A project in which most calls have three answers, one of them skipped, and the last two have none."""
    number, tasks = server.project(calls())
    rng = np.random.default_rng(1)
    for i in range(N - 2):
        for _ in range(3):
            server.annotate(tasks[f"c{i}"], TRUTH[i] if rng.random() < 0.7 else LABELS[rng.integers(3)])
    server.annotate(tasks["c0"], "ant", was_cancelled=True)
    return number


@pytest.fixture(scope="module")
def exports(server, panel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports")
    return {form: server.export(panel, form, folder) for form in FORMS}


def test_every_format_gives_the_same_votes(exports):
    found = {form: import_votes(path, key="call").votes for form, path in exports.items()}
    order = {form: np.argsort(votes.items.tolist()) for form, votes in found.items()}
    first = found["JSON"].counts[order["JSON"]]
    assert first.sum() == pytest.approx(N - 2)  # the answers of one person to a call share one vote
    for form, votes in found.items():
        assert sorted(votes.items.tolist()) == sorted(f"c{i}" for i in range(N))
        assert votes.classes.tolist() == LABELS
        np.testing.assert_allclose(votes.counts[order[form]], first)


def test_several_choices_are_read_from_every_format(server, tmp_path):
    number, tasks = server.project(calls()[:3], choice="multiple")
    for name, labels in (("c0", ["ant", "owl"]), ("c1", ["cat"])):
        server.annotate(tasks[name], *labels)
    for form in FORMS:
        found = import_votes(server.export(number, form, tmp_path), key="call").votes
        counts = dict(zip(found.items.tolist(), found.counts.tolist(), strict=True))
        assert counts == {"c0": [0.5, 0, 0.5], "c1": [0, 1, 0], "c2": [0, 0, 0]}


def test_the_way_there_and_back(server, exports, tmp_path, monkeypatch):
    """One draw and one review on the server; every format of its exports leads to the same final table."""
    monkeypatch.chdir(tmp_path)
    items = tmp_path / "items.csv"
    items.write_text("call,text\n" + "".join(f"c{i},call {i}\n" for i in range(N)))

    def setwise(*arguments):
        assert run([*map(str, arguments)]) == 0

    def answer(tasks):
        """The exports of a project in which somebody who knows answers these tasks."""
        number, numbers = server.project(json.loads((tmp_path / tasks).read_text()))
        for call, task in numbers.items():
            server.annotate(task, TRUTH[int(call[1:])])
        return {form: server.export(number, form, tmp_path) for form in FORMS}

    told = {form: ("--votes", path, items, "--key", "call") for form, path in exports.items()}
    setwise("suggest", *told["JSON"], "--budget", 30, "--out", "to-verify.json")
    verified = answer("to-verify.json")
    for form in FORMS:
        asked = ("--verified", verified[form], "--max-error", 0.2, "--out", f"accepted-{form}.csv")
        setwise("triage", *told[form], *asked, "--review", f"review-{form}.json")
    reviewed = answer("review-JSON.json")
    finals = []
    for form in FORMS:
        files = (f"accepted-{form}.csv", f"{verified[form]}:bird", f"{reviewed[form]}:bird")
        setwise("merge", *files, "--key", "call", "--rows", items, "--out", f"final-{form}.csv")
        finals.append((tmp_path / f"final-{form}.csv").read_text())
    assert len(set(finals)) == 1
    final = [*csv.DictReader(finals[0].splitlines())]
    assert [row["call"] for row in final] == [f"c{i}" for i in range(N)]
    assert sum(row["source"] == "verified" and row["drawn"] == "true" for row in final) == 30
    assert sum(row["source"] == "reviewed" and row["drawn"] == "false" for row in final) > 0
    assert sum(row["label"] != TRUTH[i] for i, row in enumerate(final)) <= 0.2 * N
