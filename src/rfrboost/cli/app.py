"""The commands of ``rfrboost``: their options and their help.

A command imports what it runs when it runs, so that help appears quickly.
"""

from typing import Annotated

import typer

from rfrboost import __version__
from rfrboost.cli.options import (
    BagsOption,
    CategoricalOption,
    DecimalOption,
    DropOption,
    FoldsOption,
    GroupsOption,
    IdOption,
    IntervalOption,
    LossOption,
    ModelArgument,
    OutOption,
    PlotsOption,
    ProtectOption,
    QuantileOption,
    ReportTargetOption,
    SecondsOption,
    SeedOption,
    SeparatorOption,
    TableArgument,
    TargetOption,
    TaskOption,
    WeightOption,
)
from rfrboost.cli.request import LossName, Roles, Settings, Source

app: typer.Typer = typer.Typer(
    add_completion=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def version(wanted: bool) -> None:
    """Print the version and exit."""
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

    Columns may contain numbers, text, dates (2024-12-31) and missing values. Nothing has to be
    scaled or tuned.

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
            help="Model file (default: the table's name with .rfrboost).",
        ),
    ] = None,
    task: TaskOption = None,
    drop: DropOption = [],  # noqa: B006
    weight: WeightOption = None,
    groups: GroupsOption = None,
    categorical: CategoricalOption = [],  # noqa: B006
    loss: LossOption = None,
    quantile: QuantileOption = [],  # noqa: B006
    bags: BagsOption = None,
    max_seconds: SecondsOption = None,
    seed: SeedOption = 0,
    separator: SeparatorOption = None,
    decimal: DecimalOption = None,
) -> None:
    """Fit a model to a table and save it.

    A target of text, or of up to ten different whole numbers, means classification; other numbers
    mean regression. Rows without a target value are left out. Both are reported on standard error.

    **Examples**

    ```
    rfrboost fit houses.csv --target price
    rfrboost fit wine.parquet --target quality --task regression --drop id -o wine.rfrboost
    zcat log.csv.gz | rfrboost fit - --target clicked --max-seconds 60 -o clicks.rfrboost
    ```
    """
    if quantile and loss != LossName.QUANTILE:
        raise typer.BadParameter("needs --loss quantile", param_hint="'--quantile'")
    from rfrboost.cli.fit import fit as run

    run(
        Source(table, separator, decimal),
        Roles(target, task, tuple(drop), weight, groups, tuple(categorical)),
        out,
        Settings(seed, max_seconds, loss, tuple(quantile), bags),
    )


@app.command()
def predict(
    model: ModelArgument,
    table: TableArgument,
    id_columns: IdOption = [],  # noqa: B006
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of every class.")
    ] = False,
    interval: IntervalOption = None,
    out: OutOption = "-",
    protect_formulas: ProtectOption = False,
    separator: SeparatorOption = None,
    decimal: DecimalOption = None,
) -> None:
    """Predict every row of a table, in its order.

    The table is read in blocks and may be larger than memory. Columns are matched by name, and
    columns that the model does not know are ignored. The output file appears when it is complete,
    or not at all.

    **Examples**

    ```
    rfrboost predict houses.rfrboost new.csv --out prices.csv
    rfrboost predict houses.rfrboost new.parquet --id address --interval 0.9 -o prices.parquet
    rfrboost predict clicks.rfrboost - --proba < new.csv | head
    ```
    """
    if interval is not None and not 0 < interval < 1:
        raise typer.BadParameter(f"{interval} is not between 0 and 1", param_hint="'--interval'")
    from rfrboost.cli.predict import predict as run

    run(
        model,
        Source(table, separator, decimal),
        id_columns,
        out or "-",
        proba,
        interval,
        protect_formulas,
    )


@app.command()
def evaluate(
    table: TableArgument,
    target: TargetOption,
    out: OutOption = None,
    task: TaskOption = None,
    drop: DropOption = [],  # noqa: B006
    weight: WeightOption = None,
    groups: GroupsOption = None,
    categorical: CategoricalOption = [],  # noqa: B006
    loss: LossOption = None,
    folds: FoldsOption = 5,
    plots: PlotsOption = None,
    max_seconds: SecondsOption = None,
    seed: SeedOption = 0,
    separator: SeparatorOption = None,
    decimal: DecimalOption = None,
) -> None:
    """Score a model by cross-validation, beside boosted trees and a linear model.

    Regression: RMSE, MAE, R². Classification: accuracy, balanced accuracy, F1, AUC, average
    precision, log loss, expected calibration error. All scores are of held-out rows; --out writes
    those of every fold. Weights count in fits and scores. --loss is that of rfrboost only.

    **Examples**

    ```
    rfrboost evaluate houses.csv --target price
    rfrboost evaluate wine.csv --target quality --task regression --folds 10 --out scores.csv
    rfrboost evaluate houses.csv --target price --plots figures
    ```
    """
    from rfrboost.cli.evaluate import evaluate as run

    run(
        Source(table, separator, decimal),
        Roles(target, task, tuple(drop), weight, groups, tuple(categorical)),
        out,
        folds,
        Settings(seed, max_seconds, loss),
        plots,
    )


