"""Mutation testing of the modules that decide what is claimed: of changes of one token, how many does a test notice.

The mutants are cosmic-ray's, a seeded sample of them: per package the places with the smallest hashes (so that an
edit changes the sample where it was made, and nowhere else), and one mutant at each place. Left out by rule:

- docstrings, annotations, `if TYPE_CHECKING`, overloads, protocols, and what compiles to the same code;
- messages: text with values in it (f-strings), what is raised or warned of, `__repr__` and `_repr_html_`;
- exchanges that no test could miss (`x < y` for `x is y`, `+` for `<<`): arithmetic stays arithmetic.

Files are never changed. Tests are collected once, and each mutant is a fork of that process in which the code of one
function is another; what runs at import (defaults, decorators) is a fork from before the import. A mutant meets the
tests that execute its line, found by coverage, the fastest first, until one fails. Limits are CPU seconds, which the
load of the machine does not touch. The work continues where it stopped; reasons that are written beside survivors in
the results are kept.

    python benchmarks/mutation.py [--processes 2] [--only GLOB] [--again]
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import fnmatch
import gc
import hashlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from hypothesis import Phase, settings
from summary import machine

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "mutation"
OUT = ROOT / "benchmarks" / "results" / "mutation.json"
SEED = 19
SIZES = {
    "ranks": 50,
    "scores": 70,
    "guarantees": 40,
    "probabilities": 30,
    "evidence": 60,
    "calibration": 65,
    "conformal": 25,
    "strategies": 130,
    "decisions": 90,
}
"""Mutants of each package or module of `setwise`."""
TESTS = [
    *(f"tests/{name}" for name in ("calibration", "conformal", "contamination", "crowd", "decisions", "drift")),
    *(f"tests/{name}" for name in ("estimators", "evidence", "probabilities", "storage", "strategies")),
    *(f"tests/{name}.py" for name in ("test_extension", "test_frozen")),
    *(f"tests/test_{name}.py" for name in ("guarantees", "metrics", "ranks", "row_noise", "scores", "two_samples")),
    *(f"src/setwise/{name}" + (".py" if name in {"ranks", "scores", "guarantees"} else "") for name in SIZES),
]
BUDGETS = (5.0, 25.0)
"""CPU seconds of tests a mutant meets: first all mutants the fast ones, then what survived the others."""
SPARE = 10.0
"""CPU seconds a test may take beyond ten times its usual ones, before its mutant is said to hang."""
MEMORY = 3 << 30
ARITHMETIC = {"Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow"}
IDENTITY = {"Is", "IsNot"}
MESSAGES = {"InputError", "Remedy", "MisuseWarning", "warn"}
PRINTING = {"__repr__", "_repr_html_"}


@dataclass(frozen=True)
class Mutant:
    """One changed token; `functions` are those whose code changes, empty where it is what an import runs."""

    key: str
    room: str
    path: str
    line: int
    before: str
    after: str
    operator: str
    source: str
    functions: tuple[str, ...]


def main() -> None:
    """Samples, maps tests to lines, tries every mutant, and writes the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="*", help="keys of mutants, as a pattern")
    parser.add_argument("--again", action="store_true", help="tries survivors again (after tests were added)")
    options = parser.parse_args()
    os.chdir(ROOT)
    here = machine()
    WORK.mkdir(parents=True, exist_ok=True)
    settings.register_profile("no shrinking", phases=(Phase.explicit, Phase.generate), database=None)
    settings.load_profile("no shrinking")  # the profile of tests/conftest.py inherits it
    sampled = sample()
    _in_a_fork(_map_tests)
    results = Results(WORK / "results.jsonl", {m.key for m in sampled})
    if options.again:
        results.forget("survived")
    for part, budget in enumerate(BUDGETS):
        wanted = [m for m in sampled if results.open(m.key, part) and fnmatch.fnmatch(m.key, options.only)]
        plans = Plans(json.loads((WORK / "map.json").read_text()))
        trials = {m.key: plans.tests(m, BUDGETS[part - 1] if part else 0.0, budget) for m in wanted}
        print(f"tests for {budget:g} s: {len(wanted)} mutants", flush=True)
        _try_functions([m for m in wanted if m.functions], trials, results, part, options.processes)
        _try_imports([m for m in wanted if not m.functions], trials, results, part, options.processes)
        results.read()
    _control(sampled, results)
    summarise(sampled, results, here)


