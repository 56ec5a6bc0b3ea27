# Two commands do everything on a bare machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test test-core test-torch lint bench bench-scale bench-predict replay docs wheel-test fuzz clean

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
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/export/test_torch.py tests/experiments/test_experiments_mlp.py tests/experiments/test_experiments_searched.py tests/experiments/test_experiments_fine_tune.py

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

# Microseconds a row of predictions, ours beside four libraries of trees. The tables are those of the
# experiments; it continues where it was stopped.
bench-predict: $(VENV)/bench.stamp
	$(BIN)/python -m benchmarks.predict

replay: $(VENV)/experiments.stamp
	$(BIN)/python -m experiments replay

# The site, in docs/_build/html. Warnings are errors. Examples run on one core, with the commands of
# this environment. Pages of modules are made anew, so that none is left of a module that is gone.
docs: $(VENV)/docs.stamp
	rm -rf docs/api docs/internals
	PATH="$(CURDIR)/$(BIN):$$PATH" OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 \
		$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

# The commands of docs/start.md, word by word, in an empty directory that holds only the wheel.
wheel-test:
	$(PYTHON) tools/wheel_path.py

# Mutated model files, 2,000 of them: refused or loaded within a second and 256 MB each.
fuzz: $(VENV)/test-core.stamp
	$(BIN)/python -m tools.fuzz_files

clean:
	rm -rf $(VENV) docs/_build docs/api docs/gallery docs/internals dist build .pytest_cache .mypy_cache .ruff_cache demo-output
