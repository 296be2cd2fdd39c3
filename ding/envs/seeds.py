"""Seeds that no two runs, roles, environments or episodes share, and generators inside of them."""

import random
import zlib
from collections.abc import Iterator
from types import ModuleType
from typing import TypeAlias

import gymnasium
import numpy as np
import torch

from ding.envs.env.base_env import BaseEnv
from ding.utils.types import SavedState, State, Tree

# Environments may add to their seed (a hundred thousand is usual) and hand it to 32-bit libraries.
_UNUSED_BITS = 2
#: How far environments are looked into: wrappers of wrappers, and what is in them.
_DEPTH = 12
_NAMES = ("env", "_env", "envs", "_envs")
Generator: TypeAlias = np.random.Generator | np.random.RandomState | random.Random | torch.Generator
_INNER = (gymnasium.Env, BaseEnv, gymnasium.Space)


def env_seeds(seed: int, role: str, count: int) -> list[int]:
    """A seed below 2**30 for each of `count` environments of a run, by their role in it."""
    return [_spawned(seed, zlib.crc32(role.encode()), env_id) for env_id in range(count)]


def episode_seed(seed: int, episode: int) -> int:
    """The seed of an environment's `episode`-th episode where it is fixed; `seed` itself for 0."""
    return _spawned(seed, episode) if episode else seed


def _spawned(seed: int, *key: int) -> int:
    sequence = np.random.SeedSequence(seed % 2**64, spawn_key=key)
    return int(sequence.generate_state(1)[0] >> _UNUSED_BITS)


# ---- generators that environments and their wrappers hold -------------------------------------


def generator_states(env: object) -> State:
    """The states of all generators in an environment, by the path to their attribute."""
    return {path: _state(generator) for path, generator in _generators(env)}


def load_generator_states(env: object, states: SavedState) -> None:
    """Restore what `generator_states` returned, as far as there are such generators."""
    for path, generator in _generators(env):
        if path in states:
            _load(generator, states[path])


def process_generator_states() -> State:
    """The states of the generators that all of a process shares."""
    return {"python": random.getstate(), "numpy": np.random.get_state(legacy=False)}


def load_process_generator_states(states: SavedState) -> None:
    _load(random, states["python"])
    np.random.set_state(states["numpy"])


def _generators(env: object) -> Iterator[tuple[str, Generator]]:
    seen: set[int] = set()
    todo: list[tuple[str, object, int]] = [("", env, 0)]
    while todo:
        path, owner, depth = todo.pop()
        if id(owner) in seen:
            continue
        seen.add(id(owner))
        for name, value in _parts(owner):
            place = f"{path}.{name}"
            if isinstance(value, Generator):
                if id(value) not in seen:
                    seen.add(id(value))
                    yield place, value
            elif depth < _DEPTH and (isinstance(value, _INNER) or name in _NAMES):
                todo.append((place, value, depth + 1))


def _parts(owner: object) -> list[tuple[str, object]]:
    if isinstance(owner, list | tuple):
        return [(str(i), value) for i, value in enumerate(owner)]
    if isinstance(owner, dict):
        return [(str(name), value) for name, value in owner.items()]
    return sorted(getattr(owner, "__dict__", {}).items())


def _state(generator: Generator) -> Tree:
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    return generator.getstate()


def _load(generator: Generator | ModuleType, state: Tree) -> None:
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    elif isinstance(generator, np.random.RandomState | torch.Generator):
        generator.set_state(state)
    else:
        version, numbers, gauss = state
        generator.setstate((version, tuple(numbers), gauss))
