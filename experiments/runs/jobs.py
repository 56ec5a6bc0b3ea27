"""Jobs and their result files.

A job is one fit, or one search and a fit, named by (protocol, dataset, model, fold). Its result
file is ``OUT/<protocol>/<dataset>/<model>/fold<k>.json``. A job with a stored good result is not
run again, so that a command that was stopped continues with the jobs that are missing.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from experiments.data.tables import known_tables
from experiments.models.recipes import Recipe
from experiments.models.scoring import Scores
from experiments.models.spaces import Search
from experiments.runs.files import write_atomically
from experiments.runs.provenance import NOT_RECORDED, Provenance, current

# The columns of stored results as a frame: those of the published runs, and what made them.
COLUMNS = [
    "protocol",
    "task",
    "dataset",
    "model",
    "fold",
    "test_score",
    "fit_seconds",
    "search",
    "provenance",
]


@dataclass(frozen=True)
class Job:
    """One fit, with the recipe that is fitted or the search that finds it."""

    protocol: str
    dataset: int | str
    model: str
    fold: int
    recipe: Recipe | Search

    def result_path(self, out: Path) -> Path:
        """The result file of this job in the folder ``out``."""
        return out / self.protocol / str(self.dataset) / self.model / f"fold{self.fold}.json"

    def stored(self) -> dict:
        """The job as its result file has it (JSON has lists and no tuples)."""
        return json.loads(json.dumps(asdict(self)))


@dataclass(frozen=True)
class Result:
    """The scores of a job, or the text of the error that ended it, and what it was made with.

    Exactly one of ``scores`` and ``error`` is None.
    """

    job: Job
    scores: Scores | None
    error: str | None
    provenance: Provenance = NOT_RECORDED


Work = Callable[[Job], Scores]


def execute(job: Job, work: Work, out: Path) -> Result:
    """Do the work and write its result file; an error of the work is written too."""
    try:
        result = Result(job, work(job), None, current())
    except Exception as error:  # a fit that fails must not stop the other jobs
        result = Result(job, None, f"{type(error).__name__}: {error}", current())
    write_result(result, out)
    return result


def write_result(result: Result, out: Path) -> None:
    """Write the result file of a job atomically."""
    record = {
        "job": result.job.stored(),
        "status": "ok" if result.error is None else "failed",
        "scores": result.scores and asdict(result.scores),
        "error": result.error,
        "provenance": asdict(result.provenance),
    }
    write_atomically(result.job.result_path(out), json.dumps(record, indent=1) + "\n")


def read_result(job: Job, out: Path) -> Result | None:
    """The stored good result of exactly this job, or None if the job has to be run.

    It has to be run if there is no file, the file is incomplete, it was made with another recipe or
    search, or it records a failure, whose cause may be gone.
    """
    try:
        record = json.loads(job.result_path(out).read_text(encoding="utf-8"))
        if record["job"] != job.stored() or record["status"] != "ok":
            return None
        return Result(job, Scores(**record["scores"]), None, _provenance(record))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _provenance(record: dict) -> Provenance:
    """The provenance of a result file; older files have none."""
    return Provenance(**record.get("provenance", {}))


def read_results(out: Path, protocol: str) -> pd.DataFrame:
    """All good results below ``out`` for a protocol, one row per fold; other files are left out.

    The columns are those of the published runs, so that tables and figures take either.
    """
    rows = [_row(path, protocol) for path in sorted((out / protocol).glob("*/*/fold*.json"))]
    return pd.DataFrame([row for row in rows if row is not None], columns=COLUMNS)


def _row(path: Path, protocol: str) -> tuple | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        job = record["job"]
        scores = record["scores"]
        if record["status"] != "ok":
            return None
        task = known_tables()[job["dataset"]].task
        identity = (job["dataset"], job["model"], job["fold"])
        measured = (scores["test_score"], scores["fit_seconds"])
        return (protocol, task, *identity, *measured, _search(job["recipe"]), _provenance(record))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _search(recipe: dict) -> str:
    if "trials" not in recipe:
        return ""
    return f"{recipe['trials']} trials on {recipe['inner_folds']} inner folds"


def searches(results: pd.DataFrame) -> str:
    """The length of the searches behind these results, in words; empty if there was no search."""
    return " or ".join(sorted(set(results["search"]) - {""}))


def provenances(results: list[Result]) -> list[Provenance]:
    """What the good results were made with; failed ones are in no table."""
    return [result.provenance for result in results if result.scores is not None]
