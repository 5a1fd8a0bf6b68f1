"""The grid: every strategy and score in every shape and world that says something about it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import product
from typing import Any

from setwise.scores import LAC, Nodes
from setwise.strategies import Corrected, Mixture, Rectified
from tests.observatory.worlds import SEVERAL, VOTES

STRATEGIES: dict[str, Any] = {
    "auto": "auto",
    "max": "max",
    "min": "min",
    "mean": "mean",
    "all": "all",
    "mixture 0.3": Mixture(mu=0.3),
    "mixture 0.7": Mixture(mu=0.7),
    "corrected": Corrected(),
    "corrected finite": Corrected(margin="finite"),
    "rectified": Rectified(),
    "rectified finite": Rectified(margin="finite"),
    "posterior": "posterior",
    "votes": "votes",
    "crowd": "crowd",
    "triage overall": "max",
    "triage average": "max",
    "triage accepted": "max",
    **{
        f"decide {kind}": "max"
        for kind in ("overall", "accepted", "average", "curve", "per class", "looks", "suspects")
    },
}
RANKS = ("max", "min", "mean", "mixture 0.3", "mixture 0.7", "all")
SIZES = (5, 20, 50, 200, 2000)
ALL_K = (2, 3, 10, 50)
CONTAMINATIONS = (
    "none",
    "uniform:0.3",
    "uniform:0.7",
    "class",
    "confusing",
    "sizes",
    "adversarial",
    "decoy",
    "harmless",
)


@dataclass(frozen=True)
class Cell:
    """One setting of everything; its key names what differs from the default."""

    strategy: str = "max"
    score: str = "lac"
    shape: str = "plain"
    n: int = 50
    k: int = 3
    contamination: str = "uniform:0.3"
    checks: str = "none"
    model: str = "right"
    breach: str = ""
    assume: str = "nothing"
    missing: str = "error"
    miss_rate: float = 0.0
    level: float = 0.0

    @property
    def key(self) -> str:
        """All settings that are not the default, in words."""
        shown = {f.name: getattr(self, f.name) for f in fields(self)}
        always = ("strategy", "score", "shape", "n", "k", "contamination")
        rest = [
            f"{f.name}={shown[f.name]}" for f in fields(self) if f.name not in always and shown[f.name] != f.default
        ]
        return "; ".join(
            [self.strategy, self.score, self.shape, f"n={self.n}", f"K={self.k}", self.contamination, *rest]
        )

    @property
    def confidence(self) -> float:
        """The level asked for: 0.9, or 0.8 where five rows must do."""
        return self.level or (0.8 if self.n == 5 else 0.9)

    @property
    def fixed(self) -> bool:
        """Whether each row of the population has one truth and one candidate set."""
        votes = self.strategy.startswith("crowd") or self.shape == "votes, ambiguous"
        return self.assume == "nothing" and not self.strategy.startswith("posterior") and not votes

    @property
    def samples(self) -> int:
        """How many calibration samples are drawn."""
        if self.shape in {"command line", "fit by command line"}:
            return 24
        if self.shape in {"classifier", "cross"}:
            return 60 if self.contamination == "none" else 30
        if self.shape == "table":
            return 80
        if self.strategy.startswith("decide"):
            return 400
        if self.strategy.startswith("triage"):
            return 200 if "votes" in self.shape else 400
        few = 160 if self.n >= 2000 else 400 if self.n >= 200 else 600
        return few // 2 if self.score != "lac" or self.assume != "nothing" else few

    def made_strategy(self) -> Any:
        return STRATEGIES[self.strategy]

    def made_score(self) -> Any:
        if self.score.startswith("nodes"):
            half = self.k // 2
            tree = {"low": [*range(half)], "high": [*range(half, self.k)], "all": ["low", "high"]}
            return Nodes(tree, int(self.score.removeprefix("nodes ")))
        return LAC(domain="unit") if self.score == "unit" else self.score


def grid() -> dict[str, Cell]:
    """Every cell by its key."""
    made = [cell for block in BLOCKS for cell in block()]
    return {cell.key: cell for cell in made}


def _cells(**options: Any) -> list[Cell]:
    """The product of all options that are tuples."""
    names = list(options)
    values = [value if isinstance(value, tuple) else (value,) for value in options.values()]
    return [Cell(**dict(zip(names, chosen, strict=True))) for chosen in product(*values)]


def ranks() -> list[Cell]:
    """Strategies by ranks, without checks: Theorems 1 to 3, weak coverage, the law, the bracket."""
    return _cells(strategy=("auto", *RANKS), n=SIZES, k=ALL_K, contamination=CONTAMINATIONS)


def models() -> list[Cell]:
    """Whatever the model is worth; probabilities with ties, as neighbours, trees and saturation give them."""
    worth = ("overconfident", "poor", "tenths", "leaves", "saturated", "two kinds")
    some = ("none", "uniform:0.3", "adversarial", "decoy")
    return [
        *_cells(strategy=("max", "min", "mean", "all"), n=(20, 200), k=(2, 3, 10), contamination=some, model=worth),
        *_cells(strategy=("max", "min"), n=(9, 19, 20), contamination=some, model=worth, level=(0.9, 0.95)),
    ]


def scores() -> list[Cell]:
    """Every score."""
    others = ("aps", "raps", "saps", "margin", "unit")
    some = ("none", "uniform:0.3", "confusing", "adversarial")
    used = ("max", "min", "mean", "mixture 0.3")
    return [
        *_cells(strategy=used, score=others, n=(20, 200), k=(3, 10), contamination=some),
        *_cells(strategy="max", score=others, n=(5, 50, 2000), k=(2, 50), contamination=some[1:3]),
        *_cells(strategy="rectified", score=others, n=2000, k=(3, 10), contamination=some[1:], checks="random"),
        *_cells(strategy="auto", score=others, n=(50, 200), contamination=some[1:], checks=("random", "half")),
        *_cells(strategy=("corrected", "corrected finite"), score=others[:4], n=2000, assume="uniform"),
        *_cells(strategy=("posterior",), score=others[:4], n=2000),
    ]


def ordered() -> list[Cell]:
    """The score of ordered classes, whose extremes are not those of the probabilities."""
    some = ("none", "uniform:0.3", "confusing", "adversarial")
    return [
        *_cells(strategy=("max", "min", "mean", "mixture 0.3"), score="rps", n=(20, 200), k=(2, 3, 10),
                contamination=some),
        *_cells(strategy="max", score="rps", n=(20, 200), k=(3, 10), model=("poor", "tenths", "saturated"),
                contamination=some[:2]),
        *_cells(strategy=("rectified", "auto"), score="rps", n=(200, 2000), k=(3, 10), checks="random",
                contamination=some[1:]),
        *_cells(strategy=("corrected", "corrected finite"), score="rps", n=2000, assume="uniform"),
        *_cells(strategy="votes", score="rps", shape="votes", n=(20, 200), k=(3, 10), contamination="none"),
        *_cells(strategy="max", score="rps", shape=("by given", "weights", "groups", "saved", "own"), n=(50, 200),
                contamination=some[1:3]),
    ]  # fmt: skip


def trees() -> list[Cell]:
    """Sets that are one or two nodes of a tree."""
    some, nodes = ("none", "uniform:0.3", "confusing", "adversarial"), ("nodes 1", "nodes 2")
    return [
        *_cells(strategy=("max", "mean"), score=nodes, n=(20, 200), k=(3, 10), contamination=some),
        *_cells(strategy="max", score=nodes, n=(20, 200), k=10, model=("poor", "tenths", "saturated"),
                contamination=some[:2]),
        *_cells(strategy=("rectified", "auto"), score=nodes, n=200, k=10, checks="random", contamination=some[1:]),
        *_cells(strategy="max", score=nodes, shape=("by given", "weights", "groups", "saved"), n=50,
                contamination=some[1:3]),
    ]  # fmt: skip


def declared() -> list[Cell]:
    """Strategies that are told how candidates arise, where it is so and where it is not."""
    margins = ("corrected", "corrected finite", "auto")
    of_class = ("none", "uniform:0.3", "class")
    return [
        *_cells(strategy=margins, n=(20, 200, 2000), k=(2, 3, 10), assume="uniform",
                contamination=("none", "uniform:0.1", "uniform:0.3", "uniform:0.7", "confusing", "decoy")),
        *_cells(strategy=margins[:2], n=2000, k=50, assume="uniform", contamination=("uniform:0.1", "uniform:0.3")),
        *_cells(strategy=margins, n=(200, 2000), k=(2, 3, 10), assume="matrix",
                contamination=("class", "confusing")),
        *_cells(strategy=margins, n=2000, k=3, assume="class", contamination=of_class),
    ]  # fmt: skip


def posteriors() -> list[Cell]:
    """Weights from the model, where they are right and where they are not."""
    some = ("none", "uniform:0.1", "uniform:0.3", "uniform:0.7", "class", "confusing")
    return [
        *_cells(strategy="posterior", n=(20, 200, 2000), k=(2, 3, 10), contamination=some),
        *_cells(strategy="posterior", n=(20, 200, 2000), model=("overconfident", "poor")),
    ]


def verified() -> list[Cell]:
    """Verified rows: at random, few, half, all; with chances; avoiding hard rows, told and untold."""
    users = ("rectified", "rectified finite", "auto")
    bounds = ("min", "mean", "mixture 0.3", "all", "max")
    ways = ("random", "half", "all", "chances", "easy", "singletons")
    some = ("uniform:0.3", "confusing", "adversarial", "decoy")
    return [
        *_cells(strategy=users, n=(20, 50, 200, 2000), k=(3, 10), contamination=some, checks=("random", "half")),
        *_cells(strategy=users, n=(50, 200, 2000), contamination=some[::3], checks=("few", *ways[2:])),
        *_cells(strategy=bounds, n=(20, 200, 2000), k=(3, 10), contamination=(*some, "harmless"),
                checks=("random", "all")),
        *_cells(strategy=(*users, *bounds), n=(200, 1000), contamination="decoy", checks=ways,
                model=("two kinds", "tenths")),
        *_cells(strategy=("auto", *bounds), n=(19, 99), contamination=("decoy", "harmless"), checks="all",
                model=("two kinds", "overconfident")),
        *_cells(strategy="all", n=(19, 30), contamination="decoy", checks="all", k=2),
        *_cells(strategy="auto", n=(50, 200, 2000), k=10, checks=("few", "random", "half"),
                level=(0.8, 0.95, 0.99)),
    ]  # fmt: skip


def shapes() -> list[Cell]:
    """Categories, groups, weights, candidates of new rows, files."""
    some = ("none", "uniform:0.3", "confusing", "adversarial")
    by = ("by given", "by predicted", "by size")
    return [
        *_cells(strategy=("auto", "max", "min", "mean", "mixture 0.3"), shape=by, n=(50, 200, 2000), k=(3, 10),
                contamination=some),
        *_cells(strategy=("corrected finite", "corrected"), shape=by, n=2000, assume="uniform"),
        *_cells(strategy=("rectified", "auto", "all"), shape=by, n=(200, 2000), checks=("random", "half"),
                contamination=some[1:]),
        *_cells(strategy=("auto", "max", "min", "mean", "mixture 0.3"), shape=("groups", "groups, informative"),
                n=(20, 50, 200), k=(2, 3, 10), contamination=some[:3]),
        *_cells(strategy=("auto", "max", "min", "mean", "mixture 0.3"), shape="weights", n=(20, 50, 200, 2000),
                k=(3, 10), contamination=some),
        *_cells(strategy=("auto", *RANKS[:4], "all"), shape="saved", n=(20, 200), k=(3, 10),
                contamination=some[1:]),
        *_cells(strategy=("rectified", "corrected finite", "posterior"),
                shape="saved", n=2000, checks="random", assume="uniform"),
        *_cells(strategy=("auto", "max", "min", "mean"), shape="own", n=(20, 200), k=(3, 10), contamination=some),
        *_cells(strategy="max", score=("aps", "margin"), shape=(*by, "weights", "saved", "own"), n=(50, 200),
                contamination=some[1:3]),
    ]  # fmt: skip


def by_label() -> list[Cell]:
    """Each true class by itself, from exact labels or verified rows; some are a hundred times rarer."""
    here, models = {"shape": "by label", "k": (3, 10)}, ("right", "long tail", "tenths", "overconfident")
    contaminations = ("uniform:0.3", "confusing", "adversarial", "decoy")
    return [
        *_cells(strategy=("auto", "max"), n=(20, 50, 200, 1000, 2000), contamination="none", model=models, **here),
        *_cells(strategy="auto", score=("aps", "margin"), n=(50, 1000), contamination="none", model=models[:2],
                **here),
        *_cells(strategy="auto", n=(50, 200, 2000), contamination=contaminations, checks=("random", "half", "easy"),
                model=models[:2], **here),
        *_cells(strategy="auto", n=(200, 1000), contamination="none", model="long tail", level=(0.8, 0.95), **here),
    ]  # fmt: skip


def several_right() -> list[Cell]:
    """All, one or half of a row's right labels in its set, by exact sets of them or by verified rows."""
    here = {"shape": tuple(SEVERAL), "contamination": ("uniform:0.3", "confusing")}
    some = {"strategy": "auto", "n": 50, "k": 10, "checks": "random", **here}
    return [
        *_cells(strategy=("auto", "max"), n=(9, 50, 200), k=(3, 10), **here),
        *_cells(
            strategy=("auto", "max", "rectified"), n=(50, 200), k=10, checks=("random", "half", "easy"), **here
        ),
        *_cells(score=("aps", "margin"), **some),
        *_cells(model=("overconfident", "tenths"), level=(0.8, 0.95), **some),
        *_cells(**some | {"n": 200, "checks": "chances"}),
    ]


