"""Reward models that learn from demonstrations, against numbers worked out by hand."""

import copy
import math

import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.data import Columns
from ding.reward_model import Shapes, create_reward_model
from ding.reward_model.demonstrated import RewardNetwork
from ding.utils import REWARD_MODEL_REGISTRY
from ding.utils.errors import ConfigError, DataError
from tests.fakes import Writer

SHAPES = Shapes(2, 3, True)


def model(type_, shapes=SHAPES, tb_logger=None, **changes):
    torch.manual_seed(0)
    np.random.seed(0)
    cls = REWARD_MODEL_REGISTRY.get(type_)
    return cls(EasyDict({**cls.default_config(), **changes}), shapes, "cpu", tb_logger)


def transitions(obs, action=None, **columns):
    obs = np.asarray(obs, np.float32)
    action = np.zeros((len(obs), 1), np.int64) if action is None else np.asarray(action)
    facts = {"reward": np.zeros(len(obs), np.float32), "done": np.zeros(len(obs), bool)}
    return {"obs": obs, "next_obs": obs, "action": action, **facts, **columns}


def answering(one, *outputs):
    """Let a model's network return these in turn."""
    left = [torch.tensor(output, requires_grad=True) for output in outputs]
    one.networks["network"].forward = lambda *inputs: left.pop(0)
    return one


def logged_of_one_batch(type_, own_output, expert_output, **columns):
    """What a model logs that trains on one step of each, with these outputs of its network."""
    writer = Writer()
    settings = dict(update_per_collect=1, batch_size=1)
    mine = model(type_, tb_logger=writer, **settings)
    mine.demonstrate(transitions([[0, 0]]), [1])
    mine.observe(transitions([[0, 0]], **columns), [1])
    answering(mine, [own_output], [expert_output]).train()
    return {name.split("/")[1]: rows[0][1] for name, rows in writer.rows.items()}


def reward_at(one, output):
    """The reward of a step for which the network has this output."""
    return answering(one, [output]).rewarded(transitions([[0, 0]]), [1])[0]["reward"].item()


def test_gail_by_hand():
    """D is 0.8 of an own step and 0.6 of an expert's: -log 0.2 - log 0.6; the reward -log 0.2."""
    logit = math.log(0.8 / 0.2), math.log(0.6 / 0.4)
    logged = logged_of_one_batch("gail", *logit)
    assert logged["loss"] == pytest.approx(-math.log(0.2) - math.log(0.6))
    assert logged["accuracy"] == 0.5
    assert reward_at(model("gail"), logit[0]) == pytest.approx(-math.log(0.2))


def test_guided_cost_by_hand():
    """Cost 1 of the expert's step, 2 of an own one that has the probability 0.5."""
    logit = np.log(np.array([[0.5, 0.3, 0.2]], np.float32))
    loss = logged_of_one_batch("guided_cost", 2.0, 1.0, logit=logit)["loss"]
    assert loss == pytest.approx(1 + math.log((math.exp(-2) / 0.5 + math.exp(-1)) / 2))
    assert reward_at(model("guided_cost"), 2.0) == -2


def test_guided_cost_knows_the_probability_of_own_actions():
    mine = model("guided_cost")
    logit = np.log(np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]], np.float32))
    mine.observe(transitions(np.zeros((2, 2)), [[2], [1]], logit=logit), [2])
    assert mine.networks["recent"].columns["prob"].tolist() == pytest.approx([0.5, 0.3])
    moments = {"mu": np.zeros((1, 1), np.float32), "sigma": np.full((1, 1), 2, np.float32)}
    vectors = transitions(np.zeros((1, 2)), np.full((1, 1), 2, np.float32), logit=moments)
    density = math.exp(-0.5) / (2 * math.sqrt(2 * math.pi))
    mine = model("guided_cost")
    mine.observe(vectors, [1])
    assert mine.networks["recent"].columns["prob"].tolist() == pytest.approx([density])
    # What the policy says itself counts: a density may be of more than a Gaussian.
    vectors["log_prob"] = np.log(np.array([0.7], np.float32))
    mine.observe(vectors, [1])
    assert mine.networks["recent"].columns["prob"].tolist() == pytest.approx([density, 0.7])
    with pytest.raises(ConfigError, match="no 'logit'"):
        mine.observe(transitions(np.zeros((1, 2))), [1])


