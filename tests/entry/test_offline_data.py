"""What is made of a data set: batches, steps that follow each other, and clear refusals."""

import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.config.check import Notes
from ding.data import Columns, offline_data_save_type
from ding.data.offline.checks import check_transitions
from ding.data.offline.trajectories import trajectories
from ding.entry.serial_entry_offline import Batches, load_samples, with_nstep
from ding.policy import Policy
from ding.utils import POLICY_REGISTRY
from ding.utils.errors import ConfigError, DataError

ALL = ("obs", "action", "reward", "next_obs", "done")


def numbered(count):
    return Columns({"number": np.arange(count), "obs": torch.arange(count * 2.0).reshape(-1, 2)})


class TestBatches:
    def test_each_sample_once_an_epoch_in_another_order(self):
        batches = Batches(numbered(100), 30, seed=0)
        assert len(batches) == 4
        epochs = [
            [n for k in range(4) for n in batches[4 * epoch + k].column("number").tolist()]
            for epoch in range(2)
        ]
        assert [sorted(epoch) for epoch in epochs] == [list(range(100))] * 2
        assert epochs[0] != epochs[1]
        again = Batches(numbered(100), 30, seed=0)
        assert again[5].column("number").tolist() == batches[5].column("number").tolist()

    def test_transitions_of_other_shapes_are_rows(self):
        batch = Batches([{"obs": torch.zeros(4)}, {"obs": torch.zeros(2)}], 2, seed=0)[0]
        assert sorted(len(row["obs"]) for row in batch) == [2, 4]

    def test_learners_share_an_epoch(self, monkeypatch):
        shares = []
        monkeypatch.setattr("ding.entry.serial_entry_offline.get_world_size", lambda: 3)
        for rank in range(3):
            monkeypatch.setattr("ding.entry.serial_entry_offline.get_rank", lambda rank=rank: rank)
            batches = Batches(numbered(100), 10, seed=0, several=True)
            assert len(batches) == 4
            shares.append([n for k in range(4) for n in batches[k].column("number").tolist()])
        assert [len(share) for share in shares] == [34] * 3
        assert {n for share in shares for n in share} == set(range(100))

    def test_mistakes(self):
        with pytest.raises(DataError, match="holds nothing"):
            Batches([], 2, 0)
        with pytest.raises(ConfigError, match=r"policy\.learn\.batch_size is 0"):
            Batches([{}], 0, 0)


def episodes(lengths, rng, ends=True):
    """Episodes of random numbers, each a list of rows; `ends` says which of them terminate."""
    found = []
    for length in lengths:
        obs = rng.normal(size=(length + 1, 3)).astype(np.float32)
        terminates = ends if isinstance(ends, bool) else bool(rng.random() < 0.5)
        found.append(
            [
                {
                    "obs": obs[t],
                    "next_obs": obs[t + 1],
                    "action": np.array([t]),
                    "reward": np.array([rng.normal()], np.float32),
                    "done": terminates and t == length - 1,
                }
                for t in range(length)
            ]
        )
    return found


def interleaved(found, streams):
    """Rows as several environments give them in turn."""
    queues = [[row for episode in found[i::streams] for row in episode] for i in range(streams)]
    rows = []
    while any(queues):
        rows += [queue.pop(0) for queue in queues if queue]
    return rows


