"""PPO, A2C and V-trace against torch.distributions and plain loops."""

import math

import pytest
import torch
from torch.distributions import Categorical, Independent, Normal

from ding.rl_utils import (
    a2c_data,
    a2c_error,
    a2c_error_continuous,
    calculate_kl_div,
    ppo_data,
    ppo_data_continuous,
    ppo_error,
    ppo_error_continuous,
    ppo_policy_data,
    ppo_policy_error,
    ppo_value_data,
    ppo_value_error,
    shape_fn_ppo,
    vtrace_data,
    vtrace_error_continuous_action,
    vtrace_error_discrete_action,
)


def mu_sigma(*shape: int) -> dict[str, torch.Tensor]:
    return {"mu": torch.randn(shape), "sigma": torch.rand(shape) + 0.5}


def normal(outputs: dict[str, torch.Tensor]) -> Independent:
    return Independent(Normal(outputs["mu"], outputs["sigma"]), 1)


def reference(new, old, action, adv, weight, clip, dual_clip):
    ratio = (new.log_prob(action) - old.log_prob(action)).exp()
    gain = torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv)
    if dual_clip is not None:
        gain = torch.where(adv < 0, torch.max(gain, dual_clip * adv), gain)
    entropy = (new.entropy() * weight).mean()
    clipped = ((ratio < 1 - clip) | (ratio > 1 + clip)).float().mean()
    return -(gain * weight).mean(), entropy, -ratio.log().mean(), clipped


@pytest.mark.parametrize("dual_clip", [None, 2.0])
@pytest.mark.parametrize("continuous", [False, True])
def test_ppo_equals_the_formula(continuous: bool, dual_clip: float | None) -> None:
    torch.manual_seed(0)
    batch = 32
    value_new, value_old, adv, return_ = torch.randn(4, batch)
    weight = torch.rand(batch)
    if continuous:
        new, old, action = mu_sigma(batch, 3), mu_sigma(batch, 3), torch.randn(batch, 3)
        error, dist, make = ppo_error_continuous, normal, ppo_data_continuous
    else:
        new, old, action = torch.randn(batch, 4), torch.randn(batch, 4), torch.arange(batch) % 4
        error, make = ppo_error, ppo_data
        dist = lambda logit: Categorical(logits=logit)  # noqa: E731
    loss, info = error(
        make(new, old, action, value_new, value_old, adv, return_, weight), 0.2, True, dual_clip
    )
    policy, entropy, kl, clipped = reference(
        dist(new), dist(old), action, adv, weight, 0.2, dual_clip
    )
    torch.testing.assert_close(loss.policy_loss, policy)
    torch.testing.assert_close(loss.entropy_loss, entropy)
    assert info.approx_kl == pytest.approx(kl.item(), rel=1e-4)
    assert info.clipfrac == pytest.approx(clipped.item())
    assert loss.kl_div.item() == 0
    change = (value_new - value_old).clamp(-0.2, 0.2)
    worst = torch.max((return_ - value_new) ** 2, (return_ - value_old - change) ** 2)
    torch.testing.assert_close(loss.value_loss, 0.5 * (worst * weight).mean())


def test_ppo_by_hand() -> None:
    # New probability 0.8 from 0.5: ratio 1.6, clipped at 1.2.
    logit = torch.tensor([[math.log(4.0), 0.0]], requires_grad=True)
    data = ppo_policy_data(
        logit, torch.zeros(1, 2), torch.tensor([0]), torch.tensor([2.0]), None, None
    )
    loss, info = ppo_policy_error(data, entropy_bonus=False)
    assert loss.policy_loss.item() == pytest.approx(-2.4)
    assert loss.entropy_loss.item() == 0
    assert info.clipfrac == 1
    loss, _ = ppo_policy_error(data._replace(adv=torch.tensor([-2.0])), dual_clip=1.5)
    assert loss.policy_loss.item() == pytest.approx(3.0)
    loss.policy_loss.backward()
    assert logit.grad.tolist() == [[0.0, 0.0]]


def test_ppo_value_without_clip() -> None:
    data = ppo_value_data(torch.tensor([1.0]), torch.tensor([0.0]), torch.tensor([3.0]), None)
    assert ppo_value_error(data, use_value_clip=False).item() == 2.0
    assert ppo_value_error(data, clip_ratio=0.5).item() == pytest.approx(0.5 * 2.5**2)


def test_ppo_with_a_team_advantage() -> None:
    torch.manual_seed(0)
    new, old = torch.randn(2, 4, 3, 5)
    action, value, adv = torch.randint(0, 5, (4, 3)), torch.randn(4), torch.randn(4)
    loss, _ = ppo_error(ppo_data(new, old, action, value, value, adv, value, torch.ones(4), None))
    ratio = Categorical(logits=new).log_prob(action) - Categorical(logits=old).log_prob(action)
    ratio = ratio.exp().mean(1)
    want = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
    torch.testing.assert_close(loss.policy_loss, want)


