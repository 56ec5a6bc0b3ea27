"""Tables and protocols: what is loaded, what is refused, and what a fold may know."""

import json
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from experiment_runs import ENERGY, command
from sklearn.model_selection import KFold

from experiments.data import protocols, tables
from experiments.requests import UsageError


def mixed_frame(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    colour = pd.Categorical(rng.choice(["red", "blue"], n), categories=["blue", "green", "red"])
    return pd.DataFrame(
        {"size": rng.normal(50, 10, n), "colour": colour, "target": rng.normal(7, 3, n)}
    )


def test_missing_values_get_the_median_and_the_most_frequent_level():
    frame = pd.DataFrame(
        {
            "size": [1.0, np.nan, 2.0, 9.0],
            "colour": pd.Categorical(["b", "a", "b", None]),
            "empty": [np.nan] * 4,
            "whole": [1, 2, 3, 4],
        }
    )
    filled = protocols.fill_missing(frame)
    assert filled["size"].tolist() == [1.0, 2.0, 2.0, 9.0]
    assert filled["colour"].tolist() == ["b", "a", "b", "b"]
    assert filled["empty"].tolist() == [0.0] * 4
    assert list(filled.columns) == list(frame.columns)


def test_one_hot_counts_declared_levels_that_no_row_uses():
    encoded = protocols.one_hot(mixed_frame()[["size", "colour"]])
    assert encoded.shape == (40, 4)
    assert encoded.dtype == np.float32
    assert (encoded[:, 2] == 0).all(), "green is declared but never used"
    assert (encoded[:, 1:].sum(axis=1) == 1).all()


def test_kept_rows_are_the_first_5000_of_the_fixed_permutation():
    rows = protocols.kept_rows(6000)
    assert rows.tolist() == np.random.RandomState(42).permutation(6000)[:5000].tolist()
    assert sorted(protocols.kept_rows(100)) == list(range(100))


def test_standardise_uses_the_population_deviation_and_the_offset():
    values = np.array([[1.0, 5.0], [3.0, 5.0]])
    expected = [[-1 / (1 + 1e-5), 0.0], [1 / (1 + 1e-5), 0.0]]
    np.testing.assert_allclose(protocols.standardise(values), expected, rtol=1e-12)


def test_labels_are_coded_in_sorted_order():
    assert protocols.label_codes(pd.Series(["won", "lost", "draw", "won"])).tolist() == [2, 1, 0, 2]
    declared_otherwise = pd.Series(pd.Categorical(["b", "a"], categories=["b", "a"]))
    assert protocols.label_codes(declared_otherwise).tolist() == [1, 0]


def test_paper_protocol_scales_over_all_rows_and_clips():
    frame = mixed_frame()
    frame.loc[0, ["size", "target"]] = [1e4, -1e4]
    rows = protocols.paper(frame, "regression")
    folds = [rows.fold(k) for k in range(protocols.N_FOLDS)]
    X = np.concatenate([fold.X_test for fold in folds])
    y = np.concatenate([fold.y_test for fold in folds])
    assert X.dtype == np.float32
    assert X.shape == (40, 4)
    assert (X.max(), y.min()) == (3, -3), "the outlier is clipped"
    # Before clipping the means are zero over all 40 rows: the outlier alone accounts for the rest.
    raw = frame["size"].to_numpy()
    np.testing.assert_allclose(X[:, 0].sum(), 3 - (raw[0] - raw.mean()) / raw.std(), atol=1e-3)


def test_paper_protocol_folds_are_the_published_ones():
    n = 23
    frame = pd.DataFrame({"row": np.arange(n, dtype=float), "target": np.arange(n, dtype=float)})
    rows = protocols.paper(frame, "regression")
    folds = [rows.fold(k) for k in range(protocols.N_FOLDS)]
    # Undo the monotone scaling to learn which row went where.
    order = np.random.RandomState(42).permutation(n)
    # KFold shuffles positions with the same seed.
    positions = np.random.RandomState(42).permutation(n)
    sizes = [5, 5, 5, 4, 4]
    start = 0
    for fold, size in zip(folds, sizes, strict=True):
        expected = order[np.sort(positions[start : start + size])]
        back = np.rint(fold.y_test * (np.arange(n).std() + 1e-5) + np.arange(n).mean())
        assert back.tolist() == expected.tolist()
        assert len(fold.y_train) == n - size
        start += size


# --- raw --------------------------------------------------------------------------------------


def test_raw_changes_nothing_but_the_scale_of_regression_labels():
    frame = mixed_frame(60)
    frame.loc[3, "size"] = np.nan
    train, test = cut_rows(60)
    fold = protocols.raw(frame, "regression").fold(0)
    for inputs, rows in ((fold.X_train, train), (fold.X_test, test)):
        expected = frame.drop(columns="target").iloc[rows].reset_index(drop=True)
        pd.testing.assert_frame_equal(inputs.reset_index(drop=True), expected)
    strict = protocols.strict(frame, "regression").fold(0)
    np.testing.assert_array_equal(fold.y_train, strict.y_train)
    np.testing.assert_array_equal(fold.y_test, strict.y_test)


# --- strict -----------------------------------------------------------------------------------


def cut_rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows of a table in fold 0: for training, for the test."""
    order = protocols.kept_rows(n)
    train, test = next(KFold(5, shuffle=True, random_state=42).split(order))
    return order[train], order[test]


def disturbed(frame: pd.DataFrame, rows: np.ndarray) -> pd.DataFrame:
    """The frame with other values in some rows, among them a level seen nowhere else."""
    changed = frame.copy()
    changed.loc[rows, ["size", "target"]] = [1e6, -1e6]
    changed.loc[rows, "colour"] = "green"
    return changed


def test_strict_learns_nothing_from_the_test_rows():
    frame = mixed_frame(60)
    frame.loc[3, "size"] = np.nan
    _, test = cut_rows(60)
    plain = protocols.strict(frame, "regression").fold(0)
    other = protocols.strict(disturbed(frame, test), "regression").fold(0)
    np.testing.assert_array_equal(plain.X_train, other.X_train)
    np.testing.assert_array_equal(plain.y_train, other.y_train)
    assert (other.X_test[:, 0] > 1000).all(), "nothing is clipped"
    assert (other.y_test < -1000).all()
    leaky = protocols.paper(disturbed(frame, test), "regression").fold(0)
    assert (leaky.X_train != protocols.paper(frame, "regression").fold(0).X_train).any()


def test_strict_inner_folds_know_neither_the_test_rows_nor_their_own_held_out_rows():
    frame = mixed_frame(60)
    train, test = cut_rows(60)
    _, inner_test = next(KFold(3, shuffle=True, random_state=42).split(train))
    hidden = np.concatenate([test, train[inner_test]])
    plain = protocols.strict(frame, "regression").inner_folds(0, 3)[0]
    other = protocols.strict(disturbed(frame, hidden), "regression").inner_folds(0, 3)[0]
    np.testing.assert_array_equal(plain.X_train, other.X_train)
    np.testing.assert_array_equal(plain.y_train, other.y_train)
    assert len(plain.y_test) == len(inner_test)


@pytest.mark.parametrize("protocol", ["paper", "strict"])
def test_inner_folds_are_cut_from_the_training_rows_alone(protocol):
    n = 50
    frame = pd.DataFrame({"row": np.arange(n, dtype=float), "target": np.arange(n) % 7})
    rows = protocols.PROTOCOLS[protocol](frame, "classification")
    train, _ = cut_rows(n)
    inner = rows.inner_folds(0, 4)
    held_out = np.concatenate([fold.y_test for fold in inner])
    assert sorted(held_out) == sorted(train % 7)
    assert all(len(fold.y_train) + len(fold.y_test) == len(train) for fold in inner)


def test_strict_scales_by_the_training_part():
    fold = protocols.strict(mixed_frame(60), "regression").fold(1)
    assert fold.X_train.dtype == np.float32
    np.testing.assert_allclose(fold.X_train.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(fold.X_train.std(axis=0), 1, atol=1e-6)
    assert (fold.y_train.mean(), fold.y_train.std()) == (pytest.approx(0), pytest.approx(1))
    assert fold.X_train.shape[1] == 3, "a level that training rows do not have has no column"


def test_strict_fills_missing_values_by_the_training_rows():
    frame = mixed_frame(60)
    train, test = cut_rows(60)
    frame.loc[test[0], ["size", "colour"]] = [np.nan, None]
    filled = frame.copy()
    filled.loc[test[0], "size"] = frame.loc[train, "size"].median()
    filled.loc[test[0], "colour"] = frame.loc[train, "colour"].mode().iloc[0]
    ours = protocols.strict(frame, "regression").fold(0)
    np.testing.assert_array_equal(
        ours.X_test, protocols.strict(filled, "regression").fold(0).X_test
    )


@pytest.mark.parametrize("other", [protocols.strict, protocols.raw])
def test_all_protocols_test_on_the_same_rows(other):
    frame = mixed_frame(60).assign(target=np.arange(60).astype(str))
    published = protocols.paper(frame, "classification")
    rows = other(frame, "classification")
    for k in range(protocols.N_FOLDS):
        np.testing.assert_array_equal(published.fold(k).y_test, rows.fold(k).y_test)


# --- tables -----------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["rows", "columns", "label", "cut off"])
def test_a_wrong_table_is_refused_before_anything_is_fitted(made_up, capsys, change):
    path = tables.known_table(ENERGY).path(made_up / "data")
    frame = pd.read_parquet(path)
    if change == "cut off":
        path.write_bytes(path.read_bytes()[:1000])
    else:
        wrong = {
            "rows": frame.iloc[:-1],
            "columns": frame.drop(columns="x0"),
            "label": frame.rename(columns={"target": "y"}),
        }
        wrong[change].to_parquet(path)
    with pytest.raises(UsageError, match=str(path)):
        tables.load_table(tables.known_table(ENERGY), made_up / "data")
    assert command("replay", made_up) == 2
    assert not (made_up / "out").exists()


def test_data_folder_argument_then_variable_then_neighbour(tmp_path, monkeypatch):
    for name in ("argument", "variable", "shared/data"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(tables, "REPOSITORY", tmp_path / "repository")
    monkeypatch.setenv(tables.DATA_VARIABLE, str(tmp_path / "variable"))
    assert tables.find_data_folder(tmp_path / "argument") == tmp_path / "argument"
    assert tables.find_data_folder(None) == tmp_path / "variable"
    monkeypatch.delenv(tables.DATA_VARIABLE)
    assert tables.find_data_folder(None) == tmp_path / "shared" / "data"
    monkeypatch.setattr(tables, "REPOSITORY", tmp_path / "elsewhere" / "repository")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert tables.find_data_folder(None) == tmp_path / "cache" / "rfrboost" / "tables"


# --- OpenML, by a stub of its client --------------------------------------------------------------


@pytest.fixture
def openml(tmp_path, monkeypatch):
    """A client that knows one table, and counts how often it is asked for it."""
    rng = np.random.default_rng(0)
    inputs = pd.DataFrame(rng.normal(size=(768, 7)), columns=[f"x{j}" for j in range(7)])
    inputs["level"] = rng.choice(["a", "b"], 768)
    client = ModuleType("openml")
    client.__spec__ = ModuleSpec("openml", None)
    client.table = inputs
    client.asked = []

    def get_dataset(id: int, download_data: bool) -> SimpleNamespace:
        client.asked.append(id)
        target = pd.Series(rng.normal(size=len(client.table)), name="heating")
        nominal = [name == "level" for name in client.table]
        data = (client.table, target, nominal, list(client.table))
        return SimpleNamespace(default_target_attribute="heating", get_data=lambda target: data)

    client.datasets = SimpleNamespace(get_dataset=get_dataset)
    monkeypatch.setitem(sys.modules, "openml", client)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return client


def test_a_table_without_a_folder_is_fetched_once_and_then_read(openml, capsys):
    folder = tables.openml_folder()
    (table,) = tables.select_tables(folder, [ENERGY])
    assert "Fetching 44960 (energy_efficiency) from OpenML." in capsys.readouterr().err
    frame = tables.load_table(table, folder)
    assert frame.shape == (768, 9)
    assert frame.columns[-1] == "target"
    assert frame["level"].dtype == "category"
    tables.select_tables(folder, [ENERGY])
    assert openml.asked == [ENERGY]


def test_a_wrong_table_from_openml_is_refused_and_not_kept(openml):
    openml.table = openml.table.iloc[:-1]
    with pytest.raises(UsageError, match="OpenML's table 44960 has 767 rows and 8 inputs"):
        tables.select_tables(tables.openml_folder(), [ENERGY])
    assert not list(tables.openml_folder().rglob("*.parquet"))


def test_no_network_is_one_sentence(openml, monkeypatch):
    def unreachable(id: int, download_data: bool) -> None:
        raise ConnectionError("no route to host\nand more")

    monkeypatch.setattr(openml.datasets, "get_dataset", unreachable)
    with pytest.raises(UsageError, match=r"ConnectionError: no route to host\); pass --data"):
        tables.select_tables(tables.openml_folder(), [ENERGY])


# --- the real tables ------------------------------------------------------------------------------


def test_encoded_width_is_the_published_one(real):
    folder, runs = real
    for dataset in (41021, 29, 31, 38):  # missing values, unused levels twice, an empty column
        table = tables.known_table(dataset)
        settings = runs[(runs["dataset"] == dataset) & (runs["model"] == "RFNN")][
            "hyperparameters"
        ].iloc[0]
        inputs = tables.load_table(table, folder).drop(columns="target")
        assert (
            protocols.one_hot(protocols.fill_missing(inputs)).shape[1]
            == json.loads(settings)["in_dim"]
        )
