"""Are new rows like the calibration rows: false alarms are rare, differences are named, and promises are void."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from setwise import Calibration, ConformalClassifier, CrossConformalClassifier, MisuseWarning, Votes, conformalize
from setwise.drift import comparison
from setwise.drift.comparison import LEVEL, Comparison, RowTally
from setwise.drift.feature_summary import FeatureSummary, FeatureTally, Reference
from setwise.findings import Finding
from tests.conftest import candidates_from, labels_from, printed, simplex
from tests.statistical.sampling import at_most


def sharpened(p, power=2.0):
    return p**power / (p**power).sum(axis=1, keepdims=True)


@pytest.fixture
def calibrated():
    rng = np.random.default_rng(1)
    P = simplex(rng, 900, 4)
    return conformalize(P[:400], labels_from(rng, P[:400])), P[400:]


def test_rows_of_one_source_are_rarely_called_different_also_when_few_and_tied():
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(800):
        P = simplex(rng, 40, 3).round(1)
        P /= P.sum(axis=1, keepdims=True)
        found += conformalize(P[:15], P[:15].argmax(axis=1)).compare(P[15:]).refuted
    assert at_most(found, LEVEL, 800)


def test_many_features_raise_no_more_false_alarms_and_would_without_the_correction(monkeypatch):
    def false_alarms(repetitions=50):
        rng, found = np.random.default_rng(1), 0
        for _ in range(repetitions):
            P, X = simplex(rng, 150, 3), rng.normal(size=(150, 25)).round(1)
            X[rng.random(X.shape) < 0.1] = np.nan
            rows = RowTally(conformalize(P[:70], P[:70].argmax(axis=1)), FeatureSummary.of(X[:70]))
            rows.add(P[70:], X=X[70:])
            found += rows.compare().refuted
        return found

    assert at_most(false_alarms(), LEVEL, 50)
    monkeypatch.setattr(comparison, "bonferroni", lambda p_values, tests: p_values)
    assert not at_most(false_alarms(), LEVEL, 50)


def test_what_differs_is_named(calibrated):
    cal, P = calibrated
    sure = cal.compare(sharpened(P))
    assert sure.refuted
    assert sure.p_value < 1e-6
    assert "the largest probability of a row is 0." in sure.findings[0].sentence
    assert "differ from the 400 calibration rows" in printed(sure)
    moved = cal.compare(P[P.argmax(axis=1) != 2])
    assert moved.findings[0].sentence.startswith("2 is predicted for 0.0% of the new rows and ")
    same = cal.compare(P)
    assert not same.refuted
    assert same.findings == ()
    assert "A small difference may go unnoticed" in printed(same)
    for each in (same, sure):
        assert "at most 1 of 100 batches from the same source is called different" in printed(each)
    assert sure.to_dict()["refuted"]


def test_batches_count_as_the_whole(calibrated):
    cal, P = calibrated
    rows = RowTally(cal)
    for start in range(0, len(P), 37):
        rows.add(sharpened(P[start : start + 37], 1.1))
    whole = cal.compare(sharpened(P, 1.1))
    assert rows.compare().to_dict() == whole.to_dict()


def test_what_was_counted_elsewhere_counts_as_the_whole(calibrated, rng):
    cal, P = calibrated
    X = rng.normal(size=(900, 3))
    summary = FeatureSummary.of(X[:400])
    whole, here, there = (RowTally(cal, summary) for _ in range(3))
    whole.add(sharpened(P, 1.1), X=X[400:] + 1)
    here.add(sharpened(P[:200], 1.1), X=X[400:600] + 1)
    there.add(sharpened(P[200:], 1.1), X=X[600:] + 1)
    here.include(there.export())
    assert here.compare().to_dict() == whole.compare().to_dict()
    assert any("feature" in finding.sentence for finding in whole.compare().findings)


def test_of_a_long_stream_every_eighth_row_counts(calibrated):
    cal, P = calibrated
    late = 2**17
    taken = RowTally(cal).add(P, first_row=late).compare()
    assert f"The {len(P):,} new rows " in taken.sentence
    assert f"; {taken.m:,} of them were compared)." in taken.sentence
    assert replace(taken, left_out=0).to_dict() == cal.compare(P[::8]).to_dict()
    assert Comparison.from_dict(taken.to_dict()).to_dict() == taken.to_dict()
    parts = RowTally(cal).add(P[:300], first_row=late)
    parts.include(RowTally(cal).add(P[300:], first_row=late + 300).export())
    assert parts.compare().headline == taken.headline
    earlier = {name: value for name, value in cal.compare(P).to_dict().items() if name != "left_out"}
    assert Comparison.from_dict(earlier).to_dict() == cal.compare(P).to_dict()
    assert RowTally(cal).add(P, first_row=0).compare().to_dict() == cal.compare(P).to_dict()
    candidates = np.ones((500, 4), bool)
    assert RowTally(cal).add(P, candidates=candidates, first_row=late).compare().m == 500


def test_where_it_is_refuted_nothing_is_promised(calibrated):
    cal, P = calibrated
    assert cal.compare(P).guarantee(0.9).promised == cal.guarantee(0.9).promised == 0.9
    left = cal.compare(sharpened(P)).guarantee(0.9)
    assert left.promised is None
    assert "new rows come from the same source (the largest probability" in printed(left)
    told = cal.withdraw(Finding(None, "in everything"))
    with pytest.raises(ValueError, match="bracket: not available for rows that differ from these: in everything"):
        told.bracket(0.9)
    np.testing.assert_array_equal(told.predict_p(P), cal.predict_p(P))


@pytest.mark.parametrize(
    "given",
    [
        {"strategy": "min"},
        {"strategy": "mean"},
        {"strategy": "all"},
        {"strategy": "corrected", "assume": "uniform"},
        {"verified": True},
        {"votes": True},
        {"by": "predicted"},
        {"groups": True},
    ],
    ids=str,
)
def test_every_claim_of_every_strategy_rests_on_it(rng, given):
    P = simplex(rng, 300, 4)
    y = labels_from(rng, P)
    S = candidates_from(rng, y, 4)
    options = dict(given)
    if options.pop("verified", False):
        options["verified"] = [int(label) if i < 150 else None for i, label in enumerate(y)]
    if options.pop("groups", False):
        options["groups"] = np.arange(300) // 3
    answers = Votes.from_lists([np.flatnonzero(row).tolist() for row in S]) if options.pop("votes", False) else S
    told = conformalize(P, answers, **options).withdraw(Finding(None, "in everything"))
    for part in told.guarantee(0.9).parts:
        assert part.promised is None
        for claim in part.claims:
            assert {premise.name for premise in claim.refuted} & {"same_source", "same_groups"}


@pytest.mark.parametrize(("name", "broken"), [("p_value", -0.1), ("p_value", "0.5"), ("refuted", "no")])
def test_what_is_no_comparison_is_refused(calibrated, name, broken):
    cal, P = calibrated
    plain = cal.compare(P).to_dict()
    assert Comparison.from_dict(plain).to_dict() == plain
    with pytest.raises((ValueError, TypeError)):
        Comparison.from_dict(plain | {name: broken})


def test_it_travels_with_the_file(calibrated, tmp_path):
    cal, P = calibrated
    cal.withdraw(Finding(None, "in everything")).save(tmp_path / "told.cal")
    assert Calibration.load(tmp_path / "told.cal").guarantee(0.9).promised is None
    cal.save(tmp_path / "plain.cal")
    assert Calibration.load(tmp_path / "plain.cal").compare(P).p_value == cal.compare(P).p_value


def test_another_precision_is_no_difference(rng):
    top = rng.choice([1 - 2.0**-26, 0.75], 600)  # the first is rounded to 1 in float32
    P = np.stack([top, 1 - top], axis=1)
    cal = conformalize(P[:300], np.zeros(300, dtype=int))
    assert not cal.compare(P[300:].astype(np.float32)).refuted
    assert cal.compare(sharpened(P[300:]).astype(np.float32)).refuted
    tied = np.tile([0.4 - 1e-12, 0.4 + 1e-12, 0.2], (600, 1))  # which is the first is a matter of rounding
    assert not conformalize(tied[:300], np.zeros(300, dtype=int)).compare(tied[300:].astype(np.float32)).refuted


def test_the_mix_of_categories_may_change(rng):
    P = simplex(rng, 1000, 4)
    sure = P.max(axis=1) > 0.7
    cal = conformalize(P[:500], P[:500].argmax(axis=1), by=sure[:500])
    new = np.concatenate([np.flatnonzero(sure)[-150:], np.flatnonzero(~sure)[-10:]])
    assert conformalize(P[:500], P[:500].argmax(axis=1)).compare(P[new]).refuted
    assert not cal.compare(P[new], by=sure[new]).refuted
    within = cal.compare(sharpened(P[new], 3), by=sure[new])
    assert "in category True" in printed(within.differs)
    assert cal.compare(P[new], by=np.full(len(new), 7)).p_value is None


def test_rows_of_a_group_count_once(rng):
    P = np.repeat(simplex(rng, 60, 3), 20, axis=0)
    y, group = P.argmax(axis=1), np.arange(1200) // 20
    cal = conformalize(P[:600], y[:600], groups=group[:600])
    assert conformalize(P[:600], y[:600]).compare(P[600:]).refuted  # 600 copies look certain
    assert not cal.compare(P[600:], groups=group[600:]).refuted
    assert cal.compare(sharpened(P[600:], 6), groups=group[600:]).refuted
    unknown = cal.compare(P[600:])
    assert unknown.p_value is None
    assert "came without theirs (groups)" in printed(unknown)
    assert unknown.guarantee(0.9).promised == 0.9
    with pytest.raises(ValueError, match="groups: calibrated without groups"):
        conformalize(P[:600], y[:600]).compare(P[600:], groups=group[600:])


def test_weighted_rows_are_not_compared(rng):
    P = simplex(rng, 200, 3)
    cal = conformalize(P[:100], P[:100].argmax(axis=1), sample_weight=rng.random(100) + 0.5)
    found = cal.compare(sharpened(P[100:]))
    assert found.p_value is None
    assert not found.refuted
    assert "calibrated with weights" in printed(found)


def test_folds_are_compared_each_with_its_own_model(rng):
    y = rng.integers(0, 3, 400)
    X = 2 * np.eye(3)[y] + rng.normal(size=(400, 3))
    model = CrossConformalClassifier(GaussianNB(), cv=4, random_state=0).fit(X[:300], y[:300])
    assert not model.compare(X[300:]).refuted
    far = model.compare(X[300:] + np.array([4, 0, 0]))
    assert far.p_value < 1e-6
    assert far.guarantee(0.95).promised is None
    with pytest.raises(ValueError, match="2 matrices for 4 folds"):
        model.calibration_.compare([np.eye(3)] * 2)


# -------------------------------------------------------------------- features


@pytest.fixture
def frame(rng):
    n = 700
    return pd.DataFrame(
        {
            "age": rng.normal(size=n),
            "ward": rng.choice(["a", "b", None], n, p=[0.6, 0.3, 0.1]),
            "dose": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 5, n)),
            "name": [f"row {i}" for i in range(n)],
            "count": pd.array(np.where(rng.random(n) < 0.2, None, rng.integers(0, 5, n)), dtype="Int64"),
            "kind": pd.Categorical(rng.choice(["x", "y"], n)),
        }
    )


CHANGES = {
    "feature 'age' is at most": lambda X: X.assign(age=X.age + 1),
    "feature 'ward' is 'c' in": lambda X: X.assign(ward=np.where(np.arange(len(X)) % 5 == 0, "c", X.ward)),
    "feature 'count' is missing in": lambda X: X.assign(count=pd.array([None] * len(X), dtype="Int64")),
    "feature 'ward' is 'a' in 0.0% of the new rows and": lambda X: X.assign(ward=[f"w{i}" for i in range(len(X))]),
    "feature 'kind' is 'x' in 100.0% of the new rows and": lambda X: X.assign(kind="x"),
    "feature 'dose' is missing in": lambda X: X.assign(dose=np.where(np.arange(len(X)) % 2, X.dose, np.nan)),
}


@pytest.mark.parametrize("said", CHANGES)
def test_features_that_differ_are_named(rng, frame, said):
    P = simplex(rng, 700, 3)
    summary = FeatureSummary.of(frame[:350])
    for X, refuted in ((frame[350:], False), (CHANGES[said](frame[350:]), True)):
        rows = RowTally(conformalize(P[:350], P[:350].argmax(axis=1)), summary)
        rows.add(P[350:], X=X)
        found = rows.compare()
        assert found.refuted == refuted
        assert any(finding.sentence.startswith(said) for finding in found.findings) == refuted


def test_noise_in_all_features_together_is_noticed(rng):
    P, X = simplex(rng, 300, 3), rng.normal(size=(700, 40))
    cal, summary = conformalize(P[:150], P[:150].argmax(axis=1)), FeatureSummary.of(X[:150], Reference.of(X[300:]))
    for noise, refuted in ((0.0, False), (0.5, True)):
        rows = RowTally(cal, summary)
        rows.add(P[150:], X=X[150:300] + noise * rng.normal(size=(150, 40)))
        found = rows.compare()
        assert found.refuted == refuted
        assert str(found.differs).startswith("the features of a row lie") == refuted


def test_of_many_findings_some_are_kept_and_few_are_named(rng):
    P, X = simplex(rng, 300, 3), rng.normal(size=(300, 40))
    cal, summary = conformalize(P[:150], P[:150].argmax(axis=1)), FeatureSummary.of(X[:150])
    found = RowTally(cal, summary).add(P[150:], X=X[150:] + 3).compare()
    assert len(found.findings) == 32
    assert found.differs.sentence.count("is at most") == 3
    assert "; and 29 more; p" in printed(found.differs)


def test_distances_count_what_is_there():
    reference = Reference.of(pd.DataFrame({"a": [0.0, 2.0], "b": ["x", "y"], "c": [5, 5]}))
    rows = pd.DataFrame({"a": [3.0, np.nan, 1e9], "b": ["x", "z", "x"], "c": [5, 6, 5]})
    assert reference.distances(rows).tolist() == [1.0, 10.0, 5.0]
    assert reference.distances(rows[["a"]]) is None
    objects = pd.DataFrame({"a": pd.Series([0.0, 2.0, None], dtype=object)})
    assert Reference.of(objects).distances(objects).tolist() == [1.0, 1.0, 0.0]
    assert Reference.of(rows[["c"]][:2]).distances(rows[["c"]]).tolist() == [1.0, 1.0, 1.0]


def test_a_summary_is_the_same_after_saving(frame, tmp_path):
    summary = FeatureSummary.of(frame, Reference.of(frame))
    summary.write(tmp_path / "s.npz")
    again = FeatureSummary.read(tmp_path / "s.npz")
    assert again.names == summary.names
    np.testing.assert_array_equal(again.reference.distances(frame), summary.distances)
    assert again.columns[1] == summary.columns[1]
    assert again.columns[3] is None  # names of rows are not kept
    assert b"row 17" not in (tmp_path / "s.npz").read_bytes()
    np.testing.assert_array_equal(again.columns[0].upto, summary.columns[0].upto)


def test_a_broken_summary_is_refused(frame, tmp_path):
    from setwise.drift.feature_summary import FORMAT, VERSION
    from setwise.storage.container import read_container, write_container

    FeatureSummary.of(frame, Reference.of(frame)).write(tmp_path / "s.npz")
    header, arrays = read_container(tmp_path / "s.npz", FORMAT, VERSION)
    for changed, broken in (
        ({}, {"upto": arrays["upto"][:-1]}),
        ({"kinds": ["points"]}, {}),
        ({"names": ["a"]}, {}),
        ({}, {"distances": arrays["distances"][1:]}),
        ({}, {"mean": arrays["mean"][1:]}),
    ):
        write_container(tmp_path / "b.npz", header | changed, arrays | broken)
        with pytest.raises(ValueError, match="b.npz: a setwise-feature-summary file"):
            FeatureSummary.read(tmp_path / "b.npz")


@pytest.mark.parametrize(
    "X",
    [np.zeros((9, 3, 3)), csr_array(np.eye(9)), np.zeros((9, 1001)), [[1], [1, 2]], object()],
    ids=["images", "sparse", "wide", "ragged", "object"],
)
def test_what_is_no_table_is_not_summarised(X):
    assert FeatureSummary.of(X) is None


def test_lists_of_rows_are_tables(rng):
    X = rng.normal(size=(50, 3))
    made = FeatureSummary.of(X.tolist())
    assert made.names == FeatureSummary.of(X).names
    assert made.rows == 50
    tally = FeatureTally(made)
    tally.add(X)
    assert len(list(tally.tests())) == 4
    tally.add(X[:, :2])  # other columns: nothing is tested, and why is said
    assert tally.remarks
    assert list(tally.tests()) == []


def test_a_model_says_which_features_it_could_not_compare(rng):
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    model = ConformalClassifier(LogisticRegression(), random_state=0).fit(csr_array(X), y)
    assert "Not compared: features, of which a model keeps a summary only" in printed(model.compare(csr_array(X)))
    plain = ConformalClassifier(LogisticRegression(), random_state=0).fit(X, y)
    assert "not a table like that of the calibration rows" in printed(plain.compare(csr_array(X)))
    by = ConformalClassifier(LogisticRegression(), random_state=0).fit(X, y, by=y)
    assert "compared for rows without groups and categories" in printed(by.compare(X, by=y))


def test_a_saved_model_compares_as_before_and_knows_the_names(rng, tmp_path):
    y = rng.integers(0, 3, 600)
    X = pd.DataFrame(2 * np.eye(3)[y] + rng.normal(size=(600, 3)), columns=["u", "v", "w"])
    model = ConformalClassifier(LogisticRegression(), random_state=0).fit(X[:400], y[:400])
    model.save(tmp_path / "model")
    again, far = ConformalClassifier.load(tmp_path / "model"), X[400:] + np.array([0, 3, 0])
    for rows in (X[400:], far):
        assert again.compare(rows).to_dict() == model.compare(rows).to_dict()
    assert "feature 'v' is at most" in again.compare(far).differs.sentence
    assert again.evaluate(X[400:], y[400:])["comparison"] == {
        "p_value": model.compare(X[400:]).p_value,
        "refuted": False,
    }
    with pytest.warns(MisuseWarning, match="X: these rows differ from the calibration rows, so nothing is"):
        again.evaluate(far, y[400:])


def test_names_of_which_few_are_known_raise_no_alarm(rng):
    seen = 0
    for _ in range(300):
        values = np.array([f"v{i}" for i in rng.zipf(1.5, 400) % 1000], dtype=object)
        tally = FeatureTally(FeatureSummary.of(pd.DataFrame({"name": values[:90]})))
        for part in (values[90:140], values[140:]):
            tally.add(pd.DataFrame({"name": part}))
        (p_values,) = (kind.p_values for kind in tally.tests() if len(kind.p_values))
        seen += (p_values * len(p_values)).min() < 0.05
    assert at_most(seen, 0.05, 300)


def test_empty_text_is_missing_and_a_column_without_any_value_hides_no_other(rng):
    import pandas as pd

    colour = np.where(rng.random(500) < 0.1, None, rng.choice(["red", "blue"], 500))
    frame = pd.DataFrame({"height": rng.normal(size=500), "colour": colour, "note": [None] * 500})
    P = simplex(rng, 500, 3)
    cal, summary = conformalize(P[:300], P[:300].argmax(axis=1)), FeatureSummary.of(frame[:300])

    def compared(new):
        return RowTally(cal, summary).add(P[300:], X=new).compare()

    honest, written = frame[300:], frame[300:].fillna({"colour": ""})
    assert compared(written).p_value == compared(honest).p_value
    assert not compared(honest).refuted
    noted = honest.assign(note=["seen", *honest.note[1:]])
    assert not compared(noted).refuted
    assert compared(noted).remarks == ()
    assert "height" in printed(compared(noted.assign(height=noted.height + 3)))
