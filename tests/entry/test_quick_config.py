"""Settings without a config file: ``ding train`` and ``ding init``."""

import pathlib
import re

import gymnasium
import numpy as np
import pytest
from click.testing import CliRunner

from ding.config import read_config
from ding.entry.cli import main as ding
from ding.entry.quick_config import quick_config, shipped_configs, source_of, trainable
from ding.utils import POLICY_REGISTRY

#: Those of the package: other tests register policies, too.
EVERY = sorted(
    name
    for name in POLICY_REGISTRY.query()
    if not name.endswith("_command") and POLICY_REGISTRY.get(name).__module__.startswith("ding.")
)
SMALL = {
    "env": {"collector_env_num": 2, "evaluator_env_num": 1, "n_evaluator_episode": 1},
    "collect": {"n_sample": 64},
    "learn": {"batch_size": 16, "update_per_collect": 2},
}


def run(*args):
    """Exit status and all output."""
    result = CliRunner().invoke(ding, list(map(str, args)))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


@pytest.fixture(autouse=True)
def _quiet(monkeypatch):
    monkeypatch.setenv("DING_CONSOLE", "quiet")


def of_env(env_id, kind):
    actions = {name: POLICY_REGISTRY.get(name).actions for name in trainable() if name in EVERY}
    return [(env_id, name) for name, kinds in actions.items() if kind in kinds]


@pytest.mark.parametrize(
    ("env_id", "policy"),
    [*of_env("CartPole-v1", "discrete"), *of_env("Pendulum-v1", "continuous")],
)
def test_every_policy_that_fits_trains(env_id, policy):
    small = [f"env.{key}={value}" for key, value in SMALL["env"].items()]
    main, _ = quick_config(env_id, policy)
    for section in ("collect", "learn"):
        known = SMALL[section].keys() & main["policy"][section].keys()
        small += [f"policy.{section}.{key}={SMALL[section][key]}" for key in sorted(known)]
    if "random_collect_size" in main["policy"]:
        small.append("policy.random_collect_size=32")
    limits = ("--env-step", 64, "--train-iter", 8, "--set", "env.max_episode_steps=30")
    options = [part for setting in small for part in ("--set", setting)]
    status, output = run("train", env_id, policy, *limits, *options)
    assert status == 0, output


def test_the_policy_is_chosen_by_the_actions():
    assert quick_config("CartPole-v1")[1]["policy"]["type"] == "ppo"
    assert quick_config("Pendulum-v1")[1]["policy"]["type"] == "sac"
    assert quick_config("grid_spread")[1]["policy"]["type"] in trainable("multi-agent")


def test_settings_are_those_of_the_shipped_config_of_the_environment():
    (shipped,) = (one for one in shipped_configs() if one.name == "pendulum_td3")
    main, create = quick_config("Pendulum-v1", "td3")
    assert (
        main["policy"].items()
        >= {key: value for key, value in shipped.main["policy"].items() if key != "model"}.items()
    )
    assert main["env"] == shipped.main["env"]
    assert create == shipped.create


def test_horizon_and_bounds_of_another_task_are_not_taken():
    main, _ = quick_config("MountainCarContinuous-v0", "ppo")
    assert main["policy"]["collect"]["discount_factor"] == 0.99
    main, _ = quick_config("MountainCarContinuous-v0", "d4pg")
    assert main["policy"]["model"]["v_min"] == -100


def test_mujoco_has_its_sizes():
    pytest.importorskip("mujoco", reason="the extra 'mujoco' is not installed")
    main, create = quick_config("HalfCheetah-v5", "ddpg")
    assert create["env"]["type"] == "mujoco"
    assert main["policy"]["model"]["actor_head_hidden_size"] == 256
    assert main["policy"]["other"]["replay_buffer"]["replay_buffer_size"] == 1_000_000


@pytest.mark.parametrize("policy", ["dqn", "rainbow", "ppo", "impala"])
def test_games_have_the_wrappers_and_the_encoder_for_images(policy):
    pytest.importorskip("ale_py", reason="the extra 'atari' is not installed")
    main, create = quick_config("ALE/Breakout-v5", policy)
    assert create["env"]["type"] == "atari"
    assert main["policy"]["model"]["obs_shape"] == [4, 84, 84]
    assert main["policy"]["model"]["encoder_hidden_size_list"] == [32, 64, 64, 512]


class Picture(gymnasium.Env):
    """Coloured pictures, with the colours last."""

    observation_space = gymnasium.spaces.Box(0, 255, (40, 40, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.low, {}

    def step(self, action):
        return self.observation_space.low, float(action), False, True, {}


@pytest.mark.parametrize("policy", ["dqn", "ppo"])
def test_pictures_of_any_environment(policy, monkeypatch):
    spec = gymnasium.envs.registration.EnvSpec(id="Picture-v0", entry_point=Picture)
    monkeypatch.setitem(gymnasium.registry, "Picture-v0", spec)
    main, _ = quick_config("Picture-v0", policy)
    assert main["policy"]["model"]["obs_shape"] == [4, 84, 84]
    small = ("--set", "policy.collect.n_sample=16", "--set", "policy.learn.batch_size=4")
    status, output = run("train", "Picture-v0", policy, "--train-iter", 1, *small)
    assert status == 0, output


def test_states_that_are_numbers_are_one_hot():
    assert quick_config("FrozenLake-v1", "dqn")[0]["policy"]["model"]["obs_shape"] == 16
    assert quick_config("FrozenLake8x8-v1", "dqn")[0]["policy"]["model"]["obs_shape"] == 64


@pytest.mark.parametrize("policy", EVERY)
def test_init_writes_a_config_of_every_policy(policy):
    status, output = run("init", "new", "-p", policy)
    assert status == 0, output
    text = pathlib.Path("new.py").read_text()
    assert re.search("learning_rate.*=", text)
    assert "# Mean return of an evaluation that ends the run" in text
    _, create = read_config("new.py")
    assert create["policy"]["type"] == policy
    command = output.partition("train with  ding ")[2].split()
    status, output = run(*command, "--dry-run", "--strict")
    assert status == 0 or source_of(policy), output


def test_init_prints_a_command_that_a_shell_understands():
    status, output = run("init", "my config")
    assert status == 0
    assert "train with  ding -c 'my config.py' -s 0" in output


def test_init_refuses_what_it_cannot_write():
    assert run("init", "new")[0] == 0
    assert "exists already" in run("init", "new.py")[1]
    assert "there is no folder 'a'" in run("init", "a/new.py")[1]


def test_the_package_is_built_with_the_configs():
    assert len(shipped_configs()) > 50
    assert {one.policy for one in shipped_configs()} >= set(EVERY) - {
        *("sac_discrete", "cql_discrete", "sqil_sac")
    }
