"""Training loops that users write by hand from the parts, as found in many repositories."""

import gymnasium
import numpy as np
import pytest
from easydict import EasyDict
from tensorboardX import SummaryWriter

from ding.config import compile_config
from ding.envs import BaseEnvManager, DingEnvWrapper, SyncSubprocessEnvManager
from ding.model import DQN, VAC
from ding.policy import DQNPolicy, PPOPolicy
from ding.rl_utils import get_epsilon_greedy_fn
from ding.utils import set_pkg_seed
from ding.worker import (
    AdvancedReplayBuffer,
    BaseLearner,
    BaseSerialCommander,
    InteractionSerialEvaluator,
    NaiveReplayBuffer,
    SampleSerialCollector,
)


def cartpole(env_num=4, **policy):
    return EasyDict(
        exp_name="script",
        env=dict(
            collector_env_num=env_num, evaluator_env_num=2, n_evaluator_episode=2, stop_value=195
        ),
        policy=EasyDict(
            dict(
                cuda=False,
                model=dict(obs_shape=4, action_shape=2),
                other=dict(
                    eps=dict(type="exp", start=0.95, end=0.1, decay=1000),
                    replay_buffer=dict(replay_buffer_size=2000),
                ),
            )
            | policy
        ),
    )


def wrapped_env():
    return DingEnvWrapper(gymnasium.make("CartPole-v1"))


def build(cfg, manager, policy, writer):
    shared = dict(tb_logger=writer, exp_name=cfg.exp_name)
    envs = [
        manager(env_fn=[wrapped_env for _ in range(number)], cfg=cfg.env.manager)
        for number in (cfg.env.collector_env_num, cfg.env.evaluator_env_num)
    ]
    envs[0].seed(0)
    envs[1].seed(0, dynamic_seed=False)
    learner = BaseLearner(cfg.policy.learn.learner, policy.learn_mode, **shared)
    collector = SampleSerialCollector(
        cfg.policy.collect.collector, envs[0], policy.collect_mode, **shared
    )
    evaluator = InteractionSerialEvaluator(
        cfg.policy.eval.evaluator, envs[1], policy.eval_mode, **shared
    )
    return learner, collector, evaluator


@pytest.mark.parametrize("manager", [BaseEnvManager, SyncSubprocessEnvManager])
@pytest.mark.parametrize("buffer_cls", [AdvancedReplayBuffer, NaiveReplayBuffer])
def test_off_policy(manager, buffer_cls):
    prioritised = buffer_cls is AdvancedReplayBuffer
    cfg = compile_config(
        cartpole(priority=prioritised, nstep=3, collect=dict(n_sample=16)),
        *(manager, DQNPolicy, BaseLearner, SampleSerialCollector),
        *(InteractionSerialEvaluator, buffer_cls),
        save_cfg=True,
    )
    set_pkg_seed(0, use_cuda=cfg.policy.cuda)
    policy = DQNPolicy(cfg.policy, model=DQN(**cfg.policy.model))
    writer = SummaryWriter(f"./{cfg.exp_name}/log/serial")
    learner, collector, evaluator = build(cfg, manager, policy, writer)
    buffer = buffer_cls(cfg.policy.other.replay_buffer, writer, exp_name=cfg.exp_name)
    eps_cfg = cfg.policy.other.eps
    epsilon = get_epsilon_greedy_fn(eps_cfg.start, eps_cfg.end, eps_cfg.decay, eps_cfg.type)
    while learner.train_iter < 60:
        if evaluator.should_eval(learner.train_iter):
            stop, info = evaluator.eval(
                learner.save_checkpoint, learner.train_iter, collector.envstep
            )
            assert len(info["eval_episode_return"]) == 2
            if stop:
                break
        eps = epsilon(collector.envstep)
        new_data = collector.collect(train_iter=learner.train_iter, policy_kwargs={"eps": eps})
        # Scripts look at rows, and change them.
        assert new_data[0]["reward"].shape == (3,)
        for row in new_data:
            row["reward"] = row["reward"] * 1.0
        buffer.push(new_data, cur_collector_envstep=collector.envstep)
        for _ in range(cfg.policy.learn.update_per_collect):
            batch = buffer.sample(learner.policy.get_attribute("batch_size"), learner.train_iter)
            if batch is None:
                break
            learner.train(batch, collector.envstep)
            if learner.policy.get_attribute("priority"):
                buffer.update(learner.priority_info)
    assert learner.train_iter >= 60
    for part in (learner, collector, evaluator, buffer, writer):
        part.close()


def test_on_policy():
    cfg = compile_config(
        cartpole(collect=dict(n_sample=64), learn=dict(epoch_per_collect=2, batch_size=32)),
        *(BaseEnvManager, PPOPolicy, BaseLearner, SampleSerialCollector),
        InteractionSerialEvaluator,
    )
    policy = PPOPolicy(cfg.policy, model=VAC(**cfg.policy.model))
    writer = SummaryWriter(f"./{cfg.exp_name}/log/serial")
    learner, collector, evaluator = build(cfg, BaseEnvManager, policy, writer)
    for _ in range(3):
        data = collector.collect(train_iter=learner.train_iter)
        learner.train(data, collector.envstep)
    assert learner.train_iter == 3 * 2 * 2
    evaluator.eval(learner.save_checkpoint, learner.train_iter, collector.envstep)
    for part in (learner, collector, evaluator, writer):
        part.close()


def test_a_policy_of_rows_only():
    """A user's subclass with the per-environment methods works everywhere."""

    class Shouting(DQNPolicy):
        calls = 0

        def _forward_collect(self, data, eps):
            type(self).calls += 1
            return super()._forward_collect(data, eps=eps)

        def _process_transition(self, obs, policy_output, timestep):
            return {
                "obs": obs,
                "next_obs": timestep.obs,
                "action": policy_output["action"],
                "reward": timestep.reward,
                "done": timestep.done,
                "mark": np.float32(7),
            }

    cfg = compile_config(
        cartpole(collect=dict(n_sample=16)),
        *(BaseEnvManager, Shouting, BaseLearner, SampleSerialCollector),
        *(InteractionSerialEvaluator, AdvancedReplayBuffer),
    )
    policy = Shouting(cfg.policy, enable_field=["learn", "collect", "eval"])
    writer = SummaryWriter(f"./{cfg.exp_name}/log/serial")
    learner, collector, evaluator = build(cfg, BaseEnvManager, policy, writer)
    buffer = AdvancedReplayBuffer(cfg.policy.other.replay_buffer, writer, exp_name=cfg.exp_name)
    commander = BaseSerialCommander(
        cfg.policy.other.commander, learner, collector, evaluator, buffer, policy=None
    )
    assert commander.policy is None
    for _ in range(6):
        data = collector.collect(train_iter=learner.train_iter, policy_kwargs={"eps": 0.5})
        assert float(data[0]["mark"]) == 7
        buffer.push(data, cur_collector_envstep=collector.envstep)
        batch = buffer.sample(64, learner.train_iter)
        if batch is not None:
            learner.train(batch, collector.envstep)
    assert Shouting.calls >= 6 * 4
    assert learner.train_iter >= 1
    for part in (learner, collector, evaluator, buffer, writer):
        part.close()
