"""What docs/cli.md shows is what happens: its commands run in order, in one folder."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
from command_line import rfrboost, worked

PAGE = Path(__file__).parent.parent.parent / "docs" / "cli.md"
#: rows of the demo's table that the page's own commands read; the demo itself reads all 300
SHORT = 60
#: members of models that the page fits without saying how many
MEMBERS = "2"


def errors_in(printed: str) -> list[float]:
    """The mean error of each model in the table that ``evaluate`` prints, ours first."""
    (row,) = re.findall(r"^.*\bRMSE\b.*±.*$", printed, re.MULTILINE)
    return [float(mean) for mean in re.findall(r"([\d.]+) ±", row)]


def test_the_commands_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "bin" / "rfrboost"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m rfrboost.cli "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    printed = said = ""
    for line in "".join(blocks).splitlines():
        words = shlex.split(line)
        if words[0] == "cd":
            monkeypatch.chdir(words[1])
            flats = Path("flats.csv").read_text().splitlines(keepends=True)
            Path("flats.csv").write_text("".join(flats[: SHORT + 1]))
        elif words[0] == "rfrboost" and "|" not in words:
            if words[1] == "fit" and "--bags" not in words:
                words += ["--bags", MEMBERS]
            ran = worked(rfrboost(*words[1:]))
            if words[1] == "demo":
                shown = re.findall(r"^\$ rfrboost (\w+)", ran.said, re.MULTILINE)
                assert shown == ["evaluate", "fit", "info", "explain", "predict"]
                # The demo's last sentences say that its error is the lowest.
                ours, *others = errors_in(ran.out.decode())
                assert ours < 0.9 * min(others)
        else:
            command = ["bash", "-eo", "pipefail", "-c", line]
            ran = subprocess.run(command, check=True, capture_output=True, text=True)
            printed = ran.stdout or printed
            said += ran.stderr
    low, high = map(float, printed.split())
    assert "Task: regression ('y' contains numbers)" in said
    assert "\x1b" not in said, "no colours in a pipe"
    scores = pd.read_csv("scores.csv")
    assert len(scores) == 3 * 5, "three models and five folds"
    assert 4 < low < 6
    assert 14 < high < 16
    made = {path.name for path in Path().iterdir()}
    assert {"scores.csv", "rents.csv", "rents.parquet", "districts.csv", "shares.csv"} <= made
    assert Path("kept.csv").read_text().startswith("district,let,prediction\n")
    rents = [float(cell) for cell in Path("rents.tsv").read_text().split()[1:]]
    assert 600 < min(rents[:6]) < max(rents[:6]) < 1600
    assert Path("rents.csv").read_text().count("\n") == 9
