"""
Nine rings pulled apart layer by layer
======================================

Nine concentric rings carry three classes in turn. No straight line tells them apart, so a linear
model on the two coordinates is little better than guessing. A residual network with two coordinates
in every layer has to move the *points* until a linear head can do it, and because the
representation stays two-dimensional, every layer can be drawn.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from rfrboost import RFRBoostClassifier

rng = np.random.default_rng(0)
turns = np.linspace(0, 9, 6000, endpoint=False)
ring = turns.astype(int)
X = (ring + 1)[:, None] * np.column_stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)])
X = StandardScaler().fit_transform(X + rng.uniform(0, 0.4, X.shape))
y = ring % 3
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
linear = LogisticRegression().fit(X_train, y_train)
print(f"logistic regression: accuracy {linear.score(X_test, y_test):.3f}")

# %%
# With ``n_layers`` a number the model is the paper's single network. ``warm_start`` lets ``fit``
# add layers to a fitted model, so that ``transform`` gives the representation Φ after each of them.
# The rings are thin and there is no noise, hence steep features, little regularisation and a
# learning rate of one. A layer has few features, so that several layers are needed.

model = RFRBoostClassifier(
    n_layers=0,
    n_features=(128, 128),
    warm_start=True,
    normalize=True,
    learning_rate=1.0,
    feature_scale=1.0,
    l2_step=1e-6,
    random_state=0,
)
layers = []
for n_layers in range(4):
    model.set_params(n_layers=n_layers).fit(X_train, y_train)
    layers.append((model.transform(X_test), model.score(X_test, y_test)))
    print(f"{n_layers} layers: accuracy {layers[-1][1]:.3f}")

# %%
# Each dot is a test point, coloured by its class. After three layers the classes lie in three
# places.

colours = np.array(["#0072B2", "#E69F00", "#CC79A7"])
fig, axes = plt.subplots(2, 2, figsize=(7.6, 6), layout="constrained")
for t, (ax, (phi, accuracy)) in enumerate(zip(axes.flat, layers, strict=True)):
    ax.scatter(phi[:, 0], phi[:, 1], s=3, c=colours[y_test], linewidths=0)
    ax.set_title(f"$\\Phi_{t}$, accuracy {accuracy:.3f}")
    ax.set_xticks([])
    ax.set_yticks([])
plt.show()

# %%
# ``staged_predict`` gives the predictions after every layer of one fitted model, without fitting
# again; the last ones are those of ``predict``.

stages = list(model.staged_predict(X_test))
print([f"{np.mean(stage == y_test):.3f}" for stage in stages])
assert (stages[-1] == model.predict(X_test)).all()
