"""`estimate`: how common classes are, and how often annotators, consensus, model and sets are right.

Each figure is a share of rows with the interval of `rectified_shares`, whose proxy no verified label has seen: of
a class, whether the consensus names it; of an annotator, whether the consensus says the same. How many rows have
a true label is not known; of these (sensitivity, specificity, recall) the share is that of the verified ones with
the binomial interval, which is wide enough for rows drawn without replacement. Of rows in groups it is Korn and
Graubard's, for groups drawn at random (`ranks.share_interval`).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from setwise._arrays import Array, Bools, Floats, Ints, frame_columns
from setwise._types import Candidates, Column, ProbabilityRows
from setwise.crowd.consensus import weigh_votes
from setwise.crowd.rectified_shares import Shares, rectify, single_answers
from setwise.crowd.verifiers import add_verified
from setwise.errors import InputError, Remedy, check_length
from setwise.evidence.evidence import gather
from setwise.evidence.row_facts import RowFacts, categories
from setwise.evidence.row_names import check_row_names
from setwise.evidence.verified_rows import compare_verified, refuse_sole_answers, sizes_differ, warn_about_choice
from setwise.findings import Finding
from setwise.guarantees import Claim, Guarantee, Premise, Printed, format_lines
from setwise.labels.coerce import as_candidates, as_label_sets
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import MISSING, Vocabulary, label_vector, missing_labels
from setwise.labels.votes import Votes
from setwise.probabilities.dense import DenseRows, as_probabilities
from setwise.ranks import FEWEST_GROUPS, binomial_bounds, share_interval
from setwise.scores import LAC

_WIDTH = 0.03  # for which the printed table says how many more verified rows are needed
_SHOWN = 10  # figures of one kind that are printed
_DELTA = 0.05
_FEW = 10  # verified rows; fewer do not tell how wide an interval will be
_RECALLS = ("recall", "sensitivity", "specificity")
_VOICES = {"consensus", "model", "labels"}  # who answers rows beside the annotators


@dataclass(frozen=True, eq=False, repr=False)
class Estimates(Printed):
    """Figures about rows, each with a 95 % interval. What follows is aligned.

    Attributes
    ----------
    what
        What each figure is: the "share" of a class, an "accuracy", a "recall" (of two classes "sensitivity" and
        "specificity"), or the "coverage" of sets.
    name, label
        The class of a share; otherwise who answered: an annotator, or "consensus", "model", "labels", "sets". Of
        recalls also the true label.
    value, lower, upper
        The estimate and the ends of its interval; NaN without a verified row, and the ends with too few groups.
    verified
        How many verified rows it rests on.
    category
        The category of its rows; None for all rows.
    n, n_verified
        How many rows there are, and how many of them are verified.
    guarantee
        What holds, and what that rests on.
    """

    what: Array
    name: Array
    label: Array
    value: Floats
    lower: Floats
    upper: Floats
    verified: Ints
    category: Array
    n: int
    n_verified: int
    guarantee: Guarantee

    def rows_for(self, width: float = _WIDTH) -> Floats:
        """About how many more rows to verify for each figure, so that its interval is at most ± `width`.

        The square of the half width falls like 1/m − 1/n with m of n rows verified. NaN where there is no interval.
        """
        if not 0 < width < 1:
            raise InputError(f"width: {width} is not between 0 and 1", "use 0.03 for ± 3 points")
        half, known = (self.upper - self.lower) / 2, np.nan_to_num(self.value)
        about = (known * self.verified + 2) / (self.verified + 4)
        rough = 1.96 * np.sqrt(about * (1 - about) / np.maximum(self.verified, 1))
        now = np.where(self.verified < _FEW, np.maximum(half, rough), np.maximum(half, 1e-9))
        left = 1 / self.n_verified - 1 / self.n
        more = np.ceil(1 / (1 / self.n + left * (width / now) ** 2) - self.n_verified - 1e-6)
        return np.where(half <= width, 0.0, np.where(np.isnan(half), np.nan, np.maximum(more, 1.0)))

    def to_frame(self) -> Any:
        """A pandas frame with one figure per line; with a category where there are any."""
        import pandas as pd  # pandas is optional

        columns = ("what", "name", "label", "value", "lower", "upper", "verified")
        return pd.DataFrame({name: getattr(self, name) for name in (*columns, *self._categories)})

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON; NaN is None."""
        columns = ("what", "name", "label", "value", "lower", "upper", "verified", *self._categories)
        lines = zip(*(map(_plain, getattr(self, name).tolist()) for name in columns), strict=True)
        return {
            "rows": self.n,
            "verified": self.n_verified,
            "figures": [dict(zip(columns, line, strict=True)) for line in lines],
            "more_rows": [*map(_plain, self.rows_for().tolist())],
            "guarantee": self.guarantee.to_dict(),
        }

    @property
    def _categories(self) -> tuple[str, ...]:
        return ("category",) if (self.category != None).any() else ()  # noqa: E711 - elementwise

    def __len__(self) -> int:
        return len(self.what)

    def __repr__(self) -> str:
        return f"Estimates({len(self):,} figures, {self.n_verified:,} of {self.n:,} rows verified)"

    def __str__(self) -> str:
        return self.describe()

    def describe(self, top: int | None = _SHOWN) -> str:
        """The figures, at most `top` of each kind, those of annotators from the largest on; None shows all.

        Of recalls those of the annotators are shown with all others only.
        """
        more, kinds = self.rows_for(), dict[Any, list[int]]()
        for place, kind in enumerate(zip(self.what, self.category, strict=True)):
            kinds.setdefault(kind, []).append(place)
        lines: list[tuple[str, ...]] = [
            ("", "estimate", "95 % interval", "verified", f"more rows for ± {100 * _WIDTH:g} points")
        ]
        for (what, _), places in kinds.items():
            voices = [at for at in places if what == "share" or self.name[at] in _VOICES]
            people = sorted(set(places) - set(voices), key=lambda at: (-np.nan_to_num(self.lower[at]), at))
            shown = len(voices) if top and what in _RECALLS else top  # recalls of annotators are many
            lines += [self._cells(at, more[at]) for at in [*voices, *people][:shown]]
            if shown and len(places) > shown:
                lines.append((f"… {len(places) - shown:,} more", "", "", "", ""))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in lines)
        head = f"{self.n_verified:,} of {self.n:,} rows are verified."
        need = more[(self.what == "share") & (self.category == None)].max(initial=0.0)  # noqa: E711
        note = f"{need:,.0f} more verified rows bring all shares to about ± {100 * _WIDTH:g} points."
        notes = [*self.guarantee.lines, *([("Note", note)] if need > 0 else [])]
        return "\n".join([head, *(row.rstrip() for row in table), *format_lines(notes)])

    def _cells(self, place: int, more: float) -> tuple[str, ...]:
        said = f"{self.what[place]} of {'label ' if self.what[place] == 'share' else ''}{self.name[place]}"
        said += "" if self.label[place] is None else f" where {self.label[place]} is true"
        said += "" if self.category[place] is None else f", {self.category[place]}"
        value, lower, upper = (float(part[place]) for part in (self.value, self.lower, self.upper))
        known, interval = _format(f"{value:.3f}", value), _format(f"{lower:.3f}–{upper:.3f}", lower)
        return " ".join(said.split()), known, interval, f"{self.verified[place]:,}", _format(f"{more:,.0f}", more)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and np.isnan(value) else value


