"""The most memory that a process takes while it does something (Linux)."""

import re
from pathlib import Path

PROCESS = Path("/proc/self")


class PeakMemory:
    """Notes how much memory the process has now, and forgets the most that it ever had."""

    def __init__(self) -> None:
        try:
            # 5 resets the peak of the resident size, VmHWM.
            (PROCESS / "clear_refs").write_text("5", encoding="ascii")
            self.before = megabytes("VmRSS")
        except OSError:
            self.before = float("nan")

    def grown_by(self) -> float:
        """The most memory since then, less that of the beginning, in MB; NaN if it is unknown."""
        return megabytes("VmHWM") - self.before if self.before == self.before else self.before


def megabytes(field: str) -> float:
    """A field of the process's status: VmRSS, the resident size now, or VmHWM, its peak."""
    status = (PROCESS / "status").read_text(encoding="ascii")
    found = re.search(rf"^{field}:\s+(\d+) kB", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024
