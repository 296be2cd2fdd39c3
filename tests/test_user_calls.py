"""Calls of small helpers as users' tests make them, with what they return."""

from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding import rl_utils
from ding.envs import BaseEnvManager, DingEnvWrapper
from ding.envs.env import check_array_space
from ding.league import (
    BattleSharedPayoff,
    get_elo,
    get_elo_array,
)
from ding.policy.sequences import sequence_batch
from ding.rl_utils.ppo import ppo_data, shape_fn_ppo
from ding.torch_utils.math_helper import cov
from ding.torch_utils.network import build_activation
from ding.utils import build_logger
from ding.utils.data import default_decollate
from ding.utils.default_helper import RunningMeanStd, get_shape0, split_data_generator
from ding.utils.errors import CheckpointError
from ding.worker import (
    AdvancedReplayBuffer,
    BaseLearner,
    EpisodeReplayBuffer,
    InteractionSerialEvaluator,
    NaiveReplayBuffer,
    SampleSerialCollector,
    SequenceReplayBuffer,
)
from ding.worker.collector.base_serial_collector import CachePool
from ding.worker.coordinator.operator_server import OperatorServer


def equal(found, wanted):
    if isinstance(wanted, torch.Tensor):
        return torch.equal(found, wanted)
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(equal(found[k], wanted[k]) for k in wanted)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(equal, found, wanted))
    return found == wanted


FOUR = torch.zeros(4, 3)


@pytest.mark.parametrize(
    "data", [FOUR, [{"a": {"b": FOUR}}], ({"a": FOUR},), {"a": [FOUR, FOUR]}, [FOUR, FOUR],
             [1, 2, 3, 4], ["a", "b", "c", "d"]]
)  # fmt: skip
def test_the_leading_length_is_that_of_the_first_array(data):
    assert get_shape0(data) == 4


@pytest.mark.parametrize(
    ("value", "halves"),
    [
        (torch.arange(4), [torch.arange(2), torch.arange(2, 4)]),
        ([torch.arange(4), torch.zeros(4)], [[torch.arange(2), torch.zeros(2)],
                                             [torch.arange(2, 4), torch.zeros(2)]]),
        ((torch.arange(4),), [[torch.arange(2)], [torch.arange(2, 4)]]),
        ([5, 6, 7, 8], [[5, 6], [7, 8]]),
        ({"x": [1, 2, 3, 4]}, [{"x": [1, 2]}, {"x": [3, 4]}]),
        (["name"], [["name"], ["name"]]),
        (None, [None, None]),
    ],
)  # fmt: skip
def test_batches_are_split_with_what_is_in_them(value, halves):
    data = {"obs": torch.zeros(4, 2), "value": value}
    parts = [part["value"] for part in split_data_generator(data, 2, shuffle=False)]
    assert equal(parts, halves)


def test_states_are_split_as_rows():
    states = [torch.zeros(2), torch.ones(2), torch.zeros(2), torch.ones(2)]
    data = {"obs": torch.zeros(4), "prev_state": states}
    parts = [part["prev_state"] for part in split_data_generator(data, 3, shuffle=False)]
    assert equal(parts, [states[:3], states[3:]])


@pytest.mark.parametrize("number", [2.0, np.float32(2), torch.tensor(2.0), [2.0], [[2.0]]])
def test_running_statistics_take_single_numbers(number):
    statistics = RunningMeanStd(epsilon=0.0)
    statistics.update(number)
    assert statistics.mean == 2


@pytest.mark.parametrize("shared", [3, 2.5, None, "word", np.float32(1), torch.tensor(4)])
def test_one_value_of_a_batch_is_that_of_each_sample(shared):
    rows = default_decollate({"a": torch.arange(2), "b": shared})
    assert equal(rows, [{"a": torch.tensor([i]), "b": shared} for i in range(2)])


