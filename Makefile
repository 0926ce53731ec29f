# Every target works in a fresh clone on a machine with Python 3.11 or later: what it needs is installed into .venv
# first, once. `make` alone tells what there is.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install
CHECKED := seglog_format pyspark_seglog.py conformance/seglog_conformance tests tools benchmarks proofs
export NO_MKDOCS_2_WARNING := 1
MEASURED := seglog_format/schema/*,seglog_format/codec/*,seglog_format/checks/*,seglog_format/log/*
WORKERS ?= 2
TESTEES ?= reference columnar kafka-python aiokafka aiokafka-pure
STAGES ?= look find check others spark
ARGS ?=
NAME ?=

.DEFAULT_GOAL := help
.PHONY: help demo test lint types proof trace trace-kill mutants hostile fuzz bounds columnar-diff kafka-reads authentic serve-fuzz serve-kills serve-bench spark-equal spark-reference spark-kills spark-retries spark-damage spark-scale bench-spark docs docs-check docs-serve coverage bench conform matrix package release-check ci clean

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
	@echo 'Installing seglog-format and what it needs into $(VENV) (once, about a minute)'
	@$(PIP) --editable '.[fast]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo 'Installing seglog-format and its development tools into $(VENV) (once, about a minute)'
	@$(PIP) --editable '.[dev,fast]'
	@$(BIN)/seglog warm
	@touch $(VENV)/.base $@

$(VENV)/.spark: pyproject.toml | $(VENV)/.base
	@echo 'Installing Spark, and a Java for machines without one, into $(VENV) (once, some minutes)'
	@$(PIP) --editable '.[fast,spark]'
	@touch $@

$(VENV)/.fuzz: pyproject.toml | $(VENV)/.dev
	@echo 'Installing a fuzzer into $(VENV) (once)'
	@$(PIP) --editable '.[dev,fast,fuzz]'
	@touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	@echo 'Installing what builds the documentation into $(VENV) (once)'
	@$(PIP) --editable '.[docs]'
	@touch $(VENV)/.base $@

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	@echo 'Installing seglog-format and its columnar engine into $(VENV) (once)'
	@$(PIP) --editable '.[fast]'
	@touch $(VENV)/.base $@

# -- look ------------------------------------------------------------------------------------------------------------

demo: $(VENV)/.base $(if $(filter spark,$(STAGES)),$(VENV)/.spark) ## read log directories that real Kafka brokers wrote (STAGES='look find' picks stages)
	@$(BIN)/python tools/demo.py --stages '$(STAGES)' $(ARGS)

# -- check -----------------------------------------------------------------------------------------------------------

test: $(VENV)/.dev ## run the tests
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup $(ARGS)

lint: $(VENV)/.dev ## style, formatting, and which module may import which
	@$(BIN)/ruff check $(CHECKED)
	@$(BIN)/ruff format --check $(CHECKED)
	@$(BIN)/lint-imports

types: $(VENV)/.dev ## strict types
	@$(BIN)/mypy

trace: $(VENV)/.dev ## every requirement has its code, its test and its fault
	@$(BIN)/python tools/trace.py --check $(ARGS)

trace-kill: $(VENV)/.dev ## disable each rule in turn and expect a test on bytes to fail (minutes)
	@$(BIN)/python tools/trace_kill.py --report reports/trace-kill.json $(ARGS)

mutants: $(VENV)/.dev ## put small faults into the package: does the conformance suite flag each (long)
	@$(BIN)/python tools/mutants.py --report reports/mutants.json $(ARGS)

hostile: $(VENV)/.dev ## cut and change small inputs at every byte: nothing may escape but a FormatError (long)
	@$(BIN)/python tools/hostile.py --report reports/hostile.json $(ARGS)

fuzz: $(VENV)/.dev $(VENV)/.fuzz ## fuzz the columnar engine against the reference, guided by coverage (half an hour)
	@$(BIN)/python tools/fuzz.py --keep --report reports/fuzz.json $(ARGS)

bounds: $(VENV)/.dev ## run every kernel on hostile bytes with each load and store checked (long)
	@$(BIN)/python tools/bounds.py --report reports/bounds.json $(ARGS)

columnar-diff: $(VENV)/.dev ## read 20,000 logs with the columnar engine and the reference: is there a difference (long)
	@$(BIN)/python tools/columnar_diff.py --report reports/columnar.json $(ARGS)

kafka-reads: $(VENV)/.dev ## Kafka's own code judges what we read, write and recover (Java 17, Maven; long)
	@$(BIN)/python tools/kafka_reads.py --report reports/kafka-reads.json $(ARGS)

proof: $(VENV)/.dev ## run one long proof in full and write its report (NAME=damages; without a NAME: list them)
	@PYTHONPATH=tools:conformance $(BIN)/python -m proofs $(NAME) $(if $(NAME),--report reports/$(NAME).json $(ARGS))

serve-fuzz: $(VENV)/.dev ## send a server a million messages, valid, changed and garbage (long)
	@$(BIN)/python tools/serve_fuzz.py --report reports/serve-fuzz.json $(ARGS)

serve-kills: $(VENV)/.dev ## kill a server while eight producers write to it: is everything there once (ten minutes; Java, Maven)
	@PYTHONPATH=conformance $(BIN)/python tools/serve_kills.py --report reports/serve-kills.json $(ARGS)

serve-bench: $(VENV)/.dev ## how quick fetching is, against a real broker on the same files (Java 17, Maven)
	@$(BIN)/python benchmarks/serve.py --report reports/serve.json $(ARGS)

spark-equal: $(VENV)/.dev ## the data source for Spark and Spark's Kafka connector: the same rows (Java 17, Maven; minutes)
	@$(BIN)/python tools/spark_equal.py --report reports/spark-equal.json $(ARGS)

spark-reference: $(VENV)/.dev ## the data source for Spark and the reference: the same rows of 300 logs made by chance, and all of brokers
	@$(BIN)/python tools/spark_reference.py --report reports/spark-reference.json $(ARGS)

spark-scale: $(VENV)/.dev ## memory, planning, bytes and time of the data source for Spark as data grows (minutes, 5 GB of disk)
	@$(BIN)/python tools/spark_scale.py --report reports/spark-scale.json $(ARGS)

spark-kills: $(VENV)/.dev ## kill a stream eight times while its log grows and is deleted: is every record there once (minutes)
	@$(BIN)/python tools/spark_kills.py --report reports/spark-kills.json $(ARGS)

spark-retries: $(VENV)/.dev ## have tasks of a write fail, die and run twice; a real broker serves the result (Java 17, Maven)
	@$(BIN)/python tools/spark_retries.py --report reports/spark-retries.json $(ARGS)

spark-damage: $(VENV)/.dev ## read 200 damaged directories with Spark in its three modes (minutes)
	@$(BIN)/python tools/spark_damage.py --report reports/spark-damage.json $(ARGS)

coverage: $(VENV)/.dev ## branch coverage of schema, codec, checks and log: 97 % or more
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup --cov --cov-branch --cov-report= $(ARGS)
	@$(BIN)/coverage report --include='$(MEASURED)' --skip-covered --fail-under=97

conform: $(VENV)/.dev ## judge the reference, and the Python libraries that pip brings, by the conformance suite
	@$(BIN)/seglog conform run $(addprefix --testee ,$(TESTEES)) --jobs $(WORKERS) --html build/conform/matrix.html \
	  --jsonl build/conform/results.jsonl --junit build/conform/results.xml $(ARGS)
	@echo 'The matrix is in build/conform/matrix.html'

matrix: $(VENV)/.dev ## judge every implementation whose tool chain is here by the whole suite, twice (ARGS=--update-known)
	@$(BIN)/python tools/matrix.py --report reports/conform.json $(ARGS)

authentic: $(VENV)/.dev ## hold the reference reader against what Kafka reads from the bundled fixtures
	@$(BIN)/python tools/conform.py $(ARGS)

bench: $(VENV)/.bench ## how quick everything is, against every implementation that is there (long; ARGS='--scale 0.1')
	@$(BIN)/python tools/bench.py
	@$(BIN)/python benchmarks/append.py --report reports/append.json
	@$(BIN)/python benchmarks/bench.py --report reports/bench.json $(ARGS)

bench-spark: $(VENV)/.dev $(VENV)/.spark-peers ## the data source for Spark against Spark's Kafka connector (Java 17, Maven; a quarter of an hour)
	@$(BIN)/python benchmarks/spark.py --report reports/spark-bench.json $(ARGS)

$(VENV)/.spark-peers: | $(BIN)/python
	@$(PIP) --no-deps --upgrade --target build/spark-peers 'pandas<3' python-dateutil pytz tzdata six aiokafka async-timeout \
	  typing-extensions packaging
	@touch $@

# -- documentation ---------------------------------------------------------------------------------------------------

docs: $(VENV)/.dev $(VENV)/.docs ## regenerate the generated pages and build the site into site/
	@$(BIN)/python tools/gen_docs.py
	@$(BIN)/mkdocs build --strict --quiet
	@echo 'The site is in site/index.html'

docs-check: $(VENV)/.dev $(VENV)/.docs ## fail when a generated page is out of date or the site does not build
	@$(BIN)/python tools/gen_docs.py --check
	@$(BIN)/mkdocs build --strict --quiet

docs-serve: $(VENV)/.dev $(VENV)/.docs ## the site on 127.0.0.1, rebuilt as files change
	@$(BIN)/mkdocs serve

package: $(VENV)/.base ## build a wheel into dist/ and ask it for a requirement, away from the sources
	@rm -rf dist build/wheel
	@$(BIN)/python -m pip --disable-pip-version-check --quiet wheel --no-deps --wheel-dir dist .
	@$(BIN)/python -m zipfile --extract dist/seglog_format-*.whl build/wheel
	@cd build && PYTHONPATH=wheel ../$(BIN)/python -P -m seglog_format.cli explain SEG-IDX-004 | head -n 1
	@ls dist/*.whl

release-check: $(VENV)/.dev ## build all that a release hands out, and use it where nothing else can be seen (minutes)
	@$(BIN)/python tools/release_check.py

# -- all ---------------------------------------------------------------------------------------------------------------

ci: ## everything that a change has to pass
	@bash .ci/run

clean: ## remove what was made here, .venv included
	rm -rf $(VENV) site demo dist build .coverage .coverage.* .mypy_cache .ruff_cache .import_linter_cache .hypothesis
