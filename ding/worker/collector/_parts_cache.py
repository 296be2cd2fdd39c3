"""Policies and environments that outlive a task, so that a short one need not pay for them."""

import json
import logging
import zlib
from collections.abc import Mapping
from functools import partial
from typing import Any

from easydict import EasyDict

from ding.envs import (
    AsyncSubprocessEnvManager,
    BaseEnvManager,
    create_env_manager,
    get_env_manager_cls,
    get_vec_env_setting,
)
from ding.policy import Policy, create_policy
from ding.utils.errors import ConfigError

_logger = logging.getLogger(__name__)

#: Policies that are kept; the least recently used one goes first.
MAX_POLICIES = 4
#: Seconds that a step or a reset may take in a process of its own, if the config does not say.
PROCESS_LIMIT = 6.0


class PartsCache:
    """Builds policies and env managers, and hands them out again for equal configs.

    Args:
        name: Of the worker; its environments' seeds depend on it.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._policies: dict[str, Policy] = {}
        self._envs: dict[bool, tuple[str, BaseEnvManager]] = {}

    def policy(self, cfg: Mapping[str, Any], field: str, place: str) -> tuple[Policy, bool]:
        """A policy, and whether it is fresh.

        Args:
            cfg: The policy's config.
            field: ``collect`` or ``eval``.
            place: What tells policies of equal config apart: where their weights come from.
        """
        key = _key(cfg, field, place)
        known = self._policies.pop(key, None)
        policy = known or create_policy(EasyDict(cfg), enable_field=[field])
        self._policies[key] = policy
        while len(self._policies) > MAX_POLICIES:
            del self._policies[next(iter(self._policies))]
        return policy, known is None

    def env_manager(
        self, cfg: Mapping[str, Any], evaluate: bool, seed: int | None
    ) -> BaseEnvManager:
        """A launched env manager whose environments are at the beginning of an episode.

        Args:
            cfg: The env config, with ``manager``.
            evaluate: Evaluators' environments: all workers' have the same seeds, every time.
            seed: Of the task; without one, environments that are there go on from theirs.
        """
        key = _key(cfg, evaluate)
        known_key, manager = self._envs.pop(evaluate, ("", None))
        if manager is not None and known_key != key:
            manager.close()
            manager = None
        is_new = manager is None
        if manager is None:
            manager = _make_envs(EasyDict(cfg), evaluate)
        if is_new or seed is not None:
            manager.seed(self._seed(seed, evaluate), dynamic_seed=not evaluate)
        self._envs[evaluate] = (key, manager)
        if is_new:
            manager.launch()
        else:
            manager.reset()
        return manager

    def _seed(self, seed: int | None, evaluate: bool) -> int:
        if evaluate:
            return seed or 0
        return ((seed or 0) + zlib.crc32(self._name.encode())) % 2**31

    def discard_envs(self) -> None:
        """Close all environments; the next task gets fresh ones."""
        while self._envs:
            _, (_, manager) = self._envs.popitem()
            try:
                manager.close()
            except Exception as err:
                _logger.warning("environments did not close: %s: %s", type(err).__name__, err)

    def close(self) -> None:
        """Close all environments and forget the policies."""
        self.discard_envs()
        self._policies.clear()


def _key(*parts: Any) -> str:
    return json.dumps(parts, sort_keys=True, default=repr)


def _make_envs(cfg: EasyDict, evaluate: bool) -> BaseEnvManager:
    env_cls, *cfgs = get_vec_env_setting(cfg, collect=not evaluate, eval_=evaluate)
    own = cfgs[evaluate] or []
    env_num = cfg.get("env_num")
    if env_num is not None:
        own = own[: int(env_num)]
    if not own:
        name = "evaluator_env_num" if evaluate else "collector_env_num"
        raise ConfigError(f"the task has no environments: env.{name} (or env.env_num) must be >= 1")
    manager_cfg = EasyDict(dict(cfg.get("manager", {})))
    manager_cfg.setdefault("type", "base")
    manager_cls = get_env_manager_cls(manager_cfg)
    # Episodes are counted by the collector; the manager only resets.
    manager_cfg.episode_num = float("inf")
    if issubclass(manager_cls, AsyncSubprocessEnvManager):
        # Processes can be given up for nothing; in this one, a limit would cost a thread a step.
        for name in ("step_timeout", "reset_timeout"):
            if manager_cfg.get(name) is None:
                manager_cfg[name] = PROCESS_LIMIT
    return create_env_manager(manager_cfg, [partial(env_cls, one) for one in own])
