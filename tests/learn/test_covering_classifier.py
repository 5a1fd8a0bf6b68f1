"""CoveringClassifier: sets for `max` that are small because the model learned to cover whole candidate sets."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from setwise import LAC, ConformalClassifier, LabelSets, conformalize
from setwise.learn import (
    CoveringClassifier,
    InclusionLoss,
    PartialLabelClassifier,
    covering_classifier,
    fitted_networks,
)
from setwise.learn.covering_classifier import covering_size
from setwise.learn.serialization import read_model, write_model
from setwise.storage.directory import Parts, listing

UNIT = LAC(domain="unit")


def some_rows(n=400, k=6, seed=0, noise=0.3, stray=0.01):
    """Each label comes with the next one, and now and then with any other."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    X = np.eye(k)[y] + noise * rng.normal(size=(n, k))
    candidates = (np.eye(k)[y] + np.eye(k)[(y + 1) % k] > 0) | (rng.random((n, k)) < stray)
    return X, candidates, y


def quick(**settings):
    small = PartialLabelClassifier("linear", scale="standard", epochs=15)
    return CoveringClassifier(**{"posterior": small, "inclusion": small, "random_state": 0} | settings)


def sizes(matrix, score, X, candidates, half):
    calibration = conformalize(matrix(X[:half]), candidates[:half], "max", score)
    return calibration.predict_set(matrix(X[half:]), 0.9).sizes


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([quick()])
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


def test_max_on_the_inclusion_matrix_holds_all_candidates_as_often_as_promised():
    X, candidates, y = some_rows(n=9_000, noise=0.6)
    model = quick().fit(X[:400], candidates[:400])
    matrix = model.predict_inclusion(X)
    rng = np.random.default_rng(1)
    n, trials = 20, 2_000  # ⌈21 · 0.9⌉ = 19 of 20: without the "+1" it would be 18, and coverage 18/21
    whole = truth = 0
    for _ in range(trials):
        rows = 400 + rng.permutation(8_600)[: n + 1]
        given, new = rows[:-1], rows[-1]
        worst = np.sort(np.where(candidates[given], -matrix[given], -np.inf).max(axis=1))
        made = conformalize(matrix[given], candidates[given], "max", UNIT).predict_set(matrix[[new]], 0.9)
        inside = made.to_mask()[0]
        np.testing.assert_array_equal(inside, -matrix[new] <= worst[18])
        whole += bool((inside | ~candidates[new]).all())
        truth += bool(inside[y[new]])
    assert whole >= binom.ppf(1e-4, trials, 0.9)
    assert truth >= whole
    assert binom.cdf(trials * 18 / 21, trials, 0.9) < 1e-4  # the bound would have noticed


def test_its_sets_are_much_smaller_than_those_of_the_class_posterior():
    X, candidates, y = some_rows(n=2_400)
    alone = np.random.default_rng(1).normal(size=2_400)  # rows that name the truth alone, which a feature tells
    X = np.column_stack([X, alone])
    candidates &= (alone > 0)[:, None]
    candidates[np.arange(2_400), y] = True
    model = quick().fit(X[:800], candidates[:800])
    inclusive = sizes(model.predict_inclusion, UNIT, X[800:], candidates[800:], 800)
    posterior = sizes(model.predict_proba, LAC(), X[800:], candidates[800:], 800)
    assert inclusive.mean() < 0.85 * posterior.mean()


def test_precise_labels_leave_the_class_posterior_as_it_is():
    X, _, y = some_rows()
    model = quick().fit(X, y)
    assert model.inclusion_ is None
    assert model.weight_ == 0
    np.testing.assert_array_equal(model.predict_inclusion(X), model.predict_proba(X))
    own = PartialLabelClassifier("linear", scale="standard", epochs=15, random_state=model.posterior_.random_state)
    np.testing.assert_array_equal(model.predict_proba(X), own.fit(X, y).predict_proba(X))


