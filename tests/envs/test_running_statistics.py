"""One set of statistics for all environments of a run."""

import multiprocessing
from functools import partial

import gymnasium
import numpy as np
import pytest
from easydict import EasyDict
from gymnasium import spaces

from ding.envs import BaseEnv, BaseEnvTimestep, DingEnvWrapper, create_env_manager
from ding.envs.env_wrappers import ObsNormWrapper
from ding.envs.running_statistics import Moments, RunningStatistics, merged, plain


def assert_moments(state, items):
    assert state["count"] == len(items)
    np.testing.assert_allclose(state["mean"], items.mean(0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(state["m2"] / len(items), items.var(0), rtol=1e-9)


def test_parts_merge_to_the_moments_of_all():
    rng = np.random.default_rng(0)
    items = rng.normal(1e6, 3, (1000, 3)) * [1, 10, 1e-3]
    parts = []
    for chunk in np.split(items, [0, 1, 7, 400, 999]):
        moments = Moments((3,))
        for item in chunk:
            moments.add(item)
        parts.append({"a": moments.state_dict()})
    rng.shuffle(parts)
    assert_moments(merged(plain(part) for part in parts)["a"], items)
    with pytest.raises(ValueError, match="broadcast"):
        merged([parts[0], {"a": {"count": 1, "mean": np.zeros(2), "m2": np.zeros(2)}}])


def test_news_are_taken_once_and_survive_a_load():
    items = np.random.default_rng(1).normal(size=(30, 2))
    one, other = RunningStatistics((2,)), RunningStatistics((2,))
    one.update(items[:10])
    known = merged([{"a": one.take()}])
    one.update(items[10:15])
    one.load(known["a"])
    assert_moments(one.state_dict(), items[:15])
    other.load(known["a"])
    other.update(items[15:])
    known = merged([known, {"a": one.take()}, {"a": other.take()}])
    assert_moments(known["a"], items)
    assert one.take()["count"] == 0
    one.load(known["a"], frozen=True)
    one.update(items)
    assert_moments(one.state_dict(), items)


class NoiseEnv(gymnasium.Env):
    """Remembers what it has shown, which the action echoes into the info."""

    def __init__(self, scale=5.0):
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = spaces.Discrete(2)
        self._scale = scale

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._t, self.shown = 0, []
        return self._show(), {}

    def step(self, action):
        self._t += 1
        obs = self._show()
        done = self._t >= 5
        info = {"shown": np.array(self.shown)} if done else {}
        return obs, 1.0, done, False, info

    def _show(self):
        obs = self.np_random.normal([3, -2], [self._scale, 0.1])
        self.shown.append(obs)
        return obs


class LazyEnv(BaseEnv):
    """A user's environment, which makes what it wraps at its first reset."""

    def __init__(self, cfg):
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self._env = None
        self._seed = 0

    def seed(self, seed, dynamic_seed=True):
        self._seed = seed

    def reset(self):
        if self._env is None:
            self._env = ObsNormWrapper(NoiseEnv())
            return self._env.reset(seed=self._seed)[0]
        return self._env.reset()[0]

    def step(self, action):
        obs, reward, done, _, info = self._env.step(action)
        return BaseEnvTimestep(obs, np.array([reward], np.float32), done, info)

    def close(self):
        pass


def wrapped(*wrappers):
    return partial(lambda names: DingEnvWrapper(NoiseEnv(), {"env_wrapper": list(names)}), wrappers)


MAKERS = {
    "obs_norm": wrapped("obs_norm"),
    "lazy": partial(LazyEnv, {}),
    "gymnasium": wrapped(gymnasium.wrappers.NormalizeObservation),
}
MANAGERS = pytest.mark.parametrize(
    "manager",
    [
        {"type": "base"},
        {"type": "subprocess", "envs_per_worker": 1},
        {"type": "subprocess", "envs_per_worker": 2},
        {"type": "async_subprocess"},
        {"type": "gym_vector"},
        {"type": "gym_vector", "shared_memory": True},
    ],
    ids=lambda cfg: "-".join(map(str, cfg.values())),
)


def launched(manager, maker, env_num=3):
    env = create_env_manager(EasyDict(manager), [MAKERS[maker]] * env_num)
    env.seed(0)
    env.launch()
    return env


def play(env, steps):
    """Step; returns what the environments themselves have shown in the episodes that ended."""
    shown = []
    for _ in range(steps):
        for timestep in env.step({i: np.array([0]) for i in env.ready_obs_id}).values():
            if timestep.done:
                shown += list(timestep.info["shown"])
    return np.array(shown)


@MANAGERS
@pytest.mark.parametrize("maker", MAKERS)
def test_all_environments_feed_and_follow_one_set(manager, maker):
    env = launched(manager, maker)
    assert env.normalises
    news = [env.take_statistics()]
    shown = play(env, 40)
    news.append(env.take_statistics())
    (state,) = merged(news).values()
    # Those of the episodes that have begun since are in there, too.
    assert len(shown) <= state["count"] <= len(shown) + 3 * 6 + 3
    np.testing.assert_allclose(state["mean"], [3, -2], rtol=0.4)

    known = {name: {"count": 1e6, "mean": np.array([3.0, -2.0]), "m2": 1e6 * np.array([25, 0.01])}
             for name in news[0]}  # fmt: skip
    env.load_statistics(known, frozen=True)
    env.reset()
    obs = np.array(list(env.ready_obs.values()))
    assert np.abs(obs).max() <= 5
    assert np.abs(obs).max() > 0.01
    play(env, 12)
    (after,) = env.take_statistics().values()
    assert after["count"] == 0
    env.close()


def test_the_worker_after_one_that_was_killed_normalises_by_them_too():
    env = launched({"type": "subprocess"}, "obs_norm", env_num=1)
    known = {"count": 1e6, "mean": np.full(2, 1e4), "m2": np.full(2, 1e6)}
    env.load_statistics({"ObsNormWrapper": known}, frozen=True)
    (worker,) = multiprocessing.active_children()
    worker.kill()
    shown = [env.step({0: np.array([0])})[0].obs.tolist() for _ in range(3)]
    assert shown == [[-3, -3]] * 3
    assert env.take_statistics()["ObsNormWrapper"]["count"] == 0
    env.close()


@MANAGERS
def test_what_normalises_nothing_has_none(manager):
    env = create_env_manager(EasyDict(manager), [wrapped()] * 2)
    env.launch()
    assert not env.normalises
    assert env.take_statistics() is None
    env.load_statistics({}, frozen=True)
    env.close()


def test_exact_over_processes():
    env = launched({"type": "subprocess", "envs_per_worker": 1}, "obs_norm", env_num=4)
    parts, shown = [], []
    for _ in range(5):  # whole episodes of 5 steps: 6 observations each, the next ones' first
        shown.append(play(env, 5))
        parts.append(env.take_statistics())
        env.load_statistics(merged(parts))
    state = merged(parts)["ObsNormWrapper"]
    begun = play(env, 5)[::6]  # the first observations of the episodes that were running
    env.close()
    assert_moments(state, np.concatenate([*shown, begun]))
