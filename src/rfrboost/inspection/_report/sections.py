"""The sections of the report: from what was measured to HTML."""

import platform
from dataclasses import asdict
from datetime import date
from typing import Any

import numpy as np
import sklearn

from rfrboost import __version__
from rfrboost.inspection._dependence import interactions, partial_dependence_of
from rfrboost.inspection._report import figures, page
from rfrboost.inspection._report.evidence import OURS, Evidence

#: the score that stands for all others
MAIN = {"regression": "R²", "classification": "accuracy"}
# The worst predicted rows that are listed, and the columns that are shown of them.
WORST_ROWS = 20
WORST_COLUMNS = 6
# Columns in the section on partial dependence.
DEPENDENCE_COLUMNS = 4
LONGEST_CELL = 60
# Interactions below this many standard deviations of the predictions are shown as 0.00.
NO_INTERACTION = 0.005


def lead(evidence: Evidence, target: str, n_given: int) -> str:
    """The first sentence and the figures that matter most."""
    main = MAIN[evidence.task]
    mean = {name: float(np.nanmean(found[main])) for name, found in evidence.scores.items()}
    others = ", ".join(f"{name} {value:.3f}" for name, value in mean.items() if name != OURS)
    first = (
        f"On rows that it has not seen, the model predicts {target} with a cross-validated {main} "
        f"of {mean[OURS]:.3f}. On the same folds: {others}."
    )
    ours = evidence.scores[OURS]
    facts = [(main, f"{mean[OURS]:.3f}", f"± {np.nanstd(ours[main]):.3f} over folds")]
    if evidence.task == "regression":
        facts.append(
            ("typical error", page.shown(float(ours["MAE"].mean())), "mean absolute error")
        )
    else:
        facts.append(("AUC", f"{np.nanmean(ours['AUC']):.3f}", "held-out rows"))
    if 0.9 in evidence.coverage:
        kind = "intervals" if evidence.task == "regression" else "sets"
        share = f"{100 * evidence.coverage[0.9][0]:.1f} %"
        facts.append((f"90 % {kind}", share, f"of held-out rows are inside 90 % {kind}"))
    facts.append(("rows", f"{n_given:,}", f"{evidence.frame.shape[1]:,} columns"))
    micro = 1e6 * evidence.predict_seconds
    facts.append(("prediction", f"{micro:,.0f} µs", "per row, on this machine"))
    return page.paragraph(first, "lead") + page.cards(facts)


# What is said of the linear model's settings.
LINEAR_SETTINGS = {
    "regression": "with default settings; ridge regression chooses its penalty.",
    "classification": "with default settings.",
}


def scores(evidence: Evidence) -> str:
    """All scores of all models, and the main one fold by fold."""
    models = list(evidence.scores)
    rows = [
        {"score": score} | {name: mean_and_spread(evidence.scores[name][score]) for name in models}
        for score in evidence.scores[OURS]
    ]
    seconds = {name: f"{evidence.seconds[name]:.2f}" for name in models}
    rows.append({"score": "seconds per fold"} | seconds)
    main = MAIN[evidence.task]
    by_model = {name: found[main] for name, found in evidence.scores.items()}
    text = (
        f"Means over folds of {len(evidence.y):,} rows, ± their standard deviation. Each model is "
        f"fitted without the rows that it is scored on. {evidence.folds} The others are "
        f"scikit-learn's, {LINEAR_SETTINGS[evidence.task]}"
    )
    drawn = page.drawing(
        figures.scores_figure(main, by_model), f"The held-out rows of each fold: {main}."
    )
    return page.paragraph(text) + page.table(rows) + drawn


def mean_and_spread(values: np.ndarray) -> str:
    """A mean and a standard deviation over folds, with spaces at which no line is broken."""
    if np.isnan(values).all():
        return "–"
    return f"{np.nanmean(values):.4g}\u00a0±\u00a0{np.nanstd(values):.2g}"


def errors(evidence: Evidence, target: str) -> str:
    """Residuals, or calibration."""
    rows = f"{len(evidence.y):,} rows, out of fold"
    drawn = figures.predictions_figure(evidence.task, evidence.y, evidence.predicted, target, rows)
    caption = (
        "Left: points on the line are predicted exactly. Right: nine in ten residuals lie between "
        "the two marks."
        if evidence.task == "regression"
        else "On the diagonal, what is predicted with a probability of 70 % happens in 70 % of "
        "the rows. The error is that of all rows together; in the table above it is the mean over "
        "folds, which have fewer rows each and therefore a larger one."
    )
    return page.drawing(drawn, caption)


def coverage(evidence: Evidence) -> str:
    """Nominal and observed coverage."""
    if not evidence.coverage:
        return page.paragraph("A model of this kind has no prediction intervals.")
    regression = evidence.task == "regression"
    kind, size = ("interval", "mean width") if regression else ("set", "mean number of classes")
    rows = [
        {"nominal coverage": level, "observed coverage": round(share, 4), size: width}
        for level, (share, width) in evidence.coverage.items()
    ]
    deviation = np.sqrt(0.9 * 0.1 / len(evidence.y))
    text = (
        f"The share of held-out rows whose label is in the prediction {kind}. At 90 %, chance "
        f"alone moves it by about {deviation:.3f}."
    )
    if not regression:
        text += " No set is empty, so coverage is at least the accuracy."
    return page.paragraph(text) + page.table(rows)


