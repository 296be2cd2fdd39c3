import pickle

import numpy as np
import pytest
from gymnasium import spaces

from ding.envs import DingEnvWrapper
from ding.utils.errors import ActionError, ConfigError
from tests.envs.small_envs import CountEnv

BOX = spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 10.0], np.float32))


def started(space, **cfg):
    env = DingEnvWrapper(CountEnv(length=1000, action_space=space), cfg)
    env.reset()
    return env


def passed_on(env, action):
    env.step(action)
    return env.build().actions[-1]


@pytest.mark.parametrize("action", [2, np.int64(2), np.array(2), np.array([2]), np.int32(2)])
def test_discrete_actions_become_int(action):
    got = passed_on(started(spaces.Discrete(3)), action)
    assert type(got) is int
    assert got == 2


@pytest.mark.parametrize(
    "action", [3, -1, 1.0, np.array(1.0), np.array([0, 1]), None, np.array(np.nan), "1", True]
)
def test_discrete_refuses(action):
    with pytest.raises(ActionError, match=r"CountEnv.*Discrete\(3\)"):
        started(spaces.Discrete(3)).step(action)


def test_box_passes_what_is_right_without_a_copy_and_casts_precision():
    action = np.array([2.0, 10.0], np.float32)
    assert passed_on(started(BOX), action) is action
    got = passed_on(started(BOX), np.array([1.0, 3.0]))
    assert got.dtype == np.float32
    assert passed_on(started(BOX), [1, 3]).tolist() == [1, 3]


@pytest.mark.parametrize(
    "action",
    [
        np.array([0, 1]),
        np.array([0.0, np.nan], np.float32),
        np.array([0.0, np.inf], np.float32),
        np.zeros(3, np.float32),
        np.zeros((1, 2), np.float32),
        np.float32(0.5),
        np.array(["a", "b"]),
    ],
)
def test_box_refuses(action):
    with pytest.raises(ActionError, match=r"CountEnv.*Box"):
        started(BOX).step(action)


def test_beyond_the_bounds_names_the_cure_unless_it_is_by_rounding():
    with pytest.raises(ActionError, match=r"env\.act_scale=True.*env\.clip_action=True"):
        started(BOX).step(np.array([2.1, 5.0], np.float32))
    got = passed_on(started(BOX), np.array([2.00001, 10.0], np.float32))
    assert got.tolist() == [2.0, 10.0]


def test_clip_action():
    env = started(BOX, clip_action=True)
    assert passed_on(env, np.array([-5.0, 11.0], np.float32)).tolist() == [-2.0, 10.0]
    with pytest.raises(ActionError, match="NaN"):
        env.step(np.array([np.nan, 1.0], np.float32))


def test_act_scale():
    env = started(BOX, act_scale=True)
    assert env.action_space == spaces.Box(-1.0, 1.0, (2,), np.float32)
    got = passed_on(env, np.array([0.5, -3.0], np.float32))
    assert got.dtype == np.float32
    assert got.tolist() == [1.0, 0.0]
    with pytest.raises(ActionError, match="NaN"):
        env.step(np.array([np.nan, 1.0], np.float32))


@pytest.mark.parametrize("act_scale", [False, True])
def test_many_dimensions_as_few(act_scale):
    space = spaces.Box(-2.0, 4.0, (3, 5))
    env = started(space, act_scale=act_scale)
    action = np.linspace(-1, 1, 15, dtype=np.float32).reshape(3, 5)
    got = passed_on(env, action)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, 1 + 3 * action if act_scale else action, rtol=1e-6)
    bad = action.copy()
    bad[1, 1] = np.nan
    with pytest.raises(ActionError, match="NaN"):
        env.step(bad)
    if not act_scale:
        with pytest.raises(ActionError, match="bounds"):
            env.step(action * 5)


def test_act_scale_without_bounds():
    with pytest.raises(ConfigError, match=r"env\.act_scale"):
        started(spaces.Box(-np.inf, np.inf, (1,)), act_scale=True)


def test_unbounded_box_refuses_infinity():
    env = started(spaces.Box(-np.inf, np.inf, (1,)))
    env.step(np.array([1e30], np.float32))
    with pytest.raises(ActionError):
        env.step(np.array([np.inf], np.float32))


@pytest.mark.parametrize(
    ("space", "good", "bad"),
    [
        (spaces.Discrete(3, start=-1), np.array(-1), 2),
        (spaces.MultiDiscrete([2, 3]), np.array([1, 2]), np.array([2, 0])),
        (spaces.MultiDiscrete([2, 3]), [0, 0], np.array([0.0, 1.0])),
        (spaces.MultiBinary(2), np.array([1, 0]), np.array([2, 0])),
        (spaces.MultiBinary(2), np.array([1, 0]), np.array([1, 0, 1])),
        (spaces.Box(0, 9, (2,), np.int64), np.array([0, 9]), np.array([0, 10])),
        (spaces.Dict(a=spaces.Discrete(2)), {"a": 1}, {"a": 2}),
    ],
)
def test_other_spaces(space, good, bad):
    env = started(space)
    assert space.contains(passed_on(env, good))
    with pytest.raises(ActionError, match="CountEnv"):
        env.step(bad)


@pytest.mark.parametrize(
    "value", [0, 1, 2, -1, True, 1.0, np.int64(1), np.int32(2), np.ones(1), "1"]
)
def test_environments_made_here_contain_the_same_actions(value):
    made = DingEnvWrapper(cfg={"env_id": "CartPole-v1"}).action_space
    assert made.contains(value) is spaces.Discrete(2).contains(value)
    assert made == spaces.Discrete(2)
    assert pickle.loads(pickle.dumps(made)) == made
