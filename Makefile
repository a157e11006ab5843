# `make demo` and `make test` are all the set-up there is: Python >= 3.11 and make.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PACKAGE := $(VENV)/.package
STAMP  := $(VENV)/.installed
DATA   ?= ../shared/data
PEERS_VENV ?= .peers

# HASHED=1 installs nothing whose SHA-256 does not stand in .ci/hashes.txt, which `make hashes` writes anew.
PIP     = $(BIN)/python -m pip install --quiet --disable-pip-version-check
HASHED ?=

.PHONY: mutants hashes advisories demo test coverage lint types check docs dist versions peers benchmarks papers fuzz reference notebooks clean

# Two steps in one environment: the package alone, and what tests, pages and papers need (five times as large).
$(PACKAGE): pyproject.toml .ci/constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Noren needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
ifeq ($(HASHED),)
	$(PIP) --no-compile --constraint .ci/constraints.txt --editable .
else
	$(PIP) --require-hashes --requirement .ci/hashes.txt
	$(PIP) --no-deps --no-build-isolation --editable .
endif
	@touch $@

$(STAMP): $(PACKAGE) papers/pyproject.toml studio/pyproject.toml
ifeq ($(HASHED),)
	$(PIP) --constraint .ci/constraints.txt --editable '.[dev]' --editable papers --editable studio
else
	$(PIP) --no-deps --no-build-isolation --editable papers --editable studio
endif
	@touch $@

demo: $(PACKAGE)  ## make a hospital table, release it, analyse it; results in noren-demo/
	@rm -rf noren-demo
	$(KEPT) $(BIN)/noren demo --to noren-demo

# One worker per core. A file stays with one worker, and so do its costly fixtures and compiled kernels. TESTS=tests/unit runs a part, WORKERS=0 everything in one process (for a debugger).
# EVERYTHING=1 also runs what is marked slow, and three times the examples: .ci/run does.
TESTS    ?=
EVERYTHING ?=
WORKERS  ?= auto
COVERAGE ?=
PARALLEL := -n $(WORKERS) --maxprocesses 8 --dist loadfile
MEASURED  = $(if $(COVERAGE),--cov --cov-report=term)
# From Python 3.12 on the interpreter itself tells which lines ran: on a few files 9% more CPU time instead of 74%.
CORE      = $(shell $(BIN)/python -c 'import sys; print("sysmon" if sys.version_info >= (3, 12) else "ctrace")')
# Bytecode is kept even where a machine says otherwise: without it every worker rewrites the assertions of 500 files (12 CPU seconds), and every studio and Spark process compiles the package.
KEPT     := PYTHONDONTWRITEBYTECODE=

test: $(STAMP)  ## the test suite, what was skipped and why, the ten slowest; EVERYTHING=1 skips nothing slow; COVERAGE=1 measures what it reaches
	$(KEPT) $(if $(EVERYTHING),NOREN_EVERYTHING=1) $(if $(COVERAGE),COVERAGE_CORE=$(CORE)) $(BIN)/python -m pytest $(PARALLEL) --durations=10 -r s $(MEASURED) $(TESTS)

coverage:  ## the whole test suite with the share of lines it reaches
	@$(MAKE) test EVERYTHING=1 COVERAGE=1

lint: $(STAMP)
	$(BIN)/ruff check src papers studio tests benchmarks .ci
	$(BIN)/ruff format --check src papers studio tests benchmarks .ci

types: $(STAMP)
	$(BIN)/mypy

check: lint types test

docs: $(STAMP)  ## the site, into site/: every link checked, nothing loaded from elsewhere
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo 'open site/index.html'

dist: $(STAMP)  ## wheels and sdists of Noren and its studio into dist/, and the demo from the wheel in a clean environment
	PYTHON=$(PYTHON) BUILDER=$(abspath $(BIN))/python .ci/dist

versions:  ## every command once with the lowest and the newest dependencies, and with every Python found
	PYTHON=$(PYTHON) .ci/versions

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

reference: $(STAMP)  ## the tables in docs/ that come from the code
	$(BIN)/python .ci/reference.py docs/policy.md docs/auditor.md

notebooks: $(STAMP)  ## the notebooks of docs/notebooks with fresh outputs
	$(BIN)/python .ci/notebooks.py

CASES ?= 10000
START ?= 0
fuzz: $(STAMP)  ## random tables, policies and methods, judged by plain code; CASES=10000 START=first seed
	$(BIN)/python -m tests.fuzz.run --cases $(CASES) --start $(START) --summary fuzz-summary.json

MUTANTS ?= 200
SEED    ?= 0
mutants: $(STAMP)  ## does a test notice a single change of the code? MUTANTS=200 SEED=0, results in mutants.json
	NOREN_EVERYTHING=1 $(BIN)/python -m tests.mutants.run --count $(MUTANTS) --seed $(SEED)

hashes: $(STAMP)  ## .ci/hashes.txt anew, after a change of .ci/constraints.txt
	$(BIN)/python .ci/hashes.py

advisories:  ## known weaknesses of the pinned packages, where a database of them can be reached
	$(PYTHON) -m venv .advisories
	.advisories/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	.advisories/bin/pip-audit --disable-pip --requirement .ci/hashes.txt || echo 'pip-audit found something, or reached no database; see above.'

clean:
	rm -rf $(VENV) .advisories .peers .coverage noren-demo site dist build
