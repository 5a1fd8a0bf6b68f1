"""What a model's file may hold is listed; all else is loaded where somebody vouches for it."""

import json
import re
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectFromModel, SelectKBest, SelectPercentile, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    RidgeClassifier,
    RidgeClassifierCV,
    SGDClassifier,
)
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from setwise.errors import InputError
from setwise.learn import EMClassifier
from setwise.learn.needed_trust import SAFE
from tests.saved_files import attributes, entries, put, read_skops, skops_file

Y = np.repeat([0, 1, 2], 40)
X = np.abs(2 * np.eye(3)[Y] + np.random.default_rng(0).normal(size=(120, 3)))
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(t=np.where(X[:, 0] > 1, "x", "z"))
GAPS = pd.DataFrame(np.where(np.arange(360).reshape(120, 3) % 11, X, np.nan))
TEXTS, TOPICS = ["red apple", "red rose", "blue sea", "blue sky"] * 5, ["warm", "warm", "cold", "cold"] * 5
LINEAR = LogisticRegression()

CLASSIFIERS = [
    *(
        LINEAR,
        LogisticRegressionCV(Cs=2),
        SGDClassifier(loss="log_loss"),
    ),
    *(SGDClassifier(loss="modified_huber"), DummyClassifier(), GaussianNB(), BernoulliNB(), MultinomialNB()),
    *(ComplementNB(), CategoricalNB(), LinearDiscriminantAnalysis(), QuadraticDiscriminantAnalysis()),
    *(MLPClassifier((3,), max_iter=900, tol=1e-2), MLPClassifier((3,), solver="sgd", max_iter=900, tol=1e-2)),
    *(CalibratedClassifierCV(Perceptron()), CalibratedClassifierCV(LinearSVC(), method="isotonic")),
    CalibratedClassifierCV(RidgeClassifier(), ensemble=False),
    BaggingClassifier(GaussianNB(), n_estimators=2),
    AdaBoostClassifier(n_estimators=2),
    VotingClassifier([("a", LINEAR), ("b", RandomForestClassifier(2))], voting="soft"),
    StackingClassifier([("a", LINEAR), ("b", DecisionTreeClassifier())], cv=2),
    *(EMClassifier(LINEAR), FrozenEstimator(GaussianNB())),
]
STEPS = [
    *(StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler(), Normalizer(), Binarizer(), PCA(2)),
    *(QuantileTransformer(n_quantiles=9), PowerTransformer(), PolynomialFeatures(3, interaction_only=True)),
    *(KBinsDiscretizer(3, strategy="uniform"), TruncatedSVD(2), VarianceThreshold(), OrdinalEncoder()),
    *(
        SelectKBest(k=2),
        SelectPercentile(),
        SelectFromModel(RandomForestClassifier(2)),
        FunctionTransformer(np.sqrt),
    ),
    make_union(FunctionTransformer(np.log1p, np.expm1), TargetEncoder(cv=2)),
]


def same_answers(model, rows, folder):
    again = read_skops(skops_file(model), folder)
    method = "predict_proba" if hasattr(model, "predict_proba") else "decision_function"
    assert np.array_equal(getattr(again, method)(rows), getattr(model, method)(rows))


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("model", CLASSIFIERS, ids=repr)
def test_listed_classifiers_need_no_trust(model, tmp_path):
    rows = (X > 1).astype(int) if isinstance(model, CategoricalNB) else X
    same_answers(
        model.estimator.fit(rows, Y) if isinstance(model, FrozenEstimator) else model.fit(rows, Y), rows, tmp_path
    )


@pytest.mark.parametrize("model", [RidgeClassifierCV(), Perceptron(), LinearSVC()], ids=repr)
def test_classifiers_without_probabilities_come_back_where_others_hold_them(model, tmp_path):
    same_answers(model.fit(X, Y), X, tmp_path)


@pytest.mark.parametrize("step", STEPS, ids=repr)
def test_listed_steps_before_a_classifier_need_no_trust(step, tmp_path):
    rows = X.round() if isinstance(step, OrdinalEncoder) else X
    same_answers(make_pipeline(step, LINEAR).fit(rows, Y), rows, tmp_path)


def test_columns_of_numbers_and_text_with_gaps_need_no_trust(tmp_path):
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    by_type = make_column_transformer(
        (numbers, make_column_selector(dtype_include=np.number)), (OneHotEncoder(), ["t"]), n_jobs=1
    )
    by_name = make_column_transformer(
        (OneHotEncoder(), ["t"]), (SimpleImputer(), slice(0, 2)), remainder="passthrough"
    )
    for columns in (by_type, by_name):
        same_answers(make_pipeline(columns, LINEAR).fit(FRAME, Y), FRAME, tmp_path)
    same_answers(make_pipeline(numbers, LINEAR).fit(GAPS, Y), GAPS, tmp_path)


