"""The file: complete in itself, small, honest about samples, and deaf to what labels say."""

import html
import json
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import setwise
from setwise import ConformalClassifier, CrossConformalClassifier, MisuseWarning, conformalize
from setwise.ranks import clopper_pearson
from setwise.report import build_report, report_model, report_sets, reports
from setwise.report.annotator_section import annotator_facts
from setwise.report.reported_rows import Rows
from tests.conftest import candidates_from, labels_from, simplex
from tests.report.conftest import HOSTILE, hostile_rows
from tests.streams.conftest import CLASSES, done, rows


@pytest.fixture
def small(rng):
    P = simplex(rng, 300, 5)
    y = labels_from(rng, P)
    S = setwise.LabelSets.from_mask(candidates_from(rng, y, 5))
    return setwise.conformalize(P[:150], S[:150]), P[150:], y[150:], S[150:]


def data_of(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL).group(1)
    )


def test_a_row_without_candidates_is_shown_in_the_category_that_its_set_comes_from(small):
    _, P, _, S = small
    full = S[:100].to_mask().copy()
    full[::3] = True
    by_size = setwise.conformalize(P[:100], full, by="size")
    new = S[100:].to_mask().copy()
    new[0] = False
    codes = reports._categories(by_size, P[100:], Rows.read(50, S.vocabulary, candidates=new))[1]
    assert codes[0] == by_size.category_names.index(5)


def test_rows_that_differ_are_promised_nothing_and_their_names_stay_text(tmp_path):
    P, _, candidates = hostile_rows(400)
    calibration = setwise.conformalize(P[:200], candidates[:200])
    new = P[200:][P[200:].argmax(axis=1) != 0]
    text = build_report(tmp_path / "r.html", calibration, new).read_text(encoding="utf-8")
    assert "These rows differ from the calibration rows" in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&#39; is predicted for 0.0% of the new rows" in text
    assert HOSTILE not in text
    facts = data_of(tmp_path / "r.html")["facts"]
    assert {fact["promised"] for fact in facts} == {None}
    assert all("bracket" not in fact for fact in facts)
    plain = build_report(tmp_path / "s.html", calibration, new, comparison=None).read_text(encoding="utf-8")
    assert '<h2 id="comparison">' not in plain


def test_every_part_is_there(digits_report):
    text = digits_report.read_text(encoding="utf-8")
    for part in (
        "verdict",
        "explore",
        "parts",
        "comparison",
        "candidates",
        "examples",
        "settings",
    ):
        assert f'<h2 id="{part}"' in text
    assert "data:image/png;base64," in text
    assert f"<dd>{setwise.__version__}</dd>" in text


def test_it_is_complete_and_small(digits_report):
    text = digits_report.read_text(encoding="utf-8")
    assert digits_report.stat().st_size < 3_000_000
    own = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", own)
    assert "url(" not in own
    assert "default-src 'none'" in own


def test_hostile_names_leave_no_place(hostile_report):
    text = hostile_report.read_text(encoding="utf-8")
    assert HOSTILE not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "onerror=alert(3)>" not in text
    assert "{{ 7*7 }}" in text
    assert text.count("</script>") == 3
    assert text.index('id="annotators"') < text.index(
        '<th scope="row">&lt;script&gt;', text.index('id="annotators"')
    )
    names = {row["name"] for row in data_of(hostile_report)["parts"]["class"]["rows"]}
    assert HOSTILE in names


def test_errors_among_sets_of_one_label_stand_beside_coverage(small, tmp_path):
    _, P, y, _ = small
    calibration, P, y = setwise.conformalize(P[:75], y[:75]), P[75:], y[75:]
    truth = [None if i % 3 == 0 else label for i, label in enumerate(y.tolist())]
    data = data_of(build_report(tmp_path / "r.html", calibration, P, y=truth, confidence_level=0.5))
    for fact in data["facts"][::12]:
        sets = calibration.predict_set(P, fact["level"])
        alone = [i for i in np.flatnonzero(sets.sizes == 1) if truth[i] is not None]
        if not alone:
            assert fact["wrong"] == ""
            continue
        wrong = int((~sets.contains(y))[alone].sum())
        assert fact["wrong"] == f"{wrong / len(alone):.1%}"
        low, high = clopper_pearson(wrong, len(alone), 0.05)
        assert fact["wrong_interval"] == f"{low:.1%} to {high:.1%} (95%)"
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Wrong among these" in text
    assert f'data-fact="wrong">{data["facts"][data["at"]]["wrong"]}</dd>' in text


