"""What a process of `_parallel_runs` does: CartPole to a mean return of 195, with one library.

Prints one line ``RESULT {...}`` when the pipeline has returned.
"""

import importlib
import importlib.util
import json
import sys
import time
from pathlib import Path

DI_ENGINE_CONFIG = "dizoo.classic_control.cartpole.config.parallel.cartpole_dqn_config"
CONFIGS = Path(__file__).resolve().parent.parent / "configs" / "cartpole"


def load(path: Path):
    spec = importlib.util.spec_from_file_location("config", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parallel(seed: int) -> dict:
    from ding.entry import parallel_pipeline

    config = load(CONFIGS / "parallel" / "cartpole_dqn_config.py")
    config.main_config.exp_name = "run"
    config.system_config.path_data = "./run/data"
    config.system_config.path_policy = "./run/policy"
    begin = time.perf_counter()
    parallel_pipeline((config.main_config, config.create_config, config.system_config), seed)
    return ended(time.perf_counter() - begin)


def serial(seed: int) -> dict:
    from ding.entry import serial_pipeline

    config = load(CONFIGS / "cartpole_dqn_config.py")
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


if __name__ == "__main__":
    side = {"parallel": parallel, "serial": serial, "DI-engine": di_engine}[sys.argv[1]]
    result = side(int(sys.argv[2]))
    print("RESULT", json.dumps(result), flush=True)
