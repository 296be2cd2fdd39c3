# Everything runs in virtual environments that are made here; only Python >= 3.10 is needed.
PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
BIN := $(VENV)/bin
export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help train test test-fast test-slow test-oldest lint format types check clean

help: ## Show what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.exit("Python >= 3.10 is needed, $(PYTHON) is " + sys.version.split()[0]) if sys.version_info < (3, 10) else None'
	@echo "Making the virtual environment $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/installed: $(VENV)/made setup.py constraints.txt
	@echo "Installing into $(VENV); the first time takes a few minutes"
	@$(BIN)/python -m pip install -q -c constraints.txt -e .
	@touch $@

$(VENV)/installed-test: $(VENV)/made setup.py constraints.txt
	@echo "Installing into $(VENV), with what the tests need; the first time takes a few minutes"
	@$(BIN)/python -m pip install -q -c constraints.txt -e '.[test,video,box2d]'
	@touch $@ $(VENV)/installed

train: $(VENV)/installed ## Install, and train CartPole with DQN until it is solved
	$(BIN)/ding -m serial -c configs/cartpole/cartpole_dqn_config.py -s 0

test: test-fast test-slow ## Install, and run all tests

test-fast: $(VENV)/installed-test ## Run the tests that take seconds
	$(BIN)/python -m pytest -n $(JOBS) -m 'not slow'

test-slow: $(VENV)/installed-test ## Run the tests that learn for minutes
	$(BIN)/python -m pytest -n $(JOBS) -m slow

test-oldest: ## Run the fast tests with the oldest numpy and gymnasium that are claimed
	@echo "Installing into $(VENV)-oldest; the first time takes a few minutes"
	@$(PYTHON) -m venv $(VENV)-oldest
	@$(VENV)-oldest/bin/python -m pip install -q -c constraints-oldest.txt -e '.[test]'
	$(VENV)-oldest/bin/python -m pytest -n $(JOBS) -m 'not slow'

lint: $(VENV)/installed-test ## Check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed-test ## Check types
	$(BIN)/mypy

check: test lint types ## What has to pass before a commit lands

format: $(VENV)/installed-test ## Mend what can be mended by itself
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## Remove virtual environments and caches
	rm -rf $(VENV) $(VENV)-oldest build *.egg-info .pytest_cache .mypy_cache .ruff_cache
