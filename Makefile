# `make demo` and `make test` are all the set-up there is: Python >= 3.11 and make.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DATA   ?= ../shared/data
PEERS_VENV ?= .peers

.PHONY: demo test lint types check peers benchmarks papers fuzz clean

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Noren needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(STAMP)  ## make a hospital table, release it, analyse it; results in noren-demo/
	@rm -rf noren-demo
	$(BIN)/noren demo --to noren-demo

test: $(STAMP)  ## the whole test suite
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks

types: $(STAMP)
	$(BIN)/mypy

check: lint types test

$(PEERS_VENV)/.pycanon:
	$(PYTHON) -m venv $(PEERS_VENV)
	$(PEERS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check pycanon==1.3.6
	@touch $@

peers: $(STAMP) $(PEERS_VENV)/.pycanon  ## figures against pyCANON's and ARX's; DATA=folder with adult.csv.gz, arx_outputs/
	NOREN_PYCANON=$(abspath $(PEERS_VENV))/bin/python NOREN_DATA=$(wildcard $(DATA)) $(BIN)/python -m pytest tests/peers

benchmarks: $(STAMP)  ## long measurements; DATA=folder with adult.csv.gz
	$(BIN)/python benchmarks/run.py --data $(DATA)

papers: $(STAMP)  ## the five papers in full, into docs/papers; DATA=folder, see `noren datasets`
	$(BIN)/noren reproduce all $(if $(wildcard $(DATA)),--data $(DATA)) --out docs/papers

CASES ?= 10000
START ?= 0
fuzz: $(STAMP)  ## random tables, policies and methods, judged by plain code; CASES=10000 START=first seed
	$(BIN)/python -m tests.fuzz.run --cases $(CASES) --start $(START) --summary fuzz-summary.json

clean:
	rm -rf $(VENV) .peers noren-demo
