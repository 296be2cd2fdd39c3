"""Parallel collection over the serial collectors' rollout loop: any number of players."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from easydict import EasyDict

from ding.envs.running_statistics import plain
from ding.policy import Policy
from ding.policy.fit import check_fit
from ding.utils import durations
from ding.utils.autolog import NaturalTime
from ding.utils.errors import ConfigError
from ding.worker.collector._collector_tally import CollectorTally
from ding.worker.collector._parts_cache import LentPolicy, PartsCache
from ding.worker.collector._policy_source import PolicySource
from ding.worker.collector._sample_sender import SampleSender
from ding.worker.collector.base_parallel_collector import BaseParallelCollector, TickMonitor
from ding.worker.collector.base_serial_collector import INF
from ding.worker.collector.collector_link import MethodLink
from ding.worker.collector.eval_rollout import EvalRollout
from ding.worker.collector.rollout import FinishedEpisode, make_rollout
from ding.worker.collector.run_statistics import freeze_statistics, statistics_of
from ding.worker.collector.sample_serial_collector import attribute, trajectory_length
from ding.worker.collector.vector_eval_monitor import VectorEvalMonitor

#: A trajectory's last windows are shorter than nstep; this many times nstep keeps them few.
NSTEP_SPANS = 4
_ROW_OPTIONS = ("transform_obs", "deepcopy_obs", "reward_shaping")


class RolloutCollector(BaseParallelCollector):
    """Base of the registered parallel collectors.

    A collect task ends when each environment has played ``env.manager.episode_num`` episodes, an
    evaluation when ``env.n_evaluator_episode`` are played. Config: see `default_config` and the
    fields of a task (``env, policy, policy_update_path, collect_setting, eval_flag, seed``).

    Config keys:
        print_freq: Seconds between two lines in the log.
        compressor: For collectors that pack their samples; this one sends them as they are.
        update_policy_second: Seconds between two looks for a new policy.
    """

    config = dict(print_freq=5, compressor="lz4", update_policy_second=3)

    def __init__(self, cfg: dict) -> None:
        super().__init__(EasyDict(cfg))
        self._evaluate = bool(self._cfg.get("eval_flag", False))
        self._tally = CollectorTally()
        self._monitor = TickMonitor(NaturalTime(), expire=60)
        self._sources: list[PolicySource] = []
        self._modes: list[Any] = []
        self._done = False
        self._env_num = 0
        self._known_statistics: Any = None
        self._news_time = -INF
        self._predefined = INF

    def start(self) -> None:
        """Collect until the task is done or the collector is closed; see the base class."""
        try:
            super().start()
        finally:
            if isinstance(self._link, MethodLink):
                self._link.parts.close()  # no worker is there to keep them

    # ------------------------------------------------------------------ what players there are

    def _player_num(self) -> int:
        return 1

    def _of_player(self, name: str, player: int) -> Any:
        """A field of the task that all players share, or that lists one value for each."""
        value = self._cfg.get(name)
        if not isinstance(value, list | tuple):
            return value
        if player >= len(value):
            raise ConfigError(
                f"collector_cfg.{name} has {len(value)} values, for {self._player_num()} players"
            )
        return value[player]

    def _learns(self, player: int) -> bool:
        """Whether a player's data is wanted and its policy kept up to date."""
        flag = self._of_player("policy_update_flag", player)
        return flag is None or bool(flag)

    # ------------------------------------------------------------------ begin

    def _begin(self) -> None:
        parts = self._require_link().parts
        env_cfg = self._field("env")
        self._watch.allow(env_cfg.get("manager", {}))
        if self._env_manager is None:
            self._watch.launching()
            self.env_manager = parts.env_manager(env_cfg, self._evaluate, self._cfg.get("seed"))
            self._watch.rest()
        self._env_num = self._env_manager.env_num
        self._make_policies(parts)
        self._battle = len(self._modes) > 1
        if not self._battle:
            check_fit(self._field("policy"), self._env_manager)
        for mode in self._modes:
            mode.reset()
        self.waits_for = "policy"
        for source in self._sources:
            source.begin(self._ended, may_be_missing=not self._evaluate)
        self.waits_for = None
        self._kwargs = [dict(self._of_player("collect_setting", p) or {}) for p in self._players()]
        self._active = np.ones(self._env_num, bool)
        if self._evaluate:
            freeze_statistics(self._env_manager, self._modes)
            if getattr(self._env_manager, "normalises", False):
                self._env_manager.reset()
            self._begin_evaluation(env_cfg)
        else:
            self._use_statistics()
            self._begin_collection(env_cfg)
        self._is_endless = not np.isfinite(self._predefined)
        self._tally = CollectorTally(0 if self._is_endless else int(self._predefined))
        self._log_due = time.monotonic() + self._cfg.print_freq

    def _players(self) -> range:
        return range(self._player_num())

    def _field(self, name: str) -> Any:
        value = self._cfg.get(name)
        if not isinstance(value, Mapping):
            raise ConfigError(
                f"collector_cfg.{name} is {'missing' if value is None else repr(value)}; expected "
                "the config of the run as a dict"
            )
        return value

    def _make_policies(self, parts: PartsCache) -> None:
        field = "eval" if self._evaluate else "collect"
        given = self._policy
        listed = given if isinstance(given, list) else [] if given is None else [given]
        lent = [LentPolicy(policy) for policy in listed]
        for player in range(len(lent), self._player_num()):
            cfg = self._of_player("policy", player)
            if not isinstance(cfg, Mapping):
                raise ConfigError(f"collector_cfg.policy is {cfg!r}; expected a policy config")
            path = self._of_player("policy_update_path", player)
            lent.append(parts.policy(cfg, field, f"{path} of player {player}"))
        policies = [one.policy for one in lent]
        self._policy = policies if len(policies) > 1 else policies[0]
        self._modes = [
            getattr(policy, f"{field}_mode") if isinstance(policy, Policy) else policy
            for policy in policies
        ]
        period = float(self._cfg.update_policy_second)
        if self._cfg.get("policy_update_path") is not None:
            self._sources = [
                PolicySource(
                    self._link,
                    str(self._of_player("policy_update_path", player)),
                    *(lent[player], self._modes[player], period),
                )
                for player in self._players()
            ]
        self._refreshed = [source for p, source in enumerate(self._sources) if self._learns(p)]

    def _begin_collection(self, env_cfg: Mapping[str, Any]) -> None:
        self._episode_num = _episodes(env_cfg)
        self._predefined = self._episode_num * self._env_num
        self._left = np.full(self._env_num, self._episode_num)
        n_sample = self._modes[0].get_attribute("n_sample")
        # As many samples a chunk as the learner would get from one call of a serial collector.
        per_call = n_sample or self._env_num
        lengths = [trajectory_length(mode, self._env_num, per_call) for mode in self._modes]
        self._rollout: Any = make_rollout(
            self._env_manager,
            self._modes,
            self._battle,
            max(*lengths, *map(_nstep_length, self._modes)),
            **{name: bool(self._cfg.get(name, False)) for name in _ROW_OPTIONS},
        )
        self._sender = SampleSender(self._link, n_sample)
        self._step_start = time.monotonic()
        self._step_count = 0

    def _begin_evaluation(self, env_cfg: Mapping[str, Any]) -> None:
        self._predefined = _eval_episodes(env_cfg, self._env_num)
        self._shares = VectorEvalMonitor(self._env_num, int(self._predefined))
        self._rollout = EvalRollout(self._env_manager, self._modes, self._battle)

    # ------------------------------------------------------------------ step

    def _step(self) -> bool:
        if time.monotonic() >= self._log_due:
            self._log()
        return self._evaluate_step() if self._evaluate else self._collect_step()

    def _collect_step(self) -> bool:
        for source in self._refreshed:
            source.refresh()
        self._use_statistics()
        active = None if self._is_endless else self._active
        self._watch.stepping()
        iters = [source.iter for source in self._sources] or [0] * len(self._modes)
        result = self._rollout.step(iters, self._kwargs, active=active)
        self._watch.rest()
        if self._ended.is_set():  # perhaps long ago, and the worker is at another task
            return False
        self._step_count += 1
        self._tally.steps += result.envsteps
        self._tally.add_episodes(result.episodes)
        if not self._is_endless:
            for episode in result.episodes:
                self._left[episode.env_id] -= 1
                self._active[episode.env_id] = self._left[episode.env_id] > 0
        if self._sender.add(result.samples):
            self._send()
        return bool(self._active.any())

    def _news(self) -> dict[str, Any]:
        """What normalising environments have seen since the last message, in plain numbers."""
        now = time.monotonic()
        is_early = now - self._news_time < durations.ENV_STATISTICS_SPAN
        if is_early or not hasattr(self._env_manager, "take_statistics"):
            return {}
        news = self._env_manager.take_statistics()
        if not news:
            return {}
        self._news_time = now
        return {"env_statistics": plain(news)}

    def _use_statistics(self) -> None:
        """Normalise as the policy that was loaded last has learned to."""
        known = statistics_of(self._modes[0])
        if known is not None and known is not self._known_statistics:
            self._known_statistics = known
            self._env_manager.load_statistics(known)

    def _send(self) -> None:
        now = time.monotonic()
        self._monitor.step_time = (now - self._step_start) / max(1, self._step_count)
        sent = 0
        for player in self._players():
            wanted = self._learns(player)
            self._watch.stepping()
            samples, _ = self._rollout.harvest(player, wanted)
            self._watch.rest()
            if wanted:
                sent += self._sender.send(samples, self._facts)
        self._step_start, self._step_count = time.monotonic(), 0
        self._monitor.send_time = self._step_start - now
        self._monitor.sample_num = float(sent)

    def _facts(self, sent: int) -> dict[str, Any]:
        """Fields of the message for samples that were just sent; they count from here on."""
        self._tally.samples += sent
        train_iter = self._train_iter
        iters = {"policy_iter": train_iter, "collect_iter": train_iter}
        return {**self._tally.progress(), **iters, **self._news()}

    def _evaluate_step(self) -> bool:
        self._watch.stepping()
        steps, ended = self._rollout.step(self._active, self._kwargs)
        self._watch.rest()
        self._tally.steps += steps
        for env_id, infos in ended.items():
            returns = [float(np.sum(info["eval_episode_return"])) for info in infos]
            length = self._rollout.take_length(env_id)
            if not self._shares.env_is_finished(env_id):
                self._tally.add_episodes([FinishedEpisode(env_id, returns, length, infos)])
            self._shares.update_reward(env_id, returns[0])
            self._active[env_id] = not self._shares.env_is_finished(env_id)
        return not self._shares.is_finished()

    def _finish(self) -> None:
        if not self._evaluate:
            self._send()
        self._done = True
        self._tally.stop()

    # ------------------------------------------------------------------ facts

    @property
    def _train_iter(self) -> int:
        return self._sources[0].iter if self._sources else 0

    def progress(self) -> dict[str, Any]:
        """Counts of the task, the version of the policy, and what went wrong without ending it."""
        facts = {**self._tally.progress(), "policy_iter": self._train_iter}
        warnings = [warning for s in self._sources if (warning := s.take_warning())]
        if warnings:
            facts["warning"] = "; ".join(warnings)
        return facts

    def get_finish_info(self) -> dict[str, Any]:
        """The task's report; see the fields of `CollectorTally.finish_info`."""
        return {
            **self._tally.finish_info(
                evaluate=self._evaluate,
                env_num=self._env_num,
                train_iter=self._train_iter,
                done=self._done,
                predefined=self._predefined,
            ),
            "collect_setting": self._cfg.get("collect_setting"),
        }

    def episode_info(self) -> list[list[float]]:
        """Environment, return and length of each of the last episodes."""
        return self._tally.episode_info()

    def close(self) -> None:
        """Stop after the step under way; environments that the worker lent stay open."""
        super().close()
        self._tally.stop()

    def _log(self) -> None:
        self._log_due = time.monotonic() + self._cfg.print_freq
        means = {name: get() for name, get in self._monitor.avg.items()}
        returns = [episode.returns[0] for episode in list(self._tally.episodes)[-20:]]
        self.info(
            f"{self._tally.progress()}, policy_iter {self._train_iter}, "
            f"recent return {f'{np.mean(returns):.4g}' if returns else 'none'}, "
            + ", ".join(f"{name} {value:.4g}" for name, value in means.items())
        )


def _nstep_length(mode: Any) -> int:
    nstep = attribute(mode, "nstep") or 1
    return NSTEP_SPANS * nstep if nstep > 1 else 1


def _number(value: Any) -> float:
    """A number of episodes; none, or infinite in whatever words, is no limit."""
    return INF if value is None else float(value)


def _episodes(env_cfg: Mapping[str, Any]) -> float:
    given = env_cfg.get("manager", {}).get("episode_num")
    return _number(env_cfg.get("collector_episode_num") if given is None else given)


def _eval_episodes(env_cfg: Mapping[str, Any], env_num: int) -> int:
    given = env_cfg.get("n_evaluator_episode")
    if given is not None:
        return int(given)
    per_env = _number(env_cfg.get("manager", {}).get("episode_num"))
    if not np.isfinite(per_env):
        per_env = _number(env_cfg.get("evaluator_episode_num", 1))
    return env_num * int(per_env)