def breaches() -> list[Cell]:
    """Worlds in which a premise is false: claims that name it say nothing there, all others must hold."""
    used = ("auto", "max", "min", "mean", "mixture 0.3", "all")
    told = ("corrected finite", "auto", "posterior")
    losers = (*used, "rectified", "rectified finite")
    return [
        *_cells(strategy=used, n=(20, 200), k=(3, 10), contamination="none", breach="annotators"),
        *_cells(strategy=used[:5], shape=("by size", "own"), n=(50, 200, 500), k=(3, 10), breach="annotators",
                model=("right", "two kinds")),
        *_cells(strategy=used, n=(20, 50, 200), contamination=("none", "uniform:0.3", "decoy"),
                breach="environment"),
        *_cells(strategy=used, n=(50, 300), k=(3, 5), contamination=("none", "uniform:0.3"),
                model=("tenths", "leaves", "right"), breach=("float32", "float64")),
        *_cells(strategy=("max", "mean"), score=("aps", "raps", "saps", "margin"), n=300, k=(3, 5),
                contamination="none", model=("tenths", "leaves", "constant"), breach=("float32", "float64")),
        *_cells(strategy=("max", "mean"), score=("lac", "margin"), n=300, k=(3, 5), contamination="none",
                model=("tenths", "leaves"), breach=("upcast", "decimals")),
        *_cells(strategy="max", shape=("by predicted", "by given", "saved", "weights"), n=300, k=5,
                contamination="none", model="tenths", breach=("float32", "float64")),
        *_cells(strategy=("rectified", "auto"), n=300, model="tenths", checks="half",
                breach=("float32", "float64")),
        *_cells(strategy=used, n=(50, 200), contamination=("none", "uniform:0.3"), breach="seen"),
        *_cells(strategy=used, n=(50, 200), missing=("full", "drop"), breach="blank"),
        *_cells(strategy=told, n=4000, k=5, contamination="uniform:0.1", assume=("uniform", "nothing"),
                missing=("full", "drop"), breach="blank"),
        *_cells(strategy="max", shape=("by given", "by predicted", "by size"), n=200, missing=("full", "drop"),
                breach="blank"),
        *_cells(strategy=losers, n=(50, 200, 1000), k=(3, 4), contamination=("none", "uniform:0.3"), breach="lost",
                checks=("none", "random", "all")),
        *_cells(strategy=("auto", "max", "corrected", "min", "mean"),
                n=(50, 200, 2000), breach="lost as declared", miss_rate=0.05, level=0.8,
                checks=("none", "random")),
    ]  # fmt: skip


