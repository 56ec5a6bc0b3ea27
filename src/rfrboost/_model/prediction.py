"""The prediction form of an ensemble's network: one sum over all random features of x.

No layer of an ensemble depends on Φ, so the raw prediction is linear in the features of all layers,

    raw(x) = x·linear + Σ_j leads_j f_j(x),

where ``leads`` (p, d) are the coefficients that lead from a layer's features through its step and
the head to the prediction. The coefficients of all members are added up before anything is
predicted, and the neurons of all layers with one activation become one matrix. Rows and features
are taken in pieces that stay in a processor's cache. :class:`~rfrboost._model.network.Network`
makes this form once, from its frozen arrays; it is neither stored nor exported. A single network,
whose features may depend on Φ, has no such form.

*Precision.* If feature j has a rounding error of ρ_j, in units of float32's roundoff u, an output
of the prediction is wrong by about u·ρ_j·|leads_j|. Errors of different features are independent,
so that their squares add up. Features with the smallest errors are computed in single precision, as
many as keep the root of that sum below ``LARGEST_NOISE`` (:func:`in_single`), the others in double
precision.

*Compiled.* If the user asks for it, the sums over tanh neurons, bumps and trees are compiled
(:mod:`rfrboost._kernels`); other activations, and everything else, are products of
matrices. Both agree within twice the noise above.

All sums over features are in double precision, so that it hardly matters how BLAS orders them. The
number of threads changes no bit of a prediction; the other rows of a batch change it by rounding
only.

Rows are homogeneous, x (n, D + 1) with a last column of 1; totals are (n, d). A *block* here is a
term of the sum: some features with their leads, not rows. A kind of block is a class with the
method ``add`` of :class:`Block`, and an entry in :data:`KINDS` for its feature map; neurons have
none, because those of all layers are joined (:func:`dense_blocks`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.spatial.distance import cdist

from rfrboost._kernels.available import ASKED, Kernels, kernels
from rfrboost._kernels.layout import tiled
from rfrboost._model.bumps import FARTHEST, ROUNDING, Bumps
from rfrboost._model.features import ACTIVATIONS, DenseFeatures, FeatureMap
from rfrboost._model.forest import Forest, led
from rfrboost._model.leaves import LocalSums, Splits
from rfrboost._numerics.blas import column_scales, product, stretched
from rfrboost._numerics.precision import LARGEST_NOISE, UNIT_ROUNDOFF
from rfrboost._typing import Array, Indices, Mask

# Rows whose neurons are computed at a time, and values of neurons (rows times neurons) that are
# computed at a time: 2^17 of them in double precision take 1 MB, which stays in a processor's
# cache. A prediction for one row computes 2^17 neurons at a time, and so needs few calls.
BLOCK_ROWS = 64
BLOCK_ENTRIES = 2**17

# Distances (rows times centres) that are computed at a time: 1 MB in double precision.
BUMP_ENTRIES = 2**17


class Block(Protocol):
    """Some features of a network, and the coefficients that lead from them to the prediction."""

    @property
    def compilable(self) -> bool:
        """Whether ``add`` is compiled if numba is there, and calls no BLAS then."""

    def add(self, x: Array, total: Array) -> None:
        """Add the features' share of the raw predictions (n, d) of rows x (n, D + 1)."""


@dataclass(frozen=True)
class Collapsed:
    """raw = x·linear + the sum of all blocks, for homogeneous rows; ``linear`` is (D + 1, d)."""

    linear: Array
    blocks: tuple[Block, ...]

    @cached_property
    def compiled(self) -> bool:
        """Whether all blocks are compiled, so that a prediction of one row needs no BLAS."""
        return compiled_kernels() is not None and all(block.compilable for block in self.blocks)

    def __call__(self, x: Array) -> Array:
        if self.compiled and len(x) == 1:
            total: Array = np.einsum("ij,jk->ik", x, self.linear)
        else:
            total = np.ascontiguousarray(times(x, self.linear))
        for block in self.blocks:
            block.add(x, total)
        return total


