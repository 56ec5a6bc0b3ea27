"""One job, and its result file.

A job is (protocol, dataset, model, fold): one fit, or one search and a fit. Its result file,
``OUT/<protocol>/<dataset>/<model>/fold<k>.json``, is its identity: a run that was stopped
goes on where it was, because what has a good result is not run again.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from experiments.files import write_atomically
from experiments.models import Recipe
from experiments.scoring import Scores
from experiments.spaces import Search


@dataclass(frozen=True)
class Job:
    """One fit, and the recipe it is fitted with, or the search that has to find it."""

    protocol: str
    dataset: int | str
    model: str
    fold: int
    recipe: Recipe | Search

    def result_path(self, out: Path) -> Path:
        """The file that says whether this job is done, and how it went."""
        return out / self.protocol / str(self.dataset) / self.model / f"fold{self.fold}.json"

    def stored(self) -> dict:
        """The job as its result file spells it (JSON has lists and no tuples)."""
        return json.loads(json.dumps(asdict(self)))


@dataclass(frozen=True)
class Result:
    """How a job went: its scores, or the text of the error that stopped it; never both."""

    job: Job
    scores: Scores | None
    error: str | None


Work = Callable[[Job], Scores]


def execute(job: Job, work: Work, out: Path) -> Result:
    """Do the work and write its result; an error of the work is a result as well."""
    try:
        result = Result(job, work(job), None)
    except Exception as error:  # any failure of a fit is data here, and must not stop the others
        result = Result(job, None, f"{type(error).__name__}: {error}")
    write_result(result, out)
    return result


def write_result(result: Result, out: Path) -> None:
    """Write the result file of a job, whole or not at all."""
    record = {
        "job": result.job.stored(),
        "status": "ok" if result.error is None else "failed",
        "scores": result.scores and asdict(result.scores),
        "error": result.error,
    }
    write_atomically(result.job.result_path(out), json.dumps(record, indent=1) + "\n")


def read_result(job: Job, out: Path) -> Result | None:
    """The stored good result of exactly this job, or None when it has to be run.

    It has to be run when there is no file, when the file is cut off or not ours, when it was
    made with another recipe or search, and when it records a failure: its cause may be gone by now.
    """
    try:
        record = json.loads(job.result_path(out).read_text(encoding="utf-8"))
        if record["job"] != job.stored() or record["status"] != "ok":
            return None
        return Result(job, Scores(**record["scores"]), None)
    except (OSError, ValueError, KeyError, TypeError):
        return None