def test_an_inclusion_model_that_would_not_be_used_is_not_learned(monkeypatch):
    monkeypatch.setattr(covering_classifier, "_WEIGHTS", (0.0,))
    X, candidates, _ = some_rows()
    model = quick().fit(X, candidates)
    assert model.inclusion_ is None
    np.testing.assert_array_equal(model.predict_inclusion(X), model.predict_proba(X))


def test_what_is_chosen_has_the_smallest_sets_that_were_seen():
    X, candidates, _ = some_rows()
    network = PartialLabelClassifier("auto", hidden_sizes=(8,), epochs=5)
    model = quick(inclusion=network).fit(X, candidates)
    assert len(model.choices_) == 4 * 5  # linear and mlp, standard and rows, five weights
    best = min(model.choices_, key=model.choices_.get)
    chosen = model.inclusion_.fitted_.settings
    assert best == f"{chosen.network}, scale {chosen.scale}, weight {model.weight_:g}"


def test_the_size_it_chooses_by_is_that_of_max():
    rng = np.random.default_rng(0)
    matrix, candidates = rng.random((50, 7)), rng.random((50, 7)) < 0.4
    candidates[:, 0] |= ~candidates.any(axis=1)
    made = conformalize(matrix, candidates, "max", UNIT).predict_set(matrix, 0.8)
    assert covering_size(matrix, candidates, Fraction(4, 5)) == made.sizes.mean()
    assert covering_size(matrix[:5], candidates[:5], Fraction(9, 10)) == 7  # too few rows: all labels


@pytest.mark.parametrize("k", [2, 150])
def test_answers_are_probabilities_for_few_and_for_many_classes(k):
    X, candidates, _ = some_rows(n=300, k=k)
    model = quick().fit(X, candidates)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    inclusion = model.predict_inclusion(X)
    assert inclusion.shape == (300, k)
    assert inclusion.min() >= 0
    assert inclusion.max() <= 1
    assert (model.predict(X) == model.classes_[model.predict_proba(X).argmax(axis=1)]).all()


def test_inclusion_probabilities_are_calibrated_frequencies():
    X, candidates, _ = some_rows(n=3_000)
    model = quick().fit(X[:1_500], candidates[:1_500])
    model.weight_ = 1.0
    inclusion = model.predict_inclusion(X[1_500:])
    assert abs(inclusion.mean() - candidates[1_500:].mean()) < 0.02
    high = inclusion > 0.5
    assert abs(inclusion[high].mean() - candidates[1_500:][high].mean()) < 0.05


def test_the_default_network_drops_units_in_training_and_is_still_reproducible():
    X, candidates, _ = some_rows(n=60)
    model = quick(inclusion=None)
    first, second = (clone(model).fit(X, candidates) for _ in range(2))
    assert first.inclusion_.dropout == 0.5
    assert first.inclusion_.loss is InclusionLoss
    np.testing.assert_array_equal(first.predict_inclusion(X), second.predict_inclusion(X))
    np.testing.assert_array_equal(first.predict_inclusion(X), first.predict_inclusion(X))
    assert not np.array_equal(
        first.predict_inclusion(X), clone(model).set_params(random_state=1).fit(X, candidates).predict_inclusion(X)
    )


def test_images_are_learned_by_convolutions():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    X = rng.integers(0, 50, (60, 8, 8)).astype(np.uint8)
    X[np.arange(60), 2 * y, :] = 250
    candidates = np.eye(3)[y] + np.eye(3)[y - 1] > 0
    small = PartialLabelClassifier(epochs=5)
    model = CoveringClassifier(small, small, random_state=0).fit(X, candidates)
    assert model.inclusion_.network == "cnn"
    assert model.predict_inclusion(X).shape == (60, 3)


def test_a_handful_of_rows_is_enough_to_fit():
    X, candidates, _ = some_rows(n=12)
    model = quick().fit(X, candidates)
    assert model.choices_ == {}
    assert 0 < model.weight_ < 1


