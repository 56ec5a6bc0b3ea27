"""The fits whose answers are compared: every loss, strategy, route and source of rows.

A case names a table, a model and a way to fit it. Only public names are used, and no combination
of parameters of which one has no effect, so that every case runs on both commits.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.random import default_rng
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler

import rfrboost
from benchmarks.fingerprints.tables import AS_NUMBERS, Table, real_tables, table
from benchmarks.sources import ROOT
from rfrboost import (
    FourierFeatures,
    GaussianFeatures,
    RFNNClassifier,
    RFNNRegressor,
    RFRBoostClassifier,
    RFRBoostRegressor,
    RowBlocks,
    SWIMFeatures,
)

#: where the model files are that version 0.1.0 wrote
FILES = "format-1"
#: columns and layers enough for every code path, and few enough for a fraction of a second
NARROW = (24, 24)
LEVELS = (0.1, 0.5, 0.9)

Fit = Callable[[Any, Table], Any]


def in_memory(model: Any, rows: Table) -> Any:
    """An ordinary fit."""
    return model.fit(rows.X, rows.y)


def weighted(model: Any, rows: Table) -> Any:
    """A fit with weights, of which some are zero."""
    w = default_rng(5).uniform(0.2, 3.0, len(rows.y))
    w[::17] = 0.0
    return model.fit(rows.X, rows.y, sample_weight=w)


def with_validation(model: Any, rows: Table) -> Any:
    """A fit that is stopped by rows of its own."""
    held = np.arange(len(rows.y)) % 4 == 0
    X, y = rows.X[~held], rows.y[~held]
    return model.fit(X, y, X_val=rows.X[held], y_val=rows.y[held])


def warm_started(model: Any, rows: Table) -> Any:
    """Two layers, and then the others added to them."""
    n_layers = model.n_layers
    model.set_params(n_layers=2, warm_start=True).fit(rows.X, rows.y)
    return model.set_params(n_layers=n_layers).fit(rows.X, rows.y)


def in_blocks(model: Any, rows: Table) -> Any:
    """A fit of row blocks whose last one is shorter than the others."""
    return model.fit(RowBlocks.from_arrays(rows.X, rows.y, block_rows=max(1, len(rows.y) // 7)))


def in_weighted_blocks(model: Any, rows: Table) -> Any:
    """A fit of row blocks with weights, and without room for temporary files."""
    w = default_rng(5).uniform(0.2, 3.0, len(rows.y))
    return model.fit(RowBlocks.from_arrays(rows.X, rows.y, w, block_rows=97, disk_budget=0))


def on_dask(model: Any, rows: Table) -> Any:
    """A fit of partitions of uneven size by two workers in this process."""
    import dask.array as da
    from distributed import Client

    from rfrboost.dask import DaskRFRBoostClassifier, DaskRFRBoostRegressor

    regression = isinstance(model, RFRBoostRegressor)
    kind = DaskRFRBoostRegressor if regression else DaskRFRBoostClassifier
    sizes = (17, len(rows.y) // 2, len(rows.y) - len(rows.y) // 2 - 17)
    X = da.from_array(rows.X, chunks=(sizes, (rows.X.shape[1],)))
    y = da.from_array(rows.y, chunks=(sizes,))
    workers = {"n_workers": 2, "threads_per_worker": 1}
    with Client(processes=False, dashboard_address=None, **workers):
        return kind(**model.get_params()).fit(X, y).to_local()


def saved_and_loaded(model: Any, rows: Table) -> Any:
    """What a file of the fitted model gives back."""
    model.fit(rows.X, rows.y)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.rfrboost"
        model.save(path)
        return rfrboost.load(path)


@dataclass(frozen=True)
class Case:
    """A table, a model with its parameters, and the way it is fitted."""

    table: str
    model: Any
    fit: Fit = in_memory

    @property
    def name(self) -> str:
        """The case in one line."""
        model = " ".join(repr(self.model).split()).replace(", random_state=0", "")
        return f"{self.table}: {model.replace('random_state=0', '')} {self.fit.__name__}"

    def answering(self) -> tuple[Any, Any]:
        """The fitted model, and the rows to ask it about."""
        rows = table(self.table)
        return self.fit(clone(self.model), rows), rows.X_new


@dataclass(frozen=True)
class FileCase:
    """A model file that an earlier version wrote."""

    file: Path
    table: str = FILES

    @property
    def name(self) -> str:
        return f"{FILES}: {self.file.name}"

    def answering(self) -> tuple[Any, Any]:
        """The model in the file, and the rows to ask it about."""
        expected = json.loads((self.file.parent / "expected.json").read_text(encoding="utf-8"))
        return rfrboost.load(self.file), np.array(expected["X"])


# A model with few features, one seed for all.
automatic = partial(RFRBoostRegressor, n_features=64, random_state=0)
automatic_classes = partial(RFRBoostClassifier, n_features=64, random_state=0)
single = partial(RFRBoostRegressor, 4, n_features=NARROW, random_state=0)
single_classes = partial(RFRBoostClassifier, 4, n_features=NARROW, random_state=0)


def real_cases() -> list[Case]:
    """On every real table the default model as the table is, and a network of its numbers."""
    cases = []
    for name in real_tables():
        regression = name.startswith("regression")
        default = RFRBoostRegressor if regression else RFRBoostClassifier
        network = single() if regression else single_classes()
        cases.append(Case(name, default(random_state=0)))
        cases.append(Case(f"{name}{AS_NUMBERS}", network))
    return cases


def single_cases() -> list[Case]:
    """Single networks: every loss, strategy, kind of features and setting."""
    greedy = partial(single, strategy="greedy")
    # Neither a diagonal nor a scalar A, nor a transformer, asks for a number of features.
    as_wide = partial(RFRBoostRegressor, 4, strategy="greedy", hidden_dim=20, random_state=0)
    columns = RBFSampler(n_components=20, random_state=0)
    features = ("swim", "sparse", "gaussian", "uniform", "fourier")
    activations = ("tanh", "relu", "sigmoid", "sin", "cos")
    regressors = [
        single(loss="squared_error"),
        single(loss="huber"),
        single(loss=rfrboost.Huber(1.5)),
        single(loss="quantile", quantile=0.8),
        single(loss="quantile", quantile=LEVELS),
        greedy(step_matrix="dense"),
        as_wide(step_matrix="diagonal", initial="swim"),
        as_wide(step_matrix="scalar", initial="gaussian", initial_scale=0.8),
        *(single(features=kind) for kind in features),
        RFRBoostRegressor(4, features=columns, random_state=0),
        *(single(activation=name, pair_sampling="uniform") for name in activations),
        single(normalize=True),
        single(metric="agop"),
        single(initial="swim", hidden_dim=30),
        single(initial="uniform", hidden_dim=30),
        single(sample_splitting=True),
        single(learning_rate=(1.0, 0.5), l2_head=0.0, l2_step=1e-4, feature_scale=0.9),
        RFRBoostRegressor(0, random_state=0),
        RFRBoostRegressor(3, random_state=0),
        RFNNRegressor(50, random_state=0),
        RFNNRegressor(50, features="fourier", loss="huber", random_state=0),
        *(kind(30, random_state=0) for kind in (SWIMFeatures, GaussianFeatures, FourierFeatures)),
    ]
    classifiers = [
        single_classes(),
        single_classes(features="sparse", metric="agop"),
        single_classes(features="gaussian", normalize=True),
        single_classes(initial="swim", hidden_dim=30, sample_splitting=True),
        RFRBoostClassifier(2, random_state=0),
        RFNNClassifier(50, random_state=0),
    ]
    return [
        *(Case("friedman", model) for model in regressors),
        Case("counts", single(loss="poisson")),
        Case("counts", RFNNRegressor(50, loss="poisson", random_state=0)),
        *(Case("friedman, 3 classes", model) for model in classifiers),
        *(Case(name, single_classes()) for name in ("iris", "digits", "breast cancer")),
        Case("two outputs", single()),
        Case("two outputs", greedy()),
        Case("two outputs", single(loss="huber")),
        Case("single precision", single()),
        *(
            Case("friedman", model, weighted)
            for model in (single(), greedy(), single(loss="huber"))
        ),
        Case("friedman, 3 classes", single_classes(), weighted),
        Case("friedman", single(), warm_started),
        Case("friedman, 3 classes", single_classes(), warm_started),
        Case("friedman, 9,750 rows", single()),
        Case("friedman, 9,750 rows", greedy()),
    ]


def automatic_cases() -> list[Case]:
    """Ensembles: every loss, number of bags and family, and each size with a route of its own."""
    regressors = [
        automatic(loss="squared_error"),
        automatic(loss="huber"),
        automatic(loss="quantile", quantile=0.8),
        automatic(loss="quantile", quantile=LEVELS),
        automatic(n_bags=1),
        automatic(n_bags=3),
        automatic(features="gaussian"),
        automatic(features=("swim",), metric="identity"),
        automatic(features=("sparse", "bumps")),
        RFRBoostRegressor(features=RBFSampler(n_components=20, random_state=0), random_state=0),
        automatic(learning_rate=0.3, l2_head=1e-2, l2_step=1e-3, feature_scale=0.4),
        automatic(preprocess=None),
    ]
    classifiers = [
        automatic_classes(),
        automatic_classes(n_bags=1),
        automatic_classes(n_bags=3, features=("swim",)),
    ]
    return [
        *(Case("friedman", model) for model in regressors),
        *(Case("friedman, 3 classes", model) for model in classifiers),
        Case("counts", automatic(loss="poisson")),
        Case("diabetes", RFRBoostRegressor(random_state=0)),
        *(
            Case(name, RFRBoostClassifier(random_state=0))
            for name in ("iris", "wine", "breast cancer")
        ),
        Case("digits", automatic_classes()),
        # 40 rows to fit: fewer than an ensemble needs.
        Case("friedman, 60 rows", RFRBoostRegressor(random_state=0)),
        *(Case("two outputs", automatic(loss=loss)) for loss in ("squared_error", "huber")),
        Case("single precision", automatic()),
        Case("sparse matrix", automatic()),
        Case("mixed", RFRBoostRegressor(random_state=0)),
        Case("mixed", automatic(loss="quantile", quantile=LEVELS)),
        Case("mixed, 2 classes", RFRBoostClassifier(random_state=0)),
        *(Case("mixed", automatic(), fit) for fit in (weighted, with_validation)),
        *(Case("mixed, 2 classes", automatic_classes(), f) for f in (weighted, with_validation)),
        *(
            Case(f"friedman, {n} rows", model)
            for n in ("3,750", "9,750")
            for model in (automatic(), automatic(loss="huber"))
        ),
        *(Case(f"friedman, 3 classes, {n} rows", automatic_classes()) for n in ("3,750", "9,750")),
    ]


def elsewhere_cases() -> list[Case]:
    """Rows in blocks and on Dask, and models that were in a file."""
    large = RFRBoostRegressor(n_features=(16, 16), random_state=0)
    large_classes = RFRBoostClassifier(n_features=(16, 16), random_state=0)
    return [
        *(
            Case("friedman", model, in_blocks)
            for model in (
                single(),
                single(strategy="greedy"),
                single(loss="huber"),
                single(loss="quantile", quantile=LEVELS),
                single(metric="agop", normalize=True),
                single(initial="swim", hidden_dim=30),
                automatic(),
            )
        ),
        Case("friedman", single(), in_weighted_blocks),
        Case("friedman, 3 classes", single_classes(), in_blocks),
        Case("friedman, 3 classes", single_classes(), in_weighted_blocks),
        Case("counts", single(loss="poisson"), in_blocks),
        Case("mixed", automatic(), in_blocks),
        Case("mixed, 2 classes", automatic_classes(), in_blocks),
        Case("three columns, 90,000 rows", single(), in_blocks),
        Case("three columns, 90,000 rows", large, in_blocks),
        Case("three columns, 3 classes, 90,000 rows", large_classes, in_blocks),
        Case("mixed, 90,000 rows", large, in_blocks),
        *(Case("friedman", model, on_dask) for model in (single(), automatic())),
        *(
            Case("friedman, 3 classes", model, on_dask)
            for model in (single_classes(), automatic_classes())
        ),
        Case("three columns, 90,000 rows", large, on_dask),
        *(
            Case("mixed", model, saved_and_loaded)
            for model in (automatic(), automatic(loss="quantile", quantile=LEVELS))
        ),
        Case("mixed, 2 classes", automatic_classes(), saved_and_loaded),
        Case("friedman", single(strategy="greedy"), saved_and_loaded),
    ]


def file_cases() -> list[FileCase]:
    """Every model file among the tests' data."""
    return [FileCase(path) for path in sorted((ROOT / "tests").glob(f"**/{FILES}/*.rfrboost"))]


def all_cases() -> list[Case | FileCase]:
    """All cases, in the order in which they run."""
    made = [*single_cases(), *automatic_cases(), *elsewhere_cases()]
    return [*real_cases(), *made, *file_cases()]
