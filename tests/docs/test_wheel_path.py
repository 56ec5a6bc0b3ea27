"""The path of ``docs/start.md`` for a new user is complete; ``make wheel-test`` runs it."""

import importlib.util
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def wheel_path():
    """The script, which is in no package."""
    spec = importlib.util.spec_from_file_location("wheel_path", ROOT / "tools" / "wheel_path.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGE = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("word", ["pip install", "fit", "predict", "explain", "info"])
def test_the_path_has_every_step(word):
    assert any(word in block for block in wheel_path().commands(PAGE))


def test_the_path_begins_with_an_environment_of_its_own():
    first = wheel_path().commands(PAGE)[0]
    assert first.index("venv") < first.index("activate") < first.index("pip install")


def test_the_commands_are_a_shell_script():
    script = wheel_path().script(PAGE)
    subprocess.run(["bash", "-n", "-c", script], check=True)
    assert script.startswith("set -eux")
    assert "README.md" in script
    assert "start.md" in script


def test_only_blocks_of_the_section_are_run():
    block = "```sh\n{}\n```\n".format
    text = f"{block('before')}## From nothing but the wheel\n{block('ls')}## Next\n{block('no')}"
    assert wheel_path().commands(text) == ["ls\n"]


def test_a_page_without_the_section_is_an_error():
    with pytest.raises(ValueError, match="no section"):
        wheel_path().commands("# rfrboost\n")
