"""Console and run log: their share of the time of a real training run.

Whatever the pipeline calls of them is timed; they work in the caller's thread. A run that does not
stop at its goal is taken, so that evaluations do not rule.
"""

import json
import os
import pty
import subprocess
import sys
import tempfile
import threading
import time

from _timing import HERE, Figure, command_line

#: Env steps of a run per second of `--seconds`, and the fewest.
ENV_STEPS, FEWEST = 12_000, 1_000
MODES = ("live", "plain", "quiet")


def run(env_steps: int) -> None:
    """Train with all calls timed; prints the seconds of the run and of the calls."""
    os.chdir(tempfile.mkdtemp())
    sys.path.insert(0, str(HERE.parent / "configs" / "cartpole"))
    import logging

    from cartpole_dqn_config import create_config, main_config

    from ding.entry import serial_pipeline
    from ding.utils.console import Console
    from ding.utils.log_writer import DistributedWriter
    from ding.utils.run_log import RunLog

    spent, depth, starts = [0.0], [0], [0.0]

    def timed(owner: type, name: str) -> None:
        method = getattr(owner, name)

        def call(*args, **kwargs):
            depth[0] += 1
            begin = time.perf_counter()
            try:
                return method(*args, **kwargs)
            finally:
                depth[0] -= 1
                if not depth[0]:
                    spent[0] += time.perf_counter() - begin

        setattr(owner, name, call)

    for owner, names in (
        (Console, ("__enter__", "update", "log", "close")),
        (RunLog, ("__init__", "episode", "note", "flush", "finish", "close")),
        (DistributedWriter, ("add_scalar", "add_scalars", "add_histogram", "flush", "close")),
        (logging.Logger, ("info", "debug", "warning")),
    ):
        for name in names:
            if hasattr(owner, name):
                timed(owner, name)
    main_config.exp_name = "run"
    main_config.env.stop_value = 10**6
    main_config.policy.eval.evaluator.eval_freq = 1000
    starts[0] = time.perf_counter()
    serial_pipeline((main_config, create_config), 0, max_env_step=env_steps)
    total = time.perf_counter() - starts[0]
    with open(os.environ["RUN_LOG_RESULT"], "w") as file:
        json.dump([total, spent[0], threading.active_count()], file)


def _share(mode: str, env_steps: int) -> float:
    """Share of the calls in the time of a run, in percent; on a separate terminal."""
    result = tempfile.mktemp()
    master, slave = pty.openpty()
    drain = threading.Thread(target=_drain, args=(master,), daemon=True)
    drain.start()
    env = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": f"{HERE}{os.pathsep}{HERE.parent}",
        "DING_CONSOLE": mode,
        "RUN_LOG_RESULT": result,
        "TERM": "xterm-256color",
    }
    command = [sys.executable, __file__, "--run", str(env_steps)]
    subprocess.run(command, env=env, stdout=slave, check=True)
    os.close(slave)
    with open(result) as file:
        total, spent, _ = json.load(file)
    os.unlink(result)
    return spent / total


def _drain(master: int) -> None:
    try:
        while os.read(master, 65536):
            pass
    except OSError:
        pass  # the other end was closed


def measure(rounds: int, seconds: float) -> list[Figure]:
    env_steps = max(FEWEST, round(ENV_STEPS * seconds))
    shares: dict[str, list[float]] = {mode: [] for mode in MODES}
    for _ in range(max(1, rounds // 3)):
        for mode in MODES:
            shares[mode].append(100 * _share(mode, env_steps))
    return [
        Figure(f"console ({mode}) and run log", values, [1.0] * len(values), "limit", 1, "%", True)
        for mode, values in shares.items()
    ]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(int(sys.argv[2]))
        sys.exit()
    command_line(__doc__, {}, measure)
