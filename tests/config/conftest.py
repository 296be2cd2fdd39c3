"""A small config that compiles, for tests to spoil."""

import copy

import pytest

from ding.config.utils import (
    parallel_test_create_config,
    parallel_test_main_config,
    parallel_test_system_config,
)

_MAIN = dict(
    exp_name="run",
    env=dict(
        env_id="CartPole-v1",
        collector_env_num=8,
        evaluator_env_num=5,
        n_evaluator_episode=5,
        stop_value=195,
    ),
    policy=dict(
        model=dict(obs_shape=4, action_shape=2),
        learn=dict(batch_size=64),
        collect=dict(n_sample=8),
        eval=dict(evaluator=dict(eval_freq=40)),
        other=dict(replay_buffer=dict(replay_buffer_size=20000)),
    ),
)
_CREATE = dict(env=dict(type="gymnasium"), env_manager=dict(type="base"), policy=dict(type="dqn"))


@pytest.fixture
def main():
    return copy.deepcopy(_MAIN)


@pytest.fixture
def create():
    return copy.deepcopy(_CREATE)


@pytest.fixture
def configs():
    """The three configs of a parallel run."""
    return copy.deepcopy(
        (parallel_test_main_config, parallel_test_create_config, parallel_test_system_config)
    )
