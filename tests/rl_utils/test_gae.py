"""Advantages over batches."""

import pytest
import torch

from ding.rl_utils import gae, gae_data


def naive(data: gae_data, gamma: float, lambda_: float) -> torch.Tensor:
    adv = torch.zeros_like(data.value)
    carry = torch.zeros_like(data.value[0])
    for t in reversed(range(len(data.value))):
        alive = 1 - data.done[t]
        delta = data.reward[t] + gamma * alive * data.next_value[t] - data.value[t]
        carry = delta + gamma * lambda_ * (1 - data.traj_flag[t]) * carry
        adv[t] = carry
    return adv


@pytest.mark.parametrize("shape", [(1,), (2,), (33,), (8, 3)])
def test_equals_a_loop(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    done = (torch.rand(shape) < 0.2).float()
    flag = torch.max(done, (torch.rand(shape) < 0.2).float())
    data = gae_data(*(torch.randn(shape) for _ in range(3)), done, flag)
    torch.testing.assert_close(gae(data, 0.99, 0.95), naive(data, 0.99, 0.95))


def test_by_hand() -> None:
    value = torch.tensor([1.0, 2.0])
    data = gae_data(value, torch.tensor([2.0, 3.0]), torch.ones(2), None, None)
    # delta = [1 + 0.5 * 2 - 1, 1 + 0.5 * 3 - 2] = [1, 0.5]
    assert gae(data, 0.5, 0.5).tolist() == [1.125, 0.5]
    assert gae(data._replace(done=torch.tensor([0, 1])), 0.5, 0.5).tolist() == [0.75, -1.0]


def test_one_team_reward_for_values_per_agent() -> None:
    torch.manual_seed(0)
    value, next_value = torch.randn(2, 6, 2, 3)
    reward, done = torch.randn(6, 2), torch.zeros(6, 2, dtype=torch.bool)
    got = gae(gae_data(value, next_value, reward, done, None))
    for agent in range(3):
        single = gae_data(value[..., agent], next_value[..., agent], reward, done, None)
        torch.testing.assert_close(got[..., agent], gae(single))


def test_gradient_flows() -> None:
    value = torch.randn(9, requires_grad=True)
    gae(gae_data(value, torch.randn(9), torch.randn(9), None, None)).sum().backward()
    assert value.grad is not None
