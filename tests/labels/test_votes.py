"""Votes: every way to give them says the same, nothing is lost, and rows are sliced with their answers."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.model_selection import train_test_split

from setwise import LabelSets, Votes
from setwise.errors import MisuseWarning
from tests.conftest import calls_in

LONG = {
    "item": ["a", "b", "a", "c", "a"],
    "annotator": ["x", "x", "y", "z", "z"],
    "label": ["cat", "dog", "cat", "dog", "dog"],
}
COUNTS = [[2, 1], [0, 1], [0, 1]]


@pytest.mark.parametrize(
    "table", [LONG, pd.DataFrame(LONG), pl.DataFrame(LONG), pa.table(LONG)], ids=lambda t: type(t).__module__
)
def test_a_long_table_of_any_kind_gives_the_counts(table):
    votes = Votes.from_table(table)
    assert votes.counts.tolist() == COUNTS
    assert votes.classes.tolist() == ["cat", "dog"]
    assert votes.annotators.tolist() == ["x", "y", "z"]
    assert votes.items.tolist() == ["a", "b", "c"]
    assert votes.sizes.tolist() == [3, 1, 1]


def test_whole_numbers_are_read_as_arrays_as_they_are_from_lists():
    plain = {"item": [7, 9, 7, 4], "annotator": [30, 30, 20, 20], "label": [5, 1, 5, 1]}
    for dtype in (np.int64, np.uint8):
        votes = Votes.from_table({name: np.array(column, dtype) for name, column in plain.items()})
        assert votes == Votes.from_table(plain)
        assert votes.classes.tolist() == [1, 5]
    assert votes.annotators.tolist() == [20, 30]
    with pytest.raises(ValueError, match="row 1: 1 is not among the 2 classes"):
        Votes.from_table({name: np.array(column) for name, column in plain.items()}, classes=[5, 6])


def test_no_python_code_runs_for_each_answer_in_whole_numbers():
    item, annotator = np.divmod(np.arange(2000), 40)
    table = {"item": item + 7, "annotator": annotator + 3, "label": item % 5 + 1}
    assert calls_in(lambda: Votes.from_table(table)) < 2000


def test_every_constructor_gives_the_same_counts():
    matrix = [["cat", "cat", "dog"], ["dog", None, None], [None, None, "dog"]]
    made = [
        Votes.from_lists([["cat", "cat", "dog"], ["dog"], ["dog"]]),
        Votes.from_matrix(matrix),
        Votes.from_matrix(pd.DataFrame(matrix, columns=["x", "y", "z"])),
        Votes.from_counts(COUNTS, classes=["cat", "dog"]),
    ]
    for votes in made:
        assert votes.counts.tolist() == COUNTS
        assert votes.classes.tolist() == ["cat", "dog"]
    assert made[2].annotators.tolist() == ["x", "y", "z"]


def test_what_stands_for_no_answer_may_be_told():
    assert Votes.from_matrix(np.array([[0, -1], [1, 0]]), missing=-1).sizes.tolist() == [1, 2]


# ---------------------------------------------------------------- one annotator, one row, one answer


def test_several_labels_of_one_annotator_share_an_answer():
    votes = Votes.from_matrix([[["a", "b"], "a"]])
    assert votes.counts.tolist() == [[1.5, 0.5]]
    assert votes.sizes.tolist() == [2]
    assert votes.candidates("at_least:2").to_lists() == [["a"]]  # both annotators name it


def test_the_probabilities_of_a_model_are_one_answer_and_its_calls_share_it():
    votes = Votes.from_proposals([{"cat": 0.7, "dog": 0.2}, [{"cat": 1}, {"cat": 1}, {"dog": 1}], None])
    assert votes.sizes.tolist() == [1, 1, 0]
    assert votes.counts == pytest.approx(np.array([[0.7, 0.2], [2 / 3, 1 / 3], [0, 0]]))
    assert repr(votes).startswith("Votes(2 answers by 1 annotator on 3 rows")
    assert votes.candidates("at_least:2", missing="empty").to_lists() == [[], ["cat"], []]
    wide = Votes.from_counts(pd.DataFrame({"cat": [0.7, 0.0], "dog": [0.3, 1.0]}))
    assert wide == Votes.from_proposals([{"cat": 0.7, "dog": 0.3}, {"dog": 1.0}], classes=["cat", "dog"])
    assert Votes.from_counts([[0.7, 0.9], [1, 0]]).sizes.tolist() == [2, 1]  # more than one answer: of several


def repeating(**more):
    """An annotator who answers one item three times, and one who answers it once."""
    return {"item": [1, 1, 1, 1, 2], "annotator": [*"xxxyx"], "label": [*"aabab"]} | more


@pytest.mark.filterwarnings("ignore:annotator 'x' gives")
def test_repeated_answers_weigh_at_most_one_however_votes_are_cut_and_joined():
    votes = Votes.from_table(repeating())
    assert votes.weight == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1, 1])
    assert votes.sizes.tolist() == [2, 1]
    assert votes.answers[1].tolist() == [0, 1, 0]
    assert votes[[1, 0]].weight == pytest.approx([1, 1 / 3, 1 / 3, 1 / 3, 1])
    assert votes[[0, 0]].sizes.tolist() == [2, 2]
    assert Votes.from_table(votes.to_columns()) == votes
    parts = [Votes.from_table(batch) for batch in pa.table(repeating()).to_batches(max_chunksize=2)]
    assert Votes.concatenate([Votes.concatenate(parts[:2]), parts[2]]) == Votes.concatenate(parts) == votes
    assert Votes.concatenate(parts).counts == pytest.approx(votes.counts)


def test_weights_above_one_say_how_much_answers_count_and_stay():
    votes = Votes.from_table(repeating(weight=[3, 2, 1, 1, 1]), weight="weight")
    assert votes.counts.tolist() == [[6, 1], [0, 1]]
    assert votes[1].counts.tolist() == [[0, 1]]
    confidences = Votes.from_table(repeating(weight=[0.2, 0.2, 0.2, 1, 1]), weight="weight")
    assert confidences.counts == pytest.approx(np.array([[1.4, 0.2], [0, 1]]))
    assert confidences.sizes.tolist() == [2, 1]


def test_answers_without_annotators_are_of_as_many_people():
    for votes in (Votes.from_lists([["a", "a", "b"]]), Votes.from_counts([[2, 1]], classes=["a", "b"])):
        assert votes.counts.tolist() == [[2, 1]]
        assert votes.sizes.tolist() == [3]


def test_items_may_be_given_and_some_have_no_answers():
    votes = Votes.from_table(LONG, items=["c", "d", "b", "a"])
    assert votes.sizes.tolist() == [1, 0, 1, 3]
    with pytest.raises(ValueError, match="item: 'a' is not among items"):
        Votes.from_table(LONG, items=["b", "c"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"item": "question"}, "question: the table has no column of this name; it has 'item', 'annotator'"),
        ({"weight": "annotator"}, "annotator: line 0 holds .x., not a number"),
        ({"classes": ["dog"]}, "cat"),
    ],
)
def test_an_error_says_what_is_wrong_with_a_table(change, message):
    with pytest.raises(ValueError, match=message):
        Votes.from_table(LONG, **change)


def test_a_column_that_a_frame_lacks_is_named_with_those_it_has():
    frame = pytest.importorskip("pandas").DataFrame(LONG)
    with pytest.raises(ValueError, match="question: the table has no column of this name; it has 'item', 'anno"):
        Votes.from_table(frame, "question")


def test_lines_without_a_label_are_no_answers_and_lines_without_an_annotator_are_an_error():
    assert Votes.from_table(LONG | {"label": ["cat", None, "cat", "dog", None]}).sizes.tolist() == [2, 0, 1]
    with pytest.raises(ValueError, match="annotator: line 1 has a label but no annotator"):
        Votes.from_table(LONG | {"annotator": ["x", None, "y", "z", "z"]})


def test_weights_count_and_must_be_positive():
    told = LONG | {"weight": [3.0, 1, 1, 1, 0.5]}
    assert Votes.from_table(told, weight="weight").counts.tolist() == [[4, 0.5], [0, 1], [0, 1]]
    with pytest.raises(ValueError, match="weight: row 1 has an answer of weight 0"):
        Votes.from_table(LONG | {"weight": [3.0, 0, 1, 1, 0.5]}, weight="weight")


def test_rules_keep_ties_and_lose_nobody():
    votes = Votes.from_lists([["a", "b", "b"], ["a", "c"]])
    assert votes.candidates().to_lists() == [["a", "b"], ["a", "c"]]
    assert votes.candidates("plurality").to_lists() == [["b"], ["a", "c"]]
    assert votes.candidates("at_least:2", missing="empty").to_lists() == [["b"], []]
    with pytest.raises(ValueError, match="row 1 has no labels"):
        votes.candidates("at_least:2")
    with pytest.raises(ValueError, match="rule: 'first' is not known"):
        votes.candidates("first")


def test_rows_are_sliced_with_their_answers():
    votes = Votes.from_table(LONG)
    assert votes[[2, 0, 2]].counts.tolist() == [[0, 1], [2, 1], [0, 1]]
    assert votes[[2, 0]].items.tolist() == ["c", "a"]
    assert votes[np.array([False, True, False])].to_frame().to_dict("list") == {
        "item": ["b"],
        "annotator": ["x"],
        "label": ["dog"],
    }
    assert votes[0].counts.tolist() == [[2, 1]]
    _, _, learned, held = train_test_split(np.zeros((3, 1)), votes, random_state=0)
    assert isinstance(learned, Votes)
    assert len(learned) + len(held) == 3
    assert Votes.from_table(votes.to_frame()) == votes
    assert votes != votes[::-1]
    assert np.asarray(votes).tolist() == COUNTS


def test_other_classes_keep_the_answers():
    votes = Votes.from_lists([["b"], ["a", "b"]]).with_classes(["b", "a", "c"])
    assert votes.counts.tolist() == [[1, 0, 0], [1, 1, 0]]
    assert Votes.from_counts([[1, 0]]).with_classes(["x", "y"]).candidates() == LabelSets.from_lists(
        [["x"]], ["x", "y"]
    )


def test_hostile_names_are_escaped():
    assert "<script>" not in Votes.from_lists([["<script>"]])._repr_html_()


def test_weights_and_counts_that_numbers_cannot_hold_are_refused():
    with pytest.raises(
        ValueError, match="row 1 has an answer of weight 1e\\+300; use positive numbers up to 1e\\+12"
    ):
        Votes.of(2, np.array([0, 1]), [0, 1], weight=np.array([1.0, 1e300]), classes=range(2))
    for counts in ([[3e9, 1.0]], [[1e300, 0.5]]):
        with pytest.raises(ValueError, match="counts: .* answers are too many"):
            Votes.from_counts(counts)


# ---------------------------------------------------------------- hostile input


def test_what_stands_for_no_answer_is_none_in_ragged_rows_and_in_lists_either():
    votes = Votes.from_matrix([[0, 1, -1], [-1], [[0, -1], 1]], missing=-1)
    assert votes.classes.tolist() == [0, 1]
    assert votes.counts.tolist() == [[1, 1], [0, 0], [1, 1]]


def test_a_matrix_as_a_dict_has_its_columns_as_annotators():
    votes = Votes.from_matrix({"ann": [0, 1], "bob": [1, 1]})
    assert votes.annotators.tolist() == ["ann", "bob"]
    assert votes.counts.tolist() == [[1, 1], [0, 2]]


def test_masked_cells_are_no_answers():
    cells = np.ma.array([[0, 9], [1, 1]], mask=[[0, 1], [0, 0]])
    assert Votes.from_matrix(cells).counts.tolist() == [[1, 0], [0, 2]]
    labels = np.ma.array([0, 9, 1], mask=[0, 1, 0])
    table = {"item": [0, 1, 2], "annotator": ["x", "x", "x"], "label": labels}
    assert Votes.from_table(table).classes.tolist() == [0, 1]


@pytest.mark.parametrize("rows", [[0, 1], ["ab", "cd"]])
def test_a_matrix_needs_rows_of_cells(rows):
    with pytest.raises(TypeError, match="row 0 is .*, not a row of cells"):
        Votes.from_matrix(rows)


def test_too_few_names_of_annotators_are_an_error():
    with pytest.raises(ValueError, match="annotators: 1 names for 2 columns"):
        Votes.from_matrix([[0, 1]], annotators=["ann"])


def test_the_columns_of_a_frame_of_counts_are_its_classes():
    votes = Votes.from_counts(pd.DataFrame({"dog": [2, 0], "cat": [0, 1]}))
    assert votes.candidates().to_lists() == [["dog"], ["cat"]]


def test_lines_about_nothing_make_no_row():
    votes = Votes.from_table({"item": ["a", None, "b"], "annotator": ["x", None, "y"], "label": [1, None, 0]})
    assert votes.items.tolist() == ["a", "b"]


def test_items_have_names_of_their_own():
    table = {"item": ["a", "b"], "annotator": ["x", "x"], "label": [1, 0]}
    with pytest.raises(ValueError, match="items: 'a' occurs twice"):
        Votes.from_table(table, items=["a", "a", "b"])
    with pytest.raises(ValueError, match="items: row 1 has no name"):
        Votes.from_table(table, items=["a", None, "b"])


def test_it_is_said_where_one_annotator_gives_a_row_several_answers():
    table = {"item": [1, 1, 2], "annotator": ["x", "y", "x"], "label": ["a", "a", "a"]}
    Votes.from_table(table)  # warnings are errors in these tests
    again = {name: [*column, column[0]] for name, column in table.items()}
    Votes.from_table(again, annotator=None)
    halves = again | {"weight": [0.5, 1, 1, 0.5]}
    assert Votes.from_table(halves, weight="weight").counts.tolist() == [[2], [1]]
    says = "annotator 'x' gives 2 labels to item 1. In 1 of 2 rows several answers of one annotator count as one"
    with pytest.warns(MisuseWarning, match=says):
        assert Votes.from_table(again).counts.tolist() == [[2], [1]]


def test_rows_taken_twice_are_not_written_as_one():
    votes = Votes.from_table({"item": ["a", "b"], "annotator": ["x", "x"], "label": [1, 0]})
    with pytest.raises(ValueError, match="items: 'a' occurs twice"):
        votes[[0, 0, 1]].to_columns()


def test_columns_of_unequal_length_and_weights_that_are_no_numbers_are_named():
    with pytest.raises(ValueError, match="annotator: 3 lines, but label has 2"):
        Votes.from_table({"item": [1, 2], "annotator": ["x", "y", "z"], "label": [1, 0]})
    table = {"item": [1, 2], "annotator": ["x", "y"], "label": [1, 0], "w": ["0.5", "heavy"]}
    with pytest.raises(ValueError, match="w: line 1 holds 'heavy', not a number"):
        Votes.from_table(table, weight="w")


@pytest.mark.parametrize("value", ["high", None, float("nan"), 1.5, -0.1, [1]])
def test_a_probability_that_is_none_is_named(value):
    with pytest.raises(ValueError, match="row 1 gives 'cat' the probability"):
        Votes.from_proposals([None, {"cat": value}])


def test_probabilities_in_text_are_numbers():
    assert Votes.from_proposals([{"cat": "0.5"}, float("nan")]).counts.tolist() == [[0.5], [0]]


def batches_of(table, size):
    return pa.table(table).to_batches(max_chunksize=size)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_votes_of_batches_are_those_of_the_whole(size):
    more = {"weight": [1.0, 2.0, 1.0, 0.5, 1.0]}
    whole = Votes.from_table(LONG | more, weight="weight")
    parts = (Votes.from_table(b, weight="weight") for b in batches_of(LONG | more, size))
    joined = Votes.concatenate(parts)
    assert joined == whole
    assert Votes.concatenate(Votes.from_table(b) for b in batches_of(LONG, size)) == Votes.from_table(LONG)


def test_putting_votes_together_is_associative_and_takes_one_part_at_a_time():
    a, b, c = (Votes.from_table(batch) for batch in batches_of(LONG, 2))
    join = Votes.concatenate
    assert join([join([a, b]), c]) == join([a, join([b, c])]) == join([a, b, c])
    assert join([a]) == a


def test_rows_without_names_follow_each_other_and_empty_ones_stay():
    joined = Votes.concatenate(
        [
            Votes.from_lists([["cat"], []], classes=["cat", "dog"]),
            Votes.from_lists([["dog"]], classes=["dog", "cat"]),
        ]
    )
    assert joined.counts.tolist() == [[1, 0], [0, 0], [0, 1]]
    named = Votes.from_table(LONG, items=["d", "a", "b", "c"])
    assert Votes.concatenate([named, named]).sizes.tolist() == [0, 3, 1, 1]  # the same people say it again


def test_votes_that_do_not_belong_together_are_refused():
    named = Votes.from_table(LONG)
    with pytest.raises(ValueError, match="only one of parts 0 and 1 names its annotators"):
        Votes.concatenate([named, Votes.from_table(LONG, annotator=None)])
    with pytest.raises(ValueError, match="names its rows"):
        Votes.concatenate([named, Votes.from_matrix([["cat", "dog"]])])
    declared = Votes.from_table(LONG, classes=["cat", "dog"])
    with pytest.raises(ValueError, match="part 1 has other classes.*classes"):
        Votes.concatenate([declared, Votes.from_table(LONG, classes=["cat", "dog", "owl"])])
    with pytest.raises(ValueError, match="no votes"):
        Votes.concatenate([])
    assert Votes.concatenate([declared, declared], classes=["owl", "dog", "cat"]).classes.tolist() == [
        "owl",
        "dog",
        "cat",
    ]


def test_an_arrow_table_has_one_annotator_per_column():
    votes = Votes.from_matrix(pa.table({"ann": ["cat", None, "dog"], "bob": ["cat", "dog", "dog"]}))
    assert votes.annotators.tolist() == ["ann", "bob"]
    assert votes.sizes.tolist() == [2, 1, 2]


def test_gaps_of_an_arrow_dictionary_are_no_answers():
    said = pa.chunked_array([pa.array(["b", None]).dictionary_encode(), pa.array([None, "c"]).dictionary_encode()])
    votes = Votes.from_table(pa.table({"item": list("wxyz"), "annotator": ["ann"] * 4, "label": said}))
    assert votes.sizes.tolist() == [1, 0, 0, 1]
    assert votes.candidates(missing="empty").to_lists() == [["b"], [], [], ["c"]]
