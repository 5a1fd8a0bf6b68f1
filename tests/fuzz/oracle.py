"""One input for one target: the file is accepted, or refused in one sentence that names it."""

from __future__ import annotations

import re
import resource
import signal
import traceback
import warnings
from pathlib import Path

from setwise.storage.limits import VARIABLE
from tests.fuzz.targets import Target

SECONDS = 20.0
"""Of the processor for one input; more is a hang, which ends the process."""
MEMORY = 2**32
"""How much a process may grow while it reads inputs."""
ENVIRONMENT = {VARIABLE: "16M"}
"""For processes that read inputs."""
_REFUSALS = (ValueError, TypeError, OSError, ModuleNotFoundError)


class Finding(Exception):  # noqa: N818 - found, not raised by what is tested
    """Something that must not come of any file."""


def bound_memory() -> None:
    """Lets the process grow by `MEMORY` from here on."""
    with Path("/proc/self/statm").open() as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, resource.RLIM_INFINITY))


def judge(target: Target, folder: Path, content: bytes) -> bool:
    """Whether the target accepts the file; a `Finding` where neither that nor a refusal comes of it."""
    path = folder / target.name
    path.write_bytes(target.repair(content))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # nobody handles it: a hang in any language ends the process
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)
            warnings.filterwarnings(
                "ignore", "overflow encountered in cast"
            )  # a score of 1e308 is strange, not wrong
            target.read(path)
    except _REFUSALS as error:
        said = str(error)
        if str(path) not in said:
            raise Finding(_told(error, "does not name the file")) from error
        if "\n" in said or "allow_pickle" in said:
            raise Finding(_told(error, "is no plain sentence")) from error
        return False
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        raise Finding(_told(error, "is no refusal")) from error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return True


def _told(error: BaseException, what: str) -> str:
    """What was raised, and where in the package: the same fault is told in the same words."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/setwise/" in frame.filename]
    frames = frames or [frame for frame in traceback.extract_tb(error.__traceback__) if "/tests/" in frame.filename]
    last = frames[-1] if frames else None
    place = "" if last is None else f" at {last.filename.rpartition('/')[2]}:{last.lineno} ({last.name})"
    said = re.sub(r"(/[^\s:,]+)+/", "", " ".join(str(error).split()))  # of the file its name alone
    said = re.sub(r"\d+", "0", said)[:160]
    return f"{type(error).__name__} {what}{place}: {said}"
