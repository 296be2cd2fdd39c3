"""Several processes that train one policy."""

from pathlib import Path

import pytest
import torch
from torch import nn

from ding.torch_utils import gradient_overlap
from ding.torch_utils.gradient_overlap import GradientOverlap
from tests.children import run_ranks

SCRIPT = Path(__file__).with_name("ranks.py")


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """What each of two processes ends with, by policy and ``bp_update_sync``."""
    folder = tmp_path_factory.mktemp("ranks")
    run_ranks(SCRIPT, folder)
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


@pytest.mark.parametrize("kind", ["dqn", "ppo", "sac"])
def test_bp_update_sync_says_when_gradients_travel_not_what_is_learned(ranks, kind):
    for first, second in [[rank[kind, sync] for rank in ranks] for sync in (True, False)]:
        assert all(torch.equal(first[0][name], second[0][name]) for name in first[0])
    for rank in ranks:
        (after, sent), (during, sent_early) = rank[kind, True], rank[kind, False]
        assert sent == {"after"}
        assert "during" in sent_early
        for name, weights in after.items():
            torch.testing.assert_close(weights, during[name], rtol=1e-4, atol=1e-6)


class Messages:
    """Two processes with the same gradients but for a factor: the mean is three times ours."""

    def __init__(self, monkeypatch):
        self.sizes = []
        monkeypatch.setattr(gradient_overlap, "allreduce_async", self.send)
        monkeypatch.setattr(gradient_overlap, "synchronize", lambda: None)

    def send(self, name, tensor):
        self.sizes.append(tensor.numel())
        tensor.mul_(3)


@pytest.fixture
def messages(monkeypatch):
    return Messages(monkeypatch)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2))


def gradients(model, inputs, backwards=1):
    for parameter in model.parameters():
        parameter.grad = None
    for _ in range(backwards):
        model(inputs).square().sum().backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


def test_buckets_are_sent_from_the_last_layer_on(messages, model):
    overlap = GradientOverlap(model, bucket_bytes=1)
    inputs = torch.randn(6, 3)
    for _ in range(3):
        messages.sizes.clear()
        own = gradients(model, inputs)
        assert messages.sizes == [2, 8, 4, 20, 5, 15]  # all of them, before anybody waits
        overlap.finish()
        assert len(messages.sizes) == 6
        for parameter, grad in zip(model.parameters(), own):
            assert torch.equal(parameter.grad, 3 * grad)
    del overlap
    gradients(model, inputs)
    assert len(messages.sizes) == 6  # no watcher is left


def test_what_is_added_later_is_sent_again(messages, model):
    overlap = GradientOverlap(model, bucket_bytes=1)
    own = gradients(model, torch.randn(6, 3), backwards=2)
    overlap.finish()
    for parameter, grad in zip(model.parameters(), own):
        assert torch.equal(parameter.grad, 3 * grad)


def test_parameters_without_a_gradient_keep_the_order(messages, model):
    overlap = GradientOverlap(model, bucket_bytes=1)
    own = gradients(model[:3], torch.randn(6, 3))
    model[4].weight.grad = model[4].bias.grad = None
    assert messages.sizes == []  # the last layer comes first
    overlap.finish()
    assert messages.sizes == [2, 8, 4, 20, 5, 15]
    assert all(not parameter.grad.any() for parameter in model[4].parameters())
    for parameter, grad in zip(model[:3].parameters(), own):
        assert torch.equal(parameter.grad, 3 * grad)


def test_gradients_of_some_parameters_alone(messages, model):
    overlap = GradientOverlap(model, bucket_bytes=1)
    last = list(model[4].parameters())
    model(torch.randn(6, 3)).sum().backward(inputs=last)
    assert messages.sizes == [2, 8]
    own = [parameter.grad.clone() for parameter in last]
    overlap.finish()
    for parameter, grad in zip(last, own):
        assert torch.equal(parameter.grad, 3 * grad)
