"""Serial collectors of samples or whole episodes, by one policy or by several in a battle."""

import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from easydict import EasyDict

from ding.envs import BaseEnvManager
from ding.utils import SERIAL_COLLECTOR_REGISTRY, get_world_size
from ding.utils.errors import ConfigError, require_entries
from ding.utils.log_writer import Writer
from ding.utils.types import State
from ding.worker.collector.base_serial_collector import INF, ISerialCollector
from ding.worker.collector.rollout import Rollout
from ding.worker.collector.run_statistics import RunStatistics
from ding.worker.collector.serial_part import SerialPart
from ding.worker.collector.steps import (
    Episode,
    Info,
    Kwargs,
    Mode,
    Player,
    PlayersKwargs,
    Samples,
    SampleStock,
    Tally,
    attribute,
)

#: Number of episodes in the mean return that runs show.
#: Not the episodes since the last log row: on-policy there may be none, off-policy only a few.
RECENT_EPISODES = 100


class SerialCollector(SerialPart, ISerialCollector):
    """Steps a rollout until the subclass's stop rule holds, and keeps counts.

    A subclass defines ``collect``, usually by `_collect_samples` or `_collect_episodes`.
    See `SerialPart` for the arguments.
    """

    config = dict(deepcopy_obs=False, transform_obs=False, collect_print_freq=100)

    def __init__(
        self,
        cfg: EasyDict,
        env: BaseEnvManager | None = None,
        policy: Mode | list[Mode] = None,
        tb_logger: Writer | None = None,
        exp_name: str = "default_experiment",
        instance_name: str = "collector",
    ) -> None:
        super().__init__(cfg, tb_logger, exp_name, instance_name or "collector")
        self._collect_print_freq = self._cfg.collect_print_freq
        self._rollout: Rollout | None = None
        self._stocks: list[SampleStock] = []
        self.reset(policy, env)

    def _forget(self) -> None:
        """Drop running trajectories, and the samples kept for the next call."""
        self._rollout = None
        self._stocks = [SampleStock() for _ in self._policies]

    def _start_anew(self) -> None:
        self._turn = 0  # the first environment that gets a sample of the next call's remainder
        self._total = Tally(keep=RECENT_EPISODES)
        self._since_log = Tally()
        self._last_log_iter = 0

    def _collect_samples(
        self,
        n_sample: int | None,
        train_iter: int,
        policy_kwargs: PlayersKwargs,
        drop_extra: bool | None,
        *,
        level_seeds: Sequence[int] | None = None,
        log: bool = True,
    ) -> tuple[list[Samples], Tally]:
        """Collect until each player whose data is wanted has ``n_sample`` samples."""
        rollout, n_sample = self._begin(
            "n_sample", n_sample, train_iter, policy_kwargs, level_seeds
        )
        on_policy = any(mode.get_attribute("on_policy") for mode in self._policies)
        lengths = [trajectory_length(m, self._env.env_num, n_sample) for m in self._policies]
        whole_episodes = max(lengths) == INF
        # On-policy, `cut` ends trajectories when each environment has its share.
        rollout.traj_len = INF if on_policy else max(lengths)
        tally, players = Tally(), zip(rollout.players, self._stocks)
        stocks = [stock for player, stock in players if player.wanted]
        more = 0
        while (missing := n_sample - min(map(len, stocks))) > 0:
            if not on_policy:
                while rollout.waiting.sum() < missing:
                    self._step(rollout, tally)
            elif whole_episodes:
                self._take_episodes(rollout, tally, lambda _: rollout.waiting.sum() < missing)
            else:
                self._take_shares(rollout, tally, missing, more)
            for stock, (new, _) in zip(self._stocks, rollout.harvest(train_samples=True)):
                stock.add(new)
            # A policy may drop the last steps of cut trajectories: collect twice as many more.
            more = max(1, 2 * more)
        # An on-policy update must not use samples of the previous policy.
        is_whole = drop_extra is False or (drop_extra is None and on_policy)
        samples = [stock.take(None if is_whole else n_sample) for stock in self._stocks]
        if drop_extra:
            tally.dropped += sum(len(stock.take()) for stock in self._stocks)
        self._finish(tally, samples, train_iter, log)
        return samples, tally

    def _take_shares(self, rollout: Rollout, tally: Tally, n_sample: int, more: int) -> None:
        """Collect the same number of samples in each environment, and cut trajectories there."""
        env_num = self._env.env_num
        if getattr(self._env, "steps_all", False):
            # The manager also steps environments that are not active; their steps would be lost.
            while (lacking := n_sample + more * env_num - rollout.taken().sum()) > 0:
                for _ in range(max(1, lacking // env_num)):
                    self._step(rollout, tally)
        else:
            shares = np.full(env_num, n_sample // env_num)
            shares[(self._turn + np.arange(n_sample % env_num)) % env_num] += 1
            self._turn = (self._turn + n_sample) % env_num
            shares[shares > 0] += more
            while (lacking := shares - rollout.taken()).max() > 0:
                active = lacking > 0
                # A step completes at most one sample of an environment.
                for _ in range(lacking[active].min()):
                    self._step(rollout, tally, active)
        rollout.cut(tally)

    def _take_episodes(self, rollout: Rollout, tally: Tally, begins: Callable[[int], bool]) -> None:
        """Run whole episodes; ``begins(n)`` returns whether another one begins after ``n``."""
        if getattr(self._env, "steps_all", False):
            self._env.reset()  # some were stepped beyond their last episode
        begun, active = 0, np.zeros(self._env.env_num, bool)
        for env_id in range(len(active)):
            active[env_id] = begins(begun)
            begun += active[env_id]
        while active.any():
            for episode in self._step(rollout, tally, active):
                active[episode.env_id] = begins(begun)
                begun += active[episode.env_id]

    def _collect_episodes(
        self, n_episode: int | None, train_iter: int, policy_kwargs: PlayersKwargs
    ) -> tuple[list[list[Any]], Tally]:
        """Run ``n_episode`` whole episodes; returns each player's episodes or training samples."""
        rollout, n_episode = self._begin("n_episode", n_episode, train_iter, policy_kwargs)
        tally = Tally()
        self._take_episodes(rollout, tally, lambda begun: begun < n_episode)
        as_samples = bool(self._cfg.get("get_train_sample", False))
        harvests = rollout.harvest(as_samples)
        self._finish(tally, [samples for samples, _ in harvests], train_iter)
        if as_samples:
            return [samples for samples, _ in harvests], tally
        ends = [np.cumsum([0, *lengths]).tolist() for _, lengths in harvests]
        return [
            [samples[start:stop] for start, stop in itertools.pairwise(own)]
            for (samples, _), own in zip(harvests, ends)
        ], tally

    def _begin(
        self,
        name: str,
        target: int | None,
        train_iter: int,
        policy_kwargs: PlayersKwargs,
        level_seeds: Sequence[int] | None = None,
    ) -> tuple[Rollout, int]:
        """The last call's rollout (a new one after a reset), and the target."""
        self._require_parts()
        if self._rollout is None:
            self._rollout = Rollout(
                self._env,
                [Player(mode) for mode in self._policies],
                battle=self.battle,
                options=self._cfg,
                on_trajectories=self.on_trajectories,
            )
            self._statistics = RunStatistics.of(self._env, self._policies)
        if target is None:
            target = self._policies[0].get_attribute(name)
        if not isinstance(target, int | np.integer) or target < 1:
            raise ConfigError(
                f"policy.collect.{name} (or collect({name}=...)) must be an integer >= 1, "
                f"got {target!r}"
            )
        self._began = time.monotonic()
        if self._statistics is not None:
            self._statistics.load()
        players = self._rollout.players
        if policy_kwargs is None or isinstance(policy_kwargs, Mapping):
            policy_kwargs = [policy_kwargs or {}] * len(players)
        for player, kwargs in zip(players, policy_kwargs):
            player.kwargs, player.train_iter, player.level_seeds = kwargs, train_iter, level_seeds
            if self.battle:
                flag = getattr(player.mode, "collect_data", None)
                flag = attribute(player.mode, "collect_data") if flag is None else flag
                player.wanted = flag is None or bool(flag)
        if not any(player.wanted for player in players):
            raise ConfigError("collect_data is false for every policy: no data would be collected")
        return self._rollout, int(target)

    def _step(
        self, rollout: Rollout, tally: Tally, active: np.ndarray | None = None
    ) -> list[Episode]:
        if self.before_step is not None:
            self.before_step()
        episodes = rollout.step(tally, active)
        if episodes:
            envstep = self._total.envsteps + tally.envsteps
            self._report(episodes, envstep, rollout.players[0].train_iter)
        return episodes

    def _finish(
        self, tally: Tally, samples: Sequence[Samples], train_iter: int, log: bool = True
    ) -> None:
        tally.samples = sum(map(len, samples))
        tally.seconds = time.monotonic() - self._began
        if get_world_size() > 1:
            # Before it is added to the totals: all ranks must stop, log and save at the same step.
            tally.sum_over_ranks()
        self._total.add(tally)
        self._since_log.add(tally)
        if self._statistics is not None:
            self._statistics.share()
        due = train_iter - self._last_log_iter >= self._collect_print_freq
        if log and due and self._logger is not None and self._since_log.returns:
            row = _log_row(self._since_log, self._total)
            eps = None if self._rollout is None else self._rollout.players[0].kwargs.get("eps")
            if eps is not None:
                row["eps"] = float(eps)
            self._log_row("collect end", row, train_iter, self._total.envsteps)
            self._last_log_iter, self._since_log = train_iter, Tally()

    @property
    def envstep(self) -> int:
        """Environment steps since the last reset, over all environments and ranks."""
        return self._total.envsteps

    @envstep.setter
    def envstep(self, value: int) -> None:
        self._total.envsteps = value

    @property
    def sample_count(self) -> int:
        """Samples returned since the last reset, over all ranks."""
        return self._total.samples

    @property
    def dropped_count(self) -> int:
        """Samples dropped since the last reset, over all ranks, and transitions cut short."""
        return self._total.dropped

    @property
    def recent_return(self) -> float | None:
        """Mean return of the last episodes, at most 100; ``None`` if there are none."""
        returns = self._total.returns
        return float(np.mean(returns)) if returns else None

    def state_dict(self) -> State:
        """Counters, samples kept for the next call, and the environments' seed state."""
        return {
            "total": self._total.state_dict(),
            "since_log": self._since_log.state_dict(),
            "last_log_iter": self._last_log_iter,
            "turn": self._turn,
            "stocks": [stock.state_dict() for stock in self._stocks],
            **self._env_state(),
        }

    def load_state_dict(self, state_dict: State) -> None:
        """Restore the counters; running episodes start again.

        Raises:
            CheckpointError: The state is not a collector's.
        """
        require_entries("a collector", state_dict, ("last_log_iter", "stocks", "total"))
        self._total.load_state_dict(state_dict["total"])
        self._since_log.load_state_dict(state_dict["since_log"])
        self._last_log_iter = state_dict["last_log_iter"]
        self._turn = state_dict.get("turn", 0)
        self._load_env_state(state_dict)
        # An environment cannot be restored in the middle of an episode, so its trajectory is over.
        self._rollout = None
        for stock, own in zip(self._stocks, state_dict["stocks"]):
            stock.load_state_dict(own)


@SERIAL_COLLECTOR_REGISTRY.register("sample")
class SampleSerialCollector(SerialCollector):
    """Rollout collector: steps environments until ``n_sample`` training samples are collected.

    A sample is a transition, or a piece of ``unroll_len`` transitions.

    Off-policy, trajectories have ``max(unroll_len, nstep, ceil(n_sample / env_num))`` transitions,
    or end with their episode; the next call continues those that are not complete.

    On-policy, each call takes the same number of samples of each environment (the remainder
    rotates), and cuts running trajectories: the policy bootstraps from the next observation, and
    the episode continues in the next call. If all environments step together (native
    ``gym_vector``, ``env_pool``), a call returns up to ``env_num - 1`` samples more. A policy with
    ``traj_len_inf`` gets whole episodes: those that began before ``n_sample`` samples existed.

    Args:
        cfg: Collector config, ``policy.collect.collector``.
        env: Env manager; launched at the first use.
        policy: ``policy.collect_mode``.
        tb_logger: Writer of scalars that the caller owns; by default the collector creates one.
        exp_name: Folder of the run.
        instance_name: Prefix of the log and its scalars.

    Example:

        >>> from ding.config import compile_config
        >>> from ding.envs import BaseEnvManager, DingEnvWrapper
        >>> from ding.policy import DQNPolicy
        >>> from ding.worker import SampleSerialCollector
        >>> model = dict(obs_shape=4, action_shape=2)
        >>> main = dict(env=dict(env_id="CartPole-v1"), policy=dict(model=model))
        >>> cfg = compile_config(main, BaseEnvManager, DQNPolicy, save_cfg=False)
        >>> envs = BaseEnvManager([lambda: DingEnvWrapper(cfg=cfg.env)] * 2, cfg.env.manager)
        >>> collect_mode = DQNPolicy(cfg.policy).collect_mode
        >>> collector = SampleSerialCollector(cfg.policy.collect.collector, envs, collect_mode)
        >>> samples = collector.collect(n_sample=8, policy_kwargs={"eps": 0.5})
        >>> len(samples), samples[0]["obs"].shape
        (8, torch.Size([4]))
        >>> collector.close()
    """

    def collect(
        self,
        n_sample: int | None = None,
        train_iter: int = 0,
        drop_extra: bool | None = None,
        random_collect: bool = False,
        record_random_collect: bool = True,
        policy_kwargs: Kwargs | None = None,
        level_seeds: list[int] | None = None,
    ) -> Samples:
        """Collect training samples.

        Args:
            n_sample: Number of samples; ``policy.collect.n_sample`` by default.
            train_iter: Training iteration of the policy; each sample carries it.
            drop_extra: By default, samples beyond ``n_sample`` are kept for the next call; those of
                an on-policy policy, which are rare, are returned. True: they are dropped and
                counted (``dropped_sample_count`` in the log). False: they are returned.
            random_collect: The policy acts randomly, as before training.
            record_random_collect: Whether random collection writes log rows.
            policy_kwargs: Keyword arguments of the policy's ``forward``, such as ``eps``.
            level_seeds: Seed of each environment's level; each sample then contains ``seed``.

        Returns:
            Samples in columns if the policy and the env manager support them, otherwise in rows.
        """
        log = not random_collect or record_random_collect
        samples, _ = self._collect_samples(
            n_sample, train_iter, policy_kwargs, drop_extra, level_seeds=level_seeds, log=log
        )
        return samples[0]


@SERIAL_COLLECTOR_REGISTRY.register("episode")
class EpisodeSerialCollector(SerialCollector):
    """Rollout collector: steps environments until ``n_episode`` episodes have ended.

    Arguments are those of `SampleSerialCollector`.

    Example:

        >>> from ding.config import compile_config
        >>> from ding.envs import BaseEnvManager, DingEnvWrapper
        >>> from ding.policy import DQNPolicy
        >>> from ding.worker import EpisodeSerialCollector
        >>> model = dict(obs_shape=4, action_shape=2)
        >>> main = dict(env=dict(env_id="CartPole-v1"), policy=dict(model=model))
        >>> cfg = compile_config(main, BaseEnvManager, DQNPolicy, save_cfg=False)
        >>> envs = BaseEnvManager([lambda: DingEnvWrapper(cfg=cfg.env)] * 2, cfg.env.manager)
        >>> collect_mode = DQNPolicy(cfg.policy).collect_mode
        >>> collector_cfg = EpisodeSerialCollector.default_config()
        >>> collector = EpisodeSerialCollector(collector_cfg, envs, collect_mode)
        >>> episodes = collector.collect(n_episode=3, policy_kwargs={"eps": 0.5})
        >>> len(episodes), bool(episodes[0][-1]["done"])
        (3, True)
        >>> collector.close()
    """

    config = dict(SerialCollector.config, get_train_sample=False, reward_shaping=False)

    def collect(
        self,
        n_episode: int | None = None,
        train_iter: int = 0,
        policy_kwargs: Kwargs | None = None,
    ) -> list[Any]:
        """Collect whole episodes; no episode begins that would not be returned.

        Args:
            n_episode: Number of episodes; ``policy.collect.n_episode`` by default.
            train_iter: Training iteration of the policy; each transition carries it.
            policy_kwargs: Keyword arguments of the policy's ``forward``, such as ``eps``.

        Returns:
            One list of transitions per episode, in the order in which they ended; or the training
            samples of all of them in one list if ``get_train_sample`` is set.
        """
        return self._collect_episodes(n_episode, train_iter, policy_kwargs)[0][0]


@SERIAL_COLLECTOR_REGISTRY.register("sample_1v1")
class BattleSampleSerialCollector(SerialCollector):
    """Runs n policies against each other until each has ``n_sample`` training samples."""

    battle = True

    def collect(
        self,
        n_sample: int | None = None,
        train_iter: int = 0,
        drop_extra: bool | None = None,
        policy_kwargs: PlayersKwargs = None,
    ) -> tuple[list[Samples], list[list[Info]]]:
        """Collect training samples of each player; arguments as `SampleSerialCollector.collect`.

        ``policy_kwargs`` may be a list with one entry per player.

        Returns:
            The samples of each player (none of a policy whose ``collect_data`` is false), and the
            info dicts of each player's finished episodes.
        """
        data, tally = self._collect_samples(n_sample, train_iter, policy_kwargs, drop_extra)
        return data, _infos(tally, len(data))


@SERIAL_COLLECTOR_REGISTRY.register("episode_1v1")
class BattleEpisodeSerialCollector(SerialCollector):
    """Runs n policies against each other until ``n_episode`` episodes have ended."""

    battle = True
    config = dict(SerialCollector.config, get_train_sample=False)

    def collect(
        self,
        n_episode: int | None = None,
        train_iter: int = 0,
        policy_kwargs: PlayersKwargs = None,
    ) -> tuple[list[Samples], list[list[Info]]]:
        """Collect whole episodes; arguments as `EpisodeSerialCollector.collect`.

        ``policy_kwargs`` may be a list with one entry per player.

        Returns:
            For each player its episodes (or training samples if ``get_train_sample`` is set; none
            for a policy whose ``collect_data`` is false), and the info dicts of its episodes.
        """
        data, tally = self._collect_episodes(n_episode, train_iter, policy_kwargs)
        return data, _infos(tally, len(data))


def trajectory_length(mode: Mode, env_num: int, n_sample: int) -> float:
    """Number of transitions after which a running trajectory is turned into samples."""
    if attribute(mode, "traj_len_inf"):
        return INF
    shortest = max(mode.get_attribute("unroll_len"), attribute(mode, "nstep") or 1)
    return float(max(shortest, math.ceil(n_sample / env_num)))


def _infos(tally: Tally, players: int) -> list[list[Info]]:
    """Info dicts of the finished episodes, one list per player."""
    return [[episode.infos[player] for episode in tally.episodes] for player in range(players)]


def _log_row(since: Tally, total: Tally) -> dict[str, float]:
    """Figures since the last row, by scalar name; ``since`` contains at least one episode."""
    episodes, seconds = len(since.returns), max(since.seconds, 1e-9)
    return {
        **since.row(),
        "train_sample_count": since.samples,
        "dropped_sample_count": since.dropped,
        "avg_sample_per_episode": since.samples / episodes,
        "avg_train_sample_per_sec": since.samples / seconds,
        "avg_episode_per_sec": episodes / seconds,
        "total_envstep_count": total.envsteps,
        "total_train_sample_count": total.samples,
        "total_dropped_sample_count": total.dropped,
        "total_episode_count": total.episode_count,
        "total_duration": total.seconds,
    }
