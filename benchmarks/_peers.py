"""Virtual environments of the peers, made beside this file when they are first asked for.

    python benchmarks/_peers.py

makes them all. A package that cannot be installed is left out, and with it its rows of the table.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE / ".peers"

_TORCH = "torch==2.13.0"
#: Name of the environment to what is installed into it, one pip call each.
ENVIRONMENTS: dict[str, list[list[str]]] = {
    "peers": [
        [_TORCH, "gymnasium==1.4.0"],
        ["stable-baselines3"],
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


def peer_python(name: str, make: bool = True) -> str | None:
    """The interpreter of a peers' environment; ``None`` if there is none and `make` is false.

    Args:
        name: A key of `ENVIRONMENTS`.
        make: Whether to make the environment if it is missing (minutes).
    """
    python = FOLDER / name / "bin" / "python"
    if not python.exists():
        if not make:
            return None
        subprocess.run([sys.executable, "-m", "venv", str(FOLDER / name)], check=True)
        for packages in ENVIRONMENTS[name]:
            subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], check=False)
    return str(python)


if __name__ == "__main__":
    for environment in ENVIRONMENTS:
        print(peer_python(environment))
