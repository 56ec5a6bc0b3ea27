"""Names for the few types that run through the package."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Indices = NDArray[np.intp]


def frozen(array: Array) -> Array:
    """The array, contiguous and read-only: fitted models never change."""
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array
