"""Row blocks of a bagged fit: features computed once a draw, and Gram matrices by fold."""

import numpy as np

from rfrboost._bags import Bags
from rfrboost._blas import product
from rfrboost._features import FeatureMap
from rfrboost._moments import Moments, merged
from rfrboost._rows import BLOCK_ROWS, KEPT_BYTES
from rfrboost._solve import solve
from rfrboost._threads import Team
from rfrboost._typing import Array, Indices

# Blocks whose moments are summed before the next ones are begun: they are p² numbers each.
AT_ONCE = 8


class FeatureBlocks:
    """A group's rows in blocks, and the features of the present draw on them.

    Blocks of one *bucket* are summed into one Gram: a fold, or for a member that shares with
    nobody all rows it is fitted on. Those it holds out come last and have no bucket. Blocks are
    shared out to a ``team``, and summed in their own order.
    """

    def __init__(self, bags: Bags, group: tuple[int, ...], team: Team) -> None:
        self.team = team
        self.n_buckets = 1 if len(group) == 1 else len(bags.folds)
        self.order: Indices | slice = slice(None)
        self.blocks: list[tuple[int | None, slice]] = list(bags.blocks())
        if len(group) == 1:
            train, held = bags.training(group[0]), np.r_[bags.folds[group[0]]]
            self.order = np.concatenate([train, held])
            ends = [(0, 0, len(train)), (None, len(train), len(self.order))]
            self.blocks = [
                (bucket, slice(i, min(i + BLOCK_ROWS, stop)))
                for bucket, start, stop in ends
                for i in range(start, stop, BLOCK_ROWS)
            ]
        self.x = bags.x[self.order]
        self.rooms: dict[tuple[int, type], Array] = {}
        self.kept: set[int] = set()

    def first_pass(self, features: FeatureMap, R: Array, w: Array) -> list[Moments]:
        """Compute the features and their moments with R (n, columns), a bucket each."""
        self.kept.clear()
        R, w = R[self.order], w[self.order]
        weighted = not (w == 1).all()

        def moments(s: slice) -> Moments:
            own = Moments(features.width, R.shape[1], rr=False)
            own.add(self._features(features, s), R[s], w[s] if weighted else None)
            return own

        buckets: dict[int, Moments] = {}
        summed = [(bucket, s) for bucket, s in self.blocks if bucket is not None]
        for i in range(0, len(summed), AT_ONCE):
            some = summed[i : i + AT_ONCE]
            parts = self.team(moments, [s for _, s in some])
            for (bucket, _), part in zip(some, parts, strict=True):
                if bucket in buckets:
                    buckets[bucket].take(part)
                else:
                    buckets[bucket] = part
        return [buckets[bucket] for bucket in range(self.n_buckets)]

    def second_pass(self, features: FeatureMap, C: Array) -> Array:
        """F·C for all rows, in the order of the bags."""
        moved, C = np.empty((len(self.x), C.shape[1]), order="F"), C.astype(features.dtype)

        def move(s: slice) -> None:
            moved[s] = product(self._features(features, s), C)

        self.team(move, [s for _, s in self.blocks])
        if isinstance(self.order, slice):
            return moved
        back = np.empty_like(moved)
        back[self.order] = moved
        return back

    def _features(self, features: FeatureMap, s: slice) -> Array:
        """The features of a block, kept for the second pass as far as there is room."""
        shape, dtype = (s.stop - s.start, features.width), features.dtype
        if s.stop * features.width * dtype.itemsize > KEPT_BYTES:
            room = np.empty(shape, dtype, order="F")
            features(self.x[s], room)
            return room
        found = self.rooms.get((s.start, dtype.type))
        if found is None or found.shape != shape:
            found = self.rooms[s.start, dtype.type] = np.empty(shape, dtype, order="F")
        if s.start not in self.kept:
            features(self.x[s], found)
            self.kept.add(s.start)
        return found


class BucketGrams:
    """Ridge regressions that leave out one bucket each."""

    def __init__(self, buckets: list[Moments], team: Team) -> None:
        self.buckets, self.team = buckets, team

    def solve(
        self, n_members: int, penalties: tuple[float, ...], single: bool = False
    ) -> tuple[Array, Array]:
        """C and c, a column for each of R's: penalty by penalty, member by member."""
        width = len(self.buckets[0].r)
        C, c = np.empty((len(self.buckets[0].f), width)), np.empty(width)
        columns = np.arange(width).reshape(len(penalties), n_members, -1)

        def fit(member: int) -> None:
            sums = self._without(member)
            sums.center()
            for penalty, own in zip(penalties, columns[:, member], strict=True):
                C[:, own] = solve(sums.ff, sums.weight * penalty, sums.fr[:, own], single)
                c[own] = (sums.r[own] - np.einsum("i,ij->j", sums.f, C[:, own])) / sums.weight

        self.team(fit, range(n_members))
        return C, c

    def _without(self, member: int) -> Moments:
        """The moments of all buckets but a member's own, if there is more than one."""
        if len(self.buckets) == 1:
            return self.buckets[0]
        return merged(bucket for k, bucket in enumerate(self.buckets) if k != member)
