"""Writes docs/benchmark.md and its pictures from results.csv: `python -m ambiguous.page`."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pandas as pd

from ambiguous import data_sets, runner
from ambiguous.registry import LARGE_SAMPLE, NONE

HERE = Path(__file__).resolve().parent
DOCS = HERE.parents[1] / "docs"
WIDE = 1.005
"""By how much a rival must be better for a cell to be listed: less is lost in rounding."""

NO_REASON = "No reason is known."
MEASURES = {
    "sets": ("labels in a set", "share of sets with the true label"),
    "keep": ("share of rows that nobody has to look at", "how often the error is exceeded, or the error"),
    "suspects": ("share of the wrong labels that are found", "share of those found whose label is right"),
    "estimates": ("width of intervals beside Clopper and Pearson's", "share of intervals that hold"),
    "consensus": ("share of right labels", "the same"),
}
_HEAD = """# Benchmark: ambiguous labels

How do setwise and other libraries answer the same five questions on the same data? Every line below was measured: on {sets} data
sets whose truth is known, with {methods} methods of {packages} packages and papers. `make benchmark` measures all of it again
and writes this page. The table with every line is `benchmarks/ambiguous/results.csv`.

A method is compared with others that *guarantee the same* about the true label, by their own documentation. Many guarantee
nothing about it; they stand here too. "Kept" says whether what is guaranteed was measured, within three standard errors over draws.
Where nothing is guaranteed it says whether it would have been. Data from libraries on majority labels are about these labels.

