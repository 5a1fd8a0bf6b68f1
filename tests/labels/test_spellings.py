"""Labels that look like one class written in two ways."""

import warnings

import pytest

from setwise.errors import MisuseWarning
from setwise.labels.spellings import doubt_spellings

LONG = "9223372638054775808"


@pytest.mark.parametrize("labels", [["7", "007"], ["7", "7.0"], ["+7", 7], ["0." + LONG, f"0.{LONG}0"]])
def test_numbers_that_are_equal_are_doubted(labels):
    with pytest.warns(MisuseWarning, match="differ only in how they are written"):
        doubt_spellings(labels, "y")


@pytest.mark.parametrize("labels", [[LONG, LONG[:-1] + "9"], ["9" * 5000, "9" * 5001], [int(LONG), int(LONG) + 1]])
def test_long_numbers_that_differ_are_not_doubted(labels):
    with warnings.catch_warnings(action="error"):
        doubt_spellings(labels, "y")