def test_covariances_of_lists_and_arrays():
    data, weights = [[1.0, 2.0], [3.0, 5.0], [0.0, 1.0]], [1, 2, 1]
    wanted = torch.from_numpy(np.cov(np.array(data), rowvar=False, aweights=weights))
    assert torch.allclose(cov(data, aweights=weights).double(), wanted)
    found = cov(np.array(data), aweights=np.array(weights, np.float64))
    assert torch.allclose(found, wanted)


def test_activations_by_what_stands_for_them():
    x = torch.tensor([-2.0, 3.0])
    assert torch.equal(build_activation("square")(x), x * x)
    assert torch.equal(build_activation(None)(x), x)
    assert build_activation(module := torch.nn.Tanh()) is module
    assert build_activation("glu")(x).shape == (1,)


def test_log_levels_in_small_letters(tmp_path):
    logger, _ = build_logger(str(tmp_path), "name", need_tb=False, text_level="debug")
    assert logger.level == 10


def test_shapes_of_ppo_losses():
    logit = torch.zeros(4, 6)
    data = ppo_data(logit, *[None] * 8)
    assert shape_fn_ppo([data], {}) == shape_fn_ppo([logit], {}) == [4, 6]
    assert shape_fn_ppo([], {"data": data}) == shape_fn_ppo([], {"logit_new": logit}) == [4, 6]


# ---------------------------------------------------------------------- losses


def test_log_probabilities_of_tokens():
    logits, index = torch.randn(2, 3, 5), torch.tensor([[0, 4, 2], [1, 1, 3]])
    wanted = logits.log_softmax(-1).gather(-1, index.unsqueeze(-1)).squeeze(-1)
    assert torch.allclose(rl_utils.log_prob_utils.efficient_method(logits, index), wanted)


def test_upgoing_returns_follow_what_was_better_than_expected():
    rewards = torch.tensor([[1.0], [5.0], [1.0]])
    values = torch.tensor([[0.0], [2.0], [4.0], [3.0]])
    # Step 1 brings 5 + 4 >= 2, step 2 brings 1 + 3 >= 4: nothing is cut.
    assert rl_utils.upgo.upgo_returns(rewards, values).flatten().tolist() == [10, 9, 4]
    values[2] = 4.5  # more than step 2 brings: its value counts instead
    assert rl_utils.upgo.upgo_returns(rewards, values).flatten().tolist() == [10.5, 9.5, 4]


def test_upgoing_updates_raise_what_was_better_than_expected():
    logit = torch.zeros(2, 1, 3, requires_grad=True)
    action = torch.tensor([[0], [2]])
    rewards, values = torch.tensor([[1.0], [2.0]]), torch.zeros(3, 1)
    rl_utils.upgo_loss(logit, torch.ones(2, 1), action, rewards, values).backward()
    assert logit.grad[0, 0, 0] < 0 < logit.grad[0, 0, 1]
    assert logit.grad[1, 0, 2] < 0 < logit.grad[1, 0, 0]


# ---------------------------------------------------------------------- envs and collectors


class OldSpace:
    """A space of the package gym: the same methods, another class."""

    shape, dtype = (2,), np.dtype(np.float32)

    def contains(self, x):
        return bool((np.abs(x) <= 1).all())


def test_spaces_of_other_packages_are_checked():
    check_array_space(np.zeros(2, np.float32), OldSpace(), "obs")
    with pytest.raises(Exception, match="lies outside"):
        check_array_space(np.full(2, 3, np.float32), OldSpace(), "obs")


@pytest.mark.parametrize("env_id", ["CartPole-v0", "Pendulum-v0", "MountainCar-v0", "Acrobot-v1"])
def test_old_ids_are_made(env_id):
    env = DingEnvWrapper(cfg={"env_id": env_id})
    assert env.reset().dtype == np.float32
    env.close()


