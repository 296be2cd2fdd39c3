"""Losses and rewards against numbers worked by hand from the papers."""

import copy

import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.reward_model import HerRewardModel, ICMRewardModel, RndRewardModel, Shapes
from ding.utils.errors import ConfigError, DataError
from ding.utils.running_mean_std import RunningMeanStd
from tests.fakes import Writer


def make(cls, obs_shape=2, action_shape=2, discrete=True, tb_logger=None, **settings):
    cfg = EasyDict({**cls.default_config(), "type": "it", **settings})
    return cls(cfg, Shapes(obs_shape, action_shape, discrete), "cpu", tb_logger)


def transitions(obs, next_obs, action=None, reward=None, done=None):
    size = len(obs)
    return {
        "obs": np.array(obs, np.float32),
        "next_obs": np.array(next_obs, np.float32),
        "action": np.zeros(size, np.int64) if action is None else np.array(action),
        "reward": np.zeros(size, np.float32) if reward is None else np.array(reward, np.float32),
        "done": np.zeros(size, bool) if done is None else np.array(done),
        "collect_iter": np.zeros(size, np.int64),
    }


def as_linear(weight):
    """A network that multiplies its input by a matrix."""
    layer = torch.nn.Linear(len(weight[0]), len(weight), bias=False)
    layer.weight.data = torch.tensor(weight, dtype=torch.float32)
    return layer


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_descends_as_torchs_adam(weight_decay):
    model = make(RndRewardModel)
    network = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    other = copy.deepcopy(network)
    model._optimize(network, lr=0.01, weight_decay=weight_decay)
    expected = torch.optim.Adam(other.parameters(), lr=0.01, weight_decay=weight_decay)
    for step in range(40):
        if step == 20:  # as of a run that an earlier version has saved
            model.networks["optimizer"].load_state_dict(copy.deepcopy(expected.state_dict()))
        inputs = torch.randn(16, 3)
        model._descend(network(inputs).square().mean())
        expected.zero_grad()
        other(inputs).square().mean().backward()
        expected.step()
    for one, two in zip(network.parameters(), other.parameters()):
        assert torch.allclose(one, two, rtol=1e-5, atol=1e-7)


# ---------------------------------------------------------------------- RND


def rnd(**settings):
    model = make(RndRewardModel, hidden_size_list=[4], **settings)
    model.networks["target"].forward = as_linear([[1, 0], [0, 1]]).forward
    model.networks["network"].forward = as_linear([[1, 0], [0, 0]]).forward
    return model


@pytest.mark.parametrize("kind", ["add", "assign", "new"])
def test_rnd_pays_the_squared_error_at_the_next_observation(kind):
    # Target (1, 2) and (3, 4), predicted (1, 0) and (3, 0): errors 4 / 2 and 16 / 2.
    # Discounted sums of the trajectory, 2 + 0.99 * 8 and 8, and their running deviation.
    model = rnd(
        obs_norm=False,
        intrinsic_reward_type=kind,
        intrinsic_reward_weight=0.5,
        extrinsic_reward_norm_max=4,
    )
    seen = transitions([[9, 9], [1, 2]], [[1, 2], [3, 4]], reward=[1, 10])
    found, lengths = model.collected(seen, np.array([2]))
    moments = RunningMeanStd()
    moments.update(np.array([9.92, 8.0]))
    bonus, own = np.array([1, 4]) / moments.std, np.array([0.25, 2.5])
    expected = {"add": own + bonus, "assign": bonus, "new": own}[kind]
    assert found["reward"] == pytest.approx(expected)
    assert ("intrinsic_reward" in found) == (kind == "new")
    if kind == "new":
        assert found["intrinsic_reward"] == pytest.approx(bonus)
    assert lengths.tolist() == [2]
    assert seen["reward"].tolist() == [1, 10]


