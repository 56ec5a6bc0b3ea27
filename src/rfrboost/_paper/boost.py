"""Random feature representation boosting: Algorithms 1 and 2 of the paper.

The loop is the paper's. The two algorithms differ in how the step A_t is fitted, which is the step
rule's task (:mod:`rfrboost._paper.steps`); a sampler draws the random features. Both are part of a
:class:`Recipe`. Φ is homogeneous, (n, width + 1) with a last column of ones, and so is x. The
ensemble of an automatic fit is boosted elsewhere (:mod:`rfrboost._auto.members`).
"""

from dataclasses import dataclass, replace
from time import perf_counter
from typing import cast

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng

from rfrboost._model.features import FeatureMap
from rfrboost._model.history import LayerRecord, Watch
from rfrboost._model.losses import Loss
from rfrboost._model.metric import learned_metric, metric_rows
from rfrboost._model.network import (
    Head,
    Layer,
    LayerFeatures,
    Network,
    Standardizer,
    centered,
    rows_gradient,
    start,
)
from rfrboost._model.samplers import InMetric, Sampler
from rfrboost._numerics.arrays import frozen, largest_entry
from rfrboost._paper.heads import constant_head, fit_head
from rfrboost._paper.steps import StepRule
from rfrboost._rows.chunks import Chunk, Chunks, InMemory, Sums, gather, weighted_sums, weights_of
from rfrboost._rows.draw import ContentOrder, Order, draw_features, split_into_parts
from rfrboost._typing import Array

# A column of X counts as constant if no value is further from its mean than this: products of two
# squares of its deviations (1e-240) come close to the smallest float.
SMALLEST_INPUT = 1e-60
# A standard deviation up to this share of the mean is a rounding error: the column is constant.
SMALLEST_DEVIATION = 1e-12
# A fit has numbered random streams. Stream 0 draws Φ₀ and stream t the features of layer t. The
# metric after t layers is learned from rows that stream METRIC_STREAM + t draws; ROWS_STREAM draws
# the projections by which rows are sorted.
METRIC_STREAM = 2**30
ROWS_STREAM = 2**31


@dataclass(frozen=True)
class PowerSchedule:
    """The learning rate η_t = c·t^(−s) of the regret bound; s = 0 is a constant one."""

    c: float
    s: float

    def __call__(self, t: int) -> float:
        return float(self.c * t**-self.s)


@dataclass(frozen=True)
class Recipe:
    """What a fit needs to know beside its rows, in the units of the fit."""

    #: T
    n_layers: int
    loss: Loss
    step: StepRule
    #: draws the features f_t
    sampler: Sampler
    #: how many of them are of Φ, and how many of x
    n_features: tuple[int, int]
    #: draws Φ₀, or None where Φ₀ is x
    initial: Sampler | None
    #: the width of Φ₀ if it is drawn
    hidden_dim: int
    #: η_t, given t
    learning_rate: PowerSchedule
    #: λ of the head
    l2_head: float
    #: whether Φ is standardised after every layer
    normalize: bool
    #: how distances between inputs are measured: "identity" or "agop"
    metric: str
    #: the number of parts that rows are cut into; more than 1 is sample splitting
    n_parts: int
    seed: int


def boost(
    chunks: Chunks,
    recipe: Recipe,
    fitted: Network | None,
    watch: Watch | None = None,
) -> tuple[Network, list[LayerRecord]]:
    """Fit a network, or add layers to a fitted one, up to ``recipe.n_layers``.

    Returns the network and the records of the layers that were added. ``watch``, unless it is None,
    gets the record of every layer, and may end the fit.
    """
    facts = chunks.facts
    # Subtracting the mean changes neither SWIM features nor a head with an intercept, and keeps
    # differences of large numbers out of every product.
    mean = frozen(facts.x_sum / facts.weight) if fitted is None else fitted.mean
    order = prepare(chunks, mean, recipe)
    if fitted is None:
        network = begin(chunks, order, mean, recipe)
    else:
        network = resume(chunks, fitted, recipe)
    W = network.heads[-1]
    risk = chunks.total(training_risk, W, recipe.loss)
    records: list[LayerRecord] = []

    while len(network.layers) < recipe.n_layers:
        t = len(network.layers) + 1
        began = perf_counter()
        if recipe.n_parts > 1:
            chunks.set("part", part_of, t)

        # Generate random features f_t(x, Φ_{t−1})
        rng = layer_generator(recipe.seed, t)
        features = sample_features(chunks, order, network, risk.largest_phi, recipe, rng)
        # Fit A_t: sandwiched least squares, or the gradient on the features and a line search
        A = recipe.step.fit(chunks, features, W, recipe.loss)
        # Build the layer Φ_t = Φ_{t−1} + η A_t f_t
        layer = Layer(features, A.step.scaled(recipe.learning_rate(t)), None)
        chunks.set("phi", advanced, layer, A.known)
        if recipe.normalize:
            layer, W = standardize(chunks, layer, W)
        # Update the top level W_t = argmin R(W, Φ_t)
        W = fit_head(chunks, recipe.loss, recipe.l2_head, W)

        network = replace(network, layers=(*network.layers, layer), heads=(*network.heads, W))
        risk = chunks.total(training_risk, W, recipe.loss)
        seconds = perf_counter() - began
        record = LayerRecord(t, risk.loss / risk.weight, A.alpha, A.gradient_norm, seconds)
        records.append(record)
        if watch is not None and not watch.layer(record):
            break
    return network, records


