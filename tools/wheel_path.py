"""The README's path for a new user, word by word: ``make wheel-test``.

The wheel is built and put into an empty directory, alone. There one shell runs the commands of the
README's section in their order, which begin by making an environment and installing the wheel;
then Python, in that environment, runs all that the README says in Python. Nothing of the
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
README = ROOT / "README.md"
SECTION = "## From nothing but the wheel"


def commands(text: str) -> list[str]:
    """The shell blocks of the section, in order."""
    if SECTION not in text:
        raise ValueError(f"the README has no section {SECTION!r}")
    section = text.split(SECTION, 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


def build_wheel(folder: Path) -> Path:
    """The wheel, built by pip in an environment of its own."""
    venv.create(folder / "tools", with_pip=True)
    pip = [folder / "tools/bin/python", "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "-q", "--no-deps", "-w", folder, ROOT], check=True)
    return next(folder.glob("*.whl"))


def script(text: str) -> str:
    """What the shell runs: the README's commands, each shown, and then its Python."""
    blocks = "\n".join(commands(text))
    return f"set -eux\n{blocks}\npython -W error -m doctest {README}\n"


def main() -> int:
    """Build, walk the path, and say how it went."""
    text = README.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        empty = Path(name) / "empty"
        empty.mkdir()
        shutil.copy(build_wheel(Path(name)), empty)
        clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        clean["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
        done = subprocess.run(["bash", "-c", script(text)], cwd=empty, env=clean, check=False)
    print("The README's path works." if done.returncode == 0 else "The README's path is broken.")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
