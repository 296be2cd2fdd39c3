"""Episode k of an evaluation has its own start, the same in each evaluation."""

import os
import signal
from functools import partial

import numpy as np
import pytest
from easydict import EasyDict
from gymnasium import spaces

from ding.envs import BaseEnv, BaseEnvTimestep, DingEnvWrapper, create_env_manager, env_seeds
from ding.worker import InteractionSerialEvaluator
from tests.fakes import StepPolicy, Writer


class StartEnv(BaseEnv):
    """Returns the number that it draws at an episode's start; its lengths depend on the policy."""

    def __init__(self, cfg):
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self._rng = np.random.default_rng()

    def seed(self, seed, dynamic_seed=True):
        self._seed, self._dynamic = seed, dynamic_seed
        self._rng = np.random.default_rng(seed)

    def reset(self):
        if not self._dynamic:
            self._rng = np.random.default_rng(self._seed)
        self._start, self._t = self._rng.uniform(), 0
        return np.array([self._start, 0], np.float32)

    def step(self, action):
        self._t += 1
        done = self._t > 2 + self._rng.integers(3)
        info = {"eval_episode_return": self._start} if done else {}
        obs = np.array([self._start, self._t], np.float32)
        return BaseEnvTimestep(obs, np.zeros(1, np.float32), done, info)

    def close(self):
        pass


class OldSeed(StartEnv):
    def seed(self, seed):
        super().seed(seed, dynamic_seed=False)


def evaluator_of(kind, env_cls, env_num, n_episode, seed, **manager_cfg):
    env = create_env_manager(EasyDict(type=kind, **manager_cfg), [partial(env_cls, {})] * env_num)
    env.seed(env_seeds(seed, "evaluator", env_num), dynamic_seed=False)
    cfg = InteractionSerialEvaluator.default_config()
    cfg.update(n_episode=n_episode, stop_value=2)
    return InteractionSerialEvaluator(cfg, env, StepPolicy().eval_mode, Writer())


def returns(evaluator):
    return evaluator.eval()[1]["eval_episode_return"]


@pytest.mark.parametrize("env_cls", [StartEnv, OldSeed])
@pytest.mark.parametrize("kind", ["base", "subprocess", "async_subprocess", "gym_vector"])
@pytest.mark.parametrize("env_num", [1, 3])
def test_starts_differ_within_and_not_between_evaluations(kind, env_cls, env_num):
    evaluator = evaluator_of(kind, env_cls, env_num, 8, seed=3)
    first, second = returns(evaluator), returns(evaluator)
    evaluator.close()
    assert len(set(first)) == 8
    assert first == second
    other = evaluator_of("base", env_cls, env_num, 8, seed=3)
    assert returns(other) == first  # whatever the manager
    other.close()
    other = evaluator_of("base", env_cls, env_num, 8, seed=4)
    assert not set(returns(other)) & set(first)
    other.close()


class FaultyEnv(StartEnv):
    """Fails once where there is a file of that name: ``raise`` or ``kill``."""

    def step(self, action):
        for fault in ("raise", "kill"):
            if os.path.exists(fault):
                os.remove(fault)
                os.kill(os.getpid(), signal.SIGKILL) if fault == "kill" else 1 / 0
        return super().step(action)


@pytest.mark.parametrize(("kind", "fault"), [("base", "raise"), ("subprocess", "kill")])
def test_a_failure_changes_the_starts_of_its_evaluation_alone(kind, fault, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    retry = dict(max_retry=2, retry_type="renew", retry_waiting_time=0)
    evaluator = evaluator_of(kind, FaultyEnv, 2, 8, seed=3, **retry)
    first = returns(evaluator)
    (tmp_path / fault).touch()
    assert returns(evaluator) != first
    assert returns(evaluator) == first
    evaluator.close()


def test_native_vector_envs_start_as_single_ones():
    def starts(kind):
        fns = [lambda: DingEnvWrapper(cfg=EasyDict(env_id="CartPole-v1"))] * 2
        env = create_env_manager(EasyDict(type=kind), fns)
        env.seed([11, 12], dynamic_seed=False)
        env.launch()
        env.number_starts()
        found = []
        for _ in range(2):
            env.reset()
            begun = [[obs.copy()] for obs in env.ready_obs.values()]
            while min(map(len, begun)) < 4:
                ids = env.ready_obs_id
                for env_id, timestep in env.step({i: np.array([1]) for i in ids}).items():
                    if timestep.done:
                        begun[env_id].append(env.ready_obs[env_id])
            found.append(np.stack([episodes[:4] for episodes in begun]))
        env.close()
        np.testing.assert_array_equal(*found)
        return found[0]

    single = starts("base")
    assert len(np.unique(single.reshape(8, 4), axis=0)) == 8
    np.testing.assert_array_equal(starts("gym_vector"), single)


@pytest.mark.parametrize("kind", ["base", "subprocess", "async_subprocess", "gym_vector"])
@pytest.mark.parametrize("env_cls", [StartEnv, None])
def test_a_resumed_evaluator_has_the_same_starts(kind, env_cls):
    def made():
        if env_cls is not None:
            return evaluator_of(kind, env_cls, 2, 6, seed=3)
        fns = [lambda: DingEnvWrapper(cfg=EasyDict(env_id="CartPole-v1"))] * 2
        env = create_env_manager(EasyDict(type=kind), fns)
        env.seed([11, 12], dynamic_seed=False)
        cfg = InteractionSerialEvaluator.default_config()
        cfg.update(n_episode=6, stop_value=1000)
        return InteractionSerialEvaluator(cfg, env, StepPolicy().eval_mode, Writer())

    first, second = made(), made()
    before = returns(first)
    second.load_state_dict(first.state_dict())
    assert returns(second) == before == returns(first)
    assert len(set(before)) > 1
    first.close()
    second.close()


def test_collectors_keep_to_one_start_with_fixed_seeds():
    env = create_env_manager(EasyDict(type="base"), [partial(StartEnv, {})])
    env.seed([5], dynamic_seed=False)
    env.launch()
    found = set()
    for _ in range(5):
        found.add(float(env.ready_obs[0][0]))
        env.reset({0: None})
    env.close()
    assert len(found) == 1