def test_it_survives_pickling_and_names_its_classes():
    X, candidates, _ = some_rows()
    sets = LabelSets.from_mask(candidates, classes=list("abcdef"))
    model = quick().fit(X, sets)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own
    assert again.classes_.tolist() == list("abcdef")
    np.testing.assert_array_equal(again.predict_inclusion(X), model.predict_inclusion(X))


@pytest.mark.parametrize("precise", [False, True])
@pytest.mark.parametrize("piped", [False, True])
def test_it_is_kept_in_files_without_pickle(tmp_path, precise, piped):
    X, candidates, y = some_rows()
    model = quick().fit(X, y if precise else candidates)
    kept = make_pipeline(StandardScaler().fit(X), model) if piped else model
    description = write_model(kept, tmp_path)
    listed = {part.name: listing(part.read_bytes()) for part in tmp_path.iterdir()}
    back = read_model(description, Parts(tmp_path, listed), None)
    loaded = back.steps[-1][1] if piped else back
    np.testing.assert_array_equal(loaded.predict_inclusion(X), model.predict_inclusion(X))
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.weight_ == model.weight_
    assert loaded.n_features_in_ == 6
    assert loaded.choices_ == model.choices_


def test_it_serves_as_the_estimator_of_a_conformal_classifier(tmp_path):
    X, candidates, _ = some_rows()
    model = ConformalClassifier(quick(), "max", random_state=0).fit(X, candidates)
    model.save(tmp_path / "model")
    loaded = ConformalClassifier.load(tmp_path / "model")
    assert isinstance(loaded.estimator_, CoveringClassifier)
    assert loaded.predict_set(X[:20]).to_lists() == model.predict_set(X[:20]).to_lists()


def test_rows_without_candidates_can_stand_for_every_label():
    X, candidates, _ = some_rows()
    candidates[3] = False
    with pytest.raises(ValueError, match="row 3"):
        quick().fit(X, candidates)
    assert quick(missing="full").fit(X, candidates).predict_inclusion(X).shape == candidates.shape


def test_errors_name_the_argument():
    X, candidates, _ = some_rows(n=30)
    with pytest.raises(TypeError, match="posterior: expected a PartialLabelClassifier"):
        CoveringClassifier("linear").fit(X, candidates)
    with pytest.raises(TypeError, match="inclusion: expected a PartialLabelClassifier"):
        quick(inclusion=3).fit(X, candidates)
    with pytest.raises(ValueError, match="confidence_level"):
        quick(confidence_level=90).fit(X, candidates)
    with pytest.raises(NotFittedError):
        quick().predict_inclusion(X)


def test_dropout_is_noise_in_training_alone():
    X, candidates, _ = some_rows(n=100)
    settings = {"hidden_sizes": (20,), "scale": "standard", "epochs": 5, "random_state": 0}
    plain, dropped, again = (
        PartialLabelClassifier("mlp", dropout=rate, **settings).fit(X, candidates).predict_proba(X)
        for rate in (0.0, 0.5, 0.5)
    )
    assert not np.array_equal(plain, dropped)
    np.testing.assert_array_equal(dropped, again)
    with pytest.raises(ValueError, match="dropout: 1"):
        PartialLabelClassifier("mlp", dropout=1.0, **settings).fit(X, candidates)


def test_both_networks_share_their_trials(monkeypatch):
    doings = []
    plain = fitted_networks.train_stack

    def counted(*rows, doing="learning", **options):
        doings.append(doing)
        return plain(*rows, doing=doing, **options)

    monkeypatch.setattr(fitted_networks, "train_stack", counted)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    X, candidates = np.eye(3)[y] + 0.1 * rng.normal(size=(60, 3)), np.eye(3)[y] + (rng.random((60, 3)) < 0.4) > 0
    small = PartialLabelClassifier(epochs=1)
    model = CoveringClassifier(small, small, random_state=0).fit(X, candidates)
    assert doings.count("trying") == 4  # two networks with both scales at once, then both with the better one
    assert len(model.posterior_.choices_) == 4
    assert "auto" not in {model.posterior_.network, model.posterior_.scale}
