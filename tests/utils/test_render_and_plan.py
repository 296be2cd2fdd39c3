"""Pictures of environments, the way out of a maze."""

from types import SimpleNamespace
from typing import TypeVar

import gymnasium
import numpy as np
import pytest

from ding.envs import BaseEnvManager, DingEnvWrapper
from ding.utils import SequenceType, fps, get_vi_sequence, render


class TestPictures:
    def test_of_environments_of_both_forms(self):
        class Old:
            def render(self, mode="human"):
                return mode

        assert render(Old(), "rgb_array") == "rgb_array"
        env = gymnasium.make("CartPole-v1", render_mode="rgb_array")
        env.reset()
        wrapper = DingEnvWrapper(env)
        wrapper.reset()
        for one in (env, wrapper):
            picture = render(one)
            assert (picture.shape, picture.dtype) == ((400, 600, 3), np.uint8)
        wrapper.close()

    def test_an_error_while_drawing_comes_out(self):
        class Broken:
            def render(self):
                raise TypeError("no brush")

        with pytest.raises(TypeError, match="no brush"):
            render(Broken())
        with pytest.raises(AttributeError, match="no render"):
            render(object())

    def test_speed(self):
        manager = BaseEnvManager([lambda: DingEnvWrapper(gymnasium.make("CartPole-v1"))])
        assert fps(manager) == 50
        old = SimpleNamespace(env_ref=SimpleNamespace(metadata={"video.frames_per_second": 25}))
        assert fps(old) == 25
        assert fps(SimpleNamespace(env_ref=object())) == 30
        manager.close()


class TestMaze:
    def maze(self, *rows, target):
        return SimpleNamespace(
            size=len(rows), n_action=4, target_location=target, nav_map=[list(row) for row in rows]
        )

    def start(self, size, place):
        observation = np.zeros((size, size, 3))
        observation[(*place, 2)] = 1
        return observation

    def test_a_shortest_path(self):
        env = self.maze("....", ".xx.", "..x.", "....", target=(0, 3))
        path, steps = get_vi_sequence(env, self.start(4, (2, 1)))
        assert path == [(2, 1), (2, 0), (1, 0), (0, 0), (0, 1), (0, 2)]
        assert steps.shape == (6, 4, 4)
        assert steps.dtype == np.int32
        moves = [(1, 0), (0, 1), (-1, 0), (0, -1)]
        for here, there in zip(path, [*path[1:], (0, 3)]):
            down, right = moves[steps[-1][here]]
            assert (here[0] + down, here[1] + right) == there
        assert (steps[0] != 4).sum() == 2  # the target's two neighbours
        assert (steps[-1][1, 1:3] == 4).all()  # walls

    def test_no_way_and_already_there(self):
        env = self.maze(".x.", "xx.", "...", target=(0, 0))
        path, steps = get_vi_sequence(env, self.start(3, (2, 2)))
        assert path == []
        assert steps.shape == (1, 3, 3)
        path, steps = get_vi_sequence(env, self.start(3, (0, 0)))
        assert path == []
        assert steps.shape == (0, 3, 3)


def test_sequence_type():
    assert isinstance(SequenceType, TypeVar)
