"""Virtual environments of the peers, made next to this file at their first use.

    python benchmarks/_peers.py

makes them all. A package that cannot be installed is left out, and with it its rows of the table.
With ``BENCH_PEERS=installed`` no environment is made, and rows of peers without one are left out.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE / ".peers"

_TORCH = "torch==2.13.0"
#: Name of the environment to what is installed into it, one pip call each.
ENVIRONMENTS: dict[str, list[list[str]]] = {
    "peers": [
        # The same physics: HalfCheetah moves otherwise from MuJoCo 4 on.
        ["-c", str(HERE.parent / "constraints.txt"), "torch", "gymnasium[box2d,mujoco]", "ale-py"],
        ["stable-baselines3"],
        ["opencv-python-headless"],  # SB3 resizes Atari's frames with it
        ["cpprb"],
        ["torchrl"],
        ["envpool"],
        ["tianshou"],
    ],
    "rllib": [[_TORCH, "ray[rllib]"]],
    "di-engine": [
        ["setuptools>=77.0.3,<80", "wheel", _TORCH],
        ["-r", str(HERE / "di-engine-requirements.txt")],
        ["--no-deps", "DI-engine==0.5.3"],
    ],
}


def peer_python(name: str) -> str:
    """The interpreter of a peers' environment, which is made if it is missing (minutes).

    Args:
        name: A key of `ENVIRONMENTS`.
    """
    python = FOLDER / name / "bin" / "python"
    if not python.exists() and os.environ.get("BENCH_PEERS") != "installed":
        subprocess.run([sys.executable, "-m", "venv", str(FOLDER / name)], check=True)
        for packages in ENVIRONMENTS[name]:
            subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], check=False)
    return str(python)


def is_installed(name: str) -> bool:
    """Whether a peers' environment could be made."""
    return os.path.exists(peer_python(name))


if __name__ == "__main__":
    for environment in ENVIRONMENTS:
        print(peer_python(environment))
