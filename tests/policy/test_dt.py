"""The decision transformer: its data, its loss, and what it acts by."""

import math

import numpy as np
import pytest
import torch

from ding.data import Columns
from ding.data.offline.trajectories import TrajectoryPieces
from ding.model import DecisionTransformer
from ding.policy import DTPolicy, create_policy
from ding.utils.errors import ConfigError, DataError
from tests.policy.attributes import model_of


def policy(continuous=False, **changes):
    cfg = DTPolicy.default_config()
    small = dict(n_blocks=1, h_dim=8, context_len=3, n_heads=2, drop_p=0.0)
    cfg.model.update(state_dim=2, act_dim=2, continuous=continuous, **small)
    cfg.update(rtg_target=10.0, rtg_scale=2.0, **changes)
    torch.manual_seed(0)
    return create_policy(cfg, enable_field=["learn", "eval"])


def transitions():
    """Two episodes of 3 and 2 steps; observations number the steps."""
    obs = np.repeat(np.array([0, 1, 2, 10, 11], np.float32)[:, None], 2, 1)
    return Columns(
        {
            "obs": obs,
            "next_obs": obs + 1,
            "action": np.array([[0], [1], [0], [1], [1]]),
            "reward": np.array([[1], [2], [4], [8], [16]], np.float32),
            "done": np.array([False, False, True, False, True]),
        }
    )


def test_pieces_hold_returns_to_go_and_end_with_their_trajectory():
    pieces = TrajectoryPieces(transitions(), 3)
    assert pieces.returns.tolist() == [7, 24]
    batch = pieces.take(np.array([0, 1, 3])).columns
    assert np.asarray(batch["rtg"]).tolist() == [[7, 6, 4], [6, 4, 4], [24, 16, 16]]
    assert np.asarray(batch["timestep"]).tolist() == [[0, 1, 2], [1, 2, 2], [0, 1, 1]]
    assert np.asarray(batch["mask"]).astype(int).tolist() == [[1, 1, 1], [1, 1, 0], [1, 1, 0]]


def test_an_action_depends_on_nothing_that_comes_after_its_state():
    torch.manual_seed(0)
    net = DecisionTransformer(2, 2, 2, 8, 4, 2, 0.0).eval()
    times, states = torch.arange(4)[None], torch.randn(1, 4, 2)
    actions, returns = torch.tensor([[0, 1, 1, 0]]), torch.randn(1, 4, 1)

    def predicted(**changed):
        given = {"timesteps": times, "states": states, "actions": actions, **changed}
        return net(**{"returns_to_go": returns, **given})[1]

    before = predicted()
    assert before.shape == (1, 4, 2)
    other = predicted(actions=torch.tensor([[0, 1, 0, 1]]))  # of steps 2 and 3
    torch.testing.assert_close(other[:, :3], before[:, :3], rtol=0, atol=0)
    assert not torch.equal(other[:, 3], before[:, 3])  # which sees the action of step 2
    later = states.clone()
    later[:, 2] += 1
    assert not torch.equal(predicted(states=later)[:, 2], before[:, 2])
    torch.testing.assert_close(predicted(states=later)[:, :2], before[:, :2], rtol=0, atol=0)


def test_loss_is_the_mean_over_steps_that_are_no_padding():
    mine = policy(state_mean=[0, 0], state_std=[1, 1])
    logits = torch.log(torch.tensor([[[0.5, 0.5], [0.25, 0.75], [0.9, 0.1]]]))
    model_of(mine).forward = lambda *inputs: (None, logits.requires_grad_(), None)
    batch = {"obs": torch.zeros(1, 3, 2), "action": torch.tensor([[0, 1, 0]])}
    batch |= {"rtg": torch.zeros(1, 3), "timestep": torch.arange(3)[None]}
    batch["mask"] = torch.tensor([[True, True, False]])
    expected = -(math.log(0.5) + math.log(0.75)) / 2
    assert mine.learn_mode.forward(batch)["total_loss"] == pytest.approx(expected)


def test_the_learning_rate_rises():
    mine = policy(warmup_steps=4)
    batch = TrajectoryPieces(transitions(), 3).take(np.arange(5))
    rates = [mine.learn_mode.forward(batch)["cur_lr"] for _ in range(6)]
    assert rates == pytest.approx([2.5e-5, 5e-5, 7.5e-5, 1e-4, 1e-4, 1e-4])


@pytest.mark.parametrize("continuous", [False, True])
def test_acts_on_the_last_steps_and_on_the_return_that_is_left(continuous):
    """As the network does on the same steps at once."""
    mine = policy(continuous)
    net, mode = model_of(mine).eval(), mine.eval_mode.batched
    obs = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    rewards, acted = [1.0, 3.0, 0.5, 2.0], []
    for step in range(5):
        # Another environment, which is not reset together with this one.
        ids = np.array([7, 4]) if step % 2 else np.array([7])
        output = mode.forward(np.stack([obs[step]] * len(ids)), env_ids=ids.tolist())
        acted.append(output["action"][0])
        if step < 4:
            mode.see_rewards(ids, np.full(len(ids), rewards[step], np.float32))
    left = [(10 - sum(rewards[:step])) / 2 for step in range(5)]
    actions = torch.stack(acted)
    inputs = (torch.arange(2, 5)[None], torch.from_numpy(obs[None, 2:]))
    with torch.no_grad():
        predicted = net(*inputs, actions[None, 2:], torch.tensor(left[2:])[None, :, None])[1]
    wanted = predicted[0, 2] if continuous else predicted[0, 2].argmax(-1)
    torch.testing.assert_close(acted[4], wanted, rtol=1e-5, atol=1e-6)


def test_without_rewards_it_does_not_act_on():
    mode = policy().eval_mode
    mode.forward({0: np.zeros(2, np.float32)})
    with pytest.raises(ConfigError, match="does not see rewards"):
        mode.forward({0: np.zeros(2, np.float32)})
    mode.reset([0])
    mode.forward({0: np.zeros(2, np.float32)})


def test_longer_pieces_than_the_network_sees_are_refused():
    batch = TrajectoryPieces(transitions(), 4).take(np.arange(2))
    with pytest.raises(DataError, match="context_len=3"):
        policy().learn_mode.forward(batch)
