"""The end-to-end MLP ResNet: laws, and published folds trained again."""

import json
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")

import torch

from experiments.data import protocols, tables
from experiments.data.published import read_published
from experiments.models import resnet
from experiments.models.mlp import MLPResNetClassifier, MLPResNetRegressor
from experiments.models.scoring import METRICS
from experiments.requests import UsageError

DATA = tables.REPOSITORY.parent / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the tables are not on this machine")
SMALL = {"hidden_dim": 8, "bottleneck_dim": 16, "n_blocks": 2, "n_epochs": 3, "batch_size": 32}
HYPERPARAMETERS = [
    "hidden_dim",
    "bottleneck_dim",
    "n_blocks",
    "lr",
    "end_lr_factor",
    "n_epochs",
    "weight_decay",
    "batch_size",
]


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    return X, np.sin(X[:, 0]) + X[:, 1]


def test_same_seed_same_network_and_another_seed_another(rows):
    X, y = rows
    first, again, other = (
        MLPResNetRegressor(**SMALL, random_state=seed).fit(X, y).predict(X) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_the_global_random_state_is_left_alone(rows):
    before = torch.get_rng_state()
    MLPResNetRegressor(**SMALL, random_state=0).fit(*rows)
    assert torch.equal(before, torch.get_rng_state())


def test_the_head_is_linear_in_the_last_representation(rows):
    X, y = rows
    model = MLPResNetRegressor(**SMALL, random_state=0).fit(X, y)
    stages = model.representations(X)
    assert [stage.shape for stage in stages] == [(200, 8)] * 3, "before and after two blocks"
    head = model.network_.head
    raw = stages[-1] @ head.weight.detach().numpy().T + head.bias.detach().numpy()
    np.testing.assert_allclose(raw[:, 0], model.predict(X), atol=1e-5)


def test_without_a_hidden_dim_the_blocks_act_on_the_inputs(rows):
    X, y = rows
    model = MLPResNetRegressor(**SMALL | {"hidden_dim": None}, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.representations(X)[0], X.astype(np.float32))


def test_a_block_is_dense_batchnorm_relu_dense_batchnorm():
    shape = resnet.Shape(3, 8, 16, 1, 1, "relu")
    names = [type(layer).__name__ for layer in resnet.ResNet(shape).blocks[0]]
    assert names == ["Linear", "BatchNorm1d", "ReLU", "Linear", "BatchNorm1d"]


def test_rows_are_predicted_one_by_one(rows):
    """Batch norm must use the training statistics: a row's neighbours do not matter."""
    X, y = rows
    model = MLPResNetRegressor(**SMALL, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X[:1]), model.predict(X)[:1], atol=1e-6)


def test_the_learning_rate_ends_at_its_share(rows, monkeypatch):
    seen = []
    adam = torch.optim.Adam

    class Watched(adam):
        def step(self, *args, **kwargs):
            seen.append(self.param_groups[0]["lr"])
            return super().step(*args, **kwargs)

    monkeypatch.setattr(torch.optim, "Adam", Watched)
    settings = SMALL | {"n_epochs": 4, "batch_size": 200, "lr": 0.1, "end_lr_factor": 0.5}
    MLPResNetRegressor(**settings, random_state=0).fit(*rows)
    expected = 0.05 + 0.05 * (1 + np.cos(np.pi * np.arange(4) / 4)) / 2
    np.testing.assert_allclose(seen, expected)


def test_batches_are_full_and_a_small_table_is_one_batch():
    batches = resnet.epoch_batches(10, 4)
    assert [len(batch) for batch in batches] == [4, 4]
    assert len(set(torch.cat(batches).tolist())) == 8
    assert [len(batch) for batch in resnet.epoch_batches(3, 128)] == [3]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_sum_to_one_and_labels_keep_their_names(rows, n_classes):
    X, y = rows
    names = np.array(["low", "mid", "top"])[:n_classes]
    labels = names[np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))]
    model = MLPResNetClassifier(**SMALL | {"n_epochs": 30}, lr=0.01, random_state=0).fit(X, labels)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert set(model.predict(X)) <= set(names)
    assert model.score(X, labels) > 0.85


def test_a_diverged_training_is_an_error_and_no_score(rows):
    X, y = rows
    with pytest.raises(FloatingPointError, match="diverged"):
        MLPResNetRegressor(**SMALL, random_state=0).fit(X, np.where(y > 0, 1e38, -1e38))


def test_clones_and_pickles(rows):
    X, y = rows
    model = MLPResNetRegressor(**SMALL, random_state=0)
    assert clone(model).get_params() == model.get_params()
    fitted = model.fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))


def test_without_torch_the_extra_is_named(rows, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "experiments.models.resnet")
    monkeypatch.setattr("experiments.requests._is_installed", lambda library: False)
    with pytest.raises(UsageError, match=r"torch"):
        MLPResNetRegressor(**SMALL).fit(*rows)


def replayed(dataset: int, folds: tuple[int, ...], own_statistics: bool) -> pd.DataFrame:
    """Ours and published on some folds, with the test rows' own batch statistics or without."""
    table = tables.known_table(dataset)
    runs = read_published(None, DATA)
    runs = runs[(runs["dataset"] == dataset) & (runs["model"] == "End2End_cpu")]
    kind = MLPResNetRegressor if table.task == "regression" else MLPResNetClassifier
    rows = protocols.load_rows("paper", dataset, DATA)
    scores = []
    for k in folds:
        fold = rows.fold(k)
        stored = json.loads(runs[runs["fold"] == k]["hyperparameters"].item())
        model = kind(**{name: stored[name] for name in HYPERPARAMETERS}, random_state=k)
        model.fit(fold.X_train, fold.y_train)
        model.network_.train(own_statistics)
        score = METRICS[table.task](fold.y_test, model.predict(fold.X_test))
        scores.append((score, runs[runs["fold"] == k]["test_score"].item()))
    frame = pd.DataFrame(scores, columns=["ours", "published"])
    return frame.assign(std=runs["test_score"].std(ddof=1))


@needs_data
@pytest.mark.parametrize(("dataset", "folds"), [(44960, (2, 3)), (11, (0, 2, 3))])
def test_published_folds_come_out_again(dataset, folds):
    """The published scores normalise the test rows by their own statistics; so do we here."""
    rows = replayed(dataset, folds, own_statistics=True)
    assert abs(rows["ours"] - rows["published"]).mean() < 2 * rows["std"].iloc[0]


@needs_data
def test_training_statistics_do_no_worse_than_published():
    rows = replayed(11, (0, 2, 3), own_statistics=False)
    assert rows["ours"].mean() > rows["published"].mean() - rows["std"].iloc[0]
