"""The peers' sides of ``pipelines.py``, each by its own API and with its own vector environment."""

from collections.abc import Callable

import numpy as np
from _tasks import (
    CLIP,
    ENTROPY,
    EPS,
    FRAMES,
    GAE_LAMBDA,
    GAMMA,
    MAX_NORM,
    NOISE,
    RATES,
    TARGET_FREQ,
    TASKS,
    TAU,
    VALUE,
    Task,
)

Act = Callable[[], int]


def sb3(name: str) -> Act:
    """Stable-Baselines3: ``learn`` for some steps at a time."""
    import stable_baselines3

    task = TASKS[name]
    algorithm = getattr(stable_baselines3, task.policy.upper())
    network = "CnnPolicy" if task.frames else "MlpPolicy"
    options = _sb3_on_policy(task) if task.policy == "ppo" else _sb3_off_policy(task)
    shared = dict(learning_rate=RATES[task.policy], gamma=GAMMA, batch_size=task.batch)
    model = algorithm(network, _sb3_envs(task), device="cpu", **shared, **options)
    chunk = task.rollout if task.policy == "ppo" else 32 * task.envs
    if task.policy != "ppo":
        model.learn(task.batch)  # only collects

    def act() -> int:
        before = model.num_timesteps
        model.learn(chunk, reset_num_timesteps=False)
        return model.num_timesteps - before

    return act


def _sb3_envs(task: Task):
    from stable_baselines3.common.env_util import make_atari_env, make_vec_env
    from stable_baselines3.common.vec_env import VecFrameStack

    if task.frames:
        import ale_py
        import gymnasium as gym

        gym.register_envs(ale_py)
        return VecFrameStack(make_atari_env(task.env_id, task.envs), FRAMES[0])
    return make_vec_env(task.env_id, task.envs)


def _sb3_on_policy(task: Task) -> dict:
    sizes = {} if task.frames else {"net_arch": {"pi": [*task.hidden], "vf": [*task.hidden]}}
    return dict(
        n_steps=task.rollout // task.envs,
        n_epochs=task.epochs,
        gae_lambda=GAE_LAMBDA,
        clip_range=CLIP,
        clip_range_vf=CLIP,
        ent_coef=ENTROPY,
        vf_coef=VALUE,
        max_grad_norm=MAX_NORM,
        policy_kwargs=sizes,
    )


def _sb3_off_policy(task: Task) -> dict:
    options: dict = dict(
        buffer_size=task.capacity,
        learning_starts=task.batch,
        train_freq=1,
        gradient_steps=task.updates,
        policy_kwargs={} if task.frames else {"net_arch": [*task.hidden]},
    )
    if task.policy == "dqn":
        eps = dict(exploration_initial_eps=EPS, exploration_final_eps=EPS)
        return {**options, **eps, "target_update_interval": TARGET_FREQ}
    options["tau"] = TAU
    if task.policy == "td3":
        from stable_baselines3.common.noise import NormalActionNoise

        zeros = np.zeros(task.actions)
        options["action_noise"] = NormalActionNoise(zeros, zeros + NOISE)
    return options


def tianshou(name: str) -> Act:
    """tianshou's PPO: its collector and its update in turns, as its trainer has them."""
    import gymnasium as gym
    from tianshou.algorithm import PPO
    from tianshou.algorithm.algorithm_base import policy_within_training_step
    from tianshou.algorithm.optim import AdamOptimizerFactory
    from tianshou.data import Collector, VectorReplayBuffer
    from tianshou.env import DummyVectorEnv

    task = TASKS[name]
    policy, critic = _tianshou_networks(task, gym.make(task.env_id).action_space)
    algorithm = PPO(
        policy=policy,
        critic=critic,
        optim=AdamOptimizerFactory(lr=RATES["ppo"]),
        eps_clip=CLIP,
        value_clip=True,
        ent_coef=ENTROPY,
        vf_coef=VALUE,
        max_grad_norm=MAX_NORM,
        gae_lambda=GAE_LAMBDA,
        gamma=GAMMA,
    )
    envs = DummyVectorEnv([lambda: gym.make(task.env_id)] * task.envs)
    buffer = VectorReplayBuffer(task.rollout, task.envs)
    collector = Collector(algorithm, envs, buffer)
    collector.reset()

    def act() -> int:
        with policy_within_training_step(algorithm.policy):
            steps = collector.collect(n_step=task.rollout).n_collected_steps
            algorithm.update(buffer, task.batch, task.epochs)
        collector.reset_buffer(keep_statistics=True)
        return steps

    return act


