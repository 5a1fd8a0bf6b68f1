"""Writes docs/benchmark.md and its pictures from results.csv: `python -m ambiguous.page`."""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd

from ambiguous import data_sets, runner
from ambiguous.registry import ALL_FOR_MANY, ANY_DATA, LARGE_SAMPLE, NONE, OF_ALL

HERE = Path(__file__).resolve().parent
DOCS = HERE.parents[1] / "docs"
WIDE = 1.005
"""By how much another method must be better for a setting to be listed: less is lost in rounding."""

NO_REASON = "No reason is known."
STRONGER = {LARGE_SAMPLE: ANY_DATA, ALL_FOR_MANY: OF_ALL}
COMPARED = (
    "question",
    "data",
    "setting",
    "guarantee",
    "own",
    "rival",
    "default",
    "errors",
    "own_method",
    "rival_method",
    "ratio",
)
DEFAULTS = {"sets": ("auto, verified", "auto, candidates")}
GAIN = {
    "sets": "labels in a set",
    "keep": "rows that nobody looks at",
    "suspects": "wrong labels found",
    "estimates": "width of intervals, relative to Clopper and Pearson's",
    "consensus": "right labels",
}
BESIDE = {
    "sets": "coverage ± its standard deviation over draws",
    "keep": "verified and reviewed rows",
    "suspects": "share of false alarms",
    "estimates": "share of intervals that hold",
    "consensus": "standard error",
}
_HEAD = """# Benchmark: setwise beside other libraries

This page compares setwise with {packages} packages and with formulas of several papers. There are five questions and {sets} data sets whose
truth is known. `make benchmark` measures all of it again, {methods} variants in all, and writes this page. Every line is in
`benchmarks/ambiguous/results.csv`.

{short}

## How methods are compared

- A **setting** is a data set with a number of *verified* rows, whose true label was checked. A **draw** is one random repetition.
- Methods are compared where they **guarantee the same** about the true label, by their own documentation. Where a package
  gives labels or a confidence, we add a published rule that turns them into a guarantee, and name both.
- A guarantee is **kept** if the error measured is within three standard errors of what is allowed. Methods that did not keep theirs are
  not compared, but counted.
- Of each side **the best method counts**, chosen after measuring. Where setwise has a default, its figure stands beside.
- A star marks a method that failed in some draws and is measured on the others.
- A method that guarantees more is compared with those that guarantee less, too: "any number of verified rows" includes large samples.
- The **ratio** compares the best of setwise with the best other. Below 1 setwise is better. It compares labels in a set, rows to look at,
  widths, wrong labels that the other finds by those that setwise finds, and likewise right labels. Equal is within 0.5 %. In brackets:
  in how many settings the difference exceeds two standard errors, where they were measured.

{glance}
"""
_FORMULAS = """## Methods from formulas

| method | from |
|---|---|
| by hand | split conformal prediction with the score 1 − f, in NumPy |
| paper: max, all, mean, min, mixture | Javanmardi and others, *Conformal Prediction with Partially Labeled Data*, COPA 2023 |
| Monte Carlo conformal prediction | Stutz and others, *Conformal Prediction under Ambiguous Ground Truth*, TMLR 2023 |
| SPI, GESPI | Bashari and others, *Synthetic-Powered Predictive Inference*, 2025 |
| Learn then Test | Angelopoulos and others, 2022 |
| SGR | Geifman and El-Yaniv, *Selective Classification for Deep Neural Networks*, 2017 |
| conformal selection | Jin and Candès, *Selection by Prediction with Conformal p-values*, JMLR 2023 |
| PAC labels | Candès, Ilyas and Zrnic, *Probably Approximately Correct Labels*, 2025 |
| Wald, Wilson, Clopper–Pearson, exact hypergeometric | intervals from the verified rows alone |
"""


def read():
    """The tidy table."""
    return pd.read_csv(
        HERE / "results.csv", dtype={"version": str, "commit": str, "note": str}, keep_default_na=True
    )


def reasons():
    """Why another method is better, by setting; written by hand, and a setting without one fails a test."""
    file = HERE / "reasons.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")).get("cell", []) if file.exists() else []