def _control(sampled: list[Mutant], results: Results) -> None:
    """The tests that killed must pass in the same kinds of process where nothing is changed."""
    known = Plans(json.loads((WORK / "map.json").read_text()))
    unchanged = Results(WORK / "control.jsonl", set())
    for within, work in ((True, _try_functions), (False, _try_imports)):
        some = [m for m in sampled if bool(m.functions) == within]
        killers = {results.found[m.key]["by"] for m in some if m.key in results.found} & known.seconds.keys()
        if killers:
            same = replace(
                some[0], key=f"control {within}", source=(ROOT / some[0].path).read_text(encoding="utf-8")
            )
            work([same], {same.key: [(t, known.seconds[t]) for t in sorted(killers)]}, unchanged, 0, 1)
    unchanged.read()
    if failed := [r for r in unchanged.found.values() if r["outcome"] != "survived"]:
        raise SystemExit(f"not by a mutant: {failed}")


# The sample


def sample() -> list[Mutant]:
    """The mutants, the same for the same source."""
    kept, source = WORK / "sample.json", _sources()
    if kept.exists() and (known := json.loads(kept.read_text()))["source"] == source:
        return [Mutant(**m | {"functions": tuple(m["functions"])}) for m in known["mutants"]]
    made: list[Mutant] = []
    for room, size in SIZES.items():
        places = sorted(_places(room), key=lambda place: place[0])
        fresh = (m for place in places if (m := _mutant(room, *place[1:])))
        made += [m for m, _ in zip(fresh, range(size), strict=False)]
        print(f"{room}: {len(places)} places", flush=True)
    kept.write_text(json.dumps({"source": source, "mutants": [asdict(m) for m in made]}))
    return made


def _sources() -> str:
    """A digest of the package and of what is drawn."""
    paths = sorted((ROOT / "src").rglob("*.py"))
    return _hash(SIZES, *map(_digest, paths))


def _places(room: str) -> Iterator[tuple[str, Path, tuple[int, int], list[tuple[str, int]]]]:
    """A hash, the file, the position, and the mutants there (operator, occurrence)."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    operators = {n: get_operator(n)() for n in operator_names() if not get_operator(n).arguments() and _serious(n)}
    package = ROOT / "src" / "setwise" / room
    for path in sorted(package.rglob("*.py")) if package.is_dir() else [package.with_suffix(".py")]:
        text = path.read_text(encoding="utf-8")
        nodes = list(ast_nodes(get_ast(text)))
        here = defaultdict(list)
        for name, operator in operators.items():
            found = (start for node in nodes for start, _ in operator.mutation_positions(node))
            for occurrence, start in enumerate(found):
                here[start].append((name, occurrence))
        left_out = _left_out(ast.parse(text))
        lines, seen = text.splitlines(), Counter()
        for (line, column), mutants in sorted(here.items()):
            if any(start <= (line, column) < end for start, end in left_out):
                continue
            name = f"{path.relative_to(ROOT)}|{lines[line - 1].strip()}|{column}"
            seen[name] += 1
            yield _hash(name, seen[name]), path, (line, column), mutants


def _hash(*parts: object) -> str:
    return hashlib.sha256(repr((SEED, *parts)).encode()).hexdigest()


def _serious(operator: str) -> bool:
    """Whether an operator stays within its family."""
    kind, _, exchange = operator.removeprefix("core/").partition("_")
    one, _, other = exchange.partition("_")
    if kind == "ReplaceBinaryOperator":
        return (one in ARITHMETIC) == (other in ARITHMETIC)
    if kind == "ReplaceComparisonOperator":
        return (one in IDENTITY) == (other in IDENTITY)
    return True


def _left_out(tree: ast.Module) -> list[tuple[tuple[int, int], tuple[int, int]]]:  # noqa: C901
    """Where no mutants are made: annotations, stubs and messages."""

    def name(node: ast.expr) -> str:
        return ast.unparse(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2].partition("[")[0]

    def parts(node: ast.AST) -> Iterable[ast.AST | None]:
        match node:
            case ast.FunctionDef(name=own, decorator_list=marks) if own in PRINTING or "overload" in map(
                name, marks
            ):
                return [node]
            case ast.ClassDef(bases=bases) if "Protocol" in map(name, bases):
                return [node]
            case ast.FunctionDef(returns=returns):
                return [returns]
            case ast.arg(annotation=annotation) | ast.AnnAssign(annotation=annotation):
                return [annotation]
            case ast.If(test=test) if ast.unparse(test).endswith("TYPE_CHECKING"):
                return [node]
            case ast.Raise(exc=raised):
                return [raised]
            case ast.JoinedStr():
                return [node]
            case ast.Call(func=called) if name(called) in MESSAGES:
                return [node]
        return []

    def start(part: ast.expr | ast.stmt) -> tuple[int, int]:
        marks = getattr(part, "decorator_list", [])
        return (marks[0].lineno, 0) if marks else (part.lineno, part.col_offset)

    return [
        (start(part), (part.end_lineno or 0, part.end_col_offset or 0))
        for node in ast.walk(tree)
        for part in parts(node)
        if isinstance(part, ast.expr | ast.stmt)
    ]


def _mutant(room: str, path: Path, position: tuple[int, int], mutants: list[tuple[str, int]]) -> Mutant | None:
    """One of the mutants of a place, if there is one that compiles to other code."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    text = path.read_text(encoding="utf-8")
    for name, occurrence in sorted(
        mutants, key=lambda m: _hash(path.name, text.splitlines()[position[0] - 1], m[0])
    ):
        source = mutate_code(text, get_operator(name)(), occurrence)
        try:
            changed = _changed(compile(text, path, "exec"), compile(source, path, "exec"))
        except SyntaxError:
            continue
        if changed is None or _stars(text) != _stars(source):
            continue
        lines = [d for d in difflib.ndiff(text.splitlines(), source.splitlines()) if d[:2] in {"- ", "+ "}]
        return Mutant(
            key=f"{path.relative_to(ROOT)}:{position[0]}:{_hash(source)[:12]}",
            room=room,
            path=str(path.relative_to(ROOT)),
            line=position[0],
            before=_shown(lines, "-"),
            after=_shown(lines, "+"),
            operator=name.removeprefix("core/"),
            source=source,
            functions=changed,
        )
    return None


