"""Caches policies and environments between tasks: building them can take longer than a task."""

import json
import logging
import threading
from dataclasses import dataclass
from functools import partial

from easydict import EasyDict

from ding.envs import (
    AsyncSubprocessEnvManager,
    BaseEnvManager,
    create_env_manager,
    env_seeds,
    get_env_manager_cls,
    get_vec_env_setting,
)
from ding.policy import Policy, create_policy
from ding.torch_utils.model_helper import fit_threads
from ding.utils import durations
from ding.utils.errors import ConfigError
from ding.utils.types import Settings

_logger = logging.getLogger(__name__)

#: Number of cached policies; the least recently used one is evicted first.
MAX_POLICIES = 4


@dataclass
class LentPolicy:
    """A policy, and the training iteration of its weights; ``None`` before any were loaded."""

    policy: Policy
    iter: int | None = None


class PartsCache:
    """Builds policies and env managers, and reuses them for equal configs.

    The environments' seeds depend on the worker's ``name``.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._policies: dict[str, LentPolicy] = {}
        self._envs: dict[bool, tuple[str, BaseEnvManager]] = {}

    def policy(self, cfg: Settings, field: str, place: str) -> LentPolicy:
        """A policy for ``field`` (``collect`` or ``eval``), possibly from an earlier task.

        ``place``, the source of the weights, distinguishes policies of equal config.
        """
        key = _key(cfg, field, place)
        lent = self._policies.pop(key, None)
        if lent is None:
            lent = LentPolicy(create_policy(EasyDict(cfg), enable_field=[field]))
            fit_threads(getattr(lent.policy, f"{field}_mode").get_attribute("model"))
        self._policies[key] = lent
        while len(self._policies) > MAX_POLICIES:
            del self._policies[next(iter(self._policies))]
        return lent

    def env_manager(self, cfg: Settings, evaluate: bool, seed: int | None) -> BaseEnvManager:
        """A launched env manager whose environments are at the start of an episode.

        Args:
            cfg: The env config, with ``manager``.
            evaluate: Evaluation environments get the same seeds in all workers and all tasks.
            seed: The task's seed; if ``None``, existing environments keep their seeds.
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
            role = "evaluator" if evaluate else f"collector {self._name}"
            seeds = env_seeds(seed or 0, role, manager.env_num)
            # With static seeds a collector would get the same initial states in each task.
            manager.seed(seeds, dynamic_seed=not evaluate)
        if evaluate:
            manager.number_starts()
        self._envs[evaluate] = (key, manager)
        if manager.closed:  # new, or an earlier launch failed
            manager.launch()
        else:
            manager.reset()
        return manager

    def discard_envs(self) -> None:
        """Close all environments; waits only briefly for hanging ones."""
        while self._envs:
            _, (_, manager) = self._envs.popitem()
            close = partial(_close_quietly, manager)
            closing = threading.Thread(target=close, name="close-envs", daemon=True)
            closing.start()
            closing.join(durations.ENV_CLOSE)
            if closing.is_alive():
                _logger.warning("environments have not closed within %g s", durations.ENV_CLOSE)

    def close(self) -> None:
        """Close all environments and drop the policies."""
        self.discard_envs()
        self._policies.clear()


def _close_quietly(manager: BaseEnvManager) -> None:
    try:
        manager.close()
    except Exception as err:
        _logger.warning("environments did not close: %s: %s", type(err).__name__, err)


def _key(*parts: object) -> str:
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
    # The collector counts episodes; the manager only resets.
    manager_cfg.episode_num = float("inf")
    if issubclass(manager_cls, AsyncSubprocessEnvManager):
        # A process can be abandoned at no cost; in this process a limit costs a thread per step.
        for name in ("step_timeout", "reset_timeout"):
            if manager_cfg.get(name) is None:
                manager_cfg[name] = durations.ENV_PROCESS_LIMIT
    return create_env_manager(manager_cfg, [partial(env_cls, one) for one in own])