def _format(text: str, value: float) -> str:
    return "–" if np.isnan(value) else text


def estimate(
    votes: Votes | Candidates,
    verified: Column,
    *,
    probabilities: ProbabilityRows | None = None,
    sets: Candidates = None,
    by: Column = None,
    groups: Column = None,
    positive: Hashable = None,
) -> Estimates:
    """Estimates shares of classes and how often annotators, consensus, model and sets are right, with intervals.

    Parameters
    ----------
    votes
        Who answered what; or the labels of one labeller, one per row, or delivered sets of labels.
    verified
        The true label where a row is verified, None or NaN elsewhere. By passing it you state that the rows to
        verify were drawn at random, each with the same probability.
    probabilities
        (n, K) class probabilities of a model that did not see the verified labels. Its most probable label is
        judged, too, and narrows the intervals.
    sets
        Delivered sets of labels, whose coverage is estimated; no verified label may have influenced them.
    by
        A category per row, such as the language: each figure is then estimated within each category, too.
    groups
        Which rows belong together, such as the answers to one question. Intervals are then about all groups that
        these were drawn from; with fewer than 20 verified groups there is none.
    positive
        Of two classes the one whose recall is the sensitivity; by default the last.

    Notes
    -----
    Each interval by itself contains the figure of these rows in 19 of 20 draws of the verified rows, whatever the
    annotators and the model are like. With fewer than 30 verified rows that is proved. From there on the interval
    joins Clopper–Pearson intervals of two kinds of rows; its coverage was computed for thousands of designs.

    Examples
    --------
    >>> import numpy as np, setwise
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1000)
    >>> answers = np.where(rng.random((1000, 3)) < [0.9, 0.8, 0.7], y[:, None], 1 - y[:, None])
    >>> votes = setwise.Votes.from_matrix(answers, annotators=["ann", "bob", "cyd"])
    >>> verified = np.full(1000, None)
    >>> verified[:200] = y[:200]
    >>> found = setwise.estimate(votes, verified)
    >>> found
    Estimates(14 figures, 200 of 1,000 rows verified)
    >>> found.to_frame().query("what == 'accuracy'")[["name", "value", "lower", "upper"]].round(2)
            name  value  lower  upper
    2  consensus   0.90   0.85   0.93
    3        ann   0.92   0.88   0.95
    4        bob   0.79   0.75   0.83
    5        cyd   0.68   0.64   0.72
    """
    check_row_names(votes=votes, verified=verified, probabilities=probabilities, sets=sets, by=by, groups=groups)
    given, facts, matrix = _read(votes, verified, probabilities)
    n = len(given)
    if matrix is not None:
        check_length("probabilities", len(matrix), n, "rows")
    facts = replace(facts, group=RowFacts.read(n, given.vocabulary, groups=groups).group)
    if facts.verified is None:
        raise InputError("estimate needs verified labels", Remedy("verified", None, "for rows drawn at random"))
    figures, lead, chosen = _answers(given, facts, matrix, positive)
    delivered = None if isinstance(given, Votes) or (given.sizes < 2).all() else given
    if sets is not None:
        delivered = as_candidates(sets, given.n_classes, given.classes, name="sets")
        check_length("sets", len(delivered), n, "rows")
    if delivered is not None:
        figures.append(_coverage(delivered, lead, facts.verified))
    parts = _measure(figures, facts, np.zeros(n, np.intp), [None])
    if by is not None:
        known = Vocabulary.infer(values := categories(by, n))
        parts += _measure(figures, facts, known.encode(values), known.classes.tolist())
    columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    names = ("what", "name", "label", "value", "lower", "upper", "verified", "category")
    m, stated = len(facts.verified_rows), _guarantee(facts, chosen)
    return Estimates(**dict(zip(names, columns, strict=True)), n=n, n_verified=m, guarantee=stated)


