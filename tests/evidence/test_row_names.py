"""Row names that contradict the order of the rows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from setwise import MisuseWarning, Votes, conformalize, triage
from setwise.errors import InputError
from setwise.evidence.row_names import check_row_names

X = pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=[10, 11, 12])


def test_the_same_names_in_another_order_are_an_error():
    with pytest.raises(
        InputError, match=r"^y: its index holds the rows of X in another order: row 1 is 12 in y and 11"
    ):
        check_row_names(X=X, y=pd.Series([0, 1, 2], index=[10, 12, 11]))
    with pytest.raises(InputError, match=r"use by.loc\[X.index\] to go by name, or use by.to_numpy\(\)"):
        check_row_names(X=X, y=np.arange(3), by=pd.Series([0, 1, 2], index=[12, 10, 11]))
    twice = pd.DataFrame({"a": [1, 2, 3]}, index=["a", "a", "b"])
    with pytest.raises(InputError, match="row 1 is 'b'"):
        check_row_names(X=twice, y=pd.Series([1, 2, 3], index=["a", "b", "a"]))


@pytest.mark.parametrize(
    "y",
    [
        pd.Series([0, 1, 2], index=[10, 11, 12]),
        pd.Series([0, 1, 2]),  # counts the rows
        pd.Series([0, 1, 2], index=["a", "b", "c"]),  # names of another kind
        pd.Series([0, 1], index=[11, 10]),  # whoever needs as many rows complains
        [0, 1, 2],
        pl.Series([0, 1, 2]),
        None,
    ],
)
def test_rows_go_by_position_where_names_do_not_contradict_it(y):
    check_row_names(X=X, y=y)
    with pytest.raises(InputError, match=r"^by: its index"):  # and others are looked at all the same
        check_row_names(X=X, y=y, by=pd.Series([0, 1, 2], index=[12, 10, 11]))


def test_names_of_which_some_are_shared_are_a_warning():
    with pytest.warns(MisuseWarning, match="y: 2 of 3 names in its index are in that of X"):
        check_row_names(X=X, y=pd.Series([0, 1, 2], index=[11, 12, 13]))
    with pytest.warns(MisuseWarning, match="y: 3 of 3 names in its index are in that of X"):  # not all of X's
        check_row_names(X=X, y=pd.Series([0, 1, 2], index=[10, 10, 11]))
    check_row_names(X=X.set_axis([1, 2, 3]), y=pd.Series([0, 1, 2]))


def test_votes_name_their_rows_too(rng):
    order = rng.permutation(60)  # items in the order of the answers
    votes = Votes.from_table({"item": order, "annotator": ["x"] * 60, "label": order % 2})
    verified = pd.Series(np.arange(60) % 2)
    for call in (
        lambda truth: triage(votes, truth),
        lambda truth: conformalize(pd.DataFrame(np.full((60, 2), 0.5), index=votes.items), votes, verified=truth),
    ):
        with pytest.raises(InputError, match="another order: row 0 is"):
            call(verified)
        call(verified.loc[votes.items])
    with pytest.raises(InputError, match=r"use verified.loc\[votes.items\] to go by name"):
        triage(votes, verified)
    triage(votes, verified.rename(lambda row: f"r{row}"))  # names of another kind: by position
