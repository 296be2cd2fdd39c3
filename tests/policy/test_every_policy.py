"""What holds for every policy: states resume it bit for bit, its log, its actions, bad numbers."""

import copy

import numpy as np
import pytest
import torch

from ding.data import tree_map
from ding.data.tree import tree_leaves
from ding.utils.errors import DataError
from tests.policy.attributes import model_of
from tests.policy.batches import (
    CASES,
    CONTINUOUS,
    IDS,
    build,
    explores_by_eps,
    observations,
    samples,
)

EACH = pytest.mark.parametrize("case", CASES, ids=IDS)
#: So that a few updates have all parts: phases of PPG, and turns of PDQN.
PHASES = dict(aux_freq=2, aux_train_epoch=2, value_norm=True)
LEARN = {"pdqn": dict(update_circle=2), "ppg": PHASES, "ppg_offpolicy": PHASES}
LEARN["ppo"] = dict(lr_scheduler=dict(epoch_num=9, min_lr_lambda=0), epoch_per_collect=2)
LEARN["rainbow"] = dict(target_update_freq=None)


def make(case):
    return build(*case, learn=LEARN.get(case[0], {}))


def learn(policy, data):
    torch.manual_seed(5)
    log = policy.learn_mode.forward(tree_map(torch.clone, data))
    return log if isinstance(log, list) else [log]


def act(policy, case, mode="eval_mode", **kwargs):
    """For four environments, with large observations."""
    batched = getattr(policy, mode).batched
    if batched.recurrent:
        kwargs["env_ids"] = list(range(4))
    torch.manual_seed(5)
    obs = observations(*case, 4, np.random.default_rng(1))
    return batched.forward(
        {name: 5 * part if "state" in name else part for name, part in obs.items()}
        if isinstance(obs, dict)
        else 5 * obs,
        **kwargs,
    )


@EACH
def test_a_reloaded_policy_learns_and_acts_the_same(case):
    policy, other = make(case), make(case)
    data = samples(policy, *case)
    for _ in range(3):
        learn(policy, data)
    learn(other, samples(policy, *case, seed=9))
    other.learn_mode.load_state_dict(copy.deepcopy(policy.learn_mode.state_dict()))
    for _ in range(2):
        logs = [learn(one, data) for one in (policy, other)]
        torch.testing.assert_close(*logs, rtol=0, atol=0)
    states = [dict(model_of(one).state_dict()) for one in (policy, other)]
    torch.testing.assert_close(*states, rtol=0, atol=0)
    torch.testing.assert_close(act(policy, case), act(other, case), rtol=0, atol=0)


@EACH
def test_what_is_not_finite_is_refused_and_changes_nothing(case):
    policy = make(case)
    data = samples(policy, *case)
    for leaf in tree_leaves(data["obs"]):
        leaf.view(-1)[0] = float("nan")
    before = copy.deepcopy(dict(model_of(policy).state_dict()))
    with pytest.raises(DataError, match="obs"):
        learn(policy, data)
    torch.testing.assert_close(dict(model_of(policy).state_dict()), before, rtol=0, atol=0)


PARTS = [("actor", name) for name in ("sac", "discrete_sac", "td3", "cql", "iql", "bcq")]
PARTS += [("critic", name) for name in ("sac", "ddpg", "iql")]
PARTS += [("actor", "acer"), ("critic", "acer")]
PARTS += [("vae", "bcq"), ("aux_critic", "ppg"), ("actor_critic", "ppg")]


@pytest.mark.parametrize(("part", "name"), PARTS)
def test_a_part_may_be_frozen_as_a_whole(part, name):
    policy = make((name, ""))
    network = model_of(policy)
    frozen = getattr(network, part).requires_grad_(False)
    before = copy.deepcopy((frozen.state_dict(), network.state_dict()))
    for _ in range(2):  # of TD3's updates every second one is of the actor
        policy.learn_mode.forward(samples(policy, name))
    torch.testing.assert_close(frozen.state_dict(), before[0], rtol=0, atol=0)
    assert any(not torch.equal(new, before[1][key]) for key, new in network.state_dict().items())


@EACH
def test_frozen_layers_stay_as_they_are(case):
    policy = make(case)
    network = model_of(policy)
    frozen = next(one for one in network.modules() if isinstance(one, torch.nn.Linear))
    frozen.requires_grad_(False)
    before = copy.deepcopy(frozen.state_dict())
    learn(policy, samples(policy, *case))
    torch.testing.assert_close(frozen.state_dict(), before, rtol=0, atol=0)
    assert any(one.grad is not None for one in network.parameters())


@EACH
def test_logs_what_it_announces(case):
    policy = make(case)
    data = samples(policy, *case)
    logs = [log for _ in range(2) for log in learn(policy, data)]
    single = {"critic_twin_loss", "q_value_twin"} if case[0] in ("ddpg", "d4pg") else set()
    assert set(policy.learn_mode.monitor_vars()) - single <= set().union(*logs)
    for log in logs:
        priority = log.pop("priority", torch.zeros(len(data["done"])))
        assert priority.shape == (len(data["done"]),)
        assert bool((priority >= 0).all())
        assert not priority.requires_grad
        assert all(np.isfinite(value) for value in log.values())


@EACH
def test_a_users_subclass_logs_what_its_base_does_and_what_it_adds(case):
    policy = make(case)
    usual = set(policy.learn_mode.monitor_vars())
    policy.__class__ = type("Subclass", (type(policy),), {"__module__": "users_module"})
    assert policy.logs_every_number()
    returned = set().union(*(log.keys() for log in learn(policy, samples(policy, *case))))
    assert returned - {"priority"} <= policy.usual_numbers()
    assert usual <= policy.usual_numbers()


@EACH
def test_actions_are_indices_or_within_their_bounds(case):
    bounded = case[0] in (*CONTINUOUS, "pdqn", "bc")
    policy = make(case)
    for mode in ("collect_mode", "eval_mode"):
        eps = {"eps": 0.5} if mode == "collect_mode" and explores_by_eps(case[0]) else {}
        for part in tree_leaves(act(policy, case, mode, **eps)["action"]):
            assert len(part) == 4
            assert part.dtype == torch.int64 or not bounded or bool((part.abs() <= 1).all())
            assert part.dtype == (torch.float32 if part.is_floating_point() else torch.int64)


@EACH
def test_numbers_of_double_precision_are_taken_as_single(case):
    """As numpy makes them, in rows that users write and in their data sets."""
    single, double = make(case), make(case)
    data = samples(single, *case)
    seen = {name: data[name] for name in ("obs", "next_obs", "action", "reward") if name in data}
    seen = tree_map(lambda leaf: leaf.double() if leaf.is_floating_point() else leaf, seen)
    learn(double, data | seen)
    learn(single, data)
    torch.testing.assert_close(*(dict(model_of(one).state_dict()) for one in (single, double)))


@EACH
def test_scripts_may_save_and_load_states_by_torch(case, tmp_path):
    policy, other = make(case), make(case)
    learn(policy, samples(policy, *case))
    for mode in ("learn_mode", "collect_mode", "eval_mode"):
        torch.save(getattr(policy, mode).state_dict(), tmp_path / mode)
        state = torch.load(tmp_path / mode, weights_only=True)
        getattr(other, mode).load_state_dict(state)
    torch.testing.assert_close(act(policy, case), act(other, case), rtol=0, atol=0)
