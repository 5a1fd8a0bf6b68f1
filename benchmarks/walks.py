"""Four walks through the package, traced: which modules a call passes, and which of them call each other both ways.

    python benchmarks/walks.py

`conformalize` and `predict_set`; the commands `setwise fit` (2 epochs) and `setwise predict`; `fit(X, votes, verified=…)`;
`triage(X)`: on 300 rows. Counted are calls from one function of setwise to another, in the main thread: calls, functions,
modules, changes of the module, and pairs of modules of which each calls the other.
"""

from __future__ import annotations

import collections
import contextlib
import io
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import setwise
from setwise.cli.app import run

PACKAGE = str(Path(setwise.__file__).resolve().parent)

PASSED_ON = {"_lazy", "_arrays"}  # a property that remembers, and blocks of rows: they call whoever uses them


class Walk:
    """What one call passes."""

    def __init__(self) -> None:
        self.calls: collections.Counter[tuple[str, str]] = collections.Counter()
        self.functions: set[tuple[str, str]] = set()
        self.count = 0

    def __call__(self, frame, event, _) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        if frame.f_code.co_name in {"<module>", "<genexpr>", "<listcomp>", "<dictcomp>", "<lambda>"}:
            return
        there = _module(frame.f_code.co_filename)
        if there in PASSED_ON:
            return
        caller = frame.f_back
        while caller is not None and not _counts(caller):
            caller = caller.f_back
        self.count += 1
        self.functions.add((there, frame.f_code.co_qualname))
        if caller is not None:
            self.calls[_module(caller.f_code.co_filename), there] += 1

    @property
    def modules(self) -> set[str]:
        return {module for module, _ in self.functions}

    @property
    def switches(self) -> int:
        return sum(count for (a, b), count in self.calls.items() if a != b)

    @property
    def both_ways(self) -> list[str]:
        return sorted(f"{a} ↔ {b}" for a, b in self.calls if a < b and (b, a) in self.calls)


def _counts(frame) -> bool:
    """Whether a frame is one of the package, and not of what only passes a call on."""
    file = frame.f_code.co_filename
    return file.startswith(PACKAGE) and _module(file) not in PASSED_ON


def _module(file: str) -> str:
    return Path(file).relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")


def walked(work: Callable[[], object]) -> Walk:
    """The walk of one call, after modules were imported by another."""
    walk = Walk()
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        work()
        sys.setprofile(walk)
        try:
            work()
        finally:
            sys.setprofile(None)
    return walk


def command(*arguments: object) -> Callable[[], object]:
    """A command, run in this process."""

    def work() -> None:
        if status := run([str(argument) for argument in arguments]):
            raise SystemExit(f"setwise {' '.join(map(str, arguments))} ended with status {status}")

    return work


def main() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = rng.normal(size=(300, 4)) + 1.5 * y[:, None]
    P = rng.dirichlet([1, 1, 1], 300)
    S = P > 0.3
    S[np.arange(300), P.argmax(axis=1)] = True
    answers = np.where(rng.random((300, 5)) < 0.8, y[:, None], rng.integers(0, 3, (300, 5)))
    votes = setwise.Votes.from_matrix(answers, classes=range(3))
    verified = [int(label) if row < 80 else None for row, label in enumerate(rng.permutation(y))]
    cal = setwise.conformalize(P, S)
    model = setwise.ConformalClassifier(random_state=0).fit(X, votes, verified=[*y[:80].tolist(), *[None] * 220])
    fresh = rng.normal(size=(300, 4))
    with tempfile.TemporaryDirectory() as folder:
        table, new, saved, sets = (Path(folder, name) for name in ("rows.csv", "new.csv", "model", "sets.csv"))
        features = [",".join(f"{value:.4f}" for value in row) for row in X]
        lines = [f"{line},{'|'.join(map(str, np.flatnonzero(s)))}" for line, s in zip(features, S, strict=True)]
        table.write_text("\n".join(["a,b,c,d,labels", *lines, ""]), encoding="utf-8")
        new.write_text("\n".join(["a,b,c,d", *features, ""]), encoding="utf-8")
        walks = {
            "conformalize": lambda: setwise.conformalize(P, S),
            "predict_set": lambda: cal.predict_set(P),
            "guarantee": lambda: str(cal.guarantee()),
            "setwise fit": command(
                "fit",
                table,
                "--candidates",
                "labels",
                "--out",
                saved,
                "--learner",
                "network",
                "--epochs",
                2,
                "--force",
            ),
            "setwise predict": command("predict", saved, new, "--out", sets, "--force"),
            "fit(X, votes, verified=)": lambda: setwise.ConformalClassifier(random_state=0).fit(
                X, votes, verified=verified
            ),
            "triage(X)": lambda: model.triage(fresh),
        }
        print(f"{'walk':26}{'calls':>8}{'functions':>11}{'modules':>9}{'switches':>10}  called both ways")
        for name, work in walks.items():
            walk = walked(work)
            print(
                f"{name:26}{walk.count:>8,}{len(walk.functions):>11}{len(walk.modules):>9}{walk.switches:>10,}  {', '.join(walk.both_ways) or 'none'}"
            )


if __name__ == "__main__":
    main()
