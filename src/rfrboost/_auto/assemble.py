"""Families of members become one network: weights by stacking, then layers of all families.

Stacking (Wolpert 1992; Breiman 1996, with non-negative weights) fits Σ_f v_f·raw_f + b to the
out-of-fold predictions raw_f of all families, v ≥ 0. The network's Φ (n, members·d) are the
members' predictions, already weighted: the constants and the linear family are its initial
representation, each layer of a boosted or kernel family adds to the columns of its own members, and
the head is the mean over members.
"""

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from scipy.optimize import minimize

from rfrboost._auto.bags import Bags
from rfrboost._auto.kernel import KernelFit
from rfrboost._auto.layer import GroupLayer
from rfrboost._auto.members import Boosted
from rfrboost._model.features import DenseFeatures, FeatureMap
from rfrboost._model.losses import Loss
from rfrboost._model.network import Head, Layer, LayerFeatures, LowRankStep, Network
from rfrboost._numerics.arrays import frozen
from rfrboost._typing import Array

# Weight of the penalty on the squared distance from equal weights, next to a mean loss over rows.
# It is small, and decides only where families predict the same.
STACKING_PENALTY = 1e-6

# Iterations of L-BFGS-B after which the weights are taken as they are. There are few of them, so
# that far fewer iterations do as a rule.
STACKING_ITERATIONS = 200


@dataclass(frozen=True)
class Families:
    """All families of an ensemble. Their weights are in this order: linear, boosted, kernel.

    ``constants`` (members, d) are the predictions that the linear family begins with. The boosted
    families, one for each kind of features and penalty, begin with the linear one's predictions.
    """

    constants: Array
    linear: Boosted
    boosted: tuple[Boosted, ...]
    kernel: KernelFit | None


def assemble(
    bags: Bags, mean: Array, loss: Loss, families: Families, deadline: float = np.inf
) -> tuple[Network, Array]:
    """The weighted families as one network, and its raw predictions for held-out rows (n, d).

    ``mean`` are the means of the columns of X, which the rows of ``bags`` are without. After the
    ``deadline``, a reading of ``time.perf_counter``, weights are taken as they are.
    """
    v, b, combined = family_weights(bags, loss, families, deadline)
    n_boosted = len(families.boosted)
    m = len(bags.members)
    d = len(b)
    weights = np.zeros((bags.x.shape[1], m * d))
    # Boosted members begin with the predictions of linear ones, so that these have both weights.
    of_linear = v[: 1 + n_boosted].sum()
    weights[-1] = of_linear * families.constants.ravel() + np.tile(b, m)
    for layer in families.linear.layers[0] if families.linear.layers else ():
        weights[:, member_columns(layer.group, d)] += of_linear * np.vstack([layer.C, layer.c])
    layers = boosted_layers(families.boosted, v[1 : 1 + n_boosted], m, d)
    if families.kernel is not None and v[-1] > 0:
        layers += [
            network_layer(own.features, v[-1] * own.C, v[-1] * own.c, own.group, m, d)
            for own in families.kernel.layers
        ]
    average = np.vstack([np.tile(np.eye(d) / m, (m, 1)), np.zeros(d)])
    head = Head(frozen(average))
    initial = DenseFeatures(weights, "identity")
    network = Network(frozen(mean), initial, tuple(layers), (head,) * (len(layers) + 1))
    return network, combined


def family_weights(
    bags: Bags, loss: Loss, families: Families, deadline: float = np.inf
) -> tuple[Array, Array, Array]:
    """The weights v of all families, the intercept b, and the weighted out-of-fold predictions."""
    fits = [families.linear, *families.boosted]
    of_kernel = [] if families.kernel is None else [families.kernel.out_of_fold]
    raw = np.stack([*(fit.out_of_fold for fit in fits), *of_kernel])
    y = bags.y[bags.held_out]
    w = bags.w[bags.held_out]
    v, b = stack(list(raw), y, w, loss, deadline)
    combined = np.einsum("f,fnd->nd", v, raw) + b
    shift = loss.shift(combined, y, w)
    return v, b + shift, combined + shift


def stack(
    families: list[Array], y: Array, w: Array, loss: Loss, deadline: float = np.inf
) -> tuple[Array, Array]:
    """v ≥ 0 and b that minimise the mean loss of Σ v_f·raw_f + b; the families raw_f are (n, d).

    The first iteration after the ``deadline`` is the last.
    """
    means = np.stack([f.mean(axis=0) for f in families])
    centred = [f - mean for f, mean in zip(families, means, strict=True)]
    scales = np.array([np.sqrt(np.mean(f**2)) or 1.0 for f in centred])
    S = np.stack([f / scale for f, scale in zip(centred, scales, strict=True)])
    F = len(S)
    d = S.shape[2]
    share = w / w.sum()
    first = scales / F if loss.quadratic else np.full(F, 1.0 / F)

    def objective(v: Array) -> tuple[float, Array]:
        raw = np.einsum("f,fnd->nd", v[:F], S) + v[F:]
        values, slopes = loss.value_and_gradient(raw, y)
        slopes = slopes * share[:, None]
        away = v[:F] - first
        value = float(share @ values) + STACKING_PENALTY * float(away @ away)
        gradient = np.einsum("fnd,nd->f", S, slopes) + 2 * STACKING_PENALTY * away
        return value, np.concatenate([gradient, slopes.sum(axis=0)])

    def stop_in_time(_: Array) -> None:
        if perf_counter() >= deadline:
            raise StopIteration

    v = minimize(
        objective,
        np.concatenate([first, loss.start(y, w)]),
        jac=True,
        method="L-BFGS-B",
        callback=stop_in_time,
        bounds=[(0.0, None)] * F + [(None, None)] * d,
        options={"maxiter": STACKING_ITERATIONS, "ftol": 1e-13, "gtol": 1e-9},
    ).x
    weights = v[:F] / scales
    return weights, v[F:] - weights @ means


def boosted_layers(boosted: tuple[Boosted, ...], v: Array, m: int, d: int) -> list[Layer]:
    """The weighted layers of boosted families with a positive weight.

    Layers of different penalties on the same features become one layer, the sum of both.
    """
    sums: dict[int, tuple[GroupLayer, Array, Array]] = {}
    for family, weight in zip(boosted, v, strict=True):
        for layer in (layer for by_group in family.layers for layer in by_group if weight > 0):
            C = weight * layer.C
            c = weight * layer.c
            if id(layer.features) in sums:
                _, C_before, c_before = sums[id(layer.features)]
                C = C + C_before
                c = c + c_before
            sums[id(layer.features)] = (layer, C, c)
    return [network_layer(own.features, C, c, own.group, m, d) for own, C, c in sums.values()]


def network_layer(
    features: FeatureMap, C: Array, c: Array, group: tuple[int, ...], m: int, d: int
) -> Layer:
    """A layer that moves the predictions of a group, among those of m members, by F·C + c."""
    V = np.zeros((m * d, C.shape[1]))
    V[member_columns(group, d), np.arange(C.shape[1])] = 1.0
    step = LowRankStep(frozen(C.astype(features.dtype)), frozen(c), frozen(V))
    return Layer(LayerFeatures(None, features), step, None)


def member_columns(group: tuple[int, ...], d: int) -> Array:
    """The columns of Φ that hold the predictions of a group's members, d for each."""
    return np.concatenate([np.arange(d) + d * k for k in group])
