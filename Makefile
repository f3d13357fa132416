# Everything runs in .venv, which is made from requirements.lock on first use (uv where present, else venv and pip).

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
DATA   ?= data
FLIGHTS ?= $(firstword $(wildcard ../shared/data/flights/flights-3m.parquet) $(DATA)/flights-3m.parquet)

.DEFAULT_GOAL := help
.PHONY: help demo demo-stream test check fuzz bench soak lock clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 16

$(READY): requirements.lock pyproject.toml
	@if [ -z "$(PYTHON)" ]; then echo "headrace needs Python 3.11 or later; none was found on PATH (set PYTHON=...)" >&2; exit 1; fi
	@echo "setting up $(VENV) from requirements.lock ..."
	@if command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --clear --python "$(PYTHON)" $(VENV) && \
		uv pip install --quiet --python $(BIN)/python -r requirements.lock && \
		uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e . ; \
	else \
		"$(PYTHON)" -m venv --clear $(VENV) && \
		$(BIN)/python -m pip install -qq --disable-pip-version-check -r requirements.lock && \
		$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e . ; \
	fi
	@touch $@

demo: $(READY)  ## set everything up, run 22 NetFlow queries on a small generated stream and show results
	@rm -rf $(DATA)/demo
	@$(BIN)/headrace generate flows --rows 200000 --profile enterprise --text-addresses --out $(DATA)/demo/flows
	@$(BIN)/headrace run examples/netflow/queries --stream $(DATA)/demo/flows --time ts --show 4 --out $(DATA)/demo/results

demo-stream: $(READY)  ## a generated feed that goes on, 22 queries on it, and `headrace top` (Ctrl-C ends it)
	@$(BIN)/python -m headrace.cli.demo_stream

test: $(READY)  ## set everything up, run all tests
	@$(BIN)/python -m pytest

check: $(READY)  ## ruff, mypy strict, the fast tests (no Spark)
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q -m "not spark"

fuzz: $(READY)  ## 500 random workloads against plain Spark (FUZZ="--workloads 20 --jobs 2" for less, or faster)
	@mkdir -p $(DATA)
	@$(BIN)/python -m tools.fuzz --record $(DATA)/fuzz.jsonl $(FUZZ)

bench: $(READY)  ## the benchmarks: the generators, then three workloads by all engines
	@$(BIN)/python benchmarks/generators.py
	@$(BIN)/headrace bench netflow --profile backbone --json $(DATA)/bench/netflow-backbone.json --plot $(DATA)/bench/netflow-backbone.png
	@$(BIN)/headrace bench netflow --profile enterprise --json $(DATA)/bench/netflow-enterprise.json --plot $(DATA)/bench/netflow-enterprise.png
	@$(BIN)/headrace bench trades --json $(DATA)/bench/trades.json --plot $(DATA)/bench/trades.png
	@if [ -f "$(FLIGHTS)" ]; then \
		$(BIN)/headrace bench flights --data "$(FLIGHTS)" --json $(DATA)/bench/flights.json --plot $(DATA)/bench/flights.png; \
	else \
		echo "flights left out: there is no $(FLIGHTS) (examples/flights/README.md says where it is from; set FLIGHTS=...)"; \
	fi

soak: $(READY)  ## 22 queries at a steady rate for half an hour (MINUTES=2 for less): memory, log and time stay flat
	@$(BIN)/python -m headrace.bench.soak --minutes $(or $(MINUTES),30)

lock:  ## write requirements.lock anew from pyproject.toml (needs uv)
	uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --no-header --quiet --output-file requirements.lock

clean:  ## remove what the targets made
	rm -rf $(VENV) $(DATA) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse
