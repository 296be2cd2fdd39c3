"""Whatever goes wrong in a run ends in one error that names the cause, and loses nothing."""

import builtins
import errno
import json
import os
import re
import time
from pathlib import Path

import pytest

from ding.entry import serial_pipeline
from ding.entry.run import state as run_state
from ding.utils import read_file
from ding.utils.callbacks import RunCallback
from ding.utils.errors import (
    ActionError,
    CheckpointError,
    ConfigError,
    DataError,
    DingError,
    EnvDiedError,
    EnvError,
    EnvTimeoutError,
)
from ding.worker.learner.learner_hook import LearnerHook, hook_mapping
from tests.entry.runs import run_json, walk_config, walk_envs

#: For environments that hang; the others are far from it, however busy the machine is.
LIMITED = dict(manager=dict(step_timeout=1.5, reset_timeout=1.5))


def train(manager="base", envs=None, policy="dqn", limit=90, **changes):
    config = walk_config(manager=manager, policy=policy, **changes)
    return serial_pipeline(config, env_setting=envs or walk_envs(), max_train_iter=limit)


def resume(limit, **model):
    config = walk_config()
    config[0].policy.learn.resume_training = True
    config[0].policy.model.update(model)
    return serial_pipeline(config, env_setting=walk_envs(), max_train_iter=limit)


def assert_failed(error, words):
    """The run says why it failed; its last state is whole."""
    record = run_json()
    assert record["status"] == "failed"
    assert record["reason"].startswith(type(error).__name__)
    assert words in record["reason"]


@pytest.mark.slow
@pytest.mark.parametrize("manager", ["base", "subprocess"])
@pytest.mark.parametrize(
    ("fault", "where", "at", "kind", "words"),
    [
        ("raise", "init", 0, EnvError, "env 1 (WalkEnv) could not be made: ValueError: the env's"),
        ("raise", "reset", 1, EnvError, "env 1 (WalkEnv) failed in reset(): ValueError: the env's"),
        ("raise", "reset", 5, EnvError, "env 1 (WalkEnv) failed in reset(): ValueError: the env's"),
        ("raise", "step", 60, EnvError, "env 1 (WalkEnv) failed in step(): ValueError: the env's"),
        ("hang", "reset", 5, EnvTimeoutError, "env 1 (WalkEnv) did not finish reset() within"),
        ("hang", "step", 60, EnvTimeoutError, "env 1 (WalkEnv) did not finish step() within"),
        ("nan_reward", "step", 60, DataError, "env 1"),
        ("nan_obs", "step", 60, DataError, "env 1"),
    ],
)
def test_failing_env_is_named(manager, fault, where, at, kind, words):
    envs = walk_envs(fault=fault, where=where, at=at)
    with pytest.raises(kind) as caught:
        train(manager, envs, env=LIMITED if fault == "hang" else {})
    assert words in str(caught.value)
    assert caught.value.env_id == 1
    assert_failed(caught.value, "env 1")
    if at == 60:
        assert read_file("run/ckpt/resume.pth.tar")["learner"]["last_iter"] > 20
        assert read_file("run/ckpt/iteration_20.pth.tar")["last_iter"] == 20


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["kill", "deaf_hang"])
def test_lost_env_process_is_named(fault):
    start = time.monotonic()
    with pytest.raises((EnvDiedError, EnvTimeoutError), match="env 1") as caught:
        at = 12 if fault == "kill" else 60  # a process that died is started again, five times
        train("subprocess", walk_envs(fault=fault, at=at), env=LIMITED)
    assert ("SIGKILL" if fault == "kill" else "step_timeout") in str(caught.value)
    assert_failed(caught.value, "env 1")
    assert time.monotonic() - start < 40
    assert read_file("run/ckpt/resume.pth.tar")["learner"]["last_iter"] > 20


def test_childs_traceback_is_shown():
    with pytest.raises(EnvError) as caught:
        train("subprocess", walk_envs(fault="raise", at=60))
    chain, error = "", caught.value
    while error is not None:
        chain, error = f"{chain}{error}\n", error.__cause__
    assert "_maybe_fail" in chain


@pytest.mark.parametrize("manager", ["base", "subprocess"])
def test_failing_env_is_renewed_if_config_says_so(manager):
    settings = dict(max_retry=2, retry_type="renew", retry_waiting_time=0.0)
    train(manager, walk_envs(fault="raise", at=60), env=dict(manager=settings))
    assert run_json()["status"] == "finished"


