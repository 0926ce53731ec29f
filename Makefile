# Every target works in a fresh clone on a machine with Python 3.11 or later: what it needs is installed into .venv
# first, once. `make` alone tells what there is.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install
CHECKED := seglog_format pyspark_seglog.py conformance/seglog_conformance conformance/authoring spec/algorithms/seglog_algorithms tests tools benchmarks proofs fixtures/make fixtures/seglog_testdata
export NO_MKDOCS_2_WARNING := 1
# The tests start thousands of processes of the package: each would compile it again.
unexport PYTHONDONTWRITEBYTECODE
MEASURED := seglog_format/schema/*,seglog_format/codec/*,seglog_format/checks/*,seglog_format/log/*
WORKERS ?= 2
TESTEES ?= reference plain columnar kafka-python aiokafka aiokafka-pure
STAGES ?= look find check
ARGS ?=
NAME ?=
# What a wheel holds: compiled kernels for these processors, where it can be told for which ones they are.
LEVELS ?= $(if $(filter Linux-x86_64,$(shell uname -sm | tr ' ' -)),v2 v4,any)

.DEFAULT_GOAL := help
.PHONY: help demo test lint types prose proof trace docs docs-check coverage bench conform kafka-next package release-check release-reports ci clean

help: ## tell what there is
	@echo 'usage: make TARGET'
	@echo
	@sed -n 's/^\([a-z-]*\):.*## /  \1|/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-14s %s\n", $$1, $$2}'

# -- environment: a stamp file says that .venv holds what pyproject.toml asks for ----------------------------------

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo 'Python 3.11 or later is needed. Name one with: make PYTHON=python3.12 ...' >&2; exit 1; }
	@echo 'Making a virtual environment in $(VENV)'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml | $(BIN)/python
	@echo 'Installing seglog-format and what it needs into $(VENV) (once, some seconds)'
	@$(PIP) --editable .
	@touch $@

$(VENV)/.fast: pyproject.toml | $(VENV)/.base
	@echo 'Installing the columnar engine into $(VENV) (once, about a minute)'
	@$(PIP) --editable '.[fast,compile]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo 'Installing seglog-format and its development tools into $(VENV) (once, about a minute)'
	@$(PIP) --editable '.[dev]'
	@touch $(VENV)/.base $(VENV)/.fast $@

$(VENV)/.kernels: $(wildcard seglog_format/columnar/*.py) | $(VENV)/.fast
	@echo 'Compiling the columnar engine (once, a minute or two)'
	@$(BIN)/seglog warm
	@touch $@

$(VENV)/.spark: pyproject.toml | $(VENV)/.fast
	@echo 'Installing Spark, and a Java for machines without one, into $(VENV) (once, some minutes)'
	@$(PIP) --editable '.[compile,spark]'
	@touch $@

$(VENV)/.fuzz: pyproject.toml | $(VENV)/.dev
	@echo 'Installing a fuzzer into $(VENV) (once)'
	@$(PIP) --editable '.[dev,fuzz]'
	@touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	@echo 'Installing what builds the documentation into $(VENV) (once)'
	@$(PIP) --editable '.[docs]'
	@touch $(VENV)/.base $@

# -- look ------------------------------------------------------------------------------------------------------------

demo: $(VENV)/.base $(if $(filter engine,$(STAGES)),$(VENV)/.kernels) $(if $(filter spark,$(STAGES)),$(VENV)/.spark $(VENV)/.kernels) ## read log directories that real Kafka brokers wrote (STAGES=engine, peers or spark: more)
	@$(BIN)/python -m tools.demo --stages '$(STAGES)' $(ARGS)

# -- check -----------------------------------------------------------------------------------------------------------

test: $(VENV)/.dev $(VENV)/.kernels ## run the tests
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup $(ARGS)

lint: $(VENV)/.dev ## style, formatting, which module may import which, and the witness of each fact about Kafka
	@$(BIN)/ruff check $(CHECKED)
	@$(BIN)/ruff format --check $(CHECKED)
	@$(BIN)/lint-imports
	@PYTHONPATH=conformance $(BIN)/python -m tools.witnesses
	@$(BIN)/python -m tools.docs.algorithm_blocks --check
	@$(BIN)/python -m tools.budget

types: $(VENV)/.dev ## strict types
	@$(BIN)/mypy

prose: $(VENV)/.dev ## the words of pages and docstrings, read by Vale if it is here or Go can build it
	@$(BIN)/python -m tools.prose

trace: $(VENV)/.dev $(VENV)/.kernels ## every requirement has its code, its test and its fault
	@$(BIN)/python -m tools.trace --check $(ARGS)

proof: $(VENV)/.dev $(VENV)/.kernels $(if $(filter fuzz,$(NAME)),$(VENV)/.fuzz) ## run one long proof in full and write its report (NAME=damages; without a NAME: list them)
	@PYTHONPATH=conformance $(BIN)/python -m proofs $(NAME) $(if $(NAME),--report reports/$(NAME).json $(ARGS))

coverage: $(VENV)/.dev $(VENV)/.kernels ## branch coverage of schema, codec, checks and log: 97 % or more
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup --cov --cov-branch --cov-report= $(ARGS)
	@$(BIN)/coverage report --include='$(MEASURED)' --skip-covered --fail-under=97

conform: $(VENV)/.dev $(VENV)/.kernels ## judge the reference, and the Python libraries that pip brings, by the conformance suite
	@$(BIN)/seglog conform run $(addprefix --testee ,$(TESTEES)) --build build/conform --jobs $(WORKERS) --html build/conform/matrix.html \
	  --jsonl build/conform/results.jsonl --junit build/conform/results.xml $(ARGS)
	@echo 'The matrix is in build/conform/matrix.html'

kafka-next: $(VENV)/.dev ## what a release of Kafka changed since the last known one (VERSION=4.4.0; BASE= another one)
	@PYTHONPATH=conformance $(BIN)/python -m tools.kafka_next $(VERSION) $(if $(BASE),--base $(BASE)) \
	  $(if $(VERSION),--report reports/kafka-$(VERSION).json) $(ARGS)

bench: $(VENV)/.kernels $(if $(filter spark writers,$(NAME)),$(VENV)/.dev) $(if $(filter spark,$(NAME)),$(VENV)/.spark-peers) ## how quick everything is, beside every peer (long; ARGS='--scale 0.1'; NAME=append, export, serve, spark or writers)
	@$(BIN)/python benchmarks/$(or $(NAME),bench).py $(ARGS) \
	  --report reports/$(if $(filter spark,$(NAME)),spark-bench,$(or $(NAME),bench)).json

$(VENV)/.spark-peers: | $(BIN)/python
	@$(PIP) --no-deps --upgrade --target build/spark-peers 'pandas<3' python-dateutil pytz tzdata six aiokafka async-timeout \
	  typing-extensions packaging
	@touch $@

# -- documentation ---------------------------------------------------------------------------------------------------

docs: $(VENV)/.dev $(VENV)/.docs $(VENV)/.kernels ## regenerate the generated pages and build the site into site/
	@$(BIN)/python -m tools.docs.gen_docs
	@$(BIN)/mkdocs build --strict --quiet
	@echo 'The site is in site/index.html'

docs-check: $(VENV)/.dev $(VENV)/.docs $(VENV)/.kernels ## fail when a generated page is out of date or the site does not build
	@$(BIN)/python -m tools.docs.gen_docs --check $(ARGS)
	@$(BIN)/mkdocs build --strict --quiet

package: $(VENV)/.fast ## build a wheel with its kernels into dist/, and use it away from the sources
	@rm -rf dist build/wheel build/wheel-made
	@$(BIN)/seglog warm $(addprefix --level ,$(LEVELS))
	@$(BIN)/python -m pip --disable-pip-version-check --quiet wheel --no-deps --wheel-dir dist .
	@$(BIN)/python -m zipfile --extract dist/seglog_format-*.whl build/wheel
	@cd build && PYTHONPATH=wheel ../$(BIN)/python -P -m seglog_format.cli explain SEG-IDX-004 | grep -e '^SEG' -e '^  cases'
	@cd build && PYTHONPATH=wheel ../$(BIN)/python -P -m seglog_format.cli generate --seed 1 -o wheel-made
	@cd build && PYTHONPATH=wheel ../$(BIN)/python -P -m seglog_format.cli verify --engine columnar wheel-made
	@ls dist/*.whl

release-reports: $(VENV)/.dev $(VENV)/.kernels ## make reports again that are not of today's code; stop and call again at will (ARGS='kills bugs': these)
	@PYTHONPATH=conformance $(BIN)/python -m tools.release_reports $(ARGS)

release-check: $(VENV)/.dev ## build all that a release hands out, and use it where nothing else can be seen (minutes)
	@$(BIN)/seglog warm $(addprefix --level ,$(LEVELS))
	@$(BIN)/python -m tools.release_check

# -- all ---------------------------------------------------------------------------------------------------------------

ci: ## everything that a change has to pass
	@bash .ci/run

clean: ## remove what was made here, .venv included
	rm -rf $(VENV) site demo dist build .coverage .coverage.* .mypy_cache .ruff_cache .import_linter_cache .hypothesis
