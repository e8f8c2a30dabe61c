# `make quickstart` and `make test` need only Python 3.11, 3.12 or 3.13; each prepares
# the virtual environment .venv by itself.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	2>/dev/null && { echo $$python; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
# One worker runs all tests of a file, because they share compiled programs and models.
# tests/conftest.py sets the order of the files.
PYTEST := $(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist loadscope \
	--no-loadscope-reorder
NEUTRAL_TESTS := tests/backend tests/attention tests/models tests/presets \
	tests/decoding
# The code that depends on the backend, and the conformance of every variant.
CONFORMANCE_TESTS := tests/backend tests/attention/test_conformance.py \
	tests/attention/test_conformance_step.py tests/attention/test_conformance_keras.py

# A file of package releases to install instead of the newest ones.
CONSTRAINTS ?=
# One line per package, to show that a long download is still running.
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check \
	$(CONSTRAINTS:%=--constraint %)
PROGRESS := sed -un 's/^ *\(Collecting\|Downloading\|Using cached\|Installing collected\|Successfully installed\) /  &/p'

BENCHMARK = $(BIN)/python benchmarks/$(1).py $(2) --output benchmarks/results/$@.json
REPORTS := serving serving-variants serving-start serving-start-int8 \
	serving-requests peers variants variants-int8 training joeynmt \
	recurrences recurrences-long recurrences-longest devices \
	batches pipeline planner long-sequences memory system-costs

# Comparisons whose systems `make system-costs` measures.
COMPARED := long hybrid 12m

# Tests compile much and compute little: XLA skips costly optimizations, and generates
# kernels in the way that compiles faster.
COMPILE_FAST := --xla_backend_optimization_level=0 \
	--xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false \
	--xla_cpu_parallel_codegen_split_count=1
ON_TENSORFLOW := KERAS_BACKEND=tensorflow XLA_FLAGS="$(COMPILE_FAST)" $(PYTEST)
ON_JAX := KERAS_BACKEND=jax JAX_DISABLE_MOST_OPTIMIZATIONS=1 \
	XLA_FLAGS="$(COMPILE_FAST)" $(PYTEST)

# Limits oneDNN and XLA to the instructions of a processor without AVX512, and so without
# VNNI and bfloat16. TensorFlow's own products and NumPy are not limited.
WITHOUT_AVX512 := TF_ENABLE_ONEDNN_OPTS=0 ONEDNN_MAX_CPU_ISA=AVX2 \
	KERAS_BACKEND=tensorflow XLA_FLAGS="$(COMPILE_FAST) --xla_cpu_max_isa=AVX2" $(PYTEST)
# Tests of code that multiplies integers or bfloat16, chooses a precision, or exports.
PRECISION_TESTS := tests/backend tests/serving tests/training/test_training_config.py \
	tests/cli/test_export.py tests/cli/test_models.py tests/models/test_ensemble.py \
	tests/models/test_base.py tests/models/test_transformer_training.py \
	tests/models/test_seq2seq_training.py tests/attention/test_conformance_keras.py

# TensorFlow 2.19 has no wheels for Python 3.13, and its XLA lacks one of the options.
OLDEST_PYTHON ?= $(shell for python in python3.11 python3.12; do \
	$$python --version >/dev/null 2>&1 && { echo $$python; break; }; done)
OLDEST := VENV=.venv-oldest CONSTRAINTS=tests/oldest.txt PYTHON="$(OLDEST_PYTHON)" \
	COMPILE_FAST="$(filter-out %fusion_emitters=false,$(COMPILE_FAST))"
# Tests that must pass with the oldest releases; ALL=1 runs all fast tests.
OLDEST_TESTS := tests/backend tests/training

# TEST_EXTRAS=test,test-demo also installs the packages that test the pages of `kav demo`
# and of comparisons in a browser.
TEST_EXTRAS ?= test

# For the quickstart: maximum minutes of training, and test sentences to score.
MINUTES ?=
SENTENCES ?=

.PHONY: help quickstart models test test-slow test-zoo test-all test-without-avx512 test-oldest \
	test-oldest-here test-wheel lint docs benchmark $(REPORTS) clean

help:
	@echo "make quickstart  translate at once, then train a small model of your own"
	@echo "                 (MINUTES=1 SENTENCES=100 for a short training and test)"
	@echo "make test        style and types, then the fast tests: all on TensorFlow,"
	@echo "                 the conformance of every variant on JAX"
	@echo "make test-all    style and types, then all tests: make test, then these two"
	@echo "make test-slow   the slow tests of all but the zoo, on TensorFlow"
	@echo "make test-zoo    the slow tests of the zoo (attention, models, presets,"
	@echo "                 decoding) on TensorFlow, and all of its tests on JAX"
	@echo "make test-without-avx512"
	@echo "                 tests of integers, precision and exports, as on processors"
	@echo "                 that have no AVX512; ALL=1 for all tests on TensorFlow"
	@echo "make test-oldest"
	@echo "                 fast tests of backend and training with the oldest releases"
	@echo "                 of Keras and TensorFlow that are supported, in .venv-oldest;"
	@echo "                 ALL=1 for all fast tests"
	@echo "make test-wheel  build the wheel, install it elsewhere and use it there"
	@echo "make models      train the models of the package from nothing (DATA=folder;"
	@echo "                 hours; the same command continues where it stopped)"
	@echo "make lint        style and types alone"
	@echo "make docs        build the site in build/site and check its links"
	@echo "make benchmark   measures speed and memory (an hour or two)"
	@echo "make clean       remove the virtual environments and the caches"

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "No Python 3.11, 3.12 or 3.13 found." \
		"Name one: make PYTHON=/path/to/python3.11 …" >&2; exit 1; }
	@echo "Creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.package: setup.cfg pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "Installing keras_attnvariants with TensorFlow (some minutes the first time)"
	@$(INSTALL) --editable . | $(PROGRESS)
	@touch $@

