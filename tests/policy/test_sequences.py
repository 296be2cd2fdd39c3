"""Trajectories cut into sequences, against a loop that cuts them step by step."""

import numpy as np
import pytest
import torch

from ding.data import Columns, tree_rows
from ding.policy.sequences import (
    sequence_batch,
    sequence_columns,
    sequence_counts,
    sequence_windows,
    stack_states,
)


def trajectories(lengths):
    """Rows whose ``obs`` is 100 * trajectory + step; each next one is one more."""
    step = np.concatenate([np.arange(length) for length in lengths])
    obs = (step + 100 * np.repeat(np.arange(len(lengths)), lengths)).astype(np.float32)
    done = np.zeros(len(obs), bool)
    done[np.cumsum(lengths) - 1] = True
    return {
        "obs": obs[:, None],
        "next_obs": obs[:, None] + 1,
        "action": obs.astype(np.int64),
        "reward": obs + 0.5,
        "done": done,
        "collect_iter": np.full(len(obs), 7),
        "prev_state": {"h": np.stack([obs, -obs], 1)},
    }


def expected(lengths, length, burnin):
    """Per sequence: the steps (None at padding) and the step whose state it begins with."""
    for number, steps in enumerate(lengths):
        names = [100 * number + i for i in range(steps)]
        begins = range(0, max(steps, 1), length)
        for begin in begins:
            begin = max(min(begin, steps - length), 0)
            before = names[begin - burnin : begin] if begin >= burnin else [None] * burnin
            learned = names[begin : begin + length]
            yield (
                before + learned + [None] * (length - len(learned)),
                names[begin - burnin if begin >= burnin else begin],
            )


@pytest.mark.parametrize("lengths", [[1], [4], [5], [8], [3, 12, 1, 4], [9, 2, 30]])
@pytest.mark.parametrize(("length", "burnin"), [(4, 0), (4, 2), (1, 3), (5, 5), (2, 6)])
def test_sequences_hold_every_step(lengths, length, burnin):
    out = sequence_columns(trajectories(lengths), np.array(lengths), length, burnin)
    wanted = list(expected(lengths, length, burnin))
    assert len(out["obs"]) == len(wanted) == sequence_counts(np.array(lengths), length).sum()
    for i, (steps, first) in enumerate(wanted):
        here = [j for j, step in enumerate(steps) if step is not None]
        names = [steps[j] for j in here]
        assert out["null"][i].tolist() == [step is None for step in steps]
        assert out["obs"][i, here, 0].tolist() == names
        assert out["obs"][i, here[-1] + 1, 0] == names[-1] + 1
        assert out["action"][i, here].tolist() == names
        assert out["reward"][i].tolist() == [0 if s is None else s + 0.5 for s in steps]
        ends = [s is not None and s % 100 == lengths[s // 100] - 1 for s in steps]
        assert out["done"][i].tolist() == ends
        assert out["prev_state"]["h"][i].tolist() == [first, -first]
        assert out["collect_iter"][i] == 7
    learned = {s for steps, _ in wanted for s in steps[burnin:] if s is not None}
    assert learned == set(trajectories(lengths)["action"].tolist())


def test_next_observations_of_a_cut_are_those_that_were_seen():
    columns = trajectories([3])
    columns["next_obs"][2] = 55
    out = sequence_columns(columns, np.array([3]), 3)
    assert out["obs"][0, :, 0].tolist() == [0, 1, 2, 55]


def test_dict_observations():
    columns = trajectories([5, 3])
    for name in ("obs", "next_obs"):
        columns[name] = {"a": columns[name], "b": {"c": 2 * columns[name]}}
    out = sequence_columns(columns, np.array([5, 3]), 4, 1)["obs"]
    assert out["a"].shape == (3, 6, 1)
    assert (out["b"]["c"] == 2 * out["a"]).all()


@pytest.mark.parametrize("lengths", [[1], [4], [5], [3, 12, 1, 4], [9, 2, 30]])
@pytest.mark.parametrize("burnin", [0, 3])
def test_without_overlap_each_step_comes_once(lengths, burnin):
    windows = sequence_windows(np.array(lengths), 4, burnin, overlap=False)
    learned, null = windows.rows[:, burnin:], windows.null[:, burnin:]
    assert learned[~null].tolist() == list(range(sum(lengths)))
    assert len(learned) == sequence_counts(np.array(lengths), 4).sum()


def test_padding_points_into_its_own_trajectory():
    windows = sequence_windows(np.array([2, 3]), 4, 1)
    assert windows.rows.tolist() == [[0, 0, 1, 1, 1], [2, 2, 3, 4, 4]]


def samples():
    out = sequence_columns(trajectories([6, 2]), np.array([6, 2]), 4, 1)
    return Columns({name: _tensors(column) for name, column in out.items()})


def _tensors(column):
    if isinstance(column, dict):
        return {name: _tensors(part) for name, part in column.items()}
    return column if column.dtype == bool else torch.from_numpy(column)


@pytest.mark.parametrize("kind", ["columns", "rows", "dict"])
def test_batches_have_time_first(kind):
    data = samples()
    data = {"columns": data, "rows": list(samples()), "dict": samples().collated()}[kind]
    batch = sequence_batch(data)
    assert batch["obs"].shape == (6, 3, 1)
    assert batch["action"].shape == batch["mask"].shape == batch["done"].shape == (5, 3)
    assert batch["mask"][:, 2].tolist() == [0, 1, 1, 0, 0]
    assert batch["obs"][1:4, 2, 0].tolist() == [100, 101, 102]
    assert batch["reward"][:, 0].tolist() == [0, 0.5, 1.5, 2.5, 3.5]
    assert batch["done"].sum() == 2
    assert batch["prev_state"]["h"].shape == (3, 2)
    assert batch["weight"] is None
    assert sequence_batch(samples(), ignore_done=True)["done"].sum() == 0


def test_batches_without_null_have_no_padding():
    data = samples().columns
    del data["null"]
    assert bool((sequence_batch(Columns(data))["mask"] == 1).all())


def test_states_there_and_back():
    states = [{"h": torch.full((1, 2), i), "c": torch.full((3,), -i)} for i in (1.0, 2.0)]
    stacked = stack_states([states[0], None, states[1]], like=states[0])
    assert stacked["h"].shape == (3, 1, 2)
    back = tree_rows(stacked)
    assert torch.equal(back[2]["c"], states[1]["c"])
    assert back[1]["h"].abs().sum() == 0
