"""The monitor: alarms are rare at any time, come soon where rows change, and do not depend on batches or pauses."""

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
    plain = monitors._Gambler._rank

    def alone(self, code, x, noise):
        seen, kept = self.seen[code], []
        for value, u in zip(x, noise, strict=True):
            kept.append(plain(self, code, np.array([value]), np.array([u])))
            self.seen[code] = seen
        return np.concatenate(kept)

    monkeypatch.setattr(monitors._Gambler, "_rank", alone)
    assert not at_most(alarms(), 0.2, 60)


def test_p_values_are_uniform_with_ties(rng):
    P = simplex(rng, 3000, 2).round(1)
    P[:, 1] = 1 - P[:, 0]
    cal = calibrated(P[:50])
    gambler = monitors._Gambler(cal, cal.evidence.confidence)
    p = gambler._rank(0, P[50:].max(axis=1), rng.random(2950))
    for share in (0.1, 0.5, 0.9):
        assert abs((p < share).mean() - share) < 4.5 * np.sqrt(share * (1 - share) / 2950)


def test_a_fair_game_has_mean_one(rng):
    """Over all sequences of p-values on a fine grid, two rows long."""
    p = (np.arange(400) + 0.5) / 400
    cal = calibrated(simplex(rng, 9, 3))
    gambler = monitors._Gambler(cal, cal.evidence.confidence)
    first = np.exp(gambler._bet(p[:1]))[0]
    capital, invested = gambler.capital.copy(), gambler.invested.copy()
    second = []
    for value in p:
        gambler.capital, gambler.invested, gambler.played = capital.copy(), invested.copy(), 1
        second.append(np.exp(gambler._bet(np.array([value])))[0])
    assert np.mean(second) == pytest.approx(first, rel=1e-9)


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
        ({}, {"capital.0": arrays["capital.0"][1:]}),
    ):
        write_container(tmp_path / "b.npz", header | changed, arrays | broken)
        with pytest.raises(ValueError):
            cal.monitor(resume=tmp_path / "b.npz")
    del arrays["played.1"]
    write_container(tmp_path / "b.npz", header, arrays)
    with pytest.raises(ValueError, match="broken or missing part"):
        cal.monitor(resume=tmp_path / "b.npz")


def test_rows_are_ranked_within_their_category(rng):
    P = simplex(rng, 2000, 3)
    by = P.max(axis=1) > 0.7
    cal = calibrated(P[:400], by=by[:400])
    order = np.concatenate([np.flatnonzero(by[400:]), np.flatnonzero(~by[400:])]) + 400
    assert calibrated(P[:400]).monitor(random_state=0).update(P[order]).alarm
    assert not cal.monitor(random_state=0).update(P[order], by=by[order]).alarm
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