def test_numbers_in_the_page_are_those_of_the_library(small, tmp_path):
    calibration, P, y, S = small
    by = np.where(P[:, 0] > 0.2, "high", "low")
    made = build_report(tmp_path / "r.html", calibration, P, y=y, candidates=S, by=by, confidence_level=0.85)
    data = data_of(made)
    assert data["facts"][data["at"]]["text"] == "0.85"
    for fact in data["facts"][:99:9]:
        level = fact["level"]
        result = setwise.evaluate(calibration.predict_set(P, level), y, by=by)
        assert fact["mean_size"] == f"{result['mean_size']:.2f}"
        assert fact["coverage"] == f"{result['coverage']:.1%}"
        assert fact["seen"] == pytest.approx([result["coverage"], *result["coverage_interval"]], rel=1e-5)
        assert fact["proved"] == pytest.approx(calibration.bracket(level), rel=1e-5)
        assert fact["promised"] == calibration.guarantee(level).promised
        at = data["facts"].index(fact)
        for row in data["parts"]["category"]["rows"]:
            cell = result["by_category"][row["name"]]
            assert row["cells"][at][0] == pytest.approx(cell["coverage"], abs=1e-4)
            assert row["cells"][at][3] == f"{cell['coverage']:.1%}"
            assert row["cells"][at][5] == f"{cell['mean_size']:.2f}"


@pytest.mark.parametrize("types", [("float32", "float64"), ("float64", "float32"), ("float16", "float16")])
def test_probabilities_of_another_precision_give_the_sets_that_are_predicted(rng, tmp_path, types):
    first, then = types
    P = rng.integers(1, 6, (900, 4))
    P = P / P.sum(axis=1, keepdims=True)
    y = labels_from(rng, P)
    calibration = setwise.conformalize(P[:300].astype(first), y[:300], conformity_score="aps", random_state=0)
    new = P[300:].astype(then)
    data = data_of(build_report(tmp_path / "r.html", calibration, new, y=y[300:]))
    for fact in data["facts"][9:99:9]:
        assert fact["mean"] == pytest.approx(calibration.predict_set(new, fact["level"]).sizes.mean())
    predicted = setwise.conformalize(P[:300].astype(first), y[:300], by="predicted")
    build_report(tmp_path / "p.html", predicted, new, y=y[300:])


def test_votes_prove_no_bracket(small, tmp_path):
    _, P, _, S = small
    calibration = setwise.conformalize(P, setwise.Votes.from_lists(S.to_lists(), range(5)))
    assert "The calibration rows show that" not in build_report(tmp_path / "r.html", calibration, P).read_text(
        "utf-8"
    )


