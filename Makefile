# Two commands do everything on a bare machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test lint bench replay clean

# One stamp a set of extras, so that the demo does not wait for the test tools.
$(VENV)/%.stamp: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	touch $@

demo: $(VENV)/demo.stamp
	$(BIN)/python examples/demo.py

test: $(VENV)/test.stamp lint
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/bench.stamp
	$(BIN)/python -m benchmarks

replay: $(VENV)/experiments.stamp
	$(BIN)/python -m experiments replay

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache demo-output
