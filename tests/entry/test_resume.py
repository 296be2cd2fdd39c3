"""A resumed run is the run that was never interrupted."""

import os
import time

import numpy as np
import pytest
import torch

from ding.data.row_journal import RowJournal
from ding.entry import serial_pipeline, serial_pipeline_onpolicy
from ding.entry.components import build_components, load_config
from ding.entry.run import state as run_state
from ding.entry.run.state import load_run_state, take_run_state, write_run_state
from ding.utils import durations, read_file, save_file
from ding.utils.errors import CheckpointError, ConfigError, EnvError
from ding.utils.log_writer import DistributedWriter
from ding.utils.progress import Progress
from tests.children import start_python
from tests.entry.runs import (
    WalkEnv,
    episodes,
    metrics,
    run_json,
    save_run_state,
    untimed_metrics,
    walk_config,
    walk_envs,
)
from tests.policy.attributes import optimizer_of


def build(policy, manager="base", seed=0, **learn):
    config = walk_config(policy=policy, manager=manager)
    config[0].policy.learn.update(learn)
    cfg = load_config(config, seed, walk_envs())
    return build_components(cfg, DistributedWriter("run/log/serial"), walk_envs())


def flatten(tree, path=""):
    if isinstance(tree, dict):
        return {
            k: v for name, part in tree.items() for k, v in flatten(part, f"{path}.{name}").items()
        }
    if isinstance(tree, list | tuple):
        return {
            k: v for i, part in enumerate(tree) for k, v in flatten(part, f"{path}.{i}").items()
        }
    return {path: tree}


def assert_same(tree, other):
    tree, other = flatten(tree), flatten(other)
    assert tree.keys() == other.keys()
    for name, value in tree.items():
        same = (
            np.array_equal if isinstance(value, np.ndarray | torch.Tensor) else lambda a, b: a == b
        )
        assert same(value, other[name]), name


def collect(parts, count):
    """Rounds of data that are learned from later, so that both runs see the same."""
    rounds = []
    for _ in range(count):
        settings = parts.commander.step()
        rounds.append(parts.collector.collect(train_iter=7, policy_kwargs=settings))
    return rounds


def learn(parts, rounds):
    """Updates on given data; everything that they can be seen by."""
    seen = []
    for data in rounds:
        if parts.replay_buffer is None:
            parts.learner.train(data, parts.collector.envstep)
        else:
            parts.replay_buffer.push(data, cur_collector_envstep=parts.collector.envstep)
            for _ in range(3):
                batch = parts.replay_buffer.sample(8, parts.learner.train_iter)
                seen.append(
                    {name: np.asarray(batch.columns[name]) for name in ("IS", "use", "obs")}
                )
                parts.learner.train(batch, parts.collector.envstep)
                parts.replay_buffer.update(parts.learner.priority_info)
        monitor = parts.learner.monitor
        names = [name for name in monitor.value_names() if not name.endswith("_time")]
        seen.append({name: monitor.avg[name]() for name in names})
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["dqn", "ppo", "r2d2", "impala", "acer"])
def test_updates_after_resume_are_bit_for_bit_those_of_the_uninterrupted_run(policy):
    parts = build(policy)
    learn(parts, collect(parts, 12))
    later = collect(parts, 8)
    save_run_state(parts)
    uninterrupted = learn(parts, later)  # the process continues, nothing is loaded
    resumed = build(policy, seed=5)
    load_run_state(resumed)
    assert_same(learn(resumed, later), uninterrupted)
    assert_same(resumed.learner.policy.state_dict(), parts.learner.policy.state_dict())
    if policy != "ppo":
        assert_same(resumed.replay_buffer.state_dict(), parts.replay_buffer.state_dict())
    assert resumed.commander.step() == parts.commander.step()
    parts.close()
    resumed.close()