@pytest.mark.parametrize(
    ("at", "settings"),
    [(60, {}), (12, dict(max_retry=2, retry_type="renew", retry_waiting_time=0.0))],
)
def test_env_process_that_dies_is_started_again(at, settings):
    train("subprocess", walk_envs(fault="kill", at=at), env=dict(manager=settings))
    assert run_json()["status"] == "finished"


@pytest.mark.parametrize("manager", ["base", "subprocess"])
def test_failure_during_evaluation_is_named(manager):
    envs = walk_envs(evaluator=dict(fault="raise", at=20))
    with pytest.raises(EnvError, match="the env's own words") as caught:
        train(manager, envs)
    assert_failed(caught.value, "env 0")


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("bad_action", ActionError, "env 0"),
        ("nan_action", DingError, "action"),
        ("nan_weights", DingError, "NaN|finite|nan"),
        ("nan_loss", DataError, "total_loss = NaN at iteration 12"),
        ("nan_priority", DataError, "priority 3 of 8 is nan"),
        ("negative_priority", DataError, "priority 3 of 8 is -1"),
        ("short_priority", DataError, "7 priorities came for 8 items"),
        ("no_priority", ConfigError, "no 'priority'"),
    ],
)
def test_faulty_policy_is_named(fault, kind, words):
    config = walk_config(policy="faulty_dqn")
    config[0].policy.other.fault = fault
    with pytest.raises(kind, match=words) as caught:
        serial_pipeline(config, env_setting=walk_envs(), max_train_iter=90)
    assert_failed(caught.value, "")


class Ended(RunCallback):
    event = None

    def on_end(self, event):
        self.event = event


class FailingHook(LearnerHook):
    def __call__(self, engine):
        raise getattr(builtins, self._ext_args["error"])("the hook's own words")


@pytest.mark.parametrize("hook", ["", "TypeError", "OSError", "ValueError"])
def test_failure_at_the_very_end_has_all_facts(hook, monkeypatch):
    """In a user's hook, or else in the last evaluation."""
    monkeypatch.setitem(hook_mapping, "failing", FailingHook)
    config, envs = walk_config(), walk_envs()
    if hook:
        own = dict(type="failing", position="after_run", ext_args=dict(error=hook))
        config[0].policy.learn.learner.hook.own = own
    else:
        envs = walk_envs(evaluator=dict(fault="raise", at=12))
    ended = Ended()
    with pytest.raises(getattr(builtins, hook, EnvError), match="own words") as caught:
        serial_pipeline(config, env_setting=envs, max_train_iter=6, callbacks=[ended])
    assert_failed(caught.value, "own words")
    assert (ended.event.status, ended.event.train_iter) == ("failed", 6)
    assert run_json()["train_iter"] == 6


class TestDisk:
    """A disk that fills up while files are written."""

    @pytest.fixture
    def disk(self, monkeypatch):
        """Fails the writing of files whose name contains ``disk.full_for``."""

        class Disk:
            full_for: str | None = None

        disk, replace = Disk(), os.replace

        def full(source, target):
            if disk.full_for is not None and disk.full_for in os.fspath(target):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            replace(source, target)

        monkeypatch.setattr(os, "replace", full)
        return disk

    def test_failed_periodic_checkpoint_is_reported_and_the_run_continues(self, disk, capsys):
        disk.full_for = "iteration_20.pth.tar"
        train(limit=60)
        (line,) = [line for line in capsys.readouterr().out.splitlines() if "No space" in line]
        assert "iteration_20.pth.tar" in line
        assert "training continues" in line
        assert run_json()["status"] == "finished"
        assert os.path.exists("run/ckpt/iteration_40.pth.tar")
        assert not [name for name in os.listdir("run/ckpt") if name.startswith(".")]

    @pytest.mark.parametrize("name", ["resume.pth.tar", "iteration_60.pth.tar"])
    def test_failed_last_save_is_reported_and_the_policy_returned(
        self, disk, name, capsys, monkeypatch
    ):
        monkeypatch.setenv("DING_CONSOLE", "plain")
        disk.full_for = name
        assert train(limit=60) is not None
        assert run_json()["status"] == "finished"
        assert "No space left" in run_json()["reason"]
        assert "could not save" in capsys.readouterr().out
        assert not os.path.exists(f"run/ckpt/{name}")

    def test_failed_save_leaves_previous_state(self, disk):
        train(limit=30)
        before = read_file("run/ckpt/resume.pth.tar")["learner"]["last_iter"]
        disk.full_for = "resume"
        resume(60)
        assert run_json()["train_iter"] >= 60
        assert read_file("run/ckpt/resume.pth.tar")["learner"]["last_iter"] == before

    def test_best_policy_is_saved_later(self, disk, monkeypatch):
        disk.full_for = "ckpt_best"
        tries = []
        retry = run_state.SerialStateKeeper._retry_best

        def free_disk(self):
            disk.full_for = None
            tries.append(self._unsaved_best)
            retry(self)

        monkeypatch.setattr(run_state.SerialStateKeeper, "_retry_best", free_disk)
        train(limit=60)
        assert tries[0] is not None
        state = read_file("run/ckpt/ckpt_best.pth.tar")
        assert state["eval_result"] == run_json()["best_return"]


