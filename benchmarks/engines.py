"""The engines of parallel mode compared, and RLlib with the same two cores.

    python benchmarks/engines.py [--rounds N] [--only data policy task cartpole lunarlander rllib]

``flask_fs`` (HTTP and a shared folder) and ``ray`` (actors, and an object store) take turns with
the same configs: samples and bytes from two collectors to a learner's batches, the time from asking
a policy for its weights until a collector uses them, the way of a request to a worker and back,
CartPole and LunarLander to their goals (start of Python to the end). RLlib trains CartPole to the
same goal with settings of its tuned examples, in a separate virtual environment.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from statistics import median

from _parallel_runs import run
from _peers import peer_python
from _timing import HERE, Figure, table
from parallel_data import watch

ENGINES = ("flask_fs", "ray")
RLLIB = ("PPO", "APPO", "DQN")
#: CPUs of a run, and seconds that RLlib has.
CORES, LIMIT = 2, 90.0
MOST_ROUNDS = 5


def measure(rounds: int, seconds: float = 8.0, only: tuple[str, ...] = ()) -> list[Figure]:
    """Figures over up to ``rounds`` rounds, each side once in each."""
    figures = []
    for name, part in PARTS.items():
        if not only or name in only:
            figures += part(min(rounds, MOST_ROUNDS), seconds)
    return figures


def data(rounds: int, seconds: float) -> list[Figure]:
    """Samples and bytes that arrive; Ray's objects compared with files."""
    found = _in_turns(
        rounds, lambda engine: [watch(case, seconds, engine) for case in ("cartpole", "atari")]
    )
    name = "two collectors to batches"
    rows, sizes = (
        {engine: [one[i][key] for one in found[engine]] for engine in ENGINES}
        for i, key in enumerate(("rows", "mb"))
    )
    return [
        Figure(f"{name}, CartPole-size, ray", *_pair(rows), "flask_fs", 0.7, "samples/s"),
        Figure(f"{name}, 84x84x4, ray", *_pair(sizes), "flask_fs", 0.5, "MB/s"),
    ]


def policy(rounds: int, seconds: float) -> list[Figure]:
    """Ages of policies when they are first used: half the time between two looks at least."""
    found = _in_turns(rounds, lambda engine: watch("policy", seconds, engine)["median_age"])
    return [Figure("policy asked to used, ray", *_pair(found), "flask_fs", 1.5, "s", True)]


def task(rounds: int, seconds: float) -> list[Figure]:
    """Median time of one request to a worker that has nothing to do."""
    found = _in_turns(rounds, _round_trip)
    return [Figure("request and answer, ray", *_pair(found), "flask_fs", 1.0, "ms", True)]


def _round_trip(engine: str) -> float:
    command = [sys.executable, os.path.abspath(__file__), "--round-trip", engine]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{HERE}{os.pathsep}{HERE.parent}"}
    with tempfile.TemporaryDirectory() as folder:  # for the run's own
        given = dict(env=env, cwd=folder, capture_output=True, text=True, timeout=120)
        out = subprocess.run(command, **given).stdout
    return float(next(line for line in out.splitlines() if line.startswith("RESULT "))[7:])


def cartpole(rounds: int, seconds: float) -> list[Figure]:
    return _to_goal("CartPole", "parallel", rounds)


def lunarlander(rounds: int, seconds: float) -> list[Figure]:
    return _to_goal("LunarLander", "lunarlander", rounds)


def _to_goal(name: str, side: str, rounds: int) -> list[Figure]:
    runs: dict[str, list] = {engine: [] for engine in ENGINES}
    for seed in range(rounds):
        for engine in ENGINES:
            runs[engine].append(run(side, seed, engine=engine))
            print(engine, runs[engine][-1], file=sys.stderr, flush=True)
    times = {engine: [one.wall for one in runs[engine]] for engine in ENGINES}
    missed = sum(not one.reached for engine in ENGINES for one in runs[engine])
    left = sum(one.processes + one.files for one in runs["ray"])
    return [
        Figure(f"{name} to its goal, start included, ray", *_pair(times), "flask_fs", 2, "s", True),
        Figure(f"{name}, not converged or left behind", [missed + left], [1], "none", 0, "", True),
    ]


