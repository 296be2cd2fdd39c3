"""The loops that one writes by hand with torch and a vector environment: DQN and PPO.

As short and as fast as their authors would have them: columns of numpy arrays, fused Adam, no log
but the loss (DQN) or what CleanRL's script logs of each minibatch (PPO).
"""

import copy
import itertools
from collections.abc import Callable

import numpy as np
import torch
from _tasks import (
    CLIP,
    ENTROPY,
    EPS,
    FRAMES,
    GAE_LAMBDA,
    GAMMA,
    MAX_NORM,
    RATES,
    TARGET_FREQ,
    TASKS,
    VALUE,
    Task,
)
from torch import Tensor, nn

Act = Callable[[], int]


def build(name: str) -> Act:
    """The loop of a task; a call returns how many env steps it made."""
    torch.manual_seed(0)
    task = TASKS[name]
    return {"dqn": dqn, "ppo": ppo}[task.policy](task)


def vector_env(task: Task):
    """Environments in one process; EnvPool's own where the task says so."""
    if task.pooled:
        import envpool

        return envpool.make(task.env_id, env_type="gymnasium", num_envs=task.envs)
    import gymnasium as gym
    from gymnasium.vector import AutoresetMode, SyncVectorEnv

    def make():
        if not task.frames:
            return gym.make(task.env_id)
        import ale_py

        gym.register_envs(ale_py)
        env = gym.wrappers.AtariPreprocessing(gym.make(task.env_id), terminal_on_life_loss=True)
        env = gym.wrappers.TransformReward(env, np.sign)
        return gym.wrappers.FrameStackObservation(env, FRAMES[0])

    return SyncVectorEnv([make] * task.envs, autoreset_mode=AutoresetMode.SAME_STEP)


def _layers(sizes: list[int], activation: type[nn.Module]) -> nn.Sequential:
    pairs = itertools.pairwise(sizes)
    layers = [layer for a, b in pairs for layer in (nn.Linear(a, b), activation())]
    return nn.Sequential(*layers[:-1])


class _Scaled(nn.Module):
    def forward(self, frames: Tensor) -> Tensor:
        return frames.float() / 255


def _nature() -> nn.Sequential:
    """The convolutions of Mnih et al. 2015."""
    return nn.Sequential(
        *(_Scaled(), nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU()),
        *(nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU()),
    )


def _adam(net: nn.Module, rate: float) -> torch.optim.Adam:
    return torch.optim.Adam(net.parameters(), lr=rate, fused=True)


# ---------------------------------------------------------------------- DQN


def dqn(task: Task) -> Act:
    env, rng = vector_env(task), np.random.default_rng(0)
    if task.frames:
        net = nn.Sequential(_nature(), nn.Linear(512, task.actions))
    else:
        net = _layers([task.obs, *task.hidden, task.actions], nn.ReLU)
    target, optimizer = copy.deepcopy(net), _adam(net, RATES["dqn"])
    shape, kind = (FRAMES, np.uint8) if task.frames else ((task.obs,), np.float32)
    size, envs = task.capacity, task.envs
    ring = {
        "obs": np.zeros((size, *shape), kind),
        "next_obs": np.zeros((size, *shape), kind),
        "action": np.zeros(size, np.int64),
        "reward": np.zeros(size, np.float32),
        "done": np.zeros(size, np.float32),
    }
    obs, _ = env.reset(seed=0)
    steps = updates = 0

    def act() -> int:
        nonlocal obs, steps
        with torch.no_grad():
            action = net(torch.from_numpy(obs)).argmax(1).numpy()
        explore = rng.random(envs) < EPS
        action = np.where(explore, rng.integers(0, task.actions, envs), action)
        new_obs, reward, terminated, truncated, info = env.step(action)
        next_obs = new_obs
        if "final_obs" in info:
            next_obs = new_obs.copy()
            for i in np.flatnonzero(terminated | truncated):
                next_obs[i] = info["final_obs"][i]
        at = slice(steps % size, steps % size + envs)
        for column, value in zip(ring.values(), (obs, next_obs, action, reward, terminated)):
            column[at] = value
        obs, steps = new_obs, steps + envs
        for _ in range(task.updates if steps >= task.batch else 0):
            update()
        return envs

    def update() -> None:
        nonlocal updates
        index = rng.integers(0, min(steps, size), task.batch)
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