def _tianshou_networks(task: Task, action_space):
    import torch
    from tianshou.algorithm.modelfree import reinforce
    from tianshou.utils.net import continuous, discrete
    from tianshou.utils.net.common import Net

    def net():
        return Net(state_shape=task.obs, hidden_sizes=[*task.hidden], activation=torch.nn.Tanh)

    if not task.continuous:
        actor = discrete.DiscreteActor(
            preprocess_net=net(), action_shape=task.actions, softmax_output=False
        )
        policy = reinforce.DiscreteActorPolicy(actor=actor, action_space=action_space)
        return policy, discrete.DiscreteCritic(preprocess_net=net())
    actor = continuous.ContinuousActorProbabilistic(
        preprocess_net=net(), action_shape=task.actions, unbounded=True
    )
    policy = reinforce.ProbabilisticActorPolicy(
        actor=actor,
        dist_fn=lambda output: torch.distributions.Independent(
            torch.distributions.Normal(*output), 1
        ),
        action_space=action_space,
        action_scaling=False,
    )
    return policy, continuous.ContinuousCritic(preprocess_net=net())


# ---------------------------------------------------------------------- DI-engine

#: Transitions of a call of the collector.
COLLECTED = 80


def user_env():
    """A user's class: gymnasium's CartPole as a ``BaseEnv``, of whichever `ding`."""
    import gymnasium as gym

    from ding.envs import BaseEnv, BaseEnvTimestep

    class UserEnv(BaseEnv):
        def __init__(self, cfg=None) -> None:
            self._env = gym.make("CartPole-v1")
            self._seed, self._return = None, 0.0
            self.observation_space = self._env.observation_space
            self.action_space = self._env.action_space
            self.reward_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float32)

        def seed(self, seed, dynamic_seed=True) -> None:
            self._seed = seed

        def reset(self):
            self._return = 0.0
            seed, self._seed = self._seed, None
            return self._env.reset(seed=seed)[0]

        def step(self, action):
            obs, reward, terminated, truncated, info = self._env.step(action.item())
            self._return += reward
            done = terminated or truncated
            if done:
                info["eval_episode_return"] = self._return
            return BaseEnvTimestep(obs, np.array([reward], np.float32), done, info)

        def close(self) -> None:
            self._env.close()

        def __repr__(self) -> str:
            return "UserEnv"

    return UserEnv


def user_env_config() -> dict:
    """The main config of either `ding`: DQN over a user's environment."""
    sizes = dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[128, 128, 64])
    model = dict(**sizes, dueling=False)
    buffer = dict(replay_buffer_size=100_000)
    eps = dict(type="exp", start=EPS, end=EPS, decay=1000)
    return dict(
        exp_name="run",
        env=dict(
            collector_env_num=8,
            evaluator_env_num=1,
            n_evaluator_episode=1,
            stop_value=1e9,
            manager=dict(shared_memory=False),
        ),
        policy=dict(
            cuda=False,
            nstep=1,
            discount_factor=GAMMA,
            model=model,
            learn=dict(batch_size=64, learning_rate=RATES["dqn"]),
            collect=dict(n_sample=COLLECTED),
            eval=dict(evaluator=dict(eval_freq=10**9)),
            other=dict(eps=eps, replay_buffer=buffer),
        ),
    )


def di_engine() -> Act:
    """DI-engine's collector with 8 of a user's environments, into its buffer."""
    import os
    import tempfile

    os.chdir(tempfile.mkdtemp())
    from easydict import EasyDict

    from ding.config import compile_config
    from ding.envs import BaseEnvManager
    from ding.policy import DQNPolicy
    from ding.worker import (
        AdvancedReplayBuffer,
        BaseLearner,
        InteractionSerialEvaluator,
        SampleSerialCollector,
    )

    cfg = compile_config(
        *(EasyDict(user_env_config()), BaseEnvManager, DQNPolicy),
        *(BaseLearner, SampleSerialCollector, InteractionSerialEvaluator, AdvancedReplayBuffer),
        save_cfg=False,
    )
    envs = BaseEnvManager([user_env()] * 8, cfg.env.manager)
    envs.seed(0)
    collect_mode = DQNPolicy(cfg.policy).collect_mode
    own = {"exp_name": cfg.exp_name}
    collector = SampleSerialCollector(cfg.policy.collect.collector, envs, collect_mode, **own)
    buffer = AdvancedReplayBuffer(cfg.policy.other.replay_buffer, **own)

    def act() -> int:
        data = collector.collect(policy_kwargs={"eps": EPS})
        buffer.push(data, cur_collector_envstep=collector.envstep)
        return len(data)

    return act