def rllib(rounds: int, seconds: float) -> list[Figure]:
    """Env steps each second, and the time to the goal, against the best of its algorithms."""
    ours = {engine: [] for engine in ENGINES}
    theirs: dict[str, list[dict]] = {name: [] for name in RLLIB}
    for seed in range(rounds):
        for engine in ENGINES:
            ours[engine].append(run("parallel", seed, engine=engine))
        for name in RLLIB:
            theirs[name].append(_rllib(name, seed))
            print(name, theirs[name][-1], file=sys.stderr, flush=True)
    speeds = {name: [one["steps_per_second"] for one in theirs[name]] for name in RLLIB}
    times = {name: [one["reached"] or float("inf") for one in theirs[name]] for name in RLLIB}
    fastest = max(speeds, key=lambda name: median(speeds[name]))
    soonest = min(times, key=lambda name: median(times[name]))
    figures = []
    for engine in ENGINES:
        steps = [one.envstep / one.pipeline for one in ours[engine]]
        walls = [one.wall for one in ours[engine]]
        against = f"RLlib {fastest}", f"RLlib {soonest}"
        name = f"CartPole, {engine}"
        figures += [
            Figure(f"{name}, env steps", steps, speeds[fastest], against[0], 5, "1/s"),
            Figure(f"{name}, start to 195", walls, times[soonest], against[1], 0.5, "s", True),
        ]
    return figures


def _rllib(algorithm: str, seed: int) -> dict:
    command = [str(peer_python("rllib")), str(HERE / "_rllib_side.py")]
    done = subprocess.run(
        [*command, algorithm, str(CORES), str(seed), str(LIMIT)],
        env={**os.environ, "BENCH_BEGIN": str(time.time()), "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=3 * LIMIT,
    )
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            found: dict = json.loads(line.removeprefix("RESULT "))
            return found
    raise RuntimeError(f"RLlib's {algorithm}: {done.stderr[-2000:]}")


PARTS: dict[str, Callable[[int, float], list[Figure]]] = {
    "data": data,
    "policy": policy,
    "task": task,
    "cartpole": cartpole,
    "lunarlander": lunarlander,
    "rllib": rllib,
}


def _in_turns(rounds: int, act: Callable[[str], object]) -> dict[str, list]:
    found: dict[str, list] = {engine: [] for engine in ENGINES}
    for _ in range(rounds):
        for engine in ENGINES:
            found[engine].append(act(engine))
            print(engine, found[engine][-1], file=sys.stderr, flush=True)
    return found


def _pair(found: dict[str, list]) -> tuple[list, list]:
    """Ray's values and those of the default engine."""
    return found["ray"], found["flask_fs"]


def serve_round_trip(engine: str) -> None:
    print(f"RESULT {_ray_trip() if engine == 'ray' else _http_trip()}", flush=True)


def _http_trip() -> float:
    from interaction import round_trip

    with round_trip() as go:
        return _median_ms(lambda: go({"name": "resource"}))


def _ray_trip() -> float:
    from _idle_service import idle_service

    from ding.worker.engines.carrier import WithFiles, WorkerSpec
    from ding.worker.engines.ray_engine import RayCarrier
    from ding.worker.messages import ResourceRequest

    carrier = RayCarrier({"object_store_memory": 200 * 2**20}, "round_trip")
    carrier.open()
    try:
        handle = None
        while handle is None:
            try:
                handle = carrier.spawn(
                    WorkerSpec("collector0", "collector", idle_service), lambda cause: None
                )
            except OSError:
                continue  # it is being started
        request = WithFiles(ResourceRequest())
        return _median_ms(lambda: carrier.call(handle, request, 10.0))
    finally:
        carrier.close()


def _median_ms(act: Callable[[], object], count: int = 500) -> float:
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        act()
        times.append(time.perf_counter() - begin)
    return 1e3 * median(times)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--round-trip", metavar="ENGINE", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=[])
    args = parser.parse_args()
    if args.round_trip:
        serve_round_trip(args.round_trip)
    else:
        print(table(measure(args.rounds, args.seconds, tuple(args.only))))
