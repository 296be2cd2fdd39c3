"""The serial evaluators: by returns in environments, or by a metric over a data set."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import cast

import numpy as np
import torch

from ding.torch_utils import to_device, to_item, to_tensor
from ding.utils import (
    SERIAL_EVALUATOR_REGISTRY,
    broadcast_object_list,
    get_rank,
    get_world_size,
)
from ding.utils.default_helper import first_goal
from ding.utils.errors import ConfigError, DataError
from ding.utils.log_writer import Writer
from ding.worker.collector.base_serial_evaluator import ISerialEvaluator, VectorEvalMonitor
from ding.worker.collector.rollout import Rollout
from ding.worker.collector.run_statistics import freeze_statistics
from ding.worker.collector.serial_part import SerialPart
from ding.worker.collector.steps import (
    Config,
    Envs,
    Info,
    Kwargs,
    Mode,
    Player,
    Result,
    SaveFn,
    State,
    Tree,
    VideoWriter,
)
from ding.worker.collector.tally import Tally


class SerialEvaluator(SerialPart, ISerialEvaluator):
    """When to evaluate, the best result so far, and the log.

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
        cfg: Config,
        env: Envs = None,
        policy: Mode | list[Mode] = None,
        tb_logger: Writer | None = None,
        exp_name: str | None = "default_experiment",
        instance_name: str | None = "evaluator",
    ) -> None:
        super().__init__(cfg, tb_logger, exp_name, instance_name or "evaluator")
        self._default_n_episode: int | None = self._cfg.get("n_episode")
        self._stop_value = first_goal(self._cfg.get("stop_value", float("inf")))
        self.reset(policy, env)

    def _start_anew(self) -> None:
        self.best = None
        self.last = None
        self.last_eval_iter = self._eval_iter_before = -1

    def should_eval(self, train_iter: int) -> bool:
        """True at iteration 0 and each ``eval_freq`` iterations; never twice at the same one."""
        if train_iter == self.last_eval_iter:
            return False
        if train_iter != 0 and train_iter - max(self.last_eval_iter, 0) < self._cfg.eval_freq:
            return False
        self._eval_iter_before, self.last_eval_iter = self.last_eval_iter, train_iter
        return True

    def put_off(self) -> None:
        """The evaluation that `should_eval` last called for did not come about."""
        self.last_eval_iter = self._eval_iter_before

    def _keep_best(self, result: Result, better: bool, save_ckpt_fn: SaveFn) -> None:
        self.last = result
        if better:
            self.best = result
            if save_ckpt_fn is not None:
                save_ckpt_fn("ckpt_best.pth.tar")

    def _share(self, stop: bool, result: Result) -> tuple[bool, Result]:
        """Rank 0's verdict, on all ranks."""
        shared = [(stop, result)]
        if get_world_size() > 1:
            broadcast_object_list(shared, src=0)
        return shared[0]

    def state_dict(self) -> State:
        """The best result, when it was last asked, and the environments' seeds."""
        return {
            "best": self.best,
            "last": self.last,
            "last_eval_iter": self.last_eval_iter,
            **self._env_state(),
        }

    def load_state_dict(self, state_dict: State) -> None:
        self.best = state_dict["best"]
        self.last = state_dict.get("last")
        self.last_eval_iter = self._eval_iter_before = state_dict["last_eval_iter"]
        self._load_env_state(state_dict)


# ---------------------------------------------------------------------- by returns


