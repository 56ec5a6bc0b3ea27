"""
Regression with intervals
=========================

How far off may a prediction be? An automatic fit has out-of-fold residuals, and makes prediction
intervals from them; where the noise changes from row to row, quantiles follow it.
"""

import matplotlib.pyplot as plt
import numpy as np

from rfrboost import RFRBoostRegressor

# %%
# A curve, and noise that grows from left to right.


def truth(x):
    """Mean and median of the target."""
    return np.sin(2 * x) + x / 2


def draw(n, rng):
    """Rows and targets."""
    x = rng.uniform(-3, 3, n)
    return x[:, None], truth(x) + rng.normal(0, 0.1 + 0.12 * (x + 3))


rng = np.random.default_rng(0)
X, y = draw(600, rng)
X_test, y_test = draw(20_000, rng)

# %%
# One automatic fit of the mean, whose intervals come from out-of-fold residuals, and one of three
# quantiles at once. Quantiles of a single noisy column overfit easily: with default settings they
# follow the noise. Few neurons (``n_features``), gentle slopes (``feature_scale``) and pairs of
# rows drawn uniformly (``pair_sampling``) keep the curves smooth.

model = RFRBoostRegressor(random_state=0).fit(X, y)
quantiles = RFRBoostRegressor(
    loss="quantile",
    quantile=[0.05, 0.5, 0.95],
    n_features=32,
    feature_scale=0.1,
    pair_sampling="uniform",
    random_state=0,
).fit(X, y)


def bands(X):
    """Lower and upper ends by both ways."""
    by_residuals, by_level = model.predict_interval(X, coverage=0.9), quantiles.predict(X)
    return {"intervals": by_residuals, "quantiles": by_level[:, [0, 2]]}


for name, ends in bands(X_test).items():
    inside = (ends[:, 0] <= y_test) & (y_test <= ends[:, 1])
    left, right = inside[X_test[:, 0] < -1].mean(), inside[X_test[:, 0] > 1].mean()
    print(f"{name}: cover {inside.mean():.3f} in all, {left:.3f} left, {right:.3f} right")

# %%
# Both cover about nine tenths of new rows. Intervals do so on average over rows: they are too wide
# where there is little noise and too narrow where there is much. Quantiles follow the noise, but
# their coverage is not guaranteed.

grid = np.linspace(-3, 3, 400)[:, None]
fig, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", sharey=True)
centres = {"intervals": model.predict(grid), "quantiles": quantiles.predict(grid)[:, 1]}
labels = {"intervals": ("mean", "90 % interval"), "quantiles": ("median", "5 % to 95 % quantile")}
for ax, (name, ends) in zip(axes, bands(grid).items(), strict=True):
    centre, band = labels[name]
    ax.plot(X[:, 0], y, ".", color="0.65", markersize=3, label="training rows")
    ax.fill_between(grid[:, 0], *ends.T, color="#56B4E9", alpha=0.35, linewidth=0, label=band)
    ax.plot(grid[:, 0], centres[name], color="#0072B2", label=centre)
    ax.plot(grid[:, 0], truth(grid[:, 0]), "--", color="0.15", linewidth=1, label="truth")
    ax.set_title(name)
    ax.set_xlabel("x")
    ax.legend(frameon=False, loc="upper left")
axes[0].set_ylabel("y")
axes[0].set_ylim(-2.6, 4.2)
plt.show()

# %%
# ``return_std`` is one number per row: the spread of out-of-fold residuals together with the
# members' disagreement. Here it is nearly all noise. Beyond the training rows, which end at 3,
# members may agree and be wrong together: none of these methods warns of rows unlike the training
# rows.

where = np.array([[0.0], [3.0], [4.0], [5.0]])
for x, mean, std in zip(where[:, 0], *model.predict(where, return_std=True), strict=True):
    print(f"x = {x:5.2f}: {mean:.2f} ± {std:.2f}")