def compiled_kernels() -> Kernels | None:
    """The compiled functions, if the user asks for them and they are there."""
    return kernels() if ASKED else None


def times(A: Array, B: Array) -> Array:
    """A·B in double precision; one row by NumPy, whose calls take some microseconds less than ours.

    Not for single precision: NumPy multiplies one row by another routine than many, which rounds
    differently.
    """
    return np.matmul(A, B) if len(A) == 1 else product(A, B)


def inner_products(A: Array, B: Array) -> Array:
    """A·Bᵀ (n, m) for few rows of A and many of B, computed as (B·Aᵀ)ᵀ, which BLAS does faster."""
    return np.matmul(A, B.T) if len(A) == 1 else product(B, A.T).T


def collapse(linear: Array, terms: list[tuple[FeatureMap, Array]]) -> Collapsed:
    """The sum of x·linear and of features·leads, for each feature map and its leads (p, d)."""
    dense = [(features, leads) for features, leads in terms if type(features) is DenseFeatures]
    blocks = dense_blocks(dense)
    for features, leads in terms:
        if type(features) is not DenseFeatures:
            blocks.append(KINDS.get(type(features), AnySums)(features, np.asfortranarray(leads)))
    return Collapsed(linear, tuple(blocks))


# Neurons


@dataclass(frozen=True)
class Neurons:
    """σ(xBᵀ)·leads; the precision of B (p, D + 1) is that of the features, leads are (p, d)."""

    weights: Array
    activation: str
    leads: Array

    @property
    def compilable(self) -> bool:
        return self.activation == "tanh"

    @cached_property
    def tiles(self) -> tuple[Array, Array]:
        """Weights (D + 1, p) and leads (d, p) as compiled sums take them."""
        return tiled(self.weights.T), tiled(self.leads.T)

    def add(self, x: Array, total: Array) -> None:
        compiled = compiled_kernels() if self.compilable else None
        if compiled is None:
            self._add_products(x, total)
        elif self.weights.dtype == np.float32:
            compiled.sums.add_single_neurons(x.astype(np.float32), *self.tiles, total)
        else:
            compiled.sums.add_double_neurons(x, *self.tiles, total)

    def _add_products(self, x: Array, total: Array) -> None:
        sigma = ACTIVATIONS[self.activation].apply
        rows = x.astype(self.weights.dtype, copy=False)
        for i in range(0, len(rows), BLOCK_ROWS):
            some = rows[i : i + BLOCK_ROWS]
            n = len(some)
            step = BLOCK_ENTRIES // n
            for j in range(0, len(self.leads), step):
                # F is (features, rows), each feature contiguous in memory: with few columns BLAS
                # computes that twice as fast as with each row contiguous.
                F = product(some, self.weights[j : j + step].T).T
                sigma(F)
                total[i : i + n] += times(F.astype(float, copy=False).T, self.leads[j : j + step])


def dense_blocks(terms: list[tuple[DenseFeatures, Array]]) -> list[Block]:
    """At most two blocks for each activation: its neurons in single and in double precision."""
    blocks: list[Block] = []
    activations = dict.fromkeys(features.activation for features, _ in terms)
    for activation in activations:
        own = [(features, leads) for features, leads in terms if features.activation == activation]
        weights = np.hstack([features.weights.astype(float) for features, _ in own])
        leads = np.vstack([leads for _, leads in own])
        rounding = np.concatenate([features.rounding for features, _ in own])
        bounded = np.isfinite(ACTIVATIONS[activation].bound)
        noise = LARGEST_NOISE / np.sqrt(len(activations)) if bounded else 0.0
        fine = in_single(leads, rounding, noise)
        for chosen, dtype in ((fine, np.float32), (~fine, np.float64)):
            if chosen.any():
                some: Array = np.ascontiguousarray(weights[:, chosen].T, dtype)
                blocks.append(Neurons(some, activation, np.asfortranarray(leads[chosen])))
    return blocks


