"""Checkpoints that DI-engine wrote, and such as it reads."""

import logging

import pytest
import torch
from torch.nn import functional as F

from ding.utils import read_file
from tests.policy.attributes import model_of, optimizer_of

LAYERS = [
    ("encoder.init", [8, 3]),
    ("encoder.main.0", [6, 8]),
    ("head.A.0.0", [6, 6]),
    ("head.A.1.0", [2, 6]),
    ("head.V.0.0", [6, 6]),
    ("head.V.1.0", [1, 6]),
]
VAC_LAYERS = [
    ("encoder.init", [8, 3]),
    ("encoder.main.0", [6, 8]),
    ("critic_head.main.0", [64, 6]),
    ("critic_head.last", [1, 64]),
    ("actor_head.Q.0.0", [64, 6]),
    ("actor_head.Q.1.0", [2, 64]),
]
SMALL = {"obs_shape": 3, "action_shape": 2, "encoder_hidden_size_list": [8, 6]}
OBS = torch.randn(5, 3, generator=torch.Generator().manual_seed(1))


def weights(layers, seed):
    generator = torch.Generator().manual_seed(seed)
    state = {}
    for name, shape in layers:
        state[f"{name}.weight"] = torch.randn(shape, generator=generator)
        state[f"{name}.bias"] = torch.randn(shape[:1], generator=generator)
    return state


def doubled(state):
    homes = {"actor.0": "encoder", "critic.0": "encoder"}
    homes |= {"actor.1": "actor_head", "critic.1": "critic_head"}
    more = {
        alias + name.removeprefix(own): value
        for alias, own in homes.items()
        for name, value in state.items()
        if name.startswith(f"{own}.")
    }
    return {**state, **more}


def adam(state, step):
    """What ``torch.optim.Adam`` saved before its steps became tensors."""
    moments = {
        i: {"step": step, "exp_avg": value * 0 + i, "exp_avg_sq": value * 0 + 1}
        for i, value in enumerate(state.values())
    }
    group = {"lr": 0.002, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0, "amsgrad": False}
    return {"state": moments, "param_groups": [{**group, "params": list(range(len(state)))}]}


@pytest.fixture
def old_dqn(tmp_path):
    """The path of a checkpoint, and the weights in it."""
    state = weights(LAYERS, 0)
    target = weights(LAYERS, 1)
    checkpoint = {"model": state, "target_model": target, "optimizer": adam(state, 70)}
    torch.save({**checkpoint, "last_iter": 70, "last_step": 500}, tmp_path / "old.pth.tar")
    return str(tmp_path / "old.pth.tar"), state


def layer(x, state, name):
    return F.linear(x, state[f"{name}.weight"], state[f"{name}.bias"])


def q_values(x, state):
    for name in ("encoder.init", "encoder.main.0"):
        x = layer(x, state, name).relu()
    a = layer(layer(x, state, "head.A.0.0").relu(), state, "head.A.1.0")
    v = layer(layer(x, state, "head.V.0.0").relu(), state, "head.V.1.0")
    return v + a - a.mean(1, keepdim=True)


def greedy(policy):
    output = policy.eval_mode.forward({i: OBS[i] for i in range(len(OBS))})
    return [output[i]["action"].item() for i in range(len(OBS))]


def test_a_dqn_acts_and_learns_on_as_it_did(make_dqn, old_dqn, caplog):
    path, state = old_dqn
    policy = make_dqn(model=SMALL)
    with caplog.at_level(logging.WARNING):
        policy.learn_mode.load_state_dict(read_file(path))
    assert not caplog.records
    assert greedy(policy) == q_values(OBS, state).argmax(1).tolist()
    target = policy.learn_mode.state_dict()["target_model"]
    assert torch.equal(target["encoder.init.weight"], weights(LAYERS, 1)["encoder.init.weight"])
    optimizer = optimizer_of(policy)
    for i, param in enumerate(model_of(policy).parameters()):
        moments = optimizer.state[param]
        assert moments["exp_avg"].shape == param.shape
        assert (moments["exp_avg"] == i).all()
        assert moments["step"].item() == 70
    batch = [
        {"obs": OBS[i], "next_obs": OBS[i], "action": torch.tensor([1]), "reward": torch.ones(1),
         "done": False}
        for i in range(4)
    ]  # fmt: skip
    policy.learn_mode.forward(batch)
    assert next(iter(optimizer.state.values()))["step"].item() == 71


@pytest.mark.parametrize("mode", ["eval_mode", "collect_mode"])
def test_the_other_modes_take_it_too(make_dqn, old_dqn, mode):
    path, state = old_dqn
    policy = make_dqn(model=SMALL)
    getattr(policy, mode).load_state_dict(read_file(path))
    assert greedy(policy) == q_values(OBS, state).argmax(1).tolist()


def test_weights_alone_reset_target_and_optimizer_with_a_warning(make_dqn, old_dqn, caplog):
    policy = make_dqn(model=SMALL)
    with caplog.at_level(logging.WARNING):
        policy.learn_mode.load_state_dict({"model": old_dqn[1]})
    assert "the optimizer starts from scratch" in caplog.text
    learned = policy.learn_mode.state_dict()
    assert torch.equal(learned["target_model"]["head.A.1.0.bias"], old_dqn[1]["head.A.1.0.bias"])


def test_an_optimizer_of_other_parameters_is_reset_with_a_warning(make_dqn, old_dqn, caplog):
    path, _ = old_dqn
    checkpoint = read_file(path)
    for change in ("shape", "number", "kind"):
        optimizer = adam(weights(LAYERS, 0), 3)
        if change == "shape":
            optimizer["state"][2]["exp_avg"] = torch.zeros(1, 2)
        elif change == "number":
            optimizer["param_groups"][0]["params"].pop()
        else:
            optimizer = {"a": 1}
        policy = make_dqn(model=SMALL)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            policy.learn_mode.load_state_dict({**checkpoint, "optimizer": optimizer})
        assert "the optimizer starts from scratch" in caplog.text
        assert not optimizer_of(policy).state


def test_a_ppo_with_every_parameter_twice(make_ppo, tmp_path):
    state = weights(VAC_LAYERS, 0)
    torch.save({"model": doubled(state), "optimizer": adam(state, 5)}, tmp_path / "old")
    policy = make_ppo(model=SMALL)
    policy.learn_mode.load_state_dict(read_file(str(tmp_path / "old")))
    x = OBS
    for name in ("encoder.init", "encoder.main.0"):
        x = layer(x, state, name).relu()
    logit = layer(layer(x, state, "actor_head.Q.0.0").relu(), state, "actor_head.Q.1.0")
    value = layer(layer(x, state, "critic_head.main.0").relu(), state, "critic_head.last")
    output = model_of(policy)(OBS, mode="compute_actor_critic")
    torch.testing.assert_close(output["logit"], logit)
    torch.testing.assert_close(output["value"], value.squeeze(1))
    for name, param in model_of(policy).named_parameters():
        i = list(state).index(name)
        assert (optimizer_of(policy).state[param]["exp_avg"] == i).all()
