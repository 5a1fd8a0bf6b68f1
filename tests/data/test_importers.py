import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setwise import LabelSets
from setwise.data import (
    DataError,
    from_annotators_long,
    from_annotators_wide,
    from_answers_jsonl,
    from_label_studio,
    from_snorkel,
    read_tree,
)
from setwise.errors import MisuseWarning

from .conftest import check_sentence

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


def test_an_annotator_may_give_several_labels_on_several_lines():
    votes = {"task": [1, 1, 1, 1], "annotator": ["a", "a", "b", "b"], "label": ["x", "y", "z", "x"]}
    assert from_annotators_long(votes, rule="plurality").candidates.to_lists() == [["x"]]
    assert from_annotators_long(votes, rule="union").candidates.to_lists() == [["x", "y", "z"]]


def test_rows_that_may_be_anything_among_the_labels_seen_cannot_be_widened():
    found = from_snorkel([[0, 1, -1], [-1, -1, -1]]).candidates
    with pytest.raises(ValueError, match="sets that mean 'every label'"):
        found.with_classes([0, 1, 2])
    assert from_snorkel([[0], [-1]], classes=["ham", "spam"]).candidates.sizes.tolist() == [1, 2]


def test_long_tables_come_from_files_and_their_errors_name_them(tmp_path):
    path = tmp_path / "votes.csv"
    LONG.to_csv(path, index=False)
    assert from_annotators_long(path, missing="full").candidates.sizes.tolist() == [1, 2, 3]
    with pytest.raises(DataError, match=r"votes.csv: row 2 has no labels"):
        from_annotators_long(path)
    with pytest.raises(DataError, match="votes.csv: there is no column 'item'; it has task, worker, label"):
        from_annotators_long(path, task="item")
    with pytest.raises(DataError, match="row 1: 'cat' is not among the 1 classes"):
        from_annotators_long(LONG[:5], classes=["dog"])


def test_long_tables_of_many_votes_agree_with_sets_built_one_by_one():
    rng = np.random.default_rng(0)
    votes = pd.DataFrame(rng.integers(0, [50, 5, 8], size=(1000, 3)), columns=["task", "worker", "label"])
    with pytest.warns(MisuseWarning, match=f"more than once \\({votes.duplicated().sum()} answers repeat"):
        found = from_annotators_long(votes, rule="at_least:2", missing="empty")
    ballots = votes.drop_duplicates().groupby(["task", "label"]).size()
    for task, row in zip(found.ids, found.candidates, strict=True):
        assert row == {label for label, count in ballots[task].items() if count >= 2}


def test_wide_tables_with_gaps_keep_integers_integers():
    wide = pd.DataFrame(
        {"id": ["a", "b", "c"], "w1": [0, np.nan, 2], "w2": [1, 1, np.nan], "w3": [0, np.nan, np.nan]}
    )
    found = from_annotators_wide(wide, ids="id")
    assert found.candidates.to_lists() == [[0, 1], [1], [2]]
    assert found.ids.tolist() == ["a", "b", "c"]
    assert from_annotators_wide(wide, ids="id", rule="at_least:2", missing="empty").candidates.to_lists() == [
        [0],
        [],
        [],
    ]
    with pytest.raises(DataError, match="row 0 has no labels"):
        from_annotators_wide(pd.DataFrame({"w": [None, "a"]}))


def test_snorkel_abstentions_are_no_votes_and_silence_means_anything():
    votes = np.array([[0, 2, -1], [-1, -1, -1], [1, 1, 1]])
    found = from_snorkel(votes, ids=["a", "b", "c"])
    assert found.candidates.to_lists() == [[0, 2], [0, 1, 2], [1]]
    assert found.ids.tolist() == ["a", "b", "c"]
    with pytest.raises(DataError, match="row 0, function 1: 2 is outside −1..1"):
        from_snorkel(votes, classes=["ham", "spam"])
    with pytest.raises(DataError, match="row 1 has no labels"):
        from_snorkel(votes, missing="error")


