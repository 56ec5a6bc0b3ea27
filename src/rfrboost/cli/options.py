"""Arguments and options that several commands have, and how their values are read."""

from typing import Annotated

import typer

from rfrboost.cli.request import LossName, Task

#: what --separator and --decimal may be called
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|"}
DECIMALS = {"point": ".", ".": ".", "comma": ",", ",": ","}


def positive(seconds: float | None) -> float | None:
    """Refuse a time limit in which nothing can be fitted."""
    if seconds is not None and not seconds > 0:
        raise typer.BadParameter("a time limit must be more than 0 seconds")
    return seconds


def separator(text: str | None) -> str | None:
    """The separator that a word or a character stands for."""
    if text is None:
        return None
    found = SEPARATORS.get(text.lower(), text)
    if len(found) != 1 or found in '"\r\n':
        raise typer.BadParameter(
            f"{text!r} is not one character, nor one of {', '.join(SEPARATORS)}"
        )
    return found


def decimal(text: str | None) -> str | None:
    """The decimal sign that a word or a character stands for."""
    if text is None:
        return None
    if text.lower() not in DECIMALS:
        raise typer.BadParameter(f"{text!r} is neither point nor comma")
    return DECIMALS[text.lower()]


TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV, TSV, JSON, Excel, Parquet or Feather file, also compressed; - reads standard "
        "input.",
    ),
]
ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="Model file written by fit.")]
TargetOption = Annotated[
    str, typer.Option("--target", "-t", metavar="COLUMN", help="Column to predict.")
]
TaskOption = Annotated[
    Task | None,
    typer.Option(
        metavar="TASK",
        help="regression or classification (default: chosen by the target column).",
    ),
]
DropOption = Annotated[
    list[str],
    typer.Option("--drop", "-d", metavar="COLUMN", help="Ignore this column (can be repeated)."),
]
SecondsOption = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", callback=positive, help="Time limit per fit, in seconds."),
]
SeparatorOption = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER",
        callback=separator,
        help="Separator of the cells in text: comma, semicolon, tab, pipe or any character "
        "(default: detected).",
    ),
]
DecimalOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIGN",
        callback=decimal,
        help="Decimal sign of the numbers in text: point or comma (default: detected).",
    ),
]
SeedOption = Annotated[
    int,
    typer.Option(
        metavar="NUMBER",
        min=0,
        max=2**31 - 1,
        help="Random seed; the same seed gives the same result.",
    ),
]
OutOption = Annotated[
    str | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Output file (.csv, .tsv or .parquet); - writes CSV to standard output.",
    ),
]
ProtectOption = Annotated[
    bool,
    typer.Option(
        "--protect-formulas",
        help="Put an apostrophe before text cells of CSV that a spreadsheet would run as formulas.",
    ),
]
WeightOption = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column with the weights of the rows.")
]
GroupsOption = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column with the groups of the rows (customer, site, day), which are held out as a "
        "whole; not an input.",
    ),
]
CategoricalOption = Annotated[
    list[str],
    typer.Option(
        metavar="COLUMN",
        help="Read this column as categories, also if it holds numbers (can be repeated).",
    ),
]
LossOption = Annotated[
    LossName | None,
    typer.Option(
        metavar="NAME",
        help="Loss of a regression: squared_error (default), huber, quantile or poisson.",
    ),
]
QuantileOption = Annotated[
    list[float],
    typer.Option(
        metavar="LEVEL",
        help="Level for --loss quantile, such as 0.9 (can be repeated, rising).",
    ),
]
BagsOption = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER", min=1, max=100, help="Number of cross-validation folds in the fit."
    ),
]
PlotsOption = Annotated[
    str | None,
    typer.Option(metavar="FOLDER", help="Write figures of scores, errors and importances."),
]
ReportTargetOption = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        metavar="COLUMN",
        help="Column to predict (default: the only one that is not an input of the model).",
    ),
]
FoldsOption = Annotated[
    int,
    typer.Option(metavar="NUMBER", min=2, max=100, help="Number of cross-validation folds."),
]
IntervalOption = Annotated[
    float | None,
    typer.Option(
        metavar="COVERAGE",
        help="Add prediction intervals (or sets) with this coverage, such as 0.9.",
    ),
]
IdOption = Annotated[
    list[str],
    typer.Option(
        "--id", metavar="COLUMN", help="Keep this column in the output (can be repeated)."
    ),
]
