"""Figures: the values behind them, one call each, and what they refuse."""

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score

import rfrboost.inspection
from rfrboost import RFNNRegressor, RFRBoostClassifier, RFRBoostRegressor
from rfrboost.inspection import (
    ImportancesDisplay,
    ResidualsDisplay,
    plot_calibration,
    plot_importances,
    plot_learning_curve,
    plot_representation,
    plot_residuals,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

PACKAGE = Path(rfrboost.inspection.__file__).parent


@pytest.fixture
def ax():
    return Figure().add_subplot()


@pytest.fixture(scope="module")
def ensemble():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return RFRBoostRegressor(n_bags=2, random_state=0).fit(X, y), X, y


@pytest.fixture(scope="module")
def network():
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return RFRBoostClassifier(n_layers=5, random_state=0).fit(X, y), X, y


def test_residuals_are_out_of_fold_where_no_rows_are_given(ensemble, ax):
    model, _, y = ensemble
    display = plot_residuals(model, y=y, ax=ax)
    np.testing.assert_array_equal(display.predicted, model.oof_prediction_)
    assert display.r2 == pytest.approx(model.oof_score_)
    assert display.rmse == pytest.approx(np.sqrt(np.mean((y - model.oof_prediction_) ** 2)))
    points = display.ax_[0].collections[0].get_offsets()
    np.testing.assert_allclose(points, np.column_stack([display.predicted, y]))
    assert sum(bar.get_height() for bar in display.ax_[1].patches) == len(y)
    assert display.ax_[0].get_xlabel() == "predicted target"


def test_residuals_in_thousands_are_written_out(ax):
    actual = np.linspace(0, 50_000, 101)
    display = ResidualsDisplay(actual, actual[::-1]).plot(ax=ax)
    written = [text.get_text() for text in display.ax_[1].texts]
    assert "5%: −45,000" in written
    assert "95%: 45,000" in written
    assert not [text for text in written if "e+" in text]


def test_residuals_of_given_rows_are_those_of_predict(ensemble, ax):
    model, X, y = ensemble
    display = plot_residuals(model, X[:90], y[:90], ax=ax)
    np.testing.assert_allclose(display.residuals, y[:90] - model.predict(X[:90]))
    assert display.r2 == pytest.approx(r2_score(y[:90], model.predict(X[:90])))


def test_many_rows_are_thinned_out_in_the_picture_only(ax):
    X = np.random.default_rng(0).normal(size=(6000, 1))
    model = RFNNRegressor(n_features=5, random_state=0).fit(X, X[:, 0])
    display = plot_residuals(model, X, X[:, 0], ax=ax)
    assert len(display.actual) == 6000
    assert len(display.ax_[0].collections[0].get_offsets()) < 6000


def curved(features):
    """An ensemble of these features on data that no line fits, so that layers are kept."""
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    return RFRBoostRegressor(features=features, n_bags=2, random_state=0).fit(X, y)


def test_the_learning_curve_of_an_ensemble_is_its_history_by_family(ax):
    model = curved("auto")
    display = plot_learning_curve(model, ax=ax)
    losses = np.concatenate(list(display.curves.values()))
    np.testing.assert_allclose(losses**2 / 2, [record["loss"] for record in model.history_])
    drawn = [line.get_ydata() for line in display.ax_.lines]
    np.testing.assert_array_equal(np.concatenate(drawn), losses)


@pytest.mark.parametrize(
    ("features", "families"),
    [
        ("auto", ["trees", "dense features", "sparse features"]),
        (("sparse", "bumps"), ["sparse features"]),
        ("gaussian", ["the boosted members"]),
    ],
)
def test_families_have_the_names_of_what_was_asked_for(features, families, ax):
    assert list(plot_learning_curve(curved(features), ax=ax).curves) == families


def test_a_family_that_kept_no_layer_leaves_the_others_without_a_name(ax):
    model = curved("auto")
    first = [i for i, record in enumerate(model.history_) if record["layer"] == 1]
    model._fitted = replace(model._fitted, history=model.history_[first[1] :])
    assert list(plot_learning_curve(model, ax=ax).curves) == ["family 1", "family 2"]
    model._fitted = replace(model._fitted, history=[])
    with pytest.raises(ValueError, match="keeps none"):
        plot_learning_curve(model, ax=ax)


def test_the_learning_curve_of_a_network_is_its_training_loss(network, ax):
    model = network[0]
    (losses,) = plot_learning_curve(model, ax=ax).curves.values()
    np.testing.assert_array_equal(losses, [record["loss"] for record in model.history_])
    assert "log loss" in ax.get_ylabel()


def test_layers_are_drawn_from_the_first_to_the_last_with_their_scores(network, ax):
    model, X, y = network
    display = plot_representation(model, X, y, ax=ax)
    assert list(display.clouds) == [0, 2, 3, 5]
    stages = [np.mean(stage == y) for stage in model.staged_predict(X)]
    assert display.scores == {t: pytest.approx(stages[t]) for t in display.clouds}
    for panel, cloud in zip(display.ax_, display.clouds.values(), strict=True):
        points = np.vstack([c.get_offsets() for c in panel.collections])
        by_class = np.vstack([cloud[y == k] for k in np.unique(y)])
        np.testing.assert_allclose(points, by_class)


def test_the_plane_is_one_of_the_representation(network, ax):
    # A projection: distances in the plane are at most those of Φ, of which it is a linear map.
    model, X, y = network
    cloud = plot_representation(model, X, y, ax=ax).clouds[5]
    phi = model.transform(X)
    phi = phi - phi.mean(axis=0)
    assert (np.linalg.norm(cloud, axis=1) <= np.linalg.norm(phi, axis=1) * (1 + 1e-9)).all()
    coefficients = np.linalg.lstsq(phi, cloud, rcond=None)[0]
    np.testing.assert_allclose(phi @ coefficients, cloud, atol=1e-8)


def test_two_columns_are_drawn_as_they_are_and_one_on_a_line(ax):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    labels = np.where(np.hypot(*X.T) > 1, "out", "in")
    model = RFRBoostClassifier(n_layers=2, random_state=0).fit(X, labels)
    display = plot_representation(model, X, labels, ax=ax)
    np.testing.assert_allclose(display.clouds[0], X - X.mean(axis=0), atol=1e-12)
    one = RFRBoostClassifier(n_layers=1, random_state=0).fit(X[:, :1], labels)
    drawn = plot_representation(one, X[:, :1], labels, ax=Figure().add_subplot())
    assert not drawn.clouds[0][:, 1].any()


def test_with_one_output_predictions_rise_to_the_right(ax):
    X, y = load_diabetes(return_X_y=True)
    model = RFRBoostRegressor(n_layers=2, random_state=0).fit(X, y)
    display = plot_representation(model, X, y, ax=ax)
    for t, stage in enumerate(model.staged_predict(X)):
        assert np.corrcoef(display.clouds[t][:, 0], stage)[0, 1] == pytest.approx(1.0)


def test_unfitted_models_are_refused(ax):
    X, y = np.eye(3), np.arange(3)
    calls = {
        plot_importances: (),
        plot_learning_curve: (),
        plot_representation: (X, y),
        plot_residuals: (X, y),
    }
    for draw, rows in calls.items():
        with pytest.raises(NotFittedError):
            draw(RFRBoostRegressor(), *rows, ax=ax)
    with pytest.raises(NotFittedError):
        plot_calibration(RFRBoostClassifier(), X, y, ax=ax)


def test_unsuitable_models_and_rows_are_refused_in_a_sentence(ensemble, network, ax):
    model, X, y = ensemble
    single, X_single, y_single = network
    two = RFNNRegressor(n_features=5, random_state=0).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="n_layers to a number"):
        plot_representation(model, X, y, ax=ax)
    with pytest.raises(TypeError, match="classifier"):
        plot_residuals(single, X_single, y_single, ax=ax)
    with pytest.raises(ValueError, match="2 targets"):
        plot_residuals(two, X, np.column_stack([y, y]), ax=ax)
    with pytest.raises(ValueError, match="no layers"):
        plot_learning_curve(two, ax=ax)
    with pytest.raises(ValueError, match="Pass y"):
        plot_residuals(model, X, ax=ax)
    with pytest.raises(ValueError, match="442 rows"):
        plot_residuals(model, y=y[:10], ax=ax)
    with pytest.raises(ValueError, match="no out-of-fold"):
        plot_calibration(single, y=y_single, ax=ax)
    with pytest.raises(ValueError, match="add_subplot"):
        plot_residuals(model, y=y, ax=Figure().add_axes((0, 0, 1, 1)))