def _read(votes: Any, verified: Any, probabilities: Any) -> tuple[Any, RowFacts, Floats | None]:
    """Votes or sets of labels, the verified labels over their classes, and the probabilities of these."""
    given: Any
    matrix = None if probabilities is None else as_probabilities(probabilities, "simplex")
    if isinstance(votes, Votes):
        given, facts = add_verified(votes, verified)
        if probabilities is not None:
            matrix = as_probabilities(probabilities, "simplex", given.n_classes, classes=given.classes)
    else:
        given, truth = as_label_sets(votes, name="labels"), label_vector(verified, "verified")
        if matrix is not None:
            own = given.vocabulary
            if frame_columns(probabilities) is None and not (own.declared or own.holds_integers):
                problem = "probabilities: their columns have no names, and the labels are no numbers"
                raise InputError(problem, "pass a frame whose columns are named like the labels")
            given = as_candidates(votes, matrix.shape[1], frame_columns(probabilities), name="labels")
        elif not given.vocabulary.declared:
            found = truth[~missing_labels(truth)].tolist()
            given = given.recode(Vocabulary.infer([*given.classes.tolist(), *found]))
        facts = RowFacts.read(len(given), given.vocabulary, verified=truth)
    return given, facts, matrix


class _Figures(NamedTuple):
    """Figures of one kind, and the rows that they are about: each with its figure, its proxy, whether it hits.

    Of shares rows without a proxy are left out, unless they are verified; of recalls those that are not verified.
    """

    names: list[tuple[str, Any, Any]]  # what, name, label
    unit: Ints
    row: Ints
    proxy: Bools
    hit: Bools


