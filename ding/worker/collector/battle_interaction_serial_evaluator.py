"""Judges the first of several policies by its return against the others."""

from collections.abc import Callable
from typing import Any

from ding.utils import SERIAL_EVALUATOR_REGISTRY, get_rank
from ding.worker.collector.interaction_serial_evaluator import EpisodeEvaluator


@SERIAL_EVALUATOR_REGISTRY.register("battle_interaction")
class BattleInteractionSerialEvaluator(EpisodeEvaluator):
    """Runs several policies against each other; policy 0 is the one judged."""

    battle = True
    config = dict(eval_freq=50)

    def eval(
        self,
        save_ckpt_fn: Callable | None = None,
        train_iter: int = -1,
        envstep: int = -1,
        n_episode: int | None = None,
    ) -> tuple[bool, list[dict]]:
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
        stop: bool = False
        infos: list[Any] = []
        if get_rank() == 0:
            _, infos, facts = self._run(n_episode, {}, envstep, train_iter)
            stop = self._judge(facts, save_ckpt_fn, train_iter, envstep)
        return self._share((stop, infos))
