# Each target does its own set-up: `make demo` or `make test` is all a fresh machine needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
READY  := $(VENV)/.ready
BENCH  := .venv-bench/bin
BENCH_READY := .venv-bench/.ready
RIVALS := benchmarks/ambiguous/requirements.txt
GLIDE  := .venv-glide/bin
AMBIGUOUS := $(if $(FAST),--fast,--keep)
THIRD  := .venv-third/bin
THIRD_READY := .venv-third/.ready
STUDIO  := .venv-studio
RELEASE := .venv-release/bin
LOWEST := .venv-lowest/bin
LICENCES := .venv-licences/bin
DOCS_READY  := $(VENV)/.docs-ready
MUTATION_READY := $(VENV)/.mutation-ready
FUZZ_READY  := $(VENV)/.fuzz-ready
FUZZ_SECONDS ?= 60
TRY    := -n 2 --dist worksteal -q
# The newest interpreter of a version that there is, from the path or from pyenv; empty where there is none.
python  = $(firstword $(shell python$(1) -c "import sys; print(sys.executable)" 2>/dev/null) $(lastword $(sort $(wildcard $(or $(PYENV_ROOT),$(HOME)/.pyenv)/versions/$(1).*/bin/python))))
# A new environment $(1) of an interpreter $(2), and uv in it: it knows lowest versions, and downloads once for all environments.
fresh   = rm -rf $(1) && $(2) -m venv $(1) && $(1)/bin/python -m pip install --quiet --constraint constraints.txt uv
uv      = $(1)/bin/python -m uv pip install --quiet --python $(1)
# After a command that keeps results, whatever it found: the page that shows them, and the command's own status.
show    = ; status=$$?; $(1)/python benchmarks/trust.py; exit $$status
SPHINX := OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -q -W --keep-going -n

.PHONY: demo browser test test-long test-third-party test-lowest test-pythons proof trust licences faults fuzz mutation observatory honest lint bench benchmark docs reproduce release-check lock clean
.DEFAULT_GOAL := test

# All files are compared with the hashes of requirements-dev.txt, but for torch, whose file differs by machine.
$(READY): pyproject.toml constraints.txt requirements-dev.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes --requirement requirements-dev.txt
	$(PIP) torch
	$(PIP) --no-deps --no-build-isolation --editable .
	touch $@

demo: $(READY)          ## learns from votes, and shows what votes and a few checks are worth
	$(BIN)/setwise demo

test: $(READY) browser  ## what CI runs: unit, property, statistical and doc tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-long: $(READY)     ## the repeated-sampling tests with more repetitions
	$(BIN)/python -m pytest -n 2 --dist worksteal -m long

test-third-party: $(THIRD_READY) $(STUDIO)/.ready   ## XGBoost, LightGBM, CatBoost, Hugging Face, MLflow and Label Studio, in environments of their own
	LABEL_STUDIO=$(STUDIO)/bin/label-studio $(THIRD)/python scripts/try_versions.py third-party tests/third_party $(call show,$(THIRD))

# Old versions use what newer versions of their own dependencies call deprecated, which is not our business.
test-lowest: .venv-lowest/.ready   ## the tests with the lowest versions that pyproject.toml allows, on the lowest Python
	OMP_NUM_THREADS=1 $(LOWEST)/python scripts/try_versions.py lowest $(TRY) -W ignore::DeprecationWarning -W ignore::FutureWarning \
	  $(call show,$(LOWEST))

test-pythons: test-3.12 test-3.13   ## the tests on newer Pythons, where they can be had

test-3.%:
	@test -n "$(call python,3.$*)" || echo "NOTE: no Python 3.$*: not tested there."
	test -z "$(call python,3.$*)" || $(MAKE) .venv-3.$*/.ready
	test -z "$(call python,3.$*)" || (OMP_NUM_THREADS=1 .venv-3.$*/bin/python scripts/try_versions.py 3.$* $(TRY) \
	  $(call show,.venv-3.$*/bin))

proof: FUZZ = --keep    ## everything on docs/trust.md is measured again: hours; `make -k proof` goes on after a failure
proof: observatory honest faults fuzz mutation test-lowest test-pythons test-third-party
	$(BIN)/python -m tests.first_use $(call show,$(BIN))