def test_importers_keep_who_answered_what():
    found = from_annotators_long(LONG, missing="empty").votes
    assert found.annotators.tolist() == ["ann", "bob", "cyd"]
    assert found.items.tolist() == ["t2", "t1", "t3"]
    assert found.counts.tolist() == [[0, 2, 0], [2, 0, 1], [0, 0, 0]]
    assert found.annotators[found.annotator].tolist() == ["ann", "bob", "ann", "bob", "cyd"]
    wide = from_annotators_wide({"id": ["a", "b"], "x": [0, 1], "y": [2, None]}, ids="id").votes
    assert wide.annotators[wide.annotator].tolist() == ["x", "y", "x"]
    assert wide.classes[wide.label].tolist() == [0, 2, 1]


def test_answers_of_a_long_table_may_weigh_and_belong_to_somebody():
    lines = LONG[:5].assign(expertise=[1.0, 3.0, 1.0, 1.0, 2.0])
    assert from_annotators_long(lines, weight="expertise").votes.counts.tolist() == [[0, 3, 0], [4, 0, 1]]
    with pytest.raises(DataError, match="weight: row 1 has an answer of weight -3"):
        from_annotators_long(lines.assign(expertise=[1, -3, 1, 1, 1]), weight="expertise")
    with pytest.raises(DataError, match="the table: row 2 has no worker"):
        from_annotators_long(lines.assign(worker=["a", "b", None, "c", "d"]))


def test_snorkel_functions_may_vote_for_what_a_row_is_not():
    found = from_snorkel([[0, 2], [-1, 2], [1, -1]], functions=["says", "denies"], against=["denies"])
    assert found.candidates.to_lists() == [[0], [0, 1], [1]]
    assert found.votes.against.tolist() == [False, True, True, False]
    assert found.votes.annotators[found.votes.annotator].tolist() == ["says", "denies", "denies", "says"]
    with pytest.raises(DataError, match="against: there is no function 'x'"):
        from_snorkel([[0, 1]], against=["x"])
    with pytest.raises(DataError, match="functions: 1 names for 2 columns"):
        from_snorkel([[0, 1]], functions=["a"])


def test_a_language_models_answers_come_as_json_lines(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_text(
        '{"id": "a", "answers": ["cat", "cat", "dog", null]}\n\n'
        '{"id": "b", "probabilities": {"owl": 0.9, "cat": 0.0}}\n'
        '{"id": "a", "answers": "dog"}\n'
        '{"id": "c", "answers": null}\n',
        encoding="utf-8",
    )
    found = from_answers_jsonl(path, missing="empty")
    assert found.ids.tolist() == ["a", "b", "c"]
    assert found.votes.counts.tolist() == [[2, 2, 0], [0, 0, 0.9], [0, 0, 0]]
    assert found.candidates.to_lists() == [["cat", "dog"], ["owl"], []]
    assert from_answers_jsonl(path, rule="at_least:2", missing="empty").candidates.sizes.tolist() == [2, 0, 0]
    with pytest.raises(DataError, match="answers.jsonl: row 2 has no labels"):
        from_answers_jsonl(path)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "line 1 is not JSON"),
        ("7", "line 1 is int, not an object"),
        ('{"answers": ["a"]}', "'id' is None"),
        ('{"id": 1}', "either 'answers', a list, or 'probabilities'"),
        ('{"id": 1, "answers": [["a"]]}', r"an answer is \['a'\]"),
        ('{"id": 1, "answers": ["a"], "labels": ["a"]}', "either 'answers', a list, or 'probabilities'"),
        ('{"id": 1, "probabilities": [0.3, 0.7]}', "probabilities is list, not an object"),
        ('{"id": 1, "prediction": [{"label": "a"}]}', r"\{'label': 'a'\} has no label with a probability"),
        ('{"id": 1, "prediction": [{"label": "a", "p": 2}]}', "the probability of 'a' is 2"),
        ('{"id": 1, "prediction": [{"label": "a", "p": 1}, "b"]}', "'b' has no label with a probability"),
        ('{"id": 1, "probabilities": {"a": 1.5}}', "the probability of 'a' is 1.5"),
        ('{"id": 1, "probabilities": {"a": NaN}}', "the probability of 'a' is nan"),
        ('{"id": 1, "probabilities": ["a"]}', "probabilities is list, not an object"),
        ("[" * 100_000, "line 1 is not JSON"),
    ],
)
def test_broken_answer_lines_end_in_one_sentence(line, says):
    with pytest.raises(DataError, match=says) as error:
        from_answers_jsonl([line])
    check_sentence(error.value, "line")


