"""Tables of answers: labels and items stay as they are written."""

import numpy as np
import pandas as pd
import pytest

from setwise.errors import MisuseWarning
from setwise.labels.votes import Votes
from setwise.tables import (
    DataError,
    from_annotators_long,
    from_answers_jsonl,
    read_votes,
    write_votes,
)

# ------------------------------------------------------------------------------------------ votes in delimited text

ALIKE = {
    "powers of ten": ["1e3", "1000", "2"],
    "hexadecimal": ["0x1", "1", "2"],
    "cases": ["true", "TRUE", "false"],
    "no answer that is one": ["NA", "1", "2"],
    "versions": ["1.1", "1.10", "1.2"],
    "a point": ["8", "8.0", "9"],
    "signs": ["+1", "1", "-0"],
    "times": ["10:30", "10:31", "10:30:00"],
    "many digits": ["0.1234567890123456", "0.12345678901234561", "2"],
}


@pytest.mark.filterwarnings("ignore:.*(only in how they are written|looks like a missing label)")
@pytest.mark.parametrize("alike", list(ALIKE))
def test_labels_in_csv_that_are_not_written_as_numbers_are_stay_text(alike, tmp_path):
    labels = ALIKE[alike]
    path = tmp_path / "v.csv"
    path.write_text("task,worker,label\n" + "".join(f"{i},w{i % 2},{labels[i % 3]}\n" for i in range(9)))
    votes = from_annotators_long(path).votes
    assert (sorted(votes.classes), len(votes.row)) == (sorted(labels), 9)


@pytest.mark.parametrize(("cells", "labels"), [(["7", "-8", ""], [-8, 7]), (["7.0", "8.0", ""], [7, 8])])
def test_labels_that_are_written_as_numbers_are_stay_numbers(cells, labels, tmp_path):
    (tmp_path / "v.csv").write_text("task,worker,label\n" + "".join(f"{i},a,{c}\n" for i, c in enumerate(cells)))
    votes = from_annotators_long(tmp_path / "v.csv", missing="empty").votes
    assert (votes.classes.tolist(), len(votes), len(votes.row)) == (labels, 3, 2)


def test_items_that_are_written_differently_are_two(tmp_path):
    (tmp_path / "v.csv").write_text("task,worker,label\n0x10,a,cat\n16,a,dog\n")
    assert from_annotators_long(tmp_path / "v.csv").ids.tolist() == ["0x10", "16"]


@pytest.mark.filterwarnings("ignore:.*only in how they are written")
def test_votes_find_the_classes_that_they_are_written_as(tmp_path):
    (tmp_path / "v.csv").write_text("task,worker,label\n1,a,true\n2,a,false\n")
    for classes in (["true", "false"], [False, True]):
        assert from_annotators_long(tmp_path / "v.csv", classes=classes).votes.classes.tolist() == classes
    votes = Votes.from_matrix([[True, False], [True, None]])
    write_votes(tmp_path / "b.csv", votes)
    assert read_votes(tmp_path / "b.csv", classes=[False, True]).counts.tolist() == votes.counts.tolist()


LONG = pd.DataFrame(
    {
        "task": ["t2", "t1", "t1", "t1", "t2", "t3"],
        "worker": ["ann", "ann", "bob", "cyd", "bob", "ann"],
        "label": ["dog", "cat", "cat", "owl", "dog", None],
    }
)


def test_long_tables_keep_tasks_in_order_of_appearance():
    found = from_annotators_long(LONG, missing="empty")
    assert found.ids.tolist() == ["t2", "t1", "t3"]
    assert found.candidates.to_lists() == [["dog"], ["cat", "owl"], []]
    assert found.candidates.classes.tolist() == ["cat", "dog", "owl"]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("union", [["dog"], ["cat", "owl"]]),
        ("at_least:2", [["dog"], ["cat"]]),
        ("plurality", [["dog"], ["cat"]]),
    ],
)
def test_a_rule_decides_which_votes_count(rule, expected):
    assert from_annotators_long(LONG[:5], rule=rule).candidates.to_lists() == expected


@pytest.mark.filterwarnings("ignore:the table. annotator 'a' gives 2 labels")
def test_an_annotator_may_give_several_labels_on_several_lines():
    votes = {"task": [1, 1, 1, 1], "annotator": ["a", "a", "b", "b"], "label": ["x", "y", "z", "x"]}
    assert from_annotators_long(votes).votes.counts.tolist() == [[1, 0.5, 0.5]]
    assert from_annotators_long(votes, rule="plurality").candidates.to_lists() == [["x"]]
    assert from_annotators_long(votes, rule="union").candidates.to_lists() == [["x", "y", "z"]]


def test_long_tables_come_from_files_and_their_errors_name_them(tmp_path):
    path = tmp_path / "votes.csv"
    LONG.to_csv(path, index=False)
    assert from_annotators_long(path, missing="full").candidates.sizes.tolist() == [1, 2, 3]
    with pytest.raises(DataError, match=r"votes.csv: row 2 has no labels"):
        from_annotators_long(path)
    with pytest.raises(DataError, match="votes.csv: there is no column 'question'; it has task, worker, label"):
        from_annotators_long(path, item="question")
    with pytest.raises(DataError, match="row 1: 'cat' is not among the 1 classes"):
        from_annotators_long(LONG[:5], classes=["dog"])


