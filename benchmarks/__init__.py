"""Speed and memory, measured against the hardware's own limit. Run: python -m benchmarks."""
