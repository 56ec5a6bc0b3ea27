"""Names for the few types that run through the package."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
