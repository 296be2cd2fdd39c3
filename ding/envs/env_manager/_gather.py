"""Puts together what several workers answered to one step."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ding.envs.env_manager._env_types import (
    EnvState,
    GroupStep,
)
from ding.envs.env_manager._wire import StepReply


class Gathered:
    """The answers of workers, by env id."""

    def __init__(self) -> None:
        self._plain: list[tuple[Sequence[int], bytes]] = []
        self.rewards: dict[int, Any] = {}
        self.infos: dict[int, dict[str, Any]] = {}
        self.ended: set[int] = set()
        self.abnormal: set[int] = set()
        self.obs: dict[int, Any] = {}
        self.last_obs: dict[int, Any] = {}
        self.first_obs: dict[int, Any] = {}
        self.states: dict[int, EnvState] = {}

    def add(self, ids: Sequence[int], reply: StepReply | bytes) -> None:
        """Take in one worker's answer about the environments `ids`."""
        if isinstance(reply, bytes):
            self._plain.append((ids, reply))
            return
        self.rewards.update(zip(ids, reply.rewards))
        infos = reply.infos if isinstance(reply.infos, Mapping) else dict(enumerate(reply.infos))
        self.infos.update({ids[p]: info for p, info in infos.items()})
        self.ended.update(ids[p] for p in reply.ended)
        self.abnormal.update(ids[p] for p in reply.abnormal)
        self.last_obs.update({ids[p]: obs for p, obs in reply.last_obs.items()})
        self.first_obs.update({ids[p]: obs for p, obs in reply.first_obs.items()})
        if reply.obs is not None:
            self.obs.update(zip(ids, reply.obs))
        self.states.update(reply.states)

    def plain_rewards(self, ids: Sequence[int]) -> np.ndarray | None:
        """The rewards of `ids`, if those answered just that, in that order; the common case."""
        if self.rewards or [i for part, _ in self._plain for i in part] != ids:
            return None
        joined = b"".join([reply[1:] for _, reply in self._plain])
        rewards = np.frombuffer(bytearray(joined), np.float32)
        return rewards if len(rewards) == len(ids) else rewards.reshape(len(ids), -1)

    @property
    def ids(self) -> set[int]:
        """Who has answered."""
        return self.rewards.keys() | {env_id for part, _ in self._plain for env_id in part}

    def add_lost(self, ids: Sequence[int], obs: Mapping[int, Any], reason: str) -> None:
        """Environments whose worker was replaced.

        Args:
            obs: Their first observations, unless those are in shared memory.
        """
        for env_id in ids:
            self.rewards[env_id] = None
            self.infos[env_id] = {"abnormal": True, "error": reason}
        self.abnormal.update(ids)
        self.obs.update(obs)

    def step(self, ids: Sequence[int]) -> GroupStep:
        """The answers in the order of `ids`; observations only if they are not shared."""
        for part, reply in self._plain:
            rewards = np.frombuffer(reply, np.float32, offset=1)
            players = len(rewards) // len(part)
            # Numbers as such, as in the answers that are pickled.
            values = rewards.reshape(-1, players) if players > 1 else rewards.tolist()
            self.rewards.update(zip(part, values))
        shape = next((np.shape(r) for r in self.rewards.values() if r is not None), ())
        for env_id, reward in self.rewards.items():
            if reward is None:
                self.rewards[env_id] = np.zeros(shape, np.float32) if shape else 0.0
        ended = [p for p, env_id in enumerate(ids) if env_id in self.ended]
        return GroupStep(
            [self.obs[env_id] for env_id in ids] if self.obs else [],
            [self.rewards[env_id] for env_id in ids],
            [self.infos.get(env_id, {}) for env_id in ids],
            ended,
            [p for p, env_id in enumerate(ids) if env_id in self.abnormal],
        )
