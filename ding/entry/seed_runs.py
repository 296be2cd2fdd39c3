"""Runs of one config with several seeds: one after the other, or several at a time."""

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

from ding import plot
from ding.board.run_list import Run
from ding.config.compile import check_new_folder, new_folder
from ding.entry.run.signals import StopNow, StopSignal
from ding.utils import durations
from ding.utils.console import printable, say, table
from ding.utils.errors import ConfigError, DingError
from ding.utils.run_files import LAST

#: Command-line options that are replaced in each run.
_OWN_OPTIONS = ("-s", "--seed", "--jobs", "--exp-name")
#: Maximum characters of a failed run's output that are shown.
_TAIL = 2000
#: Seconds between checks for signals and for runs that may be ended early.
_LOOK = 1.0


def train_in_turn(
    base: str, seeds: Sequence[int], resume: bool, train: Callable[[int, str], None]
) -> int:
    """Train with one seed after the other; a failure does not stop the next runs.

    Args:
        base: Prefix of the folders' names.
        resume: Whether to resume the runs in the folders.
        train: Trains with a seed in a folder.

    Returns:
        The exit status.

    Raises:
        ConfigError: It is the same for all seeds.
    """
    check_new_folder(base)
    folders: dict[int, str] = {}
    failed = 0
    with contextlib.ExitStack() as stack:
        stack.callback(_report, base, folders)
        for seed in seeds:
            folder = f"{base}_seed{seed}"
            folders[seed] = folder if resume else new_folder(folder)
            say(f"seed {seed}: {folders[seed]}")
            try:
                train(seed, folders[seed])
            except ConfigError:
                raise
            except Exception as error:  # custom classes may raise anything
                failed += 1
                if not isinstance(error, DingError):
                    traceback.print_exc()
                say(f"seed {seed} failed: {error}", to_stderr=True)
    return 1 if failed else 0


def train_side_by_side(base: str, seeds: Sequence[int], jobs: int, args: Sequence[str]) -> int:
    """Run `jobs` processes at a time, each with its share of the CPUs.

    Args:
        args: The command line, in which seeds and folder are replaced.

    Returns:
        The exit status of the first run that failed, else 0.
    """
    check_new_folder(base)
    folders = {seed: new_folder(f"{base}_seed{seed}") for seed in seeds}
    rest: list[str] = []
    remaining = iter(args)
    for arg in remaining:
        if arg in _OWN_OPTIONS:
            next(remaining, None)
        elif arg.partition("=")[0] not in _OWN_OPTIONS and not arg.startswith("-s"):
            rest.append(arg)
    commands, lock = Commands(jobs), threading.Lock()
    left = list(seeds)
    statuses: list[int] = []

    def train_next() -> bool:
        with lock:
            if not left:
                return False
            seed = left.pop(0)
        status, output = commands.run([*rest, "--seed", str(seed), "--exp-name", folders[seed]])
        record = Run(folders[seed], str(seed)).record
        say(f"seed {seed}: {printable(f'{_state(record.status)}: {record.reason}'.rstrip(': '))}")
        if status and record.status in ("unknown", "failed"):
            say(output[-_TAIL:], to_stderr=True)
        statuses.append(status)
        return True

    with contextlib.ExitStack() as stack:
        stack.callback(_report, base, folders)
        for seed in seeds:
            say(f"seed {seed}: {folders[seed]}")
        with commands:
            commands.work(train_next)
    return next(filter(None, statuses), 0)


