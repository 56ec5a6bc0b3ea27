"""Compression: a small model that imitates an ensemble, made of the ensemble's own features.

Many features of an ensemble are nearly alike: those of the members of all bags, of later layers,
and the bumps around rows that are alike. A linear model on few of its features can predict nearly
the same, if its weights are fitted again. That is distillation (Buciluǎ, Caruana and
Niculescu-Mizil, Model compression, 2006): least squares, whose targets are the ensemble's raw
predictions. They have no noise, and any number of rows can be predicted.

*Rows.* An ensemble remembers its training rows: its predictions are closer to their targets than
those of new rows. What should be imitated is what it predicts for new rows, and these can be made
up: each is a training row with some columns taken from a neighbour (:func:`in_between`). Such rows
are as near to the training rows as new rows are, and hold values that their columns really have.

*Selection.* From the strongest candidates (:mod:`rfrboost._compress.candidates`) features are
removed step by step, and the weights are found again after each step (:func:`rungs`). Leaving out
feature j, with all other weights found anew, adds w_j²/[(G + λI)⁻¹]_jj to the objective (the
optimal brain surgeon of Hassibi and Stork, 1993); the features that add least for their cost go
first. All steps need one Gram matrix G only.

Rows are x (n, D + 1), homogeneous; raw predictions are (n, d).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy.linalg.lapack import dpotri
from sklearn.neighbors import NearestNeighbors

from rfrboost._compress.candidates import Part, candidates_of, of_mask, strongest
from rfrboost._model.features import DenseFeatures
from rfrboost._model.network import Head, Network, centered
from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.blas import potrf, potrs, product
from rfrboost._numerics.least_squares import Moments
from rfrboost._typing import Array, Indices, Mask

# The most candidates, which bounds time and memory: their Gram matrix takes 75 MB.
MOST_CANDIDATES = 3072

# Rows from which the strength of all candidates is estimated.
STRENGTH_ROWS = 256

# Rows that are imitated, at most half of them rows as they were given.
IMITATED_ROWS = 8192

# Rows by which smaller models are judged, and the share of the given rows that they are made of.
# These are not imitated.
JUDGED_ROWS = 1024
JUDGED_SHARE = 0.25

# A row that is imitated has columns of one of this many neighbours; one that judges, of the nearest
# one, because that is how close a new row is.
NEIGHBOURS = 5

# The penalty λ on weights of features with unit variance. It keeps weights of similar features
# small, so that few rows do not decide on many of them; ten times more or less is no better.
PENALTY = 1e-4

# The share of features that is kept in each step.
KEPT_SHARE = 0.8

# With more columns than this, the model's own linear part takes their place.
MOST_COLUMNS = 512

# Rows whose features are computed at a time.
BATCH_ROWS = 1024


@dataclass(frozen=True)
class Rung:
    """A smaller model: a mask of the candidates it keeps, and all weights.

    ``linear`` (D + 1, d) is the part that is linear in x, ``W`` (kept, d) are the weights of the
    candidates.
    """

    kept: Mask
    linear: Array
    W: Array


@dataclass(frozen=True)
class Pool:
    """The candidates, and the linear features x·basis that all models have; basis is (D + 1, q).

    ``total`` is the number of features of the ensemble, of which the candidates are the strongest.
    """

    parts: tuple[Part, ...]
    basis: Array
    total: int

    @property
    def size(self) -> int:
        """The number of candidates."""
        return sum(part.size for part in self.parts)

    @property
    def costs(self) -> Array:
        """The time of each candidate, in units of a neuron's."""
        return np.concatenate([np.full(part.size, part.cost) for part in self.parts])

    def values(self, x: Array) -> Array:
        """The linear features and those of all candidates (n, q + size), in single precision."""
        linear = product(x, self.basis).astype(np.float32)
        return np.asfortranarray(np.hstack([linear, *(part.values(x) for part in self.parts)]))


def pool_of(network: Network, X: Array, training_rows: bool) -> Pool:
    """The candidates of an ensemble, and what all smaller models have.

    ``X`` (n, D) are some rows. Without ``training_rows`` bumps are no candidates. Raises a
    TypeError if the ensemble has features that are no candidates.
    """
    form = network.prediction
    assert form is not None  # an ensemble's
    x = centered(X[:STRENGTH_ROWS], network.mean)
    every = candidates_of(network)
    allowed = [own for own in every if training_rows or not own[0].is_row]
    D = X.shape[1]
    basis = np.eye(D + 1, D) if D <= MOST_COLUMNS else form.linear
    total = sum(part.size for part, _ in every)
    return Pool(strongest(allowed, x, MOST_CANDIDATES), basis, total)


def in_between(
    X: Array, parents: Indices, sources: Indices, neighbours: int, rng: Generator
) -> Array:
    """Made-up rows near X (n, D): each a row of X with about half of its columns from a neighbour.

    ``parents`` (m,) are the rows, ``sources`` (D,) says which column of the table each column of X
    was made of: these are taken together. The other row is one of the ``neighbours`` nearest ones,
    where columns have unit variance.
    """
    spread = X.std(axis=0)
    Z = X / np.where(spread > 0, spread, 1.0)
    k = min(neighbours + 1, len(X))
    near = NearestNeighbors(n_neighbors=k).fit(Z).kneighbors(Z[parents], return_distance=False)
    # Of equal rows any may come first: the row itself is moved to the end and left out.
    itself = near == parents[:, None]
    itself[~itself.any(axis=1), -1] = True
    others = near[~itself].reshape(len(parents), k - 1)
    other = others[np.arange(len(parents)), rng.integers(k - 1, size=len(parents))]
    taken = rng.random((len(parents), int(sources.max()) + 1)) < 0.5
    made: Array = np.where(taken[:, sources], X[other], X[parents])
    return made


