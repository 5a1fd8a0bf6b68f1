"""Cards and readers of the data. DIR is the user's folder; sets that are absent there are said and skipped.

None of the data is in the repository. The sets of candidates are found by `setwise.datasets`, in `SETWISE_DATA`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from setwise import LabelSets, Votes, datasets
from setwise.errors import DataError


@dataclass(frozen=True)
class DataSet:
    """One data set; positions of labels count within `classes`.

    `given` is the label of each row that somebody has, which may be wrong. `proposed` and `confidence` are those of
    one model. `probabilities` are of a model that saw none of these rows' true labels; of panels, shares of votes,
    and `learned` says that a model has learned them. `name` is that of the card.
    """

    y: np.ndarray
    classes: list
    probabilities: np.ndarray | None = None
    votes: Votes | None = None
    candidates: LabelSets | None = None
    given: np.ndarray | None = None
    proposed: np.ndarray | None = None
    confidence: np.ndarray | None = None
    by_chance: bool = False
    learned: bool = True
    name: str = ""

    def __post_init__(self) -> None:
        """Refuses what no question could use: parts of other lengths, and rows of which nothing is known."""
        n = len(self.y)
        if n and not (self.y.dtype.kind in "iu" and 0 <= self.y.min() <= self.y.max() < len(self.classes)):
            raise ValueError("y: expected positions within `classes`")
        if self.learned and self.probabilities is None and self.confidence is None:
            raise ValueError("learned: there are no probabilities")
        for name in ("probabilities", "votes", "candidates", "given", "proposed", "confidence"):
            part = getattr(self, name)
            if part is not None and len(part) != n:
                raise ValueError(f"{name}: {len(part)} rows, but y has {n}")
        for name in ("votes", "candidates"):
            part = getattr(self, name)
            if part is None:
                continue
            if (part.sizes == 0).any():
                raise ValueError(f"{name}: row {np.flatnonzero(part.sizes == 0)[0]} has none; leave such rows out")
            if part.classes.tolist() != list(self.classes):
                raise ValueError(f"{name}: other classes, or another order, than `classes`")


@dataclass(frozen=True)
class Card:
    """What is known of a data set, and how it is read."""

    name: str
    what: str
    source: str
    licence: str
    get: str
    truth: str
    read: Callable[[Path], DataSet]


CARDS: dict[str, Card] = {}
_CROWD = "any copy of the public files `question,worker,answer` and `question,truth` in `crowd/`"


def card(name: str, **facts: str):
    """Registers a reader with its card."""

    def register(read):
        CARDS[name] = Card(name=name, read=read, **facts)
        return read

    return register


def shares(votes: Votes) -> np.ndarray:
    """The share of each label in a row's votes."""
    return votes.counts / votes.counts.sum(axis=1, keepdims=True)


def panel(votes: Votes, y: np.ndarray) -> DataSet:
    """Votes alone: their shares stand for probabilities; given are those of who answered most rows."""
    theirs = votes.who == np.bincount(votes.who).argmax()
    given = votes.counts.argmax(axis=1)
    given[votes.row[theirs]] = votes.label[theirs]
    return DataSet(y, votes.classes.tolist(), shares(votes), votes, given=given, learned=False)


@card(
    "cifar10n",
    what="10,000 photos, three people's answers each, a network's probabilities; 10 classes",
    source="CIFAR-10N (Wei and others, 2022), probabilities of a network trained on other photos",
    licence="CC BY-NC 4.0 (answers)",
    get="`crowd/cifar10n.npz` with X, P, votes, y",
    truth="the labels of CIFAR-10",
)
def cifar10n(folder: Path) -> DataSet:
    held = np.load(folder / "crowd" / "cifar10n.npz")
    votes = Votes.from_matrix(held["votes"].astype(object), classes=range(10))
    return DataSet(
        held["y"].astype(int), [*range(10)], held["P"].astype(float), votes, given=held["votes"][:, 0].astype(int)
    )


def crowd(folder: Path, name: str) -> DataSet:
    table, truth = (pd.read_csv(folder / "crowd" / f"{name}-{part}.csv") for part in ("answers", "truth"))
    table = table[table["question"].isin(truth["question"])]
    classes = sorted(truth["truth"].unique().tolist())
    items = truth["question"].tolist()
    votes = Votes.from_table(
        table, item="question", annotator="worker", label="answer", items=items, classes=classes
    )
    return panel(votes, votes.vocabulary.encode(truth["truth"].to_numpy()))


@card(
    "dog",
    what="807 photos of dogs, 109 people, ten answers each; 4 breeds",
    source="Zhou and others, 2012",
    licence="public benchmark, none stated",
    get=_CROWD,
    truth="the breeds in ImageNet",
)
def dog(folder: Path) -> DataSet:
    return crowd(folder, "dog")


