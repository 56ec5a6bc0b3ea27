"""Further tables: numbers of our own, files by name, and text read as categories."""

from pathlib import Path

import pandas as pd

from experiments.data import tables
from experiments.data.tables import FIRST_FURTHER, Table, available_tables, known_tables, load_table


def test_numbers_are_our_own_and_files_are_named_by_the_table():
    further = [table for table in known_tables().values() if table.id >= FIRST_FURTHER]
    numbers = [table.id for table in further]
    assert numbers == list(range(FIRST_FURTHER, FIRST_FURTHER + len(further)))
    assert {table.task for table in further} == {"regression", "classification"}
    assert further[0].path(Path("folder")) == Path("folder/regression/ames_housing.parquet")
    assert known_tables()[44956].path(Path("f")) == Path("f/regression/44956_abalone.parquet")


def test_only_tables_of_the_folder_are_taken_and_text_is_read_as_categories(tmp_path, monkeypatch):
    table = Table(FIRST_FURTHER, "small", "regression", 3, 3)
    monkeypatch.setattr(tables, "known_tables", lambda: {**known_tables(), table.id: table})
    frame = pd.DataFrame(
        {"level": ["a", None, "b"], "yes": [True, False, True], "x": [1.0, 2.0, 3.0]}
    )
    path = table.path(tmp_path)
    path.parent.mkdir()
    frame.assign(target=[0.5, 1.0, 2.0]).to_parquet(path)
    assert available_tables(tmp_path) == [table]
    loaded = load_table(table, tmp_path)
    assert list(loaded.columns) == ["level", "yes", "x", "target"]
    assert [str(kind) for kind in loaded.dtypes[:2]] == ["category", "category"]
    assert loaded["level"].isna().tolist() == [False, True, False]
