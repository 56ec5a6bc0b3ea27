"""The problem of rows outside memory, on disk or on Dask workers.

A single network is fitted to them in chunks (:func:`problem_of_chunks`). For an ensemble they are
streamed into one encoded table (:func:`problem_of_table`), and from then on treated as rows in
memory are.
"""

from dataclasses import replace

import numpy as np

from rfrboost._blocks.reader import BlockArrays, ClassBlockArrays
from rfrboost._blocks.table import EncodedTable
from rfrboost._estimators.fitted import (
    ClassTargets,
    Inputs,
    TargetScale,
    check_columns,
    check_extent,
    class_columns,
)
from rfrboost._estimators.parameters import Parameters
from rfrboost._estimators.problem import (
    SINGLE_ROUNDING,
    Arrays,
    Problem,
    Request,
    check_targets,
    checked_classes,
    number_targets,
    problem_of_rows,
    resumed_network,
    scaled_weights,
    target_scale_for,
)
from rfrboost._model.losses import fitted_loss, log_loss, named_loss
from rfrboost._rows.chunks import Chunk, Chunks, thinned_targets
from rfrboost._typing import Array


def problem_of_table(
    request: Request, table: EncodedTable, source: BlockArrays, ensemble_rows: int
) -> Problem:
    """The problem of rows that were streamed into one table, for an automatic fit.

    ``source`` says what was read of them; an ensemble is fitted from ``ensemble_rows`` rows on.
    """
    inputs = inputs_of(source)
    X = table.x[:, :-1]
    w = None if table.w is None else scaled_weights(table.w)
    if inputs.encoder is None:
        check_columns(X, inputs.names)
    y = table.y
    classes: np.ndarray | None = None
    if isinstance(source, ClassBlockArrays):
        classes, places = source.classes()
        y = places[y[:, 0].astype(np.intp)]
    automatic = len(y) >= ensemble_rows
    problem, Y = problem_of_rows(request, inputs, X, y, w, classes, source.y_is_1d, automatic)
    return replace(problem, arrays=Arrays(X, Y, w, table.present, None, None, table.x))


def inputs_of(source: BlockArrays) -> Inputs:
    """The columns of rows that are not in memory."""
    names = None if source.names is None else np.array(source.names, dtype=object)
    return Inputs(source.n_columns or 0, names, source.encoder)


def refuse_class_weight(parameters: Parameters) -> None:
    """Weights by class, which depend on all labels, cannot be known while rows are read."""
    if parameters.class_weight is not None:
        raise ValueError(
            "class_weight needs all labels in memory: pass weights with the blocks or partitions, "
            "or arrays in memory."
        )


def problem_of_chunks(request: Request, chunks: Chunks, source: BlockArrays) -> Problem:
    """The problem of a single network of rows that are not in memory.

    ``source`` says what was read of them.
    """
    parameters = request.parameters
    refuse_class_weight(parameters)
    facts = chunks.facts
    inputs = inputs_of(source)
    check_extent(np.maximum(facts.x_high, -facts.x_low), inputs.names)
    if isinstance(source, ClassBlockArrays):
        labels = set_classes(request, chunks, source)
        loss = log_loss(len(labels.classes))
        resumed = resumed_network(request, inputs, len(chunks.facts.y_low), labels.classes)
        return Problem(chunks, loss, labels, inputs, resumed)
    named = named_loss(parameters.loss, parameters.quantile)
    ends = np.vstack([facts.y_low, facts.y_high])
    check_targets(ends, named)
    resumed = resumed_network(request, inputs, named.n_outputs(ends))
    scale = target_scale_for(request, chunks, named, resumed)
    chunks.set("y", shrunk_targets, scale)
    loss = fitted_loss(
        parameters.loss,
        parameters.quantile,
        SINGLE_ROUNDING,
        scale.scale,
        *thinned_targets(chunks),
    )
    targets = number_targets(request, facts, scale, loss, source.y_is_1d)
    return Problem(chunks, loss, targets, inputs, resumed)


def shrunk_targets(chunk: Chunk, scale: TargetScale) -> Array:
    """A chunk's targets in the units of the fit."""
    return scale.shrink(chunk.y)


def set_classes(request: Request, chunks: Chunks, source: ClassBlockArrays) -> ClassTargets:
    """Turn the numbers of labels, as they turned up in the blocks, into columns by class."""
    classes, places = source.classes()
    targets = checked_classes(request, classes)
    k = targets.n_outputs
    chunks.set("y", sorted_classes, places, len(classes))
    chunks.facts = replace(chunks.facts, y_low=np.zeros(k), y_high=np.ones(k))
    return targets


def sorted_classes(chunk: Chunk, places: np.ndarray, n_classes: int) -> Array:
    """A chunk's labels as columns; ``places`` are those of the labels among the sorted classes."""
    return class_columns(places[chunk.y[:, 0].astype(np.intp)], n_classes)
