"""`BatchPredictor`: from an Arrow table of rows to one with their prediction sets.

One callable serves a plain loop, the command line, Ray's `map_batches` and Spark's `mapInArrow`. A set depends on
its row and the calibration alone: the answer is the same whatever the batches, their order, or who made them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from setwise._arrays import Floats
from setwise._lazy import lazy
from setwise.conformal.calibration import Calibration
from setwise.drift.comparison import RowTally
from setwise.errors import InputError, Remedy
from setwise.evidence.row_digests import proposal_digests, row_digests
from setwise.findings import Finding
from setwise.labels.label_sets import LabelSets
from setwise.labels.trees import TreeLike
from setwise.labels.vocabulary import Vocabulary
from setwise.probabilities.dense import as_probabilities
from setwise.ranks import as_level
from setwise.streams import model_inputs as saved
from setwise.tables.arrow_reading import absent_column
from setwise.tables.label_columns import categories_of
from setwise.tables.set_files import set_table
from setwise.tables.tabular import Layout


@dataclass(frozen=True, eq=False)
class Predicted:
    """Rows with their prediction sets, p-values where they were asked for, and the other columns.

    `probabilities` is what the calibration was asked with: a matrix, or one for each fold. `X` are the features.
    """

    sets: LabelSets
    carried: dict[str, Any]
    p_values: Floats | None
    probabilities: Any
    X: Any
    by: dict[str, Any]


class BatchPredictor:
    """Adds prediction sets to Arrow tables: ``predictor(table)`` has the other columns, ``labels`` and ``size``.

    Parameters
    ----------
    model
        A model directory, a calibration file, a `Calibration`, or a fitted `ConformalClassifier`. What is named by
        its path travels to other processes by its path, and is loaded there once.
    confidence_level
        Default is that of the model, else 0.9.
    probabilities
        Whether tables hold the probabilities of a model of your own, in columns named as the classes or
        ``p:class``, or features; default is what `model` needs.
    by
        The column of categories, where rows were calibrated by one.
    p_values
        Whether to add a column ``p:class`` with the p-values of each class.
    columns
        The features in the order of the model; default are those that it was fitted on.
    column
        The name of the column of sets.
    tree, at_most
        A tree over the classes, and how many of its nodes name a set; they are added in a column ``nodes``.
    device, trusted
        Of a model directory: where a network runs, and which types of a saved model may be loaded.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa, setwise
    >>> from setwise.streams import BatchPredictor
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet([1, 1, 1], size=500)
    >>> classes = np.array(["ant", "cat", "owl"])
    >>> calibration = setwise.conformalize(P, classes[P.argmax(axis=1)], classes=classes)
    >>> predictor = BatchPredictor(calibration, 0.9)
    >>> new = pa.table({"id": [7], "ant": [0.1], "cat": [0.2], "owl": [0.7]})
    >>> predictor(new).to_pylist()
    [{'id': 7, 'labels': ['owl'], 'size': 1}]
    """

    def __init__(
        self,
        model: Any,
        confidence_level: float | None = None,
        *,
        probabilities: bool | None = None,
        by: str | None = None,
        p_values: bool = False,
        columns: list[str] | None = None,
        column: str = "labels",
        tree: TreeLike | None = None,
        at_most: int = 1,
        device: str = "auto",
        trusted: list[str] | None = None,
    ) -> None:
        self.model = Path(model) if isinstance(model, (str, os.PathLike)) else model
        if probabilities is None:
            probabilities = self.model.is_file() if self._by_path else isinstance(model, Calibration)
        self.probabilities, self.by, self.p_values = probabilities, by, p_values
        self.columns, self.column, self.tree, self.at_most = columns, column, tree, at_most
        self.device, self.trusted = device, trusted
        if confidence_level is not None:
            as_level(confidence_level)
        self._level = confidence_level

    def __call__(self, table: Any) -> Any:
        """The table without features or probabilities, and with the prediction sets of its rows."""
        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        if not isinstance(table, pa.Table):
            kind = type(table).__name__
            raise TypeError(f"table: expected an Arrow table, got {kind}; in Ray use batch_format='pyarrow'.")
        if len(set(table.column_names)) < table.num_columns:
            raise InputError("table: two columns have the same name", "rename one of them")
        made = self.predict(table)
        return set_table(made.sets, p_values=made.p_values, carry=made.carried, column=self.column)

    def predict(self, table: Any, where: str = "the table", first_row: int = 0) -> Predicted:
        """The same as arrays; errors name the file `where`, and count its rows from `first_row`."""
        layout = self.layout(list(table.column_names), where)
        values, carried = saved.read_batch(table, layout, where, first_row)
        options = self._categories(carried, where, first_row)
        matrix, calibration = self.calibration_inputs(values), self.calibration
        try:
            sets = calibration.predict_set(matrix, self.confidence_level, **options)
        except ValueError:
            self.check_rows(matrix, where, first_row)
            raise
        p = calibration.predict_p(matrix, **options) if self.p_values else None
        if self.tree is not None:
            if "nodes" in carried:
                raise InputError("there is a column 'nodes' already, and the nodes of sets need it", "rename it")
            nodes = sets.to_nodes(self.tree, self.at_most)
            named = nodes.rename_classes(Vocabulary.declare(map(str, nodes.classes.tolist())))
            carried = {**carried, "nodes": named.to_arrow()}
        return Predicted(sets, carried, p, matrix, None if self.probabilities else values, options)

    def calibration_inputs(self, values: Any) -> Any:
        """What the calibration is asked with: these probabilities, or those that the model gives these features."""
        if self.probabilities:
            return values
        return self.instance.predict_conformed(saved.with_names(self.instance, values))

    def check_rows(self, matrix: Any, where: str, first_row: int) -> None:
        """Refuses a row that holds no probabilities, by its file and number."""
        if len(self.calibration.parts) == 1:
            as_probabilities(
                matrix, self.calibration.parts[0].conformity_score.domain, name=where, first_row=first_row
            )

    @property
    def confidence_level(self) -> float:
        """The level of the sets."""
        if self._level is not None:
            return self._level
        return 0.9 if self.probabilities else float(self.instance.confidence_level)

    @lazy
    def calibration(self) -> Any:
        """The calibration that answers, or those of several folds."""
        calibration = self.instance if self.probabilities else self.instance.calibration_
        saved.check_askable(calibration, self.model)
        return calibration

    def check_categories(self) -> None:
        """Refuses rows without the column of categories that sets need, or with one that they do not need."""
        needed = "by" in self.calibration.parts[0].reader.requirements
        if needed and self._by is None:
            problem = f"{self.model}: was calibrated by category, and the column of categories is not named"
            raise InputError(problem, Remedy("by", None, "to name it"))
        if self._by is not None and not needed:
            problem = f"{self.model}: was not calibrated by a column of categories"
            raise InputError(problem, "leave it out", "give it when you fit or conformalize")

    def row_tally(self) -> RowTally:
        """An empty count of new rows, to compare them with the calibration rows."""
        tally: RowTally = RowTally(self.calibration) if self.probabilities else self.instance.row_tally()
        return tally

    def find_used(self, digests: list[Any]) -> Finding | None:
        """Whether rows, batch by batch by their digests, were learned from or calibrated on."""
        from setwise.estimators.used_rows import UsedRows  # with scikit-learn, for whoever predicts

        if not self.probabilities:
            found: Finding | None = self.instance.used_rows_.among(digests)
            return found
        known = self.calibration.evidence.model
        rows = None if known is None else proposal_digests(known.label, known.confidence)
        return None if rows is None else UsedRows(calibrated=rows).among(digests)

    def digest_rows(self, made: Predicted) -> Any:
        """Digests of the rows of a batch: of their features, or of the labels that probabilities propose."""
        if made.X is not None:
            return row_digests(made.X)
        proposed = self.calibration.parts[0].reader.read(made.probabilities).predicted
        return proposal_digests(proposed.label, proposed.confidence)

    def layout(self, names: list[str], where: Any) -> Layout:
        """Which columns of a table are asked about."""
        if self.probabilities:
            return saved.probability_layout(names, self.calibration.classes.tolist(), where)
        return saved.feature_layout(names, self.instance, self.columns, where)

    @property
    def wanted_device(self) -> str:
        """Where this runs best: on the CPU, unless a network predicts; then where it was said that it should."""
        if self.probabilities or saved.network_of(self.instance.fitted_models[0]) is None:
            return "cpu"
        return self.device

    def rows_at_a_time(self, names: list[str]) -> int:
        """How many rows of such a table make a batch: of few probabilities more than of features."""
        return saved.ROWS * (max(1, min(8, 128 // len(names))) if self.probabilities else 1)

    def describe(self) -> dict[str, Any]:
        """What answers depend on, as plain data: the model by its content, the level, and what is written."""
        if not self._by_path:
            raise InputError("model: an object in memory has no content to compare", "save it, and name its path")
        names = ("confidence_level", "probabilities", "p_values", "columns", "column")
        nodes = None if self.tree is None else [self.tree, self.at_most]
        described = {"model": saved.content_digest(self.model), "by": self._by, "nodes": nodes}
        return described | {name: getattr(self, name) for name in names}

    @property
    def _by_path(self) -> bool:
        return isinstance(self.model, Path)

    @property
    def _by(self) -> str | None:
        return self.by if self.probabilities else self.by or saved.category_column(self.instance)

    @lazy
    def instance(self) -> Any:
        """The calibration, or the model."""
        if not self._by_path:
            return self.model
        if self.probabilities:
            return saved.load_calibration(self.model)
        return saved.load_asked_model(self.model, self.device, self.trusted)

    def _categories(self, carried: dict[str, Any], where: str, first_row: int) -> dict[str, Any]:
        self.check_categories()
        if self._by is None:
            return {}
        if self._by not in carried:
            raise absent_column(self._by, [*carried], where, " with the categories of its rows")
        return {"by": categories_of(carried[self._by], self._by, where, first_row)}

    def __getstate__(self) -> dict[str, Any]:
        """Without what was loaded, where a path says what that is."""
        return {name: held for name, held in self.__dict__.items() if name not in {"calibration", "instance"}}