@card(
    "duck",
    what="108 photos, 39 people, each answered all; 2 classes",
    source="Welinder and others, 2010",
    licence="public benchmark, none stated",
    get=_CROWD,
    truth="whether a duck is in the photo",
)
def duck(folder: Path) -> DataSet:
    return crowd(folder, "duck")


@card(
    "llmjudge",
    what="33 language models judge how relevant 2,433 passages are; 4 ordered classes",
    source="LLMJudge (Rahmani and others, 2024)",
    licence="MIT (scores); none stated for human answers",
    get="`panels/llmjudge.csv` with `human` and a column per judge",
    truth="an assessor's answer",
)
def llmjudge(folder: Path) -> DataSet:
    table = pd.read_csv(folder / "panels" / "llmjudge.csv")
    answers = table.iloc[:, 3:].where(table.iloc[:, 3:].isin([0, 1, 2, 3]))
    votes = Votes.from_matrix(answers.to_numpy(dtype=object), classes=range(4))
    return panel(votes, table["human"].to_numpy())


def media_bias(folder: Path, name: str) -> DataSet:
    table = pd.read_csv(folder / "panels" / f"media-bias-{name}.csv", dtype=str)
    answers = table[[column for column in table if column.endswith("_label")]]
    answers = answers.where(answers.isin(["0", "1"]))
    answered = answers.notna().any(axis=1)
    votes = Votes.from_matrix(answers[answered].to_numpy(dtype=object), classes=["0", "1"])
    return panel(votes, table["label"][answered].astype(int).to_numpy())


_BIAS = {
    "source": "Media-Bias-Group, llm-annotations-annomatic (2024)",
    "licence": "MIT",
    "truth": "experts' labels",
}


@card(
    "media-bias-zero-shot",
    what="13 language models say whether 3,021 sentences are biased",
    get="`panels/media-bias-zero-shot.csv`",
    **_BIAS,
)
def media_bias_zero_shot(folder: Path) -> DataSet:
    return media_bias(folder, "zero-shot")


@card(
    "media-bias-cot",
    what="12 language models say so, after reasoning",
    get="`panels/media-bias-cot.csv`",
    **_BIAS,
)
def media_bias_cot(folder: Path) -> DataSet:
    return media_bias(folder, "cot")


_PAC = {
    "source": "Probably Approximately Correct Labels (Candès, Ilyas and Zrnic, 2025)",
    "licence": "MIT",
}


def one_model(table: pd.DataFrame, proposed: str) -> DataSet:
    classes = sorted({*table["Y"].tolist(), *table[proposed].tolist()})
    place = {label: i for i, label in enumerate(classes)}
    y, labels = (table[column].map(place).to_numpy() for column in ("Y", proposed))
    return DataSet(y, classes, given=labels, proposed=labels, confidence=table["confidence"].to_numpy(dtype=float))


@card(
    "stance",
    what="2,299 sentences on the climate, a language model's stance and confidence; 3 classes",
    get="`decisions/stance.csv` with Y, Yhat (GPT4o), confidence",
    truth="people's labels",
    **_PAC,
)
def stance(folder: Path) -> DataSet:
    return one_model(pd.read_csv(folder / "decisions" / "stance.csv"), "Yhat (GPT4o)")


@card(
    "imagenetv2",
    what="10,000 photos, a model's label and confidence; 1,000 classes",
    get="`decisions/imagenetv2.csv` with Y, Yhat, confidence",
    truth="the labels of ImageNetV2",
    **_PAC,
)
def imagenetv2(folder: Path) -> DataSet:
    return one_model(pd.read_csv(folder / "decisions" / "imagenetv2.csv"), "Yhat")


@card(
    "real",
    what="ImageNet's validation photos with one right label, the benchmark's own label, a model's label and confidence",
    source="Are we done with ImageNet? (Beyer and others, 2020)",
    licence="Apache-2.0, MIT",
    get="`experts/imagenet-real/` with real.json and model_top1.csv",
    truth="the label that raters and experts found right; photos with none or several are left out",
)
def real(folder: Path) -> DataSet:
    table = pd.read_csv(folder / "experts" / "imagenet-real" / "model_top1.csv")
    right = json.loads((folder / "experts" / "imagenet-real" / "real.json").read_text())
    place = dict(zip(table["image"].tolist(), range(len(table)), strict=True))
    rows = [(place[i + 1], labels[0]) for i, labels in enumerate(right) if len(labels) == 1 and i + 1 in place]
    chosen, y = np.array(rows).T
    table = table.iloc[chosen]
    return DataSet(
        y,
        [*range(1000)],
        given=table["original_label"].to_numpy(),
        proposed=table["model_label"].to_numpy(),
        confidence=table["model_confidence"].to_numpy(dtype=float),
    )