def test_a_manager_has_its_reference():
    def make():
        return DingEnvWrapper(gymnasium.make("CartPole-v1"))

    manager = BaseEnvManager([make, make], BaseEnvManager.default_config())
    assert isinstance(manager.env_ref, DingEnvWrapper)
    assert manager._env_ref is manager.env_ref
    manager.launch()
    manager.close()


def test_the_latest_values_come_as_list_or_dict():
    pool = CachePool("obs", 3)
    pool.update([1, 2, 3])
    pool.update({1: 5})
    assert [pool[i] for i in range(3)] == [1, 5, 3]


def test_sequences_without_null_have_no_padding():
    rows = [
        {"obs": torch.zeros(4, 2), "reward": torch.ones(3), "done": torch.zeros(3)}
        for _ in range(2)
    ]
    assert torch.equal(sequence_batch(rows)["mask"], torch.ones(3, 2))


# ---------------------------------------------------------------------- buffers and states


def test_alpha_can_be_changed():
    cfg = EasyDict({**AdvancedReplayBuffer.default_config(), "replay_buffer_size": 4, "alpha": 0.0})
    buffer = AdvancedReplayBuffer(cfg, exp_name="x")
    buffer.push([{"a": i} for i in range(4)], 0)
    batch = buffer.sample(4, 0)
    info = {
        name: [row[name] for row in batch] for name in ("replay_unique_id", "replay_buffer_idx")
    }
    buffer.update({**info, "priority": [1.0 if row["a"] == 2 else 1e-9 for row in batch]})
    assert buffer.alpha == 0
    buffer.alpha = 1.0
    assert {row["a"] for _ in range(5) for row in buffer.sample(3, 0)} == {2}
    buffer.close()


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("https://operator.example:7443", "https://operator.example:7443"),
        ("http://operator.example:80", "http://operator.example:80"),
        ("https://a", "https://a:443"),
    ],
)
def test_an_operator_may_be_an_address(given, address):
    assert OperatorServer(given)._engine.get_url() == f"{address}/v1alpha1"


OLD_STATE = {"data": [None], "use_count": {}, "tail": 0, "max_priority": 1.0, "sum_tree": [0.0]}


@pytest.mark.parametrize(
    "kind", [AdvancedReplayBuffer, NaiveReplayBuffer, SequenceReplayBuffer, EpisodeReplayBuffer]
)
def test_states_of_others_are_refused_by_buffers(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    buffer = kind(EasyDict({**kind.default_config(), "replay_buffer_size": 4}), exp_name="x")
    for state in (OLD_STATE, {}, None):
        with pytest.raises(CheckpointError, match=rf"into {kind.__name__}: it lacks \['ring'"):
            buffer.load_state_dict(state)
    buffer.close()


@pytest.mark.parametrize("kind", [SampleSerialCollector, InteractionSerialEvaluator, BaseLearner])
def test_states_of_others_are_refused_by_workers(kind):
    worker = kind.__new__(kind)
    with pytest.raises(CheckpointError, match="it lacks"):
        worker.load_state_dict({"total_envstep_count": 3})


# ---------------------------------------------------------------------- league


def test_a_player_that_is_known_joins_again():
    payoff = BattleSharedPayoff(EasyDict(type="battle", decay=0.99, min_win_rate_games=1))
    first, again = SimpleNamespace(player_id="a"), SimpleNamespace(player_id="a")
    payoff.add_player(first)
    payoff.add_player(again)
    assert payoff.players == [again]
    payoff.add_player(SimpleNamespace(player_id="b"))
    payoff.update({"player_id": ["a", "b"], "result": [["wins"]]})
    assert payoff[again, SimpleNamespace(player_id="b")].item() == 1


def test_elo():
    assert get_elo(1000, 1000, "wins") == (1016, 984)
    assert get_elo(1200, 1000, "draws") == (1192, 1008)
    rating = get_elo_array(
        np.array([1000, 1000]), np.array([[0, 1], [0, 0]]), np.array([[0, 1], [1, 0]])
    )
    assert rating.tolist() == [1016, 984]
