"""The monitor: alarms are rare at any time, come soon where rows change, and do not depend on batches or pauses."""

import copy
import itertools
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from setwise import ConformalClassifier, CrossConformalClassifier, Monitor, conformalize
from setwise.drift import monitor as monitors
from setwise.storage.container import read_container, write_container
from tests.changed_files import (
    rows,
)
from tests.conftest import simplex
from tests.statistical.sampling import at_most


def calibrated(P, **options):
    return conformalize(P, P.argmax(axis=1), **options)


def test_false_alarms_stay_below_delta_and_would_not_if_ranked_among_calibration_rows_alone(monkeypatch):
    def alarms(repetitions=60):
        rng, found = np.random.default_rng(0), 0
        for seed in range(repetitions):
            P = simplex(rng, 260, 3)
            found += calibrated(P[:20]).monitor(0.2, random_state=seed).update(P[20:]).alarm
        return found

    assert at_most(alarms(), 0.2, 60)
    plain = monitors._Seen.rank

    def alone(self, x, noise):
        each = [plain(self, x[i : i + 1], noise[i : i + 1])[1] for i in range(len(x))]
        return self, np.concatenate(each)

    monkeypatch.setattr(monitors._Seen, "rank", alone)
    assert not at_most(alarms(), 0.2, 60)


@pytest.mark.parametrize("digits", [1, 2, 17])
def test_p_values_are_uniform_and_would_not_be_without_noise(rng, digits):
    x = (1 - rng.random(4000) ** 3).round(digits)
    (cells, _) = monitors._cells(x, np.zeros(4000), None)
    seen = monitors._Seen.of(cells[:50])

    def deviation(noise):
        p = np.sort(ranks(seen, cells[50:], noise))
        return np.abs(p - (np.arange(3950) + 0.5) / 3950).max() * np.sqrt(3950)

    assert deviation(rng.random(3950)) < 1.95  # Kolmogorov's distance at 0.001
    assert digits == 17 or deviation(np.full(3950, 0.5)) > 1.95


def ranks(seen, cells, noise):
    found = []
    for start in range(0, len(cells), 100):
        seen, p = seen.rank(cells[start : start + 100], noise[start : start + 100])
        found.append(p)
    return np.concatenate(found)


def test_p_values_of_successive_rows_are_independent(rng):
    (cells, _) = monitors._cells(rng.random(6050), np.zeros(6050), None)
    p = ranks(monitors._Seen.of(cells[:50]), cells[50:], rng.random(6000))
    fifths = (5 * p).astype(int)
    pairs = np.bincount(5 * fifths[:-1:2] + fifths[1::2], minlength=25)
    assert ((pairs - 120) ** 2 / 120).sum() < 51.2  # chi-square with 24 degrees of freedom at 0.001


def test_a_fair_game_has_mean_one(rng):
    """Over all sequences of p-values on a fine grid, two rows long."""
    p = (np.arange(400) + 0.5) / 400
    game = monitors._Game.of(np.arange(9), np.zeros(9, dtype=int), 1)
    *numbers, won = game.bet(p[:1])
    after = monitors._Game(game.seen, *numbers)
    second = [np.exp(after.bet(np.array([value]))[-1][-1]) for value in p]
    assert np.mean(second) == pytest.approx(np.exp(won[-1]), rel=1e-9)
    assert after.bet(p[:0])[-1] == pytest.approx(won[-1:], rel=1e-12)


