"""The centre of a parallel run: it hands out tasks, and data goes through its buffers."""

import contextlib
import logging
import threading
from collections.abc import Mapping
from functools import partial
from typing import cast

from easydict import EasyDict

from ding.envs.running_statistics import Statistics
from ding.utils import deep_merge_dicts, durations
from ding.utils.class_config import class_config
from ding.utils.console import Console
from ding.utils.default_helper import first_goal
from ding.utils.ending import AT_GOAL, Ending
from ding.utils.errors import RunError
from ding.utils.run_log import RunLog
from ding.utils.run_mark import RunMark
from ding.worker.collector.comm.comm_type_samples import samples_of_comm_type
from ding.worker.engines.flask_fs import FlaskFsEngine
from ding.worker.messages import Json, Kind
from ding.worker.replay_buffer.rate_limiter import SampleRatio, sample_ratio
from ding.worker.seams import Engine, Events, TaskFailure

from ._types import Config, StateDict
from .base_parallel_commander import create_parallel_commander
from .chunk_buffer import ChunkBuffer
from .comm_coordinator import CommCoordinator
from .coordinator_state import CoordinatorState
from .guarded_commander import GuardedCommander
from .reported_values import as_count, as_number, error_line, mean_return, one_line
from .run_buffers import RunBuffers
from .run_end import RetryLimit, RunEnd
from .run_facts import RunFacts
from .run_files import BestPolicy, RunFiles
from .run_view import RunStatus, RunView, run_status, write_address
from .task_scheduler import LIVE, TaskScheduler, TaskState, TaskTable

__all__ = ["Coordinator", "TaskState"]

_logger = logging.getLogger(__name__)


