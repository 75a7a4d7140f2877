# Every target sets itself up in a virtual environment of its own; nothing else is needed but Python 3.11+ and pip.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DATA ?= $(LEASTWISE_DATA)

TEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# Packages that the numerical results depend on; their tests have to reach 95 % of the lines and branches.
CORE := linalg solvers calibration problem metrics

.PHONY: demo test lint bench docs dist coverage mutants test-oldest test-newest clean help

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

demo: $(VENV)/.run  ## LSPC and SVC + Platt with a figure, related tasks, hidden labels, regression, and the command line
	$(BIN)/python examples/demo.py
	$(BIN)/python examples/demo_tasks.py
	$(BIN)/python examples/demo_labels.py
	$(BIN)/python examples/demo_regression.py
	$(BIN)/leastwise demo

test: $(VENV)/.dev  ## run the whole test suite
	$(TEST) $(BIN)/python -m pytest -n 2 $(TESTS)

test-oldest:  ## the same with the oldest versions that pyproject.toml allows, in .venv-oldest
	$(call environment,.venv-oldest,--resolution lowest-direct)
	$(TEST) .venv-oldest/bin/python -m pytest -n 2 $(TESTS)

test-newest:  ## the same with the newest versions, in .venv-newest (PYTHON=python3.13 for another Python)
	$(call environment,.venv-newest,--upgrade)
	$(TEST) .venv-newest/bin/python -m pytest -n 2 $(TESTS)

coverage: $(VENV)/.dev  ## lines and branches that the tests reach; fails below 95 % in the numerical core
	rm -f .coverage .coverage.*
	$(TEST) $(BIN)/python -m pytest -n 2 --cov --cov-report= $(TESTS)
	$(BIN)/python -m coverage report
	$(BIN)/python -m coverage report --include "$(subst $() $(),$(comma),$(foreach name,$(CORE),*/leastwise/$(name)/*))" --fail-under 95

mutants: $(VENV)/.dev  ## change operators and numbers of the numerical core, and see that tests fail; COUNT of each module
	$(TEST) $(BIN)/python tools/mutants.py --count $(or $(COUNT),5)

dist: $(VENV)/.dev  ## build wheel and source distribution, and test both in a clean environment
	$(TEST) $(BIN)/python tools/dist.py

lint: $(VENV)/.dev  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev  ## run every benchmark (DATA=folder for the papers' data sets)
	LEASTWISE_DATA="$(DATA)" $(BIN)/python -m benchmarks all

docs: $(VENV)/.docs  ## build the documentation into docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

comma := ,

# environment(folder, options of the resolver): a fresh environment with this checkout and its tests. uv chooses the versions.
define environment
	rm -rf $(1)
	$(PYTHON) -m venv $(1)
	$(1)/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(1)/bin/uv pip install --quiet --python $(1)/bin/python $(2) -e ".[dev]"
endef

$(VENV)/.run: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[plot,cli]"
	@touch $@

$(VENV)/.dev: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@ $(VENV)/.run

$(VENV)/.docs: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	@touch $@

clean:  ## remove the environment and everything built
	rm -rf $(VENV) .venv-oldest .venv-newest .coverage .coverage.* docs/_build docs/gallery build dist .pytest_cache .ruff_cache .mypy_cache
