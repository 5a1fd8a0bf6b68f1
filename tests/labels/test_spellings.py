"""Labels that look like one class written in two ways."""

import warnings

import pytest

from setwise import Votes
from setwise.errors import MisuseWarning
from setwise.labels.spellings import doubt_spellings
from setwise.tables import from_annotators_long

LONG = "9223372638054775808"


@pytest.mark.parametrize("labels", [["7", "007"], ["7", "7.0"], ["+7", 7], ["0." + LONG, f"0.{LONG}0"]])
def test_numbers_that_are_equal_are_doubted(labels):
    with pytest.warns(MisuseWarning, match="differ only in how they are written"):
        doubt_spellings(labels, "y")


@pytest.mark.parametrize("names", [["anna", "Anna "], ["anna", "\u200banna"], ["1", "01"]])
def test_annotators_who_are_called_in_two_ways_are_doubted(names, tmp_path):
    with pytest.warns(
        MisuseWarning, match="some annotators differ only in how they are written: .*; write them alike"
    ):
        Votes.from_table({"item": [1, 2], "annotator": names, "label": ["a", "b"]})
    (tmp_path / "v.csv").write_text("item,annotator,label\n" + "".join(f"{i},{n},a\n" for i, n in enumerate(names)))
    with pytest.warns(MisuseWarning, match="v.csv: some annotators differ only"):
        from_annotators_long(tmp_path / "v.csv")


@pytest.mark.parametrize("labels", [[LONG, LONG[:-1] + "9"], ["9" * 5000, "9" * 5001], [int(LONG), int(LONG) + 1]])
def test_long_numbers_that_differ_are_not_doubted(labels):
    with warnings.catch_warnings(action="error"):
        doubt_spellings(labels, "y")
