"""Parallel training through the library, with real coordinators, learners and collectors."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ding.config import compile_config_parallel, save_config
from ding.entry import parallel_pipeline
from ding.entry.parallel_entry import (
    launch_collector,
    launch_coordinator,
    launch_learner,
    worker_of,
)
from ding.utils import find_free_port, read_file
from ding.utils.errors import ConfigError, RunError
from tests.children import descendants, forked, is_alive, start_python, wait_for
from tests.entry.parallel_runs import (
    Diary,
    assert_all_was_told,
    assert_went_on,
    go_on_from_here,
    saved_iteration,
    small_configs,
)

pytestmark = pytest.mark.timeout(120)


def left_over(exp="run"):
    """Files that should not outlive a run."""
    names = [p.name for p in Path(exp).rglob("*")]
    bad = [n for n in names if n.endswith(".tmp") or n in ("run.key", "coordinator.json")]
    return bad + [n for n in names if n in ("data", "policy")]


def record(exp="run"):
    return json.loads((Path(exp) / "run.json").read_text())


def last_line(path="output.txt"):
    return Path(path).read_text().splitlines()[-1]


def learns(exp="run"):
    """Whether the run has a state to continue from, of a learner that has learned."""
    return (Path(exp) / "ckpt" / "coordinator_state.pth.tar").exists() and saved_iteration(exp) > 0


class Judge(Diary):
    """Ends the run by an evaluation when there were samples."""

    def __init__(self):
        self.samples = 0

    def on_collect(self, event):
        self.samples += event.sample_count

    def on_evaluation(self, event):
        return self.samples > 0


@pytest.mark.parametrize("by_config", [None, Judge])
def test_callbacks_are_called_by_the_coordinator(by_config):
    configs = small_configs(stop_value=501)
    if by_config is not None:
        configs[0].callbacks = [by_config]
    run = forked(parallel_pipeline, configs, 0, callbacks=None if by_config else [Judge()])
    run.join(60)
    assert run.exitcode == 0, Path("output.txt").read_text()
    assert record()["status"] == "finished"
    assert record()["reason"] == "Judge.on_evaluation asked for the end"
    assert_all_was_told()


def test_wrong_callbacks_are_reported_before_anything_is_started():
    with pytest.raises(ConfigError, match="expected 'module:Name'"):
        parallel_pipeline(small_configs(), 0, callbacks=["Judge"])
    assert not os.path.exists("run")


def test_a_run_that_converges():
    configs = small_configs()
    configs[0].zebra = 1
    run = forked(parallel_pipeline, configs, 0)
    run.join(60)
    assert run.exitcode == 0, Path("output.txt").read_text()
    assert Path("output.txt").read_text().count("zebra") == 1
    assert record()["unknown_keys"] == {"zebra": ""}
    assert last_line().startswith("converged: mean return")
    assert (record()["status"], record()["seed"]) == ("converged", 0)
    assert (Path("run") / "ckpt" / "ckpt_best.pth.tar").exists()
    assert left_over() == []


@pytest.mark.slow
def test_a_run_that_ended_at_its_limit_goes_on_to_a_larger_one():
    configs = small_configs(stop_value=501)
    configs[0].policy.learn.learner.train_iterations = 20
    run = forked(parallel_pipeline, configs, 0)
    run.join(60)
    assert record()["status"] == "finished", Path("output.txt").read_text()
    assert saved_iteration() == 20
    go_on_from_here(configs)
    run = forked(parallel_pipeline, configs, 0)
    run.join(60)
    assert run.exitcode == 0, Path("output.txt").read_text()
    assert_went_on()
    assert saved_iteration() == 25
    run = forked(parallel_pipeline, configs, 0)  # nothing is left to train: it is evaluated again
    run.join(60)
    assert run.exitcode == 0, Path("output.txt").read_text()
    assert saved_iteration() == 25
    assert left_over() == []


@pytest.mark.slow
def test_a_reward_model_is_the_learners():
    configs = small_configs()
    configs[0].reward_model = dict(type="rnd", hidden_size_list=[8, 8], update_per_collect=2)
    configs[0].policy.nstep = 1
    run = forked(parallel_pipeline, configs, 0)
    run.join(120)
    assert run.exitcode == 0, Path("output.txt").read_text()
    rows = (Path("run") / "metrics.jsonl").read_text()
    assert "reward_model_iter/loss" in rows
    (newest, *_) = sorted(Path("run/ckpt").glob("iteration_[1-9]*"))
    assert read_file(str(newest))["reward_model"]["networks"]["moments"]["count"] > 1


@pytest.mark.slow
def test_a_worker_with_a_port_of_its_own():
    port = find_free_port("127.0.0.1")
    run = forked(parallel_pipeline, small_configs(collector0=dict(port=port)), 0)
    run.join(60)
    assert run.exitcode == 0, Path("output.txt").read_text()
    assert last_line().startswith("converged: mean return")


@pytest.mark.slow
def test_a_script_without_a_main_guard():
    main, create, system = small_configs()
    save_config({"main": main, "create": create, "system": system}, "parts.py")
    Path("train.py").write_text(
        "from parts import exp_config as c\n"
        "from ding.entry import parallel_pipeline\n"
        "parallel_pipeline((c['main'], c['create'], c['system']), seed=0)\n"
        "print('after the run')\n"
    )
    child = start_python("train.py", DING_CONSOLE="quiet")
    printed, _ = child.communicate(timeout=90)
    assert child.returncode == 0, printed
    ending, after = printed.splitlines()[-2:]
    assert ending.startswith("converged: ")
    assert after == "after the run"


@pytest.mark.slow
def test_children_do_not_outlive_a_killed_parent():
    run = forked(parallel_pipeline, small_configs(stop_value=501), 0)
    wait_for(learns)
    children = descendants(run.pid)
    run.kill()
    run.join()
    wait_for(lambda: not any(map(is_alive, children)))
    files = [path for path in Path("run").rglob("*") if path.is_file()]
    assert not [path for path in files if path.parent.name in ("data", "policy")]
    assert not [path for path in files if path.name in ("run.key", "coordinator.json")]


def test_config_errors_are_reported_before_anything_starts():
    main, create, system = small_configs()
    main.policy.other.commander.eval_interval = "soon"
    with pytest.raises(ConfigError, match="eval_interval"):
        parallel_pipeline((main, create, system), 0)
    main, create, system = small_configs()
    with pytest.raises(ConfigError, match="got 1 of them"):
        parallel_pipeline((main,), 0)
    with pytest.raises(ConfigError, match="must be the path of a config file or"):
        parallel_pipeline({"main": main}, 0)
    with pytest.raises(ConfigError, match="missing"):
        parallel_pipeline("nowhere.py", 0)
    system.path_dta = system.pop("path_data")
    with pytest.raises(ConfigError, match=r"system_config.path_dta: did you mean .*path_data\?"):
        parallel_pipeline((main, create, system), 0)
    assert not os.path.exists("run")


@pytest.mark.parametrize("key", ["path_data", "path_policy"])
def test_a_folder_that_cannot_be_written(key):
    main, create, system = small_configs()
    Path("file").touch()
    system[key] = "file/folder"
    with pytest.raises(ConfigError, match=f"system_config.{key}: cannot write into the folder"):
        parallel_pipeline((main, create, system), 0)


@pytest.mark.slow
def test_single_parts_by_themselves():
    config = compile_config_parallel(*small_configs())
    handles = (
        [launch_learner(0, worker_of(config, "learner", None))],
        [launch_collector(0, config, name="collector0")],
    )
    run = forked(launch_coordinator, 0, filename="run/total_config.py")
    run.join(60)
    assert run.exitcode == 0, Path("output.txt").read_text()
    assert last_line().startswith("converged: ")
    for [[process, started, closing]] in handles:
        assert started.is_set()
        closing.set()
        process.join(20)
        assert process.exitcode == 0


def test_a_coordinator_ends_the_parts_that_it_was_given():
    config = compile_config_parallel(*small_configs())

    def script():
        learner = launch_learner(0, filename="run/total_config.py")
        collector = launch_collector(0, filename="run/total_config.py")
        launch_coordinator(0, config, learner_handle=[learner], collector_handle=[collector])
        assert not learner[0].is_alive()
        assert not collector[0].is_alive()

    run = forked(script)
    run.join(60)
    assert run.exitcode == 0, Path("output.txt").read_text()


def test_a_part_that_is_asked_to_end_before_it_is_up_ends():
    process, _, closing = launch_collector(0, compile_config_parallel(*small_configs()))
    closing.set()
    process.join(20)
    status = process.exitcode
    process.kill()
    assert status == 0


def test_parts_that_the_config_does_not_have():
    config = compile_config_parallel(*small_configs())
    with pytest.raises(ConfigError, match="no collector named 'collector7'; it has collector0"):
        launch_collector(0, config, name="collector7")
    with pytest.raises(ConfigError, match="launch_learner needs config or filename"):
        launch_learner(0)
    with pytest.raises(ConfigError, match="expected a compiled config"):
        launch_coordinator(0, {"main": {}})


def test_a_coordinator_whose_worker_does_not_start():
    config = compile_config_parallel(*small_configs())
    config.system.learner0.type = "unknown"
    learner = launch_learner(0, config)
    with pytest.raises(RunError, match="learner0 ended before it listened"):
        launch_coordinator(0, config, learner_handle=[learner])


SPAWNING = """
import sys
from ding.entry import part_process, parallel_pipeline
from tests.entry.parallel_runs import small_configs

part_process.start_method = lambda: "spawn"  # as where a CUDA context is there already
if sys.argv[1] == "unguarded" or __name__ == "__main__":
    parallel_pipeline(small_configs(), 0)
"""


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(("how", "status"), [("guarded", 0), ("unguarded", 1)])
def test_processes_that_are_not_forked(how, status):
    Path("train.py").write_text(SPAWNING)
    done = subprocess.run(
        [sys.executable, "train.py", how],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "DING_CONSOLE": "quiet"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=200,
    )
    assert done.returncode == status, done.stdout
    assert ('put the call under `if __name__ == "__main__":`' in done.stdout) == bool(status)
    assert len(list(Path().glob("run*"))) == 1