class EpisodeEvaluator(SerialEvaluator):
    """Runs a fair share of whole episodes in each environment and judges the mean return."""

    def _run(
        self,
        n_episode: int | None,
        envstep: int,
        train_iter: int,
        policy_kwargs: Kwargs | None = None,
        render: bool = False,
    ) -> tuple[VectorEvalMonitor, Tally]:
        """Run the episodes; the first player's returns are the ones that count."""
        self._require(env=self._env, policy=self._policies)
        n_episode = n_episode if n_episode is not None else self._default_n_episode
        if n_episode is None:
            raise ConfigError("set env.n_evaluator_episode (or pass n_episode to eval())")
        monitor, tally = VectorEvalMonitor(self._env.env_num, n_episode), Tally().start()
        rollout = self._new_rollout(policy_kwargs or {})
        active = np.ones(self._env.env_num, bool)
        while not monitor.is_finished():
            if self.before_step is not None:
                self.before_step()
            if render:
                monitor.update_video(self._env.ready_imgs)
            episodes = rollout.step(tally, active)
            for episode in episodes:
                self._before_record(episode.env_id)
                monitor.update_info(episode.env_id, episode.infos[0])
                monitor.update_reward(episode.env_id, episode.returns[0])
                active[episode.env_id] = not monitor.env_is_finished(episode.env_id)
            self._report(episodes, envstep, train_iter)
        tally.stop()
        return monitor, tally

    def _new_rollout(self, policy_kwargs: Kwargs) -> Rollout:
        """A rollout from the first steps of new episodes on, which keeps no transitions."""
        if hasattr(self._env, "number_starts"):
            self._env.number_starts()
        freeze_statistics(self._env, self._policies)
        self._env.reset()
        self.reset_policy()
        players = [Player(mode, policy_kwargs) for mode in self._policies]
        return Rollout(self._env, players, battle=self.battle, keeps=False)

    def _before_record(self, env_id: int) -> None:
        """Called when an episode of ``env_id`` has ended."""

    def _judge(
        self,
        returns: list[float],
        tally: Tally,
        save_ckpt_fn: SaveFn,
        train_iter: int,
        envstep: int,
    ) -> bool:
        """Log the result, keep it if it is the best, and tell whether it is good enough."""
        seconds = max(tally.seconds, 1e-9)
        row = {
            "train_iter": train_iter,
            **tally.row(returns),
            "evaluate_time": seconds,
            "avg_time_per_episode": seconds / len(returns),
        }
        self._log_row("evaluation", row, train_iter, envstep)
        mean = row["reward_mean"]
        # NaN is no result that another one could be better than.
        is_best = mean == mean and (self.best is None or mean > self.best)
        self._keep_best(mean, is_best, save_ckpt_fn)
        stop = bool(mean >= self._stop_value and train_iter > 0)
        if stop and self._logger is not None:
            self._logger.info(
                "mean return %.4g has reached stop_value %.4g: converged", mean, self._stop_value
            )
        return stop


@SERIAL_EVALUATOR_REGISTRY.register("interaction")
class InteractionSerialEvaluator(EpisodeEvaluator):
    """Judges one policy by its mean return over ``n_episode`` episodes."""

    config: dict[str, Result] = dict(
        eval_freq=1000,
        render=dict(render_freq=-1, mode="train_iter"),
        figure_path=None,
    )
    _last_render = 0

    def eval(
        self,
        save_ckpt_fn: SaveFn = None,
        train_iter: int = -1,
        envstep: int = -1,
        n_episode: int | None = None,
        force_render: bool = False,
        policy_kwargs: Kwargs | None = {},
    ) -> tuple[bool, dict[str, Result]]:
        """Evaluate, and save a checkpoint if the mean return is the best so far.

        Args:
            save_ckpt_fn: Called with a file name when the result is the best so far.
            train_iter: Training iteration of the policy.
            envstep: Environment steps collected so far.
            n_episode: Number of episodes; ``cfg.n_episode`` by default.
            force_render: Log a video whatever ``render`` says.
            policy_kwargs: Keyword arguments of the policy's ``forward``.

        Returns:
            Whether the mean return reaches ``stop_value`` (never at iteration 0), and by name the
            values of all episodes' infos, ``eval_episode_return`` among them, and the means of
            those that are numbers, ``eval_episode_return_mean`` among them.
        """
        stop, info = False, {}
        if get_rank() == 0:
            render = force_render or self._should_render(envstep, train_iter)
            monitor, tally = self._run(n_episode, envstep, train_iter, policy_kwargs, render)
            returns = monitor.get_episode_return()
            stop = self._judge(returns, tally, save_ckpt_fn, train_iter, envstep)
            info = {
                **monitor.get_episode_info(),
                **monitor.get_means(),
                "eval_episode_return": returns,
                "eval_episode_return_mean": self.last,
            }
            if render:
                self._log_video(monitor, envstep, train_iter)
        return self._share(stop, info)

    def _before_record(self, env_id: int) -> None:
        if self._cfg.get("figure_path"):
            self._env.enable_save_figure(env_id, self._cfg.figure_path)

    def _should_render(self, envstep: int, train_iter: int) -> bool:
        render = self._cfg.get("render") or {}
        if render.get("render_freq", -1) <= 0:
            return False
        now = envstep if render.get("mode", "train_iter") == "envstep" else train_iter
        if now - self._last_render < render["render_freq"]:
            return False
        self._last_render = now
        return True

    def _log_video(self, monitor: VectorEvalMonitor, envstep: int, train_iter: int) -> None:
        mode = (self._cfg.get("render") or {}).get("mode", "train_iter")
        step = envstep if mode == "envstep" else train_iter
        writer = cast("VideoWriter", self._tb_logger)
        writer.add_video(f"{self._instance_name}/worst_median_best", monitor.get_video(), step)


