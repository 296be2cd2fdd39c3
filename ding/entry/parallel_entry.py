"""Training with a coordinator, learners and collectors as processes on one host."""

import contextlib
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from multiprocessing.connection import wait
from typing import Any, TypeAlias

from easydict import EasyDict

from ding.config.check import Notes
from ding.config.compile import complete_parallel
from ding.config.complete import Strict
from ding.config.read import read_compiled, read_config_with_system
from ding.config.save import save_run_config
from ding.config.system import has_own_engine, kind_of
from ding.entry.part_process import PartHandle, PartMessage, run_part, start_method
from ding.entry.part_runs import run_coordinator, run_on_engine, run_worker
from ding.entry.run.folder import print_ending, settle_record
from ding.entry.run.parallel_folders import RunFolders
from ding.entry.run.signals import StopNow, StopSignal
from ding.entry.supervisor import Supervisor
from ding.utils import durations
from ding.utils.callbacks import Callbacks, GivenCallbacks
from ding.utils.ending import Ending
from ding.utils.errors import ConfigError, RunError
from ding.utils.run_claims import make_run_key, read_run_key
from ding.utils.settings import at
from ding.utils.system_helper import ReportingThread

ParallelConfig: TypeAlias = str | os.PathLike[str] | Sequence[Mapping[str, Any]]


