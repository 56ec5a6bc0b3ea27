"""
From a file to ONNX
===================

A table in a file, a model from the command line, and predictions by a runtime that knows nothing of
this library.
"""

import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
import pandas as pd

import rfrboost

folder = Path(tempfile.mkdtemp())

# %%
# A table of made-up cars with a category and missing values, as a CSV file.

rng = np.random.default_rng(0)
n = 800
cars = pd.DataFrame(
    {
        "age": rng.integers(0, 15, n),
        "mileage": rng.gamma(4, 20_000, n).round(),
        "fuel": rng.choice(["petrol", "diesel", "electric"], n, p=[0.5, 0.3, 0.2]),
        "power": rng.normal(90, 25, n).round(1),
    }
)
new = 15_000 + 150 * cars["power"] + 9_000 * (cars["fuel"] == "electric")
cars["price"] = new * 0.87 ** cars["age"] * np.exp(-cars["mileage"] / 400_000)
cars["price"] *= np.exp(rng.normal(0, 0.08, n))
cars.loc[rng.random(n) < 0.1, "power"] = np.nan
cars.to_csv(folder / "cars.csv", index=False)

# %%
# The command line fits a model to it. Its messages go to standard error.

command = ["rfrboost", "fit", "cars.csv", "--target", "price", "--out", "cars.rfrboost"]
done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
print(done.stderr)

# %%
# Python reads the model file and writes it as ONNX: the encoding of the columns, the network and
# its head are one graph.

model = rfrboost.load(folder / "cars.rfrboost")
model.to_onnx(folder / "cars.onnx")
for path in sorted(folder.iterdir()):
    print(f"{path.name:15} {path.stat().st_size / 1e6:.2f} MB")

# %%
# From here on nothing of rfrboost is needed. The graph has an input for every column, of shape
# (n, 1): numbers with NaN for missing values, text for categories.

session = onnxruntime.InferenceSession(folder / "cars.onnx")
for column in session.get_inputs():
    print(column.name, column.type, column.shape)
inputs = {
    "age": cars[["age"]].to_numpy(np.float32),
    "mileage": cars[["mileage"]].to_numpy(np.float32),
    "fuel": cars[["fuel"]].to_numpy(object),
    "power": cars[["power"]].to_numpy(np.float32),
}
[by_onnx] = session.run(["variable"], inputs)

# %%
# The predictions are the same, up to rounding in single precision.

by_model = model.predict(cars.drop(columns="price"))
difference = np.abs(by_onnx[:, 0] - by_model)
print(f"largest difference: {difference.max():.3g}, of prices around {by_model.mean():.0f}")
assert difference.max() < 1e-4 * by_model.std()

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot(cars["price"], by_onnx[:, 0], ".", color="#0072B2", markersize=3)
left.axline((0, 0), slope=1, color="0.7", linestyle="--", zorder=0)
left.set_xlabel("price")
left.set_ylabel("prediction by ONNX")
right.hist(np.log10(np.maximum(difference / by_model.std(), 1e-10)), bins=30, color="#56B4E9")
right.set_xlabel("log₁₀ of the difference to predict, in standard deviations")
right.set_ylabel("rows")
plt.show()
