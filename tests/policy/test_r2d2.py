"""R2D2 against a network whose memory is a sum, and targets worked out step by step."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from ding.data import Columns
from ding.envs import BaseEnvManager
from ding.policy import R2D2Policy
from ding.rl_utils import value_inv_transform, value_transform
from ding.utils.errors import ConfigError
from ding.worker import SampleSerialCollector
from ding.worker.collector.rollout import Rollout
from ding.worker.collector.steps import Player
from tests.fakes import DuelLineEnv, LineEnv, line_manager
from tests.policy.attributes import model_of, target_of
from tests.policy.batches import make


class SumQ(nn.Module):
    """Values ``weight * (sum of all that was seen)``; the state is the sum."""

    def __init__(self, weight=(1.0, -0.5)):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weight))

    def forward(self, inputs, inference=False):
        obs = inputs["obs"][None] if inference else inputs["obs"]
        zero = obs.new_zeros(1)
        before = torch.stack([zero if s is None else s["sum"] for s in inputs["prev_state"]])
        total = before + obs.cumsum(0)  # [T, B, 1]
        logit = total * self.weight
        return {
            "logit": logit[0] if inference else logit,
            "next_state": [{"sum": s} for s in total[-1]],
        }


def build(network=None, seed=0, **overrides):
    model = {"obs_shape": 2, "lstm_type": "pytorch"}
    defaults = dict(burnin_step=2, learn_unroll_len=4, nstep=2, discount_factor=0.9, model=model)
    return make(R2D2Policy, network, seed, **{**defaults, **overrides})


def trajectory(rng, length, terminated):
    """Columns of one trajectory, with the states in which `SumQ` was before each step."""
    obs = rng.normal(size=(length + 1, 1)).astype(np.float32)
    before = np.concatenate([[0], obs[:-2, 0].cumsum()]).astype(np.float32)
    done = np.zeros(length, bool)
    done[-1] = terminated
    return {
        "obs": obs[:-1],
        "next_obs": obs[1:],
        "action": rng.integers(2, size=length),
        "reward": rng.normal(size=length).astype(np.float32),
        "done": done,
        # A state that an older network left: 0.25 too much.
        "prev_state": {"sum": before[:, None] + np.float32(0.25)},
    }


def joined(parts):
    return {
        name: {"sum": np.concatenate([part[name]["sum"] for part in parts])}
        if name == "prev_state"
        else np.concatenate([part[name] for part in parts])
        for name in parts[0]
    }


def as_samples(columns):
    def convert(column):
        if isinstance(column, dict):
            return {name: convert(part) for name, part in column.items()}
        return column if column.dtype == bool else torch.from_numpy(column)

    return Columns({name: convert(column) for name, column in columns.items()})


def errors_by_hand(part, start, stop, first, online, target, cfg, rescale):
    """TD errors of steps ``start`` to ``stop`` of a trajectory that was entered at ``first``."""
    observed = np.concatenate([part["obs"][:, 0], part["next_obs"][-1:, 0]]).astype(np.float64)
    state = float(part["prev_state"]["sum"][first, 0])
    values = {}
    for step in range(first, stop + 1):
        state += observed[step]
        values[step] = state
    squash = (lambda x: value_transform(torch.tensor(x)).item()) if rescale else (lambda x: x)
    unsquash = (lambda x: value_inv_transform(torch.tensor(x)).item()) if rescale else squash
    errors = []
    for step in range(start, stop):
        last = min(step + cfg.nstep, stop)
        total = sum(
            cfg.discount_factor ** (k - step) * part["reward"][k] for k in range(step, last)
        )
        if not part["done"][step:last].any():
            choice = int(np.argmax(values[last] * online))
            next_value = unsquash(float(values[last] * target[choice]))
            total += cfg.discount_factor ** (last - step) * next_value
        errors.append(abs(values[step] * online[part["action"][step]] - squash(float(total))))
    return errors


@pytest.mark.parametrize("rescale", [True, False])
@pytest.mark.parametrize("nstep", [1, 2, 3, 7])
@pytest.mark.parametrize("burnin", [0, 2])
def test_loss_and_priorities_by_hand(rescale, nstep, burnin):
    online, target = np.array([1.0, -0.5]), np.array([-0.25, 0.75])
    policy = build(
        SumQ(online.tolist()),
        burnin_step=burnin,
        nstep=nstep,
        learn=dict(value_rescale=rescale, learning_rate=0.01),
    )
    target_of(policy).update(SumQ(target.tolist()), direct=True)
    rng = np.random.default_rng(nstep)
    parts = [trajectory(rng, 11, True), trajectory(rng, 3, False), trajectory(rng, 6, True)]
    lengths = np.array([11, 3, 6])
    data = as_samples(policy.collect_mode.batched.get_train_columns(joined(parts), lengths))
    data = data.with_columns(IS=torch.tensor([1.0, 0.5, 0.25, 1.0, 1.0, 0.125]))
    log = policy.learn_mode.forward(data)
    # What is learned of the trajectories, and where each sequence is entered.
    spans = [(0, 0, 4), (0, 4, 8), (0, 7, 11), (1, 0, 3), (2, 0, 4), (2, 2, 6)]
    losses, priorities = [], []
    for number, start, stop in spans:
        first = start - burnin if start >= burnin else start
        errors = errors_by_hand(
            parts[number], start, stop, first, online, target, policy.cfg, rescale
        )
        losses.append(np.mean(np.square(errors)))
        priorities.append(0.9 * max(errors) + 0.1 * np.mean(errors))
    assert log["priority"].tolist() == pytest.approx(priorities, rel=1e-4)
    weights = [1.0, 0.5, 0.25, 1.0, 1.0, 0.125]
    assert log["total_loss"] == pytest.approx(np.mean(np.multiply(weights, losses)), rel=1e-4)


def test_burnin_steps_give_no_gradient():
    policy = build(burnin_step=4, learn_unroll_len=2)
    data = random_sequences(policy, 40)
    batch_obs = data.columns["obs"].clone().requires_grad_()
    columns = {**data.collated(), "obs": batch_obs}
    policy.learn_mode.forward(columns)
    assert batch_obs.grad[:, :4].abs().sum() == 0
    assert batch_obs.grad[:, 4:6].abs().sum() > 0


def random_sequences(policy, steps=200, keeps_states=True):
    """Sequences of random episodes that the policy itself acted in, [4, 2, ...] of them."""
    rng = np.random.default_rng(1)
    rows, lengths = [], []
    while len(rows) < steps:
        policy.collect_mode.reset([0])
        length = int(rng.integers(1, 17))
        for step in range(length):
            obs = torch.from_numpy(rng.normal(size=2).astype(np.float32))
            output = policy.collect_mode.forward({0: obs}, eps=0.5)[0]
            row = {"obs": obs, "next_obs": obs + 1, "reward": torch.rand(1)}
            row |= {"action": output["action"], "done": step + 1 == length}
            rows.append(row | ({"prev_state": output["prev_state"]} if keeps_states else {}))
        lengths.append(length)
    samples, start = [], 0
    for length in lengths:
        samples.append(policy.collect_mode.get_train_sample(rows[start : start + length]))
        start += length
    return Columns.concat(samples).with_columns(IS=torch.ones(sum(map(len, samples))))


class TestModes:
    def test_update_lowers_the_loss(self, learned):
        policy = build(seed=learned.seed, learn=dict(learning_rate=0.003))
        data = random_sequences(policy)
        losses = [policy.learn_mode.forward(data)["total_loss"] for _ in range(60)]
        learned.lowered(losses, 0.5)

    def test_each_environment_has_a_memory_of_its_own(self):
        policy = build(SumQ())
        for mode, kwargs in ((policy.collect_mode, {"eps": 0.0}), (policy.eval_mode, {})):
            one = torch.ones(1)
            mode.forward({0: one, 5: 2 * one}, **kwargs)
            out = mode.forward({5: one, 0: one, 9: one}, **kwargs)
            assert [out[i]["logit"][0].item() for i in (0, 5, 9)] == [2, 3, 1]
            mode.reset([5])
            assert mode.forward({5: one}, **kwargs)[5]["logit"][0] == 1
            mode.reset()
            assert mode.forward({0: one}, **kwargs)[0]["logit"][0] == 1

    def test_rows_carry_the_state_before_the_step(self):
        policy = build(SumQ())
        out = [policy.collect_mode.forward({3: torch.ones(1)}, eps=0.0)[3] for _ in range(3)]
        assert [o["prev_state"]["sum"].item() for o in out] == [0, 1, 2]


@pytest.mark.parametrize("manager", ["columns", "rows"])
def test_collected_sequences(manager):
    envs = [lambda i=i: LineEnv({"number": i, "length": 5 + i}) for i in range(2)]
    env = BaseEnvManager(envs, BaseEnvManager.default_config())
    policy = build(burnin_step=1, learn_unroll_len=3)
    mode = policy.collect_mode
    if manager == "rows":
        mode = type(mode)(*mode)  # without its batched cores
    collector = SampleSerialCollector(
        SampleSerialCollector.default_config(), env=env, policy=mode, exp_name=""
    )
    samples = collector.collect(n_sample=4, train_iter=3, policy_kwargs={"eps": 0.3})
    assert len(samples) == 4
    first = samples[0]
    # Environment 0 is done first, after 5 steps.
    assert torch.as_tensor(first["obs"])[:, 0].tolist() == [0] * 5
    assert torch.as_tensor(first["obs"])[1:, 1].tolist() == [0, 1, 2, 3]
    assert list(first["null"]) == [True, False, False, False]
    assert torch.as_tensor(first["reward"]).tolist() == [0, 1, 2, 3]
    assert torch.as_tensor(samples[1]["obs"])[:, 1].tolist() == [1, 2, 3, 4, 5]
    assert list(samples[1]["done"]) == [False, False, False, True]
    assert float(torch.as_tensor(samples[1]["prev_state"]["h"]).abs().sum()) > 0
    assert samples[0]["collect_iter"] == 3
    assert collector.envstep == 12
    more = collector.collect(n_sample=2, train_iter=4, policy_kwargs={"eps": 0.3})
    assert len(more) == 2
    collector.close()


def test_players_do_not_share_a_memory():
    policy, other = build(SumQ()), build(SumQ())
    env = line_manager(2, DuelLineEnv)
    env.launch()
    for mode in ("collect_mode", "eval_mode"):
        one, two, third = (getattr(each, mode) for each in (policy, policy, other))
        Rollout(env, [Player(one), Player(third)], battle=True)
        with pytest.raises(ConfigError, match="its own policy"):
            Rollout(env, [Player(one), Player(two)], battle=True)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (dict(unroll_len=2), "unroll_len=2"),
        (dict(learn_unroll_len=0), "at least one step"),
        (dict(priority=False), "priority=True"),
        (dict(model=dict(obs_shape=2, action_shape=[2, 2])), "one whole number"),
    ],
)
def test_what_makes_no_sequence_is_refused(wrong, message):
    with pytest.raises(ConfigError, match=message):
        build(**wrong)


def test_other_names_of_settings():
    policy = build(unroll_len=10, collect=dict(each_iter_n_sample=7))
    assert policy.collect_mode.get_attribute("unroll_len") == 10
    assert policy.learn_mode.get_attribute("learn_len") == 8
    assert policy.collect_mode.get_attribute("n_sample") == 7
    assert policy.collect_mode.get_attribute("traj_len_inf") is True


def test_target_copies():
    policy = build(learn=dict(target_update_freq=2))
    data = random_sequences(policy)
    before = copy.deepcopy(target_of(policy).state_dict())
    policy.learn_mode.forward(data)
    assert _equal(before, target_of(policy).state_dict())
    policy.learn_mode.forward(data)
    assert _equal(model_of(policy).state_dict(), target_of(policy).state_dict())


def _equal(one, two):
    return all(torch.equal(one[name], two[name]) for name in one)