@SERIAL_EVALUATOR_REGISTRY.register("battle_interaction")
class BattleInteractionSerialEvaluator(EpisodeEvaluator):
    """Runs several policies against each other; policy 0 is the one judged."""

    battle = True
    config: dict[str, Result] = dict(eval_freq=50)

    def eval(
        self,
        save_ckpt_fn: SaveFn = None,
        train_iter: int = -1,
        envstep: int = -1,
        n_episode: int | None = None,
    ) -> tuple[bool, list[list[Info]]]:
        """Evaluate, and save a checkpoint if policy 0's mean return is the best so far.

        Args:
            save_ckpt_fn: Called with a file name when the result is the best so far.
            train_iter: Training iteration of policy 0.
            envstep: Environment steps collected so far.
            n_episode: Number of episodes; ``cfg.n_episode`` by default.

        Returns:
            Whether policy 0's mean return reaches ``stop_value`` (never at iteration 0), and for
            each policy the infos of its episodes.
        """
        stop, infos = False, []
        if get_rank() == 0:
            monitor, tally = self._run(n_episode, envstep, train_iter)
            returns = monitor.get_episode_return()
            stop = self._judge(returns, tally, save_ckpt_fn, train_iter, envstep)
            infos = [list(own) for own in zip(*(episode.infos for episode in tally.episodes))]
        return self._share(stop, infos)


# ---------------------------------------------------------------------- by a metric


class IMetric(ABC):
    """How good outputs are, given labels."""

    @abstractmethod
    def eval(self, inputs: Tree, label: Tree) -> dict[str, Result]:
        """Judge one batch of the policy's outputs."""

    @abstractmethod
    def reduce_mean(self, inputs: list[Result]) -> Result:
        """Average results; those of larger batches come more than once, as each item counts."""

    @abstractmethod
    def gt(self, metric1: Result, metric2: Result) -> bool:
        """Whether ``metric1`` is at least as good as ``metric2``; true if that is ``None``."""


@SERIAL_EVALUATOR_REGISTRY.register("metric")
class MetricSerialEvaluator(SerialEvaluator):
    """Judges a policy on data; ``env`` is a pair of a data loader and an `IMetric`.

    The loader gives batches ``(inputs, label)``.
    """

    config: dict[str, Result] = dict(eval_freq=50)

    def _reset_env_manager(self, env: tuple[Iterable[Tree], IMetric] | None) -> None:
        """Replace loader and metric."""
        if env is not None:
            self._take_env(env)
            self._dataloader, self._metric = env

    def eval(  # type: ignore[override]  # a data set has no episodes to count
        self, save_ckpt_fn: SaveFn = None, train_iter: int = -1, envstep: int = -1
    ) -> tuple[bool, Result]:
        """Evaluate on the whole data set, and save a checkpoint if it is the best so far.

        Returns:
            Whether the metric reaches ``stop_value`` (never at iteration 0), and the metric.
        """
        stop, result = False, None
        if get_rank() == 0:
            self._require(env=self._env, policy=self._policies)
            start = time.perf_counter()
            device = self._policies[0].get_attribute("device")
            results, sizes = [], []
            for batch in self._dataloader:
                if self.before_step is not None:
                    self.before_step()
                inputs, label = to_device(to_tensor(batch), device)
                results.append(self._metric.eval(self._policies[0].forward(inputs), label))
                sizes.append(_item_count(label))
            if not results:
                raise DataError(
                    f"{self._instance_name}: the data loader gave no batch: there is nothing to "
                    "judge the policy by"
                )
            result = self._metric.reduce_mean(_for_each_item(results, sizes))
            duration = max(time.perf_counter() - start, 1e-9)
            row = {
                "train_iter": train_iter,
                "data_length": sum(sizes),
                "evaluate_time": duration,
                "avg_time_per_data": duration / sum(sizes),
                **({k: to_item(v) for k, v in result.items()} if isinstance(result, dict) else {}),
            }
            self._log_row("evaluation", row, train_iter, envstep)
            self._keep_best(result, self._metric.gt(result, self.best), save_ckpt_fn)
            stop = self._metric.gt(result, self._stop_value) and train_iter > 0
        return self._share(bool(stop), result)


def _item_count(label: Tree) -> int:
    """Items of a batch, by its labels; 1 if these do not tell."""
    while isinstance(label, Mapping | list | tuple) and label:
        first = next(iter(label.values())) if isinstance(label, Mapping) else label[0]
        if not isinstance(first, torch.Tensor | np.ndarray | Mapping | list | tuple):
            break  # a list of numbers or texts
        label = first
    has_items = not isinstance(label, torch.Tensor | np.ndarray) or label.ndim > 0
    return max(len(label), 1) if has_items and hasattr(label, "__len__") else 1


def _for_each_item(results: list[Result], sizes: list[int]) -> list[Result]:
    """Each batch's result as often as the mean over all items needs it."""
    unit = math.gcd(*sizes)
    return [result for result, size in zip(results, sizes) for _ in range(size // unit)]