def test_columns_of_a_long_table_are_found_under_their_usual_names():
    columns = ([1, 1, 2], ["ann", "bob", "ann"], ["cat", "dog", "dog"])
    votes = from_annotators_long(dict(zip(["item", "annotator", "label"], columns, strict=True))).votes
    for names in (["task", "worker", "label"], ["id", "performer", "label"], ["custom_id", "worker", "answer"]):
        assert from_annotators_long(dict(zip(names, columns, strict=True))).votes == votes
    both = {"task": [9, 9, 9], **dict(zip(["item", "annotator", "label"], columns, strict=True))}
    assert from_annotators_long(both).votes == votes
    with pytest.raises(DataError, match=r"no column 'item'; it has call, worker, label.*item=…"):
        from_annotators_long(dict(zip(["call", "worker", "label"], columns, strict=True)))


def test_long_tables_of_many_votes_agree_with_sets_built_one_by_one():
    rng = np.random.default_rng(0)
    votes = pd.DataFrame(rng.integers(0, [50, 5, 8], size=(1000, 3)), columns=["task", "worker", "label"])
    with pytest.warns(MisuseWarning, match="In 50 of 50 rows several answers of one annotator count as one"):
        found = from_annotators_long(votes, rule="at_least:2", missing="empty")
    ballots = votes.drop_duplicates().groupby(["task", "label"]).size()
    for task, row in zip(found.ids, found.candidates, strict=True):
        assert row == {label for label, count in ballots[task].items() if count >= 2}


def test_importers_keep_who_answered_what():
    found = from_annotators_long(LONG, missing="empty").votes
    assert found.annotators.tolist() == ["ann", "bob", "cyd"]
    assert found.items.tolist() == ["t2", "t1", "t3"]
    assert found.counts.tolist() == [[0, 2, 0], [2, 0, 1], [0, 0, 0]]
    assert found.annotators[found.annotator].tolist() == ["ann", "bob", "ann", "bob", "cyd"]


def test_answers_of_a_long_table_may_weigh_and_belong_to_somebody():
    lines = LONG[:5].assign(expertise=[1.0, 3.0, 1.0, 1.0, 2.0])
    assert from_annotators_long(lines, weight="expertise").votes.counts.tolist() == [[0, 3, 0], [4, 0, 1]]
    with pytest.raises(DataError, match="weight: row 1 has an answer of weight -3"):
        from_annotators_long(lines.assign(expertise=[1, -3, 1, 1, 1]), weight="expertise")
    with pytest.raises(DataError, match="the table: row 2 has no worker"):
        from_annotators_long(lines.assign(worker=["a", "b", None, "c", "d"]))


@pytest.mark.filterwarnings("ignore:.*some annotators differ only in how they are written")
@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["007", "7", "08"], ["007", "7", "08"]),
        (["12345678901234567890", "12345678901234567891"], ["12345678901234567890", "12345678901234567891"]),
        (["1.50", "1.5"], ["1.50", "1.5"]),
        (["3", "12", "0"], [3, 12, 0]),
    ],
)
def test_names_in_a_text_file_are_not_taken_for_other_numbers(tmp_path, written, expected):
    file = tmp_path / "votes.csv"
    file.write_text("task,worker,label\n" + "".join(f"{name},{name},x\n" for name in written), encoding="utf-8")
    found = from_annotators_long(file)
    assert found.ids.tolist() == expected
    assert found.votes.annotators.tolist() == sorted(expected)


# ---------------------------------------------------------------- hostile tables of answers


def test_identifiers_annotators_and_labels_of_text_files_stay_as_they_are_written(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label\n007,01,1\n7,1,01\n7,2,1\n")
    with pytest.warns(MisuseWarning, match="'01' and '1'; write them alike"):
        found = from_annotators_long(path)
    assert found.ids.tolist() == ["007", "7"]
    assert found.votes.annotators.tolist() == ["01", "1", "2"]
    assert found.candidates.to_lists() == [["1"], ["01", "1"]]


def test_answers_in_two_spellings_are_said():
    with pytest.warns(MisuseWarning, match="differ only in how they are written: 'Cat' and 'cat '"):
        from_answers_jsonl(['{"id": 1, "answers": ["Cat", "cat "]}'])
    table = {"task": [1, 1], "worker": ["a", "b"], "label": ["cat", " cat"]}
    with pytest.warns(MisuseWarning, match="the table: some classes differ only in how they are written"):
        from_annotators_long(table)
    assert len(from_annotators_long(table, classes=["cat", " cat"]).votes) == 1


def test_a_weight_that_is_no_number_is_named(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label,w\n1,a,1,0.5\n2,b,1,heavy\n")
    with pytest.raises(DataError, match=r"votes.csv: w: holds something other than numbers .*heavy"):
        from_annotators_long(path, weight="w")
