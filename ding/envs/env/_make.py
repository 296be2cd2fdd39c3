"""Makes gymnasium environments by id, also by old ones, and explains failures."""

import copy
import functools
import importlib
import importlib.util
import logging
import re
import warnings
from dataclasses import dataclass
from typing import Any

import gymnasium
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from ding.utils.errors import ConfigError, DingError, EnvError, described
from ding.utils.types import Config

_logger = logging.getLogger(__name__)


def make_gymnasium(env_id: str, **kwargs: Any) -> gymnasium.Env:
    """``gymnasium.make`` without the wrappers that only guard against misuse.

    An old id becomes the one that came after it. ``DingEnvWrapper`` resets before it steps and
    checks actions itself; gymnasium's own checks would cost a tenth of a CartPole step.

    Raises:
        ConfigError: gymnasium does not know the id, or the environment refuses its arguments.
        EnvError: A package that the environment needs is missing.
    """
    asked_for = env_id
    env_id, own_kwargs = current_id(env_id)
    kwargs = {**own_kwargs, **kwargs}
    spec: str | EnvSpec = env_id
    if env_id in gymnasium.registry:
        spec = copy.copy(gymnasium.registry[env_id])
        spec.order_enforce = False
    if simulator_of(env_id) is MUJOCO:
        _hear_mujoco()
    try:
        with warnings.catch_warnings():
            # Of an old version, which was asked for, or was chosen for an older one.
            warnings.filterwarnings("ignore", message=r".*is out of date")
            env = gymnasium.make(spec, disable_env_checker=True, **kwargs)
    except DingError:
        raise
    except (Exception, SystemExit) as error:
        raise _explained(asked_for, error) from error
    core = env.unwrapped
    actions = getattr(core, "action_space", None)
    if type(actions) is spaces.Discrete:
        core.action_space = _QuickDiscrete.like(actions)
    return env


class _QuickDiscrete(spaces.Discrete):
    """Compares ints with ints: environments ask at every step whether it contains an action.

    gymnasium's own takes a third of CartPole's step, as its bounds are numpy's numbers.
    """

    _low: int
    _end: int

    @classmethod
    def like(cls, space: spaces.Discrete) -> "_QuickDiscrete":
        quick = cls(int(space.n), start=int(space.start))
        # With its generator, so that a seeded space draws the same actions.
        vars(quick).update(vars(space))
        quick._low, quick._end = int(space.start), int(space.start + space.n)
        return quick

    def contains(self, x: object) -> bool:
        if type(x) is int:
            return self._low <= x < self._end
        return super().contains(x)


def env_name(env: object) -> str:
    """An environment's name in messages: its id, else the class at its core."""
    spec_id = getattr(getattr(env, "spec", None), "id", None)
    inner = getattr(env, "env", None)
    if spec_id or inner is None or inner is env:
        return str(spec_id or type(env).__name__)
    return env_name(inner)


@functools.cache
def _hear_mujoco() -> None:
    """Log MuJoCo's warnings, each once, in place of a file in the working folder."""
    try:
        mujoco: Any = importlib.import_module("mujoco")
    except ImportError:
        return  # making the environment says so
    once = functools.cache(lambda text: _logger.info("MuJoCo: %s", text))
    if hasattr(mujoco, "set_mju_user_warning"):
        mujoco.set_mju_user_warning(lambda text: once(text.strip()))


