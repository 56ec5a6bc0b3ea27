"""Random feature representation boosting: Algorithms 1 and 2 of the paper.

The loop is the paper's. What differs between the two algorithms is the step rule; what the
random features are is the samplers' affair; both are handed in.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng

from rfrboost._features import Sampler
from rfrboost._heads import constant_head, fit_head
from rfrboost._losses import Loss
from rfrboost._network import Head, Layer, LayerFeatures, Network, Standardizer, centered, start
from rfrboost._rows import Rows, content_order, largest_entry
from rfrboost._steps import StepRule
from rfrboost._typing import Array, frozen

# A column that varies less than this is constant: its squares would vanish.
SMALLEST_INPUT = 1e-60


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
        head = heads[-1]

        # Generate random features f_t(x, Φ_{t−1})
        features = sample_features(rows, head, recipe, layer_generator(recipe.seed, t))
        # Fit A_t: sandwiched least squares, or the functional gradient and a line search
        fitted_step = recipe.step.fit(rows, features, head, recipe.loss)
        # Φ_t = Φ_{t−1} + η A_t f_t
        step = fitted_step.step.scaled(recipe.learning_rate(t))
        layer = Layer(features, step, None)
        advance(rows, layer, fitted_step.outputs)
        layer = standardize(rows, layer) if recipe.normalize else layer
        # W_t = argmin R(W, Φ_t)
        head = fit_head(rows, recipe.loss, recipe.l2_head, restandardized(head, layer.standardizer))

        layers.append(layer)
        heads.append(head)
        risk = predict_rows(rows, head, recipe.loss)
        seconds = perf_counter() - began
        watch(LayerRecord(t, risk, fitted_step.alpha, fitted_step.gradient_norm, seconds))
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
    rng = layer_generator(recipe.seed, 2**31)
    x[:, np.abs(x).max(axis=0) < SMALLEST_INPUT] = 0.0
    if recipe.n_parts > 1:
        kept = rng.permutation(len(y))[: len(y) // recipe.n_parts * recipe.n_parts]
        x, y, w = x[kept], y[kept], None if w is None else w[kept]
    return Rows(x, y, w, content_order(x, y, rng), parts=recipe.n_parts)


def begin(rows: Rows, mean: Array, recipe: Recipe) -> Network:
    """Φ₀ and W₀."""
    rng = layer_generator(recipe.seed, 0)
    initial = None
    if recipe.initial is not None:
        initial = rows.sample(recipe.initial, rows.x, recipe.hidden_dim, rng)
    phi = start(initial, rows.x)
    rows.start(phi, recipe.loss.n_outputs(rows.y))
    head = fit_head(rows, recipe.loss, recipe.l2_head, constant_head(rows, recipe.loss))
    predict_rows(rows, head, recipe.loss)
    return Network(mean, initial, (), (head,))


def resume(rows: Rows, network: Network, recipe: Recipe) -> Network:
    """Bring the rows to where a fitted network left them."""
    rows.start(network.start(rows.x), len(network.heads[-1].b))
    for layer in network.layers:
        advance(rows, layer, None)
    predict_rows(rows, network.heads[-1], recipe.loss)
    return network


def sample_features(rows: Rows, head: Head, recipe: Recipe, rng: Generator) -> LayerFeatures:
    """f_t(x, Φ) = concat(σ(BΦ), σ(Cx)), or their sum where A_t is diagonal or scalar."""
    width = rows.phi.shape[1] - 1
    n_phi, n_x = (width, width) if recipe.step.added else recipe.n_features
    from_phi = rows.sample(recipe.sampler, rows.phi, n_phi, rng) if n_phi else None
    from_x = rows.sample(recipe.sampler, rows.x, n_x, rng) if n_x else None
    features = LayerFeatures(from_phi, from_x, recipe.step.added)
    dtype = recipe.step.dtype(rows, features, head)
    if dtype == np.float64:
        return features
    return features.astype(dtype, max(rows.largest_x, largest_entry(rows.phi)))


def advance(rows: Rows, layer: Layer, outputs: Array | None) -> None:
    """Move every row's Φ one layer on, by the step's outputs if they are known already."""
    for block in rows.blocks():
        if outputs is None:
            layer.advance(block.phi, layer.step.outputs(rows.features(block, layer.features)))
        else:
            layer.advance(block.phi, outputs[block.rows])


def standardize(rows: Rows, layer: Layer) -> Layer:
    """Standardise Φ by its present statistics, and let the layer do so from now on."""
    standardizer = column_statistics(rows)
    for block in rows.blocks():
        standardizer(block.phi)
    return Layer(layer.features, layer.step, standardizer)


def column_statistics(rows: Rows) -> Standardizer:
    """Weighted mean and standard deviation of Φ's columns; a constant column keeps its scale."""
    mean = np.average(rows.phi[:, :-1], axis=0, weights=rows.w)
    variance = np.zeros_like(mean)
    for block in rows.blocks():
        w = np.ones(len(block.y)) if block.w is None else block.w
        variance += w @ (block.phi[:, :-1] - mean) ** 2
    std = np.sqrt(variance / (len(rows.y) if rows.w is None else rows.w.sum()))
    return Standardizer(frozen(mean), frozen(np.where(std > 1e-12 * np.abs(mean), std, 1.0)))


def restandardized(head: Head, standardizer: Standardizer | None) -> Head:
    """The same predictor in the new coordinates of Φ: a better start than the old numbers."""
    if standardizer is None:
        return head
    W = head.W * standardizer.std[:, None]
    return Head(np.vstack([W, head.b + standardizer.mean @ head.W]))


def predict_rows(rows: Rows, head: Head, loss: Loss) -> float:
    """Every row's raw prediction Wᵀφ + b; returns the empirical risk (1/n) Σ w·l."""
    total = weight = 0.0
    for block in rows.blocks():
        block.raw[...] = head(block.phi)
        losses = loss.value(block.raw, block.y)
        total += float(losses.sum() if block.w is None else block.w @ losses)
        weight += len(losses) if block.w is None else float(block.w.sum())
    return total / weight
