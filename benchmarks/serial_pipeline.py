"""The serial pipeline: env steps per second while training, and the time until CartPole is learned.

While training, each round is 8 environment steps and 5 updates, as pipelines do it. The time to a
mean return of 195 is that of ``configs/cartpole/cartpole_dqn_config.py`` through both libraries'
``serial_pipeline``, without imports; the median over the seeds.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _cartpole import (
    BATCH,
    EPS,
    HandWrittenDqn,
    di_engine_env_class,
    di_engine_parts,
    ding_parts,
    hand_written_8_envs,
    hand_written_steps,
    sb3_dqn,
)
from _peers import is_installed, peer_python
from _timing import HERE, Figure, Work, command_line, compare, in_turns

UPDATES = 5
CONFIG = HERE.parent / "configs" / "cartpole" / "cartpole_dqn_config.py"
SEEDS = range(10)


def ding():
    parts = ding_parts("base", 8, 8, update_per_collect=UPDATES)
    collector, learner, buffer = parts.collector, parts.learner, parts.replay_buffer

    def act() -> int:
        parts.commander.step()
        data = collector.collect(train_iter=learner.train_iter, policy_kwargs={"eps": EPS})
        buffer.push(data, cur_collector_envstep=collector.envstep)
        for _ in range(UPDATES):
            batch = buffer.sample(BATCH, learner.train_iter)
            if batch is None:
                break
            learner.train(batch, collector.envstep)
        return len(data)

    return act


def hand_written():
    dqn = HandWrittenDqn()
    step = hand_written_steps(hand_written_8_envs(), dqn.ring, dqn.net)

    def act() -> int:
        n = step()
        for _ in range(UPDATES):
            dqn.update()
        return n

    return act


def sb3():
    model, collect = sb3_dqn()

    def act() -> int:
        n = collect(1)
        model.train(gradient_steps=UPDATES, batch_size=BATCH)
        return n

    return act


def di_engine():
    collector, buffer, learner = di_engine_parts(8)

    def act() -> int:
        data = collector.collect(train_iter=learner.train_iter, policy_kwargs={"eps": EPS})
        buffer.push(data, cur_collector_envstep=collector.envstep)
        for _ in range(UPDATES):
            batch = buffer.sample(BATCH, learner.train_iter)
            if batch is None:
                break
            learner.train(batch, collector.envstep)
        return len(data)

    return act


WORKS: dict[str, Work] = {
    "ding": ding,
    "hand-written": hand_written,
    "SB3": sb3,
    "DI-engine": di_engine,
}

GOALS = [
    ("serial pipeline, env steps while training", "ding", "hand-written", 0.95),
    ("serial pipeline, env steps while training", "ding", "SB3", 1.0),
    ("serial pipeline, env steps while training", "ding", "DI-engine", 1.0),
]


def learn_cartpole(seed: int) -> None:
    """Run the config with whichever `ding` this interpreter has; print seconds and env steps."""
    sys.path.insert(0, str(CONFIG.parent))
    from cartpole_dqn_config import create_config, main_config

    os.chdir(tempfile.mkdtemp())
    from ding.entry import serial_pipeline

    main_config.exp_name = "run"
    try:
        from ding.utils.run_log import RunLog as _  # noqa: F401
    except ImportError:
        steps = _run_di_engine(serial_pipeline, main_config, create_config, seed)
    else:
        begin = time.perf_counter()
        serial_pipeline((main_config, create_config), seed)
        spent = time.perf_counter() - begin
        steps = spent, json.loads(Path("run/run.json").read_text())["envstep"]
    print("RESULT", json.dumps(steps), flush=True)
    os._exit(0)


def _run_di_engine(serial_pipeline, main, create, seed: int) -> tuple[float, int]:
    env_class = di_engine_env_class()
    create.env = dict(type="unused", import_names=[])
    main.env.manager = dict(shared_memory=False)
    envs = main.env.collector_env_num, main.env.evaluator_env_num
    setting = [
        env_class,
        [{"is_train": True}] * envs[0],
        [{"is_train": False}] * envs[1],
    ]
    begin = time.perf_counter()
    serial_pipeline((main, create), seed, env_setting=setting)
    return time.perf_counter() - begin, env_class.collect_steps


def measure_learning(seeds=SEEDS) -> list[Figure]:
    """Time and env steps to a mean return of 195, seed by seed in turns."""
    if not is_installed("di-engine"):
        return []
    pythons = {"ding": sys.executable, "DI-engine": peer_python("di-engine")}
    runs: dict[str, list[tuple[float, int]]] = {name: [] for name in pythons}
    for seed in seeds:
        for name, python in pythons.items():
            env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE)}
            if name == "ding":
                env["PYTHONPATH"] += os.pathsep + str(HERE.parent)
                env["DING_CONSOLE"] = "plain"
            command = [python, __file__, "--learn", str(seed)]
            out = subprocess.run(command, env=env, capture_output=True, text=True).stdout
            line = next(x for x in out.splitlines() if x.startswith("RESULT "))
            runs[name].append(json.loads(line.removeprefix("RESULT ")))
    (seconds, steps), (other_seconds, other_steps) = (zip(*runs[name]) for name in pythons)
    name = f"cartpole_dqn_config to 195, {len(seconds)} seeds"
    return [
        Figure(f"{name}, time", [*seconds], [*other_seconds], "DI-engine", 1 / 3, "s", True),
        Figure(f"{name}, env steps", [*steps], [*other_steps], "DI-engine", 1, "steps", True),
    ]


def measure(rounds: int, seconds: float) -> list[Figure]:
    pythons = {"SB3": peer_python("peers"), "DI-engine": peer_python("di-engine")}
    sides = {name: pythons.get(name) for name in WORKS}
    figures = compare(in_turns(__file__, sides, rounds, seconds), GOALS)
    return [*figures, *measure_learning()]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--learn"]:
        learn_cartpole(int(sys.argv[2]))
    command_line(__doc__, WORKS, measure)
