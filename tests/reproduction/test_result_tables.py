"""The paper's tables beside ours: layout, differences, and what is said where there is nothing."""

import json

import pyarrow.parquet as pq
import pytest
from reproduction import result_plots
from reproduction.cells import Cell, cells_of
from reproduction.record import Record, flat_rows, write_outputs
from reproduction.result_tables import latex, markdown
from reproduction.summary import ROUNDING, Entry, Value, distance, published

from .conftest import result

STRATEGIES = ["max", "all", "mean", "min", "mu=0.3", "mu=0.5", "mu=0.7"]


def places(table):
    """The lines of a Markdown table as lists of places."""
    return [[place.strip() for place in line.strip("|").split("|")] for line in table.splitlines()]


@pytest.mark.parametrize("table", [2, 3, 4, 5])
def test_the_layout_is_the_papers_with_the_oracle_below(table, faithful):
    head, _, *lines = places(markdown(table, faithful.entries(table)))
    paper = (
        ["FashionMNIST", "KMNIST", "MNIST"]
        if table != 5
        else ["BirdSong", "Lost", "MSRCv2", "Soccer Player", "Yahoo!News"]
    )
    assert head[2 : 2 + len(paper)] == paper
    assert [line[1] for line in lines] == ["Train acc.", "Test acc.", *(8 * ["Efficiency", "Coverage"])]
    assert [line[0] for line in lines if line[0]] == [*STRATEGIES, "oracle"]


def test_table_1_and_6_have_the_papers_lines(faithful):
    head, _, classes, *lines = places(markdown(1, faithful.entries(1)))
    assert classes[:5] == ["", "Num. of classes", "10", "10", "10"]
    assert head[2:10] == [
        "FashionMNIST",
        "KMNIST",
        "MNIST",
        "BirdSong",
        "Lost",
        "MSRCv2",
        "Soccer Player",
        "Yahoo!News",
    ]
    assert [line[1] for line in lines] == [
        "Original",
        "Instance-dependent contamination",
        "Random contamination (p=0.1)",
        "Random contamination (p=0.7)",
    ]
    _, _, *lines = places(markdown(6, faithful.entries(6)))
    assert [line[1] for line in lines] == ["Train accuracy", "Test accuracy"]
    assert lines[1][3].startswith("78.35 ± 0.00 / 78.35")


def test_ours_and_the_papers_stand_side_by_side(faithful):
    lines = places(markdown(2, faithful.entries(2)))
    assert lines[4][2] == "10.00 ± 0.00 / 10.00 ± 0.00 (+0.0)"
    assert "9.17 ± 0.00 / 9.17 ± 0.05 (+0.0)" in lines[4]


def test_numbers_that_are_far_apart_are_bold():
    far = Entry(2, "mnist", "random_p0.1", "max", "efficiency", Value(9.3, 0.01, 5), Value(9.17, 0.05, 5))
    near = Entry(2, "kmnist", "random_p0.1", "max", "efficiency", Value(9.43, 0.01, 5), Value(9.42, 0.05, 5))
    text = markdown(2, [far, near])
    assert "**9.30 ± 0.01 / 9.17 ± 0.05 (+2.5)**" in text
    assert "**9.43" not in text


def test_the_yardstick_of_two_values_without_deviation_is_the_papers_rounding():
    assert distance(Value(9.21, 0.0), Value(9.20, 0.0)) == pytest.approx(0.01 / ROUNDING)
    assert abs(distance(Value(0.904, 0.0), Value(0.90, 0.0))) < 2  # printed as 0.90 by anybody


def test_deviations_of_both_count():
    assert distance(Value(1.0, 0.3), Value(1.5, 0.4)) == pytest.approx(-1.0, abs=1e-3)


def test_data_that_was_not_there_is_named_and_what_was_not_run_is_left_open(faithful):
    lines = places(markdown(5, faithful.entries(5), faithful.missing_data))
    soccer = lines[0].index("Soccer Player")
    assert {line[soccer] for line in lines[2:]} == {"data not present"}
    assert {line[soccer + 1] for line in lines[2:]} == {"–"}
    assert "data not present" in latex(5, faithful.entries(5), faithful.missing_data)


def test_latex_is_a_whole_table_with_three_columns_for_each_set(faithful):
    text = latex(2, faithful.entries(2))
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {line.count("&") + 2 * line.count(r"\multicolumn{3}") for line in body} == {10}
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 1
    assert text.count(r"\multirow{2}") == 8
    assert r"$\mathcal{E}_\text{max}$" in text
    assert r"$\mathcal{E}_{\mu=0.3}$" in text
    assert r"$10.00\pm0.00$ & $10.00\pm0.00$ & $+0.0$" in text


def test_a_quick_run_does_not_water_down_a_full_one():
    full, quick = (cells_of(2, range(1), quick=q)[0] for q in (False, True))
    record = Record((result(full, accuracy=90.0), result(quick, accuracy=50.0)))
    accuracy = [e.ours for e in record.entries(2) if e.quantity == "test_accuracy"]
    assert accuracy == [Value(90.0, 0.0, 1)]


def test_everything_is_in_one_json_and_one_parquet(faithful, tmp_path, monkeypatch):
    monkeypatch.setattr(result_plots, "can_plot", bool)
    write_outputs(faithful, tmp_path)
    assert len(json.loads((tmp_path / "results.json").read_text())) == len(faithful.results)
    table = pq.read_table(tmp_path / "results.parquet")
    assert table.num_rows == len(flat_rows(faithful.results))
    assert {"data", "strategy", "efficiency", "coverage", "bracket_lower", "rho", "float32_efficiency"} <= set(
        table.column_names
    )
    assert {path.name for path in (tmp_path / "tables").iterdir()} == {
        f"table-{n}.{suffix}" for n in range(1, 7) for suffix in ("md", "tex")
    }


def test_pictures_are_small_and_the_same_for_the_same_results(faithful, tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install 'setwise[report]'")
    one, two = (result_plots.draw(faithful.learned(5)[:2], "real", tmp_path / name) for name in ("one", "two"))
    assert [path.name for path in one] == [
        f"real-{k}.svg" for k in ("coverage-size", "sizes", "coverage-confidence", "mu")
    ]
    for first, second in zip(one, two, strict=True):
        assert first.read_bytes() == second.read_bytes()
        assert 1_000 < first.stat().st_size < 100_000


def test_the_papers_numbers_are_all_there():
    results = published()["results"]
    count = sum(len(v) for how in results.values() for s in how.values() for v in s.values())
    assert count == 16 * (3 + 3 + 3 + 5)
    assert results["random_p0.7"]["mu=0.5"]["coverage"]["kmnist"] == [0.83, 0.0]
    assert results["original"]["all"]["efficiency"]["yahoo_news"] == [48.07, 1.87]


def test_a_cell_that_only_describes_sets_is_a_line_without_strategy():
    (line,) = flat_rows([result(Cell("lost", "original", 0))])
    assert "strategy" not in line
    assert line["average_size"] == 2.3
