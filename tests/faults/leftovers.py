"""What is in the folder of a command that was cut short: the old or the new, whole, and nothing else."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from setwise import ConformalClassifier

_TEMPORARY = re.compile(r"(^|/)\.[^/]*\.[0-9a-f]{16}\.setwise\.tmp(/|$)")
_TIMED = {"runs.json", "results.json", "report.html"}  # hold durations: complete is all that can be asked


def contents(folder: Path) -> dict[str, str]:
    """Every file in a folder, with a digest of what it holds."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def wrong_left(
    folder: Path, old: dict[str, str], new: dict[str, str], *, swept: bool, together: Sequence[str] = ()
) -> Iterator[str]:
    """What is neither the old nor the new, or should not be there; temporary files must be gone if `swept`.

    Of files that belong `together` none is old beside a new one; a killed process may leave the first alone.
    """
    if (folder / "model").exists():
        try:
            ConformalClassifier.load(folder / "model")
        except (ValueError, OSError) as error:
            yield f"the model does not load: {error}"
            return
        listed = {"setwise.json", *json.loads((folder / "model" / "setwise.json").read_text())["files"]}
        if swept and not old:  # after an undisturbed run
            yield from (
                f"{part} is no part" for part in {path.name for path in (folder / "model").iterdir()} - listed
            )
    left = contents(folder)
    for name, digest in left.items():
        if _TEMPORARY.search(name):
            if swept:
                yield f"{name} is left"
        elif name not in old and name not in new and not _may_differ(name):
            yield f"{name} is left, which nobody knows"
        elif digest not in {old.get(name), new.get(name)} and not (_may_differ(name) and _complete(folder / name)):
            yield f"{name} is neither the old nor the new one"
    may_lack = () if swept else together[1:]
    yield from (f"{name} is gone" for name in old.keys() & new.keys() - left.keys() - {*may_lack})
    if len({left[name] == old.get(name) for name in together if name in left}) > 1:
        yield f"{' and '.join(together)} are an old one and a new one"
    for place in folder.rglob(".*.setwise.tmp"):
        if swept and place.is_dir():
            yield f"{place.name} is left"


def _may_differ(name: str) -> bool:
    """Whether two runs need not write the same bytes: durations, and what holds the time of day."""
    return Path(name).name in _TIMED or name.endswith(".done.json") or name.startswith(("results/cells/", "model/"))


def _complete(path: Path) -> bool:
    content = path.read_bytes()
    if path.suffix == ".json":
        return isinstance(json.loads(content), (dict, list))
    return content.rstrip().endswith(b"</html>") if path.suffix == ".html" else path.parent.name == "model"
