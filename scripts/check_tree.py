"""Checks the tree: no import cycle, no two modules of one name, no two things of one name, tests beside modules.

Imports inside functions count, because they hide cycles; imports for type checkers alone do not. A name may occur
twice where it is a convention (`base`, `registry`), and in `cli`, whose files are named for their commands; a
public function or class of two modules only where it is the same thing, or another library's convention. The
tests of `src/setwise/a/b.py` are `tests/a/test_b.py`; files that test several modules at once are listed here.

    python scripts/check_tree.py [src/setwise [tests]]
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict, deque
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

MAY_REPEAT = {"__init__", "__main__", "base", "registry"}
SAME_THING = {
    "as_words", "mix",  # of NumPy's arrays, and of torch's tensors
    "load",  # `setwise.load` and `setwise.datasets.load`
    "load_model", "save_model",  # as MLflow calls them
}  # fmt: skip
COMMANDS = "cli"
ACROSS = {
    "docs", "faults", "first_use", "fuzz", "honest", "observatory", "reproduction", "statistical", "third_party",
    "test_ambiguous", "test_ambiguous_votes", "test_benchmark_page", "test_benchmarks", "test_check_tree",
    "test_examples",
    "test_extension", "test_frozen", "test_mutation", "test_plain_words", "test_public_api", "test_typing",
    "test_versions", "cli/test_choices", "cli/test_commands", "cli/test_comparison", "cli/test_decisions",
    "cli/test_docs", "cli/test_end_to_end", "cli/test_long", "cli/test_readers", "cli/test_remedies",
    "estimators/test_html", "estimators/test_misuse", "estimators/test_scikit_learn", "learn/test_accuracy",
    "learn/test_continuation", "learn/test_votes_as_targets", "learn/test_without_torch", "report/test_browser",
    "report/test_command", "streams/test_streams", "tables/test_imports",
}  # fmt: skip
"""Folders and files of tests that look at more than one module: whole uses, promises, mistakes, the repository."""

Graph = dict[str, dict[str, str]]
"""Module → imported module → where the import stands."""


def main(package: Path, tests: Path | None = None) -> int:
    """Prints what is wrong; the number of findings."""
    modules = {_name(path, package): path for path in sorted(package.rglob("*.py"))}
    found = [
        *_cycles(_graph(modules)),
        *_repeated(modules, package),
        *_ambiguous(modules, package),
        *([] if tests is None else _astray(tests, package)),
    ]
    for finding in found:
        print(finding)
    print(f"{len(modules)} modules, {len(found)} findings." if found else f"{len(modules)} modules: in order.")
    return len(found)


def _name(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _graph(modules: dict[str, Path]) -> Graph:
    graph: Graph = {}
    for name, path in modules.items():
        own = name if path.name == "__init__.py" else name.rpartition(".")[0]
        tree = ast.parse(path.read_text(encoding="utf-8"))
        graph[name] = {
            target: f"{path}:{line}"
            for wanted, line in _imports(tree, own)
            if (target := wanted if wanted in modules else wanted.rpartition(".")[0]) in modules and target != name
        }
    return graph


def _imports(tree: ast.AST, package: str) -> Iterator[tuple[str, int]]:
    """The names that are imported (of modules, or of things in modules), and the lines they stand in."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for other in node.orelse:
                yield from _imports(other, package)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = ".".join(package.split(".")[: len(package.split(".")) + 1 - node.level]) if node.level else ""
            source = ".".join(filter(None, (start, node.module)))
            yield from ((f"{source}.{alias.name}", node.lineno) for alias in node.names)
        else:
            yield from _imports(node, package)


def _cycles(graph: Graph) -> Iterator[str]:
    """A shortest cycle through each module that is on one, each cycle once."""
    seen: set[str] = set()
    for start in graph:
        path = _way_back(graph, start)
        if path and not seen & set(path):
            seen |= set(path)
            steps = (f"    {a} imports {b} ({graph[a][b]})" for a, b in pairwise(path))
            yield "import cycle:\n" + "\n".join(steps)


def _way_back(graph: Graph, start: str) -> list[str]:
    """The shortest way along imports from a module to itself, empty where there is none."""
    came_from: dict[str, str] = {}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        for there in graph[here]:
            if there == start:
                path = [start, here]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                return path[::-1]
            if there not in came_from:
                came_from[there] = here
                queue.append(there)
    return []


def _repeated(modules: dict[str, Path], package: Path) -> Iterator[str]:
    homes: defaultdict[str, list[Path]] = defaultdict(list)
    for path in modules.values():
        if path.stem not in MAY_REPEAT and path.parent != package / COMMANDS:
            homes[path.stem].append(path)
    for name, paths in homes.items():
        if len(paths) > 1:
            yield f"the module name {name} occurs {len(paths)} times: {', '.join(map(str, paths))}"


def _astray(tests: Path, package: Path) -> Iterator[str]:
    """Files of tests whose path names no module, and exceptions that are no more."""
    files = {path.relative_to(tests).with_suffix("").as_posix(): path for path in sorted(tests.rglob("test_*.py"))}
    for name, path in files.items():
        folder, subject = path.parent.relative_to(tests), path.stem.removeprefix("test_")
        modules = [package / folder / f"{subject}.py", package / folder / f"_{subject}.py"]
        if not any(module.exists() for module in modules) and not {name, name.partition("/")[0]} & ACROSS:
            yield f"{path} tests no module of its name: {modules[0]} is not there"
    if tests == Path("tests"):
        gone = {one for one in ACROSS if one not in files and not (tests / one).is_dir()}
        yield from (f"the exception {one} is not among the tests" for one in sorted(gone))


def _ambiguous(modules: dict[str, Path], package: Path) -> Iterator[str]:
    """Public functions and classes that have the name of another one."""
    homes: defaultdict[str, list[Path]] = defaultdict(list)
    for path in modules.values():
        if path.parent == package / COMMANDS:
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                homes[node.name].append(path)
    for name, paths in homes.items():
        if len(paths) > 1 and name not in SAME_THING:
            yield f"{name} is the name of {len(paths)} things: {', '.join(map(str, paths))}"


if __name__ == "__main__":
    given = [Path(argument) for argument in sys.argv[1:]] or [Path("src/setwise"), Path("tests")]
    sys.exit(1 if main(*given) else 0)
