"""The ``report`` command: one HTML page of our results and the published ones.

Write one self-contained HTML page that needs no network: the replayed and the searched runs,
compared with the published ones, with tests, sortable tables and figures, and the tables and
figures of circles, large-scale and regret. It reads the subfolders replay, run, circles,
large-scale and regret of --out, and writes report.html there.
"""

import argparse
import os
import platform

import pandas as pd

from experiments.commands.arguments import add_published_runs, add_selection
from experiments.commands.stored.source import published_runs
from experiments.data.protocols import OF_ARRAYS
from experiments.models.naming import LOOKS
from experiments.reports.html.page import page, paragraph, table
from experiments.reports.html.sections import folder_sections
from experiments.requests import UsageError, require
from experiments.runs.files import write_atomically
from experiments.runs.jobs import read_results
from experiments.runs.provenance import check_one_code, footer, processor, versions

NAME = "report"
SUMMARY = "one HTML page: our results and the published ones, as tables and figures"
TITLE = "Random feature representation boosting: the experiments"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_selection(parser, list(LOOKS), out="experiments-output")
    add_published_runs(parser)


def run(arguments: argparse.Namespace) -> int:
    """Make the sections of all results that exist, then write the page."""
    require("matplotlib", "experiments", "The report")
    require("scikit_posthocs", "experiments", "The report")
    import matplotlib

    from experiments.reports.figures import STYLE
    from experiments.reports.html.sections import published_section

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
    """Raise UsageError for models and tables that are unknown to all sources."""
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
    """The sections of our results, by title, each with its provenance."""
    from experiments.reports.html.sections import replay_section, run_section

    found = {}
    replayed = selected(read_results(arguments.out / "replay", "paper"), arguments)
    if not replayed.empty:
        title = "Published hyper-parameters, our code"
        found[title] = replay_section(replayed, published) + origin(replayed, arguments)
    for protocol in OF_ARRAYS:
        searched = selected(read_results(arguments.out / "run", protocol), arguments)
        if not searched.empty:
            title = f"Our searches, protocol {protocol}"
            section = run_section(searched, published, protocol)
            found[title] = section + origin(searched, arguments)
    return found | folder_sections(arguments.out)


def origin(runs: pd.DataFrame, arguments: argparse.Namespace) -> str:
    """What the runs of a section were made with; several commits are refused unless asked for."""
    check_one_code(runs["provenance"], arguments.mix_commits)
    return paragraph(footer(runs["provenance"]), "soft")


def introduction() -> str:
    """What the page shows, and how to sort."""
    return paragraph(
        "The paper's experiments, run again with this code, and the published runs. Click on a "
        "column's header to sort by it; click again to reverse the order.",
        "lead",
    )


def machine_section() -> str:
    """The machine and the versions that the page was made with."""
    facts = {"machine": f"{processor()}, {os.cpu_count()} cores", "system": platform.system()}
    facts |= {"Python": platform.python_version()} | versions()
    return table(pd.DataFrame({"what": list(facts), "which": list(facts.values())}))