@pytest.mark.parametrize("type_", ["gail", "guided_cost"])
def test_the_experts_steps_become_better_than_others(type_, learned):
    torch.manual_seed(learned.seed)
    mine = model(type_, update_per_collect=150)
    rng = np.random.default_rng(learned.seed)
    logit = np.zeros((200, 3), np.float32)
    expert = transitions(rng.normal(1, 0.5, (200, 2)), np.full((200, 1), 2))
    own = transitions(rng.normal(-1, 0.5, (200, 2)), np.zeros((200, 1), np.int64), logit=logit)
    mine.demonstrate(expert, np.array([200]))
    mine.collected(own, np.array([200]))
    mine.train(0, 0)
    like_expert, like_own = (
        mine.collected({**one, "logit": logit}, np.array([200]))[0]["reward"].mean()
        for one in (expert, own)
    )
    learned.is_true(like_expert > like_own, f"{like_expert} > {like_own}")


def test_gail_renews_the_rewards_of_single_steps_alone():
    mine = model("gail")
    columns = {"obs": torch.zeros(4, 2), "action": torch.zeros(4, 1, dtype=torch.long)}
    single = Columns({**columns, "reward": torch.full((4, 1), 9.0)})
    assert mine.drawn(single).columns["reward"].shape == (4, 1)
    assert (mine.drawn(single).columns["reward"] != 9).all()
    several = Columns({**columns, "reward": torch.full((4, 2), 9.0)})
    assert (mine.drawn(several).columns["reward"] == 9).all()
    judged = Columns({**columns, "reward": torch.full((4,), 9.0), "adv": torch.zeros(4)})
    assert (mine.drawn(judged).columns["reward"] == 9).all()


def test_trex_by_hand():
    """Sums of 3 and 1: the probability that the first is better is e^3 / (e^3 + e^1)."""
    writer = Writer()
    snippets = dict(min_snippet_length=2, max_snippet_length=2, num_snippets=64)
    mine = model("trex", tb_logger=writer, **snippets)
    mine.networks["network"].forward = lambda obs: obs[:, 0].requires_grad_()
    data = transitions([[1, 0], [2, 0], [0.5, 0], [0.5, 0]], reward=np.array([1, 1, 0, 0]))
    mine.demonstrate(data, np.array([2, 2]))
    ((_, loss),) = writer.rows["reward_model_iter/loss"]
    assert loss == pytest.approx(-math.log(math.e**3 / (math.e**3 + math.e)))


def test_snippets_are_of_their_trajectories_and_the_better_one_begins_no_earlier():
    seen, settings = [], dict(batch_size=64, min_snippet_length=3, max_snippet_length=8)
    mine = model("trex", num_snippets=20 * 64, **settings)
    # The first number of an observation is the number of its transition.
    mine.networks["network"].forward = lambda obs: (
        seen.append(obs[:, 0].numpy().astype(int).reshape(64, -1)) or obs.sum(1).requires_grad_()
    )
    starts, lengths = np.array([0, 10, 30]), np.array([10, 20, 5])
    reward = np.zeros(35)
    reward[starts] = [1, 5, 3]
    mine.demonstrate(transitions([[row, 0] for row in range(35)], reward=reward), lengths)
    assert len(seen) == 40
    for worse, better in zip(seen[::2], seen[1::2]):
        assert worse.shape == better.shape
        assert 3 <= worse.shape[1] <= 8
        of_worse, of_better = (np.searchsorted(starts, one, "right") - 1 for one in (worse, better))
        for which in (of_worse, of_better):
            assert (which == which[:, :1]).all()
        level = np.array([1.0, 5.0, 3.0])
        assert (level[of_worse[:, 0]] < level[of_better[:, 0]]).all()
        begins = (one[:, 0] - starts[which[:, 0]] for one, which in
                  ((worse, of_worse), (better, of_better)))  # fmt: skip
        first, second = begins
        assert (second >= first).all()
        ends = starts + lengths
        assert (worse[:, -1] < ends[of_worse[:, 0]]).all()
        assert (better[:, -1] < ends[of_better[:, 0]]).all()