TREE = {"animal": {"bird": ["owl", "wren"], "cat": None}, "plant": ["fern"]}


@pytest.mark.parametrize("name", ["tree.json", "pairs.json", "tree.csv", "two.tsv"])
def test_a_tree_file_turns_inner_nodes_into_leaves(tmp_path, name):
    pairs = [["animal", "bird"], ["animal", "cat"], ["bird", "owl"], ["bird", "wren"], ["plant", "fern"]]
    lines = {
        "tree.json": json.dumps(TREE),
        "pairs.json": json.dumps(pairs),
        "tree.csv": "child,parent\n" + "".join(f"{child},{parent}\n" for parent, child in pairs),
        "two.tsv": "above\tbelow\n" + "".join(f"{parent}\t{child}\n" for parent, child in pairs),
    }
    path = tmp_path / name
    path.write_text(lines[name])
    assert sorted(read_tree(path)) == sorted(map(tuple, pairs))
    found = LabelSets.from_hierarchy(["bird", "fern", "animal", "bird"], read_tree(path))
    assert found.to_lists() == [["owl", "wren"], ["fern"], ["cat", "owl", "wren"], ["owl", "wren"]]
    assert found.classes.tolist() == ["cat", "fern", "owl", "wren"]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.json", '{"a": ["b"], "b": ["a"]}', "its own descendant"),
        ("a.json", '{"a": [', "a.json: cannot be read"),
        ("a.json", "7", "expected an object of parents"),
        ("a.csv", "a,b,c\n1,2,3\n", "no column .parent. .of two, parent and child"),
        ("a.csv", "parent,child\nx,y\n,z\n", "row 1 lacks its parent or child"),
    ],
)
def test_a_broken_tree_file_ends_in_one_sentence(tmp_path, name, text, says):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(DataError, match=says):
        read_tree(path)


def test_identifiers_must_be_one_per_row():
    with pytest.raises(ValueError, match=r"ids: shape \(1,\) for 2 rows"):
        from_snorkel([[1, 0], [1, 1]], ids=["r1"])


# ------------------------------------------------------------------------------------------------ Label Studio


def choice(*labels, name="animal"):
    return {"from_name": name, "to_name": "image", "type": "choices", "value": {"choices": list(labels)}}


def taxonomy(*paths):
    return {"from_name": "kind", "type": "taxonomy", "value": {"taxonomy": [list(path) for path in paths]}}


def annotation(*regions, **more):
    return {"completed_by": 1, "result": list(regions), **more}


