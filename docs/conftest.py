"""Of the files here pytest runs the pages (`*.md`); scripts of the gallery are run by `tests/docs`."""

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits

collect_ignore_glob = ["conf.py", "_extensions/*", "gallery/*", "auto_examples/*", "_build/*", "scripts/*"]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Small examples on a busy machine are faster with one thread than with several that wait for each other."""
    with threadpool_limits(1):
        yield
