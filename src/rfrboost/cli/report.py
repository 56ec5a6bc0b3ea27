"""``rfrboost report``: one page about a model and a table (:func:`rfrboost.inspection.report`)."""

import pandas as pd
from sklearn.base import is_classifier

from rfrboost.cli.console import CommandError, counted, duration, heartbeat, listed, say
from rfrboost.cli.output import refuse_overwriting, whole_file
from rfrboost.cli.predict import load_predictor
from rfrboost.cli.reading.tables import open_table
from rfrboost.cli.request import Roles, Source, Task
from rfrboost.cli.signature import Signature, read_signature
from rfrboost.cli.training import read_training
from rfrboost.inspection._report.evidence import HoldingOut
from rfrboost.inspection._report.write import report_text


def report(
    model: str,
    table: Source,
    target: str | None,
    out: str,
    folds: int,
    seed: int,
    groups: str | None = None,
    weight: str | None = None,
) -> None:
    """Write the page about a model, measured with the rows of a table that have a label.

    ``groups`` and ``weight`` name columns.
    """
    refuse_overwriting(out, table.path, model)
    fitted = load_predictor(model)
    signature = read_signature(model)
    beside = {name for name in (groups, weight) if name is not None}
    target = target or only_other_column(signature, table, beside)
    task = Task.CLASSIFICATION if is_classifier(fitted) else Task.REGRESSION
    training = read_training(table, Roles(target, task, weight=weight, groups=groups))
    columns = signature.columns(list(training.frame.columns), table.name)
    y = pd.Series(training.target.labels, name=target)
    size = f"{counted(len(y), 'row')}, {counted(len(columns), 'column')}"
    say(f"Cross-validating on {size}: {folds} folds, 3 models.")
    # The file is opened first, so that a wrong name is found before the work.
    with (
        whole_file(out) as stream,
        heartbeat(lambda seconds: f"Measuring: {duration(seconds)}."),
    ):
        holding_out = HoldingOut(folds, seed, training.groups, training.weights)
        page = report_text(fitted, training.frame[columns], y, holding_out).encode()
        stream.write(page)
    say(f"Wrote {out} ({len(page) / 1e6:.1f} MB).")


def only_other_column(signature: Signature, table: Source, beside: set[str]) -> str:
    """The one column of a table that is no input of the model and not ``beside``: its target."""
    with open_table(table) as opened:
        inputs = set(signature.names or ()) | beside
        others = [name for name in opened.columns if name not in inputs]
    if len(others) != 1:
        found = listed(others) if others else "none"
        raise CommandError(
            f"Name the column to predict with --target; columns of {table.name} that are not "
            f"inputs of the model: {found}."
        )
    return others[0]