def _shown(lines: list[str], sign: str) -> str:
    return "\n".join(" ".join(d[2:].split()) for d in lines if d[0] == sign and d[2:].strip())


def _stars(source: str) -> Counter[object]:
    """The stars that are no products: `def f(*, a)`, `f(*a)`, `f(**a)`."""
    counts: Counter[object] = Counter()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arguments):
            counts[len(node.posonlyargs), len(node.args), len(node.kwonlyargs)] += 1
        elif isinstance(node, ast.Starred) or (isinstance(node, ast.keyword) and node.arg is None):
            counts[type(node)] += 1
    return counts


def _changed(one: CodeType, other: CodeType) -> tuple[str, ...] | None:
    """The functions whose code differs; () where what an import runs differs, None where nothing does."""
    (own, functions), (others, replaced) = _parts(one), _parts(other)
    if own != others or functions.keys() != replaced.keys():
        return ()
    return tuple(k for k, code in functions.items() if _content(code) != _content(replaced[k])) or None


def _parts(code: CodeType) -> tuple[list[object], dict[str, CodeType]]:
    """What an import runs, and the functions it defines, by name and line."""
    run: list[object] = [code.co_code, code.co_names]
    functions = {}
    for constant in code.co_consts:
        if not isinstance(constant, CodeType):
            run.append(repr(constant))
        elif constant.co_flags & 0x2:  # CO_NEWLOCALS: a function and no class body
            functions[f"{constant.co_qualname}:{constant.co_firstlineno}"] = constant
        else:
            inner, within = _parts(constant)
            run += inner
            functions |= within
    return run, functions


