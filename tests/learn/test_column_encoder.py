"""Columns as numbers: what fills a gap, which categories count, and which values are refused by column and row."""

import datetime as dt
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from setwise.errors import DataError
from setwise.learn.column_encoder import ColumnEncoder
from setwise.learn.feature_frame import FeatureFrame

COLUMNS = {"size": [1.0, np.nan, 4.0, 7.0], "colour": ["red", "blue", None, "blue"], "n": [1, 2, 3, 4]}
KNOWN = {"colour": ["blue", "green", "red"]}


def fitted(impute="median", known=KNOWN):
    return ColumnEncoder(impute, known).fit(pd.DataFrame(COLUMNS))


def test_gaps_are_filled_and_text_becomes_indicators_in_the_order_of_the_columns():
    encoder = fitted()
    assert encoder.get_feature_names_out().tolist() == ["size", "colour=blue", "colour=red", "n"]
    expected = [[1, 0, 1, 1], [4, 1, 0, 2], [4, 0, 0, 3], [7, 1, 0, 4]]
    assert encoder.transform(pd.DataFrame(COLUMNS)).tolist() == expected


@pytest.mark.parametrize(
    ("impute", "filled"), [("mean", 4.0), ("median", 4.0), (0.5, 0.5), ({"size": -1.0}, -1.0), ("nan", np.nan)]
)
def test_a_gap_is_filled_as_asked(impute, filled):
    found = fitted(impute).transform(pd.DataFrame(COLUMNS))[1, 0]
    np.testing.assert_equal(found, filled)


FRAMES = {
    "pandas": pd.DataFrame,
    "pandas categories": lambda columns: pd.DataFrame(columns).astype({"colour": "category"}),
    "polars": lambda columns: pl.DataFrame(columns, strict=False),
    "own": lambda columns: FeatureFrame(
        {name: np.array(values, dtype=object if name == "colour" else float) for name, values in columns.items()}
    ),
    "an array": lambda columns: pd.DataFrame(columns).to_numpy(dtype=object),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_of_all_kinds_give_the_same_numbers(kind):
    encoder = fitted()
    assert encoder.transform(FRAMES[kind](COLUMNS)).tolist() == encoder.transform(pd.DataFrame(COLUMNS)).tolist()


def test_columns_are_found_by_name_beside_others():
    frame = pd.DataFrame(COLUMNS)
    moved = frame.assign(id=range(4))[["id", "n", "colour", "size"]]
    assert fitted().transform(moved).tolist() == fitted().transform(frame).tolist()


def test_a_known_category_that_no_row_had_is_like_a_missing_one():
    frame = pd.DataFrame(COLUMNS).assign(colour=["green", "", None, "red"])
    assert fitted().transform(frame)[:, 1:3].tolist() == [[0, 0], [0, 0], [0, 0], [0, 1]]


def test_any_other_value_is_an_error_that_names_column_row_and_categories():
    with pytest.raises(DataError) as caught:
        fitted().transform(pd.DataFrame(COLUMNS).assign(colour=["red", "blue", "pink", "red"]))
    assert str(caught.value) == (
        "X, column 'colour': row 2 is 'pink', which is not a known category (blue, green, red); "
        "write one of these, or leave the cell empty."
    )
    with pytest.raises(DataError, match=r"column 'size': row 1 is 'two', not a number"):
        fitted().transform(pd.DataFrame(COLUMNS).assign(size=[1, "two", 3, 4]))
    with pytest.raises(DataError, match="there is no column 'n'"):
        fitted().transform(pd.DataFrame(COLUMNS).drop(columns="n"))
    with pytest.raises(ValueError, match=r"shape \(4, 2\); the model was fitted on 3 columns"):
        fitted().transform(np.zeros((4, 2)))


def test_a_column_without_any_number_to_learn_from_is_filled_with_zero():
    frame = pd.DataFrame({"size": [np.nan, np.nan]})
    assert ColumnEncoder("median").fit(frame).transform(frame).tolist() == [[0.0], [0.0]]


def test_narrow_numbers_stay_narrow():
    frame = FeatureFrame({"a": np.array([1, np.nan], dtype=np.float32), "b": np.ones(2, dtype=np.float32)})
    made = ColumnEncoder("mean").fit(frame).transform(frame)
    assert (made.dtype, made.tolist()) == (np.float32, [[1.0, 1.0], [1.0, 1.0]])


def test_it_comes_back_from_json_and_can_be_fitted_again():
    encoder = fitted()
    again = ColumnEncoder.from_json(json.loads(json.dumps(encoder.to_json())))
    frame = pd.DataFrame(COLUMNS).assign(colour=["green", "blue", None, "red"])
    assert again.transform(frame).tolist() == encoder.transform(frame).tolist()
    assert clone(again).fit(frame).categories_ == {"colour": ("blue", "green", "red")}


DAMAGE = {
    "a filling that is no number": lambda content: content["fillings"].update(size="1"),
    "a filling without end": lambda content: content["fillings"].update(size=float("inf")),
    "a filling of no column": lambda content: content["fillings"].update(weight=1.0),
    "categories that are no texts": lambda content: content["categories"].update(colour=[1]),
    "categories of no column": lambda content: content["categories"].update(shape=["round"]),
    "categories that are not known": lambda content: content["learned"].update(colour=["pink"]),
    "columns that are no texts": lambda content: content.update(columns=[1, 2, 3]),
    "fillings of text": lambda content: content["fillings"].update(colour=1.0),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_description_that_cannot_be_is_refused(damage):
    content = fitted().to_json()
    DAMAGE[damage](content)
    with pytest.raises(ValueError, match="categories|fillings|columns"):
        ColumnEncoder.from_json(content)


def test_a_frame_is_cut_and_joined_like_others():
    frame = FRAMES["own"](COLUMNS)
    assert (frame.shape, frame.columns, frame[:, 0].tolist()[2]) == ((4, 3), ["size", "colour", "n"], 4.0)
    assert frame[[3, 0], ...]["colour"].tolist() == ["blue", "red"]
    joined = FeatureFrame.concatenate([frame[:1], frame[2:]])
    assert np.asarray(joined).tolist() == [[1.0, "red", 1.0], [4.0, None, 3.0], [7.0, "blue", 4.0]]


@pytest.mark.parametrize(
    "values",
    [
        np.arange(4).astype("datetime64[D]"),
        np.arange(4).astype("timedelta64[h]"),
        np.arange(4) + 1j,
        np.array([b"1", b"2", b"3", b"4"]),
        np.array([dt.date(2026, 1, 1)] * 4, dtype=object),
    ],
)
def test_dates_and_the_like_are_no_numbers(values):
    frame = FeatureFrame({**COLUMNS, "n": values})
    with pytest.raises(DataError, match="column 'n'.*not (a number|numbers)"):
        fitted().transform(frame)
