"""Scores, strategies, rules, claims and answers are values: nobody changes one after it was made."""

import dataclasses
import importlib
import pkgutil

import setwise

PACKAGES = ("evidence", "calibration", "strategies", "decisions", "contamination")
MODULES = ("ranks", "scores", "guarantees")


def dataclasses_of_the_core():
    below = (f"{p}.{m.name}" for p in PACKAGES for m in pkgutil.iter_modules([f"{setwise.__path__[0]}/{p}"]))
    for name in (*MODULES, *below):
        module = importlib.import_module(f"setwise.{name}")
        own = (thing for thing in vars(module).values() if isinstance(thing, type))
        yield from (c for c in own if c.__module__ == module.__name__ and dataclasses.is_dataclass(c))


def test_dataclasses_of_the_core_are_frozen():
    assert [c.__name__ for c in dataclasses_of_the_core() if not c.__dataclass_params__.frozen] == []
