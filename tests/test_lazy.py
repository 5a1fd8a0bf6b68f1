"""Values computed on first use: once, and without making threads wait for each other."""

import re
import threading
from pathlib import Path

import setwise
from setwise._lazy import lazy


def test_a_value_is_computed_once_for_each_object():
    class Thing:
        calls = 0

        @lazy
        def value(self):
            """What it is."""
            Thing.calls += 1
            return self

    one, other = Thing(), Thing()
    assert one.value is one.value
    assert other.value is other
    assert Thing.calls == 2
    assert Thing.value.__doc__ == "What it is."


def test_threads_that_need_each_others_properties_do_not_wait_forever():
    inside = threading.Barrier(2)

    class Thing:
        alone = True

        def after_the_other_has_begun(self, other):
            if self.alone:
                self.alone = False
                inside.wait()
                getattr(self, other)

        @lazy
        def first(self):
            self.after_the_other_has_begun("second")

        @lazy
        def second(self):
            self.after_the_other_has_begun("first")

    threads = [threading.Thread(target=getattr, args=(Thing(), name), daemon=True) for name in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(900)  # forever
    assert not any(thread.is_alive() for thread in threads)


def test_no_property_has_a_lock():
    sources = Path(setwise.__file__).parent.rglob("*.py")
    assert [source for source in sources if re.search("import .*cached_property", source.read_text("utf-8"))] == []