@app.command()
def explain(
    model: ModelArgument,
    table: TableArgument,
    out: OutOption = None,
    rows: Annotated[
        int, typer.Option(metavar="NUMBER", min=2, help="Maximum number of rows to sample.")
    ] = 1000,
    seed: SeedOption = 0,
    protect_formulas: ProtectOption = False,
    separator: SeparatorOption = None,
    decimal: DecimalOption = None,
) -> None:
    """Show how much every column matters to a model's predictions for a table.

    A column's share says how much shuffling it changes the predictions, of the sum over all
    columns. No target values are needed.

    **Examples**

    ```
    rfrboost explain houses.rfrboost houses.csv
    rfrboost explain houses.rfrboost houses.csv --out shares.csv
    ```
    """
    from rfrboost.cli.explain import explain as run

    run(model, Source(table, separator, decimal), out, rows, seed, protect_formulas)


@app.command()
def report(
    model: ModelArgument,
    table: TableArgument,
    target: ReportTargetOption = None,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="HTML file to write.")
    ] = "report.html",
    folds: FoldsOption = 5,
    seed: SeedOption = 0,
    groups: GroupsOption = None,
    weight: WeightOption = None,
    separator: SeparatorOption = None,
    decimal: DecimalOption = None,
) -> None:
    """Write a report about a model: one page with all that is known of it.

    Scores beside boosted trees and a linear model, errors or calibration, coverage of intervals,
    importances, partial dependence, the worst predicted rows, the columns, and how the model was
    made. The page is a single file that needs no network; it shows some rows of the table. For
    scores and errors the model's settings are fitted again without the rows of each fold. If
    the model was fitted with --groups, name them here too, or its scores are too good.

    **Example**

    ```
    rfrboost report houses.rfrboost houses.csv --target price --out report.html
    ```
    """
    from rfrboost.cli.report import report as run

    run(model, Source(table, separator, decimal), target, out, folds, seed, groups, weight)


@app.command()
def compress(
    model: ModelArgument,
    table: TableArgument,
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="Model file to write.")],
    tolerance: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Share by which the error may grow (default: 0.01)."),
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", min=0, help="Maximum number of features, instead."),
    ] = None,
    no_training_rows: Annotated[
        bool, typer.Option("--no-training-rows", help="Write a model that holds no training rows.")
    ] = False,
    separator: SeparatorOption = None,
    decimal: DecimalOption = None,
) -> None:
    """Make a model smaller and faster, within a tolerance.

    The smaller model imitates the model on the rows of a table, best those that it was fitted on.
    No target values are needed. What it costs is reported, and written into the file.

    **Examples**

    ```
    rfrboost compress houses.rfrboost houses.csv --out small.rfrboost
    rfrboost compress houses.rfrboost houses.csv --size 200 -o small.rfrboost
    rfrboost compress houses.rfrboost houses.csv --no-training-rows -o private.rfrboost
    ```
    """
    if tolerance is not None and size is not None:
        raise typer.BadParameter("give it or --size, not both", param_hint="'--tolerance'")
    if tolerance is not None and not tolerance > 0:
        raise typer.BadParameter(f"{tolerance} is not above 0", param_hint="'--tolerance'")
    from rfrboost.cli.compress import compress as run

    run(model, Source(table, separator, decimal), out, tolerance, size, not no_training_rows)


@app.command()
def info(model: ModelArgument) -> None:
    """Print the model, columns, classes and parameters in a model file, without loading its arrays.

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
        str, typer.Argument(metavar="FOLDER", help="Folder for the demo's files.")
    ] = "rfrboost-demo",
) -> None:
    """Make up a table, then evaluate, fit, predict and explain, showing each command.

    **Example**

    ```
    rfrboost demo
    ```
    """
    from rfrboost.cli.demo import demo as run

    run(folder)