def _answers(
    given: Any, facts: RowFacts, matrix: Floats | None, positive: Hashable
) -> tuple[list[_Figures], Ints, Finding | None]:
    """Shares and rights, the label of each row by consensus or labeller, and whether the draw looks random."""
    truth: Any = facts.verified
    own, names, parts = RowFacts(verified=truth, group=facts.group), list[Any](), list[tuple[Array, ...]]()
    if isinstance(given, Votes):
        candidates = given.candidates(missing="full")
        refuse_sole_answers("estimate", candidates, truth)
        support = weigh_votes(given, matrix)
        lead = np.where((given.sizes > 0) | (matrix is not None), support.argmax(axis=1), MISSING)
        voices = {"consensus": (lead, support.max(axis=1))}
        differs = compare_verified(gather(LAC(), DenseRows(support), candidates, own), votes=given)
        row, who, label = single_answers(given)
        names = [f"annotator {name}" if name in _VOICES else name for name in given.annotators.tolist()]
        parts = [(who + 1 + (matrix is not None), row, label, lead[row] == label)]
    else:
        indptr, codes = given.rows
        lead, single = np.full(len(given), MISSING), given.sizes == 1
        lead[single] = codes[indptr[:-1][single]]
        voices = {"labels": (lead, np.zeros(len(lead)))} if (given.sizes < 2).all() else {}
        differs = sizes_differ(given.sizes, facts.verified_rows, group=facts.group)
        if matrix is not None:
            differs = compare_verified(gather(LAC(), DenseRows(matrix), given.fill_empty(), own))
    if matrix is not None:
        voices["model"] = matrix.argmax(axis=1), matrix.max(axis=1)
    for place, (name, (label, sure)) in enumerate(voices.items()):
        others = [codes for other, (codes, _) in voices.items() if other != name]
        proxy, rows = label == others[0] if others else sure >= np.median(sure), np.flatnonzero(label != MISSING)
        parts.append((np.full(len(rows), place), rows, label[rows], proxy[rows]))
    figures = [_shares(lead, truth, given.classes.tolist())]
    if parts:
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        figures += _rights([*voices, *names], columns, truth, given.classes.tolist(), positive)
    return figures, lead, warn_about_choice(differs, chances=False)


def _shares(lead: Ints, truth: Ints, classes: list[Any]) -> _Figures:
    """How common each class is; the proxy is whether the consensus names it."""
    rows, k, leading = np.flatnonzero(truth != MISSING), len(classes), np.flatnonzero(lead != MISSING)
    row, unit = np.repeat(rows, k), np.tile(np.arange(k), len(rows))
    others = lead[row] != unit
    row, unit = np.append(leading, row[others]), np.append(lead[leading], unit[others])
    names = [("share", label, None) for label in classes]
    return _Figures(names, unit, row, np.arange(len(row)) < len(leading), truth[row] == unit)


def _rights(
    names: list[Any], answers: list[Array], truth: Ints, classes: list[Any], positive: Hashable
) -> list[_Figures]:
    """How often each answers right: in all rows, and in those with each true label."""
    who, row, label, proxy = answers
    if positive is not None and (len(classes) != 2 or positive not in classes):
        problem = f"positive: {positive!r} is not one of two classes"
        raise InputError(problem, f"name one of {', '.join(map(repr, classes[:_SHOWN]))}, of two")
    yes = classes[-1] if positive is None else positive
    kinds = ["recall" if len(classes) != 2 else _RECALLS[1 + (one != yes)] for one in classes]
    hit, known = label == truth[row], np.flatnonzero(truth[row] != MISSING)
    recalls = [(kind, name, one) for name in names for kind, one in zip(kinds, classes, strict=True)]
    unit = who[known] * len(classes) + truth[row[known]]
    return [
        _Figures([("accuracy", name, None) for name in names], who, row, proxy, hit),
        _Figures(recalls, unit, row[known], proxy[known], hit[known]),
    ]


