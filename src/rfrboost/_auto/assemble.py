"""How families of members are put together: non-negative weights, from held-out predictions."""

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize

from rfrboost._auto.bags import Bags
from rfrboost._auto.kernel import KernelFit, KernelPiece
from rfrboost._auto.layer import Piece
from rfrboost._auto.members import Boosted
from rfrboost._model.features import DenseFeatures
from rfrboost._model.losses import Loss
from rfrboost._model.network import Head, Layer, LayerFeatures, LowRankStep, Network
from rfrboost._numerics.arrays import frozen
from rfrboost._typing import Array


def constants(bags: Bags, loss: Loss) -> Array:
    """Every member's best constant, as predictions (n, members, d)."""
    starts = [loss.start(bags.y[i], bags.w[i]) for i in map(bags.training, bags.members)]
    return np.tile(np.stack(starts), (len(bags.y), 1, 1))


def assemble(
    bags: Bags,
    mean: Array,
    loss: Loss,
    linear: Boosted,
    boosted: list[Boosted],
    kernel: KernelFit | None,
    v: Array,
    b: Array,
) -> Network:
    """One network of all families, weighted: its Φ are the members' predictions."""
    m, d = len(bags.members), len(b)
    matrix = np.zeros((bags.x.shape[1], m * d))
    # Boosted members go on from the linear ones, which count with the weight of both.
    of_linear = v[: 1 + len(boosted)].sum()
    matrix[-1] = of_linear * constants(bags, loss)[0].ravel() + np.tile(b, m)
    for piece in linear.layers[0] if linear.layers else ():
        into = member_columns(bags, piece.group, d)
        matrix[:, into] += of_linear * np.vstack([piece.C, piece.c])
    pieces: list[Piece | KernelPiece] = [*weighted_pieces(boosted, v[1 : 1 + len(boosted)])]
    if kernel is not None and v[-1] > 0:
        pieces += [replace(p, C=frozen(v[-1] * p.C), c=frozen(v[-1] * p.c)) for p in kernel.pieces]
    layers = [as_layer(piece, bags, d) for piece in pieces]
    average = np.vstack([np.tile(np.eye(d) / m, (m, 1)), np.zeros(d)])
    head = Head(frozen(average))
    initial = DenseFeatures(frozen(matrix), "identity")
    return Network(mean, initial, tuple(layers), (head,) * (len(layers) + 1))


def member_columns(bags: Bags, group: tuple[int, ...], d: int) -> Array:
    """The columns of Φ that belong to the members of a group."""
    return np.concatenate([np.arange(d) + d * k for k in group])


def weighted_pieces(boosted: list[Boosted], weights: Array) -> list[Piece]:
    """The layers of all, weighted; those of two penalties on the same features are one."""
    sums: dict[int, Piece] = {}
    for family, weight in zip(boosted, weights, strict=True):
        for piece in (piece for layer in family.layers for piece in layer if weight > 0):
            C, c = weight * piece.C, weight * piece.c
            same = sums.get(id(piece.features))
            if same is not None:
                C, c = C + same.C, c + same.c
            sums[id(piece.features)] = replace(piece, C=frozen(C), c=frozen(c))
    return list(sums.values())


def as_layer(piece: Piece | KernelPiece, bags: Bags, d: int) -> Layer:
    """A piece as a layer that moves the columns of its own members."""
    V = np.zeros((len(bags.members) * d, piece.C.shape[1]))
    V[member_columns(bags, piece.group, d), np.arange(piece.C.shape[1])] = 1.0
    C = frozen(piece.C.astype(piece.features.dtype))
    return Layer(LayerFeatures(None, piece.features), LowRankStep(C, piece.c, frozen(V)), None)


# Against equal weights, on the scale of a mean over rows: decides where families are alike.
PENALTY = 1e-6


ITERATIONS = 200


def stack(families: list[Array], y: Array, w: Array, loss: Loss) -> tuple[Array, Array]:
    """v ≥ 0 and b that minimise the mean loss of Σ v_f·raw_f + b; raw_f are (n, d)."""
    means = np.stack([f.mean(axis=0) for f in families])
    centred = [f - mean for f, mean in zip(families, means, strict=True)]
    scales = np.array([np.sqrt(np.mean(f**2)) or 1.0 for f in centred])
    S = np.stack([f / scale for f, scale in zip(centred, scales, strict=True)])
    F, d, share = len(S), S.shape[2], w / w.sum()
    first = scales / F if loss.quadratic else np.full(F, 1.0 / F)

    def objective(v: Array) -> tuple[float, Array]:
        raw = np.einsum("f,fnd->nd", v[:F], S) + v[F:]
        values, slopes = loss.value_and_gradient(raw, y)
        slopes = slopes * share[:, None]
        away = v[:F] - first
        value = float(share @ values) + PENALTY * float(away @ away)
        gradient = np.einsum("fnd,nd->f", S, slopes) + 2 * PENALTY * away
        return value, np.concatenate([gradient, slopes.sum(axis=0)])

    bounds = [(0.0, None)] * F + [(None, None)] * d
    options = {"maxiter": ITERATIONS, "ftol": 1e-13, "gtol": 1e-9}
    v = minimize(
        objective,
        np.concatenate([first, loss.start(y, w)]),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options=options,
    ).x
    weights = v[:F] / scales
    return weights, v[F:] - weights @ means