def test_a_cell_holds_what_agrees_in_eleven_binary_digits():
    x = np.concatenate([[0.0], 2.0 ** np.arange(-30, 31, 1 / 5000)])
    _, labels, cells = monitors._cells(np.linspace(0, 1, len(x)), np.arange(len(x)), x)
    assert (np.diff(cells) >= 0).all()
    assert (np.bincount(np.unique(cells)[1:] // 1024)[-59:-1] == 1024).all()
    assert len(np.unique(labels[:2048])) == 2048
    sure, _ = monitors._cells(1 - 2.0 ** -np.arange(1, 53), np.zeros(52), None)
    assert (np.diff(sure) > 1000).all()


def kept(watch):
    """How many numbers the monitor keeps of rows."""
    seen = [seen for game in watch._progress.games for seen in game.seen]
    return sum(len(each.cells) + len(each.below) + len(each.recent) for each in seen)


def test_what_a_row_touches_does_not_grow_with_the_rows_before_it(rng):
    P = simplex(rng, 30_000, 3)
    watch = calibrated(P[:100]).monitor(random_state=0)
    sizes = [kept(watch)]
    for start in range(0, 30_000, 1000):
        watch.update(P[start : start + 1000])
        sizes.append(kept(watch))
    odds = P.max(axis=1) / (1 - P.max(axis=1))
    cells = 1024 * (np.log2(odds.max() / odds.min()) + 2) + 3
    assert sizes[-1] <= 2 * cells + 2 * 256
    watch.update(P)
    assert kept(watch) <= sizes[-1] + 2 * 256
    assert all(len(seen.recent) < 256 for game in watch._progress.games for seen in game.seen)


def counted(watch, tmp_path):
    """How many rows stand in the ranks of each column, as the file says."""
    watch.save(tmp_path / "state.npz")
    _, arrays = read_container(tmp_path / "state.npz", monitors.FORMAT, monitors.VERSION)
    return [int(arrays[f"counts.{place}"].sum()) for place in range(2)]


def test_threads_lose_no_row(rng, tmp_path):
    P = simplex(rng, 8 * 400 + 100, 3)
    cal = calibrated(P[:100])
    watch, together = cal.monitor(random_state=0), threading.Barrier(8)

    def work(rows):
        together.wait()
        return [watch.update(rows[start : start + 5]) for start in range(0, len(rows), 5)]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            states = [state for found in pool.map(work, np.split(P[100:], 8)) for state in found]
    finally:
        sys.setswitchinterval(before)
    assert sorted(state.rows for state in states) == list(range(5, 3201, 5))
    assert counted(watch, tmp_path) == [3300, 3300]
    assert cal.monitor(resume=tmp_path / "state.npz").state == watch.state


@pytest.mark.parametrize("fault", [KeyboardInterrupt, MemoryError])
def test_an_update_that_is_interrupted_counts_none_of_its_rows(rng, tmp_path, monkeypatch, fault):
    P = simplex(rng, 1500, 3)
    cal = calibrated(P[:100])
    watch, whole = cal.monitor(random_state=0), cal.monitor(random_state=0)
    watch.update(P[100:200])
    whole.update(P[100:])
    before, plain, calls = watch.state, monitors._Game.bet, itertools.count()

    def interrupted(self, p):
        assert counted(watch, tmp_path) == [200, 200]  # whoever looks now sees no half of it
        assert watch.state == before
        if next(calls) == 5:
            raise fault
        return plain(self, p)

    with monkeypatch.context() as patch:
        patch.setattr(monitors._Game, "bet", interrupted)
        with pytest.raises(fault):
            watch.update(P[200:])
    assert watch.state == before
    assert watch.update(P[200:]) == whole.state


def test_copies_go_on_by_themselves(rng):
    P = simplex(rng, 600, 3)
    watch = calibrated(P[:100]).monitor(random_state=0)
    watch.update(P[100:300])
    copies = [copy.copy(watch), copy.deepcopy(watch), pickle.loads(pickle.dumps(watch))]  # noqa: S301
    assert len({each.update(P[300:]) for each in [*copies, watch]}) == 1


def test_changes_are_noticed_soon_also_late():
    rng = np.random.default_rng(1)
    P = simplex(rng, 3400, 4)
    sure = P**1.5 / (P**1.5).sum(axis=1, keepdims=True)
    cal = calibrated(P[:400])
    for late in (0, 2000):
        watch = cal.monitor(random_state=0)
        assert not watch.update(P[400 : 400 + late]).alarm
        state = watch.update(sure[2400:])
        assert late < state.first_row < late + 400
        assert state.differs == "largest probability"
        assert f"Alarm at row {state.first_row:,}" in str(state)
    moved = cal.monitor(random_state=0).update(P[400:][P[400:].argmax(axis=1) != 1])
    assert moved.alarm
    assert moved.differs == "predicted label"


def test_the_row_of_the_alarm_does_not_depend_on_batches():
    rng = np.random.default_rng(1)
    P = simplex(rng, 400, 4)
    sure = P**3 / (P**3).sum(axis=1, keepdims=True)
    cal = calibrated(P[:200])
    assert cal.monitor(random_state=0).state.p_value == 1
    at_once, singly = cal.monitor(random_state=0), cal.monitor(random_state=0)
    found = [singly.update(sure[row : row + 1]).first_row for row in range(200, 400)]
    assert at_once.update(sure[200:]).first_row == found[-1] == found.index(found[-1])


def test_batches_and_pauses_change_nothing(rng, tmp_path):
    P = simplex(rng, 1500, 4)
    cal, other = calibrated(P[:200]), calibrated(P[1:201])
    whole = cal.monitor(0.1, random_state=3)
    whole.update(P[200:])
    watch = cal.monitor(0.1, random_state=3)
    for start in range(200, 1500, 61):
        watch.update(P[start : start + 61])
        watch.save(tmp_path / "state.npz")
        watch = cal.monitor(resume=tmp_path / "state.npz")
    assert watch.state == whole.state
    assert watch.delta == 0.1
    assert cal.monitor(random_state=3).update(P[:0]).rows == 0
    with pytest.raises(ValueError, match="monitor of another calibration"):
        other.monitor(resume=tmp_path / "state.npz")


def test_a_broken_state_is_refused(rng, tmp_path):
    cal = calibrated(simplex(rng, 50, 3))
    watch = cal.monitor(random_state=0)
    watch.update(simplex(rng, 20, 3))
    watch.save(tmp_path / "s.npz")
    header, arrays = read_container(tmp_path / "s.npz", monitors.FORMAT, monitors.VERSION)
    for changed, broken in (
        ({"first_row": 99}, {}),
        ({"delta": 2}, {}),
        ({"seed": 2**63}, {}),
        ({"first_row": "3"}, {}),
        ({"rows": 20.5}, {}),
        ({"best": -1e308}, {}),
        ({"best": float("nan")}, {}),
        ({}, {"capital.0": arrays["capital.0"][1:]}),
        ({}, {"cells.0": arrays["cells.0"][::-1]}),
        ({}, {"counts.0": arrays["counts.0"] + 1}),
    ):
        write_container(tmp_path / "b.npz", header | changed, arrays | broken)
        with pytest.raises(ValueError):
            cal.monitor(resume=tmp_path / "b.npz")
    del arrays["played.1"]
    write_container(tmp_path / "b.npz", header, arrays)
    with pytest.raises(ValueError, match="broken or missing part"):
        cal.monitor(resume=tmp_path / "b.npz")


def test_the_state_of_another_version_is_refused_with_its_number_and_what_helps(rng, tmp_path):
    cal = calibrated(simplex(rng, 50, 3))
    for version, said in ((2, r"reads format 3: start a new monitor"), (4, "update setwise")):
        write_container(tmp_path / "s.npz", {"format": monitors.FORMAT, "version": version}, {})
        with pytest.raises(ValueError, match=said):
            cal.monitor(resume=tmp_path / "s.npz")


def test_rows_are_ranked_within_their_category(rng):
    P = simplex(rng, 2000, 3)
    by = P.max(axis=1) > 0.7
    cal = calibrated(P[:400], by=by[:400])
    order = np.concatenate([np.flatnonzero(by[400:]), np.flatnonzero(~by[400:])]) + 400
    assert calibrated(P[:400]).monitor(random_state=0).update(P[order]).alarm
    assert not cal.monitor(random_state=0).update(P[order], by=by[order]).alarm
    with pytest.warns(UserWarning, match="1,600 new rows, such as row 0, .* are not watched"):
        unknown = cal.monitor(random_state=0).update(P[order], by=np.full(len(order), 7))
    assert (unknown.rows, unknown.alarm) == (1600, False)


def test_models_watch_their_own_rows(rng):
    y = rng.integers(0, 3, 900)
    X = 2 * np.eye(3)[y] + rng.normal(size=(900, 3))
    for kind in (ConformalClassifier, CrossConformalClassifier):
        model = kind(GaussianNB(), random_state=0).fit(X[:300], y[:300])
        watch = model.monitor(random_state=0)
        assert not watch.update(X[300:600]).alarm
        assert watch.update(X[600:] + np.array([3, 0, 0])).alarm


def test_noise_in_the_features_is_noticed_though_the_model_stays_as_sure(rng, tmp_path):
    y = rng.integers(0, 3, 1500)
    X = np.hstack([2 * np.eye(3)[y], np.zeros((1500, 20))]) + rng.normal(size=(1500, 23))
    noisy = X[900:] + np.where(np.arange(23) < 3, 0, rng.normal(size=(600, 23)))
    model = ConformalClassifier(GaussianNB(), calibration_size=0.4, random_state=0).fit(X[:500], y[:500])
    watch = model.monitor(random_state=0)
    assert not watch.update(X[500:900]).alarm
    watch.save(tmp_path / "state.npz")
    state = model.monitor(resume=tmp_path / "state.npz").update(noisy)
    assert state.alarm
    assert state.first_row < 500
    assert state.differs == "distance of its features"
    with pytest.raises(ValueError, match="X: these features are not those of the calibration rows"):
        Monitor(model.calibration_, features=model.feature_summary_).update(model.predict_proba(noisy))


def test_what_cannot_be_ranked_is_refused(rng):
    P = simplex(rng, 60, 3)
    for options in ({"sample_weight": np.ones(60)}, {"groups": np.arange(60) // 2}):
        with pytest.raises(ValueError, match="monitor: not available for weighted or grouped rows"):
            calibrated(P, **options).monitor()
    with pytest.raises(ValueError, match="another floating type"):
        calibrated(P).monitor().update(P.astype(np.float32))
    with pytest.raises(ValueError, match="delta: 2 is not between 0 and 1"):
        calibrated(P).monitor(2)


def test_monitors_of_any_length_go_on(calibrations, tmp_path):
    watching = calibrations["categories"].monitor(random_state=0)
    for n in (0, 1, 2, 60):
        watching.update(rows()[0][:n], by=np.arange(n) % 2)
        watching.save(tmp_path / "x.monitor")
        assert calibrations["categories"].monitor(resume=tmp_path / "x.monitor").state == watching.state