def test_choices_of_several_annotators_become_sets_and_ground_truth_becomes_truth(tmp_path):
    tasks = [
        {
            "id": 11,
            "annotations": [annotation(choice("cat")), annotation(choice("dog", "cat"), completed_by={"id": 2})],
        },
        {"id": 12, "annotations": [annotation(choice("owl"), was_cancelled=True), annotation(choice("dog"))]},
        {"id": 13, "annotations": [annotation(choice("owl"), ground_truth=True), annotation(choice("cat"))]},
        {"id": 14, "annotations": [annotation()]},
        {"id": 15, "annotations": []},
    ]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    found = from_label_studio(path, missing="empty")
    assert found.ids.tolist() == [11, 12, 13, 14, 15]
    assert found.candidates.to_lists() == [["cat", "dog"], ["dog"], ["cat", "owl"], [], []]
    assert found.truth.tolist() == [None, None, "owl", None, None]
    twice = from_label_studio(path, rule="at_least:2", missing="empty").candidates.to_lists()
    assert twice == [["cat"], [], [], [], []]
    assert from_label_studio(path, rule="plurality", missing="empty").candidates[0] == {"cat"}
    with pytest.raises(DataError, match="export.json: row 3 has no labels"):
        from_label_studio(path)


def test_annotators_are_known_by_name_and_several_choices_share_one_answer():
    mail = {"id": 3, "email": "cyd@example.org"}
    tasks = [
        {"id": 1, "annotations": [annotation(choice("cat", "dog")), annotation(choice("cat"), completed_by=mail)]},
        {"id": 2, "annotations": [{"result": [choice("dog")]}]},
    ]
    found = from_label_studio(tasks).votes
    assert set(found.annotators.tolist()) == {1, "cyd@example.org", "annotation 0"}
    assert found.counts.tolist() == [[1.5, 0.5], [0, 1]]
    assert found.items.tolist() == [1, 2]


def test_a_taxonomy_path_that_ends_early_stands_for_the_leaves_below():
    tasks = [
        {"id": 1, "annotations": [annotation(taxonomy(("animal", "bird", "owl")))]},
        {"id": 2, "annotations": [annotation(taxonomy(("animal", "bird", "wren"), ("animal", "cat")))]},
        {"id": 3, "annotations": [annotation(taxonomy(("animal", "bird")))]},
    ]
    found = from_label_studio(tasks)
    owl, wren, cat = "animal/bird/owl", "animal/bird/wren", "animal/cat"
    assert [set(row) for row in found.candidates] == [{owl}, {wren, cat}, {owl, wren}]


def test_the_flat_export_is_read_by_the_name_of_its_control():
    tasks = [{"id": 1, "animal": "cat"}, {"id": 2, "animal": {"choices": ["cat", "dog"]}}, {"id": 3}]
    found = from_label_studio(tasks, from_name="animal", missing="full")
    assert found.candidates.to_lists() == [["cat"], ["cat", "dog"], ["cat", "dog"]]


