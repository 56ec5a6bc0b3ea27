"""Jobs: result files, claims, and runs that are killed."""

import json
import os
from pathlib import Path

import pytest
from experiment_runs import SCORES, job
from threadpoolctl import threadpool_info, threadpool_limits

from experiments.models.recipes import Recipe
from experiments.models.scoring import Scores
from experiments.runs import files, jobs, pool


def good_work(job: jobs.Job) -> Scores:
    return SCORES


def bad_work(job: jobs.Job) -> Scores:
    raise FloatingPointError("the Gram matrix is singular")


def test_result_file_is_the_identity_and_reads_back(tmp_path):
    result = jobs.execute(job(3), good_work, tmp_path)
    assert result.scores == SCORES
    assert (tmp_path / "paper" / "44960" / "ridge" / "fold3.json").is_file()
    assert jobs.read_result(job(3), tmp_path) == result
    assert jobs.read_result(job(2), tmp_path) is None


@pytest.mark.parametrize("kept", [0, 1, 40, 0.5, 0.95])
def test_a_truncated_result_is_run_again(tmp_path, kept):
    jobs.execute(job(), good_work, tmp_path)
    path = job().result_path(tmp_path)
    text = path.read_text()
    path.write_text(text[: int(kept * len(text)) if isinstance(kept, float) else kept])
    assert jobs.read_result(job(), tmp_path) is None
    jobs.execute(job(), good_work, tmp_path)
    assert jobs.read_result(job(), tmp_path).scores == SCORES


@pytest.mark.parametrize("text", ["[]", "null", "{}", '{"job": 1, "status": "ok"}', "\x00"])
def test_a_foreign_result_is_run_again(tmp_path, text):
    path = job().result_path(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert jobs.read_result(job(), tmp_path) is None


def test_a_result_of_other_parameters_is_run_again(tmp_path):
    jobs.execute(job(), good_work, tmp_path)
    assert jobs.read_result(job(recipe=Recipe("Ridge", {"l2_head": 0.02})), tmp_path) is None


def test_a_recipe_with_a_pair_of_widths_reads_back(tmp_path):
    wide = job(recipe=Recipe("RFRBoostRegressor", {"n_features": (512, 512)}))
    jobs.execute(wide, good_work, tmp_path)
    assert jobs.read_result(wide, tmp_path) is not None


def test_a_failure_is_recorded_with_its_text_and_no_score(tmp_path):
    result = jobs.execute(job(), bad_work, tmp_path)
    record = json.loads(job().result_path(tmp_path).read_text())
    assert record["status"] == "failed"
    assert record["scores"] is None
    assert record["error"] == result.error == "FloatingPointError: the Gram matrix is singular"
    assert jobs.read_result(job(), tmp_path) is None, "a failure is tried again"


def test_an_interrupted_write_leaves_the_old_file_and_no_rubbish(tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    files.write_atomically(path, "old")

    def killed(source, target):
        assert Path(source).parent == path.parent, "a rename is atomic on one file system only"
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        files.write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_jobs_of_one_dataset_run_together():
    mixed = [job(fold, dataset=dataset) for fold in range(2) for dataset in (44960, 44956)]
    assert [j.dataset for j in pool.by_dataset(mixed)] == [44956, 44956, 44960, 44960]


def count_threads(job: jobs.Job) -> Scores:
    """Test score: the threads of the widest library; train score: of the environment."""
    widest = max(library["num_threads"] for library in threadpool_info())
    return Scores(float(os.environ.get("OMP_NUM_THREADS", "0")), widest, 0.0, 0.0)


@pytest.mark.usefixtures("worker_processes")
def test_workers_start_with_one_thread(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    (result,) = pool.run_jobs([job()], count_threads, tmp_path, 1)
    assert (result.scores.train_score, result.scores.test_score) == (1, 1)
    assert os.environ["OMP_NUM_THREADS"] == "7", "the caller's own setting is put back"


def test_a_job_lowers_libraries_that_are_loaded_already(tmp_path):
    with threadpool_limits(limits=2):
        assert pool.run_claimed(job(), count_threads, tmp_path, wait=False).scores.test_score == 1
        assert count_threads(job()).test_score == 2, "and only for the job"
