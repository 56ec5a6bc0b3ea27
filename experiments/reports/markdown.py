"""Frames and failures as Markdown."""

import numpy as np
import pandas as pd

from experiments.runs.jobs import Result


def failure_list(failures: list[Result]) -> str:
    """One line for each failed job, with the text of its error."""
    lines = [f"- {r.job.dataset} {r.job.model} fold {r.job.fold}: {r.error}" for r in failures]
    return "\n".join(lines) + "\n"


def failed_section(results: list[Result]) -> list[str]:
    """The section on jobs that failed, which are in no mean; none if all went well."""
    failures = [result for result in results if result.error is not None]
    if not failures:
        return []
    return [f"## Failed: {len(failures)} of {len(results)}, in no mean\n\n{failure_list(failures)}"]


def markdown_table(frame: pd.DataFrame) -> str:
    """A frame as a Markdown table; floats have four decimals, NaN is a dash."""
    lines = [list(frame.columns), ["---"] * frame.shape[1]]
    lines += [[_cell(value) for value in row] for row in frame.itertuples(index=False)]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    # Adding 0.0 turns the -0.0 that rounding leaves into 0.0.
    return "–" if np.isnan(value) else f"{round(value, 4) + 0.0:.4f}"
