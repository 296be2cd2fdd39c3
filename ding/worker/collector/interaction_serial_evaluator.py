"""Serial evaluators by returns in environments: of one policy, or of several in a battle."""

import time
from typing import Any

import numpy as np

from ding.utils import SERIAL_EVALUATOR_REGISTRY, get_rank
from ding.utils.errors import ConfigError
from ding.worker.collector.base_serial_evaluator import SerialEvaluator, VectorEvalMonitor
from ding.worker.collector.rollout import Rollout
from ding.worker.collector.run_statistics import freeze_statistics
from ding.worker.collector.steps import Info, Kwargs, Player, Result, SaveFn, Tally


class EpisodeEvaluator(SerialEvaluator):
    """Runs the same number of whole episodes in each environment and averages their returns."""

    def _evaluate(
        self,
        save_ckpt_fn: SaveFn,
        train_iter: int,
        envstep: int,
        n_episode: int | None,
        policy_kwargs: Kwargs | None = None,
        render: bool = False,
    ) -> tuple[bool, VectorEvalMonitor, Tally]:
        """Run the episodes; the result is the first player's returns."""
        self._require_parts()
        n_episode = n_episode if n_episode is not None else self._default_n_episode
        if n_episode is None:
            raise ConfigError("set env.n_evaluator_episode (or pass n_episode to eval())")
        monitor, tally = VectorEvalMonitor(self._env.env_num, n_episode), Tally()
        began = time.monotonic()
        if hasattr(self._env, "number_starts"):
            # The k-th episode starts identically in all evaluations: only the policy differs.
            self._env.number_starts()
        freeze_statistics(self._env, self._policies)
        self._env.reset()
        self.reset_policy()
        players = [Player(mode, policy_kwargs or {}) for mode in self._policies]
        rollout = Rollout(self._env, players, battle=self.battle, keeps=False)
        active = np.ones(self._env.env_num, bool)
        while active.any():
            if self.before_step is not None:
                self.before_step()
            if render:
                monitor.update_video(self._env.ready_imgs)
            episodes = rollout.step(tally, active)
            for episode in episodes:
                if self._cfg.get("figure_path"):
                    self._env.enable_save_figure(episode.env_id, self._cfg.figure_path)
                monitor.update_info(episode.env_id, episode.infos[0])
                monitor.update_reward(episode.env_id, episode.returns[0])
                # An environment stops after its share: further episodes would favour short ones.
                active[episode.env_id] = not monitor.env_is_finished(episode.env_id)
            self._report(episodes, envstep, train_iter)
        tally.seconds = time.monotonic() - began
        return self._judge(tally, save_ckpt_fn, train_iter, envstep), monitor, tally

    def _judge(self, tally: Tally, save_ckpt_fn: SaveFn, train_iter: int, envstep: int) -> bool:
        """Log the result, save it if it is the best; returns whether it reaches ``stop_value``."""
        seconds = max(tally.seconds, 1e-9)
        row = {
            "train_iter": train_iter,
            **tally.row(),
            "evaluate_time": seconds,
            "avg_time_per_episode": seconds / tally.episode_count,
        }
        self._log_row("evaluation", row, train_iter, envstep)
        mean = row["reward_mean"]
        # A NaN must never become the best result: no later result would exceed it.
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
    """Evaluates a policy by its mean return over ``n_episode`` episodes.

    Args:
        cfg: ``policy.eval.evaluator``: ``n_episode``, ``eval_freq``, ``stop_value``.
        env: Env manager; launched at the first use.
        policy: ``policy.eval_mode``.
        tb_logger: Writer of scalars that the caller owns; by default the evaluator creates one.
        exp_name: Folder of the run.
        instance_name: Prefix of the log and its scalars.

    Example:

        >>> from ding.config import compile_config
        >>> from ding.envs import BaseEnvManager, DingEnvWrapper
        >>> from ding.policy import DQNPolicy
        >>> from ding.worker import InteractionSerialEvaluator
        >>> model = dict(obs_shape=4, action_shape=2)
        >>> main = dict(env=dict(env_id="CartPole-v1"), policy=dict(model=model))
        >>> cfg = compile_config(main, BaseEnvManager, DQNPolicy, save_cfg=False)
        >>> envs = BaseEnvManager([lambda: DingEnvWrapper(cfg=cfg.env)] * 2, cfg.env.manager)
        >>> eval_mode = DQNPolicy(cfg.policy).eval_mode
        >>> evaluator = InteractionSerialEvaluator(cfg.policy.eval.evaluator, envs, eval_mode)
        >>> stop, info = evaluator.eval(n_episode=2)
        >>> len(info["eval_episode_return"])
        2
        >>> evaluator.close()
    """

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
            force_render: Log a video even if ``render`` does not ask for one.
            policy_kwargs: Keyword arguments of the policy's ``forward``.

        Returns:
            Whether the mean return reaches ``stop_value`` (never at iteration 0); and a dict of the
            values of all episodes' infos, including ``eval_episode_return``, and the means of
            numeric ones, including ``eval_episode_return_mean``.
        """
        stop, info = False, {}
        if get_rank() == 0:
            options = self._cfg.get("render") or {}
            now = envstep if options.get("mode") == "envstep" else train_iter
            freq = options.get("render_freq", -1)
            is_due = freq > 0 and now - self._last_render >= freq
            self._last_render = now if is_due else self._last_render
            render = force_render or is_due
            stop, monitor, _ = self._evaluate(
                save_ckpt_fn, train_iter, envstep, n_episode, policy_kwargs, render
            )
            info = {
                **monitor.get_episode_info(),
                **monitor.get_means(),
                "eval_episode_return": monitor.get_episode_return(),
                "eval_episode_return_mean": self.last,
            }
            if render:
                tag = f"{self._instance_name}/worst_median_best"
                writer: Any = self._tb_logger  # has the methods of TensorBoard's writer
                writer.add_video(tag, monitor.get_video(), now)
        return self._share(stop, info)


@SERIAL_EVALUATOR_REGISTRY.register("battle_interaction")
class BattleInteractionSerialEvaluator(EpisodeEvaluator):
    """Runs several policies against each other and evaluates policy 0."""

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

        Arguments are those of `InteractionSerialEvaluator.eval`.

        Returns:
            Whether policy 0's mean return reaches ``stop_value`` (never at iteration 0), and for
            each policy the infos of its episodes.
        """
        stop, infos = False, []
        if get_rank() == 0:
            stop, _, tally = self._evaluate(save_ckpt_fn, train_iter, envstep, n_episode)
            infos = [list(own) for own in zip(*(episode.infos for episode in tally.episodes))]
        return self._share(stop, infos)
