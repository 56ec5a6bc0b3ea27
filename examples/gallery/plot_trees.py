"""
Where trees are better, and where they are not
==============================================

Boosted trees cut a table at thresholds, one column at a time; random-feature boosting bends smooth
surfaces in any direction. Which is better depends on the problem. Here is one problem of each kind,
and the errors of both models on test rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import r2_score

from rfrboost import RFRBoostRegressor


def smooth(X):
    """A wave across both columns at once."""
    return np.sin(4 * (X[:, 0] + X[:, 1])) + (X[:, 0] - X[:, 1]) ** 2


def sharp(X):
    """Rectangles with edges along the columns."""
    cells = np.floor(X * 2.5 + 5).astype(int)
    return np.array([[3, 0, 1], [1, 4, 2], [0, 2, 5]])[cells[:, 0] % 3, cells[:, 1] % 3] / 2.0


# %%
# Six columns of which two matter, 800 training rows, a little noise, both models with their default
# settings.

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (4000, 6))
noise = 0.2 * rng.standard_normal(len(X))
train, test = slice(0, 800), slice(800, None)
side = np.linspace(-1, 1, 81)
grid = np.zeros((side.size**2, 6))
grid[:, :2] = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)

pictures = []
for truth in (smooth, sharp):
    y = truth(X) + noise
    row = [("truth", truth(grid))]
    for name, model in {
        "RFRBoost": RFRBoostRegressor(random_state=0),
        "boosted trees": HistGradientBoostingRegressor(random_state=0),
    }.items():
        model.fit(X[train], y[train])
        score = r2_score(truth(X[test]), model.predict(X[test]))
        row.append((f"{name}, R² {score:.3f}", model.predict(grid)))
        print(f"{truth.__name__:7} {name:14} R² {score:.3f}")
    pictures.append(row)

# %%
# The two columns that matter, the other four at zero.

fig, axes = plt.subplots(2, 3, figsize=(9, 6), layout="constrained", sharex=True, sharey=True)
for name, row, line in zip(("smooth", "sharp"), pictures, axes, strict=True):
    low, high = row[0][1].min(), row[0][1].max()
    for (title, values), ax in zip(row, line, strict=True):
        ax.imshow(
            values.reshape(side.size, side.size),
            extent=(-1, 1, -1, 1),
            origin="lower",
            cmap="cividis",
            vmin=low,
            vmax=high,
        )
        ax.set_title(title)
    line[0].set_ylabel(f"{name}\nsecond column")
for ax in axes[-1]:
    ax.set_xlabel("first column")
plt.show()

# %%
# For real tables, which are mixtures of both, see :doc:`when to use it </when>`.
