"""What the four serial collectors share: everything but the stop rule and the packing."""

import contextlib
import itertools
import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from easydict import EasyDict

from ding.envs import BaseEnvManager
from ding.utils import build_logger, get_rank
from ding.utils.errors import ConfigError, EnvError
from ding.worker.collector._env_use import EnvUse
from ding.worker.collector.base_serial_collector import INF, ISerialCollector
from ding.worker.collector.collect_stats import CollectStats, CollectTally
from ding.worker.collector.rollout import Rollout, StepResult, make_rollout
from ding.worker.collector.run_statistics import RunStatistics
from ding.worker.collector.sample_stock import SampleStock


class SerialCollector(ISerialCollector):
    """Owns env manager, policies, rollout and statistics.

    Args:
        cfg: Collector config.
        env: Env manager; launched here if it is not yet.
        policy: Collect mode, or a list of them for battle collectors.
        tb_logger: Writer of scalars that the caller owns; one is made when it is not given.
        exp_name: Folder of the run.
        instance_name: Prefix of the log and its scalars.
    """

    config = dict(deepcopy_obs=False, transform_obs=False, collect_print_freq=100)
    #: Whether there is a leading dimension of players.
    battle = False

    def __init__(
        self,
        cfg: EasyDict,
        env: BaseEnvManager | None = None,
        policy: Any = None,
        tb_logger: Any = None,
        exp_name: str = "default_experiment",
        instance_name: str = "collector",
    ) -> None:
        self._end_flag = False
        self._cfg = cfg
        self._exp_name = exp_name
        self._instance_name = instance_name
        self._owns_writer = tb_logger is None
        self._tb_logger = tb_logger
        self._logger: logging.Logger | None = None
        self._env: Any = None
        self._env_use = EnvUse(None)
        self._policies: list[Any] = []
        self._rollout: Rollout | None = None
        self._statistics = RunStatistics()
        self._stocks: list[SampleStock] = []
        self._turn = 0  # which trajectories keep one sample more where some are dropped
        if get_rank() == 0:
            path = os.path.join(exp_name or ".", "log", instance_name or "collector")
            self._logger, writer = build_logger(path, instance_name, need_tb=self._owns_writer)
            self._tb_logger = writer if self._owns_writer else tb_logger
        self.reset(policy, env)

    # ------------------------------------------------------------------ reset

    def reset_env(self, _env: BaseEnvManager | None = None) -> None:
        """Reset the environments, or replace and launch them; running trajectories are lost."""
        if _env is not None:
            self._env, self._env_use = _env, EnvUse(_env)
            if _env.closed:
                _env.launch()
            else:
                _env.reset()
        elif self._env is not None:
            self._env.reset()
        self._forget()

    def reset_policy(self, _policy: Any = None) -> None:
        """Reset the policy, or replace it; running trajectories are lost."""
        if _policy is not None:
            self._policies = list(_policy) if self.battle else [_policy]
        for policy in self._policies:
            policy.reset()
        self._forget()

    def _forget(self) -> None:
        """Lose running trajectories, and samples that the next call would have begun with."""
        self._rollout = None
        self._stocks = [SampleStock() for _ in self._policies]

    def reset(self, _policy: Any = None, _env: BaseEnvManager | None = None) -> None:
        """Reset or replace environments and policy; counters start at zero."""
        if _env is not None or self._env is not None:
            self.reset_env(_env)
        if _policy is not None or self._policies:
            self.reset_policy(_policy)
        self._stats = CollectStats()
        self._last_log_iter = 0

    def _start(self) -> Rollout:
        if self._end_flag:
            raise ConfigError(f"{self._instance_name} is closed")
        if self._env is None or not self._policies:
            missing = "env" if self._env is None else "policy"
            raise ConfigError(f"{self._instance_name} has no {missing}: pass it to reset()")
        self._statistics.take_up(self._env, self._policies)
        if self._rollout is None:
            options = {
                name: bool(self._cfg.get(name, False))
                for name in ("transform_obs", "deepcopy_obs", "reward_shaping")
            }
            self._rollout = make_rollout(
                self._env, self._policies, self.battle, self._traj_len(), **options
            )
        return self._rollout

    def _traj_len(self) -> float:
        return INF

    # ------------------------------------------------------------------ collect

    def _step(
        self, rollout: Rollout, tally: CollectTally, train_iter: int, kwargs: Any, **options: Any
    ) -> StepResult:
        if self.before_step is not None:
            self.before_step()
        if isinstance(kwargs, Mapping) or kwargs is None:
            kwargs = [kwargs or {}] * len(self._policies)
        result = rollout.step([train_iter] * len(self._policies), kwargs, **options)
        tally.add(result)
        self._record_episodes(result, train_iter, self._stats.total_envstep + tally.envsteps)
        return result

    def _record_episodes(self, result: StepResult, train_iter: int, envstep: int) -> None:
        if self.on_episode is None:
            return
        for episode in result.episodes:
            self.on_episode(
                self._instance_name,
                episode.env_id,
                episode.returns[0],
                episode.length,
                envstep,
                train_iter,
            )

    def _run_episodes(
        self, rollout: Rollout, tally: CollectTally, n_episode: int, train_iter: int, kwargs: Any
    ) -> None:
        """Run ``n_episode`` whole episodes, and start no more than that."""
        env_num = self._env.env_num
        if getattr(self._env, "steps_all", False):
            self._env.reset()  # some were stepped on after their last episode
        remaining = n_episode - min(env_num, n_episode)
        active = np.zeros(env_num, bool)
        active[: min(env_num, n_episode)] = True
        while active.any():
            result = self._step(rollout, tally, train_iter, kwargs, active=active)
            for episode in result.episodes:
                if remaining > 0:
                    remaining -= 1
                else:
                    active[episode.env_id] = False

    def _end_trajectories(
        self, rollout: Rollout, players: list[int], drop_extra: bool | None, n_sample: int
    ) -> list[Any]:
        """Each player's samples to return; ``players`` are those whose data is wanted."""
        on_policy = any(policy.get_attribute("on_policy") for policy in self._policies)
        dropped = 0
        if on_policy:
            # What the old policy began is not the new one's to finish.
            dropped = rollout.drop_running() * len(players)
        samples: list[Any] = [[] for _ in self._policies]
        for player in players:
            stock = self._stocks[player]
            if drop_extra or (drop_extra is None and on_policy):
                samples[player], extra = stock.take_fairly(n_sample, self._turn)
                dropped += extra
            else:
                samples[player] = stock.take(n_sample if drop_extra is None else None)
        self._turn += n_sample
        self._stats.note_dropped(dropped)
        return samples

    def _finish(self, tally: CollectTally, samples: int, train_iter: int, log: bool = True) -> None:
        self._stats.add(tally.envsteps, samples, tally.episodes, tally.start)
        self._statistics.share(self._env, self._policies)
        if log:
            self._log(train_iter)

    def _log(self, train_iter: int) -> None:
        if self._logger is None or train_iter - self._last_log_iter < self._cfg.collect_print_freq:
            return
        row = self._stats.log_row()
        if row is None:
            return
        self._last_log_iter = train_iter
        self._logger.info(
            "collect end: %s", ", ".join(f"{name}={value:.6g}" for name, value in row.items())
        )
        for name, value in row.items():
            self._tb_logger.add_scalar(f"{self._instance_name}_iter/{name}", value, train_iter)
            if name != "total_envstep_count":
                self._tb_logger.add_scalar(
                    f"{self._instance_name}_step/{name}", value, self._stats.total_envstep
                )

    def _target(self, given: int | None, name: str) -> int:
        """The number of samples or episodes asked for, or the policy's default."""
        target = given if given is not None else self._policies[0].get_attribute(name)
        if not isinstance(target, int | np.integer) or target < 1:
            raise ConfigError(
                f"policy.collect.{name} (or collect({name}=...)) must be an integer >= 1, "
                f"got {target!r}"
            )
        return int(target)

    # ------------------------------------------------------------------ state

    @property
    def envstep(self) -> int:
        """Environment steps since the last reset, over all environments and ranks."""
        return self._stats.total_envstep

    @envstep.setter
    def envstep(self, value: int) -> None:
        self._stats.total_envstep = value

    @property
    def recent_return(self) -> float | None:
        """Mean return of the last episodes, at most 100; ``None`` without any."""
        return self._stats.recent_return

    @property
    def episode_count(self) -> int:
        """Episodes finished since the last reset."""
        return self._stats.total_episode

    def state_dict(self) -> dict[str, Any]:
        """Counters, and what the environments' seeds go on from (unless one of them has failed)."""
        state: dict[str, Any] = {
            "stats": self._stats.state_dict(),
            "last_log_iter": self._last_log_iter,
        }
        state["stocks"] = [stock.state_dict() for stock in self._stocks]
        if self._env is not None:
            with contextlib.suppress(EnvError):  # a process that is gone cannot be asked
                state["env"] = self._env.state_dict()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on counting; episodes start anew."""
        self._stats.load_state_dict(state_dict["stats"])
        self._last_log_iter = state_dict["last_log_iter"]
        if self._env is not None and "env" in state_dict:
            self._env.load_state_dict(state_dict["env"])
        self._rollout = None
        for stock, own in zip(self._stocks, state_dict["stocks"]):
            stock.load_state_dict(own)

    def close(self) -> None:
        """Close the environments and the log. Closing twice does nothing."""
        if self._end_flag:
            return
        self._end_flag = True
        if self._env is not None:
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


def split_by_lengths(samples: Sequence[Any], lengths: list[int]) -> list[Any]:
    """Split consecutive samples into one sequence per trajectory."""
    ends = np.cumsum([0, *lengths]).tolist()
    return [samples[start:stop] for start, stop in itertools.pairwise(ends)]
