"""The part of envpool that its manager uses, over gymnasium environments, with reused arrays."""

import types

import gymnasium
import numpy as np
from gymnasium import spaces

from ding.data import tree_join, tree_map
from tests.envs.env_manager.env_fakes import ShortEnv


class PicturesEnv(ShortEnv):
    """Shows dicts of a vector and a picture, which are both of reused memory."""

    observation_space = spaces.Dict(
        {
            "vector": ShortEnv.observation_space,
            "nested": spaces.Dict({"image": spaces.Box(0, 255, (3, 6, 6), np.uint8)}),
        }
    )
    image = None

    def _dict(self, vector):
        if self.image is None:
            self.image, self.vector = np.zeros((3, 6, 6), np.uint8), np.zeros(2, np.float32)
        self.image[:], self.vector[:] = self.count, vector
        return {"vector": self.vector, "nested": {"image": self.image}}

    def reset(self, **kwargs):
        obs, info = super().reset(**kwargs)
        return self._dict(obs), info

    def step(self, action):
        obs, *rest = super().step(action)
        return self._dict(obs), *rest


#: Tasks that gymnasium's registry does not have; member i of these has episodes of i + 2 steps.
TASKS = {
    "Count-v0": lambda i: ShortEnv(length=i + 2, truncate=i == 1),
    "Pictures-v0": lambda i: PicturesEnv(length=i + 2, truncate=i == 1),
}


class FakePool:
    """Steps all members at once; a step after an episode's end only resets.

    All arrays are those of the step before, which is what a library may do that keeps its memory.
    """

    def __init__(self, task_id, env_type, num_envs, seed=None, **kwargs):
        assert env_type == "gymnasium"
        make = TASKS.get(task_id, lambda i: gymnasium.make(task_id, **kwargs))
        self.envs = [make(i) for i in range(num_envs)]
        self.seed = seed
        self.observation_space = self.envs[0].observation_space
        self.action_space = self.envs[0].action_space
        self.ended = [False] * num_envs
        self.arrays = None
        self.closed = False

    def reset(self):
        seeds = [None if self.seed is None else self.seed + i for i in range(len(self.envs))]
        answers = [self._first(i, seed) for i, seed in enumerate(seeds)]
        obs, *_, infos = self._columns(answers)
        return obs, infos

    def step(self, actions):
        assert len(actions) == len(self.envs)
        assert actions.dtype == self.action_space.dtype
        answers = []
        for i, action in enumerate(actions):
            if self.ended[i]:
                answers.append(self._first(i))
                continue
            obs, *answer, _ = self.envs[i].step(action)
            self.ended[i] = any(answer[1:])
            answers.append((tree_map(np.copy, obs), *answer))
        return self._columns(answers)

    def _first(self, i, seed=None):
        obs, _ = self.envs[i].reset(seed=seed)
        self.ended[i] = False
        return tree_map(np.copy, obs), 0.0, False, False

    def _columns(self, answers):
        obs, reward, *ends = zip(*answers)
        columns = [tree_join(np.stack, obs), np.array(reward, np.float32), *map(np.array, ends)]
        new = dict(enumerate([*columns, np.arange(len(answers), dtype=np.int32)]))
        if self.arrays is None:
            self.arrays = tree_map(np.copy, new)
        tree_join(lambda pair: np.copyto(*pair), [self.arrays, new])
        *columns, env_id = self.arrays.values()
        return *columns, {"env_id": env_id}

    def close(self):
        self.closed = True
        for env in self.envs:
            env.close()


def module():
    """What ``import envpool`` gives."""
    fake = types.ModuleType("envpool")
    fake.make = FakePool
    return fake
