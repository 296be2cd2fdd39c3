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
# alone, and a test of learning with another seed. What fails twice has failed.
tests = $(1) -m pytest -n $(JOBS) -m '$(2)' $(3) || { echo "Once more, one at a time: what failed"; \
	$(1) -m pytest --last-failed --last-failed-no-failures none -m '$(2)' --learning-seed 1 $(3); }

# Slow tests whose results depend on how torch rounds sums; those of processes, servers, files and pages do not.
COMPUTING := $(addprefix tests/, configs learning model policy rl_utils torch_utils user_code) \
	$(wildcard tests/entry/test_serial_*.py) $(addprefix tests/entry/, test_env_statistics.py \
	test_offline_recipes.py test_resume.py test_resume_own_policy.py test_zoo.py)

# Tests of processes, signals, servers, faults and pages, whose results do not depend on torch, numpy or gymnasium.
WAITING := $(addprefix tests/, interaction parallel \
	board/test_browser.py board/test_floods.py board/test_live_run.py board/test_run_list.py board/test_server.py \
	docs/test_architecture.py docs/test_commands.py docs/test_site.py \
	entry/run entry/test_dist_entry.py entry/test_faults.py entry/test_hangs.py entry/test_run_folder_lost.py \
	entry/test_seed_runs.py entry/test_supervisor.py entry/test_sweep.py \
	utils/test_console.py utils/test_logging_faults.py utils/test_process_identity.py \
	utils/test_reporting_thread.py utils/test_run_lock.py utils/test_usage.py \
	worker/collector/test_lost_workers.py worker/coordinator/test_comm_coordinator.py \
	worker/coordinator/test_comm_join.py worker/coordinator/test_foreign_peers.py \
	worker/coordinator/test_operator_server.py worker/coordinator/test_run_master.py \
	worker/coordinator/test_strangers.py worker/engines/test_http_door.py worker/engines/test_http_messages.py)

# What runs between two edits: of each layer the files whose tests compute at once, without processes,
# sockets and waiting, and the smallest trainings that run through all layers.
QUICK := $(addprefix tests/, \
	utils/test_registry.py utils/test_default_helper.py utils/test_segment_tree.py utils/test_collate.py \
	utils/test_durations.py utils/test_state_saver.py utils/test_shared_folder.py utils/test_autolog.py \
	torch_utils/test_checkpoint_helper.py torch_utils/test_data_helper.py torch_utils/test_network.py \
	data/buffer data/test_columns.py rl_utils model/test_create_model.py league \
	envs/env envs/env_wrappers envs/games envs/env_manager/test_base_env_manager.py \
	interaction/test_base.py interaction/test_wire.py \
	policy/test_modes.py policy/test_dqn.py policy/test_ppo.py \
	worker/replay_buffer worker/collector/test_serial_collectors.py worker/collector/test_evaluators.py \
	worker/learner/test_base_learner.py worker/learner/test_learner_hook.py \
	worker/coordinator/test_task_table.py worker/coordinator/test_commanders.py \
	worker/coordinator/test_status.py \
	config/test_check.py config/test_parallel_config.py config/test_engines.py config/test_files.py \
	entry/test_misfits.py entry/run/test_parallel_folders.py test_training_scripts.py \
	test_public_names.py test_contract.py test_layers.py)

.DEFAULT_GOAL := help
.PHONY: help train test test-quick test-fast test-slow test-default test-oldest test-newest lint format types zoo docs check clean

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
	@$(BIN)/python -m pip install -q -c constraints.txt -e '.[test,video,box2d,atari,mujoco,hdf5,minari,ray,plot,browser,onnx,sweep,docs,types]'
	@touch $@ $(VENV)/installed

train: $(VENV)/installed ## Install, and train CartPole with DQN until it is solved
	$(BIN)/ding -m serial -c configs/cartpole/cartpole_dqn_config.py -s 0

test: test-fast test-slow ## Install, and run all tests

test-quick: $(VENV)/installed-test ## Run some tests of each layer, in half a minute
	$(BIN)/python -m pytest -q -n $(JOBS) -m 'not slow' $(QUICK)

test-fast: $(VENV)/installed-test ## Run all tests but the slow ones, in three minutes
	$(call tests,$(BIN)/python,not slow)

test-slow: $(VENV)/installed-test ## Run the slow tests: whole runs, faults that take time, what is learned
	$(call tests,$(BIN)/python,slow)

test-default: export ATEN_CPU_CAPABILITY = default
test-default: $(VENV)/installed-test ## Run the slow tests that compute again without vector instructions, as other processors round
	$(call tests,$(BIN)/python,slow,$(COMPUTING))

test-oldest: ## Run the fast tests that use torch, numpy or gymnasium with the oldest ones that are claimed
	@echo "Installing into $(VENV)-oldest; the first time takes some minutes: this torch may bring CUDA, 4 GB"
	@$(PYTHON) -m venv $(VENV)-oldest
	@$(VENV)-oldest/bin/python -m pip install -q -c constraints-oldest.txt -e '.[test,video]'
	$(call tests,$(VENV)-oldest/bin/python,not slow,$(addprefix --ignore=,$(WAITING)))

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

lint: $(VENV)/installed-test ## Check style, words, and that the syntax is that of Python 3.10
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python .ci/words.py

types: $(VENV)/installed-test ## Check types
	$(BIN)/mypy

zoo: $(VENV)/installed-test ## Retrain the policies of the zoo, five seeds each, and write docs/zoo.md: one to two hours
	$(BIN)/python benchmarks/returns.py --zoo --draw --seeds 0-4 --jobs $(JOBS)

docs: $(VENV)/installed-test ## Build the documentation site in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q

check: test lint types docs ## What has to pass before a commit lands

format: $(VENV)/installed-test ## Format the code and apply ruff's automatic fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## Remove virtual environments and caches
	rm -rf $(VENV) $(VENV)-oldest $(VENV)-newest build *.egg-info .pytest_cache .mypy_cache .ruff_cache
