"""The paper's algorithms: representation boosting, greedy and by gradients."""
