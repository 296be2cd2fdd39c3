"""Batches for learning, and acting in a single environment."""

from collections import deque

import numpy as np
import pytest
import torch

from ding.data import Columns, IdColumn
from ding.policy import (
    default_preprocess_learn,
    sample_columns,
    set_noise_mode,
    single_env_forward_wrapper,
)
from ding.utils.errors import ConfigError, DataError
from ding.worker import create_buffer
from tests.policy.attributes import model_of


def make_rows(n=4, nstep=1):
    return [
        {
            "obs": torch.full((3,), float(i)),
            "next_obs": torch.full((3,), i + 1.0),
            "action": torch.tensor([i % 2]),
            "reward": torch.full((nstep,), float(i)),
            "done": i == n - 1,
            "IS": 0.5,
            "replay_unique_id": f"buffer_{i}",
            "prev_state": None,
        }
        for i in range(n)
    ]


def make_columns(n=4, nstep=1):
    rows = [
        {k: v for k, v in row.items() if k not in ("replay_unique_id", "prev_state")}
        for row in make_rows(n, nstep)
    ]
    return Columns.from_rows(rows)


@pytest.mark.parametrize("make", [make_rows, make_columns])
def test_shapes_of_one_step_samples(make):
    batch = default_preprocess_learn(make())
    assert batch["obs"].shape == batch["next_obs"].shape == (4, 3)
    assert batch["reward"].tolist() == [0, 1, 2, 3]
    assert batch["done"].tolist() == [0, 0, 0, 1]
    assert batch["done"].dtype == torch.float32
    assert batch["action"].tolist() == [0, 1, 0, 1]
    assert batch["weight"] is None


@pytest.mark.parametrize("make", [make_rows, make_columns])
def test_nstep_rewards_come_in_time_first(make):
    batch = default_preprocess_learn(make(nstep=3), use_nstep=True)
    assert batch["reward"].shape == (3, 4)
    assert batch["reward"][:, 2].tolist() == [2, 2, 2]
    assert default_preprocess_learn(make(), use_nstep=True)["reward"].shape == (1, 4)


def test_ignore_done():
    assert default_preprocess_learn(make_rows(), ignore_done=True)["done"].tolist() == [0] * 4


@pytest.mark.parametrize("make", [make_rows, make_columns])
def test_weights(make):
    batch = default_preprocess_learn(make(), use_priority=True, use_priority_IS_weight=True)
    assert batch["weight"].tolist() == [0.5] * 4
    assert batch["weight"].dtype == torch.float32
    with pytest.raises(ConfigError, match=r"policy\.priority=True"):
        default_preprocess_learn(make(), use_priority_IS_weight=True)


@pytest.mark.parametrize("make", [make_rows, make_columns])
def test_weights_of_either_name(make):
    data = [{**row, "priority_IS": 0.25} for row in make()]
    batch = default_preprocess_learn(data, use_priority=True, use_priority_IS_weight=True)
    assert batch["weight"].tolist() == [0.25] * 4


@pytest.mark.parametrize("container", [list, tuple, deque])
def test_any_sequence_of_rows(container):
    batch = default_preprocess_learn(container(make_rows()))
    assert batch["reward"].tolist() == [0, 1, 2, 3]


def test_missing_weights_name_the_buffer():
    rows = [{k: v for k, v in row.items() if k != "IS"} for row in make_rows()]
    with pytest.raises(DataError, match="advanced"):
        default_preprocess_learn(rows, use_priority=True, use_priority_IS_weight=True)


def test_columns_are_shared_not_copied():
    columns = make_columns()
    batch = default_preprocess_learn(columns)
    assert batch["obs"].data_ptr() == columns.column("obs").data_ptr()
    assert columns.is_columnar


def test_bytes_and_doubles_become_float32():
    for dtype in (torch.uint8, torch.float64):
        columns = make_columns()
        columns = columns.with_columns(obs=columns.column("obs").to(dtype))
        assert default_preprocess_learn(columns)["obs"].dtype == torch.float32