def layer_generator(seed: int, t: int) -> Generator:
    """Random stream t of a fit. It does not depend on earlier streams, so that layers added by
    ``warm_start`` equal those of one long fit."""
    return default_rng(SeedSequence(seed, spawn_key=(t,)))


def prepare(chunks: Chunks, mean: Array, recipe: Recipe) -> Order:
    """Centre the rows, and sort them for drawing features."""
    constant = largest_deviations(chunks, mean) < SMALLEST_INPUT
    chunks.set("x", centered_rows, mean, constant)
    rng = layer_generator(recipe.seed, ROWS_STREAM)
    order: Order
    if recipe.n_parts > 1:
        # Estimators refuse sample splitting of rows that are not in memory.
        order = split_into_parts(cast(InMemory, chunks), rng)
    else:
        order = ContentOrder(chunks, rng)
    chunks.set("y", by_columns)
    return order


def largest_deviations(chunks: Chunks, mean: Array) -> Array:
    """max|x − mean| of every column, from its extremes, with the same rounding as x − mean."""
    return np.maximum(chunks.facts.x_high - mean, mean - chunks.facts.x_low)


def centered_rows(chunk: Chunk, mean: Array, constant: Array) -> Array:
    """Rows (x − mean, 1), with constant columns set to zero."""
    x = centered(chunk.x, mean)
    x[:, :-1][:, constant] = 0.0
    return x


def by_columns(chunk: Chunk) -> Array:
    """y in Fortran order, in which sums over the few outputs of each row are fast."""
    return np.asfortranarray(chunk.y)


def part_of(chunk: Chunk, t: int) -> int:
    """The part of the rows that layer t is fitted on."""
    return (t - 1) % chunk.parts


def begin(chunks: Chunks, order: Order, mean: Array, recipe: Recipe) -> Network:
    """The network without layers: Φ₀ and W₀."""
    rng = layer_generator(recipe.seed, 0)
    initial = None
    if recipe.initial is not None:
        initial = draw_features(chunks, order, recipe.initial, "x", recipe.hidden_dim, rng)
    chunks.set("phi", started, initial)
    width = len(mean) if initial is None else initial.width
    head = constant_head(chunks, width, recipe.loss)
    return Network(mean, initial, (), (fit_head(chunks, recipe.loss, recipe.l2_head, head),))


def resume(chunks: Chunks, network: Network, recipe: Recipe) -> Network:
    """Compute Φ of the rows by a fitted network, and refit its last head to them."""
    chunks.set("phi", started, network.initial)
    for layer in network.layers:
        chunks.set("phi", advanced, layer, False)
    head = fit_head(chunks, recipe.loss, recipe.l2_head, network.heads[-1])
    return replace(network, heads=(*network.heads[:-1], head))


def started(chunk: Chunk, initial: FeatureMap | None) -> Array:
    """Φ₀ of a chunk."""
    return start(initial, chunk.x)


def sample_features(
    chunks: Chunks,
    order: Order,
    network: Network,
    largest_phi: float,
    recipe: Recipe,
    rng: Generator,
) -> LayerFeatures:
    """f_t(x, Φ) = concat(σ(BΦ), σ(Cx)), or their sum where A_t is diagonal or scalar."""
    head = network.heads[-1]
    width = len(head.matrix) - 1
    n_phi, n_x = (width, width) if recipe.step.added else recipe.n_features
    from_phi = from_x = None
    if n_phi:
        from_phi = draw_features(chunks, order, recipe.sampler, "phi", n_phi, rng)
    if n_x:
        sampler = x_sampler(chunks, order, network, recipe)
        from_x = draw_features(chunks, order, sampler, "x", n_x, rng)
    features = LayerFeatures(from_phi, from_x, recipe.step.added)
    if recipe.step.added and {m.width for m in features.maps} != {width}:
        raise ValueError(
            f"A diagonal or scalar step_matrix needs {width} features, the width of Φ, but these "
            f"come in widths of {[m.width for m in features.maps]}. Use step_matrix='dense', or "
            "features whose number can be set."
        )
    entries = chunks.facts.n_rows * features.width
    if entries < chunks.sizes.single_precision_entries:
        return features  # in double precision: with so little work, single precision saves nothing
    dtype = recipe.step.dtype(features, head)
    if dtype == np.float64:
        return features
    largest_x = float(largest_deviations(chunks, network.mean).max())
    return features.astype(dtype, max(1.0, largest_x, largest_phi))


