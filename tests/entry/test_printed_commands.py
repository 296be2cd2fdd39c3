"""Commands that a run prints at its end work as they stand."""

import pathlib
import re
import shlex
import sys

import pytest

from ding.entry import serial_pipeline
from ding.model import DQN
from tests.children import start_ding, start_python
from tests.entry.runs import walk_config, walk_envs

MODULE = """
import gymnasium
import numpy as np
from gymnasium import spaces

from ding.envs import BaseEnv, BaseEnvTimestep
from ding.utils import ENV_REGISTRY


class Counting(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (3,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        self.steps = 0
        return np.zeros(3, np.float32), {}

    def step(self, action):
        self.steps += 1
        return np.zeros(3, np.float32), float(action), self.steps >= 5, False, {}


gymnasium.register("Counting-v0", Counting)


@ENV_REGISTRY.register("counting")
class CountingEnv(BaseEnv):
    def __init__(self, cfg):
        self._env = Counting()
        self.observation_space, self.action_space = self._env.observation_space, spaces.Discrete(2)
        self.reward_space = spaces.Box(0, 1, (1,), np.float32)

    def seed(self, seed, dynamic_seed=True):
        pass

    def reset(self):
        self._return = 0.0
        return self._env.reset()[0]

    def step(self, action):
        obs, reward, done, _, _ = self._env.step(action)
        self._return += float(reward)
        info = {"eval_episode_return": self._return} if done else {}
        return BaseEnvTimestep(obs, np.array([reward], np.float32).reshape(1), done, info)

    def close(self):
        pass

    def __repr__(self):
        return "counting"
"""
CONFIG = """
main_config = dict(
    exp_name="run",
    env=dict({env_id}collector_env_num=2, evaluator_env_num=2, n_evaluator_episode=2),
    policy=dict(
        model=dict(obs_shape=3, action_shape=2, encoder_hidden_size_list=[8]),
        learn=dict(update_per_collect=1, batch_size=4),
        collect=dict(n_sample=8),
    ),
)
create_config = dict(
    env=dict(type="{type}"), env_manager=dict(type="base"), policy=dict(type="dqn")
)
"""
WAYS = {
    "id of a neighbour": ("import counting_env", "env_id='Counting-v0', ", "gymnasium"),
    "type of the config": (MODULE, "", "counting"),
}
#: The same parts, combined the other way.
MORE_WAYS = {
    "type of a neighbour": ("import counting_env", "", "counting"),
    "id of the config": (MODULE, "env_id='Counting-v0', ", "gymnasium"),
}


def shell(*args):
    """Run a command line of ``ding`` in a separate process; return what it printed."""
    child = start_ding(*args)
    printed, _ = child.communicate(timeout=100)
    assert child.returncode == 0, printed
    return printed


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("head", "env_id", "type_"),
    [
        *(pytest.param(*parts, id=way) for way, parts in WAYS.items()),
        *(pytest.param(*parts, id=way, marks=pytest.mark.slow) for way, parts in MORE_WAYS.items()),
    ],
)
def test_with_an_environment_of_the_users(head, env_id, type_):
    folder = pathlib.Path("elsewhere")
    folder.mkdir()
    (folder / "counting_env.py").write_text(MODULE)
    (folder / "config.py").write_text(head + CONFIG.format(env_id=env_id, type=type_))
    printed = shell("-c", "elsewhere/config.py", "--train-iter", "2")
    commands = re.findall(r"(?:evaluate|continue) +ding (.*)", printed)
    assert len(commands) == 2
    for command in commands:
        limit = ["--train-iter", "4"] if "--resume" in command else []
        assert "mean return" in shell(*shlex.split(command), *limit)


def test_with_a_model_and_environments_of_the_callers(capsys, monkeypatch):
    monkeypatch.setenv("DING_CONSOLE", "plain")
    model = DQN(3, 2, [32])
    config = walk_config()
    config[0].policy.model = {}
    env_setting = walk_envs()
    serial_pipeline(config, env_setting=env_setting, model=model, max_train_iter=3)
    printed = capsys.readouterr().out
    (call,) = re.findall("evaluate +in Python: (.*)", printed)
    names = {"ding": sys.modules["ding"], "model": model, "env_setting": env_setting}
    assert 0 <= eval(call, names) <= 10
    assert "in Python: the same call, with exp_name='run'" in printed


def test_with_an_environment_that_a_script_registers():
    train = "import ding.entry\n\nif __name__ == '__main__':\n    ding.entry.serial_pipeline"
    config = CONFIG.format(env_id="env_id='Counting-v0', ", type="gymnasium")
    call = f"{train}((main_config, create_config), max_train_iter=1)\n"
    pathlib.Path("script.py").write_text(MODULE + config + call)
    child = start_python("script.py")
    printed, _ = child.communicate(timeout=50)
    assert child.returncode == 0, printed
    call = "ding.entry.eval((main_config, create_config), seed=0, load_path="
    assert f"evaluate    in Python: {call}" in printed
    saved = pathlib.Path("run/formatted_total_config.py").read_text()
    assert "the environment 'Counting-v0' is registered by a script" in saved


def test_id_with_a_module(tmp_path):
    pathlib.Path("counting_env.py").write_text(MODULE)
    printed = shell("train", "counting_env:Counting-v0", "dqn", "--env-step", "200")
    (command,) = re.findall("evaluate +ding (.*)", printed)
    assert "mean return" in shell(*shlex.split(command))