def compared(table):
    """Per setting and guarantee: the best of setwise and the best other among those that kept it, and their ratio."""
    told = table[table["guarantee"].ne(NONE) | table["question"].eq("consensus")]
    told = told[told["gain"].notna()]
    for weaker, stronger in STRONGER.items():  # a guarantee for any number of rows is one for large samples, too
        asked = told.loc[told["guarantee"].eq(weaker), ["question", "data", "setting"]].apply(tuple, axis=1)
        also = told[
            told["guarantee"].eq(stronger) & told[["question", "data", "setting"]].apply(tuple, axis=1).isin(asked)
        ]
        told = pd.concat([told, also.assign(guarantee=weaker, stronger=True)])
    found = []
    for (question, data, setting, guarantee), lines in told.groupby(
        ["question", "data", "setting", "guarantee"], sort=False
    ):
        less = runner.question(question).BETTER == "less"
        if question == "consensus":  # who needs no verified rows may answer where there are some
            alike = told["question"].eq(question) & told["data"].eq(data) & told["setting"].eq("none verified")
            lines = pd.concat([lines, told[alike]]).drop_duplicates()  # noqa: PLW2901
        kept = lines if question == "consensus" else lines[lines["kept"].eq("yes")]
        own, others = (kept[kept["package"].eq("setwise") == side] for side in (True, False))
        if own.empty or others.empty:
            continue
        mine, best = (part.loc[part["gain"].idxmin() if less else part["gain"].idxmax()] for part in (own, others))
        if "stronger" in told and mine["stronger"] is True and best["stronger"] is True:
            continue  # they are compared under the stronger guarantee
        default = own[own["method"].isin(DEFAULTS.get(question, ()))]
        found.append(
            {
                "question": question,
                "data": data,
                "setting": setting,
                "guarantee": guarantee,
                "own": mine,
                "rival": best,
                "default": None if default.empty else default.iloc[0],
                "errors": error_ratios(question, lines[lines["package"].ne("setwise")]),
                "own_method": named(mine),
                "rival_method": named(best),
                "ratio": cost_ratio(question, mine, best, less=less),
            }
        )
    return pd.DataFrame(found, columns=list(COMPARED))


def named(line):
    """A method with the package that it is of, or whose labels or confidence it takes; a star where it fails in some draws."""
    package, method = line["package"], line["method"]
    same = method.lower().replace("-", "").startswith(package.split("-")[0].lower())
    star = "*" if str(line.get("note")).startswith("without") else ""
    return (method if package in {"formulas", "setwise"} or same else f"{method} (with {package})") + star


def cost_ratio(question, mine, best, *, less):
    """How much more setwise costs than the best other: labels, widths, rows to look at; or how much less it finds."""
    if less:
        return mine["gain"] / best["gain"]
    if question == "keep":
        return mine["looked_at"] / best["looked_at"]
    return best["gain"] / mine["gain"] if mine["gain"] else np.inf


def error_ratios(question, lines):
    """The error that was measured beside the one that is allowed; more than 1 is too much."""
    if question == "consensus":
        return np.full(len(lines), np.nan)
    if question in {"sets", "estimates"}:
        return ((1 - lines["measured"]) / (0.1 if question == "sets" else 0.05)).to_numpy()
    allowed = lines["setting"].str.extract(r"^(\d+)%")[0].astype(float).to_numpy() / 100
    draws = lines["guarantee"].str.contains("95 of 100").to_numpy()
    return (lines["measured"] / np.where(draws, 0.05, allowed)).to_numpy()


def same_rule(cells):
    """Where the best of setwise and the best other are one rule: the paper's, which setwise implements."""
    return cells["rival_method"].str.startswith("paper,") & cells["ratio"].between(1 / WIDE, WIDE)


def lost(cells):
    """The settings in which another method is better."""
    return cells[cells["ratio"] > WIDE]


def reason_of(cell, known):
    """The reason that is given for a setting: the first entry whose facts all agree."""
    for one in known:
        facts = (name for name in ("question", "data", "setting", "guarantee") if name in one)
        if all(
            cell[name] in one[name] if isinstance(one[name], list) else cell[name] == one[name] for name in facts
        ):
            return one["reason"]
    return None


def number(value):
    """Three digits, as readers compare them."""
    return "–" if pd.isna(value) else f"{value:.3g}"


def counts(ratio):
    """How often setwise is better, as good, and worse."""
    better, worse = int((ratio < 1 / WIDE).sum()), int((ratio > WIDE).sum())
    return better, len(ratio) - better - worse, worse


def standard_error(line):
    """Of the gain, where the table has it; of draws that share rows it is too large."""
    if line["question"] == "consensus":
        return line["error"]
    return line["spread"] / line["draws"] ** 0.5 if line["question"] in {"keep", "suspects"} else np.nan


