import pytest
import torch

from ding.model import ContinuousQAC, DiscreteQAC
from ding.utils.errors import ConfigError

HYBRID = {"action_type_shape": 3, "action_args_shape": 2}
IMAGE = {"obs_shape": (3, 44, 44), "encoder_hidden_size_list": [4, 4, 8]}


@pytest.mark.parametrize("obs", [{"obs_shape": 4}, IMAGE, {**IMAGE, "share_encoder": True}])
@pytest.mark.parametrize("action_shape", [1, 2, (2,)])
@pytest.mark.parametrize("action_space", ["regression", "reparameterization"])
def test_continuous_actor(obs, action_shape, action_space):
    model = ContinuousQAC(action_shape=action_shape, action_space=action_space, **obs)
    shape = obs["obs_shape"] if isinstance(obs["obs_shape"], tuple) else (4,)
    size = action_shape if isinstance(action_shape, int) else 2
    output = model(torch.rand(5, *shape), mode="compute_actor")
    if action_space == "regression":
        assert output["action"].shape == (5, size)
        assert (output["action"].abs() <= 1).all()
    else:
        mu, sigma = output["logit"]
        assert mu.shape == sigma.shape == (5, size)
        assert (sigma > 0).all()


@pytest.mark.parametrize("twin_critic", [True, False])
def test_continuous_critic(twin_critic):
    model = ContinuousQAC(4, 1, "regression", twin_critic=twin_critic)
    obs, action = torch.randn(5, 4), torch.randn(5, 1)
    q_value = model({"obs": obs, "action": action}, mode="compute_critic")["q_value"]
    flat = model({"obs": obs, "action": action[:, 0]}, mode="compute_critic")["q_value"]
    if not twin_critic:
        q_value, flat = [q_value], [flat]
    assert [q.shape for q in q_value] == [(5,)] * len(q_value)
    assert torch.equal(q_value[0], flat[0])
    if twin_critic:
        assert not torch.equal(q_value[0], q_value[1])


def test_hybrid_actions():
    model = ContinuousQAC(4, HYBRID, "hybrid", twin_critic=True)
    obs = torch.randn(5, 4)
    actor = model(obs, mode="compute_actor")
    assert actor["logit"].shape == (5, 3)
    assert actor["action_args"].shape == (5, 2)
    inputs = {
        "obs": obs,
        "logit": actor["logit"],
        "action": {"action_args": actor["action_args"]},
    }
    q_value = model(inputs, mode="compute_critic")["q_value"]
    assert [q.shape for q in q_value] == [(5,), (5,)]


def test_the_critic_gives_the_actor_its_gradient():
    model = ContinuousQAC(4, 2, "regression")
    obs = torch.randn(5, 4)
    action = model(obs, mode="compute_actor")["action"]
    model({"obs": obs, "action": action}, mode="compute_critic")["q_value"].mean().backward()
    assert all(p.grad is not None for p in model.actor.parameters())
    actor = {id(p) for p in model.actor.parameters()}
    assert not any(id(p) in actor for p in model.critic.parameters())


@pytest.mark.parametrize("twin_critic", [True, False])
def test_discrete(twin_critic):
    model = DiscreteQAC(4, 3, twin_critic=twin_critic)
    obs = torch.randn(5, 4)
    assert model(obs, mode="compute_actor")["logit"].shape == (5, 3)
    q_value = model(obs, mode="compute_critic")["q_value"]
    q_value = q_value if twin_critic else [q_value]
    assert [q.shape for q in q_value] == [(5, 3)] * len(q_value)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ContinuousQAC(4, 2, "continuous"), "action_space is 'continuous'"),
        (lambda: ContinuousQAC((3, 44, 44), 2, "regression"), "needs an encoder"),
        (lambda: DiscreteQAC((3, 44, 44), 2), r"DiscreteQAC: .* needs an encoder"),
    ],
)
def test_arguments_that_cannot_be_built_are_named(build, message):
    with pytest.raises(ConfigError, match=message):
        build()


def test_an_unknown_mode_is_named():
    with pytest.raises(ValueError, match="mode is 'compute_actor_critic'"):
        DiscreteQAC(4, 2)(torch.zeros(1, 4), mode="compute_actor_critic")
