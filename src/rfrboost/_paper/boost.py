"""Random feature representation boosting: Algorithms 1 and 2 of the paper.

The loop is the paper's. What differs between the two algorithms is the step rule; what the
random features are is the samplers' affair; both are handed in.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import cast

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng

from rfrboost._model.features import FeatureMap
from rfrboost._model.history import LayerRecord, Watch
from rfrboost._model.losses import Loss
from rfrboost._model.metric import InMetric, learned_metric, metric_rows
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
from rfrboost._model.samplers import Sampler
from rfrboost._numerics.arrays import frozen, largest_entry
from rfrboost._paper.heads import constant_head, fit_head
from rfrboost._paper.steps import StepRule
from rfrboost._rows.chunks import Chunk, Chunks, InMemory, Sums, weighted_sums, weights_of
from rfrboost._rows.draw import ContentOrder, Order, draw_features, gather, split
from rfrboost._typing import Array

# A column that varies less than this is constant: its squares would vanish.
SMALLEST_INPUT = 1e-60


# The random stream of everything about rows; those of layers are 0, 1, 2, ….
ROWS_STREAM = 2**31


# Those of the rows that the metrics of layers 1, 2, … are learned from begin here.
METRIC_STREAM = 2**30


@dataclass(frozen=True)
class Recipe:
    """Everything the loop needs to know, as data."""

    n_layers: int
    loss: Loss
    step: StepRule
    sampler: Sampler
    n_features: tuple[int, int]
    initial: Sampler | None
    hidden_dim: int
    learning_rate: Callable[[int], float]
    l2_head: float
    normalize: bool
    metric: str
    n_parts: int
    seed: int


# Asked at the start and after every layer whether another one may be added.
Judge = Callable[[Network], bool]


def always(network: Network) -> bool:
    """No limit but the number of layers."""
    return True


def boost(
    chunks: Chunks,
    recipe: Recipe,
    fitted: Network | None,
    watch: Watch,
    goes_on: Judge = always,
) -> Network:
    """Fit a network, or add layers to a fitted one. ``watch`` is told of every layer."""
    mean = chunks.facts.x_mean if fitted is None else fitted.mean
    order = prepare(chunks, mean, recipe)
    if fitted is None:
        network = begin(chunks, order, mean, recipe)
    else:
        network = resume(chunks, fitted, recipe)
    standing = chunks.total(standing_of, network.heads[-1], recipe.loss)

    while len(network.layers) < recipe.n_layers and goes_on(network):
        t, began = len(network.layers) + 1, perf_counter()
        if recipe.n_parts > 1:
            chunks.set("part", part_of, t)
        W = network.heads[-1]

        # Generate random features f_t(x, Φ_{t−1})
        rng = layer_generator(recipe.seed, t)
        features = sample_features(chunks, order, network, standing.largest, recipe, rng)
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
        standing = chunks.total(standing_of, W, recipe.loss)
        watch(LayerRecord(t, standing.risk, A.alpha, A.gradient_norm, perf_counter() - began))
    return network


def layer_generator(seed: int, t: int) -> Generator:
    """Layer t's own stream, so that layers added later are those of one long fit."""
    return default_rng(SeedSequence(seed, spawn_key=(t,)))


def prepare(chunks: Chunks, mean: Array, recipe: Recipe) -> Order:
    """Centre the rows, and say in what order they are drawn from."""
    constant = chunks.facts.largest_from(mean) < SMALLEST_INPUT
    chunks.set("x", centered_rows, mean, constant)
    rng = layer_generator(recipe.seed, ROWS_STREAM)
    # Parts are for arrays only, which is refused elsewhere for anything else.
    in_parts = recipe.n_parts > 1
    order: Order = split(cast(InMemory, chunks), rng) if in_parts else ContentOrder(chunks, rng)
    chunks.set("y", by_columns)
    return order


def centered_rows(chunk: Chunk, mean: Array, constant: Array) -> Array:
    """Rows (x − mean, 1), columns that hardly vary set to zero."""
    x = centered(chunk.x, mean)
    x[:, :-1][:, constant] = 0.0
    return x


def by_columns(chunk: Chunk) -> Array:
    """y column by column: what losses do across a row's few outputs is then fast."""
    return np.asfortranarray(chunk.y)


def part_of(chunk: Chunk, t: int) -> int:
    """The part of the rows that layer t is fitted on."""
    return (t - 1) % chunk.parts


def begin(chunks: Chunks, order: Order, mean: Array, recipe: Recipe) -> Network:
    """Φ₀ and W₀."""
    rng = layer_generator(recipe.seed, 0)
    initial = None
    if recipe.initial is not None:
        initial = draw_features(chunks, order, recipe.initial, "x", recipe.hidden_dim, rng)
    chunks.set("phi", started, initial)
    width = len(mean) if initial is None else initial.width
    head = constant_head(chunks, width, recipe.loss)
    return Network(mean, initial, (), (fit_head(chunks, recipe.loss, recipe.l2_head, head),))