def _content(code: CodeType) -> tuple[object, ...]:
    """What a function does, wherever in its line it stands."""
    constants = (_content(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts)
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, *constants


# Which tests execute which line


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _map_tests() -> None:
    """Test → CPU seconds, and line → tests that execute it; again for the files of tests that have changed."""
    kept = WORK / "map.json"
    known = json.loads(kept.read_text()) if kept.exists() else {"files": {}, "seconds": {}, "lines": {}}
    sources = sorted((ROOT / "src").rglob("*.py"))
    files = {p: _digest(ROOT / p) for p in sorted({_file(p) for t in TESTS for p in _test_files(ROOT / t)})}
    source = hashlib.sha256("".join(map(_digest, sources)).encode()).hexdigest()
    if source != known.get("source"):
        known = {"files": {}, "seconds": {}, "lines": {}, "source": source}
    stale = {f for f in {*files, *known["files"]} if known["files"].get(f) != files.get(f)}
    if not stale:
        return
    known["seconds"] = {t: s for t, s in known["seconds"].items() if _of(t) not in stale}
    mapping = Mapping()
    _session(mapping, sorted(stale & files.keys()))
    known["files"] = files
    known["seconds"] |= mapping.seconds
    known["lines"] = {
        path: {
            line: [t for t in known["lines"].get(path, {}).get(line, []) if _of(t) not in stale] + new.get(line, [])
            for line in {*known["lines"].get(path, {}), *new}
        }
        for path in {*known["lines"], *mapping.lines}
        for new in [mapping.lines.get(path, {})]
    }
    kept.write_text(json.dumps(known))
    print(f"{len(known['seconds'])} tests, {sum(known['seconds'].values()):.0f} CPU seconds", flush=True)


def _test_files(where: Path) -> Iterable[Path]:
    return where.rglob("*.py") if where.is_dir() else [where]


def _file(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _of(test: str) -> str:
    return test.partition("::")[0]


class Mapping:
    """Runs every test once, each a context of coverage. Tests that fail by themselves are left out."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.lines: dict[str, dict[str, list[str]]] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        import coverage

        rooms = [f"*/setwise/{room}{end}" for room in SIZES for end in (".py", "/*")]
        cov = coverage.Coverage(data_file=None, include=rooms, config_file=False)
        cov.start()
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            cov.switch_context(item.nodeid)
            begun = time.process_time()
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            self.seconds[item.nodeid] = round(time.process_time() - begun, 4)
        cov.stop()
        for test in self.failed:
            self.seconds.pop(test, None)
            print(f"fails without a mutant: {test}", flush=True)
        for path in cov.get_data().measured_files():
            found = cov.get_data().contexts_by_lineno(path).items()
            self.lines[_file(Path(path))] = {str(n): [t for t in tests if t in self.seconds] for n, tests in found}
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)


class Plans:
    """The tests a mutant meets."""

    def __init__(self, known: dict[str, Any]) -> None:
        self.seconds: dict[str, float] = known["seconds"]
        self.lines: dict[str, dict[str, list[str]]] = known["lines"]
        self.idle = self.seconds.keys() - {
            t for lines in self.lines.values() for found in lines.values() for t in found
        }
        spent = defaultdict(list)
        for test, seconds in self.seconds.items():
            spent[_of(test)].append(seconds)
        self.mean = {file: sum(all_) / len(all_) for file, all_ in spent.items()}

    def tests(self, mutant: Mutant, after: float, until: float) -> list[tuple[str, float]]:
        """Those that execute the line, fast ones first; for what an import runs, the module or nothing else."""
        lines = self.lines.get(mutant.path, {})
        numbers = _statement(mutant) if mutant.functions else map(int, lines)
        tests = {test for n in numbers for test in lines.get(str(n), ())}
        if not mutant.functions:
            tests |= self.idle
        chosen, spent, own = [], 0.0, (Path(mutant.path).stem, mutant.room)

        def order(test: str) -> tuple[object, ...]:  # first the module's own, then its package's
            far = next((i for i, name in enumerate(own) if name in _of(test)), len(own))
            return self.seconds[test] > 1, far, self.mean[_of(test)], _of(test), self.seconds[test]

        for test in sorted(tests, key=order):
            if after <= spent < until:
                chosen.append((test, self.seconds[test]))
            spent += self.seconds[test]
        return chosen


def _statement(mutant: Mutant) -> range:
    """The lines of the statement (of a compound one the head) that holds the mutated line."""
    best = range(mutant.line, mutant.line + 1)
    for node in ast.walk(ast.parse((ROOT / mutant.path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.stmt) and node.lineno <= mutant.line <= (node.end_lineno or 0):
            body = getattr(node, "body", None)
            end = body[0].lineno if body else (node.end_lineno or 0) + 1
            if node.lineno <= mutant.line < max(end, node.lineno + 1):
                best = range(node.lineno, max(end, node.lineno + 1))
    return best


# Trials


class Results:
    """Outcomes as lines of JSON, appended by whoever has one."""

    def __init__(self, path: Path, keys: set[str]) -> None:
        self.path, self.keys = path, keys
        self.found: dict[str, dict[str, Any]] = {}
        self.read()

    def read(self) -> None:
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        for result in map(json.loads, lines):
            self.found[result["key"]] = result

    def open(self, key: str, part: int) -> bool:
        """Whether a mutant is still to meet a part of its tests."""
        result = self.found.get(key)
        return result is None if part == 0 else result is not None and _next(result) == part

    def forget(self, outcome: str) -> None:
        self.found = {k: r for k, r in self.found.items() if r["outcome"] != outcome and k in self.keys}
        self.path.write_text("".join(json.dumps(r) + "\n" for r in self.found.values()))

    def add(self, mutant: Mutant, part: int, outcome: str, by: str = "", tests: int = 0) -> None:
        line = {"key": mutant.key, "part": part, "outcome": outcome, "by": by, "tests": tests}
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def _next(result: dict[str, Any]) -> int:
    return int(result["part"]) + 1 if result["outcome"] == "survived" else -1


class Trial:
    """Runs the given tests, in this order, until one fails."""

    def __init__(self, mutant: Mutant, tests: list[tuple[str, float]], results: Results, part: int) -> None:
        self.mutant, self.tests, self.results, self.part = mutant, tests, results, part
        self.failed = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.run(session)
        return True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:  # the import itself fails
            self.results.add(self.mutant, self.part, "killed", f"collection of {report.nodeid}")
            os._exit(0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = report.nodeid

    def run(self, session: pytest.Session) -> None:
        items = {item.nodeid: item for item in session.items}
        chosen = [(items[t], s) for t, s in self.tests if t in items]
        ran = 0
        following = [*(item for item, _ in chosen[1:]), None]
        for (item, seconds), after in zip(chosen, following, strict=False):
            _limit(10 * seconds + SPARE)
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            ran += 1
            if self.failed:
                break
        self.results.add(self.mutant, self.part, "killed" if self.failed else "survived", self.failed, ran)


class Server:
    """Collects once; each mutant is a fork in which functions have other code."""

    def __init__(
        self,
        mutants: list[Mutant],
        trials: dict[str, list[tuple[str, float]]],
        results: Results,
        part: int,
        processes: int,
    ) -> None:
        self.mutants, self.trials, self.results, self.part, self.processes = (
            mutants,
            trials,
            results,
            part,
            processes,
        )
        self.trial: Trial | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        functions = _functions()
        gc.freeze()

        def one(mutant: Mutant) -> None:
            self.trial = Trial(mutant, self.trials[mutant.key], self.results, self.part)
            _exchange(mutant, functions)
            session.config._tmp_path_factory._given_basetemp = Path(tempfile.mkdtemp(dir=WORK))  # type: ignore[attr-defined]
            self.trial.run(session)

        _fork_each(self.mutants, one, self.results, self.part, self.processes)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self.trial:
            self.trial.pytest_runtest_logreport(report)


def _functions() -> dict[tuple[str, str], list[FunctionType]]:
    """All functions there are, by file, name and line."""
    found = defaultdict(list)
    for thing in gc.get_objects():
        if type(thing) is FunctionType:  # isinstance would ask lazy objects what they are
            code = thing.__code__
            found[code.co_filename, f"{code.co_qualname}:{code.co_firstlineno}"].append(thing)
    return found


def _exchange(mutant: Mutant, functions: dict[tuple[str, str], list[FunctionType]]) -> None:
    """Gives the functions of a mutant their code."""
    path = str(ROOT / mutant.path)
    code = _parts(compile(mutant.source, path, "exec"))[1]
    for name in mutant.functions:
        if not functions[path, name]:
            raise LookupError(name)
        for function in functions[path, name]:
            function.__code__ = code[name]


def _try_functions(
    mutants: list[Mutant], trials: dict[str, list[tuple[str, float]]], results: Results, part: int, processes: int
) -> None:
    """Mutants of functions: one session collects the tests for all."""
    if mutants:
        _in_a_fork(lambda: _session(Server(mutants, trials, results, part, processes)))


def _try_imports(
    mutants: list[Mutant], trials: dict[str, list[tuple[str, float]]], results: Results, part: int, processes: int
) -> None:
    """Mutants of what an import runs: the package is imported anew in each fork."""
    import numpy as np  # noqa: F401
    import pandas as pd  # noqa: F401
    import scipy.stats as st  # noqa: F401
    import sklearn.linear_model  # noqa: F401

    def one(mutant: Mutant) -> None:
        own, usual = str(ROOT / mutant.path), SourceFileLoader.get_code

        def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
            return compile(mutant.source, own, "exec") if self.path == own else usual(self, fullname)

        SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
        tests = trials[mutant.key]
        _limit(60 + SPARE)
        with contextlib.chdir(ROOT):
            code = _session(
                Trial(mutant, tests, results, part),
                sorted({_of(t) for t, _ in tests}),
                WORK / f"tmp{os.getpid()}",
            )
        if code == pytest.ExitCode.USAGE_ERROR:  # the import of tests/conftest.py fails
            results.add(mutant, part, "killed", "collection of tests/conftest.py")

    _fork_each(mutants, one, results, part, processes)


def _fork_each(
    mutants: list[Mutant], work: Callable[[Mutant], None], results: Results, part: int, processes: int
) -> None:
    """A process for each mutant, several at a time."""
    running: dict[int, Mutant] = {}

    def wait() -> None:
        pid, status = os.wait()
        mutant = running.pop(pid)
        ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if ended not in {0, signal.SIGKILL, signal.SIGTERM, signal.SIGINT}:  # those come from outside
            results.add(mutant, part, "timeout" if ended == signal.SIGXCPU else "crash")

    for number, mutant in enumerate(mutants):
        if number % 20 == 0:
            print(f"  {number} of {len(mutants)}", flush=True)
        if len(running) == processes:
            wait()
        if not (pid := os.fork()):
            _apart()
            try:
                work(mutant)
            except BaseException as error:  # noqa: BLE001
                results.add(mutant, part, "error", repr(error))
            os._exit(0)
        running[pid] = mutant
    while running:
        wait()
    for left in WORK.glob("tmp*"):
        shutil.rmtree(left, ignore_errors=True)


def _apart() -> None:
    """A fork prints nothing, signals none of the others, and may not use up the memory."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    memory = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (memory + MEMORY, memory + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit(seconds: float) -> None:
    """The process ends when it has used so many CPU seconds more."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + seconds) + 1, resource.RLIM_INFINITY))


def _session(plugin: object, files: list[str] | None = None, tmp: Path | None = None) -> int:
    options = ["-q", "-s", "--tb=no", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    options += ["--assert=plain"]  # else pytest would load the modules that it is given, past `get_code`
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # Hypothesis is imported already
    return pytest.main([*options, *([f"--basetemp={tmp}"] if tmp else []), *(files or TESTS)], plugins=[plugin])


def _in_a_fork(work: Callable[[], None]) -> None:
    """So that the package is not imported in this process."""
    sys.stdout.flush()
    if not (pid := os.fork()):
        try:
            work()
        finally:
            sys.stdout.flush()
            os._exit(0)
    os.waitpid(pid, 0)


# The summary


def summarise(sampled: list[Mutant], results: Results, here: dict[str, Any]) -> None:
    """Counts, and the survivors with the reasons that were written beside them."""
    before = json.loads(OUT.read_text())["survivors"] if OUT.exists() else []
    reasons = {(s["path"], s["before"], s["after"]): s["reason"] for s in before}
    outcomes = {m.key: results.found.get(m.key, {"outcome": "open"})["outcome"] for m in sampled}
    survivors = []
    for m in sampled:
        if outcomes[m.key] == "survived":
            reason = reasons.get((m.path, m.before, m.after), "")
            survivors.append(
                {k: v for k, v in asdict(m).items() if k not in {"key", "source", "functions"}} | {"reason": reason}
            )
    equivalent = sum(s["reason"].startswith("equivalent") for s in survivors)
    killed = sum(o in {"killed", "timeout", "crash"} for o in outcomes.values())
    summary = {
        "machine": here,
        "seed": SEED,
        "mutants": len(sampled),
        "killed": killed,
        "share_killed": round(killed / len(sampled), 4),
        "share_killed_of_not_equivalent": round(killed / (len(sampled) - equivalent), 4),
        "outcomes": dict(Counter(outcomes.values())),
        "rooms": {room: dict(Counter(outcomes[m.key] for m in sampled if m.room == room)) for room in SIZES},
        "survivors": survivors,
    }
    OUT.write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    print(json.dumps({k: v for k, v in summary.items() if k != "survivors"}, indent=1))


if __name__ == "__main__":
    main()
