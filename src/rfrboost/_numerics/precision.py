"""When a layer's features may be computed in single precision, which is twice as fast.

*In a fit.* F are the random features of all rows. A Gram matrix G = FᵀF multiplied in float32
carries an error E. Rounding errors mostly average out: measured on tanh features, ‖E‖₂ is below
u·tr(G) with u = 2⁻²⁴. (Features that are nearly equal and saturated reach some tens of that, but
then E lies along G's own largest eigenvector, where it does not matter.) The ridge step solves with
G + nλI, where n is Σw, so its solution moves by about ‖E‖/(nλ) relative to its own size. With p
features |f| ≤ b the trace is at most n·p·b², and

    λ ≥ SAFETY · u · p · b²

keeps that movement small: in the tests it is within a thousandth of the standard deviation of the
fit's predictions, and below what another seed changes. Layers for which this does not hold are
computed in float64 (:func:`gram_dtype`).

*In a prediction.* If features err independently by multiples of u, the prediction errs by about u
times the norm of (coefficient × error); :func:`predicting_dtypes` compares that, and the error of
the summation, with LARGEST_NOISE. Ensembles decide neuron by neuron
(:func:`rfrboost._model.prediction.in_single`).
"""

import numpy as np

# The largest relative rounding error of float32, u above.
UNIT_ROUNDOFF = 2.0**-24

# A factor beyond the measured bound, for features that round worse than those measured.
SAFETY = 16.0

# The largest change of a prediction that rounding of features may cause, in the units of the fit,
# in which targets are of size one.
LARGEST_NOISE = 1.5e-6

# Sums over hundreds of features in single precision are this many times less accurate than the
# features themselves.
SUMMATION_FACTOR = 16.0

# The share of the noise that sums may cause. Small, because BLAS sums one row in another order than
# many: this is what a prediction changes with the size of its batch. Features do not change.
SHARE_OF_SUMS = 1 / 64

# Inputs or weights from this size on make float32 pre-activations inaccurate.
LARGEST_FACTOR = 1e6


def gram_dtype(l2: float, n_features: int, bound: float) -> type[np.floating]:
    """The dtype in which a layer's features and their Gram matrix are computed.

    ``l2`` is λ, ``bound`` the largest absolute value of a feature (infinite if it is unbounded).
    """
    safe = np.isfinite(bound) and l2 >= SAFETY * UNIT_ROUNDOFF * n_features * bound**2
    return np.float32 if safe else np.float64


def predicting_dtypes(
    fitted: np.dtype, gain: float, wrong: float, noise: float = LARGEST_NOISE
) -> tuple[np.dtype, np.dtype]:
    """The dtypes in which a layer's features are computed in prediction, and in which they are
    summed.

    ``fitted`` is the dtype that the layer was fitted in. ``gain`` is the norm of the coefficients
    that lead from its features to the prediction; ``wrong`` is the same norm with each coefficient
    multiplied by its feature's error, measured in multiples of u. ``noise`` is the largest error
    allowed.
    """
    double = np.dtype(np.float64)
    features = double if UNIT_ROUNDOFF * wrong > noise else fitted
    return (
        features,
        double if SUMMATION_FACTOR * UNIT_ROUNDOFF * gain > SHARE_OF_SUMS * noise else features,
    )
