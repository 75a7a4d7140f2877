# Every target sets itself up in a virtual environment of its own; nothing else is needed but Python 3.11+ and pip.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DATA ?= $(LEASTWISE_DATA)

.PHONY: demo test lint bench docs clean help

help:  ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

demo: $(VENV)/.run  ## LSPC and SVC + Platt with a figure, related tasks, hidden labels, regression, and the command line
	$(BIN)/python examples/demo.py
	$(BIN)/python examples/demo_tasks.py
	$(BIN)/python examples/demo_labels.py
	$(BIN)/python examples/demo_regression.py
	$(BIN)/leastwise demo

test: $(VENV)/.dev  ## run the whole test suite
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

lint: $(VENV)/.dev  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev  ## run every benchmark (DATA=folder for the papers' data sets)
	LEASTWISE_DATA="$(DATA)" $(BIN)/python -m benchmarks

docs: $(VENV)/.docs  ## build the documentation into docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

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
	rm -rf $(VENV) docs/_build docs/gallery build dist .pytest_cache .ruff_cache .mypy_cache
