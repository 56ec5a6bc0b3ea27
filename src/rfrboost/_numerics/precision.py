"""When single precision is accurate enough for a layer's Gram matrix, and twice as fast.

A Gram matrix G = FᵀF multiplied in float32 carries an error E. Rounding errors mostly average
out: measured on tanh features ‖E‖₂ is below u·tr(G), u = 2⁻²⁴ (features that are nearly equal and
saturated reach some tens of that, but then E lies along G's own largest eigenvector, where it
does not matter). The ridge step solves with G + nλI, so that its solution moves by about
‖E‖/(nλ) relative to its own size. With |f| ≤ b the trace is at most n·p·b², and

    λ ≥ SAFETY · u · p · b²

keeps that movement small: within a thousandth of the fit's own spread in the tests, and below what
another seed changes. Anything else is done in float64.
"""

import numpy as np

UNIT_ROUNDOFF = 2.0**-24


SAFETY = 16.0


# What rounding of a layer's features in single precision may change in a prediction, in the units
# of the fit, in which targets are of size one.
LARGEST_NOISE = 1.5e-6


# By how much sums over hundreds of features in single precision are worse than the features.
SUMS = 16.0


# Inputs or weights beyond this make float32 pre-activations inaccurate.
LARGEST = 1e6


def gram_dtype(l2: float, n_features: int, bound: float) -> type[np.floating]:
    """The dtype in which a layer's features and their Gram matrix are computed."""
    safe = np.isfinite(bound) and l2 >= SAFETY * UNIT_ROUNDOFF * n_features * bound**2
    return np.float32 if safe else np.float64


def bagged_dtype(l2: float, n_features: int, bound: float) -> type[np.floating]:
    """The same where every layer is judged by rows that it has not seen.

    There SAFETY may be 1: what one layer gets slightly wrong is in the residuals of the next.
    """
    safe = np.isfinite(bound) and l2 >= UNIT_ROUNDOFF * n_features * bound**2
    return np.float32 if safe else np.float64


def predicting_dtypes(
    fitted: np.dtype, gain: float, wrong: float, noise: float = LARGEST_NOISE
) -> tuple[np.dtype, np.dtype]:
    """In what a layer that was fitted in one dtype is predicted: its features, and sums of them.

    ``gain`` is the norm of the coefficients that lead from its features to the prediction,
    ``wrong`` the same with each coefficient times what its feature is wrong by, in units of u. Of
    features that are wrong at random the prediction is wrong by about u times that.
    """
    double = np.dtype(np.float64)
    features = double if UNIT_ROUNDOFF * wrong > noise else fitted
    return features, double if SUMS * UNIT_ROUNDOFF * gain > noise else features


def representable(weights: np.ndarray, largest_input: float) -> bool:
    """Whether float32 pre-activations keep enough digits for these weights and inputs."""
    return bool(np.abs(weights).max(initial=0.0) < LARGEST and largest_input < LARGEST)