def test_votes_bring_a_section_on_annotators_with_the_numbers_of_the_library(small, rng, tmp_path):
    calibration, P, y, S = small
    said = np.where(rng.random((150, 4)) < [0.9, 0.8, 0.7, 0.0], y[:, None], rng.integers(0, 5, (150, 4)))
    votes = setwise.Votes.from_matrix(said, classes=range(5), annotators=["ann", "bob", "cyd", "dan"])
    whole = build_report(tmp_path / "own.html", calibration, P, candidates=votes).read_text(encoding="utf-8")
    whole = html.unescape(whole)
    found = setwise.annotators(votes, probabilities=P)
    assert "600 answers on 150 rows by 4 annotators." in whole
    for head, text in [*found.facts, *found.basis]:
        assert f"<strong>{head}:</strong> {text}" in whole
    lines = re.findall(r'<tr><th scope="row">(\w+)</th><td class="number" data-value="150">150</td>.*?</tr>', whole)
    assert lines == [found.names[j] for j in found.worst_first]
    assert f">{found.agreement[0]:.1%}</td>" in whole
    assert '95% interval</th><th scope="col">Remarks' not in whole
    assert '<span class="flag">cannot be told from guessing</span>' in whole
    cells = [float(text) for text in re.findall(r'style="--tint: [\d.]+">(\d+)</td>', whole)]
    np.testing.assert_allclose(cells, 100 * found.confusion().ravel(), atol=0.5)
    assert "above, where the consensus is that class" in whole
    other = build_report(tmp_path / "other.html", calibration, P, candidates=S, votes=votes)
    assert setwise.annotators(votes).facts[0][1] in html.unescape(other.read_text(encoding="utf-8"))
    known = build_report(tmp_path / "known.html", calibration, P, y=y, candidates=votes).read_text(encoding="utf-8")
    assert f">{(said[:, 0] == y).mean():.1%}</td>" in known
    assert "the 150 rows were drawn at random" in known
    nameless = setwise.Votes.from_counts(votes.counts)
    text = build_report(tmp_path / "nameless.html", calibration, P, votes=nameless).read_text(encoding="utf-8")
    assert "nobody is named" in text
    assert 'class="sortable"' not in text
    assert 'id="annotators"' not in build_report(tmp_path / "n.html", calibration, P).read_text(encoding="utf-8")


def test_of_many_classes_those_that_annotators_confuse_are_shown(rng, tmp_path):
    y = rng.integers(0, 40, 2000)
    said = np.repeat(y[:, None], 3, axis=1)
    said[y == 31] = np.where(rng.random((int((y == 31).sum()), 3)) < 0.3, 7, 31)
    votes = setwise.Votes.from_matrix(said, classes=range(40))
    facts = annotator_facts(votes)
    assert (facts["confusion"]["total"], len(facts["confusion"]["names"])) == (40, 16)
    assert {"7", "31"} <= set(facts["confusion"]["names"])
    assert facts["confusion"]["pairs"][0]["labels"] == ["31", "7"]


def test_without_truth_it_shows_the_bracket_and_no_coverage(small, tmp_path):
    calibration, P, _, _ = small
    made = build_report(tmp_path / "r.html", calibration, P, y=[None] * len(P))
    data = data_of(made)
    assert "coverage" not in data["facts"][0]
    low, high = calibration.bracket(0.9)
    assert data["facts"][data["at"]]["bracket"] == f"{low:.1%} to {high:.1%}"
    text = made.read_text(encoding="utf-8")
    assert "No true label is given" in text
    assert "Missed" not in text


def test_many_rows_are_sampled_and_it_says_so(small, tmp_path, monkeypatch):
    calibration, P, y, S = small
    monkeypatch.setattr(reports, "MOST_LABELS", 500)
    made = build_report(tmp_path / "r.html", calibration, P, y=y, candidates=S, by=y.astype(str))
    text = made.read_text(encoding="utf-8")
    assert "figures come from 100 rows drawn at random of 150" in text
    kept = np.sort(np.random.default_rng(0).choice(150, 100, replace=False))
    mean = calibration.predict_set(P[kept], 0.9).sizes.mean()
    data = data_of(made)
    assert data["facts"][data["at"]]["mean_size"] == f"{mean:.2f}"


def test_examples_are_the_rows_they_name(small, tmp_path):
    calibration, P, y, S = small
    made = build_report(tmp_path / "r.html", calibration, P, y=y, candidates=S)
    text = made.read_text(encoding="utf-8")
    sets, p = calibration.predict_set(P, 0.9), calibration.predict_p(P)
    blocks = re.findall(r'<tr role="row" data-sizes.*?</tr>', text, re.DOTALL)
    assert len(blocks) > 20
    for block in blocks:
        row = int(re.search(r"row (\d+)</span>", block).group(1))
        shown = re.findall(r'<li data-e="\d+"(?: class="true")?>(\d)\s*<small>([\d.<]+|&lt;0.001)</small>', block)
        assert {int(label) for label, _ in shown} == set(sets[row])
        for label, value in shown:
            assert value == f"{p[row, int(label)]:.3f}"
        assert f"<strong>{y[row]}</strong>" in block


