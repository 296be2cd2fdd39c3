import pytest

from ding.envs import TimeLimitWrapper, create_env_wrapper
from ding.utils import ENV_WRAPPER_REGISTRY
from ding.utils.errors import ConfigError, UnknownTypeError
from tests.envs.small_envs import CountEnv

NAMES = """
    allin_obs clip_reward delay_reward episodic_life eval_episode_return fire_reset frame_stack
    gym_to_gymnasium max_and_skip noop_reset obs_norm obs_plus_prev_action_reward reward_norm
    scaled_float_frame time_limit warp_frame
"""


def test_names_that_configs_use():
    for name in NAMES.split():
        assert isinstance(ENV_WRAPPER_REGISTRY.get(name), type)


def test_create():
    env = create_env_wrapper(CountEnv(), {"type": "time_limit", "kwargs": {"max_limit": 7}})
    assert isinstance(env, TimeLimitWrapper)
    assert env.max_limit == 7


def test_unknown_name_suggests():
    with pytest.raises(UnknownTypeError, match="time_limit"):
        create_env_wrapper(CountEnv(), {"type": "time_limt"})


def test_no_type():
    with pytest.raises(ConfigError, match="type"):
        create_env_wrapper(CountEnv(), {"kwargs": {}})