def test_rnd_normalises_and_clips_observations():
    # Moments of (0, 0) and (2, 200): means 1 and 100, deviations 1 and 100; then both are ±1, and
    # the second number is clipped to -0.5 and 1: errors 0.125 and 0.5.
    model = rnd(obs_norm_clamp_min=-0.5, obs_norm_clamp_max=1.0, intrinsic_reward_type="assign")
    seen = transitions([[0, 0]] * 2, [[0, 0], [2, 200]])
    found, _ = model.collected(seen, np.array([1, 1]))
    moments = RunningMeanStd()
    moments.update(np.array([0.125, 0.5]))
    assert found["reward"] == pytest.approx(np.array([0.125, 0.5]) / moments.std, rel=1e-3)


def test_rnd_pays_less_for_what_it_has_seen():
    torch.manual_seed(0)
    np.random.seed(0)
    model = make(RndRewardModel, obs_shape=4, hidden_size_list=[16])
    cells = np.eye(4, dtype=np.float32)
    known = transitions(cells[[0, 1] * 20], cells[[1, 0] * 20])
    for number in range(5):
        model.collected(known, np.array([40]))
        model.train(number, 40 * number)
    paid, _ = model.collected(transitions(cells[[0, 0]], cells[[1, 3]]), np.array([1, 1]))
    assert 0 <= paid["reward"][0] < 0.1 * paid["reward"][1]


# ---------------------------------------------------------------------- ICM


def icm(**settings):
    model = make(ICMRewardModel, hidden_size_list=[2], **settings)
    encoder, inverse, forward = model.networks["network"]
    encoder.forward = as_linear([[1, 0], [0, 2]]).forward
    # Its input: the features (1, 2) of the observation, and the action.
    forward.forward = as_linear([[1, 0, 0, 3], [0, 1, 5, 0]]).forward
    inverse.forward = as_linear([[0, 0, 1, 0], [0, 0, 0, 0]]).forward
    return model


def test_icm_pays_half_the_squared_error_of_the_outcome():
    # φ = (1, 4) and (2, 6). Action 1: predicted (1 + 3, 4 + 0), errors 2 and 2: (4 + 4) / 2.
    # Action 0: predicted (1, 4 + 5), errors 1 and 3: (1 + 9) / 2.
    seen = transitions([[1, 2]] * 2, [[2, 3]] * 2, action=[1, 0])
    found, _ = icm(intrinsic_reward_type="assign").collected(seen, np.array([1, 1]))
    moments = RunningMeanStd()
    moments.update(np.array([4.0, 5.0]))
    assert found["reward"] == pytest.approx(np.array([4.0, 5.0]) / moments.std)


def test_loss_of_icm():
    # The inverse model says (2, 0) for φ' = (2, 6), and the action was 1: log(1 + e^2).
    writer = Writer()
    model = icm(reverse_scale=3.0, update_per_collect=1, tb_logger=writer)
    model.collected(transitions([[1, 2]], [[2, 3]], action=np.array([1])), np.array([1]))
    model.train(1, 1)
    inverse = np.log(1 + np.exp(2))
    expected = {"inverse_loss": inverse, "forward_loss": 4.0, "loss": 3 * inverse + 4}
    logged = {name: writer.rows[f"reward_model_iter/{name}"][0][1] for name in expected}
    assert logged == pytest.approx(expected, rel=1e-5)


def test_icm_of_real_actions():
    model = make(ICMRewardModel, hidden_size_list=[4], action_shape=3, discrete=False)
    seen = transitions(
        [[1, 2]] * 5, [[2, 3]] * 5, action=np.random.default_rng(0).random((5, 3), np.float32)
    )
    found, _ = model.collected(seen, np.array([5]))
    model.train(0, 5)
    assert np.isfinite(found["reward"]).all()


@pytest.mark.parametrize("cls", [RndRewardModel, ICMRewardModel])
def test_curiosity_learns_images(cls):
    model = make(
        cls, obs_shape=[1, 36, 36], hidden_size_list=[8, 8, 16], update_per_collect=2, batch_size=4
    )
    images = np.random.default_rng(0).random((7, 1, 36, 36), np.float32)
    found, _ = model.collected(transitions(images[:-1], images[1:]), np.array([6]))
    model.train(0, 6)
    assert (found["reward"] > 0).all()


