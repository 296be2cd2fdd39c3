"""What collectors and evaluators do where the process of an environment is killed."""

import contextlib
import itertools
import multiprocessing
import os
import signal

import numpy as np
import pytest
from easydict import EasyDict
from gymnasium import spaces

from ding.envs import create_env_manager
from ding.policy import DQNPolicy
from ding.utils.errors import EnvDiedError
from ding.worker import InteractionSerialEvaluator, SampleSerialCollector
from tests.fakes import LineEnv, RowPolicy, StepPolicy, Writer

_LIVES = multiprocessing.Value("i", 0)


class LivesEnv(LineEnv):
    """Shows ``[life, episode, step]``: no other instance has the same life."""

    def __init__(self, cfg):
        super().__init__({**cfg, "length": 7})
        with _LIVES.get_lock():
            _LIVES.value += 1
            self._life, self._episode = _LIVES.value, 0
        self.observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float32)

    def reset(self):
        self._episode += 1
        return super().reset()

    def observe(self):
        return np.array([self._life, self._episode, self._t], np.float32)

    @property
    def pid(self):
        return os.getpid()


@pytest.fixture
def make():
    made = []

    def build(cls, policy, kind="subprocess", **cfg):
        manager = dict(type=kind, envs_per_worker=2, retry_waiting_time=0)
        env = create_env_manager(EasyDict(manager), [lambda: LivesEnv({})] * 4)
        config = EasyDict({**cls.default_config(), **cfg})
        made.append(cls(config, env=env, policy=policy, tb_logger=Writer()))
        return made[-1], env

    yield build
    for part in made:
        part.close()


def kills(env, env_ids):
    """A hook that kills the worker of an environment before some steps, by their number."""
    numbers, due = itertools.count(), []

    def hook():
        number = next(numbers)
        due.extend(env_id for at, env_id in env_ids.items() if at == number)
        # The last one that was killed may not be replaced yet: then before a later step.
        with contextlib.suppress(EnvDiedError):
            while due:
                os.kill(env.pid[due[0]], signal.SIGKILL)
                del due[0]

    return hook


def dqn(nstep):
    cfg = DQNPolicy.default_config()
    cfg.model = EasyDict(obs_shape=3, action_shape=2)
    cfg.nstep, cfg.action_space = nstep, "discrete"
    return DQNPolicy(cfg, enable_field=["collect"])


@pytest.mark.parametrize("kind", ["subprocess", "async_subprocess"])
@pytest.mark.parametrize("policy_cls", [StepPolicy, RowPolicy])
def test_on_policy_trajectories_are_not_joined(kind, policy_cls, make):
    collector, env = make(SampleSerialCollector, policy_cls(on_policy=True).collect_mode, kind)
    collector.before_step = kills(env, {3: 0, 7: 3, 14: 1})
    rows = []
    for _ in range(4):  # no multiple of the environments: a worker has one that does not act
        rows += collector.collect(13)
    lives = {row["obs"][0].item() for row in rows}
    assert len(lives) > 4
    for row in rows:
        np.testing.assert_array_equal(row["next_obs"] - row["obs"], [0, 0, 1])
    assert len({tuple(row["obs"].tolist()) for row in rows}) == len(rows)
    assert collector.dropped_count > 0
    if kind == "subprocess":
        assert collector.envstep == len(rows) + collector.dropped_count


def test_returns_of_n_steps_end_with_the_worker(make):
    collector, env = make(SampleSerialCollector, dqn(nstep=3).collect_mode)
    collector.before_step = kills(env, {4: 0, 11: 2})
    rows = [*collector.collect(20, policy_kwargs={"eps": 1.0})]
    os.kill(env.pid[3], signal.SIGKILL)
    rows += collector.collect(40, policy_kwargs={"eps": 1.0})
    assert len({row["obs"][0].item() for row in rows}) > 4
    for row in rows:
        life, episode, steps = (row["next_obs"] - row["obs"]).tolist()
        assert (life, episode) == (0, 0)
        assert 1 <= steps <= 3  # fewer at the end of a trajectory


def test_an_evaluation_plays_its_episodes(make):
    evaluator, env = make(
        InteractionSerialEvaluator, StepPolicy().eval_mode, stop_value=100, n_episode=6
    )
    evaluator.before_step = kills(env, {3: 0, 12: 3})
    _, info = evaluator.eval(None, 1, 1)
    assert info["eval_episode_return"] == [info["eval_episode_return"][0]] * 6