_PLL = {
    "licence": "academic use only",
    "get": "`setwise datasets fetch`, or the file in `pll/`",
    "truth": "the true label that comes with the set",
}


def partial(name: str) -> DataSet:
    """A set of candidates; probabilities are learned from the candidates of other rows."""
    found = datasets.load(name.lower().replace("-", "_"))
    return learned(
        name, found.X.reshape(len(found.y), -1).astype(float), found.candidates, found.y, found.n_classes
    )


def learned(name, X, candidates, y, k, rows=4000, **facts) -> DataSet:
    """Half of the rows (4,000 at most) teach a network from their candidates; others, 6,000 at most, remain."""
    kept = Path(os.environ.get("SETWISE_BENCHMARK_CACHE", Path.home() / ".cache" / "setwise-benchmark"))
    order = np.random.default_rng(0).permutation(len(y))
    size = min(len(y) // 2, rows)
    train, rest = order[:size], order[size : size + 6000]
    digest = hashlib.sha256(
        np.ascontiguousarray(X).tobytes() + np.packbits(candidates.to_mask()).tobytes()
    ).hexdigest()
    file = kept / f"{name}-{digest[:12]}.npz"
    if not file.exists():
        from setwise.learn import PartialLabelClassifier

        model = PartialLabelClassifier(random_state=0).fit(X[train], candidates[train])
        found = model.predict_proba(X[rest])
        P = np.zeros((len(rest), k))
        P[:, np.asarray(model.classes_, dtype=int)] = found
        kept.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(file, P=P)
    return DataSet(y[rest], [*range(k)], np.load(file)["P"], candidates=candidates[rest], **facts)


def _partial(name: str, what: str, source: str) -> None:
    card(name, what=what, source=source, **_PLL)(lambda _folder: partial(name))


_partial("lost", "1,122 faces of a series, names of the scene as candidates; 16 classes", "Cour and others, 2011")
_partial(
    "MSRCv2", "1,758 regions of photos, the photo's labels as candidates; 23 classes", "Liu and Dietterich, 2012"
)
_partial("BirdSong", "4,998 songs, the birds of a recording as candidates; 13 classes", "Briggs and others, 2012")
_partial(
    "FG-NET", "1,002 faces, ten people's guesses of the age as candidates; 78 classes", "Panis and Lanitis, 2014"
)
_partial("italian", "21,878 words, the tags of a tagger as candidates; 90 classes", "Johan and others, 2009")


def contaminated(name: str, kind: str) -> DataSet:
    """Photos with candidates that are simulated from the true label."""
    found = datasets.load(name)
    rows = np.random.default_rng(1).permutation(len(found.y))[:10_000]
    X, y = found.X[rows].reshape(len(rows), -1) / 255.0, found.y[rows]
    if kind == "random":
        rule = datasets.Random(p=0.3)
    else:
        from sklearn.linear_model import LogisticRegression

        other = np.random.default_rng(2).permutation(np.setdiff1d(np.arange(len(found.y)), rows))[:5000]
        model = LogisticRegression(max_iter=100).fit(found.X[other].reshape(5000, -1) / 255.0, found.y[other])
        rule = datasets.InstanceDependent(model.predict_proba(X))
    candidates = datasets.contaminate(y, rule, n_classes=10, random_state=0)
    return learned(f"{name}-{kind}", X, candidates, y, 10, by_chance=kind == "random")


def _contaminated(name: str, kind: str, how: str) -> None:
    facts = dict(_PLL, licence="MIT" if name == "fashion_mnist" else "public benchmark")
    facts["get"] = f"`setwise datasets fetch {name}`, or its files in `{name}/`"
    what = f"10,000 photos of {name}, {how}; 10 classes"
    card(f"{name}-{kind}", what=what, source="the data sets of the paper", **facts)(
        lambda _folder: contaminated(name, kind)
    )


_contaminated("fashion_mnist", "random", "every false label a candidate with probability 0.3")
_contaminated("fashion_mnist", "instance", "plausible false labels as candidates")
_contaminated("kmnist", "instance", "plausible false labels as candidates")


def load(name: str, folder: Path) -> DataSet | None:
    """The data set; None where it is absent."""
    os.environ["SETWISE_DATA"] = str(folder)
    try:
        return replace(CARDS[name].read(folder), name=name)
    except (FileNotFoundError, DataError) as error:
        print(f"ABSENT: {name} ({error})", flush=True)
        return None
