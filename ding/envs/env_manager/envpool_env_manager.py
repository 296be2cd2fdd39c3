"""Environments that envpool steps in threads of its own."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from easydict import EasyDict

from ding.envs.env_manager import _obs_store as obs_store
from ding.envs.env_manager._env_types import EnvState, close_quietly
from ding.envs.env_manager._runner import EnvRunner, VectorRunner
from ding.envs.env_manager._steps import Rows
from ding.envs.env_manager.base_env_manager import BaseEnvManager
from ding.envs.vector_step import VectorStep
from ding.utils import ENV_MANAGER_REGISTRY
from ding.utils.errors import ConfigError, EnvError

__all__ = ["PoolEnvManager"]


@ENV_MANAGER_REGISTRY.register("env_pool")
class PoolEnvManager(BaseEnvManager):
    """Steps environments of ``envpool``, which is not installed with this package.

    A step returns when `batch_size` environments have answered, which need not be those that got
    actions unless it is `env_num`; each starts its next episode by itself and sits out that step.

    Config keys:
        env_id: The task that envpool makes.
        env_num: Number of environments.
        batch_size: How many answers a step waits for.
        kwargs: Further arguments of ``envpool.make``.
        episode_num: Episodes that each environment plays before it is done for good.
    """

    config: dict[str, Any] = {
        "type": "env_pool",
        "env_id": None,
        "env_num": 8,
        "batch_size": 8,
        "kwargs": {},
        "episode_num": float("inf"),
    }

    def __init__(self, cfg: EasyDict, env_fn: Sequence[Callable] | None = None) -> None:
        """
        Args:
            cfg: See the class.
            env_fn: Only says how many environments there are; envpool makes its own.

        Raises:
            ConfigError: No ``env_id``, or more answers to wait for than there are environments.
        """
        cfg = EasyDict({**self.default_config(), **cfg})
        if not cfg.get("env_id"):
            raise ConfigError("env.manager.env_id is missing: name a task that envpool knows")
        if env_fn is not None:
            cfg.env_num = len(env_fn)
            cfg.batch_size = min(cfg.batch_size, cfg.env_num)
        if not 1 <= cfg.batch_size <= cfg.env_num:
            raise ConfigError(
                f"env.manager.batch_size is {cfg.batch_size}; expected 1 to env_num = {cfg.env_num}"
            )
        super().__init__([partial(_make_pool, cfg, 1, 1)] * cfg.env_num, cfg)
        self.in_lockstep = cfg.batch_size == cfg.env_num

    def seed(
        self, seed: dict[int, int] | list[int] | int, dynamic_seed: bool | None = None
    ) -> None:
        """Set the seed of the next launch.

        Args:
            seed: envpool takes one number and spawns its environments' from it; of a list or dict
                that is the first.
            dynamic_seed: envpool's episodes always differ.
        """
        first = next(iter(seed.values())) if isinstance(seed, Mapping) else seed
        first = first[0] if isinstance(first, Sequence) else first
        super().seed(int(first))

    def _make_runner(self) -> EnvRunner:
        cfg = self._cfg
        seed = {"seed": self._seeds[0][0]} if self._seeds else {}
        pool = _make_pool(cfg, cfg.env_num, cfg.batch_size, **seed)
        return _EnvpoolRunner(pool, cfg.env_num, cfg.batch_size, cfg.episode_num)


class _EnvpoolRunner(VectorRunner):
    """Sends actions to a pool, and takes those answers that count.

    A pool answers in whole batches: where the caller's actions do not fill one, others are stepped.
    """

    def __init__(self, pool: Any, env_num: int, batch_size: int, episode_num: float) -> None:
        super().__init__(env_num, episode_num)
        self._pool, self._batch_size = pool, batch_size
        space = pool.action_space
        self._actions = np.zeros((env_num, *space.shape), space.dtype)
        self._unsent = np.zeros(env_num, bool)  # goes with the next batch
        self._busy = np.zeros(env_num, bool)
        self._waits = np.zeros(env_num, bool)  # for an action
        self._begins = np.zeros(env_num, bool)  # its next answer is a first observation
        self._unasked = np.zeros(env_num, bool)  # its next answer fills a batch

    def start(self) -> dict[str, Any]:
        pool = self._pool
        return {"observation_space": pool.observation_space, "action_space": pool.action_space}

    def stop(self, wait: bool) -> None:
        if hasattr(self._pool, "close"):
            close_quietly(self._pool, "pool")

    def ask(self, method: str, env_id: int, *args: Any) -> Any:
        """What can be asked of single environments."""
        if method == "random_action":
            return self._pool.action_space.sample()
        return (False, None) if method == "attribute" else super().ask(method, env_id, *args)

    @property
    def in_flight(self) -> Sequence[int]:  # type: ignore[override]
        """Environments whose step or reset is under way."""
        return self._busy.nonzero()[0].tolist()

    def note_ready(self) -> None:
        self._set_ready(self._waits.nonzero()[0].tolist())

    def restart(self, params: Mapping[int, dict | None], recount: bool) -> None:
        self._begin_episodes(params, recount)
        while self._busy.any():
            self._receive()
        self._unasked[:] = False
        self._pool.async_reset()
        self._busy[:], self._begins[:] = True, False
        first: dict[int, Any] = {}
        while len(first) < self.env_num:
            ids, obs, _, terminated, truncated = self._receive()
            # Those that fill a batch may have ended.
            self._begins[ids], self._unasked[ids] = terminated | truncated, False
            first.update({i: obs_store.column_row(obs, p) for p, i in enumerate(ids.tolist())})
        self._store_first(first)
        self._waits = ~(self._busy | self._begins)
        self._send((self._begins & ~self._busy).nonzero()[0])

    def step(self, ids: list[int], actions: Any, want_rows: bool) -> tuple[VectorStep, Rows]:
        self._send(np.array(ids, np.int64), actions)
        step = self._answers()
        while not len(step.env_ids):
            step = self._answers()
        running = [i for i, state in self.states.items() if state == EnvState.RUN]
        while running and self._begins[running].all():
            self._answers()  # to mere resets, which ask nothing of the caller
        self.note_ready()
        infos = [step.infos.get(env_id, {}) for env_id in step.env_ids.tolist()]
        rewards = [step.reward[i : i + 1].copy() for i in range(len(infos))]
        return step, list(zip(rewards, infos)) if want_rows else ()

    def _send(self, ids: np.ndarray, actions: Any = None) -> None:
        """Have actions, or any, sent with the next batch: full batches are sent all at once."""
        self._waits[ids], self._busy[ids], self._unsent[ids] = False, True, True
        self._actions[ids] = 0 if actions is None else np.reshape(actions, self._actions[ids].shape)

    def _receive(self) -> tuple[np.ndarray, Any, np.ndarray, np.ndarray, np.ndarray]:
        """Ids, observations, rewards, ``terminated`` and ``truncated`` of a batch."""
        lacking = self._batch_size - np.count_nonzero(self._busy)
        if lacking > 0:
            others = (~self._busy).nonzero()[0]
            # First those that have played their episodes.
            others = others[np.argsort(self._waits[others], kind="stable")][:lacking]
            self._unasked[others] = True
            self._send(others)
        unsent = self._unsent.nonzero()[0]
        if len(unsent):
            self._pool.send(self._actions[unsent], unsent.astype(np.int32))
            self._unsent[:] = False
        obs, reward, terminated, truncated, info = self._pool.recv()
        ids = np.asarray(info["env_id"], np.int64)
        self._busy[ids] = False
        flags = np.asarray(terminated, bool), np.asarray(truncated, bool)
        return ids, obs, np.asarray(reward, np.float32), *flags

    def _answers(self) -> VectorStep:
        """What some answer to actions; those whose episode has ended begin the next one."""
        ids, obs, reward, terminated, truncated = self._receive()
        ended = (terminated | truncated) & ~self._begins[ids]
        positions = (~(self._begins[ids] | self._unasked[ids])).nonzero()[0]
        own = ids[positions]
        self._returns[self._unasked] = 0.0
        self._returns[own] += reward[positions]
        for position, env_id in enumerate(ids.tolist()):
            self.store.write(env_id, obs_store.column_row(obs, position))
        done, terminated = ended[positions], terminated[positions]
        last = obs_store.take_rows(obs, positions)
        step = VectorStep(own, last, reward[positions], done, done & ~terminated)
        step.infos = self._end_episodes(own[done], step.truncated[done])
        self._begins[ids], self._unasked[ids] = ended, False
        plays = np.array([self.states[env_id] == EnvState.RUN for env_id in ids.tolist()])
        self._waits[ids] = plays & ~ended
        self._send(ids[plays & ended])  # to be reset, in the step after an episode's end
        return step


def _make_pool(cfg: Mapping[str, Any], env_num: int, batch_size: int, **seed: int) -> Any:
    try:
        return importlib.import_module("envpool").make(
            task_id=cfg["env_id"],
            env_type="gymnasium",
            num_envs=env_num,
            batch_size=batch_size,
            **{**seed, **cfg["kwargs"]},
        )
    except ImportError as error:
        text = f"cannot make the envpool of {cfg['env_id']!r}: {error}; pip install 'ding[envpool]'"
        raise EnvError(text) from error