def test_by_category_weights_and_groups_are_reported(rng, tmp_path):
    P = simplex(rng, 300, 4)
    y = labels_from(rng, P)
    by = np.where(np.arange(300) % 2, "odd", "even")
    calibration = setwise.conformalize(P[:150], y[:150], by=by[:150])
    text = build_report(tmp_path / "by.html", calibration, P[150:], y=y[150:], by=by[150:]).read_text("utf-8")
    assert "The guarantee holds for each category" in text
    weight = rng.random(300) + 0.5
    weighted = setwise.conformalize(P[:150], y[:150], sample_weight=weight[:150])
    made = build_report(tmp_path / "w.html", weighted, P[150:], y=y[150:], sample_weight=weight[150:])
    mean = weighted.predict_set(P[150:], 0.9, sample_weight=weight[150:]).sizes.mean()
    assert data_of(made)["facts"][80]["mean_size"] == f"{mean:.2f}"
    grouped = setwise.conformalize(P[:150], y[:150], groups=np.arange(150) // 3)
    silent = data_of(build_report(tmp_path / "g.html", grouped, P[150:], y=y[150:]))
    assert all(fact["interval"] == "unknown" and fact["seen"][1:] == [None, None] for fact in silent["facts"])
    said = build_report(tmp_path / "g.html", grouped, P[150:], y=y[150:], by=by[150:], groups=np.arange(150) // 3)
    result = setwise.evaluate(grouped.predict_set(P[150:], 0.9), y[150:], groups=np.arange(150) // 3)
    model = setwise.ConformalClassifier(GaussianNB(), calibration_size=0.5, random_state=0)
    model.fit(P[:150], y[:150], groups=np.arange(150) // 3)
    shown = data_of(report_model(tmp_path / "m.html", model, P[150:], y[150:], groups=np.arange(150) // 3))
    assert all(fact["interval"] != "unknown" for fact in shown["facts"])
    fact = data_of(said)["facts"][80]
    assert fact["seen"] == pytest.approx([result["coverage"], *result["coverage_interval"]], rel=1e-5)
    assert all(len(row["cells"]) for row in data_of(said)["parts"]["category"]["rows"])


@pytest.mark.parametrize("by", ["predicted", "size"])
def test_categories_that_rows_bring_along_are_found(small, tmp_path, by):
    _, P, y, S = small
    calibration = setwise.conformalize(P[:100], S[:100], by=by)
    data = data_of(build_report(tmp_path / "r.html", calibration, P[100:], y=y[100:], candidates=S[100:]))
    given = {"by": S[100:].sizes} if by == "size" else {}  # candidates themselves would narrow the sets
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", setwise.SmallCalibrationWarning)  # some categories are small
        sets = calibration.predict_set(P[100:], 0.9, **given)
    assert data["facts"][data["at"]]["mean_size"] == f"{sets.sizes.mean():.2f}"
    assert len(data["parts"]["category"]["rows"]) > 1


def test_classes_come_worst_first_with_what_helps_them(rng, tmp_path):
    y, new = (np.repeat(np.arange(12), counts) for counts in ([300, *[30] * 10, 4], [60] * 12))
    P, Q = (0.5 * np.eye(12)[y] + rng.dirichlet(np.ones(12), len(y)) for y in (y, new))
    P, Q = (part * [1, *[0.5] * 10, 0.1] / (part @ [1, *[0.5] * 10, 0.1])[:, None] for part in (P, Q))
    pages = {}
    for by in (None, "label"):
        made = setwise.conformalize(P, y, by=by)
        path = build_report(tmp_path / "r.html", made, Q, y=new, comparison=None)
        pages[by] = path.read_text(encoding="utf-8")
        rows = data_of(path)["parts"]["class"]["rows"]
        found = setwise.evaluate(made.predict_set(Q), new)["by_class"]
        assert [row["name"] for row in rows] == [*map(str, found)][:10]
    assert "the 10 of 12 that cover least" in pages[None]
    assert "Use by=&#34;label&#34; for a guarantee within each class." in pages[None]
    assert "The guarantee holds for each class." in pages["label"]
    assert "Class 11 has 4 calibration rows: 5 more are needed for a threshold at 0.9." in pages["label"]
    assert "Covered less often" not in pages["label"]


def test_sets_of_anybody_can_be_reported(tmp_path):
    sets = setwise.LabelSets.from_lists([["cat"], [], ["cat", "dog"]], classes=["cat", "dog", "owl"])
    made = report_sets(tmp_path / "r.html", sets, y=["cat", "dog", "cat "], candidates=sets | sets.fill_empty())
    text = made.read_text(encoding="utf-8")
    assert "1 of 3 sets contain the true label" in text
    assert "count as missed (1 of them); the first is &#39;cat &#39; (row 2)." in text
    assert "No guarantee came with these sets" in text
    assert "slider" not in text.split("<script")[0].split("</style>")[1]
    assert 'id="level"' not in text
    assert "at confidence" not in text.split("<script")[0]
    stated = report_sets(tmp_path / "s.html", sets, y=["cat", "dog", "owl"], confidence_level=0.8)
    assert "in no set at all" not in stated.read_text(encoding="utf-8")
    assert 'At confidence <span data-fact="text">0.80' in stated.read_text(encoding="utf-8")


def test_a_model_reports_on_itself(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    X = pd.DataFrame(2 * np.eye(3)[y] + rng.normal(size=(400, 3)), columns=["<b>", "w", "h"])
    mask = (np.eye(3)[y] + (rng.random((400, 3)) < 0.1)) > 0
    model = setwise.ConformalClassifier(GaussianNB(), random_state=0).fit(X[:300], mask[:300])
    made = report_model(tmp_path / "r.html", model, X[300:], y[300:], mask[300:], confidence_level=0.8)
    mean = model.predict_set(X[300:], 0.8).sizes.mean()
    assert data_of(made)["facts"][60]["mean_size"] == f"{mean:.2f}"
    cross = setwise.CrossConformalClassifier(GaussianNB(), random_state=0).fit(X[:300], mask[:300])
    made = report_model(tmp_path / "c.html", cross, X[300:], y[300:])
    fact = data_of(made)["facts"][90]
    assert fact["mean_size"] == f"{cross.predict_set(X[300:], 0.95).sizes.mean():.2f}"
    assert fact["promised"] == cross.guarantee(0.95).promised < 0.95


def test_mistakes_are_named(small, tmp_path):
    calibration, P, y, _ = small
    with pytest.raises(ValueError, match="y: 3 rows for 150 rows"):
        build_report(tmp_path / "r.html", calibration, P, y=y[:3])
    with pytest.raises(ValueError, match="no rows to report on"):
        build_report(tmp_path / "r.html", calibration, P[:0])
    with pytest.raises(ValueError, match="images: expected"):
        build_report(tmp_path / "r.html", calibration, P, images=np.zeros((150, 4)))
    with pytest.raises(ValueError, match="without weights"):
        build_report(tmp_path / "r.html", calibration, P, sample_weight=np.ones(150))
    by_parity = setwise.conformalize(P, y, by=np.arange(150) % 2)
    with pytest.raises(ValueError, match="use by="):
        build_report(tmp_path / "r.html", by_parity, P)
    with pytest.raises(ValueError, match="use candidates="):
        build_report(tmp_path / "r.html", setwise.conformalize(P, y, by="size"), P)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_a_hundred_thousand_rows_of_a_thousand_classes_stay_small(tmp_path):
    rng = np.random.default_rng(0)
    P = rng.exponential(size=(100_000, 1000)).astype(np.float32) ** 4
    P /= P.sum(axis=1, keepdims=True)
    y = P.argmax(axis=1)
    calibration = setwise.conformalize(P[:10_000], y[:10_000])
    made = build_report(tmp_path / "r.html", calibration, P, y=y, candidates=y)
    assert made.stat().st_size < 5_000_000
    assert "drawn at random of 100,000" in made.read_text(encoding="utf-8")


# ------------------------------------------------------------------------------------------ rows that were used


BOUNDS = re.compile(r'"bound": ?"([^"]*)"')  # at each level of the slider


@pytest.mark.parametrize(
    ("kind", "options"),
    [(ConformalClassifier, {}), (ConformalClassifier, {"by": "predicted"}), (CrossConformalClassifier, {})],
)
def test_a_report_on_rows_that_the_model_knows_promises_nothing(kind, options, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 240)
    X = 2 * np.eye(3)[y] + rng.normal(size=(240, 3))
    model = kind(LogisticRegression(), random_state=0).fit(X, y, **options)
    with pytest.warns(MisuseWarning, match="were learned from or calibrated on"):
        page = report_model(tmp_path / "r.html", model, X, y).read_text(encoding="utf-8")
    assert {*BOUNDS.findall(page)} == {"nothing"}
    assert "were learned from or calibrated on" in page
    new = 2 * np.eye(3)[y] + rng.normal(size=(240, 3))
    assert {*BOUNDS.findall(report_model(tmp_path / "n.html", model, new, y).read_text(encoding="utf-8"))} != {
        "nothing"
    }


def test_a_report_on_the_rows_of_a_calibration_promises_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    P, y, candidates = rows(200, 0)
    conformalize(P, candidates, classes=CLASSES).save("m.cal")
    held = {f"p:{name}": P[:, k] for k, name in enumerate(CLASSES)} | {"truth": list(y)}
    for order, promised in ((slice(None), False), (slice(None, None, -1), True)):
        pq.write_table(pa.table({name: values[order] for name, values in held.items()}), "p.parquet")
        done(
            capsys,
            "report",
            "m.cal",
            "--probabilities",
            "p.parquet",
            "--truth",
            "truth",
            "--out",
            "r.html",
            "--force",
        )
        page = Path("r.html").read_text(encoding="utf-8")
        assert ("these are the rows that it was calibrated on" in page) is not promised
        assert ({*BOUNDS.findall(page)} != {"nothing"}) is promised


def test_one_label_a_row_is_not_held_against_sets_for_several_right_labels(tmp_path, rng):
    P = simplex(rng, 300, 4)
    calibration = conformalize(P[:200], P[:200] > 0.2, truth="all", empty="drop")
    with pytest.raises(ValueError, match="y: one label a row does not show how many of several right labels"):
        build_report(tmp_path / "r.html", calibration, P[200:], y=P[200:].argmax(axis=1))
    text = build_report(tmp_path / "r.html", calibration, P[200:]).read_text(encoding="utf-8")
    assert "of such sets contain all of their right labels" in text
    sets, truth = calibration.predict_set(P[200:]), P[200:].argmax(axis=1)
    with pytest.raises(ValueError, match="y: one label a row does not show how many of several right labels"):
        report_sets(tmp_path / "r.html", sets, y=truth, guarantee=calibration.guarantee)


def test_a_report_on_several_right_labels_speaks_of_no_true_label_and_asks_for_none(tmp_path, rng):
    P = simplex(rng, 300, 4)
    right = [np.flatnonzero(row).tolist() if i < 100 else None for i, row in enumerate(P[:200] >= 0.25)]
    calibration = conformalize(P[:200], np.ones((200, 4), bool), verified=right, truth="one")
    text = build_report(tmp_path / "r.html", calibration, P[200:]).read_text(encoding="utf-8")
    assert "which miss the right labels less often" in text
    assert "With all right labels of some rows, setwise.evaluate measures their coverage." in text
    page = text[: text.index("<script")]
    assert "true label" not in page
    far = rng.dirichlet([20, 1, 1, 1], 200)
    refuted = build_report(tmp_path / "r.html", calibration, far).read_text(encoding="utf-8")
    assert "Nothing is guaranteed about the right labels." in refuted


def test_a_report_on_a_guarantee_by_label_says_that_it_holds_in_each_class(tmp_path, rng):
    P = simplex(rng, 600, 3)
    y = labels_from(rng, P)
    for by, within in (("label", " in each class"), (None, "")):
        calibration = conformalize(P[:400], y[:400], by=by)
        text = build_report(tmp_path / "r.html", calibration, P[400:]).read_text(encoding="utf-8")
        assert f"At least 90% of such sets contain the true label{within}, on average." in text
