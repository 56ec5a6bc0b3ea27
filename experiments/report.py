"""The ``report`` command: one page with ours beside the published figures.

Write one self-contained HTML page, readable without a network: the replayed and the searched
runs beside the published ones with their differences and tests, sortable tables, the figures,
and what circles, large-scale and regret left in their folders. It reads the subfolders replay,
run, circles, large-scale and regret of --out, and writes report.html there.
"""

import argparse
import os
import platform

import pandas as pd

from experiments.arguments import add_published_runs, add_selection
from experiments.errors import UsageError
from experiments.files import write_atomically
from experiments.folders import folder_sections
from experiments.libraries import require, versions
from experiments.machine import processor
from experiments.naming import LOOKS
from experiments.page import page, paragraph, table
from experiments.protocols import PROTOCOLS
from experiments.results import read_results
from experiments.sources import published_runs

NAME = "report"
SUMMARY = "one HTML page: ours beside the published figures, tables and pictures"
TITLE = "Random feature representation boosting: the experiments"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_selection(parser, list(LOOKS), out="experiments-output")
    add_published_runs(parser)


def run(arguments: argparse.Namespace) -> int:
    """Collect what is there, then write the page."""
    require("matplotlib", "experiments", "The report")
    require("scikit_posthocs", "experiments", "The report")
    import matplotlib

    from experiments.pictures import STYLE
    from experiments.sections import published_section

    published = published_runs(arguments)
    check_selection(arguments, set(published["dataset"]))
    published = selected(published, arguments)
    with matplotlib.rc_context(STYLE):
        sections = own_sections(arguments, published)
        if not sections:
            raise UsageError(
                f"Nothing to report in {arguments.out}: it has no results of replay, run, circles, "
                "large-scale or regret for these tables and models."
            )
        sections["Published runs"] = published_section(published)
    sections["Machine and versions"] = machine_section()
    path = arguments.out / "report.html"
    write_atomically(path, page(TITLE, introduction(), sections))
    print(path)
    return 0


def check_selection(arguments: argparse.Namespace, datasets: set[int]) -> None:
    """Refuse names that nothing can have; a source may well lack some that others have."""
    unknown = [model for model in arguments.models or () if model not in LOOKS]
    unknown += [str(dataset) for dataset in arguments.tables or () if dataset not in datasets]
    if unknown:
        raise UsageError(
            f"Unknown {', '.join(unknown)}: the models are {', '.join(LOOKS)}, and the tables "
            "those of the published runs."
        )


def selected(runs: pd.DataFrame, arguments: argparse.Namespace) -> pd.DataFrame:
    """The runs of the tables and models that were asked for."""
    if arguments.tables is not None:
        runs = runs[runs["dataset"].isin(arguments.tables)]
    if arguments.models is not None:
        runs = runs[runs["model"].isin(arguments.models)]
    return runs


def own_sections(arguments: argparse.Namespace, published: pd.DataFrame) -> dict[str, str]:
    """The sections of everything that was run, by title."""
    from experiments.sections import replay_section, run_section

    found = {}
    replayed = selected(read_results(arguments.out / "replay", "paper"), arguments)
    if not replayed.empty:
        found["Published hyper-parameters, our code"] = replay_section(replayed, published)
    for protocol in PROTOCOLS:
        searched = selected(read_results(arguments.out / "run", protocol), arguments)
        if not searched.empty:
            title = f"Our searches, protocol {protocol}"
            found[title] = run_section(searched, published, protocol)
    return found | folder_sections(arguments.out)


def introduction() -> str:
    """What the page is, in two sentences."""
    return paragraph(
        "The paper's experiments, run again with this code, beside the published runs. Click on "
        "a column's header to sort by it, once more to reverse.",
        "lead",
    )


def machine_section() -> str:
    """Where the page was made, and with which versions."""
    facts = {"machine": f"{processor()}, {os.cpu_count()} cores", "system": platform.system()}
    facts |= {"Python": platform.python_version()} | versions()
    return table(pd.DataFrame({"what": list(facts), "which": list(facts.values())}))
