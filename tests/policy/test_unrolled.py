"""IMPALA and ACER, which learn from pieces of trajectories, against loops over single steps."""

import copy
import math

import numpy as np
import pytest
import torch

from ding.data import Columns, tree_map, tree_take
from ding.policy import ACERPolicy, IMPALAPolicy
from ding.policy.unrolled import with_last_values
from ding.rl_utils import get_train_sample
from ding.utils.errors import ConfigError
from tests.policy.attributes import model_of, target_of
from tests.policy.batches import make

T = 4
#: Trajectories: terminated and shorter than a piece, cut and shorter, two pieces.
LENGTHS, ENDS = np.array([3, 2, 7]), [True, False, True]
PIECES = [range(3), range(3, 5), range(5, 9), range(9, 12)]
KINDS = ["discrete", "choices", "continuous", "acer"]


def build(kind, seed=0, **overrides):
    model = {"encoder_hidden_size_list": [8]}
    cls = IMPALAPolicy
    if kind == "acer":
        cls = ACERPolicy
    elif kind == "choices":
        model["action_shape"] = [2, 3]
    elif kind == "continuous":
        overrides["action_space"] = "continuous"
    overrides["model"] = {**model, **overrides.get("model", {})}
    overrides.setdefault("unroll_len", T)
    return make(cls, None, seed, **overrides)


def transitions(kind):
    """Those of `LENGTHS`, of a policy that is not the one that learns."""
    n = int(LENGTHS.sum())
    rng = np.random.default_rng(0)
    done = np.zeros(n, bool)
    done[np.cumsum(LENGTHS) - 1] = ENDS

    def normal(*shape):
        return rng.normal(size=shape).astype(np.float32)

    logit = normal(n, 5 if kind == "choices" else 2)
    action = rng.integers(2, size=(n, 2) if kind == "choices" else n)
    if kind == "continuous":
        logit, action = {"mu": logit, "sigma": np.abs(normal(n, 2)) + 0.5}, normal(n, 2)
    return {
        "obs": normal(n, 3),
        "next_obs": normal(n, 3),
        "action": action,
        "reward": normal(n),
        "done": done,
        "logit": logit,
        "collect_iter": np.full(n, 5),
    }


def pieces(policy, kind):
    batched = policy.collect_mode.batched
    columns = batched.get_train_columns(transitions(kind), LENGTHS)
    assert batched.count_samples(LENGTHS).tolist() == [1, 1, 2]
    return Columns(columns)


def rows_of(data, piece):
    """Tensors of the transitions of one piece, without padding."""

    def take(value):
        if isinstance(value, dict):
            return {name: take(part) for name, part in value.items()}
        return torch.from_numpy(value[list(piece)])

    return take(data)


def mean(per_piece):
    return torch.cat(per_piece).mean().item()


@pytest.mark.parametrize("kind", ["discrete", "choices", "continuous"])
def test_impala_equals_a_loop(kind):
    clips = dict(rho_clip_ratio=1.2, c_clip_ratio=0.8, rho_pg_clip_ratio=1.5)
    learn = dict(clips, discount_factor=0.9, lambda_=0.7, value_weight=0.3, entropy_weight=0.2)
    policy = build(kind, learn=learn)
    model, data = copy.deepcopy(model_of(policy)), transitions(kind)
    log = policy.learn_mode.forward(pieces(policy, kind))

    def distributions(logit):
        if kind == "continuous":
            normal = torch.distributions.Normal(logit["mu"], logit["sigma"])
            return [torch.distributions.Independent(normal, 1)]
        parts = logit if isinstance(logit, list) else [logit]
        if kind == "choices" and len(parts) == 1:
            parts = logit.split([2, 3], -1)
        return [torch.distributions.Categorical(logits=part) for part in parts]

    def log_prob(dists, action):
        if kind == "choices":
            return sum(dist.log_prob(action[:, i]) for i, dist in enumerate(dists))
        return dists[0].log_prob(action)

    policy_losses, value_losses, entropies = [], [], []
    with torch.no_grad():
        for piece in PIECES:
            row = rows_of(data, piece)
            new = distributions(model(row["obs"], mode="compute_actor")["logit"])
            taken = log_prob(new, row["action"])
            rho = (taken - log_prob(distributions(row["logit"]), row["action"])).exp()
            value = model(row["obs"], mode="compute_critic")["value"]
            last = model(row["next_obs"][-1:], mode="compute_critic")["value"]
            value, target = torch.cat([value, last]), torch.cat([value, last])
            gamma = 0.9 * (~row["done"]).float()
            for t in reversed(range(len(piece))):
                error = row["reward"][t] + gamma[t] * value[t + 1] - value[t]
                trace = gamma[t] * 0.7 * rho[t].clamp(max=0.8)
                target[t] = (
                    value[t]
                    + rho[t].clamp(max=1.2) * error
                    + trace * (target[t + 1] - value[t + 1])
                )
            adv = rho.clamp(max=1.5) * (row["reward"] + gamma * target[1:] - value[:-1])
            policy_losses.append(-taken * adv)
            value_losses.append((target - value)[:-1] ** 2)
            entropies.append(sum(dist.entropy() for dist in new))
    losses = [mean(part) for part in (policy_losses, value_losses, entropies)]
    got = [log[f"{name}_loss"] for name in ("policy", "value", "entropy")]
    assert got == pytest.approx(losses, rel=1e-4)
    total = losses[0] + 0.3 * losses[1] - 0.2 * losses[2]
    assert log["total_loss"] == pytest.approx(total, rel=1e-4)