def run(policy="dqn", limit=60, resume=False, **changes):
    config = walk_config(policy=policy, **changes)
    config[0].policy.learn.resume_training = resume
    pipeline = serial_pipeline if policy == "dqn" else serial_pipeline_onpolicy
    return pipeline(config, seed=0, env_setting=walk_envs(), max_train_iter=limit)


@pytest.mark.parametrize("policy", ["dqn", "ppo"])
def test_run_goes_on_in_its_folder(policy):
    run(policy)
    first = run_json()
    run(policy, limit=150, resume=True)
    second = run_json()
    assert [r["reason"] for r in second["earlier_runs"]] == ["reached max_train_iter 60"]
    assert second["train_iter"] >= 150
    assert second["envstep"] > first["envstep"]
    assert os.listdir(".") == ["run"]
    steps = [int(row["envstep"]) for row in episodes() if row["source"] == "collector"]
    assert steps == sorted(steps)
    judged = [row["step"] for row in metrics() if "evaluator_iter/reward_mean" in row]
    assert judged == sorted(judged)
    assert judged.count(0) == 1


def test_record_says_where_a_resume_is_not_exact(monkeypatch):
    run(limit=10)
    assert "resume_inexact" not in run_json()
    monkeypatch.delattr(WalkEnv, "state_dict")
    run(limit=20, resume=True)
    assert "resume_inexact" not in run_json()  # its generator was found
    monkeypatch.setattr(np.random, "default_rng", lambda seed: np.random)
    run(limit=30, resume=True)
    assert "envs [0, 1]" in run_json()["resume_inexact"]


def test_manager_that_cannot_reproduce_the_run_is_reported(capsys):
    run(limit=10, manager="async_subprocess")
    assert "seed 0 does not make the same run again" in capsys.readouterr().out
    (warning,) = run_json()["warnings"]
    assert "the env manager 'subprocess' does" in warning


@pytest.mark.parametrize("stateful", [True, False])
def test_environments_do_not_play_the_same_episodes_again(stateful, monkeypatch):
    if not stateful:
        monkeypatch.delattr(WalkEnv, "state_dict")
        monkeypatch.delattr(WalkEnv, "load_state_dict")
    parts = build("dqn")
    before = [np.asarray(data.columns["obs"])[:, :2] for data in collect(parts, 10)]
    save_run_state(parts)
    resumed = build("dqn")
    load_run_state(resumed)
    after = [np.asarray(data.columns["obs"])[:, :2] for data in collect(resumed, 10)]
    seen = {tuple(row) for rows in before for row in rows.tolist()}
    assert not seen & {tuple(row) for rows in after for row in rows.tolist()}
    parts.close()
    resumed.close()


def test_rates_after_a_resume_do_not_count_the_earlier_steps(monkeypatch):
    run()
    earlier = run_json()
    marks, mark = [], Progress.mark

    def noted(self, now):
        marks.append((self.envstep, self.train_iter))
        mark(self, now)

    monkeypatch.setattr(Progress, "mark", noted)
    monkeypatch.setattr(durations, "PLAIN_EVAL_LINES", 0.0)
    run(limit=120, resume=True)
    assert marks[0] == (earlier["envstep"], earlier["train_iter"])


def test_first_evaluation_does_not_replace_a_better_best():
    run()
    best = read_file("run/ckpt/ckpt_best.pth.tar")
    save_file("run/ckpt/ckpt_best.pth.tar", {**best, "eval_result": 100.0})  # after the last state
    run(limit=120, resume=True)
    assert read_file("run/ckpt/ckpt_best.pth.tar")["eval_result"] == 100.0
    assert run_json()["best_return"] == 100.0


def test_evaluation_that_failed_is_made_by_the_resumed_run():
    envs = walk_envs(evaluator=dict(fault="raise", at=20))
    with pytest.raises(EnvError):
        serial_pipeline(walk_config(), env_setting=envs, max_train_iter=90)
    failed = run_json()["train_iter"]
    assert 0 < failed < 60
    run(limit=90, resume=True)
    evaluated = [row["step"] for row in metrics() if "evaluator_iter/reward_mean" in row]
    assert failed in evaluated


