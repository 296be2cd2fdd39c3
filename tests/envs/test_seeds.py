"""No two runs, roles, environments or episodes share a stream of random numbers."""

import itertools

import pytest

from ding.envs import BaseEnvManager, env_seeds
from ding.envs.seeds import episode_seed
from tests.envs.env_manager.env_fakes import CountEnv


def test_runs_roles_and_environments_differ():
    found = [
        seed
        for run, role in itertools.product(range(10), ("collector", "evaluator"))
        for seed in env_seeds(run, role, 16)
    ]
    assert len(set(found)) == len(found)
    assert all(type(seed) is int and 0 <= seed < 2**30 for seed in found)
    assert env_seeds(3, "collector", 8)[:4] == env_seeds(3, "collector", 4)
    assert len(set(env_seeds(-1, "collector", 2) + env_seeds(2**70, "collector", 2))) == 4


def test_episodes_of_a_fixed_seed_differ():
    assert episode_seed(5, 0) == 5
    assert len({episode_seed(seed, k) for seed in (5, 6) for k in range(50)}) == 100


@pytest.mark.parametrize("dynamic_seed", [None, True, False])
def test_a_manager_spawns_streams_of_a_number(dynamic_seed):
    def seeds_of(seed):
        manager = BaseEnvManager([CountEnv] * 8)
        manager.seed(seed, dynamic_seed)
        manager.launch()
        seeds = [obs[3] for obs in manager.ready_obs.values()]
        manager.close()
        return seeds

    seeds = [seeds_of(run) for run in (0, 0, 1, 2)]
    assert seeds[0] == seeds[1]
    assert len({seed for of_run in seeds[1:] for seed in of_run}) == 24