def pwil(**changes):
    """PWIL with two steps of an expert, at (0, 0) and (4, 0), with equal actions."""
    mine = model("pwil", Shapes(2, 1, False), subsample=1, **changes)
    mine.demonstrate(transitions([[0, 0], [4, 0]], np.zeros((2, 1), np.float32)), np.array([2]))
    return mine


def test_pwil_by_hand():
    """Deviations are 2, 0 and 0, so that the expert's steps are at 0 and 2, and T is 2.

    Of steps at 1 (x = 2) and 0.5 (x = 1), with the weight 1/2 each, the first takes the atom at 0,
    the nearer by order, at the distance 1: c = 1/2. The other one is left the atom at 2: c = 3/4.
    """
    own = transitions([[2, 0], [1, 0]], np.zeros((2, 1), np.float32))
    found, _ = pwil(alpha=3.0, beta=1.0).collected(own, np.array([2]))
    expected = [3 * math.exp(-2 * cost / math.sqrt(3)) for cost in (0.5, 0.75)]
    assert found["reward"].tolist() == pytest.approx(expected)


def test_pwil_divides_a_step_among_atoms():
    """With T = 1 a step has the weight of both atoms: c = 0.5 * 0 + 0.5 * 2; the next has none."""
    own = transitions([[0, 0], [0, 0]], np.zeros((2, 1), np.float32))
    mine = pwil(alpha=1.0, beta=1.0, episode_length=1)
    found, _ = mine.collected(own, np.array([2]))
    assert found["reward"].tolist() == pytest.approx([math.exp(-1 / math.sqrt(3)), 0])


def test_an_episode_of_pwil_goes_on_in_the_next_collection():
    obs, action = np.array([[2, 0], [1, 0], [9, 9]], np.float32), np.zeros((2, 1), np.float32)
    whole = {**transitions(obs[:2], action), "next_obs": obs[1:]}
    expected = pwil().collected(whole, np.array([2]))[0]["reward"]
    parts, mine = [], pwil()
    for row in range(2):
        part = {name: column[row : row + 1] for name, column in whole.items()}
        parts += mine.collected(part, np.array([1]))[0]["reward"].tolist()
    assert parts == expected.tolist()
    ended = {**whole, "done": np.ones(2, bool)}
    mine = pwil()
    for row in (0, 1):
        part = {name: column[row : row + 1] for name, column in ended.items()}
        parts = mine.collected(part, np.array([1]))[0]["reward"].tolist()
    assert parts != expected[1:].tolist()  # a new episode has all weights


def test_pwil_compares_choices_and_uses_each_twentieth_step():
    mine = model("pwil", Shapes(2, 3, True))
    rng = np.random.default_rng(0)
    data = transitions(rng.normal(size=(50, 2)), rng.integers(3, size=(50, 1)))
    mine.demonstrate(data, np.array([30, 20]))
    assert len(mine.state_dict()["kept"]["_atoms"]) == 3  # steps 0 and 20, and 0
    first = {name: column[:1] for name, column in data.items()}
    other = {**first, "action": (first["action"] + 1) % 3}
    rewards = [mine.rewarded(one, np.array([1]))[0]["reward"].item() for one in (first, other)]
    assert rewards[0] > rewards[1]