$(VENV)/.tests: $(VENV)/.package
	@echo "Installing what the tests need"
	@$(INSTALL) --editable '.[$(TEST_EXTRAS)]' | $(PROGRESS)
	@touch $@

quickstart: $(VENV)/.package
	$(BIN)/python recipes/quickstart.py \
		$(MINUTES:%=--minutes %) $(SENTENCES:%=--sentences %)

# A folder with the corpus tatoeba-de-en; see recipes/train_models.py.
DATA ?=
models: $(VENV)/.package
	@test -n "$(DATA)" || { echo "Name the corpus: make models DATA=tatoeba-de-en" >&2; exit 1; }
	$(BIN)/python recipes/train_models.py --data "$(DATA)"

lint: $(VENV)/.tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(ON_TENSORFLOW) -m "not slow"
	$(ON_JAX) -m "not slow" $(CONFORMANCE_TESTS)

test-slow: lint
	$(ON_TENSORFLOW) -m slow --durations=20 $(NEUTRAL_TESTS:%=--ignore=%)

test-zoo: lint
	$(ON_TENSORFLOW) -m slow --durations=20 $(NEUTRAL_TESTS)
	$(ON_JAX) $(NEUTRAL_TESTS)

test-all: test test-slow test-zoo

test-without-avx512: lint
	$(WITHOUT_AVX512) $(if $(ALL),,$(PRECISION_TESTS) -m "not slow")

test-oldest:
	$(MAKE) $(OLDEST) test-oldest-here

test-oldest-here: $(VENV)/.tests
	$(ON_TENSORFLOW) -m "not slow" $(if $(ALL),,$(OLDEST_TESTS))

test-wheel: | $(BIN)/python
	tests/wheel.sh $(BIN)/python

$(VENV)/.docs: $(VENV)/.package
	@echo "Installing what the site needs"
	@$(INSTALL) --editable '.[docs]' | $(PROGRESS)
	@touch $@

# The API reference is read from the sources; the package is not imported.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --jobs auto \
		--builder html --conf-dir docs . build/site
	$(BIN)/python docs/sphinx_parts/check_site.py build/site

benchmark: $(REPORTS)
	$(BIN)/python benchmarks/report.py $(REPORTS:%=benchmarks/results/%.json)

$(REPORTS): $(VENV)/.package

serving:
	$(call BENCHMARK,serving,speed)

serving-variants:
	$(call BENCHMARK,serving,variants)

serving-start:
	$(call BENCHMARK,serving,start)

serving-start-int8:
	$(call BENCHMARK,serving,start --precision int8)

serving-requests:
	$(call BENCHMARK,serving_requests,--width 64)

peers:
	$(call BENCHMARK,decoding,peers)

variants:
	$(call BENCHMARK,decoding,variants)

variants-int8:
	$(call BENCHMARK,decoding,variants --precision int8)

training:
	$(call BENCHMARK,training)

joeynmt:
	$(call BENCHMARK,joeynmt)

RECURRENCES := context weights accumulated-weights accumulated-energies \
	subtracted-weights expanded-shared expanded-full expanded-head expanded-head-key

recurrences:
	$(call BENCHMARK,step_time,$(RECURRENCES:%=kav/%/multi30k) --runs 7)

recurrences-long:
	$(call BENCHMARK,step_time,$(RECURRENCES:%=kav/%/multi30k) --runs 7 --batch 16 --length 128)

recurrences-longest:
	$(call BENCHMARK,step_time,$(RECURRENCES:%=kav/%/multi30k) --runs 5 --batch 4 --length 512)

# Runs on JAX, which the tests need as well.
devices: $(VENV)/.tests
	$(call BENCHMARK,devices)

# The corpora from which to make batches: folders or registered names.
CORPORA ?= multi30k

batches:
	$(call BENCHMARK,batches,$(CORPORA:%=--data %))

pipeline:
	$(call BENCHMARK,pipeline)

planner:
	$(call BENCHMARK,planner)

long-sequences:
	$(call BENCHMARK,long_sequences)

memory:
	$(call BENCHMARK,memory)

system-costs:
	$(call BENCHMARK,system_costs,$(COMPARED:%=docs/comparisons/multi30k-%.toml))

clean:
	rm -rf $(VENV) .venv-oldest .pytest_cache .ruff_cache .mypy_cache .hypothesis build docs/api \
		*.egg-info
