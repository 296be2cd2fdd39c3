"""The manager that takes its settings one by one."""

import numpy as np
import pytest

from ding.envs.env_manager import EnvSupervisor, SubprocessEnvManagerV2
from ding.utils.errors import ConfigError
from tests.fakes import LineEnv


def test_steps_and_ends():
    env = EnvSupervisor(
        env_fn=[lambda: LineEnv({"number": 0}), lambda: LineEnv({"number": 1})],
        retry_type="renew",
        max_try=2,
        auto_reset=False,
        step_timeout=30,
    )
    assert isinstance(env, SubprocessEnvManagerV2)
    env.seed(0)
    env.launch()
    assert env.ready_obs.tolist() == [[0, 0], [1, 0]]
    for _ in range(5):
        steps = env.step([np.array([0]), np.array([1])])
    assert [(step.env_id, step.done) for step in steps] == [(0, True), (1, True)]
    env.shutdown()
    assert env.closed


def test_mistakes():
    with pytest.raises(ConfigError, match="needs env_fn"):
        EnvSupervisor("thread")
    with pytest.raises(ConfigError, match="retry_type"):
        EnvSupervisor(env_fn=[lambda: LineEnv({})], retry_type="again")
