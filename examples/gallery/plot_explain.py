"""
What a model uses, and whether to believe it
============================================

Five questions about a fitted model, each answered by one call of :mod:`rfrboost.inspection` or of
scikit-learn.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes, make_classification, make_friedman1
from sklearn.inspection import PartialDependenceDisplay

from rfrboost import RFRBoostClassifier, RFRBoostRegressor, inspection

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RFRBoostRegressor(random_state=0).fit(X, y)

# %%
# Which columns does it use?

inspection.plot_importances(model)
plt.show()

# %%
# How does the prediction depend on the two most important ones?

top = list(inspection.importances(model))[:2]
fig, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
PartialDependenceDisplay.from_estimator(model, X, top, grid_resolution=30, ax=ax)
plt.show()

# %%
# How far off is it? If no rows are given, residuals are the out-of-fold residuals of the fit.

inspection.plot_residuals(model, y=y)
plt.show()

# %%
# How did the fit proceed? The held-out loss after every layer, by family of members. (The diabetes
# data are nearly linear, and early stopping ends after a layer or two; this problem is not.)

X, y = make_friedman1(600, noise=1.0, random_state=0)
inspection.plot_learning_curve(RFRBoostRegressor(random_state=0).fit(X, y))
plt.show()

# %%
# Are the probabilities of a classifier calibrated?

X, y = make_classification(1000, n_informative=6, class_sep=0.6, flip_y=0.1, random_state=0)
classifier = RFRBoostClassifier(random_state=0).fit(X, y)
inspection.plot_calibration(classifier, y=y)
plt.show()
