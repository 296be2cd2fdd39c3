"""Ids of environments: what an old one is called now, and which package simulates it."""

import importlib.util
import re
from dataclasses import dataclass
from typing import Any

import gymnasium


@dataclass(frozen=True)
class Simulator:
    """A package beside gymnasium that environments need.

    Attributes:
        module: What is imported; for some packages that makes their ids known to gymnasium.
        package: What is installed.
        extra: The extra of this package that brings it.
    """

    module: str
    package: str
    extra: str

    @property
    def is_installed(self) -> bool:
        return importlib.util.find_spec(self.module) is not None

    @property
    def cure(self) -> str:
        """How to install it."""
        return (
            f'it needs {self.package}: pip install "ding[{self.extra}]" (or pip install '
            f"{self.package})"
        )


ALE = Simulator("ale_py", "ale-py", "atari")
MUJOCO = Simulator("mujoco", "mujoco", "mujoco")
MINIGRID = Simulator("minigrid", "minigrid", "minigrid")
BOX2D = Simulator("Box2D", "Box2D", "box2d")

_BOX2D = ("LunarLander", "LunarLanderContinuous", "BipedalWalker", "BipedalWalkerHardcore")
_MUJOCO = (
    *("Ant", "HalfCheetah", "Hopper", "Humanoid", "HumanoidStandup", "InvertedDoublePendulum"),
    *("InvertedPendulum", "Pusher", "Reacher", "Swimmer", "Walker2d"),
)
_ATARI = re.compile(r"ALE/\w+-v\d+|\w+NoFrameskip-v\d+|\w+-ram-v\d+|\w+Deterministic-v\d+")
_VERSION = re.compile(r"(.+)-v(\d+)")
#: Arguments with which the fourth version has the observations of the ones before.
_AS_BEFORE: dict[str, dict[str, Any]] = {"Ant-v4": {"use_contact_forces": True}}


def simulator_of(env_id: str) -> Simulator | None:
    """The package that environments with such an id need beside gymnasium."""
    name = env_id.rpartition("-v")[0]
    if name in (*_BOX2D, "CarRacing"):
        return BOX2D
    if name in _MUJOCO:
        return MUJOCO
    if name.startswith(("MiniGrid-", "BabyAI-")):
        return MINIGRID
    return ALE if _ATARI.fullmatch(env_id) else None


def current_id(env_id: str) -> tuple[str, dict[str, Any]]:
    """The id under which an environment is there now, and the arguments that keep it as it was.

    MuJoCo's first three versions (``mujoco-py``) become the fourth, which has their rewards and
    observations; of other environments that are gone, the newest version is taken. An id that
    nobody knows stays as it is.
    """
    simulator = simulator_of(env_id)
    if simulator in (ALE, MINIGRID):
        _make_known(simulator)
    match = _VERSION.fullmatch(env_id)
    known = gymnasium.registry
    if match is None or (env_id in known and simulator is not MUJOCO):
        return env_id, {}
    name, version = match[1], int(match[2])
    if simulator is MUJOCO:
        if version > 3:
            return env_id, {}
        now = f"{name}-v4" if f"{name}-v4" in known else _newer(name, version)
        return now or env_id, dict(_AS_BEFORE.get(now or "", {}))
    if simulator is ALE and f"ALE/{name.removesuffix('NoFrameskip')}-v5" in known:
        game = name.removesuffix("NoFrameskip")
        sticky = 0.0 if version == 4 else 0.25
        return f"ALE/{game}-v5", {"frameskip": 1, "repeat_action_probability": sticky}
    return _newer(name, version) or env_id, {}


def old_id_line(env_id: str) -> str | None:
    """What to tell a user whose id became another; ``None`` for one that is there."""
    now, kwargs = current_id(env_id)
    if now == env_id:
        return None
    given = f" with {', '.join(f'{name}={value}' for name, value in kwargs.items())}"
    return f"env.env_id={env_id!r} is not there any more: {now!r} is used{given if kwargs else ''}"


def newest_id(name: str) -> str:
    """The newest id of an environment that gymnasium has had since its first version."""
    return _newer(name, -1) or name


def _newer(name: str, version: int) -> str | None:
    """The newest id of a name, if it has a higher version."""
    versions = [
        int(match[2])
        for match in map(_VERSION.fullmatch, gymnasium.registry)
        if match is not None and match[1] == name
    ]
    return f"{name}-v{max(versions)}" if max(versions, default=0) > version else None


def _make_known(simulator: Simulator) -> None:
    """Import a package whose import registers ids with gymnasium."""
    try:
        module = importlib.import_module(simulator.module)
    except ModuleNotFoundError:
        return  # making the environment says what is missing
    gymnasium.register_envs(module)
    if simulator is ALE:  # which greets once for each environment
        module.ALEInterface.setLoggerMode(module.LoggerMode.Error)