def drawn(n: int, m: int, w: Array | None, rng: Generator) -> Indices:
    """m of n rows: by their weights, or, without weights, each as often as any other."""
    if w is None:
        rounds = [rng.permutation(n) for _ in range(-(-m // n))]
        return np.concatenate(rounds)[:m]
    return rng.choice(n, m, p=w / w.sum())


def imitated_rows(X: Array, w: Array | None, sources: Indices, rng: Generator) -> Array:
    """The rows (m, D) that a smaller model is fitted on."""
    given = min(len(X), IMITATED_ROWS // 2)
    rows = drawn(len(X), given, w, rng)
    base = np.unique(rows)
    own = None if w is None else w[base]
    parents = drawn(len(base), IMITATED_ROWS - given, own, rng)
    return np.vstack([X[rows], in_between(X[base], parents, sources, NEIGHBOURS, rng)])


def judging_rows(X: Array, w: Array | None, sources: Indices, rng: Generator) -> Array:
    """Rows (m, D) between those of X, none of which is imitated, and their nearest neighbours.

    The neighbours are rows of X too: as there are few of them, they are further away than the
    nearest training row, as new rows are.
    """
    return in_between(X, drawn(len(X), JUDGED_ROWS, w, rng), sources, 1, rng)


def judged_and_imitated(n: int, rng: Generator) -> tuple[Indices, Indices]:
    """Which of n rows those that judge are made of, and which are imitated: no row is both."""
    order = rng.permutation(n)
    judged = min(int(JUDGED_SHARE * n), JUDGED_ROWS)
    return np.sort(order[:judged]), np.sort(order[judged:])


@dataclass(frozen=True)
class Normal:
    """The least squares problem of features with mean 0 and variance 1: G (p, p), B (p, d).

    ``mean`` and ``scale`` (p,) are the features' own, ``target`` (d,) is the mean of what is
    imitated. Of G there is the lower triangle only. A feature that does not vary has the scale 0.
    """

    G: Array
    B: Array
    mean: Array
    scale: Array
    target: Array


def normal_equations(pool: Pool, x: Array, raw: Array, w: Array) -> Normal:
    """The problem of imitating ``raw`` (n, d) at rows x with weights w (n,)."""
    # Near their mean, features may be summed in single precision: many a bump is nearly constant.
    near = pool.values(x[:BATCH_ROWS]).mean(axis=0)
    moments = Moments(len(near), raw.shape[1], rr=False)
    for i in range(0, len(x), BATCH_ROWS):
        s = slice(i, i + BATCH_ROWS)
        moments.add(pool.values(x[s]) - near, raw[s], w[s])
    moments.center()
    scale = np.sqrt(np.diag(moments.ff) / moments.weight)
    unit = np.where(scale > 0, scale, 1.0)
    G = moments.ff
    G /= moments.weight * unit
    G /= unit[:, None]
    B = moments.fr / (moments.weight * unit[:, None])
    total = moments.weight
    return Normal(G, B, near + moments.f / total, scale, moments.r / total)


def rungs(pool: Pool, normal: Normal, size: int | None) -> Iterator[Rung]:
    """Smaller and smaller models.

    The first has all candidates that vary, at most ``size`` if it is given; the last has none.
    """
    q = pool.basis.shape[1]
    costs = pool.costs if pool.parts else np.empty(0)
    kept = np.flatnonzero(normal.scale[q:] > 0)
    while True:
        active = np.concatenate([np.flatnonzero(normal.scale[:q] > 0), q + kept])
        L = factor(normal.G, active)
        V = potrs(L, normal.B[active])
        if size is None or len(kept) <= size:
            yield rung(pool, normal, active, V)
        if not len(kept):
            return
        inverse, own = np.diag(dpotri(L, lower=1)[0])[-len(kept) :], V[-len(kept) :]
        added = (own**2).sum(axis=1) / (inverse * costs[kept])
        fewer = int(KEPT_SHARE * len(kept))
        if size is not None and len(kept) > size:
            fewer = max(fewer, size)
        kept = np.sort(kept[np.argsort(-added, kind="stable")[:fewer]])


def factor(G: Array, active: Indices) -> Array:
    """The Cholesky factor of G + λI for some features.

    λ is the penalty, or ten times as much, and so on, where rounding makes that necessary.
    """
    penalty = PENALTY
    while True:
        L = np.asfortranarray(G[np.ix_(active, active)])
        np.einsum("ii->i", L)[...] += penalty
        if potrf(L):
            return L
        penalty *= 10.0


def rung(pool: Pool, normal: Normal, active: Indices, V: Array) -> Rung:
    """The model with these features; V (active, d) are their weights in units of their scales."""
    q = pool.basis.shape[1]
    kept = np.zeros(pool.size, bool)
    kept[active[active >= q] - q] = True
    W = V / normal.scale[active, None]
    of_x = active < q
    linear = product(pool.basis[:, active[of_x]], W[of_x])
    linear[-1] += normal.target - normal.mean[active] @ W
    return Rung(kept, linear, W[~of_x])


def network_of(pool: Pool, own: Rung, mean: Array) -> Network:
    """A rung as a network: Φ are the raw predictions, and the head is the identity."""
    d = own.linear.shape[1]
    parts = of_mask(list(pool.parts), own.kept)
    ends = np.cumsum([part.size for part in parts])
    weights = np.split(own.W, ends[:-1]) if parts else []
    layers = [part.layer(W) for part, W in zip(parts, weights, strict=True)]
    head = Head(frozen(np.eye(d + 1, d)))
    initial = DenseFeatures(own.linear, "identity")
    return Network(mean, initial, tuple(layers), (head,) * (len(layers) + 1))
