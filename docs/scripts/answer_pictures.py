"""Draws the pictures of docs/guide/which-answer.md, docs/answers/….svg, from what its examples compute.

python docs/scripts/answer_pictures.py
"""

import contextlib
import doctest
import io
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

DOCS = Path(__file__).resolve().parents[1]
PAGE = DOCS / "guide" / "which-answer.md"
WIDTH = 3.6  # inches, 346 pixels: a phone
FILL, DARK, MISS, PALE = "#8fb8de", "#22304d", "#c0392b", "#e9edf4"
STYLE = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "setwise",
}


def run_examples():
    """The names that the examples of the page define."""
    names = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for example in doctest.DocTestParser().get_examples(PAGE.read_text(encoding="utf-8")):
            exec(compile(example.source, PAGE.name, "single"), names)  # noqa: S102 - what our own page shows
    return names


def draw_sets(ax, own, members, right, title="", missed=("X", MISS)):
    """A column for each text: filled cells are its set, a dot marks what is right, a cross what it misses."""
    for text, level in np.ndindex(members.shape):
        color = FILL if members[text, level] else PALE
        ax.add_patch(Rectangle((text - 0.46, level - 0.46), 0.92, 0.92, color=color, lw=0))
    for inside, marker, color in ((True, "o", DARK), (False, *missed)):
        ax.scatter(*np.nonzero(right & (members == inside)), marker=marker, color=color, s=26, lw=0, zorder=3)
    ax.set(xlim=(-0.6, len(members) - 0.4), ylim=(-0.6, 5.6), xticks=[], title=title)
    ax.set_yticks(range(6), own["levels"])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def true_cells(own, rows):
    """Where the true levels of some new texts are."""
    return own["true"][own["new"]][rows, None] == own["levels"]


def draw_each(figure, own):
    """Ten texts, of which one set misses the true level."""
    ten = np.arange(4, 14)
    draw_sets(figure.subplots(), own, own["sets"][ten].to_mask(), true_cells(own, ten))


def draw_classes(figure, own):
    """Coverage of each level, by one threshold and by its own."""
    ax = figure.subplots()
    ax.axhline(0.9, color="0.5", ls="--", lw=1)
    for name, marker, color, title in (("cal", "X", MISS, "one threshold"), ("each", "o", DARK, 'by="label"')):
        sets = own[name].predict_set(own["P"][own["new"]])
        found = own["setwise"].evaluate(sets, own["true"][own["new"]])["by_class"]
        covered = [found[level]["coverage"] for level in own["levels"]]
        ax.scatter(own["levels"], covered, marker=marker, color=color, s=26, lw=0, label=title)
    ax.set(ylim=(0.5, 1), ylabel="coverage")
    ax.set_yticks([0.5, 0.7, 0.9], ["50 %", "70 %", "90 %"])
    ax.legend(loc="lower left", frameon=False)


def draw_intervals(figure, own):
    """The texts that look like two levels."""
    rows = [int(np.flatnonzero((own["P"][own["new"]] == row).all(axis=1))[0]) for row in own["unsure"]]
    for ax, name, title in zip(figure.subplots(1, 2), ("cal", "ranges"), ("sets", "intervals"), strict=True):
        draw_sets(ax, own, own[name].predict_set(own["unsure"]).to_mask(), true_cells(own, rows), title)


def draw_nodes(figure, own):
    """The tree of two texts, and the nodes that they get."""
    tree, places = own["tree"], {level: (i, 0) for i, level in enumerate(own["levels"].tolist())}
    for height, parents in ((1, tree["any"]), (2, ["any"])):
        places |= {parent: (np.mean([places[child][0] for child in tree[parent]]), height) for parent in parents}
    answers = own["nodes"].predict_set(own["P"][own["new"]][[1, 3]]).to_nodes(tree, at_most=2).to_lists()
    for ax, answer in zip(figure.subplots(2, 1), answers, strict=True):
        for parent, children in tree.items():
            for child in children:
                ax.plot(*zip(places[parent], places[child], strict=True), color="0.7", lw=1, zorder=1)
        for node, (x, y) in places.items():
            box = {"boxstyle": "round,pad=0.25", "fc": FILL if node in answer else "white", "ec": "0.7"}
            ax.text(x, y, node, ha="center", va="center", color=DARK, bbox=box)
        ax.set(xlim=(-0.4, 5.4), ylim=(-0.4, 2.4), title="answer: " + ", ".join(answer))
        ax.axis("off")


def draw_several(figure, own):
    """Texts that suit one or two levels."""
    six = np.arange(6)
    for ax, (truth, sets) in zip(figure.subplots(1, 2), own["several"].items(), strict=True):
        draw_sets(ax, own, sets[six].to_mask(), own["suits"][own["new"]][six], f'truth="{truth}"', ("o", "0.65"))


def draw_decisions(figure, own):
    """What triage leaves to do, and how many of the labels that look wrong are."""
    review, found = len(own["decided"].review), own["doubtful"].rows
    known = sum(label is not None for label in own["verified"])
    wrong = int((own["given"][found, 2] != own["true"][own["old"]][found]).sum())
    bars = {
        "triage": [("verified", known), ("accepted", len(own["votes"]) - known - review), ("review", review)],
        "suspects": [("wrong", wrong), ("right", len(found) - wrong)],
    }
    for ax, (name, parts) in zip(figure.subplots(2, 1), bars.items(), strict=True):
        total, start = sum(count for _, count in parts), 0
        for (part, count), color in zip(
            parts, (PALE, FILL, MISS) if len(parts) == 3 else (MISS, PALE), strict=True
        ):
            ax.barh(0, count, left=start, color=color)
            side = "left" if start == 0 else "right" if start + count == total else "center"
            at = {"left": 0, "center": start + count / 2, "right": total}[side]
            ax.text(at, 0.75, f"{part} {count}", ha=side, va="center")
            start += count
        ax.set(ylim=(-0.5, 1.1), xlim=(0, total), yticks=[0], yticklabels=[name], xticks=[])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)


def draw_figures(figure, own):
    """Accuracies with their intervals."""
    ax, found = figure.subplots(), own["accuracy"]
    value, low, high = found[["value", "lower", "upper"]].to_numpy().T
    ax.errorbar(value, found["name"], xerr=[value - low, high - value], fmt="o", color=DARK, capsize=3)
    ax.invert_yaxis()
    ax.margins(y=0.15)
    ax.set_xticks([0.6, 0.7, 0.8, 0.9, 1], ["60 %", "70 %", "80 %", "90 %", "100 %"])
    ax.set(xlabel="right answers", xlim=(0.58, 1.02))


PICTURES = {
    "sets": (draw_each, 1.5),
    "classes": (draw_classes, 1.7),
    "intervals": (draw_intervals, 1.6),
    "nodes": (draw_nodes, 2.8),
    "several": (draw_several, 1.6),
    "decisions": (draw_decisions, 1.4),
    "figures": (draw_figures, 1.8),
}
"""How each is drawn, and its height in inches."""


def draw(folder):
    """Writes all pictures into a folder."""
    own = run_examples()
    with matplotlib.rc_context(STYLE):
        for name, (drawn, height) in PICTURES.items():
            figure = Figure(figsize=(WIDTH, height), layout="constrained")
            drawn(figure, own)
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    draw(DOCS / "answers")
