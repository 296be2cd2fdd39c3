"""The coordinator of a parallel run: it assigns tasks, and tracks data in its buffers."""

import contextlib
import copy
import logging
import threading
from functools import partial

from easydict import EasyDict

from ding.data.buffer.rate_limiter import SampleRatio, sample_ratio
from ding.interaction.base.network import joined
from ding.utils import deep_merge_dicts, durations
from ding.utils.callbacks import Callbacks, RunFinished, RunStarted
from ding.utils.console import Console
from ding.utils.default_helper import Configurable, first_goal
from ding.utils.errors import ConfigError, RunError
from ding.utils.run_claims import FolderWatch
from ding.utils.run_log import RunLog
from ding.utils.settings import at
from ding.utils.types import Settings, State
from ding.utils.usage import UsageMeter, process_name
from ding.worker.engines.flask_fs import flask_fs_engine
from ding.worker.seams import Engine

from .base_parallel_commander import create_parallel_commander
from .buffer_pace import SpaceQuota
from .chunk_buffer import ChunkBuffer
from .comm_coordinator import CommCoordinator
from .run_events import RunEvents
from .run_facts import as_number, error_line, usage_figures
from .run_files import CoordinatorState, RunFiles
from .run_status import RunStatus, RunView, buffer_status, who_waits, worker_status, write_address
from .task_table import TaskState
from .turn import Turn, in_turn

__all__ = ["Coordinator", "TaskState"]

_logger = logging.getLogger(__name__)
#: Maximum number of workers whose resource usage is logged; the status contains that of all.
_MOST_LOGGED = 64
#: Facts at the end of the run that its record contains.
_SUMMARY = ("best_return", "envstep", "train_iter")