trust: $(READY)         ## docs/trust.md anew from the results that are kept
	$(BIN)/python benchmarks/trust.py

licences: .venv-licences/.ready    ## docs/licences.md: what comes with the package and its extras, and under which licence
	$(LICENCES)/python scripts/list_licences.py

faults: $(READY)        ## commands killed, interrupted and disturbed at hundreds of moments; minutes
	$(BIN)/python -m tests.faults --kills 120 --interruptions 120 --out benchmarks/results/faults.json \
	  $(call show,$(BIN))

fuzz: $(FUZZ_READY)     ## broken files for every reader and loader, FUZZ_SECONDS each; FUZZ=--keep notes the counts
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS) $(FUZZ) \
	  $(call show,$(BIN))

observatory: $(READY)   ## every promise against simulations with known truth; exit status 1 where one is broken
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.observatory --out benchmarks/results/observatory.json \
	  $(call show,$(BIN))

honest: $(READY)        ## honest but unusual data, 200 samples of each design; exit status 1 where one is refused or not covered
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.honest --samples 200 --out benchmarks/results/honest.json; \
	  status=$$?; $(BIN)/python benchmarks/guards.py && $(BIN)/python benchmarks/trust.py; exit $$status

mutation: $(MUTATION_READY)   ## a seeded sample of changes of one token in what claims rest on: which does no test notice?
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/mutation.py $(call show,$(BIN))

browser:                ## what the report is tested in; a note where it cannot be installed
	@command -v chromium >/dev/null || (apt-get update && apt-get install -y chromium) >/dev/null 2>&1 || \
	  echo "NOTE: no chromium, and it could not be installed: the report is not tested in a browser."

lint: $(READY)          ## style, types, the direction of imports, cycles, repeated names of modules and things, and where tests lie
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python scripts/check_tree.py

bench: $(BENCH_READY) $(READY)   ## ratios against peers in an environment of their own; training; data
	OMP_NUM_THREADS=1 $(BENCH)/python benchmarks/peers.py
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

# What wants another Python has an environment of its own, and is left out where that Python is not.
benchmark: $(BENCH_READY)   ## ambiguous labels: setwise and others on the same data, an hour or two; FAST=1: minutes, and keeps nothing
	@test -d "$(SETWISE_DATA)" || test -d ../shared/data || (echo "Name the folder with the data by SETWISE_DATA; benchmarks/ambiguous/README.md says what it holds." && false)
	PYTHONPATH=benchmarks OMP_NUM_THREADS=1 $(BENCH)/python -m ambiguous $(AMBIGUOUS)
	@test -n "$(call python,3.12)" || echo "NOTE: no Python 3.12: glide-py is not measured."
	test -z "$(call python,3.12)" || $(MAKE) .venv-glide/.ready
	test -z "$(call python,3.12)" || PYTHONPATH=benchmarks OMP_NUM_THREADS=1 $(GLIDE)/python -m ambiguous --only estimates --package glide-py $(AMBIGUOUS)
	test -n "$(FAST)" || PYTHONPATH=benchmarks $(BENCH)/python -m ambiguous.page

docs: $(DOCS_READY)     ## builds docs/_build/html anew, warnings as errors; checks links (`make test` runs what the pages show)
	rm -rf docs/_build docs/auto_examples docs/reference/generated
	$(SPHINX) -b html docs docs/_build/html
	$(SPHINX) -b linkcheck -D plot_gallery=0 -D nb_execution_mode=off docs docs/_build/linkcheck

reproduce: $(READY)     ## what is missing of the paper's tables (wants a GPU), all or TABLES="2 3 4", and their page
	$(BIN)/python -m reproduction $(foreach table,$(TABLES),--table $(table)) --protocol both --variant all --out results/paper --docs docs/reproduction.md

release-check: $(READY) ## no figure is stale; builds sdist and wheel, checks what they hold and say, and uses the wheel in an empty environment
	$(BIN)/python benchmarks/trust.py --check
	test -x $(RELEASE)/python || $(PYTHON) -m venv .venv-release
	$(RELEASE)/python -m pip install --quiet --constraint constraints.txt build twine
	$(RELEASE)/python scripts/check_release.py $(BIN)/python

