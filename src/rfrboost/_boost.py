"""Random feature representation boosting: Algorithms 1 and 2 of the paper.

The loop is the paper's. What differs between the two algorithms is the step rule; what the
random features are is the samplers' affair; both are handed in.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng

from rfrboost._features import Sampler
from rfrboost._gradients import rows_gradient
from rfrboost._heads import constant_head, fit_head
from rfrboost._losses import Loss
from rfrboost._metric import InMetric, learned_metric, metric_rows
from rfrboost._network import Head, Layer, LayerFeatures, Network, Standardizer, centered, start
from rfrboost._rows import Rows, content_order, largest_entry
from rfrboost._steps import StepRule
from rfrboost._typing import Array, frozen

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


@dataclass(frozen=True)
class LayerRecord:
    """What happened in one layer."""

    layer: int
    loss: float
    step_length: float
    gradient_norm: float
    seconds: float


Watch = Callable[[LayerRecord], None]


def boost(
    X: Array, y: Array, w: Array | None, recipe: Recipe, fitted: Network | None, watch: Watch
) -> Network:
    """Fit a network, or add layers to a fitted one. ``watch`` is told of every layer."""
    mean = input_mean(X, w) if fitted is None else fitted.mean
    rows = training_rows(centered(X, mean), y, w, recipe)
    network = resume(rows, fitted, recipe) if fitted is not None else begin(rows, mean, recipe)
    initial, layers, heads = network.initial, list(network.layers), list(network.heads)

    for t in range(len(layers) + 1, recipe.n_layers + 1):
        began = perf_counter()
        rows.part = (t - 1) % rows.parts
        W = heads[-1]

        # Generate random features f_t(x, Φ_{t−1})
        fitted_so_far = Network(mean, initial, tuple(layers), tuple(heads))
        features = sample_features(rows, fitted_so_far, recipe, layer_generator(recipe.seed, t))
        # Predict W_{t−1}ᵀΦ_{t−1}(x), whose residuals or loss gradients the step is fitted to
        predict_rows(rows, W)
        # Fit A_t: sandwiched least squares, or the gradient on the features and a line search
        A = recipe.step.fit(rows, features, W, recipe.loss)
        # Build the layer Φ_t = Φ_{t−1} + η A_t f_t
        layer = Layer(features, A.step.scaled(recipe.learning_rate(t)), None)
        advance(rows, layer, A.outputs)
        if recipe.normalize:
            layer, W = standardize(rows, layer, W)
        # Update the top level W_t = argmin R(W, Φ_t)
        W = fit_head(rows, recipe.loss, recipe.l2_head, W)

        layers.append(layer)
        heads.append(W)
        risk = empirical_risk(rows, W, recipe.loss)
        watch(LayerRecord(t, risk, A.alpha, A.gradient_norm, perf_counter() - began))
    return Network(mean, initial, tuple(layers), tuple(heads))


def layer_generator(seed: int, t: int) -> Generator:
    """Layer t's own stream, so that layers added later are those of one long fit."""
    return default_rng(SeedSequence(seed, spawn_key=(t,)))


def input_mean(X: Array, w: Array | None) -> Array:
    """The rows' mean. Translating x changes neither SWIM features nor a head with an intercept,
    and keeps differences of large numbers out of every product."""
    return frozen(X.mean(axis=0, dtype=float) if w is None else w @ X / w.sum())


