"""The base class of serial collectors and evaluators: environments, policies and a log."""

import contextlib
import logging
import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

from easydict import EasyDict

from ding.utils import build_logger, get_rank
from ding.utils.default_helper import Configurable
from ding.utils.errors import ConfigError, EnvError
from ding.utils.log_writer import Writer
from ding.utils.types import Settings, State
from ding.worker.collector.steps import Envs, Episode, Mode, OnEpisode, OnTrajectories

#: The last user of each env manager: deleting another part must not close the manager.
_last_uses: weakref.WeakKeyDictionary[Envs, object] = weakref.WeakKeyDictionary()


class ISerialPart(Configurable, ABC):
    """A part of a serial run that acts in environments: a collector or an evaluator.

    Pipelines set the attributes; custom classes may ignore them.

    Attributes:
        on_episode: Called at each episode's end: source, env id, return, length, envstep,
            train_iter.
        before_step: Called before each step; an exception that it raises ends the evaluation, or
            the collection, of which nothing is counted then.
        on_trajectories: Rewrites trajectories before training samples are made of them; collectors
            only.
    """

    on_episode: OnEpisode | None = None
    before_step: Callable[[], None] | None = None
    on_trajectories: OnTrajectories | None = None

    @abstractmethod
    def reset_env(self, _env: Envs = None) -> None:
        """Reset the environments, or replace them and launch the new ones."""

    @abstractmethod
    def reset_policy(self, _policy: Mode | list[Mode] = None) -> None:
        """Reset the policy, or replace it."""

    @abstractmethod
    def reset(self, _policy: Mode | list[Mode] = None, _env: Envs = None) -> None:
        """Reset or replace both, and clear counters and best results."""


class SerialPart(ISerialPart):
    """A serial part with environments, policies and a log, until it is closed.

    Args:
        cfg: Config of the part.
        tb_logger: Writer of scalars that the caller owns; by default the part creates one.
        exp_name: Folder of the run.
        instance_name: Prefix of the log and its scalars.
    """

    #: Whether there is a leading dimension of players, and a list of policies is expected.
    battle = False

    def __init__(
        self, cfg: Settings, tb_logger: Writer | None, exp_name: str | None, instance_name: str
    ) -> None:
        self._end_flag = False
        self._cfg = cfg if isinstance(cfg, EasyDict) else EasyDict(cfg)
        self._instance_name = instance_name
        self._owns_writer = tb_logger is None
        self._tb_logger = tb_logger
        self._logger: logging.Logger | None = None
        self._env: Envs = None
        self._policies: list[Mode] = []
        self._use = object()  # not `self`: the dict would then keep its weak key alive
        if get_rank() == 0:
            path = os.path.join(exp_name or ".", "log", instance_name)
            self._logger, writer = build_logger(path, instance_name, need_tb=self._owns_writer)
            self._tb_logger = writer if self._owns_writer else tb_logger

    def reset_env(self, _env: Envs = None) -> None:
        """Reset the environments, or replace and launch them; running trajectories are lost."""
        if _env is not None:
            self._env = _env
            with contextlib.suppress(TypeError):  # managers that support no weak references
                _last_uses[_env] = self._use
        if _env is not None and getattr(_env, "closed", False):
            _env.launch()
        elif hasattr(self._env, "reset"):
            self._env.reset()
        self._forget()

    def reset_policy(self, _policy: Mode | list[Mode] = None) -> None:
        """Reset the policy, or replace it; running trajectories are lost."""
        if _policy is not None:
            self._policies = list(_policy) if self.battle else [_policy]
        for policy in self._policies:
            policy.reset()
        self._forget()

    def reset(self, _policy: Mode | list[Mode] = None, _env: Envs = None) -> None:
        """Reset or replace environments and policy, and start counting from zero."""
        if _env is not None or self._env is not None:
            self.reset_env(_env)
        if _policy is not None or self._policies:
            self.reset_policy(_policy)
        self._start_anew()

    def _forget(self) -> None:
        """Drop running trajectories."""

    def _start_anew(self) -> None:
        """Clear the counters."""

    def _require_parts(self) -> None:
        if self._end_flag:
            raise ConfigError(f"{self._instance_name} is closed")
        if self._env is None or not self._policies:
            name = "env" if self._env is None else "policy"
            raise ConfigError(f"{self._instance_name} has no {name}: pass it to reset()")

    def _env_state(self) -> State:
        """The environments' seed state, unless an environment has failed."""
        if hasattr(self._env, "state_dict"):
            with contextlib.suppress(EnvError):  # its process has ended
                return {"env": self._env.state_dict()}
        return {}

    def _load_env_state(self, state_dict: State) -> None:
        if "env" in state_dict and hasattr(self._env, "load_state_dict"):
            self._env.load_state_dict(state_dict["env"])

    def _report(self, episodes: Iterable[Episode], envstep: int, train_iter: int) -> None:
        if self.on_episode is not None:
            for one in episodes:
                facts = (one.env_id, one.returns[0], one.length, envstep, train_iter)
                self.on_episode(self._instance_name, *facts)

    def _log_row(self, title: str, row: dict[str, float], train_iter: int, envstep: int) -> None:
        """Log figures by name, as scalars against iterations and against environment steps."""
        if self._logger is None or self._tb_logger is None:
            return
        figures = (
            f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in row.items()
        )
        self._logger.info("%s: %s", title, ", ".join(figures))
        for name, value in row.items():
            if name == "train_iter":
                continue
            self._tb_logger.add_scalar(f"{self._instance_name}_iter/{name}", value, train_iter)
            if name != "total_envstep_count":
                self._tb_logger.add_scalar(f"{self._instance_name}_step/{name}", value, envstep)

    def close(self) -> None:
        """Close the environments and the log. Closing twice does nothing."""
        if self._end_flag:
            return
        self._end_flag = True
        if hasattr(self._env, "close"):
            self._env.close()
        self._close_writer()

    def __del__(self) -> None:
        # Attributes may be missing in half-built objects or at interpreter exit; must not block.
        with contextlib.suppress(Exception):
            if self._end_flag:
                return
            self._end_flag = True
            env = self._env
            # Unless another part has used the environments since.
            if hasattr(env, "close") and _last_uses.get(env) is self._use:
                getattr(env, "abandon", env.close)()
            self._close_writer()

    def _close_writer(self) -> None:
        if self._owns_writer and self._tb_logger is not None:
            self._tb_logger.flush()
            self._tb_logger.close()
