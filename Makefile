# Each target does its own set-up: `make demo` or `make test` is all a fresh machine needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
READY  := $(VENV)/.ready

.PHONY: demo test test-long lint bench docs reproduce clean
.DEFAULT_GOAL := test

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable ".[dev]"
	touch $@

demo: $(READY)          ## sets, coverage and guarantee of every strategy on a real data set
	$(BIN)/python examples/demo.py

test: $(READY)          ## what CI runs: unit, property, statistical and doc tests
	$(BIN)/python -m pytest -n 2

test-long: $(READY)     ## the repeated-sampling tests with more repetitions
	$(BIN)/python -m pytest -n 2 -m long

lint: $(READY)          ## style, types, and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

clean:
	rm -rf $(VENV) .venv-bench docs/_build
