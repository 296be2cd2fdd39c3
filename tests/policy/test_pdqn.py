"""PDQN, and DDPG with choices that have arguments, against numbers worked out by hand."""

import math

import numpy as np
import pytest
import torch
from easydict import EasyDict
from torch import nn

from ding.entry import serial_pipeline
from ding.model import PDQN, ContinuousQAC
from ding.policy import D4PGPolicy, DDPGPolicy, PDQNPolicy, TD3Policy
from ding.utils.errors import ConfigError
from tests.policy.attributes import collects, evaluates
from tests.policy.batches import make, random_steps, steps

SHAPE = dict(action_type_shape=3, action_args_shape=2)


def build(cls, network=None, seed=0, **overrides):
    model = dict(obs_shape=4, action_shape=SHAPE)
    if cls is not PDQNPolicy:
        model["action_space"] = overrides.setdefault("action_space", "hybrid")
    overrides["model"] = {**model, **overrides.get("model", {})}
    return make(cls, network, seed, **overrides)


def samples(n=32, args=2):
    data = random_steps(n, args, obs=4)
    choice = torch.from_numpy(np.random.default_rng(0).integers(3, size=n))
    return data.with_columns(action={"action_type": choice, "action_args": data.column("action")})


class Line(nn.Module):
    """Arguments ``x = w s`` of two choices; ``Q = (s + a x, 2 s + x²)``."""

    def __init__(self):
        super().__init__()
        self.cont_head = nn.ParameterList([torch.tensor(0.5)])
        self.dis_head = nn.ParameterList([torch.tensor(2.0)])
        self.cont_encoder, self.dis_encoder = nn.Identity(), nn.Identity()

    def forward(self, inputs, mode):
        if mode == "compute_continuous":
            return {"action_args": self.cont_head[0] * inputs}
        state, x = inputs["state"][:, 0], inputs["action_args"][:, 0]
        return {"logit": torch.stack([state + self.dis_head[0] * x, 2 * state + x**2], 1)}


def line_samples(reward, **more):
    data = steps([1.0, 1.0], [2.0, 2.0], [0, 1], reward, [False, True], **more)
    arguments = torch.tensor([[0.3], [0.3]])
    return data.with_columns(
        action={"action_type": data.column("action"), "action_args": arguments}
    )


def test_pdqn_by_hand():
    network = Line()
    learn = dict(learning_rate_dis=0.0, learning_rate_cont=0.0)
    policy = build(PDQNPolicy, network, discount_factor=0.5, learn=learn)
    log = policy.learn_mode.forward(line_samples([[1.0], [1.0]]))
    # Next: argument 1, values 4 and 5, target 1 + 2.5; or 1 at the end. Values 1.6 and 2.09.
    errors = [1.6 - 3.5, 2.09 - 1]
    assert log["priority"].tolist() == pytest.approx(np.abs(errors).tolist(), rel=1e-5)
    assert log["q_loss"] == pytest.approx(np.square(errors).mean(), rel=1e-5)
    assert network.dis_head[0].grad.item() == pytest.approx(2 * errors[0] * 0.3 / 2, rel=1e-5)
    # Arguments 0.5, values 2 and 2.25; d/dw is that of a x + x²: (2 + 2 * 0.5) s.
    assert log["continuous_loss"] == pytest.approx(-4.25)
    assert network.cont_head[0].grad.item() == pytest.approx(-3)


def test_pdqn_nstep_targets():
    learn = dict(learning_rate_dis=0.0, learning_rate_cont=0.0)
    policy = build(PDQNPolicy, Line(), discount_factor=0.5, nstep=2, learn=learn)
    gamma = torch.tensor([0.25, 0.5])
    data = line_samples([[1.0, 2.0], [1.0, 0.0]], value_gamma=gamma)
    log = policy.learn_mode.forward(data)
    expected = [1.6 - (1 + 1 + 5 / 4), 2.09 - 1]
    assert log["priority"].tolist() == pytest.approx(np.abs(expected).tolist(), rel=1e-5)