def beyond(cells):
    """Whether the two sides differ by over two standard errors, NaN where these are not known."""
    ends = [(one["own"], one["rival"]) for one in cells.to_dict("records")]
    apart = [
        abs(a["gain"] - b["gain"]) / max(np.hypot(standard_error(a), standard_error(b)), 1e-12) for a, b in ends
    ]
    return np.where(np.isnan(apart), np.nan, np.array(apart) > 2)


def glance_table(cells):
    """How often setwise is better, as good, or worse, and by how much at most."""
    yield "| question | guarantee | settings | setwise better | equal | another better | median ratio | largest ratio |"
    yield "|---|---|---|---|---|---|---|---|"
    for name in runner.QUESTIONS:
        asked = runner.question(name).TITLE
        link = f"[{asked}](#{asked.lower().replace(' ', '-')})"
        for guarantee, some in cells[cells["question"].eq(name)].groupby("guarantee", sort=False):
            better, equal, worse = counts(some["ratio"])
            if not np.isnan(clear := beyond(some)).all():
                better = f"{better} ({int(clear[some['ratio'] < 1 / WIDE].sum())})"
                worse = f"{worse} ({int(clear[some['ratio'] > WIDE].sum())})"
            values = (len(some), better, equal, worse, number(some["ratio"].median()), number(some["ratio"].max()))
            yield f"| {link} | {guarantee} | {' | '.join(map(str, values))} |"


def in_short(cells):
    """What the comparison comes to."""
    overall = cells[cells["guarantee"].eq(OF_ALL)]
    exact, large = (
        cells[cells["question"].eq("estimates") & cells["guarantee"].eq(one)] for one in (ANY_DATA, LARGE_SAMPLE)
    )
    sets = cells[cells["question"].eq("sets") & cells["guarantee"].eq(ANY_DATA)]
    better, equal, _ = counts(overall["ratio"])
    rows = sets["ratio"].max() - 1
    yield f"**In short.** Where the error of all labels is bounded, setwise leaves more rows unreviewed in {better} of {len(overall)} settings, and as many in {equal}."
    yield f"Of intervals that hold for any number of verified rows its are the narrowest in {counts(exact['ratio'])[0]} of {len(exact)} settings."
    yield f"Intervals that hold for large samples are narrower than its in {counts(large['ratio'])[2]} of {len(large)}."
    yield f"With verified rows the sets of setwise are as small as the smallest others in {counts(sets['ratio'])[1]} of {len(sets)} settings, and up to {rows:.0%} larger elsewhere.".replace(
        "%", " %"
    )
    yield "Their coverage usually varies less. Where language models make the same mistakes, other orders of the rows find more wrong labels."


def shown(name, line):
    """Gain of a line, and what belongs beside it."""
    gain, beside = number(line["gain"]), line["measured"]
    if name == "sets":
        return f"{gain} ({beside:.3f} ± {line['spread']:.3f})"
    if name == "keep":
        return f"{line['gain']:.3f} ({line['looked_at']:,.0f})"
    if name == "consensus":
        return f"{line['gain']:.3f} ± {line['error']:.3f}"
    return f"{gain} ({beside:.3f})"


def main_table(name, cells):
    """One line per setting: the best of setwise beside the best other with the same guarantee."""
    default = name in DEFAULTS
    beside = f"{BESIDE[name]}" if name == "consensus" else f"({BESIDE[name]})"
    yield f"{GAIN[name].capitalize()} {'±' if name == 'consensus' else ''} {beside}:".replace("  ", " ")
    yield ""
    for guarantee, some in cells.groupby("guarantee", sort=False):
        if guarantee != NONE:
            yield from (f"Guaranteed: {guarantee}.", "")
        yield f"| data | setting | setwise | which |{' `auto` |' if default else ''} best other | which | ratio |"
        yield f"|---|---|---|---|{'---|' if default else ''}---|---|---|"
        for cell in some.to_dict("records"):
            values = [cell["data"], cell["setting"], shown(name, cell["own"]), cell["own_method"]]
            values += [number(cell["default"]["gain"])] if default and cell["default"] is not None else []
            values += [shown(name, cell["rival"]), cell["rival_method"], number(cell["ratio"])]
            yield f"| {' | '.join(values)} |"
        yield ""


