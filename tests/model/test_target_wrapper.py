import copy

import pytest
import torch
from torch import nn

from ding.model import DQN, model_wrap
from ding.utils.errors import ConfigError, DataError


def pair(update_type, **update_kwargs):
    online, model = DQN(4, 2), DQN(4, 2)
    target = model_wrap(model, "target", update_type=update_type, update_kwargs=update_kwargs)
    return online, target


def params(model):
    return [p.detach().clone() for p in model.parameters()]


def same(model, tensors):
    return all(torch.equal(p, t) for p, t in zip(model.parameters(), tensors))


@pytest.fixture(params=["module", "wrapper", "state_dict"])
def source(request):
    """The forms in which the online network may come."""
    return {
        "module": lambda model: model,
        "wrapper": lambda model: model_wrap(model, "argmax_sample"),
        "state_dict": lambda model: model.state_dict(),
    }[request.param]


def test_assign_copies_every_freq_updates(source):
    online, target = pair("assign", freq=3)
    start = params(target)
    for step in range(1, 7):
        with torch.no_grad():
            for p in online.parameters():
                p.add_(1)
        if step == 3:
            third = params(online)
        target.update(source(online))
        if step < 3:
            assert same(target, start)
        elif step < 6:
            assert same(target, third)
    assert same(target, params(online))
    assert target.update_count == 6


def test_momentum_moves_by_theta(source):
    theta = 0.1
    online, target = pair("momentum", theta=theta)
    for _ in range(3):
        expected = [t + theta * (o - t) for t, o in zip(params(target), params(online))]
        target.update(source(online))
        for got, want in zip(target.parameters(), expected):
            torch.testing.assert_close(got.detach(), want)
        with torch.no_grad():
            for p in online.parameters():
                p.mul_(1.5)


def test_a_layer_of_several_names_moves_once(source):
    class SharesEncoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Linear(3, 4)
            self.actor = nn.Sequential(self.encoder, nn.Linear(4, 2))
            self.critic = nn.Sequential(self.encoder, nn.Linear(4, 1))

    online = SharesEncoder()
    follows = {"update_type": "momentum", "update_kwargs": {"theta": 0.1}}
    target = model_wrap(copy.deepcopy(online), "target", **follows)
    with torch.no_grad():
        for p in online.parameters():
            p.add_(1)
    expected = [torch.lerp(t, o, 0.1) for t, o in zip(params(target), params(online))]
    target.update(source(online))
    for got, want in zip(target.parameters(), expected):
        torch.testing.assert_close(got.detach(), want)


@pytest.mark.parametrize("update", [("assign", {"freq": 100}), ("momentum", {"theta": 0.01})])
def test_direct_copies_at_once(update, source):
    online, target = pair(update[0], **update[1])
    target.update(source(online), direct=True)
    assert same(target, params(online))
    assert target.update_count == 0
    before = params(target)
    with torch.no_grad():
        for p in online.parameters():
            p.add_(1)
    assert same(target, before)


def test_resume_continues_the_count():
    online, target = pair("assign", freq=3)
    start = params(target)
    target.reset(target_update_count=1)
    target.update(online)
    assert same(target, start)
    target.update(online)
    assert same(target, params(online))
    target.reset_state()
    assert target.update_count == 0


def test_the_graph_is_left_alone():
    online, target = pair("momentum", theta=0.5)
    target.update(online)
    assert all(p.requires_grad and p.grad_fn is None for p in target.parameters())
    assert all(p.grad is None for p in online.parameters())


def test_running_statistics_are_copied():
    online = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    target = model_wrap(
        copy.deepcopy(online), "target", update_type="momentum", update_kwargs={"theta": 0.1}
    )
    for _ in range(2):
        online(torch.randn(16, 3))
        target.update(online)
        for got, want in zip(target.buffers(), online.buffers()):
            assert torch.equal(got, want)


def test_another_online_network_may_come():
    first, target = pair("momentum", theta=1.0)
    second = DQN(4, 2)
    target.update(first)
    target.update(second)
    assert same(target, params(second))


def test_parameters_may_move_and_load_between_updates():
    online, target = pair("momentum", theta=1.0)
    target.update(online)
    online.double()
    target.double()
    online.load_state_dict(DQN(4, 2).double().state_dict())
    target.update(online)
    assert same(target, params(online))


def test_a_copy_follows_for_itself():
    online, target = pair("momentum", theta=1.0)
    target.update(online)
    twin = copy.deepcopy(target)
    with torch.no_grad():
        for p in online.parameters():
            p.add_(1)
    before = params(target)
    twin.update(online)
    assert same(twin, params(online))
    assert same(target, before)


@pytest.mark.parametrize(
    ("update_type", "update_kwargs", "message"),
    [
        ("asign", {"freq": 1}, "update_type is 'asign'; expected one of"),
        ("assign", {"theta": 0.1}, "'assign' needs 'freq'"),
        ("momentum", {}, "'momentum' needs 'theta'"),
        ("assign", {"freq": 0}, "freq is 0"),
        ("momentum", {"theta": 1.5}, "theta is 1.5"),
    ],
)
def test_settings_that_cannot_work_are_named(update_type, update_kwargs, message):
    with pytest.raises(ConfigError, match=message):
        pair(update_type, **update_kwargs)


def test_a_network_of_another_structure_is_refused():
    _, target = pair("momentum", theta=0.1)
    with pytest.raises(DataError, match=r"missing .*head.A.*unexpected .*head.Q"):
        target.update(DQN(4, 2, dueling=False).state_dict())
    with pytest.raises(DataError, match=r"encoder.init.weight.*\[128, 5\].*\[128, 4\]"):
        target.update(DQN(5, 2))
