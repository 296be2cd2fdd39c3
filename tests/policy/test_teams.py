"""QMIX and its kin, and COMA: losses against loops and numbers worked out by hand; modes."""

import itertools
import math

import numpy as np
import pytest
import torch
from easydict import EasyDict
from torch import nn

from ding.envs import BaseEnvTimestep
from ding.envs.games import GridSpreadEnv
from ding.model import COMA, Mixer, QMix
from ding.model.template.agents import AgentsModel
from ding.policy import (
    CollaQPolicy,
    COMAPolicy,
    MADQNPolicy,
    QMIXPolicy,
    QTRANPolicy,
    WQMIXPolicy,
)
from ding.policy.coma import lambda_returns, others_actions
from ding.policy.qmix import nstep_targets
from ding.rl_utils.nstep import of_action
from ding.utils import deep_merge_dicts, set_pkg_seed
from ding.utils.errors import ConfigError, DataError
from tests.policy.attributes import model_of

Q_FAMILY = [QMIXPolicy, WQMIXPolicy, QTRANPolicy, CollaQPolicy, MADQNPolicy]
FAMILY = [*Q_FAMILY, COMAPolicy]
AGENTS, ACTIONS, OBS, STATE, UNROLL = 2, 5, 8, 8, 4
EACH = pytest.mark.parametrize("cls", FAMILY, ids=lambda cls: cls.__name__)


def model_cfg(cls):
    if cls is COMAPolicy:
        return {
            "agent_num": AGENTS,
            "obs_shape": {"agent_state": OBS, "global_state": STATE},
            "action_shape": ACTIONS,
            "actor_hidden_size_list": [16, 16],
        }
    cfg = {
        "agent_num": AGENTS,
        "obs_shape": OBS,
        "global_obs_shape": STATE,
        "action_shape": ACTIONS,
        "hidden_size_list": [16, 16],
    }
    extra = {
        CollaQPolicy: {
            "alone_obs_shape": 6,
            "attention": True,
            "self_feature_range": [0, 2],
            "ally_feature_range": [6, 8],
            "attention_size": 4,
        },
        QTRANPolicy: {"embedding_size": 16},
    }
    return {**cfg, **extra.get(cls, {})}


def build(cls, network=None, **overrides):
    overrides = {"model": model_cfg(cls), "collect": {"unroll_len": UNROLL}, **overrides}
    set_pkg_seed(0, use_cuda=False)
    return cls(deep_merge_dicts(cls.default_config(), EasyDict(overrides)), model=network)


def played(policy, steps=7, seed=0, eps=0.5):
    """Samples of one game, by the API of rows."""
    env = GridSpreadEnv({"agent_num": AGENTS, "size": 3, "max_episode_steps": steps})
    env.seed(seed)
    mode, obs, transitions, done = policy.collect_mode, env.reset(), [], False
    mode.reset([0])
    while not done:
        output = mode.forward({0: obs}, eps=eps)[0]
        action = output["action"].numpy()
        assert obs["action_mask"][np.arange(AGENTS), action].all(), "a masked action"
        step = env.step(action)
        step = BaseEnvTimestep(step.obs, step.reward, step.done, step.info)
        transitions.append({**mode.process_transition(obs, output, step), "collect_iter": 0})
        obs, done = step.obs, step.done
    return mode.get_train_sample(transitions)


def rows(policy, games=3):
    return [row for seed in range(games) for row in played(policy, seed=seed)]


# ------------------------------------------------------------------ networks


def test_coma_takes_shapes_that_begin_with_the_number_of_agents():
    sizes = {"agent_state": OBS, "global_state": STATE}
    with_agents = {name: [AGENTS, size] for name, size in sizes.items()}
    shapes = [
        {name: part.shape for name, part in COMA(AGENTS, obs_shape, 3, [8]).state_dict().items()}
        for obs_shape in (sizes, with_agents)
    ]
    assert shapes[0] == shapes[1]


def test_the_mix_grows_with_every_agents_value():
    torch.manual_seed(0)
    mixer = Mixer(3, 5, 16)
    q = torch.randn(64, 3, requires_grad=True)
    states = torch.randn(64, 5)
    mixer(q, states).sum().backward()
    assert bool((q.grad >= 0).all())
    assert q.grad.max() > 0


