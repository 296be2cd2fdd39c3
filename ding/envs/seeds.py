"""Seeds of environments: streams that no two runs, roles, environments or episodes share."""

import zlib

import numpy as np

# Environments may add to their seed (a hundred thousand is usual) and hand it to 32-bit libraries.
_UNUSED_BITS = 2


def env_seeds(seed: int, role: str, count: int) -> list[int]:
    """A seed below 2**30 for each of `count` environments.

    Args:
        seed: Of the run.
        role: What the environments are for, such as ``collector`` or ``evaluator``.
    """
    return [_spawned(seed, zlib.crc32(role.encode()), env_id) for env_id in range(count)]


def episode_seed(seed: int, episode: int) -> int:
    """The seed of an environment's `episode`-th episode where it is fixed; `seed` itself for 0."""
    return _spawned(seed, episode) if episode else seed


def _spawned(seed: int, *key: int) -> int:
    sequence = np.random.SeedSequence(seed % 2**64, spawn_key=key)
    return int(sequence.generate_state(1)[0] >> _UNUSED_BITS)
