"""Early stopping: when held-out rows say that another layer is not worth fitting.

One rule for both loops, that of the paper (:mod:`rfrboost._paper.boost`) and that of the ensemble's
members (:mod:`rfrboost._auto.members`).
"""

from dataclasses import dataclass

import numpy as np

# Layers without an improvement after which a fit stops. Held-out losses of single layers are noisy;
# with fewer layers fits stop too early on small tables.
PATIENCE = 4
# The share of the best loss so far that a lower one must gain to count as an improvement.
IMPROVEMENT = 1e-3
# Layers that are fitted before patience counts: where few inputs matter, the first layers only find
# out which ones.
FEWEST_LAYERS = 6


@dataclass
class Stopping:
    """The lowest held-out loss so far, and the number of layers that gave it.

    Where held-out rows have a score too, the higher score is better whatever the loss, and the loss
    decides between equal scores.
    """

    best_loss: float = np.inf
    best_layers: int = 0
    best_score: float = 0.0

    def improves(self, loss: float, n_layers: int, score: float = 0.0) -> bool:
        """Note the loss after ``n_layers``; whether it is the best by more than IMPROVEMENT."""
        if score != self.best_score:
            if score < self.best_score:
                return False
            self.best_score, self.best_loss, self.best_layers = score, loss, n_layers
            return True
        margin = IMPROVEMENT * abs(self.best_loss) if self.best_loss < np.inf else 0.0
        if not loss < self.best_loss - margin:
            return False
        self.best_loss = loss
        self.best_layers = n_layers
        return True

    def stalled(self, n_layers: int) -> bool:
        """Whether the last PATIENCE of ``n_layers`` have brought no improvement."""
        return n_layers >= FEWEST_LAYERS and n_layers - self.best_layers >= PATIENCE
