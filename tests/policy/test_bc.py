"""Behaviour cloning against numbers worked out by hand."""

import copy
import math

import numpy as np
import pytest
import torch
from easydict import EasyDict
from torch import nn

from ding.data import Columns
from ding.model import ContinuousBC
from ding.policy import BehaviourCloningPolicy, create_policy
from ding.utils import deep_merge_dicts, set_pkg_seed
from ding.utils.errors import ConfigError, DataError
from tests.policy.attributes import collects, optimizer_of

KINDS = {
    "discrete": dict(model=dict(action_shape=2)),
    "multi-discrete": dict(model=dict(action_shape=[2, 3])),
    "regression": dict(continuous=True, model=dict(action_shape=2)),
    "gaussian": dict(
        continuous=True, model=dict(action_shape=1, action_space="reparameterization")
    ),
}
EACH = pytest.mark.parametrize("kind", KINDS)


def build(network=None, type_="bc", seed=0, **overrides):
    overrides.setdefault("learn", {})
    overrides["model"] = {"obs_shape": 3, **overrides.get("model", {})}
    set_pkg_seed(seed, use_cuda=False)
    cfg = deep_merge_dicts(BehaviourCloningPolicy.default_config(), EasyDict(overrides))
    cfg.type = type_
    fields = ["learn", "collect", "eval", *(["command"] if type_ != "bc" else [])]
    return create_policy(cfg, model=network, enable_field=fields)


class Fixed(nn.Module):
    """The same output whatever comes in."""

    def __init__(self, **output):
        super().__init__()
        self.output = nn.ParameterDict(
            {k: nn.Parameter(torch.tensor(v)) for k, v in output.items()}
        )

    def forward(self, obs):
        rows = {k: v.expand(len(obs), -1) for k, v in self.output.items()}
        return {"logit": [rows["mu"], rows["sigma"]]} if "mu" in rows else rows


def samples(action, obs=None):
    obs = torch.zeros(len(action), 3) if obs is None else obs
    return Columns({"obs": obs, "action": torch.tensor(action)})


def learner(kind, n=48, seed=0):
    """A policy and samples of a rule that it can learn."""
    obs = torch.from_numpy(np.random.default_rng(seed).normal(size=(n, 3)).astype(np.float32))
    action = {
        "discrete": (obs[:, :1] > 0).long(),
        "multi-discrete": torch.stack([obs[:, 0] > 0, obs[:, 1] > 0], 1).long(),
        "regression": torch.tanh(obs[:, :2]),
        "gaussian": torch.tanh(obs[:, :1]),
    }[kind]
    # The likelihood of a rule without noise has no bound, and jumps as the deviation shrinks.
    rate = 0.002 if kind == "gaussian" else 0.02
    learn = dict(learning_rate=rate, optimizer="Adam", weight_decay=0.0)
    return build(seed=seed, learn=learn, **copy.deepcopy(KINDS[kind])), Columns(
        {"obs": obs, "action": action}
    )