def test_the_page_on_model_directories_lists_what_needs_no_trust():
    page = Path(__file__).parents[2].joinpath("docs/model-directory.md").read_text("utf-8")
    told = re.findall(r"`(\w+)`", page.partition("## Loaded without")[2].partition("\nOf trees")[0])
    inner = {"AdamOptimizer", "SGDOptimizer", "Interval", "TreePredictor"}
    inner |= {"HalfBinomialLoss", "HalfMultinomialLoss", "LogitLink", "MultinomialLogit"}
    listed = {name.rpartition(".")[2] for name in SAFE}
    assert sorted(told) == sorted(name for name in listed - inner if not name.startswith("_"))


def test_every_listed_name_is_that_of_a_class():
    places = [name.rpartition(".") for name in SAFE]
    absent = {name for module, _, name in places if not hasattr(import_module(module), name)}
    assert absent <= {"_RemainderColsList", "_TemperatureScaling"}  # until scikit-learn 1.6, and from 1.8 on


# --------------------------------------------------------------------------------------------- what is not listed


def named(error):
    return set(error.value.problem.partition("need your trust: ")[2].split(", "))


UNLISTED = {
    "sklearn.cluster._kmeans.KMeans": KMeans(2, n_init=1),
    "sklearn.cluster._kmeans.MiniBatchKMeans": MiniBatchKMeans(2, n_init=1),
    "sklearn.feature_extraction._dict_vectorizer.DictVectorizer": DictVectorizer(),
    "sklearn.feature_extraction._hash.FeatureHasher": FeatureHasher(),
    "sklearn.neighbors._classification.KNeighborsClassifier": KNeighborsClassifier(1, algorithm="brute"),
    "sklearn.neighbors._classification.RadiusNeighborsClassifier": RadiusNeighborsClassifier(
        5.0, algorithm="brute"
    ),
    "sklearn.svm._classes.SVC": SVC(),
}


@pytest.mark.parametrize("name", list(UNLISTED))
def test_models_whose_compiled_code_believes_their_state_need_to_be_vouched_for(name, tmp_path):
    rows = [{"red": 1}, {"blue": 2}] * 2 if "feature_extraction" in name else np.eye(4)
    content = skops_file(UNLISTED[name].fit(rows, [0, 1, 0, 1]))
    with pytest.raises(InputError) as error:
        read_skops(content, tmp_path)
    assert named(error) == {name}
    assert vars(read_skops(content, tmp_path, [name])).keys() == vars(UNLISTED[name]).keys()


def test_all_types_that_need_to_be_vouched_for_are_named_at_once(tmp_path):
    content = skops_file(GradientBoostingClassifier(n_estimators=1).fit(X, Y))
    with pytest.raises(InputError) as error:
        read_skops(content, tmp_path)
    assert named(error) == {
        "sklearn.ensemble._gb.GradientBoostingClassifier",
        "sklearn.tree._classes.DecisionTreeRegressor",
        "sklearn.tree._tree.Tree",
    }
    assert read_skops(content, tmp_path, list(named(error))).predict(X).tolist()


def test_texts_are_read_by_a_vectorizer_that_somebody_vouches_for(tmp_path):
    name = "sklearn.feature_extraction.text.TfidfVectorizer"
    content = skops_file(make_pipeline(TfidfVectorizer(), LINEAR).fit(TEXTS, TOPICS))
    with pytest.raises(InputError) as error:
        read_skops(content, tmp_path)
    assert named(error) == {name}
    assert read_skops(content, tmp_path, [name]).predict(TEXTS).tolist() == TOPICS


def kernel(a, b):
    return a @ b.T


CALLED = {
    "a kernel": (SVC(kernel=kernel), "tests.learn.test_needed_trust.kernel"),
    "a function in place of a step": (
        make_pipeline(FunctionTransformer(kernel), LINEAR),
        "tests.learn.test_needed_trust.kernel",
    ),
    "a lambda": (BaggingClassifier(FunctionTransformer(lambda X: X)), "tests.learn.test_needed_trust.<lambda>"),
    "a method": (FunctionTransformer(LINEAR.fit), "sklearn.linear_model._logistic.LogisticRegression"),
    "a function of the system": (FunctionTransformer(eval), "builtins.eval"),
    "a function with options": (FunctionTransformer(partial(kernel, 1)), "tests.learn.test_needed_trust.kernel"),
    "a way to count": (CountVectorizer(analyzer=str.split), "sklearn.feature_extraction.text.CountVectorizer"),
    "a kernel in a process": (
        GaussianProcessClassifier(),
        "sklearn.gaussian_process._gpc.GaussianProcessClassifier",
    ),
}


@pytest.mark.parametrize("attack", CALLED)
def test_what_a_parameter_calls_needs_to_be_vouched_for(attack, tmp_path):
    model, name = CALLED[attack]
    with pytest.raises(ValueError, match="need your trust|cannot be read by skops") as error:
        read_skops(skops_file(model), tmp_path)
    assert name in str(error.value)


