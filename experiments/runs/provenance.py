"""Provenance: the code, libraries and machine that a result was made with.

Every result file of a job holds a :class:`Provenance`, and every Markdown or CSV file that a
command writes ends with one line made from it (:func:`footer`). A table of results of different
commits is refused (:func:`check_one_code`) unless ``--mix-commits`` asks for it; the table then
says so. Results that were stored before provenance existed have the commit "unknown".
"""

import functools
import importlib.metadata
import os
import platform
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from threadpoolctl import threadpool_info

from experiments.data.tables import REPOSITORY
from experiments.requests import UsageError

UNKNOWN = "unknown"
# Digits of a commit that are printed and stored: git itself needs 7 to 10 in a small repository.
DIGITS = 12
# Uncommitted changes of these files make a tree "not clean"; results and pages do not matter.
CODE_FILES = ("*.py", "pyproject.toml")
# The libraries that can change a score, ours first.
RECORDED = (
    "rfrboost",
    "numpy",
    "scipy",
    "scikit-learn",
    "pandas",
    "optuna",
    "xgboost",
    "lightgbm",
    "catboost",
    "torch",
    "onnxruntime",
)


@dataclass(frozen=True)
class Provenance:
    """What a result was made with.

    Attributes
    ----------
    commit : the first 12 digits of the git commit, or "unknown"
    clean : whether all code files were as in that commit; None where git cannot tell
    versions : the version of each installed library of ``RECORDED``
    processor : the name of the processor
    threads : the number of threads that BLAS may use
    date : the day, as YYYY-MM-DD
    """

    commit: str = UNKNOWN
    clean: bool | None = None
    versions: dict[str, str] = field(default_factory=dict, hash=False)
    processor: str = UNKNOWN
    threads: int | None = None
    date: str = UNKNOWN

    @property
    def code(self) -> str:
        """The commit, and whether the code differed from it. Equal texts mean the same code."""
        return f"{self.commit} with uncommitted changes" if self.clean is False else self.commit

    @property
    def machine(self) -> str:
        """Processor, threads and versions in one text."""
        threads = "threads unknown" if self.threads is None else f"threads: {self.threads}"
        libraries = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return "; ".join(filter(None, [f"{self.processor}, {threads}", libraries]))


# The provenance of a result that was stored before results recorded it.
NOT_RECORDED = Provenance()


def current(threads: int | None = None) -> Provenance:
    """The provenance of a result that this process makes now.

    ``threads`` is for results of other processes, whose number of threads was set by the caller.
    """
    commit, clean = _commit()
    return Provenance(
        commit=commit,
        clean=clean,
        versions=versions(),
        processor=processor(),
        threads=blas_threads() if threads is None else threads,
        date=date.today().isoformat(),
    )


@functools.cache
def _commit() -> tuple[str, bool | None]:
    """The commit of the repository and whether its code is unchanged; asked once per process.

    Once, because the process runs the code that it has imported, whatever happens to the files
    later.
    """
    try:
        commit = _git("rev-parse", "HEAD")
        changes = _git("status", "--porcelain", "--untracked-files=all", "--", *CODE_FILES)
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN, None
    return commit.strip()[:DIGITS], not changes.strip()


def _git(*words: str) -> str:
    command = ["git", "-C", str(REPOSITORY), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def versions() -> dict[str, str]:
    """The version of each installed library of ``RECORDED``."""
    found = {}
    for name in RECORDED:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def processor() -> str:
    """The name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def blas_threads() -> int:
    """The number of threads that BLAS may use in this process now."""
    pools = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return max(pools, default=os.cpu_count() or 1)


def check_one_code(provenances: Iterable[Provenance], mix_commits: bool) -> None:
    """Raise UsageError if results of different code would be in one table, unless asked for."""
    codes = sorted({provenance.code for provenance in provenances})
    if len(codes) > 1 and not mix_commits:
        raise UsageError(
            f"These are results of {len(codes)} commits: {'; '.join(codes)}. Run them again in a "
            "fresh --out folder, or pass --mix-commits, which says so in the table."
        )


def footer(provenances: Iterable[Provenance]) -> str:
    """One line: the commit, days, machine and versions behind some results; all of them if several.

    Results of several commits are counted by commit, after a warning.
    """
    known = list(provenances)
    if not known:
        return "No results."
    codes = Counter(provenance.code for provenance in known)
    if len(codes) == 1:
        (code,) = codes
        begin = f"Commit {code}"
    else:
        counts = "; ".join(f"{code} ({count} results)" for code, count in sorted(codes.items()))
        begin = f"MIXED COMMITS, as asked for by --mix-commits: {counts}"
    dated = [provenance for provenance in known if provenance.date != UNKNOWN]
    if not dated:
        return f"{begin}; date and machine unknown (stored before results recorded them)."
    days = sorted({provenance.date for provenance in dated})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    machines = sorted({provenance.machine for provenance in dated})
    return f"{begin}. Made {when} on {' | '.join(machines)}."


def markdown_footer(provenances: Iterable[Provenance]) -> str:
    """The footer as the last paragraph of a Markdown file."""
    return f"\n*{footer(provenances)}*\n"


def csv_footer(provenances: Iterable[Provenance]) -> str:
    """The footer as the last line of a CSV file; read such files with ``comment="#"``."""
    return f"# {footer(provenances)}\n"
