"""Temporal-difference errors by hand and against plain loops."""

import pytest
import torch
from torch import nn

from ding.rl_utils import (
    dist_1step_td_data,
    dist_1step_td_error,
    dist_nstep_td_data,
    dist_nstep_td_error,
    generalized_lambda_returns,
    nstep_return,
    nstep_return_data,
    q_1step_td_data,
    q_1step_td_error,
    q_nstep_sql_td_error,
    q_nstep_td_data,
    q_nstep_td_error,
    q_nstep_td_error_with_rescale,
    q_v_1step_td_data,
    q_v_1step_td_error,
    qrdqn_nstep_td_data,
    qrdqn_nstep_td_error,
    td_lambda_data,
    td_lambda_error,
    v_1step_td_data,
    v_1step_td_error,
    v_nstep_td_data,
    v_nstep_td_error,
    value_inv_transform,
    value_transform,
)

Q = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
NEXT_Q = torch.tensor([[5.0, 6.0], [7.0, 8.0]])
ACT = torch.tensor([0, 1])
NEXT_ACT = torch.tensor([1, 0])
DONE = torch.tensor([0.0, 1.0])


def data(reward: torch.Tensor, weight: torch.Tensor | None = None, q: torch.Tensor = Q):
    return q_nstep_td_data(q, NEXT_Q, ACT, NEXT_ACT, reward, DONE, weight)


def test_one_step_by_hand() -> None:
    # targets [1 + 0.5 * 6, 2], predictions [1, 4]
    one = q_1step_td_data(Q, NEXT_Q, ACT, NEXT_ACT, torch.tensor([1.0, 2.0]), DONE, None)
    loss = q_1step_td_error(one, 0.5)
    assert loss.item() == 6.5
    same, error = q_nstep_td_error(data(torch.tensor([[1.0, 2.0]])), 0.5)
    assert error.tolist() == [9.0, 4.0]
    assert same.item() == loss.item()
    loss = q_1step_td_error(one._replace(done=DONE.bool()), 0.5)
    assert loss.item() == 6.5


def test_n_step_by_hand() -> None:
    reward = torch.tensor([[1.0, 2.0], [4.0, 6.0]])
    _, error = q_nstep_td_error(data(reward), 0.5, nstep=2)
    # targets [1 + 2 + 0.25 * 6, 2 + 3]
    assert error.tolist() == [3.5**2, 1.0]
    _, error = q_nstep_td_error(data(reward), 0.5, 2, value_gamma=torch.tensor([0.5, 0.25]))
    assert error.tolist() == [25.0, 1.0]
    _, error = q_nstep_td_error(data(torch.tensor([3.0, 5.0])), 0.5, 2, cum_reward=True)
    assert error.tolist() == [3.5**2, 1.0]
    _, error = q_nstep_td_error(data(reward), [0.5, 0.0], nstep=2)
    assert error.tolist() == [3.5**2, 4.0]


def test_weight_scales_the_loss_and_not_the_priorities() -> None:
    weighted, error = q_nstep_td_error(
        data(torch.tensor([[1.0, 2.0]]), torch.tensor([0.5, 2.0])), 0.5
    )
    assert error.tolist() == [9.0, 4.0]
    assert weighted.item() == (0.5 * 9 + 2 * 4) / 2


def test_no_gradient_through_the_target() -> None:
    q, next_q = Q.clone().requires_grad_(), NEXT_Q.clone().requires_grad_()
    loss, _ = q_nstep_td_error(data(torch.tensor([[1.0, 2.0]]), q=q)._replace(next_n_q=next_q), 0.5)
    loss.backward()
    assert next_q.grad is None
    assert q.grad.tolist() == [[-3.0, 0.0], [0.0, 2.0]]


def test_wrong_number_of_rewards() -> None:
    with pytest.raises(ValueError, match="got 1 rewards per sample, expected nstep=2"):
        q_nstep_td_error(data(torch.ones(1, 2)), 0.5, nstep=2)


