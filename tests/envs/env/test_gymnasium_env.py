import numpy as np
import pytest
from easydict import EasyDict

from ding.envs import GymnasiumEnv
from ding.envs.env._make import make_gymnasium
from ding.utils.errors import ConfigError, EnvError


def test_config_is_a_copy():
    cfg = GymnasiumEnv.default_config()
    assert cfg.cfg_type == "GymnasiumEnvDict"
    cfg.env_wrapper.append("clip_reward")
    assert GymnasiumEnv.default_config().env_wrapper == []


def test_time_limit_and_kwargs():
    cfg = EasyDict(env_id="CartPole-v1", max_episode_steps=2, kwargs={"sutton_barto_reward": True})
    env = GymnasiumEnv(cfg)
    env.reset()
    env.step(0)
    timestep = env.step(1)
    assert timestep.done
    assert timestep.info["truncated"]
    assert timestep.info["eval_episode_return"] == 0.0
    env.close()


def test_registered_time_limit_stays():
    env = GymnasiumEnv({"env_id": "Pendulum-v1"})
    env.reset()
    for step in range(1, 201):
        timestep = env.step(np.zeros(1, np.float32))
        assert timestep.done == (step == 200)
    env.close()


@pytest.mark.parametrize(
    ("cfg", "error", "words"),
    [
        ({}, ConfigError, r"env\.env_id"),
        ({"env_id": "CartPol-v1"}, ConfigError, r"env\.env_id='CartPol-v1'.*CartPole"),
        ({"env_id": "CartPole-v77"}, ConfigError, r"env\.env_id='CartPole-v77'"),
        ({"env_id": "Cart Pole!"}, ConfigError, r"env\.env_id"),
        ({"env_id": "no_such_module_here:Thing-v0"}, EnvError, "no_such_module_here"),
        (
            {"env_id": "CartPole-v1", "kwargs": {"gravitas": 1}},
            ConfigError,
            r"env\.kwargs.*gravitas",
        ),
    ],
)
def test_what_cannot_be_made(cfg, error, words):
    with pytest.raises(error, match=words):
        GymnasiumEnv(cfg).reset()


def test_a_game_by_its_name_at_envpool():
    pytest.importorskip("ale_py", exc_type=ImportError)
    assert make_gymnasium("Pong-v5", frameskip=1).spec.id == "ALE/Pong-v5"
    with pytest.raises(ConfigError, match="NoSuchGame"):
        make_gymnasium("NoSuchGame-v5")
