"""Compiled sums of leads times neurons or bumps, row by row, in pieces that stay in a cache.

Every function adds to ``total`` (n, d) and keeps no array of rows times features. Features are
computed a tile at a time (:mod:`rfrboost._kernels.layout`), by loops that vector instructions can
do: a tile has one row for each column of x, and the exponential function is a polynomial. Shapes
below are those before tiling; leads (d, p) are tiled too, and 0 where a tile is filled up.

*The exponential function.* exp(v) = 2ᵏ·exp(r) with whole k and |r| ≤ ln(2)/2, and exp(r) is a
Taylor polynomial of degree 12, in single precision 7, which leaves a relative error below 2e-16 and
1e-8 before rounding. Adding 1.5·2⁵² rounds to whole numbers and leaves k in the lowest bits; moved
to where floats have their exponent they are 2ᵏ. tanh|v| is (1 − e)/(1 + e) with e = exp(−2|v|), and
wrong by about one or two roundoffs, as NumPy's is.

Sums over features are in double precision. A row is computed by itself, in the same order alone and
among others, so that the other rows of a batch and the number of threads change no bit.
"""

import numpy as np

from rfrboost._kernels.compile import EXACT, SUMS, compiled
from rfrboost._kernels.layout import PIECE

LOG2_E = 1.4426950408889634
# ln(2) as a sum, whose first part times a small whole number is exact.
LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
SHIFTER = 1.5 * 2.0**52
# exp(−708) is just above the smallest normal number.
LEAST = -708.0

ONE = np.float32(1.0)
LOG2_E_SINGLE = np.float32(LOG2_E)
LN2_HIGH_SINGLE, LN2_LOW_SINGLE = np.float32(0.693359375), np.float32(-2.12194440e-4)
SHIFTER_SINGLE = np.float32(1.5 * 2.0**23)
# Twice a pre-activation whose tanh is ±1 in single precision, and in double precision.
SATURATED_SINGLE = np.float32(-30.0)
SATURATED = -60.0
C2, C3, C4, C5, C6, C7 = (np.float32(1.0 / k) for k in (2, 6, 24, 120, 720, 5040))
D2, D3, D4, D5, D6, D7 = (1.0 / k for k in (2, 6, 24, 120, 720, 5040))
D8, D9, D10, D11, D12 = (1.0 / k for k in (40320, 362880, 3628800, 39916800, 479001600))


@compiled(SUMS)
def dot(values, leads):  # type: ignore[no-untyped-def]
    """Σ values_k leads_k in double precision, over as many as there are leads."""
    s = 0.0
    for k in range(len(leads)):
        s += np.float64(values[k]) * leads[k]
    return s


@compiled(EXACT)
def combine(a, B, out):  # type: ignore[no-untyped-def]
    """out = a·B for a (q,) and a tile B (q, PIECE)."""
    q = len(B)
    b0 = B[0]
    for k in range(PIECE):
        out[k] = a[0] * b0[k]
    j = 1
    while j + 3 < q:
        a0, a1, a2, a3 = a[j], a[j + 1], a[j + 2], a[j + 3]
        b0, b1, b2, b3 = B[j], B[j + 1], B[j + 2], B[j + 3]
        for k in range(PIECE):
            out[k] += a0 * b0[k] + a1 * b1[k] + a2 * b2[k] + a3 * b3[k]
        j += 4
    while j < q:
        aj = a[j]
        b0 = B[j]
        for k in range(PIECE):
            out[k] += aj * b0[k]
        j += 1


@compiled(EXACT)
def add_differences(a, B, out):  # type: ignore[no-untyped-def]
    """out += Σ_j |a_j − b_j| for a (q,) and a tile B (q, PIECE)."""
    q = len(a)
    j = 0
    while j + 3 < q:
        a0, a1, a2, a3 = a[j], a[j + 1], a[j + 2], a[j + 3]
        b0, b1, b2, b3 = B[j], B[j + 1], B[j + 2], B[j + 3]
        for k in range(PIECE):
            out[k] += (abs(a0 - b0[k]) + abs(a1 - b1[k])) + (abs(a2 - b2[k]) + abs(a3 - b3[k]))
        j += 4
    while j < q:
        aj = a[j]
        b0 = B[j]
        for k in range(PIECE):
            out[k] += abs(aj - b0[k])
        j += 1


@compiled(EXACT)
def exp_negative(v, power, bits):  # type: ignore[no-untyped-def]
    """v = exp(−v) in double precision; ``bits`` are those of the float64 array ``power``."""
    for k in range(PIECE):
        w = -v[k]
        if w < LEAST:
            w = LEAST
        t = w * LOG2_E + SHIFTER
        whole = t - SHIFTER
        r = (w - whole * LN2_HIGH) - whole * LN2_LOW
        p = D11 + r * D12
        p = D8 + r * (D9 + r * (D10 + r * p))
        p = D4 + r * (D5 + r * (D6 + r * (D7 + r * p)))
        v[k] = 1.0 + r * (1.0 + r * (D2 + r * (D3 + r * p)))
        power[k] = t
    for k in range(PIECE):
        bits[k] = (bits[k] + 1023) << 52
    for k in range(PIECE):
        v[k] *= power[k]


