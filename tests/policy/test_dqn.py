"""DQN against targets computed by hand, its schedules, its state and its refusals."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from ding.data import Columns
from ding.policy import DQNPolicy
from ding.utils import set_pkg_seed
from ding.utils.errors import ConfigError, DataError
from tests.policy.attributes import model_of, target_of
from tests.policy.batches import random_steps as random_samples, steps as samples


class LinearQ(nn.Module):
    """``Q(s) = s * weight``, one weight per action."""

    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weight))

    def forward(self, x):
        return {"logit": x * self.weight}


@pytest.fixture
def linear(make_dqn):
    """Online Q(s) = (s, 2s), so it picks action 1 for s > 0; target Q(s) = (10s, 4s)."""

    def make(**overrides):
        policy = make_dqn(LinearQ([1.0, 2.0]), DQNPolicy, discount_factor=0.5, **overrides)
        with torch.no_grad():
            target_of(policy).weight.copy_(torch.tensor([10.0, 4.0]))
        return policy

    return make


def test_double_q_target_by_hand(linear):
    data = samples([1.0, 3.0], [2.0, 5.0], [0, 1], [[1.0], [7.0]], [False, True])
    log = linear().learn_mode.forward(data)
    # Not done: 1 + 0.5 * targetQ(2)[1] = 1 + 0.5 * 8 = 5, Q = 1. Done: 7, Q = 6.
    assert log["total_loss"] == pytest.approx((4**2 + 1**2) / 2)
    assert log["priority"].tolist() == pytest.approx([4, 1])
    assert log["q_value"] == pytest.approx((1 + 2 + 3 + 6) / 4)
    assert log["target_q_value"] == pytest.approx((20 + 8 + 50 + 20) / 4)
    assert log["cur_lr"] == 0.001
    assert all(type(log[name]) is float for name in log if name != "priority")


def test_nstep_target_by_hand(linear):
    policy = linear(nstep=3)
    data = samples(
        [1.0, 1.0],
        [2.0, 2.0],
        [0, 0],
        [[1.0, 2.0, 4.0], [1.0, 2.0, 0.0]],
        [False, False],
        # The second trajectory was cut after two steps.
        value_gamma=torch.tensor([0.125, 0.25]),
    )
    log = policy.learn_mode.forward(data)
    # 1 + 0.5*2 + 0.25*4 + 0.125*8 - 1 = 3, and 1 + 0.5*2 + 0.25*8 - 1 = 3.
    assert log["priority"].tolist() == pytest.approx([3, 3])


def test_ignore_done(linear):
    data = samples([1.0], [2.0], [0], [[1.0]], [True])
    assert linear().learn_mode.forward(data)["priority"].tolist() == pytest.approx([0])
    ignored = linear(learn={"ignore_done": True}).learn_mode.forward(data)
    assert ignored["priority"].tolist() == pytest.approx([4])


def test_importance_weights_scale_the_loss(linear):
    data = samples(
        *([1.0, 3.0], [2.0, 5.0], [0, 1], [[1.0], [7.0]], [False, True]),
        IS=torch.tensor([0.5, 1.0]),
    )
    weighted = linear(priority=True, priority_IS_weight=True).learn_mode.forward(data)
    assert weighted["total_loss"] == pytest.approx((0.5 * 16 + 1) / 2)
    assert weighted["priority"].tolist() == pytest.approx([4, 1])
    assert linear(priority=True).learn_mode.forward(data)["total_loss"] == pytest.approx(8.5)


def test_weights_need_priorities(make_dqn):
    with pytest.raises(ConfigError, match=r"policy\.priority=True"):
        make_dqn(priority_IS_weight=True)


def test_gradient_by_hand(linear):
    policy = linear()
    policy.learn_mode.forward(samples([1.0], [2.0], [0], [[1.0]], [False]))
    # d/dw0 (w0 * 1 - 5)^2 = -8; no gradient through the target or the greedy action.
    assert model_of(policy).weight.grad.tolist() == pytest.approx([-8, 0])
    assert model_of(policy).weight[0] > 1


def test_rows_learn_like_columns(make_dqn):
    data = random_samples(16)
    rows = list(random_samples(16))
    for row in rows:
        row.update(replay_unique_id="buffer_1", action=row["action"].reshape(1))
    one, other = make_dqn(), make_dqn()
    log, log_of_rows = one.learn_mode.forward(data), other.learn_mode.forward(rows)
    assert log["total_loss"] == log_of_rows["total_loss"]
    for a, b in zip(model_of(one).parameters(), model_of(other).parameters()):
        assert torch.equal(a, b)


def test_learning_leaves_the_batch_as_it_is(make_dqn):
    data = random_samples(8)
    before = copy.deepcopy(data)
    make_dqn().learn_mode.forward(data)
    assert data.is_columnar
    for name, column in before.columns.items():
        np.testing.assert_array_equal(np.asarray(data.column(name)), np.asarray(column))


def same_weights(policy):
    pairs = zip(model_of(policy).parameters(), target_of(policy).parameters())
    return all(torch.equal(a, b) for a, b in pairs)


def test_target_is_assigned_every_freq_updates(make_dqn):
    policy = make_dqn(learn={"target_update_freq": 3})
    assert same_weights(policy)
    equal = []
    for i in range(7):
        policy.learn_mode.forward(random_samples(8, seed=i))
        equal.append(same_weights(policy))
    assert equal == [False, False, True, False, False, True, False]


def test_target_follows_by_theta_without_freq(make_dqn):
    policy = make_dqn(learn={"target_update_freq": None, "target_theta": 0.25})
    before = next(target_of(policy).parameters()).clone()
    policy.learn_mode.forward(random_samples(8))
    online = next(model_of(policy).parameters())
    torch.testing.assert_close(
        next(target_of(policy).parameters()), before + 0.25 * (online - before)
    )


def test_target_needs_a_schedule(make_dqn):
    with pytest.raises(ConfigError, match="target_update_freq"):
        make_dqn(learn={"target_update_freq": None, "target_theta": None})


def test_eps_comes_from_the_command_mode(make_dqn):
    eps = dict(type="linear", start=1.0, end=0.0, decay=100)
    command = make_dqn(other={"eps": eps}).command_mode
    at = [command.get_setting_collect({"envstep": n, "learner_step": 0})["eps"] for n in (0, 50)]
    assert at == pytest.approx([1.0, 0.5])
    assert command.get_setting_learn({}) == command.get_setting_eval({}) == {}


def test_eps_is_the_share_of_random_actions(make_dqn):
    policy = make_dqn(LinearQ([0.0, 1.0]))
    obs = np.ones((4000, 1), np.float32)
    forward = policy.collect_mode.batched.forward
    assert forward(obs, eps=0.0)["action"].float().mean() == 1
    assert forward(obs, eps=1.0)["action"].float().mean() == pytest.approx(0.5, abs=0.05)
    per_env = torch.tensor([0.0, 1.0]).repeat(2000)
    actions = forward(obs, eps=per_env)["action"]
    assert actions[::2].float().mean() == 1
    assert actions[1::2].float().mean() == pytest.approx(0.5, abs=0.05)


def test_same_seed_same_actions(make_dqn):
    policy = make_dqn()
    obs = np.zeros((64, 3), np.float32)

    def draw():
        set_pkg_seed(3)
        return policy.collect_mode.batched.forward(obs, eps=0.5)["action"].tolist()

    assert draw() == draw()


def test_multi_discrete(make_dqn):
    policy = make_dqn(model={"obs_shape": 3, "action_shape": [2, 4]})
    obs = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    action = policy.collect_mode.batched.forward(obs, eps=1.0)["action"]
    assert action.shape == (5, 2)
    assert policy.collect_mode.forward({0: obs[0]}, eps=0.0)[0]["action"].shape == (2,)
    log = policy.learn_mode.forward(random_samples(5).with_columns(action=action))
    assert log["priority"].shape == (5,)
    assert np.isfinite(log["total_loss"])


def test_noisy_net_explores_in_collect_and_not_in_eval(make_dqn):
    policy = make_dqn(noisy_net=True)
    obs = torch.ones(1, 3)

    def logits(mode, **kwargs):
        return [mode.batched.forward(obs.numpy(), **kwargs)["logit"].tolist() for _ in range(2)]

    first, second = logits(policy.collect_mode, eps=0.0)
    assert first != second
    first, second = logits(policy.eval_mode)
    assert first == second
    losses = {
        copy.deepcopy(policy).learn_mode.forward(random_samples(8))["total_loss"] for _ in range(2)
    }
    assert len(losses) == 2


def test_dict_observations(make_dqn):
    class DictQ(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 2)

        def forward(self, x):
            return {"logit": self.linear(torch.cat([x["a"], x["b"]], -1))}

    policy = make_dqn(DictQ())
    obs = {"a": np.zeros((4, 1), np.float32), "b": np.ones((4, 2), np.float32)}
    assert policy.collect_mode.batched.forward(obs, eps=0.0)["action"].shape == (4,)
    row = {name: value[0] for name, value in obs.items()}
    assert policy.eval_mode.forward({3: row})[3]["action"].shape == (1,)
    tensors = {name: torch.from_numpy(value) for name, value in obs.items()}
    data = random_samples(4).with_columns(obs=tensors, next_obs=tensors)
    assert np.isfinite(policy.learn_mode.forward(data)["total_loss"])


def test_checkpoint_without_the_target_count_loads(make_dqn):
    policy = make_dqn()
    state = policy.learn_mode.state_dict()
    del state["target_update_count"]
    policy.learn_mode.load_state_dict(state)


def test_collect_and_eval_states(make_dqn):
    policy, other = make_dqn(), make_dqn(enable_field=["collect", "eval"])
    policy.learn_mode.forward(random_samples(8))
    for mode in (other.collect_mode, other.eval_mode):
        mode.load_state_dict(policy.collect_mode.state_dict())
    for a, b in zip(model_of(policy).parameters(), model_of(other).parameters()):
        assert torch.equal(a, b)


@pytest.mark.parametrize("column", ["obs", "next_obs", "reward"])
def test_nan_in_the_batch_leaves_the_weights(make_dqn, column):
    policy = make_dqn()
    before = copy.deepcopy(model_of(policy).state_dict())
    data = random_samples(8)
    data.column(column)[0, 0] = float("nan")
    with pytest.raises(DataError, match=rf"DQNCommandModePolicy: the loss is nan.* in {column}:"):
        policy.learn_mode.forward(data)
    after = model_of(policy).state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_infinite_loss_of_a_finite_batch_blames_the_network(make_dqn):
    policy = make_dqn(LinearQ([1e30, 1e30]))
    with pytest.raises(DataError, match=r"the loss is inf; its batch is finite.*learning_rate"):
        policy.learn_mode.forward(samples([1.0], [1.0], [0], [[0.0]], [False]))


def test_solves_a_chain(make_dqn, learned):
    """Four states in a row; going right pays 1 at the end."""
    policy = make_dqn(
        seed=learned.seed,
        model={"obs_shape": 4, "action_shape": 2, "encoder_hidden_size_list": [32]},
        discount_factor=0.9,
        learn={"target_update_freq": 10, "learning_rate": 5e-3},
    )
    eye, trajectories = np.eye(4, dtype=np.float32), []
    for _ in range(60):
        state, path = 0, []
        for _ in range(12):
            action = int(torch.randint(2, ()))
            new = min(state + 1, 3) if action else max(state - 1, 0)
            path.append((state, action, float(new == 3), new))
            state = new
            if state == 3:
                break
        trajectories.append(path)
    steps = [step for path in trajectories for step in path]
    state, action, reward, new = (np.array(column) for column in zip(*steps))
    columns = {
        "obs": eye[state],
        "next_obs": eye[new],
        "action": action,
        "reward": reward.astype(np.float32),
        "done": new == 3,
    }
    lengths = np.array([len(path) for path in trajectories])
    batch = Columns(policy.collect_mode.batched.get_train_columns(columns, lengths))
    for _ in range(300):
        policy.learn_mode.forward(batch.take(torch.randint(len(batch), (64,)).numpy()))
    q = model_of(policy)(torch.from_numpy(eye[:3]))["logit"]
    learned.is_true(q.argmax(-1).tolist() == [1, 1, 1], f"{q}")
    learned.near(q.max(-1).values.tolist(), [0.81, 0.9, 1.0], 0.1)
