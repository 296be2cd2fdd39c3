"""What is done with a trained policy."""

import os

import pytest
import torch

from ding.config import compile_config
from ding.entry import (
    collect_demo_data,
    collect_episodic_demo_data,
    episode_to_transitions,
    episode_to_transitions_filter,
    eval,
)
from ding.model import DQN
from ding.policy import create_policy
from ding.utils import read_file, save_file
from ding.utils.errors import CheckpointError, ConfigError, DataError
from tests.entry.runs import cartpole_config

MODEL = dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[8])


def configs():
    return cartpole_config(env=dict(max_episode_steps=20), collect=dict(n_sample=8))


@pytest.fixture
def checkpoint(tmp_path, monkeypatch):
    """A policy that always goes left: every episode takes 8 to 12 steps."""
    monkeypatch.chdir(tmp_path)
    main, create = configs()
    cfg = compile_config(main, auto=True, create_cfg=create, save_cfg=False)
    model = DQN(**MODEL)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    policy = create_policy(cfg.policy, model=model)
    state = policy.learn_mode.state_dict()
    save_file("ckpt.pth.tar", {**state, "last_iter": 3, "last_step": 4})
    return "ckpt.pth.tar"


def test_eval_of_a_checkpoint(checkpoint):
    value = eval(configs(), seed=0, load_path=checkpoint)
    assert isinstance(value, float)
    assert 8 <= value <= 12
    assert eval(configs(), seed=0, load_path=checkpoint) == value
    assert os.listdir() == [checkpoint]  # no run folder


@pytest.mark.parametrize("given", ["state", "model", "path in the config"])
def test_eval_takes_weights_from_elsewhere(checkpoint, given):
    main, create = configs()
    weights, options = read_file(checkpoint)["model"], {}
    if given == "state":
        options = dict(state_dict={"model": weights})
    elif given == "model":
        main["policy"]["model"] = {}
        options = dict(model=DQN(**MODEL))
        options["model"].load_state_dict(weights)
    else:
        main["policy"]["load_path"] = checkpoint
    assert 8 <= eval((main, create), **options) <= 12


def test_eval_saves_videos(checkpoint, monkeypatch):
    pytest.importorskip("pygame")
    pytest.importorskip("moviepy")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    eval(configs(), load_path=checkpoint, replay_path="videos")
    # Four episodes; the managers may have begun more.
    assert len(os.listdir("videos")) >= 4


def test_eval_without_weights(checkpoint):
    with pytest.raises(ConfigError, match="no weights: pass load_path"):
        eval(configs())


def test_eval_of_wrong_files(checkpoint):
    with pytest.raises(FileNotFoundError, match="nope"):
        eval(configs(), load_path="nope.pth.tar")
    save_file("other.pth.tar", {"weights": 1})
    with pytest.raises(CheckpointError, match=r"other.pth.tar is no checkpoint of a policy"):
        eval(configs(), load_path="other.pth.tar")
    main, create = configs()
    main["policy"]["model"]["encoder_hidden_size_list"] = [16]
    with pytest.raises(CheckpointError, match=r"ckpt.pth.tar does not fit this policy"):
        eval((main, create), load_path=checkpoint)


def test_demonstrations(checkpoint):
    collect_demo_data(configs(), 0, 30, "demo/data.pkl", state_dict_path=checkpoint)
    rows = read_file("demo/data.pkl")
    assert len(rows) == 30
    assert {"obs", "next_obs", "action", "reward", "done"} <= set(rows[0])
    assert all(int(row["action"]) == 0 for row in rows)  # no exploration


def test_demonstrations_with_exploration(checkpoint):
    main, create = configs()
    main["policy"]["other"] = dict(eps=dict(collect=1.0))
    main["policy"]["collect"]["save_path"] = "data.pkl"
    collect_demo_data((main, create), 0, 30, state_dict_path=checkpoint)
    assert any(int(row["action"]) == 1 for row in read_file("data.pkl"))


def test_demonstrations_need_a_place(checkpoint):
    with pytest.raises(ConfigError, match=r"expert_data_path, or set policy.collect.save_path"):
        collect_demo_data(configs(), 0, 30, state_dict_path=checkpoint)


def test_episodes_and_their_transitions(checkpoint):
    collect_episodic_demo_data(configs(), 0, 3, "episodes.pkl", state_dict_path=checkpoint)
    episodes = read_file("episodes.pkl")
    assert len(episodes) == 3
    assert all(8 <= len(episode) <= 12 for episode in episodes)
    assert all(bool(episode[-1]["done"]) for episode in episodes)

    episode_to_transitions("episodes.pkl", "rows.pkl", nstep=3)
    rows = read_file("rows.pkl")
    assert len(rows) == sum(map(len, episodes))
    assert torch.equal(rows[0]["next_obs"], episodes[0][2]["next_obs"])
    assert rows[0]["reward"].tolist() == [1, 1, 1]
    assert rows[-1]["reward"].tolist() == [1, 0, 0]


@pytest.mark.parametrize(("given", "gamma"), [(None, 0.5), (0.25, 0.25)])
def test_transitions_have_the_discount_of_the_policy(checkpoint, given, gamma):
    main, create = configs()
    main["policy"]["discount_factor"] = 0.5
    collect_episodic_demo_data((main, create), 0, 2, "episodes.pkl", state_dict_path=checkpoint)
    for one in (episode_to_transitions, episode_to_transitions_filter):
        least = {} if one is episode_to_transitions else {"min_episode_return": 0.0}
        one("episodes.pkl", "rows.pkl", nstep=3, gamma=given, **least)
        rows = read_file("rows.pkl")
        assert rows[0]["value_gamma"] == pytest.approx(gamma**3)
        assert rows[-1]["value_gamma"] == pytest.approx(gamma)
        assert "discount_factor" not in rows[0]


def test_transitions_of_good_episodes():
    def episode(rewards):
        return [
            {"obs": torch.zeros(1), "next_obs": torch.zeros(1), "reward": torch.tensor([r])}
            for r in rewards
        ]

    save_file("episodes.pkl", [episode([1.0, 1.0]), episode([0.5]), episode([2.0, 1.0, 1.0])])
    episode_to_transitions_filter("episodes.pkl", "rows.pkl", nstep=2, min_episode_return=2.0)
    rows = read_file("rows.pkl")
    assert [row["reward"].tolist() for row in rows] == [[1, 1], [1, 0], [2, 1], [1, 1], [1, 0]]
    with pytest.raises(DataError, match=r"none of the 3 episodes .*=10, the best 4"):
        episode_to_transitions_filter("episodes.pkl", "rows.pkl", 1, 10)


def test_transitions_of_something_else(checkpoint):
    save_file("rows.pkl", [{"obs": 1}])
    with pytest.raises(DataError, match="must hold a list of episodes"):
        episode_to_transitions("rows.pkl", "out.pkl", nstep=1)
