"""Plots: what they draw is what the library computes, on axes of one's own."""

import subprocess
import sys
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest

import setwise
from setwise.ranks import clopper_pearson
from tests.conftest import candidates_from, labels_from, simplex

mpl.use("Agg")
from matplotlib import pyplot as plt


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture
def rows(rng):
    P = simplex(rng, 300, 4)
    y = labels_from(rng, P)
    return P, y, candidates_from(rng, y, 4)


def test_coverage_is_drawn_with_its_interval_beside_the_level(rows):
    P, y, S = rows
    calibration = setwise.conformalize(P[:150], S[:150])
    ax = setwise.plot_coverage(calibration, P[150:], y[150:], levels=[0.7, 0.8, 0.9])
    diagonal, line = ax.get_lines()
    assert np.array_equal(diagonal.get_xdata(), diagonal.get_ydata())
    expected = [setwise.evaluate(s, y[150:]) for s in calibration.predict_set(P[150:], [0.7, 0.8, 0.9])]
    assert line.get_ydata() == pytest.approx([each["coverage"] for each in expected])
    band = ax.collections[0].get_paths()[0].get_extents()
    assert band.ymin == pytest.approx(min(each["coverage_interval"][0] for each in expected))


def test_plots_share_axes(rows):
    P, y, S = rows
    ax = plt.figure().add_subplot()
    for strategy in ("max", "min"):
        calibration = setwise.conformalize(P[:150], S[:150], strategy)
        assert setwise.plot_coverage(calibration, P[150:], y[150:], ax=ax) is ax
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["level", "max", "min"]


def test_without_truth_the_bracket_is_drawn(rows):
    P, _, S = rows
    ax = setwise.plot_coverage(setwise.conformalize(P[:150], S[:150]), P[150:], levels=[0.8, 0.9])
    assert len(ax.collections) == 1
    by = np.where(np.arange(150) % 2, "odd", "even")
    ax = setwise.plot_coverage(setwise.conformalize(P[:150], S[:150], by=by), P[150:], levels=[0.8, 0.9])
    assert len(ax.collections) == 2


def test_too_few_rows_draw_full_coverage_without_a_warning(rows):
    P, y, _ = rows
    ax = setwise.plot_coverage(setwise.conformalize(P[:9], y[:9]), P[150:], y[150:], levels=[0.99])
    assert ax.get_lines()[1].get_ydata() == [1.0]


def test_sizes_are_shares_of_rows(rows):
    _, _, S = rows
    ax = setwise.plot_sizes(S, label="candidates")
    assert setwise.plot_sizes(setwise.LabelSets.from_mask(~S), label="others", ax=ax) is ax
    first, second = (patch.get_data().values for patch in ax.patches)
    assert first == pytest.approx(np.bincount(S.sum(axis=1)) / 300)
    assert second.sum() == pytest.approx(1)


def test_inclusion_is_that_of_the_diagnosis(rows):
    P, _, S = rows
    ax = setwise.plot_inclusion(P, S, ranks=3, label="votes")
    found = setwise.diagnose(P, S)
    assert ax.containers[0].lines[0].get_ydata() == pytest.approx(found.rate[:3])
    assert ax.get_lines()[-1].get_ydata() == pytest.approx(found.floor[:3])


def test_inclusion_shows_intervals_and_the_floor_of_what_is_assumed(rows):
    P, _, S = rows
    M = np.where(np.eye(4), 1.0, [[0.0, 0.1, 0.2, 0.3]] * 4)
    found = setwise.diagnose(P, S, M)
    ax = setwise.plot_inclusion(P, S, M)
    (bars,) = ax.containers[0].lines[2]
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    assert ends == pytest.approx(np.transpose([found.lower, found.upper]))
    assert ax.get_lines()[-1].get_ydata() == pytest.approx(found.floor)
    assert found.floor != setwise.diagnose(P, S).floor


def test_sets_show_labels_candidates_and_truth():
    sets = setwise.LabelSets.from_lists([["cat"], [], ["cat", "dog"]], classes=["cat", "dog", "owl"])
    ax = setwise.plot_sets(sets, ["cat", None, "owl"], candidates=sets.fill_empty(), rows=[2, 0])
    assert ax.images[0].get_array().tolist() == [[True, True, False], [True, False, False]]
    frames, dots = ax.collections
    assert frames.get_offsets().tolist() == [[0, 0], [1, 0], [0, 1]]
    assert dots.get_offsets().tolist() == [[2, 0], [0, 1]]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["2", "0"]


def test_coverage_by_class_has_the_lowest_on_top_with_its_interval(rows):
    P, y, S = rows
    sets = setwise.conformalize(P[:150], S[:150]).predict_set(P[150:], 0.6)
    expected = setwise.evaluate(sets, y[150:])["by_class"]
    ax = setwise.plot_coverage_by_class(sets, y[150:], confidence_level=0.6)
    points, _, (bars,) = ax.containers[0].lines
    names = [int(text.get_text()) for text in ax.get_yticklabels()]
    assert points.get_xdata().tolist() == [expected[name]["coverage"] for name in names]
    assert points.get_xdata().tolist() == sorted(points.get_xdata())
    assert ax.yaxis_inverted()
    for name, segment in zip(names, bars.get_segments(), strict=True):
        hits = round(expected[name]["coverage"] * expected[name]["n"])
        assert segment[:, 0] == pytest.approx(clopper_pearson(hits, expected[name]["n"], 0.05))
    assert ax.get_lines()[-1].get_xdata() == [0.6, 0.6]


