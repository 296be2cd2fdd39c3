"""DQN on arrays learns what autograd learns, and leaves to it what could be something else."""

import copy

import numpy as np
import pytest
import torch

from ding.model import DQN, model_wrap
from ding.policy import DQNPolicy, Policy, array_update, dqn
from ding.policy.array_update import MAX_WORK
from ding.torch_utils import Adam
from tests.policy.attributes import model_of, optimizer_of, target_of
from tests.policy.batches import random_steps


class ByAutograd(DQNPolicy):
    """An override of what makes the loss: the network is left to autograd."""

    def _branch_loss(self, *args):
        return super()._branch_loss(*args)


def pair(make_dqn, **cfg):
    """Two policies with the same weights; online and target ones differ."""
    policies = make_dqn(**copy.deepcopy(cfg)), make_dqn(cls=ByAutograd, **copy.deepcopy(cfg))
    shift = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for target in target_of(policies[0]).parameters():
            target.add_(0.1 * torch.randn(target.shape, generator=shift))
    policies[1].learn_mode.load_state_dict(copy.deepcopy(policies[0].learn_mode.state_dict()))
    return policies


def samples(nstep=1, size=16, seed=0, **columns):
    more = {name: torch.from_numpy(value) for name, value in columns.items()}
    return {**random_steps(size, nstep=nstep, seed=seed).collated(), **more}


def gradients(policy):
    return [p.grad.clone() for p in model_of(policy).parameters()]


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
def by_autograd(monkeypatch):
    """The updates that were left to autograd: those of which the network was called."""
    calls, descend = [], array_update.descend_on_arrays

    def watched(policy, batch):
        log = descend(policy, batch)
        if log is None:
            calls.append(type(policy).__name__)
        return log

    monkeypatch.setattr(dqn, "descend_on_arrays", watched)
    return calls


@pytest.fixture
def quickly(by_autograd):
    """Fails a test in which a `DQNPolicy` itself was left to autograd."""
    yield
    assert set(by_autograd) <= {"ByAutograd"}


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


@pytest.mark.usefixtures("quickly")
@pytest.mark.parametrize("form", ["absolute", "squared"])
def test_priorities_have_the_form_that_is_asked_for(make_dqn, form):
    assert_alike(*pair(make_dqn, priority=True, priority_form=form), samples())


def _load(policy):
    model_of(policy).load_state_dict({k: v * 2 for k, v in model_of(policy).state_dict().items()})


def _replace_parameter(policy):
    layer = model_of(policy).encoder.main[0]
    layer.weight = torch.nn.Parameter(layer.weight.detach() * 2)


def _freeze(policy):
    next(model_of(policy).parameters()).requires_grad_(False).grad = None


def _hook_gradient(policy):
    next(model_of(policy).parameters()).register_hook(lambda gradient: gradient * 3)


def _hook_output(policy):
    model_of(policy).head.register_forward_hook(lambda *args: {"logit": args[2]["logit"] * -3})


@pytest.mark.parametrize(
    "change", [_load, _replace_parameter, _freeze, _hook_gradient, _hook_output]
)
def test_changes_of_the_network_are_followed(make_dqn, change):
    quick, plain = pair(make_dqn)
    assert_alike(quick, plain, samples())
    for policy in (quick, plain):
        change(policy)
        optimizer_of(policy).zero_grad()
    logs = [policy.learn_mode.forward(samples()) for policy in (quick, plain)]
    assert logs[0]["total_loss"] == pytest.approx(logs[1]["total_loss"], rel=1e-4)
    for mine, other in zip(model_of(quick).parameters(), model_of(plain).parameters()):
        assert (mine.grad is None) == (other.grad is None)
        if mine.grad is not None:
            torch.testing.assert_close(mine.grad, other.grad, rtol=1e-3, atol=1e-5)


def test_a_copy_trains_its_own_network(make_dqn):
    policy = make_dqn()
    policy.learn_mode.forward(samples())
    other = copy.deepcopy(policy)
    before = copy.deepcopy(model_of(policy).state_dict())
    other.learn_mode.forward(samples())
    torch.testing.assert_close(dict(model_of(policy).state_dict()), dict(before), rtol=0, atol=0)
    changed = model_of(other).state_dict()
    assert any(not torch.equal(changed[name], before[name]) for name in before)


