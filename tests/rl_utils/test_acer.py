"""Retrace and ACER's losses against loops over single steps, and the trust region by hand."""

import pytest
import torch

from ding.rl_utils import (
    acer_policy_error,
    acer_trust_region_update,
    acer_value_error,
    compute_q_retraces,
)

T, B, N = 5, 2, 3


@pytest.fixture
def data():
    torch.manual_seed(0)
    return {
        "q": torch.randn(T + 1, B, N),
        "v": torch.randn(T + 1, B, 1),
        "reward": torch.randn(T, B),
        "action": torch.randint(0, N, (T, B)),
        "alive": torch.tensor([[1.0, 1], [1, 1], [0, 1], [1, 1], [1, 0]]),
        "ratio": torch.rand(T, B, N) * 3,
    }


@pytest.mark.parametrize("lambda_", [1.0, 0.6])
def test_retrace_equals_a_loop(data, lambda_):
    gamma = 0.9
    got = compute_q_retraces(
        *(data["q"], data["v"], data["reward"], data["action"], data["alive"], data["ratio"]),
        gamma,
        lambda_,
    )
    assert got.shape == (T + 1, B, 1)
    for b in range(B):
        after = data["v"][T, b, 0].item()  # Q_ret - Q + V of the next step, traced
        for t in reversed(range(T)):
            own = data["reward"][t, b].item() + gamma * data["alive"][t, b].item() * after
            assert got[t, b, 0].item() == pytest.approx(own, rel=1e-5)
            a = data["action"][t, b]
            trace = lambda_ * min(1.0, data["ratio"][t, b, a].item())
            after = trace * (own - data["q"][t, b, a].item()) + data["v"][t, b, 0].item()
        assert got[T, b] == data["v"][T, b]


def test_policy_error_equals_a_loop(data):
    c = 1.5
    logit = torch.randn(T, B, N, requires_grad=True)
    log_prob = logit.log_softmax(-1)
    retrace = torch.randn(T, B, 1)
    actor, correction = acer_policy_error(
        *(data["q"][:-1], retrace, data["v"][:-1], log_prob, data["action"], data["ratio"]), c
    )
    assert actor.shape == correction.shape == (T, B, 1)
    for t in range(T):
        for b in range(B):
            a, value = data["action"][t, b], data["v"][t, b, 0]
            weight = data["ratio"][t, b, a].clamp(max=c)
            expected = -weight * (retrace[t, b, 0] - value) * log_prob[t, b, a]
            assert actor[t, b, 0].item() == pytest.approx(expected.item(), abs=1e-5)
            expected = 0.0
            for n in range(N):
                ratio = data["ratio"][t, b, n].item()
                beyond = max(0.0, (ratio - c) / ratio)
                adv = (data["q"][t, b, n] - value).item()
                expected -= beyond * log_prob[t, b, n].exp() * adv * log_prob[t, b, n]
            assert correction[t, b, 0].item() == pytest.approx(expected.item(), abs=1e-5)


def test_an_action_that_was_impossible_is_corrected_for():
    ratio = torch.tensor([[[torch.inf, 0.0]]])
    loss = acer_policy_error(
        *(torch.tensor([[[2.0, 1.0]]]), torch.zeros(1, 1, 1), torch.zeros(1, 1, 1)),
        *(torch.tensor([[[0.5, 0.5]]]).log(), torch.tensor([[1]]), ratio),
    )
    assert loss[0].item() == 0
    assert loss[1].item() == pytest.approx(-0.5 * 2 * torch.tensor(0.5).log().item())


def test_value_error(data):
    q = data["q"][:-1].requires_grad_()
    retrace = torch.randn(T, B, 1, requires_grad=True)
    error = acer_value_error(q, retrace, data["action"])
    error.sum().backward()
    assert retrace.grad is None
    taken = q[1, 0, data["action"][1, 0]]
    assert error[1, 0, 0].item() == pytest.approx(0.5 * (retrace[1, 0, 0] - taken).item() ** 2)


def test_trust_region():
    target, average = torch.tensor([[0.8, 0.2]]).log(), torch.tensor([[0.5, 0.5]]).log()
    # The divergence grows with (0.3, -0.3): by 0.6 along (1, -1), by -0.6 along (-1, 1).
    away, back = torch.tensor([[1.0, -1.0]]), torch.tensor([[-1.0, 1.0]])
    new, same = acer_trust_region_update([away, back], target, average, 0.3)
    assert (new * torch.tensor([[0.3, -0.3]])).sum().item() == pytest.approx(0.3)
    assert new.tolist() == [pytest.approx([0.5, -0.5])]
    assert torch.equal(same, back)
    assert torch.equal(acer_trust_region_update([away], target, average, 0.7)[0], away)
    # Nothing is known of where to go from the average itself.
    assert torch.equal(acer_trust_region_update([away], average, average, 0.1)[0], away)


def test_the_growth_is_that_of_the_divergence():
    torch.manual_seed(0)
    logit, average = torch.randn(4, requires_grad=True), torch.randn(4)
    p = average.softmax(-1)
    (p * (average.log_softmax(-1) - logit.log_softmax(-1))).sum().backward()
    step = torch.randn(4)
    (bounded,) = acer_trust_region_update([step], logit.detach(), average, -10.0)
    assert (bounded @ logit.grad).item() == pytest.approx(-10, rel=1e-4)
