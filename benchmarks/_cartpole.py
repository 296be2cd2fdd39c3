"""CartPole with DQN 4-128-128-64-2 on all sides: one network, one set of hyper-parameters.

Libraries are imported where they are used, for each side runs with its own. Sides write into a
temporary folder, which they make their working directory.
"""

import copy
import itertools
import os
import tempfile

import numpy as np

GAMMA, BATCH, TARGET_FREQ, LEARNING_RATE = 0.97, 64, 100, 0.001
HIDDEN = [128, 128, 64]
EPS = 0.1
CAPACITY = 100_000


def ding_main_config(env_num: int, n_sample: int, **learn) -> dict:
    """A config that this project and DI-engine both take."""
    return dict(
        exp_name="run",
        env=dict(
            env_id="CartPole-v1",
            collector_env_num=env_num,
            evaluator_env_num=1,
            n_evaluator_episode=1,
            stop_value=500,
            manager=dict(shared_memory=False),
        ),
        policy=dict(
            cuda=False,
            nstep=1,
            discount_factor=GAMMA,
            model=dict(
                obs_shape=4,
                action_shape=2,
                encoder_hidden_size_list=HIDDEN,
                dueling=False,
                head_layer_num=0,
            ),
            learn=dict(batch_size=BATCH, learning_rate=LEARNING_RATE, **learn),
            collect=dict(n_sample=n_sample),
            eval=dict(evaluator=dict(eval_freq=10**9)),
            other=dict(
                eps=dict(type="exp", start=0.95, end=0.1, decay=10000),
                replay_buffer=dict(replay_buffer_size=CAPACITY),
            ),
        ),
    )


def torch_net():
    import torch
    from torch import nn

    torch.manual_seed(0)
    sizes = [4, *HIDDEN]
    layers = [m for a, b in itertools.pairwise(sizes) for m in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(HIDDEN[-1], 2))


def set_weights(model, balances: bool = False) -> None:
    """The same weights on all sides, so that episodes are equally long.

    Args:
        balances: Weights of a policy that pushes to where the pole falls, with episodes of
            hundreds of steps; random ones otherwise, with episodes of ten.
    """
    import torch

    with torch.no_grad():
        for own, other in zip(model.parameters(), torch_net().parameters()):
            own.copy_(other * (not balances))
        if balances:
            first, *middle, last = [p for p in model.parameters() if p.dim() == 2]
            falls_right = torch.tensor([0.1, 0.2, 1.0, 0.5])
            first[:2] = torch.stack([falls_right, -falls_right])
            for weight in middle:
                weight[:2, :2] = torch.eye(2)
            last[1, :2] = torch.tensor([1.0, -1.0])


class NumpyRing:
    """The least that a replay buffer can be."""

    def __init__(self) -> None:
        self.columns = {
            "obs": np.zeros((CAPACITY, 4), np.float32),
            "next_obs": np.zeros((CAPACITY, 4), np.float32),
            "action": np.zeros(CAPACITY, np.int64),
            "reward": np.zeros(CAPACITY, np.float32),
            "done": np.zeros(CAPACITY, np.float32),
        }
        self.head = self.count = 0

    def push(self, *values: np.ndarray) -> None:
        n = len(values[0])
        if self.head + n > CAPACITY:
            self.head = 0
        for column, value in zip(self.columns.values(), values):
            column[self.head : self.head + n] = value
        self.head += n
        self.count = max(self.count, self.head)

    def sample(self, size: int) -> dict[str, np.ndarray]:
        index = np.random.randint(0, self.count, size)
        return {name: column.take(index, 0) for name, column in self.columns.items()}


def hand_written_steps(vector_env, ring: NumpyRing, net):
    """A function that steps all environments once.

    With SAME_STEP the true last observations are stored; with NEXT_STEP the steps that only reset
    are not.
    """
    import torch

    rng = np.random.default_rng(0)
    n = vector_env.num_envs
    obs, _ = vector_env.reset(seed=0)
    next_step = "NEXT_STEP" in str(vector_env.metadata["autoreset_mode"])
    ended = np.zeros(n, bool)

    def step() -> int:
        nonlocal obs, ended
        with torch.no_grad():
            action = net(torch.from_numpy(obs)).argmax(1).numpy()
        explore = rng.random(n) < EPS
        action = np.where(explore, rng.integers(0, 2, n), action)
        new_obs, reward, terminated, truncated, info = vector_env.step(action)
        next_obs = new_obs
        if "final_obs" in info:
            next_obs = new_obs.copy()
            for i in np.flatnonzero(terminated | truncated):
                next_obs[i] = info["final_obs"][i]
        columns = (obs, next_obs, action, reward, terminated)
        obs = new_obs
        if not next_step or not ended.any():
            ring.push(*columns)
            ended = terminated | truncated
            return n
        keep = ~ended
        ring.push(*(column[keep] for column in columns))
        ended = terminated | truncated
        return int(np.count_nonzero(keep))

    return step


def hand_written_8_envs():
    import gymnasium as gym
    from gymnasium.vector import AutoresetMode, SyncVectorEnv

    return SyncVectorEnv(
        [lambda: gym.make("CartPole-v1")] * 8, autoreset_mode=AutoresetMode.SAME_STEP
    )