def resume_from(checkpoint, limit):
    config = walk_config()
    config[0].policy.learn.resume_training = True
    config[0].policy.learn.learner.hook.load_ckpt_before_run = checkpoint
    serial_pipeline(config, seed=0, env_setting=walk_envs(), max_train_iter=limit)


def test_going_on_from_a_checkpoint_of_the_run_keeps_the_best(capsys, monkeypatch):
    monkeypatch.setenv("DING_CONSOLE", "plain")
    run()
    best = read_file("run/ckpt/ckpt_best.pth.tar")
    save_file("run/ckpt/ckpt_best.pth.tar", {**best, "eval_result": 100.0})
    step = read_file("run/ckpt/iteration_20.pth.tar")["last_step"]
    resume_from("run/ckpt/iteration_20.pth.tar", 40)
    assert f"resumed at iteration 20, environment step {step}" in capsys.readouterr().out
    assert 40 <= run_json()["train_iter"] < 50
    assert read_file("run/ckpt/ckpt_best.pth.tar")["eval_result"] == 100.0


def test_run_that_began_from_a_checkpoint_goes_on_from_its_own_state():
    run()
    os.rename("run/ckpt/iteration_20.pth.tar", "pretrained.pth.tar")
    resume_from("pretrained.pth.tar", 90)
    assert 90 <= run_json()["train_iter"] < 100
    assert run_json()["earlier_runs"][0]["reason"] == "reached max_train_iter 60"


def changed(**learn):
    config = walk_config()
    config[0].policy.learn.update(resume_training=True, **learn)
    return config


def test_learning_rate_that_was_changed_is_used(capsys):
    run()
    config = changed(learning_rate=0.0123, batch_size=9)
    policy = serial_pipeline(config, seed=0, env_setting=walk_envs(), max_train_iter=90)
    assert optimizer_of(policy).param_groups[0]["lr"] == 0.0123
    assert "policy.learn.learning_rate: 0.001 -> 0.0123" in capsys.readouterr().out
    policy = serial_pipeline(
        changed(learning_rate=0.0123), env_setting=walk_envs(), max_train_iter=120
    )
    assert optimizer_of(policy).param_groups[0]["lr"] == 0.0123


def test_changed_learning_rate_follows_the_schedule():
    schedule = dict(epoch_num=100, min_lr_lambda=0.1)
    runs = []
    for rate in (0.001, 0.002):
        config = walk_config(policy="ppo")
        config[0].policy.learn.update(
            learning_rate=rate, lr_scheduler=schedule, resume_training=bool(runs)
        )
        policy = serial_pipeline_onpolicy(
            config, env_setting=walk_envs(), max_train_iter=20 + 20 * len(runs)
        )
        runs.append(optimizer_of(policy).param_groups[0]["lr"])
    assert 0 < runs[0] < 0.001
    assert runs[0] < runs[1] < 2 * runs[0]


def test_learning_rate_of_a_checkpoint_does_not_overrule_the_config():
    run()
    config = walk_config(exp_name="fine")
    config[0].policy.learn.learning_rate = 0.0123
    config[0].policy.learn.learner.hook.load_ckpt_before_run = "run/ckpt/ckpt_best.pth.tar"
    policy = serial_pipeline(config, env_setting=walk_envs(), max_train_iter=90)
    assert optimizer_of(policy).param_groups[0]["lr"] == 0.0123


def test_a_checkpoint_of_as_many_updates_as_the_run_has_is_reported():
    run(limit=40)
    for name, limit in (("more", 30), ("fewer", 20)):
        config = walk_config(exp_name=name)
        config[0].policy.learn.learner.hook.load_ckpt_before_run = "run/ckpt/iteration_20.pth.tar"
        serial_pipeline(config, env_setting=walk_envs(), max_train_iter=limit)
    assert "warnings" not in run_json("more")
    (warning,) = run_json("fewer")["warnings"]
    assert warning.startswith("nothing is trained: the 20 updates of the checkpoint count")