def votes() -> list[Cell]:
    """Annotators who err independently, copy each other, disagree about what is ambiguous, guess, or change."""
    shapes, models, copied = tuple(VOTES), ("right", "overconfident", "poor"), ("votes", "votes, copied")
    numbers = ("votes, spammer", "votes, one each", "votes, 1 to 50")
    plain = {"contamination": "none", "n": (20, 50, 200, 2000), "k": (2, 3, 10)}
    return [
        *_cells(strategy=("votes", "auto"), shape=shapes[:4], model=models[0], **plain),
        *_cells(strategy=("votes", "auto"), shape=copied, model=models[1:], **plain),
        *_cells(strategy="votes", shape=shapes[:2], score=("aps", "saps", "margin"), **plain),
        *_cells(strategy=("crowd", "auto"), shape=copied, model=models,
                assume="independent", contamination="none", n=(200, 2000), k=(2, 3, 10)),
        *_cells(strategy="auto", shape=copied, checks=("few", "random", "half", "all"), model=models, **plain),
        *_cells(strategy=("votes", "auto"), shape=shapes[4:], contamination="none", n=(20, 200), k=(2, 10)),
        *_cells(strategy=("crowd", "auto"), shape=numbers[:2], model=models[:2], assume="independent",
                contamination="none", n=2000, k=(2, 10)),
        *_cells(strategy=("crowd", "auto"), shape=("votes, 1 to 50", "votes, one voice"), assume="independent",
                contamination="none", n=200, k=(2, 10)),
        *_cells(strategy="auto", shape=shapes[4:], checks=("few", "random"), contamination="none", n=200,
                k=(2, 10)),
        *_cells(strategy=("votes", "auto"), shape="votes", contamination="none", n=(50, 200), k=200),
        *_cells(strategy="auto", shape="votes", checks="chances", contamination="none", n=(200, 2000)),
    ]  # fmt: skip


