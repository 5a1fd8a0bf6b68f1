"""Exports of Label Studio become candidates and votes."""

import csv
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setwise.cli.app import run
from setwise.tables import (
    DataError,
    from_label_studio,
    import_votes,
)
from tests.conftest import check_sentence
from tests.tables.conftest import answered_task

# ----------------------------------------------------------------------------- several files, of which one was read


@pytest.mark.parametrize("given", [["a.json", "b.json"], ["."], ["*.json"]])
def test_exports_in_several_files_are_refused_and_not_read_in_part(given, tmp_path, capsys):
    for name, number in (("a", 1), ("b", 2)):
        (tmp_path / f"{name}.json").write_text(json.dumps([answered_task(number, "cat")]))
    files = [str(tmp_path / name) for name in given]
    assert run(["convert", *files, "--from", "label-studio", "--out", str(tmp_path / "c.csv")]) == 2
    assert "exports of Label Studio are read one by one; export all tasks as one file" in capsys.readouterr().err


def test_choices_of_label_studio_are_the_numbers_that_they_read_as():
    marked = answered_task(2, "9")
    marked["annotations"][0]["ground_truth"] = True
    found = from_label_studio([answered_task(1, "7", "8"), marked], classes=[7, 8, 9])
    assert found.candidates.to_lists() == [[7, 8], [9]]
    assert found.truth.tolist() == [None, 9]


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
    with pytest.raises(DataError, match=r"several controls animal and size; use from_name=… to name the control"):
        from_label_studio(tasks)
    with pytest.raises(DataError, match=r"there is no control 'colour'; there is animal and size; use from_name=…"):
        from_label_studio(tasks, from_name="colour")
    assert from_label_studio(tasks, from_name="size").candidates.to_lists() == [["big"]]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "is not JSON"),
        ('{"tasks": []}', "expected a list of tasks, got dict"),
        ("[7]", "task 0 is not a JSON object"),
        ('[{"id": 1}]', "there are no answers"),
        ('[{"id": 1}, {"id": 2, "annotations": []}]', "task 0 has no annotations, but other tasks have"),
        ('[{"id": 1, "annotations": 3}]', "task 0 is not a task as Label Studio exports it"),
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


# ------------------------------------------------------------------- one annotation per row: JSON-MIN, CSV and TSV


def rows_of(*answers, **data):
    """The rows that a server writes for annotations: (task, annotator, answer), None for a task without any."""
    return [
        {"pkg": f"p{task}", "note": "n", **data, "id": task}
        | ({} if answer is None else {"section": answer})
        | {"annotator": who, "annotation_id": None if who is None else i, "created_at": "", "lead_time": 5.0}
        for i, (task, who, answer) in enumerate(answers)
    ]


def written(path, rows):
    """The rows in a file of that format."""
    if path.suffix == ".json":
        path.write_text(json.dumps(rows))
        return path
    names = sorted({name for row in rows for name in row})
    texts = [
        {name: v if v is None or isinstance(v, (str, int, float)) else json.dumps(v) for name, v in row.items()}
        for row in rows
    ]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(
            file, names, quoting=csv.QUOTE_NONNUMERIC, delimiter="\t" if path.suffix == ".tsv" else ","
        )
        writer.writeheader()
        writer.writerows(texts)
    return path


FORMS = pytest.mark.parametrize("name", ["e.json", "e.csv", "e.tsv"])


@FORMS
def test_rows_of_annotations_are_votes_and_the_control_is_found(tmp_path, name):
    file = written(tmp_path / name, rows_of((1, 4, "owl"), (1, 5, "ant"), (2, 4, "owl"), (3, None, None)))
    found = import_votes(file, key="pkg").votes
    assert (found.items.tolist(), found.classes.tolist()) == (["p1", "p2", "p3"], ["ant", "owl"])
    assert found.counts.tolist() == [[1, 1], [0, 1], [0, 0]]
    assert set(found.annotators.tolist()) == {4, 5}
    assert import_votes(file).ids.tolist() == [1, 2, 3]


@FORMS
def test_several_choices_and_taxonomies_share_one_answer(tmp_path, name):
    several, paths = {"choices": ["ant", "owl"]}, [{"taxonomy": [["bird", "owl"], ["bird"]]}]
    file = written(tmp_path / name, rows_of((1, 4, several), (1, 5, "ant"), (2, 4, several)))
    assert import_votes(file, key="pkg").votes.counts.tolist() == [[1.5, 0.5], [0.5, 0.5]]
    file = written(tmp_path / name, rows_of((1, 4, paths), (1, 5, [{"taxonomy": [["ant"]]}])))
    assert import_votes(file, key="pkg").votes.classes.tolist() == ["ant", "bird/owl"]


@FORMS
def test_a_control_that_nothing_tells_apart_is_asked_for(tmp_path, name):
    rows = rows_of((1, 4, "owl"), (2, 4, "ant"))
    file = written(tmp_path / name, rows)
    if name == "e.json":  # there it follows the data
        assert from_label_studio(file).candidates.to_lists() == [["owl"], ["ant"]]
    else:
        with pytest.raises(
            DataError, match=f"{name}: the answers may be in any of note, pkg, section; use from_name=…"
        ):
            from_label_studio(file)
    assert from_label_studio(file, from_name="section").candidates.to_lists() == [["owl"], ["ant"]]
    assert from_label_studio(file, classes=["ant", "owl"]).candidates.to_lists() == [["owl"], ["ant"]]
    with pytest.raises(DataError, match=f"{name}: there is no column 'kind'; it has .*section.*; use from_name=…"):
        from_label_studio(file, from_name="kind")
    if name != "e.json":
        rows = rows_of((1, 4, "owl"), (1, 5, "ant"))
        with pytest.raises(DataError, match=f"{name}: the answers may be in any of mood, section"):
            from_label_studio(written(file, [row | {"mood": f"m{i}"} for i, row in enumerate(rows)]))


@FORMS
def test_rows_of_one_person_show_their_control_by_what_setwise_wrote_beside_it(tmp_path, name):
    marks = {"drawn": True, "draw": "1 of 2 from 9 rows, seed 0"}
    rows = rows_of((1, 4, "owl"), (2, 4, "ant"), **marks)
    file = written(tmp_path / name, [{name: row[name] for name in row if name != "note"} for row in rows])
    assert import_votes(file, key="pkg").votes.classes.tolist() == ["ant", "owl"]


@FORMS
def test_a_broken_row_of_annotations_is_named(tmp_path, name):
    rows = rows_of((1, 4, "owl"), (1, 5, {"choices": [7]}))
    with pytest.raises(DataError, match=f"{name}: row 1: 7 is neither a choice nor a taxonomy path") as error:
        import_votes(written(tmp_path / name, rows))
    check_sentence(error.value, name)
