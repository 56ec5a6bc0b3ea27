"""
On Dask: rows that workers hold
===============================

A cluster of Dask workers fits the model that one process would. Here the cluster is two threads of
this process, so that the example runs anywhere; with the address of a real one in ``Client`` the
rest stays as it is.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client

from rfrboost import RFRBoostClassifier
from rfrboost.dask import DaskRFRBoostClassifier

client = Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0")

# %%
# Points on three arms of a spiral, made on the workers, partition by partition. The client never
# sees them: X and y are lazy Dask arrays.


def points(seed: int, n: int) -> np.ndarray:
    """Two coordinates and the arm."""
    rng = np.random.default_rng(seed)
    arm, along = rng.integers(3, size=n), rng.uniform(0.2, 1.0, n)
    angle = 2 * np.pi * (arm / 3 + along) + rng.normal(0, 0.25, n)
    return np.column_stack([along * np.cos(angle), along * np.sin(angle), arm])


sizes = (4000, 100, 0, 2500, 3400)
blocks = [
    da.map_blocks(points, seed, n, chunks=((n,), (3,)), dtype=float) for seed, n in enumerate(sizes)
]
data = da.concatenate(blocks)
X, y = data[:, :2] * 3, data[:, 2].astype(int)
print(X)

# %%
# The third partition is empty and the second is small, which does not matter. ``fit`` runs on the
# workers; ``predict_proba`` returns a lazy array again.

model = DaskRFRBoostClassifier(n_layers=3, n_features=(64, 64), random_state=0).fit(X, y)
probability = model.predict_proba(X)
print(probability)
print(f"accuracy {float((model.predict(X) == y).mean()):.3f}")

# %%
# The result is an ordinary model, the one that the same rows in memory give.

ordinary = model.to_local()
rows, labels = da.compute(X, y)
in_memory = RFRBoostClassifier(n_layers=3, n_features=(64, 64), random_state=0).fit(rows, labels)
difference = np.abs(ordinary.predict_proba(rows) - in_memory.predict_proba(rows)).max()
print(type(ordinary).__name__, f"differs from the one fitted in memory by {difference:.1g}")

# %%
# A grid is an array like any other: its predictions are computed by the workers too.

axis = np.linspace(-3.5, 3.5, 120)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
sure = model.predict_proba(da.from_array(grid, chunks=(3600, 2))).compute()

fig, axes = plt.subplots(figsize=(5, 4.4), layout="constrained")
colours = np.array([[0.0, 0.45, 0.7], [0.84, 0.37, 0.0], [0.0, 0.62, 0.45]])
axes.imshow(
    (sure @ colours).reshape(120, 120, 3), origin="lower", extent=(-3.5, 3.5) * 2, alpha=0.6
)
axes.scatter(*rows[::10].T, c=colours[labels[::10]], s=4)
axes.set_title("Three arms, as the workers see them")
plt.show()

# %%
client.close()
