"""Every script under benchmarks/ runs: with numbers so small that its figures mean nothing.

Peers are not installed for it; rows of missing ones are left out.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
QUICK = "--rounds 1 --seconds 0.02"
#: Arguments of each script, and words that its output has to contain.
SCRIPTS = {
    "breakdown": ("dqn --seconds 0.1", "update: backward"),
    "gpu": (f"dqn --device cpu {QUICK}", "hand-written compiled"),
    "coordinator": ("--workers 2 --seconds 0.5", "| 2 |"),
    "data_plane": (QUICK, "limit"),
    "engines": ("--rounds 1 --only task", "request and answer, ray"),
    "env_managers": (QUICK, "SyncVectorEnv"),
    "interaction": ("--rounds 1 --count 10", "task round trip"),
    "kills": ("--count 1 --mode serial", "1 of 1"),
    "learning_margins": (
        "--seeds 1 --capabilities default --jobs 1 --results margins -- tests/policy/test_d4pg.py",
        "1 tests",
    ),
    "memory": (QUICK, "one copy of each frame"),
    "parallel": ("--rounds 1", "serial mode"),
    "parallel_data": ("--rounds 1 --seconds 1", "samples"),
    "parallel_learning": ("--seeds 0", "1 of 1 converged"),
    "pipelines": (
        f"dqn_lander ppo_lander sac_cheetah base_env base_env_rows {QUICK}",
        "hand-written",
    ),
    "policies": (f"dqn {QUICK}", "| figure |"),
    "public_configs": (f"{ROOT}/tests/benchmarks/config_keys.md", "policies of 3 of 3 configs"),
    "replay_buffers": (f"cartpole/sample/512 {QUICK}", "floor"),
    "returns": (
        f"{ROOT}/configs/cartpole/cartpole_dqn_config.py --seeds 0 --env-step 200 --out returns",
        "cartpole_dqn_config, seed 0",
    ),
    "run_all": (f"startup {QUICK}", "ding --help"),
    "run_log": (QUICK, "console (quiet) and run log"),
    "scale": ("--workers 2 --seconds 0.5 --processes 1", "| ray | 2 | 2 |"),
    "startup": (QUICK, "ding --help"),
    "tensor_files": (QUICK, "safetensors"),
}
#: A part of `returns`, and scripts that are run by tests of what they attack.
OTHERS = {"zoo", "flips", "floods"}


def test_no_script_is_forgotten():
    names = {path.stem for path in BENCHMARKS.glob("[a-z]*.py")}
    assert names == SCRIPTS.keys() | OTHERS


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", SCRIPTS)
def test_runs(name):
    arguments, words = SCRIPTS[name]
    command = [sys.executable, str(BENCHMARKS / f"{name}.py"), *arguments.split()]
    env = {**os.environ, "BENCH_PEERS": "installed", "BENCH_ERRORS": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=220)
    assert (done.returncode, words in done.stdout) == (0, True), done.stdout + done.stderr
