"""What is written but cannot be built yet, because the code that it describes is not there.

A page is named by its path in ``docs``, an example by its file name. When the code comes, its
lines go; when all are gone, so may this file.
"""

PAGES: list[str] = [
    "cli.md",  # the command line
    "guide/intervals.md",  # intervals, sets and quantiles
    "guide/exports.md",  # ONNX
]
EXAMPLES: list[str] = [
    "plot_regression",  # intervals
    "plot_onnx",  # the command line and ONNX
]
