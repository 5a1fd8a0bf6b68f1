import functools
import gc
import hashlib
import http.server
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import zlib

import numpy as np
import pytest

from setwise.datasets import remote_files
from setwise.datasets.remote_files import RemoteFile, obtain
from setwise.errors import DataError
from setwise.storage.limits import VARIABLE

from .conftest import gzipped, idx_bytes

pytest.importorskip("pooch", reason="pooch is not installed: fetching is not tested")


# an interrupted download leaves its connection to the garbage collector, which warns
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)


CONTENT = gzipped(idx_bytes(np.arange(200, dtype=np.uint8)))


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves one file; behaves badly on some paths."""

    def do_GET(self):
        server = self.server
        server.requests.append(self.path)
        if self.path.endswith("missing"):
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(server.content)))
        self.end_headers()
        if self.path.endswith("truncated"):
            self.wfile.write(server.content[:50])
            return
        if self.path.endswith("slow"):
            self.wfile.write(server.content[:50])
            self.wfile.flush()
            server.halfway.set()
            server.stop.wait()
            return
        self.wfile.write(server.content)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.content, running.requests = CONTENT, []
        running.halfway, running.stop = threading.Event(), threading.Event()
        running.daemon_threads = True
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield running
        running.stop.set()
        running.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def collected():
    yield
    gc.collect()


def remote(server, path="file", name="train.gz", sha256="compared by `check`"):
    return RemoteFile("sub", name, f"http://127.0.0.1:{server.server_port}/{path}", sha256)


def left_behind(cache):
    return sorted(place.name for place in cache.rglob("*") if place.is_file() and not place.name.endswith(".lock"))


def check(place):
    if hashlib.sha256(place.read_bytes()).digest() != hashlib.sha256(CONTENT).digest():
        raise DataError(f"{place}: wrong content")


quiet = functools.partial(obtain, progress=False)


def test_a_file_is_fetched_once_and_then_found(nothing_here, server):
    file = remote(server)
    place = quiet(file, check)
    assert place == nothing_here / "sub" / "train.gz"
    assert place.read_bytes() == CONTENT
    assert quiet(file, check) == place
    assert server.requests == ["/file"]
    assert left_behind(nothing_here) == ["train.gz"]


def test_the_data_folder_comes_before_the_cache_and_the_cache_before_the_network(
    nothing_here, server, monkeypatch, tmp_path
):
    file = remote(server)
    fetched = quiet(file, check)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "train.gz").write_bytes(b"mine")
    monkeypatch.setenv("SETWISE_DATA", str(tmp_path))
    assert quiet(file, check) == tmp_path / "sub" / "train.gz"
    monkeypatch.setenv("SETWISE_DATA", str(tmp_path / "elsewhere"))
    assert quiet(file, check) == fetched
    assert len(server.requests) == 1


def test_a_wrong_checksum_leaves_nothing_behind(nothing_here, server):
    server.content = CONTENT + b"!"
    with pytest.raises(DataError, match="wrong content"):
        quiet(remote(server), check)
    assert left_behind(nothing_here) == []


@pytest.mark.parametrize("path", ["truncated", "missing"])
def test_a_failed_download_is_one_sentence_and_leaves_nothing_behind(nothing_here, server, path):
    with pytest.raises(
        DataError, match=r"could not be fetched .*; download it from http.* and place it at"
    ) as error:
        quiet(remote(server, path), check)
    assert "\n" not in str(error.value)
    assert left_behind(nothing_here) == []


def test_offline_says_what_to_put_where(nothing_here):
    with socket.socket() as deaf:  # it has a port, which nobody else gets, and does not listen
        deaf.bind(("127.0.0.1", 0))
        file = RemoteFile("sub", "train.gz", f"http://127.0.0.1:{deaf.getsockname()[1]}/train.gz", "unused")
        with pytest.raises(DataError) as error:
            quiet(file, check)
    said = str(error.value)
    assert str(nothing_here / "sub" / "train.gz") in said
    assert "sub/train.gz below the folder that SETWISE_DATA names" in said
    assert "\n" not in said


SCRIPT = textwrap.dedent("""
    import sys
    from setwise.datasets.remote_files import RemoteFile, obtain
    print("ready", flush=True)
    input()
    file = RemoteFile("sub", "train.gz", sys.argv[1], "not compared here")
    obtain(file, lambda place: place.read_bytes(), progress=False)