def test_a_given_ax_leaves_pyplot_alone_and_no_ax_makes_one_figure(ensemble, network):
    model, _, y = ensemble
    single, X_single, y_single = network
    before, settings = pyplot.get_fignums(), dict(matplotlib.rcParams)
    calls = [
        lambda ax: plot_importances(model, ax=ax),
        lambda ax: plot_learning_curve(single, ax=ax),
        lambda ax: plot_residuals(model, y=y, ax=ax),
        lambda ax: plot_representation(single, X_single, y_single, ax=ax),
        lambda ax: plot_calibration(single, X_single, y_single, ax=ax),
    ]
    for draw in calls:
        figure = Figure(layout="constrained")
        assert draw(figure.add_subplot(1, 2, 1)).figure_ is figure
        assert pyplot.get_fignums() == before
        own = draw(None).figure_
        assert pyplot.get_fignums() == [*before, own.number]
        own.canvas.draw()
        pyplot.close(own)
    assert dict(matplotlib.rcParams) == settings


def test_the_package_uses_what_is_public_only():
    for path in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rfrboost"):
                names = {alias.name for alias in node.names}
                public = node.module == "rfrboost" and "_" not in {name[0] for name in names}
                inside = node.module.startswith("rfrboost.inspection.")
                # The formula of importances is the one private thing shared with the library.
                assert public or inside or names == {"column_shares"}, path.name
            if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
                owner = getattr(node.value, "id", "")
                # scikit-learn's scorers hide their metric; nothing public tells it.
                assert owner in ("self", "scorer") or node.attr.startswith("__"), (
                    path.name,
                    node.attr,
                )


