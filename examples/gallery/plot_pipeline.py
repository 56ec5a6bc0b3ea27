"""
In a scikit-learn pipeline, tuned with Optuna
=============================================

The automatic model has nothing to tune. A single network (``n_layers`` a number) is smaller and
faster to fit, and its hyper-parameters, those of the paper, need tuning. It is a scikit-learn
estimator like any other, so pipelines, cross-validation and Optuna work on it as usual.
"""

import matplotlib.pyplot as plt
import optuna
from sklearn.datasets import make_friedman1
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rfrboost import RFRBoostRegressor

X, y = make_friedman1(1200, n_features=10, noise=1.0, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

# %%
# A single network takes X as it is, so it stands behind a scaler. Penalties and the scale of
# features are searched on a logarithmic scale.


def network(n_layers=6, feature_scale=0.5, l2_step=1e-2, l2_head=1e-3, metric="identity"):
    """A scaler and a network; what is not said is what the estimator has for a single network."""
    return make_pipeline(
        StandardScaler(),
        RFRBoostRegressor(
            n_layers=n_layers,
            n_features=(64, 64),
            feature_scale=feature_scale,
            l2_step=l2_step,
            l2_head=l2_head,
            metric=metric,
            random_state=0,
        ),
    )


def objective(trial):
    """Mean R² over three folds."""
    candidate = network(
        n_layers=trial.suggest_int("n_layers", 1, 10),
        feature_scale=trial.suggest_float("feature_scale", 0.1, 2.0, log=True),
        l2_step=trial.suggest_float("l2_step", 1e-5, 1e1, log=True),
        l2_head=trial.suggest_float("l2_head", 1e-5, 1e-1, log=True),
        metric=trial.suggest_categorical("metric", ["identity", "agop"]),
    )
    return cross_val_score(candidate, X_train, y_train, cv=3).mean()


optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
study.optimize(objective, n_trials=30)
for name, value in study.best_params.items():
    print(f"{name:13} {value if isinstance(value, str) else format(value, '.3g')}")

# %%
# Five columns of this problem matter and five do not, which is what the learned metric
# (``"agop"``) is for. Beside the tuned network: the same network with its default settings, and the
# automatic model, which has not been tuned.

tuned = network(**study.best_params).fit(X_train, y_train)
as_it_comes = network().fit(X_train, y_train)
automatic = RFRBoostRegressor(random_state=0).fit(X_train, y_train)
scores = {
    "not tuned": as_it_comes.score(X_test, y_test),
    "best of 30 trials": tuned.score(X_test, y_test),
    "automatic": automatic.score(X_test, y_test),
}
for name, score in scores.items():
    print(f"{name:20} test R² {score:.3f}")

# %%

values = [trial.value for trial in study.trials]
best = [max(values[: i + 1]) for i in range(len(values))]
fig, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
ax.plot(range(1, 31), values, "o", color="#56B4E9", label="trial")
ax.step(range(1, 31), best, where="post", color="#0072B2", label="best so far")
ax.axhline(automatic.oof_score_, color="#D55E00", linestyle="--", label="automatic, out of fold")
ax.set_ylim(bottom=sorted(values)[len(values) // 4] - 0.02)
ax.set_xlabel("trial")
ax.set_ylabel("R², held out")
ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
plt.show()
