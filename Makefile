# Two commands do everything on a bare machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# The many processes of the tests share compiled modules, also where the environment says not to keep
# any: without them each compiles the library anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-core test-torch test-oldest test-newest test-locked lint bench bench-scale bench-predict replay notebooks docs \
	wheel-test fuzz package audit lock clean

ONE_THREAD = OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
# Each worker begins with its own half of the tests, so that most models of a module are fitted once,
# and takes tests of the other when it is done.
PARALLEL = -n auto --dist worksteal

# One stamp a set of extras, so that the demo does not wait for the test tools.
$(VENV)/%.stamp: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	touch $@

demo: $(VENV)/demo.stamp
	$(BIN)/python examples/demo.py

test: $(VENV)/test.stamp lint
	$(ONE_THREAD) $(BIN)/python -m pytest $(PARALLEL)

# The tests of the library itself, without Dask, ONNX, PyTorch, other modelling libraries or a browser.
CORE = numerics tables model rows paper auto blocks estimators files inspection
test-core: $(VENV)/test-core.stamp
	$(ONE_THREAD) $(BIN)/python -m pytest $(PARALLEL) $(CORE:%=tests/%) src/rfrboost

# What needs PyTorch, skipped by `make test` where it is absent. A CPU build is enough and much
# smaller: name the one you can get, as in `make test-torch TORCH="torch==2.13.0"`.
TORCH ?= torch
test-torch: $(VENV)/test.stamp
	$(BIN)/python -m pip install --quiet "$(TORCH)" --editable ".[test,torch]"
	$(ONE_THREAD) $(BIN)/python -m pytest tests/export/test_torch.py tests/experiments/test_experiments_mlp.py tests/experiments/test_experiments_searched.py tests/experiments/test_experiments_fine_tune.py

# All tests with the oldest versions that are allowed, those of floors.txt. Old packages use what newer
# ones that they need have since deprecated.
OLDEST = .venv-oldest/bin/python -m
.venv-oldest/stamp: pyproject.toml floors.txt
	rm -rf .venv-oldest
	$(PYTHON) -m venv .venv-oldest
	$(OLDEST) pip install --quiet --constraint floors.txt --editable ".[test]"
	touch $@
test-oldest: .venv-oldest/stamp
	$(ONE_THREAD) $(OLDEST) pytest $(PARALLEL) -W ignore::DeprecationWarning

# All tests with the newest releases and pre-releases, as of now.
NEWEST = .venv-newest/bin/python -m
test-newest:
	test -x .venv-newest/bin/python || $(PYTHON) -m venv .venv-newest
	$(NEWEST) pip install --quiet --pre --upgrade --upgrade-strategy eager --editable ".[test]"
	$(ONE_THREAD) $(NEWEST) pytest $(PARALLEL)

# All tests with the very files whose hashes are in requirements.lock, on the Python it was made with.
LOCKED = .venv-locked/bin/python -m
.venv-locked/stamp: pyproject.toml requirements.lock
	rm -rf .venv-locked
	$(PYTHON) -m venv .venv-locked
	$(LOCKED) pip install --quiet --require-hashes --requirement requirements.lock
	$(LOCKED) pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@
test-locked: .venv-locked/stamp
	$(LOCKED) ruff check .
	$(LOCKED) mypy
	$(ONE_THREAD) $(LOCKED) pytest $(PARALLEL)

# requirements.lock anew: the newest versions that go together, without the name of where they were found.
lock: $(VENV)/release.stamp
	$(BIN)/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras --no-header \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-annotate \
		--extra test --build-deps-for editable --output-file requirements.lock pyproject.toml

# What is uploaded: it builds, its metadata is right, and its public names have types.
package: $(VENV)/release.stamp
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tools/typed.py

# Patterns in our code that deserve a look, and known weaknesses of the packages in requirements.lock. It
# fails where a package cannot be looked up.
audit: $(VENV)/release.stamp
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive src tools examples
	$(BIN)/pip-audit --strict --require-hashes --disable-pip --requirement requirements.lock

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

# The notebooks anew, with their outputs: some minutes on one core. Look at them before you commit.
notebooks: $(VENV)/test.stamp
	$(ONE_THREAD) $(BIN)/python tools/notebooks.py

# The site, in docs/_build/html. Warnings are errors. Examples run on one core, with the commands of
# this environment. Pages of modules are made anew, so that none is left of a module that is gone.
docs: $(VENV)/docs.stamp
	rm -rf docs/api docs/internals docs/notebooks
	PATH="$(CURDIR)/$(BIN):$$PATH" $(ONE_THREAD) \
		$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

# The commands of docs/start.md, word by word, in an empty directory that holds only the wheel.
wheel-test:
	$(PYTHON) tools/wheel_path.py

# Mutated model files, 2,000 of them: refused or loaded within a second and 256 MB each.
fuzz: $(VENV)/test-core.stamp
	$(BIN)/python -m tools.fuzz_files

clean:
	rm -rf $(VENV) .venv-oldest .venv-newest .venv-locked docs/_build docs/api docs/gallery docs/internals docs/notebooks dist build .pytest_cache .mypy_cache .ruff_cache demo-output
