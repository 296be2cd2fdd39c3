"""The folder of a serial run: taken when the config is right, by one process, and named."""

import json
import os

import pytest

from ding.entry import serial_pipeline
from ding.utils.errors import ConfigError, EnvError
from ding.utils.run_claims import RunLock
from tests.children import start_python
from tests.entry.runs import run_json, walk_config, walk_envs


def train(limit=10, envs=None, resume=False, **changes):
    config = walk_config(**changes)
    config[0].policy.learn.resume_training = resume
    return serial_pipeline(config, env_setting=envs or walk_envs(), max_train_iter=limit)


def test_wrong_config_makes_no_folder():
    with pytest.raises(ConfigError, match="n_sample"):
        train(policy=walk_config()[0].policy | {"collect": {"n_sample": "many"}})
    assert os.listdir(".") == []


@pytest.mark.parametrize("console", ["plain", "quiet"])
def test_other_name_is_said_in_the_first_line(console, monkeypatch, capsys):
    train()
    monkeypatch.setenv("DING_CONSOLE", console)
    capsys.readouterr()
    train()
    (other,) = [name for name in os.listdir(".") if name.startswith("run_")]
    first = capsys.readouterr().out.splitlines()[0]
    assert first == f"run exists: this run's folder is {other}"
    assert run_json(other)["exp_name"] == other


def test_failed_start_does_not_keep_the_name():
    with pytest.raises(EnvError):
        train(envs=walk_envs(fault="raise", where="init"))
    assert run_json()["status"] == "failed"
    assert "the env's own words" in run_json()["reason"]
    train()
    assert os.listdir(".") == ["run"]
    assert run_json()["status"] == "finished"
    assert [r["status"] for r in run_json()["earlier_runs"]] == ["failed"]


def test_run_that_began_keeps_the_name():
    with pytest.raises(EnvError):
        train(envs=walk_envs(fault="raise", at=3))
    train()
    assert len(os.listdir(".")) == 2


@pytest.mark.parametrize("resume", [True, False])
def test_folder_of_a_run_that_goes_on_is_left_alone(resume):
    train()
    before = run_json()
    with RunLock("run"):
        process = start_python(
            "import sys, json; from tests.entry.run.test_folder import train\n"
            "train(20, resume=json.loads(sys.argv[1]))",
            json.dumps(resume),
        )
        output, _ = process.communicate(timeout=60)
    assert run_json() == before
    if resume:
        assert process.returncode == 1
        assert f"process {os.getpid()} on " in output
    else:
        assert process.returncode == 0
        assert len(os.listdir(".")) == 2


def test_lock_is_gone_after_the_run():
    train()
    assert ".run_lock" not in os.listdir("run")
    train(20, resume=True)
