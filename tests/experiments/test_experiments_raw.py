"""``raw-tables``: the command line on raw tables, compared with an encoding by hand."""

import numpy as np
import pandas as pd
import pytest
from experiment_runs import ENERGY, untraceable

from experiments.__main__ import main
from experiments.commands import raw_tables
from experiments.commands.raw_tables import report
from experiments.data import tables
from experiments.data.tables import Table
from experiments.runs.files import read_table


def scores(model, values, figure="accuracy"):
    return pd.DataFrame(
        {"model": model, "fold": range(len(values)), figure: values, "seconds": 1.0}
    )


def test_the_command_evaluates_stores_and_continues(made_up, capsys, monkeypatch):
    words = ["raw-tables", "--data", str(made_up / "data"), "--out", str(made_up / "raw")]
    words += ["--tables", str(ENERGY), "--rows", "100", "--format", "csv"]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "1 of 1 tables were evaluated." in text
    assert untraceable(made_up / "raw") == []
    stored = made_up / "raw" / "csv" / "rows-100" / f"{ENERGY}.csv"
    assert set(read_table(stored)["model"]) == {
        "rfrboost",
        "HistGradientBoosting",
        "ridge regression",
    }
    monkeypatch.setattr(raw_tables.subprocess, "run", None)
    assert main(words) == 0
    assert capsys.readouterr().out == text


def test_a_table_that_fails_is_listed(made_up, capsys, monkeypatch):
    def constant(table, folder):
        return pd.DataFrame({"x": [1.0] * 200, "target": ["a"] * 200})

    monkeypatch.setattr(raw_tables, "load_table", constant)
    words = ["raw-tables", "--data", str(made_up / "data"), "--out", str(made_up / "raw")]
    assert main([*words, "--tables", str(ENERGY)]) == 1
    assert "energy_efficiency failed: " in capsys.readouterr().out


def test_the_most_irregular_tables(monkeypatch):
    facts = {k: (10 * k if k < 7 else 0, 0.0) for k in range(9)}
    facts[7], facts[1] = (0, 0.5), (10, 0.25)
    monkeypatch.setattr(raw_tables, "irregularity", lambda table, data: facts[table.id])
    tables = [Table(k, str(k), "regression", 1, 1) for k in facts]
    assert raw_tables.most_irregular(tables, None) == {2, 3, 4, 5, 6, 7, 1}


def test_levels_and_missing_values_are_counted(made_up):
    table = tables.known_table(ENERGY)
    path = table.path(made_up / "data")
    frame = pd.read_parquet(path)
    frame["x0"] = pd.Categorical(np.array(["a", "b", "c"])[np.arange(768) % 3])
    frame.loc[::2, "x1"] = np.nan
    frame.to_parquet(path)
    assert raw_tables.irregularity(table, made_up / "data") == (3, pytest.approx(1 / 16))


def test_the_report_compares_means():
    tables = [Table(1, "one", "classification", 9, 2), Table(2, "two", "regression", 9, 2)]
    found = {
        1: pd.concat([scores("rfrboost", [0.9, 0.7]), scores("logistic regression", [0.5, 0.7])]),
        2: pd.concat([scores("rfrboost", [0.75], "R²"), scores("ridge regression", [0.64], "R²")]),
    }
    beside = {1: scores("by hand", [0.6, 0.6])}
    text = report(tables, found, beside, {"three": "It is empty."})
    assert "2 of 2 tables were evaluated." in text
    assert "three failed: It is empty." in text
    assert "| regression | 1 | linear model | 0.6000 | 0 | 1.0000 |" in text
    assert "| 1 one | 0.2000 | 0.4000 | 0.5000 |" in text
    assert "Mean error 0.2000 raw, 0.4000 by hand; raw is better on 1 of 1" in text