@pytest.mark.parametrize("damage", ["truncated", "empty", "garbage", "missing"])
def test_damaged_state_is_named(damage):
    train(limit=30)
    os.remove("run/ckpt/resume_previous.pth.tar")
    path = "run/ckpt/resume.pth.tar"
    with open(path, "rb") as file:
        content = file.read()
    wrong = {"truncated": content[: len(content) // 2], "empty": b"", "garbage": b"PK nonsense" * 9}
    if damage == "missing":
        os.remove(path)
    else:
        with open(path, "wb") as file:
            file.write(wrong[damage])
    with pytest.raises(CheckpointError, match=r"resume\.pth\.tar"):
        resume(60)


@pytest.mark.parametrize("damaged", ["resume.pth.tar", "rows"])
def test_after_a_damaged_state_the_one_before_is_taken_up(damaged, capsys, monkeypatch):
    monkeypatch.setenv("DING_CONSOLE", "plain")
    train(limit=30)
    before = read_file("run/ckpt/resume_previous.pth.tar")
    last = read_file("run/ckpt/resume.pth.tar")
    assert before["learner"]["last_iter"] < last["learner"]["last_iter"]
    path = Path("run/ckpt", damaged)
    if damaged == "rows":
        files = [
            {s["file"] for s in state["buffer"]["ring"]["journal"]} for state in (last, before)
        ]
        (name,) = files[0] - files[1]
        path = path / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    resume(60)
    assert "continuing from the state that was saved before it" in capsys.readouterr().out
    assert run_json()["train_iter"] >= 60


def test_state_of_another_network_is_named_and_the_good_run_stays_as_it_was():
    train(limit=30)
    names = ("total_config.py", "formatted_total_config.py", "run.json", "ckpt/resume.pth.tar")
    before = [Path("run", name).read_bytes() for name in names]
    with pytest.raises(CheckpointError, match="does not fit this config"):
        resume(60, encoder_hidden_size_list=[32, 32])
    assert [Path("run", name).read_bytes() for name in names] == before
    resume(60)
    assert run_json()["train_iter"] >= 60


def test_truncated_best_checkpoint_is_replaced(capsys, monkeypatch):
    monkeypatch.setenv("DING_CONSOLE", "plain")
    train(limit=30)
    with open("run/ckpt/ckpt_best.pth.tar", "r+b") as file:
        file.truncate(100)
    resume(60)
    assert re.search(r"ckpt_best\.pth\.tar.* cut short", capsys.readouterr().out)


@pytest.mark.parametrize("load", ["missing.pth.tar", "cut.pth.tar"])
def test_unreadable_start_checkpoint_is_named(load):
    if load == "cut.pth.tar":
        with open(load, "wb") as file:
            file.write(b"PK\x03\x04 and no more")
    config = walk_config()
    config[0].policy.learn.learner.hook.load_ckpt_before_run = load
    with pytest.raises(CheckpointError, match=load):
        serial_pipeline(config, env_setting=walk_envs(), max_train_iter=60)


def test_folder_that_cannot_be_made_is_named():
    with open("file", "w"):
        pass
    with pytest.raises((ConfigError, OSError), match="file/run"):
        train(exp_name="file/run")


def test_components_are_closed_when_one_cannot_be_built():
    config = walk_config(manager="subprocess")
    config[0].policy.eval.evaluator.type = "battle_interaction"
    config[1].evaluator = dict(type="battle_interaction")
    config[0].policy.eval.evaluator.opponent = "unknown"
    with pytest.raises(ConfigError, match="opponent"):
        serial_pipeline(config, env_setting=walk_envs(), max_train_iter=60)


def test_record_is_valid_after_failure():
    with pytest.raises(EnvError):
        train(envs=walk_envs(fault="raise", at=60))
    with open("run/metrics.jsonl") as file:
        assert all(isinstance(json.loads(line), dict) for line in file)
