"""Formats have versions: what 0.2.0 wrote is read, or refused with versions and a remedy."""

import re
from pathlib import Path

import pytest

import setwise
from setwise.calibration.calibration_file import VERSION as CALIBRATION
from setwise.drift.monitor import VERSION as MONITOR
from setwise.estimators.model_directory import VERSION as MODEL
from setwise.storage.container import check_version

OLD = Path(__file__).parent / "written_by_0_2"
REFUSED = "written by setwise 0.2.0; this is setwise {}, which reads format {}: {}, or install setwise 0.2.0."


def test_a_calibration_of_0_2_answers_as_it_did_there():
    calibration = setwise.load(OLD / "calibration.cal")
    rows = [[0.129, 0.106, 0.765], [0.072, 0.9, 0.028]]
    assert calibration.predict_set(rows).to_lists() == [["ant", "owl", "wren"], ["ant", "owl"]]
    assert calibration.predict_set(rows, 0.7).to_lists() == [["wren"], ["owl"]]
    assert (31 * calibration.predict_p(rows)).round(9).tolist() == [[9, 9, 19], [5, 26, 2]]
    assert calibration.threshold(0.8) == 0.9249999970197678


def test_a_model_of_0_2_is_refused_with_both_versions_and_a_remedy():
    told = REFUSED.format(setwise.__version__, MODEL, "fit the model again")
    with pytest.raises(ValueError, match=re.escape(f"model: format 2, {told}")):
        setwise.load(OLD / "model")
    (kept,) = (OLD / "model").glob("calibration-*.npz")
    assert len(setwise.load(kept).classes) == 3


def test_a_monitor_of_0_2_is_refused_with_both_versions_and_a_remedy():
    told = f"written by another setwise; this is setwise {setwise.__version__}, which reads format {MONITOR}"
    with pytest.raises(ValueError, match=re.escape(f"monitor.state: format 2, {told}: start a new monitor.")):
        setwise.load(OLD / "calibration.cal").monitor(resume=OLD / "monitor.state")


@pytest.mark.parametrize("writer", ["0.9.0; run this", "\x1b[31m1", None, ["1"], "1" * 99])
def test_what_a_file_says_of_its_writer_is_repeated_as_a_number_alone(writer):
    with pytest.raises(
        ValueError, match=r"format 9, written by another setwise; .* reads format 1: update setwise"
    ):
        check_version({"version": 9, "setwise": writer}, 1, "f")


def test_the_page_on_stability_has_the_versions_of_the_formats():
    page = Path(__file__).parents[2].joinpath("docs/stability.md").read_text("utf-8")
    stated = dict(re.findall(r"^\| ([a-z ]+) \| (\d+) \|", page, re.MULTILINE))
    formats = {"calibration file": CALIBRATION, "model directory": MODEL, "state of a monitor": MONITOR}
    assert {name: int(number) for name, number in stated.items()} == formats


@pytest.mark.parametrize(("page", "version"), [("calibration-file", CALIBRATION), ("model-directory", MODEL)])
def test_pages_on_formats_have_their_versions(page, version):
    text = Path(__file__).parents[2].joinpath(f"docs/{page}.md").read_text("utf-8")
    assert (
        f'"version": {version}, "setwise": "{setwise.__version__}"' in text
        or f'"setwise-model"`, {version},' in text
    )
