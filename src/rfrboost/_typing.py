"""Names for the two types of arrays that run through the package."""

import numpy as np
from numpy.typing import NDArray

#: numbers, float32 or float64
Array = NDArray[np.floating]

#: numbers of rows, columns, levels or folds
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
