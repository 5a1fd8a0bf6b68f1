"""The page on which people label rows, in a real browser: by key and by click, kept, downloaded and read again."""

import json
import os
import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import expect

from setwise.errors import DataError
from setwise.report.label_pages import write_label_page
from setwise.tables import merge_labels
from setwise.tables.verified_files import read_verified
from tests.report.conftest import HOSTILE, HOSTILE_CLASSES, PATIENCE

expect.set_options(timeout=PATIENCE)

LABELS = ["a|b", "7", " owl", 'c"d,e']  # text that files could take for something else
IDS = ["=1+1", 'say "hi"', "two\nlines", "ü, ñ", "0007", "</script>"]
TEXT = "The council voted on Tuesday to close three of its branch libraries, citing a fall in visitors."
ROWS = {"id": IDS, "text": [TEXT] * 6, "votes": ["7|a\\sb"] * 6, "p:7": [0.3] * 6, "place": list("uvwxyz")}


def data_of(path):
    """What a page holds."""
    text = Path(path).read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


@pytest.fixture
def verify(tmp_path):
    marks = {"drawn": [True] * 6, "draw": [f"{i} of 6 from 50 rows, seed 0" for i in range(6)]}
    write_label_page(tmp_path / "verify.html", ROWS, LABELS, key="id", marks=marks)
    return tmp_path / "verify.html"


@pytest.fixture
def review(tmp_path):
    proposed = ["7", " owl", None, "7", "7", "7"]
    options = {"proposed": proposed, "confidence": [0.61, 0.5, None, 0.4, 0.3, 0.2]}
    options["marks"] = {"drawn": [False] * 6}
    write_label_page(tmp_path / "review.html", ROWS, LABELS, key="id", **options)
    return tmp_path / "review.html"


def downloaded(page, to):
    """The table that the page downloads, asked for with the keyboard alone."""
    page.locator("#download").focus()
    with page.expect_download() as waiting:
        page.keyboard.press("Enter")
    path = to / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


def chosen(page):
    """The labels that are pressed."""
    return page.locator(".choice [aria-pressed=true] span").all_text_contents()


def test_keys_alone_label_the_rows_and_what_is_downloaded_is_read_as_verified(open_page, verify, tmp_path):
    page = open_page(verify)
    for key in ("1", "2", "u", "4"):
        page.keyboard.press(key)
    expect(page.locator("#where")).to_contain_text("Row 5 of 6")
    page.keyboard.press("ArrowLeft")
    assert chosen(page) == ['c"d,e']
    page.keyboard.press("3")  # otherwise than before
    page.keyboard.press("ArrowRight")
    page.keyboard.press("1")
    expect(page.locator("#count")).to_have_text("5 of 6 rows, 1 unsure")
    assert "no random sample" in page.locator("#kept").inner_text()
    page.keyboard.press("n")
    expect(page.locator("#where")).to_contain_text("Row 5 of 6")
    page.keyboard.press("2")
    path = downloaded(page, tmp_path)
    assert path.name == "verified.csv"
    assert path.read_bytes().splitlines()[:2] == [
        b"id,verified,drawn,draw,note",
        b'=1+1,a\\sb,true,"0 of 6 from 50 rows, seed 0",',
    ]
    found, _ = read_verified(path, IDS, LABELS, key="id")
    assert found.tolist() == ["a|b", "7", None, " owl", "7", "a|b"]
    assert path.read_text(encoding="utf-8").count("unsure") == 1
    assert page.problems == []


def test_a_click_labels_a_row_and_goes_on(open_page, verify):
    page = open_page(verify)
    page.locator(".labels button").nth(2).click()
    expect(page.locator("#where")).to_contain_text("Row 2 of 6")
    page.get_by_role("button", name="Back").click()
    assert chosen(page) == [" owl"]
    page.get_by_role("button", name="Unsure").click()
    page.locator("#back").click()
    assert chosen(page) == ["Unsure"]


def count_on(page, path):
    page.goto(path.as_uri())
    return page.locator("#count").inner_text()


def enter_until_stored(page, verify, review):
    """Enters two answers until they outlive a visit elsewhere: a busy browser may drop what it is given."""
    while (count := count_on(page, verify)) != "2 of 6 rows, 1 unsure":
        page.keyboard.press("2" if count == "0 of 6 rows" else "u")
        assert count_on(page, review) == "0 of 6 rows"


def test_what_was_entered_is_kept_for_this_page_alone(open_page, verify, review):
    page = open_page(verify)
    enter_until_stored(page, verify, review)
    expect(page.locator("#where")).to_contain_text("Row 3 of 6")
    page.locator("#clear").click()
    expect(page.locator("#count")).to_have_text("2 of 6 rows, 1 unsure")
    page.get_by_role("button", name="Really delete it?").click()
    expect(page.locator("#count")).to_have_text("0 of 6 rows")
    while count_on(page, verify) != "0 of 6 rows":
        page.locator("#clear").click()
        page.get_by_role("button", name="Really delete it?").click()


