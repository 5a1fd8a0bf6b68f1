"""What is printed is plain: short sentences, and none of the words that only setwise would use."""

import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest
import typer

import setwise
from setwise.cli.app import app
from setwise.guarantees import PREMISES
from setwise.report.verdict import Promise, judge
from setwise.strategies import Corrected, Mixture
from tests.conftest import candidates_from, labels_from, simplex

plain = runpy.run_path(str(Path(__file__).parents[1] / "scripts" / "plain_words.py"))

WORLDS = {
    "exact labels": {"candidates": "exact"},
    "candidate sets": {},
    "verified rows": {"verified": 100},
    "too few verified rows": {"verified": 5},
    "a miss rate, by category": {"miss_rate": 0.05, "by": "half"},
    "groups": {"groups": "fives"},
    "weights": {"sample_weight": "ones"},
    "a declaration": {"assume": "uniform"},
    "a finite margin": {"assume": "uniform", "strategy": Corrected(margin="finite")},
    "the candidate that is furthest out": {"strategy": "all", "verified": 100},
    "the average candidate": {"strategy": "mean", "verified": 100},
    "the nearest candidate": {"strategy": "min"},
    "between the extremes": {"strategy": Mixture(mu=0.3)},
    "a posterior": {"strategy": "posterior"},
    "rectified": {"strategy": "rectified", "verified": 100},
    "votes": {"candidates": "votes"},
    "independent votes": {"candidates": "votes", "assume": "independent"},
    "votes and verified rows": {"candidates": "votes", "verified": 100},
}


def calibrated(rng, world):
    """A calibration, and probabilities of new rows."""
    options = dict(world)
    p = simplex(rng, 800, 4)
    y = labels_from(rng, p)
    p, new = p[:600], p[600:]
    kind = options.pop("candidates", "sets")
    candidates = {"exact": y[:600], "sets": candidates_from(rng, y[:600], 4)}.get(kind)
    if kind == "votes":
        answers = np.where(rng.random((600, 3)) < 0.8, y[:600, None], rng.integers(0, 4, (600, 3)))
        candidates = setwise.Votes.from_matrix(answers, classes=range(4))
    if "verified" in options:
        m = options["verified"]
        options["verified"] = [int(label) if i < m else None for i, label in enumerate(y[:600])]
    columns = {"half": np.arange(600) % 2, "fives": np.arange(600) // 5, "ones": np.ones(600)}
    options = {
        name: columns.get(value, value) if isinstance(value, str) else value for name, value in options.items()
    }
    return setwise.conformalize(p, candidates, random_state=0, **options), new


def test_no_text_of_the_source_is_long_or_private():
    assert plain["offences"]([plain["SOURCE"]]) == []


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_what_a_calibration_prints_is_plain(rng, world):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        cal, new = calibrated(rng, world)
        printed = [str(cal.guarantee(level)) for level in (0.9, 0.99)]
        if not {"by", "groups", "sample_weight"} & set(world):
            printed += [str(cal.compare(new)), str(cal.compare(new**3 / (new**3).sum(axis=1, keepdims=True)))]
        if isinstance(world.get("verified"), int) and "strategy" not in world:
            printed += [
                str(cal.triage(max_error=error, mode=mode))
                for error in (0.05, 0.4)
                for mode in ("overall", "accepted", "average")
            ]
    printed += [str(each.message) for each in warned]
    for text in printed:
        assert list(plain["offences_in"](text)) == [], text


def test_what_is_said_of_annotators_is_plain(rng):
    y = rng.integers(0, 3, (400, 1))
    alone = np.where(rng.random((400, 5)) < 0.8, y, rng.integers(0, 3, (400, 5)))
    copied = np.where(rng.random((400, 5)) < 0.9, alone[:, :1], alone)
    for answers in (alone, copied, alone[:, :1]):
        for verified in (None, np.where(np.arange(400) < 100, y[:, 0], np.nan)):
            found = setwise.annotators(setwise.Votes.from_matrix(answers, classes=range(3)), verified)
            for head, text in [*found.facts, *found.basis]:
                assert list(plain["offences_in"](f"{head}: {text}")) == []


def commands(command):
    """A command, or all those of a group, each with its name."""
    inner = getattr(command, "commands", None)
    if not inner:
        return {command.name: command}
    return {name: one for each in inner.values() for name, one in commands(each).items()}


COMMANDS = commands(typer.main.get_command(app))


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_help_is_plain_and_short_on_its_first_panel(command):
    texts = [command.help, command.epilog, *(one.help for one in command.params)]
    assert [found for text in texts if text for found in plain["offences_in"](text)] == []
    first = [one for one in command.params if one.param_type_name == "option" and not one.rich_help_panel]
    assert len(first) + 1 <= 15  # and --help
    assert "--checks" not in {name for one in command.params for name in one.opts}


@pytest.mark.parametrize("conditions", [(), ("annotators err independently",)])
@pytest.mark.parametrize("level", [None, 0.9])
def test_the_headline_of_a_report_is_plain_and_begins_with_the_number_of_sets(level, conditions):
    promise = Promise(level, conditions if level else ())
    verdicts = [judge(promise, sets=1000, bracket=ends) for ends in (None, (0.8, 0.9))]
    for hits in (990, 905, 890, 870, 100):
        verdicts += [judge(promise, hits, 1000, sets=n, calibrated_on=m) for n in (1000, 2000) for m in (None, 300)]
    verdicts += [judge(Promise(stated=False), hits, n, sets=1000) for hits, n in ((0, 0), (900, 1000))]
    for verdict in verdicts:
        assert verdict.headline.split()[0].replace(",", "").isdigit()
        assert list(plain["offences_in"](f"{verdict.headline} {verdict.sentence}")) == []


@pytest.mark.parametrize("page", sorted((plain["SOURCE"] / "report" / "templates").glob("*.html")), ids=str)
def test_the_pages_that_are_written_are_plain(page):
    assert list(plain["offences_in"](plain["template_texts"](page))) == []


def test_no_function_is_named_by_a_participle():
    assert list(plain["participles"]()) == []


@pytest.mark.parametrize(
    "sentence",
    [
        " ".join(["word"] * 26),
        "Of votes the last one counts.",
        "probabilities are computed as those of these were",
        "This is not knowable here.",
        "This is said in words.",
        "Whoever stops early may do so.",
        "60 of 70 checked rows are kept.",
        "The checks are random.",
        "Nothing is promised about the label.",
        "It claims the label.",
    ],
)
def test_each_kind_of_bad_sentence_is_found(sentence, tmp_path):
    (tmp_path / "module.py").write_text(f"raise ValueError({sentence!r})\n")
    assert len(plain["offences"]([tmp_path])) >= 1
    (tmp_path / "page.html").write_text(f"<style>a {{}}</style><h2>{sentence}</h2>")
    assert list(plain["offences_in"](plain["template_texts"](tmp_path / "page.html")))


@pytest.mark.parametrize(
    ("name", "is_bad"), [("told", True), ("_covered", True), ("read", False), ("judge", False)]
)
def test_each_function_that_is_named_by_a_participle_is_found(name, is_bad, tmp_path):
    (tmp_path / "module.py").write_text(f"def {name}():\n    return 1\n@property\ndef held():\n    return 1\n")
    assert bool(list(plain["participles"](tmp_path))) == is_bad


def test_every_premise_is_a_short_clause():
    assert [text for text in PREMISES.values() if list(plain["offences_in"](text)) or text[0].isupper()] == []