def test_the_mix_by_hand():
    torch.manual_seed(0)
    mixer = Mixer(2, 3, 4)
    q, state = torch.randn(2), torch.randn(3)
    w_1, w_final = mixer.hyper_w_1(state).abs(), mixer.hyper_w_final(state).abs()
    hidden = [
        sum(q[i] * w_1[4 * i + j] for i in range(2)) + mixer.hyper_b_1(state)[j] for j in range(4)
    ]
    hidden = [h if h > 0 else h.exp() - 1 for h in hidden]
    expected = sum(h * w for h, w in zip(hidden, w_final)) + mixer.V(state)[0]
    assert mixer(q, state).item() == pytest.approx(expected.item(), abs=1e-6)


def test_sequences_and_single_steps_say_the_same():
    torch.manual_seed(0)
    model = QMix(3, 4, 6, 2, [8, 8])
    obs = {"agent_state": torch.randn(5, 2, 3, 4), "global_state": torch.randn(5, 2, 6)}
    whole = model({"obs": obs, "prev_state": None}, single_step=False)
    state = [None, None]
    for t in range(5):
        step = {name: part[t] for name, part in obs.items()}
        out = model({"obs": step, "prev_state": state})
        state = out["next_state"]
        assert torch.allclose(out["logit"], whole["logit"][t], atol=1e-6)
        assert torch.allclose(out["total_q"], whole["total_q"][t], atol=1e-5)
    assert torch.allclose(state[1]["h"], whole["next_state"][1]["h"], atol=1e-6)


def test_agents_share_one_network_and_do_not_mix_memories():
    torch.manual_seed(0)
    model = QMix(2, 4, 6, 2, [8, 8])
    obs = {"agent_state": torch.randn(3, 1, 2, 4), "global_state": torch.zeros(3, 1, 6)}
    swapped = {**obs, "agent_state": obs["agent_state"].flip(2)}
    logit, other = (
        model({"obs": o, "prev_state": None}, single_step=False)["logit"] for o in (obs, swapped)
    )
    assert torch.allclose(logit.flip(2), other, atol=1e-6)


def test_the_critic_of_coma_does_not_see_the_agents_own_action():
    torch.manual_seed(0)
    model = COMA(2, {"agent_state": 4, "global_state": 6}, 3, [8, 8])
    obs = {"agent_state": torch.randn(1, 2, 4), "global_state": torch.randn(1, 6)}
    q = [
        model({"obs": obs, "action": torch.tensor([action])}, "compute_critic")["q_value"][0]
        for action in ([0, 1], [2, 1])
    ]
    assert torch.allclose(q[0][0], q[1][0])
    assert not torch.allclose(q[0][1], q[1][1])


@pytest.mark.parametrize("lstm_type", ["gru", "normal", "pytorch"])
def test_memories_of_every_type(lstm_type):
    policy = build(QMIXPolicy, model={**model_cfg(QMIXPolicy), "lstm_type": lstm_type})
    log = policy.learn_mode.forward(rows(policy))
    assert math.isfinite(log["total_loss"])


# ------------------------------------------------------------------ targets and losses


def random_targets(seed=0):
    rng = np.random.default_rng(seed)
    steps, count = 6, 8
    lengths = rng.integers(1, steps + 1, count)
    mask = (np.arange(steps)[:, None] < lengths).astype(np.float32)
    done = np.zeros((steps, count), np.float32)
    ends = rng.random(count) < 0.5
    done[lengths - 1, np.arange(count)] = ends
    reward = rng.normal(size=(steps, count)).astype(np.float32) * mask
    value = rng.normal(size=(steps, count)).astype(np.float32)
    batch = {"reward": reward, "done": done, "mask": mask}
    return {k: torch.from_numpy(v) for k, v in batch.items()}, torch.from_numpy(value), lengths


@pytest.mark.parametrize("nstep", [1, 2, 3, 9])
def test_nstep_targets_against_a_loop(nstep):
    batch, value, lengths = random_targets()
    targets = nstep_targets(batch, value, 0.9, nstep)
    for b, length in enumerate(lengths):
        for t in range(length):
            last = min(t + nstep, length) - 1
            expected = sum(0.9 ** (k - t) * batch["reward"][k, b] for k in range(t, last + 1))
            expected += 0.9 ** (last + 1 - t) * (1 - batch["done"][last, b]) * value[last, b]
            assert targets[t, b].item() == pytest.approx(expected.item(), abs=1e-5)


