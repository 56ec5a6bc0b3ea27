"""Memory that is freed and asked for again, many times a layer.

A fit makes and frees arrays of a megabyte thousands of times. glibc hands memory of that size back
to the system at once, and the system clears it, page by page, when it is asked for again: a fifth
of the time of a small fit. How much it keeps instead depends on the largest block that has been
freed so far, up to 32 MB.
"""

import numpy as np

# Just below the largest block that counts.
BYTES = 2**25 - 2**16


def keep_freed_memory() -> None:
    """From now on keep up to 64 MB of freed memory for reuse; nothing elsewhere than in glibc.

    The block is never written to, so that it costs no memory.
    """
    np.empty(BYTES, np.uint8)
