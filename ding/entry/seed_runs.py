"""The runs of one config with several seeds: one after the other, or some side by side."""

import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import click

from ding import plot
from ding.board.run_list import LAST
from ding.config.compile import new_folder
from ding.entry.run_folder import read_record
from ding.utils import durations
from ding.utils.console import table
from ding.utils.errors import ConfigError, DingError

_COUNTS = ("envstep", "train_iter")
#: Options of the command line that each run gets anew.
_OWN_OPTIONS = ("-s", "--seed", "--jobs", "--exp-name")
#: Of the output of a run that failed, what is shown.
_TAIL = 2000
#: Seconds between looks at a run that may be ended early.
_LOOK = 1.0


def train_in_turn(
    base: str, seeds: Sequence[int], resume: bool, train: Callable[[int, str], None]
) -> int:
    """One run after the other; what went wrong does not stop the next ones.

    Args:
        base: What the folders begin with.
        resume: Whether the folders are there and to be gone on with.
        train: Trains with a seed in a folder.

    Returns:
        The exit status.

    Raises:
        ConfigError: The same for all seeds.
    """
    folders: dict[int, str] = {}
    failed = 0
    with contextlib.ExitStack() as stack:
        stack.callback(_report, base, folders)
        for seed in seeds:
            folder = f"{base}_seed{seed}"
            folders[seed] = folder if resume else new_folder(folder)
            click.echo(f"seed {seed}: {folders[seed]}")
            try:
                train(seed, folders[seed])
            except ConfigError:
                raise
            except DingError as error:
                failed += 1
                click.echo(f"seed {seed} failed: {error}", err=True)
    return 1 if failed else 0


def train_side_by_side(base: str, seeds: Sequence[int], jobs: int, args: Sequence[str]) -> int:
    """So many runs at a time, each a process of its own with its share of the CPUs.

    Args:
        args: The command line, whose seeds and folder are replaced.

    Returns:
        The exit status: that of the first run that failed.
    """
    folders = {seed: new_folder(f"{base}_seed{seed}") for seed in seeds}
    rest = list(_without(iter(args), _OWN_OPTIONS))
    commands = Commands(jobs)

    def train(seed: int) -> int:
        own = ["--seed", str(seed), "--exp-name", folders[seed]]
        status, output = commands.run([*rest, *own])
        record = read_record(folders[seed])
        ending = f"{record.get('status', 'not started')}: {record.get('reason', '')}".rstrip(": ")
        click.echo(f"seed {seed}: {ending}")
        if status and record.get("status") in (None, "failed"):
            click.echo(output[-_TAIL:], err=True)
        return status

    with contextlib.ExitStack() as stack:
        stack.callback(_report, base, folders)
        for seed in seeds:
            click.echo(f"seed {seed}: {folders[seed]}")
        with commands, ThreadPoolExecutor(jobs, thread_name_prefix="seed") as pool:
            try:
                statuses = list(pool.map(train, seeds))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                commands.end()
                raise
    return next(filter(None, statuses), 0)


class Commands:
    """Runs of the command that end with this process."""

    def __init__(self, jobs: int) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._ending = False
        threads = max(1, (os.cpu_count() or 1) // jobs)
        self._env = {"OMP_NUM_THREADS": str(threads), **os.environ, "DING_CONSOLE": "quiet"}

    def __enter__(self) -> "Commands":
        self._before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        return self

    def __exit__(self, *exc: object) -> None:
        signal.signal(signal.SIGTERM, self._before)

    def run(self, args: list[str], is_enough: Callable[[], bool] | None = None) -> tuple[int, str]:
        """Exit status, and what was printed.

        Args:
            is_enough: Asked every second whether the run is to be ended.
        """
        if self._ending:
            return 1, ""
        with tempfile.TemporaryFile() as output:
            command = [sys.executable, "-m", "ding", *args]
            process = subprocess.Popen(
                command, env=self._env, stdout=output, stderr=subprocess.STDOUT
            )
            self._running.add(process)
            status = _wait(process, is_enough)
            self._running.discard(process)
            output.seek(0)
            return status, output.read().decode(errors="replace")

    def end(self) -> None:
        """Tell all of them to save and end, as SIGTERM does; kill those that do not."""
        self._ending = True
        running = list(self._running)
        for process in running:
            process.terminate()
        for process in running:
            _ended(process)


def _wait(process: subprocess.Popen[bytes], is_enough: Callable[[], bool] | None) -> int:
    while is_enough is not None:
        try:
            return process.wait(_LOOK)
        except subprocess.TimeoutExpired:
            if is_enough():
                process.terminate()
                return _ended(process)
    return process.wait()  # as long as the run takes


def _ended(process: subprocess.Popen[bytes]) -> int:
    """The status of a run that was told to end; one that does not, by itself, is killed."""
    try:
        return process.wait(durations.COMMAND_END)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _without(args: Iterator[str], options: Sequence[str]) -> Iterator[str]:
    """A command line without options that take a value."""
    for arg in args:
        if arg in options:
            next(args, None)
        elif arg.partition("=")[0] not in options and not arg.startswith("-s"):
            yield arg


def _report(base: str, folders: dict[int, str]) -> None:
    """Print a table of the runs, the best at the top: by the mean of their last evaluations, for
    the best of many evaluations is luck, too."""
    last = {seed: plot.last_returns(folder) for seed, folder in folders.items()}
    found = [value for value in last.values() if value is not None]
    rows = [("seed", "status", "last return", "best return", "env steps", "updates", "folder")]
    for seed in sorted(folders, key=lambda seed: (last[seed] is None, -(last[seed] or 0.0))):
        facts = read_record(folders[seed])
        rows.append(
            (
                *(str(seed), facts.get("status", "not started")),
                *(_number(last[seed]), _number(facts.get("best_return"))),
                *(f"{facts[key]:,}" if facts.get(key) is not None else "-" for key in _COUNTS),
                folders[seed],
            )
        )
    lines = ["", *table(rows)]
    if len(found) > 1:
        lines.append(
            f"last return (mean of {LAST} evaluations): mean {statistics.mean(found):.4g}, "
            f"std {statistics.pstdev(found):.4g}, worst {min(found):.4g}"
        )
    click.echo("\n".join([*lines, *_picture(base, list(folders.values()))]))


def _picture(base: str, folders: list[str]) -> list[str]:
    """Draw the returns, if there are any and something to draw with."""
    path = f"{base}_returns.png"
    try:
        plot.returns([folder for folder in folders if os.path.isdir(folder)]).save(path)
    except (ConfigError, OSError):
        return []
    return [f"returns over seeds: {path}"]


def _number(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}"