@pytest.mark.parametrize("lambda_", [0.0, 0.8, 1.0])
def test_lambda_returns_against_a_sum_of_nstep_targets(lambda_):
    batch, value, lengths = random_targets(seed=1)
    returns = lambda_returns(batch, value.unsqueeze(-1), 0.9, lambda_).squeeze(-1)
    by_n = [nstep_targets(batch, value, 0.9, n) for n in range(1, 7)]
    for b, length in enumerate(lengths):
        for t in range(length):
            left = length - t
            weights = [(1 - lambda_) * lambda_ ** (n - 1) for n in range(1, left)]
            weights.append(1 - sum(weights))
            expected = sum(w * by_n[n][t, b] for n, w in enumerate(weights))
            assert returns[t, b].item() == pytest.approx(float(expected), abs=1e-5)


class Table(AgentsModel):
    """Values by state, a whole number that all agents see; a joint value is the sum."""

    def __init__(self, table, free=None):
        super().__init__(2)
        self.table = nn.Parameter(torch.tensor(table))  # [states, agents, actions]
        self.free = nn.Parameter(torch.tensor(table if free is None else free))
        self.value = nn.Parameter(torch.tensor([0.5, -1.0]))

    def initial_state(self, batch=1):
        return {"h": torch.zeros(batch, 2, 1)}

    def unroll(self, obs, state):
        where = obs["global_state"][..., 0].long()
        return {"logit": self.table[where], "free": self.free[where], "next_state": state}

    def judge(self, output, obs, action):
        own, free = (of_action(output[name], action) for name in ("logit", "free"))
        where = obs["global_state"][..., 0].long()
        free = free.sum(-1)
        return {
            "total_q": own.sum(-1),
            "free_q": free,
            "joint_q": free,
            "nobody_q": own,
            "value": self.value[where],
            "team_q": free,
        }


VALUES = [[[1.0, 2.0], [0.0, 3.0]], [[5.0, 4.0], [7.0, 6.0]]]
FREE = [[[2.0, 0.0], [1.0, 1.0]], [[4.0, 1.0], [3.0, 2.0]]]


def one_step(action=(0, 0), reward=1.0, next_mask=((1, 1), (1, 1))):
    """One sequence of one step, from state 0 to state 1."""
    where = torch.tensor([[0.0], [1.0]])
    return [
        {
            "obs": {
                "agent_state": torch.zeros(2, 2, 1),
                "global_state": where,
                "action_mask": torch.stack([torch.ones(2, 2), torch.tensor(next_mask).float()]),
            },
            "action": torch.tensor([action]),
            "reward": torch.tensor([reward]),
            "done": torch.tensor([False]),
            "null": torch.tensor([False]),
            "prev_state": {"h": torch.zeros(2, 1)},
        }
    ]


def test_qmix_by_hand():
    policy = build(QMIXPolicy, Table(VALUES), learn={"discount_factor": 0.5})
    log = policy.learn_mode.forward(one_step())
    # Done: 1 + 0. Next: the best are 5 and 7, so that the target is 1 + 0.5 * 12.
    assert log["total_q"] == 1
    assert log["target_reward_total_q"] == 7
    assert log["total_loss"] == pytest.approx(36)
    assert log["priority"].tolist() == [6]
    # d/dq of (q - y)^2 is -12, for each of the two actions that were done; the step is clipped.
    gradient = model_of(policy).table.grad
    assert gradient[1].abs().sum() == 0
    assert gradient[0, :, 1].abs().sum() == 0
    assert (gradient[0, :, 0] == -12).all()


def test_targets_leave_out_what_is_forbidden_next():
    policy = build(QMIXPolicy, Table(VALUES), learn={"discount_factor": 0.5})
    log = policy.learn_mode.forward(one_step(next_mask=((0, 1), (1, 1))))
    assert log["target_reward_total_q"] == 1 + 0.5 * (4 + 7)


def test_double_q_values_what_the_online_network_would_do():
    policy = build(QMIXPolicy, Table(VALUES), learn={"discount_factor": 0.5, "double_q": True})
    with torch.no_grad():
        model_of(policy).table[1, 0] = torch.tensor([0.0, 9.0])
    log = policy.learn_mode.forward(one_step())
    assert log["target_reward_total_q"] == 1 + 0.5 * (4 + 7)


