"""Checks the tree of a package: no import cycle among its modules, no two modules of one name.

Imports inside functions count, because they hide cycles; imports for type checkers alone do not. A name may occur
twice where it is a convention (`base`, `registry`), and in `cli`, whose files are named for their commands.

    python scripts/check_tree.py [src/setwise]
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict, deque
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

MAY_REPEAT = {"__init__", "__main__", "base", "registry"}
COMMANDS = "cli"

Graph = dict[str, dict[str, str]]
"""Module → imported module → where the import stands."""


def main(package: Path) -> int:
    """Prints what is wrong; the number of findings."""
    modules = {_name(path, package): path for path in sorted(package.rglob("*.py"))}
    found = [*_cycles(_graph(modules)), *_repeated(modules, package)]
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


if __name__ == "__main__":
    sys.exit(1 if main(Path(sys.argv[1] if len(sys.argv) > 1 else "src/setwise")) else 0)
