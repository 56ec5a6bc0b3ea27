"""The package's shape: imports point one way, files and functions stay small."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "rfrboost"

#: a module may import those above it
ORDER = [
    "_version",
    "_typing",
    "_heap",
    "_threads",
    "_activations",
    "_lapack",
    "_blas",
    "_precision",
    "_features",
    "_sparse",
    "_losses",
    "_quantiles",
    "_conformal",
    "_linesearch",
    "_moments",
    "_solve",
    "_sandwich",
    "_network",
    "_gradients",
    "_metric",
    "_rows",
    "_chunks",
    "_order",
    "_splitting",
    "_spill",
    "_streamed",
    "_convex",
    "_heads",
    "_steps",
    "_boost",
    "_bags",
    "_blocks",
    "_pieces",
    "_bagged",
    "_bumps",
    "_kernel",
    "_leaves",
    "_local",
    "_fit_local",
    "_stacking",
    "_auto",
    "_importances",
    "_edge",
    "_columns",
    "_table",
    "_scaling",
    "_encoders",
    "_levels",
    "_fit_columns",
    "_encoder",
    "_encoding",
    "_forms",
    "_parts",
    "_table_parts",
    "_labels",
    "_fitted",
    "_container",
    "_atomic",
    "_saving",
    "_onnx_inputs",
    "_onnx_graph",
    "_onnx_sums",
    "_onnx_features",
    "_onnx_network",
    "_onnx_table",
    "_onnx_model",
    "_torch_features",
    "_torch_network",
    "_torch_losses",
    "_torch_model",
    "_torch_training",
    "_exporting",
    "_progress",
    "_parameters",
    "_plan",
    "_inputs",
    "_labelled",
    "_arrow",
    "row_blocks",
    "_held_out",
    "_block_arrays",
    "_glance",
    "_from_blocks",
    "_large",
    "_base",
    "_classification",
    "_regression",
    "_trust",
    "_rfnn",
    "_rfrboost",
    "_rfrboost_classifier",
    "_transformers",
    "_files",
    "torch",
    "_dask_cluster",
    "_dask_chunks",
    "_dask_partitions",
    "_dask_rows",
    "_dask_predict",
    "dask",
    "__init__",
    "__main__",
]
#: mathematics below, tables and labels above
EDGE = ORDER.index("_edge")


def imports(path: Path) -> list[str]:
    """The modules of the package that a module imports, anywhere in it."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return [name.split(".")[1] for name in found if name.startswith("rfrboost.")]


def test_every_module_has_its_place():
    assert sorted(ORDER) == sorted(p.stem for p in PACKAGE.glob("*.py"))


@pytest.mark.parametrize("module", ORDER)
def test_imports_point_one_way(module):
    above = [*ORDER[: ORDER.index(module)], *(["cli"] if module == "__main__" else [])]
    assert [m for m in imports(PACKAGE / f"{module}.py") if m not in above] == []


@pytest.mark.parametrize("module", ORDER[:EDGE])
def test_below_the_edge_there_are_only_arrays(module):
    source = (PACKAGE / f"{module}.py").read_text(encoding="utf-8")
    for word in ("pandas", "polars", "validate_data", "isnan(", "np.random.seed", "RandomState"):
        assert word not in source


@pytest.mark.parametrize("module", ORDER)
def test_files_and_functions_stay_small(module):
    source = (PACKAGE / f"{module}.py").read_text(encoding="utf-8")
    assert source.count("\n") <= 300
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            doc = ast.get_docstring(node, clean=False)
            length = node.end_lineno - node.lineno + 1 - (doc.count("\n") + 1 if doc else 0)
            assert length <= 55, f"{node.name} has {length} lines"
            assert node.args.kwarg is None, f"{node.name} takes **{node.args.kwarg}"


def outside(path: Path) -> set[str]:
    """What a module imports, anywhere in it, that is not needed to install the package."""
    core = {"numpy", "scipy", "sklearn", "rfrboost"} | set(sys.stdlib_module_names)
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        found |= {name.split(".")[0] for name in names}
    return found - core


def test_the_core_needs_numpy_scipy_and_scikit_learn_only():
    # threadpoolctl is what scikit-learn itself needs.
    optional = {
        "_container": {"safetensors"},
        **{name: {"torch"} for name in ORDER if "torch" in name},
        **{name: {"onnx"} for name in ("_onnx_graph", "_onnx_sums", "_onnx_model")},
        "_threads": {"threadpoolctl"},
        "_arrow": {"pandas", "pyarrow"},
        "_dask_cluster": {"dask", "distributed"},
        "_dask_chunks": {"distributed"},
        "_dask_partitions": {"dask", "distributed"},
        "_dask_rows": {"distributed"},
        "_dask_predict": {"dask"},
        "dask": {"distributed"},
    }
    for path in PACKAGE.glob("*.py"):
        assert outside(path) == optional.get(path.stem, set()), path.name


def test_what_is_optional_is_not_imported_before_it_is_needed():
    optional = {"safetensors", "onnx", "torch", "dask"}
    code = f"import sys, rfrboost; sys.exit(bool({optional} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_the_pages_link_to_is_there():
    root = PACKAGE.parent.parent
    for page in [*root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("experiments/*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert target.startswith("http") or (page.parent / target).exists(), (page.name, target)
