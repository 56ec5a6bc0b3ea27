"""Families of members become one network: weights by stacking, then layers of all families.

Stacking (Wolpert 1992; Breiman 1996, with non-negative weights) fits Σ_f v_f·raw_f + b to the
out-of-fold predictions raw_f of all families, v ≥ 0. Under splits by time, the members that hold
rows out are not those that predict new rows. Held-out rows are then later than the rows fitted, and
weights and an intercept would make up for a drift that the final members have already seen. So v
adds up to 1 there, and b is 0. Outputs share the weights of families, except for several labels per
row (``Loss.separate_outputs``).

The network's Φ (n, members·d) are the members' predictions, already weighted: the constants and the
linear family are its initial representation, each layer of a boosted or kernel family adds to the
columns of its own members, and the head is the mean over members. Members that do not predict new
rows (``Bags.kept``) are left out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from scipy.optimize import minimize

from rfrboost._auto.bags import Bags
from rfrboost._auto.kernel import KernelFit
from rfrboost._auto.layer import GroupLayer
from rfrboost._auto.members import Boosted
from rfrboost._auto.trees import TreesFit
from rfrboost._model.features import DenseFeatures, FeatureMap
from rfrboost._model.forest import side_by_side
from rfrboost._model.losses import Loss
from rfrboost._model.network import Head, Layer, LayerFeatures, LowRankStep, Network
from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.threads import Team
from rfrboost._typing import Array, Indices

# Weight of the penalty on the squared distance from equal weights, next to a mean loss over rows.
# It is small, and decides only where families predict the same.
STACKING_PENALTY = 1e-6

# Iterations of L-BFGS-B after which the weights are taken as they are. There are few of them, so
# that far fewer iterations do as a rule.
STACKING_ITERATIONS = 200

# The most runs of L-BFGS-B, and the share of the loss that another run must gain to be worth one
# more. Three runs do as a rule.
STACKING_RUNS = 20
STACKING_GAIN = 1e-9

# The share of the time that is left in which rows outside the sample are predicted; the rest is for
# intervals.
PREDICTING_SHARE = 0.8


@dataclass(frozen=True)
class Families:
    """All families of an ensemble. Their weights are in this order: linear, boosted, kernel, trees.

    ``constants`` (members, d) are the predictions that the linear family and the trees begin with.
    The boosted families, one for each kind of features and penalty, begin with the linear one's
    predictions.
    """

    constants: Array
    linear: Boosted
    boosted: tuple[Boosted, ...]
    kernel: KernelFit | None
    trees: TreesFit | None


def assemble(
    bags: Bags,
    mean: Array,
    loss: Loss,
    families: Families,
    deadline: float = np.inf,
    score: Callable[[Array], float] | None = None,
) -> tuple[Network, Array]:
    """The weighted families as one network, and its raw predictions for held-out rows (n, d).

    ``mean`` are the means of the columns of X, which have been subtracted from the rows of
    ``bags``. After the ``deadline``, a reading of ``time.perf_counter``, weights are taken as they
    are. ``score``, unless it is None, judges predictions for held-out rows in place of the loss.
    """
    v, b, combined = family_weights(bags, loss, families, deadline, score)
    return network_of(families, v, b, mean, bags.kept), combined


def assemble_sampled(
    bags: Bags,
    sample: Bags,
    rows: Indices,
    mean: Array,
    loss: Loss,
    families: Families,
    team: Team,
    deadline: float = np.inf,
    score: Callable[[Array], float] | None = None,
) -> tuple[Network, Array]:
    """As :func:`assemble`, where all but the kernel family were fitted on a ``sample`` of the rows.

    ``rows`` are the numbers of its rows among those of ``bags``. Families are weighted by the
    sample. Members that hold a row out then predict it, whether it was in the sample or not. Where
    time is too short for that, predictions of rows outside the sample may be NaN.
    """
    own = families
    if families.kernel is not None:
        places = np.searchsorted(bags.held_out, rows[sample.held_out])
        sampled = replace(families.kernel, out_of_fold=families.kernel.out_of_fold[places])
        own = replace(families, kernel=sampled)
    v, b, combined = family_weights(sample, loss, own, deadline, score)
    raw = np.full((len(bags.y), len(b)), np.nan)
    of_kernel = np.zeros(raw.shape)
    if families.kernel is not None:
        of_kernel[bags.held_out] = families.kernel.out_of_fold * v[1 + len(families.boosted)]
    raw[rows[sample.held_out]] = combined
    others = replace(families, kernel=None)
    last = perf_counter() + PREDICTING_SHARE * (deadline - perf_counter())
    predictions = {
        k: network_of(others, v, b, mean, tuple(holders)).prediction
        for k, holders in bags.holders.items()
    }

    def predict(batch: tuple[int, slice]) -> None:
        k, s = batch
        prediction = predictions[k]
        assert prediction is not None  # features of an ensemble read x alone
        if perf_counter() < last:
            raw[s] = prediction(bags.x[s]) + of_kernel[s]

    # Folds in turn, so that each has its share where time is too short for all rows.
    batches = [(k, s) for k, s in bags.batches() if k in predictions]
    list(team(predict, sorted(batches, key=lambda own: own[1].start - bags.folds[own[0]].start)))
    return network_of(families, v, b, mean, bags.kept), raw[bags.held_out]


def network_of(
    families: Families, v: Array, b: Array, mean: Array, kept: tuple[int, ...]
) -> Network:
    """The families with weights ``v`` (families, d) and the intercept ``b`` (d,) as one network of
    the members ``kept``."""
    n_boosted = len(families.boosted)
    m = len(kept)
    d = len(b)
    weights = np.zeros((len(mean) + 1, m * d))
    # Boosted members begin with the predictions of linear ones, so that these have both weights.
    of_linear = v[: 1 + n_boosted].sum(axis=0)
    of_trees = np.zeros(d) if families.trees is None else v[-1]
    constants = families.constants[list(kept)]
    weights[-1] = ((of_linear + of_trees) * constants + b).ravel()
    for layer in families.linear.layers[0] if families.linear.layers else ():
        C, c, places = of_kept(layer.C, layer.c, layer.group, kept, d)
        weights[:, places] += by_output(of_linear, np.vstack([C, c]))
    layers = boosted_layers(families.boosted, v[1 : 1 + n_boosted], kept, d)
    of_kernel = np.zeros(d) if families.kernel is None else v[1 + n_boosted]
    if families.kernel is not None and of_kernel.any():
        layers += [
            network_layer(
                own.features,
                by_output(of_kernel, own.C),
                by_output(of_kernel, own.c),
                own.group,
                kept,
                d,
            )
            for own in families.kernel.layers
            if set(own.group) & set(kept)
        ]
    if families.trees is not None and of_trees.any():
        trees = side_by_side([families.trees.members[k] for k in kept])
        C = by_output(of_trees, np.eye(m * d))
        layers.append(network_layer(trees, C, np.zeros(m * d), kept, kept, d))
    average = np.vstack([np.tile(np.eye(d) / m, (m, 1)), np.zeros(d)])
    head = Head(frozen(average))
    initial = DenseFeatures(weights, "identity")
    return Network(frozen(mean), initial, tuple(layers), (head,) * (len(layers) + 1))


def by_output(weights: Array, C: Array) -> Array:
    """Columns of C (…, members·d) times the weights (d,) of their outputs."""
    return C * np.tile(weights, C.shape[-1] // len(weights))


def family_weights(
    bags: Bags,
    loss: Loss,
    families: Families,
    deadline: float = np.inf,
    score: Callable[[Array], float] | None = None,
) -> tuple[Array, Array, Array]:
    """The weights v (families, d), the intercept b, and the weighted out-of-fold predictions.

    Weights minimise the loss; separate outputs have separate weights. A ``score`` chooses among
    those of all families, of all but one, and of one alone (:func:`subsets`): few enough for
    held-out rows to choose from.
    """
    fits = [families.linear, *families.boosted]
    others = [fit for fit in (families.kernel, families.trees) if fit is not None]
    raw = np.stack([fit.out_of_fold for fit in (*fits, *others)])
    y = bags.y[bags.held_out]
    w = bags.w[bags.held_out]
    same_members = bags.kept == bags.members
    d = raw.shape[2]

    def fitted(own: Array, targets: Array) -> tuple[Array, Array]:
        if same_members:
            return stack(list(own), targets, w, loss, deadline)
        return mixture(own, targets, w, loss)

    def weighted(some: list[int]) -> tuple[Array, Array, Array]:
        own = raw[some]
        v = np.zeros((len(raw), d))
        if loss.separate_outputs:
            found = [fitted(own[:, :, [j]], y[:, [j]]) for j in range(d)]
            v[some] = np.column_stack([weights for weights, _ in found])
            b = np.concatenate([intercept for _, intercept in found])
        else:
            weights, b = fitted(own, y)
            v[some] = weights[:, None]
        combined = np.einsum("fd,fnd->nd", v, raw) + b
        shift = loss.shift(combined, y, w)
        return v, b + shift, combined + shift

    if score is None:
        return weighted(list(range(len(raw))))
    return max(map(weighted, subsets(len(raw), deadline)), key=lambda found: score(found[2]))


def subsets(n_families: int, deadline: float) -> Iterator[list[int]]:
    """All families, all but one of them, and one alone; only the first after the deadline."""
    everyone = list(range(n_families))
    yield everyone
    fewer = [[k for k in everyone if k != left_out] for left_out in everyone]
    alone = [[k] for k in everyone if n_families > 2]
    for some in fewer + alone:
        if some and perf_counter() < deadline:
            yield some


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

    bounds = [(0.0, None)] * F + [(None, None)] * d
    v = least(objective, np.concatenate([first, loss.start(y, w)]), bounds, deadline)
    weights = v[:F] / scales
    return weights, v[F:] - weights @ means


def least(
    objective: Callable[[Array], Any], v: Array, bounds: list[Any], deadline: float = np.inf
) -> Array:
    """The v within bounds for which a convex objective is least, found from a starting point.

    L-BFGS-B stops at the first step that gains nothing. Where families are much alike, that may be
    far from the minimum. It is therefore restarted, without its memory of the curvature, until a
    whole run gains nothing. The first iteration after the ``deadline`` is the
    last.
    """

    def stop_in_time(_: Array) -> None:
        if perf_counter() >= deadline:
            raise StopIteration

    value = np.inf
    for _ in range(STACKING_RUNS):
        found = minimize(
            objective,
            v,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            callback=stop_in_time,
            options={"maxiter": STACKING_ITERATIONS, "ftol": 1e-13, "gtol": 1e-9},
        )
        v = found.x
        gains = value - found.fun > STACKING_GAIN * abs(found.fun)
        if not gains or perf_counter() >= deadline:
            break
        value = found.fun
    return v


def mixture(raw: Array, y: Array, w: Array, loss: Loss) -> tuple[Array, Array]:
    """v ≥ 0 with Σv = 1 that minimises the mean loss of Σ v_f·raw_f; the intercept b is 0.

    ``raw`` are the predictions (families, n, d).
    """
    F, _, d = raw.shape
    share = w / w.sum()
    first = np.full(F, 1.0 / F)
    # In units of the loss of equal weights, so that the tolerance is relative.
    unit = float(share @ np.abs(loss.value(raw.mean(axis=0), y))) or 1.0

    def objective(v: Array) -> tuple[float, Array]:
        values, slopes = loss.value_and_gradient(np.einsum("f,fnd->nd", v, raw), y)
        away = v - first
        value = float(share @ values) / unit + STACKING_PENALTY * float(away @ away)
        gradient = np.einsum("fnd,nd->f", raw, slopes * share[:, None]) / unit
        return value, gradient + 2 * STACKING_PENALTY * away

    found = minimize(
        objective,
        first,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * F,
        constraints={"type": "eq", "fun": lambda v: v.sum() - 1.0, "jac": np.ones_like},
        options={"maxiter": STACKING_ITERATIONS, "ftol": 1e-10},
    ).x
    v = np.maximum(found, 0.0)
    return v / v.sum(), np.zeros(d)


def boosted_layers(
    boosted: tuple[Boosted, ...], v: Array, kept: tuple[int, ...], d: int
) -> list[Layer]:
    """The weighted layers of boosted families with a positive weight, for the members ``kept``.

    Layers of different penalties on the same features become one layer, the sum of both.
    """
    sums: dict[int, tuple[GroupLayer, Array, Array]] = {}
    for family, weight in zip(boosted, v, strict=True):
        for layer in (layer for by_group in family.layers for layer in by_group if weight.any()):
            C = by_output(weight, layer.C)
            c = by_output(weight, layer.c)
            if id(layer.features) in sums:
                _, C_before, c_before = sums[id(layer.features)]
                C = C + C_before
                c = c + c_before
            sums[id(layer.features)] = (layer, C, c)
    return [
        network_layer(own.features, C, c, own.group, kept, d)
        for own, C, c in sums.values()
        if set(own.group) & set(kept)
    ]


def network_layer(
    features: FeatureMap, C: Array, c: Array, group: tuple[int, ...], kept: tuple[int, ...], d: int
) -> Layer:
    """A layer that moves the predictions of a group, among those of members kept, by F·C + c."""
    C, c, places = of_kept(C, c, group, kept, d)
    V = np.zeros((len(kept) * d, C.shape[1]))
    V[places, np.arange(C.shape[1])] = 1.0
    step = LowRankStep(frozen(C.astype(features.dtype)), frozen(c), frozen(V))
    return Layer(LayerFeatures(None, features), step, None)


def of_kept(
    C: Array, c: Array, group: tuple[int, ...], kept: tuple[int, ...], d: int
) -> tuple[Array, Array, Indices]:
    """The columns of C and c for those members of a group that are kept, and their places in Φ."""
    both = [k for k in group if k in kept]
    if len(both) < len(group):
        own = member_columns([group.index(k) for k in both], d)
        C, c = C[:, own], c[own]
    return C, c, member_columns([kept.index(k) for k in both], d)


def member_columns(members: list[int], d: int) -> Indices:
    """The columns that hold the predictions of some members, d for each."""
    return np.concatenate([np.empty(0, np.intp), *(np.arange(d) + d * k for k in members)])