class TestTrajectories:
    @pytest.mark.parametrize("streams", [1, 3])
    def test_steps_find_each_other(self, streams):
        found = episodes([4, 1, 7, 2, 5, 3], np.random.default_rng(0), ends=None)
        data = Columns.from_rows(interleaved(found, streams))
        order, lengths = trajectories(data)
        assert sorted(order.tolist()) == list(range(22))
        assert sorted(lengths.tolist()) == [1, 2, 3, 4, 5, 7]
        rewards = {tuple(float(row["reward"][0]) for row in episode) for episode in found}
        got = np.split(data.column("reward")[order, 0], np.cumsum(lengths)[:-1])
        assert {tuple(part.tolist()) for part in got} == rewards

    def test_nothing_follows_an_end(self):
        # The next episode begins where the last one ended.
        obs = np.zeros((4, 1), np.float32)
        data = Columns({"obs": obs, "next_obs": obs, "done": np.array([False, True, False, False])})
        order, lengths = trajectories(data)
        assert order.tolist() == [0, 1, 2, 3]
        assert lengths.tolist() == [2, 2]

    def test_observations_of_several_arrays_and_odd_sizes(self):
        rng = np.random.default_rng(0)
        parts = {"a": rng.integers(9, size=(6, 3)).astype(np.uint8), "b": rng.normal(size=(6, 1))}
        data = Columns(
            {
                "obs": {name: part[:5] for name, part in parts.items()},
                "next_obs": {name: part[1:] for name, part in parts.items()},
                "done": np.zeros(5, bool),
            }
        )
        assert trajectories(data)[1].tolist() == [5]


class TestNstep:
    @pytest.mark.parametrize("streams", [1, 2])
    def test_as_a_loop_makes_them(self, streams):
        gamma, nstep = 0.9, 3
        found = episodes([5, 2, 1, 4], np.random.default_rng(1), ends=None)
        data = Columns.from_rows(interleaved(found, streams))
        made = {row["obs"].tobytes(): row for row in with_nstep(data, nstep, gamma)}
        assert len(made) == 12
        for episode in found:
            for t, row in enumerate(episode):
                window = episode[t : t + nstep]
                expected = [float(one["reward"][0]) for one in window] + [0.0] * (
                    nstep - len(window)
                )
                got = made[row["obs"].tobytes()]
                assert got["reward"].tolist() == pytest.approx(expected)
                assert np.array_equal(got["next_obs"], window[-1]["next_obs"])
                assert got["done"] == window[-1]["done"]
                assert got["value_gamma"] == pytest.approx(gamma ** len(window))
                assert got["action"].tolist() == [t]

    def test_data_of_n_steps_stays(self):
        data = Columns({"reward": np.zeros((4, 3)), "obs": np.zeros((4, 1))})
        assert with_nstep(data, 3, 0.9) is data
        with pytest.raises(DataError, match=r"are of 3 steps, and policy\.nstep=1: expected 1 or"):
            with_nstep(data, 1, 0.9)


def good(**changed):
    columns = {
        "obs": np.zeros((5, 3), np.float32),
        "next_obs": np.zeros((5, 3), np.float32),
        "action": np.array([0, 1, 2, 1, 0]),
        "reward": np.zeros((5, 1), np.float32),
        "done": np.zeros(5, bool),
        **changed,
    }
    return Columns({name: column for name, column in columns.items() if column is not None})


DISCRETE = {"model": {"obs_shape": 3, "action_shape": 3}}
CONTINUOUS = {"model": {"obs_shape": [3], "action_shape": 2, "action_space": "regression"}}


def with_value(shape, at, value):
    array = np.zeros(shape, np.float32)
    array[at] = value
    return array


