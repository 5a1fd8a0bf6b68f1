"""The benchmark on ambiguous labels: a data set and a method can be added, and stand beside the others."""

from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def ambiguous(monkeypatch):
    pytest.importorskip("pandas")
    folder = ROOT / "benchmarks"
    if not (folder / "ambiguous").exists():
        pytest.skip("benchmarks is not part of this copy")
    monkeypatch.syspath_prepend(str(folder))
    from ambiguous import data_sets, page, registry, runner

    registry.methods("sets")  # reads the files of methods, so that what a test adds is taken back alone
    monkeypatch.setattr(registry, "METHODS", [*registry.METHODS])
    monkeypatch.setattr(data_sets, "CARDS", dict(data_sets.CARDS))
    return type("Ambiguous", (), {"data_sets": data_sets, "page": page, "registry": registry, "runner": runner})


def photos(data_sets):
    """A card of a few rows with candidates, as its guide says."""
    facts = {name: name for name in ("what", "source", "licence", "get", "truth")}

    @data_sets.card("toy", **facts)
    def toy(_folder):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 3, 300)
        P = 0.8 * np.eye(3)[y] + 0.2 / 3
        return data_sets.DataSet(
            y, [*range(3)], P, candidates=data_sets.LabelSets.from_mask(P + rng.random(P.shape) > 0.6)
        )


def lines(ambiguous, draws=3):
    data = ambiguous.data_sets.load("toy", ROOT)
    return list(
        ambiguous.runner.lines(ambiguous.runner.question("sets"), "toy", data, draws, ("setwise", "a rival"))
    )


def test_a_data_set_that_is_added_is_measured_with_every_method_that_applies(ambiguous):
    photos(ambiguous.data_sets)
    found = lines(ambiguous)
    assert {line["setting"] for line in found} == {"0 verified", "50 verified"}
    assert all(line["data"] == "toy" and line["draws"] == 3 for line in found)


def test_a_method_that_is_added_stands_beside_setwise_where_it_guarantees_the_same(ambiguous, monkeypatch):
    photos(ambiguous.data_sets)
    monkeypatch.setattr(ambiguous.registry.Method, "version", "1.0")

    @ambiguous.registry.answers(
        "sets", "every label", guarantee=ambiguous.registry.ANY_DATA, needs=["verified"], package="a rival"
    )
    def every(task):
        return np.ones(task.new.shape, dtype=bool)

    import pandas as pd

    table = pd.DataFrame(lines(ambiguous)).reindex(columns=ambiguous.runner.COLUMNS)
    (cell,) = ambiguous.page.compared(table).to_dict("records")
    assert cell["rival_method"] == "every label (with a rival)"
    assert cell["rival"]["gain"] == 3
    assert cell["own"]["gain"] < 3


def test_a_method_that_fails_says_so_in_its_line(ambiguous, monkeypatch):
    photos(ambiguous.data_sets)
    monkeypatch.setattr(ambiguous.registry.Method, "version", "1.0")

    @ambiguous.registry.answers("sets", "breaks", package="a rival")
    def breaks(task):
        raise ValueError("no such thing")

    (line,) = {line["note"] for line in lines(ambiguous) if line["method"] == "breaks"}
    assert line.endswith("ValueError: no such thing")


def test_an_absent_data_set_is_said_and_skipped(ambiguous, tmp_path, capsys):
    assert ambiguous.data_sets.load("stance", tmp_path) is None
    assert "ABSENT: stance" in capsys.readouterr().out


def test_a_cell_that_a_rival_wins_is_listed_until_it_has_a_reason(ambiguous):
    import pandas as pd

    page = ambiguous.page
    facts = {"question": "sets", "data": "toy", "setting": "50 verified", "guarantee": ambiguous.registry.ANY_DATA}
    sides = (("setwise", "auto", 2.0), ("a rival", "sharp", 1.5))
    table = pd.DataFrame(
        [
            facts | {"package": package, "method": method, "gain": gain, "kept": "yes", "measured": 0.9}
            for package, method, gain in sides
        ]
    )
    (cell,) = page.lost(page.compared(table)).to_dict("records")
    assert round(cell["ratio"], 2) == 1.33
    assert page.reason_of(cell, [{"data": "another", "reason": "it is easy"}]) is None
    assert page.reason_of(cell, [{"question": "sets", "data": "toy", "reason": "ties"}]) == "ties"


def test_lines_that_were_measured_elsewhere_stay_when_others_are_merged(ambiguous, tmp_path):
    import pandas as pd
    from ambiguous.__main__ import keep

    key = {"question": "sets", "data": "toy", "setting": "0 verified", "package": "a rival"}
    keep(
        pd.DataFrame([key | {"method": "a", "gain": 1.0}, key | {"method": "b", "gain": 2.0}]),
        tmp_path / "kept.csv",
    )
    keep(
        pd.DataFrame([key | {"method": "a", "gain": 3.0}, key | {"method": "b", "note": "not installed here"}]),
        tmp_path / "kept.csv",
    )
    assert pd.read_csv(tmp_path / "kept.csv")["gain"].tolist() == [3.0, 2.0]


def test_the_page_is_what_the_results_say(ambiguous):
    page = ambiguous.page
    text = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")
    assert text == page.text(page.read()), "PYTHONPATH=benchmarks python -m ambiguous.page writes docs/benchmark.md"


def test_every_cell_that_a_rival_wins_has_a_reason_and_every_reason_a_cell(ambiguous):
    page = ambiguous.page
    known = page.reasons()
    given = {page.reason_of(cell, known) for cell in page.lost(page.compared(page.read())).to_dict("records")}
    assert given == {one["reason"] for one in known}


def test_the_full_run_measured_every_data_set_and_kept_every_guarantee_of_setwise_whose_premise_holds(ambiguous):
    table = ambiguous.page.read()
    for question in ambiguous.runner.QUESTIONS:
        asked = ambiguous.runner.question(question)
        assert set(table[table["question"].eq(question)]["data"]) == set(asked.DATA)
    registry = ambiguous.registry
    premised = table["guarantee"].isin([registry.INDEPENDENT, registry.NONE])  # of annotators who do err together
    own = table[table["package"].eq("setwise") & ~premised]
    assert set(own["kept"]) == {"yes"}
    assert table["package"].nunique() >= 9
    assert not table["note"].eq("not installed here").any()
