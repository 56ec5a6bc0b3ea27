"""The package and the command start quickly: what is not used is not imported."""

import ast
import importlib
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import rfrboost, worked

import rfrboost as library
from rfrboost.cli.info import DEFAULTS

SLOW = ("numpy", "scipy", "sklearn", "pandas", "pyarrow", "matplotlib")
LOADED = f"""
import sys
from rfrboost.cli import main
code = main(sys.argv[1:])
print(code, *(name for name in {SLOW} if name in sys.modules), file=sys.stderr)
"""


def names_for_type_checkers() -> dict[str, str]:
    """The imports in the package's block for type checkers: the module of each name."""
    tree = ast.parse(Path(library.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    found = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            # Only "name as name" is exported to other projects by type checkers.
            assert alias.asname == alias.name
            found[alias.name] = node.module
    return found


def test_type_checkers_and_python_see_the_same_names():
    assert names_for_type_checkers() == library._HOME
    assert sorted(library.__all__) == sorted(["__version__", *library._HOME])
    assert set(library.__all__) <= set(dir(library))


@pytest.mark.parametrize("name", sorted(library._HOME))
def test_a_public_name_is_that_of_its_module(name):
    assert getattr(library, name) is getattr(importlib.import_module(library._HOME[name]), name)


def test_importing_everything_works_and_an_unknown_name_is_an_error():
    found = {}
    exec("from rfrboost import *", found)
    assert set(library.__all__) <= set(found)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        library.nothing
    with pytest.raises(ImportError):
        exec("from rfrboost import nothing", {})
    model = library.RFRBoostRegressor(n_layers=2)
    assert pickle.loads(pickle.dumps(model)).get_params() == model.get_params()


def loaded(*words: object) -> list[str]:
    """The exit code of a command and the slow packages that it imported."""
    command = [sys.executable, "-c", LOADED, *map(str, words)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return ran.stderr.splitlines()[-1].split()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--help"], "0"),
        (["--version"], "0"),
        (["fit", "--help"], "0"),
        (["nothing"], "2"),
        (["predict", "m"], "2"),
        (["predict", "m", "t.csv", "--interval", "2"], "2"),
    ],
)
def test_what_needs_no_table_imports_nothing_slow(words, code):
    assert loaded(*words) == [code]


def test_info_imports_neither_estimators_nor_tables(tmp_path):
    table = b"x,y\n" + b"".join(b"%d,%d.5\n" % (k, k) for k in range(12))
    worked(rfrboost("fit", "-", "--target", "y", "-o", tmp_path / "m", stdin=table))
    assert loaded("info", tmp_path / "m") == ["0", "numpy"]


def test_info_knows_the_defaults_of_every_parameter():
    for name, defaults in DEFAULTS.items():
        own = getattr(library, name)().get_params()
        assert own == {key: defaults[key] for key in own}
    used = {key for name in DEFAULTS for key in getattr(library, name)().get_params()}
    assert used == {key for defaults in DEFAULTS.values() for key in defaults}
