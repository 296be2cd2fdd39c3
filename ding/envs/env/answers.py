"""What is wrong with what an environment returned: the cause and the cure, in one line."""

from collections.abc import Mapping, Sequence

import numpy as np

from ding.envs.vector_step import Obs, Reward

_STEPS = {
    4: "BaseEnvTimestep(obs, reward, done, info)",
    5: "(obs, reward, terminated, truncated, info)",
}


def step_fault(result: object, count: int) -> str | None:
    """What is wrong with the result of a ``step``, or ``None``.

    Args:
        count: How many values were expected: 5 as in gymnasium, or 4 of a `BaseEnvTimestep`.
    """
    if not isinstance(result, tuple | list) or len(result) != count:
        got = f"{len(result)} values" if isinstance(result, tuple | list) else brief(result)
        cure = ""
        if got == "4 values":
            cure = ": the old API of gym; split done into terminated and truncated"
        elif got == "5 values":
            cure = ": gymnasium's API; put the environment in a DingEnvWrapper"
        return f"step() returned {got}, expected {_STEPS[count]}{cure}"
    reward, flags, info = result[1], result[2:-1], result[-1]
    for name, flag in zip(("terminated", "truncated") if count == 5 else ("done",), flags):
        if type(flag) is bool:
            continue
        if isinstance(flag, list | tuple | Mapping) or np.size(flag) != 1:
            return f"step() returned {brief(flag)} as {name}, expected a bool"
    infos = [info] if isinstance(info, Mapping) or not isinstance(info, Sequence) else info
    if any(not isinstance(one, Mapping) for one in infos):
        return f"step() returned {brief(info)} as info, expected a dict"
    return reward_fault(reward, takes_lists=count == 4)


def reward_fault(reward: Reward, takes_lists: bool = True) -> str | None:
    """What is wrong with a reward, or ``None``.

    Args:
        takes_lists: Whether it may be a list of numbers, one for each player.
    """
    if type(reward) is float:
        return None
    is_group = isinstance(reward, list | tuple | Mapping)
    try:
        np.asarray(reward, np.float64)
        is_right = not isinstance(reward, str) and (takes_lists or not is_group)
    except (TypeError, ValueError):
        is_right = False
    if is_right:
        return None
    cure = "sum(reward), or np.array(reward) with one for each player" if is_group else "a float"
    return f"step() returned the reward {brief(reward)}, expected a number; return {cure}"


def obs_fault(obs: Obs, space: object, env_name: str | None = None) -> str:
    """What is wrong with an observation that does not fit its space, and the cure."""
    whose = "" if env_name is None else f" of env {env_name!r}"
    cure = "return an array such as np.asarray(obs, np.float32)"
    if isinstance(obs, tuple) and len(obs) == 2 and isinstance(obs[1], Mapping):
        cure = "return the observation alone: (obs, info) is gymnasium's API, for a DingEnvWrapper"
    elif obs is None:
        cure = "return the observation, also at an episode's end"
    elif isinstance(obs, np.ndarray):
        cure = "correct the observation or the space"
    elif isinstance(obs, Mapping):
        cure = "declare a Dict space, or return one array"
    return f"the observation{whose} is {brief(obs)}, but the observation space is {space}; {cure}"


def brief(value: object) -> str:
    """A value in a few words."""
    if isinstance(value, np.ndarray):
        return f"a {value.dtype} array of shape {value.shape}"
    if value is None:
        return "None"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    if isinstance(value, Mapping):
        return f"a dict of {', '.join(map(repr, value)) or 'nothing'}"
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} (a {type(value).__name__})"