def test_another_seed_is_refused():
    run()
    with pytest.raises(ConfigError, match="seed: 0 -> 3"):
        serial_pipeline(changed(), seed=3, env_setting=walk_envs(), max_train_iter=90)
    assert run_json()["status"] == "finished"


def test_nothing_is_made_where_there_is_no_run():
    with pytest.raises(CheckpointError, match="nothing to resume"):
        run(resume=True)
    assert not os.path.exists("run")


@pytest.mark.slow
def test_state_is_saved_seldom_if_that_takes_long(monkeypatch, capsys):
    saves = []

    def slow_take(parts, journal):
        saves.append(parts.learner.train_iter)
        time.sleep(0.6)
        return {}

    monkeypatch.setattr(run_state, "take_run_state", slow_take)
    run(limit=200)
    # Ten times 20 updates; each save may come only after a hundred times 0.6 s.
    assert len(saves) == 2
    assert "saving the state takes " in capsys.readouterr().out


@pytest.mark.slow
def test_state_is_saved_every_few_seconds_by_default(monkeypatch):
    monkeypatch.setattr(durations, "SAVE_INTERVAL", 0.3)
    monkeypatch.setattr(run_state, "MAX_SHARE", 1.0)
    seen = []
    take = run_state.take_run_state

    def noted(parts, journal):
        seen.append((time.monotonic(), parts.learner.train_iter))
        return take(parts, journal)

    monkeypatch.setattr(run_state, "take_run_state", noted)
    config = walk_config()
    config[0].policy.learn.learner.hook.save_ckpt_after_iter = 10**6
    envs = walk_envs(seconds=0.01)
    serial_pipeline(config, env_setting=envs, max_train_iter=150)
    assert len(seen) > 3
    state = read_file("run/ckpt/resume.pth.tar")
    assert state["learner"]["last_iter"] == run_json()["train_iter"]
    states = [state, read_file("run/ckpt/resume_previous.pth.tar")]
    used = {part["file"] for one in states for part in one["buffer"]["ring"]["journal"]}
    assert set(os.listdir("run/ckpt/rows")) == used


@pytest.mark.slow
def test_rows_are_there_when_the_state_is(monkeypatch):
    """Whatever is written last before a kill, the state on disk can be loaded."""
    parts = build("dqn")
    journal = RowJournal("run/ckpt/rows")
    taken = []
    for _ in range(30):
        learn(parts, collect(parts, 2))
        state = take_run_state(parts, journal)
        write_run_state(parts.cfg.exp_name, state, journal)
        taken.append(parts.learner.train_iter)
        # The next save gets no further than its rows.
        take_run_state(parts, journal)
        journal.write()
        other = build("dqn")
        load_run_state(other)
        assert_same(other.replay_buffer.state_dict(), parts.replay_buffer.state_dict())
        assert other.learner.train_iter == taken[-1]
        other.close()
    parts.close()


def test_same_seed_gives_same_run():
    script = (
        "import sys; from tests.entry.runs import *; from ding.entry import serial_pipeline\n"
        "for manager in ('base', 'subprocess'):\n"
        "    config = walk_config(exp_name=f'{manager}_{sys.argv[1]}', manager=manager)\n"
        "    serial_pipeline(config, seed=4, env_setting=walk_envs(), max_train_iter=120)\n"
    )
    for process in [start_python(script, name) for name in ("one", "two")]:
        output, _ = process.communicate(timeout=50)
        assert process.returncode == 0, output
    for manager in ("base", "subprocess"):
        one, two = f"{manager}_one", f"{manager}_two"
        assert untimed_metrics(one) == untimed_metrics(two)
        assert len(untimed_metrics(one)) > 10
        assert episodes(one) == episodes(two)
        first, second = (read_file(f"{name}/ckpt/resume.pth.tar") for name in (one, two))
        assert_same(first["policy"], second["policy"])
        assert_same(first["rng"], second["rng"])
