"""The notebooks run, what they claim holds, and their committed outputs are those of a whole run.

Every notebook is executed from top to bottom in a kernel that has forgotten all names, but not
the packages that an earlier notebook imported, which would take seconds again. Then, in the same
kernel, a cell checks what the notebook's text says about the numbers that it has computed.
"""

import json
import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "notebooks"
NAMES = ["first_model", "imbalanced", "forecasting", "explaining", "moving"]
#: processor seconds of all runs: about 40 on an idle machine, with room for slower ones
MOST_SECONDS = 240
#: bytes of a committed notebook, outputs and figures included
MOST_BYTES = 600_000
#: what the texts say, in the names of the notebooks
CLAIMS = {
    "first_model": """
        assert abs(model.oof_score_ - model.score(X_test, y_test)) < 0.03
        assert set(report["kind"][report["name"] == "list price"]) == {"numbers"}
        assert report["used"].all()
        assert scores["RMSE, $"].idxmin() == "rfrboost"
        assert scores["fit, s"].idxmax() == "rfrboost"
        assert scores["300 predictions, ms"].idxmax() == "rfrboost"
        assert 0.85 <= covered <= 0.96
        assert abs(diabetes["rfrboost"].mean() - diabetes["ridge regression"].mean()) < 0.03
    """,
    "imbalanced": """
        ranks = judged["average precision"]
        assert ranks["rfrboost, test rows"] > ranks["boosted trees, test rows"]
        assert judged["accuracy at 0.5"]["always the same"] > 0.9
        assert for_f1.threshold < 0.5
        costs = decisions["cost per row"]
        assert costs["plain, for cost"] < 0.75 * costs["plain, one half"]
        assert costs["plain, 1/21"] < 0.75 * costs["plain, one half"]
        assert costs["balanced, one half"] < 0.75 * costs["plain, one half"]
        assert errors["plain"] < 0.02 < 0.05 < errors["balanced"]
    """,
    "forecasting": """
        promised, kept = folds["out-of-fold R²"], folds["R² of new days"]
        assert promised["shuffled folds"] > promised["splits by time"] + 0.02
        assert promised["shuffled folds"] > kept["shuffled folds"] + 0.02
        share = folds["covered by 90 % intervals"]
        assert share["shuffled folds"] + 0.1 < share["splits by time"]
        assert share["shuffled folds"] < 0.6 < 0.9 < share["splits by time"]
        assert folds["mean width"]["splits by time"] > 2 * folds["mean width"]["shuffled folds"]
        assert kept["splits by time"] > kept["shuffled folds"]
        assert errors["mean absolute error"].idxmin() == "ridge regression"
        naive = errors["mean absolute error"]["same weekday, 4 weeks ago"]
        assert errors["mean absolute error"]["rfrboost, splits by time"] < naive
        assert [warning.category for warning in caught] == [UnseenValuesWarning]
        assert min(trend_errors, key=trend_errors.get) == "ridge regression"
        assert max(trend_errors, key=trend_errors.get) == "boosted trees"
    """,
    "explaining": """
        shares = importances(model)
        assert max(shares, key=shares.get) == "area"
        assert shares["door"] < 0.01
        assert both.rank().corr().loc["share", "permutation"] > 0.8
        strongest = {frozenset(pair) for pair in list(pairs)[:2]}
        assert strongest == {frozenset({"floor", "lift"}), frozenset({"area", "quarter"})}
        assert abs(found.base + parts.sum() - prediction) < 1e-6
        assert 10 < slopes["yes"] < 16
        assert -10 < slopes["no"] < -5
        assert "<script src" not in text
    """,
    "moving": """
        assert list(model.classes_)[0] == "cancelled"
        for other in ("CatBoost", "XGBoost"):
            if other in scores:
                assert scores["rfrboost"]["log loss"] < scores[other]["log loss"] + 0.02
                slower = scores["rfrboost"]["µs per prediction"]
                assert slower > scores[other]["µs per prediction"]
        assert speed["compressed"] < speed["whole model"] / 2
    """,
}