def triage() -> list[Cell]:
    """Accept or review: own rows and new ones; n is the number of verified rows, 1 − level the error allowed."""
    modes, models = ("triage overall", "triage accepted", "triage average"), ("right", "overconfident", "poor")
    kinds = ("own rows", "new rows", "new rows, candidates")
    common = {"strategy": modes, "model": models, "checks": "random"}
    return [
        *_cells(shape=kinds, n=(20, 60, 150, 400, 1000), level=(0.8, 0.9, 0.95, 0.98, 0.99), **common),
        *_cells(shape=("own rows, votes", "new rows, votes"), n=(20, 150, 1000), level=(0.8, 0.95, 0.98), **common),
    ]


def decisions() -> list[Cell]:
    """The exact rule and what rests on it, where it is hardest; n and 1 − level as in `triage`."""
    kinds = ("overall", "accepted", "average", "curve", "per class", "looks", "suspects")
    patterns = ("hardest", "spread", "ties", "all wrong", "none wrong")
    shapes = tuple(f"{rows}, {pattern}" for rows in ("at hand", "to come") for pattern in patterns)
    names = tuple(f"decide {kind}" for kind in kinds)
    return _cells(strategy=names, shape=shapes, n=(3, 30, 100, 300), contamination="none", level=(0.8, 0.9, 0.95))