def test_large_batches_are_left_to_autograd(make_dqn, by_autograd):
    policy = make_dqn()
    rows = MAX_WORK // sum(p.numel() for p in model_of(policy).parameters())
    policy.learn_mode.forward(samples(size=rows))
    assert by_autograd == []
    policy.learn_mode.forward(samples(size=rows + 1))
    assert len(by_autograd) == 1


def _patch_policy(policy):
    descend = policy._descend
    policy._descend = lambda *args, **kwargs: descend(*args, **kwargs)


def _patch_layer(policy):
    layer = target_of(policy).head.Q[-1][-1]
    layer.forward = lambda x: torch.nn.functional.linear(x, layer.weight * 2, layer.bias)


def _patch_target(policy):
    forward = target_of(policy).forward
    target_of(policy).forward = lambda *args, **kwargs: forward(*args, **kwargs)


def _add_layer(policy):
    model_of(policy).encoder.main.append(torch.nn.Tanh())


def _swap_layer(policy):
    model_of(policy).encoder.main[0] = (
        copy.deepcopy(model_of(policy).encoder.main[0]).double().float()
    )
    model_of(policy).encoder.main[1] = torch.nn.Tanh()


def _change_class(policy):
    model_of(policy).encoder.init.__class__ = type("Other", (torch.nn.Linear,), {})


def _parametrise(policy):
    weight_norm = torch.nn.utils.parametrizations.weight_norm
    weight_norm(model_of(policy).encoder.init)


def _compile(policy):
    model_of(policy)._compiled_call_impl = model_of(policy)._call_impl


def _wrap_target(policy):
    policy.learn_mode.set_attribute("target_model", model_wrap(target_of(policy), "base"))


@pytest.mark.parametrize(
    "change",
    [
        *(_patch_policy, _patch_layer, _patch_target, _add_layer, _swap_layer, _change_class),
        *(_parametrise, _compile, _wrap_target, _freeze, _hook_gradient, _hook_output),
    ],
)
def test_what_may_compute_something_else_is_left_to_autograd(make_dqn, by_autograd, change):
    policy = make_dqn(model=dict(obs_shape=3, action_shape=2, dueling=False))
    policy.learn_mode.forward(samples())
    assert by_autograd == []
    change(policy)
    policy.learn_mode.forward(samples())
    assert len(by_autograd) == 1


@pytest.mark.parametrize("owner", [DQNPolicy, Policy, DQN, torch.nn.ReLU])
def test_patched_classes_are_left_to_autograd(make_dqn, by_autograd, owner, monkeypatch):
    name = "_descend" if issubclass(owner, Policy) else "forward"
    method = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *args, **kwargs: method(*args, **kwargs))
    make_dqn(cls=DQNPolicy).learn_mode.forward(samples())
    assert by_autograd == ["DQNPolicy"]


def test_subclasses_are_left_to_autograd_unless_they_declare_it(make_dqn, by_autograd):
    inherits = type("Inherits", (DQNPolicy,), {})
    make_dqn(cls=inherits).learn_mode.forward(samples())
    assert by_autograd == ["Inherits"]
    make_dqn(cls=array_update.updates_on_arrays(inherits)).learn_mode.forward(samples())
    assert by_autograd == ["Inherits"]


def test_custom_optimisers_step_with_its_gradients(make_dqn, by_autograd):
    policies = pair(make_dqn)
    for policy in policies:
        options = dict(weight_decay=0.1, grad_clip_type="clip_norm", clip_value=0.1)
        optimizer = Adam(model_of(policy).parameters(), **options)
        policy.learn_mode.set_attribute("optimizer", optimizer)
        policy.learn_mode.forward(samples())
    assert by_autograd == ["ByAutograd"]
    torch.testing.assert_close(*(list(model_of(policy).parameters()) for policy in policies))
