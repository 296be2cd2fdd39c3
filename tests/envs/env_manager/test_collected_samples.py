"""What collectors hand on obeys the physics of CartPole, whatever env manager steps it."""

import importlib.util
import sys
from functools import partial

import numpy as np
import pytest
import torch
from easydict import EasyDict
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

from ding.envs import DingEnvWrapper, create_env_manager
from ding.policy import DQNPolicy, PPOPolicy
from ding.utils import ENV_MANAGER_REGISTRY
from ding.worker import EpisodeSerialCollector, SampleSerialCollector
from tests.envs.env_manager import fake_envpool
from tests.fakes import RowPolicy, StepPolicy

#: Random play ends two thirds of the episodes earlier, so that there are both kinds of ends.
TIME_LIMIT = 24
HAS_ENVPOOL = importlib.util.find_spec("envpool") is not None
POOL = {"type": "env_pool", "env_id": "CartPole-v1", "kwargs": {"max_episode_steps": TIME_LIMIT}}
MANAGERS = [
    {"type": "base"},
    {"type": "base_v2"},
    {"type": "subprocess"},
    {"type": "subprocess", "shared_memory": False, "copy_on_get": False},
    {"type": "subprocess_v2"},
    {"type": "async_subprocess"},
    {"type": "async_subprocess", "copy_on_get": False, "wait_num": 1},
    {"type": "gym_vector"},
    {**POOL, "library": "fake"},
]
if HAS_ENVPOOL:
    MANAGERS.append({**POOL, "library": "real"})
PICTURE_MANAGERS = [
    {"type": "base"},
    {"type": "subprocess"},
    {"type": "subprocess", "shared_memory": False},
    {"type": "async_subprocess", "copy_on_get": False},
    {"type": "gym_vector"},
    {"type": "env_pool", "env_id": "Pictures-v0", "env_num": 4},
]


def named(cfg):
    return "-".join(str(v) for k, v in cfg.items() if k not in ("env_id", "kwargs"))


@pytest.fixture(params=MANAGERS, ids=named)
def make(request, monkeypatch):
    """Makes an env manager for some CartPoles."""
    cfg = dict(request.param)
    library = cfg.pop("library", None)
    if library == "fake":
        monkeypatch.setitem(sys.modules, "envpool", fake_envpool.module())
    managers = []

    def made(env_num):
        own = dict(cfg)
        if library is not None:
            own["env_num"] = env_num
        wrapped = partial(
            DingEnvWrapper, cfg=EasyDict(env_id="CartPole-v1", max_episode_steps=TIME_LIMIT)
        )
        manager = create_env_manager(EasyDict(own), [wrapped] * env_num)
        manager.seed(7)
        torch.manual_seed(7)
        managers.append(manager)
        return manager

    #: EnvPool calls a step that terminates an episode at its time limit truncated.
    made.strict = library != "real"
    yield made
    for manager in managers:
        manager.close()


def policy(cls):
    cfg = cls.default_config()
    cfg.model = EasyDict(obs_shape=4, action_shape=2)
    cfg.action_space = "discrete"
    return cls(cfg, enable_field=["collect"]).collect_mode


@pytest.fixture
def collector(tmp_path):
    """Makes a collector, and closes it at the end."""
    made = []

    def build(cls, manager, mode):
        made.append(cls(cls.default_config(), manager, mode, exp_name=str(tmp_path)))
        return made[-1]

    yield build
    for one in made:
        one.close()


def column(rows, name):
    return np.array([np.asarray(row[name]).reshape(-1) for row in rows])


def following(obs, actions):
    """The states after one Euler step of gymnasium's own environment from each of `obs`."""
    env = CartPoleEnv()
    env.reset()
    states, ends = [], []
    for start, action in zip(obs, actions):
        env.state, env.steps_beyond_terminated = tuple(start.astype(np.float64)), None
        state, _, terminated, *_ = env.step(int(action))
        states.append(state)
        ends.append(terminated)
    return np.array(states), np.array(ends)


