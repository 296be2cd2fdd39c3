"""Training that begins with an expert's demonstrations."""

import json

import pytest
import torch
from easydict import EasyDict
from torch import nn

from ding.entry import serial_pipeline_dqfd, serial_pipeline_r2d3
from ding.entry.run.serial import SerialRun
from ding.policy.dqfd import DQFDPolicy
from ding.utils import POLICY_REGISTRY, durations, save_file
from ding.utils.errors import CheckpointError, ConfigError, EnvTimeoutError
from tests.entry.runs import walk_config, walk_envs

ENV = dict(
    env_id="CartPole-v1",
    collector_env_num=2,
    evaluator_env_num=1,
    n_evaluator_episode=1,
    stop_value=1000,
)
CREATE = EasyDict(env=dict(type="gymnasium"), env_manager=dict(type="base"))


class Leaning(nn.Module):
    """Pushes against the lean: an expert of some fifty steps."""

    def forward(self, x):
        return {"logit": torch.stack([-x[:, -2] - x[:, -1], x[:, -2] + x[:, -1]], 1)}


@POLICY_REGISTRY.register("silent_dqfd")
class SilentDQFD(DQFDPolicy):
    """Returns no priorities of what it has learned from."""

    def _forward_learn(self, data):
        return {k: v for k, v in super()._forward_learn(data).items() if k != "priority"}


def configs(folder, type_="dqfd", **policy):
    small = dict(
        model=dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[16]),
        nstep=3,
        learn=dict(
            batch_size=8,
            per_train_iter_k=3,
            expert_replay_buffer_size=40,
            update_per_collect=2,
            **policy.pop("learn", {}),
        ),
        collect=dict(n_sample=8, **policy.pop("collect", {})),
    )
    return with_expert(folder, type_, {**small, **policy})


def with_expert(folder, type_, policy):
    """The configs of a run, and of an expert with another network."""
    main = EasyDict(exp_name=str(folder), env=ENV, policy=policy)
    expert = EasyDict(
        exp_name="unused", env=ENV, policy=dict(model=dict(obs_shape=4, action_shape=2))
    )
    return (
        (main, EasyDict(CREATE, policy=dict(type=type_))),
        (expert, EasyDict(CREATE, policy=dict(type="dqn"))),
    )


@pytest.fixture
def batches(monkeypatch):
    """Of each batch: demonstrations in it, demonstrations and own samples in the buffer."""
    seen, learn = [], SerialRun.learn

    def spy(self, batch):
        buffer = self._parts.replay_buffer
        counts = buffer.demonstrations.count(), buffer.own.count()
        seen.append((int(batch.columns["is_expert"].sum()), *counts))
        learn(self, batch)

    monkeypatch.setattr(SerialRun, "learn", spy)
    return seen


def run(folder, max_train_iter, **policy):
    main, expert = configs(folder, **policy)
    serial_pipeline_dqfd(main, expert, expert_model=Leaning(), max_train_iter=max_train_iter)
    return json.loads((folder / "run.json").read_text())


def test_demonstrations_come_first_and_stay(tmp_path, batches):
    end = run(tmp_path / "run", 9)
    assert (end["train_iter"], end["envstep"]) == (9, 24)
    own = [0, 0, 0, 8, 8, 16, 16, 24, 24]
    assert batches == [(8 if i < 3 else 4, 40, own[i]) for i in range(9)]


def test_own_samples_may_begin_with_random_ones(tmp_path, batches):
    run(tmp_path / "run", 5, random_collect_size=16)
    assert [(of_expert, own) for of_expert, _, own in batches] == [(8, 16)] * 3 + [(4, 24)] * 2