def interfaces() -> list[Cell]:
    """Through scikit-learn, cross-conformal, tables and the command line."""
    some = ("none", "uniform:0.3")
    return [
        *_cells(strategy=("auto", "max", "mean", "min"), shape="classifier", n=(100, 400), k=(2, 4),
                contamination=some),
        *_cells(strategy="auto", shape="classifier", n=400, k=4, checks=("random", "half"), contamination=some[1]),
        *_cells(strategy=("auto", "max"), shape="classifier", n=400, k=5, contamination="none", level=(0.8, 0.9),
                breach=("tail", "short tail")),
        *_cells(strategy=("auto", "max"), shape="classifier", n=400, k=4, contamination="none", breach="seen"),
        *_cells(strategy=("auto", "max", "mean"), shape="cross", n=(40, 100), k=(2, 4), contamination="none",
                level=(0.8, 0.9)),
        *_cells(strategy=("max", "mean"), shape="cross", n=40, k=3, contamination=some[1], level=0.8),
        *_cells(strategy="max", shape="cross", n=400, k=5, contamination="none", breach=("tail", "short tail")),
        *_cells(strategy=("auto", "max"), shape="table", n=(50, 200), k=4, contamination="none", missing="full",
                breach=("unnamed", "")),
        *_cells(strategy=("auto", "max", "mean"), shape="command line", n=200, k=4, contamination=some),
        *_cells(strategy="max", shape="fit by command line", n=400, k=4, contamination="none", missing="full",
                breach="unnamed"),
        *_cells(strategy="max", shape="fit by command line", n=400, k=4, contamination=some),
    ]  # fmt: skip


BLOCKS = (
    ranks,
    models,
    scores,
    ordered,
    trees,
    declared,
    posteriors,
    verified,
    shapes,
    by_label,
    several_right,
    breaches,
    votes,
    triage,
    decisions,
    interfaces,
)
