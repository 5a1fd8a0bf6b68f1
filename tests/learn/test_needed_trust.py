"""Models whose compiled code believes what is read of their state are loaded where somebody vouches for them."""

import io
import json
import zipfile

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder
from sklearn.svm import SVC

from setwise.errors import InputError
from setwise.learn.serialization import read_model, write_model
from setwise.storage.directory import Parts, listing
from tests.changed_files import (
    feature_rows,
)

TEXTS, TOPICS = ["red apple", "red rose", "blue sea", "blue sky"] * 5, ["warm", "warm", "cold", "cold"] * 5


def read_again(model, folder, change=None, trusted=None):
    """The model out of its file, whose nodes were changed."""
    described = write_model(model, folder)
    part = folder / described["file"]
    if change is not None:
        with zipfile.ZipFile(part) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        schema = json.loads(members["schema.json"])
        change(schema, members)
        with zipfile.ZipFile(part, "w") as archive:
            for name, content in (members | {"schema.json": json.dumps(schema).encode()}).items():
                archive.writestr(name, content)
    return read_model(described, Parts(folder, {part.name: listing(part.read_bytes())}), trusted)


# ------------------------------------------------------------- scikit-learn's state, which it uses as it stands


def on_texts(vectorizer, **state):
    model = make_pipeline(vectorizer, LogisticRegression()).fit(TEXTS, TOPICS)
    vars(model.steps[0][1]).update(state)
    return model


VECTORIZERS = {
    "as it is fitted": (CountVectorizer, {}),
    "a word far outside (segmentation fault)": (CountVectorizer, {"vocabulary_": {"red": 2**30, "blue": 0}}),
    "no columns (division by zero)": (HashingVectorizer, {"n_features": 0}),
    "an expression that takes for ever": (CountVectorizer, {"token_pattern": "(a+)+$"}),
    "rows that name files to read": (TfidfVectorizer, {"input": "filename"}),
}


@pytest.mark.parametrize("state", list(VECTORIZERS))
def test_text_vectorizers_need_to_be_vouched_for(state, tmp_path):
    kind, changed = VECTORIZERS[state]
    model = on_texts(kind(), **changed)
    name = f"sklearn.feature_extraction.text.{kind.__name__}"
    with pytest.raises(InputError, match=f"types that need your trust: {name};"):
        read_again(model, tmp_path)
    assert write_model(model, tmp_path)["needs_trust"] == [name]
    assert vars(read_again(model, tmp_path, trusted=[name]).steps[0][1]).items() >= changed.items()


def test_text_models_answer_as_before_where_they_are_vouched_for(tmp_path):
    trusted = ["sklearn.feature_extraction.text.TfidfVectorizer"]
    assert read_again(on_texts(TfidfVectorizer()), tmp_path, trusted=trusted).predict(TEXTS).tolist() == TOPICS


COLUMNS = np.column_stack([np.arange(40) % 7, np.arange(40) % 2, np.repeat([0, 1, 2, 3], [30, 8, 1, 1])])


ENCODERS = [
    OneHotEncoder(),
    OneHotEncoder(drop="first"),
    OneHotEncoder(drop="if_binary", min_frequency=6),
    OneHotEncoder(max_categories=3, handle_unknown="infrequent_if_exist"),
    KBinsDiscretizer(3, strategy="uniform"),
]


@pytest.mark.parametrize("encoder", ENCODERS, ids=repr)
def test_encoders_as_they_are_fitted_need_no_trust(encoder, tmp_path):
    model = make_pipeline(clone(encoder), LogisticRegression()).fit(COLUMNS, COLUMNS[:, 1])
    assert read_again(model, tmp_path).predict(COLUMNS).tolist() == COLUMNS[:, 1].tolist()


@pytest.mark.parametrize(
    ("encoder", "state"),
    [
        (ENCODERS[0], {"_n_features_outs": [1, 1, 1]}),
        (ENCODERS[1], {"_drop_idx_after_grouping": np.array([2**30, 0, 0], dtype=object)}),
        (ENCODERS[3], {"_default_to_infrequent_mappings": [np.array([2**30] * 7), None, None]}),
    ],
)
def test_an_encoder_whose_columns_are_not_those_of_its_categories_needs_to_be_vouched_for(encoder, state, tmp_path):
    model = clone(encoder).fit(COLUMNS)
    vars(model).update(state)
    with pytest.raises(InputError, match=r"need your trust: sklearn.preprocessing._encoders.OneHotEncoder;"):
        read_again(model, tmp_path)