def _explained(env_id: str, error: BaseException) -> Exception:
    simulator = simulator_of(env_id)
    if simulator is not None and not simulator.is_installed:
        return EnvError(f"cannot make env {env_id!r}: {simulator.cure}")
    if isinstance(error, gymnasium.error.DependencyNotInstalled):
        return EnvError(f"cannot make env {env_id!r}: {error}")
    if isinstance(error, ModuleNotFoundError):
        # gymnasium raises one without a name from that of the module that an id begins with.
        name = error.name or getattr(error.__cause__, "name", None)
        return EnvError(
            f"cannot make env {env_id!r}: the module {name!r} is missing; install it, or "
            "correct env.env_id"
        )
    if isinstance(error, gymnasium.error.UnregisteredEnv | gymnasium.error.DeprecatedEnv):
        own = f" For one of your own, name the module that registers it: my_module:{env_id}"
        if "mean" in str(error):  # gymnasium suggests a name itself where one is close
            own = ""
        return ConfigError(f"env.env_id={env_id!r} is not known to gymnasium: {error}{own}")
    if isinstance(error, TypeError) and "argument 'render_mode'" in str(error):
        return EnvError(
            f"env {env_id!r} cannot be filmed: its __init__ takes no render_mode; define "
            "__init__(self, render_mode=None) and set self.render_mode"
        )
    if isinstance(error, TypeError) and "argument" in str(error):
        return ConfigError(f"env.kwargs do not suit env {env_id!r}: {error}")
    if isinstance(error, gymnasium.error.Error):
        return ConfigError(f"env.env_id={env_id!r}: {error}")
    return EnvError(f"cannot make env {env_id!r}: {described(error)}")


# ---- ids ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Simulator:
    """A package that environments need in addition to gymnasium.

    Attributes:
        module: Its import makes some packages' ids known to gymnasium.
        package: Its name for pip.
        extra: The extra of this package that installs it.
    """

    module: str
    package: str
    extra: str

    @property
    def is_installed(self) -> bool:
        return importlib.util.find_spec(self.module) is not None

    @property
    def cure(self) -> str:
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
_AS_BEFORE: dict[str, Config] = {"Ant-v4": {"use_contact_forces": True}}


def simulator_of(env_id: str) -> Simulator | None:
    """The package that environments with such an id need."""
    name = env_id.rpartition("-v")[0]
    if name in (*_BOX2D, "CarRacing"):
        return BOX2D
    if name in _MUJOCO:
        return MUJOCO
    if name.startswith(("MiniGrid-", "BabyAI-")):
        return MINIGRID
    if _ATARI.fullmatch(env_id):
        return ALE
    # EnvPool's name of a game, ``Pong-v5``, which gymnasium has as ``ALE/Pong-v5``.
    is_unknown = re.fullmatch(r"[A-Z]\w+-v5", env_id) and env_id not in gymnasium.registry
    return ALE if is_unknown and ALE.is_installed else None


def current_id(env_id: str) -> tuple[str, Config]:
    """The id that an environment has now, and the arguments that keep it as it was.

    MuJoCo's first three versions (``mujoco-py``) become the fourth, which has their rewards and
    observations; others that no longer exist become the newest version. An unknown id stays.
    """
    simulator = simulator_of(env_id)
    if simulator in (ALE, MINIGRID):
        _make_known(simulator)
    match = _VERSION.fullmatch(env_id)
    known = gymnasium.registry
    if f"ALE/{env_id}" in known:
        return f"ALE/{env_id}", {}
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
        # Version 0 repeats actions at random, version 4 does not (Machado et al. 2018).
        sticky = 0.0 if version == 4 else 0.25
        return f"ALE/{game}-v5", {"frameskip": 1, "repeat_action_probability": sticky}
    return _newer(name, version) or env_id, {}


def old_id_line(env_id: str) -> str | None:
    """What to report about an id that became another; ``None`` for one that exists."""
    now, kwargs = current_id(env_id)
    if now == env_id:
        return None
    given = ", ".join(f"{name}={value}" for name, value in kwargs.items())
    new = f"{now!r} with {given}" if given else repr(now)
    return f"env.env_id={env_id!r} does not exist any more: {new} is used"


def newest_id(name: str) -> str:
    """The newest id of an environment that gymnasium has had since its first version."""
    return _newer(name, -1) or name


def _newer(name: str, version: int) -> str | None:
    """The newest id of a name, if it has a higher version."""
    known = map(_VERSION.fullmatch, gymnasium.registry)
    versions = [int(match[2]) for match in known if match is not None and match[1] == name]
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
