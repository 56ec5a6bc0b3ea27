"""The commands that compare two commits: digests, words for differences, and what cases cover."""

import numpy as np
import pytest

from benchmarks.against import best, rows_of, worst
from benchmarks.fingerprints.__main__ import summary, verdict
from benchmarks.fingerprints.answers import (
    QUESTIONS,
    answers_of,
    difference,
    differences,
    digest,
    fingerprint,
)
from benchmarks.fingerprints.cases import (
    automatic_cases,
    elsewhere_cases,
    file_cases,
    in_blocks,
    on_dask,
    single_cases,
)
from benchmarks.fingerprints.tables import MADE, REAL_TABLES, split
from benchmarks.sources import HERE, check_imported_from
from rfrboost import RFRBoostClassifier, RFRBoostRegressor

ONES = np.ones((2, 3))
MADE_CASES = [*single_cases(), *automatic_cases(), *elsewhere_cases()]


@pytest.mark.parametrize(
    "other",
    [
        ONES.astype(np.float32),
        ONES.astype(int),
        ONES.reshape(3, 2),
        ONES.ravel(),
        np.nextafter(ONES, 2),
        ONES.astype(str),
        ONES.astype(object),
    ],
)
def test_a_digest_tells_type_shape_and_bits_apart(other):
    assert digest(ONES) == digest(np.asfortranarray(ONES))
    assert digest(ONES) != digest(other)
    assert difference(ONES, other) is not None


def test_signs_of_zeros_and_strings_count():
    assert digest(np.array([0.0])) != digest(np.array([-0.0]))
    assert "signs of zeros" in difference(np.array([0.0]), np.array([-0.0]))
    assert difference(np.array(["a", "bcd"]), np.array(["a", "bce"])) == "1 of 2 values differ"
    longer = np.array(["a", "bc"]).astype("U9")
    assert difference(np.array(["a", "bc"]), longer) is None


def test_a_difference_is_told_with_its_size():
    old = np.array([1.0, -4.0, np.nan])
    new = np.array([1.0, -4.5, np.nan])
    words = "1 of 3 values differ, by at most 0.5 (0.1 of the largest)"
    assert difference(old, new) == words
    assert difference(old, old.copy()) is None
    assert difference(old, new[:2]) == "<f8 (3,) became <f8 (2,)"
    refused = np.array("ValueError")
    assert difference(refused, np.array("TypeError")) == "1 of 1 values differ"
    assert difference(refused, old) == "ValueError became <f8 (3,)"
    found = differences({"predict": old, "transform": old}, {"predict": new, "transform": old})
    assert found == [f"predict: {words}"]
    assert len(differences({"predict": old}, {})) == 1


def test_a_case_that_fails_is_never_equal():
    answers = {"predict": ONES}
    assert verdict(answers, {"predict": ONES.copy()}) == []
    assert verdict("ValueError: no", answers) == ["fails on the commit: ValueError: no"]
    assert len(verdict("ValueError: no", "ValueError: no")) == 2
    assert summary(3, 4, 2) == "3 of 4 cases equal to the bit on 2 tables"


def test_every_question_has_an_answer_or_the_name_of_a_refusal():
    X = np.linspace(-1, 1, 60).reshape(20, 3)
    model = RFRBoostRegressor(1, n_features=(4, 4), random_state=0)
    with pytest.raises(ValueError, match="fitted"):
        answers_of(model, X)
    answers = answers_of(model.fit(X, X[:, 0]), X)
    assert answers.keys() == QUESTIONS.keys()
    assert answers["predict"].shape == (20,)
    assert answers["staged_predict"].shape == (2, 20)
    assert answers["predict_proba"].item() == "AttributeError"
    assert answers["predict_interval"].item() == "ValueError"
    other = answers_of(model.set_params(random_state=1).fit(X, X[:, 0]), X)
    assert fingerprint(answers) != fingerprint(other)


def models(route):
    return [case.model for case in MADE_CASES if route(case.model)]


def is_automatic(model):
    return isinstance(model, RFRBoostRegressor) and model.n_layers == "auto"


def is_single(model):
    return isinstance(model, RFRBoostRegressor) and model.n_layers != "auto"


@pytest.mark.parametrize("route", [is_automatic, is_single])
def test_cases_cover_every_loss(route):
    named = RFRBoostRegressor._parameter_constraints["loss"][0].options
    assert {model.loss for model in models(route) if isinstance(model.loss, str)} == named
    assert {np.ndim(m.quantile) for m in models(route) if m.loss == "quantile"} == {0, 1}


def test_cases_cover_every_named_choice_of_a_single_network():
    found = [model.get_params() for model in models(is_single)]
    for name in ("strategy", "step_matrix", "activation", "initial", "pair_sampling"):
        (choices,) = RFRBoostRegressor._parameter_constraints[name]
        assert {parameters[name] for parameters in found} == choices.options
    named = {"swim", "sparse", "gaussian", "uniform", "fourier"}
    assert named < {p["features"] for p in found if isinstance(p["features"], str)}


def test_cases_cover_both_tasks_wherever_rows_are():
    for fit in (in_blocks, on_dask):
        kinds = {(type(c.model), c.model.n_layers == "auto") for c in MADE_CASES if c.fit is fit}
        both = (RFRBoostRegressor, RFRBoostClassifier)
        assert kinds == {(kind, automatic) for kind in both for automatic in (True, False)}


def test_cases_have_names_of_their_own_and_tables_that_exist():
    assert len({case.name for case in MADE_CASES}) == len(MADE_CASES)
    assert {case.table for case in MADE_CASES} == MADE.keys()
    assert len(set(REAL_TABLES)) >= 20
    assert len(file_cases()) >= 13


def test_a_third_of_the_rows_is_new_to_the_model():
    table = split(np.arange(9)[:, None], np.arange(9))
    assert table.X_new.ravel().tolist() == [2, 5, 8]
    assert table.X.ravel().tolist() == table.y.tolist() == [0, 1, 3, 4, 6, 7]


def test_another_copy_of_the_library_is_refused(tmp_path):
    check_imported_from(HERE)
    with pytest.raises(SystemExit, match="imported from"):
        check_imported_from(tmp_path)


def test_the_best_round_counts_and_the_worst_ratio_is_named():
    old = best([{"fit": 2.0, "predict": 0.5}, {"fit": 1.0, "predict": 0.6}])
    new = {"fit": 1.5, "predict": 0.5}
    assert old == {"fit": 1.0, "predict": 0.5}
    assert rows_of("a", old, new)[0] == "| a | fit | 1.0000 | 1.5000 | 1.500 |"
    assert worst([("a", old, new)]).startswith("Worst ratio: 1.500 (a, fit).")
