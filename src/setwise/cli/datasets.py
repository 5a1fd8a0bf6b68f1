"""`setwise datasets`: the benchmark sets of the field."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from setwise import datasets
from setwise.cli import options as opt
from setwise.cli.screen import Screen

EXAMPLES = {"list": ("setwise datasets list",), "fetch": ("setwise datasets fetch lost",)}


def list_sets(as_json: Annotated[bool, opt.JSON] = False) -> None:
    """Lists the benchmark sets, and which of them are on this machine."""
    screen, entries = Screen(as_json=as_json), datasets.available()
    rows = [
        [
            entry.name,
            f"{entry.rows:,}",
            f"{entry.features:,}",
            f"{entry.classes:,}",
            "" if entry.average_size is None else f"{entry.average_size:.2f}",
            "here" if entry.found else "to fetch" if entry.home else "by hand",
        ]
        for entry in entries
    ]
    screen.table(["name", "rows", "features", "classes", "candidates per row", "where"], rows, wide=5)
    screen.say("", "try:  setwise datasets fetch lost")
    screen.emit({"sets": [dataclasses.asdict(entry) for entry in entries]})


def fetch_set(
    name: Annotated[
        str, typer.Argument(help="Name of the set, as setwise datasets list prints it.", metavar="NAME")
    ],
    display: opt.ScreenOptions,
) -> None:
    """Downloads a benchmark set and verifies it."""
    screen = display.screen()
    paths = datasets.fetch(name, progress=screen.shows_progress)
    for path in paths:
        screen.say(str(path))
    screen.say(f'in Python:  setwise.datasets.load("{name}")')
    screen.emit({"name": name, "files": [str(path) for path in paths]})
