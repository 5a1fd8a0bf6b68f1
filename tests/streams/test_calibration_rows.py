"""Rows in batches are calibrated on as if they had come at once; beyond the limit, as a random sample of them."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import setwise
from setwise import Calibration, LabelSets, TopK, Votes
from setwise.errors import InputError
from setwise.row_noise import sampling_keys, uniforms
from setwise.strategies import Mixture
from setwise.streams import CalibrationRows, calibration_rows
from tests.changed_files import (
    rows,
    verified_labels,
)

N, K = 240, 4


rng = np.random.default_rng(0)


P = rng.dirichlet(np.ones(K), size=N)


Y = (P.cumsum(axis=1) > rng.random((N, 1))).argmax(axis=1)


SETS = (np.eye(K)[Y] + (rng.random((N, K)) < 0.2)) > 0


VOTES = Votes.from_matrix(np.where(rng.random((N, 3)) < 0.8, Y[:, None], rng.integers(0, K, (N, 3))))


CHECKED = np.where(rng.random(N) < 0.3, Y.astype(object), None)


BY = np.array(["north", "south"])[rng.integers(0, 2, N)]


WEIGHT = rng.uniform(1, 2, N)


GROUPS = np.arange(N) // 2


CHANCE = np.full(N, 0.5)


CASES = {
    "max": (SETS, {}, {}),
    "auto, verified": (SETS, {"verified": CHECKED}, {}),
    "rectified, aps": (SETS, {"verified": CHECKED}, {"strategy": "rectified", "conformity_score": "aps"}),
    "unequal chances": (SETS, {"verified": CHECKED, "verified_probability": CHANCE}, {}),
    "corrected": (SETS, {}, {"strategy": "corrected", "assume": "uniform"}),
    "mixture": (SETS, {"verified": CHECKED}, {"strategy": Mixture(mu=0.3)}),
    "categories": (SETS, {"by": BY}, {"conformity_score": "raps"}),
    "predicted": (SETS, {}, {"by": "predicted"}),
    "by label": (Y, {}, {"by": "label"}),
    "by label, verified": (SETS, {"verified": CHECKED}, {"by": "label"}),
    "weights": (SETS, {"sample_weight": WEIGHT}, {}),
    "groups": (SETS, {"groups": GROUPS}, {}),
    "ids": (SETS, {"row_ids": [f"row {i}" for i in range(N)]}, {"conformity_score": "aps"}),
    "votes": (VOTES, {"verified": CHECKED}, {}),
    "crowd": (VOTES, {}, {"strategy": "crowd", "assume": "independent"}),
    "dropped": (SETS & (rng.random((N, 1)) < 0.9), {}, {"missing": "drop"}),
}


def batches(size=70):
    return [slice(start, start + size) for start in range(0, N, size)]


def added(candidates, facts=None, parts=None, probabilities=P, **options):
    rows = CalibrationRows(**{"random_state": 7} | options)
    for part in parts or batches():
        given = {name: value[part] for name, value in (facts or {}).items()}
        rows.add(probabilities[part], candidates[part], **given)
    return rows


def assert_same(one, other):
    """Bit for bit: evidence, setting, thresholds, words."""
    ours, theirs = one.evidence.to_arrays(), other.evidence.to_arrays()
    assert ours.keys() == theirs.keys()
    for name, values in ours.items():
        assert values.dtype == theirs[name].dtype
        assert values.tobytes() == theirs[name].tobytes(), name
    for code, name in enumerate(one.category_names):
        if one.evidence.weight is None:
            by = {"by": name} if one.categories is not None else {}
            assert np.array_equal(one.threshold(0.8, **by), other.threshold(0.8, **by)), code
    assert str(one.guarantee(0.8)) == str(other.guarantee(0.8))


@pytest.mark.filterwarnings("ignore::setwise.MisuseWarning")
@pytest.mark.parametrize("case", CASES)
def test_what_fits_into_memory_is_calibrated_on_bit_for_bit(case):
    candidates, facts, declared = CASES[case]
    whole = setwise.conformalize(P, candidates, random_state=7, **facts, **declared)
    assert_same(added(candidates, facts).conformalize(**declared), whole)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_the_precision_of_the_probabilities_is_kept(dtype):
    narrow = P.astype(dtype)
    found = added(SETS, probabilities=narrow).conformalize()
    assert_same(found, setwise.conformalize(narrow, SETS, random_state=7))
    assert found.setting.precision == np.dtype(dtype).name


def test_named_labels_and_frames_keep_their_columns():
    pd = pytest.importorskip("pandas")
    names = ["wren", "owl", "ant", "cat"]
    frame, labels = pd.DataFrame(P, columns=names), [names[k] for k in Y]
    rows = CalibrationRows(random_state=7)
    for part in batches():
        rows.add(frame[part].reset_index(drop=True), labels[part])
    assert_same(rows.conformalize(), setwise.conformalize(frame, labels, random_state=7))


@pytest.mark.parametrize("most", [40, N])
@pytest.mark.parametrize("votes", [False, True])
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_neither_batches_nor_order_nor_workers_make_a_difference(most, votes, data):
    candidates, facts = (VOTES, {}) if votes else (LabelSets.from_mask(SETS), {"verified": CHECKED})
    facts |= {"sampling_ids": np.arange(N)}
    cuts = sorted(data.draw(st.sets(st.integers(1, N - 1), max_size=6)))
    parts = [slice(a, b) for a, b in zip([0, *cuts], [*cuts, N], strict=True)]
    workers = [added(candidates, facts, [part], max_rows=most) for part in data.draw(st.permutations(parts))]
    while len(workers) > 1:  # any tree of merges
        i = data.draw(st.integers(0, len(workers) - 2))
        workers[i : i + 2] = [workers[i].merge(workers[i + 1])]
    alone = added(candidates, facts, [slice(0, N)], max_rows=most)
    assert (len(workers[0]), workers[0].seen) == (len(alone), N)
    assert_same(workers[0].conformalize(), alone.conformalize())


def coverages(draws=300, seen=1500, kept=99):
    """What thresholds for 0.9 cover, of scores that are uniform, each from a sample of many."""
    found = []
    for draw in range(draws):
        scores = np.random.default_rng(draw).random(seen)
        rows = CalibrationRows(max_rows=kept, random_state=draw)
        for start in range(0, seen, 500):
            part = scores[start : start + 500]
            ids = np.arange(start, start + 500)
            rows.add(np.column_stack([1 - part, part]), np.zeros(500, dtype=int), sampling_ids=ids)
        found.append(float(rows.conformalize().threshold(0.9)))
    return np.array(found)


def test_the_sample_keeps_the_promise_and_no_more():
    found = coverages()  # Beta(90, 10): mean 0.9, standard deviation 0.0299
    assert abs(found.mean() - 0.9) < 4 * 0.0299 / np.sqrt(len(found))
    assert abs(found.std() / 0.0299 - 1) < 0.2


def test_a_sample_that_looks_at_the_scores_is_found_out(monkeypatch):
    drawn = {}

    def by_score(ids, seed):
        scores = drawn.setdefault(seed, np.random.default_rng(seed).random(1500))[np.asarray(ids)]
        return (sampling_keys(ids, seed) * np.sqrt(scores)).astype(np.uint64)  # low scores a little sooner

    monkeypatch.setattr(calibration_rows, "sampling_keys", by_score)
    assert abs(coverages(100).mean() - 0.9) > 4 * 0.0299 / 10


def test_keys_have_nothing_to_do_with_the_noise_of_randomised_scores():
    ids = np.arange(20_000)
    keys, noise = sampling_keys(ids, 3), uniforms(np.empty((20_000, 0)), 3, ids)
    assert abs(noise[np.argsort(keys)[:2000]].mean() - 0.5) < 4 * np.sqrt(1 / 12 / 2000)
    assert abs(np.corrcoef(keys.astype(float), noise)[0, 1]) < 4 / np.sqrt(20_000)


def test_memory_stays_within_the_limit():
    rows = CalibrationRows(memory_limit=2**16, random_state=0)
    for _ in range(20):
        rows.add(np.tile(P.astype(np.float32), (20, 1)), np.tile(Y, 20))
        assert rows.nbytes < 1.25 * 2**16
    assert rows.seen == 20 * 20 * N
    assert len(rows) == 2**16 // (4 * K + 64)


def printed(calibration):
    """What is guaranteed, without breaks of lines."""
    return " ".join(str(calibration.guarantee()).split())


def test_the_guarantee_says_that_it_rests_on_a_sample(tmp_path):
    found = added(SETS, {"by": BY}, max_rows=100).conformalize()
    told = "Calibrated on a random sample of 100 of the 240 rows."
    assert printed(found).count(told) == 1  # about all categories
    found.save(tmp_path / "sampled.cal")
    assert told in printed(setwise.Calibration.load(tmp_path / "sampled.cal"))
    assert "sample" not in printed(added(SETS, max_rows=N).conformalize())


def test_verified_rows_are_all_kept_and_only_by_strategies_that_use_them():
    rows = added(SETS, {"verified": CHECKED}, max_rows=50)
    checks = int((CHECKED != None).sum())  # noqa: E711 - an array
    assert len(rows) == 50 + checks
    told = f"the {checks} verified rows and a random sample of 50 of the {N - checks} other rows."
    assert told in printed(rows.conformalize())
    with pytest.raises(InputError, match=r"'max' would count the verified ones too often; use memory_limit"):
        rows.conformalize("max")
    weighted = added(SETS, {"verified": CHECKED, "sample_weight": WEIGHT}, max_rows=50)
    with pytest.raises(InputError, match="'auto' would count the verified ones too often"):
        weighted.conformalize()
    with pytest.raises(InputError, match="only a random sample of the 240"):
        rows.conformalize().triage()


@pytest.mark.parametrize("facts", [{"groups": GROUPS}, {"verified": CHECKED, "verified_probability": CHANCE}])
def test_what_no_sample_stands_for_is_refused_and_the_rows_before_stay(facts):
    rows = added(SETS, facts, [slice(0, 100)], max_rows=100)
    with pytest.raises(InputError, match="to hold all rows"):
        rows.add(P[100:], SETS[100:], **{name: value[100:] for name, value in facts.items()})
    assert (len(rows), rows.seen) == (100, 100)


@pytest.mark.parametrize("case", ["auto, verified", "categories", "votes", "ids"])
@pytest.mark.parametrize("most", [50, None])
def test_rows_are_pickled_and_go_on(case, most):
    candidates, facts, declared = CASES[case]
    if most and case == "categories":
        facts = facts | {"sampling_ids": np.arange(N)}
    rows = added(candidates, facts, batches()[:2], max_rows=most)
    again = pickle.loads(pickle.dumps(rows))  # noqa: S301
    for part in batches()[2:]:
        again.add(P[part], candidates[part], **{name: value[part] for name, value in facts.items()})
    straight = added(candidates, facts, max_rows=most)
    assert (len(again), again.seen) == (len(straight), N)
    assert_same(again.conformalize(**declared), straight.conformalize(**declared))


def test_declared_classes_are_pickled_too():
    names = np.array(["wren", "owl", "ant", "cat"])
    rows = CalibrationRows(classes=names, random_state=7)
    rows.add(P[:100], names[Y[:100]])
    again = pickle.loads(pickle.dumps(rows))  # noqa: S301
    again.add(P[100:], names[Y[100:]])
    assert_same(again.conformalize(), setwise.conformalize(P, names[Y], classes=names, random_state=7))


def test_without_rows_there_is_nothing_to_calibrate_on():
    with pytest.raises(ValueError, match="there are no rows; add some first"):
        CalibrationRows(max_rows=3).conformalize()


MISTAKES = {
    "float64 here, 4 columns of float32": lambda rows: rows.add(P, SETS),
    "3 columns of float.* here, 4": lambda rows: rows.add(P[:, :3] / P[:, :3].sum(axis=1, keepdims=True), Y % 3),
    "verified_probability: row 0": lambda rows: rows.add(P.astype("f4"), SETS, verified_probability=CHANCE * 4),
    "by: a value for each row here, nothing": lambda rows: rows.add(P.astype("f4"), SETS, by=BY),
    "candidates: Votes of named annotators here, LabelSets": lambda rows: rows.add(P.astype("f4"), VOTES),
    "by: 'predicted' is found once": lambda rows: rows.add(P.astype("f4"), SETS, by="predicted"),
    "sampling_ids: expected one per row": lambda rows: rows.add(P.astype("f4"), SETS, sampling_ids=[1]),
    "candidates: 1 rows for 240": lambda rows: rows.add(P.astype("f4"), SETS[:1]),
    "max_rows: rows with None and 3": lambda rows: rows.merge(CalibrationRows(max_rows=3)),
    "both drew the same keys": lambda rows: rows.merge(added(SETS, probabilities=P.astype("f4"))),
    "other classes than in the rows before": lambda rows: rows.add(
        P.astype("f4"), LabelSets.from_mask(SETS, [*"abcd"])
    ),
    "TopK is not added in batches": lambda rows: rows.add(TopK.of(P, 2), SETS),
    "memory_limit: 0": lambda rows: CalibrationRows(memory_limit=0),
    "max_rows: 0": lambda rows: CalibrationRows(max_rows=0),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_rows_of_another_kind_are_refused(message):
    with pytest.raises(ValueError, match=message):
        MISTAKES[message](added(SETS, probabilities=P.astype(np.float32)))


def test_with_ids_seeds_must_agree_and_no_part_counts_twice():
    ids = {"sampling_ids": np.arange(N)}
    with pytest.raises(InputError, match="with sampling_ids both need the same"):
        added(SETS, ids, [slice(0, 9)]).merge(added(SETS, ids, [slice(9, 20)], random_state=8))
    twice = added(SETS, ids, [slice(0, 9)]).merge(added(SETS, ids, [slice(5, 20)]))
    with pytest.raises(InputError, match="sampling_ids: 5 identifies two rows"):
        twice.conformalize()


def test_ids_are_of_one_kind_and_none_are_rounded():
    rows = added(SETS, {"sampling_ids": np.arange(N, dtype=np.uint64) + np.uint64(2**62)})
    with pytest.raises(ValueError, match="sampling_ids: ids of the kind U here, ids of the kind i"):
        rows.add(P, SETS, sampling_ids=[f"row {i}" for i in range(N)])
    rows.add(P, SETS, sampling_ids=np.arange(N))
    assert rows.conformalize().evidence.n == 2 * N


def test_no_rows_leave_the_keys_of_others_as_they_are():
    rows = added(SETS, {"sampling_ids": np.arange(N)}, [slice(0, 99)], max_rows=50)
    empty = CalibrationRows(max_rows=50, random_state=8)
    made = [rows.merge(empty), empty.merge(rows)]
    for merged in made:
        merged.add(P[99:], SETS[99:], sampling_ids=np.arange(99, N))
    whole = added(SETS, {"sampling_ids": np.arange(N)}, max_rows=50).conformalize(conformity_score="aps")
    for merged in made:
        assert_same(merged.conformalize(conformity_score="aps"), whole)


def test_what_was_added_stays_when_the_caller_uses_its_arrays_again():
    weight, ids = WEIGHT.copy(), np.arange(N)
    rows = CalibrationRows(random_state=7)
    rows.add(P, SETS, sample_weight=weight, sampling_ids=ids)
    weight[:] = 1
    ids += N
    assert_same(rows.conformalize(), added(SETS, {"sample_weight": WEIGHT}).conformalize())
    rows.add(P, SETS, sample_weight=weight, sampling_ids=ids)
    assert rows.conformalize().evidence.n == 2 * N


def test_votes_are_of_named_annotators_in_all_rows_or_in_none():
    rows = CalibrationRows()
    rows.add(P, VOTES)
    with pytest.raises(ValueError, match="candidates: Votes here, Votes of named annotators in the rows before"):
        rows.add(P, Votes.from_lists([[int(label)] for label in Y], classes=range(K)))


def test_a_sample_beside_checks_of_easy_rows_speaks_for_no_source():
    rng = np.random.default_rng(0)
    P = rng.dirichlet([0.5, 0.5, 0.5], 3000)
    y = P.argmax(axis=1)
    sets = LabelSets.from_mask(np.eye(3, dtype=bool)[y] | (rng.random((3000, 3)) < 0.1), [0, 1, 2])
    kept = CalibrationRows(max_rows=200, random_state=0)
    kept.add(P, sets, verified=np.where(P.max(axis=1) > 0.95, y, None))
    with pytest.warns(setwise.MisuseWarning, match="not a random choice"):
        cal = kept.conformalize("auto")
    for answer in (cal.bracket, cal.monitor):
        with pytest.raises(InputError, match="verified rows, which were not chosen at random, were all kept"):
            answer()
    compared = cal.compare(rng.dirichlet([0.5, 0.5, 0.5], 2000))
    assert compared.p_value is None
    assert "which were not chosen at random" in str(compared)
    chosen = rng.random(3000) < 0.2
    kept = CalibrationRows(max_rows=200, random_state=0)
    kept.add(P, sets, verified=np.where(chosen, y, None))
    cal = kept.conformalize("auto")
    assert cal.bracket(0.8)[0] > 0
    assert not cal.compare(rng.dirichlet([0.5, 0.5, 0.5], 2000)).refuted


def test_samples_of_rows_come_back(tmp_path):
    P, sets, _ = rows()
    few = CalibrationRows(max_rows=50, random_state=0)
    few.add(P, sets, verified=verified_labels())
    few.conformalize("auto").save(tmp_path / "x.cal")
    assert Calibration.load(tmp_path / "x.cal").setting.sampled == 200


def test_rows_of_no_known_domain_are_not_begun():
    with pytest.raises(ValueError, match="domain: 'moon' is not known"):
        CalibrationRows(domain="moon")
