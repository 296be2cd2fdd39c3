import zlib

import numpy as np
import pytest
from gymnasium import spaces

from ding.envs import (
    DingEnvWrapper,
    EpisodicLifeWrapper,
    FireResetWrapper,
    MaxAndSkipWrapper,
    NoopResetWrapper,
    WarpFrameWrapper,
    update_shape,
)
from tests.envs.small_envs import CountEnv


class LifeEnv(CountEnv):
    """Loses a life every second step; three lives."""

    def __init__(self, meanings=("NOOP", "FIRE", "LEFT"), **kwargs):
        super().__init__(length=6, **kwargs)
        self.meanings = list(meanings)

    def get_action_meanings(self):
        return self.meanings

    def reset(self, **kwargs):
        return super().reset(**kwargs)[0], {"lives": 3}

    def step(self, action):
        return (*super().step(action)[:4], {"lives": 3 - self.t // 2})


class FrameEnv(LifeEnv):
    def __init__(self):
        super().__init__()
        self.observation_space = spaces.Box(0, 255, (210, 160, 3), np.uint8)

    def observe(self):
        return np.full((210, 160, 3), 10 * self.t, np.uint8)


def test_noop_reset():
    inner = CountEnv(length=100)
    env = NoopResetWrapper(inner, noop_max=5)
    starts = [int(env.reset(seed=i)[0][0]) for i in range(60)]
    assert set(starts) == {1, 2, 3, 4, 5}
    assert starts == [int(env.reset(seed=i)[0][0]) for i in range(60)]
    assert set(inner.actions) == {0}


def test_noop_reset_of_a_short_episode_starts_again():
    env = NoopResetWrapper(CountEnv(length=2), noop_max=8)
    assert {int(env.reset(seed=i)[0][0]) for i in range(40)} == {0, 1}


def test_noop_must_be_a_noop():
    with pytest.raises(ValueError, match="LEFT"):
        NoopResetWrapper(LifeEnv(meanings=["LEFT", "FIRE"]))


def test_max_and_skip():
    inner = CountEnv(length=6)
    pixels = {3: [9, 0], 4: [1, 5], 6: [2, 2], 5: [7, 0]}
    inner.observe = lambda: np.array(pixels.get(inner.t, [99, 99]), np.float32)
    env = MaxAndSkipWrapper(inner, skip=4)
    env.reset()
    obs, reward, terminated, _, _ = env.step(2)
    assert obs.tolist() == [9, 5]
    assert reward == 1 + 2 + 3 + 4
    assert not terminated
    obs, reward, terminated, _, _ = env.step(2)
    assert obs.tolist() == [2, 2]
    assert reward == 11
    assert terminated
    assert inner.actions == [2] * 6


def test_max_and_skip_over_a_reused_array():
    inner = CountEnv(length=9)
    kept = np.zeros(2, np.float32)

    def falling():
        kept[:] = 10 - inner.t
        return kept

    inner.observe = falling
    env = MaxAndSkipWrapper(inner, skip=2)
    env.reset()
    assert env.step(0)[0].tolist() == [9, 9]


def test_episodic_life():
    inner = LifeEnv()
    env = EpisodicLifeWrapper(inner)
    env.reset()
    assert env.step(1)[2] is False
    assert env.step(1)[2] is True
    assert len(inner.seeds) == 1
    obs, _ = env.reset()  # a no-op from where the life ended
    assert obs[0] == 3
    assert len(inner.seeds) == 1
    assert env.step(1)[2] is True
    assert env.reset()[0][0] == 5
    assert env.step(1)[2] is True  # the last life: the game is over
    assert env.reset()[0][0] == 0
    assert len(inner.seeds) == 2


def test_a_seed_in_the_middle_of_a_game_is_that_of_the_next_one():
    inner = LifeEnv()
    env = EpisodicLifeWrapper(inner)
    for seed in (3, 4, None, None, 5):
        env.reset(seed=seed)
        while not env.step(1)[2]:
            pass
    assert inner.seeds == [3, 4]


def test_fire_reset():
    inner = LifeEnv()
    assert FireResetWrapper(inner).reset()[0][0] == 1
    assert inner.actions == [1]
    assert FireResetWrapper(LifeEnv(meanings=["NOOP", "UP", "DOWN"])).reset()[0][0] == 0


def test_warp_frame_values():
    env = CountEnv()
    env.observation_space = spaces.Box(0, 255, (4, 4, 3), np.uint8)
    frame = np.zeros((4, 4, 3), np.uint8)
    frame[:2, :2] = 100  # grey 100 in the upper left quarter
    frame[2, 2, 0] = 200  # red: 0.299 * 200 = 59.8, a quarter of the lower right: 14.95
    env.observe = lambda: frame
    warped = WarpFrameWrapper(env, size=2)
    obs, _ = warped.reset()
    assert obs.dtype == np.uint8
    assert obs.tolist() == [[100, 0], [0, 15]]


def test_warp_frame_shares_pixels_by_area():
    env = CountEnv()
    env.observation_space = spaces.Box(0, 255, (3, 3), np.uint8)
    env.observe = lambda: np.array([[0, 60, 120]] * 3, np.uint8)
    obs, _ = WarpFrameWrapper(env, size=2).reset()
    assert obs.tolist() == [[20, 100]] * 2  # (0 + 60 / 2) / 1.5 and (60 / 2 + 120) / 1.5


def test_warp_frame_rounds_as_opencv():
    env = CountEnv()
    env.observation_space = spaces.Box(0, 255, (210, 160), np.uint8)
    env.observe = lambda: np.random.default_rng(0).integers(0, 256, (210, 160), np.uint8)
    obs, _ = WarpFrameWrapper(env).reset()
    # Of cv2.resize(frame, (84, 84), interpolation=cv2.INTER_AREA), OpenCV 5.0.
    assert zlib.crc32(obs.tobytes()) == 989846518


def test_warp_frame_refuses_vectors():
    with pytest.raises(ValueError, match=r"\(2,\)"):
        WarpFrameWrapper(CountEnv())


@pytest.mark.parametrize("caller", ["collector", "evaluator"])
def test_atari_preset(caller):
    env = DingEnvWrapper(FrameEnv(), {"env_wrapper": "atari_default"}, caller=caller)
    env.seed(0)
    obs = env.reset()
    assert obs.shape == (4, 84, 84)
    assert obs.dtype == np.float32
    assert env.observation_space.contains(obs)
    steps = 0
    while not (timestep := env.step(env.random_action())).done:
        steps += 1
    assert timestep.info["eval_episode_return"] > 0
    if caller == "collector":
        assert timestep.reward.tolist() == [1.0]


def test_update_shape():
    shapes = update_shape((210, 160, 3), 4, 1, ["max_and_skip", WarpFrameWrapper])
    assert shapes == ((84, 84), 4, 1)
