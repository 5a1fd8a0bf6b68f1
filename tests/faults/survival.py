"""What is left of a command that was cut short: the old output or the new one, complete; the next run clears up."""

from __future__ import annotations

import hashlib
import json
import random
import re
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from setwise import ConformalClassifier
from setwise.cli.interruption import SENTENCE, STATUS
from tests.faults.commands import COMMANDS, write_inputs, write_old
from tests.faults.moments import KINDS, Ended, run_in

_TEMPORARY = re.compile(r"(^|/)(\.[^/]*\.[0-9a-f]{16}\.setwise\.tmp|\.partial-[^/]*)(/|$)")
_TIMED = {"runs.json", "results.json", "report.html"}  # hold durations: complete is all that can be asked


@dataclass(frozen=True)
class Case:
    """A command to which something happened, when, and what is wrong with what it left: nothing, it is hoped."""

    command: str
    what: str
    moment: str
    wrong: tuple[str, ...]


def cuts(
    root: Path, times: int, happens: int, seed: int, kinds: tuple[str, ...] = KINDS, names: tuple[str, ...] = ()
) -> Iterator[Case]:
    """Cuts commands short at seeded random moments, each command in turn."""
    chance = random.Random(seed)  # noqa: S311 - for tests
    chosen = names or tuple(COMMANDS)
    for number in range(times):
        name = chosen[number % len(chosen)]
        command = COMMANDS[name]
        moments, old, new = undisturbed(root, name, kinds)
        kind = kinds[number // len(chosen) % len(kinds)]
        moment = chance.randint(1, moments[kind])
        folder = prepared(root, name, f"{signal.Signals(happens).name}-{number}")
        ended = run_in(folder, command.arguments, at=(kind, moment), happens=happens)
        wrong = [*_wrong_end(ended, happens), *wrong_left(folder, old, new, swept=happens == signal.SIGINT)]
        again = run_in(folder, command.arguments)
        if again.status != 0:
            wrong.append(f"the next run failed: {again.said[-300:]}")
        wrong += [f"after the next run: {told}" for told in wrong_left(folder, {}, new, swept=True)]
        lost = [name for name in new.keys() - contents(folder).keys() if not name.startswith("model/")]
        wrong += [f"after the next run: {name} is not there" for name in lost]  # parts are named by their digests
        if not wrong:
            shutil.rmtree(folder)
        yield Case(name, signal.Signals(happens).name, f"{kind} {moment}", tuple(wrong))


@cache
def undisturbed(
    root: Path, name: str, kinds: tuple[str, ...]
) -> tuple[dict[str, int], dict[str, str], dict[str, str]]:
    """How many moments a command has, and what is in its folder before and after it."""
    folder = prepared(root, name, "-".join(("undisturbed", *kinds)))
    old = contents(folder)
    ended = run_in(folder, COMMANDS[name].arguments, kinds=kinds)
    assert ended.status == 0, ended.said
    return ended.moments, old, contents(folder)


def prepared(root: Path, name: str, end: str) -> Path:
    """A new folder with what a command is given, and something old under the names that it will write."""
    inputs = root / "inputs"
    if not inputs.exists():
        inputs.mkdir()
        write_inputs(inputs)
    folder = root / f"{name.replace(' ', '-')}-{end}"
    shutil.copytree(inputs, folder)
    write_old(folder, COMMANDS[name])
    return folder


def contents(folder: Path) -> dict[str, str]:
    """Every file in a folder, with a digest of what it holds."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _wrong_end(ended: Ended, happens: int) -> Iterator[str]:
    if happens == signal.SIGKILL:
        if ended.status != -signal.SIGKILL:
            yield f"ended with {ended.status} before it was killed: {ended.said[-300:]}"
        return
    if ended.status != STATUS:
        yield f"exit status {ended.status}: {ended.said[-300:]}"
    if not ended.said.endswith(SENTENCE) or ended.said.count("interrupted") > 1 or "Traceback" in ended.said:
        yield f"said {ended.said[-300:]!r}"


def wrong_left(folder: Path, old: dict[str, str], new: dict[str, str], *, swept: bool) -> Iterator[str]:
    """What is neither the old nor the new, or should not be there; temporary files must be gone if `swept`."""
    if (folder / "model").exists():
        try:
            ConformalClassifier.load(folder / "model")
        except (ValueError, OSError) as error:
            yield f"the model does not load: {error}"
    for name, digest in contents(folder).items():
        if _TEMPORARY.search(name):
            if swept:
                yield f"{name} is left"
        elif name not in old and name not in new and not _may_differ(name):
            yield f"{name} is left, which nobody knows"
        elif digest not in {old.get(name), new.get(name)} and not (_may_differ(name) and _complete(folder / name)):
            yield f"{name} is neither the old nor the new one"
    for name in old.keys() & new.keys():
        if not (folder / name).exists():
            yield f"{name} is gone"
    for place in folder.rglob(".*.setwise.tmp"):
        if swept and place.is_dir():
            yield f"{place.name} is left"


def _may_differ(name: str) -> bool:
    """Whether two runs need not write the same bytes: durations, and archives with the time of day."""
    return Path(name).name in _TIMED or name.startswith(("results/cells/", "model/"))


def _complete(path: Path) -> bool:
    content = path.read_bytes()
    if path.suffix == ".json":
        return isinstance(json.loads(content), (dict, list))
    return content.rstrip().endswith(b"</html>") if path.suffix == ".html" else path.parent.name == "model"