def resume(chunks: Chunks, network: Network, recipe: Recipe) -> Network:
    """Bring the rows to where a fitted network left them, and refit its last head to them."""
    chunks.set("phi", started, network.initial)
    for layer in network.layers:
        chunks.set("phi", advanced, layer, False)
    head = fit_head(chunks, recipe.loss, recipe.l2_head, network.heads[-1])
    return replace(network, heads=(*network.heads[:-1], head))


def started(chunk: Chunk, initial: FeatureMap | None) -> Array:
    """Φ₀."""
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
    width = len(network.heads[-1].W)
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
            f"A diagonal or scalar step_matrix needs as many features as Φ is wide ({width}), but "
            f"these features come in widths of {[m.width for m in features.maps]}. Use "
            "step_matrix='dense', or features whose number can be set."
        )
    entries = chunks.facts.n_rows * features.width
    if entries < chunks.sizes.single_precision_entries:
        return features  # too little work to be worth the lost digits
    dtype = recipe.step.dtype(features, network.heads[-1])
    if dtype == np.float64:
        return features
    largest_x = float(chunks.facts.largest_from(network.mean).max())
    return features.astype(dtype, max(1.0, largest_x, largest_phi))


def x_sampler(chunks: Chunks, order: Order, network: Network, recipe: Recipe) -> Sampler:
    """What draws features of x: as asked for, or in the metric that the layers so far suggest."""
    if recipe.metric == "identity" or not network.layers:
        return recipe.sampler
    rng = layer_generator(recipe.seed, METRIC_STREAM + len(network.layers))
    drawn = order.draw(metric_rows(len(chunks.facts.y_low)), rng)
    gradients = rows_gradient(network, gather(chunks, "x", drawn))
    return InMetric(recipe.sampler, learned_metric(gradients))


def advanced(chunk: Chunk, layer: Layer, known: bool) -> Array:
    """Every row's Φ one layer on, by the step's outputs if they are ``known`` already."""
    for rows in chunk.batches():
        if known:
            layer.advance(chunk.phi[rows], chunk.outputs[rows])
        else:
            layer.advance(chunk.phi[rows], layer.step.outputs(chunk.features(rows, layer.features)))
    return chunk.phi


def standardize(chunks: Chunks, layer: Layer, head: Head) -> tuple[Layer, Head]:
    """Standardise Φ by its present statistics, and let the layer do so from now on.

    The head is handed back in the new coordinates: a better start than the old numbers.
    """
    standardizer = column_statistics(chunks)
    chunks.set("phi", standardized, standardizer)
    W = head.W * standardizer.std[:, None]
    head = Head(np.vstack([W, head.b + standardizer.mean @ head.W]))
    return replace(layer, standardizer=standardizer), head


def standardized(chunk: Chunk, standardizer: Standardizer) -> Array:
    """Φ standardised, in place."""
    for rows in chunk.batches():
        standardizer(chunk.phi[rows])
    return chunk.phi


def column_statistics(chunks: Chunks) -> Standardizer:
    """Weighted mean and standard deviation of Φ's columns; a constant column keeps its scale."""
    total, weight = chunks.total(column_sums).values
    mean = total / weight
    std = np.sqrt(chunks.total(squared_deviations, mean).values[0] / weight)
    return Standardizer(frozen(mean), frozen(np.where(std > 1e-12 * np.abs(mean), std, 1.0)))


def column_sums(chunk: Chunk) -> Sums:
    """Σw·φ and Σw."""
    return weighted_sums(chunk.phi[:, :-1], chunk.w)


def squared_deviations(chunk: Chunk, mean: Array) -> Sums:
    """Σw·(φ − mean)²."""
    total = np.zeros_like(mean)
    for rows in chunk.batches():
        w = weights_of(chunk)[rows]
        total += w @ (chunk.phi[rows, :-1] - mean) ** 2
    return Sums(total)


@dataclass
class Standing:
    """Where the rows stand after a layer: Σw·l, Σw, and max|Φ|."""

    loss: float
    weight: float
    largest: float

    def take(self, part: "Standing") -> None:
        self.loss += part.loss
        self.weight += part.weight
        self.largest = max(self.largest, part.largest)

    @property
    def risk(self) -> float:
        """(1/n) Σ w·l."""
        return self.loss / self.weight


def standing_of(chunk: Chunk, head: Head, loss: Loss) -> Standing:
    """The same of one chunk."""
    total = weight = 0.0
    for rows in chunk.batches():
        losses = loss.value(head(chunk.phi[rows]), chunk.y[rows])
        w = chunk.weights(rows)
        total += float(losses.sum() if w is None else w @ losses)
        weight += len(losses) if w is None else float(w.sum())
    return Standing(total, weight, largest_entry(chunk.phi))