@pytest.mark.parametrize("trust_region", [False, True])
def test_acer_equals_a_loop(trust_region):
    learn = dict(
        *(dict(discount_factor=0.9, lambda_=0.7, value_weight=0.3, entropy_weight=0.2),),
        c_clip_ratio=1.2,
        trust_region=trust_region,
        trust_region_value=0.01,
    )
    policy = build("acer", learn=learn)
    with torch.no_grad():  # an average policy that is elsewhere
        for parameter in target_of(policy).parameters():
            parameter.add_(torch.randn_like(parameter) * 0.5)
    model, average = copy.deepcopy(model_of(policy)), copy.deepcopy(target_of(policy))
    data = transitions("acer")
    log = policy.learn_mode.forward(pieces(policy, "acer"))
    critic_losses, logits, gradients = [], [], []
    for piece in PIECES:
        row = rows_of(data, piece)
        obs = torch.cat([row["obs"], row["next_obs"][-1:]])
        logit = model(obs, mode="compute_actor")["logit"]
        with torch.no_grad():
            prob, q = logit.softmax(-1), model(obs, mode="compute_critic")["q_value"]
            value = (prob * q).sum(-1)
            ratio = prob[:-1] / row["logit"].softmax(-1)
        count, at = len(piece), row["action"].tolist()
        after, retrace = value[count].item(), [0.0] * count
        for t in reversed(range(count)):
            gamma = 0.0 if row["done"][t] else 0.9
            retrace[t] = row["reward"][t].item() + gamma * after
            trace = 0.7 * min(1.0, ratio[t, at[t]].item())
            after = trace * (retrace[t] - q[t, at[t]].item()) + value[t].item()
        taken = q[:-1].gather(1, row["action"][:, None])[:, 0]
        critic_losses.append(0.5 * (torch.tensor(retrace) - taken) ** 2)
        log_prob = logit.log_softmax(-1)
        gain = torch.tensor(0.0)
        for t in range(count):
            weight = min(1.2, ratio[t, at[t]].item())
            gain = gain + weight * (retrace[t] - value[t]) * log_prob[t, at[t]]
            for a in range(2):
                beyond = max(0.0, 1 - 1.2 / ratio[t, a].item())
                gain = gain + prob[t, a] * beyond * (q[t, a] - value[t]) * log_prob[t, a]
        gain = gain - 0.2 * (log_prob[:-1].exp() * log_prob[:-1]).sum()
        (gradient,) = torch.autograd.grad(gain, logit, retain_graph=True)
        if trust_region:
            with torch.no_grad():
                growth = prob - average(obs, mode="compute_actor")["logit"].softmax(-1)
            for t in range(count):
                excess = (growth[t] @ gradient[t]).item() - 0.01
                gradient[t] -= max(0.0, excess / growth[t].square().sum().item()) * growth[t]
        logits.append(logit)
        gradients.append(gradient)
    assert log["critic_loss"] == pytest.approx(mean(critic_losses), rel=1e-4)
    torch.autograd.backward(logits, [-gradient / LENGTHS_LEARNED for gradient in gradients])
    for ours, theirs in zip(model_of(policy).actor.parameters(), model.actor.parameters()):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-6)


LENGTHS_LEARNED = sum(map(len, PIECES))


def test_samples_hold_each_observation_once():
    columns = pieces(build("discrete"), "discrete").columns
    data = transitions("discrete")
    assert columns["obs"].shape == (4, T + 1, 3)
    assert "next_obs" not in columns
    assert np.array_equal(columns["obs"][0, 3], data["next_obs"][2])
    assert np.array_equal(columns["obs"][2, 4], data["next_obs"][8])
    assert columns["null"].sum(1).tolist() == [1, 2, 0, 1]


