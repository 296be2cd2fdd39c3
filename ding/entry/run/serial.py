"""A serial run: its rounds, its display and records, and the reason of its end."""

import math
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from ding.config.defaults import note_first_action
from ding.config.save import save_run_config
from ding.entry.components import (
    Components,
    episode_returns,
    has_schedule,
    keep_configured,
    optimizer_options,
)
from ding.entry.run.folder import EndReport
from ding.entry.run.signals import Interrupt, Stopping, StopSignal
from ding.entry.run.state import (
    SerialStateKeeper,
    load_best_result,
    load_run_state,
    own_states,
    state_path,
)
from ding.entry.run.watch import RunWatch
from ding.utils import broadcast_object_list, durations, get_rank, get_world_size
from ding.utils.callbacks import (
    Callbacks,
    CheckpointSaved,
    Collected,
    EpisodeDone,
    Evaluated,
    RunFinished,
    RunMoment,
    RunStarted,
)
from ding.utils.console import Console
from ding.utils.default_helper import first_goal
from ding.utils.ending import Ending
from ding.utils.errors import CallbackError, ConfigError, EnvError
from ding.utils.run_claims import FolderWatch
from ding.utils.run_log import RunLog
from ding.utils.types import Settings
from ding.utils.usage import UsageMeter
from ding.worker.collector.steps import Samples

#: Number of last distinct warnings that ``run.json`` contains.
_KEPT_WARNINGS = 50


