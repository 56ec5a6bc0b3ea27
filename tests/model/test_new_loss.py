"""A built-in loss is entered in one place: a class and its entry in ``BUILT_IN``.

The test does so in a copy of the package, where it changes no other file, and then uses the loss
in every way that the library has.
"""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import rfrboost

pytest.importorskip("safetensors")

CLASS = '''

@dataclass(frozen=True)
class LogCosh(BuiltInLoss):
    """s² log cosh(r/s): squared error near 0, absolute error far out."""

    s: float | Array = 1.0
    tag = "log-cosh"
    name = "log_cosh"
    stored: ClassVar[StoredFields] = {"s": "scale"}
    degree = 2

    def in_units(self, scale):
        return LogCosh(self.s / scale)

    def fitted_to(self, y, w, rounding):
        return LogCosh(robust_spread(y, w))

    def accepts(self, n_outputs):
        return np.size(self.s) in (1, n_outputs)

    def value(self, raw, y):
        r = (raw - y) / self.s
        return row_sums(self.s**2 * (np.logaddexp(r, -r) - np.log(2)))

    def gradient(self, raw, y):
        return self.s * np.tanh((raw - y) / self.s)

    def torch_value(self, torch, raw, y):
        s = torch.as_tensor(self.s, dtype=raw.dtype, device=raw.device)
        r = (raw - y) / s
        return s**2 * torch.logaddexp(r, -r)


BUILT_IN = (*BUILT_IN, LogCosh)
'''

USE = """
import sys
from importlib.util import find_spec

import numpy as np

import rfrboost
from rfrboost._model.losses import LogCosh

rng = np.random.default_rng(0)
X = rng.standard_normal((100, 3))
y = 50 * np.sin(X[:, 0]) + rng.standard_normal(100)
models = {
    "automatic": rfrboost.RFRBoostRegressor(loss="log_cosh", n_bags=2, random_state=0),
    "single": rfrboost.RFRBoostRegressor(2, n_features=8, loss="log_cosh", random_state=0),
    "object": rfrboost.RFNNRegressor(20, loss=LogCosh(2.0), random_state=0),
}
for name, model in models.items():
    predicted = model.fit(X, y).predict(X)
    print("fitted", name, model.score(X, y) > 0.5)
    model.save(f"{sys.argv[1]}/{name}")
    tag = rfrboost.file_info(f"{sys.argv[1]}/{name}")["fitted"]["loss"]["kind"]
    again = rfrboost.load(f"{sys.argv[1]}/{name}").predict(X)
    print("loaded", name, tag, np.array_equal(again, predicted))
    if find_spec("onnx") and find_spec("onnxruntime"):
        from onnxruntime import InferenceSession

        session = InferenceSession(model.to_onnx(dtype="float64").SerializeToString())
        answer = session.run(None, model.onnx_inputs(X, dtype="float64"))[0][:, 0]
        print("onnx", name, np.allclose(answer, predicted, atol=1e-3))
    if find_spec("torch"):
        import torch
        from rfrboost.torch import fine_tune

        answer = model.to_torch()(torch.from_numpy(model.encode(X))).detach().numpy()[:, 0]
        print("torch", name, np.allclose(answer, predicted, atol=1e-3))
        print("tuned", name, np.isfinite(fine_tune(model, X, y, n_epochs=1).fine_tuning_).all())
"""


def test_a_new_loss_is_entered_in_one_place(tmp_path):
    package = tmp_path / "rfrboost"
    shutil.copytree(
        Path(rfrboost.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    with (package / "_model" / "losses.py").open("a", encoding="utf-8") as stream:
        stream.write(CLASS)
    files = tmp_path / "files"
    files.mkdir()
    command = [sys.executable, "-c", USE, files]
    # The copy comes before the package itself, and everything else is found as in this process.
    own = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, env=own
    )
    assert done.returncode == 0, done.stderr
    expected = []
    for name in ("automatic", "single", "object"):
        expected += [f"fitted {name} True", f"loaded {name} log-cosh True"]
        if find_spec("onnx") and find_spec("onnxruntime"):
            expected += [f"onnx {name} True"]
        if find_spec("torch"):
            expected += [f"torch {name} True", f"tuned {name} True"]
    assert done.stdout.splitlines() == expected
