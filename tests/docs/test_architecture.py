"""The package's shape: imports go one way, files are whole ideas, the core stays light."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "src" / "rfrboost"

#: a package, or a module of the top folder, may import those before it and itself
ORDER = [
    *(
        "_version",
        "_typing",
        "_numerics",
        "_tables",
        "_kernels",
        "_model",
        "_rows",
        "_paper",
        "_auto",
    ),
    *("_blocks", "_estimators", "_compress", "_files", "_export", "_dask"),
    *("__init__", "callbacks", "dask", "torch", "inspection", "cli", "__main__"),
]
#: neighbours in that order that must not know each other
STRANGERS = {("_model", "_tables"), ("_export", "_files"), ("cli", "inspection"), ("torch", "dask")}
#: below estimators there are arrays; tables and labels are seen in these packages only
ARRAYS_ONLY = ("_numerics", "_kernels", "_model", "_rows", "_paper", "_auto")
MOST_MODULES = {"cli": 18}
MODULES = sorted(PACKAGE.rglob("*.py"))


def chapter(name: str) -> str:
    """The part of the package that a dotted name below ``rfrboost`` belongs to."""
    first = name.split(".")[0]
    return first if first in ORDER else "__init__"


def home(path: Path) -> str:
    """The part of the package that a file belongs to."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(path: Path, inside_functions: bool = True) -> set[str]:
    """The parts of the package that a module imports, at its top or anywhere."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = ast.walk(tree) if inside_functions else iter(tree.body)
    found = []
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return {chapter(name.partition(".")[2]) for name in found if name.split(".")[0] == "rfrboost"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    own = home(path)
    known = ORDER[: ORDER.index(own) + 1]
    # Estimators save and export themselves, and import what does that only when they are asked to.
    inside = own != "_estimators"
    wrong = {
        name for name in imports(path, inside) if name not in known or (name, own) in STRANGERS
    }
    assert not wrong


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if home(path) in ARRAYS_ONLY],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_arrays_below_the_estimators(path):
    source = path.read_text(encoding="utf-8")
    for word in ("pandas", "polars", "validate_data", "isnan(", "np.random.seed"):
        assert word not in source
    # scikit-learn's trees draw with a RandomState, which our generator seeds.
    assert "RandomState" not in source or path.name == "trees.py"


def test_a_folder_can_be_looked_over():
    for folder in {path.parent for path in MODULES}:
        modules = [p for p in folder.glob("*.py") if p.name != "__init__.py"]
        assert len(modules) <= MOST_MODULES.get(folder.name, 14), folder


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_and_functions_stay_readable(path):
    source = path.read_text(encoding="utf-8")
    assert source.count("\n") <= 500
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            doc = ast.get_docstring(node, clean=False)
            length = node.end_lineno - node.lineno + 1 - (doc.count("\n") + 1 if doc else 0)
            # Constructors of estimators have two lines for each parameter, and do nothing else.
            keeps = all(isinstance(step, ast.Assign) for step in node.body)
            assert length <= 60 or keeps, f"{node.name} has {length} lines"
            assert node.args.kwarg is None, f"{node.name} takes **{node.args.kwarg}"


def outside(path: Path) -> set[str]:
    """What a module imports, anywhere in it, that is not needed to install the package."""
    core = {"numpy", "scipy", "sklearn", "rfrboost", "threadpoolctl"} | set(sys.stdlib_module_names)
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        found |= {name.split(".")[0] for name in names}
    return found - core


def test_the_core_needs_numpy_scipy_and_scikit_learn_only():
    # threadpoolctl is what scikit-learn itself needs.
    optional = {
        "_kernels": {"numba"},
        "_files": {"safetensors"},
        "_blocks": {"pandas", "pyarrow"},
        # In a notebook only, where it is there.
        "_estimators": {"IPython"},
        "_dask": {"dask", "distributed"},
        "dask": {"distributed"},
        "torch": {"torch"},
        "callbacks": {"matplotlib", "IPython"},
        # pandas: frames that come as such, and the report.
        "inspection": {"matplotlib", "mpl_toolkits", "pandas", "shap"},
        "cli": {"pandas", "pyarrow", "rich", "typer", "click", "matplotlib", "openpyxl"},
    }
    for path in MODULES:
        kind = "torch" if path.parent.name == "torch" else home(path)
        allowed = {"onnx"} if path.parent.name == "onnx" else optional.get(kind, set())
        assert outside(path) <= allowed, path


def test_what_is_optional_is_not_imported_before_it_is_needed():
    optional = {"safetensors", "numba", "onnx", "torch", "dask"}
    code = f"import sys, rfrboost; sys.exit(bool({optional} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_the_pages_link_to_is_there():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("experiments/*.md")]:
        if "_build" in page.parts:
            continue
        for target in re.findall(r"\]\(([^)#\s]+)\)", page.read_text(encoding="utf-8")):
            # Pages of notebooks are made from examples/notebooks when the site is built.
            notebook = re.sub(r"^notebooks/(\w+)\.md$", r"../examples/notebooks/\1.ipynb", target)
            found = (page.parent / target).exists() or (page.parent / notebook).exists()
            assert target.startswith("http") or found, (page.name, target)