def test_coverage_by_class_of_other_sets_finds_its_class(rows):
    P, y, S = rows
    calibration = setwise.conformalize(P[:150], S[:150])
    ax = setwise.plot_coverage_by_class(calibration.predict_set(P[150:], 0.5), y[150:], label="0.5")
    order = [text.get_text() for text in ax.get_yticklabels()]
    sets = calibration.predict_set(P[150:], 0.8)
    assert setwise.plot_coverage_by_class(sets, y[150:], label="0.8", ax=ax) is ax
    expected = setwise.evaluate(sets, y[150:])["by_class"]
    second = ax.containers[1].lines[0]
    found = dict(zip(second.get_ydata(orig=False).tolist(), second.get_xdata().tolist(), strict=True))
    assert [found[i] for i in range(4)] == [expected[int(name)]["coverage"] for name in order]
    assert ax.yaxis_inverted()


def test_coverage_by_class_draws_the_classes_that_are_named(rows):
    _, y, S = rows
    ax = setwise.plot_coverage_by_class(S, y, classes=[2, 0])
    assert [text.get_text() for text in ax.get_yticklabels()] == ["2", "0"]
    assert ax.get_ylabel() == "true class (2 of 4, lowest coverage first)"
    with pytest.raises(ValueError, match="classes: 9 is the true label of no row"):
        setwise.plot_coverage_by_class(S, y, classes=[9])
    with pytest.raises(ValueError, match="none to draw"):
        setwise.plot_coverage_by_class(S, y, classes=0)


def overlaps(ax, axis):
    """Whether names of ticks touch each other or leave the figure."""
    ax.figure.canvas.draw()
    whole = ax.figure.bbox
    low, high = sorted(axis.get_view_interval())
    ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
    boxes = [text.get_window_extent() for at, text in ticks if low <= at <= high]
    outside = [box for box in boxes if box.x0 < whole.x0 or box.y0 < whole.y0 or box.x1 > whole.x1]
    touching = [pair for pair in pairwise(boxes) if pair[0].overlaps(pair[1])]
    return bool(outside or touching)


@pytest.mark.parametrize("shared", [False, True], ids=["new axes", "small axes"])
def test_a_hundred_classes_are_legible(rng, shared):
    classes = [f"a rather long name of class {k}" for k in range(100)]
    P = rng.dirichlet(np.full(100, 0.1), size=600)
    y = np.array(classes)[labels_from(rng, P)]
    calibration = setwise.conformalize(P[:300], y[:300], classes=classes)
    sets = calibration.predict_set(P[300:], 0.8)

    def axes():
        return plt.subplots(figsize=(6, 4), layout="constrained")[1] if shared else None

    for ax in (
        setwise.plot_sets(sets, y[300:], candidates=sets.fill_empty(), ax=axes()),
        setwise.plot_sets(sets, y[300:], rows=200, ax=axes()),
        setwise.plot_coverage_by_class(sets, y[300:], classes=100, ax=axes()),
        setwise.plot_coverage_by_class(sets, y[300:], ax=axes()),
    ):
        assert not overlaps(ax, ax.xaxis)
        assert not overlaps(ax, ax.yaxis)


def test_of_many_classes_sets_show_those_that_occur():
    classes = [f"c{k:02d}" for k in range(40)]
    sets = setwise.LabelSets.from_lists([["c03", "c30"], [], ["c30"]], classes=classes)
    ax = setwise.plot_sets(sets, ["c39", None, "c03"], candidates=[["c39"], ["c05"], ["c30"]])
    assert [text.get_text() for text in ax.get_xticklabels()] == ["c03", "c05", "c30", "c39"]
    assert ax.images[0].get_array().tolist() == [
        [True, False, True, False],
        [False] * 4,
        [False, False, True, False],
    ]
    frames, dots = ax.collections
    assert frames.get_offsets().tolist() == [[3, 0], [1, 1], [2, 2]]
    assert dots.get_offsets().tolist() == [[3, 0], [0, 2]]
    assert ax.get_xlabel() == "label (4 of 40 occur)"


def test_nothing_to_draw_is_an_error():
    empty = setwise.LabelSets.from_lists([], classes=["a", "b"])
    with pytest.raises(ValueError, match="no rows"):
        setwise.plot_sizes(empty)
    with pytest.raises(ValueError, match="none to draw"):
        setwise.plot_sets(empty)


def test_without_matplotlib_the_error_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match="setwise\\[report\\]"):
        setwise.plot_sizes(np.eye(3, dtype=bool))


def test_matplotlib_is_loaded_when_something_is_drawn():
    code = "import setwise, sys; setwise.plot_sizes; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
