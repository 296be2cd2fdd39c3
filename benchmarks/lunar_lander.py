"""DQN's whole pipeline on LunarLander: env steps per second while training.

8 environments, network 8-128-128-4, batches of 64, 2 updates for each vector step. The side by
autograd is a subclass of the policy: all custom networks and policies learn so. Needs
``gymnasium[box2d]``.
"""

import copy
import itertools
import os
import tempfile

import numpy as np
from _peers import peer_python
from _timing import Figure, Work, command_line, compare, in_turns

ENV, ENVS, BATCH, UPDATES = "LunarLander-v3", 8, 64, 2
GAMMA, LEARNING_RATE, TARGET_FREQ, CAPACITY, EPS = 0.99, 0.001, 500, 100_000, 0.1
SIZES = [8, 128, 128, 4]


def _ding(policy: str):
    os.chdir(tempfile.mkdtemp())
    from ding.entry.components import build_components, load_config
    from ding.utils.run_log import RunLog

    main = dict(
        exp_name="run",
        env=dict(
            env_id=ENV,
            collector_env_num=ENVS,
            evaluator_env_num=1,
            n_evaluator_episode=1,
            stop_value=1e9,
        ),
        policy=dict(
            discount_factor=GAMMA,
            model=dict(
                obs_shape=SIZES[0],
                action_shape=SIZES[-1],
                encoder_hidden_size_list=SIZES[1:-1],
                dueling=False,
                head_layer_num=0,
            ),
            learn=dict(
                batch_size=BATCH, learning_rate=LEARNING_RATE, target_update_freq=TARGET_FREQ
            ),
            collect=dict(n_sample=ENVS),
            eval=dict(evaluator=dict(eval_freq=10**9)),
            other=dict(replay_buffer=dict(replay_buffer_size=CAPACITY)),
        ),
    )
    create = dict(env=dict(type="gymnasium"), env_manager=dict(type="base"))
    cfg = load_config((main, {**create, "policy": dict(type=policy)}), 0)
    parts = build_components(cfg, RunLog(cfg.exp_name).writer)
    collector, learner, buffer = parts.collector, parts.learner, parts.replay_buffer

    def act() -> int:
        parts.commander.step()
        data = collector.collect(train_iter=learner.train_iter, policy_kwargs={"eps": EPS})
        buffer.push(data, cur_collector_envstep=collector.envstep)
        for _ in range(UPDATES):
            batch = buffer.sample(BATCH, learner.train_iter)
            if batch is None:
                break
            learner.train(batch, collector.envstep)
        return len(data)

    return act


def ding():
    return _ding("dqn")


def ding_by_autograd():
    from ding.policy import DQNPolicy
    from ding.utils import POLICY_REGISTRY

    POLICY_REGISTRY.register("dqn_subclass", type("Subclass", (DQNPolicy,), {}))
    return _ding("dqn_subclass")


def hand_written():
    import gymnasium as gym
    import torch
    from gymnasium.vector import AutoresetMode, SyncVectorEnv
    from torch import nn

    env = SyncVectorEnv([lambda: gym.make(ENV)] * ENVS, autoreset_mode=AutoresetMode.SAME_STEP)
    layers = [m for a, b in itertools.pairwise(SIZES) for m in (nn.Linear(a, b), nn.ReLU())]
    net = nn.Sequential(*layers[:-1])
    target = copy.deepcopy(net)
    optimizer = torch.optim.Adam(net.parameters(), lr=LEARNING_RATE, fused=True)
    rng = np.random.default_rng(0)
    ring = {
        "obs": np.zeros((CAPACITY, SIZES[0]), np.float32),
        "next_obs": np.zeros((CAPACITY, SIZES[0]), np.float32),
        "action": np.zeros(CAPACITY, np.int64),
        "reward": np.zeros(CAPACITY, np.float32),
        "done": np.zeros(CAPACITY, np.float32),
    }
    obs, _ = env.reset(seed=0)
    steps = updates = 0

    def act() -> int:
        nonlocal obs, steps
        with torch.no_grad():
            action = net(torch.from_numpy(obs)).argmax(1).numpy()
        explore = rng.random(ENVS) < EPS
        action = np.where(explore, rng.integers(0, SIZES[-1], ENVS), action)
        new_obs, reward, terminated, truncated, info = env.step(action)
        next_obs = new_obs
        if "final_obs" in info:
            next_obs = new_obs.copy()
            for i in np.flatnonzero(terminated | truncated):
                next_obs[i] = info["final_obs"][i]
        at = slice(steps % CAPACITY, steps % CAPACITY + ENVS)
        for column, value in zip(ring.values(), (obs, next_obs, action, reward, terminated)):
            column[at] = value
        obs, steps = new_obs, steps + ENVS
        for _ in range(UPDATES if steps >= BATCH else 0):
            update()
        return ENVS

    def update() -> None:
        nonlocal updates
        index = rng.integers(0, min(steps, CAPACITY), BATCH)
        batch = {name: torch.from_numpy(column.take(index, 0)) for name, column in ring.items()}
        q = net(batch["obs"]).gather(1, batch["action"][:, None]).squeeze(1)
        with torch.no_grad():
            best = net(batch["next_obs"]).argmax(1, keepdim=True)
            next_q = target(batch["next_obs"]).gather(1, best).squeeze(1)
            wanted = batch["reward"] + GAMMA * (1 - batch["done"]) * next_q
        loss = ((q - wanted) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        updates += 1
        if updates % TARGET_FREQ == 0:
            target.load_state_dict(net.state_dict())
        loss.item()

    return act


def sb3():
    from stable_baselines3 import DQN
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.type_aliases import TrainFreq, TrainFrequencyUnit

    model = DQN(
        "MlpPolicy",
        make_vec_env(ENV, ENVS),
        learning_rate=LEARNING_RATE,
        buffer_size=CAPACITY,
        batch_size=BATCH,
        gamma=GAMMA,
        target_update_interval=TARGET_FREQ,
        policy_kwargs={"net_arch": SIZES[1:-1]},
        exploration_initial_eps=EPS,
        exploration_final_eps=EPS,
        device="cpu",
    )
    _, callback = model._setup_learn(10**9)
    freq = TrainFreq(1, TrainFrequencyUnit.STEP)

    def act() -> int:
        rollout = model.collect_rollouts(
            model.env, callback, freq, model.replay_buffer, learning_starts=0
        )
        model.train(gradient_steps=UPDATES, batch_size=BATCH)
        return rollout.episode_timesteps

    return act


WORKS: dict[str, Work] = {
    "ding": ding,
    "ding, autograd": ding_by_autograd,
    "hand-written": hand_written,
    "SB3": sb3,
}

GOALS = [
    ("DQN on LunarLander, env steps while training", "ding", "hand-written", 0.95),
    ("DQN on LunarLander, env steps while training", "ding", "SB3", 1.5),
    ("... by autograd", "ding, autograd", "hand-written", 0.95),
    ("... by autograd", "ding, autograd", "SB3", 1.5),
]


def measure(rounds: int, seconds: float) -> list[Figure]:
    sides = {name: peer_python("peers") if name == "SB3" else None for name in WORKS}
    return compare(in_turns(__file__, sides, rounds, seconds), GOALS)


if __name__ == "__main__":
    command_line(__doc__, WORKS, measure)
