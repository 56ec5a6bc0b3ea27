"""The models that are searched: their ranges are the paper's, and every one of them fits."""

import re

import numpy as np
import pytest

from experiments.models import spaces
from experiments.models.baselines import SOURCES, baseline
from experiments.models.coded import CodedClassifier
from experiments.models.recipes import Recipe, build
from experiments.models.spaces import SEARCHED_MODELS, Choice, SearchedModel
from experiments.models.variants import VARIANTS

# The paper's table: (model, hyper-parameter) and where we keep the range.
IN_THE_PAPER = {
    ("E2E MLP ResNet", "n_layers"): spaces.MLP["n_blocks"],
    ("E2E MLP ResNet", "lr"): spaces.MLP["lr"],
    ("E2E MLP ResNet", "end_lr_factor"): spaces.MLP["end_lr_factor"],
    ("E2E MLP ResNet", "n_epochs"): spaces.MLP["n_epochs"],
    ("E2E MLP ResNet", "weight_decay"): spaces.MLP["weight_decay"],
    ("E2E MLP ResNet", "batch_size"): spaces.MLP["batch_size"],
    ("E2E MLP ResNet", "hidden_dim"): spaces.MLP["hidden_dim"],
    ("RFRBoost", "n_layers"): spaces.BOOSTED["n_layers"],
    ("RFRBoost", "l2_linpred"): spaces.BOOSTED["l2_head"],
    ("RFRBoost", "l2_ghat"): spaces.BOOSTED["l2_step"],
    ("RFRBoost", "boost_lr"): spaces.BOOSTED["learning_rate"],
    ("RFRBoost", "SWIM_scale"): spaces.SWIM_SCALE,
    ("RFNN", "l2_reg"): spaces.RFNN["l2_head"],
    ("RFNN", "feature_dim"): spaces.RFNN["n_features"],
    ("RFNN", "SWIM_scale"): spaces.SWIM_SCALE,
    ("Ridge/Logistic Regression", "l2_reg"): spaces.LINEAR["l2_head"],
    ("XGBoost", "alpha"): spaces.XGBOOST["reg_alpha"],
    ("XGBoost", "lambda"): spaces.XGBOOST["reg_lambda"],
    ("XGBoost", "learning_rate"): spaces.XGBOOST["learning_rate"],
    ("XGBoost", "n_estimators"): spaces.XGBOOST["n_estimators"],
    ("XGBoost", "max_depth"): spaces.XGBOOST["max_depth"],
}


def printed_ranges(text: str) -> dict[tuple[str, str], str]:
    """The rows of the paper's table, except for what is fixed."""
    table = text.split(r"\label{tab:hyperparameter_ranges}")[1].split(r"\end{tabular}")[0]
    ranges, model = {}, ""
    for line in re.findall(r"^(.*?) *& (.*?) & (.*?) \\\\$", table, flags=re.MULTILINE):
        first, name, values = (cell.replace("\\", "").strip() for cell in line)
        model = first or model
        if name != "Hyperparameter" and not values.startswith("fixed"):
            ranges[model, name] = values
    return ranges


def number(text: str) -> float:
    power = re.fullmatch(r"\$10\^\{(-?\d+)\}\$", text)
    return 10.0 ** int(power.group(1)) if power else float(text)


def test_the_ranges_are_those_of_the_paper(real):
    path = real[0].resolve().parent / "paper" / "rfrboost.tex"
    if not path.is_file():
        pytest.skip(f"no paper at {path}")
    printed = printed_ranges(path.read_text(encoding="utf-8"))
    assert set(printed) == set(IN_THE_PAPER)
    for key, values in printed.items():
        ours = IN_THE_PAPER[key]
        if "," in values:
            assert ours == Choice(tuple(int(word) for word in values.split(",")))
            continue
        low, high = values.removesuffix("(log scale)").split(" to ")
        assert (ours.low, ours.high) == (
            pytest.approx(number(low.strip())),
            pytest.approx(number(high.strip())),
        ), key
        assert ours.log == values.endswith("(log scale)"), key


def test_published_names_mean_the_same_models():
    ours = {(model.name, model.task): model for model in SEARCHED_MODELS}
    assert len(ours) == len(SEARCHED_MODELS) == 16 + 10
    assert {(variant.name, variant.task) for variant in VARIANTS} <= set(ours)


class Least:
    """A trial that takes the least of every range."""

    def suggest_float(self, name: str, low: float, high: float, log: bool) -> float:
        return low

    suggest_int = suggest_float

    def suggest_categorical(self, name: str, options: tuple[int, ...]) -> int:
        return options[0]


def smallest(model: SearchedModel) -> Recipe:
    chosen = {name: values.suggest(Least(), name) for name, values in model.space.items()}
    return Recipe(model.estimator, model.fixed | chosen)


@pytest.mark.parametrize("model", SEARCHED_MODELS, ids=lambda model: f"{model.name}-{model.task}")
def test_every_model_fits_and_repeats_itself(model):
    if model.estimator in SOURCES:
        pytest.importorskip(SOURCES[model.estimator].library)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3)).astype(np.float32)
    # A class, number 1, is missing from the training rows.
    y = X[:, 0].astype(float) if model.task == "regression" else np.where(X[:, 0] > 0, 2, 0)
    y[:10] = y[:10] if model.task == "regression" else 3
    predictions = [
        build(smallest(model), len(y), random_state=seed).fit(X, y).predict(X) for seed in (5, 5)
    ]
    assert predictions[0].shape == y.shape
    np.testing.assert_array_equal(*predictions)
    if model.task == "classification":
        assert set(predictions[0]) <= {0, 2, 3}
    # The MLP's least learning rate, 1e-6, learns nothing in ten epochs.
    elif model.name != "mlp":
        assert np.sqrt(np.mean((predictions[0] - y) ** 2)) < 0.9 * y.std()


def test_codes_have_no_gaps_and_labels_come_back():
    class Coder:
        def fit(self, X, codes):
            assert sorted(set(codes)) == [0, 1, 2]
            return self

        def predict(self, X):
            return np.array([[2], [0]])

    fitted = CodedClassifier(Coder()).fit(np.zeros((3, 1)), np.array([7, 1, 4]))
    assert fitted.predict(np.zeros((2, 1))).tolist() == [7, 1]


@pytest.mark.parametrize(
    ("estimator", "setting"),
    [
        ("XGBRegressor", "n_jobs"),
        ("LGBMRegressor", "n_jobs"),
        ("CatBoostRegressor", "thread_count"),
    ],
)
def test_other_libraries_get_one_thread(estimator, setting):
    pytest.importorskip(SOURCES[estimator].library)
    assert baseline(estimator, {}, random_state=0).model.get_params()[setting] == 1


def test_torch_gets_one_thread():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        baseline("MLPResNetRegressor", {}, random_state=0)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
