"""The way of a task: a master gives it, a slave in another process does it, the callback is called.

    python benchmarks/interaction.py

It is measured without and with a run key, that is with TLS 1.3 and certificates on both sides. The
floor is the least that two processes need for the same two messages and their two answers: JSON
lines over two sockets that stay open. All take turns. Printed are medians, 95th and 99th
percentiles in milliseconds, and the processor time of a round trip in the master's process.
"""

import argparse
import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from statistics import median, quantiles
from typing import Any

from _timing import Figure

from ding.interaction import Master, Slave

GOAL_MS = 3.0
KEY = "the key of the run, which has 32 letters or more"


class Echo(Slave):
    def _process_task(self, task: Any) -> Any:
        return task


def serve_slave(key: str | None = None) -> None:
    with Echo(port=0, key=key) as slave:
        print(slave.port, flush=True)
        sys.stdin.read()


def serve_floor() -> None:
    """Answers each line twice: that it was received, and, after asking for it, what came of it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        pair = [server.accept()[0] for _ in range(2)]
        tasks, answers = (connection.makefile("rwb", buffering=0) for connection in pair)
        for line in tasks:
            tasks.write(b'{"success": true}\n')
            answers.write(json.dumps(json.loads(line)).encode() + b"\n")
            answers.readline()


SIDES: dict[str, Callable[[], None]] = {
    "slave": serve_slave,
    "slave with key": lambda: serve_slave(KEY),
    "floor": serve_floor,
}


@contextlib.contextmanager
def serving(side: str) -> Iterator[int]:
    """The port of a side in a separate process."""
    command = [sys.executable, __file__, "--serve", side]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        try:
            yield int(child.stdout.readline())
        finally:
            child.stdin.close()
            if side == "floor":
                child.kill()


@contextlib.contextmanager
def round_trip(key: str | None = None) -> Iterator[Callable[[dict], Any]]:
    with (
        serving("slave" if key is None else "slave with key") as port,
        Master(port=0, key=key) as master,
        master.new_connection("slave", "127.0.0.1", port) as connection,
    ):
        done: list[Any] = []

        def go(data: dict) -> Any:
            task = connection.new_task(data).on_complete(lambda _, result: done.append(result))
            task.start().join(60)
            return done.pop()

        yield go


@contextlib.contextmanager
def floor() -> Iterator[Callable[[dict], Any]]:
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(serving("floor"))
        pair = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in "ab"]
        tasks, answers = (connection.makefile("rwb", buffering=0) for connection in pair)

        def go(data: dict) -> Any:
            tasks.write(json.dumps(data).encode() + b"\n")
            json.loads(tasks.readline())
            result = json.loads(answers.readline())
            answers.write(b'{"success": true}\n')
            return result

        yield go


def times(go: Callable[[dict], Any], count: int) -> tuple[list[float], float]:
    """Milliseconds of each round trip, and processor milliseconds of one."""
    spent, cpu = [], time.process_time()
    for number in range(count):
        begin = time.perf_counter()
        assert go({"number": number, "text": "x" * 200})["number"] == number
        spent.append((time.perf_counter() - begin) * 1e3)
    return spent, (time.process_time() - cpu) / count * 1e3


def turns(rounds: int, count: int) -> dict[str, list[tuple[list[float], float]]]:
    """What `times` finds for both sides, in turns."""
    with round_trip() as plain, round_trip(KEY) as secured, floor() as least:
        sides = {"task round trip": plain, "the same with a run key": secured, "floor": least}
        for go in sides.values():
            times(go, count // 5)
        found: dict[str, list[tuple[list[float], float]]] = {name: [] for name in sides}
        for _ in range(rounds):
            for name, go in sides.items():
                found[name].append(times(go, count))
    return found


def measure(rounds: int, seconds: float) -> list[Figure]:
    """Median and 99th percentile of round trips, each round some 300 of them for a second."""
    found = turns(rounds, max(100, int(300 * seconds)))
    ours, _, least = ([spent for spent, _ in parts] for parts in found.values())
    limit = [GOAL_MS] * rounds
    p50, p99 = [median(spent) for spent in ours], [quantile(spent, 99) for spent in ours]
    return [
        Figure("task round trip, median", p50, limit, "limit", 1, "ms", True),
        Figure(
            *("task round trip, 99th percentile", p99),
            *([quantile(spent, 99) for spent in least], "two sockets", 100, "ms", True),
        ),
    ]


def quantile(values: list[float], percent: int) -> float:
    return quantiles(values, n=100)[percent - 1]


def main(rounds: int, count: int) -> None:
    print("| side | p50 ms, median [least .. greatest round] | p95 ms | p99 ms | cpu ms |")
    print("|---|---|---|---|---|")
    for name, parts in turns(rounds, count).items():
        middle = [median(spent) for spent, _ in parts]
        high = [median(quantile(spent, percent) for spent, _ in parts) for percent in (95, 99)]
        cpu = median(cpu for _, cpu in parts)
        span = f"{median(middle):.2f} [{min(middle):.2f} .. {max(middle):.2f}]"
        print(f"| {name} | {span} | {high[0]:.2f} | {high[1]:.2f} | {cpu:.2f} |")
    print(f"goal: p50 of a task's round trip <= {GOAL_MS:g} ms on an idle machine")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--serve", choices=list(SIDES), help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--count", type=int, default=300, help="round trips of a round")
    args = parser.parse_args()
    if args.serve:
        SIDES[args.serve]()
    else:
        main(args.rounds, args.count)
