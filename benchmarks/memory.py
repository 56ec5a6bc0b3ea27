"""Peak memory of a large fit and prediction, beyond its data. Run in a process of its own."""

import resource
import subprocess
import sys

import numpy as np

ROWS, COLUMNS = 500_000, 50


def peak_megabytes() -> float:
    """The process's highest resident size so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print the peak beyond X and y, for fit and for fit with prediction."""
    from rfrboost import RFRBoostRegressor

    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, COLUMNS))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    with_data = peak_megabytes()
    model = RFRBoostRegressor(2, n_features=(512, 512), random_state=0).fit(X, y)
    after_fit = peak_megabytes()
    model.predict(X)
    print(f"{after_fit - with_data:.0f} {peak_megabytes() - with_data:.0f}")


def measured() -> tuple[float, float]:
    """The two figures, from a fresh process."""
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory"], capture_output=True, text=True, check=True
    )
    fit, both = run.stdout.split()
    return float(fit), float(both)


if __name__ == "__main__":
    main()
