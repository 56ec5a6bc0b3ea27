"""
Categories, dates and missing values
====================================

Real tables have text, dates and missing values. The automatic model takes them as they are: the
encoding of each column is fitted with the model, saved with it, and applied again at prediction.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from rfrboost import RFRBoostClassifier

# %%
# A made-up shop: will a customer return what was bought? That depends on the size and the fabric
# together, on the season, on the customer's town (many of them, each with its own rate), and on the
# price; customers who did not tell their age return more often.

rng = np.random.default_rng(0)
n = 2500
town_effect = rng.normal(0, 1.0, 60)
town = rng.integers(60, size=n)
ordered = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(730, size=n), unit="D")
table = pd.DataFrame(
    {
        "fabric": rng.choice(["linen", "wool", "cotton"], n),
        "size": rng.choice(["S", "M", "L"], n),
        "town": [f"town {k:02}" for k in town],
        "ordered": ordered,
        "price": np.exp(rng.normal(3.5, 0.8, n)),
        "age": rng.normal(45, 15, n).round(),
        "items": rng.poisson(2, n) + 1,
    }
)
table.loc[rng.random(n) < 0.25, "age"] = np.nan
table.loc[rng.random(n) < 0.05, "fabric"] = None

logit = (
    town_effect[town]
    + 1.5 * ((table["fabric"] == "linen") & (table["size"] == "L"))
    - 1.5 * ((table["fabric"] == "wool") & (table["size"] == "S"))
    + np.cos(2 * np.pi * ordered.day_of_year / 365)
    + 0.8 * np.log(table["price"] / 33)
    + 1.2 * table["age"].isna()
    - 0.8
)
returned = np.where(rng.random(n) < 1 / (1 + np.exp(-logit)), "returned", "kept")
table.head()

# %%
# Fitting takes the frame and the labels, whatever their type. ``oof_score_`` is the
# out-of-fold accuracy: every training row is predicted by members that were fitted without it.

train, test, y_train, y_test = train_test_split(table, returned, random_state=0)
model = RFRBoostClassifier(random_state=0).fit(train, y_train)
print(f"out-of-fold accuracy {model.oof_score_:.3f}, test accuracy {model.score(test, y_test):.3f}")
print(f"always the more frequent label: {np.mean(y_test == 'kept'):.3f}")

# %%
# Importances are those of the table's own columns, whatever their encoding. Next to them: among
# test rows with about the same predicted probability, how many were returned? On the diagonal,
# probabilities are calibrated.

shares = pd.Series(model.feature_importances_, model.feature_names_in_).sort_values()
probability = model.predict_proba(test)[:, list(model.classes_).index("returned")]
bins = pd.qcut(probability, 8, labels=False)
happened = pd.Series(y_test == "returned").groupby(bins).mean()
expected = pd.Series(probability).groupby(bins).mean()

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.barh(shares.index, shares, color="#0072B2")
left.set_xlabel("share of the change in predictions")
right.plot([0, 1], [0, 1], color="0.7", linestyle="--", label="what it should be")
right.plot(expected, happened, "o-", color="#D55E00", label="eighths of the test rows")
right.set_xlabel("predicted probability of a return")
right.set_ylabel("share returned")
right.legend(frameon=False)
plt.show()

# %%
# At prediction an unseen town gets the average effect, and a column that is missing or out of order
# raises an error that says so.

new = test.iloc[:3].assign(town="a new town")
print(model.predict(new))
try:
    model.predict(test.drop(columns="fabric"))
except ValueError as error:
    print(error)