def test_padding_has_the_value_of_what_came_last():
    value = torch.tensor([[1.0, 10], [2, 20], [3, 30], [4, 40]])
    mask = torch.tensor([[1.0, 1], [1, 0], [1, 0]])
    assert with_last_values(value, mask).T.tolist() == [[1, 2, 3, 4], [10, 20, 20, 20]]


@pytest.mark.parametrize("kind", KINDS)
class TestFamily:
    def test_rows_make_the_same_samples(self, kind):
        policy = build(kind)
        whole = pieces(policy, kind)
        rows = [dict(row) for row in Columns(transitions(kind))][5:]
        made = policy.collect_mode.get_train_sample(rows)
        assert len(made) == 2
        for name, column in Columns(list(made)).from_rows(list(made)).columns.items():
            parts = column.items() if isinstance(column, dict) else [("", column)]
            for key, part in parts:
                expected = whole.columns[name][key] if key else whole.columns[name]
                assert np.array_equal(np.asarray(part), np.asarray(expected)[2:]), name

    def test_rows_and_columns_learn_the_same(self, kind):
        policy, other = build(kind), build(kind)
        data = pieces(policy, kind)
        columns = Columns(dict(data.columns))
        log = policy.learn_mode.forward(columns)
        assert log["total_loss"] == other.learn_mode.forward(list(data))["total_loss"]

    def test_rows_of_lists_learn_the_same(self, kind):
        policy, other = build(kind), build(kind)
        data = transitions(kind)
        # Whole pieces, and one that is filled up after the episode's end.
        lengths, data = (
            [3, 4],
            {
                name: {k: v[[0, 1, 2, 5, 6, 7, 8]] for k, v in column.items()}
                if isinstance(column, dict)
                else column[[0, 1, 2, 5, 6, 7, 8]]
                for name, column in data.items()
            },
        )
        made = policy.collect_mode.batched.get_train_columns(data, np.array(lengths))
        rows = [
            {
                **{name: tree_map(torch.from_numpy, row[name]) for name in ("obs", "next_obs")},
                "logit": tree_map(torch.from_numpy, row["logit"]),
                "action": torch.from_numpy(np.atleast_1d(row["action"])),
                "reward": torch.tensor([row["reward"]]),
                "done": bool(row["done"]),
            }
            for row in ({k: tree_take(v, i) for k, v in data.items()} for i in range(7))
        ]
        lists = [unroll for part in (rows[:3], rows[3:]) for unroll in get_train_sample(part, T)]
        log = policy.learn_mode.forward(lists)
        expected = other.learn_mode.forward(Columns(made))
        assert log["total_loss"] == pytest.approx(expected["total_loss"], rel=1e-5)

    def test_the_critic_learns(self, kind, learned):
        policy = build(kind, seed=learned.seed, learn=dict(discount_factor=0.0))
        name = "critic_loss" if kind == "acer" else "value_loss"
        data = pieces(policy, kind)
        losses = [policy.learn_mode.forward(data)[name] for _ in range(300)]
        learned.at_most(losses[-1] / losses[0], 0.7)

    def test_priorities_and_weights(self, kind):
        policy = build(kind, priority=True, priority_IS_weight=True)
        data = pieces(policy, kind)
        weighted = data.with_columns(IS=torch.tensor([1.0, 1.0, 1.0, 1.0]))
        log = policy.learn_mode.forward(weighted)
        assert log["priority"].shape == (4,)
        assert bool((log["priority"] > 0).all())
        plain = build(kind).learn_mode.forward(pieces(policy, kind))
        assert log["total_loss"] == pytest.approx(plain["total_loss"])
        assert "priority" not in plain


def test_other_spaces_are_refused():
    with pytest.raises(ConfigError, match="'hybrid'"):
        build("discrete", action_space="hybrid")
    with pytest.raises(ConfigError, match="one discrete action"):
        build("acer", model=dict(action_shape=[2, 3]))
    with pytest.raises(ConfigError, match="optim"):
        build("discrete", learn=dict(optim="sgd"))


def test_residual_image_encoder_and_rmsprop():
    model = dict(obs_shape=[1, 16, 16], impala_cnn_encoder=True, encoder_hidden_size_list=[4, 8])
    policy = build("discrete", model=model, learn=dict(optim="rmsprop", grad_clip_type="clip_norm"))
    data = transitions("discrete")
    for name in ("obs", "next_obs"):
        data[name] = np.random.default_rng(0).integers(256, size=(12, 1, 16, 16)).astype(np.uint8)
    samples = Columns(policy.collect_mode.batched.get_train_columns(data, LENGTHS))
    assert samples.columns["obs"].dtype == np.uint8
    assert math.isfinite(policy.learn_mode.forward(samples)["total_loss"])
