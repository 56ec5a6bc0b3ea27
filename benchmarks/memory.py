"""Peak memory of a large fit and of its prediction, beyond the data, in a new process."""

import subprocess
import sys

import numpy as np

from experiments.runs.peak_memory import megabytes

ROWS = 500_000
COLUMNS = 50


def main() -> None:
    """Print the peak in MB beyond X and y: of the fit, and of fit and prediction."""
    from rfrboost import RFRBoostRegressor

    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, COLUMNS))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    with_data = megabytes("VmRSS")
    model = RFRBoostRegressor(2, n_features=(512, 512), l2_step=1e-3, random_state=0).fit(X, y)
    after_fit = megabytes("VmHWM")
    model.predict(X)
    print(f"{after_fit - with_data:.0f} {megabytes('VmHWM') - with_data:.0f}")


def measured() -> tuple[float, float]:
    """The two figures that :func:`main` prints, from a new process."""
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory"], capture_output=True, text=True, check=True
    )
    fit, both = run.stdout.split()
    return float(fit), float(both)


if __name__ == "__main__":
    main()
