"""The centre of a parallel run: it hands out tasks, and data goes through its buffers."""

import contextlib
import logging
import threading
from functools import partial

from easydict import EasyDict

from ding.interaction.base.network import joined
from ding.utils import deep_merge_dicts, durations
from ding.utils.callbacks import Callbacks, RunStarted
from ding.utils.class_config import Configurable
from ding.utils.console import Console
from ding.utils.default_helper import first_goal
from ding.utils.ending import AT_GOAL, Ending
from ding.utils.errors import RunError
from ding.utils.run_log import RunLog
from ding.worker.collector.comm.base_comm_collector import samples_of_comm_type
from ding.worker.engines.flask_fs import flask_fs_engine
from ding.worker.messages import Kind
from ding.worker.replay_buffer.rate_limiter import SampleRatio, sample_ratio
from ding.worker.seams import Engine, SampleStore

from ._types import Config, StateDict
from .base_parallel_commander import create_parallel_commander
from .buffer_pace import SpaceQuota
from .chunk_buffer import ChunkBuffer
from .comm_coordinator import CommCoordinator
from .coordinator_state import CoordinatorState
from .reported_values import as_number, error_line
from .run import Run
from .run_buffers import RunBuffers
from .run_events import RunEvents
from .run_files import RunFiles
from .run_status import RunStatus, run_status
from .run_view import RunView, write_address
from .task_scheduler import TaskScheduler
from .task_table import TaskState
from .turn import Turn, in_turn

__all__ = ["Coordinator", "TaskState"]

_logger = logging.getLogger(__name__)


