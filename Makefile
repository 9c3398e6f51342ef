# Two commands matter: `make run` and `make test`. Both set up .venv if it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(or $(shell command -v uv),.uv/bin/uv)
ENV ?=
# Empty where there is no driver of NVIDIA, and PyTorch's build for CPUs does; NVIDIA= and NVIDIA=yes decide otherwise.
NVIDIA := $(shell command -v nvidia-smi || ls /proc/driver/nvidia/version 2>/dev/null)
PROCESSES := -n 2 --dist loadgroup --no-loadscope-reorder
# Tests that have targets of their own.
ALONE := cluster or chaos
# What computes, without what kills processes, damages files, or runs where no instruction of this processor is chosen.
NUMERICAL := $(wildcard $(addprefix tests/,losses retrieval hashing networks hamming embeddings photographs training)) \
	$(addprefix --ignore=tests/,hamming/test_durability.py hamming/test_damage.py \
	training/resuming training/test_ranks.py losses/test_exponentiated_triton.py)
BENCHMARK = $(if $(ENV),$(ENV),digits)
# One word for Kedro, Kedro-Viz and MLflow; every one of them honours it.
export DO_NOT_TRACK := true
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Without bytecode beside them, every command compiles its libraries again, two thirds of the time of a short one.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-all lock test-avx2 test-chaos test-cluster coverage lint docs viz mlflow report search bench chaos clean

run: $(VENV)/installed
	$(BIN)/kedro run --pipelines=full $(if $(ENV),--env=$(ENV))

# Two processes of one thread each; whole files go to one of them, in the order of tests/conftest.py.
test: $(VENV)/test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q $(PROCESSES) -m 'not ($(ALONE) or complete)' --doctest-modules src tests

# With those that want a server of PostgreSQL, Milvus or S3, the notebook's packages or the documentation's.
test-all: $(VENV)/all
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q $(PROCESSES) -m 'not ($(ALONE))' --doctest-modules src tests

# The same, a fifth slower, with the share of lines of src that the tests run.
coverage: $(VENV)/all
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q $(PROCESSES) -m 'not ($(ALONE))' --cov=deephash_pipeline --cov-report=
	@echo "lines of src that the tests run: $$($(BIN)/coverage report --format=total) %"

# What computes, once more with the instructions of processors without AVX-512, where sums round differently.
test-avx2: $(VENV)/test
	OMP_NUM_THREADS=1 ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_CBWR=AVX2 NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES= \
		$(BIN)/python -m pytest -q $(PROCESSES) -m 'not ($(ALONE) or complete)' $(NUMERICAL)

# What starts two nodes of Ray, or of torchrun, on this machine, alone on its cores: services of Ray that starve end by themselves.
test-cluster: $(VENV)/all
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/cluster

lint: $(VENV)/lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/hadolint Dockerfile

# The documentation, in site/; a link that leads nowhere is an error.
docs: $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# $(call open,port,address): opens a browser as soon as somebody listens on the port.
open = for second in $$(seq 60); do sleep 1; \
  $(PYTHON) -c "import socket; socket.create_connection(('127.0.0.1', $(1))).close()" 2>/dev/null && exec $(PYTHON) -m webbrowser -t "$(2)"; \
  done

viz: $(VENV)/viz
	$(BIN)/kedro viz run $(if $(ENV),--env=$(ENV))

# Opens on the runs of the benchmark; by itself MLflow opens on its pages for language models, whatever kind an experiment is of.
EXPERIMENT = $(shell $(PYTHON) -c "import sqlite3; print(*sqlite3.connect('file:mlflow.db?mode=ro', uri=True).execute('select experiment_id from experiments where name = ?', ['$(BENCHMARK)']).fetchone())" 2>/dev/null)
RUNS = http://127.0.0.1:5000/\#/experiments/$(EXPERIMENT)/runs?workflowType=machine_learning&viewStateShareKey=cells
mlflow: $(VENV)/installed
	@echo "The runs: $(RUNS)"
	@$(call open,5000,$(RUNS)) & \
	$(BIN)/mlflow server --host 127.0.0.1 --port 5000 --backend-store-uri sqlite:///$(CURDIR)/mlflow.db --artifacts-destination $(CURDIR)/mlartifacts

report:
	@test -f data/08_reporting/$(BENCHMARK)/report.html || { echo "no report of $(BENCHMARK) yet: make run $(if $(ENV),ENV=$(ENV))"; exit 1; }
	$(PYTHON) -m webbrowser -t "file://$(CURDIR)/data/08_reporting/$(BENCHMARK)/report.html"

