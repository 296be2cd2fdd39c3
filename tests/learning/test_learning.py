"""The algorithms learn: shipped configs reach their goals in good time.

The limits leave at least twice the env steps that the slowest of five seeds took;
`benchmarks/learning.py` measures the distributions.
"""

import importlib.util
import json
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


def train(pipeline, config, goal, max_env_step, folder):
    """How the run ended: its ``status``, ``envstep`` and ``best_return``, among others."""
    main_config, create_config = read_config(str(CONFIGS / config))
    main_config.exp_name = str(folder / "run")
    main_config.env.update(stop_value=goal, evaluator_env_num=20, n_evaluator_episode=20)
    pipeline((main_config, create_config), seed=0, max_env_step=max_env_step)
    return json.loads((folder / "run" / "run.json").read_text())


@pytest.mark.parametrize(
    ("config", "goal", "max_env_step"),
    [
        ("cartpole/cartpole_dqn_config.py", 195, 10_000),
        ("cartpole/cartpole_dqn_475_config.py", 475, 100_000),
        ("cartpole/cartpole_dqn_per_config.py", 475, 100_000),
    ],
)
def test_dqn(config, goal, max_env_step, tmp_path):
    end = train(serial_pipeline, config, goal, max_env_step, tmp_path)
    assert end["status"] == "converged", end


@pytest.mark.parametrize(
    ("config", "goal", "max_env_step"),
    [
        ("cartpole/cartpole_masked_r2d2_config.py", 195, 40_000),
        ("pendulum/pendulum_bdq_config.py", -200, 20_000),
    ],
)
def test_value_based(config, goal, max_env_step, tmp_path):
    end = train(serial_pipeline, config, goal, max_env_step, tmp_path)
    assert end["status"] == "converged", end


@pytest.mark.parametrize(
    ("config", "goal", "max_env_step"),
    [
        ("cartpole/cartpole_ppo_config.py", 475, 40_000),
        ("pendulum/pendulum_ppo_config.py", -250, 40_000),
        ("coin_race/coin_race_ppo_config.py", 4.5, 60_000),
        pytest.param("lunarlander/lunarlander_ppo_config.py", 200, 300_000, marks=needs_box2d),
    ],
)
def test_ppo(config, goal, max_env_step, tmp_path):
    end = train(serial_pipeline_onpolicy, config, goal, max_env_step, tmp_path)
    assert end["status"] == "converged", end


@pytest.mark.parametrize(
    ("policy", "max_env_step"), [("a2c", 150_000), ("pg", 130_000), ("ppg", 100_000)]
)
def test_policy_gradients(policy, max_env_step, tmp_path):
    config = f"cartpole/cartpole_{policy}_config.py"
    end = train(serial_pipeline_onpolicy, config, 475, max_env_step, tmp_path)
    assert end["status"] == "converged", end


@pytest.mark.parametrize("policy", ["ddpg", "td3", "sac"])
def test_q_actor_critic(policy, tmp_path):
    config = f"pendulum/pendulum_{policy}_config.py"
    end = train(serial_pipeline, config, -200, 20_000, tmp_path)
    assert end["status"] == "converged", end


def test_acer(tmp_path):
    config = "cartpole/cartpole_acer_config.py"
    end = train(serial_pipeline, config, 475, 100_000, tmp_path)
    assert end["status"] == "converged", end