{versions}
"""


def read():
    """The tidy table."""
    return pd.read_csv(
        HERE / "results.csv", dtype={"version": str, "commit": str, "note": str}, keep_default_na=True
    )


def reasons():
    """Why a rival is better, by cell; written by hand, and a cell without one fails a test."""
    file = HERE / "reasons.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")).get("cell", []) if file.exists() else []


def compared(table):
    """Per cell and guarantee: the best of setwise and the best rival among those that kept it, and their ratio."""
    kept = table[table["kept"].eq("yes") & table["guarantee"].ne(NONE) | table["question"].eq("consensus")]
    kept = kept[kept["gain"].notna()]
    found = []
    for (question, data, setting, guarantee), lines in kept.groupby(
        ["question", "data", "setting", "guarantee"], sort=False
    ):
        less = runner.question(question).BETTER == "less"
        own, rivals = (lines[lines["package"].eq("setwise") == side] for side in (True, False))
        if own.empty or rivals.empty:
            continue
        mine, best = (part.loc[part["gain"].idxmin() if less else part["gain"].idxmax()] for part in (own, rivals))
        cost = cost_ratio(question, mine, best, less=less)
        found.append(
            {
                "question": question,
                "data": data,
                "setting": setting,
                "guarantee": guarantee,
                "own": mine["gain"],
                "own_method": mine["method"],
                "rival": best["gain"],
                "rival_method": f"{best['package']}: {best['method']}",
                "ratio": cost,
            }
        )
    return pd.DataFrame(found)


def cost_ratio(question, mine, best, *, less):
    """How much more setwise costs than the best rival: labels, widths, rows to look at, rows missed."""
    if less:
        return mine["gain"] / best["gain"]
    if question == "keep":
        return mine["looked_at"] / best["looked_at"]
    return best["gain"] / mine["gain"] if mine["gain"] else np.inf


def lost(cells):
    """The cells in which a rival is better by more than the page allows."""
    return cells[cells["ratio"] > WIDE]


def reason_of(cell, known):
    """The reason that is given for a cell: the first entry whose facts all agree."""
    for one in known:
        if all(cell[name] == one[name] for name in ("question", "data", "setting", "guarantee") if name in one):
            return one["reason"]
    return None


def number(value):
    """Three digits, as readers compare them."""
    return "–" if pd.isna(value) else f"{value:.3g}"


def glance_table(cells):
    """How often setwise is better, as good, or worse, and by how much at most."""
    yield "| question | cells compared | setwise better | equal | another better | median ratio | largest ratio |"
    yield "|---|---|---|---|---|---|---|"
    for name in runner.QUESTIONS:
        ratio = cells.loc[cells["question"].eq(name), "ratio"]
        better, worse = (ratio < 1 / WIDE).sum(), (ratio > WIDE).sum()
        asked = runner.question(name).TITLE
        counts = f"{len(ratio)} | {better} | {len(ratio) - better - worse} | {worse}"
        yield f"| [{asked}](#{asked.lower().replace(' ', '-')}) | {counts} | {number(ratio.median())} | {number(ratio.max())} |"


def main_table(cells):
    """One line per cell: the best of setwise beside the best rival with the same guarantee."""
    lines = [
        "| data | setting | guarantee | setwise | best rival | which | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    shown = ("data", "setting", "guarantee", "own", "rival", "rival_method", "ratio")
    for cell in cells[list(shown)].to_dict("records"):
        values = (number(value) if isinstance(value, float) else value for value in cell.values())
        lines += [f"| {' | '.join(values)} |"]
    return lines


def spread_table(lines):
    """With verified rows: sets and spread of `auto` beside split conformal prediction on the verified rows alone."""
    rows = [
        "| data | verified rows | labels in a set: auto | verified alone | ratio | spread of coverage: auto | verified alone |",
        "|---|---|---|---|---|---|---|",
    ]
    pair = [
        lines[lines["method"].eq(name)].set_index(["data", "verified"])[["gain", "spread"]]
        for name in ("auto, verified", "by hand, verified")
    ]
    both = pd.concat(pair, axis=1, keys=["auto", "alone"], join="inner")
    for (data, m), one in both.iterrows():
        size, alone = one["auto", "gain"], one["alone", "gain"]
        values = (size, alone, size / alone, one["auto", "spread"], one["alone", "spread"])
        rows.append(f"| {data} | {m} | {' | '.join(number(value) for value in values)} |")
    return rows


def many_rows_table(lines):
    """The narrowest intervals whose guarantee is for many verified rows, beside those of `estimate`."""
    rows = [
        "| data | setting | estimate | hold | least | narrowest for many verified rows | width | hold | least | kept |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    own = lines[lines["method"].eq("estimate")].set_index(["data", "setting"])
    others = lines[lines["guarantee"].eq(LARGE_SAMPLE) & lines["gain"].notna()]
    for cell, part in others.groupby(["data", "setting"], sort=False):
        mine, best = own.loc[cell], part.loc[part["gain"].idxmin()]
        figures = [[number(one[name]) for name in ("gain", "measured", "spread")] for one in (mine, best)]
        which = f"{best['package']}: {best['method']}"
        rows.append(f"| {' | '.join([*cell, *figures[0], which, *figures[1], best['kept']])} |")
    return rows


def summary_table(lines):
    """One line per method, over all cells in which it answered."""
    rows = [
        "| method | guarantee | cells | kept | not kept | failed or withdrawn | median seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    order = lines.assign(own=~lines["package"].eq("setwise")).sort_values(
        ["own", "package", "method"], kind="stable"
    )
    for (_, package, method, guarantee), part in order.groupby(
        ["own", "package", "method", "guarantee"], sort=False
    ):
        counts = part["kept"].value_counts()
        others = int(counts.get("failed", 0) + counts.get("withdrawn", 0))
        rows.append(
            f"| {package}: {method} | {guarantee} | {len(part)} | {counts.get('yes', 0)} | {counts.get('no', 0)} "
            f"| {others} | {number(part['seconds'].median())} |"
        )
    return rows


def picture(question, lines):
    """One panel per data set: what is guaranteed from left to right, what is gained from bottom to top."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    mpl.rcParams["svg.hashsalt"] = "setwise"
    gain, measured = MEASURES[question]
    names = [name for name in data_sets.CARDS if name in set(lines["data"])]
    columns = 4
    height = -(-len(names) // columns)
    figure, axes = plt.subplots(height, columns, figsize=(11, 2.5 * height), squeeze=False, layout="constrained")
    for place, name in zip(axes.flat, names, strict=False):
        part = lines[lines["data"].eq(name) & lines["gain"].notna()]
        for own, colour in ((False, "#8a8f98"), (True, "#c0392b")):
            for kept, fill in ((True, colour), (False, "none")):
                some = part[part["package"].eq("setwise").eq(own) & part["kept"].eq("yes").eq(kept)]
                x = some["seconds"] if question == "consensus" else some["measured"]
                place.scatter(
                    x, some["gain"], s=18, facecolors=fill, edgecolors=colour, linewidths=0.8, zorder=2 + own
                )
        if question == "sets":
            place.axvline(0.9, color="#444", linewidth=0.7)
        if question in {"sets", "consensus"}:
            (place.set_yscale if question == "sets" else place.set_xscale)("log")
            axis = place.yaxis if question == "sets" else place.xaxis
            axis.set_major_locator(LogLocator(subs=(1, 2, 5) if question == "sets" else (1,)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())
        place.set_title(name, fontsize=9)
        place.tick_params(labelsize=7)
    for place in axes.flat[len(names) :]:
        place.set_axis_off()
    figure.supxlabel("seconds" if question == "consensus" else measured, fontsize=9)
    figure.supylabel(gain, fontsize=9)
    folder = DOCS / "benchmark"
    folder.mkdir(exist_ok=True)
    figure.savefig(folder / f"{question}.svg", metadata={"Date": None})
    plt.close(figure)


def section(name, table, cells, known):
    """Title, rule, picture and tables of one question."""
    asked = runner.question(name)
    lines = table[table["question"].eq(name)]
    measured = lines[lines["gain"].notna() | lines["note"].notna()]
    gain, what = MEASURES[name]
    yield from (f"## {asked.TITLE}", "")
    for paragraph in asked.__doc__.strip().removeprefix(f"{asked.TITLE}: ").split("\n\n"):
        text = " ".join(paragraph.split())
        yield from (text[0].upper() + text[1:], "")
    yield from (f"![{gain}, beside {what}, a panel for each data set](benchmark/{name}.svg)", "")
    yield "Red: setwise. Grey: others. Hollow: not kept, or withdrawn. Each point is a method in one setting."
    yield ""
    own = cells[cells["question"].eq(name)] if len(cells) else cells
    if len(own):
        yield f"The best of setwise and of the others, among those that guarantee the same and kept it ({gain}):"
        yield from ("", *main_table(own), "")
    if name == "sets":
        yield "With verified rows the sets of `auto` contain those of split conformal prediction on the verified rows alone, with the"
        yield "same score. What they are larger buys coverage that varies less from draw to draw:"
        yield from ("", *spread_table(lines), "")
    if name == "estimates":
        yield "Intervals whose guarantee is for many verified rows are narrower. With the numbers measured here some hold less often than"
        yield "they say (hold: share of all intervals; least: of those of one figure; 0.95 is guaranteed):"
        yield from ("", *many_rows_table(lines), "")
    yield from ("Over all cells:", "", *summary_table(measured), "")
    yield from losses(lost(own) if len(own) else own, known)
    yield from failures(measured[measured["kept"].eq("failed")])


def losses(worse, known):
    """The cells in which a rival is better, by their reasons."""
    if len(worse):
        yield from ("### What we lose, and why", "")
    for why, some in worse.groupby([reason_of(cell, known) for cell in worse.to_dict("records")], dropna=False):
        yield from (f"{why or NO_REASON}", "")
        for cell in some.to_dict("records"):
            yield f"- {cell['data']}, {cell['setting']}: {cell['rival_method']} (ratio {number(cell['ratio'])})"
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
    cells, known = compared(table.sort_values(["question", "data", "verified"], kind="stable")), reasons()
    versions = table.dropna(subset=["version"]).groupby("package")["version"].first()
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    places = table.groupby(["machine", "python"])["package"].agg(lambda names: ", ".join(sorted(set(names))))
    where = "; ".join(f"{names} on {machine}, Python {python}" for (machine, python), names in places.items())
    about = f"Versions: {listed}. Measured up to {table['date'].max()}: {where}."
    yield _HEAD.format(
        sets=table["data"].nunique(),
        methods=len(table[["package", "method"]].drop_duplicates()),
        packages=table["package"].nunique(),
        versions=about,
    )
    yield "A *cell* is a data set in a setting with a guarantee that setwise and another method give and kept. The ratio is how much more the best of"
    yield "setwise costs than the best of the others: labels in a set, rows to look at, wrong labels missed, width, share of right labels."
    yield "Below 1 setwise is better; *equal* is within 0.5 %."
    yield "Sets of `auto` are larger by design, and their coverage is steadier, which the ratio does not count."
    yield from ("", *glance_table(cells), "")
    for name in runner.QUESTIONS:
        if (table["question"] == name).any():
            yield from section(name, table, cells, known)
    yield "## The data"
    yield ""
    yield "| set | what | source | licence | truth | how to get it |"
    yield "|---|---|---|---|---|---|"
    for name, card in data_sets.CARDS.items():
        if name in set(table["data"]):
            yield f"| {name} | {card.what} | {card.source} | {card.licence} | {card.truth} | {card.get} |"
    yield ""
    yield from (
        (HERE / "README.md")
        .read_text(encoding="utf-8")
        .replace("# Ambiguous labels, side by side", "## Add a data set or a method")
        .splitlines()
    )


def text(table):
    """The page as it is written."""
    return "\n".join(page(table)).rstrip() + "\n"


def main():
    table = read()
    for name in runner.QUESTIONS:
        if (lines := table[table["question"].eq(name)]).size:
            picture(name, lines)
    (DOCS / "benchmark.md").write_text(text(table), encoding="utf-8")


if __name__ == "__main__":
    main()
