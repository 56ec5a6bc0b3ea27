"""What ``docs/start.md`` says about the wheel, word by word: ``make wheel-test``.

The wheel is built and put into an empty directory, alone. There one shell runs the commands of the
page's section in their order, which begin by making an environment and installing the wheel. Then
Python, in that environment, runs all Python of the page and of the README. Nothing of the
repository is on the path.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "start.md"
README = ROOT / "README.md"
SECTION = "## From nothing but the wheel"


def commands(text: str) -> list[str]:
    """The shell blocks of the section, in order."""
    if SECTION not in text:
        raise ValueError(f"{PAGE.name} has no section {SECTION!r}")
    section = text.split(SECTION, 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


def build_wheel(folder: Path) -> Path:
    """The wheel, built by pip in an environment made for it."""
    venv.create(folder / "tools", with_pip=True)
    pip = [folder / "tools/bin/python", "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "-q", "--no-deps", "-w", folder, ROOT], check=True)
    return next(folder.glob("*.whl"))


def script(text: str) -> str:
    """What the shell runs: the section's commands, each shown, and then the Python of the pages."""
    blocks = "\n".join(commands(text))
    doctests = "\n".join(f"python -W error -m doctest '{page}'" for page in (PAGE, README))
    return f"set -eux\n{blocks}\n{doctests}\n"


def main() -> int:
    """Build, run the commands, and say how it went."""
    text = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        empty = Path(name) / "empty"
        empty.mkdir()
        shutil.copy(build_wheel(Path(name)), empty)
        clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        clean["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
        done = subprocess.run(["bash", "-c", script(text)], cwd=empty, env=clean, check=False)
    print("The wheel works as written." if done.returncode == 0 else "The wheel does not work.")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
