"""What stands around a training loop: run folder, console, signals, and the reason of its end."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

from easydict import EasyDict

from ding.entry.components import Components
from ding.entry.run_state import load_run_state, save_run_state, state_path
from ding.utils import get_rank
from ding.utils.console import Console
from ding.utils.run_log import RunLog

_SIGNALS = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}


class TrainingRun:
    """Knows when to stop, shows how it goes, and keeps what resuming needs.

    The loop of a pipeline asks :meth:`goes_on` once for each round of collecting and learning,
    and calls :meth:`evaluate` when the evaluator wants to.

    Args:
        parts: What is trained.
        log: The run folder.
        console: The display.
        max_train_iter: Updates after which the run ends.
        max_env_step: Environment steps after which it ends.
    """

    def __init__(
        self,
        parts: Components,
        log: RunLog,
        console: Console,
        max_train_iter: float,
        max_env_step: float,
    ) -> None:
        self._parts = parts
        self._log = log
        self._console = console
        self._max_train_iter = max_train_iter
        self._max_env_step = max_env_step
        self._signal: int | None = None
        self._converged = False
        hook = parts.cfg.policy.learn.learner.hook
        self._save_freq = hook.get("save_ckpt_after_iter") or float("inf")
        self._saved_at = 0
        parts.collector.on_episode = log.episode

    def start(self) -> None:
        """Load what is to be gone on from."""
        parts = self._parts
        learn = parts.cfg.policy.learn
        parts.learner.call_hook("before_run")
        if not learn.get("resume_training", False):
            return
        if learn.learner.hook.get("load_ckpt_before_run"):
            # A policy's checkpoint holds counters; buffer and RNG begin anew.
            parts.collector.envstep = parts.learner.collector_envstep
        else:
            load_run_state(parts)
        self._saved_at = parts.learner.train_iter
        self._console.log(
            f"resumed at iteration {parts.learner.train_iter}, "
            f"environment step {parts.collector.envstep}"
        )

    def goes_on(self) -> bool:
        """Whether there is to be another round."""
        parts = self._parts
        self._show()
        if parts.learner.train_iter - self._saved_at >= self._save_freq:
            self.save()
        return not (
            self._converged
            or self._signal is not None
            or parts.collector.envstep >= self._max_env_step
            or parts.learner.train_iter >= self._max_train_iter
        )

    def evaluate_if_due(self) -> None:
        """Evaluate if the evaluator wants to; remembers whether the goal was reached."""
        parts = self._parts
        if not parts.evaluator.should_eval(parts.learner.train_iter):
            return
        self._converged, info = parts.evaluator.eval(
            parts.learner.save_checkpoint, parts.learner.train_iter, parts.collector.envstep
        )
        self._console.update(eval_return=parts.evaluator.last, best_return=parts.evaluator.best)
        self._log.note(best_return=parts.evaluator.best)

    @property
    def stopped(self) -> bool:
        """Whether the goal was reached or a signal came."""
        return self._converged or self._signal is not None

    def show_exploration(self, settings: dict[str, Any]) -> None:
        """Show the ε that the collector uses."""
        if "eps" in settings:
            self._console.update(epsilon=float(settings["eps"]))

    def _show(self) -> None:
        parts = self._parts
        buffer = parts.replay_buffer
        self._console.update(
            envstep=parts.collector.envstep,
            train_iter=parts.learner.train_iter,
            episode_return=getattr(parts.collector, "recent_return", None),
            buffer_fill=None if buffer is None else (buffer.count(), buffer.replay_buffer_size),
        )

    def save(self) -> None:
        """Save all that resuming needs."""
        if get_rank() == 0:
            save_run_state(self._parts)
        self._saved_at = self._parts.learner.train_iter

    def finish(self) -> str:
        """Save, note the reason of the end in the run folder and return the closing words."""
        parts = self._parts
        self.save()
        parts.learner.call_hook("after_run")
        status, reason = self._verdict()
        best = parts.evaluator.best
        self._log.finish(
            status,
            reason,
            best_return=best,
            envstep=parts.collector.envstep,
            train_iter=parts.learner.train_iter,
        )
        return _closing_words(parts.cfg, status, reason, best)

    def _verdict(self) -> tuple[str, str]:
        parts = self._parts
        if self._converged:
            goal = parts.cfg.policy.eval.evaluator.get("stop_value")
            return (
                "converged",
                f"mean return {parts.evaluator.last:.4g} reached stop_value {goal:g}",
            )
        if self._signal is not None:
            return "interrupted", _SIGNALS[signal.Signals(self._signal)]
        if parts.collector.envstep >= self._max_env_step:
            return "finished", f"reached max_env_step {self._max_env_step:g}"
        return "finished", f"reached max_train_iter {self._max_train_iter:g}"

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """End the loop at the next round when SIGINT or SIGTERM comes; at once at the second."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in _SIGNALS}

        def on_signal(number: int, frame: Any) -> None:
            if self._signal is not None:
                raise KeyboardInterrupt
            self._signal = number
            self._console.log(
                f"{_SIGNALS[signal.Signals(number)]}: saving after this round "
                "(once more to stop at once)"
            )

        for number in _SIGNALS:
            signal.signal(number, on_signal)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def exit_if_interrupted(self) -> None:
        """End the process with the status that the signal's name stands for.

        Raises:
            SystemExit: A signal ended the loop.
        """
        if self._signal is not None and not self._converged:
            raise SystemExit(128 + self._signal)


def _closing_words(cfg: EasyDict, status: str, reason: str, best: Any) -> str:
    exp = cfg.exp_name
    config = os.path.join(exp, "formatted_total_config.py")
    best_ckpt = os.path.join(exp, "ckpt", "ckpt_best.pth.tar")
    lines = [
        f"{status}: {reason}" + ("" if best is None else f"; best mean return {best:.4g}"),
        f"  run folder  {exp}",
    ]
    if os.path.exists(best_ckpt):
        lines.append(f"  evaluate    ding -m eval -c {config} --load-path {best_ckpt}")
    if status != "converged" and os.path.exists(state_path(exp)):
        mode = "serial_onpolicy" if cfg.policy.on_policy else "serial"
        lines.append(f"  go on       ding -m {mode} -c {config} --resume")
    lines.append(f"  curves      tensorboard --logdir {exp}")
    return "\n".join(lines)
