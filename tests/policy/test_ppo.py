"""PPO: advantages and ratios by hand, logs, schedules, state and refusals."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from ding.data import Columns, tree_map
from ding.utils import save_file
from ding.utils.errors import CheckpointError, ConfigError
from tests.policy.attributes import model_of, value_norm_of
from tests.policy.batches import collected
from tests.policy.networks import FixedActorCritic

CONTINUOUS = dict(action_space="continuous", model=dict(obs_shape=3, action_shape=2))


def collect(policy, lengths, ends="terminated", seed=0, obs_dim=3):
    """Trajectories through the batched core; ``ends`` is how each of them ends."""
    rng = np.random.default_rng(seed)
    n = sum(lengths)
    obs = rng.normal(size=(n, obs_dim)).astype(np.float32)
    next_obs = np.roll(obs, -1, axis=0)
    last = np.cumsum(lengths) - 1
    next_obs[last] = rng.normal(size=(len(lengths), obs_dim)).astype(np.float32)
    reward = rng.normal(size=n)
    return collected(policy, obs, reward, lengths, ends == "terminated", next_obs)


@pytest.fixture
def fixed(make_ppo):
    def make(**overrides):
        learn = dict(ppo_param_init=False, value_norm=False) | overrides.pop("learn", {})
        gae = dict(discount_factor=0.5, gae_lambda=0.5)
        return make_ppo(FixedActorCritic((0.0, 0.0)), learn=learn, collect=gae, **overrides)

    return make


def trajectory(done):
    """Values 1, 2, 4 and a last next value of 8; rewards 1."""
    value = np.array([1.0, 2.0, 4.0], np.float32)
    return {
        "obs": value[:, None],
        "next_obs": np.array([[2.0], [4.0], [8.0]], np.float32),
        "action": np.array([0, 1, 0]),
        "logit": np.zeros((3, 2), np.float32),
        "value": value,
        "reward": np.ones(3, np.float32),
        "done": np.array([False, False, done]),
    }


# The last error is 1 + 0.5 * 8 - 4 = 1, or 1 - 4 = -3 without bootstrap; the ones before are
# 1 + 0.5 * 2 - 1 = 1 and 1 + 0.5 * 4 - 2 = 1, and each hands on a quarter.
GAE = {False: [1 + 0.25 * 1.25, 1.25, 1.0], True: [1 + 0.25 * 0.25, 1 - 0.75, -3.0]}


@pytest.mark.parametrize("terminated", [True, False])
def test_advantages_by_hand(fixed, terminated):
    columns = fixed().collect_mode.batched.get_train_columns(trajectory(terminated), np.array([3]))
    assert columns["adv"].tolist() == pytest.approx(GAE[terminated])
    assert columns["traj_flag"].tolist() == [False, False, True]
    assert columns["done"].tolist() == [False, False, terminated]
    assert columns["reward"].shape == (3, 1)


def test_ignore_done_bootstraps(fixed):
    policy = fixed(learn={"ignore_done": True})
    columns = policy.collect_mode.batched.get_train_columns(trajectory(True), np.array([3]))
    assert columns["adv"].tolist() == pytest.approx(GAE[False])


@pytest.mark.parametrize("recompute", [True, False])
@pytest.mark.parametrize("terminated", [True, False])
def test_first_losses_by_hand(fixed, recompute, terminated):
    policy = fixed(recompute_adv=recompute, learn={"adv_norm": False, "entropy_weight": 0.1})
    twice = {
        name: np.concatenate([column, column]) for name, column in trajectory(terminated).items()
    }
    columns = policy.collect_mode.batched.get_train_columns(twice, np.array([3, 3]))
    log = policy.learn_mode.forward(Columns(columns))[0]
    adv = np.array(GAE[terminated])
    value_loss = 0.5 * np.mean(adv**2)
    assert log["approx_kl"] == pytest.approx(0)
    assert log["clipfrac"] == 0
    assert log["policy_loss"] == pytest.approx(-adv.mean(), abs=1e-6)
    assert log["value_loss"] == pytest.approx(value_loss)
    assert log["entropy_loss"] == pytest.approx(np.log(2))
    assert log["total_loss"] == pytest.approx(
        -adv.mean() + 0.5 * value_loss - 0.1 * np.log(2), abs=1e-6
    )
    assert log["adv_max"] == pytest.approx(adv.max())
    assert log["value_mean"] == pytest.approx(7 / 3)


@pytest.mark.parametrize("config", [{}, CONTINUOUS])
def test_ratio_is_one_at_the_first_minibatch(make_ppo, config):
    policy = make_ppo(**config)
    logs = policy.learn_mode.forward(collect(policy, [40, 24]))
    assert logs[0]["approx_kl"] == pytest.approx(0, abs=1e-6)
    assert logs[0]["clipfrac"] == 0
    assert logs[-1]["approx_kl"] != 0
    assert set(policy.learn_mode.monitor_vars()) <= logs[0].keys()
    assert all(type(value) is float for value in logs[0].values())


def test_one_log_for_each_minibatch(make_ppo):
    policy = make_ppo(learn={"epoch_per_collect": 3, "batch_size": 16})
    assert len(policy.learn_mode.forward(collect(policy, [40, 24]))) == 3 * 4
    # 65 samples are five parts of 13: a last minibatch of one would be noise.
    assert len(policy.learn_mode.forward(collect(policy, [40, 25]))) == 3 * 5


def test_a_learner_with_few_samples_has_some_in_each_minibatch(make_ppo, monkeypatch):
    policy = make_ppo(learn={"epoch_per_collect": 1, "adv_norm": False, "value_norm": False})
    monkeypatch.setattr(policy, "_joint", True)
    monkeypatch.setattr("ding.policy.joint.get_world_size", lambda: 2)
    others = torch.tensor([0.0, 1000.0])
    monkeypatch.setattr("ding.policy.joint.allreduce_data", lambda counts, _: counts + others)
    assert len(policy.learn_mode.forward(collect(policy, [1, 1]))) == 2
    assert len(policy.learn_mode.forward(collect(policy, [40, 40]))) == 9


@pytest.mark.parametrize("lengths", [[7, 5, 1], [13]])
@pytest.mark.parametrize("norm_type", [None, "BN"])
def test_recomputed_advantages_equal_the_collected_at_first(
    make_ppo, ppo_batches, lengths, norm_type
):
    model = {"obs_shape": 3, "action_shape": 2, "norm_type": norm_type}
    policy = make_ppo(model=model, learn={"adv_norm": False})
    data = collect(policy, lengths, ends="cut")
    policy.learn_mode.forward(data)
    adv = ppo_batches["policy"][0].adv
    np.testing.assert_allclose(adv.numpy(), data.column("adv"), atol=1e-5)


def test_data_without_trajectory_flags_ends_where_episodes_do(make_ppo):
    policy = make_ppo()
    data = collect(policy, [7, 5]).columns
    del data["traj_flag"]
    assert policy.learn_mode.forward(Columns(data))


@pytest.mark.parametrize("form", [Columns, lambda columns: list(Columns(columns)), dict])
def test_episodes_that_ignore_their_ends_stay_apart(make_ppo, ppo_batches, form):
    policy = make_ppo(learn={"adv_norm": False, "ignore_done": True})
    data = collect(policy, [7, 5]).columns
    adv = torch.as_tensor(data["adv"]).flatten()
    for name in ("traj_flag", "step_id"):
        del data[name]
    policy.learn_mode.forward(form(tree_map(torch.as_tensor, data)))
    torch.testing.assert_close(ppo_batches["policy"][0].adv, adv)


def slow_gae(policy, rows, pieces):
    """Advantages of consecutive trajectories, one row at a time."""
    gamma, gae_lambda = 0.99, 0.95
    factor = gamma * gae_lambda
    adv = []
    for length in pieces:
        piece, rows, last = rows[:length], rows[length:], 0.0
        own = []
        for row in reversed(piece):
            with torch.no_grad():
                obs = torch.stack([torch.as_tensor(row["obs"]), torch.as_tensor(row["next_obs"])])
                value, next_value = model_of(policy)(obs, mode="compute_critic")["value"].tolist()
            alive = not row["done"]
            delta = row["reward"].item() + gamma * next_value * alive - value
            last = delta + factor * alive * last
            own.append(last)
        adv += own[::-1]
    return adv


@pytest.mark.parametrize("form", [lambda data: data, list], ids=["columns", "rows"])
@pytest.mark.parametrize("ends", ["cut", "terminated"])
@pytest.mark.parametrize(
    ("cut", "pieces"),
    [
        (lambda a, b: a[:9] + b, [7, 2, 4, 6]),  # within the second trajectory
        (lambda a, b: a + a[3:] + b[1:5], [7, 5, 4, 5, 3, 1]),
        (lambda a, b: a[::2], [1] * 6),  # no row is followed by its next
        (lambda a, b: a[2:4] + a[4:6], [4]),  # taken apart and joined as it was
    ],
)
def test_no_advantage_crosses_a_cut(make_ppo, ppo_batches, form, ends, cut, pieces):
    learn = dict(value_norm=False, adv_norm=False, epoch_per_collect=1, learning_rate=0.0)
    policy, other = make_ppo(learn=learn), make_ppo()
    data = cut(form(collect(policy, [7, 5], ends)), form(collect(other, [4, 6], ends, seed=1)))
    assert len(data) == sum(pieces)
    policy.learn_mode.forward(copy.deepcopy(data))
    adv = ppo_batches["policy"][0].adv
    np.testing.assert_allclose(adv.numpy(), slow_gae(policy, list(data), pieces), atol=1e-5)


def test_value_norm_keeps_the_critic_in_units_of_the_returns(make_ppo, ppo_batches):
    policy = make_ppo(learn={"epoch_per_collect": 4})
    data = collect(policy, [32])
    data.column("reward")[:] *= 100
    policy.learn_mode.forward(data)
    std = float(value_norm_of(policy).std)
    assert std > 50
    returns = (ppo_batches["value"][0].return_ * std).numpy()
    assert np.abs(returns).max() > 100
    # Once for each sample, although there were four epochs.
    assert value_norm_of(policy).state_dict()["count"] == pytest.approx(32, abs=0.1)
    value = policy.collect_mode.batched.forward(np.zeros((1, 3), np.float32))["value"]
    assert abs(float(value) / std) < 5


def test_value_norm_off(make_ppo):
    policy = make_ppo(learn={"value_norm": False})
    policy.learn_mode.forward(collect(policy, [16]))
    obs = np.ones((1, 3), np.float32)
    raw = model_of(policy)(torch.from_numpy(obs), mode="compute_critic")["value"]
    assert policy.collect_mode.batched.forward(obs)["value"] == raw


def test_parameter_init(make_ppo):
    policy = make_ppo(**CONTINUOUS)
    model = model_of(policy)
    hidden = model.encoder.main[0].weight.detach()
    torch.testing.assert_close(hidden @ hidden.T, 2 * torch.eye(len(hidden)), atol=1e-4, rtol=0)
    assert model.actor_head.mu.weight.norm(dim=1).tolist() == pytest.approx([0.01, 0.01])
    assert model.actor_head.log_sigma_param.detach().flatten().tolist() == [-0.5, -0.5]
    mean = policy.eval_mode.batched.forward(np.random.randn(8, 3).astype(np.float32))["action"]
    assert mean.abs().max() < 0.1
    discrete = model_of(make_ppo()).actor_head.Q[-1][0].weight
    assert discrete.norm(dim=1).tolist() == pytest.approx([0.01, 0.01])


def test_ranks_start_from_the_same_parameters(make_ppo, monkeypatch):
    sent = []
    monkeypatch.setattr("ding.policy.learning.get_world_size", lambda: 2)
    monkeypatch.setattr(
        "torch.distributed.broadcast", lambda tensor, rank: sent.append(tensor.clone())
    )
    model = model_of(make_ppo(multi_gpu=True))
    state = list(model.state_dict().values())
    assert all(torch.equal(a, b) for a, b in zip(sent[-len(state) :], state))


def test_actions(make_ppo):
    obs = {0: np.zeros(3, np.float32), 4: np.ones(3, np.float32)}
    discrete, continuous = make_ppo(), make_ppo(**CONTINUOUS)
    output = discrete.collect_mode.forward(obs)
    assert output[4]["action"].dtype == torch.int64
    assert output[4]["logit"].shape == (2,)
    assert {"action", "logit", "value"} <= output[4].keys()
    assert continuous.collect_mode.forward(obs)[4]["action"].shape == (2,)
    greedy = [continuous.eval_mode.forward(obs)[4]["action"].tolist() for _ in range(2)]
    assert greedy[0] == greedy[1]
    drawn = [continuous.collect_mode.forward(obs)[4]["action"].tolist() for _ in range(2)]
    assert drawn[0] != drawn[1]


def test_learning_rate_schedule(make_ppo):
    schedule = dict(epoch_num=4, min_lr_lambda=0.5)
    policy = make_ppo(
        learn={"lr_scheduler": schedule, "learning_rate": 1.0, "epoch_per_collect": 1}
    )
    rates = [policy.learn_mode.forward(collect(policy, [4]))[0]["cur_lr"] for _ in range(6)]
    assert rates == pytest.approx([1, 0.875, 0.75, 0.625, 0.5, 0.5])
    with pytest.raises(ConfigError, match="min_lr_lambda"):
        make_ppo(learn={"lr_scheduler": dict(epochs=4)})


def test_collector_takes_over_the_unit_of_the_critic(make_ppo):
    policy, collector = make_ppo(), make_ppo(enable_field=["collect"])
    policy.learn_mode.forward(collect(policy, [16]))
    collector.collect_mode.load_state_dict(policy.collect_mode.state_dict())
    assert value_norm_of(collector, "collect").std == value_norm_of(policy).std != 1
    collector.collect_mode.load_state_dict({"model": model_of(policy).state_dict()})


def test_kl_to_a_pretrained_policy(make_ppo, ppo_batches, tmp_path):
    path = str(tmp_path / "pretrained.pth.tar")
    pretrained = make_ppo()
    save_file(path, pretrained.learn_mode.state_dict())
    learn = dict(kl_beta=0.5, pretrained_model_path=path, adv_norm=False)
    policy = make_ppo(learn=learn)
    assert "kl_div" in policy.learn_mode.monitor_vars()
    with torch.no_grad():
        model_of(policy).actor_head.Q[-1][0].bias[0] += 1
    log = policy.learn_mode.forward(collect(policy, [64]))[0]
    assert log["kl_div"] != 0
    assert log["total_loss"] == pytest.approx(
        log["policy_loss"] + 0.5 * log["value_loss"] + 0.5 * log["kl_div"], rel=1e-4
    )
    # The other one stays as it was.
    data = collect(policy, [64])
    obs = torch.from_numpy(np.asarray(data.column("obs")))
    expected = model_of(pretrained)(obs, mode="compute_actor")["logit"].detach()
    ppo_batches["policy"].clear()
    for _ in range(3):
        policy.learn_mode.forward(copy.deepcopy(data))
    assert ppo_batches["policy"]
    for batch in ppo_batches["policy"]:
        torch.testing.assert_close(batch.logit_pretrained, expected)


def test_pretrained_model_may_be_missing(make_ppo, caplog):
    policy = make_ppo(learn={"kl_beta": 0.1})
    assert "kl_beta=0.1 has no effect without" in caplog.text
    assert "kl_div" not in policy.learn_mode.monitor_vars()
    assert "kl_div" not in policy.learn_mode.forward(collect(policy, [64]))[0]


def test_pretrained_model_must_fit(make_ppo, tmp_path):
    path = str(tmp_path / "other.pth.tar")
    save_file(path, {"model": {"weight": torch.zeros(1)}})
    with pytest.raises(CheckpointError, match=r"other\.pth\.tar"):
        make_ppo(learn={"kl_beta": 0.1, "pretrained_model_path": path})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"action_space": "general"}, "'general'; .* 'hybrid'"),
        ({"action_space": "continuous", "model": {"action_space": "discrete"}}, "must be the same"),
        ({"priority": True}, "policy.priority"),
        ({"nstep_return": True}, "policy.nstep_return"),
    ],
)
def test_configs_that_cannot_be(make_ppo, config, message):
    with pytest.raises(ConfigError, match=message):
        make_ppo(**config)


@pytest.mark.parametrize("config", [{}, {**CONTINUOUS, "model": dict(obs_shape=3, action_shape=1)}])
def test_learns_what_pays(make_ppo, config, learned):
    """One-step episodes: the reward is higher for action 1, or for actions near 1."""
    learn = {"learning_rate": 3e-3, "epoch_per_collect": 4}
    policy = make_ppo(seed=learned.seed, **config, learn=learn)
    obs = np.ones((64, 3), np.float32)

    def pays(action):
        return -np.abs(action[:, 0] - 1) if config else action

    for _ in range(25):
        policy.learn_mode.forward(collected(policy, obs, pays, np.ones(64, np.int64)))
    action = policy.eval_mode.batched.forward(obs[:1])["action"].item()
    learned.near([action], [1], 0.2)


class TestSeveralChoices:
    """Actions of K independent choices."""

    SIZES = [3, 2]
    MODEL = dict(obs_shape=3, action_shape=SIZES)

    def samples(self, form=lambda data: data):
        """Four samples whose every number is known."""
        obs = np.arange(12, dtype=np.float32).reshape(4, 3)
        old = np.log(np.array([[0.5, 0.25, 0.25, 0.5, 0.5]] * 4, np.float32))
        return form(
            Columns(
                {
                    "obs": obs,
                    "next_obs": obs,
                    "logit": torch.from_numpy(old),
                    "action": torch.tensor([[0, 0], [0, 1], [2, 0], [1, 1]]),
                    "value": np.zeros(4, np.float32),
                    "adv": np.array([1.0, -1.0, 2.0, -2.0], np.float32),
                    "reward": np.zeros((4, 1), np.float32),
                    "done": np.ones(4, bool),
                    "traj_flag": np.ones(4, bool),
                }
            )
        )

    class Fixed(nn.Module):
        """Probabilities (0.2, 0.2, 0.6) and (0.9, 0.1), value 0."""

        def __init__(self):
            super().__init__()
            probabilities = [[0.2, 0.2, 0.6], [0.9, 0.1]]
            self.logit = nn.ParameterList(
                nn.Parameter(torch.tensor(p).log()) for p in probabilities
            )

        def forward(self, x, mode):
            logit = [part.expand(len(x), -1) for part in self.logit]
            return {"logit": logit, "value": x.sum(-1) * 0}

    def in_lists(self, data):
        """Rows as a network's lists of outputs make them."""
        rows = [dict(row) for row in data]
        for row in rows:
            row["logit"] = list(row["logit"].split(self.SIZES))
            row["action"] = list(row["action"])
        return rows

    @pytest.mark.parametrize("form", ["columns", "rows", "lists"])
    def test_losses_by_hand(self, make_ppo, form):
        form = {"columns": lambda d: d, "rows": list, "lists": self.in_lists}[form]
        learn = dict(ppo_param_init=False, adv_norm=False, value_norm=False, epoch_per_collect=1)
        policy = make_ppo(self.Fixed(), recompute_adv=False, learn=learn)
        log = policy.learn_mode.forward(self.samples(form))[0]
        # Probabilities of whole actions: new over old, clipped to 0.8 .. 1.2.
        new = np.array([0.2 * 0.9, 0.2 * 0.1, 0.6 * 0.9, 0.2 * 0.1])
        old = np.array([0.5, 0.5, 0.25, 0.25]) * 0.5
        adv = np.array([1.0, -1.0, 2.0, -2.0])
        ratio = new / old
        gain = np.minimum(ratio * adv, ratio.clip(0.8, 1.2) * adv)
        entropy = -sum(p * np.log(p) for p in (0.2, 0.2, 0.6, 0.9, 0.1))
        assert log["policy_loss"] == pytest.approx(-gain.mean(), rel=1e-5)
        assert log["entropy_loss"] == pytest.approx(entropy, rel=1e-5)
        assert log["approx_kl"] == pytest.approx(-np.log(ratio).mean(), rel=1e-5)
        assert log["clipfrac"] == 1.0
        assert log["value_loss"] == pytest.approx(0.5 * np.mean(adv**2))

    def test_actions_and_first_ratio(self, make_ppo):
        policy = make_ppo(model=self.MODEL)
        data = collect(policy, [40, 24])
        actions = np.asarray(data.column("action"))
        assert actions.shape == (64, 2)
        assert [set(actions[:, k].tolist()) for k in range(2)] == [{0, 1, 2}, {0, 1}]
        logs = policy.learn_mode.forward(data)
        assert logs[0]["approx_kl"] == pytest.approx(0, abs=1e-6)
        assert logs[-1]["approx_kl"] != 0

    def test_every_choice_is_hardly_decided_at_first(self, make_ppo):
        policy = make_ppo(model=self.MODEL)
        logit = model_of(policy)(torch.randn(50, 3), mode="compute_actor")["logit"]
        assert all(part.std() < 0.05 for part in logit)

    def test_kl_to_a_pretrained_policy(self, make_ppo, tmp_path):
        path = str(tmp_path / "policy.pth.tar")
        save_file(path, {"model": model_of(make_ppo(model=self.MODEL)).state_dict()})
        learn = {"kl_beta": 0.1, "pretrained_model_path": path}
        policy = make_ppo(model=self.MODEL, learn=learn)
        logs = policy.learn_mode.forward(collect(policy, [40]))
        assert np.isfinite(logs[-1]["kl_div"])
