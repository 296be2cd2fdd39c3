"""Judges one policy by its return in environments."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ding.envs import BaseEnvManager
from ding.utils import SERIAL_EVALUATOR_REGISTRY, get_rank
from ding.utils.errors import ConfigError
from ding.worker.collector._env_use import EnvUse
from ding.worker.collector.eval_rollout import EvalRollout
from ding.worker.collector.run_statistics import freeze_statistics
from ding.worker.collector.serial_evaluator import SerialEvaluator
from ding.worker.collector.vector_eval_monitor import VectorEvalMonitor


class EpisodeEvaluator(SerialEvaluator):
    """Runs a fair share of whole episodes in each environment and judges the mean return."""

    battle = False

    def reset_env(self, _env: BaseEnvManager | None = None) -> None:
        """Reset the environments, or replace and launch them."""
        if _env is not None:
            self._env, self._env_use = _env, EnvUse(_env)
            if _env.closed:
                _env.launch()
                return
        self._env.reset()

    def reset_policy(self, _policy: Any = None) -> None:
        """Reset the policy, or replace it."""
        if _policy is not None:
            self._policy = list(_policy) if self.battle else [_policy]
        for policy in self._policy or ():
            policy.reset()

    def _run(
        self,
        n_episode: int | None,
        policy_kwargs: dict[str, Any],
        envstep: int,
        train_iter: int,
        render: bool = False,
    ) -> tuple[VectorEvalMonitor, list[list[dict[str, Any]]], dict[str, float]]:
        """Run the episodes; the first player's returns are the ones that count."""
        self._require()
        n_episode = n_episode if n_episode is not None else self._default_n_episode
        if n_episode is None:
            raise ConfigError("set env.n_evaluator_episode (or pass n_episode to eval())")
        start, envsteps = time.perf_counter(), 0
        env_num = self._env.env_num
        monitor = VectorEvalMonitor(env_num, n_episode)
        infos: list[list[dict[str, Any]]] = [[] for _ in self._policy]
        if hasattr(self._env, "number_starts"):
            self._env.number_starts()
        freeze_statistics(self._env, self._policy)
        self._env.reset()
        self.reset_policy()
        rollout = EvalRollout(self._env, self._policy, self.battle)
        active = np.ones(env_num, bool)
        while not monitor.is_finished():
            if self.before_step is not None:
                self.before_step()
            if render:
                monitor.update_video(self._env.ready_imgs)
            steps, ended = rollout.step(active, [policy_kwargs] * len(self._policy))
            envsteps += steps
            for env_id, player_infos in ended.items():
                self._before_record(env_id)
                returned, length = (
                    player_infos[0]["eval_episode_return"],
                    rollout.take_length(env_id),
                )
                if self.on_episode is not None:
                    self.on_episode(
                        *(self._instance_name or "evaluator", env_id, float(returned), length),
                        *(envstep, train_iter),
                    )
                monitor.update_info(env_id, player_infos[0])
                monitor.update_reward(env_id, returned)
                for player, info in enumerate(player_infos):
                    infos[player].append(info)
                active[env_id] = not monitor.env_is_finished(env_id)
        return monitor, infos, _facts(monitor, envsteps, time.perf_counter() - start)

    def _before_record(self, env_id: int) -> None:
        """Called when an episode of ``env_id`` has ended."""

    def _judge(
        self,
        facts: dict[str, float],
        save_ckpt_fn: Callable[[str], Any] | None,
        train_iter: int,
        envstep: int,
    ) -> bool:
        self._log({"train_iter": train_iter, **facts}, train_iter, envstep)
        mean = facts["reward_mean"]
        # NaN is no result that another one could be better than.
        is_best = mean == mean and (self._best is None or mean > self._best)
        self._keep_best(mean, is_best, save_ckpt_fn)
        stop = mean >= self._stop_value and train_iter > 0
        if stop and self._logger is not None:
            self._logger.info(
                "mean return %.4g has reached stop_value %.4g: converged", mean, self._stop_value
            )
        return bool(stop)


def _facts(monitor: VectorEvalMonitor, envsteps: int, duration: float) -> dict[str, float]:
    returns = monitor.get_episode_return()
    duration = max(duration, 1e-9)
    return {
        "episode_count": len(returns),
        "envstep_count": envsteps,
        "avg_envstep_per_episode": envsteps / len(returns),
        "evaluate_time": duration,
        "avg_envstep_per_sec": envsteps / duration,
        "avg_time_per_episode": duration / len(returns),
        "reward_mean": float(np.mean(returns)),
        "reward_std": float(np.std(returns)),
        "reward_max": float(np.max(returns)),
        "reward_min": float(np.min(returns)),
    }


@SERIAL_EVALUATOR_REGISTRY.register("interaction")
class InteractionSerialEvaluator(EpisodeEvaluator):
    """Judges one policy by its mean return over ``n_episode`` episodes."""

    config = dict(
        eval_freq=1000,
        render=dict(render_freq=-1, mode="train_iter"),
        figure_path=None,
    )

    def __init__(
        self,
        cfg: dict,
        env: BaseEnvManager | None = None,
        policy: Any = None,
        tb_logger: Any = None,
        exp_name: str | None = "default_experiment",
        instance_name: str | None = "evaluator",
    ) -> None:
        self._last_render = 0
        super().__init__(cfg, env, policy, tb_logger, exp_name, instance_name)

    def eval(
        self,
        save_ckpt_fn: Callable | None = None,
        train_iter: int = -1,
        envstep: int = -1,
        n_episode: int | None = None,
        force_render: bool = False,
        policy_kwargs: dict | None = {},
    ) -> tuple[bool, dict[str, Any]]:
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
            monitor, _, facts = self._run(
                n_episode, policy_kwargs or {}, envstep, train_iter, render
            )
            stop = self._judge(facts, save_ckpt_fn, train_iter, envstep)
            info = {
                **monitor.get_episode_info(),
                **monitor.get_means(),
                "eval_episode_return": monitor.get_episode_return(),
                "eval_episode_return_mean": facts["reward_mean"],
            }
            if render:
                self._log_video(monitor, envstep, train_iter)
        return self._share((stop, info))

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
        self._tb_logger.add_video(
            f"{self._instance_name}/worst_median_best", monitor.get_video(), step
        )