def spread_table(lines):
    """With verified rows: sets and spread of `auto` beside split conformal prediction on the verified rows alone."""
    yield "| data | verified rows | labels in a set: auto | verified alone | ratio | standard deviation of coverage: auto | verified alone |"
    yield "|---|---|---|---|---|---|---|"
    pair = [
        lines[lines["method"].eq(name)].set_index(["data", "verified"])[["gain", "spread"]]
        for name in ("auto, verified", "by hand, verified")
    ]
    both = pd.concat(pair, axis=1, keys=["auto", "alone"], join="inner")
    for (data, m), one in both.iterrows():
        size, alone = one["auto", "gain"], one["alone", "gain"]
        values = (size, alone, size / alone, one["auto", "spread"], one["alone", "spread"])
        yield f"| {data} | {m} | {' | '.join(number(value) for value in values)} |"


def kept_table(lines):
    """How often guarantees were kept, by package."""
    yield "| package | guarantee | variants | lines | kept | not kept | withdrawn | failed |"
    yield "|---|---|---|---|---|---|---|---|"
    lines = lines.assign(other=~lines["package"].eq("setwise"), none=lines["guarantee"].eq(NONE))
    for (*_, package, guarantee), part in lines.groupby(["none", "other", "package", "guarantee"]):
        kept = part["kept"].value_counts()
        numbers = (
            part["method"].nunique(),
            len(part),
            *(kept.get(name, 0) for name in ("yes", "no", "withdrawn", "failed")),
        )
        yield f"| {package} | {guarantee} | {' | '.join(map(str, numbers))} |"


