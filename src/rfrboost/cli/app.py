"""The commands of ``rfrboost``, their options, and the help that teaches them.

What a command runs is imported when it runs, so that help is there at once.
"""

from typing import Annotated

import typer

from rfrboost import __version__
from rfrboost.cli.tasks import Task

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

TableArgument = Annotated[
    str,
    typer.Argument(metavar="TABLE", help="CSV, TSV or Parquet, also .gz; - reads standard input."),
]
ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="A model file that fit wrote.")]
TargetOption = Annotated[
    str, typer.Option("--target", "-t", metavar="COLUMN", help="The column to predict.")
]
TaskOption = Annotated[
    Task | None,
    typer.Option(
        metavar="TASK",
        help="regression or classification (default: the column decides).",
    ),
]
DropOption = Annotated[
    list[str],
    typer.Option("--drop", "-d", metavar="COLUMN", help="Leave this column out (may be repeated)."),
]
SecondsOption = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS", min=0.0, help="End a fit after so long, with the best there is."
    ),
]
SeedOption = Annotated[
    int, typer.Option(metavar="NUMBER", min=0, max=2**31 - 1, help="Same seed, same result.")
]
OutOption = Annotated[
    str | None,
    typer.Option(
        "--out", "-o", metavar="FILE", help="Write a .csv, .tsv or .parquet file, or - for CSV."
    ),
]


def version(wanted: bool) -> None:
    """Print the version and end."""
    if wanted:
        print(f"rfrboost {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    _: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """From a table in a file to predictions in a file, without writing code.

    Columns may hold numbers, text, dates (2024-12-31) and holes. Nothing has to be scaled or tuned.

    **Start here**

    ```
    rfrboost demo  # a table, a model, predictions, in a minute
    rfrboost evaluate houses.csv --target price  # how good would a model be?
    rfrboost fit houses.csv --target price --out houses.rfrboost
    rfrboost predict houses.rfrboost new.csv --out prices.csv
    ```
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def fit(
    table: TableArgument,
    target: TargetOption,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The model file (default: the table's name .rfrboost).",
        ),
    ] = None,
    task: TaskOption = None,
    drop: DropOption = [],  # noqa: B006
    max_seconds: SecondsOption = None,
    seed: SeedOption = 0,
) -> None:
    """Fit a model to a table and save it.

    Rows without a label are left out. Text, or few different whole numbers, make classes; other
    numbers are predicted as numbers. What was decided is said on standard error.

    **Examples**

    ```
    rfrboost fit houses.csv --target price
    rfrboost fit wine.parquet --target quality --task regression --drop id -o wine.rfrboost
    zcat log.csv.gz | rfrboost fit - --target clicked --max-seconds 60 -o clicks.rfrboost
    ```
    """
    from rfrboost.cli.fit import fit as run

    run(table, target, out, task, drop, max_seconds, seed)


@app.command()
def predict(
    model: ModelArgument,
    table: TableArgument,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of every class.")
    ] = False,
    interval: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Add bounds, or a set of classes, that hold the label so often: 0.9.",
        ),
    ] = None,
    out: OutOption = "-",
) -> None:
    """Predict every row of a table, in its order.

    The table is read in blocks and may be larger than memory. Columns are found by name; others
    than those of fit are ignored. The result appears when it is complete, or not at all.

    **Examples**

    ```
    rfrboost predict houses.rfrboost new.csv --out prices.csv
    rfrboost predict houses.rfrboost new.parquet --interval 0.9 --out prices.parquet
    rfrboost predict clicks.rfrboost - --proba < new.csv | head
    ```
    """
    if interval is not None and not 0 < interval < 1:
        raise typer.BadParameter(f"{interval} is not between 0 and 1", param_hint="'--interval'")
    from rfrboost.cli.predict import predict as run

    run(model, table, out or "-", proba, interval)


@app.command()
def evaluate(
    table: TableArgument,
    target: TargetOption,
    out: OutOption = None,
    task: TaskOption = None,
    drop: DropOption = [],  # noqa: B006
    folds: Annotated[
        int, typer.Option(metavar="NUMBER", min=2, max=100, help="Parts of the cross-validation.")
    ] = 5,
    max_seconds: SecondsOption = None,
    seed: SeedOption = 0,
) -> None:
    """Score a model by cross-validation, beside boosted trees and a linear model.

    Classes: accuracy, log loss, expected calibration error. Numbers: RMSE, MAE, R². Every figure is
    of rows that the model has not seen; --out keeps those of every fold.

    **Examples**

    ```
    rfrboost evaluate houses.csv --target price
    rfrboost evaluate wine.csv --target quality --task regression --folds 10 --out scores.csv
    ```
    """
    from rfrboost.cli.evaluate import evaluate as run

    run(table, target, out, task, drop, folds, max_seconds, seed)


@app.command()
def explain(
    model: ModelArgument,
    table: TableArgument,
    out: OutOption = None,
    rows: Annotated[
        int, typer.Option(metavar="NUMBER", min=2, help="Draw so many rows at most.")
    ] = 1000,
    seed: SeedOption = 0,
) -> None:
    """Show how much every column matters to a model's predictions for a table.

    The effect of a column is the share of the predictions' variance that shuffling it moves. No
    labels are needed.

    **Examples**

    ```
    rfrboost explain houses.rfrboost houses.csv
    rfrboost explain houses.rfrboost houses.csv --out effects.csv
    ```
    """
    from rfrboost.cli.explain import explain as run

    run(model, table, out, rows, seed)


@app.command()
def info(model: ModelArgument) -> None:
    """Print what a model file says about itself; its arrays are not loaded.

    **Example**

    ```
    rfrboost info houses.rfrboost
    ```
    """
    from rfrboost.cli.info import info as run

    run(model)


@app.command()
def demo(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="Where the demo's files go.")
    ] = "rfrboost-demo",
) -> None:
    """Make a table, then evaluate, fit, predict and explain, showing each command.

    **Example**

    ```
    rfrboost demo
    ```
    """
    from rfrboost.cli.demo import demo as run

    run(folder)
