"""Data sets of Minari."""

import sys

import gymnasium
import numpy as np
import pytest
import torch

from ding.data import create_dataset
from ding.data.offline.minari_dataset import minari_id_of
from ding.data.offline.transition_dataset import transitions_of
from ding.utils import save_file
from ding.utils.errors import ConfigError


def config(kind, path=None, env_id=None):
    return {
        "env": {"env_id": env_id},
        "policy": {"collect": {"data_type": kind}, "learn": {"data_path": path}},
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hopper-medium-expert-v2", "mujoco/hopper/expert-v0"),
        ("halfcheetah-medium-v0", "mujoco/halfcheetah/medium-v0"),
        ("walker2d-medium-replay-v0", "mujoco/walker2d/medium-v0"),
        ("hopper-random-v2", "mujoco/hopper/simple-v0"),
        ("antmaze-umaze-diverse-v0", "D4RL/antmaze/umaze-diverse-v1"),
        ("pen-human-v1", "D4RL/pen/human-v2"),
        ("kitchen-complete-v0", "D4RL/kitchen/complete-v2"),
        ("maze2d-umaze-v1", "D4RL/pointmaze/umaze-v2"),
        ("mujoco/hopper/simple-v0", "mujoco/hopper/simple-v0"),
    ],
)
def test_the_nearest_to_a_name_of_d4rl(name, expected):
    assert minari_id_of(name) == expected


def test_names_that_nothing_is_near():
    with pytest.raises(ConfigError, match="no data set of Minari is near 'carla-lane-v0'"):
        minari_id_of("carla-lane-v0")
    with pytest.raises(ConfigError, match=r"needs the data set's name.*hopper-medium"):
        create_dataset(config("d4rl"))


class TestPathsBesideNames:
    """With the type `d4rl`."""

    def wanted(self, path, env_id):
        with pytest.raises(ConfigError) as error:
            create_dataset(config("d4rl", path, env_id))
        return str(error.value)

    def test_a_path_that_is_not_there_gives_way_to_the_environments_id(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "minari", None)
        text = self.wanted("d4rl/hopper_medium/data.pkl", "hopper-medium-v2")
        assert "mujoco/hopper/medium-v0" in text
        assert "mujoco/hopper/expert-v0" in self.wanted("hopper-expert-v2", "hopper-medium-v2")
        text = self.wanted("d4rl/data.pkl", "CartPole-v1")
        assert "no data set of Minari is near 'd4rl/data.pkl'" in text

    def test_a_file_counts(self):
        save_file("data.pkl", [{"obs": torch.zeros(2)}] * 3)
        assert len(create_dataset(config("d4rl", "data.pkl", "hopper-medium-v2"))) == 3


def test_without_minari(monkeypatch):
    monkeypatch.setitem(sys.modules, "minari", None)
    text = r'pip install "ding\[minari\]", then minari download mujoco/hopper/expert-v0'
    with pytest.raises(ConfigError, match=text):
        create_dataset(config("d4rl", env_id="hopper-expert-v2"))


class TestDownloaded:
    @pytest.fixture(autouse=True)
    def _minari(self, tmp_path, monkeypatch):
        pytest.importorskip("h5py")
        self.minari = pytest.importorskip("minari")
        monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))

    def make(self, dataset_id, env_id):
        """Two episodes of five random steps."""
        from minari.data_collector.episode_buffer import EpisodeBuffer

        env, buffers = gymnasium.make(env_id), []
        env.action_space.seed(0)
        for number in range(2):
            obs = [env.reset(seed=number)[0]]
            actions = [env.action_space.sample() for _ in range(5)]
            steps = [env.step(action) for action in actions]
            buffers.append(
                EpisodeBuffer(
                    id=number,
                    observations=np.stack(obs + [step[0] for step in steps]),
                    actions=np.stack(actions),
                    rewards=[float(step[1]) for step in steps],
                    terminations=[False] * 5,
                    truncations=[False] * 4 + [True],
                )
            )
        self.minari.create_dataset_from_buffers(
            dataset_id, buffers, env=env, algorithm_name="random", code_permalink="x",
            author="x", author_email="x", description="x",
        )  # fmt: skip
        env.close()

    def test_transitions_of_all_episodes(self):
        self.make("pendulum/random-v0", "Pendulum-v1")
        read = transitions_of(create_dataset(config("minari", "pendulum/random-v0")))
        assert len(read) == 10
        obs, next_obs = read.column("obs"), read.column("next_obs")
        assert (obs.shape, obs.dtype) == ((10, 3), torch.float32)
        follows = (obs[1:] == next_obs[:-1]).all(-1)
        assert follows.tolist() == [True] * 4 + [False] + [True] * 4
        assert not read.column("done").any()  # cut off
        assert read.column("reward").dtype == torch.float32
        # Torques are between -2 and 2.
        assert 0.5 < read.column("action").abs().max() <= 1

    def test_discrete_actions(self):
        self.make("cartpole/random-v0", "CartPole-v1")
        read = transitions_of(create_dataset(config("minari", "cartpole/random-v0")))
        assert (read.column("action").dtype, len(read)) == (torch.int64, 10)

    def test_not_downloaded(self):
        with pytest.raises(ConfigError, match="minari download mujoco/hopper/expert-v0"):
            create_dataset(config("d4rl", env_id="hopper-medium-expert-v2"))

    def test_a_name_of_d4rl_is_reported(self):
        self.make("D4RL/pen/human-v2", "Pendulum-v1")
        dataset = create_dataset(config("d4rl", "pen-human-v1"))
        assert (
            dataset.adapted
            == "data set 'pen-human-v1' of D4RL: it is 'D4RL/pen/human-v2' of Minari"
        )