def in_single(leads: Array, rounding: Array, noise: float) -> Mask:
    """Which of p features may be computed in single precision, if sums are in double.

    ``leads`` (p, d) are the coefficients that lead from them to the prediction, ``rounding`` (p,)
    their errors in multiples of u, ``noise`` the error allowed to all of them together, for each of
    the d outputs. Those with the smallest errors are taken, as many as the sum of squares allows.
    """
    wrong = UNIT_ROUNDOFF * rounding[:, None] * np.abs(leads)
    order = np.argsort(wrong.max(axis=1))
    fine = np.empty(len(wrong), bool)
    fine[order] = np.cumsum(np.square(wrong[order]), axis=0).max(axis=1) <= noise**2
    return fine


# Bumps


class Lengths(Protocol):
    """One of the two distances to all centres, in units of the reach, in double precision."""

    @property
    def squared(self) -> bool:
        """Whether ``between`` gives squares."""

    def places(self, X: Array) -> tuple[Array, ...]:
        """Coordinates of rows X (n, D) from which ``between`` computes: arrays of n rows each."""

    def between(self, places: tuple[Array, ...]) -> Array:
        """The distances (n, centres), or their squares, of rows with these coordinates."""

    def add_compiled(self, sums: ModuleType, X: Array, leads: Array, total: Array) -> None:
        """total += exp(−distances)·leadsᵀ for rows X (n, D) and leads (d, centres)."""


@dataclass(frozen=True)
class EuclideanLengths:
    """Euclidean distances ‖(x − c)L‖ in units of ``unit``·``reach``, as products of matrices.

    ``metric`` is L, (D, D) or its diagonal; ``unit`` is the median distance between training rows.
    ``centres`` are rows (−2c, 1, ‖c‖²) in these units.
    """

    metric: Array
    unit: float
    reach: float
    centres: Array
    squared: ClassVar[bool] = True

    @staticmethod
    def of(bumps: Bumps) -> "EuclideanLengths":
        L = bumps.distances.L
        unit = bumps.distances.euclidean_unit
        C = coordinates(stretched(bumps.centres, L) / unit, bumps.reach)
        return EuclideanLengths(L, unit, bumps.reach, centre_rows(C))

    def places(self, X: Array) -> tuple[Array, ...]:
        return (place_rows(coordinates(stretched(X, self.metric) / self.unit, self.reach)),)

    def between(self, places: tuple[Array, ...]) -> Array:
        return squares(places[0], self.centres)

    @cached_property
    def tiles(self) -> tuple[Array, Array]:
        """The metric with two axes, and the centres as columns."""
        return np.array(np.atleast_2d(self.metric)), tiled(self.centres.T)

    def add_compiled(self, sums: ModuleType, X: Array, leads: Array, total: Array) -> None:
        M, C = self.tiles
        rounding = float(ROUNDING)
        sums.add_euclidean(X, M, self.unit, FARTHEST, self.reach, rounding, C, leads, total)


