"""What is left of a command that was cut short: the old output or the new one, complete; the next run clears up."""

from __future__ import annotations

import random
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from setwise.cli.interruption import SENTENCE, STATUS
from tests.faults.commands import COMMANDS, write_inputs, write_old
from tests.faults.leftovers import contents, wrong_left
from tests.faults.moments import KINDS, Ended, run_in


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
        pair = command.outputs if command.old else ()
        left = wrong_left(folder, old, new, swept=happens == signal.SIGINT, together=pair)
        wrong = [*_wrong_end(ended, happens), *left]
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


def _wrong_end(ended: Ended, happens: int) -> Iterator[str]:
    if happens == signal.SIGKILL:
        if ended.status != -signal.SIGKILL:
            yield f"ended with {ended.status} before it was killed: {ended.said[-300:]}"
        return
    if ended.status != STATUS:
        yield f"exit status {ended.status}: {ended.said[-300:]}"
    if not ended.said.endswith(SENTENCE) or ended.said.count("interrupted") > 1 or "Traceback" in ended.said:
        yield f"said {ended.said[-300:]!r}"