def _coverage(sets: LabelSets, lead: Ints, truth: Ints) -> _Figures:
    """How often sets contain the true label; the proxy is whether they contain the consensus, or several labels."""
    rows, hit, proxy = np.flatnonzero(truth != MISSING), np.zeros(len(truth), dtype=bool), sets.sizes > 1
    if (lead != MISSING).all():
        proxy = sets.contains(sets.classes[lead])
    hit[rows] = sets[rows].contains(sets.classes[truth[rows]])
    return _Figures([("coverage", "sets", None)], np.zeros_like(lead), np.arange(len(lead)), proxy, hit)


def _measure(
    figures: list[_Figures], facts: RowFacts, code: Ints, categories: list[Any]
) -> list[tuple[Array, ...]]:
    """The columns of `Estimates` for figures of one kind after the other, within each category."""
    found, rows = [], np.bincount(code, minlength=len(categories))
    for names, one, row, proxy, hit in figures:
        what, width = names[0][0], len(names)
        unit, seen = code[row] * width + one, facts.verified[row] != MISSING  # type: ignore[index]
        x, m, n = (
            np.bincount((2 * unit + proxy)[some], minlength=2 * width * len(rows)).reshape(-1, 2)
            for some in (hit, seen, slice(None))
        )
        if facts.group is not None:
            shares = _group_shares(unit[seen], hit[seen], facts.group[row[seen]], len(m))
        elif what in _RECALLS:
            x, m = x.sum(axis=1), m.sum(axis=1)
            value = np.divide(x, m, out=np.full(len(m), np.nan), where=m > 0)
            shares = Shares(value, *binomial_bounds(x, m, _DELTA), m)
        else:
            n[:, 0] = np.repeat(rows, width) - n[:, 1] if what == "share" else n[:, 0]
            shares = rectify(x, m, n, _DELTA)
        kept = np.flatnonzero((shares.verified > 0) | (what not in _RECALLS))
        named = np.empty((len(m), 4), dtype=object)
        named[:] = [(*name, category) for category in categories for name in names]
        found.append((*named[kept, :3].T, *(part[kept] for part in shares), named[kept, 3]))
    return found


def _group_shares(unit: Ints, hit: Bools, group: Ints, count: int) -> Shares:
    """The share of hits of each unit, with the interval for groups drawn at random."""
    width = int(group.max(initial=0)) + 1
    pairs, place = np.unique(unit * width + group, return_inverse=True)
    hits, sizes = np.bincount(place, hit, len(pairs)), np.bincount(place, minlength=len(pairs))
    starts = np.searchsorted(pairs // width, np.arange(count + 1))
    value, lower, upper = np.full((3, count), np.nan)
    for one in np.flatnonzero(np.diff(starts)):
        mine = slice(starts[one], starts[one + 1])
        value[one] = hits[mine].sum() / sizes[mine].sum()
        lower[one], upper[one] = share_interval(hits[mine], sizes[mine], _DELTA) or (np.nan, np.nan)
    return Shares(value, lower, upper, np.bincount(unit, minlength=count))


def _guarantee(facts: RowFacts, chosen: Finding | None) -> Guarantee:
    """What holds of each interval, and what that rests on."""
    rows, name, about = facts.verified_rows, "verified_at_random", "all rows at hand"
    if facts.group is not None:
        rows, name, about = np.unique(facts.group[rows]), "groups_at_random", "all such groups"
    if facts.group is not None and len(rows) < FEWEST_GROUPS:
        few = f"Fewer than {FEWEST_GROUPS} verified groups show too little for an interval."
        return Guarantee("Estimates", "", len(facts.verified_rows), 1 - _DELTA, (), remarks=(few,))
    drawn = Premise(name, "stated by you", values=(f"{len(rows):,}",))
    if chosen is not None:
        drawn = Premise(name, "refuted by the data", chosen.sentence, drawn.values)
    premises = drawn, Premise("verified_right", "stated by you"), Premise("labels_unseen", "assumed")
    subject = f"each interval, by itself, contains the true value of its figure for {about}"
    claim = Claim("figures", 1 - _DELTA, "shares of verified rows", premises, delta=_DELTA, subject=subject)
    return Guarantee("Estimates", "", len(facts.verified_rows), 1 - _DELTA, (claim,))