def test_a_step_that_is_a_function_needs_to_be_vouched_for(tmp_path):
    def change(schema, _):
        attributes(schema, "steps")[0]["content"][1] = {
            "__class__": "system", "__module__": "os", "__loader__": "FunctionNode"
        }  # fmt: skip

    with pytest.raises(InputError) as error:
        read_skops(skops_file(make_pipeline(StandardScaler(), LINEAR).fit(X, Y), change), tmp_path)
    assert named(error) == {"os.system"}


@pytest.mark.parametrize(
    "kind", ["ReduceNode", "ConstructorFromReduceNode", "MethodNode", "ListNode", "TypeNode", "Other"]
)
def test_a_listed_name_is_listed_for_one_kind_of_entry(kind, tmp_path):
    def change(schema, _):
        next(entries(schema, "StandardScaler"))["__loader__"] = kind

    with pytest.raises(ValueError, match="need your trust: .*StandardScaler|cannot be read by skops"):
        read_skops(skops_file(make_pipeline(StandardScaler(), LINEAR).fit(X, Y), change), tmp_path)


@pytest.mark.parametrize("named", [("csr_matrix", "scipy.sparse._csr"), ("spmatrix", "scipy.sparse._matrix")])
def test_a_sparse_matrix_in_a_model_needs_to_be_vouched_for(named, tmp_path):
    def change(schema, _):
        attributes(schema)["coef_"] |= {"__class__": named[0], "__module__": named[1]}

    model = LogisticRegression().fit(np.eye(3), ["a", "b", "c"]).sparsify()
    with pytest.raises(InputError, match=rf"need your trust: {named[1]}.{named[0]};"):
        read_skops(skops_file(model, change), tmp_path)


# ------------------------------------------------------------------------------------- files that say two things


def test_two_objects_with_one_id_are_refused(tmp_path):
    def change(schema, _):
        attributes(schema)["intercept_"]["__id__"] = attributes(schema)["coef_"]["__id__"]

    with pytest.raises(ValueError, match="two different objects have one id"):
        read_skops(skops_file(LogisticRegression().fit(X, Y), change), tmp_path)


def test_an_object_that_holds_itself_often_is_refused_at_once(tmp_path):
    """Followed to the end it would be 2^60 objects."""

    def change(schema, _):
        entry = attributes(schema)["C"]
        put(entry, 1.0)
        for number in range(60):
            listed = [dict(entry, __id__=number + 10**20), {"__id__": number + 10**20}]
            entry = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": listed}
        attributes(schema)["C"] = entry

    with pytest.raises(ValueError, match="two different objects have one id|cannot be read"):
        read_skops(skops_file(LogisticRegression().fit(X, Y), change), tmp_path)


def test_names_of_attributes_are_as_many_as_attributes(tmp_path):
    """Attributes without a name are dropped: those that the checks compare might be."""

    def change(schema, _):
        del schema["content"]["key_types"]["content"][5:]

    with pytest.raises(ValueError, match="cannot be read by skops"):
        read_skops(skops_file(RandomForestClassifier(2).fit(X, Y), change), tmp_path)


@pytest.mark.filterwarnings("ignore:Trying to unpickle estimator")  # made by hand, these models name no version
@pytest.mark.parametrize("depth", [50, 400, 100_000])
def test_models_in_models_in_models_are_loaded_or_refused_in_a_sentence(depth, tmp_path):
    attribute = {"__class__": "str", "__module__": "builtins", "__loader__": "TypeNode"}
    names = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": [attribute]}
    state = {"__class__": "dict", "__module__": "builtins", "__loader__": "DictNode", "key_types": names}
    frozen = {"__class__": "FrozenEstimator", "__module__": "sklearn.frozen._frozen", "__loader__": "ObjectNode"}
    before, after = json.dumps(frozen | {"content": state | {"content": {"estimator": "@"}}}).split('"@"')

    end = (after * depth).removesuffix("}") + ', "protocol": 2}'
    content = skops_file(GaussianNB().fit(X, Y), text=lambda text: before * depth + text + end)
    if depth == 50:
        assert np.array_equal(read_skops(content, tmp_path).predict(X), GaussianNB().fit(X, Y).predict(X))
    else:
        with pytest.raises(ValueError, match=r"cannot be read by skops \(.*recursion"):
            read_skops(content, tmp_path)


@pytest.mark.parametrize("protocol", [0, 1, 3, True, "2", None])
def test_other_formats_of_skops_are_refused(protocol, tmp_path):
    def change(schema, _):
        schema["protocol"] = protocol

    with pytest.raises(ValueError, match="of skops, and only 2 is known|cannot be read by skops"):
        read_skops(skops_file(LogisticRegression().fit(X, Y), change), tmp_path)