BELIEVING = {
    "sklearn.neighbors._classification.KNeighborsClassifier": KNeighborsClassifier(1, algorithm="brute"),
    "sklearn.svm._classes.SVC": SVC(),
    "sklearn.cluster._kmeans.MiniBatchKMeans": MiniBatchKMeans(2, n_init=1),
    "sklearn.cluster._kmeans.KMeans": KMeans(2, n_init=1),
    "sklearn.feature_extraction._dict_vectorizer.DictVectorizer": DictVectorizer(),
    "sklearn.feature_extraction._hash.FeatureHasher": FeatureHasher(),
}


@pytest.mark.parametrize("name", list(BELIEVING))
def test_models_whose_compiled_code_believes_their_state_need_to_be_vouched_for(name, tmp_path):
    rows = [{"red": 1}, {"blue": 2}] if "feature_extraction" in name else np.eye(2)
    model = clone(BELIEVING[name]).fit(rows, [0, 1])
    with pytest.raises(InputError, match=f"need your trust: {name};"):
        read_again(model, tmp_path)
    assert vars(read_again(model, tmp_path, trusted=[name])).keys() == vars(model).keys()


def test_a_sparse_matrix_in_a_model_needs_to_be_vouched_for(tmp_path):
    model = LogisticRegression().fit(np.eye(3), ["a", "b", "c"]).sparsify()
    with pytest.raises(InputError, match=r"need your trust: scipy.sparse._csr.csr_matrix;"):
        read_again(model, tmp_path)


@pytest.mark.parametrize("wild", [{"indices": 2**30}, {"indices": -1}, {"indptr": [0, 2**63 - 1, -2, 3]}])
def test_a_sparse_matrix_that_poses_as_a_trusted_type_is_looked_at(wild, tmp_path):
    model = LogisticRegression().fit(np.eye(3), ["a", "b", "c"])
    model.sparsify()
    name = "scipy.sparse._csr.csr_matrix"

    def pose(schema, members):
        node = schema["content"]["content"]["coef_"]
        node |= {"__module__": "scipy.sparse._matrix", "__class__": "spmatrix"}
        with np.load(io.BytesIO(members[node["file"]])) as file:
            arrays = {**file}
        for entry, value in wild.items():
            arrays[entry] = np.broadcast_to(np.asarray(value, dtype=np.int64), arrays[entry].shape)
        content = io.BytesIO()
        np.savez(content, **arrays)
        members[node["file"]] = content.getvalue()

    with pytest.raises(ValueError, match=f"need your trust: {name};|cannot be read by skops"):
        read_again(model, tmp_path, pose)


# ------------------------------------------------------------- scikit-learn's state, which it uses as it stands

NEIGHBOURS = [
    KNeighborsClassifier(algorithm="brute", metric="manhattan"),
    RadiusNeighborsClassifier(5.0, algorithm="brute", metric="manhattan"),
]


@pytest.mark.parametrize("neighbours", NEIGHBOURS, ids=lambda model: type(model).__name__)
def test_neighbours_need_to_be_vouched_for_as_they_believe_the_classes_of_their_rows(neighbours, tmp_path):
    X, sets = feature_rows()
    model = neighbours.fit(X, sets.to_mask().argmax(axis=1))
    with pytest.raises(InputError, match=f"need your trust: .*{type(model).__name__};"):
        read_again(model, tmp_path)
    name = f"{type(model).__module__}.{type(model).__name__}"
    assert np.array_equal(read_again(model, tmp_path, trusted=[name]).predict(X), model.predict(X))


def test_neighbours_by_a_metric_with_a_matrix_need_to_be_vouched_for_as_scipy_believes_its_size(tmp_path):
    X, sets = feature_rows()
    asked = {"algorithm": "brute", "metric": "mahalanobis", "metric_params": {"VI": np.eye(3)}}
    model = KNeighborsClassifier(**asked).fit(X, sets.to_mask().argmax(axis=1))
    with pytest.raises(InputError, match=r"need your trust: .*KNeighborsClassifier;"):
        read_again(model, tmp_path)


@pytest.mark.parametrize("kind", [KMeans, MiniBatchKMeans])
def test_k_means_needs_to_be_vouched_for_as_it_believes_the_size_of_its_centres(kind, tmp_path):
    model = kind(3, n_init=1, random_state=0).fit(feature_rows()[0])
    with pytest.raises(InputError, match=f"need your trust: sklearn.cluster._kmeans.{kind.__name__};"):
        read_again(model, tmp_path)