class Commands:
    """Runs of the command, `jobs` at a time, that end with this process.

    Attributes:
        is_ending: Whether no further run is started.
        running: The processes of the runs that have not ended.
    """

    def __init__(self, jobs: int) -> None:
        self.is_ending = False
        self._jobs = jobs
        self._lock = threading.Lock()
        self.running: set[subprocess.Popen[bytes]] = set()
        self._stop = StopSignal()
        threads = max(1, (os.cpu_count() or 1) // jobs)
        self._env = {"OMP_NUM_THREADS": str(threads), **os.environ, "DING_CONSOLE": "quiet"}

    def __enter__(self) -> "Commands":
        self._stop.__enter__()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._stop.__exit__()
        if error is None and self._stop.number is not None:
            raise StopNow(self._stop.number)

    def work(self, step: Callable[[], bool]) -> None:
        """Call `step` in one thread per job until it returns that no work is left.

        Raises:
            StopNow: A signal arrived, and the current runs were ended.
        """

        def loop() -> None:
            while not self.is_ending and step():
                pass

        # From here on a signal is recorded, and raised where nothing can be lost.
        self._stop.patient = True
        with ThreadPoolExecutor(self._jobs, "command") as pool:
            left = {pool.submit(loop) for _ in range(self._jobs)}
            try:
                while left and self._stop.number is None:
                    # With a timeout, since a signal does not wake a thread that waits for futures.
                    done, left = wait(left, _LOOK, FIRST_COMPLETED)
                    for one in done:
                        one.result()
            finally:
                self._end()
                self._stop.patient = False
        if self._stop.number is not None:
            raise StopNow(self._stop.number)

    def run(self, args: list[str], is_enough: Callable[[], bool] | None = None) -> tuple[int, str]:
        """Exit status and output of a run; `is_enough` may end it early, called every second."""
        # Not a pipe: it is only read at the end, and a full pipe would block the run.
        with tempfile.TemporaryFile() as output:
            command = [sys.executable, "-m", "ding", *args]
            with self._lock:
                if self.is_ending:
                    return 1, ""
                # Under the lock, so that `_end` knows all processes.
                process = subprocess.Popen(
                    command, env=self._env, stdout=output, stderr=subprocess.STDOUT
                )
                self.running.add(process)
            status = _wait(process, is_enough)
            self.running.discard(process)
            output.seek(0)
            return status, output.read().decode(errors="replace")

    def _end(self) -> None:
        """Make all runs save and end, as by SIGTERM; kill those that do not."""
        with self._lock:
            self.is_ending = True
            running = list(self.running)
        for process in running:
            process.terminate()
        try:
            for process in running:
                _ended(process)
        except BaseException:  # a second signal
            for process in running:
                process.kill()
            raise


def _wait(process: subprocess.Popen[bytes], is_enough: Callable[[], bool] | None) -> int:
    while is_enough is not None:
        try:
            return process.wait(_LOOK)
        except subprocess.TimeoutExpired:
            if is_enough():
                process.terminate()
                return _ended(process)
    return process.wait()  # without a limit


def _ended(process: subprocess.Popen[bytes]) -> int:
    """The status of a run that was asked to end; it is killed if it does not."""
    try:
        return process.wait(durations.COMMAND_END)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _report(base: str, folders: dict[int, str]) -> None:
    """Print a table of the runs, the best first.

    Runs that have converged come first, by the number of env steps needed. The others follow by the
    mean of their last evaluations, since the best of many evaluations is partly luck.
    """
    runs = {seed: Run(folder, str(seed)).summary() for seed, folder in folders.items()}

    def rank(seed: int) -> tuple[float, ...]:
        run = runs[seed]
        if run["status"] == "converged":
            return 0, run["envstep"] or 0, run["train_iter"] or 0
        last = run["last_return"]
        return (2,) if last is None else (1, -last)

    rows: list[tuple[str, ...]] = [
        ("seed", "status", "last return", "best return", "env steps", "updates", "folder")
    ]
    for seed in sorted(folders, key=rank):
        run = runs[seed]
        values = (_shown(run[name], ".4g") for name in ("last_return", "best_return"))
        counts = (_shown(run[name], ",") for name in ("envstep", "train_iter"))
        folder = printable(folders[seed])
        rows.append((str(seed), _state(run["status"]), *values, *counts, folder))
    lines = ["", *table(rows)]
    found = [run["last_return"] for run in runs.values() if run["last_return"] is not None]
    steps = [run["envstep"] for run in runs.values() if run["status"] == "converged"]
    if len(found) > 1:
        lines.append(
            f"last return (mean of {LAST} evaluations; converged: the last one): "
            f"mean {statistics.mean(found):.4g}, std {statistics.pstdev(found):.4g}, "
            f"worst {min(found):.4g}"
        )
    if len(folders) > 1 and steps and None not in steps:
        lines.append(
            f"converged: {len(steps)} of {len(folders)}, "
            f"in a median of {statistics.median(steps):,.0f} env steps"
        )
    path = f"{base}_returns.png"
    # There may be no returns, or no library to draw with.
    with contextlib.suppress(ConfigError, OSError):
        plot.returns([folder for folder in folders.values() if os.path.isdir(folder)]).save(path)
        lines.append(f"returns over seeds: {path}")
    say("\n".join(lines))


def _state(status: str) -> str:
    return "not started" if status == "unknown" else status


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"
