"""The part of envpool that its manager uses, over gymnasium environments, with reused arrays."""

import types
from collections import deque

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
    """Steps those that it is sent actions for; a step after an episode's end only resets.

    Answers come in batches of `batch_size`. All arrays of a batch are those of the one before,
    which is what a library may do that keeps its memory.
    """

    def __init__(self, task_id, env_type, num_envs, batch_size, seed=None, **kwargs):
        assert env_type == "gymnasium"
        make = TASKS.get(task_id, lambda i: gymnasium.make(task_id, **kwargs))
        self.envs = [make(i) for i in range(num_envs)]
        self.batch, self.seed = batch_size, seed
        self.observation_space = self.envs[0].observation_space
        self.action_space = self.envs[0].action_space
        self.answers = deque()
        self.arrays = None
        self.rng = np.random.default_rng(seed)
        self.closed = False

    def async_reset(self):
        self.ended = [False] * len(self.envs)
        self.answers.clear()
        for i in range(len(self.envs)):
            self._reset(i, None if self.seed is None else self.seed + i)

    def send(self, actions, ids):
        assert len(actions) == len(ids)
        assert actions.dtype == self.action_space.dtype
        assert ids.dtype == np.int32
        if self.batch == len(self.envs):  # such a pool takes the actions of all at once
            assert sorted(ids.tolist()) == list(range(len(self.envs)))
        assert not {answer[0] for answer in self.answers} & set(ids.tolist())
        # They answer in arbitrary order.
        for position in self.rng.permutation(len(ids)):
            i, action = int(ids[position]), actions[position]
            if self.ended[i]:
                self._reset(i)
                continue
            obs, reward, terminated, truncated, _ = self.envs[i].step(action)
            self.ended[i] = terminated or truncated
            self._answer(i, obs, reward, terminated, truncated)

    def recv(self):
        assert len(self.answers) >= self.batch, "would wait for ever"
        got = [self.answers.popleft() for _ in range(self.batch)]
        if self.batch == len(self.envs):
            got.sort(key=lambda answer: answer[0])
        names = ("env_id", "obs", "reward", "terminated", "truncated")
        ids, obs, reward, *ends = zip(*got)
        columns = [np.array(ids, np.int32), tree_join(np.stack, obs), np.array(reward, np.float32)]
        new = dict(zip(names, (*columns, *map(np.array, ends))))
        if self.arrays is None:
            self.arrays = tree_map(np.copy, new)
        tree_join(lambda pair: np.copyto(*pair), [self.arrays, new])
        env_id, *answer = self.arrays.values()
        return *answer, {"env_id": env_id}

    def close(self):
        self.closed = True
        for env in self.envs:
            env.close()

    def _reset(self, i, seed=None):
        obs, _ = self.envs[i].reset(seed=seed)
        self.ended[i] = False
        self._answer(i, obs, 0.0, False, False)

    def _answer(self, i, obs, *others):
        self.answers.append((i, tree_map(np.copy, obs), *others))


def module():
    """What ``import envpool`` gives."""
    fake = types.ModuleType("envpool")
    fake.make = FakePool
    return fake