def test_agents_share_reward_and_weight() -> None:
    q = Q.unsqueeze(1).expand(2, 3, 2)
    agents = q_nstep_td_data(
        q,
        NEXT_Q.unsqueeze(1).expand(2, 3, 2),
        ACT.unsqueeze(1).expand(2, 3),
        NEXT_ACT.unsqueeze(1).expand(2, 3),
        torch.tensor([[1.0, 2.0]]),
        DONE,
        torch.tensor([0.5, 2.0]),
    )
    loss, error = q_nstep_td_error(agents, 0.5, value_gamma=torch.full((2,), 0.5))
    assert error.tolist() == [[9.0] * 3, [4.0] * 3]
    assert loss.item() == 6.25


def test_rescaled_target() -> None:
    reward = torch.tensor([[1.0, 2.0]])
    plain = nstep_return(
        nstep_return_data(reward, value_inv_transform(torch.tensor([6.0, 7.0])), DONE), 0.5, 1
    )
    _, error = q_nstep_td_error_with_rescale(data(reward), 0.5)
    torch.testing.assert_close(error, (value_transform(plain) - torch.tensor([1.0, 4.0])) ** 2)


def test_soft_q_target() -> None:
    _, error, value = q_nstep_sql_td_error(data(torch.tensor([[1.0, 2.0]])), 0.5, alpha=2.0)
    torch.testing.assert_close(value, 2 * torch.logsumexp(NEXT_Q / 2, dim=1))
    torch.testing.assert_close(error[0], (1 + 0.5 * value[0] - 1) ** 2)


def test_state_values() -> None:
    v, next_v, reward = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), torch.ones(2)
    _, one = v_1step_td_error(v_1step_td_data(v, next_v, reward, DONE, None), 0.5)
    assert one.tolist() == [2.25, 1.0]
    _, free = v_1step_td_error(v_1step_td_data(v, next_v, reward, None, None), 0.5)
    assert free.tolist() == [2.25, 1.0]
    many = v_nstep_td_data(v, next_v, reward.expand(2, 2), DONE, None, torch.tensor([0.5, 0.5]))
    _, error = v_nstep_td_error(many, 0.5, nstep=2)
    assert error.tolist() == [4.0, 0.25]
    _, error = q_v_1step_td_error(q_v_1step_td_data(Q, next_v, ACT, reward, DONE, None), 0.5)
    assert error.tolist() == [2.25, 9.0]


def test_criterion_is_used() -> None:
    _, error = q_nstep_td_error(
        data(torch.tensor([[1.0, 2.0]])), 0.5, criterion=nn.L1Loss(reduction="none")
    )
    assert error.tolist() == [3.0, 2.0]


def naive_projection(prob: list[float], atoms: list[float], v_min: float, v_max: float):
    count = len(prob)
    width = (v_max - v_min) / (count - 1)
    result = [0.0] * count
    for p, atom in zip(prob, atoms):
        for i in range(count):
            distance = abs(min(max(atom, v_min), v_max) - (v_min + i * width)) / width
            result[i] += p * max(0.0, 1 - distance)
    return result


@pytest.mark.parametrize("nstep", [1, 3])
def test_categorical_projection_equals_a_loop(nstep: int) -> None:
    torch.manual_seed(0)
    batch, n_atom, gamma = 4, 7, 0.9
    dist, next_dist = torch.rand(2, batch, 3, n_atom).softmax(-1)
    act, next_act = torch.randint(0, 3, (2, batch))
    reward, done = torch.randn(nstep, batch) * 2, torch.tensor([0.0, 1.0, 0.0, 0.0])
    value_gamma = torch.tensor([gamma**nstep, gamma**nstep, gamma, 0.5])
    tuple_ = dist_nstep_td_data(dist, next_dist, act, next_act, reward, done, None)
    loss, error = dist_nstep_td_error(tuple_, gamma, -3, 3, n_atom, nstep, value_gamma)
    support = torch.linspace(-3, 3, n_atom)
    discount = gamma ** torch.arange(nstep)
    for i in range(batch):
        atoms = (discount * reward[:, i]).sum() + value_gamma[i] * (1 - done[i]) * support
        prob = next_dist[i, next_act[i]].tolist()
        target = torch.tensor(naive_projection(prob, atoms.tolist(), -3, 3))
        assert target.sum().item() == pytest.approx(1, abs=1e-5)
        want = -(target * dist[i, act[i]].log()).sum()
        torch.testing.assert_close(error[i], want, rtol=1e-4, atol=1e-5)
    assert loss.item() == pytest.approx(error.mean().item())
    if nstep == 1:
        one = dist_1step_td_data(dist, next_dist, act, next_act, reward[0], done, None)
        many, _ = dist_nstep_td_error(tuple_, gamma, -3, 3, n_atom)
        assert dist_1step_td_error(one, gamma, -3, 3, n_atom).item() == many.item()


