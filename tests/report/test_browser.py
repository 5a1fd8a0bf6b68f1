"""The report in a real browser: it opens by itself, follows the slider, filters, and keeps hostile names inert.

``SETWISE_SCREENSHOTS=docs`` keeps the screenshots there.
"""

import os
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

import setwise
from tests.report.conftest import HOSTILE, HOSTILE_CLASSES, PATIENCE

expect.set_options(timeout=PATIENCE)


def _drawn(page):
    """Waits until what was asked for is on the screen: two frames of it."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def _steps_to(page, level):
    """Arrow keys from where the slider stands to a level of the grid."""
    levels = page.evaluate(
        "JSON.parse(document.getElementById('data').textContent).facts.map((fact) => fact.level)"
    )
    return levels.index(level) - int(page.locator("#level").input_value())


def test_it_opens_without_errors_and_without_a_network(open_page, digits_report):
    page = open_page(digits_report)
    _drawn(page)
    assert page.problems == []
    assert page.locator("h1").inner_text().startswith("Blurred digits")
    assert page.locator("canvas").count() == 5
    blank = page.evaluate(
        """() => [...document.querySelectorAll('canvas')].filter((canvas) => {
            const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            return !pixels.some((value) => value);
        }).map((canvas) => canvas.id)"""
    )
    assert blank == []


def test_the_slider_moved_by_keyboard_shows_what_the_library_computes(open_page, digits_report, digits):
    page = open_page(digits_report)
    slider = page.locator("#level")
    slider.focus()
    steps = _steps_to(page, 0.95)
    for _ in range(abs(steps)):
        page.keyboard.press("ArrowRight" if steps > 0 else "ArrowLeft")
    assert slider.get_attribute("aria-valuetext") == "0.95"
    sets = digits["calibration"].predict_set(digits["P"], 0.95)
    result = setwise.evaluate(sets, digits["y"])
    low, high = result["coverage_interval"]
    assert page.locator("#mean-size").inner_text() == f"{result['mean_size']:.2f}"
    said = page.locator("[data-fact=headline]").inner_text()
    assert f"{result['coverage']:.1%} (95% interval: {low:.1%} to {high:.1%})" in said
    assert not page.locator("details.guarantee").first.is_visible()  # which is about the level that was chosen
    counts = [int(text.replace(",", "")) for text in page.locator("#sizes td").all_text_contents()]
    assert counts == [int((sets.sizes == size).sum()) for size in range(11)]
    expect(page.locator("#spoken")).to_contain_text("Confidence 0.95")
    assert page.problems == []


def test_examples_and_parts_follow_the_slider(open_page, digits_report, digits):
    page = open_page(digits_report)
    page.locator("#level").focus()
    page.keyboard.press("Home")
    sets = digits["calibration"].predict_set(digits["P"], 0.5)
    for row in page.locator("#rows > tr").all()[:10]:
        number = int(row.locator(".rowname").inner_text().removeprefix("row "))
        shown = row.locator("li[data-e]:visible").evaluate_all(
            "(chips) => chips.map((c) => c.firstChild.data.trim())"
        )
        assert sorted(shown) == sorted(str(label) for label in sets[number])
    by_class = setwise.evaluate(sets, digits["y"])["by_class"]
    for line in page.locator("table[data-parts=class] tbody tr").all():
        cells = line.locator("th, td").all_text_contents()
        expected = by_class[int(cells[0])]
        assert cells[2] == f"{expected['coverage']:.1%}"
        assert cells[4] == f"{expected['mean_size']:.2f}"
    assert page.locator("#afterwards").is_visible()
    page.locator("#reset").click()
    assert page.locator("#level").get_attribute("aria-valuetext") == "0.90"
    assert page.locator("#afterwards").is_hidden()


@pytest.mark.parametrize("wanted", ["largest", "empty", "missed"])
def test_filters_show_what_they_name(open_page, digits_report, wanted):
    page = open_page(digits_report)
    page.locator("#level").focus()
    page.keyboard.press("Home")  # at a low level there are sets of every kind
    page.locator(f"input[value={wanted}]").check(force=True)
    shown = page.locator("#rows > tr:visible")
    sizes = [int(text) for text in shown.locator(".size").all_text_contents()]
    everyone = [int(text) for text in page.locator("#rows .size").all_text_contents()]
    assert 0 < len(sizes) < len(everyone)
    if wanted == "largest":
        assert max(sizes) == max(everyone)
        assert min(sizes) >= sorted(everyone)[-len(sizes)]
    elif wanted == "empty":
        assert set(sizes) == {0}
    else:
        assert set(shown.locator(".outcome").all_text_contents()) == {"missed"}
    assert page.locator("#shown").inner_text() == f"{len(sizes)} of {len(everyone)} examples"


def test_hostile_names_are_shown_and_not_run(open_page, hostile_report):
    page = open_page(hostile_report)
    page.locator("#level").focus()
    page.keyboard.press("End")
    _drawn(page)
    assert page.problems == []
    assert page.locator("h1").inner_text() == HOSTILE
    shown = page.locator("table[data-parts=class] tbody th").all_text_contents()
    assert set(shown) == set(HOSTILE_CLASSES)
    assert set(page.locator(".sortable tbody th").all_text_contents()) == set(HOSTILE_CLASSES)
    assert page.locator(".confusions tbody th").all_text_contents() == HOSTILE_CLASSES
    assert page.locator("script").count() == 3  # the data, the charts, the page's own
    assert page.locator("img").count() == 0


def test_the_table_of_annotators_sorts_by_any_column(open_page, hostile_report):
    page = open_page(hostile_report)
    agrees = page.locator(".sortable thead th", has_text="Agrees")
    for turn, sign in (("ascending", 1), ("descending", -1)):
        agrees.locator("button").click()
        assert agrees.get_attribute("aria-sort") == turn
        shown = page.locator(".sortable tbody td:nth-child(3)").all_text_contents()
        values = [sign * float(text.rstrip("%")) for text in shown]
        assert values == sorted(values)
    page.locator(".sortable thead button").first.click()
    names = page.locator(".sortable tbody th").all_text_contents()
    assert names == page.evaluate("(all) => all.sort((a, b) => a.localeCompare(b, 'en', {numeric: true}))", names)
    assert page.locator(".sortable [aria-sort]").count() == 1
    assert page.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("which", ["digits_report", "hostile_report"])
def test_there_is_no_serious_barrier(open_page, request, which, scheme):
    page = open_page(request.getfixturevalue(which), color_scheme=scheme)
    page.locator("details").evaluate_all("(all) => all.forEach((each) => { each.open = true; })")
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    grave = [each for each in found if each["impact"] in {"serious", "critical"}]
    assert [(each["id"], [node["html"][:120] for node in each["nodes"][:3]]) for each in grave] == []


@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_the_screen(open_page, digits_report, tmp_path, width):
    size = {"width": width, "height": 1500 if width == 1280 else 1700}
    page = open_page(digits_report, color_scheme="light", viewport=size)
    _drawn(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    kept = Path(os.environ.get("SETWISE_SCREENSHOTS", tmp_path)) / f"report-{width}.png"
    page.screenshot(path=kept)
    assert kept.stat().st_size > 50_000


def test_it_prints_on_light_paper_even_in_the_dark(open_page, digits_report):
    page = open_page(digits_report, color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator(".bar").is_visible()
    assert len(page.pdf()) > 20_000