# ---------------------------------------------------------------------- PPO


class _ActorCritic(nn.Module):
    """Separate networks for actor and critic, or two heads on the same convolutions."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        if task.frames:
            self.encoder = _nature()
            self.actor, self.critic = nn.Linear(512, task.actions), nn.Linear(512, 1)
        else:
            self.encoder = nn.Identity()
            self.actor = _layers([task.obs, *task.hidden, task.actions], nn.Tanh)
            self.critic = _layers([task.obs, *task.hidden, 1], nn.Tanh)
        if task.continuous:
            self.log_std = nn.Parameter(torch.full((task.actions,), -0.5))
        self._continuous = task.continuous

    def forward(self, obs: Tensor) -> tuple[torch.distributions.Distribution, Tensor]:
        feature = self.encoder(obs)
        output, value = self.actor(feature), self.critic(feature).squeeze(1)
        if self._continuous:
            normal = torch.distributions.Normal(output, self.log_std.exp(), validate_args=False)
            return torch.distributions.Independent(normal, 1, validate_args=False), value
        return torch.distributions.Categorical(logits=output, validate_args=False), value


def ppo(task: Task) -> Act:
    env, net = vector_env(task), _ActorCritic(task)
    optimizer = _adam(net, RATES["ppo"])
    length, envs = task.rollout // task.envs, task.envs
    shape, kind = (FRAMES, torch.uint8) if task.frames else ((task.obs,), torch.float32)
    all_obs = torch.zeros(length, envs, *shape, dtype=kind)
    tail, action_type = ((task.actions,), torch.float32) if task.continuous else ((), torch.int64)
    actions = torch.zeros(length, envs, *tail, dtype=action_type)
    log_probs, values, rewards, ends = (torch.zeros(length, envs) for _ in range(4))
    space = env.action_space if task.pooled else env.single_action_space
    obs, _ = env.reset()
    ended = np.zeros(envs, bool)

    def act() -> int:
        nonlocal obs, ended
        only_resets = 0
        for t in range(length):
            all_obs[t] = torch.from_numpy(np.asarray(obs, all_obs.numpy().dtype))
            with torch.no_grad():
                policy, values[t] = net(all_obs[t])
                actions[t] = policy.sample()
                log_probs[t] = policy.log_prob(actions[t])
            action = actions[t].numpy()
            if task.continuous:
                action = action.clip(space.low, space.high)
            elif task.pooled:
                action = action.astype(np.int32)
            obs, reward, terminated, truncated, _ = env.step(action)
            # EnvPool: the step after an episode's end only resets.
            only_resets += np.count_nonzero(ended) if task.pooled else 0
            ended = terminated | truncated
            rewards[t] = torch.from_numpy(np.asarray(reward, np.float32))
            ends[t] = torch.from_numpy(ended)
        learn()
        return length * envs - only_resets

    def learn() -> None:
        advantages, last = torch.zeros_like(rewards), torch.zeros(envs)
        with torch.no_grad():
            next_value = net(torch.from_numpy(np.asarray(obs, all_obs.numpy().dtype)))[1]
        for t in reversed(range(length)):
            left = 1 - ends[t]
            delta = rewards[t] + GAMMA * next_value * left - values[t]
            last = advantages[t] = delta + GAMMA * GAE_LAMBDA * left * last
            next_value = values[t]
        columns = [all_obs, actions, log_probs, values, advantages, advantages + values]
        flat = [column.flatten(0, 1) for column in columns]
        for _ in range(task.epochs):
            for index in torch.randperm(length * envs).split(task.batch):
                update(*(column[index] for column in flat))

    def update(obs, action, old_log_prob, old_value, advantage, returns) -> None:
        policy, value = net(obs)
        log_ratio = policy.log_prob(action) - old_log_prob
        ratio = log_ratio.exp()
        with torch.no_grad():
            facts = (-log_ratio).mean(), ((ratio - 1).abs() > CLIP).float().mean()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
        policy_loss = -torch.minimum(ratio * advantage, clipped * advantage).mean()
        near = old_value + (value - old_value).clamp(-CLIP, CLIP)
        value_loss = torch.maximum((value - returns) ** 2, (near - returns) ** 2).mean() / 2
        loss = policy_loss + VALUE * value_loss - ENTROPY * policy.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), MAX_NORM)
        optimizer.step()
        for fact in facts:
            fact.item()

    return act
