"""LabelSets: construction, vocabulary, algebra, and life as a scikit-learn `y`."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split

from setwise import LabelSets
from setwise.labels.coerce import as_candidates
from setwise.labels.vocabulary import label_vector

LABELS = ["ant", "bee", "cat", "dog", "eel"]
row_sets = st.lists(st.sets(st.sampled_from(LABELS)), min_size=0, max_size=12)
pairs = st.lists(
    st.tuples(st.sets(st.sampled_from(LABELS)), st.sets(st.sampled_from(LABELS))), min_size=1, max_size=12
)


def both_births(rows):
    """The same sets, born from lists and born from a mask."""
    mask = np.array([[label in row for label in LABELS] for row in rows], dtype=bool).reshape(-1, len(LABELS))
    return LabelSets.from_lists(rows, LABELS), LabelSets.from_mask(mask, LABELS)


@given(row_sets)
def test_both_births_say_the_same_in_every_form(rows):
    for sets in both_births(rows):
        assert [set(row) for row in sets.to_lists()] == rows
        assert list(sets) == [frozenset(row) for row in rows]
        assert sets.sizes.tolist() == [len(row) for row in rows]
        assert sets.to_mask().sum() == sum(map(len, rows))
        assert sets.shape == (len(rows), len(LABELS))
    listed, masked = both_births(rows)
    assert listed == masked


@given(pairs)
def test_set_algebra_agrees_with_python_sets(rows):
    left, right = [a for a, _ in rows], [b for _, b in rows]
    for a in both_births(left):
        for b in both_births(right):
            assert list(a | b) == [x | y for x, y in rows]
            assert list(a & b) == [x & y for x, y in rows]
            assert a.issubset(b).tolist() == [x <= y for x, y in rows]
            assert (a == b) == (left == right)


@given(row_sets, st.data())
def test_contains_agrees_with_python_sets(rows, data):
    y = data.draw(st.lists(st.sampled_from([*LABELS, "unheard"]), min_size=len(rows), max_size=len(rows)))
    for sets in both_births(rows):
        assert sets.contains(y).tolist() == [label in row for label, row in zip(y, rows, strict=True)]


@given(row_sets, st.data())
def test_indexing_follows_numpy(rows, data):
    n = len(rows)
    chosen = data.draw(st.lists(st.integers(-n, n - 1), max_size=8)) if n else []
    flags = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    for sets in both_births(rows):
        assert list(sets[np.array(chosen, dtype=int)]) == [frozenset(rows[i]) for i in chosen]
        assert list(sets[chosen, ...]) == list(sets[np.array(chosen, dtype=int)])
        assert list(sets[np.array(flags, dtype=bool)]) == [
            frozenset(r) for r, f in zip(rows, flags, strict=True) if f
        ]
        assert list(sets[1:5:2]) == [frozenset(row) for row in rows[1:5:2]]
        for i in range(-n, n):
            assert sets[i] == frozenset(rows[i])
        with pytest.raises(IndexError):
            sets[n]


def test_columns_cannot_be_indexed():
    with pytest.raises(IndexError, match="to_mask"):
        LabelSets.from_lists([["a"]])[:, 0]


# -------------------------------------------------------------------------------- vocabularies


@pytest.mark.parametrize(
    ("rows", "classes"),
    [
        ([["b", "a"], ["c"]], ["a", "b", "c"]),
        ([[10, 2], [np.int64(7)]], [2, 7, 10]),
        ([{1.5}, {0.5}], [0.5, 1.5]),
        ([[("x", 1)], [("x", 0)]], [("x", 0), ("x", 1)]),
        ([["a", 1]], [1, "a"]),
        ([[2**70], [1]], [1, 2**70]),
    ],
)
def test_an_inferred_vocabulary_is_sorted_and_keeps_its_labels(rows, classes):
    sets = LabelSets.from_lists(rows)
    assert sets.classes.tolist() == classes
    assert not sets.vocabulary.declared
    assert [set(row) for row in sets.to_lists()] == [set(row) for row in rows]


def test_a_declared_vocabulary_keeps_its_order_and_refuses_strangers_by_row():
    sets = LabelSets.from_lists([["b"], ["a"]], classes=["b", "a", "z"])
    assert sets.to_mask().tolist() == [[True, False, False], [False, True, False]]
    with pytest.raises(ValueError, match=r"row 1: 'q' is not among the 2 classes"):
        LabelSets.from_lists([["a"], ["a", "q"]], classes=["a", "b"])
    with pytest.raises(ValueError, match="'a' occurs twice"):
        LabelSets.from_lists([["a"]], classes=["a", "b", "a"])


def test_equality_goes_by_label_never_by_position():
    ab = LabelSets.from_lists([["a"]], classes=["a", "b"])
    ba = LabelSets.from_lists([["a"]], classes=["b", "a"])
    assert ab == ba
    assert ab != LabelSets.from_lists([["b"]], classes=["b", "a"])
    assert ab != LabelSets.from_lists([["a"]], classes=["a", "c"])
    assert ab.issubset(ba).all()
    assert list(ab | LabelSets.from_lists([["b"]], classes=["b", "a"])) == [{"a", "b"}]
    with pytest.raises(ValueError, match="different classes"):
        ab | LabelSets.from_lists([["a"]], classes=["a", "c"])
    assert ab != "a"


def test_with_classes_recodes_by_label():
    sets = LabelSets.from_lists([["b"], ["a"]]).with_classes(["b", "x", "a"])
    assert sets.vocabulary.declared
    assert sets.to_mask().tolist() == [[True, False, False], [False, False, True]]
    with pytest.raises(ValueError, match="row 1: 'a'"):
        LabelSets.from_lists([["b"], ["a"]]).with_classes(["b", "x"])


# -------------------------------------------------------------------------------- constructors


def test_duplicates_within_a_row_count_once():
    assert LabelSets.from_lists([["a", "b", "a"]]).sizes.tolist() == [2]


@pytest.mark.parametrize("gone", [None, float("nan"), pd.NA])
def test_missing_rows_follow_the_rule_that_was_asked_for(gone):
    rows = [["a"], gone, ["b"]]
    with pytest.raises(ValueError, match="row 1 has no labels"):
        LabelSets.from_lists(rows)
    assert LabelSets.from_lists(rows, missing="full").sizes.tolist() == [1, 2, 1]
    assert LabelSets.from_lists(rows, missing="empty").sizes.tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match="missing: 'guess'"):
        LabelSets.from_lists(rows, missing="guess")


def test_a_missing_label_inside_a_set_is_an_error():
    with pytest.raises(ValueError, match="row 0: a label is missing"):
        LabelSets.from_lists([["a", None]], classes=["a"])


def test_text_in_place_of_a_collection_is_an_error_that_names_the_other_constructor():
    with pytest.raises(TypeError, match=r"row 1 is 'cat\|dog'.*from_strings"):
        LabelSets.from_lists([["cat"], "cat|dog"])


def test_from_labels_gives_singletons_from_any_vector():
    for y in ([2, 0], np.array([2, 0]), pd.Series([2, 0]), pl.Series([2, 0]), np.array([[2], [0]])):
        assert LabelSets.from_labels(y, classes=[0, 1, 2]).to_lists() == [[2], [0]]
    assert LabelSets.from_labels(np.array([1.0, np.nan]), missing="full").to_lists() == [[1.0], [1.0]]
    with pytest.raises(ValueError, match="one label per row"):
        LabelSets.from_labels(np.zeros((2, 2)))


def test_from_strings_splits_strips_and_maps_to_declared_classes():
    assert LabelSets.from_strings(["cat | dog", "dog"]).to_lists() == [["cat", "dog"], ["dog"]]
    assert LabelSets.from_strings(["0;2", "1"], sep=";", classes=range(3)).to_lists() == [[0, 2], [1]]
    with pytest.raises(ValueError, match="row 1 has no labels"):
        LabelSets.from_strings(["a", " "])
    with pytest.raises(ValueError, match="empty label"):
        LabelSets.from_strings(["a||b"])
    with pytest.raises(ValueError, match="sep"):
        LabelSets.from_strings(["a"], sep="")
    with pytest.raises(TypeError, match="row 0 is 3"):
        LabelSets.from_strings([3])


def test_from_mask_takes_frames_and_sparse_matrices_and_refuses_other_numbers():
    mask = [[1, 0], [0, 1]]
    expected = LabelSets.from_mask(np.array(mask, bool), classes=["a", "b"])
    assert LabelSets.from_mask(pd.DataFrame(mask, columns=["a", "b"])) == expected
    assert LabelSets.from_mask(scipy.sparse.csr_array(np.array(mask)), classes=["a", "b"]) == expected
    with pytest.raises(ValueError, match="row 1 holds"):
        LabelSets.from_mask([[0, 1], [2, 0]])
    wide = scipy.sparse.csr_array((2, 10**9), dtype=bool)  # never made dense
    assert LabelSets._from_sparse(wide[:, :5], None).sizes.tolist() == [0, 0]
    with pytest.raises(ValueError, match="holds 2"):
        LabelSets.from_mask(scipy.sparse.csr_array([[2, 0]]))
    with pytest.raises(ValueError, match="3 labels for a mask of 2 columns"):
        LabelSets.from_mask(mask, classes=["a", "b", "c"])
    with pytest.raises(ValueError, match="shape"):
        LabelSets.from_mask([True, False])


def test_from_mask_does_not_follow_later_changes_of_its_input():
    mask = np.array([[True, False]])
    sets = LabelSets.from_mask(mask)
    mask[:] = False
    assert sets.sizes.tolist() == [1]


def test_from_complementary_excludes():
    assert LabelSets.from_complementary(["b", "a"], classes=["a", "b", "c"]).to_lists() == [
        ["a", "c"],
        ["b", "c"],
    ]
    assert LabelSets.from_complementary([["b", "a"], ["c"]]).to_lists() == [["c"], ["a", "b"]]
    with pytest.raises(ValueError, match="not_y: row 1 excludes every class"):
        LabelSets.from_complementary([["a"], ["a", "b"]], classes=["a", "b"])


def test_codes_may_come_in_any_order_and_repeat():
    sets = LabelSets.from_codes(["b", "a", "unused"], np.array([1, 0, 0, 1, 1]), np.array([3, 0, 2]), ["a", "b"])
    assert sets.to_lists() == [["a", "b"], [], ["a"]]
    with pytest.raises(ValueError, match="row 12: 'z' is not among the 1 classes"):
        LabelSets.from_codes(["a", "z"], np.array([0, 0, 1]), np.array([1, 0, 2]), ["a"], first_row=10)


def test_a_tie_keeps_every_label_with_the_most_votes():
    votes = [["a", "b", "a", "b", "c"], ["c", None, None, None, None], ["a", "b", "b", "c", None]]
    assert LabelSets.from_annotators(votes, "plurality").to_lists() == [["a", "b"], ["c"], ["b"]]


VOTES = [["cat", "dog", "cat"], ["owl", None, "dog"], [["cat", "owl"], "dog", None]]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("union", [{"cat", "dog"}, {"dog", "owl"}, {"cat", "dog", "owl"}]),
        ("at_least:1", [{"cat", "dog"}, {"dog", "owl"}, {"cat", "dog", "owl"}]),
        ("at_least:2", [{"cat"}, set(), set()]),
        ("plurality", [{"cat"}, {"dog", "owl"}, {"cat", "dog", "owl"}]),
    ],
)
def test_annotators_are_combined_by_rule(rule, expected):
    table = pd.DataFrame({f"a{i}": [row[i] for row in VOTES] for i in range(3)}, dtype=object)
    for votes in (VOTES, table):
        made = LabelSets.from_annotators(votes, rule=rule, classes=["cat", "dog", "owl"], missing="empty")
        assert list(made) == expected


def test_one_annotator_repeating_a_label_has_one_vote():
    assert LabelSets.from_annotators([[["a", "a"], "b"]], "at_least:2", missing="empty").sizes.tolist() == [0]


@pytest.mark.parametrize("rule", ["majority", "at_least:0", "at_least:x", "at_least"])
def test_an_unknown_rule_is_refused(rule):
    with pytest.raises(ValueError, match="rule"):
        LabelSets.from_annotators(VOTES, rule=rule)


TREE = {"animal": ["bird", "cat"], "bird": ["owl", "wren"], "pet": ["cat", "dog"]}


def test_a_node_stands_for_the_leaves_below_it():
    expected = [{"owl", "wren"}, {"cat"}, {"cat", "owl", "wren"}, {"cat", "dog"}]
    nodes = ["bird", "cat", "animal", "pet"]
    edges = [(parent, child) for parent, children in TREE.items() for child in children]
    for tree in (TREE, edges):
        made = LabelSets.from_hierarchy(nodes, tree)
        assert list(made) == expected
        assert made.classes.tolist() == ["cat", "dog", "owl", "wren"]
        assert not made.vocabulary.declared
    with pytest.raises(ValueError, match="row 1, 'fish'"):
        LabelSets.from_hierarchy(["cat", "fish"], TREE)
    with pytest.raises(ValueError, match="its own descendant"):
        LabelSets.from_hierarchy(["a"], {"a": ["b"], "b": ["a"]})


def test_top_k_by_number_and_by_mass():
    p = [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]
    assert LabelSets.from_top_k(p, k=2).to_lists() == [[0, 1], [0, 2]]
    assert LabelSets.from_top_k(p, mass=0.75, classes=["a", "b", "c"]).to_lists() == [["a", "b"], ["c"]]
    for bad in ({}, {"k": 1, "mass": 0.5}, {"k": 4}, {"mass": 1.5}):
        with pytest.raises(ValueError, match="k|mass"):
            LabelSets.from_top_k(p, **bad)


def test_arrow_lists_go_round():
    sets = LabelSets.from_lists([["b", "a"], [], ["c"]])
    assert sets.to_arrow().to_pylist() == sets.to_lists()
    assert LabelSets.from_arrow(sets.to_arrow(), classes=["a", "b", "c"]) == sets
    chunked = pa.chunked_array([pa.array([["a"], None]), pa.array([["b", "a"]])])
    assert LabelSets.from_arrow(chunked, missing="empty").to_lists() == [["a"], [], ["a", "b"]]
    with pytest.raises(ValueError, match="row 1 has no labels"):
        LabelSets.from_arrow(chunked)
    with pytest.raises(TypeError, match="list column"):
        LabelSets.from_arrow(pa.array([1, 2]))


def test_to_frame_has_labels_and_size():
    frame = LabelSets.from_lists([["b", "a"], []], classes=["a", "b"]).to_frame()
    assert frame["labels"].tolist() == [["a", "b"], []]
    assert frame["size"].tolist() == [2, 0]


def test_every_label_of_an_inferred_vocabulary_cannot_be_stretched_over_more_classes():
    """Otherwise the truth could silently leave the candidate sets."""
    for sets in (
        LabelSets.from_complementary([0, 1]),
        LabelSets.from_lists([[0], [1], None], missing="full"),
        LabelSets.from_lists([[0], [1], []]).fill_empty(),
        LabelSets.from_annotators([[0], [1], [None]], missing="full"),
    ):
        turned = sets.with_classes([1, 0])
        assert turned.sizes.tolist() == sets.sizes.tolist()
        for relative in (turned, LabelSets.from_labels([0] * len(sets), [0, 1]) | turned):
            with pytest.raises(ValueError, match="use classes="):
                relative.with_classes([0, 1, 2])
        for relative in (sets, sets[:2], sets | sets, sets & sets):
            with pytest.raises(ValueError, match="use classes="):
                relative.with_classes([0, 1, 2])
            with pytest.raises(ValueError, match="candidates: some sets mean 'every label'"):
                as_candidates(relative, 3)
    assert LabelSets.from_complementary([0, 1], classes=range(3)).sizes.tolist() == [2, 2]


def test_a_label_vector_goes_round():
    assert LabelSets.from_labels(["b", "a"]).to_labels().tolist() == ["b", "a"]
    with pytest.raises(ValueError, match="row 1 has 0 labels"):
        LabelSets.from_lists([["a"], []]).to_labels()


def test_filled_makes_empty_rows_full():
    assert LabelSets.from_lists([["a"], []], classes=["a", "b"]).fill_empty().sizes.tolist() == [1, 2]


# -------------------------------------------------------------------------------- an object to live with


def test_label_sets_are_frozen():
    sets = LabelSets.from_lists([["a"]])
    with pytest.raises(AttributeError):
        sets.vocabulary = None
    with pytest.raises(ValueError, match="read-only"):
        sets.to_mask()[:] = True
    with pytest.raises(ValueError, match="read-only"):
        sets.rows[1][:] = 0
    with pytest.raises(TypeError):
        hash(sets)


def test_pickling_keeps_everything():
    for sets in both_births([{"ant"}, set(), {"bee", "eel"}]):
        again = pickle.loads(pickle.dumps(sets))  # noqa: S301
        assert again == sets
        assert again.vocabulary.declared


def test_repr_is_short_and_html_is_escaped():
    sets = LabelSets.from_lists([["<script>"]] * 20)
    assert repr(sets) == "LabelSets(20 rows, 1 classes): {<script>}, {<script>}, {<script>}, …"
    assert "<script>" not in sets._repr_html_()
    assert "12 more" in sets._repr_html_()
    assert "∅" in LabelSets.from_lists([[]], classes=["a"])._repr_html_()


def test_many_classes_stay_small_in_memory():
    n, k = 1_000_000, 100_000
    labels = np.random.default_rng(0).integers(0, k, size=3 * n)
    sizes, absent = np.full(n, 3), np.zeros(n, bool)
    tracemalloc.start()
    sets = LabelSets._from_flat(labels, sizes, absent, np.arange(k), "error")
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert sets.shape == (n, k)
    assert held < 50e6
    with pytest.raises(ValueError, match="too large to make without asking"):
        np.asarray(sets)


class CoveringRate(ClassifierMixin, BaseEstimator):
    """Predicts the label most often seen among the candidates; checks that its `y` kept its vocabulary."""

    def __init__(self, shift=0):
        self.shift = shift

    def fit(self, X, y):
        assert isinstance(y, LabelSets)
        assert y.classes.tolist() == ["x", "y", "z"]
        self.label_ = y.classes[y.to_mask().sum(axis=0).argmax() - self.shift]
        return self

    def score(self, X, y):
        assert isinstance(y, LabelSets)
        return y.contains([self.label_] * len(y)).mean()


def test_label_sets_survive_scikit_learn_with_their_vocabulary(rng):
    mask = rng.random((60, 3)) < [0.2, 0.3, 0.9]
    mask[:, 0] |= ~mask.any(axis=1)
    sets = LabelSets.from_mask(mask, classes=["x", "y", "z"])
    X = np.zeros((60, 1))
    train, test = train_test_split(sets, test_size=0.25, random_state=0)
    assert (len(train), len(test)) == (45, 15)
    assert test.classes.tolist() == ["x", "y", "z"]
    scores = cross_val_score(CoveringRate(), X, sets, cv=5)
    assert np.isclose(scores.mean(), mask[:, 2].mean())
    listed = LabelSets.from_lists(sets.to_lists(), classes=["x", "y", "z"])
    search = GridSearchCV(CoveringRate(), {"shift": [0, 1]}, cv=3).fit(X, listed)
    assert search.best_params_ == {"shift": 0}


@pytest.mark.parametrize("labels", [[-1, 2**63 + 1, 2**63 + 2], ["a", "a\0"], [True, False], [1.5, 2.0]])
def test_labels_come_back_as_they_were_given(labels):
    sets = LabelSets.from_labels(labels)
    assert [row[0] for row in sets.to_lists()] == labels
    assert [type(row[0]) for row in sets.to_lists()] == list(map(type, labels))
    assert LabelSets.from_labels(["a\0b", "a"]).classes.dtype.kind == "U"


def test_a_list_of_numpys_numbers_is_an_array_of_them():
    assert label_vector([np.int64(1), np.int64(2)], "y").dtype == np.int64


@pytest.mark.parametrize(
    "classes",
    [["a", "a\0", "b"], [1, "1", "b"], [True, "True", "b"], [2**53, 2**53 + 1, 0.5], [2**63 + 1, 2**63, -1]],
)
def test_a_plain_list_of_labels_keeps_them_apart(classes):
    for rows in ([[label] for label in classes], list(classes)):
        assert as_candidates(rows, 3, classes).to_mask().argmax(axis=1).tolist() == [0, 1, 2]


def test_times_in_nanoseconds_stay_times():
    days = np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]")
    assert LabelSets.from_labels(days).classes.tolist() == days.tolist()
    assert LabelSets.from_labels(days.astype("M8[ns]")).classes.tolist() == days.astype("M8[us]").tolist()
    with pytest.raises(ValueError, match="times finer than a microsecond cannot"):
        LabelSets.from_labels(np.array([1], dtype="M8[ns]"))


@pytest.mark.parametrize("given", [[["a"]], [], None, {"a": 1}])
def test_sets_are_made_by_their_constructors(given):
    with pytest.raises(TypeError, match="LabelSets: use LabelSets.from_lists for a list of labels per row"):
        LabelSets(given)