# Serves a page that searches the database of the run by picture. Its index is made at the first time, and anew after another run.
SEARCHED = data/07_model_output/$(BENCHMARK)/deephash/b48/index
search: $(VENV)/installed
	$(BIN)/kedro run --pipelines=indexing $(if $(ENV),--env=$(ENV))
	@$(call open,8000,http://127.0.0.1:8000/) & \
	$(BIN)/deephash-pipeline serve $(SEARCHED)

# Times evaluation, loss and training against their rivals, one after the other on a quiet machine, and rewrites the
# tables of docs/results/performance.md.
bench: $(VENV)/bench
	$(BIN)/python -m benchmarks.evaluation $(if $(QUICK),--quick)
	$(if $(QUICK),,$(BIN)/python -m benchmarks.large_database)
	$(BIN)/python -m benchmarks.loss $(if $(QUICK),--quick)
	$(BIN)/python -m benchmarks.training_loop $(if $(QUICK),--quick)
	$(BIN)/python -m benchmarks.search $(if $(QUICK),--quick)
	$(BIN)/python -m benchmarks.near_pairs $(if $(QUICK),--items=100000)

# Kills a real run ten times, and compares every file it ends with with those of one that nobody disturbed.
test-chaos: $(VENV)/test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/end_to_end/test_chaos.py

# Kills a run of all stages a hundred times and compares every file it ends with with an undisturbed run's.
chaos: $(VENV)/test
	DEEPHASH_KILLS=100 $(BIN)/python -m pytest -q -s --timeout=7200 tests/end_to_end/test_chaos.py

# Removes what runs have made, and names it: what a manifest of this project is beside, known by its seal, and files that
# have no manifest, by their whole name in their place; those of an index by what is in them. Raw images, the environment,
# a database of MLflow with registered models, and what others have put beside it stay.
NINE = $(shell printf '[0-9]%.0s' $$(seq 9))
DIGEST = $(shell printf '[0-9a-f]%.0s' $$(seq 32))
MADE = -path '*/checkpoints/checkpoint-$(NINE).*' -o -path '*/checkpoints/.checkpoint-$(NINE).*-$(DIGEST).*' \
	-o -path 'data/06_models/*/*/b[0-9]*/study.db' -exec grep -q '^SQLite format 3' {} ';' -o -path 'data/02_intermediate/*/raw_images.verified' -o -name run.lock
LEDGER = CREATE TABLE segments (first_position
OURS = data -mindepth 3 -path 'data/0[2-8]_*'
REGISTERED = import sqlite3, sys; sys.exit(not sqlite3.connect("file:mlflow.db?mode=ro", uri=True).execute("select 1 from registered_models").fetchone())
clean:
	find $(OURS) -name '*.provenance.json' -exec sh -c 'for made; do \
		if grep -q "\"seal\": \"[0-9a-f]*\"" "$$made"; then rm -fv "$${made%.provenance.json}" "$$made"; fi; done' sh {} +
	find $(OURS) -path '*/decoded/*.digests' \
		-exec sh -c 'for made; do rm -fv "$${made%.digests}.npy" "$${made%.digests}.whole.npy" "$$made"; done' sh {} +
	find $(OURS) -path '*/index/index.sqlite' -exec sh -c 'for made; do index=$${made%/index.sqlite}; \
		if grep -qF "$(LEDGER)" "$$made"; then for part in "$$index"/segments/$(DIGEST) "$$index"/pictures/$(DIGEST).png; do \
			if head -c 200 "$$part" | grep -aqE "^deephash codes 1|deephash_pipeline"; then rm -fv "$$part.z" "$$part"; fi; done; \
		rm -fv "$$made" "$$made-wal" "$$made-shm" "$$index/writer.lock" "$$index/hasher.onnx"; fi; done' sh {} +
	find $(OURS) -type f \( $(MADE) \) -print -delete
	find data -mindepth 2 -path 'data/0[2-8]_*' -type d -empty -delete
	if $(PYTHON) -c '$(REGISTERED)' 2>/dev/null; then echo "mlflow.db and mlartifacts stay: models are registered there"; \
		else rm -rfv mlflow.db mlartifacts | head -3; fi
	rm -rf site .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The library with what a run needs, nothing else; versions and their digests are those of requirements.lock.
# What is there stays: where PyTorch's build for CPUs is installed first, that with CUDA is never fetched.
CPU_BUILD = $(UV) pip install --quiet --python $(VENV) --torch-backend cpu $$(grep -oE '^(torch|torchvision)==[^ ]+' requirements.lock)
INSTALL = $(UV) pip install --quiet --python $(VENV) --constraints requirements.lock --build-constraints requirements.lock
$(VENV)/installed: requirements.lock pyproject.toml | $(UV)
	$(UV) venv --quiet --allow-existing --python $(PYTHON) $(VENV)
	$(if $(NVIDIA),,$(CPU_BUILD) 2>/dev/null || echo "PyTorch's build for CPUs cannot be had here: the usual one is installed, with CUDA")
	$(INSTALL) --editable '.[pipeline]'
	touch $@

# What a target needs beside that: a dependency group of pyproject.toml.
$(VENV)/%: $(VENV)/installed
	$(INSTALL) --group $*
	touch $@

.uv/bin/uv:
	$(PYTHON) -m venv .uv
	sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > .uv/uv.txt
	.uv/bin/pip install --quiet --require-hashes --no-deps --requirement .uv/uv.txt

# After a change of dependencies in pyproject.toml; versions that need not move stay.
lock: $(UV)
	$(UV) pip compile pyproject.toml --all-extras --group all --group bench --group build --group lint --group serving --universal \
		--python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --quiet --output-file requirements.lock
