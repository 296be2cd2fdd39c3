"""What a subclass, a user's network or a user's optimiser changes about DQN is what happens."""

import numpy as np
import pytest
import torch
from torch.nn.utils import parametrize

from ding.policy import DQNPolicy
from ding.policy.command_mode_policy_instance import DQNCommandModePolicy
from tests.policy.attributes import model_of
from tests.policy.batches import random_steps

OBS = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)


def samples():
    return dict(random_steps(16).collated())


def learn(policy):
    policy.learn_mode.forward(samples())


def collect(policy):
    policy.collect_mode.batched.forward(OBS, eps=0.0)


def evaluate(policy):
    policy.eval_mode.batched.forward(OBS)


CALLED = [
    *((learn, name) for name in ("_forward_learn", "_batch", "_learn", "_target_output")),
    *((learn, name) for name in ("_value_loss", "_branch_loss", "_update")),
    *((learn, name) for name in ("_descend", "_train_mode")),
    *((collect, name) for name in ("_collect_columns", "_forward_collect_batch")),
    *((act, name) for name in ("_train_mode", "_model_input") for act in (collect, evaluate)),
    *((evaluate, name) for name in ("_eval_columns", "_forward_eval_batch")),
]


@pytest.mark.parametrize("base", [DQNPolicy, DQNCommandModePolicy])
@pytest.mark.parametrize(("work", "name"), CALLED)
def test_overrides_of_a_subclass_and_of_an_instance_are_called(make_dqn, base, work, name):
    calls = []

    def override(self, *args, **kwargs):
        calls.append("class")
        return getattr(base, name)(self, *args, **kwargs)

    policy = make_dqn(cls=type("Mine", (base,), {name: override}))
    work(policy)
    assert calls == ["class"] * len(calls) != []
    bound = getattr(policy, name)
    setattr(policy, name, lambda *args, **kw: calls.append("instance") or bound(*args, **kw))
    work(policy)
    assert "instance" in calls


def test_the_network_is_in_evaluation_mode_where_a_custom_core_acts(make_dqn):
    seen = []

    def core(self, obs, **kwargs):
        seen.append(self._model.training)
        return {"action": torch.zeros(len(obs), dtype=torch.int64)}

    cores = {"_forward_collect_batch": core, "_forward_eval_batch": core}
    policy = make_dqn(cls=type("Mine", (DQNPolicy,), cores))
    for act in (collect, evaluate):
        learn(policy)
        act(policy)
    assert seen == [False, False]


def test_gradients_of_several_learners_go_through_an_override(make_dqn):
    seen = []

    class Mine(DQNPolicy):
        def sync_gradients(self, model):
            seen.append(model is self._model)

    policy = make_dqn(cls=Mine, multi_gpu=True)
    learn(policy)
    assert seen == [True]


def test_the_discount_is_read_at_each_update(make_dqn):
    policy = make_dqn()
    learn(policy)
    policy.learn_mode.set_attribute("gamma", 0.0)
    batch = samples()
    q = model_of(policy)(batch["obs"])["logit"].gather(1, batch["action"][:, None])[:, 0]
    expected = (q - batch["reward"][:, 0]).square().mean().item()
    log = policy.learn_mode.forward(batch)
    assert log["total_loss"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("action", [2, -1])
def test_actions_out_of_range_are_refused(make_dqn, action):
    policy = make_dqn()
    before = [p.clone() for p in model_of(policy).parameters()]
    batch = samples()
    batch["action"][3] = action
    with pytest.raises(RuntimeError, match="out of bounds"):
        policy.learn_mode.forward(batch)
    torch.testing.assert_close(list(model_of(policy).parameters()), before, rtol=0, atol=0)


def _hook_output(policy):
    model_of(policy).head.register_forward_hook(lambda *args: {"logit": args[2]["logit"] * -3})


def _replace_layer(policy):
    model_of(policy).encoder.main[0] = torch.nn.Sequential(
        model_of(policy).encoder.main[0], torch.nn.Tanh()
    )


def _patch_forward(policy):
    layer = model_of(policy).encoder.main[0]
    layer.forward = lambda x: torch.ones(len(x), layer.out_features)


def _parametrise(policy):
    parametrize.register_parametrization(model_of(policy).encoder.main[0], "weight", Halved())


class Halved(torch.nn.Module):
    def forward(self, weight):
        return weight / 2


@pytest.mark.parametrize("change", [_hook_output, _replace_layer, _patch_forward, _parametrise])
def test_acting_and_learning_use_the_network_as_it_is(make_dqn, change):
    policy = make_dqn()
    collect(policy)
    learn(policy)
    before = model_of(policy)(torch.from_numpy(OBS))["logit"].detach()
    change(policy)
    batch = samples()
    with torch.no_grad():
        logit = model_of(policy)(torch.from_numpy(OBS))["logit"]
        q_mean = model_of(policy)(batch["obs"])["logit"].mean().item()
    assert not torch.allclose(logit, before)
    for output in (
        policy.collect_mode.batched.forward(OBS, eps=0.0),
        policy.eval_mode.batched.forward(OBS),
    ):
        torch.testing.assert_close(output["logit"], logit)
        assert output["action"].tolist() == logit.argmax(-1).tolist()
    assert policy.learn_mode.forward(batch)["q_value"] == pytest.approx(q_mean, rel=1e-5)


def test_hooks_of_gradients_and_other_optimisers_count(make_dqn):
    policy = make_dqn()
    first, *_ = model_of(policy).parameters()
    first.register_hook(torch.zeros_like)
    other = torch.optim.SGD(model_of(policy).parameters(), lr=0.1, weight_decay=0.5)
    policy.learn_mode.set_attribute("optimizer", other)
    before = first.detach().clone()
    learn(policy)
    torch.testing.assert_close(first.detach(), before * (1 - 0.1 * 0.5))
