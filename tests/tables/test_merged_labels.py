"""The final table: one label per row, and where it comes from."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setwise.cli.app import run
from setwise.errors import MisuseWarning
from setwise.tables import DataError, merge_labels, read_table
from tests.conftest import check_sentence

ACCEPTED = "id,text,label,confidence\na,x,owl,0.9\nb,y,ant,0.8\n"
VERIFIED = 'id,text,drawn,draw,verified\nc,z,true,"1 of 1 from 5 rows, seed 0",owl\n'
REVIEW = "id,text,proposed,confidence,rank,drawn,label\nd,v,ant,0.4,1,false,owl\ne,w,,,2,false,ant\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("accepted", ACCEPTED), ("verified", VERIFIED), ("review", REVIEW)):
        (tmp_path / f"{name}.csv").write_text(text)
    return tmp_path


def merged(*names, **options):
    files = [(name, None) for name in names or ("accepted.csv", "verified.csv", "review.csv")]
    found = merge_labels(files, key="id", **options)
    return {name: values.to_pylist() for name, values in found.items()}


def test_each_row_has_one_label_and_its_source(here):
    assert merged() == {
        "id": ["a", "b", "c", "d", "e"],
        "text": ["x", "y", "z", "v", "w"],
        "label": ["owl", "ant", "owl", "owl", "ant"],
        "source": ["accepted", "accepted", "verified", "reviewed", "reviewed"],
        "drawn": [None, None, True, False, False],
    }


def test_labels_read_back_from_the_final_table_as_they_were_in_every_file(here, capsys):
    (here / "accepted.csv").write_text("id,label,confidence\na,owl\\b,0.9\nb,\\q7,0.8\n")
    write = [
        {"id": "c", "verified": "owl "},
        {"id": "d", "verified": "back\\slash"},
        {"id": "e", "verified": "a|b"},
    ]
    (here / "verified.jsonl").write_text("".join(json.dumps(row) + "\n" for row in write))
    (here / "review.csv").write_text("id,rank,label\nf,1, owl\n")
    (here / "rows.csv").write_text("id\n" + "\n".join("abcdef"))
    asked = ["merge", "accepted.csv", "verified.jsonl", "review.csv", "--key", "id", "--rows", "rows.csv", "-q"]
    for name in ("final.csv", "final.tsv", "final.jsonl", "final.parquet"):
        assert run([*asked, "--out", name]) == 0, capsys.readouterr().err
        found = read_table(here / name, truth="label", features=(), carry=["id"]).truth
        assert found.tolist() == ["owl ", "7", "owl ", "back\\slash", "a|b", "owl "]


def test_the_table_of_all_rows_gives_columns_and_order(here):
    (here / "items.csv").write_text("more,id\n1,e\n2,d\n3,c\n4,b\n5,a\n")
    found = merged(rows="items.csv", answer="bird")
    assert (found["more"], found["id"]) == ([1, 2, 3, 4, 5], ["e", "d", "c", "b", "a"])
    assert found["bird"] == ["ant", "owl", "owl", "ant", "owl"]
    (here / "items.csv").write_text("id\na\nb\nc\nd\ne\nf\n")
    with pytest.raises(DataError, match=r"items.csv: id = 'f' has no label \(1 such rows\); label it, or name"):
        merged(rows="items.csv")
    (here / "items.csv").write_text("id\na\nb\nc\nd\n")
    with pytest.raises(DataError, match=r"review.csv: row 1 \(id = 'e'\) is no row of items.csv; leave it out"):
        merged(rows="items.csv")
    (here / "items.csv").write_text("id\na\na\n")
    with pytest.raises(DataError, match="items.csv: id = 'a' occurs twice; keep one of them"):
        merged(rows="items.csv")


@pytest.mark.parametrize("form", ["json", "csv", "min"])
def test_answers_come_from_label_studio_too(here, form):
    answers = [("d", "owl", 0), ("e", "ant", 1)]
    if form == "json":
        regions = [[{"from_name": "bird", "value": {"choices": [label]}}] for _, label, _ in answers]
        tasks = [
            {"id": i, "data": {"id": name, "text": "t", "drawn": False}, "annotations": [{"result": regions[i]}]}
            for name, _, i in answers
        ]
        (here / "answers.json").write_text(json.dumps(tasks))
        found = merged("accepted.csv", "verified.csv", "answers.json")
    else:
        for line in ("accepted", "verified"):
            (here / f"{line}.csv").write_text((here / f"{line}.csv").read_text().replace("id,", "pkg,"))
        rows = [
            {"pkg": name, "text": "t", "drawn": False, "id": i, "bird": label, "annotator": 1, "annotation_id": i}
            | {"lead_time": 1.0}
            for name, label, i in answers
        ]
        name = "answers.csv" if form == "csv" else "answers.json"
        text = json.dumps(rows)
        if form == "csv":
            lines = [",".join(rows[0]), *(",".join(str(value) for value in row.values()) for row in rows)]
            text = "\n".join(lines)
        (here / name).write_text(text)
        files = [("accepted.csv", None), ("verified.csv", None), (name, "bird")]
        found = {name: values.to_pylist() for name, values in merge_labels(files, key="pkg").items()}
    assert found["label"] == ["owl", "ant", "owl", "owl", "ant"]
    assert found["source"][3:] == ["reviewed", "reviewed"]
    assert found["text"] == ["x", "y", "z", "t", "t"]


def change(name, before, after):
    def edit(folder):
        text = (folder / name).read_text()
        assert before in text
        (folder / name).write_text(text.replace(before, after))

    return edit


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (
            change("review.csv", "owl", ""),
            r"review.csv: row 0 \(id = 'd'\) has no label \(1 such rows\); label it, or",
        ),
        (change("review.csv", "d,v", "a,v"), r"review.csv: row 0 \(id = 'a'\) has the label 'owl', but .* has"),
        (
            change("accepted.csv", "b,y,ant", "a,y,owl"),
            r"accepted.csv: row 1 \(id = 'a'\) has the id of row 0; keep one of them",
        ),
        (change("review.csv", "e,w", "d,w"), r"review.csv: row 1 \(id = 'd'\) has the id of row 0; keep one"),
        (change("review.csv", "d,v", ",v"), "review.csv: row 0 has no id; give it one"),
        (
            change("verified.csv", "c,z", "d,z"),
            r"verified.csv: row 0 \(id = 'd'\) is called verified, but it was chosen",
        ),
        (
            change("verified.csv", "5 rows", "7 rows"),
            "they have 5 of the 7 rows that those to verify were drawn from",
        ),
        (change("review.csv", "id,text", "name,text"), "review.csv: there is no column 'id'; it has name, text"),
        (
            change("review.csv", ",label", ",mine"),
            "review.csv: there is no column 'verified' or label or answer; it has",
        ),
    ],
)
def test_rows_that_are_missing_or_contradict_are_named_by_file_and_row(here, edit, says):
    edit(here)
    if "but .* has" in says:
        change("accepted.csv", "a,x,owl", "a,x,ant")(here)
    with pytest.raises(DataError, match=says) as error:
        merged()
    check_sentence(error.value, ".csv")


def test_a_review_file_is_no_file_of_verified_rows_whatever_its_column_is_called(here):
    change("review.csv", "false", "true")(here)
    change("review.csv", ",label", ",verified")(here)
    assert merged()["source"][3:] == ["reviewed", "reviewed"]


def test_nothing_says_how_many_rows_there_are(here):
    change("verified.csv", "draw,", "note,")(here)
    with pytest.warns(
        MisuseWarning, match="missing rows are not noticed; use rows=… to name the table of all rows"
    ):
        assert len(merged()["id"]) == 5


def test_a_task_that_two_people_answered_alike_is_one_row(here):
    region = {"from_name": "bird", "value": {"choices": ["owl"]}}
    tasks = [{"id": i, "data": {"id": "d"}, "annotations": [{"result": [region]}]} for i in range(2)]
    (here / "answers.json").write_text(json.dumps(tasks))
    found = merged("accepted.csv", "answers.json", rows={"id": ["a", "b", "d"]})
    assert found["label"] == ["owl", "ant", "owl"]


@pytest.mark.parametrize("name", ["review.csv", "review.parquet", "review.json"])
def test_a_file_without_rows_adds_none(here, name):
    change("verified.csv", "5 rows", "3 rows")(here)
    if name == "review.parquet":
        pq.write_table(pa.table({"id": pa.array([], pa.string()), "label": pa.array([], pa.string())}), name)
    else:
        (here / name).write_text("[]" if name == "review.json" else REVIEW.splitlines()[0] + "\n")
    found = merged("accepted.csv", "verified.csv", name)
    assert (found["text"], found["label"]) == (["x", "y", "z"], ["owl", "ant", "owl"])
    with pytest.raises(DataError, match="the files hold no rows; name those with labels"):
        merged(name)


def test_numbers_stay_numbers_and_a_row_verified_and_accepted_alike_is_verified(here):
    (here / "n.csv").write_text("id,label,confidence\n1,7,0.9\n2,8,0.9\n")
    (here / "v.csv").write_text('id,verified,draw\n1,7,"1 of 1 from 2 rows, seed 0"\n')
    found = merged("n.csv", "v.csv")
    assert (found["label"], found["source"]) == ([7, 8], ["verified", "accepted"])


def test_the_command_writes_the_table_and_counts_sources(here, capsys):
    files = ["accepted.csv", "verified.csv:verified", "review.csv:label"]
    assert run(["merge", *files, "--key", "id", "--out", "final.csv"]) == 0
    assert "5 rows have one label each: 2 accepted, 1 verified, 2 reviewed" in capsys.readouterr().out
    lines = (here / "final.csv").read_text().splitlines()
    assert (lines[0], lines[3]) == ('"id","text","label","source","drawn"', '"c","z","owl","verified",true')
    assert run(["merge", *files, "--out", "f.csv"]) == 2
    assert "name its column with --key" in capsys.readouterr().err
    (here / "items.csv").write_text("id,source\na,b\n")
    assert run(["merge", *files, "--key", "id", "--rows", "items.csv", "--out", "f.csv"]) == 2
    assert "there is a column 'source' already" in capsys.readouterr().err
