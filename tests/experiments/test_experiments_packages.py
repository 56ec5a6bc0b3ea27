"""The shape of the experiments: imports go one way between packages, folders stay small."""

import ast
from pathlib import Path

import pytest

from experiments.__main__ import COMMANDS, main

ROOT = Path(__file__).parents[2] / "experiments"
# A package may import itself and those before it.
ORDER = ["requests", "data", "models", "runs", "reports", "commands", "__main__"]
MODULES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
MOST_MODULES = 14


def imported(path: Path) -> set[str]:
    """The packages of ``experiments`` that a module imports, anywhere in it."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return {name.split(".")[1] for name in names if name.startswith("experiments.")}


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_imports_go_one_way(module):
    package = module.parts[0].removesuffix(".py")
    allowed = ORDER[: ORDER.index(package) + 1] if package in ORDER else []
    assert imported(ROOT / module) <= set(allowed)


def test_no_folder_has_too_many_modules():
    folders = {ROOT, *(path for path in ROOT.rglob("*") if path.is_dir())}
    for folder in folders:
        modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        assert len(modules) <= MOST_MODULES, folder


def test_no_module_is_too_long():
    for module in MODULES:
        assert (ROOT / module).read_text(encoding="utf-8").count("\n") <= 500, module


@pytest.mark.parametrize("command", [None, *(command.NAME for command in COMMANDS)])
def test_every_help_can_be_printed(command, capsys):
    with pytest.raises(SystemExit) as end:
        main(["--help"] if command is None else [command, "--help"])
    assert end.value.code == 0
    shown = capsys.readouterr().out
    assert all(c.NAME in shown for c in COMMANDS) if command is None else "--mix-commits" in shown