class HandWrittenDqn:
    """Double DQN as one writes it down, with torch's fused Adam."""

    def __init__(self) -> None:
        import torch

        self.net = torch_net()
        self.target = copy.deepcopy(self.net)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=LEARNING_RATE, fused=True)
        self.ring = NumpyRing()
        self.updates = 0

    def update(self) -> None:
        import torch

        batch = {name: torch.from_numpy(v) for name, v in self.ring.sample(BATCH).items()}
        q = self.net(batch["obs"]).gather(1, batch["action"][:, None]).squeeze(1)
        with torch.no_grad():
            best = self.net(batch["next_obs"]).argmax(1, keepdim=True)
            next_q = self.target(batch["next_obs"]).gather(1, best).squeeze(1)
            target = batch["reward"] + GAMMA * (1 - batch["done"]) * next_q
        loss = ((q - target) ** 2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        if self.updates % TARGET_FREQ == 0:
            self.target.load_state_dict(self.net.state_dict())
        loss.item()


def ding_parts(manager: str, env_num: int, n_sample: int, **learn):
    """This project's parts, as its pipelines build them."""
    os.chdir(tempfile.mkdtemp())
    from ding.entry.components import build_components, load_config
    from ding.utils.run_log import RunLog

    create = dict(
        env=dict(type="gymnasium"), env_manager=dict(type=manager), policy=dict(type="dqn")
    )
    cfg = load_config((ding_main_config(env_num, n_sample, **learn), create), 0)
    parts = build_components(cfg, RunLog(cfg.exp_name).writer)
    set_weights(parts.policy._model)
    return parts


def sb3_dqn(gradient_steps: int = 1):
    """Stable-Baselines3's DQN with 8 environments, ready to collect and train."""
    from stable_baselines3 import DQN
    from stable_baselines3.common.env_util import make_vec_env

    model = DQN(
        "MlpPolicy",
        make_vec_env("CartPole-v1", 8),
        learning_rate=LEARNING_RATE,
        buffer_size=CAPACITY,
        batch_size=BATCH,
        gamma=GAMMA,
        gradient_steps=gradient_steps,
        target_update_interval=TARGET_FREQ,
        policy_kwargs={"net_arch": HIDDEN},
        exploration_initial_eps=EPS,
        exploration_final_eps=EPS,
        device="cpu",
    )
    set_weights(model.q_net)
    _, callback = model._setup_learn(10**9)

    def collect(vector_steps: int) -> int:
        from stable_baselines3.common.type_aliases import TrainFreq, TrainFrequencyUnit

        freq = TrainFreq(vector_steps, TrainFrequencyUnit.STEP)
        rollout = model.collect_rollouts(
            model.env, callback, freq, model.replay_buffer, learning_starts=0
        )
        return rollout.episode_timesteps

    return model, collect


def di_engine_env_class():
    """CartPole of gymnasium as an environment of DI-engine."""
    import gymnasium as gym

    from ding.envs import BaseEnv, BaseEnvTimestep

    class CartPole(BaseEnv):
        collect_steps = 0

        def __init__(self, cfg=None) -> None:
            self._collects = bool((cfg or {}).get("is_train", True))
            self._env = gym.make("CartPole-v1")
            self._seed, self._dynamic, self._return = None, False, 0.0
            self.observation_space = self._env.observation_space
            self.action_space = self._env.action_space
            self.reward_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)

        def seed(self, seed, dynamic_seed=True) -> None:
            self._seed, self._dynamic = seed, dynamic_seed

        def reset(self):
            seed = self._seed
            if seed is not None and self._dynamic:
                seed += 100 * np.random.randint(1, 1000)
            self._return = 0.0
            return self._env.reset(seed=seed)[0]

        def step(self, action):
            obs, reward, terminated, truncated, info = self._env.step(action.item())
            CartPole.collect_steps += self._collects
            self._return += reward
            done = terminated or truncated
            if done:
                info["eval_episode_return"] = self._return
            return BaseEnvTimestep(obs, np.array([reward], np.float32), done, info)

        def close(self) -> None:
            self._env.close()

        def __repr__(self) -> str:
            return "CartPole"

    return CartPole


def di_engine_parts(n_sample: int, **learn):
    """DI-engine's collector, buffer and learner for CartPole with 8 environments."""
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
        *(EasyDict(ding_main_config(8, n_sample, **learn)), BaseEnvManager, DQNPolicy),
        *(BaseLearner, SampleSerialCollector, InteractionSerialEvaluator, AdvancedReplayBuffer),
        save_cfg=False,
    )
    env = BaseEnvManager([di_engine_env_class()] * 8, cfg.env.manager)
    env.seed(0)
    policy = DQNPolicy(cfg.policy)
    set_weights(policy._model)
    own = {"exp_name": cfg.exp_name}
    collector = SampleSerialCollector(cfg.policy.collect.collector, env, policy.collect_mode, **own)
    buffer = AdvancedReplayBuffer(cfg.policy.other.replay_buffer, **own)
    learner = BaseLearner(cfg.policy.learn.learner, policy.learn_mode, **own)
    return collector, buffer, learner