class SerialRun:
    """Decides when a serial run ends, shows its progress, and saves its state.

    Args:
        folder: Of the run's folder, from before its parts were built.
        begin: Called when everything fits, before anything in the run's folder is changed.
        callbacks: Called on rank 0 with what happens; all ranks end when one of them asks for it.
        max_train_iter: Updates after which the run ends; the round that reaches them is finished.
        max_env_step: Environment steps after which it ends, likewise.
        max_own_iter: Updates after which it ends, without those of a checkpoint that it began with.

    Attributes:
        report: The text to print at its end, once it exists.
    """

    def __init__(
        self,
        parts: Components,
        log: RunLog,
        console: Console,
        stop: StopSignal,
        watch: RunWatch,
        folder: FolderWatch,
        begin: Callable[[], None],
        callbacks: Callbacks,
        max_train_iter: float,
        max_env_step: float,
        max_own_iter: float,
    ) -> None:
        self._parts = parts
        self._log = log
        self._console = console
        self._stop = stop
        self._watch = watch
        self._begin = begin
        self._max_train_iter = max_train_iter
        self._max_env_step = max_env_step
        self._max_own_iter = max_own_iter
        self._keeper = SerialStateKeeper(parts, self.warn)
        self._converged = self._has_state = False
        self._usage = UsageMeter()
        self._signal_shown = False
        self._folder = folder
        self._episode_wait: float | None = None  # start of the wait for the first episode
        self._warnings: dict[str, int] = {}
        self._inexact: list[str] = []
        self.report = ""
        self._evaluated_iter = -1
        self._eps: float | None = None
        self._capacity = getattr(parts.replay_buffer, "replay_buffer_size", 0)
        self._callbacks, self._request = callbacks, ""
        parts.collector.on_episode = parts.evaluator.on_episode = self._episode
        if callbacks and not get_rank():
            parts.learner.on_checkpoint = lambda path: self._notify(CheckpointSaved, path=path)
        parts.collector.before_step = partial(self._before_step, durations.COLLECT_GRACE)
        parts.evaluator.before_step = partial(self._before_step, 0.0)

    def train(
        self,
        prepare: Callable[[Components], None],
        one_round: Callable[[Components, "SerialRun"], None],
    ) -> Ending:
        """Evaluate when due, collect and learn, until there is a reason to stop.

        Args:
            prepare: Called before the first round, unless the state of a later round was loaded.
            one_round: One round of collecting and learning.

        Raises:
            EnvError: An environment failed; the learned state is saved.
            CallbackError: A callback raised; the learned state is saved.
        """
        try:
            self._train(prepare, one_round)
            return self._finish()
        except (EnvError, CallbackError) as error:
            self._fail(error)
            raise
        except Exception as error:  # of the policy, whose state may not be worth saving
            self.conclude(_failed_by(error))
            raise

    def _train(
        self,
        prepare: Callable[[Components], None],
        one_round: Callable[[Components, "SerialRun"], None],
    ) -> None:
        parts = self._parts
        try:
            self._watch.enter("train")
            self._start()
            is_first = parts.collector.envstep == 0 or not self._has_state
            if is_first and not self._limit_reached:
                prepare(parts)
            while self._goes_on():
                if parts.evaluator.should_eval(parts.learner.train_iter):
                    self._evaluate()
                if not self._has_reason_to_end:
                    one_round(parts, self)
        except Stopping:
            pass
        except Interrupt as interrupt:
            if interrupt.cause is not None:
                raise interrupt.cause from None
        except EnvError:
            # A signal to the whole process group ends the environments' processes as well.
            if self._stop.number is None:
                raise
        finally:
            self._watch.enter("save")
            self._keeper.close()

    def collect(self, settings: Settings) -> Samples | tuple[list[Samples], object]:
        """Collect for the next update; `settings` are passed to the policy's ``forward``."""
        self._eps = settings.get("eps")
        self._watch.stepping()
        parts = self._parts
        data = parts.collector.collect(train_iter=parts.learner.train_iter, policy_kwargs=settings)
        if parts.reward_model is not None:
            self._watch.updating()
            parts.reward_model.train(parts.learner.train_iter, parts.collector.envstep)
        self._watch.rest()
        # Battles: the samples of each player, and their episodes.
        batches = data[0] if isinstance(data, tuple) else [data]
        self._notify(Collected, sample_count=sum(map(len, batches)))
        return data

    def learn(self, batch: Any) -> None:
        """Train the learner on a batch, with the reward model's rewards, if any."""
        self._stop.check(durations.COLLECT_GRACE)  # a round may have many updates
        self._watch.updating()
        if self._parts.reward_model is not None:
            batch = self._parts.reward_model.drawn(batch)
        self._parts.learner.train(batch, self._parts.collector.envstep)
        self._watch.rest()

    # ------------------------------------------------------------------ start

    def _start(self) -> None:
        """Load the state from which a run resumes; change the folder only if it fits."""
        parts = self._parts
        if not get_rank():
            self._folder.check()
        parts.learner.call_hook("before_run")
        checkpoint = parts.cfg.policy.learn.learner.hook.get("load_ckpt_before_run")
        resumes = parts.cfg.policy.learn.get("resume_training", False)
        normalises = getattr(parts.collector_env, "normalises", False)
        if checkpoint and normalises and parts.policy._get_attribute("env_statistics") is None:
            self.warn(
                "the checkpoint holds no 'env_statistics': environments normalise by new ones, and "
                "the policy acts on other inputs than it has learned from"
            )
        if not resumes:
            parts.first_iter = parts.learner.train_iter
        if not resumes and 0 < self._max_train_iter <= parts.learner.train_iter:
            self.warn(
                f"nothing is trained: the {parts.learner.train_iter} updates of the checkpoint "
                f"count, and the run ends after {self._max_train_iter:.0f}"
            )
        if not has_schedule(parts.policy):
            # A checkpoint with which training starts also contains its learning rate.
            keep_configured(parts.policy, parts.built_options, optimizer_options(parts.policy))
        changed = self._resume(checkpoint) if resumes else []
        self._max_train_iter = min(self._max_train_iter, parts.first_iter + self._max_own_iter)
        self._console.progress.end_at(self._max_train_iter)
        # From here on files are changed: all that may be refused was looked at.
        self._begin()
        if note_first_action(parts.cfg, parts.collector_env) and not get_rank():
            save_run_config(parts.cfg, mode=parts.mode)
        self._log.begin()
        self._note_inexact()
        if changed:
            self.warn(f"changed since the run began: {', '.join(changed)}")
        if resumes:
            self._keeper.start_counting()
            # In one update: this run's rates start at what the earlier run reached.
            self._console.update(
                envstep=parts.collector.envstep,
                train_iter=parts.learner.train_iter,
                best_return=_number(parts.evaluator.best),
            )
            self._console.log(
                f"resumed at iteration {parts.learner.train_iter}, "
                f"environment step {parts.collector.envstep}"
            )
        self._notify(RunStarted, config=parts.cfg)

    def _note_inexact(self) -> None:
        """Warn if a run with this seed, or a resumed one, is not exactly reproducible."""
        parts = self._parts
        env = parts.collector_env
        if not getattr(env, "in_lockstep", True):
            self.warn(
                f"{type(env).__name__} takes the environments' answers in the order in which they "
                f"come: seed {parts.cfg.seed} does not make the same run again; the env manager "
                "'subprocess' does"
            )
        states = env.state_dict().get("envs", ())
        unsaved = [
            env_id
            for env_id, state in enumerate(states)
            if isinstance(state, dict) and state.get("env", state) is None
            if not state["generators"]
        ]
        if unsaved:
            self._inexact.append(
                f"collecting envs {unsaved}: their random generators, if they have any, are "
                "not in the state (no state_dict, and no generator was found)"
            )
            self._log.note(resume_inexact="; ".join(self._inexact))
        self._note_unsaved_attributes()

    def _note_unsaved_attributes(self) -> None:
        """Warn of attributes of custom classes that states do not contain, once each."""
        policy = self._parts.policy
        found: list[tuple[object, list[str]]] = [
            (policy, policy._get_attribute("unsaved_attributes"))
        ]
        for part, own in own_states(self._parts).values():
            own.save(part)
            found.append((part, own.unsaved))
        lines = [
            f"{type(part).__name__}: the attribute {one} is not part of the state"
            for part, unsaved in found
            for one in unsaved
        ]
        for line in lines:
            if line not in self._inexact:
                self._inexact.append(line)
                self.warn(f"{line}: a resumed run begins with a new one")
                self._log.note(resume_inexact="; ".join(self._inexact))

    def _resume(self, checkpoint: object) -> list[str]:
        """Load the run's last state or checkpoint; returns what the config has changed."""
        parts, changed = self._parts, []
        own = os.path.join(os.path.abspath(parts.cfg.exp_name), "ckpt", "")
        is_own = isinstance(checkpoint, str) and os.path.abspath(checkpoint).startswith(own)
        # A checkpoint from elsewhere is where the run once started, unless it has no state.
        if checkpoint and (is_own or not os.path.exists(state_path(parts.cfg.exp_name))):
            if not is_own:
                parts.first_iter = parts.learner.train_iter
            # A policy's checkpoint holds counters, and neither buffer nor random numbers.
            parts.collector.envstep = parts.learner.collector_envstep
        else:
            changed = load_run_state(parts, self._keeper.journal, self.warn)
            self._has_state = True
            other_seed = next((change for change in changed if change.startswith("seed: ")), None)
            if other_seed is not None:
                raise ConfigError(
                    f"{other_seed}: a resumed run continues its own random numbers; "
                    "give it the seed that it has, or start another run"
                )
            # The end must not evaluate the same policy again.
            self._evaluated_iter = parts.evaluator.last_eval_iter
        load_best_result(parts, self.warn)
        return changed

    # ------------------------------------------------------------------ rounds

    def _notify(self, kind: type[RunMoment], **facts: Any) -> None:
        if self._callbacks and not get_rank():
            self._callbacks.notify(kind(*self._now, **facts))

    @property
    def _now(self) -> tuple[str, int, int]:
        parts = self._parts
        return parts.cfg.exp_name, parts.collector.envstep, parts.learner.train_iter

    def _episode(
        self, source: str, env_id: int, returned: float, length: int, env_step: int, train_iter: int
    ) -> None:
        self._episode_wait = float("inf")
        self._log.episode(source, env_id, returned, length, env_step, train_iter)
        if not self._callbacks or get_rank():
            return
        run = self._parts.cfg.exp_name, env_step, train_iter
        self._callbacks.notify(EpisodeDone(*run, source, env_id, float(returned), length))

    def _agree(self) -> None:
        """Read the requests of callbacks; all ranks must call it at the same place."""
        requests = [self._callbacks.request]
        if self._callbacks and get_world_size() > 1:
            # All ranks must leave the loop in the same round: others would wait for gradients
            # forever.
            broadcast_object_list(requests, src=0)
        self._request = requests[0]

    def _goes_on(self) -> bool:
        """Whether another round follows."""
        self._agree()
        ends = self._has_reason_to_end or self._limit_reached
        if not get_rank():
            self._folder.check()
        if ends or self._console.is_due:
            self._show()
        usage = self._usage.read()
        if usage is not None:
            self._log.usage({"": usage}, self._parts.learner.train_iter)
        if not ends and self._keeper.save_if_due():
            self._note_unsaved_attributes()
        return not ends

    def _show(self) -> None:
        parts, buffer = self._parts, self._parts.replay_buffer
        self._console.update(
            envstep=parts.collector.envstep,
            train_iter=parts.learner.train_iter,
            episode_return=getattr(parts.collector, "recent_return", None),
            epsilon=None if self._eps is None else float(self._eps),
            buffer_fill=None if buffer is None else (buffer.count(), self._capacity),
            extra=[f"{name} {value:.4g}" for name, value in parts.learner.own_numbers.items()],
        )

    @property
    def _has_reason_to_end(self) -> bool:
        """Whether the run must end before its limits."""
        return bool(self._converged or self._stop.number or self._request)

    @property
    def _limit_reached(self) -> bool:
        return (
            self._parts.collector.envstep >= self._max_env_step
            or self._parts.learner.train_iter >= self._max_train_iter
        )

    def _evaluate(self) -> None:
        parts = self._parts
        train_iter = parts.learner.train_iter
        best_before = parts.evaluator.best
        self._watch.stepping()
        try:
            converged, info = parts.evaluator.eval(
                self._keeper.save_best, train_iter, parts.collector.envstep
            )
        except BaseException:
            parts.evaluator.put_off()  # a resumed run makes up for it
            raise
        finally:
            self._watch.rest()
        self._converged = bool(converged)
        self._evaluated_iter = train_iter
        last, best = _number(parts.evaluator.last), _number(parts.evaluator.best)
        self._show()
        self._console.update(eval_return=last, best_return=best)
        self._log.note(best_return=best)
        self._notify(
            Evaluated,
            result=parts.evaluator.last,
            returns=tuple(episode_returns(info)),
            # Results may have any type; a better one replaces the best one.
            is_best=parts.evaluator.best is not best_before,
        )
        # Callbacks may have requested the end because of this result: no further round.
        self._agree()

    def _before_step(self, grace: float) -> None:
        """Check for signals; warn once if no episode has ended after a minute of steps."""
        now = time.monotonic()
        if self._episode_wait is None:
            self._episode_wait = now
        elif now - self._episode_wait > durations.WARN_EPISODE:
            self._episode_wait = float("inf")
            self.warn(
                f"no episode has ended for {durations.WARN_EPISODE:.0f} s: if the environments "
                "never end one, set env.max_episode_steps"
            )
        if self._stop.number is not None:
            self._stop.check(grace)
        self._watch.stepping()

    def show_signal(self, name: str) -> None:
        """Show a received signal and its effect."""
        if not self._signal_shown:
            self._signal_shown = True
            self._console.log(f"{name}: saving, then ending")

    def warn(self, text: str) -> None:
        self._log.logger.warning(text)
        self._warnings[text] = self._warnings.get(text, 0) + 1
        lines = [f"{line} ({n} times)" if n > 1 else line for line, n in self._warnings.items()]
        self._log.note(warnings=lines[-_KEPT_WARNINGS:])

    # ------------------------------------------------------------------ the end

    def _finish(self) -> Ending:
        """Save, and record the reason of the end in the run's folder."""
        parts = self._parts
        # Before the last evaluation, which must not be part of a resumed run's state.
        self._keeper.save()
        self._note_unsaved_attributes()
        self._keeper.run_last_hooks()
        problems = [self._keeper.problem]
        if (
            self._limit_reached
            and not self._has_reason_to_end
            and self._evaluated_iter != parts.learner.train_iter
        ):
            self._watch.enter("train")
            try:
                self._evaluate()  # the current policy
            except Stopping:
                pass
            except Interrupt as interrupt:
                if interrupt.cause is not None:
                    problems.append(f"not evaluated: {interrupt.cause}")
            except EnvError:
                if self._stop.number is None:  # as in `_train`
                    raise
        ending = self._verdict()
        ending = ending.because("; ".join([ending.reason, *filter(None, problems)]))
        self.conclude(ending)
        return ending

    def _fail(self, error: EnvError | CallbackError) -> None:
        """Save the learned state, since the failure was not the policy's."""
        self._watch.enter("save")
        self._keeper.save()
        report = self.conclude(_failed_by(error))
        error.printed = self._console.mode != "quiet"
        self._console.close(report)

    def save(self) -> None:
        """Save the state; also called by the watch when the main thread cannot."""
        self._keeper.save()

    def conclude(self, ending: Ending) -> str:
        """Record in the run's folder how the run ended; returns the text to print.

        Afterwards its parts are only closed.
        """
        facts = {
            "best_return": _number(self._parts.evaluator.best),
            "envstep": self._parts.collector.envstep,
            "train_iter": self._parts.learner.train_iter,
        }
        self._log.finish(ending.status, ending.reason, **facts)
        problem = ""
        if self._callbacks and not get_rank():
            moment = RunFinished(*self._now, *ending, facts["best_return"])
            problem = self._callbacks.end(moment)
        if problem:
            ending = ending.because(f"{ending.reason}; {problem}")
            self._log.note(reason=ending.reason)
        parts = self._parts
        limits = {"--train-iter": self._max_train_iter, "--env-step": self._max_env_step}
        is_over = ending.status == "finished" and self._limit_reached
        left = {} if is_over else limits
        options = "".join(f" {name} {value:.0f}" for name, value in left.items() if value < 1e10)
        report = EndReport(parts.cfg.exp_name, parts.cfg.seed, parts.mode, parts.given, options)
        verdict = report.verdict(ending, facts["best_return"])
        self.report = "\n".join([verdict, *report.next_steps(ending)])
        self._watch.enter("close", self.report)
        return self.report

    def _verdict(self) -> Ending:
        parts = self._parts
        if self._converged:
            goal = first_goal(parts.cfg.policy.eval.evaluator.get("stop_value"))
            last = parts.evaluator.last
            if _number(last) is None:
                return Ending("converged", f"{last} reached stop_value {goal}")
            return Ending("converged", f"mean return {last:.4g} reached stop_value {goal:g}")
        if self._stop.ending is not None:
            return self._stop.ending
        if self._request:
            return Ending("finished", self._request)
        if parts.collector.envstep >= self._max_env_step:
            return Ending("finished", f"reached max_env_step {self._max_env_step:.0f}")
        return Ending("finished", f"reached max_train_iter {self._max_train_iter:.0f}")


def _failed_by(error: Exception) -> Ending:
    return Ending("failed", f"{type(error).__name__}: {error}")


def _number(result: object) -> float | None:
    """An evaluation's result if it is a number; a metric may be anything."""
    return float(result) if isinstance(result, int | float) and math.isfinite(result) else None
