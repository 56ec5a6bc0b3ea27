"""Freed memory is kept for reuse."""

import os
import platform
import subprocess
import sys

import pytest

CODE = """
import resource, sys
import numpy as np
from rfrboost._numerics.threads import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

if sys.argv[1] == "kept":
    keep_freed_memory()
before = faults()
for _ in range(100):
    several = [np.ones(2**20, np.uint8) for _ in range(8)]
    del several
print(faults() - before)
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only glibc returns freed memory at once"
)
def test_memory_that_was_freed_comes_back_without_being_cleared_again():
    # Dask, for one, sets how much glibc keeps for all processes that are begun after it.
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_"))}

    def faults(how: str, setting: str) -> int:
        """How many pages were cleared by a process of its own."""
        own = env | {"RFRBOOST_KEEP_FREED_MEMORY": setting}
        return int(subprocess.check_output([sys.executable, "-c", CODE, how], env=own))

    assert faults("kept", "1") < 5_000
    assert faults("handed back", "1") > 50_000
    assert faults("kept", "0") > 50_000
