"""Observations keep their values, whatever the dtype of the first one was."""

from functools import partial

import numpy as np
import pytest
from easydict import EasyDict
from gymnasium import spaces

from ding.envs import BaseEnvTimestep, create_env_manager
from ding.worker import SampleSerialCollector
from tests.fakes import LineEnv, RowPolicy, StepPolicy


class WideningEnv(LineEnv):
    """Shows 300 times its step: an int8 zero at first, int64 then."""

    def __init__(self, cfg):
        super().__init__(cfg)
        self.observation_space = spaces.Box(-(10**6), 10**6, (2,), np.int64)

    def observe(self):
        first = np.int8 if self._t == 0 else np.int64
        return np.array([self._cfg.number, 300 * self._t], first)


class NestedEnv(WideningEnv):
    def __init__(self, cfg):
        super().__init__(cfg)
        self.observation_space = spaces.Dict({"a": self.observation_space})

    def reset(self):
        return {"a": super().reset()}

    def step(self, action):
        obs, *rest = super().step(action)
        return BaseEnvTimestep({"a": obs}, *rest)


class LateFloat(LineEnv):
    """Whole numbers at first, halves then."""

    def observe(self):
        return np.array([self._cfg.number, self._t / 2]) if self._t else np.zeros(2, int)


MANAGERS = pytest.mark.parametrize(
    "cfg",
    [
        {"type": "base"},
        {"type": "subprocess"},
        {"type": "subprocess", "shared_memory": False},
        {"type": "async_subprocess"},
        {"type": "gym_vector"},
    ],
    ids=lambda cfg: "-".join(map(str, cfg.values())),
)


def made(cfg, env_cls):
    fns = [partial(env_cls, {"number": i, "length": 4}) for i in range(2)]
    return create_env_manager(EasyDict(cfg), fns)


def collected(envs, policy, n_sample, tmp_path):
    cfg = SampleSerialCollector.default_config()
    collector = SampleSerialCollector(cfg, envs, policy.collect_mode, exp_name=str(tmp_path))
    rows = list(collector.collect(n_sample=n_sample))
    collector.close()
    return rows


@MANAGERS
@pytest.mark.parametrize("policy_cls", [StepPolicy, RowPolicy])
def test_whole_numbers(cfg, policy_cls, tmp_path):
    rows = collected(made(cfg, WideningEnv), policy_cls(), 16, tmp_path)
    for row in rows:
        assert int(row["next_obs"][1]) == int(row["obs"][1]) + 300
    assert {int(row["next_obs"][1]) for row in rows} == {300, 600, 900, 1200}


@MANAGERS
def test_nested(cfg):
    env = made(cfg, NestedEnv)
    env.launch()
    for k in range(1, 4):
        step = env.step_columns(np.array([0, 0]), env.ready_columns()[0])
        assert step.obs["a"][:, 1].tolist() == [300 * k] * 2
    env.close()


@MANAGERS
def test_floats_after_whole_numbers(cfg):
    env = made(cfg, LateFloat)
    env.launch()
    for k in range(1, 4):
        step = env.step_columns(np.array([0, 0]), env.ready_columns()[0])
        assert step.obs[:, 1].tolist() == [k / 2] * 2
        assert [obs[1] for obs in env.ready_obs.values()] == [k / 2] * 2
    env.close()


class BigEndian(LineEnv):
    def observe(self):
        return super().observe().astype(">f4")


@MANAGERS
@pytest.mark.parametrize("policy_cls", [StepPolicy, RowPolicy])
def test_another_byte_order(cfg, policy_cls, tmp_path):
    rows = collected(made(cfg, BigEndian), policy_cls(), 8, tmp_path)
    assert sorted(int(row["next_obs"][1]) for row in rows) == [1, 1, 2, 2, 3, 3, 4, 4]
