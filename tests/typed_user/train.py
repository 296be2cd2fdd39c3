"""A user's training loop, and what loads and acts with its result."""

import numpy as np
from easydict import EasyDict
from user_callback import StopAt
from user_env import WalkEnv
from user_hook import CountUpdates

import ding
from ding.config import compile_config
from ding.config.keys import CreateConfig, EnvConfig, MainConfig, ManagerConfig, PolicyConfig
from ding.data import Columns
from ding.entry import serial_pipeline
from ding.envs import BaseEnvManager
from ding.policy import DQNPolicy
from ding.utils import set_pkg_seed
from ding.worker import (
    AdvancedReplayBuffer,
    BaseLearner,
    InteractionSerialEvaluator,
    SampleSerialCollector,
)


class WalkConfig(EnvConfig, total=False):
    """Keys of environments, and those of this one."""

    length: int


main_config: MainConfig = {
    "exp_name": "typed",
    "env": WalkConfig(
        collector_env_num=2, evaluator_env_num=2, n_evaluator_episode=2, stop_value=10
    ),
    "policy": {
        "model": {"obs_shape": 1, "action_shape": 2},
        "collect": {"n_sample": 16},
        "learn": {"batch_size": 8, "update_per_collect": 1},
    },
}
create_config = CreateConfig(
    env=EnvConfig(type="typed_walk", import_names=["user_env"]),
    env_manager=ManagerConfig(type="base"),
    policy=PolicyConfig(type="typed_dqn", import_names=["user_policy"]),
)


def loop(max_iter: int) -> float:
    """The documented loop by hand."""
    cfg = compile_config(
        main_config,
        BaseEnvManager,
        DQNPolicy,
        BaseLearner,
        SampleSerialCollector,
        InteractionSerialEvaluator,
        AdvancedReplayBuffer,
        save_cfg=False,
    )
    envs = BaseEnvManager([lambda: WalkEnv(EasyDict()) for _ in range(2)], cfg.env.manager)
    tests = BaseEnvManager([lambda: WalkEnv(EasyDict()) for _ in range(2)], cfg.env.manager)
    envs.seed(0)
    tests.seed(1, dynamic_seed=False)
    set_pkg_seed(0, use_cuda=False)
    policy = DQNPolicy(cfg.policy)
    learner = BaseLearner(cfg.policy.learn.learner, policy.learn_mode, exp_name=cfg.exp_name)
    collector = SampleSerialCollector(
        cfg.policy.collect.collector, envs, policy.collect_mode, exp_name=cfg.exp_name
    )
    evaluator = InteractionSerialEvaluator(
        cfg.policy.eval.evaluator, tests, policy.eval_mode, exp_name=cfg.exp_name
    )
    updates = CountUpdates()
    learner.register_hook(updates)
    buffer = AdvancedReplayBuffer(cfg.policy.other.replay_buffer, exp_name=cfg.exp_name)
    best = 0.0
    for _ in range(max_iter):
        if evaluator.should_eval(learner.train_iter):
            stop, _ = evaluator.eval(None, learner.train_iter, collector.envstep)
            if stop:
                break
        samples = collector.collect(policy_kwargs={"eps": 0.5})
        later = Columns(samples)[1:]
        later.append(samples[0])
        observations: list[np.ndarray] = [row["obs"] for row in later]
        assert len(observations) == len(samples)
        best = max(best, max(float(sample["reward"]) for sample in samples))
        buffer.push(samples, cur_collector_envstep=collector.envstep)
        batch = buffer.sample(8, learner.train_iter)
        if batch is not None:
            learner.train(batch, collector.envstep)
    output = policy.eval_mode.forward({0: np.zeros(1, np.float32)})
    action: int = int(output[0]["action"])
    return best + action + updates.count


def run() -> str:
    """A run by its pipeline, with a callback."""
    callback = StopAt(10.0)
    config: MainConfig = {**main_config, "exp_name": "typed_run"}
    serial_pipeline((config, create_config), seed=0, max_env_step=200, callbacks=[callback])
    return callback.status


def act(path: str) -> int:
    """Load what was trained, and act."""
    agent = ding.load(path)
    return int(agent.act(np.zeros(1, np.float32)))
