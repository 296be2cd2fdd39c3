"""Rows to training samples."""

import pytest
import torch

from ding.rl_utils import get_gae, get_nstep_return_data, get_train_sample


def transitions(count: int, end: bool = True) -> list[dict]:
    return [
        {
            "obs": torch.tensor([float(i)]),
            "next_obs": torch.tensor([float(i + 1)]),
            "action": torch.tensor(i),
            "reward": torch.tensor([float(i + 1)]),
            "done": end and i == count - 1,
        }
        for i in range(count)
    ]


def test_nstep_leaves_the_given_rows_alone() -> None:
    rows = transitions(3)
    got = get_nstep_return_data(rows, 2)
    got[0]["obs"] = None
    assert all(row["reward"].shape == (1,) and "value_gamma" not in row for row in rows)
    assert rows[0]["obs"] is not None


def test_a_cut_trajectory_is_not_done() -> None:
    got = get_nstep_return_data(transitions(3, end=False), 2)
    assert [row["done"] for row in got] == [False] * 3


def test_uncorrected_gamma_is_that_of_a_full_window() -> None:
    got = get_nstep_return_data(transitions(3), 2, correct_terminate_gamma=False, gamma=0.5)
    assert [row["value_gamma"] for row in got] == [0.25] * 3


@pytest.mark.parametrize("reward", [1.0, torch.tensor(1.0), torch.tensor([1.0])])
def test_reward_may_be_a_number_or_a_tensor(reward: object) -> None:
    got = get_nstep_return_data([{"reward": reward, "done": False}] * 2, 2)
    assert got[0]["reward"].tolist() == [1.0, 1.0]
    assert got[0]["reward"].dtype == torch.float32
    assert "next_obs" not in got[0]


def test_nothing_in_nothing_out() -> None:
    assert list(get_nstep_return_data([], 3)) == []
    assert get_gae([], torch.zeros(1), 0.9, 0.9, False) == []
    assert get_train_sample([], 4) == []


def test_unroll_of_one_is_the_row() -> None:
    rows = transitions(3)
    assert get_train_sample(rows, 1) == rows


@pytest.mark.parametrize(
    ("kind", "actions"),
    [
        ("drop", [[0, 1, 2]]),
        ("last", [[0, 1, 2], [2, 3, 4]]),
        ("null_padding", [[0, 1, 2], [3, 4, 0]]),
    ],
)
def test_unrolls(kind: str, actions: list[list[int]]) -> None:
    got = get_train_sample(transitions(5), 3, kind)
    assert [[int(a) for a in unroll["action"]] for unroll in got] == actions


def test_null_rows_are_done_and_without_reward() -> None:
    rows = transitions(2, end=False)
    (unroll,) = get_train_sample(rows, 4, "last")
    assert unroll["done"] == [False, False, True, True]
    assert [reward.item() for reward in unroll["reward"]] == [1, 2, 0, 0]
    given = {**rows[0], "action": torch.tensor(9)}
    (unroll,) = get_train_sample(rows, 3, "null_padding", given)
    assert int(unroll["action"][-1]) == 9


def test_unknown_kind_of_remainder() -> None:
    with pytest.raises(ValueError, match="last_fn_type='pad'"):
        get_train_sample(transitions(3), 2, "pad")
