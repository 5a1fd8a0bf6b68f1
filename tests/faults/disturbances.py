"""What happens around a command: a disk that is full, folders that vanish, files that change, another writer.

Whatever happens, a command ends well with all rows, or with one sentence that names what it is about.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq

from tests.faults.commands import CHECKED, COMMANDS, PARTS, ROWS
from tests.faults.leftovers import contents, wrong_left
from tests.faults.moments import Ended, run_in
from tests.faults.survival import Case, prepared, undisturbed

_TOUCHES = ("touch",)
_READ = {
    "fit": "rows.csv",
    "predict": "rows.parquet",
    "predict to text": "rows.csv",
    "conformalize": "rows.csv",
    "triage": "p.csv",
    "report": "rows.csv",
    "streams": "parts/1.parquet",
    "triage streams": "p-parts/1.parquet",
}
"""A table that a command reads."""
_HALF, _PART = ROWS // 2, ROWS // PARTS // 2
_ROWS = {
    "predict": (ROWS, _HALF),
    "predict to text": (ROWS, _HALF),
    "triage": (ROWS - CHECKED, _HALF),  # the rows it was calibrated on without those that were checked, or new ones
    "streams": (ROWS, ROWS - _PART),
    "triage streams": (ROWS, ROWS - _PART),
}
"""How many rows a command writes: of the whole table, and where that has lost half of a file."""


def full_disk(root: Path, step: int) -> Iterator[Case]:
    """No file may grow beyond so many bytes: the old output stays, and the sentence names the new one."""
    for name, command in COMMANDS.items():
        for size in (0, 512)[:: max(1, step // 2)]:
            folder = prepared(root, name, f"full-{size}")
            old = contents(folder)
            ended = run_in(folder, command.arguments, before=lambda size=size: _bound_files(size))
            wrong = [*_wrong_refusal(ended, command.outputs, "cannot be written"), *_changed(folder, old)]
            yield Case(name, "full disk", f"{size} bytes", tuple(wrong))


def _bound_files(size: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def read_only_folder(root: Path, _: int) -> Iterator[Case]:
    """A folder that takes no files."""
    for name, command in COMMANDS.items():
        for output in command.outputs:
            folder = prepared(root, name, f"read-only-{output}")
            old = contents(folder)
            place = "/sys/kernel/output" + Path(output).suffix  # not even root writes there
            ended = run_in(folder, _instead(name, {output: place}), before=lambda: _move_cache("/sys/kernel"))
            wrong = [*_wrong_refusal(ended, (place, "/sys/kernel")), *_changed(folder, old)]
            yield Case(name, "read-only folder", output, tuple(wrong))


def _move_cache(place: str) -> None:
    os.environ["SETWISE_CACHE"] = place


def vanishing_folder(root: Path, step: int) -> Iterator[Case]:
    """The folder of the output is removed meanwhile."""
    for name, command in COMMANDS.items():
        places = {output: f"gone/{output}" for output in command.outputs}
        for moment in range(1, undisturbed(root, name, _TOUCHES)[0]["touch"], step):
            folder = prepared(root, name, f"gone-{moment}")
            (folder / "gone").mkdir()
            old = contents(folder)
            ended = run_in(
                folder,
                _instead(name, places),
                at=("touch", moment),
                happens=lambda: shutil.rmtree("gone", ignore_errors=True),
                before=lambda: _move_cache("gone/cache"),
            )
            wrong = [] if ended.status == 0 else [*_wrong_refusal(ended, ("gone",)), *_changed(folder, old)]
            yield Case(name, "vanishing folder", f"touch {moment}", tuple(wrong))


def changing_file(root: Path, step: int) -> Iterator[Case]:
    """A table that loses its second half, in place or by another file, is read whole, or is an error."""
    for name, file in _READ.items():
        moments = undisturbed(root, name, ("touch", "call"))[0]
        counted = [("touch", moment) for moment in range(1, moments["touch"], step)]
        counted += [("call", moments["call"] * part // 12) for part in range(1, 12, step)]
        for number, at in enumerate(counted):
            folder = prepared(root, name, f"changing-{number}")
            ended = run_in(folder, COMMANDS[name].arguments, at=at, happens=lambda: _halve(Path(file), number % 2))  # noqa: B023
            wrong = _wrong_rows(folder, name) if ended.status == 0 else _wrong_refusal(ended, (file,))
            yield Case(name, "changing file", f"{at[0]} {at[1]}", tuple(wrong))


def _halve(path: Path, replaced: int) -> None:
    """The first half of the rows, under the same name."""
    half = Path("half")
    if path.suffix == ".parquet":
        rows = pq.read_table(path)
        pq.write_table(rows.slice(0, len(rows) // 2), half)
    else:
        lines = path.read_text().splitlines(keepends=True)
        half.write_text("".join(lines[: 1 + len(lines) // 2]))
    if replaced:
        half.replace(path)
    else:
        path.write_bytes(half.read_bytes())
        half.unlink()


def two_writers(root: Path, step: int) -> Iterator[Case]:
    """The same command runs while another is at work: both end well, or it is refused, and nothing is left."""
    every = [name for name in COMMANDS if name != "fetch"]  # who fetches waits for who is first
    for name in every if step == 1 else ("fit", "triage"):
        command = COMMANDS[name]
        moments, _, new = undisturbed(root, name, _TOUCHES)
        for moment in range(1, moments["touch"], step * 4):
            folder = prepared(root, name, f"two-{moment}")

            def other(folder: Path = folder, arguments: Any = command.arguments) -> None:
                if any(map(_waits, (folder / "model", folder))):
                    return
                second = run_in(folder, arguments)
                if second.status != 0 and "another run writes into this folder" not in second.said:
                    os._exit(98)

            ended = run_in(folder, command.arguments, at=("touch", moment), happens=other)
            wrong = [] if ended.status == 0 else [f"exit status {ended.status}: {ended.said[-300:]}"]
            wrong += [*wrong_left(folder, {}, new, swept=True), *_wrong_rows(folder, name)]
            yield Case(name, "two writers", f"touch {moment}", tuple(wrong))


def _waits(folder: Path) -> bool:
    """Whether another process would wait until this one has put its model or its files in place."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