class Coordinator(RunEvents, Configurable):
    """Assigns a commander's tasks to workers, and collectors' data to learners.

    Args:
        cfg: Compiled config with ``main`` and ``system``.
        run_log: The run's folder, for scalars and ``run.json``.
        console: The display.
        engine: The transport of the run; HTTP and the folders of the config if not given.
        callbacks: Called with events of the run; they may end it.

    Raises:
        ConfigError: The commander cannot be made, or has fewer learners than it trains policies.

    Attributes:
        commander: Decides which tasks there are.
    """

    config: State = dict(
        collector_task_timeout=durations.COLLECTOR_TASK_TIMEOUT,
        learner_task_timeout=durations.LEARNER_TASK_TIMEOUT,
        operator_server=dict(),
        # Seconds between heartbeats of a worker, and without any after which it counts as lost.
        heartbeat_span=durations.HEARTBEAT,
        heartbeat_tolerance=durations.HEARTBEAT_TOLERANCE,
        # Time limit for a worker to begin a task, with its environments or its model, in seconds.
        start_timeout=durations.START_TIMEOUT,
        # Maximum number of consecutive failures without progress before the run ends.
        max_task_retry=3,
        # Maximum bytes of collected data in path_data.
        path_data_limit=2 * 1024**3,
        # Replay ratio, the average number of times a sample is drawn: a number, 'auto' as in serial
        # mode, or None for as often as the learner can; and its tolerance, None: 32 batches.
        samples_per_insert="auto",
        samples_per_insert_tolerance=None,
        # Seconds between saves of the state.
        save_state_second=durations.COORDINATOR_SAVE_INTERVAL,
    )

    def __init__(
        self,
        cfg: Settings,
        *,
        run_log: RunLog | None = None,
        console: Console | None = None,
        engine: Engine | None = None,
        callbacks: Callbacks | None = None,
    ) -> None:
        self._closed = True  # until construction is complete
        self._main = cfg["main"]
        given = cfg["system"]["coordinator"]
        self._cfg = EasyDict(deep_merge_dicts(self.default_config(), dict(given)))
        self._resume = given.get("resume", cfg.get("resume_coordinator"))
        exp_name = str(self._main.get("exp_name", "default_experiment"))
        system = {**cfg["system"], "coordinator": self._cfg}
        if engine is None:
            engine = flask_fs_engine(system, exp_name, self._main.get("seed", 0))
        view, turn = RunView(console, _logger), Turn()
        warn = partial(view.log, warning=True)
        commander = create_parallel_commander(self._main)
        _check_learners(self._main, commander.policy_num)
        super().__init__(
            exp_name,
            commander,
            view,
            callbacks or Callbacks(),
            run_log,
            turn=turn,
            files=RunFiles(engine, warn),
            make_buffer=partial(
                ChunkBuffer,
                store=engine.samples,
                space=SpaceQuota(int(self._cfg.path_data_limit)),
                exp_name=exp_name,
                tb_logger=None if run_log is None else run_log.writer,
                ratio=self._sample_ratio(),
                turn=turn,
            ),
            max_task_retry=int(self._cfg.max_task_retry),
            task_limits={
                "collector": float(self._cfg.collector_task_timeout),
                "learner": float(self._cfg.learner_task_timeout),
            },
        )
        self._last_state: State | None = None  # of before the tasks were asked to end
        self._counts_last_reports = False  # in the commander's state of after that
        save_second = float(self._cfg.save_state_second)
        self._state = CoordinatorState(exp_name, self._main, save_second, warn)
        self._comm = CommCoordinator(
            {"main": self._main, "system": system},
            *(self, _logger),
            status=self.status,
            control=engine.control,
            turn=turn,
        )
        # Without child processes, which are workers with their own reports.
        self._usage = UsageMeter(children=False)
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
        """Listen and start to assign tasks; does not wait.

        Raises:
            PortTakenError: Another program listens on the port.
            CheckpointError: The state to resume from cannot be read.
        """
        try:
            saved = self._state.load(self._resume)
            if saved is not None:
                self.load_state_dict(saved)
            # After loading the state: workers that join at once need its buffers and tasks.
            self._comm.start()
            self._address_file = write_address(self.exp_name, self.address)
            self.view.log(f"the run's page is http://{joined(*self.address)}/")
            self.notify(RunStarted, config=self._main)
            loop = threading.Thread(target=self._loop, name="coordinator", daemon=True)
            loop.start()
        except BaseException as err:
            self.stop(f"the coordinator could not start: {error_line(err)}", "failed")
            raise
        self._loop_thread = loop

    @property
    def address(self) -> tuple[str, int]:
        """Host and port on which it listens, after `start`."""
        return self._comm.address

    @property
    def port(self) -> int:
        """The port on which it listens, after `start`."""
        return self.address[1]

    def close(self) -> None:
        """End the run, release the workers, and remove data and weights files."""
        if self._closed:
            return
        self._closed = True
        self.stop("the coordinator was closed")
        with contextlib.ExitStack() as last:  # runs even if earlier steps fail
            last.callback(self._tell_end)
            last.callback(self._remove_files)
            last.callback(self._comm.close)
            # Before that, since released workers read the reason there.
            last.callback(self._note_end)
            if self._loop_thread is not None:
                self._loop_thread.join(durations.LOOP_CLOSE)
                self._close_tasks()
            self.view.draw(self.status, at_end=True)

    def _note_end(self) -> None:
        if self.log is not None and self.verdict is not None:
            ending = self.verdict
            facts = {name: getattr(self.facts, name) for name in _SUMMARY}
            self.log.finish(ending.status, ending.reason, **facts)

    def _tell_end(self) -> None:
        if not self.callbacks:
            return
        assert self.verdict is not None
        end = RunFinished(*self.moment(), *self.verdict, self.facts.best_return)
        problem = self.callbacks.end(end)
        if problem:
            self.error(problem)
            if self.log is not None:
                self.log.note(reason=f"{self.verdict.reason}; {problem}")

    def _close_tasks(self) -> None:
        """End the tasks, and save a state to resume from."""
        state = self._ask_to_end()
        # A finished run starts from the beginning, unless --resume asks to continue it.
        self._state.is_of_end = self.verdict is not None and self.verdict.exit_status == 0
        # Before the tasks end, which may hang: if the process is killed, its state is saved.
        self._state.save(lambda: state)
        self._comm.close_tasks(durations.LOOP_CLOSE)
        # Workers have reported more since then, which a learner's own state contains.
        self._state.save(partial(self._state_of_end, state))

    @in_turn
    def _ask_to_end(self) -> State:
        """Ask all tasks to end; returns the state to resume from, of the moment before."""
        try:
            if self._last_state is None:
                # Without buffers, whose files are removed at the end.
                self._last_state = {**self.state_dict(), "buffers": {}}
                self._counts_last_reports = bool(self.ask(self.commander.note_end))
        finally:
            self._comm.close_tasks(0.0)
        return self._last_state

    @in_turn
    def _state_of_end(self, before: State) -> State:
        """The state to resume from, with what the tasks have reported at their end."""
        late = {**before, "facts": self.facts.state_dict()}
        if self._counts_last_reports:
            late["commander"] = self.commander.state_dict()
        return late

    def __del__(self) -> None:
        # Only request the end; `close` releases workers and joins threads.
        with contextlib.suppress(Exception):
            if not self._closed:
                self.stop("the coordinator was deleted")

    def _remove_files(self) -> None:
        has_started = self._loop_thread is not None  # else the files belong to a killed run
        while self.buffers:
            self.buffers.popitem()[1].close(remove_files=has_started)
        if has_started:
            self._note_weights()
            self.files.remove_weights()
        if self._address_file is not None:
            self.files.remove_paths([self._address_file])

    def _note_weights(self) -> None:
        """Note weights that belong to no task, such as a league's snapshots, for their removal."""
        self.files.note("weights", self.ask(self.commander.weights_files) or [])

    # ------------------------------------------------------------------ the loop

    def _loop(self) -> None:
        folder = FolderWatch(self.exp_name)
        try:
            while self.verdict is None:
                self._comm.schedule()
                self._note_weights()
                folder.check()
                self._state.save_if_due(self.state_dict)
                self.view.draw(self.status)
                self._log_usage()
                self.wake.wait(durations.COORDINATOR_TICK)
                self.wake.clear()
        except RunError as err:
            self.stop(str(err), "failed")
        except BaseException as err:  # no other thread assigns tasks
            self.stop(f"the coordinator failed: {error_line(err)}", "failed")
            _logger.exception("the coordinator failed")
        self._ask_to_end()

    def _log_usage(self) -> None:
        """Log the resource usage of the run's processes, if it is time."""
        own = self._usage.read()
        if own is None or self.log is None:
            return
        figures = {"coordinator": own}
        for worker in self._comm.sessions()[:_MOST_LOGGED]:
            reported = worker.info.get("usage")
            used = usage_figures(reported)
            if not used or not worker.is_open:
                continue
            # Worker threads in this process are reported with it; its child processes separately.
            is_here = isinstance(reported, dict) and reported.get("process") == process_name()
            figures["coordinator" if is_here else worker.name] = used
        self.log.usage(figures, self.facts.train_iter)

    # ------------------------------------------------------------------ state

    def status(self) -> RunStatus:
        """The facts that ``GET /status`` gives."""
        goal = as_number(first_goal(self._main.get("env", {}).get("stop_value")))
        there = self._comm.workers()
        with self.turn:
            facts, ending, now = self.facts, self.verdict, self.facts.clock()
            workers = {worker.name: worker_status(worker, facts, now) for worker in there}
            return {
                "exp_name": self.exp_name,
                "state": "running" if ending is None else ending.status,
                "reason": None if ending is None else ending.reason,
                "stop_value": goal,
                "seconds": round(now - facts.started, 1),
                "envstep": facts.envstep,
                "train_iter": facts.train_iter,
                "episodes": facts.episodes,
                "episode_return": facts.episode_return,
                "best_return": facts.best_return,
                "last_eval_return": facts.last_eval_return,
                "buffers": {name: buffer_status(one) for name, one in self.buffers.items()},
                "data_rate": facts.data_rate(),
                "policy": facts.policies(),
                "workers": workers,
                "tasks": self.table.counts(),
                "waits": who_waits(workers) if ending is None else "the run is over",
                "troubles": dict(facts.troubles),
                "failures": list(facts.failures),
            }

    @in_turn
    def state_dict(self) -> State:
        """State from which another coordinator resumes the run: buffers, tasks and counters."""
        return {
            # A copy, as the commander goes on while this is written.
            "commander": copy.deepcopy(self.commander.state_dict()),
            "facts": self.facts.state_dict(),
            "tasks": self.table.state_dict(),
            "policy_ids": sorted(self.files.noted["weights"]),
            "buffers": {
                name: {"cfg": buffer.cfg, "state": buffer.state_dict()}
                for name, buffer in self.buffers.items()
            },
        }

    @in_turn
    def load_state_dict(self, state_dict: State) -> None:
        """Continue from a `state_dict`; the commander's open tasks are assigned again.

        An empty state changes nothing.
        """
        if not state_dict:
            return
        self.commander.load_state_dict(state_dict["commander"])
        # Earlier tasks are stored as failed, so that late answers to them are recognised.
        self.table.load_state_dict(state_dict["tasks"])
        self.facts.load_state_dict(state_dict["facts"])
        self.files.note("weights", state_dict["policy_ids"])
        # No learner would publish the weights of a league's snapshots again.
        self.files.restore_weights(self.commander.weights_files())
        self.files.note("buffers", state_dict["buffers"])
        for name, saved in state_dict["buffers"].items():
            gone = self.open_buffer(name, saved["cfg"]).load_state_dict(saved["state"])
            if gone:
                self.error(
                    f"{name}: {len(gone)} chunks of the saved state were used up since, or their "
                    f"files are lost, first {gone[0]}"
                )


def _check_learners(main: Settings, policy_num: int) -> None:
    learners = at(main, "policy.learn.learner.learner_num") or 1
    if learners < policy_num:
        raise ConfigError(
            f"policy.learn.learner.learner_num is {learners}, but the commander trains "
            f"{policy_num} policies at the same time (one for each active player of a league), "
            "each of which needs a learner"
        )