def x_sampler(chunks: Chunks, order: Order, network: Network, recipe: Recipe) -> Sampler:
    """The recipe's sampler, or that sampler in the metric learned from the layers so far."""
    if recipe.metric == "identity" or not network.layers:
        return recipe.sampler
    rng = layer_generator(recipe.seed, METRIC_STREAM + len(network.layers))
    drawn = order.draw(metric_rows(len(chunks.facts.y_low)), rng)
    gradients = rows_gradient(network, gather(chunks, "x", drawn))
    return InMetric(recipe.sampler, learned_metric(gradients))


def advanced(chunk: Chunk, layer: Layer, known: bool) -> Array:
    """Φ after the layer, changed in place; uses ``chunk.outputs`` if the step has computed them
    (``known``)."""
    for rows, _ in chunk.batches():
        if known:
            layer.advance(chunk.phi[rows], chunk.outputs[rows])
        else:
            layer.advance(chunk.phi[rows], layer.step.outputs(chunk.features(rows, layer.features)))
    return chunk.phi


def standardize(chunks: Chunks, layer: Layer, head: Head) -> tuple[Layer, Head]:
    """Standardise Φ by its present mean and deviation; returns layer and head for the new Φ.

    The layer now ends with this standardisation. The head is converted to the new Φ, so that it
    predicts as before; the next head is searched from it.
    """
    standardizer = column_statistics(chunks)
    chunks.set("phi", standardized, standardizer)
    W = head.W * standardizer.std[:, None]
    head = Head(np.vstack([W, head.b + standardizer.mean @ head.W]))
    return replace(layer, standardizer=standardizer), head


def standardized(chunk: Chunk, standardizer: Standardizer) -> Array:
    """Φ standardised, in place."""
    for rows, _ in chunk.batches():
        standardizer(chunk.phi[rows])
    return chunk.phi


def column_statistics(chunks: Chunks) -> Standardizer:
    """Weighted mean and standard deviation of Φ's columns; a constant column keeps its scale."""
    total, weight = chunks.total(column_sums).values
    mean = total / weight
    std = np.sqrt(chunks.total(squared_deviations, mean).values[0] / weight)
    varies = std > SMALLEST_DEVIATION * np.abs(mean)
    return Standardizer(frozen(mean), frozen(np.where(varies, std, 1.0)))


def column_sums(chunk: Chunk) -> Sums:
    """Σw·φ and Σw."""
    return weighted_sums(chunk.phi[:, :-1], chunk.w)


def squared_deviations(chunk: Chunk, mean: Array) -> Sums:
    """Σw·(φ − mean)²."""
    total = np.zeros_like(mean)
    weights = weights_of(chunk)
    for rows, _ in chunk.batches():
        total += weights[rows] @ (chunk.phi[rows, :-1] - mean) ** 2
    return Sums(total)


@dataclass
class TrainingRisk:
    """Σw·l and Σw over all rows, whose ratio is the risk; and max|Φ|."""

    loss: float
    weight: float
    largest_phi: float

    def take(self, part: "TrainingRisk") -> None:
        """Add the sums of other rows."""
        self.loss += part.loss
        self.weight += part.weight
        self.largest_phi = max(self.largest_phi, part.largest_phi)


def training_risk(chunk: Chunk, head: Head, loss: Loss) -> TrainingRisk:
    """The sums of one chunk, under a head of the present Φ."""
    total = weight = 0.0
    for rows, w in chunk.batches():
        # Without penalties predictions may overflow here; estimators refuse an infinite risk.
        with np.errstate(over="ignore"):
            losses = loss.value(head(chunk.phi[rows]), chunk.y[rows])
            total += float(losses.sum() if w is None else w @ losses)
        weight += len(losses) if w is None else float(w.sum())
    return TrainingRisk(total, weight, largest_entry(chunk.phi))
