"""The engine `ray`: parts are tasks of a Ray cluster, each on one core of some node.

Tasks and not actors: Ray repeats the task of a node that died on any other with a free core, whereas an actor that
is lost waits for a core of its own, and its parts with it. A process keeps its first copy of the worker, with the
model that it loads, for all parts that it is given. The output of a part is the same whoever makes it, and appears
whole or not at all, so that it may be made twice. Results come back in the order of the parts: nothing depends on
who is fast, nor which of two broken parts is named.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import tempfile
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar

from setwise.errors import InputError, Remedy

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")

RETRIES = 10
"""How often a part is tried again whose node or process died."""
_AHEAD = 4  # tasks handed out per core: those that work, and those whose results wait for an earlier one
_SECONDS = 10.0  # to answer, for a cluster
_STORE = 2**28  # bytes of shared memory for what tasks return, beyond which it goes to disk
_LEAST_STORE = 80 * 2**20  # what Ray needs


class RayEngine:
    """Works through parts on a Ray cluster; files must have the same paths on all its nodes.

    The `address` is ``"host:port"``, or ``"auto"`` for the cluster that runs on this machine; by default that of
    ``RAY_ADDRESS``, else of a Ray of its own. Tasks need one core, with the `device` ``"cuda"`` one GPU too, and
    with ``"auto"`` that where the cluster has any.
    """

    def __init__(self, address: str | None = None, device: str = "cpu") -> None:
        self.address, self.device = address, device

    def __call__(self, parts: Iterable[_Part], worker: Callable[[_Part], _Result]) -> Iterator[_Result]:
        """What workers return for each part, in the order of the parts."""
        ray = connect(self.address)
        there = "GPU" in ray.cluster_resources()
        if self.device.startswith("cuda") and not there:
            raise InputError(f"device: {self.device!r}, and the cluster has no GPU", Remedy("device", "cpu"))
        gpus = there and self.device != "cpu"
        task = ray.remote(num_cpus=1, num_gpus=int(gpus), max_retries=RETRIES)(work)
        given = token_hex(8), ray.put(worker), Path.cwd()
        waiting: deque[tuple[_Part, Any]] = deque()
        todo = iter(parts)
        try:
            while True:
                free = _AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1))) - len(waiting)
                waiting.extend((part, task.remote(*given, part)) for part in islice(todo, max(0, free)))
                if not waiting:
                    return
                part, reference = waiting.popleft()
                returned = _fetch(ray, part, reference)
                for message in returned.said:
                    warnings.warn(message, stacklevel=2)
                if returned.error is not None:
                    raise returned.error
                yield returned.found
        finally:
            for _, reference in waiting:
                ray.cancel(reference)


_made: dict[str, Any] = {}
"""The worker of this process, by the run that it is for."""


@dataclass(frozen=True)
class Returned:
    """What came of a part: what its worker returned, or why it could not; and warnings, which are for who asked."""

    found: Any
    said: tuple[Warning, ...] = ()
    error: Exception | None = None


def work(run: str, worker: Callable[[Any], Any], folder: Path, part: Any) -> Returned:
    """What a worker makes of a part, on a node of the cluster. What is wrong with the part is no fault of Ray's."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if run not in _made:
                _made.clear()
                try:
                    os.chdir(folder)  # that of the user, so that files have the same names
                except OSError:
                    problem = f"{folder}: is not on the node {socket.gethostname()}"
                    raise InputError(problem, "use a file system that all nodes share") from None
                _made[run] = worker
            found, error = _made[run](part), None
        except (ValueError, TypeError, OSError, ImportError) as wrong:
            found, error = None, wrong
    return Returned(found, tuple(one.message for one in caught if isinstance(one.message, Warning)), error)


def _fetch(ray: Any, part: Any, reference: Any) -> Returned:
    """What came of a part, unless its process died every time."""
    try:
        while not ray.wait([reference], timeout=_SECONDS)[0]:
            if not ray.cluster_resources().get("CPU"):
                warnings.warn("the cluster has no core; waiting until a node comes back.", stacklevel=3)
        found: Returned = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error
    except ray.exceptions.RayError as error:
        told = " ".join(str(error).split())[:200]
        raise ChildProcessError(
            f"{part}: its process died or could not be reached, tried {RETRIES + 1} times ({told})"
        ) from error
    return found


def import_ray() -> Any:
    """Ray; an error that names the extra where it is not installed."""
    # What Ray says of nodes that die it prints to standard output, where results go: of no line of it, please.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    try:
        import ray  # optional, needed for this engine alone
        import ray.exceptions
    except ModuleNotFoundError as error:
        problem = "the engine ray needs Ray: pip install 'setwise[scale]'."
        raise ModuleNotFoundError(problem, name=error.name) from None
    return ray


def connect(address: str | None = None) -> Any:
    """Ray, connected to a cluster; to the one that this process is connected to already, if there is one."""
    ray = import_ray()
    if ray.is_initialized():
        return ray
    address = address or os.environ.get("RAY_ADDRESS")
    asked: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        place, asked = "on this machine", {"address": "local", **_of_its_own(), **asked}
    else:
        place, asked = f"at {address!r}", {"address": address, **asked}
        _check_listens(address)
    try:
        ray.init(**asked)
    except (OSError, ImportError, RuntimeError, ValueError) as error:
        raise _no_cluster(place, error) from None
    return ray


def _no_cluster(place: str, error: Exception) -> InputError:
    reason = " ".join(str(error).split())[:200].rstrip(".")
    return InputError(f"address: no Ray cluster answers {place} ({reason})", "start one there: ray start --head")


def _of_its_own() -> dict[str, Any]:
    """How Ray is started on this machine: without its web page and reports of usage, and gone without a trace."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    folder = tempfile.mkdtemp(prefix="setwise-ray-")

    def end() -> None:
        import ray  # it is there

        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    shared = Path("/dev/shm")  # noqa: S108 - where Linux keeps shared memory
    free = shutil.disk_usage(shared).free if shared.is_dir() else _STORE
    return {
        "include_dashboard": False,
        "object_store_memory": max(_LEAST_STORE, min(_STORE, free // 2)),
        "_temp_dir": folder,
    }


def _check_listens(address: str) -> None:
    """Refuses an address at which nothing listens, for which Ray would wait long."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not port.isdigit():
        return  # "auto" and other names that Ray resolves
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(f"at {address!r}", error) from None
