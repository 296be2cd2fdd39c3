"""What a process of `_parallel_runs` does: one config to its goal, with one library.

Prints one line ``RESULT {...}`` when the pipeline has returned.
"""

import importlib
import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

DI_ENGINE_CONFIG = "dizoo.classic_control.cartpole.config.parallel.cartpole_dqn_config"
CONFIGS = Path(__file__).resolve().parent.parent / "configs"


def load(path: Path):
    spec = importlib.util.spec_from_file_location("config", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parallel(seed: int) -> dict:
    return run_parallel(load(CONFIGS / "cartpole" / "parallel" / "cartpole_dqn_config.py"), seed)


def small_batches(seed: int, **limits: Any) -> dict:
    """DI-engine's settings: batches of 32, ε down within 100,000 steps, episodes of 200 steps.

    But for two things. A target network that is copied every 100 updates carries what happens at
    the track's edge three steps (``nstep``) backwards with each copy: a policy that balances and
    drifts learns only after thousands of updates to brake, some fifty steps earlier. And returns
    go up and down around the goal: evaluations that are rare miss the policies that reach it.
    """
    config = load(CONFIGS / "cartpole" / "parallel" / "cartpole_dqn_config.py")
    config.main_config.env.env_id = "CartPole-v0"
    policy = config.main_config.policy
    policy.learn.update(batch_size=32, target_update_freq=10)
    policy.learn.learner.send_policy_freq = 1
    policy.collect.collector.update_policy_second = 3
    policy.other.commander.eval_share = 0.25
    policy.other.eps.update(end=0.1, decay=100_000)
    policy.other.replay_buffer.replay_buffer_size = 100_000
    for name, value in limits.items():
        section = config.system_config.coordinator
        (section if name.startswith("samples") else policy.other.commander)[name] = value
    return run_parallel(config, seed)


def small_batches_free(seed: int) -> dict:
    """The same, with collectors and learner that run free, one ε, and few evaluations."""
    return small_batches(seed, samples_per_insert=None, greedy_share=0.0, eval_share=0.0)


def small_batches_serial(seed: int) -> dict:
    config = load(CONFIGS / "cartpole" / "cartpole_dqn_config.py")
    config.main_config.env.env_id = "CartPole-v0"
    policy = config.main_config.policy
    policy.nstep = 3
    policy.learn.update(batch_size=32)
    policy.collect.n_sample = 16
    policy.other.eps.update(decay=100_000)
    return run_serial(config, seed)


def lunarlander(seed: int) -> dict:
    folder = CONFIGS / "lunarlander" / "parallel"
    return run_parallel(load(folder / "lunarlander_dqn_config.py"), seed)


def lunarlander_serial(seed: int) -> dict:
    return run_serial(load(CONFIGS / "lunarlander" / "lunarlander_dqn_config.py"), seed)


def serial(seed: int) -> dict:
    return run_serial(load(CONFIGS / "cartpole" / "cartpole_dqn_config.py"), seed)


def engine_section() -> dict:
    """What ``$BENCH_ENGINE`` names; small enough for a machine that does other things, too."""
    type_ = os.environ.get("BENCH_ENGINE", "flask_fs")
    return dict(type=type_, **({"object_store_memory": 400 * 2**20} if type_ == "ray" else {}))


def run_parallel(config: ModuleType, seed: int) -> dict:
    from ding.entry import parallel_pipeline

    config.main_config.exp_name = "run"
    config.system_config.engine = engine_section()
    config.system_config.path_data = "./run/data"
    config.system_config.path_policy = "./run/policy"
    begin = time.perf_counter()
    parallel_pipeline((config.main_config, config.create_config, config.system_config), seed)
    return ended(time.perf_counter() - begin)


def run_serial(config: ModuleType, seed: int) -> dict:
    from ding.entry import serial_pipeline

    config.main_config.exp_name = "run"
    begin = time.perf_counter()
    serial_pipeline((config.main_config, config.create_config), seed)
    return ended(time.perf_counter() - begin)


def ended(seconds: float) -> dict:
    end = json.loads(Path("run/run.json").read_text())
    return {
        "pipeline": seconds,
        "reached": end["status"] == "converged",
        "envstep": end["envstep"],
        "train_iter": end["train_iter"],
        "reason": end["reason"],
    }


def di_engine(seed: int) -> dict:
    from ding.entry import parallel_pipeline

    config = importlib.import_module(DI_ENGINE_CONFIG)
    begin = time.perf_counter()
    parallel_pipeline((config.main_config, config.create_config, config.system_config), seed)
    return {
        "pipeline": time.perf_counter() - begin,
        "reached": True,  # it returns when its commander says so
        "reason": "returned",
    }


SIDES = {
    "parallel": parallel,
    "serial": serial,
    "small_batches": small_batches,
    "small_batches_free": small_batches_free,
    "small_batches_serial": small_batches_serial,
    "lunarlander": lunarlander,
    "lunarlander_serial": lunarlander_serial,
    "DI-engine": di_engine,
}

if __name__ == "__main__":
    result = SIDES[sys.argv[1]](int(sys.argv[2]))
    print("RESULT", json.dumps(result), flush=True)
