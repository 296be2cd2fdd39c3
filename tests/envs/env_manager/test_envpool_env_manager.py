"""The manager over envpool, with a stand-in that answers as envpool does."""

import sys
from functools import partial

import numpy as np
import pytest
from easydict import EasyDict

from ding.envs import PoolEnvManager, create_env_manager
from ding.utils import ENV_REGISTRY
from ding.utils.errors import ConfigError, EnvError
from tests.envs.env_manager import fake_envpool


@pytest.fixture
def pool(monkeypatch):
    monkeypatch.setitem(sys.modules, "envpool", fake_envpool.module())


def test_episodes_in_turn(pool):
    # An old config's batch_size: a step waits for all.
    manager = PoolEnvManager(dict(env_id="Count-v0", env_num=3, batch_size=2, episode_num=2))
    manager.seed(5)
    manager.launch()
    assert len(manager.ready_obs) == 3
    returns = {0: [], 1: [], 2: []}
    count = dict.fromkeys(returns, 0)
    for _ in range(100):
        for env_id, step in manager.step({i: np.array([1]) for i in manager.ready_obs_id}).items():
            assert step.obs[1] == count[env_id] + 1
            count[env_id] = 0 if step.done else step.obs[1]
            assert step.reward.shape == (1,)
            assert step.reward[0] == step.obs[1]
            if step.done:
                assert step.info["truncated"] is (env_id == 1)
                returns[env_id].append(step.info["eval_episode_return"])
        if manager.done:
            break
    first = {env_id: found[-1] for env_id, found in returns.items()}
    assert first == {0: 1 + 2, 1: 1 + 2 + 3, 2: 1 + 2 + 3 + 4}
    assert all(len(found) == 2 for found in returns.values())
    manager.reset()
    assert manager.ready_obs
    assert not manager.done
    manager.close()
    assert manager.closed


@pytest.mark.parametrize("seed", [[7, 8], np.array([7, 8]), {0: 7, 1: 8}])
def test_the_pool_takes_the_seed_of_the_first_environment(pool, seed):
    manager = PoolEnvManager(dict(env_id="Count-v0", env_num=2))
    shown = []
    for own in (seed, {0: 7}, {0: 8}):
        manager.seed(own)
        manager.launch()
        shown.append(manager.ready_obs[1].tolist())
        manager.close()
    assert shown[0] == shown[1] != shown[2]


def test_columns_and_the_factory(pool):
    cfg = EasyDict(type="env_pool", env_id="Count-v0")
    manager = create_env_manager(cfg, [None] * 2)
    manager.launch()
    assert manager.supports_columns
    assert manager.in_lockstep
    played = []
    for _ in range(20):
        ids, obs = manager.ready_columns()
        before = obs[:, 1].copy()
        step = manager.step_columns(np.zeros(len(ids), np.int64), ids)
        assert step.env_ids.tolist() == ids.tolist()
        np.testing.assert_array_equal(step.obs[:, 1], before + 1)
        np.testing.assert_array_equal(step.truncated, step.done & (ids == 1))
        played += [info["eval_episode_return"] for info in step.infos.values()]
    assert set(played) == {3.0, 6.0}
    manager.reset()
    ids, _ = manager.ready_columns()
    step = manager.step_columns(np.zeros(1, np.int64), ids[1:])  # the other is stepped unasked
    assert step.env_ids.tolist() == [1]
    with pytest.raises(EnvError, match="cannot be reset alone"):
        manager.reset({0: None})
    manager.close()


def of_type(kind, **cfg):
    return [partial(ENV_REGISTRY.get(kind), cfg)] * 2


def test_the_task_is_that_of_the_env_type(pool):
    manager = PoolEnvManager({}, of_type("cartpole"))
    manager.launch()
    ids, obs = manager.ready_columns()
    assert (obs.shape, obs.dtype) == ((2, 4), np.float32)
    assert manager.step_columns(np.zeros(2, np.int64), ids).reward.tolist() == [1, 1]
    manager.close()


