"""Learning on arrays gives the gradients that autograd gives, whatever happened to the networks."""

import copy

import numpy as np
import pytest
import torch

from ding.policy import DQNPolicy
from ding.policy.quick_learner import MAX_WORK


class ByAutograd(DQNPolicy):
    """An override of what makes the loss: the network is left to autograd."""

    def _branch_loss(self, *args):
        return super()._branch_loss(*args)


def pair(make_dqn, **cfg):
    """Two policies with the same weights, online and target ones, that are not alike."""
    policies = make_dqn(**copy.deepcopy(cfg)), make_dqn(cls=ByAutograd, **copy.deepcopy(cfg))
    shift = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for target in policies[0]._target_model.parameters():
            target.add_(0.1 * torch.randn(target.shape, generator=shift))
    policies[1].learn_mode.load_state_dict(copy.deepcopy(policies[0].learn_mode.state_dict()))
    return policies


def samples(nstep=1, size=16, seed=0, **columns):
    rng = np.random.default_rng(seed)
    return {
        "obs": torch.from_numpy(rng.normal(size=(size, 3)).astype(np.float32)),
        "next_obs": torch.from_numpy(rng.normal(size=(size, 3)).astype(np.float32)),
        "action": torch.from_numpy(rng.integers(0, 2, size)),
        "reward": torch.from_numpy(rng.normal(size=(size, nstep)).astype(np.float32)),
        "done": torch.from_numpy(rng.random(size) < 0.3),
        **{name: torch.from_numpy(value) for name, value in columns.items()},
    }


def gradients(policy):
    return [p.grad.clone() for p in policy._model.parameters()]


def assert_alike(quick, plain, batch):
    logs = quick.learn_mode.forward(batch), plain.learn_mode.forward(batch)
    for name in logs[1]:
        torch.testing.assert_close(
            torch.as_tensor(logs[0][name], dtype=torch.float32),
            torch.as_tensor(logs[1][name], dtype=torch.float32),
            rtol=1e-4,
            atol=1e-5,
        )
    torch.testing.assert_close(gradients(quick), gradients(plain), rtol=1e-3, atol=1e-5)


@pytest.fixture
def quickly(monkeypatch):
    """Fails a test in which a `DQNPolicy` itself was left to autograd."""
    learn = DQNPolicy._learn_by_autograd

    def refused(policy, batch):
        assert type(policy) is ByAutograd
        return learn(policy, batch)

    monkeypatch.setattr(DQNPolicy, "_learn_by_autograd", refused)


@pytest.mark.usefixtures("quickly")
@pytest.mark.parametrize("dueling", [True, False])
@pytest.mark.parametrize("layers", [0, 2])
def test_gradients_are_autograds(make_dqn, dueling, layers):
    model = dict(
        obs_shape=3,
        action_shape=2,
        dueling=dueling,
        head_layer_num=layers,
        encoder_hidden_size_list=[8, 8],
    )
    quick, plain = pair(make_dqn, model=model)
    for seed in range(3):
        assert_alike(quick, plain, samples(seed=seed))


@pytest.mark.usefixtures("quickly")
def test_windows_and_weights_count(make_dqn):
    quick, plain = pair(make_dqn, nstep=3, priority=True, priority_IS_weight=True)
    rng = np.random.default_rng(0)
    weight = rng.random(16).astype(np.float32)
    assert_alike(quick, plain, samples(nstep=3, IS=weight))
    discount = 0.97 ** rng.integers(1, 4, 16).astype(np.float32)
    assert_alike(quick, plain, samples(nstep=3, IS=weight, value_gamma=discount))


def _load(policy):
    policy._model.load_state_dict({k: v * 2 for k, v in policy._model.state_dict().items()})


def _replace_parameter(policy):
    layer = policy._model.encoder.main[0]
    layer.weight = torch.nn.Parameter(layer.weight.detach() * 2)


def _freeze(policy):
    next(policy._model.parameters()).requires_grad_(False).grad = None


def _hook_gradient(policy):
    next(policy._model.parameters()).register_hook(lambda gradient: gradient * 3)


def _hook_output(policy):
    policy._model.head.register_forward_hook(lambda *args: {"logit": args[2]["logit"] * -3})


@pytest.mark.parametrize(
    "change", [_load, _replace_parameter, _freeze, _hook_gradient, _hook_output]
)
def test_changes_of_the_network_are_followed(make_dqn, change):
    quick, plain = pair(make_dqn)
    assert_alike(quick, plain, samples())
    for policy in (quick, plain):
        change(policy)
        policy._optimizer.zero_grad()
    logs = [policy.learn_mode.forward(samples()) for policy in (quick, plain)]
    assert logs[0]["total_loss"] == pytest.approx(logs[1]["total_loss"], rel=1e-4)
    for mine, other in zip(quick._model.parameters(), plain._model.parameters()):
        assert (mine.grad is None) == (other.grad is None)
        if mine.grad is not None:
            torch.testing.assert_close(mine.grad, other.grad, rtol=1e-3, atol=1e-5)


def test_a_copy_trains_its_own_network(make_dqn):
    policy = make_dqn()
    policy.learn_mode.forward(samples())
    other = copy.deepcopy(policy)
    before = copy.deepcopy(policy._model.state_dict())
    other.learn_mode.forward(samples())
    torch.testing.assert_close(dict(policy._model.state_dict()), dict(before), rtol=0, atol=0)
    changed = other._model.state_dict()
    assert any(not torch.equal(changed[name], before[name]) for name in before)


def test_large_batches_are_left_to_autograd(make_dqn, monkeypatch):
    policy = make_dqn()
    rows = MAX_WORK // sum(p.numel() for p in policy._model.parameters())
    by_autograd = []
    learn = policy._learn_by_autograd
    monkeypatch.setattr(
        policy,
        "_learn_by_autograd",
        lambda batch: by_autograd.append(len(batch["obs"])) or learn(batch),
    )
    policy.learn_mode.forward(samples(size=rows))
    policy.learn_mode.forward(samples(size=rows + 1))
    assert by_autograd == [rows + 1]