DISTURBANCES: dict[str, Callable[[Path, int], Iterator[Case]]] = {
    "full disk": full_disk,
    "read-only folder": read_only_folder,
    "vanishing folder": vanishing_folder,
    "changing file": changing_file,
    "two writers": two_writers,
}


def _instead(name: str, places: dict[str, str]) -> tuple[str, ...]:
    """The arguments of a command that writes outputs to other places."""
    before = ("", *COMMANDS[name].arguments)
    return tuple(
        places.get(word, word) if option in {"--out", "--review"} else word
        for option, word in zip(before, COMMANDS[name].arguments, strict=False)
    )


def _wrong_refusal(ended: Ended, names: tuple[str, ...], says: str = "") -> list[str]:
    """What is wrong with how a command ended that could not do its work."""
    lines = [line for line in ended.said.splitlines() if line.startswith("error: ")]
    good = ended.status == 2 and len(lines) == 1 and says in ended.said and any(name in lines[0] for name in names)
    if good and "Errno" not in lines[0] and ".setwise.tmp" not in lines[0]:
        return []
    return [f"exit status {ended.status}: {ended.said[-400:]}"]


def _changed(folder: Path, old: dict[str, str]) -> list[str]:
    """What is other than before; a file that says who fetches may be new."""
    now = contents(folder)
    names = {name for name in now.keys() | old.keys() if now.get(name) != old.get(name)}
    return [
        f"{name} is not as before" for name in names if not name.endswith(".lock") and not name.startswith("gone/")
    ]


def _wrong_rows(folder: Path, name: str) -> list[str]:
    """Rows in are rows out: all, or all of a file that was shorter from the start."""
    if name not in _ROWS:
        return []
    places = [folder / output for output in COMMANDS[name].outputs]
    files = [file for place in places for file in (sorted(place.glob("*.*")) if place.is_dir() else [place])]
    rows = sum(_count(file) for file in files if not file.name.startswith("."))
    return [] if rows in _ROWS[name] else [f"{rows} rows of {' or '.join(map(str, _ROWS[name]))}"]


def _count(file: Path) -> int:
    if file.suffix == ".json":
        return len(json.loads(file.read_text()))
    return len(pq.read_table(file) if file.suffix == ".parquet" else pyarrow.csv.read_csv(file))
