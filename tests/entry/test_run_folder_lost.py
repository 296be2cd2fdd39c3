"""Run folders that are renamed or removed while the run writes there, and starts that fail."""

import errno
import os
import shutil

import gymnasium
import pytest

from ding.entry import serial_pipeline
from ding.entry.quick_config import quick_config
from ding.utils import durations
from ding.utils.callbacks import RunCallback
from ding.utils.errors import MissingModuleError, RunError
from ding.utils.run_claims import FolderWatch


@pytest.fixture(autouse=True)
def _plain(monkeypatch):
    monkeypatch.setenv("DING_CONSOLE", "plain")


def config(**env):
    main, create = quick_config("CartPole-v1", "dqn")
    main["exp_name"] = "exp/run"
    main["env"].update(collector_env_num=1, evaluator_env_num=1, n_evaluator_episode=1, **env)
    return main, create


class Lose(RunCallback):
    def __init__(self, how):
        self.how = how

    def on_collect(self, moment):
        if os.path.isdir("exp/run/ckpt"):
            self.how()


@pytest.mark.parametrize(
    "how", [lambda: os.rename("exp/run", "exp/other"), lambda: shutil.rmtree("exp/run")]
)
def test_a_folder_that_is_lost_ends_the_run(how):
    with pytest.raises(RunError, match=r"folder 'exp/run' was renamed or removed"):
        serial_pipeline(config(), seed=0, max_env_step=10**6, callbacks=[Lose(how)])


def test_a_file_system_that_does_not_answer_for_a_moment_ends_no_run(monkeypatch):
    os.makedirs("run")
    watch = FolderWatch("run")

    def fail(path):
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", fail)
        watch.check()
    watch.check()
    os.rename("run", "other")
    with pytest.raises(RunError, match="renamed or removed"):
        watch.check()


def test_an_environment_that_changes_the_working_directory(tmp_path):
    (tmp_path / "elsewhere").mkdir()

    class Moves(gymnasium.Wrapper):
        def __init__(self, env):
            super().__init__(env)
            os.chdir(tmp_path / "elsewhere")

    main, create = config(env_wrapper=[Moves])
    with pytest.raises(RunError, match=r"changed from .* to .*elsewhere', .* exp_name as a whole"):
        serial_pipeline((main, create), seed=0, max_env_step=50)
    assert not os.path.exists("exp")
    assert os.listdir(tmp_path / "exp" / "run")
    assert ".run_lock" not in os.listdir(tmp_path / "exp" / "run")
    main["exp_name"] = str(tmp_path / "whole")
    serial_pipeline((main, create), seed=0, max_env_step=50)
    assert os.path.exists(tmp_path / "whole" / "ckpt" / "resume.pth.tar")


def test_a_failed_start_leaves_no_folder_with_the_time():
    os.makedirs("exp/run")
    main, create = config()
    main["policy"]["model"] = dict(obs_shape=7, action_shape=2)
    with pytest.raises(ValueError, match="obs_shape=7 does not fit"):
        serial_pipeline((main, create), seed=0)
    assert os.listdir("exp") == ["run"]


def test_a_module_that_does_not_exist():
    with pytest.raises(MissingModuleError, match=r"there is no module 'no_such_module'"):
        serial_pipeline(config(import_names=["no_such_module"]), seed=0)


def test_no_end_of_an_episode(monkeypatch, capfd):
    monkeypatch.setattr(durations, "WARN_EPISODE", 0.0)
    serial_pipeline(config(), seed=0, max_env_step=50)
    assert capfd.readouterr().out.count("if the environments never end one") == 1