def test_padding_counts_for_nothing():
    policy = build(QMIXPolicy, Table(VALUES), learn={"discount_factor": 0.5})
    row = one_step()[0]
    again = {
        "obs": {name: torch.cat([part, part[-1:]]) for name, part in row["obs"].items()},
        **{name: torch.cat([row[name]] * 2) for name in ("action", "done")},
        "reward": torch.tensor([1.0, 0.0]),
        "null": torch.tensor([False, True]),
        "prev_state": row["prev_state"],
    }
    log = policy.learn_mode.forward([again])
    assert log["total_loss"] == pytest.approx(36)
    assert log["priority"].tolist() == [6]


@pytest.mark.parametrize(
    ("ow", "action", "reward", "weight"),
    [
        # Free value of the next state's best actions (5 and 7 by the mix): 4 + 3, half of it 3.5.
        (True, (0, 0), 1.0, 1.0),  # mix 1, below the target 4.5
        (True, (1, 1), 1.0, 0.25),  # mix 5, above it
        (False, (1, 1), 1.0, 1.0),  # the best joint action
        (False, (0, 0), 1.0, 1.0),  # 4.5 is more than the best one's free value, 0 + 1
        (False, (0, 0), -9.0, 0.25),
    ],
)
def test_weights_of_wqmix(ow, action, reward, weight):
    learn = {"discount_factor": 0.5, "wqmix_ow": ow, "alpha": 0.25}
    policy = build(WQMIXPolicy, Table(VALUES, FREE), learn=learn)
    log = policy.learn_mode.forward(one_step(action, reward))
    target = reward + 3.5
    mix = VALUES[0][0][action[0]] + VALUES[0][1][action[1]]
    free = FREE[0][0][action[0]] + FREE[0][1][action[1]]
    assert log["target_reward_total_q"] == pytest.approx(target)
    assert log["weighted_loss"] == pytest.approx(weight * (mix - target) ** 2)
    assert log["free_loss"] == pytest.approx((free - target) ** 2)


def test_losses_of_qtran():
    learn = {"discount_factor": 0.5, "td_weight": 1, "opt_weight": 10, "nopt_min_weight": 100}
    policy = build(QTRANPolicy, Table(VALUES, FREE), learn=learn)
    log = policy.learn_mode.forward(one_step((0, 0)))
    # Joint value of (0, 0) is 3, its target 1 + 0.5 * (4 + 3).
    assert log["td_loss"] == pytest.approx((3 - 4.5) ** 2)
    # Best actions (1, 1): the sum 5, the joint value 1, the state's value 0.5.
    assert log["opt_loss"] == pytest.approx((5 - 1 + 0.5) ** 2)
    # Done: 1 - 3 + 0.5 is below zero.
    assert log["nopt_loss"] == pytest.approx(1.5**2)
    total = log["td_loss"] + 10 * log["opt_loss"] + 100 * log["nopt_loss"]
    assert log["total_loss"] == pytest.approx(total)


def test_attribution_of_collaq():
    learn = {"discount_factor": 0.5, "collaq_loss_weight": 10}
    policy = build(CollaQPolicy, Table(VALUES), learn=learn)
    log = policy.learn_mode.forward(one_step((1, 0)))
    assert log["colla_loss"] == pytest.approx((2**2 + 0) / 2)
    assert log["total_loss"] == pytest.approx((2 - 7) ** 2 + 10 * 2)


def test_alone_values_and_what_others_add():
    torch.manual_seed(0)
    policy = build(CollaQPolicy)
    model = model_of(policy)
    env = GridSpreadEnv({"size": 3})
    env.seed(0)
    obs = {name: torch.from_numpy(part)[None, None] for name, part in env.reset().items()}
    out = model.unroll(obs, model.initial_state(1))
    network = model._q_alone_network
    alone, _, _ = network.unroll(obs["agent_alone_state"], network.initial_state(1, 2))
    alone_obs = {**obs, "agent_state": obs["agent_alone_padding_state"]}
    padded = model.unroll(alone_obs, model.initial_state(1))
    assert torch.allclose(padded["logit"] - alone, out["nobody_logit"], atol=1e-6)