@dataclass(frozen=True)
class AbsoluteLengths:
    """Absolute distances Σ_j s_j |x_j − c_j| in units of the reach.

    In columns with two values, those of ``two``, |x_j − c_j| is (x_j − c_j)²/span, and the sum over
    these columns is a product of matrices: they are multiplied by ``roots``, and ``centres_two``
    are rows (−2c, 1, ‖c‖²). The columns of ``others`` are multiplied by ``scales`` and subtracted
    one by one from ``centres``, rows c.
    """

    two: Indices
    roots: Array
    others: Indices
    scales: Array
    reach: float
    centres_two: Array
    centres: Array
    squared: ClassVar[bool] = False

    @staticmethod
    def of(bumps: Bumps) -> "AbsoluteLengths":
        spans = bumps.distances.spans
        scales = column_scales(bumps.distances.L) / bumps.distances.absolute_unit
        two, others = np.flatnonzero(spans > 0), np.flatnonzero(spans <= 0)
        roots = np.sqrt(scales[two]) / np.sqrt(spans[two])
        C_two = coordinates(bumps.centres[:, two] * roots, np.sqrt(bumps.reach))
        C = coordinates(bumps.centres[:, others] * scales[others], bumps.reach)
        return AbsoluteLengths(
            two, roots, others, scales[others], bumps.reach, centre_rows(C_two), C
        )

    def places(self, X: Array) -> tuple[Array, ...]:
        if not len(self.two):
            return (coordinates(X * self.scales, self.reach),)
        of_two = coordinates(X.take(self.two, axis=1) * self.roots, np.sqrt(self.reach))
        others = coordinates(X.take(self.others, axis=1) * self.scales, self.reach)
        return others, place_rows(of_two)

    def between(self, places: tuple[Array, ...]) -> Array:
        # A rounding error of a square does not matter here, as no root is taken of it.
        if not len(self.others):
            return inner_products(places[1], self.centres_two)
        lengths: Array = cdist(places[0], self.centres, "cityblock")
        if len(self.two):
            lengths += inner_products(places[1], self.centres_two)
        return lengths

    @cached_property
    def tiles(self) -> tuple[Array, Array]:
        """The centres as columns: their columns with two values, and the others."""
        return tiled(self.centres_two.T), tiled(self.centres.T)

    def add_compiled(self, sums: ModuleType, X: Array, leads: Array, total: Array) -> None:
        columns = self.two, self.roots, self.others, self.scales
        sums.add_absolute(X, *columns, FARTHEST, self.reach, *self.tiles, leads, total)