@pytest.mark.parametrize(
    "limits",
    [
        dict(max_use=1),
        dict(max_staleness=2),
        dict(thruput_controller=dict(push_sample_rate_limit=dict(max=float("inf"), min=0.9))),
    ],
    ids=["use", "staleness", "throughput"],
)
def test_limits_are_of_own_samples_alone(tmp_path, batches, limits):
    main, expert = configs(tmp_path / "run", other=dict(replay_buffer=limits))
    ends = dict(max_train_iter=15, max_env_step=400)
    serial_pipeline_dqfd(main, expert, expert_model=Leaning(), **ends)
    assert [(of_expert, kept) for of_expert, kept, _ in batches] == [(8, 40)] * 3 + [(4, 40)] * 12


def test_a_policy_that_returns_no_priorities_is_named(tmp_path):
    main, expert = configs(tmp_path / "run", type_="silent_dqfd", priority=True)
    with pytest.raises(ConfigError, match=r"policy\.priority is True, but"):
        serial_pipeline_dqfd(main, expert, expert_model=Leaning(), max_train_iter=1)


def test_sequences_of_an_expert(tmp_path, batches):
    main, expert = configs(tmp_path / "run", type_="r2d3")
    main[0].policy.update(burnin_step=1, learn_unroll_len=5)
    main[0].policy.collect.pho = 0.5
    serial_pipeline_r2d3(main, expert, expert_model=Leaning(), max_train_iter=7)
    assert [is_expert for is_expert, _, _ in batches] == [8] * 3 + [4] * 4
    assert {demonstrations for _, demonstrations, _ in batches} == {40}


def test_a_resumed_run_keeps_them(tmp_path, batches):
    run(tmp_path / "whole", 7)
    run(tmp_path / "parts", 2)
    run(tmp_path / "parts", 7, learn=dict(resume_training=True))
    assert batches[:7] == batches[7:]


def test_a_run_that_continues_from_its_checkpoint_has_them_played_again(tmp_path, batches):
    end = run(tmp_path / "run", 7)
    hook = dict(load_ckpt_before_run=str(tmp_path / "run" / "ckpt" / "iteration_7.pth.tar"))
    learn = dict(resume_training=True, learner=dict(hook=hook))
    main, expert = configs(tmp_path / "run", learn=learn)
    limit = end["envstep"] + 16
    serial_pipeline_dqfd(main, expert, expert_model=Leaning(), max_env_step=limit)
    assert batches[7:] == [(4, 40, 8)] * 2 + [(4, 40, 16)] * 2


def test_an_environment_that_hangs_while_the_expert_plays_ends_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(durations, "WATCH_LOOK", 0.05)
    monkeypatch.setattr(durations, "STEP_LOOK_AFTER", 0.1)
    monkeypatch.setattr(durations, "ENV_LIMIT", 0.5)
    main, create = walk_config(tmp_path / "run")
    main.policy.learn.update(per_train_iter_k=3, expert_replay_buffer_size=40)
    create.policy.type = "dqfd"
    expert = walk_config("unused", policy="dqn")
    envs = walk_envs(fault="hang", at=5)
    with pytest.raises(EnvTimeoutError, match=r"env 1 .*no answer for 0\.5 s"):
        serial_pipeline_dqfd((main, create), expert, expert_model=Leaning(), env_setting=envs)
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    assert facts["status"] == "failed"
    assert facts["reason"].startswith("EnvTimeoutError: env 1")


def test_what_does_not_fit_is_named(tmp_path):
    main, expert = configs(tmp_path / "run")
    with pytest.raises(ConfigError, match=r"policy\.collect\.model_path is missing"):
        serial_pipeline_dqfd(main, expert)
    path = str(tmp_path / "other.pth.tar")
    save_file(path, {"model": {"wrong": torch.zeros(1)}})
    main, expert = configs(tmp_path / "run", collect=dict(model_path=path))
    with pytest.raises(CheckpointError, match="does not fit the expert"):
        serial_pipeline_dqfd(main, expert)
    main, expert = configs(tmp_path / "run", type_="dqn")
    main[0].policy.learn.pop("expert_replay_buffer_size")
    with pytest.raises(ConfigError, match="'dqfd'"):
        serial_pipeline_dqfd(main, expert, expert_model=Leaning())