@pytest.mark.parametrize("type_", ["gail", "trex", "pwil"])
def test_a_custom_loop_hands_over_rows(type_):
    """collect_data, train, estimate and clear_data take rows, and leave those as they are."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "obs": torch.tensor(rng.normal(size=2), dtype=torch.float32),
            "next_obs": torch.zeros(2),
            "action": torch.tensor([number % 3]),
            "reward": torch.tensor([float(number)]),
            "done": number % 10 == 9,
            "extra": number,
        }
        for number in range(40)
    ]
    cfg = EasyDict(type=type_, obs_shape=2, action_shape=3, num_snippets=64, min_snippet_length=1)
    mine = create_reward_model(cfg, "cpu", None)
    mine.load_expert_data(rows)
    mine.collect_data(rows)
    mine.train()
    found = mine.estimate(rows)
    assert [row["reward"].item() for row in rows] == list(range(40))
    assert [row["extra"] for row in found] == list(range(40))
    assert [row["reward"].shape for row in found] == [(1,)] * 40
    assert found[0]["reward"].item() != 0
    mine.clear_data()
    mine.train()  # nothing that is its own is left
    mine.collect_data(rows)
    mine.train()


@pytest.mark.parametrize(("type_", "missing"), [("drex", "noise"), ("gail", "action")])
def test_rows_that_lack_a_column_are_refused(type_, missing):
    obs = np.zeros(2, np.float32)
    row = dict(obs=obs, next_obs=obs, action=np.int64(0), reward=0.0, done=False, noise=0.5)
    del row[missing]
    with pytest.raises(DataError, match=rf"need \['{missing}'\], they have \[.*'done'"):
        model(type_).load_expert_data([row] * 3)
    del row["next_obs"]
    with pytest.raises(DataError, match=r"need \['next_obs'\]"):
        model(type_).collect_data([row] * 3)


@pytest.mark.parametrize("type_", ["trex", "drex"])
def test_ranks_are_learned(type_, learned):
    """The more of the first number a trajectory shows, the better it is ranked."""
    torch.manual_seed(learned.seed)
    rng = np.random.default_rng(learned.seed)
    obs = np.concatenate([rng.normal(level, 0.1, (20, 2)) for level in (-1, 0, 1)])
    data = transitions(obs, reward=np.repeat([1.0, 2.0, 3.0], 20))
    data["noise"] = np.repeat([1.0, 0.5, 0.0], 20)
    mine = model(type_, num_snippets=4000)
    mine.demonstrate(data, np.array([20, 20, 20]))
    rewards = mine.collected(data, np.array([60]))[0]["reward"].reshape(3, 20).mean(1)
    assert (rewards >= 0).all()
    assert (rewards <= 1).all()
    learned.is_true(bool((np.diff(rewards) > 0).all()), str(rewards))


def test_demonstrations_that_no_rank_can_be_learned_from_are_refused():
    data = transitions(np.zeros((20, 2)), reward=np.ones(20))
    with pytest.raises(DataError, match="none better than another"):
        model("trex").demonstrate(data, np.array([10, 10]))
    with pytest.raises(ConfigError, match="serial_pipeline_trex"):
        model("trex").collected(data, np.array([20]))
    with pytest.raises(ConfigError, match="serial_pipeline_gail"):
        model("gail").train(0, 0)


def test_networks_of_images_and_of_vectors_of_actions():
    image = RewardNetwork([3, 64, 64], [16, 16], actions=4)
    assert image(torch.zeros(2, 3, 64, 64), torch.zeros(2, 4)).shape == (2,)
    vector = RewardNetwork(5, [16], actions=2)
    assert vector(torch.zeros(3, 5), torch.zeros(3, 2)).shape == (3,)
    with pytest.raises(ConfigError, match="action_shape"):
        model("gail", Shapes(5, None, False))


@pytest.mark.parametrize("type_", ["gail", "guided_cost", "trex", "drex", "pwil"])
def test_a_state_holds_all(type_):
    rng = np.random.default_rng(0)
    logit = np.zeros((40, 3), np.float32)
    data = transitions(rng.normal(size=(40, 2)), rng.integers(3, size=(40, 1)), logit=logit)
    data["reward"] = np.arange(40, dtype=np.float32)
    data["noise"] = np.repeat([0.0, 1.0], 20)
    one, two = model(type_), model(type_)
    one.demonstrate(data, np.array([20, 20]))
    one.collected(data, np.array([20, 20]))
    one.train(0, 0)
    two.load_state_dict(copy.deepcopy(one.state_dict()))
    for each in (one, two):
        np.random.seed(1)
        each.train(1, 1)
    rewards = [each.collected(data, np.array([20, 20]))[0]["reward"] for each in (one, two)]
    assert np.array_equal(*rewards)
