# Two commands do everything on a bare machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test test-core test-torch lint bench bench-scale replay docs wheel-test clean

# One stamp a set of extras, so that the demo does not wait for the test tools.
$(VENV)/%.stamp: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	touch $@

demo: $(VENV)/demo.stamp
	$(BIN)/python examples/demo.py

test: $(VENV)/test.stamp lint
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

# The tests of the library itself, without Dask, ONNX, PyTorch, other modelling libraries or a browser.
CORE = numerics tables model rows paper auto blocks estimators files inspection
test-core: $(VENV)/test-core.stamp
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto $(CORE:%=tests/%) src/rfrboost

# What needs PyTorch, skipped by `make test` where it is absent. A CPU build is enough and much
# smaller: name the one you can get, as in `make test-torch TORCH="torch==2.13.0"`.
TORCH ?= torch
test-torch: $(VENV)/test.stamp
	$(BIN)/python -m pip install --quiet "$(TORCH)" --editable ".[test,torch]"
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/test_torch.py tests/test_experiments_mlp.py tests/test_experiments_searched.py tests/test_experiments_fine_tune.py

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/bench.stamp
	$(BIN)/python -m benchmarks

# Streamed fits of 10^4 to 10^7 rows: half an hour, and 6 GB of disk for the largest. Then two Dask
# workers beside one process of two threads, 2·10^6 rows each.
bench-scale: $(VENV)/bench.stamp
	$(BIN)/python -m benchmarks.scale
	$(BIN)/python -m benchmarks.dask

replay: $(VENV)/experiments.stamp
	$(BIN)/python -m experiments replay

# The site, in docs/_build/html; a warning is an error, and examples run on one core, with the
# environment's own commands. Pages of modules that are no more would stay: they are written anew.
docs: $(VENV)/docs.stamp
	rm -rf docs/api docs/internals
	PATH="$(CURDIR)/$(BIN):$$PATH" OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 \
		$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

# The README's path for a new user, word by word: an empty directory, and nothing in it but the wheel.
wheel-test:
	$(PYTHON) tools/wheel_path.py

clean:
	rm -rf $(VENV) docs/_build docs/api docs/gallery docs/internals dist build .pytest_cache .mypy_cache .ruff_cache demo-output