def training_rows(x: Array, y: Array, w: Array | None, recipe: Recipe) -> Rows:
    """The rows, shuffled into equal parts if every layer is to have a sample of its own."""
    rng = layer_generator(recipe.seed, ROWS_STREAM)
    x[:, np.maximum(x.max(axis=0), -x.min(axis=0)) < SMALLEST_INPUT] = 0.0
    order = content_order(x, y, rng)
    if recipe.n_parts == 1:
        return Rows(x, y, w, order)
    kept = order[rng.permutation(len(y))[: len(y) // recipe.n_parts * recipe.n_parts]]
    rows = (x[kept], y[kept], None if w is None else w[kept])
    return Rows(*rows, np.arange(len(kept)), parts=recipe.n_parts)


def begin(rows: Rows, mean: Array, recipe: Recipe) -> Network:
    """Φ₀ and W₀."""
    rng = layer_generator(recipe.seed, 0)
    initial = None
    if recipe.initial is not None:
        initial = rows.sample(recipe.initial, rows.x, recipe.hidden_dim, rng)
    phi = start(initial, rows.x)
    rows.start(phi, recipe.loss.n_outputs(rows.y))
    head = fit_head(rows, recipe.loss, recipe.l2_head, constant_head(rows, recipe.loss))
    return Network(mean, initial, (), (head,))


def resume(rows: Rows, network: Network, recipe: Recipe) -> Network:
    """Bring the rows to where a fitted network left them, and refit its last head to them."""
    rows.start(network.start(rows.x), len(network.heads[-1].b))
    for layer in network.layers:
        advance(rows, layer, None)
    head = fit_head(rows, recipe.loss, recipe.l2_head, network.heads[-1])
    return replace(network, heads=(*network.heads[:-1], head))


def sample_features(rows: Rows, network: Network, recipe: Recipe, rng: Generator) -> LayerFeatures:
    """f_t(x, Φ) = concat(σ(BΦ), σ(Cx)), or their sum where A_t is diagonal or scalar."""
    width = rows.phi.shape[1] - 1
    n_phi, n_x = (width, width) if recipe.step.added else recipe.n_features
    from_phi = rows.sample(recipe.sampler, rows.phi, n_phi, rng) if n_phi else None
    from_x = rows.sample(x_sampler(rows, network, recipe), rows.x, n_x, rng) if n_x else None
    features = LayerFeatures(from_phi, from_x, recipe.step.added)
    if recipe.step.added and {m.width for m in features.maps} != {width}:
        raise ValueError(
            f"A diagonal or scalar step_matrix needs as many features as Φ is wide ({width}), but "
            f"these features come in widths of {[m.width for m in features.maps]}. Use "
            "step_matrix='dense', or features whose number can be set."
        )
    dtype = recipe.step.dtype(rows, features, network.heads[-1])
    if dtype == np.float64:
        return features
    return features.astype(dtype, max(rows.largest_x, largest_entry(rows.phi)))


def x_sampler(rows: Rows, network: Network, recipe: Recipe) -> Sampler:
    """What draws features of x: as asked for, or in the metric that the layers so far suggest."""
    if recipe.metric == "identity" or not network.layers:
        return recipe.sampler
    rng = layer_generator(recipe.seed, METRIC_STREAM + len(network.layers))
    drawn = rows.draw(metric_rows(rows.y.shape[1]), rng)
    gradients = rows_gradient(network, rows.x[drawn])
    return InMetric(recipe.sampler, learned_metric(gradients))


def advance(rows: Rows, layer: Layer, outputs: Array | None) -> None:
    """Move every row's Φ one layer on, by the step's outputs if they are known already."""
    for block in rows.blocks():
        if outputs is None:
            layer.advance(block.phi, layer.step.outputs(rows.features(block, layer.features)))
        else:
            layer.advance(block.phi, outputs[block.rows])


def standardize(rows: Rows, layer: Layer, head: Head) -> tuple[Layer, Head]:
    """Standardise Φ by its present statistics, and let the layer do so from now on.

    The head is handed back in the new coordinates: a better start than the old numbers.
    """
    standardizer = column_statistics(rows)
    for block in rows.blocks():
        standardizer(block.phi)
    W = head.W * standardizer.std[:, None]
    head = Head(np.vstack([W, head.b + standardizer.mean @ head.W]))
    return replace(layer, standardizer=standardizer), head


def column_statistics(rows: Rows) -> Standardizer:
    """Weighted mean and standard deviation of Φ's columns; a constant column keeps its scale."""
    mean = np.average(rows.phi[:, :-1], axis=0, weights=rows.w)
    variance = np.zeros_like(mean)
    for block in rows.blocks():
        w = np.ones(len(block.y)) if block.w is None else block.w
        variance += w @ (block.phi[:, :-1] - mean) ** 2
    std = np.sqrt(variance / (len(rows.y) if rows.w is None else rows.w.sum()))
    return Standardizer(frozen(mean), frozen(np.where(std > 1e-12 * np.abs(mean), std, 1.0)))


def predict_rows(rows: Rows, head: Head) -> None:
    """Every row's raw prediction Wᵀφ + b."""
    for block in rows.blocks():
        block.raw[...] = head(block.phi)


def empirical_risk(rows: Rows, head: Head, loss: Loss) -> float:
    """(1/n) Σ w·l over all rows."""
    total = weight = 0.0
    for block in rows.blocks():
        losses = loss.value(head(block.phi), block.y)
        total += float(losses.sum() if block.w is None else block.w @ losses)
        weight += len(losses) if block.w is None else float(block.w.sum())
    return total / weight
