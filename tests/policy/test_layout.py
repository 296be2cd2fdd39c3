"""Columns of shape [B] and [B, 1] are the same to every policy, or refused; none is broadcast."""

import pytest
import torch

from ding.data import tree_map
from ding.policy import DQNPolicy
from ding.policy.checks import layout_of
from ding.utils.errors import DataError
from tests.policy.attributes import model_of
from tests.policy.batches import AGENTS, CASES, IDS, SEQUENCES, TEAMS, build, samples

#: One number per sample, or per step of a sequence.
NUMBERS = ("reward", "done", "null", "weight", "IS", "return", "value", "adv", "value_gamma")
NUMBERS = (*NUMBERS, "is_expert", "done_1step", "eps", "traj_flag", "step_id")


def data_of(policy, name, kind):
    data = samples(policy, name, kind)
    data["weight"] = torch.linspace(0.5, 1.5, len(data["done"]))
    return data


def other_form(column):
    """With a last dimension of 1, or without it; None where neither is the same data."""
    if isinstance(column, dict):
        parts = {name: other_form(part) for name, part in column.items()}
        return None if any(part is None for part in parts.values()) else parts
    return column.squeeze(-1) if column.shape[-1] == 1 else column.unsqueeze(-1)


def variants(data, name, kind):
    for column in (*NUMBERS, "action"):
        if column not in data:
            continue
        if column == "action" and (name in TEAMS or kind == "agents"):
            continue  # an action for each agent
        if column == "reward" and name not in SEQUENCES and data["reward"].shape[1] > 1:
            continue  # several rewards
        if column in ("value", "adv") and kind == "agents":
            continue  # likewise
        if (changed := other_form(data[column])) is not None:
            yield column, {**data, column: changed}


def learned(name, kind, data):
    """What an update logs, and the gradients it leaves."""
    policy = build(name, kind)
    torch.manual_seed(1)
    log = policy.learn_mode.forward(dict(data))
    log = log[-1] if isinstance(log, list) else log
    grads = [p.grad.clone() for p in model_of(policy).parameters() if p.grad is not None]
    # HAPPO logs one for each agent.
    loss = next(value for key, value in log.items() if key.endswith("total_loss"))
    return loss, grads


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_one_number_per_sample_may_have_a_dimension_of_its_own(case):
    data = data_of(build(*case), *case)
    loss, grads = learned(*case, data)
    tried = set()
    for column, changed in variants(data, *case):
        tried.add(column)
        other_loss, other_grads = learned(*case, changed)
        assert other_loss == pytest.approx(loss, rel=1e-5), column
        for ours, theirs in zip(grads, other_grads, strict=True):
            torch.testing.assert_close(ours, theirs, msg=f"{column}: other gradients")
    assert tried >= {"done", "weight"}


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_number_too_many_is_refused_by_name(case):
    policy = build(*case)
    data = data_of(policy, *case)
    for column in set(NUMBERS) & data.keys() - {"reward"}:
        wrong = torch.stack([data[column]] * 3, -1)
        if case[0] == "bc" and column not in policy.data_columns:
            continue
        named = "'mask'" if column == "null" else f"'{column}'"
        with pytest.raises(DataError, match=rf"{named}.*shape .*expected"):
            policy.learn_mode.forward({**data, column: wrong})


@pytest.mark.parametrize("name", ["ppo", "ppo_offpolicy", "a2c", "pg"])
def test_rewards_of_several_steps_are_refused_where_one_is_expected(name):
    policy = build(name)
    data = data_of(policy, name, "")
    with pytest.raises(DataError, match=r"'reward'.*\[11, 3\], expected \[11\]"):
        policy.learn_mode.forward({**data, "reward": torch.zeros(11, 3)})


def test_columns_of_another_length_are_refused():
    policy = build("ppo")
    data = data_of(policy, "ppo", "")
    with pytest.raises(DataError, match=r"'adv'.*shape \[1\], expected \[11\]"):
        policy.learn_mode.forward({**data, "adv": data["adv"][:1]})


def test_values_of_agents_are_one_number_each():
    policy = build("ppo", "agents")
    data = data_of(policy, "ppo", "agents")
    team = data["value"].mean(-1)
    with pytest.raises(DataError, match=rf"'value'.*expected \[11, {AGENTS}\]"):
        policy.learn_mode.forward({**data, "value": team})


@pytest.mark.parametrize("name", ["ppo", "ppo_offpolicy", "a2c", "happo", "discrete_sac"])
def test_a_team_may_have_one_agent(name, monkeypatch):
    monkeypatch.setattr("tests.policy.batches.AGENTS", 1)
    policy = build(name, "agents")
    data = samples(policy, name, "agents")
    assert data["action"].shape == (11, 1)
    loss, grads = learned(name, "agents", data)
    for column in ("action", "value", "adv"):
        if column in data:
            other_loss, other_grads = learned(
                name, "agents", {**data, column: data[column].squeeze(-1)}
            )
            assert other_loss == pytest.approx(loss, rel=1e-5)
            assert all(map(torch.equal, grads, other_grads))


def test_a_layout_is_checked_once(monkeypatch):
    calls = []

    class Watched(DQNPolicy):
        def _check_batch(self, *args):
            calls.append(super()._check_batch(*args))

    policy = build("dqn")
    policy.__class__ = Watched
    data = samples(policy, "dqn")
    for _ in range(3):
        policy.learn_mode.forward(dict(data))
    assert len(calls) == 1
    policy.learn_mode.forward(tree_map(lambda leaf: leaf[:5], data))
    assert len(calls) == 2


def test_columns_that_a_policy_does_not_look_at_may_have_any_shape():
    policy = build("dqn")
    data = samples(policy, "dqn")
    own = dict(value=torch.zeros(11, 3), names=torch.zeros(2), adv=torch.zeros(1))
    policy.learn_mode.forward({**data, **own})


def test_what_users_make_of_samples_is_theirs():
    class Own(DQNPolicy):
        def _batch(self, data):
            return {**super()._batch(data), "done": torch.zeros(1)}

    policy = build("dqn")
    policy.__class__ = Own
    policy.learn_mode.forward(samples(policy, "dqn"))


def test_layouts_differ_in_names_shapes_and_types():
    batch = {"a": torch.zeros(2, 3), "b": {"c": torch.zeros(2)}, "weight": None}
    assert layout_of(batch) == layout_of({**batch, "a": torch.ones(2, 3)})
    for other in (
        {**batch, "a": torch.zeros(2, 1)},
        {**batch, "a": torch.zeros(2, 3).double()},
        {**batch, "b": {"c": torch.zeros(2, 1)}},
        {**batch, "weight": torch.ones(2)},
    ):
        assert layout_of(batch) != layout_of(other)