def test_categorical_error_is_finite_for_a_zero_probability() -> None:
    dist = torch.tensor([[[1.0, 0.0, 0.0]]], requires_grad=True)
    next_dist = torch.tensor([[[0.0, 0.0, 1.0]]])
    act = torch.zeros(1, dtype=torch.long)
    tuple_ = dist_nstep_td_data(
        dist, next_dist, act, act, torch.zeros(1, 1), torch.zeros(1), torch.ones(1)
    )
    loss, _ = dist_nstep_td_error(tuple_, 1.0, -1, 1, 3)
    loss.backward()
    assert loss.isfinite()
    assert dist.grad.isfinite().all()


def test_quantile_huber_equals_a_loop() -> None:
    torch.manual_seed(0)
    batch, quantiles = 3, 4
    q, next_q = torch.randn(2, batch, 2, quantiles) * 2
    act, next_act = torch.randint(0, 2, (2, batch))
    reward, done = torch.randn(2, batch), torch.tensor([0.0, 1.0, 0.0])
    tau = ((torch.arange(quantiles) + 0.5) / quantiles).view(1, -1, 1).expand(batch, -1, -1)
    tuple_ = qrdqn_nstep_td_data(q, next_q, act, next_act, reward, done, tau, None)
    loss, error = qrdqn_nstep_td_error(tuple_, 0.9, nstep=2)
    for b in range(batch):
        want = 0.0
        for i in range(quantiles):
            for j in range(quantiles):
                bootstrap = 0.81 * (1 - done[b]) * next_q[b, next_act[b], j]
                u = (reward[0, b] + 0.9 * reward[1, b] + bootstrap - q[b, act[b], i]).item()
                huber = 0.5 * u * u if abs(u) < 1 else abs(u) - 0.5
                want += abs(tau[b, i, 0].item() - (u < 0)) * huber / quantiles
        assert error[b].item() == pytest.approx(want, rel=1e-4)
    assert loss.item() == pytest.approx(error.mean().item())


def test_lambda_returns_by_hand() -> None:
    value = torch.tensor([[9.0], [2.0], [4.0]])
    reward = torch.ones(2, 1)
    # G1 = 1 + 0.5 * 4 = 3, G0 = 1 + 0.5 * (0.5 * 2 + 0.5 * 3)
    assert generalized_lambda_returns(value, reward, 0.5, 0.5).tolist() == [[2.25], [3.0]]
    done = torch.tensor([[True], [False]])
    assert generalized_lambda_returns(value, reward, 0.5, 0.5, done).tolist() == [[1.0], [3.0]]
    loss = td_lambda_error(td_lambda_data(value, reward, None), 0.5, 0.5)
    assert loss.item() == pytest.approx(0.25 * ((9 - 2.25) ** 2 + 1))


@pytest.mark.parametrize("lambda_", [0.0, 0.7, 1.0])
def test_lambda_returns_equal_a_loop(lambda_: float) -> None:
    torch.manual_seed(0)
    value, reward, gamma = torch.randn(12, 3), torch.randn(11, 3), torch.rand(11, 3)
    want, carry = torch.zeros(11, 3), value[-1]
    for t in reversed(range(11)):
        carry = reward[t] + gamma[t] * ((1 - lambda_) * value[t + 1] + lambda_ * carry)
        want[t] = carry
    torch.testing.assert_close(generalized_lambda_returns(value, reward, gamma, lambda_), want)
