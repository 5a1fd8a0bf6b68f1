"""Triage of tables that do not fit into memory, in two passes.

The first pass keeps of each row the label proposed for it and the confidence in it, 12 to 20 bytes, and where that
is one of the row's candidates also what the model says of it, 12 bytes. All rows are then decided at once, exactly
as in memory. The second pass writes each part's rows to two files: those accepted, and those to review with their
place in the list of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from setwise._arrays import Array, Bools, Ints
from setwise.decisions.modes import Mode
from setwise.decisions.triage import Extra, Triage, propose_labels, triage_proposals
from setwise.errors import InputError, Remedy
from setwise.findings import Finding
from setwise.probabilities.proposed_labels import Proposals
from setwise.streams import model_inputs as saved
from setwise.streams.batch_predictor import BatchPredictor
from setwise.streams.engines import Engine
from setwise.streams.prefetch import ahead
from setwise.streams.table_parts import TablePart, check_alike, check_complete
from setwise.tables.arrow_reading import batches_with_origin, column_names, has_rows
from setwise.tables.set_files import set_writer
from setwise.tables.tabular import Layout, interpret


@dataclass(frozen=True, eq=False)
class ProposedPart:
    """The labels proposed for the rows of a part, what these come with, and how they compare.

    `predicted` are the most probable labels, of probabilities that are given.
    """

    part: TablePart
    proposed: Proposals
    predicted: Proposals
    extra: Extra
    compared: Mapping[str, Any]
    used: Finding | None


@dataclass(frozen=True)
class Proposer:
    """A worker of an engine, for the first pass.

    `columns` are those of the first part, which all must have; `candidates` that of the rows' own candidates.
    """

    predictor: BatchPredictor
    columns: tuple[str, ...]
    candidates: str | None = None
    separator: str = "|"

    def __call__(self, part: TablePart) -> ProposedPart:
        """What is proposed for the rows of a part."""
        calibration, beside = self.predictor.calibration, self.predictor.row_tally()
        found = [Proposals(np.empty(0, dtype=np.int32), np.empty(0))]
        predicted = found.copy()
        extra: Extra = "nothing"
        used: Finding | None = None
        for where, first, values, own in self._batches(part) if has_rows(part.source) else ():
            matrix = self.predictor.calibration_inputs(values)
            self.predictor.check_rows(matrix, where, first)
            rows = calibration.reader.read(matrix, candidates=own)
            made, extra = propose_labels(calibration, rows)
            found.append(_small(made))
            if self.predictor.probabilities and self.candidates is not None:
                predicted.append(_small(rows.predicted))
            X = None if self.predictor.probabilities else values
            if X is not None:
                used = used or self.predictor.instance.used_rows_.warn_if_used(X)
            if calibration.categories is None:
                beside.add(matrix, X=X, first_row=first)
        made = Proposals.concatenate(found)
        seen = made if self.candidates is None else Proposals.concatenate(predicted)
        return ProposedPart(part, made, seen, extra, beside.export(), used)

    def _batches(self, part: TablePart) -> Iterator[tuple[str, int, Any, Any]]:
        check_alike(part.source, self.columns)
        source, names = part.source, column_names(part.source)
        layout, classes = self.predictor.layout(names, source), self.predictor.calibration.classes
        own = Layout(
            candidates=self.candidates, separator=self.separator, classes=classes, missing="empty", features=[]
        )
        told, rows = saved.text_columns(names, layout), self.predictor.rows_at_a_time(names)
        with ahead(batches_with_origin(source, rows, text=told)) as tables:
            for where, first, batch in tables:
                sets = None if self.candidates is None else interpret(batch, own, where, first).candidates
                yield where, first, saved.read_batch(batch, layout, where, first)[0], sets


@dataclass(frozen=True, eq=False)
class DecidedPart:
    """What was decided of the rows of a part, whose rows to review are those of another part."""

    part: TablePart
    review: TablePart
    classes: Array
    proposed: Proposals
    accepted: Bools
    rank: Ints

    def __str__(self) -> str:
        return str(self.part)


@dataclass(frozen=True)
class TriageWriter:
    """A worker of an engine, for the second pass; `column` is that of accepted labels."""

    question: str
    column: str = "label"
    separator: str = "|"

    def __call__(self, decided: DecidedPart) -> None:
        """Writes the rows of a part to two files, each whole or absent."""
        part, first, names = decided.part, 0, column_names(decided.part.source)
        for place in (part, decided.review):
            place.record.unlink(missing_ok=True)
        options: dict[str, Any] = {"separator": self.separator}
        with set_writer(part.out, **options) as accepted, set_writer(decided.review.out, **options) as review:
            for _, _, batch in batches_with_origin(part.source, saved.ROWS, text=names):
                rows = slice(first, first + len(batch))
                first += len(batch)
                for writer, taken, column in (
                    (accepted, decided.accepted[rows], self.column),
                    (review, ~decided.accepted[rows], "proposed"),
                ):
                    kept = batch.filter(pa.array(taken))
                    columns = {name: kept[name] for name in names}
                    labels = decided.classes[decided.proposed.label[rows][taken]]
                    columns[column] = writer.label_column(labels.tolist(), decided.classes.tolist())
                    columns["confidence"] = decided.proposed.confidence[rows][taken]
                    if writer is review:
                        columns["rank"] = decided.rank[rows][taken]
                    writer.append_columns(columns)
        for place in (part, decided.review):
            place.finish(self.question, {"rows": first})


def _small(made: Proposals) -> Proposals:
    return replace(made, label=made.label.astype(np.int32))


def triage_parts(
    predictor: BatchPredictor,
    parts: Sequence[TablePart],
    review: Sequence[TablePart],
    columns: Sequence[str],
    engine: Engine,
    *,
    candidates: str | None,
    writer: TriageWriter,
    resume: bool,
    max_error: float,
    mode: Mode,
    **options: Any,
) -> Triage:
    """Both passes; `options` are further ones of the triage."""
    calibration, compared = predictor.calibration, predictor.row_tally()
    if len(calibration.parts) > 1:
        raise InputError("model: folds decide the rows that they were fitted on, which are read as one file")
    proposer = Proposer(predictor, tuple(columns), candidates, writer.separator)
    found = sorted(engine(parts, proposer), key=lambda one: one.part.number)
    if predictor.probabilities:
        predicted = Proposals.concatenate([one.predicted for one in found])
        if saved.is_calibration_data(calibration, predicted):  # some are verified, and the others are not new
            problem = f"{predictor.model}: was calibrated on these rows, and folders take new ones"
            raise InputError(problem, Remedy("out", None, "for a file: it decides those that nobody verified"))
    for one in found:
        compared.include(one.compared)
    used = next((one.used for one in found if one.used is not None), None)
    if used is not None:
        calibration = calibration.withdraw(used)
    made = triage_proposals(
        calibration,
        Proposals.concatenate([one.proposed for one in found]),
        next((one.extra for one in found if len(one.proposed)), "nothing"),
        max_error,
        mode,
        **options,
        comparison=None if calibration.categories is not None else compared.compare(),
    )
    rank = np.zeros(len(made), dtype=np.int64)
    rank[made.review] = np.arange(1, len(made.review) + 1)
    ends = np.cumsum([len(one.proposed) for one in found])[:-1]
    accepted, ranks = np.split(made.accepted, ends), np.split(rank, ends)
    todo = [
        DecidedPart(one.part, place, calibration.classes, one.proposed, taken, places)
        for one, place, taken, places in zip(found, review, accepted, ranks, strict=True)
        if len(one.proposed)
        and not (resume and all(p.read_result(writer.question) is not None for p in (one.part, place)))
    ]
    for _ in engine(todo, writer):
        continue
    check_complete(parts, [part.out for part in parts], [part.out for part in review])
    return made
