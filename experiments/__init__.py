"""The paper's experiments, run again: a sibling of the library, never part of the wheel.

Run ``python -m experiments --help`` from the repository root.
"""
