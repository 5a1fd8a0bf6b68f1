"""Figures in the guides are those of the kept results."""

import csv
import json
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_guide_on_new_rows_shows_the_kept_figures():
    page = (ROOT / "docs/guide/new-rows.md").read_text(encoding="utf-8")
    results = ROOT / "benchmarks/results/drift.json"
    if not results.exists():
        pytest.skip("benchmarks/results is not part of this copy")
    kept = json.loads(results.read_text(encoding="utf-8"))
    splits, streams = kept["random_splits"], kept["clean_streams"]
    wrong = sum(each["false_alarms"] for each in splits), sum(each["false_alarms_with_features"] for each in splits)
    assert f"{sum(each['splits'] for each in splits):,} random splits" in page
    assert f"different {wrong[0]} times, with features {wrong[1]} times" in page
    alarms = sum(each["false_alarms"] for each in streams)
    assert f"{sum(each['streams'] for each in streams):,} clean streams" in page
    assert f"raised {alarms} alarms" in page
    noticed = {each["set"]: each for each in kept["noise"] if each["clean_rows_before"] == 0}
    assert {each["noticed_within_1000"] for each in noticed.values()} == {1.0}
    rows = [each["median_rows"] for each in noticed.values()]
    assert f"{min(rows):.0f} to {max(rows):.0f} rows" in page
    cells = json.loads(results.with_name("monitor.json").read_text(encoding="utf-8"))["cells"]
    found = [each["cells"]["noticed_within_1000"] for each in cells if each["change"].startswith("answers on")]
    *others, most = sorted(found)
    least, second, middle = (round(100 * share) for share in (others[0], others[-1], most))
    assert f"noticed {middle} % of streams on Italian, and {least} to {second} %" in page.replace("\n", " ")


def test_a_monitor_costs_what_the_guide_says():
    results = ROOT / "benchmarks/results/monitor.json"
    if not results.exists():
        pytest.skip("benchmarks/results is not part of this copy")
    kept = json.loads(results.read_text(encoding="utf-8"))
    assert max(kept["one_by_one"]["last_to_first"], kept["one_by_one"]["last_to_new"]) < 1.2
    assert f"{kept['batches']['kept']['10,000,000']['bytes'] / 1e6:.1f} MB are kept" in (
        (ROOT / "docs/guide/new-rows.md").read_text(encoding="utf-8")
    )
    assert kept["threads"]["runs_with_all_rows"] == kept["threads"]["runs_that_went_on"] == kept["threads"]["runs"]
    assert kept["threads"]["p_value"] > 0.01


def test_the_comparison_shows_the_kept_intervals_which_hold_and_are_narrow():
    results = ROOT / "benchmarks/results/estimates.json"
    if not results.exists():
        pytest.skip("benchmarks/results is not part of this copy")
    kept = json.loads(results.read_text(encoding="utf-8"))
    assert kept["below"] == kept["too_wide"] == []
    assert kept["exact"]["least"] >= 0.95
    least = min(cell["holds_least"] for cell in kept["cells"])
    rival = min(cell["glide"]["holds_least"] for cell in kept["cells"] if "glide" in cell)
    page = (ROOT / "docs/comparison.md").read_text(encoding="utf-8")
    assert f"| {int(1000 * least) / 10:g} % | – | – | {100 * rival:.0f} % |" in page


@pytest.fixture(scope="module")
def measured():
    """Lines of the benchmark by question, data, setting and method, and guides as one line of words."""
    results = ROOT / "benchmarks/ambiguous/results.csv"
    if not results.exists():
        pytest.skip("benchmarks is not part of this copy")
    with results.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))

    def find(question, data, setting, *methods):
        chosen = [
            line for line in lines if (line["question"], line["data"], line["setting"]) == (question, data, setting)
        ]
        return {line["method"]: line for line in chosen if not methods or line["method"] in methods}

    return find


def words(page):
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