@compiled(EXACT)
def tanh_single(z, e, power, bits):  # type: ignore[no-untyped-def]
    """z = tanh(z) in single precision; ``bits`` are those of the float32 array ``power``."""
    for k in range(PIECE):
        w = np.float32(-2.0) * abs(z[k])
        if w < SATURATED_SINGLE:
            w = SATURATED_SINGLE
        t = w * LOG2_E_SINGLE + SHIFTER_SINGLE
        whole = t - SHIFTER_SINGLE
        r = (w - whole * LN2_HIGH_SINGLE) - whole * LN2_LOW_SINGLE
        p = C4 + r * (C5 + r * (C6 + r * C7))
        e[k] = ONE + r * (ONE + r * (C2 + r * (C3 + r * p)))
        power[k] = t
    for k in range(PIECE):
        bits[k] = (bits[k] + np.int32(127)) << np.int32(23)
    for k in range(PIECE):
        small = e[k] * power[k]
        size = (ONE - small) / (ONE + small)
        z[k] = -size if z[k] < np.float32(0.0) else size


@compiled(EXACT)
def tanh_double(z, e, power, bits):  # type: ignore[no-untyped-def]
    """z = tanh(z) in double precision."""
    for k in range(PIECE):
        w = 2.0 * abs(z[k])
        e[k] = -SATURATED if w > -SATURATED else w
    exp_negative(e, power, bits)
    for k in range(PIECE):
        size = (1.0 - e[k]) / (1.0 + e[k])
        z[k] = -size if z[k] < 0.0 else size


@compiled(EXACT)
def add_single_neurons(x, W, leads, total):  # type: ignore[no-untyped-def]
    """total += tanh(x·W)·leadsᵀ; x (n, D + 1) and W (D + 1, p) in single precision."""
    z = np.empty(PIECE, np.float32)
    e = np.empty(PIECE, np.float32)
    power = np.empty(PIECE, np.float32)
    bits = power.view(np.int32)
    for t in range(len(leads)):
        for i in range(len(x)):
            combine(x[i], W[t], z)
            tanh_single(z, e, power, bits)
            for j in range(leads.shape[1]):
                total[i, j] += dot(z, leads[t, j])


@compiled(EXACT)
def add_double_neurons(x, W, leads, total):  # type: ignore[no-untyped-def]
    """As :func:`add_single_neurons`, in double precision."""
    z = np.empty(PIECE)
    e = np.empty(PIECE)
    power = np.empty(PIECE)
    bits = power.view(np.int64)
    for t in range(len(leads)):
        for i in range(len(x)):
            combine(x[i], W[t], z)
            tanh_double(z, e, power, bits)
            for j in range(leads.shape[1]):
                total[i, j] += dot(z, leads[t, j])


@compiled(EXACT)
def coordinate(value, farthest, reach):  # type: ignore[no-untyped-def]
    """A coordinate in units of the reach, limited and rounded to single precision before."""
    if value > farthest:
        value = farthest
    if value < -farthest:
        value = -farthest
    return np.float64(np.float32(value)) / reach


@compiled(EXACT)
def places(X, M, unit, farthest, reach):  # type: ignore[no-untyped-def]
    """Rows (a, ‖a‖², 1) of coordinates a = X·M/unit; M (D, q), or (1, D) for a diagonal."""
    D = X.shape[1]
    diagonal = len(M) == 1 and D > 1
    q = M.shape[1]
    A = np.empty((len(X), q + 2))
    for i in range(len(X)):
        norm = 0.0
        for k in range(q):
            s = 0.0
            if diagonal:
                s = X[i, k] * M[0, k]
            else:
                for j in range(D):
                    s += X[i, j] * M[j, k]
            A[i, k] = coordinate(s / unit, farthest, reach)
            norm += A[i, k] * A[i, k]
        A[i, q] = norm
        A[i, q + 1] = 1.0
    return A


@compiled(EXACT)
def add_euclidean(X, M, unit, farthest, reach, rounding, C, leads, total):  # type: ignore[no-untyped-def]
    """total += exp(−‖a − c‖)·leads for Euclidean distances.

    C (q + 2, m) has columns (−2c, 1, ‖c‖²), X is (n, D), M as in :func:`places`. Squares that are
    no larger than ``rounding`` times the squared norms are 0.
    """
    A = places(X, M, unit, farthest, reach)
    q = M.shape[1]
    F = np.empty(PIECE)
    power = np.empty(PIECE)
    bits = power.view(np.int64)
    for t in range(len(leads)):
        norms = C[t, q + 1]
        for i in range(len(A)):
            combine(A[i], C[t], F)
            norm = A[i, q]
            for k in range(PIECE):
                small = rounding * (norm + norms[k])
                F[k] = np.sqrt(0.0 if F[k] <= small else F[k])
            exp_negative(F, power, bits)
            for j in range(leads.shape[1]):
                total[i, j] += dot(F, leads[t, j])


@compiled(EXACT)
def add_absolute(X, two, roots, others, scales, farthest, reach, C2, C, leads, total):  # type: ignore[no-untyped-def]
    """total += exp(−Σ|a_j − c_j|)·leads for absolute distances.

    The columns ``two`` of X (n, D), times ``roots``, count as squares: C2 (two + 2, m) has columns
    (−2c, 1, ‖c‖²). Those of ``others``, times ``scales``, are compared with C (others, m).
    """
    n = len(X)
    q = len(two)
    A2 = places(X[:, two], roots.reshape(1, q), 1.0, farthest, np.sqrt(reach))
    A = np.empty((n, len(others)))
    for i in range(n):
        for j in range(len(others)):
            A[i, j] = coordinate(X[i, others[j]] * scales[j], farthest, reach)
    F = np.empty(PIECE)
    power = np.empty(PIECE)
    bits = power.view(np.int64)
    for t in range(len(leads)):
        for i in range(n):
            if q:
                combine(A2[i], C2[t], F)
            else:
                for k in range(PIECE):
                    F[k] = 0.0
            add_differences(A[i], C[t], F)
            exp_negative(F, power, bits)
            for j in range(leads.shape[1]):
                total[i, j] += dot(F, leads[t, j])
