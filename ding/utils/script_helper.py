"""Helpers for users' scripts, which this package does not use itself.

Rendering of environments, shortest paths in mazes (demonstrations for policies that imitate
planning), a parameter scheduler, and helpers for Slurm and Kubernetes.
"""

import inspect
import operator
import os
import re
import socket
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from easydict import EasyDict

from ding.utils import durations
from ding.utils.default_helper import deep_merge_dicts
from ding.utils.errors import ConfigError
from ding.utils.types import Config, Settings

_DEFAULT_FPS = 30


def render(env: object, render_mode: str | None = "rgb_array") -> Any:
    """Render an environment's current state as an image, uint8 ``[H, W, 3]``.

    Args:
        env: An environment; a wrapper without ``render`` delegates to the wrapped environment.
        render_mode: For environments with the old API, in which ``render`` has a ``mode``.
    """
    for one in _chain(env):
        if not hasattr(one, "render"):
            continue
        takes_mode = "mode" in inspect.signature(one.render).parameters
        # Environments with the newer API get the mode in their constructor.
        return one.render(mode=render_mode) if takes_mode else one.render()
    raise AttributeError(f"{type(env).__name__} has no render(), nor has what it wraps")


def fps(env_manager: object) -> int:
    """Frames per second for rendering an env manager's environments; 30 if unknown."""
    env = getattr(env_manager, "env_ref", env_manager)
    getattr(env, "observation_space", None)  # creates environments that are created lazily
    for one in _chain(env):
        metadata = getattr(one, "metadata", None) or {}
        for key in ("render_fps", "video.frames_per_second"):
            if metadata.get(key):
                return int(metadata[key])
    return _DEFAULT_FPS


def _chain(env: object) -> list[Any]:
    """An environment and the environments that it wraps, from the outside in."""
    found: list[object] = []
    while env is not None and not any(env is one for one in found):
        found.append(env)
        inner = getattr(env, "_env", None)
        env = getattr(env, "env", None) if inner is None else inner
    return found


#: Change of row and column for each action.
_MOVES = ((1, 0), (0, 1), (-1, 0), (0, -1))
Cell = tuple[int, int]


class Maze(Protocol):
    """The attributes of a maze that the search uses."""

    size: int
    n_action: int
    target_location: Sequence[int]
    nav_map: Sequence[str]


def get_vi_sequence(env: Maze, observation: np.ndarray) -> tuple[list[Cell], np.ndarray]:
    """Find a shortest path by breadth-first search from the target.

    Args:
        env: A maze; ``nav_map`` has rows of characters, in which ``x`` is a wall. Actions 0 to 3
            lead down, right, up and left.
        observation: ``[size, size, channels]``; in the last channel the start is 1.

    Returns:
        The cells of the path from the start, without the target (empty if there is no path), and
        the best known action of each cell after each step of the search, int32 ``[steps, size,
        size]``, in which ``n_action`` means unknown.
    """
    rows, columns = np.nonzero(observation[..., -1] == 1)
    start = int(rows[0]), int(columns[0])
    target = int(env.target_location[0]), int(env.target_location[1])
    best = np.full((env.size, env.size), env.n_action, np.int32)
    border, seen, steps = [target], {target}, []
    while border and start not in seen:
        following = []
        for row, column in border:
            for action, (down, right) in enumerate(_MOVES):
                cell = row - down, column - right
                if cell in seen or not _is_free(env, cell):
                    continue
                seen.add(cell)
                following.append(cell)
                best[cell] = action
        steps.append(best.copy())
        border = following
    path, cell = [], start
    while start in seen and cell != target:
        path.append(cell)
        down, right = _MOVES[best[cell]]
        cell = cell[0] + down, cell[1] + right
    return path, np.array(steps, np.int32).reshape(-1, env.size, env.size)


def _is_free(env: Maze, cell: Cell) -> bool:
    row, column = cell
    if not (0 <= row < env.size and 0 <= column < env.size):
        return False
    return env.nav_map[row][column] != "x"


_CHANGES = {
    "reduce": operator.sub,
    "add": operator.add,
    "multi": operator.mul,
    "div": operator.truediv,
}