def parallel_pipeline(
    input_cfg: ParallelConfig,
    seed: int,
    enable_total_log: bool | None = False,
    disable_flask_log: bool | None = True,
    strict: Strict = False,
    callbacks: GivenCallbacks = None,
) -> None:
    """Train with a coordinator, learners and collectors until the commander reports convergence.

    Processes that die are restarted; their output is in ``<exp_name>/log/<name>``.

    Args:
        input_cfg: Path of a config file, or ``(main_config, create_config, system_config)``. With a
            serial run's config, which has no ``system_config``, the parts run on this host.
        seed: Seed of all random number generators.
        enable_total_log: Whether workers log more than warnings.
        disable_flask_log: Whether to leave single requests out of the logs.
        strict: Whether unknown config keys are errors instead of warnings: all, or those at or
            under these paths.
        callbacks: Called by the coordinator, in its process, in addition to the config's
            ``callbacks``, as in `ding.entry.serial_pipeline`.

    Raises:
        ConfigError: The config is invalid; raised before anything is started.
        RunError: The run failed.
        SystemExit: SIGINT or SIGTERM ended the run, after its state was saved.

    Example:

        >>> from ding.entry import parallel_pipeline
        >>> from ding.entry.quick_config import quick_config
        >>> parallel_pipeline(quick_config("CartPole-v1", "dqn"), seed=0)  # doctest: +SKIP
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise ConfigError(
            "this script is being imported by a process that parallel_pipeline started: put the "
            'call under `if __name__ == "__main__":`'
        )
    main, create, system = read_parallel(input_cfg)
    notes = Notes()
    config = complete_parallel(main, create, system, seed, notes, strict, joining=True)
    print_notes(notes)
    made = Callbacks(config.main.get("callbacks"), callbacks)
    config.system.logs = {"total": bool(enable_total_log), "flask": not disable_flask_log}
    resume = bool(at(config.main, "policy.learn.resume_training"))
    with StopSignal() as stop:

        def run(key: str) -> Ending:
            save_run_config(config)
            config.callbacks = made.callbacks
            if has_own_engine(config.system):
                return run_on_engine(config, resume, stop)
            return Supervisor(config, key, resume).run(stop)

        ending = run_in_folders(config, "parallel", run)
    ending.raise_if_bad()


def print_notes(notes: Notes) -> None:
    """Print notes on the config."""
    if notes.text:
        print(notes.text, file=sys.stderr, flush=True)


def read_parallel(
    input_cfg: ParallelConfig,
) -> tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]:
    """The three parts of a config, from a file or given directly.

    Raises:
        ConfigError: It has another form, or a part is missing.
    """
    if isinstance(input_cfg, str | os.PathLike):
        return read_config_with_system(os.fspath(input_cfg))
    if isinstance(input_cfg, tuple | list) and len(input_cfg) in (2, 3):
        main, create, *rest = input_cfg
        return main, create, rest[0] if rest else {}
    what = type(input_cfg).__name__
    if isinstance(input_cfg, tuple | list):
        what = f"{len(input_cfg)} of them"
    raise ConfigError(
        "input_cfg must be the path of a config file or (main_config, create_config, "
        f"system_config), got {what}"
    )


def run_in_folders(config: EasyDict, mode: str, run: Callable[[str], Ending]) -> Ending:
    """Run several parts, with the run's folders, key, record and report.

    Args:
        config: ``main`` and ``system``.
        mode: ``parallel`` or ``dist``.
        run: Runs the parts to the end, given the run's key.

    Returns:
        How the run ended; also printed.

    Raises:
        ConfigError: A folder cannot be written.
    """
    exp_name, ending = config.main.exp_name, None
    try:
        with RunFolders(config) as folders:
            ending = run(make_run_key(exp_name))
            if ending.status == "failed":
                folders.leave_if_unstarted()
    except StopNow as signalled:  # no supervisor was running that could end the run normally
        ending = ending or signalled.ending.because(f"{signalled}, before the run was up")
    settle_record(exp_name, ending)
    print_ending(config.main, ending, mode)
    return ending


# ---------------------------------------------------------------------- single parts


def run_learner(config: EasyDict, seed: int, start_learner_event: Any, close_learner_event: Any):
    """Run one learner until it must end; `launch_learner` starts this function.

    Args:
        config: The learner's entry in a compiled config (``config.system.learner0``).
        seed: Seed of its random numbers.
        start_learner_event: Set as soon as it listens.
        close_learner_event: Ends the learner when it is set; so does its master.
    """
    handle = _EventHandle(start_learner_event, close_learner_event)
    entry = EasyDict(config)
    whole = EasyDict(main=dict(seed=seed), system={entry.name: entry})
    key = entry.get("run_key") or read_run_key(entry.get("exp_name", "."))
    run_worker(handle, whole, entry.name, key)


def launch_learner(
    seed: int,
    config: dict[str, Any] | None = None,
    filename: str | None = None,
    name: str | None = None,
) -> list[Any]:
    """Start a learner's process.

    Args:
        seed: Seed of its random numbers.
        config: The learner's entry in a compiled config, or a complete compiled config.
        filename: File with a compiled config, instead of ``config``.
        name: The learner's name in a complete config; the first one if not given.

    Returns:
        The process, the event that is set as soon as it listens, and the event that ends it.
    """
    return _launch("learner", run_learner, seed, config, filename, name)


def run_collector(
    config: EasyDict, seed: int, start_collector_event: Any, close_collector_event: Any
):
    """Run one collector until it must end; arguments as in `run_learner`."""
    run_learner(config, seed, start_collector_event, close_collector_event)


def launch_collector(
    seed: int,
    config: dict[str, Any] | None = None,
    filename: str | None = None,
    name: str | None = None,
) -> list[Any]:
    """Start a collector's process; arguments and result as in `launch_learner`."""
    return _launch("collector", run_collector, seed, config, filename, name)


def launch_coordinator(
    seed: int,
    config: EasyDict | None = None,
    filename: str | None = None,
    learner_handle: list[Any] | None = None,
    collector_handle: list[Any] | None = None,
) -> None:
    """Run a coordinator in this process until the run has ended.

    Args:
        seed: Seed of its random numbers.
        config: A compiled config (``main`` and ``system``).
        filename: File with a compiled config, instead of ``config``.
        learner_handle: The results of `launch_learner`, one per learner: the coordinator begins
            when they listen, and ends them at its end.
        collector_handle: The results of `launch_collector`.

    Raises:
        RunError: The run failed.
        SystemExit: SIGINT or SIGTERM ended it.
    """
    whole = _whole_config(config, filename)
    whole.main.seed = seed
    handles = [*(learner_handle or []), *(collector_handle or [])]
    for process, started, _ in handles:
        if not _wait_for_start(process, started):
            status = process.exitcode
            _close_all(handles)
            how = "ended before it listened" if status is not None else "does not listen"
            raise RunError(f"{process.name} {how} (status {status})")
    key = read_run_key(whole.main.exp_name)
    try:
        ending = run_part(partial(run_coordinator, config=whole, key=key))
    finally:
        _close_all(handles)
    print_ending(whole.main, ending, "parallel")
    ending.raise_if_bad()