$(MUTATION_READY): $(READY)
	$(PIP) cosmic-ray coverage
	touch $@

$(DOCS_READY): $(READY)
	$(PIP) --no-build-isolation --editable ".[docs]"
	touch $@

$(FUZZ_READY): $(READY)
	$(PIP) atheris || echo "NOTE: atheris could not be installed: inputs are not guided by coverage."
	touch $@

# Peers pin what we do not (puncc: numpy < 2), so they are installed without their pins; TorchCP needs torch and
# a C++ compiler and is left out where it does not install. The networks of the data sets' probabilities need torch too.
$(BENCH_READY): pyproject.toml constraints.txt $(RIVALS)
	test -x $(BENCH)/python || $(PYTHON) -m venv .venv-bench
	$(BENCH)/python -m pip install --quiet --constraint constraints.txt --constraint $(RIVALS) --editable ".[bench]" \
	  cleanlab ppi-python pandas matplotlib tqdm
	$(BENCH)/python -m pip install --quiet --constraint $(RIVALS) --no-deps puncc
	-$(BENCH)/python -m pip install --quiet --constraint constraints.txt torch setuptools wheel && \
	  PATH=/usr/bin:/bin $(CURDIR)/$(BENCH)/python -m pip install --quiet --no-build-isolation torchsort && \
	  $(BENCH)/python -m pip install --quiet torch_geometric transformers pillow && \
	  $(BENCH)/python -m pip install --quiet --constraint $(RIVALS) --no-deps torchvision torchcp
	touch $@

.venv-glide/.ready: benchmarks/ambiguous/requirements-3.12.txt pyproject.toml
	$(call fresh,.venv-glide,$(call python,3.12))
	$(call uv,.venv-glide) --requirement benchmarks/ambiguous/requirements-3.12.txt pandas --editable .
	touch $@

$(STUDIO)/.ready:
	test -x $(STUDIO)/bin/python || $(PYTHON) -m venv $(STUDIO)
	$(STUDIO)/bin/python -m pip install --quiet label-studio
	touch $@

$(THIRD_READY): pyproject.toml constraints.txt
	test -x $(THIRD)/python || $(PYTHON) -m venv .venv-third
	$(THIRD)/python -m pip install --quiet --constraint constraints.txt --editable ".[learn,cli,mlflow]" pytest hypothesis
	$(THIRD)/python -m pip install --quiet --constraint constraints.txt xgboost lightgbm catboost transformers crepes
	touch $@

.venv-lowest/.ready: pyproject.toml
	@test -n "$(call python,3.11)" || (echo "Python 3.11 is the lowest version that is supported, and is not here." && false)
	$(call fresh,.venv-lowest,$(call python,3.11))
	$(call uv,.venv-lowest) --resolution lowest-direct --editable ".[dev,learn,cli,excel]"
	touch $@

.venv-3.%/.ready: pyproject.toml constraints.txt
	$(call fresh,.venv-3.$*,$(call python,3.$*))
	$(call uv,.venv-3.$*) --constraint constraints.txt --editable ".[dev,learn,cli,excel,scale]" || \
	  (echo "NOTE: no Ray for Python 3.$*: the extra scale is left out." && \
	  $(call uv,.venv-3.$*) --constraint constraints.txt --editable ".[dev,learn,cli,excel]")
	touch $@

.venv-licences/.ready: pyproject.toml constraints.txt
	$(call fresh,.venv-licences,$(PYTHON))
	$(call uv,.venv-licences) --constraint constraints.txt --editable ".[all]" pip-licenses
	touch $@

lock:                   ## requirements-dev.txt anew, after a change of pyproject.toml, constraints.txt or requirements-dev.in
	$(call fresh,.venv-lock,$(PYTHON))
	.venv-lock/bin/python -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url --constraint constraints.txt \
	  --extra dev --extra cli --extra scale pyproject.toml requirements-dev.in --custom-compile-command "make lock" --output-file requirements-dev.txt

clean:
	rm -rf $(VENV) .venv-bench .venv-third .venv-release .venv-lowest .venv-3.* .venv-glide .venv-licences .venv-lock docs/_build docs/auto_examples docs/reference/generated