def assert_physical(rows, strict=True):
    """
    Args:
        strict: Whether a step that terminates an episode at the time limit is called terminated.
    """
    obs, next_obs = column(rows, "obs"), column(rows, "next_obs")
    expected, terminated = following(obs, column(rows, "action")[:, 0])
    np.testing.assert_allclose(next_obs, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(column(rows, "reward"), np.ones((len(rows), 1)))
    # The library that ends an episode may calculate in another precision.
    far = np.abs(np.abs(expected[:, [0, 2]]) - [2.4, np.radians(12)]).min(axis=1) > 1e-4
    done = column(rows, "done")[:, 0].astype(bool)
    assert not (done & ~terminated)[far].any()
    missed = (terminated & ~done)[far]
    assert missed.mean() < (1e-9 if strict else 0.1)
    assert done.any()
    assert not done.all()


def trajectories(rows):
    """Lengths of the runs of transitions of which each begins where the one before ended."""
    obs, next_obs = column(rows, "obs"), column(rows, "next_obs")
    linked = (obs[1:] == next_obs[:-1]).all(axis=1)
    breaks = np.flatnonzero(~linked) + 1
    return np.diff([0, *breaks, len(rows)])


@pytest.mark.parametrize("env_num", [1, 3, 8])
def test_off_policy_samples(make, env_num, collector):
    collector = collector(SampleSerialCollector, make(env_num), policy(DQNPolicy))
    held = [collector.collect(n_sample=80, policy_kwargs={"eps": 1.0}) for _ in range(3)]
    for rows in held:  # looked at late: later steps must not reach what was handed out
        assert len(rows) == 80
    assert_physical([row for rows in held for row in rows], make.strict)


@pytest.mark.parametrize("env_num", [1, 3, 8])
def test_on_policy_samples(make, env_num, collector):
    collector = collector(SampleSerialCollector, make(env_num), policy(PPOPolicy))
    held = [collector.collect(n_sample=128) for _ in range(2)]
    assert_physical([row for rows in held for row in rows], make.strict)


@pytest.mark.parametrize("env_num", [1, 3, 8])
def test_whole_episodes(make, env_num, collector):
    collector = collector(EpisodeSerialCollector, make(env_num), policy(DQNPolicy))
    episodes = [
        episode
        for _ in range(2)
        for episode in collector.collect(n_episode=16, policy_kwargs={"eps": 1.0})
    ]
    assert len(episodes) == 32
    assert_physical([row for episode in episodes for row in episode], make.strict)
    for episode in episodes:
        assert trajectories(episode).tolist() == [len(episode)]
        start = column(episode, "obs")[0]
        assert np.abs(start).max() <= 0.05
        done = column(episode, "done")[:, 0].astype(bool)
        assert not done[:-1].any()
        assert done[-1] or len(episode) == TIME_LIMIT
    assert any(len(episode) == TIME_LIMIT for episode in episodes)


@pytest.mark.parametrize("env_num", [2, 5])
def test_columns_that_callers_hold(make, env_num):
    """No array that was handed out is written to again, however long it is held."""
    manager = make(env_num)
    manager.launch()
    held = []
    rng = np.random.default_rng(0)
    for turn in range(60):
        ids, obs = manager.ready_columns()
        if turn % 3 == 2 and len(ids) > 1:  # a part of them
            held.append((obs, obs.copy()))
            ids, obs = ids[1:], obs[1:]
        actions = rng.integers(0, 2, len(ids))
        step = manager.step_columns(actions, ids)
        for array in (obs, step.obs, step.reward, step.done, step.truncated, step.env_ids):
            held.append((array, array.copy()))
        if manager.in_lockstep:
            assert step.env_ids.tolist() == ids.tolist()
            np.testing.assert_allclose(step.obs, following(obs, actions)[0], rtol=1e-4, atol=1e-5)
        if turn == 40:
            held.append((obs := manager.ready_columns()[1], obs.copy()))
            manager.reset()
    for array, copied in held:
        np.testing.assert_array_equal(array, copied)


class DictPolicy(StepPolicy):
    def _forward_collect_batch(self, obs, **kwargs):
        return {"action": (obs["vector"][..., 1] % 2).long()}


class DictRowPolicy(RowPolicy):
    def _forward_collect(self, data, **kwargs):
        return {i: {"action": int(obs["vector"][1] % 2)} for i, obs in data.items()}


@pytest.mark.parametrize("policy_cls", [DictPolicy, DictRowPolicy])
@pytest.mark.parametrize("cfg", PICTURE_MANAGERS, ids=named)
def test_dicts_with_pictures(cfg, policy_cls, monkeypatch, collector):
    monkeypatch.setitem(sys.modules, "envpool", fake_envpool.module())
    fns = [partial(fake_envpool.TASKS["Pictures-v0"], i) for i in range(4)]
    manager = create_env_manager(EasyDict(cfg), [lambda fn=fn: DingEnvWrapper(fn()) for fn in fns])
    collector = collector(SampleSerialCollector, manager, policy_cls().collect_mode)
    rows = [*collector.collect(n_sample=30), *collector.collect(n_sample=30)]
    for row in rows:
        (start, count), (next_start, next_count) = row["obs"]["vector"], row["next_obs"]["vector"]
        assert next_start == start
        assert next_count == count + 1 == row["reward"]
        assert (np.asarray(row["obs"]["nested"]["image"]) == int(count)).all()
        assert (np.asarray(row["next_obs"]["nested"]["image"]) == int(next_count)).all()
    assert sum(bool(row["done"]) for row in rows) > 5


def test_every_registered_manager_is_tested():
    types = {cfg["type"] for cfg in MANAGERS}
    own = {
        name
        for name in ENV_MANAGER_REGISTRY
        if ENV_MANAGER_REGISTRY.get(name).__module__.startswith("ding.")
    }
    assert types == own
