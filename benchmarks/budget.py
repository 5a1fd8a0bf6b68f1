"""What checks are worth: size and promise of `auto` against the number of verified rows, drawn by `suggest`.

    SETWISE_DATA=DIR python benchmarks/budget.py --keep

Five splits of each real set: half of the rows to learn a linear model from, a third to calibrate on, the rest new.
`expected` is what `suggest_verification` said before any label was seen, `expected_after_20` what it said once 20 rows were verified. `--keep` writes benchmarks/results/budget.json and docs/budget.svg.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from summary import RESULTS, ROOT, machine

from setwise import PartialLabelClassifier, conformalize, suggest_verification
from setwise.datasets import load

SETS = ("lost", "msrcv2", "birdsong", "fg_net")
BUDGETS = (10, 20, 50, 100, 200)
LEVEL, SEEDS, DRAWS = 0.9, 5, 10


def measured(name):
    """One row for each budget."""
    data = load(name)
    X, sets, y = np.asarray(data.X, float), data.candidates, np.asarray(data.y)
    found = {}
    for seed in range(SEEDS):
        order = np.random.default_rng(seed).permutation(len(y))
        learned, cal, new = np.split(order, [len(y) // 2, len(y) // 2 + len(y) // 3])
        learner = PartialLabelClassifier("linear", random_state=seed, device="cpu")
        model = learner.fit(X[learned], sets[learned])
        P, Q = model.predict_proba(X[cal]), model.predict_proba(X[new])
        nothing = conformalize(P, sets[cal])
        keep(found, 0, "nothing verified", nothing, Q, y[new], np.nan, np.nan)
        keep(
            found,
            len(cal),
            "every row verified",
            conformalize(P, y[cal], classes=range(sets.n_classes)),
            Q,
            y[new],
            np.nan,
            np.nan,
        )
        for budget in (count for count in BUDGETS if count <= len(cal)):
            for draw in range(DRAWS):
                made = suggest_verification(model, X[cal], sets[cal], budget, random_state=1000 * seed + draw)
                verified = np.full(len(cal), None, object)
                verified[made.rows] = y[cal][made.rows]
                calibration = conformalize(P, sets[cal], verified=verified)
                later = after_twenty(model, X[cal], sets[cal], y[cal], budget, draw)
                keep(found, budget, "some rows verified", calibration, Q, y[new], made.size_then, later)
    for (budget, drawn), values in found.items():
        coverage, size, promised, expected, later = np.array(values, float).T
        yield {
            "set": name,
            "checks": budget,
            "drawn": drawn,
            "runs": len(values),
            "coverage": round(float(coverage.mean()), 4),
            "size": round(float(size.mean()), 3),
            "size_sd": round(float(size.std()), 3),
            "promised": round(float(np.nanmin(promised)), 4),
            "withheld": int(np.isnan(promised).sum()),
            "expected": None if np.isnan(expected).all() else round(float(expected.mean()), 3),
            "expected_after_20": None if np.isnan(later).all() else round(float(np.nanmean(later)), 3),
        }


def after_twenty(model, X, sets, y, budget, draw):
    """The size expected for so many verified rows in all, when 20 of them are."""
    if budget <= 20:
        return np.nan
    verified = np.full(len(y), None, object)
    first = np.random.default_rng(draw).choice(len(y), 20, replace=False)
    verified[first] = y[first]
    return suggest_verification(model, X, sets, budget - 20, verified=verified, random_state=draw).size_then


def keep(found, budget, drawn, calibration, Q, y, *expected):
    sets = calibration.predict_set(Q, LEVEL)
    promised = calibration.guarantee(LEVEL).promised
    row = (sets.contains(y).mean(), sets.sizes.mean(), np.nan if promised is None else promised, *expected)
    found.setdefault((budget, drawn), []).append(row)


def picture(rows):
    """One panel for each set."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(SETS), figsize=(11, 3), layout="constrained")
    for name, ax in zip(SETS, panels, strict=True):
        own = [row for row in rows if row["set"] == name]
        line = [row for row in own if row["drawn"] == "some rows verified"]
        ax.plot(
            [row["checks"] for row in line], [row["size"] for row in line], "o-", label="some rows verified", ms=4
        )
        ax.plot(
            [row["checks"] for row in line], [row["expected"] for row in line], "k:", label="expected beforehand"
        )
        for drawn, colour in (("nothing verified", "0.6"), ("every row verified", "0.3")):
            level = next(row["size"] for row in own if row["drawn"] == drawn)
            ax.axhline(level, color=colour, ls="--", lw=1, label=drawn)
        ax.set(title=name, xlabel="verified rows", xscale="log", ylim=(0, None))
        ax.set_xticks(BUDGETS, BUDGETS)
    panels[0].set_ylabel("labels per set at 0.90")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    plt.rcParams["svg.hashsalt"] = "setwise"
    figure.savefig(ROOT / "docs" / "budget.svg", metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in options.sets:
            for row in measured(name):
                print(row, flush=True)
                rows.append(row)
    if options.keep:
        result = {"machine": machine("torch"), "level": LEVEL, "rows": rows}
        Path(RESULTS / "budget.json").write_text(json.dumps(result, indent=1) + "\n")
        picture(rows)


if __name__ == "__main__":
    main()
