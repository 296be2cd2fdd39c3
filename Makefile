# Everything runs in virtual environments that are made here; only Python >= 3.10 is needed.
PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
# The newest Python on the PATH or of pyenv.
NEWEST ?= $(shell for minor in 15 14 13 12 11; do \
	for python in python3.$$minor $${PYENV_ROOT:-$$HOME/.pyenv}/versions/3.$$minor.*/bin/python; do \
	"$$python" -c '' 2>/dev/null && echo "$$python" && exit; done; done)
BIN := $(VENV)/bin
export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Tests of whole runs race with the clock, and a busy machine may lose: what fails gets one more try,
# alone. What fails twice has failed.
tests = $(1) -m pytest -n $(JOBS) -m '$(2)' || { echo "Once more, one at a time: what failed"; \
	$(1) -m pytest --last-failed --last-failed-no-failures none -m '$(2)'; }

.DEFAULT_GOAL := help
.PHONY: help train test test-fast test-slow test-oldest test-newest lint format types check clean

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
	@$(BIN)/python -m pip install -q -c constraints.txt -e '.[test,video,box2d,atari,mujoco,hdf5,minari,ray,plot,board,browser]'
	@touch $@ $(VENV)/installed

train: $(VENV)/installed ## Install, and train CartPole with DQN until it is solved
	$(BIN)/ding -m serial -c configs/cartpole/cartpole_dqn_config.py -s 0

test: test-fast test-slow ## Install, and run all tests

test-fast: $(VENV)/installed-test ## Run the tests that take seconds
	$(call tests,$(BIN)/python,not slow)

test-slow: $(VENV)/installed-test ## Run the tests that learn for minutes
	$(call tests,$(BIN)/python,slow)

test-oldest: ## Run the fast tests with the oldest numpy and gymnasium that are claimed
	@echo "Installing into $(VENV)-oldest; the first time takes a few minutes"
	@$(PYTHON) -m venv $(VENV)-oldest
	@$(VENV)-oldest/bin/python -m pip install -q -c constraints-oldest.txt -e '.[test,video]'
	$(call tests,$(VENV)-oldest/bin/python,not slow)

# For most Pythons on Linux, torch comes with CUDA: some GB to download.
test-newest: ## Run the fast tests with the newest Python that is there
	@if ! "$(NEWEST)" -c 'import sys; sys.exit(sys.version_info[:2] <= tuple(map(int, sys.argv[1].split("."))))' \
		"$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')" 2>/dev/null; then \
		echo "test-newest: nothing to do, there is no Python newer than $$($(PYTHON) -V); name one with NEWEST="; \
	else \
		echo "Installing into $(VENV)-newest with $$("$(NEWEST)" -V); the first time takes some minutes" && \
		"$(NEWEST)" -m venv $(VENV)-newest && \
		$(VENV)-newest/bin/python -m pip install -q -c constraints.txt -e '.[test,video]' && \
		$(VENV)-newest/bin/python -m compileall -q ding tests configs benchmarks && \
		{ $(call tests,$(VENV)-newest/bin/python,not slow); }; \
	fi

lint: $(VENV)/installed-test ## Check style, and that the syntax is that of Python 3.10
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed-test ## Check types
	$(BIN)/mypy

check: test lint types ## What has to pass before a commit lands

format: $(VENV)/installed-test ## Mend what can be mended by itself
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## Remove virtual environments and caches
	rm -rf $(VENV) $(VENV)-oldest $(VENV)-newest build *.egg-info .pytest_cache .mypy_cache .ruff_cache