def test_masked_actions_keep_entropy_and_gradient_finite() -> None:
    logit = torch.tensor([[0.0, 0.0, -1e9], [0.0, 0.0, -math.inf]], requires_grad=True)
    data = ppo_policy_data(logit, logit.detach(), torch.tensor([0, 1]), torch.ones(2), None, None)
    loss, _ = ppo_policy_error(data)
    assert loss.entropy_loss.item() == pytest.approx(math.log(2))
    (loss.policy_loss + loss.entropy_loss).backward()
    assert logit.grad.isfinite().all()


@pytest.mark.parametrize("kl_type", ["k1", "k2", "k3"])
def test_kl_estimators_agree_with_the_truth(kl_type: str) -> None:
    torch.manual_seed(0)
    p, q = Normal(0.0, 1.0), Normal(0.1, 1.0)
    x = p.sample((200_000,))
    got = calculate_kl_div(p.log_prob(x) - q.log_prob(x), kl_type)
    assert got.item() == pytest.approx(0.005, abs=1e-3)


def test_pretrained_policy_gives_a_divergence_with_gradient() -> None:
    logit = torch.randn(4, 2, requires_grad=True)
    data = ppo_policy_data(
        logit, logit.detach(), torch.tensor([0, 1, 0, 1]), torch.ones(4), None, torch.zeros(4, 2)
    )
    loss, _ = ppo_policy_error(data, kl_type="k3")
    assert loss.kl_div.item() > 0
    loss.kl_div.backward()
    assert logit.grad.abs().sum() > 0


def test_bad_options_are_refused() -> None:
    data = ppo_policy_data(*[torch.zeros(1, 2)] * 2, torch.tensor([0]), torch.ones(1), None, None)
    with pytest.raises(ValueError, match=r"dual_clip=0\.5"):
        ppo_policy_error(data, dual_clip=0.5)
    with pytest.raises(ValueError, match="'k4'"):
        calculate_kl_div(torch.zeros(1), "k4")


def test_shape_fn() -> None:
    data = ppo_data(torch.zeros(2, 3), *[None] * 7)
    assert shape_fn_ppo((data,), {}) == shape_fn_ppo((), {"data": data}) == [2, 3]


def test_a2c_equals_the_formula() -> None:
    torch.manual_seed(0)
    value, adv, return_, weight = torch.randn(4, 8)
    logit, action = torch.randn(8, 3), torch.arange(8) % 3
    outputs, chosen = mu_sigma(8, 2), torch.randn(8, 2)
    for loss, dist, taken in (
        (
            a2c_error(a2c_data(logit, action, value, adv, return_, weight)),
            Categorical(logits=logit),
            action,
        ),
        (
            a2c_error_continuous(a2c_data(outputs, chosen, value, adv, return_, weight)),
            normal(outputs),
            chosen,
        ),
    ):
        want = -(dist.log_prob(taken) * adv * weight).mean()
        torch.testing.assert_close(loss.policy_loss, want)
        torch.testing.assert_close(loss.entropy_loss, (dist.entropy() * weight).mean())
        torch.testing.assert_close(loss.value_loss, ((return_ - value) ** 2 * weight).mean())


@pytest.mark.parametrize("continuous", [False, True])
def test_vtrace_equals_a_loop(continuous: bool) -> None:
    torch.manual_seed(0)
    steps, batch, gamma, lambda_ = 6, 3, 0.9, 0.8
    value, reward = torch.randn(steps + 1, batch), torch.randn(steps, batch)
    if continuous:
        new, old = mu_sigma(steps, batch, 2), mu_sigma(steps, batch, 2)
        action, error = torch.randn(steps, batch, 2), vtrace_error_continuous_action
        target, behaviour = normal(new), normal(old)
    else:
        new, old = torch.randn(2, steps, batch, 4)
        action, error = torch.randint(0, 4, (steps, batch)), vtrace_error_discrete_action
        target, behaviour = Categorical(logits=new), Categorical(logits=old)
    loss = error(vtrace_data(new, old, action, value, reward, None), gamma, lambda_, 1.1, 0.9, 1.2)
    rhos = (target.log_prob(action) - behaviour.log_prob(action)).exp()
    vs = value.clone()
    for t in reversed(range(steps)):
        delta = rhos[t].clamp(max=1.1) * (reward[t] + gamma * value[t + 1] - value[t])
        trace = gamma * lambda_ * rhos[t].clamp(max=0.9)
        vs[t] = value[t] + delta + trace * (vs[t + 1] - value[t + 1])
    adv = rhos.clamp(max=1.2) * (reward + gamma * vs[1:] - value[:-1])
    torch.testing.assert_close(loss.policy_loss, -(target.log_prob(action) * adv).mean())
    torch.testing.assert_close(loss.value_loss, ((value[:-1] - vs[:-1]) ** 2).mean())
    torch.testing.assert_close(loss.entropy_loss, target.entropy().mean())
