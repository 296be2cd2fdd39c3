"""Measuring sides in turns, and the table that comes of it. Uses the standard library alone.

A side is a process that does one kind of work with one library: the same script, started with
``--serve NAME``. All sides of a figure take turns (A B A B), so that what else the machine does
affects all, and only ratios of one run count. With ``BENCH_CLOCK=cpu`` sides count CPU seconds.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
#: What the sides count with: their own CPU seconds, on a machine that is busy with other things.
CLOCK = time.process_time if os.environ.get("BENCH_CLOCK") == "cpu" else time.perf_counter
#: Builds what is measured; the function that it returns does a piece and returns its size. Work
#: that cannot be called piece by piece takes its `Turns` itself and returns ``None``.
Work = Callable[[], Callable[[], int] | None]


@dataclass
class Figure:
    """One row of the table.

    Attributes:
        name: What was measured.
        ours: This project's value of each round.
        other: The floor's or peer's.
        against: Which floor or peer.
        goal: Least ratio of this package's figure to the other's; the greatest one where `smaller`.
        unit: Of the values.
        smaller: Whether less is better: times and sizes.
    """

    name: str
    ours: list[float]
    other: list[float]
    against: str
    goal: float
    unit: str = "1/s"
    smaller: bool = False

    @property
    def ratio(self) -> float:
        return median(self.ours) / median(self.other)

    @property
    def reached(self) -> bool:
        return self.ratio <= self.goal if self.smaller else self.ratio >= self.goal

    def row(self) -> str:
        single = [a / b for a, b in zip(self.ours, self.other)]
        sign = "≤" if self.smaller else "≥"
        cells = [
            self.name,
            f"{number(median(self.ours))} {self.unit}",
            f"{self.against}: {number(median(self.other))}",
            f"{self.ratio:.3g} [{min(single):.3g} .. {max(single):.3g}]",
            f"{sign} {self.goal:.3g}",
            "yes" if self.reached else "**no**",
        ]
        return "| " + " | ".join(cells) + " |"


HEADER = """| figure | ours | floor or peer | ratio of medians [min .. max] | goal | reached |
|---|---|---|---|---|---|"""


def number(value: float) -> str:
    """Three significant digits, or whole thousands with separators."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def table(figures: Iterable[Figure]) -> str:
    return "\n".join([HEADER, *(figure.row() for figure in figures)])


class Side:
    """A process that serves the works of one side.

    Args:
        script: Benchmark script to run with ``--serve``.
        name: Name of the side in it.
        python: Interpreter; ``None`` for this project's own.
    """

    def __init__(self, script: str, name: str, python: str | None = None) -> None:
        self.name = name
        env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE)}
        if python is None:
            env["PYTHONPATH"] += os.pathsep + str(HERE.parent)
        self._process = subprocess.Popen(
            [python or sys.executable, script, "--serve", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if os.environ.get("BENCH_ERRORS") else subprocess.DEVNULL,
            text=True,
            env=env,
        )

    def measure(self, seconds: float) -> float | None:
        """Pieces of work per second; ``None`` if the side cannot run here."""
        try:
            self._process.stdin.write(f"{seconds}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return None
        for line in self._process.stdout:
            if line.startswith("RESULT "):
                return json.loads(line.removeprefix("RESULT "))
        return None

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()


class Turns:
    """Answers each line on stdin, a number of seconds, with the speed over that time.

    It waits for the first line when it is made.
    """

    def __init__(self) -> None:
        self._wait()

    def add(self, done: int) -> bool:
        """Count a piece of work; where the turn is over, wait for the next one.

        Returns:
            Whether there is another turn.
        """
        self._done += done
        spent = CLOCK() - self._begin
        if spent < self._seconds:
            return True
        print(f"RESULT {self._done / spent}", flush=True)
        return self._wait()

    def _wait(self) -> bool:
        line = sys.stdin.readline()
        self._seconds, self._done = float(line or 0), 0
        self._begin = CLOCK()
        return bool(line)


def serve(build: Work) -> None:
    """Measure the pieces of one side's work; work that takes its turns itself has none."""
    act = build()
    if act is not None:
        turns = Turns()
        while turns.add(act()):
            pass


def in_turns(
    script: str, sides: dict[str, str | None], rounds: int, seconds: float
) -> dict[str, list[float]]:
    """Speeds of each round by side; peers that cannot run here are left out.

    Args:
        sides: Name to interpreter; ``None`` for this project's own, which has to run.
    """
    running = [
        Side(script, name, python)
        for name, python in sides.items()
        if python is None or os.path.exists(python)
    ]
    try:
        failed = {side.name for side in running if side.measure(seconds / 4) is None}
        if own := [name for name in failed if sides[name] is None]:
            raise RuntimeError(f"cannot run {own}; BENCH_ERRORS=1 shows why")
        running = [side for side in running if side.name not in failed]
        speeds: dict[str, list[float]] = {side.name: [] for side in running}
        for _ in range(rounds):
            for side in running:
                speeds[side.name].append(side.measure(seconds) or 0.0)
        return speeds
    finally:
        for side in running:
            side.close()


def compare(
    speeds: dict[str, list[float]], goals: Iterable[tuple[str, str, str, float]]
) -> list[Figure]:
    """Figures of (name, our side, other side, least ratio), as far as both sides ran."""
    return [
        Figure(name, speeds[ours], speeds[other], other, goal)
        for name, ours, other, goal in goals
        if ours in speeds and other in speeds
    ]


def seconds_of(
    commands: dict[str, list[str]], rounds: int, env: dict[str, str] | None = None
) -> dict[str, list[float]]:
    """Wall time of whole commands, in turns; the first round is not counted."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", **(env or {})}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, command in commands.items():
            begin = time.perf_counter()
            subprocess.run(command, check=True, env=env, stdout=subprocess.DEVNULL)
            if turn:
                times[name].append(time.perf_counter() - begin)
    return times


def command_line(
    doc: str,
    works: dict[str, Work],
    measure: Callable[..., list[Figure]],
    names: Iterable[str] = (),
) -> None:
    """What every benchmark script does when it is run: serve one side, or measure all.

    Args:
        names: What can be measured by itself; ``measure`` then takes a tuple of these, too.
    """
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--serve", metavar="SIDE", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    if names:
        parser.add_argument("names", nargs="*", help=f"of {', '.join(names)}; all by default")
    args = parser.parse_args()
    if args.serve:
        serve(works[args.serve])
        return
    if unknown := set(getattr(args, "names", ())) - set(names):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    only = (tuple(args.names),) if names else ()
    print(table(measure(args.rounds, args.seconds, *only)))