def test_independent_learners_each_take_the_teams_reward():
    policy = build(
        MADQNPolicy,
        model={**model_cfg(MADQNPolicy), "global_cooperation": False},
        learn={"discount_factor": 0.5},
    )
    batch_rows = rows(policy)
    log = policy.learn_mode.forward(batch_rows)
    assert log["total_loss"] == pytest.approx(
        log["current_loss"] + log["cooperation_loss"], rel=1e-5
    )


class TableActorCritic(AgentsModel):
    """One state; the policy's scores and the critic's values are given."""

    def __init__(self):
        super().__init__(2)
        self.scores = nn.Parameter(torch.tensor([[0.0, 0.0], [0.0, math.log(3.0)]]))
        self.q = nn.Parameter(torch.tensor([[1.0, 3.0], [2.0, 6.0]]))

    def initial_state(self, batch=1):
        return {"h": torch.zeros(batch, 2, 1)}

    def unroll(self, obs, state):
        shape = obs["agent_state"].shape[:2]
        return {"logit": self.scores.expand(*shape, 2, 2), "next_state": state}

    def compute_critic(self, inputs):
        return {"q_value": self.q.expand(*inputs["action"].shape[:2], 2, 2)}


def test_coma_by_hand():
    learn = {"policy_weight": 1, "value_weight": 0, "entropy_weight": 0, "discount_factor": 0.5}
    network = TableActorCritic()
    policy = build(COMAPolicy, network, learn=learn)
    row = {**one_step((1, 0))[0], "eps": torch.tensor([0.5])}
    log = policy.learn_mode.forward([row])
    # With ε = 0.5, agent 0 draws 1/2, 1/2; agent 1 draws 1/8 + 1/4 = 3/8 and 5/8.
    first = 3 - (0.5 * 1 + 0.5 * 3)
    second = 2 - (3 / 8 * 2 + 5 / 8 * 6)
    expected = -(math.log(1 / 2) * first + math.log(3 / 8) * second) / 2
    assert log["policy_loss"] == pytest.approx(expected, abs=1e-5)
    # What is done next is not known: the values' means are 2 and 3/8 * 2 + 5/8 * 6 = 4.5. Targets
    # are 1 + 0.5 * 2 and 1 + 0.5 * 4.5.
    assert log["value_loss"] == pytest.approx(((3 - 2) ** 2 + (2 - 3.25) ** 2) / 2)


class OthersDecide(TableActorCritic):
    """What an agent's actions are worth is what the others do, read as a number with base N."""

    def __init__(self, agents=2, number=2):
        super().__init__()
        self.agent_num, self.number = agents, number
        self.scores = nn.Parameter(torch.linspace(-1, 1, agents * number).view(agents, number))

    def unroll(self, obs, state):
        shape = obs["agent_state"].shape[:2]
        return {"logit": self.scores.expand(*shape, *self.scores.shape), "next_state": state}

    def compute_critic(self, inputs):
        action = inputs["action"].float()
        place = self.number ** torch.arange(self.agent_num).float()
        others = (action * place).sum(-1, keepdim=True) - action * place
        own = torch.arange(self.number).float()
        return {"q_value": others.unsqueeze(-1).square() + own + 0 * self.q.sum()}


@pytest.mark.parametrize(("agents", "number"), [(1, 3), (2, 2), (3, 3), (4, 4)])
def test_coma_bootstraps_with_means_under_the_policy(agents, number):
    network = OthersDecide(agents, number)
    policy = build(COMAPolicy, network)
    probability = torch.softmax(torch.randn(2, agents, number), -1)
    obs = {"agent_state": torch.zeros(2, agents, 1)}
    expected = torch.zeros(2, agents)
    for joint in itertools.product(range(number), repeat=agents):
        action = torch.tensor(joint).expand(2, agents)
        chance = of_action(probability, action).prod(-1, keepdim=True)
        q_value = network.compute_critic({"action": action})["q_value"]
        expected += chance * of_action(q_value, action)
    torch.testing.assert_close(policy._mean_value(obs, probability), expected.detach())


def test_of_many_others_coma_draws_one_joint_action():
    probability = torch.zeros(3, 8, 4)
    probability[..., 2] = 1
    action, weight = others_actions(probability)
    assert action.shape == weight.shape == (1, 3, 8)
    assert bool((action == 2).all() and (weight == 1).all())


