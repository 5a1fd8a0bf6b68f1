"""The page on a triage for whoever pays, in a browser."""

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

import setwise
from setwise.report.triage_page import write_triage_page
from tests.report.conftest import HOSTILE, HOSTILE_CLASSES


@pytest.fixture(scope="module")
def decide():
    """A triage of a thousand rows that people label with hostile names, 150 of them verified."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 1000)
    said = np.where(rng.random((1000, 3)) < 0.6, y[:, None], rng.integers(0, 5, (1000, 3)))
    names = np.array(HOSTILE_CLASSES, dtype=object)
    votes, verified = setwise.Votes.from_matrix(names[said], classes=HOSTILE_CLASSES), np.full(1000, None)
    drawn = rng.permutation(1000)[:150]
    verified[drawn] = names[y[drawn]]
    return lambda **options: setwise.triage(votes, verified, random_state=0, **options)


def written(path, found):
    """The page, with the rows to review."""
    place = {row: position for position, row in enumerate(found.rows)}
    at = [place[row] for row in found.review]
    columns = {"id": found.review, HOSTILE: ["text " * 100] * len(at)}
    write_triage_page(path, found, columns, found.labels[at].tolist(), found.confidence[at].tolist())
    return path


def test_three_sentences_say_what_is_accepted_guaranteed_and_saved(open_page, decide, tmp_path):
    found = decide()
    taken = int(found.accepted.sum())
    page = open_page(written(tmp_path / "p.html", found))
    first, second, third = page.locator(".sentence li").all_text_contents()
    assert first == f"{taken:,} labels are accepted, {850 - taken:,} rows go to review, and 150 were verified."
    assert (
        second.casefold() == dict(found.guarantee.lines)["Guaranteed"].split(". ")[0].rstrip(".").casefold() + "."
    )
    assert third.startswith(f"Nobody has to look at {taken:,} of the 850 other rows")
    assert page.problems == []


def test_the_curve_is_that_of_the_triage(open_page, decide, tmp_path):
    found = decide()
    page = open_page(written(tmp_path / "p.html", found))
    rows = page.locator(".narrow tbody tr").all()
    told = [int(row.locator("td").nth(1).inner_text().replace(",", "")) for row in rows]
    assert told == found.curve.accepted.tolist()
    x = page.locator(".point").evaluate_all("(points) => points.map((point) => Number(point.getAttribute('cx')))")
    assert np.allclose((np.array(x) - 52) / 350, found.curve.unseen, atol=1e-3)
    assert page.locator(".ring").count() == 1


def test_where_nothing_is_accepted_the_page_says_why(open_page, decide, tmp_path):
    found = decide(max_error=0.01)
    page = open_page(written(tmp_path / "p.html", found))
    assert "Nothing is accepted" in page.locator(".sentence li").nth(1).inner_text()
    assert page.locator(".ring").count() == 0


def test_categories_have_a_guarantee_each(open_page, decide, tmp_path):
    page = open_page(written(tmp_path / "p.html", decide(by="predicted")))
    names = page.locator("h3").all_text_contents()
    assert sorted(names) == sorted(f"Category {name}" for name in HOSTILE_CLASSES)
    assert page.locator(".lines").count() == 5
    assert page.locator("svg").count() == 0
    assert page.problems == []


def test_rows_to_look_at_first_stand_in_order_and_names_are_inert(open_page, decide, tmp_path):
    found = decide()
    page = open_page(written(tmp_path / "p.html", found))
    assert page.locator(".first tbody td:first-child").all_text_contents() == [*map(str, found.review[:20])]
    assert page.locator(".first th").nth(1).inner_text() == HOSTILE
    assert page.locator("script, .first img").count() == 0
    assert page.problems == []


@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_the_screen_without_a_serious_barrier(open_page, decide, tmp_path, width):
    page = open_page(written(tmp_path / "p.html", decide()), viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    assert [each["id"] for each in found if each["impact"] in {"serious", "critical"}] == []
