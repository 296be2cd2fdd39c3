"""N-step windows and advantages, over columns and over rows, against each other and by hand."""

import numpy as np
import pytest
import torch

from ding.rl_utils import Adder, gae_columns, get_gae, get_nstep_return_data, nstep_columns

LENGTHS = np.array([5, 1, 7, 3])
TOTAL = int(LENGTHS.sum())
STARTS = np.cumsum(LENGTHS) - LENGTHS


def columns(seed: int = 0) -> dict[str, np.ndarray]:
    """Four trajectories: the first and third terminate, the second and last are cut."""
    rng = np.random.default_rng(seed)
    done = np.zeros(TOTAL, dtype=bool)
    done[[4, 12]] = True
    names = ("value", "next_value", "reward")
    return {
        **{name: rng.normal(size=TOTAL).astype(np.float32) for name in names},
        "done": done,
        "next_obs": rng.normal(size=(TOTAL, 2)).astype(np.float32),
    }


def rows_of(data: dict[str, np.ndarray], start: int, length: int) -> list[dict]:
    return [
        {
            "reward": torch.tensor([data["reward"][i]]),
            "next_obs": data["next_obs"][i],
            "done": bool(data["done"][i]),
        }
        for i in range(start, start + length)
    ]


@pytest.mark.parametrize("nstep", [1, 2, 3, 10])
def test_nstep_columns_equal_rows(nstep: int) -> None:
    data = columns()
    got = nstep_columns(data["reward"], data["done"], data["next_obs"], LENGTHS, nstep, 0.9)
    assert got["reward"].shape == (TOTAL, nstep)
    assert got["reward"].dtype == got["value_gamma"].dtype == np.float32
    assert got["next_index"].dtype == np.int64
    for start, length in zip(STARTS, LENGTHS):
        rows = get_nstep_return_data(rows_of(data, start, length), nstep, gamma=0.9)
        for offset, row in enumerate(rows):
            index = start + offset
            np.testing.assert_allclose(got["reward"][index], row["reward"].reshape(-1))
            np.testing.assert_array_equal(
                data["next_obs"][got["next_index"][index]], row["next_obs"]
            )
            assert got["done"][index] == row["done"]
            assert got["value_gamma"][index] == pytest.approx(row.get("value_gamma", 0.9))


def test_nstep_columns_by_hand() -> None:
    got = nstep_columns(
        np.array([1.0, 2.0, 3.0, 4.0]),
        np.array([False, False, True, False]),
        None,
        np.array([3, 1]),
        2,
        0.5,
    )
    assert got["reward"].tolist() == [[1, 2], [2, 3], [3, 0], [4, 0]]
    assert got["next_index"].tolist() == [1, 2, 2, 3]
    assert got["done"].tolist() == [False, True, True, False]
    assert got["value_gamma"].tolist() == [0.25, 0.25, 0.5, 0.5]


def test_window_stops_at_an_episode_that_ends_within_a_trajectory() -> None:
    done = np.array([False, True, False, False])
    got = nstep_columns(np.ones((4, 1)), done, None, np.array([4]), 3, 0.5)
    assert got["reward"].sum(1).tolist() == [2, 1, 2, 1]
    assert got["next_index"].tolist() == [1, 1, 3, 3]
    rows = [{"reward": 1.0, "next_obs": i, "done": bool(d)} for i, d in enumerate(done)]
    assert [row["next_obs"] for row in get_nstep_return_data(rows, 3)] == [1, 1, 3, 3]


def naive_gae(data: dict[str, np.ndarray], gamma: float, lambda_: float) -> np.ndarray:
    adv = np.zeros(TOTAL)
    for start, length in zip(STARTS, LENGTHS):
        carry = 0.0
        for i in reversed(range(start, start + length)):
            alive = 1 - data["done"][i]
            delta = data["reward"][i] + gamma * alive * data["next_value"][i] - data["value"][i]
            carry = delta + gamma * lambda_ * alive * carry
            adv[i] = carry
    return adv


@pytest.mark.parametrize("lambda_", [0.0, 0.95, 1.0])
def test_gae_columns_equal_a_loop(lambda_: float) -> None:
    data = columns(1)
    names = ("value", "next_value", "reward", "done")
    before = {name: data[name].copy() for name in names}
    got = gae_columns(*(data[name] for name in names), LENGTHS, 0.99, lambda_)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, naive_gae(data, 0.99, lambda_), rtol=1e-5, atol=1e-6)
    for name in names:
        np.testing.assert_array_equal(data[name], before[name])


@pytest.mark.parametrize("shape", [(), (1,)])
def test_row_gae_equals_columns(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    value = rng.normal(size=6).astype(np.float32)
    reward = rng.normal(size=5).astype(np.float32)
    rows = [
        {
            "value": torch.full(shape, float(value[i])),
            "reward": torch.tensor([reward[i]]),
            "done": False,
        }
        for i in range(5)
    ]
    got = get_gae(rows, torch.full(shape, float(value[5])), 0.9, 0.8, cuda=False)
    want = gae_columns(value[:-1], value[1:], reward, np.zeros(5), np.array([5]), 0.9, 0.8)
    np.testing.assert_allclose([row["adv"].item() for row in got], want, rtol=1e-5)
    assert "adv" not in rows[0]


def test_row_gae_with_values_per_agent() -> None:
    rows = [{"value": torch.tensor([1.0, 2.0]), "reward": 1.0} for _ in range(3)]
    got = Adder.get_gae(rows, torch.zeros(2), 0.9, 0.8, False)
    assert got[0]["adv"].shape == (2,)
    single = Adder.get_gae(
        [{"value": torch.tensor(2.0), "reward": 1.0} for _ in range(3)], torch.zeros(()), 0.9, 0.8
    )
    assert got[0]["adv"][1].item() == pytest.approx(single[0]["adv"].item())


def test_default_last_value_is_zero_at_the_end_and_the_last_rows_otherwise() -> None:
    rows = [{"value": torch.tensor([float(i)]), "reward": torch.tensor([1.0])} for i in range(3)]
    ended = Adder.get_gae_with_default_last_value(rows, True, 0.5, 0.0, False)
    assert [row["adv"].item() for row in ended] == [1.5, 1.0, -1.0]
    cut = Adder.get_gae_with_default_last_value(rows, False, 0.5, 0.0, False)
    assert [row["adv"].item() for row in cut] == [1.5, 1.0]
    assert len(rows) == 3


@pytest.mark.parametrize("own_rewards", [False, True])
def test_gae_of_agents_is_that_of_each(own_rewards: bool) -> None:
    rng = np.random.default_rng(0)
    lengths, done = np.array([4, 1, 5]), rng.random(10) < 0.3
    value, next_value, reward = rng.normal(size=(3, 10, 3))
    if not own_rewards:
        reward = reward[:, 0]
    got = gae_columns(value, next_value, reward, done, lengths, 0.9, 0.8)
    assert got.shape == (10, 3)
    for agent in range(3):
        own = reward[:, agent] if own_rewards else reward
        args = value[:, agent], next_value[:, agent], own, done, lengths, 0.9, 0.8
        np.testing.assert_allclose(got[:, agent], gae_columns(*args), rtol=1e-6)