class Coordinator(Events):
    """Hands tasks of the commander to workers, and data of collectors to learners.

    Args:
        cfg: Compiled config with ``main`` and ``system``.
        run_log: The run's folder, for scalars and ``run.json``.
        console: The display.
        engine: What carries the run; HTTP and the folders of the config if not given.

    Attributes:
        commander: What decides which tasks there are.
    """

    config: StateDict = dict(
        collector_task_timeout=durations.COLLECTOR_TASK_TIMEOUT,
        learner_task_timeout=durations.LEARNER_TASK_TIMEOUT,
        operator_server=dict(),
        # Seconds between signs of life of a worker, and without any after which it is lost.
        heartbeat_span=durations.HEARTBEAT,
        heartbeat_tolerance=durations.HEARTBEAT_TOLERANCE,
        # Seconds that a worker has for one step of a task, for beginning it, for ending it, and
        # for an update if it is a learner that answers after training only.
        step_timeout=durations.STEP_TIMEOUT,
        start_timeout=durations.START_TIMEOUT,
        close_timeout=durations.CLOSE_TIMEOUT,
        learn_timeout=durations.LEARN_TIMEOUT,
        # Failures in a row without progress after which the run ends.
        max_task_retry=3,
        # Bytes that collected data may take in path_data.
        path_data_limit=2 * 1024**3,
        # How often a sample is drawn on average: a number, 'auto' as in serial mode, or None for as
        # often as the learner can; and by how many samples that may be missed, None: 32 batches.
        samples_per_insert="auto",
        samples_per_insert_tolerance=None,
        # Who keeps the replay buffer: 'coordinator' or 'learner'.
        buffer="coordinator",
        # Seconds between saves of the state.
        save_state_second=durations.COORDINATOR_SAVE_INTERVAL,
    )

    @classmethod
    def default_config(cls) -> EasyDict:
        """Defaults of this class, merged over those of its base classes."""
        return class_config(cls)

    def __init__(
        self,
        cfg: Config,
        *,
        run_log: RunLog | None = None,
        console: Console | None = None,
        engine: Engine | None = None,
    ) -> None:
        self._closed = True  # until everything is there
        self._main = cfg["main"]
        given = cfg["system"]["coordinator"]
        self._cfg = EasyDict(deep_merge_dicts(self.default_config(), dict(given)))
        self._exp_name = str(self._main.get("exp_name", "default_experiment"))
        self._resume = given.get("resume", cfg.get("resume_coordinator"))
        self._run_log = run_log
        self._view = RunView(console, _logger)
        self.commander = create_parallel_commander(self._main)
        if run_log is not None:
            self.commander.tb_logger = run_log.writer
        self._commander = GuardedCommander(self.commander, lambda cause: self.stop(cause, "failed"))
        self._wake, self._end = threading.Event(), RunEnd()
        system = {**cfg["system"], "coordinator": self._cfg}
        marks: Mapping[str, RunMark] = {}
        if engine is None:
            engine = folders = FlaskFsEngine(system, self._exp_name)
            marks = folders.marks
        self._files = RunFiles(engine.weights, marks, self._notify)
        self._buffers = RunBuffers(
            samples_of_comm_type(cfg["system"]) or engine.samples,
            int(self._cfg.path_data_limit),
            self._exp_name,
            None if run_log is None else run_log.writer,
            self._sample_ratio(),
            at_learner=self._cfg.buffer == "learner",
        )
        self._table, self._facts = TaskTable(), RunFacts()
        self._retries = RetryLimit(int(self._cfg.max_task_retry))
        self._best = BestPolicy(engine.artifacts, engine.weights)
        self._state = CoordinatorState(
            self._exp_name, self._main, float(self._cfg.save_state_second), self._notify
        )
        self._comm = CommCoordinator(
            {"main": self._main, "system": system},
            self,
            _logger,
            status=self.status,
            control=engine.control,
        )
        self._scheduler = TaskScheduler(
            self._commander,
            lambda: self._end.verdict is not None,
            self._comm,
            self._table,
            self._buffers,
            self._files,
            self._exp_name,
            {
                "collector": float(self._cfg.collector_task_timeout),
                "learner": float(self._cfg.learner_task_timeout),
            },
            self._notify,
        )
        self._loop_thread: threading.Thread | None = None
        self._address_file: str | None = None
        self._closed = False

    def _sample_ratio(self) -> SampleRatio | None:
        cfg = self._cfg
        given = cfg.samples_per_insert, cfg.samples_per_insert_tolerance
        ratio = sample_ratio(self._main.get("policy", {}), *given)
        if ratio is not None:
            text = "%.4g samples are drawn for each one that is collected (%s), within %.0f samples"
            _logger.info(text, ratio.samples_per_insert, ratio.origin, ratio.tolerance)
        return ratio

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Listen and begin to hand out tasks; does not wait.

        Raises:
            PortTakenError: Another program listens on the port.
            CheckpointError: The state to go on from cannot be read.
        """
        try:
            saved = self._state.load(self._resume)
            if saved is not None:
                self.load_state_dict(saved)
            self._comm.start()
            if self._comm.address is not None:
                self._address_file = write_address(self._exp_name, self._comm.address)
            loop = threading.Thread(target=self._run, name="coordinator", daemon=True)
            loop.start()
        except BaseException as err:
            self.stop(f"the coordinator could not start: {error_line(err)}", "failed")
            raise
        self._loop_thread = loop

    @property
    def address(self) -> tuple[str, int]:
        """Host and port where it listens, once it was started.

        Raises:
            RunError: The engine that carries the run does not listen.
        """
        address = self._comm.address
        if address is None:
            raise RunError("this coordinator does not listen anywhere: its engine is not by HTTP")
        return address

    @property
    def port(self) -> int:
        """Where it listens, once it was started."""
        return self.address[1]

    @property
    def verdict(self) -> Ending | None:
        """How the run ended, if it has."""
        return self._end.verdict

    @property
    def system_shutdown_flag(self) -> bool:
        """Whether the run is over."""
        return self._end.verdict is not None

    def wait(self, timeout: float | None = None) -> Ending | None:
        """How the run ended, ``None`` if it has not within so many seconds."""
        return self._end.wait(timeout)

    def stop(self, reason: str, status: str = "interrupted") -> None:
        """End the run; does not wait. The first reason counts."""
        self._end.give(status, one_line(reason))
        self._wake.set()

    def close(self) -> None:
        """End the run, let the workers go, and remove data and weights files."""
        if self._closed:
            return
        self._closed = True
        self.stop("the coordinator was closed")
        with contextlib.ExitStack() as last:  # whatever goes wrong before
            last.callback(self._remove_files)
            last.callback(self._comm.close)
            # Before that: workers that are let go look there for the reason.
            last.callback(self._note_end)
            if self._loop_thread is not None:
                self._loop_thread.join(durations.LOOP_CLOSE)
                self._keep_state()
                self._comm.close_tasks(durations.LOOP_CLOSE)
            self._view.draw(self.status, at_end=True)

    def _note_end(self) -> None:
        if self._run_log is not None and self._end.verdict is not None:
            ending = self._end.verdict
            self._run_log.finish(ending.status, ending.reason, **self._facts.summary())

    def _keep_state(self) -> None:
        if self._at_goal:
            self._files.remove(self._state.path, self._state.remove)
        else:
            # Without buffers: the end removes the files that they refer to.
            self._state.save(lambda: {**self.state_dict(), "buffers": {}})

    def __del__(self) -> None:
        # The run is told to end; letting workers go and joining threads is for `close`.
        with contextlib.suppress(Exception):
            if not self._closed:
                self.stop("the coordinator was deleted")

    def _remove_files(self) -> None:
        self._buffers.close()
        self._files.remove_weights(
            self._scheduler.policy_ids.union(self._commander.weights_names())
        )
        if self._at_goal:
            self._files.remove_paths(self._scheduler.state_paths)
        if self._address_file is not None:
            self._files.remove_paths([self._address_file])

    @property
    def _at_goal(self) -> bool:
        """Whether there is nothing to go on with."""
        return self._end.verdict is not None and self._end.verdict.status in AT_GOAL

    # ------------------------------------------------------------------ the loop

    def _run(self) -> None:
        try:
            while self._end.verdict is None:
                self._scheduler.schedule()
                self._files.note("weights", self._commander.weights_names())
                self._state.save_if_due(self.state_dict)
                self._view.draw(self.status)
                self._wake.wait(durations.COORDINATOR_TICK)
                self._wake.clear()
        except BaseException as err:  # whatever it was: nobody else hands out tasks
            self.stop(f"the coordinator failed: {error_line(err)}", "failed")
            _logger.exception("the coordinator failed")
        self._comm.close_tasks(0.0)

    # ------------------------------------------------------------------ collectors

    def deal_with_collector_send_data(
        self, task_id: str, buffer_id: str, data_id: str, data: Mapping[str, Json]
    ) -> None:
        """Take in the metadata of what a collector has written."""
        state = self._known(task_id, "collector")
        buffer = self._buffers.get(buffer_id)
        if state is None or buffer is None or state.stage not in LIVE:
            _logger.debug("data %s of task %s has no buffer", data_id, task_id)
            self._files.remove(f"data {data_id}", partial(self._buffers.discard, data_id))
            return
        samples = as_count(data.get("sample_num", 1))
        envstep = self._count_steps(state, data)
        meta = {name: value for name, value in data.items() if name != "env_statistics"}
        buffer.push({**meta, "data_id": data_id}, envstep)
        self._facts.collected(state.worker, samples, as_count(data.get("size")))
        if "env_statistics" in data:
            problem = self._facts.observed(data["env_statistics"])
            if problem is not None:
                self._notify(problem)
        if "policy_iter" in data:
            for policy_id in state.weights_names:
                self._facts.used(policy_id, data["policy_iter"])
        self._retries.progress("collector")

    def deal_with_collector_judge_finish(self, task_id: str, data: Mapping[str, Json]) -> bool:
        """Whether a collector's task shall be closed, by the progress that it tells; an unknown
        one is left alone."""
        if self._known(task_id, "collector") is None:
            return False
        return self._commander.is_collector_done(task_id, data)

    def deal_with_collector_finish_task(
        self, task_id: str, finished_task: Mapping[str, Json]
    ) -> None:
        """Take in a collector's report."""
        state = self._known(task_id, "collector")
        if state is None or not self._done(state):
            return
        with self._commander.lock:
            is_best = self._facts.finished(task_id, state.is_eval, finished_task)
            converged = self._commander.collector_finished(task_id, finished_task)
        if as_count(finished_task.get("real_episode_count")):
            self._retries.progress("evaluation" if state.is_eval else "collector")
        problem = self._best.take(finished_task, state.is_eval and is_best)
        if problem is not None:
            self._notify(problem)
        self._write_episodes(state, finished_task)
        reward = mean_return(finished_task, state.is_eval)
        if state.is_eval and reward is not None:
            self._view.evaluated(reward)
        if converged:
            reason = self._commander.converged_reason
            self.stop(reason or f"the commander says so after task {task_id}", "converged")
        self._stop_at_goal()

    def _write_episodes(self, state: TaskState, info: Mapping[str, Json]) -> None:
        if self._run_log is None:
            return
        counts = self._facts.envstep, self._facts.train_iter
        source = f"{state.worker}_eval" if state.is_eval else str(state.worker)
        told = info.get("episode_info")
        for entry in told if isinstance(told, list) else []:
            if isinstance(entry, list) and len(entry) == 3 and None not in map(as_number, entry):
                env_id, episode_return, length = cast("list[int]", entry)
                self._run_log.episode(source, env_id, episode_return, length, *counts)

    def collector_progress(self, task_id: str, info: Mapping[str, Json]) -> None:
        state = self._table.get(task_id, "collector")
        if state is None or state.stage not in LIVE:
            return
        self._count_steps(state, info)

    def _count_steps(self, state: TaskState, info: Mapping[str, Json]) -> int:
        """Count the env steps of a collector's task, in two books at once; returns the run's."""
        with self._commander.lock:
            self._commander.collector_progress(state.task_id, info)
            if state.is_eval:
                return self._facts.envstep
            return self._facts.stepped(state.task_id, info.get("cur_step"))

    # ------------------------------------------------------------------ learners

    def deal_with_learner_get_data(
        self, task_id: str, buffer_id: str, batch_size: int, cur_learner_iter: int
    ) -> list[dict[str, Json]] | None:
        """Metadata of a batch, one dict for each sample; ``None`` if there is none yet.

        Raises:
            RunError: There is no such task; as for all that learners do.
        """
        self._learner_task(task_id)
        buffer = self._buffers.get(buffer_id)
        if buffer is None:
            return None
        return buffer.sample_rows(batch_size, cur_learner_iter)

    def deal_with_learner_send_info(
        self, task_id: str, buffer_id: str, info: Mapping[str, Json]
    ) -> None:
        """Take in what a learner tells of its training."""
        state = self._learner_task(task_id)
        buffer = self._buffers.get(buffer_id)
        if buffer is not None:
            # Learners tell of priorities whether or not the config wants them to be used.
            priorities = info.get("priority_info")
            if isinstance(priorities, Mapping) and state.has_priorities:
                buffer.update(priorities)
            for data_id, cause in cast("list[list[str]]", info.get("bad_chunks") or []):
                count = buffer.drop_chunk(data_id, cause)
                self._notify(f"{state.worker}: {count} samples of {data_id} were dropped: {cause}")
        for warning in cast("list[str]", info.get("warnings") or []):
            self.warn(str(state.worker), warning)
        trouble = self._facts.note_trouble(str(state.worker), info.get("trouble"))
        if trouble is not None:
            self.warn(str(state.worker), trouble)
        step = self._facts.trained(state.policy_id, info)
        self._retries.trained(step)
        self._commander.learner_progress(task_id, info)

    def deal_with_learner_judge_finish(self, task_id: str, info: Mapping[str, Json]) -> bool:
        """Whether a learner's task shall be closed, by what it tells."""
        self._learner_task(task_id)
        return self._commander.is_learner_done(task_id, info)

    def deal_with_learner_finish_task(
        self, task_id: str, finished_task: Mapping[str, Json]
    ) -> None:
        """Take in a learner's report, and close its buffer."""
        state = self._learner_task(task_id)
        if not self._done(state):
            return
        unused = self._commander.learner_finished(task_id, finished_task)
        self._stop_at_goal()
        buffer_id = unused or state.buffer_id
        used = any(other.buffer_id == buffer_id for other in self._table.live("learner"))
        if buffer_id and not used and self._end.verdict is None:
            self._buffers.close(buffer_id)

    def envstep(self) -> int:
        return self._facts.envstep

    def env_statistics(self) -> Statistics:
        return self._facts.env_statistics

    def learner_buffer(self, buffer_id: str | None) -> ChunkBuffer | None:
        return self._buffers.get(buffer_id)

    # ------------------------------------------------------------------ workers

    def deal_with_increase_collector(self) -> None:
        """There is a collector more than the config has."""
        self._commander.collector_came()
        self._wake.set()

    def deal_with_decrease_collector(self) -> None:
        """One of the collectors beyond those of the config has left."""
        self._commander.collector_left()

    def task_running(self, task_id: str, worker: str) -> None:
        state = self._table.get(task_id)
        if self._table.move(task_id, "running", worker) and state is not None:
            self._view.given(state.kind, worker)

    def task_closing(self, task_id: str) -> None:
        self._table.move(task_id, "closing")

    def task_failed(self, failure: TaskFailure) -> None:
        state = self._table.get(failure.task_id or "")
        if state is None or not self._table.move(
            state.task_id, "failed", failure.worker, failure.cause
        ):
            return
        self._facts.forget(state.task_id)
        if self._end.verdict is None:
            group = "evaluation" if state.is_eval else state.kind
            self._facts.failed(failure)
            self._view.failed(state.kind, failure)
            reason = self._retries.failed(group, failure)
            if reason is not None:
                self.stop(self._facts.with_root(reason), "failed")
        self._scheduler.give_back(state, failure.cause)
        self._wake.set()

    def failed_worker(self, failure: TaskFailure) -> None:
        if self._end.verdict is None:
            self._facts.failed(failure)
            self._view.failed("worker", failure)

    def warn(self, worker: str, text: str) -> None:
        self._notify(f"{worker}: {text}")

    def fatal(self, cause: str) -> None:
        self.stop(cause, "failed")

    def workers_changed(self) -> None:
        self._wake.set()

    def worker_left(self, worker: str) -> None:
        self._facts.forget_worker(worker)
        self._buffers.forget_worker(worker)

    # ------------------------------------------------------------------ small things

    def _known(self, task_id: str, kind: Kind) -> TaskState | None:
        state = self._table.get(task_id, kind)
        if state is None:
            self.error(f"there is no {kind} task {task_id!r}")
        return state

    def _learner_task(self, task_id: str) -> TaskState:
        """A learner's task.

        Raises:
            RunError: There is none of that id.
        """
        state = self._table.get(task_id, "learner")
        if state is None:
            raise RunError(
                f"there is no learner task {task_id!r}; expected one that this coordinator has "
                "handed out"
            )
        return state

    def _done(self, state: TaskState) -> bool:
        """Whether a task that has been reported done was open."""
        self._table.move(state.task_id, "closing")
        done = self._table.move(state.task_id, "done")
        self._wake.set()
        return done

    def _stop_at_goal(self) -> None:
        """End the run if the commander says that it has come to a good end."""
        if self._commander.converged_reason is not None:
            self.stop(self._commander.converged_reason, "converged")
        elif self._commander.finished_reason is not None:
            self.stop(self._commander.finished_reason, "finished")

    def worker_ended(self, name: str, cause: str) -> None:
        """Whoever started a worker's process has seen its end: its task is free at once."""
        if not self._comm.worker_ended(name, cause):
            self.error(f"{name} {cause}")

    def info(self, s: str) -> None:
        """Show a line to the operator."""
        self._view.log(s)

    def error(self, s: str) -> None:
        """Show a line of something that went wrong."""
        self._view.log(s, warning=True)

    def _notify(self, text: str) -> None:
        self._view.log(text, warning=True)

    # ------------------------------------------------------------------ state

    def status(self) -> RunStatus:
        """The facts that ``GET /status`` gives."""
        return run_status(
            self._exp_name,
            self._end.verdict,
            as_number(first_goal(self._main.get("env", {}).get("stop_value"))),
            self._facts,
            self._table,
            self._comm,
            self._buffers.all(),
        )

    def state_dict(self) -> StateDict:
        """What another coordinator needs to go on: buffers, tasks and counters."""
        with self._commander.lock:
            counted = {
                "commander": self._commander.state_dict(),
                "facts": self._facts.state_dict(),
            }
        return {
            **counted,
            "tasks": self._table.state_dict(),
            "policy_ids": sorted(self._scheduler.policy_ids),
            "buffers": self._buffers.state_dict(),
        }

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Go on from a `state_dict`; the commander hands its open tasks out again.

        An empty one changes nothing.
        """
        if not state_dict:
            return
        self._commander.load_state_dict(state_dict["commander"])
        self._table.load_state_dict(state_dict["tasks"])
        self._facts.load_state_dict(state_dict["facts"])
        self._scheduler.policy_ids.update(state_dict["policy_ids"])
        self._files.note("weights", state_dict["policy_ids"])
        self._files.note("buffers", state_dict["buffers"])
        for line in self._buffers.load_state_dict(state_dict["buffers"]):
            self._notify(line)