def test_bytes_become_floats_on_the_device_asked_for():
    columns = make_columns().with_columns(replay_unique_id=IdColumn("buffer_", np.arange(4)))
    columns = columns.with_columns(obs=columns.column("obs").to(torch.uint8))
    batch = default_preprocess_learn(columns, use_nstep=True, device="meta")
    assert {batch[name].device.type for name in ("obs", "action", "reward", "done")} == {"meta"}
    assert batch["obs"].dtype == torch.float32
    assert isinstance(batch["replay_unique_id"], IdColumn)


def test_float_action_of_one_dimension_keeps_it():
    rows = [{**row, "action": torch.tensor([0.5])} for row in make_rows()]
    assert default_preprocess_learn(rows)["action"].shape == (4, 1)


def test_batch_that_is_already_a_dict():
    batch = default_preprocess_learn(make_columns().collated())
    assert batch["reward"].shape == (4,)


def test_rows_that_do_not_stack_are_collated():
    rows = [{**row, "note": (1, 2)} for row in make_rows()]
    batch = default_preprocess_learn(rows)
    assert batch["obs"].shape == (4, 3)
    assert batch["action"].shape == (4,)


def test_refusals():
    with pytest.raises(DataError, match="empty batch"):
        default_preprocess_learn([])
    with pytest.raises(DataError, match="must be dicts, got int"):
        default_preprocess_learn([1, 2])
    with pytest.raises(DataError, match=r"\['reward'\]"):
        default_preprocess_learn([{"obs": torch.zeros(1), "done": False}])


def test_single_env_forward(make_dqn, make_ppo):
    policy = make_dqn()
    act = single_env_forward_wrapper(policy.eval_mode.forward)
    for obs in (np.ones(3, np.float32), torch.ones(3), [1.0, 1.0, 1.0]):
        action = act(obs)
        assert isinstance(action, np.ndarray)
        assert action.shape == ()
        assert int(action) in (0, 1)
    continuous = make_ppo(action_space="continuous", model=dict(obs_shape=3, action_shape=1))
    action = single_env_forward_wrapper(continuous.eval_mode.forward)(np.ones(3, np.float32))
    assert action.shape == (1,)
    assert action.dtype == np.float32


def test_set_noise_mode(make_dqn):
    model = model_of(make_dqn(noisy_net=True))
    obs = torch.ones(1, 3)

    def differs():
        return not torch.equal(model(obs)["logit"], model(obs)["logit"])

    set_noise_mode(model, True)
    assert differs()
    set_noise_mode(model, False)
    assert not differs()


def test_samples_reach_a_buffer_without_being_made_tensors(monkeypatch):
    obs = np.arange(6, dtype=np.float32).reshape(3, 2)
    columns = {"obs": {"a": obs}, "action": np.arange(3), "done": np.zeros(3, bool)}
    samples = sample_columns({**columns, "collect_iter": np.full(3, 4)})
    buffer = create_buffer({"type": "advanced", "replay_buffer_size": 4})
    with monkeypatch.context() as patch:
        for owner, name in ((torch, "from_numpy"), (torch.Tensor, "numpy")):
            patch.setattr(owner, name, lambda *_: pytest.fail("a column was converted"))
        buffer.push(samples, 0)
    samples.columns["obs"]["a"][0] = 7  # the buffer has a copy
    for rows in (samples, sorted(buffer.sample(3, 6), key=lambda row: int(row["action"]))):
        assert [type(rows[0]["obs"]["a"]), rows[0]["action"].shape] == [torch.Tensor, (1,)]
        assert [rows[2]["obs"]["a"].tolist(), rows[2]["done"]] == [[4, 5], False]
    assert (float(obs[0, 0]), rows[0]["obs"]["a"].tolist(), rows[0]["staleness"]) == (7, [0, 1], 2)
    buffer.close()


@pytest.mark.parametrize("column", [np.array([None, 1, 2]), np.array(["a", "b", "c"])])
def test_samples_that_are_no_numbers_are_refused(column):
    with pytest.raises(DataError, match="expected numbers"):
        sample_columns({"obs": np.zeros((3, 2)), "name": column})