def picture(question, cells):
    """One row per setting: what setwise and the best other gain, and their errors beside what is allowed."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    mpl.rcParams["svg.hashsalt"] = "setwise"
    red, grey, errors = "#c0392b", "#5c636e", question != "consensus"
    rows = cells[~same_rule(cells)].sort_values("guarantee", kind="stable").iloc[::-1].reset_index(drop=True)
    size = (11, 0.9 + 0.21 * len(rows))
    figure, axes = plt.subplots(1, 1 + errors, figsize=size, sharey=True, squeeze=False, layout="constrained")
    gain, place = axes[0, 0], np.arange(len(rows))
    own, rival = (np.array([one["gain"] for one in rows[side]]) for side in ("own", "rival"))
    gain.hlines(place, np.minimum(own, rival), np.maximum(own, rival), color="#c9cdd3", linewidth=2, zorder=1)
    gain.scatter(rival, place, s=22, color=grey, label="best other", zorder=2)
    gain.scatter(own, place, s=22, color=red, label="setwise", zorder=3)
    better = "less" if runner.question(question).BETTER == "less" else "more"
    gain.set_xlabel(f"{GAIN[question]} ({better} is better)", fontsize=9)
    gain.set_yticks(
        place,
        [
            f"{one.data}, {one.setting}{' (large samples)' * ('large' in one.guarantee)}"
            for one in rows.itertuples()
        ],
        fontsize=7,
    )
    gain.set_ylim(-0.7, len(rows) - 0.3)
    gain.legend(fontsize=8, loc="best")
    if question == "sets" and len(rows):
        gain.set_xscale("log")
        gain.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        gain.xaxis.set_major_formatter("{x:g}")
        gain.xaxis.set_minor_formatter(NullFormatter())
    if errors:
        error = axes[0, 1]
        for y, found in zip(place, rows["errors"], strict=True):
            error.scatter(
                found,
                np.full(len(found), y),
                s=7,
                color="#b9bec6",
                zorder=1,
                label="others with the same guarantee" if y == 0 else None,
            )
        for side, colour in (("rival", grey), ("own", red)):
            found = [error_ratios(question, pd.DataFrame([one]))[0] for one in rows[side]]
            error.scatter(found, place, s=22, color=colour, zorder=3)
        error.axvline(1, color="#444", linewidth=0.8)
        error.set_xlim(left=0)
        error.set_xlabel(
            "error measured, in parts of the error allowed (small dots: all others that guarantee the same)",
            fontsize=8,
        )
    for axis in axes.flat:
        axis.tick_params(labelsize=7)
        axis.grid(axis="x", color="#eceef1")
    folder = DOCS / "benchmark"
    folder.mkdir(exist_ok=True)
    figure.savefig(folder / f"{question}.svg", metadata={"Date": None})
    plt.close(figure)


def section(name, table, cells, known):
    """Title, rule, picture and tables of one question."""
    asked = runner.question(name)
    lines = table[table["question"].eq(name)]
    measured = lines[lines["gain"].notna() | lines["note"].notna()]
    yield from (f"## {asked.TITLE}", "")
    for paragraph in asked.__doc__.strip().removeprefix(f"{asked.TITLE}: ").split("\n\n"):
        text = " ".join(paragraph.split())
        yield from (text[0].upper() + text[1:], "")
    own = cells[cells["question"].eq(name)] if len(cells) else cells
    if len(own):
        what = GAIN[name] if name == "consensus" else f"{GAIN[name]}, and errors beside what is allowed"
        yield from (f"![{what}: setwise and the best other in each setting](benchmark/{name}.svg)", "")
        equal = same_rule(own)
        yield from main_table(name, own[~equal])
        if equal.any():
            yield f"In {equal.sum()} more settings without verified rows both are one rule, the paper's `max`, which setwise takes there."
            yield ""
        yield from losses(lost(own), known)
    if name == "sets":
        yield from ("### Size and steadiness", "")
        yield "With verified rows the sets of `auto` contain those of split conformal prediction on the verified rows alone, with the"
        yield "same score. In exchange for larger sets, their coverage often varies less between draws:"
        yield from ("", *spread_table(lines), "")
    if name != "consensus":
        yield from ("### Were guarantees kept?", "")
        yield "Methods without a guarantee about the true label are counted as if they had one. *Withdrawn* is what a method itself reports in"
        yield "at least half of the draws."
        yield from ("", *kept_table(measured), "")
    yield from failures(measured[measured["kept"].eq("failed")])


def losses(worse, known):
    """The settings in which another method is better, by their reasons."""
    if len(worse):
        yield from ("### Where another is better, and why", "")
    given = np.array([reason_of(cell, known) or NO_REASON for cell in worse.to_dict("records")], dtype=object)
    for why, some in worse.groupby(given, sort=False):
        places = "; ".join(
            f"{cell['data']}, {cell['setting']} ({number(cell['ratio'])})" for cell in some.to_dict("records")
        )
        yield from (f"- {why} *Where (ratio):* {places}.",)
    if len(worse):
        yield ""


def failures(failed):
    """What libraries say where they fail, without the numbers and classes that differ."""
    if failed.empty:
        return
    yield from ("Failures, in the words of each library:", "")
    said = failed["note"].str.replace(r" [^.:]*: \[.*| = \d+", "", regex=True).str.replace("`", "")
    for note, part in failed.groupby(said, sort=False):
        methods, places = (", ".join(sorted(set(part[column]))) for column in ("method", "data"))
        yield f"- {methods}: `{note}` ({places})"
    yield ""


def page(table):
    """The whole page as lines."""
    table = table.sort_values(["question", "data", "verified"], kind="stable")
    cells, known = compared(table), reasons()
    yield _HEAD.format(
        sets=table["data"].nunique(),
        methods=len(table[["package", "method"]].drop_duplicates()),
        packages=table["package"].nunique() - table["package"].isin(["formulas", "setwise"]).any() * 2,
        short="\n".join(in_short(cells)),
        glance="\n".join(glance_table(cells)),
    )
    for name in runner.QUESTIONS:
        if (table["question"] == name).any():
            yield from section(name, table, cells, known)
    yield from (_FORMULAS, "## The data", "")
    yield "| set | what | source | licence | truth |"
    yield "|---|---|---|---|---|"
    for name, card in data_sets.CARDS.items():
        if name in set(table["data"]):
            yield f"| {name} | {card.what} | {card.source} | {card.licence} | {card.truth} |"
    versions = table.dropna(subset=["version"]).groupby("package")["version"].first()
    places = table.groupby(["machine", "python"])["package"].agg(lambda names: ", ".join(sorted(set(names))))
    yield from ("", "## Versions and machines", "")
    yield f"{', '.join(f'{name} {version}' for name, version in versions.items())}; measured up to {table['date'].max()}."
    yield from (f"On {machine}, Python {python}: {names}." for (machine, python), names in places.items())
    yield ""
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    yield readme.replace("# Ambiguous labels, side by side", "## Run it, or add a data set or a method")


def text(table):
    """The page as it is written."""
    return "\n".join(page(table)).rstrip() + "\n"


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    table = read()
    cells = compared(table.sort_values(["question", "data", "verified"], kind="stable"))
    for name in runner.QUESTIONS:
        if len(some := cells[cells["question"].eq(name)]):
            picture(name, some)
    (DOCS / "benchmark.md").write_text(text(table), encoding="utf-8")


if __name__ == "__main__":
    main()
