"""Changes of what a file means rather than of its bytes: an entry of JSON, an array of an archive."""

from __future__ import annotations

import copy
import io
import json
import random
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from setwise.storage.stored_arrays import read_arrays

_WILD = [
    None,
    True,
    -1,
    0,
    1,
    2,
    2**31,
    2**63,
    10**400,
    -0.5,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x",
    "1/0",
    [],
    {},
    [[]],
]


def changed_json(content: bytes, chance: random.Random) -> bytes:
    """One entry replaced, removed, doubled or swapped for another; of JSON lines in one of the lines."""
    lines = content.split(b"\n")
    place = chance.randrange(len(lines)) if b"\n{" in content else None
    try:
        held = json.loads(content if place is None else lines[place])
    except (ValueError, RecursionError):
        return content
    _change_entry(held, chance)
    text = json.dumps(held).encode()
    if place is None:
        return text
    return b"\n".join([*lines[:place], text, *lines[place + 1 :]])


def changed_arrays(content: bytes, chance: random.Random) -> bytes:
    """One array of an archive made another one; the digest is for `sealed` to mend."""
    try:
        arrays = {name: np.array(array) for name, array in read_arrays(io.BytesIO(content), "").items()}
    except ValueError:
        return content
    names = [name for name in arrays if name != "digest"]
    if not names:
        return content
    name = chance.choice(names)
    if name == "header" and "digest" in arrays:
        header = changed_json(arrays[name].tobytes(), chance)
        arrays[name] = np.frombuffer(header, dtype=np.uint8)
    elif chance.random() < 0.05:
        del arrays[name]
    else:
        arrays[name] = chance.choice(_ARRAYS)(arrays[name], chance)
    sink = io.BytesIO()
    np.savez(sink, **arrays)
    return sink.getvalue()


def changed_members(content: bytes, chance: random.Random) -> bytes:
    """The description in a skops file changed, or one of its arrays."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        name = chance.choice([*members, *["schema.json"] * (1 + len(members) // 2)])
        if name == "schema.json":
            members[name] = changed_json(members[name], chance)
        else:
            array, sink = np.load(io.BytesIO(members[name])), io.BytesIO()
            if array.dtype.names and chance.random() < 0.9:
                field = chance.choice(array.dtype.names)
                array[field] = _extremes(array[field].copy(), chance)
            else:
                array = chance.choice(_ARRAYS)(array, chance)
            np.save(sink, array)
            members[name] = sink.getvalue()
    except (ValueError, TypeError, KeyError, zipfile.BadZipFile):
        return content
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, part in members.items():
            archive.writestr(name, part)
    return made.getvalue()


def _change_entry(held: Any, chance: random.Random) -> None:
    """Walks to a random entry and changes it."""
    while isinstance(held, (dict, list)) and held:
        places = list(held) if isinstance(held, dict) else list(range(len(held)))
        place = chance.choice(places)
        if isinstance(held[place], (dict, list)) and held[place] and chance.random() < 0.8:
            held = held[place]
            continue
        match chance.randrange(4):
            case 0:
                held[place] = copy.deepcopy(chance.choice(_WILD))
            case 1:
                del held[place]
            case 2 if isinstance(held, list):
                held.insert(place, copy.deepcopy(held[place]))
            case _:
                held[place] = copy.deepcopy(held[chance.choice(places)])
        return


def _extremes(array: Any, chance: random.Random) -> Any:
    """Up to three neighbours take the wildest values that their type has."""
    flat = array.reshape(-1)
    if not flat.size or array.dtype.kind not in "biuf":
        return array
    if array.dtype.kind == "f":
        wild = [np.nan, np.inf, -np.inf, 0.0, -1.0, 2.0, 1e308, 5e-324]
    elif array.dtype.kind == "b":
        wild = [True, False]
    else:
        most = int(np.iinfo(array.dtype).max)
        wild = [most, most - 1, int(np.iinfo(array.dtype).min), 0, 1, most // 2, *([-1, -2] if most else [])]
        wild = [value for value in wild if np.iinfo(array.dtype).min <= value]
    start = chance.randrange(flat.size)
    for place in range(start, min(flat.size, start + chance.randint(1, 3))):
        flat[place] = chance.choice(wild)
    return flat.reshape(array.shape)


_ARRAYS: list[Callable[[Any, random.Random], Any]] = [
    *(3 * [_extremes]),
    lambda array, _: array[: len(array) // 2] if array.ndim else array,
    lambda array, _: array[::-1] if array.ndim else array,
    lambda array, _: np.concatenate([array, array]) if array.ndim else array,
    lambda array, _: array.reshape(1, *array.shape),
    lambda array, _: array.reshape(-1),
    lambda array, _: array.T,
    lambda array, chance: (
        array.astype(chance.choice(["f8", "f4", "i8", "u8", "i1", "U3"]), copy=False)
        if array.dtype.kind in "biu"
        else array.astype("U9")
    ),
]
