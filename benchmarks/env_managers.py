"""Env stepping, 8 environments, env-steps per second with actions drawn beforehand.

Managers are driven as collectors drive them: ``ready_columns``, then ``step_columns``.
"""

import time

import gymnasium
import numpy as np
from _peers import peer_python
from _timing import Figure, Work, command_line, compare, in_turns
from gymnasium import spaces

ENV_NUM = 8


class NoopEnv(gymnasium.Env):
    """Costs nothing: what is measured is the manager."""

    observation_space = spaces.Box(-1, 1, (4,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self.obs = np.zeros(4, np.float32)

    def reset(self, *, seed=None, options=None):
        return self.obs, {}

    def step(self, action):
        return self.obs, 1.0, False, False, {}


class HeavyEnv(NoopEnv):
    """Costs 0.5 ms of CPU time per step and gives a big observation."""

    observation_space = spaces.Box(0, 255, (4, 84, 84), np.uint8)

    def __init__(self) -> None:
        self.obs = np.zeros((4, 84, 84), np.uint8)

    def step(self, action):
        end = time.thread_time() + 0.0005
        while time.thread_time() < end:
            pass
        return super().step(action)


def cartpole():
    return gymnasium.make("CartPole-v1")


ENVS = {"no-op": NoopEnv, "CartPole": cartpole, "heavy": HeavyEnv}


def actions_of():
    """Endless batches of random actions."""
    batches = np.random.default_rng(0).integers(0, 2, (64, ENV_NUM))
    while True:
        yield from batches


def manager(kind: str, env: str) -> Work:
    def build():
        from ding.envs import DingEnvWrapper, get_env_manager_cls

        def env_fn():
            if env == "CartPole":
                return DingEnvWrapper(cfg={"env_id": "CartPole-v1"})
            return DingEnvWrapper(ENVS[env]())

        envs = get_env_manager_cls({"type": kind})([env_fn] * ENV_NUM, {})
        envs.launch()
        actions = actions_of()

        def act() -> int:
            ids, _ = envs.ready_columns()
            batch = next(actions)
            step = envs.step_columns(batch[ids] if len(ids) < ENV_NUM else batch, ids)
            return len(step.env_ids)

        return act

    return build


def base_env_manager() -> Work:
    """The base manager over an environment that is a ``BaseEnv`` itself."""

    def build():
        from ding.envs import BaseEnv, BaseEnvManager, BaseEnvTimestep

        class NoopBaseEnv(BaseEnv):
            observation_space, action_space = NoopEnv.observation_space, NoopEnv.action_space

            def __init__(self) -> None:
                self.obs = np.zeros(4, np.float32)

            def reset(self):
                return self.obs

            def step(self, action):
                return BaseEnvTimestep(self.obs, 1.0, False, {})

            def seed(self, seed, dynamic_seed=True):
                pass

            def close(self):
                pass

        envs = BaseEnvManager([NoopBaseEnv] * ENV_NUM, {})
        envs.launch()
        actions = actions_of()

        def act() -> int:
            ids, _ = envs.ready_columns()
            envs.step_columns(next(actions), ids)
            return ENV_NUM

        return act

    return build


def vector_env(kind: str, env: str) -> Work:
    def build():
        if kind == "sync":
            envs = gymnasium.vector.SyncVectorEnv([ENVS[env]] * ENV_NUM)
        else:
            envs = gymnasium.vector.AsyncVectorEnv([ENVS[env]] * ENV_NUM, shared_memory=True)
        envs.reset()
        actions = actions_of()

        def act() -> int:
            envs.step(next(actions))
            return ENV_NUM

        return act

    return build


def sb3(env: str) -> Work:
    def build():
        from stable_baselines3.common.vec_env import SubprocVecEnv

        envs = SubprocVecEnv([ENVS[env]] * ENV_NUM, start_method="fork")
        envs.reset()
        actions = actions_of()

        def act() -> int:
            envs.step(next(actions))
            return ENV_NUM

        return act

    return build


def tianshou(env: str) -> Work:
    def build():
        from tianshou.env import ShmemVectorEnv

        envs = ShmemVectorEnv([ENVS[env]] * ENV_NUM)
        envs.reset()
        actions = actions_of()

        def act() -> int:
            _, _, terminated, truncated, _ = envs.step(next(actions))
            over = np.flatnonzero(terminated | truncated)
            if len(over):
                envs.reset(over)
            return ENV_NUM

        return act

    return build


WORKS: dict[str, Work] = {
    "base, no-op": manager("base", "no-op"),
    "base, no-op BaseEnv": base_env_manager(),
    "SyncVectorEnv, no-op": vector_env("sync", "no-op"),
    "base, CartPole": manager("base", "CartPole"),
    "SyncVectorEnv, CartPole": vector_env("sync", "CartPole"),
    **{f"subprocess, {env}": manager("subprocess", env) for env in ("CartPole", "heavy")},
    **{f"AsyncVectorEnv, {env}": vector_env("async", env) for env in ("CartPole", "heavy")},
    **{f"SB3, {env}": sb3(env) for env in ("CartPole", "heavy")},
    **{f"tianshou, {env}": tianshou(env) for env in ("CartPole", "heavy")},
}

# Name, our side, the other side, least ratio; each group takes turns by itself.
GROUPS: list[list[tuple[str, str, str, float]]] = [
    [
        ("base manager, no-op env", "base, no-op", "SyncVectorEnv, no-op", 1.3),
        ("... that is a BaseEnv", "base, no-op BaseEnv", "SyncVectorEnv, no-op", 1.0),
    ],
    [("base manager, CartPole", "base, CartPole", "SyncVectorEnv, CartPole", 1.0)],
    *(
        [
            (f"subprocess manager, {env}", f"subprocess, {env}", f"{peer}, {env}", goal)
            for peer in ("AsyncVectorEnv", "SB3", "tianshou")
        ]
        for env, goal in (("CartPole", 2.0), ("heavy", 1.2))
    ),
]


def measure(rounds: int, seconds: float) -> list[Figure]:
    figures = []
    peers = peer_python("peers")
    for group in GROUPS:
        names = dict.fromkeys(name for _, ours, other, _ in group for name in (ours, other))
        sides = {name: peers if name.startswith(("SB3", "tianshou")) else None for name in names}
        figures += compare(in_turns(__file__, sides, rounds, seconds), group)
    return figures


if __name__ == "__main__":
    command_line(__doc__, WORKS, measure)