class TestLosses:
    def test_cross_entropy_and_accuracy(self):
        network = Fixed(logit=[0.0, math.log(3)])
        policy = build(network, learn=dict(show_accuracy=True), **KINDS["discrete"])
        log = policy.learn_mode.forward(samples([[1], [1], [1], [0]]))
        each = [-math.log(0.75)] * 3 + [-math.log(0.25)]
        assert log["total_loss"] == pytest.approx(np.mean(each))
        assert log["priority"].tolist() == pytest.approx(each)
        assert log["accuracy"] == 0.75
        assert "accuracy" in policy.learn_mode.monitor_vars()
        # d/dlogit: the mean of probability minus label.
        gradient = network.output["logit"].grad.tolist()
        assert gradient == pytest.approx([0.25 - 0.25, 0.75 - 0.75], abs=1e-6)

    @pytest.mark.parametrize("name", ["IS", "priority_IS"])
    def test_importance_weights(self, name):
        weigh = dict(priority=True, priority_IS_weight=True)
        policy = build(Fixed(logit=[0.0, math.log(3)]), **weigh, **KINDS["discrete"])
        data = samples([1, 0])
        log = policy.learn_mode.forward(data.with_columns(**{name: torch.tensor([0.5, 1.0])}))
        expected = (-0.5 * math.log(0.75) - math.log(0.25)) / 2
        assert log["total_loss"] == pytest.approx(expected)
        with pytest.raises(DataError, match="no importance weights"):
            policy.learn_mode.forward(data)

    def test_label_smoothing(self):
        network = Fixed(logit=[0.0, math.log(3)])
        policy = build(network, learn=dict(ce_label_smooth=True), **KINDS["discrete"])
        log = policy.learn_mode.forward(samples([1]))
        # A tenth of the label is uniform over both actions.
        expected = -(0.95 * math.log(0.75) + 0.05 * math.log(0.25))
        assert log["total_loss"] == pytest.approx(expected)

    @pytest.mark.parametrize(
        ("loss_type", "expected"),
        [
            ("l1_loss", (0.3 + 0.1) / 2),
            ("mse_loss", (0.09 + 0.01) / 2),
            (None, (0.09 + 0.01) / 2),
            ("smooth_l1_loss", (0.09 + 0.01) / 4),
        ],
    )
    def test_regression(self, loss_type, expected):
        network = Fixed(action=[0.5, 0.2])
        policy = build(network, loss_type=loss_type, **KINDS["regression"])
        log = policy.learn_mode.forward(samples([[0.2, 0.1]]))
        assert log["total_loss"] == pytest.approx(expected)

    def test_outputs_in_the_saturated_region_are_left_out(self):
        network = Fixed(action=[0.9, 0.2])
        cfg = dict(KINDS["regression"], loss_type="l1_loss", learn=dict(tanh_mask=True))
        log = build(network, **cfg).learn_mode.forward(samples([[0.0, 0.1]]))
        assert log["total_loss"] == pytest.approx(0.1)
        assert network.output["action"].grad.tolist() == [0, 1]
        # Where nothing else would be left, all is trained.
        saturated = build(Fixed(action=[0.9, -0.9]), **cfg)
        log = saturated.learn_mode.forward(samples([[0.0, 0.0]]))
        assert log["total_loss"] == pytest.approx(0.9)

    def test_likelihood_of_a_squashed_gaussian(self):
        network = Fixed(mu=[0.3], sigma=[0.5])
        log = build(network, **KINDS["gaussian"]).learn_mode.forward(samples([[0.6]]))
        normal = torch.distributions.Normal(0.3, 0.5)
        expected = -normal.log_prob(torch.tensor(math.atanh(0.6))).item()
        assert log["total_loss"] == pytest.approx(expected, rel=1e-5)
        log = build(Fixed(mu=[0.3], sigma=[0.5]), loss_type="l1_loss", **KINDS["gaussian"])
        assert log.learn_mode.forward(samples([[0.6]]))["total_loss"] == pytest.approx(
            0.6 - math.tanh(0.3)
        )

    def test_demonstrators_at_the_bounds_are_finite(self):
        policy = build(Fixed(mu=[0.3], sigma=[0.5]), **KINDS["gaussian"])
        assert math.isfinite(policy.learn_mode.forward(samples([[1.0], [-1.0]]))["total_loss"])


class TestLearningRate:
    def rates(self, epochs, **learn):
        policy = build(learn=learn, **KINDS["discrete"])
        rates = []
        for epoch in epochs:
            policy.learn_mode.set_attribute("epoch", epoch)
            rates.append(policy.learn_mode.forward(samples([0, 1]))["cur_lr"])
        return rates

    def test_it_warms_up_and_falls(self):
        warm_up = dict(learning_rate=1.0, warmup_lr=0.1, warmup_epoch=3)
        learn = dict(warm_up, lr_decay=True, decay_epoch=2, decay_rate=0.5)
        assert self.rates(range(8), **learn) == pytest.approx(
            [0.1, 0.4, 0.7, 1.0, 1.0, 0.5, 0.5, 0.25]
        )

    def test_it_stays(self):
        assert self.rates([0, 50], learning_rate=0.01) == [0.01, 0.01]

    def test_optimizers(self):
        sgd = optimizer_of(build(**KINDS["discrete"]))
        assert (type(sgd).__name__, sgd.defaults["momentum"]) == ("SGD", 0.9)
        assert sgd.defaults["weight_decay"] == 1e-4
        learn = dict(optimizer="Adam", weight_decay=0.1)
        adam = optimizer_of(build(learn=learn, **KINDS["discrete"]))
        assert adam.defaults["weight_decay"] == 0.1