@pytest.mark.parametrize(("scaled", "factor"), [(True, 2.0), (False, 1.0)])
def test_actions_are_scaled_as_the_env_type_does(pool, scaled, factor):
    manager = PoolEnvManager({}, of_type("pendulum", act_scale=scaled))
    env = ENV_REGISTRY.get("pendulum")({"act_scale": scaled})
    for one in (manager, env):
        one.seed(0)
    manager.launch()
    assert manager.action_space.high == 1 if scaled else 2
    _, obs = manager.ready_columns()
    _cos, sin, speed = obs[0].tolist()
    faster = manager.step_columns(np.full((2, 1), 0.5, np.float32), np.arange(2)).obs[0, 2]
    # Pendulum: speed + (15 sin + 3 torque) / 20
    assert faster == pytest.approx(speed + 0.75 * sin + 0.15 * factor * 0.5, abs=1e-5)
    manager.close()


def test_wrappers_are_refused(pool):
    with pytest.raises(ConfigError, match=r"obs_norm.*'subprocess'"):
        PoolEnvManager({}, of_type("cartpole", norm_obs=dict(use_norm=True)))
    with pytest.raises(ConfigError, match="taxi_obs"):
        PoolEnvManager({}, of_type("taxi"))
    for own in (dict(delay_reward_step=2), dict(env_wrapper="none")):
        with pytest.raises(ConfigError, match=r"delay_reward|frame_stack"):
            PoolEnvManager({}, of_type("atari", env_id="Pong-v5", **own))


@pytest.mark.parametrize(
    ("env_id", "sticky"), [("PongNoFrameskip-v4", 0.0), ("ALE/Pong-v5", 0.25), ("Pong-v5", 0.25)]
)
def test_wrappers_of_atari_are_those_of_the_pool(env_id, sticky):
    atari = ENV_REGISTRY.get("atari")
    made = atari.pool_kwargs({**atari.config, "env_id": env_id, "frame_stack": 3})
    facts = dict(task_id="Pong-v5", stack_num=3, repeat_action_probability=sticky)
    assert made == dict(facts, episodic_life=True, reward_clip=True)
    settings = {**atari.config, "env_id": env_id, "is_train": False, "max_episode_steps": 101}
    made = atari.pool_kwargs(settings)
    facts["stack_num"] = 4
    # Steps of the emulator, of which each action takes four.
    assert made == dict(facts, episodic_life=False, reward_clip=False, max_episode_steps=26)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "collects"), [("Pong", False), ("Pong", True), ("Breakout", False)]
)
def test_frames_are_those_of_the_emulator(game, collects):
    pytest.importorskip("envpool", exc_type=ImportError)
    settings = dict(env_id=f"{game}NoFrameskip-v4", is_train=collects)
    no_starts = dict(kwargs=dict(noop_max=1, use_fire_reset=False))
    manager = PoolEnvManager(no_starts, [partial(ENV_REGISTRY.get("atari"), settings)])
    wrappers = [
        *[dict(type="noop_reset", kwargs=dict(noop_max=1)), "max_and_skip", "warp_frame"],
        *["scaled_float_frame", *(["clip_reward"] if collects else [])],
        dict(type="frame_stack", kwargs=dict(n_frames=4)),
    ]
    plain = dict(settings, env_wrapper=wrappers, kwargs=dict(obs_type="grayscale"))
    env = ENV_REGISTRY.get("atari")(plain)
    env.seed(0)
    manager.launch()
    _, obs = manager.ready_columns()
    np.testing.assert_array_equal(obs[0], env.reset())
    rng = np.random.default_rng(0)
    for _ in range(150):
        action = rng.integers(4)
        found = manager.step_columns(np.array([action]), np.zeros(1, np.int64))
        expected = env.step(action)
        assert (found.reward[0], found.done[0]) == (expected.reward, expected.done)
        np.testing.assert_array_equal(found.obs[0], expected.obs)
    manager.close()
    env.close()


def test_videos_are_refused(pool, tmp_path):
    manager = PoolEnvManager({}, of_type("cartpole"))
    with pytest.raises(EnvError, match="saves no videos"):
        manager.enable_save_replay(str(tmp_path))


def test_errors(monkeypatch, pool):
    with pytest.raises(ConfigError, match="env_id"):
        PoolEnvManager({})
    manager = PoolEnvManager(dict(env_id="Count-v0", env_num=2))
    with pytest.raises(EnvError, match="launch"):
        manager.step({})
    with pytest.raises(EnvError, match=r"env_id='NoSuch-v0'.*NoSuch"):
        PoolEnvManager(dict(env_id="NoSuch-v0", env_num=2)).launch()
    monkeypatch.setitem(sys.modules, "envpool", None)
    with pytest.raises(EnvError, match=r"ding\[envpool\]"):
        manager.launch()
