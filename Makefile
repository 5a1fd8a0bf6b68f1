# Each target does its own set-up: `make demo` or `make test` is all a fresh machine needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
READY  := $(VENV)/.ready
BENCH  := .venv-bench/bin
BENCH_READY := .venv-bench/.ready
THIRD  := .venv-third/bin
THIRD_READY := .venv-third/.ready
RELEASE := .venv-release/bin
DOCS_READY  := $(VENV)/.docs-ready
MUTATION_READY := $(VENV)/.mutation-ready
FUZZ_READY  := $(VENV)/.fuzz-ready
FUZZ_SECONDS ?= 60
SPHINX := OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -q -W --keep-going -n

.PHONY: demo browser test test-long test-third-party faults fuzz mutation observatory lint bench docs reproduce release-check clean
.DEFAULT_GOAL := test

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable ".[dev,learn,data,cli,report,scale]"
	touch $@

demo: $(READY)          ## learns from votes, and shows what votes and a few checks are worth
	$(BIN)/setwise demo

test: $(READY) browser  ## what CI runs: unit, property, statistical and doc tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-long: $(READY)     ## the repeated-sampling tests with more repetitions
	$(BIN)/python -m pytest -n 2 --dist worksteal -m long

test-third-party: $(THIRD_READY)   ## XGBoost, LightGBM, CatBoost, Hugging Face and MLflow, in an environment of their own
	$(THIRD)/python -m pytest tests/third_party

faults: $(READY)        ## commands killed, interrupted and disturbed at hundreds of moments; minutes
	$(BIN)/python -m tests.faults --kills 120 --interruptions 120 --pictures --out benchmarks/results/faults.json

fuzz: $(FUZZ_READY)     ## broken files for every reader and loader, FUZZ_SECONDS each; FUZZ=--keep notes the counts
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS) $(FUZZ)

observatory: $(READY)   ## every promise against simulations with known truth; exit status 1 where one is broken
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.observatory --out benchmarks/results/observatory.json
	$(BIN)/python benchmarks/observatory.py

mutation: $(MUTATION_READY)   ## a seeded sample of changes of one token in what claims rest on: which does no test notice?
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/mutation.py

browser:                ## what the report is tested in; a note where it cannot be installed
	@command -v chromium >/dev/null || (apt-get update && apt-get install -y chromium) >/dev/null 2>&1 || \
	  echo "NOTE: no chromium, and it could not be installed: the report is not tested in a browser."

lint: $(READY)          ## style, types, the direction of imports, cycles and repeated names of modules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python scripts/check_tree.py

bench: $(BENCH_READY) $(READY)   ## ratios against peers in an environment of their own; training; data
	$(BENCH)/python benchmarks/peers.py
	$(BIN)/python benchmarks/train.py --out benchmarks/results/train-cpu.json
	$(BIN)/python benchmarks/data.py
	$(BIN)/python benchmarks/predict.py --keep
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/slow_strategies.py --keep
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/growth.py --keep
	@test -d "$(SETWISE_DATA)/crowd" || echo "NOTE: no SETWISE_DATA with crowd/: the figures of votes stay as they are."
	test ! -d "$(SETWISE_DATA)/crowd" || $(BENCH)/python benchmarks/crowd.py --data "$(SETWISE_DATA)/crowd" --keep
	$(BIN)/python benchmarks/summary.py
	$(BIN)/python benchmarks/scale_page.py
	$(BIN)/python benchmarks/which_strategy.py

docs: $(DOCS_READY)     ## builds docs/_build/html anew, warnings as errors; checks links (`make test` runs what the pages show)
	rm -rf docs/_build docs/auto_examples docs/reference/generated
	$(SPHINX) -b html docs docs/_build/html
	$(SPHINX) -b linkcheck -D plot_gallery=0 -D nb_execution_mode=off docs docs/_build/linkcheck

reproduce: bench $(READY)   ## every committed figure anew; of the paper's tables what is missing (wants a GPU)
	$(BIN)/setwise reproduce --protocol both --variant all --out results/paper --docs docs/reproduction.md

release-check:          ## builds sdist and wheel, checks what they hold and say, and uses the wheel in an empty environment
	test -x $(RELEASE)/python || $(PYTHON) -m venv .venv-release
	$(RELEASE)/python -m pip install --quiet --constraint constraints.txt build twine
	$(RELEASE)/python scripts/check_release.py

$(MUTATION_READY): $(READY)
	$(PIP) cosmic-ray coverage
	touch $@

$(DOCS_READY): $(READY)
	$(PIP) --editable ".[docs]"
	touch $@

$(FUZZ_READY): $(READY)
	$(PIP) atheris || echo "NOTE: atheris could not be installed: inputs are not guided by coverage."
	touch $@

# Peers pin what we do not (puncc: numpy < 2), so they are installed without their pins; TorchCP needs torch and
# a C++ compiler and is left out where it does not install.
$(BENCH_READY): pyproject.toml constraints.txt
	test -x $(BENCH)/python || $(PYTHON) -m venv .venv-bench
	$(BENCH)/python -m pip install --quiet --constraint constraints.txt --editable ".[bench]" pandas matplotlib tqdm
	$(BENCH)/python -m pip install --quiet --constraint constraints.txt --no-deps puncc
	-$(BENCH)/python -m pip install --quiet --constraint constraints.txt torch setuptools wheel && \
	  PATH=/usr/bin:/bin $(CURDIR)/$(BENCH)/python -m pip install --quiet --no-build-isolation torchsort && \
	  $(BENCH)/python -m pip install --quiet torch_geometric transformers pillow && \
	  $(BENCH)/python -m pip install --quiet --no-deps torchvision torchcp
	touch $@

$(THIRD_READY): pyproject.toml constraints.txt
	test -x $(THIRD)/python || $(PYTHON) -m venv .venv-third
	$(THIRD)/python -m pip install --quiet --constraint constraints.txt --editable ".[learn,cli,mlflow]" pytest hypothesis
	$(THIRD)/python -m pip install --quiet --constraint constraints.txt xgboost lightgbm catboost transformers
	touch $@

clean:
	rm -rf $(VENV) .venv-bench .venv-third .venv-release docs/_build docs/auto_examples docs/reference/generated