""")


def fetching_process(url, cache):
    environment = {**os.environ, "SETWISE_CACHE": str(cache)}
    environment.pop("SETWISE_DATA", None)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([sys.executable, "-c", SCRIPT, url], env=environment, text=True, **pipes)


def start(*processes):
    """Lets them fetch, at once, as soon as all of them are ready."""
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * len(processes)
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()


def test_processes_that_fetch_at_once_download_once_and_agree(nothing_here, server):
    running = [fetching_process(remote(server).url, nothing_here) for _ in range(3)]
    start(*running)
    assert [process.wait() for process in running] == [0, 0, 0]
    assert (nothing_here / "sub" / "train.gz").read_bytes() == CONTENT
    assert server.requests == ["/file"]
    assert left_behind(nothing_here) == ["train.gz"]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_a_killed_process_leaves_no_file_under_the_final_name_and_the_next_one_clears_up(nothing_here, server):
    process = fetching_process(remote(server, "slow").url, nothing_here)
    start(process)
    server.halfway.wait()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert server.requests == ["/slow"]
    assert not (nothing_here / "sub" / "train.gz").exists()
    assert list((nothing_here / "sub").glob(".*.setwise.tmp")), "the process was to be killed in the middle"
    quiet(remote(server), check)
    assert left_behind(nothing_here) == ["train.gz"]
    assert not list((nothing_here / "sub").glob(".*.setwise.tmp"))


def test_a_download_prints_nothing_unless_a_bar_is_wanted(nothing_here, server, capfd):
    quiet(remote(server), check)
    assert capfd.readouterr() == ("", "")


def rar(name, content, method=0x30):
    """A rar archive (version 3) with one file; method 0x30 is stored, any other would need a tool."""

    def block(kind, flags, body):
        size = (7 + len(body)).to_bytes(2, "little")
        rest = bytes([kind]) + flags.to_bytes(2, "little") + size + body
        return (zlib.crc32(rest) & 0xFFFF).to_bytes(2, "little") + rest

    size = len(content).to_bytes(4, "little")
    head = size + size + b"\x03" + zlib.crc32(content).to_bytes(4, "little") + bytes(4) + bytes([20, method])
    head += len(name).to_bytes(2, "little") + (0o644).to_bytes(4, "little") + name.encode()
    return (
        b"Rar!\x1a\x07\x00" + block(0x73, 0, bytes(6)) + block(0x74, 0x8000, head) + content + block(0x7B, 0, b"")
    )


def test_a_file_is_unpacked_from_its_rar_archive(nothing_here, server):
    pytest.importorskip("rarfile", reason="rarfile is not installed: archives are not tested")
    server.content = rar("folder\\lost.mat", b"matrix")
    place = quiet(remote(server, "lost.rar", "lost.mat"), lambda found: found.read_bytes())
    assert place == nothing_here / "sub" / "lost.mat"
    assert place.read_bytes() == b"matrix"
    assert left_behind(nothing_here) == ["lost.mat"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (rar("other.mat", b"matrix"), "holds other.mat only"),
        (b"<html>not found</html>", "could not be fetched .*Not a RAR file"),
    ],
)
def test_an_archive_without_the_file_is_one_sentence(nothing_here, server, content, says):
    pytest.importorskip("rarfile", reason="rarfile is not installed: archives are not tested")
    server.content = content
    with pytest.raises(DataError, match=says):
        quiet(remote(server, "lost.rar", "lost.mat"), check)
    assert left_behind(nothing_here) == []


def test_without_an_unpacking_tool_the_sentence_says_which_file_to_place_where(nothing_here, server, monkeypatch):
    rarfile = pytest.importorskip("rarfile", reason="rarfile is not installed: archives are not tested")

    def no_tool(*args, **kwargs):
        raise rarfile.RarCannotExec("no tool")

    monkeypatch.setattr(rarfile, "tool_setup", no_tool)
    server.content = rar("lost.mat", b"matrix", method=0x33)
    with pytest.raises(
        DataError, match=r"RarCannotExec from .*: no tool.*; download it from .*, unpack it and place"
    ):
        quiet(remote(server, "lost.rar", "lost.mat"), check)
    assert left_behind(nothing_here) == []


def test_without_pooch_a_present_file_is_still_found(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pooch", None)
    monkeypatch.delenv("SETWISE_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SETWISE_DATA", str(tmp_path))
    file = RemoteFile("sub", "train.gz", "http://127.0.0.1:9/train.gz", "unused")
    with pytest.raises(DataError, match="needs pooch; pip install"):
        quiet(file, check)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "train.gz").write_bytes(b"here")
    assert remote_files.find(file) == tmp_path / "sub" / "train.gz"


LIMIT = 2**20


def test_an_archive_in_rar_unpacks_up_to_the_limit(nothing_here, server, monkeypatch):
    import rarfile

    class Archive:
        def __init__(self, _):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def infolist(self):
            return [type("Info", (), {"filename": "a.mat", "file_size": 3 * LIMIT})]

    monkeypatch.setattr(rarfile, "RarFile", Archive)
    monkeypatch.setenv(VARIABLE, "2M")
    server.content = b"rar"
    with pytest.raises(DataError, match=r"a.rar: unpacks to more than 2,097,152 bytes"):
        quiet(remote(server, "a.rar", "a.mat"), check)