def test_arguments_learn_in_the_second_half_of_a_circle():
    policy = build(PDQNPolicy, learn=dict(update_circle=4))
    turns = ["continuous_loss" in policy.learn_mode.forward(samples()) for _ in range(8)]
    assert turns == [False, False, True, True] * 2


def test_a_value_depends_on_the_arguments_of_its_choice():
    mask = [[1, 0], [0, 1], [0, 0]]
    model = PDQN(4, SHAPE, multi_pass=True, action_mask=mask)
    state, args = torch.randn(5, 4), torch.randn(5, 2, requires_grad=True)
    logit = model({"state": state, "action_args": args}, mode="compute_discrete")["logit"]
    for choice in range(3):
        (grad,) = torch.autograd.grad(logit[:, choice].sum(), args, retain_graph=True)
        assert (grad.abs().sum(0) > 0).tolist() == [bool(own) for own in mask[choice]]
    # One at a time it is the same network.
    single = PDQN(4, SHAPE)
    single.load_state_dict(model.state_dict())
    for choice in range(3):
        inputs = {"state": state, "action_args": args * torch.tensor(mask[choice])}
        alone = single(inputs, mode="compute_discrete")["logit"]
        torch.testing.assert_close(logit[:, choice], alone[:, choice])


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        (dict(action_shape=3), "action_type_shape"),
        (dict(multi_pass=True, action_mask=[[1, 0]]), "action_mask"),
        (
            dict(multi_pass=True, action_shape=dict(action_type_shape=2, action_args_shape=3)),
            "needs action_mask",
        ),
    ],
)
def test_shapes_that_cannot_be(wrong, match):
    with pytest.raises(ConfigError, match=match):
        PDQN(**{"obs_shape": 4, "action_shape": SHAPE, **wrong})


class Choice(nn.Module):
    """Logits of two choices and an argument of 0.5; ``Q = s + (2 or 3, by choice) + x``."""

    def __init__(self):
        super().__init__()
        self.logit = nn.Parameter(torch.tensor([1.0, 0.0]))
        self.argument, self.c = nn.Parameter(torch.tensor(0.5)), nn.Parameter(torch.tensor(1.0))
        self.actor = nn.ParameterList([self.logit, self.argument])
        self.critic = nn.ParameterList([self.c])

    def forward(self, inputs, mode):
        if mode == "compute_actor":
            n = len(inputs)
            return {"logit": self.logit.expand(n, -1), "action_args": self.argument.expand(n, 1)}
        choice = inputs["logit"] @ torch.tensor([2.0, 3.0])
        q_value = self.c * inputs["obs"][:, 0] + choice + inputs["action"]["action_args"][:, 0]
        return {"q_value": q_value}


def test_hybrid_ddpg_by_hand():
    network = Choice()
    learn = dict(learning_rate_actor=0.0, learning_rate_critic=0.0, discount_factor=0.5)
    shape = dict(action_type_shape=2, action_args_shape=1)
    policy = build(DDPGPolicy, network, learn=learn, model=dict(action_shape=shape))
    log = policy.learn_mode.forward(line_samples([[1.0], [1.0]]))
    # Next: choice 0 and 0.5, Q 2 + 2.5, target 1 + 2.25; or 1. Q of what was done 3.3 and 4.3.
    assert log["priority"].tolist() == pytest.approx([0.05, 3.3], rel=1e-4)
    assert network.argument.grad.item() == pytest.approx(-1)
    # Choice 1 is worth more: its logit has to rise, and the other one to fall.
    assert network.logit.grad[0] > 0 > network.logit.grad[1]


def test_hybrid_ddpg_learns_which_choice_is_better():
    shape = dict(action_type_shape=2, action_args_shape=1)
    learn = dict(learning_rate_actor=0.05, learning_rate_critic=0.0)
    network = Choice()
    policy = build(DDPGPolicy, network, learn=learn, model=dict(action_shape=shape))
    for _ in range(60):
        policy.learn_mode.forward(line_samples([[1.0], [1.0]]))
    action = policy.eval_mode.forward({0: torch.zeros(1)})[0]["action"]
    assert int(action["action_type"]) == 1