class Coordinator(RunEvents, Configurable):
    """Hands tasks of the commander to workers, and data of collectors to learners.

    Args:
        cfg: Compiled config with ``main`` and ``system``.
        run_log: The run's folder, for scalars and ``run.json``.
        console: The display.
        engine: What carries the run; HTTP and the folders of the config if not given.
        callbacks: Are told what the run does, and may end it.

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
        # Seconds between saves of the state.
        save_state_second=durations.COORDINATOR_SAVE_INTERVAL,
    )

    def __init__(
        self,
        cfg: Config,
        *,
        run_log: RunLog | None = None,
        console: Console | None = None,
        engine: Engine | None = None,
        callbacks: Callbacks | None = None,
    ) -> None:
        self._closed = True  # until everything is there
        self._main = cfg["main"]
        given = cfg["system"]["coordinator"]
        self._cfg = EasyDict(deep_merge_dicts(self.default_config(), dict(given)))
        self._resume = given.get("resume", cfg.get("resume_coordinator"))
        self._exp_name = str(self._main.get("exp_name", "default_experiment"))
        commander, view = create_parallel_commander(self._main), RunView(console, _logger)
        run = Run(self._exp_name, commander, view, callbacks or Callbacks(), run_log)
        system = {**cfg["system"], "coordinator": self._cfg}
        if engine is None:
            engine = flask_fs_engine(system, self._exp_name, cfg["main"].get("seed", 0))
        buffers = self._make_buffers(
            samples_of_comm_type(cfg["system"]) or engine.samples,
            None if run_log is None else run_log.writer,
            run.turn,
        )
        files = RunFiles(engine.artifacts, engine.weights, engine.marks, run.warn)
        super().__init__(run, buffers, files, int(self._cfg.max_task_retry))
        self._state = CoordinatorState(
            self._exp_name, self._main, float(self._cfg.save_state_second), run.warn
        )
        self._comm = CommCoordinator(
            {"main": self._main, "system": system},
            self,
            _logger,
            status=self.status,
            control=engine.control,
            turn=run.turn,
        )
        limits: dict[Kind, float] = {
            "collector": float(self._cfg.collector_task_timeout),
            "learner": float(self._cfg.learner_task_timeout),
        }
        self._scheduler = TaskScheduler(run, buffers, files, limits)
        self._loop_thread: threading.Thread | None = None
        self._address_file: str | None = None
        self._closed = False

    def _make_buffers(self, store: SampleStore | None, writer: object, turn: Turn) -> RunBuffers:
        make = partial(
            ChunkBuffer,
            store=store,
            space=SpaceQuota(int(self._cfg.path_data_limit)),
            exp_name=self._exp_name,
            tb_logger=writer,
            ratio=self._sample_ratio(),
            turn=turn,
        )
        return RunBuffers(make, store)

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
                self._run.view.log(f"the run's page is http://{joined(*self._comm.address)}/")
            self._run.tell(RunStarted, config=self._main)
            loop = threading.Thread(target=self._loop, name="coordinator", daemon=True)
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

    def stop(self, reason: str, status: str = "interrupted") -> None:
        """End the run; does not wait. The first reason counts."""
        self._run.stop(reason, status)

    def info(self, s: str) -> None:
        """Show a line to the operator."""
        self._run.view.log(s)

    def error(self, s: str) -> None:
        """Show a line of something that went wrong."""
        self._run.warn(s)

    @property
    def verdict(self) -> Ending | None:
        """How the run ended, if it has."""
        return self._run.verdict

    @property
    def system_shutdown_flag(self) -> bool:
        """Whether the run is over."""
        return self._run.verdict is not None

    def wait(self, timeout: float | None = None) -> Ending | None:
        """How the run ended, ``None`` if it has not within so many seconds."""
        return self._run.wait(timeout)

    def close(self) -> None:
        """End the run, let the workers go, and remove data and weights files."""
        if self._closed:
            return
        self._closed = True
        self.stop("the coordinator was closed")
        with contextlib.ExitStack() as last:  # whatever goes wrong before
            last.callback(self._tell_end)
            last.callback(self._remove_files)
            last.callback(self._comm.close)
            # Before that: workers that are let go look there for the reason.
            last.callback(self._note_end)
            if self._loop_thread is not None:
                self._loop_thread.join(durations.LOOP_CLOSE)
                self._close_tasks()
            self._run.view.draw(self.status, at_end=True)

    def _note_end(self) -> None:
        if self._run.log is not None and self._run.verdict is not None:
            ending = self._run.verdict
            self._run.log.finish(ending.status, ending.reason, **self._run.facts.summary())

    def _tell_end(self) -> None:
        assert self._run.verdict is not None
        problem = self._run.tell_end(self._run.verdict)
        if problem:
            self.error(problem)
            if self._run.log is not None:
                self._run.log.note(reason=f"{self._run.verdict.reason}; {problem}")

    def _close_tasks(self) -> None:
        """Let the tasks end, and keep what is to be gone on from."""
        if self._at_goal:
            self._files.remove(self._state.path, self._state.remove)
            self._comm.close_tasks(durations.LOOP_CLOSE)
            return
        # Tasks are open in it, to be handed out again. Without buffers: the end removes the files
        # that they refer to.
        state = {**self.state_dict(), "buffers": {}}
        self._state.save(lambda: state)
        self._comm.close_tasks(durations.LOOP_CLOSE)
        # Workers have told of more meanwhile, and a learner's own state has it.
        self._state.save(lambda: {**state, "facts": self._run.facts.state_dict()})

    def __del__(self) -> None:
        # The run is told to end; letting workers go and joining threads is for `close`.
        with contextlib.suppress(Exception):
            if not self._closed:
                self.stop("the coordinator was deleted")

    def _remove_files(self) -> None:
        self._buffers.close()
        self._note_weights()
        self._files.remove_weights()
        if self._at_goal:
            self._files.remove_paths(self._files.noted["states"])
        if self._address_file is not None:
            self._files.remove_paths([self._address_file])

    def _note_weights(self) -> None:
        """Note weights that are not those of a task, such as a league's old players."""
        self._files.note("weights", self._run.ask(self.commander.weights_files) or [])

    @property
    def _at_goal(self) -> bool:
        """Whether there is nothing to go on with."""
        return self._run.verdict is not None and self._run.verdict.status in AT_GOAL

    # ------------------------------------------------------------------ the loop

    def _loop(self) -> None:
        try:
            while self._run.verdict is None:
                self._comm.assign(self._scheduler.schedule)
                self._note_weights()
                self._state.save_if_due(self.state_dict)
                self._run.view.draw(self.status)
                self._run.wake.wait(durations.COORDINATOR_TICK)
                self._run.wake.clear()
        except BaseException as err:  # whatever it was: nobody else hands out tasks
            self.stop(f"the coordinator failed: {error_line(err)}", "failed")
            _logger.exception("the coordinator failed")
        self._comm.close_tasks(0.0)

    # ------------------------------------------------------------------ state

    def status(self) -> RunStatus:
        """The facts that ``GET /status`` gives."""
        goal = as_number(first_goal(self._main.get("env", {}).get("stop_value")))
        run, workers = self._run, self._comm.workers()
        with run.turn:
            counted = run.exp_name, run.verdict, run.facts, run.table.counts()
            return run_status(*counted, goal, workers, self._buffers.all())

    @in_turn
    def state_dict(self) -> StateDict:
        """What another coordinator needs to go on: buffers, tasks and counters."""
        return {
            "commander": self.commander.state_dict(),
            "facts": self._run.facts.state_dict(),
            "tasks": self._run.table.state_dict(),
            "policy_ids": sorted(self._files.noted["weights"]),
            "buffers": self._buffers.state_dict(),
        }

    @in_turn
    def load_state_dict(self, state_dict: StateDict) -> None:
        """Go on from a `state_dict`; the commander hands its open tasks out again.

        An empty one changes nothing.
        """
        if not state_dict:
            return
        self.commander.load_state_dict(state_dict["commander"])
        self._run.table.load_state_dict(state_dict["tasks"])
        self._run.facts.load_state_dict(state_dict["facts"])
        self._files.note("weights", state_dict["policy_ids"])
        self._files.note("buffers", state_dict["buffers"])
        for line in self._buffers.load_state_dict(state_dict["buffers"]):
            self.error(line)
