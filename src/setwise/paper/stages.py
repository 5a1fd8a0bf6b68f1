"""Where the time goes: seconds by the name of a stage, added up."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class Stages:
    """A stopwatch with one hand for each stage.

    >>> stages = Stages()
    >>> with stages.timed("load"):
    ...     pass
    >>> list(stages.seconds)
    ['load']
    """

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Adds what happens inside to a stage."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] += time.perf_counter() - began