def test_hybrid_ddpg_leaves_a_choice_that_it_was_sure_of():
    shape = dict(action_type_shape=2, action_args_shape=1)
    learn = dict(learning_rate_actor=0.1, learning_rate_critic=0.0)
    network = Choice()
    network.logit.data = torch.tensor([20.0, -20.0])  # the softmax has no gradient there
    policy = build(DDPGPolicy, network, learn=learn, model=dict(action_shape=shape))
    for _ in range(400):
        policy.learn_mode.forward(line_samples([[1.0], [1.0]]))
    action = policy.eval_mode.forward({0: torch.zeros(1)})[0]["action"]
    assert int(action["action_type"]) == 1


@pytest.mark.parametrize("cls", [PDQNPolicy, DDPGPolicy, TD3Policy])
class TestFamily:
    @pytest.mark.slow
    def test_values_learn(self, cls, learned):
        discount = dict(discount_factor=0.0)
        policy = build(
            cls, seed=learned.seed, **(discount if cls is PDQNPolicy else dict(learn=discount))
        )
        name = "q_loss" if cls is PDQNPolicy else "critic_loss"
        losses = [policy.learn_mode.forward(samples(64))[name] for _ in range(200)]
        learned.lowered(losses, 0.7)

    def test_any_action_with_probability_eps(self, cls):
        policy = build(cls, collect=dict(noise_sigma=0.0))
        obs = torch.randn(1, 4).expand(4000, -1)
        best = evaluates(policy, obs)["action"]
        drawn = collects(policy, obs, eps=0.6)["action"]
        others = drawn["action_type"] != best["action_type"]
        assert others.float().mean().item() == pytest.approx(0.4, abs=0.03)
        moved = (drawn["action_args"] != best["action_args"]).any(-1)
        assert moved.float().mean().item() == pytest.approx(0.6, abs=0.03)
        assert drawn["action_args"][moved].mean().item() == pytest.approx(0, abs=0.05)


def test_one_argument():
    shape = dict(action_type_shape=3, action_args_shape=1)
    for cls in (PDQNPolicy, DDPGPolicy):
        policy = build(cls, model=dict(action_shape=shape))
        assert math.isfinite(policy.learn_mode.forward(samples(args=1))["total_loss"])
    model = ContinuousQAC(4, shape, "hybrid")
    assert model(torch.randn(5, 4), mode="compute_actor")["action_args"].shape == (5, 1)


def test_networks_of_other_spaces_are_refused():
    with pytest.raises(ConfigError, match="knows 'continuous'"):
        build(D4PGPolicy)
    with pytest.raises(ConfigError, match="compute_discrete"):
        build(PDQNPolicy, nn.Linear(4, 3))


@pytest.mark.parametrize("type_", ["pdqn", "ddpg"])
def test_a_run(type_, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = dict(obs_shape=10, action_shape=dict(SHAPE))
    policy = dict(
        cuda=False,
        nstep=2,
        random_collect_size=32,
        model=model,
        learn=dict(batch_size=16, update_per_collect=2),
        collect=dict(n_sample=16),
        other=dict(eps=dict(type="exp", start=1.0, end=0.1, decay=100)),
    )
    if type_ == "ddpg":
        model["action_space"] = policy["action_space"] = "hybrid"
    env = dict(env_id="Moving-v0", collector_env_num=4, evaluator_env_num=2, act_scale=True)
    main = EasyDict(exp_name="run", env=env, policy=policy)
    create = EasyDict(
        env=dict(type="gym_hybrid"), env_manager=dict(type="base"), policy=dict(type=type_)
    )
    trained = serial_pipeline((main, create), seed=0, max_train_iter=4)
    assert trained.learn_mode.state_dict()["update_count"] >= 4
