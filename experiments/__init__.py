"""The paper's experiments, run again. Beside the library, and not part of the wheel.

Run ``python -m experiments --help`` from the repository root.
"""
