"""The parallel collector: runs the same rollout as serial ones, and sends samples to a learner."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from easydict import EasyDict

from ding.envs.running_statistics import plain
from ding.policy import Policy
from ding.policy.fit import check_fit
from ding.utils import PARALLEL_COLLECTOR_REGISTRY, durations
from ding.utils.autolog import NaturalTime
from ding.utils.errors import ConfigError
from ding.utils.types import Settings, State
from ding.worker.collector.base_parallel_collector import BaseParallelCollector, TickMonitor
from ding.worker.collector.base_serial_evaluator import fair_shares
from ding.worker.collector.collector_link import CollectorLink, PolicySource, SampleSender
from ding.worker.collector.parts_cache import LentPolicy
from ding.worker.collector.rollout import INF, Rollout
from ding.worker.collector.run_statistics import RunStatistics, freeze_statistics
from ding.worker.collector.serial_collector import trajectory_length
from ding.worker.collector.steps import Player, Tally, attribute

#: The last n-step windows of a trajectory are shorter than nstep; trajectories of at least
#: ``NSTEP_SPANS * nstep`` steps keep their share small.
NSTEP_SPANS = 4
#: Maximum number of newest episodes that the report lists.
MAX_EPISODES = 1000


@PARALLEL_COLLECTOR_REGISTRY.register("zergling")
class ZerglingParallelCollector(BaseParallelCollector):
    """Collects or evaluates with one policy, and keeps the policy up to date.

    A collect task ends when each environment has played ``env.manager.episode_num`` episodes, an
    evaluation when ``env.n_evaluator_episode`` episodes have been played. The config contains the
    fields of a task (``env, policy, policy_update_path, collect_setting, eval_flag, seed``), and:

    Config keys:
        print_freq: Seconds between two lines in the log.
        compressor: For collectors that compress their samples; this one does not.
        update_policy_second: Seconds between two checks for a new policy.
    """

    config = dict(print_freq=5, compressor="lz4", update_policy_second=3)

    def __init__(self, cfg: Settings) -> None:
        super().__init__(EasyDict(cfg))
        self._evaluate = bool(self._cfg.get("eval_flag", False))
        self._tally = Tally()
        self._began = time.monotonic()
        self._ended_at: float | None = None
        self._monitor = TickMonitor(NaturalTime(), expire=60)
        self._sources: list[PolicySource] = []
        self._done = False
        self._news_time = -INF
        self._predefined = INF  # episodes
        self._statistics: RunStatistics | None = None

    @property
    def _player_num(self) -> int:
        return 1

    def _begin(self) -> None:
        link, env_cfg = self._require_link(), self._field("env")
        self._watch.allow(env_cfg.get("manager", {}))
        if self._env_manager is None:
            self._watch.stepping(launches=True)
            self._env_manager = link.parts.env_manager(
                env_cfg, self._evaluate, self._cfg.get("seed")
            )
            self._watch.rest()
        self._make_players(link)
        modes, env_num = [player.mode for player in self._players], self._env_manager.env_num
        if len(modes) == 1:
            # Assumptions about custom environments were logged before the run started.
            check_fit(self._field("policy"), self._env_manager, own_env=True)
        for mode in modes:
            mode.reset()
        self.waits_for = "policy"
        for source in self._sources:
            # Collecting may begin with untrained weights; an evaluation of them would count as a
            # result.
            source.begin(self._ended, may_be_missing=not self._evaluate)
        self.waits_for = None
        traj_len, n_sample = INF, None
        if self._evaluate:
            freeze_statistics(self._env_manager, modes)
            if getattr(self._env_manager, "normalises", False):
                # The current observations were normalised without the run's statistics.
                self._env_manager.reset()
            self._left = fair_shares(env_num, _eval_episodes(env_cfg, env_num))
        else:
            self._statistics = RunStatistics.of(self._env_manager, modes[:1])
            if self._statistics is not None:
                self._statistics.load()
            given = env_cfg.get("manager", {}).get("episode_num")
            given = env_cfg.get("collector_episode_num") if given is None else given
            self._left = np.full(env_num, _number(given))
            # Chunks of as many samples as one call of a serial collector would return.
            n_sample = modes[0].get_attribute("n_sample")
            lengths = [trajectory_length(mode, env_num, n_sample or env_num) for mode in modes]
            nsteps = [attribute(mode, "nstep") or 1 for mode in modes]
            traj_len = max(*lengths, *(NSTEP_SPANS * n if n > 1 else 1 for n in nsteps))
        self._sender = SampleSender(link, n_sample)
        self._rollout = Rollout(
            self._env_manager,
            self._players,
            battle=len(modes) > 1,
            traj_len=traj_len,
            keeps=not self._evaluate,
            options={} if self._evaluate else self._cfg,
        )
        self._predefined = float(self._left.sum())
        keep = self._predefined if np.isfinite(self._predefined) else 0
        self._tally = Tally(keep=int(max(keep, MAX_EPISODES)), infos=False)
        self._began = time.monotonic()
        self._log_due = self._began + self._cfg.print_freq
        self._step_start, self._step_count = self._began, 0

    def _field(self, name: str) -> Settings:
        value = self._cfg.get(name)
        if not isinstance(value, Mapping):
            raise ConfigError(
                f"collector_cfg.{name} is {'missing' if value is None else repr(value)}; expected "
                "the config of the run as a dict"
            )
        return value

    def _of_players(self, name: str) -> list[Any]:
        """A task field for each player: one value for all, or a list with one value each."""
        value, number = self._cfg.get(name), self._player_num
        if not isinstance(value, list | tuple):
            return [value] * number
        if len(value) < number:
            raise ConfigError(f"collector_cfg.{name} has {len(value)} values, for {number} players")
        return list(value[:number])

    def _make_players(self, link: CollectorLink) -> None:
        """Create players with the given policies, or else with policies built from the config."""
        field = "eval" if self._evaluate else "collect"
        paths = self._of_players("policy_update_path")
        given = self._policy if isinstance(self._policy, list) else [self._policy]
        lent = [LentPolicy(policy) for policy in given if policy is not None]
        for path, cfg in list(zip(paths, self._of_players("policy")))[len(lent) :]:
            if not isinstance(cfg, Mapping):
                raise ConfigError(f"collector_cfg.policy is {cfg!r}; expected a policy config")
            lent.append(link.parts.policy(cfg, field, f"{path} of player {len(lent)}"))
        policies = [one.policy for one in lent]
        self._policy = policies if len(policies) > 1 else policies[0]
        settings, flags = map(self._of_players, ("collect_setting", "policy_update_flag"))
        self._players = [
            Player(
                getattr(policy, f"{field}_mode") if isinstance(policy, Policy) else policy,
                dict(setting or {}),
                wanted=not self._evaluate and (flag is None or bool(flag)),
            )
            for policy, setting, flag in zip(policies, settings, flags)
        ]
        if self._cfg.get("policy_update_path") is not None:
            period = float(self._cfg.update_policy_second)
            self._sources = [
                PolicySource(link, str(path), one, player.mode, period)
                for path, one, player in zip(paths, lent, self._players)
            ]

    def _step(self) -> bool:
        if time.monotonic() >= self._log_due:
            self._log()
        for player, source in zip(self._players, self._sources):
            if player.wanted or source.is_missing:
                source.refresh()
            player.train_iter = source.iter
        if self._statistics is not None:
            self._statistics.load()
        self._watch.stepping()
        is_endless = self._predefined == INF
        episodes = self._rollout.step(self._tally, None if is_endless else self._left > 0)
        self._watch.rest()
        if self._ended.is_set():  # possibly long ago: the worker may already run another task
            return False
        for episode in episodes:
            self._left[episode.env_id] -= 1
        self._step_count += 1
        if self._sender.is_due(int(self._rollout.waiting.sum())):
            self._send()
        return bool((self._left > 0).any())

    def _send(self) -> None:
        now = time.monotonic()
        self._monitor.step_time = (now - self._step_start) / max(1, self._step_count)
        self._watch.stepping()
        harvests = self._rollout.harvest(train_samples=True)
        self._watch.rest()
        sent = sum(self._sender.send(samples, self._facts) for samples, _ in harvests)
        self._step_start, self._step_count = time.monotonic(), 0
        self._monitor.send_time = self._step_start - now
        self._monitor.sample_num = float(sent)
        if self._monitor.send_time >= durations.SEND_WAIT:
            # The coordinator delayed the samples, so the learner may be hundreds of updates ahead
            # of these weights.
            for source in self._sources:
                source.look_soon()

    def _facts(self, sent: int) -> State:
        """Count the samples that were just sent; returns further fields of their message."""
        self._tally.samples += sent
        train_iter, now = self._train_iter, time.monotonic()
        facts = {**self._counts(), "policy_iter": train_iter, "collect_iter": train_iter}
        is_due = now - self._news_time >= durations.ENV_STATISTICS_SPAN
        normalises = self._statistics is not None
        if is_due and normalises and (news := self._env_manager.take_statistics()):
            self._news_time, facts["env_statistics"] = now, plain(news)
        return facts

    def _finish(self) -> None:
        self._send()
        self._done = True
        self._ended_at = time.monotonic()

    @property
    def _train_iter(self) -> int:
        return self._sources[0].iter if self._sources else 0

    def _counts(self) -> State:
        tally = self._tally
        return {
            "cur_episode": tally.episode_count,
            "cur_sample": tally.samples,
            "cur_step": tally.envsteps,
        }

    def progress(self) -> State:
        """Counts of the task, the version of the policy, and warnings."""
        facts = {**self._counts(), "policy_iter": self._train_iter}
        warnings = [warning for s in self._sources if (warning := s.take_warning())]
        if warnings:
            facts["warning"] = "; ".join(warnings)
        return facts

    def get_finish_info(self) -> State:
        """The task's report in plain JSON; averages of nothing are ``None``.

        ``predefined_episode_count`` is ``None`` if the task has no limit.
        """
        now = time.monotonic()
        return {
            **self._tally.report(max((self._ended_at or now) - self._began, 1e-8)),
            "eval_flag": self._evaluate,
            "env_num": 0 if self._env_manager is None else self._env_manager.env_num,
            "train_iter": self._train_iter,
            "collector_done": self._done,
            "predefined_episode_count": (
                int(self._predefined) if np.isfinite(self._predefined) else None
            ),
            "finish_time": now,
            "collect_setting": self._cfg.get("collect_setting"),
        }

    def episode_info(self) -> list[list[float]]:
        """Environment, return and length of each of the last episodes."""
        return [[e.env_id, e.returns[0], e.length] for e in list(self._tally.episodes)]

    def close(self) -> None:
        """Stop after the current step; the worker's environments stay open."""
        super().close()
        self._ended_at = self._ended_at or time.monotonic()

    def _log(self) -> None:
        self._log_due = time.monotonic() + self._cfg.print_freq
        means = {name: get() for name, get in self._monitor.avg.items()}
        returns = list(self._tally.returns)[-20:]
        self.info(
            f"{self._counts()}, policy_iter {self._train_iter}, "
            f"recent return {f'{np.mean(returns):.4g}' if returns else 'none'}, "
            + ", ".join(f"{name} {value:.4g}" for name, value in means.items())
        )


def _number(value: float | str | None) -> float:
    """A number of episodes; ``None`` and any spelling of infinity mean no limit."""
    return INF if value is None else float(value)


def _eval_episodes(env_cfg: Settings, env_num: int) -> int:
    given = env_cfg.get("n_evaluator_episode")
    if given is not None:
        return int(given)
    per_env = _number(env_cfg.get("manager", {}).get("episode_num"))
    if not np.isfinite(per_env):
        per_env = _number(env_cfg.get("evaluator_episode_num", 1))
    return env_num * int(per_env)
