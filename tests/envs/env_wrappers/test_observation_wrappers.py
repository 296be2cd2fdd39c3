import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from ding.envs import (
    ActionRepeatWrapper,
    AllinObsWrapper,
    DingEnvWrapper,
    FrameStackWrapper,
    MaskObsWrapper,
    ObsNormWrapper,
    ObsPlusPrevActRewWrapper,
    RamWrapper,
    ScaledFloatFrameWrapper,
    StaticObsNormWrapper,
    TimeLimitWrapper,
)
from tests.envs.small_envs import CountEnv


def test_scaled_float_frame():
    env = ScaledFloatFrameWrapper(CountEnv(obs_dtype=np.uint8))
    env.reset()
    obs = env.step(0)[0]
    assert obs.dtype == np.float32
    np.testing.assert_allclose(obs, 1 / 255)
    assert env.observation_space.contains(obs)
    unbounded = CountEnv()
    unbounded.observation_space = spaces.Box(-np.inf, np.inf, (2,))
    with pytest.raises(ValueError, match="bounds"):
        ScaledFloatFrameWrapper(unbounded)


def test_frame_stack_keeps_the_last_frames_of_the_episode():
    inner = CountEnv()
    kept = np.zeros(2, np.float32)

    def reused():
        kept[:] = inner.t
        return kept

    inner.observe = reused
    env = FrameStackWrapper(inner, 3)
    for _ in range(2):
        assert env.reset()[0][:, 0].tolist() == [0, 0, 0]
        assert env.step(0)[0][:, 0].tolist() == [0, 0, 1]
        env.step(0)
        obs = env.step(0)[0]
        assert obs[:, 0].tolist() == [1, 2, 3]
        assert env.observation_space.contains(obs)


@pytest.mark.parametrize(
    ("own", "theirs"),
    [
        (FrameStackWrapper, gymnasium.wrappers.FrameStackObservation),
        (TimeLimitWrapper, gymnasium.wrappers.TimeLimit),
    ],
    ids=["frame stack", "time limit"],
)
def test_wrappers_that_gymnasium_has_agree_with_it_step_by_step(own, theirs):
    pair = [wrap(gymnasium.make("CartPole-v1"), 4) for wrap in (own, theirs)]
    rng = np.random.default_rng(0)
    for episode in range(5):
        starts = [env.reset(seed=episode)[0] for env in pair]
        np.testing.assert_array_equal(*starts)
        is_over = False
        while not is_over:
            action = int(rng.integers(2))
            (obs, *rest, _), (other_obs, *other_rest, _) = [env.step(action) for env in pair]
            np.testing.assert_array_equal(obs, other_obs)
            assert rest == other_rest
            is_over = rest[1] or rest[2]


def test_obs_norm():
    env = ObsNormWrapper(CountEnv(length=100))
    obs, _ = env.reset()
    seen = [obs[0]]
    for _ in range(29):
        seen.append(env.step(0)[0][0])
    assert seen == list(range(30))
    for _ in range(30, 100):
        obs = env.step(0)[0]
    numbers = np.arange(100)
    assert obs.dtype == np.float32
    np.testing.assert_allclose(obs, (99 - numbers.mean()) / numbers.std(), rtol=1e-3)
    other = ObsNormWrapper(CountEnv())
    other.load_state_dict(env.state_dict())
    np.testing.assert_array_equal(env.reset()[0], other.reset()[0])
    clipped = ObsNormWrapper(CountEnv(length=100), clip_range=(-0.5, 0.5))
    clipped.load_state_dict(env.state_dict())
    assert clipped.reset()[0].tolist() == [-0.5, -0.5]


def test_states_travel_with_the_env():
    cfg = {"env_wrapper": ["obs_norm", "reward_norm"]}
    env = DingEnvWrapper(CountEnv(length=100), cfg)
    env.reset()
    for _ in range(50):
        env.step(0)
    other = DingEnvWrapper(CountEnv(length=100), cfg)
    other.load_state_dict(env.state_dict())
    np.testing.assert_array_equal(env.reset(), other.reset())
    np.testing.assert_array_equal(env.step(0).reward, other.step(0).reward)


def test_allin_obs():
    env = AllinObsWrapper(CountEnv())
    obs, _ = env.reset()
    assert obs["reward"].tolist() == [0.0]
    env.step(0)
    obs = env.step(0)[0]
    assert obs["reward"].tolist() == [2.0]
    assert obs["obs"].tolist() == [2, 2]
    assert env.observation_space.contains(obs)


@pytest.mark.parametrize(
    ("space", "action", "null"),
    [
        (spaces.Discrete(3), 2, -1),
        (spaces.MultiDiscrete([2, 3]), np.array([1, 2]), [-1, -1]),
        (spaces.Box(0.0, 5.0, (2,)), np.array([0.5, 5.0], np.float32), [-1.0, -1.0]),
    ],
)
def test_obs_plus_previous_action_and_reward(space, action, null):
    env = ObsPlusPrevActRewWrapper(CountEnv(action_space=space))
    obs, _ = env.reset()
    assert obs["prev_action"].tolist() == null
    assert obs["prev_reward_extrinsic"].tolist() == [0.0]
    assert env.observation_space.contains(obs)
    obs = env.step(action)[0]
    np.testing.assert_array_equal(obs["prev_action"], action)
    assert obs["prev_reward_extrinsic"].tolist() == [1.0]
    assert env.observation_space.contains(obs)


def test_static_obs_norm():
    env = StaticObsNormWrapper(CountEnv(), mean=1.0, std=np.array([2.0, 4.0]))
    obs, _ = env.reset()
    assert obs.dtype == np.float32
    assert obs.tolist() == [-0.5, -0.25]
    assert env.observation_space.contains(obs)
    with pytest.raises(ValueError, match="std"):
        StaticObsNormWrapper(CountEnv(), 0, np.zeros(2))


def test_ram_as_an_image():
    env = RamWrapper(CountEnv(obs_dtype=np.uint8))
    env.reset()
    obs = env.step(0)[0]
    assert (obs.dtype, obs.shape) == (np.float32, (2, 1, 1))
    assert obs.ravel().tolist() == [1, 1]
    assert env.observation_space.contains(obs)


def test_action_repeat():
    env = ActionRepeatWrapper(CountEnv(length=5), 3)
    env.reset()
    assert env.step(0)[1:3] == (6.0, False)
    assert env.step(0)[1:3] == (9.0, True)
    with pytest.raises(ValueError, match="action_repeat"):
        ActionRepeatWrapper(CountEnv(), 0)


def test_mask_obs():
    inner = CountEnv()
    inner.observation_space = spaces.Box(
        np.array([0, -1, 2]), np.array([3, 1, 4]), dtype=np.float32
    )
    inner.observe = lambda: np.array([inner.t, 0.5, 3], np.float32)
    env = MaskObsWrapper(inner, keep=[2, 0])
    env.reset()
    assert env.step(0)[0].tolist() == [3, 1]
    assert env.observation_space == spaces.Box(np.array([2, 0]), np.array([4, 3]), dtype=np.float32)
    for keep in ([], [3]):
        with pytest.raises(ValueError, match="keep="):
            MaskObsWrapper(inner, keep=keep)
