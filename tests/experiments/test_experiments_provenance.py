"""Provenance: what every result and every written file says about how it was made."""

import json
import re
import subprocess
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from experiment_runs import ENERGY, RIDGE, SCORES, command, job

from experiments.__main__ import main
from experiments.data.tables import known_table
from experiments.requests import UsageError
from experiments.runs import provenance
from experiments.runs.files import read_table, table_footer, write_report, write_table
from experiments.runs.jobs import Job, Result, execute, read_result, read_results, write_result
from experiments.runs.pool import run_jobs
from experiments.runs.provenance import (
    NOT_RECORDED,
    Provenance,
    check_one_code,
    current,
    footer,
)

OLD = Provenance("aaaaaaaaaaaa", True, {"numpy": "1.0"}, "a processor", 2, "2026-01-02")
NEW = replace(OLD, commit="bbbbbbbbbbbb", date="2026-03-04")
DIRTY = replace(OLD, clean=False)
EXPORTED = {
    "rows": 100,
    "other_rows": 60,
    "columns": 8,
    "classes": 0,
    "model_bytes": 1000,
    "loaded_equal": True,
    "loaded": 0.0,
}


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A git repository with one commit in place of this one."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "code.py").write_text("x = 1\n")
    (folder / "page.md").write_text("text\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        git(folder, *words)
    monkeypatch.setattr(provenance, "REPOSITORY", folder)
    provenance._commit.cache_clear()
    yield folder
    provenance._commit.cache_clear()


def git(folder: Path, *words: str) -> str:
    name = ["-c", "user.name=a", "-c", "user.email=a@b"]
    ran = subprocess.run(
        ["git", *name, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return ran.stdout.strip()


def test_a_clean_tree_is_its_commit(repository):
    made = current()
    assert made.commit == git(repository, "rev-parse", "HEAD")[:12]
    assert made.clean is True
    assert made.code == made.commit
    assert {"rfrboost", "numpy", "scipy", "scikit-learn"} <= set(made.versions)
    assert made.processor
    assert made.threads >= 1


@pytest.mark.parametrize("file", ["code.py", "new.py"])
def test_changed_and_new_code_is_said(repository, file):
    (repository / file).write_text("x = 2\n")
    assert current().clean is False
    assert "with uncommitted changes" in footer([current()])


def test_changed_pages_do_not_matter(repository):
    (repository / "page.md").write_text("other text\n")
    assert current().clean is True


def test_without_git_the_commit_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "REPOSITORY", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    provenance._commit.cache_clear()
    made = current()
    provenance._commit.cache_clear()
    assert (made.commit, made.clean) == ("unknown", None)


def test_a_footer_names_commit_days_machine_and_versions():
    line = footer([OLD, replace(OLD, date="2026-01-05")])
    assert line == (
        "Commit aaaaaaaaaaaa. Made 2026-01-02 to 2026-01-05 on a processor, threads: 2; numpy 1.0."
    )


def test_mixed_commits_are_counted_in_the_footer():
    line = footer([OLD, NEW, NEW, NOT_RECORDED])
    assert line.startswith("MIXED COMMITS")
    assert "aaaaaaaaaaaa (1 results); bbbbbbbbbbbb (2 results); unknown (1 results)" in line


@pytest.mark.parametrize("others", [[NEW], [DIRTY], [NOT_RECORDED], [NEW, DIRTY]])
def test_different_code_is_refused_unless_asked_for(others):
    with pytest.raises(UsageError, match=f"results of {1 + len(others)} commits: .*--mix-commits"):
        check_one_code([OLD, *others], mix_commits=False)
    check_one_code([OLD, *others], mix_commits=True)


def test_one_commit_on_two_days_and_machines_is_one_code():
    check_one_code([OLD, replace(OLD, date="2026-02-03", processor="other")], mix_commits=False)


def test_results_carry_their_provenance_and_old_files_have_none(tmp_path):
    result = execute(job(), lambda job: SCORES, tmp_path)
    assert result.provenance == current()
    assert read_result(job(), tmp_path) == result
    assert read_results(tmp_path, "paper")["provenance"].tolist() == [current()]
    path = job().result_path(tmp_path)
    record = json.loads(path.read_text())
    assert record["provenance"]["commit"] == current().commit
    del record["provenance"]
    path.write_text(json.dumps(record))
    assert read_result(job(), tmp_path).provenance == NOT_RECORDED


def test_a_table_and_a_report_end_with_their_provenance(tmp_path):
    rows = pd.DataFrame({"a": [1, 2], "b": ["x, y", "z"]})
    write_table(tmp_path / "a.csv", rows, [OLD])
    assert read_table(tmp_path / "a.csv").equals(rows)
    assert table_footer(tmp_path / "a.csv") == footer([OLD])
    text = write_report(tmp_path / "a.md", "# Title\n", [OLD])
    assert text == (tmp_path / "a.md").read_text() == f"# Title\n\n*{footer([OLD])}*\n"


def never(job: Job):
    raise AssertionError("no job may run")


def test_stored_results_of_another_commit_are_refused_before_anything_runs(tmp_path):
    write_result(Result(job(0), SCORES, None, OLD), tmp_path)
    with pytest.raises(UsageError, match="aaaaaaaaaaaa"):
        run_jobs([job(0), job(1)], never, tmp_path, 1)
    # Nothing has to be run: the table is of one commit.
    assert run_jobs([job(0)], never, tmp_path, 1)[0].provenance == OLD
    with pytest.raises(UsageError, match="bbbbbbbbbbbb"):
        run_jobs([job(0)], never, tmp_path, 1, beside=[Result(job(1), SCORES, None, NEW)])


def store(folder: Path, commits: dict[int, Provenance]) -> None:
    """Results of three models on five tables, with the provenance of each fold."""
    for fold, made in commits.items():
        for place, model in enumerate(("ridge", "gradient-swim", "gradient-iid")):
            for dataset in (44956, 44957, 44958, 44959, ENERGY):
                scores = replace(SCORES, test_score=1 + place * (dataset % 7))
                job = Job("paper", dataset, model, fold, RIDGE)
                write_result(Result(job, scores, None, made), folder)


@pytest.mark.parametrize("name", ["tables", "ablation", "figures"])
def test_commands_refuse_mixed_results_and_say_so_if_asked(tmp_path, name, capsys):
    store(tmp_path, {0: OLD, 1: NEW})
    assert main([name, "--out", str(tmp_path)]) == 2
    assert "results of 2 commits: aaaaaaaaaaaa; bbbbbbbbbbbb." in capsys.readouterr().err
    assert not list((tmp_path / "paper").glob("*.*"))
    assert main([name, "--out", str(tmp_path), "--mix-commits"]) == 0
    written = [path for path in (tmp_path / "paper").glob("*.*") if path.suffix != ".png"]
    assert written
    for path in written:
        assert "MIXED COMMITS" in path.read_text(encoding="utf-8"), path.name


def test_exports_and_raw_tables_refuse_results_of_another_commit(made_up, capsys):
    exported = made_up / "out" / "rows-100" / f"{ENERGY}.json"
    exported.parent.mkdir(parents=True)
    exported.write_text(json.dumps({**EXPORTED, "provenance": asdict(OLD)}))
    scores = made_up / "out" / "parquet" / "all-rows" / f"{ENERGY}.csv"
    scores.parent.mkdir(parents=True)
    scores.write_text(f"model,R²,seconds\nrfrboost,0.5,1.0\n# {json.dumps(asdict(OLD))}\n")
    words = ["--data", str(made_up / "data"), "--out", str(made_up / "out")]
    other = known_table(44956)
    copy = pd.DataFrame(np.ones((other.rows, other.columns + 1)))
    copy.columns = [*map(str, range(other.columns)), "target"]
    copy.to_parquet(other.path(made_up / "data"))
    for name in (["exports", "--rows", "100"], ["raw-tables"]):
        assert main([*name, *words]) == 2
        assert "aaaaaaaaaaaa" in capsys.readouterr().err
        # The stored result alone is of one commit.
        assert main([*name, *words, "--tables", str(ENERGY)]) == 0
        assert "Commit aaaaaaaaaaaa" in capsys.readouterr().out


def test_every_file_of_replay_carries_the_commit_and_mixing_is_refused(made_up, capsys):
    words = ["--models", "ridge", "--folds", "0,1"]
    assert command("replay", made_up, *words) == 0
    written = [path for path in (made_up / "out").iterdir() if path.is_file()]
    assert {path.name for path in written} == {"replay.md", "replay.csv", "replay-folds.csv"}
    for path in written:
        assert f"Commit {current().code}" in path.read_text(encoding="utf-8")
    folds = read_table(made_up / "out" / "replay-folds.csv")
    assert folds["fold"].tolist() == [0, 1]
    assert set(folds["commit"]) == {current().code}
    means = read_table(made_up / "out" / "replay.csv")
    assert means["ours"].tolist() == [pytest.approx(folds["ours"].mean())]

    path = next((made_up / "out" / "paper").rglob("fold0.json"))
    record = json.loads(path.read_text())
    record["provenance"]["commit"] = "aaaaaaaaaaaa"
    path.write_text(json.dumps(record))
    capsys.readouterr()
    assert command("replay", made_up, *words) == 2
    assert "aaaaaaaaaaaa" in capsys.readouterr().err
    assert command("replay", made_up, *words, "--mix-commits") == 0
    assert "MIXED COMMITS, as asked for by --mix-commits" in capsys.readouterr().out
    assert "MIXED COMMITS" in (made_up / "out" / "replay.md").read_text(encoding="utf-8")


COMMITTED = [
    path
    for folder in ("experiments/results", "benchmarks")
    for path in sorted((Path(__file__).parents[2] / folder).iterdir())
    if path.suffix in (".md", ".csv")
]


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.name)
def test_every_committed_result_ends_with_its_commit(path):
    last = path.read_text(encoding="utf-8").rstrip("\n").rpartition("\n")[2]
    assert last.startswith("# " if path.suffix == ".csv" else "*")
    assert re.search(r"\b[0-9a-f]{12}\b", last)


@pytest.mark.parametrize("path", [p for p in COMMITTED if p.suffix == ".csv"], ids=lambda p: p.name)
def test_committed_tables_can_be_read(path):
    rows = read_table(path)
    assert len(rows) > 0
    assert rows.iloc[:, 0].notna().all()