def test_curiosity_refuses_what_it_cannot_see():
    with pytest.raises(ConfigError, match="vectors or images"):
        make(RndRewardModel, obs_shape=None)
    with pytest.raises(ConfigError, match="one choice or one vector"):
        make(ICMRewardModel, action_shape=None)
    with pytest.raises(ConfigError, match="intrinsic_reward_type must be one of"):
        make(RndRewardModel, intrinsic_reward_type="replace")
    nested = transitions([[0, 0]], [[0, 0]])
    nested["obs"] = {"agent_state": nested["obs"]}
    with pytest.raises(DataError, match="'obs' of a transition must be one array, got dict"):
        make(RndRewardModel).collected(nested, np.array([1]))


# ---------------------------------------------------------------------- HER

#: Two bits and their goal: 00 → 10 → 11 with the goal 01; then 10 → 00 with the goal 00.
_OBS = [[0, 0, 0, 1], [1, 0, 0, 1], [1, 0, 0, 0]]
_NEXT_OBS = [[1, 0, 0, 1], [1, 1, 0, 1], [0, 0, 0, 0]]


def relabelled(done=(False, False, True), **settings):
    model = make(HerRewardModel, obs_shape=4, **settings)
    seen = transitions(_OBS, _NEXT_OBS, reward=[0, 0, 1], done=done)
    found, lengths = model.collected(seen, np.array([2, 1]))
    assert lengths.tolist() == [2, 1] + [1] * (len(found["obs"]) - 3)
    for name, column in seen.items():
        np.testing.assert_array_equal(found[name][:3], column)
    return {name: column[3:].tolist() for name, column in found.items()}


def test_her_with_the_last_outcome_as_the_goal():
    added = relabelled(her_strategy="final", her_replay_k=1)
    assert added["obs"] == [[0, 0, 1, 1], [1, 0, 1, 1], [1, 0, 0, 0]]
    assert added["next_obs"] == [[1, 0, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0]]
    assert added["reward"] == [0, 1, 1]
    assert added["done"] == [False, True, True]


@pytest.mark.parametrize(
    ("strategy", "first", "second"),
    [("future", {(1, 0), (1, 1)}, {(1, 1)}), ("episode", {(1, 0), (1, 1)}, {(1, 0), (1, 1)})],
)
def test_goals_of_her(strategy, first, second):
    np.random.seed(0)
    added = relabelled(her_strategy=strategy, her_replay_k=50)
    goals = [tuple(row[2:]) for row in added["obs"]]
    assert set(goals[:50]) == first
    assert set(goals[50:100]) == second
    assert set(goals[100:]) == {(0, 0)}
    reached = [row[:2] == row[2:] for row in added["next_obs"]]
    assert added["reward"] == reached
    assert added["done"] == reached


def test_her_keeps_ends_that_are_no_success():
    np.random.seed(0)
    added = relabelled(her_strategy="episode", her_replay_k=50, done=[False, True, True])
    assert set(added["reward"][50:100]) == {0, 1}
    assert all(added["done"][50:100])


def test_her_refuses_other_observations():
    with pytest.raises(ConfigError, match="observations that are vectors"):
        make(HerRewardModel, obs_shape=[3, 8, 8])
    with pytest.raises(ConfigError, match="her_strategy must be one of"):
        make(HerRewardModel, obs_shape=4, her_strategy="past")
    with pytest.raises(ConfigError, match=r"reward_model.goal must be \[first, end\) within the 4"):
        make(HerRewardModel, obs_shape=4, goal=[2, 5])
    with pytest.raises(ConfigError, match="achieved has 2 numbers"):
        make(HerRewardModel, obs_shape=4, achieved=[0, 2], goal=[3, 4])
