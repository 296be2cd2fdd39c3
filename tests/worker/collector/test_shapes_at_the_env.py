"""Shapes of actions that environments receive and of rows; both paths agree."""

from functools import partial

import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.envs import BaseEnvTimestep, create_env_manager
from ding.worker import BattleSampleSerialCollector, SampleSerialCollector
from tests.fakes import LineEnv, RowPolicy, StepPolicy


class ShapeEnv(LineEnv):
    """Reports the shape of its action; a bare index into it fails on numbers."""

    def step(self, action):
        assert isinstance(action, np.ndarray)
        assert action.shape == (1,)
        assert action.dtype == np.int64
        assert int(action) == action[0] == action.item() == range(2)[action]
        return super().step(action[0])


class DuelEnv(LineEnv):
    """Two players, spaces of one, rewards ``[2, 1]``; takes a list of one action each."""

    def observe(self):
        return np.tile(super().observe(), (2, 1))

    def step(self, action):
        assert type(action) is list
        assert [one.shape for one in action] == [(1,), (1,)]
        obs, reward, done, info = super().step(action[0])
        infos = [dict(info), dict(info)]
        return BaseEnvTimestep(obs, np.stack([reward, 2 * reward]), done, infos)


class ColumnDqn(StepPolicy):
    """A batched policy whose actions and values are one number each."""

    _transition_outputs = ("value",)

    def _forward_collect_batch(self, obs, **kwargs):
        return {"action": (obs[..., 1] % 2).long(), "value": obs[..., 1] * 2}

    def _get_train_columns(self, columns, lengths):
        return {**columns, "adv": columns["value"] + 1, "reward": columns["reward"][:, None]}


class RowDqn(ColumnDqn):
    """The same by rows, with the base class's own adapter."""

    def _process_transition(self, obs, policy_output, timestep):
        return super()._process_transition(obs, policy_output, timestep)


class TensorRows(RowPolicy):
    def _forward_collect(self, data, **kwargs):
        return {i: {"action": torch.tensor([int(obs[1] % 2)])} for i, obs in data.items()}


def manager(kind, env_cls, env_num=2, length=4):
    fns = [partial(env_cls, {"number": i, "length": length}) for i in range(env_num)]
    return create_env_manager(EasyDict(type=kind), fns)


def collector_of(tmp_path, kind, env, policy):
    return kind(kind.default_config(), env, policy, exp_name=str(tmp_path))


@pytest.mark.parametrize("kind", ["base", "subprocess", "async_subprocess", "gym_vector"])
@pytest.mark.parametrize("policy_cls", [ColumnDqn, RowDqn, RowPolicy, TensorRows])
def test_discrete_actions_have_shape_1(tmp_path, kind, policy_cls):
    collector = collector_of(
        tmp_path, SampleSerialCollector, manager(kind, ShapeEnv), policy_cls().collect_mode
    )
    rows = collector.collect(n_sample=8)
    collector.close()
    assert len(rows) == 8


@pytest.mark.parametrize("policy_cls", [ColumnDqn, RowDqn])
def test_rows_hold_vectors(tmp_path, policy_cls):
    collector = collector_of(
        tmp_path, SampleSerialCollector, manager("base", ShapeEnv), policy_cls().collect_mode
    )
    row = collector.collect(n_sample=8)[0]
    collector.close()
    for name in ("action", "value", "adv", "reward"):
        assert tuple(row[name].shape) == (1,), name


@pytest.mark.parametrize("kind", ["base", "subprocess", "async_subprocess"])
@pytest.mark.parametrize("policy_cls", [StepPolicy, RowPolicy])
def test_battles_take_lists_and_give_rewards_of_each_player(tmp_path, kind, policy_cls):
    policies = [policy_cls().collect_mode, policy_cls().collect_mode]
    collector = collector_of(
        tmp_path, BattleSampleSerialCollector, manager(kind, DuelEnv, env_num=8), policies
    )
    samples, _ = collector.collect(n_sample=32)
    collector.close()
    for player in (0, 1):
        rewards = [row["reward"] for row in samples[player]]
        assert {tuple(np.shape(reward)) for reward in rewards} == {(1,)}
        steps = [float(row["next_obs"][1]) for row in samples[player]]
        assert [float(reward) for reward in rewards] == [(player + 1) * step for step in steps]


def test_an_action_of_a_player_out_of_its_space_is_refused(tmp_path):
    env = manager("base", DuelEnv)
    env.launch()
    two = np.array([1])
    with pytest.raises(Exception, match="env 1 cannot take action"):
        env.step({0: [two, two], 1: [two, two + 5]})
    env.close()
