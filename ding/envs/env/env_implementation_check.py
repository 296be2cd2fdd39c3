"""Checks that a user's environment keeps to what `BaseEnv` promises."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from gymnasium.utils.env_checker import data_equivalence

from ding.envs.vector_step import Obs
from ding.utils.errors import EnvError
from ding.utils.types import Config, Tree

from .base_env import BaseEnv, BaseEnvTimestep, is_truncated

_MAX_STEPS = 10_000  # an episode longer than this is not waited for


def check_all(env: BaseEnv) -> None:
    """Run every check on `env`, which is reset and stepped on the way.

    Raises:
        EnvError: Names the first rule that is broken.
    """
    for name in ("observation_space", "action_space", "reward_space"):
        _expect(_is_space(getattr(env, name, None)), f"it has no {name}")
    check_reset(env)
    check_step(env)
    check_obs_deepcopy(env)


def check_reset(env: BaseEnv) -> None:
    """The first observation lies in the observation space, and a seed settles it."""
    env.seed(0)
    first = copy.deepcopy(env.reset())
    check_array_space(first, env.observation_space, "the observation from reset()")
    env.seed(0)
    same = data_equivalence(first, env.reset())
    _expect(same, "reset() gives different observations after seed(0)")


def check_step(env: BaseEnv) -> None:
    """An episode of random actions: spaces, types and what ``info`` holds at its end."""
    env.seed(0)
    env.reset()
    for obs, reward, done, info in _episode(env):
        check_array_space(obs, env.observation_space, "the observation from step()")
        check_array_space(reward, env.reward_space, "the reward from step()")
        _expect(isinstance(done, (bool, np.bool_)), f"done is a {type(done).__name__}, not a bool")
        _expect(isinstance(info, dict), f"info is a {type(info).__name__}, not a dict")
        if done:
            is_truncated(info)


def check_obs_deepcopy(env: BaseEnv) -> None:
    """Observations of consecutive steps are different arrays.

    Env managers copy what they keep, so an environment may break this to save time; code that
    steps it without a manager then has to copy.
    """
    before = env.reset()
    for step in range(1, 3):
        obs, _, done, _ = env.step(env.random_action())
        check_different_memory(before, obs, step)
        before = env.reset() if done else obs


def check_array_space(ndarray: Obs, space: Tree, name: str) -> None:
    """The array, or each in a nest of them, has its space's shape and dtype and lies within.

    Raises:
        EnvError: Names `name`, what came and what was expected.
    """
    if isinstance(ndarray, np.ndarray):
        _expect(_is_space(space), f"{name} is an array, but its space is {space!r}")
        for what in ("dtype", "shape"):
            came, expected = getattr(ndarray, what), getattr(space, what)
            _expect(came == expected, f"{name} has {what} {came}, expected {expected}")
        _expect(space.contains(ndarray), f"{name} is {ndarray}, which lies outside of {space}")
        return
    inner: Tree = getattr(space, "spaces", space)
    if isinstance(ndarray, Mapping):
        same = isinstance(inner, Mapping) and set(inner) == set(ndarray)
        _expect(same, f"{name} has the keys {list(ndarray)}, its space is {space}")
        for key, value in ndarray.items():
            check_array_space(value, inner[key], f"{name}[{key!r}]")
    elif isinstance(ndarray, (list, tuple)):
        same = isinstance(inner, Sequence) and len(inner) == len(ndarray)
        _expect(same, f"{name} has {len(ndarray)} parts, its space is {space}")
        for i, (value, part) in enumerate(zip(ndarray, inner)):
            check_array_space(value, part, f"{name}[{i}]")
    else:
        raise EnvError(f"{name} is a {type(ndarray).__name__}; expected an array or a nest of them")


def check_different_memory(array1: Obs, array2: Obs, step_times: int) -> None:
    """Two observations, arrays or nests of them, do not share memory.

    Args:
        array1: The observation before.
        array2: The observation after.
        step_times: How many steps after the reset, for the message.

    Raises:
        EnvError: They share memory, or differ in their structure.
    """
    what = f"the observation of step {step_times}"
    kinds = type(array2).__name__, type(array1).__name__
    _expect(kinds[0] == kinds[1], f"{what} is a {kinds[0]}, the one before a {kinds[1]}")
    if isinstance(array1, np.ndarray):
        shares = np.shares_memory(array1, array2)
        _expect(not shares, f"{what} shares memory with the one before; copy it")
    elif isinstance(array1, Mapping):
        _expect(set(array1) == set(array2), f"{what} has other keys than the one before")
        for key in array1:
            check_different_memory(array1[key], array2[key], step_times)
    elif isinstance(array1, (list, tuple)):
        _expect(len(array1) == len(array2), f"{what} has another length than the one before")
        for one, other in zip(array1, array2):
            check_different_memory(one, other, step_times)
    else:
        raise EnvError(f"the observation holds a {kinds[1]}; expected arrays")


def demonstrate_correct_procedure(env_fn: Callable[[Config], BaseEnv]) -> None:
    """Go through an environment's life as an env manager does: seed, reset, step, close.

    Args:
        env_fn: Makes the environment from a config; called with an empty one.
    """
    env = env_fn({})
    env.seed(4)
    for _ in range(2):
        obs = env.reset()
        check_array_space(obs, env.observation_space, "the observation from reset()")
        for _ in _episode(env):
            pass
    env.close()


def _episode(env: BaseEnv) -> Iterator[BaseEnvTimestep]:
    """Timesteps of random actions, to the end of the episode."""
    for _ in range(_MAX_STEPS):
        timestep = env.step(env.random_action())
        yield timestep
        if timestep.done:
            has_return = "eval_episode_return" in timestep.info
            _expect(has_return, "info has no 'eval_episode_return' at the end of the episode")
            return


def _is_space(value: object) -> bool:
    """Whether it is a space, of gymnasium or of the package gym, which has the same methods."""
    return callable(getattr(value, "contains", None)) and hasattr(value, "shape")


def _expect(holds: bool, why: str) -> None:
    if not holds:
        raise EnvError(f"the environment breaks the rules of BaseEnv: {why}")
