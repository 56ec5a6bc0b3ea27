"""The report itself: what is measured, in the order in which one reads it, as one HTML file."""

from typing import Any

from sklearn.utils.validation import check_is_fitted

from rfrboost.inspection._importances import importances
from rfrboost.inspection._models import table_of
from rfrboost.inspection._report import sections
from rfrboost.inspection._report.evidence import HoldingOut, gather
from rfrboost.inspection._report.page import page


def report_text(model: Any, X: Any, y: Any, holding_out: HoldingOut) -> str:
    """Measure, and make the page; see :func:`rfrboost.inspection.report`."""
    check_is_fitted(model)
    target = str(getattr(y, "name", None) or "the target")
    evidence = gather(model, X, y, holding_out)
    stored = hasattr(model, "feature_importances_")
    shares = {str(k): v for k, v in importances(model, None if stored else X).items()}
    n_given = len(table_of(model, X))
    return page(
        f"A model of {target}",
        sections.lead(evidence, target, n_given),
        {
            "Scores": sections.scores(evidence),
            "Errors" if evidence.task == "regression" else "Calibration": sections.errors(
                evidence, target
            ),
            "Intervals" if evidence.task == "regression" else "Sets": sections.coverage(evidence),
            "Importances": sections.importance(shares),
            "Dependence": sections.dependence(model, X, shares),
            "Worst rows": sections.worst_rows(evidence, shares),
            "Columns": sections.columns(model, evidence, shares),
            "How it was made": sections.making(model, evidence),
        },
    )