def notebook(name: str) -> dict:
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))


def code_cells(name: str) -> list[dict]:
    return [cell for cell in notebook(name)["cells"] if cell["cell_type"] == "code"]


def text_of(output: dict) -> str:
    """What an output says, without pictures."""
    kinds = output.get("data", {})
    parts = [output.get("text", ""), kinds.get("text/plain", ""), kinds.get("text/html", "")]
    return "\n".join(part if isinstance(part, str) else "".join(part) for part in parts)


#: a cell that undoes what notebooks before it defined, set in matplotlib and imported of rfrboost
AFRESH = """
import sys
for module in [name for name in sys.modules if name.partition(".")[0] == "rfrboost"]:
    del sys.modules[module]
if "matplotlib" in sys.modules:
    sys.modules["matplotlib"].rcdefaults()
%reset -f
"""


def test_every_notebook_is_tested():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)
    assert set(CLAIMS) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_committed_outputs_are_those_of_one_run_without_errors(name):
    cells = code_cells(name)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    # Warnings and progress would be here; where one is meant, the notebook prints it.
    assert not [output for output in outputs if output.get("name") == "stderr"]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 1
    assert (FOLDER / f"{name}.ipynb").stat().st_size < MOST_BYTES
    for output in outputs:
        assert not re.search(r"/(tmp|home|root|work|Users)/|Traceback", text_of(output))


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_to_files(name):
    cells = notebook(name)["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    links = re.findall(r"\]\(([^)#]+)\)", "\n".join(texts))
    assert links
    for link in links:
        assert (FOLDER / link).resolve().is_file(), link


@pytest.fixture(scope="module")
def kernel():
    """The manager of a kernel, which the first notebook starts."""
    pytest.importorskip("nbclient", reason="needs nbclient, of the extra 'test'")
    pytest.importorskip("ipykernel", reason="needs ipykernel, of the extra 'test'")
    pytest.importorskip("matplotlib")
    from jupyter_client.manager import KernelManager

    manager = KernelManager(kernel_name="python3")
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
            patch.setenv(variable, "1")
        patch.delenv("MPLBACKEND", raising=False)
        yield manager
    if manager.has_kernel:
        manager.shutdown_kernel(now=True)


LEFT_BEHIND = """
import matplotlib, rfrboost.inspection
matplotlib.rcParams["lines.linewidth"] = 9
left = 1
"""
NOT_FOUND = """
import sys, matplotlib
assert "left" not in dir() and not [name for name in sys.modules if name.startswith("rfrboost")]
assert matplotlib.rcParams["lines.linewidth"] < 9
"""


@pytest.mark.filterwarnings("ignore")
def test_a_notebook_finds_nothing_of_the_one_before(kernel):
    import nbformat

    from tools.notebooks import execute

    cells = map(nbformat.v4.new_code_cell, (LEFT_BEHIND, AFRESH, NOT_FOUND))
    execute(nbformat.v4.new_notebook(cells=list(cells)), kernel)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")  # of Jupyter, about itself; the kernel has filters of its own
def test_notebooks_run_and_say_what_is_true(name, kernel):
    import nbformat

    from tools.notebooks import execute

    book = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    claims = textwrap.dedent(CLAIMS[name])
    limit = f"import time\nassert time.process_time() < {MOST_SECONDS}\n"
    book.cells.append(nbformat.v4.new_code_cell(limit + claims))
    book.cells.insert(0, nbformat.v4.new_code_cell(AFRESH))
    execute(book, kernel)
    fresh = [cell for cell in book.cells[1:-1] if cell.cell_type == "code"]
    kinds = [[output.output_type for output in cell.outputs] for cell in fresh]
    committed = [[output["output_type"] for output in cell["outputs"]] for cell in code_cells(name)]
    assert kinds == committed, "run: make notebooks"