class TestChecks:
    def test_good_data_passes(self):
        check_transitions(good(), ALL, DISCRETE, "it")
        check_transitions(good(action=np.ones((5, 2))), ALL, CONTINUOUS, "it")
        check_transitions(good(action=torch.ones(5, 2)), ALL, CONTINUOUS, "it")
        # What is not needed may be anything.
        check_transitions(good(reward=None, done=None), ("obs", "action"), DISCRETE, "it")

    @pytest.mark.parametrize(
        ("policy", "changed", "words"),
        [
            (
                DISCRETE,
                {"reward": None, "done": None},
                "it has no 'reward', 'done'; expected obs, act",
            ),
            (
                DISCRETE,
                {"obs": np.zeros((5, 4))},
                r"'obs' of it has the shape \[4\]; expected \[3\]",
            ),
            (
                DISCRETE,
                {"next_obs": np.zeros((5, 1, 3))},
                r"'next_obs' .* \[1, 3\]; expected \[3\]",
            ),
            (
                DISCRETE,
                {"obs": with_value((5, 3), (3, 1), np.nan)},
                r"'obs' of it has NaN .* in 1 of 5 .* number 3: \[0, nan, 0\]",
            ),
            (DISCRETE, {"reward": with_value((5, 1), 2, np.inf)}, r"'reward' .* number 2: \[inf\]"),
            (
                DISCRETE,
                {"obs": {"a": with_value((5, 3), 1, np.nan)}},
                r"'obs\.a' of it has NaN .* in 1 of 5",
            ),
            (
                DISCRETE,
                {"action": np.array([0, 1, 3, 0, -1])},
                "no index of .* in 2 of 5 .* number 2: 3; expected whole numbers from 0 to 2",
            ),
            (DISCRETE, {"action": np.array([0, 0.5, 1, 0, 0])}, "number 1: 0.5; expected whole"),
            (DISCRETE, {"action": np.zeros((5, 2))}, r"shape \[2\]; expected 1 numbers, by policy"),
            (
                {"model": {"obs_shape": 3, "action_shape": [2, 3]}},
                {"action": np.array([[0, 2], [1, 2], [2, 0], [0, 0], [0, 0]])},
                "number 2: 2; expected whole numbers from 0 to 1",
            ),
            (CONTINUOUS, {"action": np.zeros(5)}, r"shape \[\]; expected 2 numbers"),
            (
                CONTINUOUS,
                {"action": with_value((5, 2), (4, 1), 1.5)},
                r"out of bounds in 1 of 5 .* number 4: \[0, 1.5\]; expected numbers in \[-1, 1\]",
            ),
            (
                {"continuous": True, "model": {"action_shape": 1}},
                {"action": np.full((5, 1), -2.0)},
                r"out of bounds in 5 of 5 .* \[-2\]",
            ),
        ],
    )
    def test_what_is_wrong_is_named(self, policy, changed, words):
        with pytest.raises(DataError, match=words):
            check_transitions(good(**changed), ALL, policy, "it")

    def test_rows_of_other_shapes(self):
        rows = [{"obs": 1, "action": 1}, {"obs": 2}]
        with pytest.raises(DataError, match="item 1 of it has no 'action'"):
            check_transitions(rows, ("obs", "action"), DISCRETE, "it")


class TestPoliciesFromElsewhere:
    def load(self, data, type_, learn=None, **policy):
        offline_data_save_type(data, "demo.pkl")
        section = dict(type=type_, learn=learn or {}, collect=dict(data_path="demo.pkl"), **policy)
        return load_samples(EasyDict(env={}, policy=section), Notes())

    def test_their_columns_are_their_own(self):
        @POLICY_REGISTRY.register("of_goals", force_overwrite=True)
        class OfGoals(Policy):
            pass

        data = Columns({"goal": torch.full((3, 2), np.nan), "reward": torch.zeros(3, 2)})
        assert self.load(data, "of_goals").columns.keys() == {"goal", "reward"}
        with pytest.raises(DataError, match="'next_obs', 'done'; expected obs, action, reward"):
            self.load(good(next_obs=None, done=None), "dqn", **DISCRETE)

    @pytest.mark.parametrize(
        ("type_", "learn"), [("dqn", {}), ("td3", {"discount_factor": 0.5}), ("bc", {})]
    )
    def test_the_discount_factor_stands_where_the_policy_has_it(self, type_, learn):
        is_vector = type_ == "td3"
        changed = {"action": np.ones((5, 2))} if is_vector else {}
        data = good(obs=np.arange(15, dtype=np.float32).reshape(5, 3), **changed)
        kind = CONTINUOUS if is_vector else DISCRETE
        samples = self.load(data, type_, learn=learn, nstep=2, discount_factor=0.9, **kind)
        assert samples.column("value_gamma")[0] == pytest.approx(0.5 if learn else 0.9)

    def test_rewards_of_several_agents(self):
        data = good(reward=np.zeros((5, 3), np.float32))
        samples = self.load(data, "discrete_sac", multi_agent=True)
        assert samples.column("reward").shape == (5, 3)
