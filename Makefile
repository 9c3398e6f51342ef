# Two commands matter: `make run` and `make test`. Both set up .venv if it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ENV ?=
PROCESSES := -n 2 --dist loadgroup --no-loadscope-reorder
NUMERICAL := $(wildcard $(addprefix tests/,losses retrieval hashing networks search training))
BENCHMARK = $(if $(ENV),$(ENV),digits)
# One word for Kedro, Kedro-Viz and MLflow; every one of them honours it.
export DO_NOT_TRACK := true
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: run test test-avx2 coverage lint viz mlflow report bench chaos clean

run: $(VENV)/installed
	$(BIN)/kedro run --pipelines=full $(if $(ENV),--env=$(ENV))

# Two processes of one thread each; whole files go to one of them, in the order of tests/conftest.py.
test: $(VENV)/installed
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q $(PROCESSES)

# The same, a fifth slower, with the share of lines of src that the tests run.
coverage: $(VENV)/installed
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q $(PROCESSES) --cov=deephash_pipeline --cov-report=
	@echo "lines of src that the tests run: $$($(BIN)/coverage report --format=total) %"

# What computes, once more with the instructions of processors without AVX-512, where sums round differently.
test-avx2: $(VENV)/installed
	OMP_NUM_THREADS=1 ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_CBWR=AVX2 \
		$(BIN)/python -m pytest -q $(PROCESSES) $(NUMERICAL)

lint: $(VENV)/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

viz: $(VENV)/installed
	$(BIN)/kedro viz run --host=127.0.0.1 --port=4141 --pipeline=full_at_32_bits $(if $(ENV),--env=$(ENV))

mlflow: $(VENV)/installed
	$(BIN)/mlflow server --host 127.0.0.1 --port 5000 --backend-store-uri sqlite:///$(CURDIR)/mlflow.db

report:
	@test -f data/08_reporting/$(BENCHMARK)/report.html || { echo "no report of $(BENCHMARK) yet: make run $(if $(ENV),ENV=$(ENV))"; exit 1; }
	$(PYTHON) -m webbrowser -t "file://$(CURDIR)/data/08_reporting/$(BENCHMARK)/report.html"

# Times evaluation against its rivals, one after the other on a quiet machine, and rewrites the tables of docs/performance.md.
bench: $(VENV)/bench-installed
	$(BIN)/python -m benchmarks.evaluation $(if $(QUICK),--quick)
	$(if $(QUICK),,$(BIN)/python -m benchmarks.large_database)
	$(BIN)/python -m benchmarks.loss $(if $(QUICK),--quick)
	$(BIN)/python -m benchmarks.training_loop $(if $(QUICK),--quick)

# Kills real runs a hundred times and compares every file they end with with an undisturbed run's. Takes about half an hour.
chaos: $(VENV)/installed
	$(BIN)/python -m benchmarks.chaos --kills 100

# Removes what runs have made. Raw images and the environment stay.
clean:
	find data -mindepth 2 -not -path 'data/01_raw/*' -not -name .gitkeep -delete
	rm -rf mlflow.db mlartifacts .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

# Only what the extra `bench` adds to the lock above; --no-deps, so that it can move no version of it. The lock is made by
# uv pip compile pyproject.toml --extra bench -c requirements.lock --universal --python-version 3.11 --generate-hashes --no-header
# --no-emit-index-url, with --no-emit-package for each package of requirements.lock; the list of those at its end is cut off.
$(VENV)/bench-installed: $(VENV)/installed requirements-bench.lock
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements-bench.lock
	touch $@