def importance(shares: dict[str, float]) -> str:
    """Bars, and all shares as a table."""
    text = (
        "How much predictions change when a column is shuffled, as a share of the sum over all "
        "columns. Columns that carry the same information share what it counts."
    )
    rows = [{"column": name, "share": round(share, 4)} for name, share in shares.items()]
    drawn = page.drawing(
        figures.importances_figure(shares), "The most important columns, shares in percent."
    )
    return page.paragraph(text) + drawn + page.table(rows)


def dependence(model: Any, X: Any, shares: dict[str, float]) -> str:
    """Partial dependence on the most important columns, and interactions between them."""
    top = [name for name, share in shares.items() if share > 0]
    if not top:
        return page.paragraph("The model predicts the same for all rows.")
    display, label = partial_dependence_of(model, X, top[:DEPENDENCE_COLUMNS])
    drawn = page.drawing(
        figures.dependence_figure(display, label),
        "The mean prediction when a column is set to a value in all rows; the band or bar is "
        "where the middle half of the rows lie.",
    )
    if len(top) < 2:
        return drawn
    found = interactions(model, X, top[:5])
    if max(found.strengths.values()) < NO_INTERACTION:
        return drawn + page.paragraph(
            "None of the most important columns act together: their effects add up."
        )
    return drawn + page.drawing(
        figures.interactions_figure(found),
        "How much of the predictions is not the sum of what two columns do alone (H of Friedman "
        "and Popescu).",
    )


def worst_rows(evidence: Evidence, shares: dict[str, float]) -> str:
    """The rows that were predicted worst, with their most important columns."""
    y = evidence.y
    if evidence.task == "regression":
        wrong = np.abs(y - evidence.predicted)
        text = (
            "The rows with the largest out-of-fold errors: look here for wrong labels. Row 1 is "
            "the first row of the table."
        )
    else:
        classes = np.unique(y)
        of_label = evidence.predicted[np.arange(len(y)), np.searchsorted(classes, y)]
        wrong = 1 - of_label
        text = (
            "The rows whose right class got the least out-of-fold probability: look here for "
            "wrong labels. Row 1 is the first row of the table."
        )
    columns = list(shares)[:WORST_COLUMNS]
    rows = []
    for i in np.argsort(-wrong, kind="stable")[:WORST_ROWS]:
        said: dict[str, Any] = {"row": int(evidence.rows[i]) + 1, "actual": plain_value(y[i])}
        if evidence.task == "regression":
            said |= {"predicted": float(evidence.predicted[i]), "error": float(wrong[i])}
        else:
            said["predicted"] = plain_value(classes[np.argmax(evidence.predicted[i])])
            said["probability of actual"] = float(of_label[i])
        cells = evidence.frame.iloc[int(i)]
        rows.append(said | {name: plain_value(cells[name]) for name in columns})
    return page.paragraph(text) + page.table(rows)


def plain_value(value: Any) -> Any:
    """A cell of a table as a number, a text of limited length, or None where it is missing."""
    if value is None or value != value:
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    text = str(value).removesuffix(" 00:00:00").removesuffix("T00:00:00")
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"


def columns(model: Any, evidence: Evidence, shares: dict[str, float]) -> str:
    """What is in the columns: as the fit reports it, or as the rows at hand say."""
    reported = getattr(model, "column_report_", None)
    if reported:
        rows = [
            {k: plain_value(v) for k, v in asdict(record).items()}
            | {"share": round(shares.get(str(record.name), 0.0), 4)}
            for record in reported
        ]
        return page.paragraph("As the fit has read them.") + page.table(rows)
    rows = [
        described(evidence.frame[name]) | {"share": round(shares.get(str(name), 0.0), 4)}
        for name in evidence.frame.columns
    ]
    return page.paragraph(f"In {len(evidence.frame):,} of the rows at hand.") + page.table(rows)


def described(column: Any) -> dict[str, Any]:
    """Name, kind, missing values, different values and range of a column."""
    numbers = column.dtype.kind in "fM"
    kinds = {"f": "number", "M": "date", "b": "yes/no"}
    known = column.dropna()
    ends = [plain_value(v) for v in (known.min(), known.max())] if numbers and len(known) else []
    return {
        "column": str(column.name),
        "kind": kinds.get(column.dtype.kind, "category"),
        "missing": int(column.isna().sum()),
        "different values": int(known.astype(str).nunique()),
        "range": " to ".join(map(page.shown, ends)) if ends else None,
    }


def making(model: Any, evidence: Evidence) -> str:
    """How the model was made: settings, size, seconds, versions."""
    parameters = type(model)().get_params()
    changed = {k: v for k, v in model.get_params().items() if repr(v) != repr(parameters.get(k))}
    # A model that was loaded from a file does not know it.
    known = getattr(model, "oof_score_", None)
    facts = {
        "estimator": type(model).__name__,
        "parameters": ", ".join(f"{k}={v!r}" for k, v in changed.items()) or "the defaults",
        "layers": f"{len(model.network_.layers):,}",
        "score of the fit itself (out of fold)": f"{known:.4f}" if known is not None else None,
        "size of its file": "–" if evidence.n_bytes is None else f"{evidence.n_bytes / 1e6:.2f} MB",
        "seconds of a fit without one fold": f"{evidence.seconds[OURS]:.2f}",
        "prediction": f"{1e6 * evidence.predict_seconds:,.0f} µs per row",
        "versions": f"rfrboost {__version__}, scikit-learn {sklearn.__version__}, "
        f"Python {platform.python_version()}",
        "date of this report": date.today().isoformat(),
    }
    return page.table([{"fact": k, "value": v} for k, v in facts.items() if v is not None])