class Scheduler:
    """Changes a parameter when a metric stops improving.

    Config (every key has a default):

    - ``schedule_flag``: whether the parameter is scheduled at all.
    - ``schedule_mode``: ``'reduce'`` subtracts ``factor``, ``'add'`` adds it, ``'multi'``
      multiplies by it, ``'div'`` divides by it.
    - ``factor``: see ``schedule_mode``.
    - ``change_range``: minimum and maximum of the parameter.
    - ``threshold``: improvements up to this value do not count.
    - ``optimize_mode``: ``'min'`` if smaller metrics are better, or ``'max'``.
    - ``patience``: number of steps without improvement that do not change the parameter.
    - ``cooldown``: number of steps after a change that do not count.
    """

    config = {
        "schedule_flag": False,
        "schedule_mode": "reduce",
        "factor": 0.05,
        "change_range": [-1, 1],
        "threshold": 1e-4,
        "optimize_mode": "min",
        "patience": 1,
        "cooldown": 0,
    }

    def __init__(self, merged_scheduler_config: EasyDict | None = None) -> None:
        cfg = EasyDict(deep_merge_dicts(self.config, merged_scheduler_config))
        self.schedule_mode = _one_of(cfg, "schedule_mode", tuple(_CHANGES))
        self.optimize_mode = _one_of(cfg, "optimize_mode", ("min", "max"))
        self.low, self.high = cfg.change_range
        if self.low > self.high:
            raise ConfigError(f"change_range must be [least, greatest], got {cfg.change_range}")
        if self.schedule_mode == "div" and cfg.factor == 0:
            raise ConfigError("factor must not be 0 when schedule_mode is 'div'")
        self.schedule_flag = cfg.schedule_flag
        self.factor = cfg.factor
        self.threshold = cfg.threshold
        self.patience = cfg.patience
        self.cooldown = cfg.cooldown
        self._best: float | None = None
        self._bad_steps = 0
        self._cooling = 0

    def step(self, metrics: float, param: float) -> float:
        """Record a metric; returns the next parameter."""
        if not self.schedule_flag:
            return param
        if self.is_better(metrics):
            self._best = metrics
            self._bad_steps = 0
        elif self._cooling == 0:
            self._bad_steps += 1
        self._cooling = max(0, self._cooling - 1)
        if self._bad_steps <= self.patience:
            return param
        self._bad_steps, self._cooling = 0, self.cooldown
        return self.update_param(param)

    def update_param(self, param: float) -> float:
        """The parameter after one change, within its range."""
        param = _CHANGES[self.schedule_mode](param, self.factor)
        return min(self.high, max(self.low, param))

    def is_better(self, metrics: float) -> bool:
        """Whether a metric improves on the best so far by more than the threshold."""
        if self._best is None:
            return True
        gain = self._best - metrics if self.optimize_mode == "min" else metrics - self._best
        return gain > self.threshold


def _one_of(cfg: EasyDict, key: str, allowed: tuple[str, ...]) -> str:
    if cfg[key] not in allowed:
        raise ConfigError(f"{key} must be one of {', '.join(allowed)}, got {cfg[key]!r}")
    return cfg[key]


_FREE_PORT = "import socket; s = socket.socket(); s.bind(('', 0)); print(s.getsockname()[1])"


def node_to_host(node: str) -> str:
    """The IPv4 address of a node: the one in its name (``a-10-1-2-3``), or as resolved."""
    numbers = re.search(r"(\d+)-(\d+)-(\d+)-(\d+)$", node)
    return ".".join(numbers.groups()) if numbers else socket.gethostbyname(node)


def node_to_partition(target_node: str) -> str:
    """The (first) partition of a node, from ``sinfo``."""
    return _ask("sinfo", "-h", "-n", target_node, "-o", "%R").split()[0]


def find_free_port_slurm(node: str) -> int:
    """A free TCP port on a node, found by a script that ``srun`` runs there."""
    partition = node_to_partition(node)
    return int(_ask("srun", "-p", partition, "-w", node, sys.executable, "-c", _FREE_PORT))


def _ask(*command: str) -> str:
    return subprocess.check_output(command, text=True, timeout=durations.SLURM_TIMEOUT)


DEFAULT_K8S_COLLECTOR_PORT = 22270
DEFAULT_K8S_LEARNER_PORT = 22271
DEFAULT_K8S_COORDINATOR_PORT = 22273

DEFAULT_NAMESPACE = "default"
DEFAULT_POD_NAME = "dijob-example-coordinator"
DEFAULT_API_VERSION = "v1alpha1"


def exist_operator_server() -> bool:
    """Whether the environment variable ``KUBERNETES_SERVER_URL`` is set."""
    return "KUBERNETES_SERVER_URL" in os.environ


def get_operator_server_kwargs(cfg: Settings) -> Config:
    """Arguments for `OperatorServer`, from the config or the pod's environment variables.

    Args:
        cfg: May contain ``system_addr`` (``host[:port]``) and ``api_version``.

    Raises:
        ConfigError: Neither contains the server's address.
    """
    address = cfg.get("system_addr") or os.environ.get("KUBERNETES_SERVER_URL")
    if not address:
        raise ConfigError(
            "no operator server: set system_addr in the config or KUBERNETES_SERVER_URL"
        )
    host, _, port = address.partition(":")
    return {
        "api_version": cfg.get("api_version")
        or os.environ.get("KUBERNETES_SERVER_API_VERSION", DEFAULT_API_VERSION),
        "namespace": os.environ.get("KUBERNETES_POD_NAMESPACE", DEFAULT_NAMESPACE),
        "name": os.environ.get("KUBERNETES_POD_NAME", DEFAULT_POD_NAME),
        "host": host,
        "port": int(port) if port else None,
    }
