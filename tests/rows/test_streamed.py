"""Streamed chunks have the values and sums of those in memory, whatever the disk has room for."""

import numpy as np
import pytest
from block_rows import cut
from numpy.random import default_rng

from rfrboost._numerics.sizes import Sizes
from rfrboost._rows.chunks import InMemory, Sums, gather
from rfrboost._rows.spill import Spill
from rfrboost._rows.streamed import Streamed

SMALL = Sizes(chunk_rows=16)


class Source:
    """Blocks of uneven sizes, counted each time that they are read."""

    def __init__(self, X, Y, w):
        self.blocks = [(*block, None)[:3] for block in cut(X, Y, w, [3, 0, 40])]
        self.passes = 0

    def __iter__(self):
        self.passes += 1
        yield from self.blocks


class TimedSpill(Spill):
    """Room on a disk that seems to take this long."""

    seconds_of_any = 0.0

    def time_for(self, size):
        return self.seconds_of_any


def shifted(chunk, by):
    return chunk.x + by


def made_of_x(chunk):
    return chunk.x[:, :1] * 2


def grown(chunk, by):
    return chunk.phi + by


def total_phi(chunk):
    return Sums(chunk.phi.sum(axis=0), chunk.x.sum(axis=0))


@pytest.mark.parametrize("seconds", [0.0, np.inf])
@pytest.mark.parametrize("budget", [0.0, 900.0, 1e9])
@pytest.mark.parametrize("weighted", [False, True])
def test_values_and_sums_are_those_in_memory(weighted, budget, seconds):
    rng = default_rng(0)
    X, Y = rng.standard_normal((70, 3)), rng.standard_normal((70, 2))
    w = rng.uniform(0.5, 2, 70) if weighted else None
    source = Source(X, Y, w)
    spill = TimedSpill(None, budget)
    spill.seconds_of_any = seconds
    with spill.open_files:
        streamed = Streamed(source, spill, SMALL)
        found = []
        for chunks in (streamed, InMemory(X, Y, w, sizes=SMALL)):
            chunks.set("x", shifted, 1.5)
            chunks.set("phi", made_of_x)
            values = [chunks.facts.x_sum, *chunks.total(total_phi).values]
            chunks.set("phi", grown, 0.25)
            values += chunks.total(total_phi).values
            values += [gather(chunks, name, np.array([69, 2, 2, 33])) for name in ("x", "y", "phi")]
            found.append(values)
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        if budget == 1e9:
            assert source.passes == 1
            # A disk that takes no time is worth using, one that takes for ever is not.
            assert streamed.remembers == (seconds == 0)
        else:
            assert source.passes > 1
            assert spill.left == budget or streamed.remembers


def test_inputs_give_their_room_back():
    X = np.arange(60.0).reshape(20, 3)
    spill = Spill(None, 1e6)
    with spill.open_files:
        streamed = Streamed(Source(X, X[:, :1], None), spill, SMALL)
        assert spill.left == 1e6 - 20 * 4 * 8
        streamed.close_inputs()
        assert spill.left == 1e6


def test_unknown_values_are_unknown_attributes():
    X = np.ones((20, 3))
    spill = Spill(None, 1e6)
    with spill.open_files:
        streamed = Streamed(Source(X, X[:, :1], None), spill, SMALL)
        with pytest.raises(AttributeError, match="raw"):
            streamed.total(lambda chunk: Sums(chunk.raw))
