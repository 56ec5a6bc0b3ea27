"""The library's sources at two commits, and processes that import one or the other.

Both commands that compare commits, ``benchmarks.fingerprints`` and ``benchmarks.against``, run the
benchmark code of the working tree on each of two folders of sources: that of the working tree as
it is, changes that are not committed included, and that of a commit, unpacked to a temporary
folder. Only public names of the library may be used in such processes, since its private modules
may lie elsewhere in the other commit.
"""

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import scipy
import sklearn

ROOT = Path(__file__).resolve().parents[1]
#: the sources of the working tree
HERE = ROOT / "src"
#: what the common BLAS and OpenMP libraries read to decide how many threads they start
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def git(*arguments: str) -> bytes:
    """The output of a git command in this repository; git's own message ends the program."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True)
    if done.returncode:
        sys.exit(f"git {' '.join(arguments)} failed: {done.stderr.decode().strip()}")
    return done.stdout


@contextmanager
def sources_at(commit: str) -> Iterator[Path]:
    """The folder ``src`` of a commit, in a temporary folder; the repository is left alone."""
    archive = git("archive", "--format=tar", commit, "src")
    with TemporaryDirectory(prefix="rfrboost-") as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(folder, filter="data")
        yield Path(folder).resolve() / "src"


def start(
    sources: Path, module: str, arguments: Sequence[str], threads: int
) -> subprocess.Popen[str]:
    """Start ``python -m module`` with the library imported from ``sources``; stdout is a pipe."""
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads))
    environment["PYTHONPATH"] = os.pathsep.join([str(sources), str(ROOT)])
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", module, *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )


def check_imported_from(sources: Path) -> None:
    """Refuse to measure another copy of the library than the one that was asked for."""
    import rfrboost

    found = Path(rfrboost.__file__).resolve()
    if not found.is_relative_to(sources):
        sys.exit(f"rfrboost was imported from {found}, not from {sources}.")


def description(commit: str) -> str:
    """What was compared and with what: one line for the top of a report."""
    here = git("rev-parse", "--short=12", "HEAD").decode().strip()
    there = git("rev-parse", "--short=12", f"{commit}^{{commit}}").decode().strip()
    changed = " with changes" if git("status", "--porcelain", "src") else ""
    return (
        f"Working tree ({here}{changed}) against {there}; "
        f"Python {sys.version.split()[0]}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}; {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    )