def test_two_tabs_of_a_page_hold_the_same(open_page, verify):
    page = open_page(verify)
    page.reload()
    other = page.context.new_page()
    other.goto(verify.as_uri())
    page.keyboard.press("2")
    expect(other.locator("#count")).to_have_text("1 of 6 rows")
    other.keyboard.press("ArrowRight")
    other.keyboard.press("u")
    expect(page.locator("#count")).to_have_text("2 of 6 rows, 1 unsure")


def test_a_browser_that_keeps_nothing_says_so(open_page, verify, tmp_path, browser):
    context = browser.new_context()
    page = context.new_page()
    page.add_init_script("Storage.prototype.setItem = () => { throw new Error('full'); };")
    page.goto(verify.as_uri())
    page.keyboard.press("2")
    assert "download before you close" in page.locator("#kept").inner_text()
    assert read_verified(downloaded(page, tmp_path), IDS, LABELS, key="id")[0][0] == "7"
    context.close()


def test_verification_is_blind_and_review_shows_the_proposal(open_page, verify, review, tmp_path):
    assert data_of(verify)["columns"] == ["text", "place"]  # neither votes nor probabilities
    assert not [row for row in data_of(verify)["rows"] if set(row) != {"key", "cells", "marks"}]
    page = open_page(review)
    assert page.locator("#proposal").inner_text() == "Proposed: 7, confidence 0.61."
    assert page.locator(".labels button", has_text="proposed").locator("span").all_text_contents() == ["7"]
    assert chosen(page) == []
    page.keyboard.press("2")
    page.keyboard.press("1")
    assert page.locator("#proposal").inner_text() == "No label is proposed."
    path = downloaded(page, tmp_path)
    assert path.name == "reviewed.csv"
    assert path.read_text(encoding="utf-8").splitlines()[:3] == [
        "id,label,drawn,note",
        "=1+1,\\q7,false,",
        '"say ""hi""",a\\sb,false,',
    ]
    assert "votes" in data_of(review)["columns"]


def test_reviewed_rows_are_merged_and_never_count_as_verified(open_page, review, tmp_path):
    page = open_page(review)
    page.keyboard.press("1")
    with pytest.raises(DataError, match=r"has no label \(5 such rows\)"):
        merge_labels([(downloaded(page, tmp_path), None)], key="id", rows={"id": IDS})
    for _ in range(5):
        page.keyboard.press("2")
    path = downloaded(page, tmp_path)
    final = merge_labels([(path, None)], key="id", rows={"id": IDS})
    assert final["id"].to_pylist() == IDS
    assert final["label"].to_pylist() == ["a|b"] + ["7"] * 5
    assert set(final["source"].to_pylist()) == {"reviewed"}
    with pytest.raises(DataError, match="none of its rows was drawn at random"):
        read_verified(path, IDS, LABELS, key="id", column="label")


@pytest.mark.parametrize(
    ("name", "cells", "tells"),
    [
        ("said", ["OWL", "Wren", "owl "], True),  # however capitalised
        ("said", ["owl", "unclear", ""], True),  # beside another value
        ("said", ["owl", "eagle", "crow"], False),
        ("said", ["['owl', 'wren']", "[]", None], True),
        ("said", ['{"owl": 0.7, "wren": 0.3}', "{}", None], True),
        ("said", [["owl"], ["wren", "Owl"], None], True),
        *((name, [0.1, 0.2, 0.7], True) for name in ("p:owl", "prob_owl", "P:Owl", "said:wren", "score.7:1")),
        *((name, [0.1, 0.2, 0.7], False) for name in ("x_1", "howl", "owls")),
    ],
)
def test_a_column_that_tells_labels_is_hidden(tmp_path, name, cells, tells):
    rows = {"id": [1, 2, 3], "text": ["an owl", "two", "three"], name: cells}
    shown = write_label_page(tmp_path / "p.html", rows, ["owl", "wren", 1], key="id")
    assert shown == ["text"] + [name] * (not tells)


def test_columns_are_shown_by_name(tmp_path):
    shown = write_label_page(tmp_path / "p.html", ROWS, LABELS, key="id", show=["votes"])
    assert shown == ["votes"]
    for rows, options, message in (
        (ROWS, {"key": "id", "show": ["absent"]}, "there is no column 'absent'"),
        (ROWS, {"key": "item"}, "there is no column 'item'"),
        (ROWS, {"key": "votes"}, "a value is missing or occurs twice"),
        ({"id": IDS, "votes": ROWS["votes"]}, {"key": "id"}, "no column is left to show"),
    ):
        with pytest.raises(DataError, match=message):
            write_label_page(tmp_path / "q.html", rows, LABELS, **options)
    assert not (tmp_path / "q.html").exists()


