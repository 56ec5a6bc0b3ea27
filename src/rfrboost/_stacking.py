"""How families of members are put together: non-negative weights, from held-out predictions."""

import numpy as np
from scipy.optimize import minimize

from rfrboost._losses import Loss
from rfrboost._typing import Array

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