# ------------------------------------------------------------------ modes


@EACH
class TestFamily:
    def test_learns_from_what_it_collects(self, cls):
        policy = build(cls)
        data = rows(policy)
        before = {name: p.clone() for name, p in model_of(policy).named_parameters()}
        policy.learn_mode.forward(data)
        still = [n for n, p in model_of(policy).named_parameters() if torch.equal(p, before[n])]
        # With a single ally there is nothing to choose from.
        assert not [name for name in still if "query" not in name and "key" not in name]

    def test_samples_are_sequences(self, cls):
        sample = played(build(cls), steps=6)[0]
        assert sample["obs"]["agent_state"].shape == (UNROLL + 1, AGENTS, OBS)
        assert sample["action"].shape == (UNROLL, AGENTS)
        assert sample["reward"].shape == (UNROLL,)

    def test_an_environments_memory_is_its_own_and_ends_with_its_episode(self, cls):
        policy = build(cls)
        env = GridSpreadEnv({"size": 3})
        env.seed(0)
        a, b = env.reset(), env.reset()
        mode = policy.eval_mode
        first = mode.forward({0: a, 1: b})
        later = mode.forward({1: b})[1]["logit"]
        assert not torch.allclose(later, first[1]["logit"])
        mode.reset([1])
        assert torch.allclose(mode.forward({1: b})[1]["logit"], first[1]["logit"], atol=1e-6)
        assert not torch.allclose(mode.forward({0: a})[0]["logit"], first[0]["logit"])

    def test_other_observations_are_refused(self, cls):
        policy = build(cls)
        with pytest.raises(DataError, match="agent_state"):
            policy.collect_mode.forward({0: np.zeros(4, np.float32)}, eps=0.1)
        env = GridSpreadEnv({"agent_num": 3})
        with pytest.raises(DataError, match="3 agents"):
            policy.eval_mode.forward({0: env.reset()})

    def test_other_networks_are_refused(self, cls):
        with pytest.raises(ConfigError, match="needs a network of agents"):
            build(cls, nn.Linear(2, 2))
        cfg = cls.default_config()
        cfg.cuda = False
        cls(cfg, model=nn.Identity(), enable_field=[])  # no mode is enabled


def test_priorities_weigh_sequences():
    policy = build(QMIXPolicy, priority=True, priority_IS_weight=True)
    data = [dict(row) for row in rows(policy)]
    plain = build(QMIXPolicy).learn_mode.forward(data)["total_loss"]
    for row in data:
        row["IS"] = 0.5
    assert policy.learn_mode.forward(data)["total_loss"] == pytest.approx(plain / 2, rel=1e-5)


@pytest.mark.parametrize(
    ("cls", "model", "match"),
    [
        (CollaQPolicy, {"ally_feature_range": None}, "self_feature_range"),
        (CollaQPolicy, {"agent_num": 4, "ally_feature_range": [4, 8]}, "3 allies"),
        (COMAPolicy, {"obs_shape": 8}, "agent_state"),
        (QMIXPolicy, {"lstm_type": "tree"}, "lstm_type"),
        (MADQNPolicy, {"global_obs_shape": None}, "global_obs_shape"),
    ],
)
def test_networks_that_cannot_be(cls, model, match):
    with pytest.raises(ConfigError, match=match):
        build(cls, model={**model_cfg(cls), **model})


@pytest.mark.parametrize(
    ("model", "match"),
    [
        ({"obs_shape": 7}, "8"),
        ({"global_obs_shape": 7}, "global_obs_shape"),
        ({"action_shape": 4}, "action_mask is of 5 actions"),
    ],
)
def test_sizes_that_do_not_fit_are_named(model, match):
    policy = build(QMIXPolicy, model={**model_cfg(QMIXPolicy), **model})
    with pytest.raises(DataError, match=match):
        played(policy)


def test_states_of_each_agent_cannot_be_mixed():
    policy = build(QMIXPolicy)
    obs = GridSpreadEnv({"size": 3}).reset()
    obs["global_state"] = np.tile(obs["global_state"], (AGENTS, 1))
    with pytest.raises(DataError, match="one for all agents"):
        policy.eval_mode.forward({0: obs})
