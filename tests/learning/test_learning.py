"""The algorithms learn: shipped configs reach a goal in good time, with any seed.

The goals are those that each of twenty seeds reaches with room to spare, so that a test that fails
means a fault (`benchmarks/learning_margins.py`); docs/returns.md has how far the configs get.
"""

import importlib.util
from pathlib import Path

import pytest

from ding.config import read_config
from ding.entry import serial_pipeline, serial_pipeline_onpolicy

CONFIGS = Path(__file__).parents[2] / "configs"
# Of wall time, for a machine that does several other things.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

needs_box2d = pytest.mark.skipif(
    importlib.util.find_spec("Box2D") is None, reason="LunarLander needs the extra [box2d]"
)


def train(pipeline, config, goal, max_env_step, folder, learned):
    main_config, create_config = read_config(str(CONFIGS / config))
    main_config.exp_name = str(folder / "run")
    main_config.env.update(stop_value=goal, evaluator_env_num=20, n_evaluator_episode=20)
    pipeline((main_config, create_config), seed=learned.seed, max_env_step=max_env_step)
    learned.converged(folder / "run", max_env_step)


@pytest.mark.parametrize(
    ("config", "goal", "max_env_step"),
    [
        ("cartpole/cartpole_dqn_config.py", 195, 10_000),
        ("cartpole/cartpole_dqn_475_config.py", 350, 100_000),
        ("cartpole/cartpole_dqn_per_config.py", 350, 100_000),
    ],
)
def test_dqn(config, goal, max_env_step, tmp_path, learned):
    train(serial_pipeline, config, goal, max_env_step, tmp_path, learned)


@pytest.mark.parametrize(
    ("config", "goal", "max_env_step"),
    [
        ("cartpole/cartpole_masked_r2d2_config.py", 195, 40_000),
        ("pendulum/pendulum_bdq_config.py", -300, 20_000),
    ],
)
def test_value_based(config, goal, max_env_step, tmp_path, learned):
    train(serial_pipeline, config, goal, max_env_step, tmp_path, learned)


@pytest.mark.parametrize(
    ("config", "goal", "max_env_step"),
    [
        ("cartpole/cartpole_ppo_config.py", 350, 40_000),
        ("pendulum/pendulum_ppo_config.py", -350, 60_000),
        ("coin_race/coin_race_ppo_config.py", 4, 60_000),
        pytest.param("lunarlander/lunarlander_ppo_config.py", 100, 300_000, marks=needs_box2d),
    ],
)
def test_ppo(config, goal, max_env_step, tmp_path, learned):
    train(serial_pipeline_onpolicy, config, goal, max_env_step, tmp_path, learned)


@pytest.mark.parametrize(
    ("policy", "max_env_step"), [("a2c", 200_000), ("pg", 100_000), ("ppg", 100_000)]
)
def test_policy_gradients(policy, max_env_step, tmp_path, learned):
    config = f"cartpole/cartpole_{policy}_config.py"
    train(serial_pipeline_onpolicy, config, 195, max_env_step, tmp_path, learned)


@pytest.mark.parametrize("policy", ["ddpg", "td3", "sac"])
def test_q_actor_critic(policy, tmp_path, learned):
    config = f"pendulum/pendulum_{policy}_config.py"
    train(serial_pipeline, config, -300, 20_000, tmp_path, learned)


def test_acer(tmp_path, learned):
    config = "cartpole/cartpole_acer_config.py"
    train(serial_pipeline, config, 195, 60_000, tmp_path, learned)
