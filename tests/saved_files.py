"""Files of setwise that tests change to see that readers notice: model directories and calibrations."""

import json


def head_of(folder):
    return json.loads((folder / "setwise.json").read_text())


def with_head(folder, head):
    (folder / "setwise.json").write_text(json.dumps(head))