@dataclass(frozen=True)
class BumpSums:
    """The sum of exp(−length)·leads over the kinds of length in ``parts``, with leads (m, d) each.

    A bump is a mixture of both kinds: the leads of each are multiplied by its share.
    """

    parts: tuple[tuple[Lengths, Array], ...]
    compilable: ClassVar[bool] = True

    @cached_property
    def tiles(self) -> tuple[Array, ...]:
        """The leads (d, m) of each part."""
        return tuple(tiled(leads.T) for _, leads in self.parts)

    def add(self, x: Array, total: Array) -> None:
        compiled = compiled_kernels()
        if compiled is None:
            self._add_products(x, total)
            return
        for (lengths, _), leads in zip(self.parts, self.tiles, strict=True):
            lengths.add_compiled(compiled.sums, x[:, :-1], leads, total)

    def _add_products(self, x: Array, total: Array) -> None:
        m = len(self.parts[0][1])
        rows = max(BUMP_ENTRIES // m, 1)
        for lengths, leads in self.parts:
            places = lengths.places(x[:, :-1])
            for i in range(0, len(x), rows):
                F = lengths.between(tuple(array[i : i + rows] for array in places))
                if lengths.squared:
                    np.sqrt(F, out=F)
                np.exp(np.negative(F, out=F), out=F)
                total[i : i + rows] += times(F, leads)


def bump_block(bumps: Bumps, leads: Array) -> BumpSums:
    """The block of bumps with these leads, in double precision.

    Coefficients of close centres are large and of opposite signs, and the rounding errors of their
    bumps are not independent as :func:`in_single` takes them to be: in single precision hardly any
    bump would be accurate enough.
    """
    kinds = ((1.0 - bumps.mix, EuclideanLengths), (bumps.mix, AbsoluteLengths))
    parts = [
        (kind.of(bumps), np.asfortranarray(share * leads)) for share, kind in kinds if share > 0
    ]
    return BumpSums(tuple(parts))


def coordinates(A: Array, reach: float) -> Array:
    """Coordinates in units of the reach, after rounding to single precision as ``Bumps`` does.

    A is overwritten.
    """
    np.minimum(A, FARTHEST, out=A)
    np.maximum(A, -FARTHEST, out=A)
    return np.divide(A.astype(np.float32), reach, dtype=float)


def place_rows(A: Array) -> Array:
    """(a, ‖a‖², 1) for each row a."""
    places = np.empty((A.shape[0], A.shape[1] + 2))
    places[:, :-2] = A
    np.einsum("ij,ij->i", A, A, out=places[:, -2])
    places[:, -1] = 1.0
    return places


def centre_rows(C: Array) -> Array:
    """(−2c, 1, ‖c‖²) for each centre c: its inner product with (a, ‖a‖², 1) is ‖a − c‖²."""
    return np.column_stack([-2.0 * C, np.ones(len(C)), np.einsum("ij,ij->i", C, C)])


def squares(places: Array, centres: Array) -> Array:
    """‖a − c‖² (n, centres); 0 where it is no larger than a rounding error in single precision."""
    squared = inner_products(places, centres)
    a = places[:, -2]
    c = centres[:, -1]
    largest = ROUNDING * (a.max() + c.max())
    if squared.min() <= largest:
        # Few distances are that small: only these are compared with errors of their own.
        i, j = np.nonzero(squared <= largest)
        small = squared[i, j] <= ROUNDING * (a[i] + c[j])
        squared[i[small], j[small]] = 0.0
    return squared


# Leaves, and any other features


@dataclass(frozen=True)
class LeafSums:
    """The bumps of kernel members in leaves: a row counts the bumps and constant of its own leaf.

    ``splits`` finds the leaf of a row; ``constants`` are (leaves, d).
    """

    splits: Splits
    leaves: tuple[BumpSums, ...]
    constants: Array
    compilable: ClassVar[bool] = True

    def add(self, x: Array, total: Array) -> None:
        where = self.splits(x[:, :-1])
        total += self.constants[where]
        for j in np.unique(where):
            own = np.flatnonzero(where == j)
            addend = np.zeros((len(own), total.shape[1]))
            self.leaves[j].add(x[own], addend)
            total[own] += addend


def leaf_block(sums: LocalSums, leads: Array) -> LeafSums:
    """The block of sums of bumps leaf by leaf, with the leads (p, d) multiplied in."""
    return LeafSums(
        sums.splits,
        tuple(bump_block(leaf.bumps, product(leaf.C.astype(float), leads)) for leaf in sums.leaves),
        np.stack([leaf.c @ leads for leaf in sums.leaves]),
    )


@dataclass(frozen=True)
class AnySums:
    """Features of a kind that is not in ``KINDS``, in double precision, times their leads."""

    features: FeatureMap
    leads: Array
    compilable: ClassVar[bool] = False

    def add(self, x: Array, total: Array) -> None:
        F = np.empty((len(x), self.features.width), order="F")
        self.features(x, F)
        total += product(F, self.leads)


@dataclass(frozen=True)
class TreeSums:
    """The trees of all members, with the leads multiplied into the values of their leaves.

    ``trees`` is a forest of one member, whose features are the outputs of the prediction.
    """

    trees: Forest
    compilable: ClassVar[bool] = True

    def add(self, x: Array, total: Array) -> None:
        compiled = compiled_kernels()
        if compiled is None:
            sums = np.empty(total.shape)
            self.trees(x, sums)
            total += sums
        else:
            self.trees.add_compiled(compiled.trees, x, total)


def tree_block(trees: Forest, leads: Array) -> TreeSums:
    """The block of trees whose m·d features are multiplied by leads (m·d, outputs)."""
    return TreeSums(led(trees, leads))


#: the function that makes a block of a feature map and its leads (p, d)
KINDS: dict[type, Callable[[Any, Array], Block]] = {
    Bumps: bump_block,
    LocalSums: leaf_block,
    Forest: tree_block,
}