def short(value):
    return f"{float(value):.2f}".removeprefix("0")


def test_the_guide_on_decisions_shows_the_figures_of_the_benchmark(measured):
    page, broken = words("docs/guide/accept-or-review.md"), []
    cells = {
        "CIFAR-10N, three answers a photo and a model": ("cifar10n", 5, 100),
        "the same": ("cifar10n", 2, 500),
        "stance, labels of one language model": ("stance", 5, 500),
        "ImageNetV2, labels of one model": ("imagenetv2", 5, 500),
        "media bias, 13 language models": ("media-bias-zero-shot", 10, 200),
        "passages, 33 language models": ("llmjudge", 20, 200),
    }
    for what, (data, error, m) in cells.items():
        found = measured("keep", data, f"{error}% of all labels, {m} verified")
        others = ("Learn then Test, ", "PAC labels, (?!normal)")
        ltt, pac = (max(float(found[name]["gain"]) for name in found if re.match(form, name)) for form in others)
        triage = found["triage"]
        assert f"| {what} | {error} % | {m} | {short(triage['gain'])} | {short(ltt)} | {short(pac)} |" in page
        broken.append(float(triage["measured"]))
        assert (triage["kept"], triage["draws"]) == ("yes", "300")
    assert f"exceeded its maximum in at most {100 * max(broken):.1f} % of the draws" in page
    both, votes, model = (
        short(measured("suspects", "cifar10n", f"10% false, 500 verified, {kind}", "suspects")["suspects"]["gain"])
        for kind in ("votes and network", "votes", "network")
    )
    assert (
        f"finds {both} of one annotator's wrong labels by votes and model, {votes} by the votes alone, and {model}"
        in page
    )


def test_the_readme_shows_the_figures_of_the_benchmark(measured):
    page = words("README.md")

    def best(found, guarantee, most=max):
        rivals = (one for one in found.values() if one["package"] != "setwise" and one["guarantee"] == guarantee)
        return most((one for one in rivals if one["kept"] == "yes"), key=lambda one: float(one["gain"]))

    def row(question, data, setting, method, form, most=max):
        found = measured(question, data, setting)
        mine = found[method]
        return f"| {form(mine)} | {form(best(found, mine['guarantee'], most))} |"

    def percent(one):
        return f"{100 * float(one['gain']):.0f} %"

    cells = [
        row("keep", "media-bias-zero-shot", "5% of all labels, 500 verified", "triage", percent),
        row("suspects", "cifar10n", "10% false, 500 verified, votes and network", "suspects", percent),
        row("estimates", "cifar10n", "200 verified", "estimate", lambda one: f"{float(one['gain']):.2f}", min),
        row(
            "sets",
            "italian",
            "50 verified",
            "auto, verified",
            lambda one: f"{float(one['gain']):.2f} ({float(one['spread']):.3f})",
            min,
        ),
    ]
    assert [cell for cell in cells if cell not in page] == []
    narrow = measured("estimates", "cifar10n", "200 verified").values()
    kept = [float(one["gain"]) for one in narrow if one["kept"] == "yes" and one["guarantee"].startswith("large")]
    assert f"for large samples only reach {min(kept):.2f}." in page