def test_hostile_text_is_shown_and_not_run(open_page, tmp_path):
    rows = {"id": HOSTILE_CLASSES, HOSTILE: HOSTILE_CLASSES[::-1], "link": ["javascript:alert(4)"] * 5}
    path = tmp_path / "hostile.html"
    write_label_page(path, rows, HOSTILE_CLASSES, key="id", proposed=HOSTILE_CLASSES)
    page = open_page(path)
    page.keyboard.press("1")
    assert page.locator("#cells dt").all_text_contents() == [HOSTILE, "link"]
    assert page.locator("#cells dd").first.inner_text() == HOSTILE_CLASSES[3]
    assert page.locator(".labels button > span").all_text_contents() == HOSTILE_CLASSES
    assert page.locator("#cells a, #cells img").count() == 0
    found, _ = read_verified(
        f"{downloaded(page, tmp_path)}", HOSTILE_CLASSES, HOSTILE_CLASSES, key="id", column="label"
    )
    assert found.tolist() == [HOSTILE_CLASSES[0], None, None, None, None]
    assert page.problems == []


def test_pictures_are_in_the_page(open_page, tmp_path):
    (tmp_path / "made").mkdir()
    Image.new("RGB", (1200, 900), "teal").save(tmp_path / "made" / "a.jpg")
    Image.new("RGBA", (20, 20), "teal").save(tmp_path / "made" / "b.PNG")
    (tmp_path / "broken.png").write_bytes(b"\x89PNG no picture")
    rows = {"id": [1, 2, 3], "file": ["made/a.jpg", "made/b.PNG", "absent.png"]}
    write_label_page(tmp_path / "p.html", rows, LABELS, key="id", folder=tmp_path)
    page = open_page(tmp_path / "p.html")
    picture = page.locator("#cells img")
    assert picture.get_attribute("alt") == "file: made/a.jpg"
    assert picture.evaluate("(image) => image.decode().then(() => image.naturalWidth)") == 800
    page.keyboard.press("ArrowRight")
    assert picture.evaluate("(image) => image.decode().then(() => image.naturalWidth)") == 20
    page.keyboard.press("ArrowRight")
    assert page.locator("#cells dd").inner_text() == "absent.png"
    assert page.problems == []
    with pytest.raises(DataError, match=r"broken\.png: is no picture"):
        write_label_page(tmp_path / "q.html", {"id": [1], "f": ["broken.png"]}, LABELS, key="id", folder=tmp_path)


def test_one_of_many_labels_is_found_by_typing(open_page, tmp_path):
    labels = [f"class {i}" for i in range(300)]
    write_label_page(tmp_path / "many.html", {"id": [1, 2], "text": ["x", "y"]}, labels, key="id")
    page = open_page(tmp_path / "many.html")
    page.keyboard.press("/")
    page.keyboard.type("class 217")
    page.keyboard.press("Enter")
    page.keyboard.press("u")  # a key again, no text
    assert downloaded(page, tmp_path).read_text().splitlines()[1:] == ["1,class 217,", "2,,unsure"]


def test_no_row_is_left_to_review(open_page, tmp_path):
    write_label_page(tmp_path / "p.html", {"id": [], "text": []}, LABELS, key="id", proposed=[])
    page = open_page(tmp_path / "p.html")
    expect(page.locator("#count")).to_have_text("0 of 0 rows")
    assert not page.locator("#labels").is_visible()
    assert page.problems == []


def test_keys_can_be_switched_off(open_page, verify):
    page = open_page(verify)
    page.locator("#keys").uncheck()
    page.keyboard.press("2")
    expect(page.locator("#count")).to_have_text("0 of 6 rows")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("which", ["verify", "review"])
def test_there_is_no_serious_barrier(open_page, request, which, scheme):
    page = open_page(request.getfixturevalue(which), color_scheme=scheme)
    page.keyboard.press("1")
    page.keyboard.press("ArrowLeft")
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    grave = [each for each in found if each["impact"] in {"serious", "critical"}]
    assert [(each["id"], [node["html"][:120] for node in each["nodes"][:3]]) for each in grave] == []


@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_the_screen_with_the_labels_in_sight(open_page, tmp_path, width):
    first = (
        "The council voted on Tuesday to close three of its branch libraries. Staff say that opening hours "
        "were cut first, and visitors then stayed away.\n\nA second reading follows in March. Friends of the "
        "library collect signatures until then."
    )
    rows = {
        "id": ["t-0459", "t-0206", "t-0816", "t-0031"],
        "text": [first, TEXT, TEXT, TEXT],
        "paper": ["The Herald", "The Post", "The Post", "The Herald"],
        "day": ["2 March", "3 March", "9 March", "9 March"],
    }
    write_label_page(tmp_path / "verify.html", rows, ["culture", "money", "politics", "sport"], key="id")
    page = open_page(tmp_path / "verify.html", color_scheme="light", viewport={"width": width, "height": 700})
    page.keyboard.press("ArrowRight")
    page.keyboard.press("2")
    page.keyboard.press("u")
    page.keyboard.press("n")
    page.evaluate("scrollTo(0, 0)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for part in (*page.locator(".labels button").all(), page.locator("#unsure"), page.locator("#download")):
        expect(part).to_be_in_viewport(ratio=1)
    page.screenshot(path=Path(os.environ.get("SETWISE_SCREENSHOTS", tmp_path)) / f"verify-page-{width}.png")