class _EventHandle(PartHandle):
    """Handle of a worker whose parent has two events instead of a pipe for messages."""

    def __init__(self, started: Any, closing: Any) -> None:
        super().__init__(None)
        self._started, self._closing = started, closing
        ReportingThread(self._close_on_request, "close", warnings.warn).start()

    def send(self, message: PartMessage) -> None:
        self._started.set()

    def _close_on_request(self) -> None:
        self._closing.wait()
        self.ask_to_stop(Ending("interrupted", "it was asked to close"))


class PipeEvent:
    """An event that two processes share. Unlike `multiprocessing.Event`, it survives their deaths:
    setting it never blocks, and the death of the setting process also sets it for the listener.
    """

    def __init__(self) -> None:
        self._reader, self._writer = multiprocessing.Pipe(duplex=False)

    def set(self) -> None:
        """Set the event permanently."""
        if not self.is_set():
            with contextlib.suppress(OSError):
                self._writer.send_bytes(b".")

    def is_set(self) -> bool:
        return self.wait(0)

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it is set within ``timeout`` seconds."""
        return self._reader.poll(timeout)  # the byte is not consumed

    def fileno(self) -> int:
        """For ``multiprocessing.connection.wait``."""
        return self._reader.fileno()

    def only_listen(self) -> None:
        """To be called in the listening process, so that it notices the other one's end."""
        self._writer.close()


def _launch(
    kind: str,
    target: Callable[..., Any],
    seed: int,
    config: dict[str, Any] | None,
    filename: str | None,
    name: str | None,
) -> list[Any]:
    entry = config
    if filename is not None or (isinstance(config, Mapping) and "system" in config):
        entry = worker_of(_whole_config(config, filename), kind, name)
    if not isinstance(entry, Mapping):
        raise ConfigError(f"launch_{kind} needs config or filename, got neither")
    context: Any = multiprocessing.get_context(start_method())
    started, closing = PipeEvent(), PipeEvent()
    arguments = (target, EasyDict(entry), seed, started, closing)
    process: Any = context.Process(target=_launched, args=arguments, name=entry.get("name", kind))
    process.start()
    return [process, started, closing]


def _launched(
    target: Callable[..., Any], entry: EasyDict, seed: int, started: PipeEvent, closing: PipeEvent
) -> None:
    closing.only_listen()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    target(entry, seed, started, closing)


def worker_of(config: EasyDict, kind: str, name: str | None) -> EasyDict:
    """The entry of a worker in a compiled config; the first of its kind if no name is given.

    Raises:
        ConfigError: There is no such worker.
    """
    known = [key for key in config.system if kind_of(key) == kind and key != kind]
    chosen = name or (known[0] if known else f"{kind}0")
    if chosen not in known:
        raise ConfigError(
            f"the config has no {kind} named {chosen!r}; it has {', '.join(known) or 'none'}"
        )
    return config.system[chosen]


def _whole_config(config: Any, filename: str | None) -> EasyDict:
    if filename is not None:
        return read_compiled(filename)
    if not (isinstance(config, Mapping) and {"main", "system"} <= set(config)):
        raise ConfigError(
            "expected a compiled config with main and system (from compile_config_parallel), or "
            f"filename, got {type(config).__name__}"
        )
    return EasyDict(config)


def _wait_for_start(process: Any, started: PipeEvent) -> bool:
    """Whether it starts in time; returns at once if it dies."""
    if wait([process.sentinel, started.fileno()], durations.SPAWN_START) and not started.is_set():
        process.join(durations.KILLED_GONE)  # its pipe is closed before it has ended
    return started.is_set()


def _close_all(handles: list[Any]) -> None:
    for _, _, closing in handles:
        closing.set()
    for process, _, _ in handles:
        process.join(durations.PART_STOP)
        if process.is_alive():
            process.kill()
            process.join(durations.KILLED_GONE)