def test_the_guide_on_crowds_shows_the_figures_of_the_benchmark(measured):
    page = words("docs/guide/crowd-labels.md")
    none, some = (measured("sets", "cifar10n", f"{m} verified") for m in (0, 50))
    cells = {
        "the set of answers (`max`)": none["max of the answers"],
        "the votes (`votes`)": none["votes: a random answer"],
        "a model of the annotators (`crowd`)": none["crowd, independence stated"],
        "votes and 50 verified rows (`auto`)": some["auto, verified"],
        "the 50 verified rows alone": some["by hand, verified"],
    }
    for what, line in cells.items():
        assert f"| {what} | {float(line['gain']):.2f} | {float(line['measured']):.3f} |" in page
    panels = {
        "33 language models judge passages": "llmjudge",
        "13 language models, media bias": "media-bias-zero-shot",
        "12 language models, chain of thought": "media-bias-cot",
        "109 people, dogs": "dog",
        "three people, CIFAR-10N": "cifar10n",
    }
    for what, data in panels.items():
        crowd = measured("sets", data, "0 verified")["crowd, independence stated"]
        found = measured("sets", data, "50 verified")
        auto, alone = found["auto, verified"], found["by hand, verified"]
        size, ratio = float(auto["gain"]), float(auto["gain"]) / float(alone["gain"])
        figures = f"{1 - float(crowd['stated']):.0%}".replace("%", " %"), f"{float(crowd['measured']):.2f}"
        cells = (*figures, f"{size:.2f}", f"{float(auto['measured']):.3f}", f"{ratio:.2f}")
        assert f"| {what} | {' | '.join(cells)} |" in page
        assert auto["kept"] == "yes"
    duck = measured("sets", "duck", "0 verified")["crowd, independence stated"]
    assert float(duck["stated"]) == 1
    assert f"the sets of `crowd` cover {float(duck['measured']):.2f}" in page


def test_the_guide_on_mlflow_shows_the_kept_figures_and_memory_is_flat():
    results = ROOT / "benchmarks/results/serving.json"
    if not results.exists():
        pytest.skip("benchmarks/results is not part of this copy")
    kept, page = json.loads(results.read_text(encoding="utf-8")), (ROOT / "docs/guide/mlflow.md").read_text("utf-8")
    single = [case for case in kept["process"]["cases"] if case["rows"] == 1]
    named = [case for case in single if case["columns"] == "named"]
    assert max(case["ratio"] for case in named) <= kept["process"]["limit"]
    times = {(case["model"], case["columns"], case["score"]): f"{case['ratio']:.1f}" for case in single}
    logistic = [times[model, "named", "lac"] for model in ("scaled logistic", "logistic")]
    text = " ".join(page.split())
    assert f"the sets take {logistic[0]} to {logistic[1]} times as long" in text
    assert f"(up to {times['logistic', 'named', 'aps']} with the score `aps`)" in text
    assert f"and {times['forest of 100 trees', 'named', 'lac']} times as long as that of a forest" in text
    assert f"there the sets take {times['logistic', 'array', 'lac']} times as long" in text
    for case in kept["server"]["cases"]:
        model = case["server"].replace("setwise", "with sets")
        held = f"{case['mb_after_a_tenth']} MB | {case['mb_at_the_end']} MB"
        took = f"{case['per_second']} | {case['p50_ms']} ms | {case['p99_ms']} ms"
        assert f"| {model} | {case['rows']} | {took} | {held} |" in page
        assert case["wrong"] == 0
        assert case["mb_at_the_end"] < 1.01 * case["mb_after_a_tenth"]
    assert kept["nodes"]["equal_to_local"]


def test_the_pictures_of_answers_show_what_the_page_computes(tmp_path):
    pytest.importorskip("matplotlib")
    drawing = runpy.run_path(str(ROOT / "docs/scripts/answer_pictures.py"))
    drawing["draw"](tmp_path)
    shown = re.findall(r"\.\./answers/(\w+\.svg)", drawing["PAGE"].read_text(encoding="utf-8"))
    assert [name.removesuffix(".svg") for name in shown] == list(drawing["PICTURES"])
    for name in shown:
        now, kept = (
            (folder / name).read_text(encoding="utf-8") for folder in (tmp_path, drawing["DOCS"] / "answers")
        )
        assert _drawn(now) == _drawn(kept), f"{name}: python docs/scripts/answer_pictures.py draws it anew"


def _drawn(picture):
    """Texts and what is filled, in their order: coordinates differ between versions of matplotlib."""
    return re.findall(r">([^<>\n]+)</text>|fill: (#8fb8de|#e9edf4|#c0392b)", picture)
