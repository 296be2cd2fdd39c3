"""What evaluators share: when to evaluate, the best result so far, and the log."""

import contextlib
import logging
import os
from collections.abc import Callable
from typing import Any

from easydict import EasyDict

from ding.utils import broadcast_object_list, build_logger, get_rank, get_world_size
from ding.utils.default_helper import first_goal
from ding.utils.errors import ConfigError, EnvError
from ding.worker.collector._env_use import EnvUse
from ding.worker.collector.base_serial_evaluator import ISerialEvaluator


class SerialEvaluator(ISerialEvaluator):
    """Base of the registered evaluators.

    Args:
        cfg: Evaluator config: ``eval_freq``, ``stop_value``, ``n_episode``.
        env: What is judged in; see the subclass.
        policy: Eval mode, or a list of them for battles.
        tb_logger: Writer of scalars that the caller owns; one is made when it is not given.
        exp_name: Folder of the run.
        instance_name: Prefix of the log and its scalars.
    """

    def __init__(
        self,
        cfg: dict,
        env: Any = None,
        policy: Any = None,
        tb_logger: Any = None,
        exp_name: str | None = "default_experiment",
        instance_name: str | None = "evaluator",
    ) -> None:
        self._end_flag = False
        self._cfg = EasyDict(cfg)
        self._instance_name = instance_name
        self._owns_writer = tb_logger is None
        self._tb_logger = tb_logger
        self._logger: logging.Logger | None = None
        self._env: Any = None
        self._env_use = EnvUse(None)
        self._policy: Any = None
        self._default_n_episode = self._cfg.get("n_episode")
        self._stop_value = first_goal(self._cfg.get("stop_value", float("inf")))
        if get_rank() == 0:
            path = os.path.join(exp_name or ".", "log", instance_name or "evaluator")
            self._logger, writer = build_logger(path, instance_name, need_tb=self._owns_writer)
            self._tb_logger = writer if self._owns_writer else tb_logger
        self.reset(policy, env)

    def reset(self, _policy: Any = None, _env: Any = None) -> None:
        """Reset or replace policy and environments; the best result is forgotten."""
        if _env is not None or self._env is not None:
            self.reset_env(_env)
        if _policy is not None or self._policy is not None:
            self.reset_policy(_policy)
        self._best: Any = None
        self._last: Any = None
        self._last_eval_iter = self._eval_iter_before = -1

    def should_eval(self, train_iter: int) -> bool:
        """True at iteration 0 and each ``eval_freq`` iterations; never twice at the same one."""
        if train_iter == self._last_eval_iter:
            return False
        if train_iter != 0 and train_iter - max(self._last_eval_iter, 0) < self._cfg.eval_freq:
            return False
        self._eval_iter_before, self._last_eval_iter = self._last_eval_iter, train_iter
        return True

    def put_off(self) -> None:
        """The evaluation that :meth:`should_eval` last called for did not come about."""
        self._last_eval_iter = self._eval_iter_before

    @property
    def best(self) -> Any:  # type: ignore[override]
        """Best mean result so far; ``None`` before the first evaluation. Settable, to resume."""
        return self._best

    @best.setter
    def best(self, value: Any) -> None:
        self._best = value

    @property
    def last_eval_iter(self) -> int:  # type: ignore[override]
        """Iteration at which :meth:`should_eval` last called for an evaluation; -1 for never."""
        return self._last_eval_iter

    @property
    def last(self) -> Any:  # type: ignore[override]
        """Mean result of the newest evaluation; ``None`` before the first."""
        return self._last

    def _require(self) -> None:
        if self._end_flag:
            raise ConfigError(f"{self._instance_name} is closed")
        for name, value in (("env", self._env), ("policy", self._policy)):
            if value is None:
                raise ConfigError(f"{self._instance_name} has no {name}: pass it to reset()")

    def _log(self, facts: dict[str, float], train_iter: int, envstep: int) -> None:
        if self._logger is None:
            return
        self._logger.info(
            "evaluation: %s",
            ", ".join(
                f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
                for name, value in facts.items()
            ),
        )
        for name, value in facts.items():
            if name in ("train_iter", "ckpt_name"):
                continue
            self._tb_logger.add_scalar(f"{self._instance_name}_iter/{name}", value, train_iter)
            self._tb_logger.add_scalar(f"{self._instance_name}_step/{name}", value, envstep)

    def _keep_best(
        self, result: Any, better: bool, save_ckpt_fn: Callable[[str], Any] | None
    ) -> None:
        self._last = result
        if better:
            self._best = result
            if save_ckpt_fn is not None:
                save_ckpt_fn("ckpt_best.pth.tar")

    def _share(self, result: tuple[bool, Any]) -> tuple[bool, Any]:
        """Rank 0's verdict, on all ranks."""
        if get_world_size() == 1:
            return result
        shared = [result]
        broadcast_object_list(shared, src=0)
        return shared[0]

    def state_dict(self) -> dict[str, Any]:
        """The best result, when it was last asked, and the environments' seeds."""
        state = {
            "best": self._best,
            "last": self._last,
            "last_eval_iter": self._last_eval_iter,
        }
        if hasattr(self._env, "state_dict"):
            with contextlib.suppress(EnvError):  # a process that is gone cannot be asked
                state["env"] = self._env.state_dict()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._best = state_dict["best"]
        self._last = state_dict.get("last")
        self._last_eval_iter = self._eval_iter_before = state_dict["last_eval_iter"]
        if "env" in state_dict and hasattr(self._env, "load_state_dict"):
            self._env.load_state_dict(state_dict["env"])

    def close(self) -> None:
        """Close the environments and the log. Closing twice does nothing."""
        if self._end_flag:
            return
        self._end_flag = True
        if hasattr(self._env, "close"):
            self._env.close()
        self._close_writer()

    def __del__(self) -> None:
        # Half-built objects and interpreters that end lack this and that; nobody waits here.
        with contextlib.suppress(Exception):
            if not self._end_flag:
                self._end_flag = True
                self._env_use.end()
                self._close_writer()

    def _close_writer(self) -> None:
        if self._owns_writer and self._tb_logger is not None:
            self._tb_logger.flush()
            self._tb_logger.close()