def test_matplotlib_is_needed_by_figures_only_and_its_absence_is_one_sentence():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from rfrboost.inspection import ImportancesDisplay, expected_calibration_error\n"
        "expected_calibration_error([0, 1], [0.2, 0.9])\n"
        "try: ImportancesDisplay({'x': 1.0}).plot()\n"
        "except ImportError as error: sys.exit('rfrboost[plot]' not in str(error))\n"
        "sys.exit(2)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_of_frames_reach_the_axes(ensemble, ax):
    model, X, y = ensemble
    plot_residuals(model, X, pd.Series(y, name="progression"), ax=ax)
    labels = [panel.get_xlabel() for panel in ax.figure.axes[1:]]
    assert labels == ["predicted progression", "actual − predicted progression"]


def test_names_mean_nothing_to_matplotlib(ax):
    shares = {"$\\frac$": 0.5, "_hidden": 0.3, "a" * 99 + "1": 0.1, "a" * 99 + "2": 0.1}
    figure = ImportancesDisplay(shares).plot(ax=ax).figure_
    assert len(ax.patches) == 4
    figure.canvas.draw()
    X = np.random.default_rng(0).normal(size=(60, 2))
    labels = np.where(X[:, 0] > 0, "_right", "$left$")
    model = RFRBoostClassifier(n_layers=1, random_state=0).fit(X, labels)
    display = plot_representation(model, X, labels, ax=Figure().add_subplot())
    legend = display.ax_[-1].get_legend().get_texts()
    assert [entry.get_text().strip() for entry in legend] == [r"\$left\$", "_right"]
    display.figure_.canvas.draw()
