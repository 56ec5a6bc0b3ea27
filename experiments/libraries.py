"""The libraries that only some commands and models need."""

import importlib.metadata
import importlib.util

from experiments.errors import UsageError

# Every result says which of these it was made with.
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
)


def require(library: str, extra: str, purpose: str) -> None:
    """Refuse, before anything is done, a request that needs a library which is not installed."""
    if not _is_installed(library):
        raise UsageError(
            f"{purpose} needs the library {library}, which is not installed: "
            f"pip install -e '.[{extra}]'."
        )


def _is_installed(library: str) -> bool:
    # Looked up and not imported: some of these take seconds to load.
    try:
        return importlib.util.find_spec(library) is not None
    except ImportError:
        return False


def versions() -> dict[str, str]:
    """The version of each installed library that can move a score."""
    found = {}
    for name in RECORDED:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
