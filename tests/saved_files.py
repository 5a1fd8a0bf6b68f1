"""Files of setwise that tests change to see that readers notice: model directories and parts of them."""

import io
import json
import zipfile

import numpy as np
import skops.io

from setwise.learn.serialization import read_model
from setwise.storage.directory import Parts, listing


def head_of(folder):
    return json.loads((folder / "setwise.json").read_text())


def with_head(folder, head):
    (folder / "setwise.json").write_text(json.dumps(head))


def with_part(folder, part, content):
    """A model directory in which one part has another content, as it is listed."""
    part.write_bytes(content)
    head = head_of(folder)
    head["files"][part.name] = listing(content)
    with_head(folder, head)


def skops_file(model, change=lambda schema, members: None, text=str):
    """The content of a scikit-learn model's file; `change` is given its description and its arrays by file."""
    content = skops.io.dumps(model)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(members.pop("schema.json"))
    change(schema, members)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, part in (members | {"schema.json": text(json.dumps(schema)).encode()}).items():
            archive.writestr(name, part)
    return made.getvalue()


def read_skops(content, folder, trusted=None):
    """The model in such a file."""
    part = folder / "model.skops"
    part.write_bytes(content)
    return read_model({"kind": "skops", "file": part.name}, Parts(folder, {part.name: listing(content)}), trusted)


def attributes(schema, *path):
    """The entries of an object's attributes in a description, at a path of names and positions."""
    entry = schema["content"]["content"]
    for step in path:
        entry = entry[step]["content"]
        entry = entry["content"] if isinstance(entry, dict) and "__loader__" in entry else entry
    return entry


def entries(schema, name):
    """All objects of a type in a description."""
    if isinstance(schema, dict):
        if schema.get("__class__") == name:
            yield schema
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from entries(part, name)


def put(entry, value):
    """Makes an entry a plain value."""
    entry.clear()
    entry |= {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": json.dumps(value)}


def put_array(entry, members, change):
    """Changes the array of an entry."""
    array = np.load(io.BytesIO(members[entry["file"]]))
    changed = change(array)
    made = io.BytesIO()
    np.save(made, array if changed is None else changed)
    entry |= {"file": f"changed-{len(members)}.npy", "__id__": len(members)}
    members[entry["file"]] = made.getvalue()
