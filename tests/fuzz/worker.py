"""A process that gives one target inputs for some time; what it found stands in a folder when it ends or dies.

``python -m tests.fuzz.worker TARGET FOLDER SECONDS SEED``: FOLDER/counts.json tells how many inputs were tried and
accepted, FOLDER/findings/ has the input of each finding and what it is, FOLDER/now/ the input of the moment.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import random
import sys
import time
from pathlib import Path

try:
    import atheris
except ModuleNotFoundError:
    atheris = None
_EVERY = 100  # inputs between two notes of how many there were

logging.disable(logging.CRITICAL)


class Tries:
    """What came of the inputs so far."""

    def __init__(self, target, folder: Path) -> None:
        self.target, self.folder = target, folder
        self.now, self.kept = folder / "now", folder / "findings"
        self.now.mkdir(parents=True, exist_ok=True)
        self.kept.mkdir(exist_ok=True)
        self.counts = {"executions": 0, "accepted": 0, "findings": 0}

    def __call__(self, content: bytes) -> None:
        from tests.fuzz.oracle import Finding, judge

        try:
            self.counts["accepted"] += judge(self.target, self.now, content)
        except Finding as finding:
            self._keep(str(finding), content)
        self.counts["executions"] += 1
        if self.counts["executions"] % _EVERY == 0:
            self.note()

    def note(self) -> None:
        (self.folder / "counts.json").write_text(json.dumps(self.counts))

    def _keep(self, told: str, content: bytes) -> None:
        name = hashlib.sha256(told.partition(": ")[0].encode()).hexdigest()[:12]  # one for each place
        if not (self.kept / name).exists():
            self.counts["findings"] += 1
            (self.kept / name).write_bytes(content)
            (self.kept / f"{name}.txt").write_text(told + "\n")


def main(name: str, folder: Path, seconds: float, seed: int) -> None:
    """Until the time is over."""
    with atheris.instrument_imports(include=["setwise"]) if atheris else contextlib.nullcontext():
        from tests.fuzz.targets import TARGETS, corpus
    from tests.fuzz.mutation import mutations
    from tests.fuzz.oracle import bound_memory

    target = TARGETS[name]
    tries, seeds = Tries(target, folder), [*target.seeds(), *(path.read_bytes() for path in corpus(name))]
    for content in seeds:  # loads what is loaded at first use
        tries(content)
    bound_memory()
    if atheris is None:
        end = time.monotonic() + seconds
        for content in mutations(seeds, target.words, target.change, seed):
            tries(content)
            if time.monotonic() > end:
                break
        tries.note()
        return
    reached = folder / "corpus"
    reached.mkdir(exist_ok=True)
    for number, content in enumerate(seeds):
        (reached / f"seed{number}").write_bytes(content)
    words = folder / "words"
    words.write_text("".join('"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n' for word in target.words))
    longest = max(4096, 2 * max(map(len, seeds)))
    limits = [
        f"-max_total_time={int(seconds)}",
        f"-max_len={longest}",
        f"-seed={seed + 1}",
        "-timeout=86400",  # 0 ends a process now and then; the oracle bounds the time of an input
        "-rss_limit_mb=0",
    ]
    options = [
        *limits,
        "-verbosity=0",
        f"-artifact_prefix={folder}/",
        *([f"-dict={words}"] if target.words else []),
    ]

    def mutate(content: bytes, most: int, number: int) -> bytes:
        chance = random.Random(number)  # noqa: S311 - for tests
        if target.change is None or chance.random() < 0.6:
            return atheris.Mutate(content, most)
        return target.change(content, chance)[:most]

    atheris.Setup([sys.argv[0], *options, str(reached)], tries, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