def test_several_controls_need_a_name_and_other_answers_are_passed_over():
    text = {"from_name": "note", "type": "textarea", "value": {"text": ["hm"]}}
    tasks = [{"id": 1, "annotations": [annotation(choice("cat"), choice("big", name="size"), text)]}]
    with pytest.raises(DataError, match=r"several controls \(animal, size\); say which with from_name"):
        from_label_studio(tasks)
    assert from_label_studio(tasks, from_name="size").candidates.to_lists() == [["big"]]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "is not JSON"),
        ('{"tasks": []}', "expected a list of tasks, got dict"),
        ("[7]", "task 0 is no JSON object"),
        ('[{"id": 1}]', "task 0 has no annotations"),
        ('[{"id": 1, "annotations": 3}]', "task 0: annotations is int, not a list"),
        ('[{"id": [1], "annotations": []}]', "its id is"),
        (json.dumps([{"annotations": [annotation(choice(7))]}]), "7 is neither a choice nor a taxonomy path"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_a_broken_export_ends_in_one_sentence(tmp_path, content, says):
    path = tmp_path / "export.json"
    path.write_text(content)
    with pytest.raises(DataError, match=says) as error:
        from_label_studio(path)
    check_sentence(error.value, "export")


jsons = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [
                    "id",
                    "annotations",
                    "completions",
                    "result",
                    "value",
                    "choices",
                    "taxonomy",
                    "from_name",
                    "animal",
                ]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@settings(max_examples=200)
@given(data=st.data())
def test_no_json_does_worse_to_the_label_studio_reader_than_a_data_error(tmp_path, data):
    value = data.draw(jsons)
    tasks = [
        {"id": 1, "annotations": [annotation({**choice("a"), "value": value})]},
        {"id": 2, "annotations": [value]},
    ]
    export = data.draw(st.sampled_from([value, [value], tasks]))
    path = tmp_path / "export.json"
    path.write_text(json.dumps(export))
    for name in (None, "animal"):
        try:
            assert len(from_label_studio(path, from_name=name, missing="empty")) == len(export)
        except DataError as error:
            check_sentence(error)


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
    path.write_text("task,worker,label\n007,01,1\n7,1,01\n7,1,1\n")
    with pytest.warns(MisuseWarning, match="'01' and '1'; write them alike"):
        found = from_annotators_long(path)
    assert found.ids.tolist() == ["007", "7"]
    assert found.votes.annotators.tolist() == ["01", "1"]
    assert found.candidates.to_lists() == [["1"], ["01", "1"]]


def test_answers_in_two_spellings_are_said():
    with pytest.warns(MisuseWarning, match="differ only in how they are written .*'Cat' and 'cat '"):
        from_answers_jsonl(['{"id": 1, "answers": ["Cat", "cat "]}'])
    table = {"task": [1, 1], "worker": ["a", "b"], "label": ["cat", " cat"]}
    with pytest.warns(MisuseWarning, match="the table: labels that differ only in how they are written"):
        from_annotators_long(table)
    assert len(from_annotators_long(table, classes=["cat", " cat"]).votes) == 1


def test_columns_of_annotators_have_labels_of_one_type(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("id,ann,bob\n1,1,1\n2,2,x\n")
    assert from_annotators_wide(path, ids="id").candidates.to_lists() == [["1"], ["2", "x"]]


def test_a_weight_that_is_no_number_is_named(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label,w\n1,a,1,0.5\n2,b,1,heavy\n")
    with pytest.raises(DataError, match=r"votes.csv: w: holds something that is no number .*heavy"):
        from_annotators_long(path, weight="w")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"id": 1, "probabilities": {"cat": 0.5, "cat": 0.4}}', "line 1: 'cat' occurs twice"),
        ('{"id": 1, "answers": ["cat"], "answers": ["dog"]}', "line 1: 'answers' occurs twice"),
        ('{"id": 1, "answers": [1, "1"]}', "the label 1 is also there as text"),
    ],
)
def test_answers_that_json_would_lose_or_part_are_errors(line, problem):
    with pytest.raises(DataError, match=problem):
        from_answers_jsonl([line])


def test_empty_answers_are_none_and_a_byte_order_mark_is_no_json(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_bytes('\ufeff{"id": 1, "answers": ["", "cat", null]}\r\n'.encode())
    assert from_answers_jsonl(path).votes.counts.tolist() == [[1]]


def test_annotators_without_an_address_are_known_by_their_number():
    def task(who):
        return {"id": who, "annotations": [{"completed_by": {"email": "", "id": who}, "result": [_CHOICE]}]}

    _CHOICE = {"from_name": "c", "type": "choices", "value": {"choices": ["a"]}}
    assert from_label_studio([task(3), task(4)]).votes.annotators.tolist() == [3, 4]


def test_two_ground_truths_that_differ_are_an_error():
    def truth(label):
        choice = {"from_name": "c", "type": "choices", "value": {"choices": [label]}}
        return {"completed_by": 1, "ground_truth": True, "result": [choice]}

    with pytest.raises(DataError, match="task 0: two annotations are marked as ground truth, 'a' and 'b'"):
        from_label_studio([{"id": 1, "annotations": [truth("a"), truth("b")]}])
    assert from_label_studio([{"id": 1, "annotations": [truth("a"), truth("a")]}]).truth.tolist() == ["a"]
