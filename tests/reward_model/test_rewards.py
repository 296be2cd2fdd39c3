"""Losses and rewards against numbers worked by hand from the papers."""

import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.reward_model import HerRewardModel, ICMRewardModel, RndRewardModel, Shapes
from ding.utils.errors import ConfigError, DataError
from ding.utils.running_mean_std import RunningMeanStd


def make(cls, obs_shape=2, action_shape=2, discrete=True, **settings):
    cfg = EasyDict({**cls.default_config(), "type": "it", **settings})
    return cls(cfg, Shapes(obs_shape, action_shape, discrete), "cpu")


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


# ---------------------------------------------------------------------- RND


def rnd(**settings):
    model = make(RndRewardModel, hidden_size_list=[4], **settings)
    model._target = as_linear([[1, 0], [0, 1]])
    model._predictor = as_linear([[1, 0], [0, 0]])
    return model


def test_rnd_pays_the_squared_error_at_the_next_observation():
    # Target (1, 2) and (3, 4), predicted (1, 0) and (3, 0): errors 4 / 2 and 16 / 2.
    # Discounted sums of the trajectory, 2 + 0.99 * 8 and 8, and their running deviation.
    model = rnd(obs_norm=False, intrinsic_reward_weight=0.5)
    seen = transitions([[9, 9], [1, 2]], [[1, 2], [3, 4]], reward=[1, 10])
    found, lengths = model.collected(seen, np.array([2]))
    moments = RunningMeanStd()
    moments.update(np.array([9.92, 8.0]))
    assert found["reward"] == pytest.approx([1 + 1 / moments.std, 10 + 4 / moments.std])
    assert lengths.tolist() == [2]
    assert seen["reward"].tolist() == [1, 10]


def test_rnd_normalises_and_clips_observations():
    # Moments of (0, 0) and (2, 200): means 1 and 100, deviations 1 and 100; then both are ±1.
    model = rnd(obs_norm_clamp_min=-0.5, obs_norm_clamp_max=1.0)
    seen = transitions([[0, 0]] * 2, [[0, 0], [2, 200]])
    model._moments = RunningMeanStd(epsilon=0, shape=(2,))
    model.observe(seen, np.array([2]))
    errors = model._bonus(model._tensors(model._steps(seen)))
    assert errors.tolist() == pytest.approx([0.125, 0.5])


@pytest.mark.parametrize(
    ("kind", "reward", "extra"), [("add", 3.5, None), ("assign", 1.0, None), ("new", 2.5, 1.0)]
)
def test_what_becomes_of_a_bonus(kind, reward, extra):
    model = rnd(intrinsic_reward_type=kind, extrinsic_reward_norm_max=4)
    found = model._combined(transitions([[0, 0]], [[0, 0]], reward=[10]), np.ones(1, np.float32))
    assert found["reward"].tolist() == [reward]
    assert (found["intrinsic_reward"].tolist() if "intrinsic_reward" in found else None) == (
        extra and [extra]
    )


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
    model._encoder = as_linear([[1, 0], [0, 2]])
    # Its input: the features (1, 2) of the observation, and the action.
    model._forward = as_linear([[1, 0, 0, 3], [0, 1, 5, 0]])
    model._inverse = as_linear([[0, 0, 1, 0], [0, 0, 0, 0]])
    return model


def test_icm_pays_half_the_squared_error_of_the_outcome():
    # φ = (1, 4) and (2, 6). Action 1: predicted (1 + 3, 4 + 0), errors 2 and 2: (4 + 4) / 2.
    # Action 0: predicted (1, 4 + 5), errors 1 and 3: (1 + 9) / 2.
    model = icm()
    seen = transitions([[1, 2]] * 2, [[2, 3]] * 2, action=[1, 0])
    assert model._bonus(model._tensors(model._steps(seen))).tolist() == [4.0, 5.0]


def test_loss_of_icm():
    # The inverse model says (2, 0) for φ' = (2, 6), and the action was 1: log(1 + e^2).
    model = icm(reverse_scale=3.0)
    seen = transitions([[1, 2]], [[2, 3]], action=np.array([1]))
    loss, facts = model._loss(model._tensors(model._steps(seen)))
    inverse = np.log(1 + np.exp(2))
    assert facts == pytest.approx({"inverse_loss": inverse, "forward_loss": 4.0}, rel=1e-5)
    assert loss.item() == pytest.approx(3 * inverse + 4, rel=1e-5)


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


def relabelled(**settings):
    model = make(HerRewardModel, obs_shape=4, **settings)
    seen = transitions(_OBS, _NEXT_OBS, reward=[0, 0, 1], done=[False, False, True])
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
    model = make(HerRewardModel, obs_shape=4, her_strategy="final", her_replay_k=1)
    model._chosen = lambda rows, lengths: np.zeros_like(rows)  # what was achieved first: 10
    seen = transitions(_OBS[:2], _NEXT_OBS[:2], done=[False, True])
    found, _ = model.collected(seen, np.array([2]))
    assert found["reward"][2:].tolist() == [1, 0]
    assert found["done"][2:].tolist() == [True, True]


def test_her_refuses_other_observations():
    with pytest.raises(ConfigError, match="observations that are vectors"):
        make(HerRewardModel, obs_shape=[3, 8, 8])
    with pytest.raises(ConfigError, match="her_strategy must be one of"):
        make(HerRewardModel, obs_shape=4, her_strategy="past")
    with pytest.raises(ConfigError, match=r"reward_model.goal must be \[first, end\) within the 4"):
        make(HerRewardModel, obs_shape=4, goal=[2, 5])
    with pytest.raises(ConfigError, match="achieved has 2 numbers"):
        make(HerRewardModel, obs_shape=4, achieved=[0, 2], goal=[3, 4])