@EACH
class TestEachKind:
    def test_learns_a_rule(self, kind, learned):
        policy, data = learner(kind, seed=learned.seed)
        losses = [policy.learn_mode.forward(data)["total_loss"] for _ in range(60)]
        if kind == "gaussian":  # a negative log likelihood: no share of it means anything
            learned.at_most(0.3 / max(losses[0] - losses[-1], 1e-9), 1.0)
        else:
            learned.at_most(losses[-1] / losses[0], 1 / 3)


class TestExploration:
    def test_noise_falls_with_the_steps(self):
        sigma = dict(type="linear", start=0.4, end=0.0, decay=100)
        collect = dict(noise=True, noise_sigma=sigma, noise_range=dict(min=-0.1, max=0.3))
        network = Fixed(action=[0.5, 0.2])
        policy = build(network, "bc_command", collect=collect, **KINDS["regression"])
        steps = [policy.command_mode.get_setting_collect({"envstep": n}) for n in (0, 50, 100)]
        assert [step["sigma"] for step in steps] == pytest.approx([0.4, 0.2, 0.0])
        actions = collects(policy, torch.zeros(500, 3), **steps[0])["action"]
        assert actions[:, 0].min().item() == pytest.approx(0.4)
        assert actions[:, 0].max().item() == pytest.approx(0.8)
        still = collects(policy, torch.zeros(5, 3), **steps[2])["action"]
        assert still.tolist() == pytest.approx(np.tile([0.5, 0.2], (5, 1)))

    def test_epsilon(self):
        eps = dict(type="exp", start=1.0, end=0.1, decay=1000)
        policy = build(
            Fixed(logit=[0.0, 1.0]), "bc_command", other=dict(eps=eps), **KINDS["discrete"]
        )
        setting = policy.command_mode.get_setting_collect({"envstep": 0})
        assert setting == {"eps": 1.0}
        actions = collects(policy, torch.zeros(400, 3), **setting)["action"]
        assert 0.4 < actions.float().mean() < 0.6
        assert (
            build(type_="bc_command", **KINDS["discrete"]).command_mode.get_setting_collect(
                {"envstep": 0}
            )
            == {}
        )


class TestMistakes:
    def test_settings(self):
        with pytest.raises(ConfigError, match=r"policy\.loss_type is 'l2'; expected one of"):
            build(loss_type="l2", **KINDS["regression"])
        with pytest.raises(ConfigError, match=r"policy\.learn\.optimizer is 'rmsprop'"):
            build(learn=dict(optimizer="rmsprop"), **KINDS["discrete"])
        with pytest.raises(ConfigError, match="has no encoder for images"):
            build(continuous=True, model=dict(obs_shape=[3, 8, 8], action_shape=1))

    def test_samples(self):
        policy = build(**KINDS["discrete"])
        with pytest.raises(DataError, match=r"samples need \['action'\], they have \['obs'\]"):
            policy.learn_mode.forward(Columns({"obs": torch.zeros(2, 3)}))
        with pytest.raises(DataError, match="obs"):
            policy.learn_mode.forward(samples([1], torch.full((1, 3), math.nan)))


def test_images_with_strides_of_their_own():
    model = dict(obs_shape=[2, 12, 12], encoder_hidden_size_list=[4, 4, 4, 8], strides=[1, 1, 2, 1])
    policy = build(model=dict(model, action_shape=3))
    log = policy.learn_mode.forward(samples([0, 1, 2], torch.rand(3, 2, 12, 12)))
    assert math.isfinite(log["total_loss"])


def test_names_of_old_checkpoints():
    state = ContinuousBC(4, 2, "regression").state_dict()
    layers = {"actor.0": [64, 4], "actor.2.main.0": [64, 64], "actor.2.last": [2, 64]}
    shapes = {f"{name}.weight": shape for name, shape in layers.items()}
    shapes |= {f"{name}.bias": shape[:1] for name, shape in layers.items()}
    assert {name: list(value.shape) for name, value in state.items()} == shapes
