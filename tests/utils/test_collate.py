from collections import namedtuple

import numpy as np
import pytest
import torch

from ding.data.columns import Columns
from ding.utils.data import (
    default_collate,
    default_decollate,
    diff_shape_collate,
    timestep_collate,
)
from ding.utils.errors import DataError

Pair = namedtuple("Pair", ["left", "right"])


@pytest.mark.parametrize(
    ("samples", "dtype", "shape"),
    [
        ([torch.zeros(3), torch.ones(3)], torch.float32, (2, 3)),
        ([np.zeros((2, 3)), np.ones((2, 3))], torch.float64, (2, 2, 3)),
        ([np.zeros(4, np.uint8)] * 3, torch.uint8, (3, 4)),
        ([np.float32(1.0), np.float32(2.0)], torch.float32, (2,)),
        ([np.array(1), np.array(2)], torch.int64, (2,)),
        ([np.bool_(True), np.bool_(False)], torch.bool, (2,)),
        ([torch.tensor(1), torch.tensor(2)], torch.int64, (2,)),
        ([1, 2, 3], torch.int64, (3,)),
        ([1, 2.5], torch.float32, (2,)),
        ([True, False], torch.bool, (2,)),
        ([torch.zeros(1)] * 4, torch.float32, (4,)),
        ([np.zeros(1, np.float32)] * 4, torch.float32, (4,)),
    ],
)
def test_leaves_become_tensors(samples, dtype, shape):
    out = default_collate(samples)
    assert out.dtype == dtype
    assert tuple(out.shape) == shape


def test_order_is_kept():
    samples = [np.full((2,), i, np.float32) for i in range(5)]
    assert default_collate(samples)[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_one_dim_leaves_keep_their_dimension_when_asked():
    assert default_collate([torch.zeros(1)] * 4, cat_1dim=False).shape == (4, 1)


def test_structure_is_kept():
    sample = {
        "obs": {"image": np.zeros((2, 2)), "text": "hi"},
        "pair": Pair(torch.ones(2), 1),
        "items": (1, [2.0]),
        "none": None,
        "collate_ignore_raw": [1, 2],
        3: 1,
    }
    out = default_collate([sample, sample])
    assert out["obs"]["image"].shape == (2, 2, 2)
    assert out["obs"]["text"] == ["hi", "hi"]
    assert type(out["pair"]) is Pair
    assert out["pair"].left.shape == (2, 2)
    assert out["items"][0].tolist() == [1, 1]
    assert out["items"][1][0].tolist() == [2.0, 2.0]
    assert out["none"] == [None, None]
    assert out["collate_ignore_raw"] == [[1, 2], [1, 2]]
    assert out[3].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([], "no samples"),
        ([{"a": {"b": torch.zeros(2)}}, {"a": {"b": torch.zeros(3)}}], r"shape of a\.b.*\(2,\)"),
        ([{"a": np.zeros(2)}, {"a": np.zeros(3)}], "shape of a"),
        ([np.zeros(2), np.zeros(1), np.zeros(3)], "shape"),
        ([{"a": 1, "b": 2}, {"a": 1}], r"only some have \['b'\]"),
        ([{"a": 1}, {"a": None}], "type of a"),
        ([{"a": torch.zeros(1)}, {"a": 1.0}], "type of a"),
        ([{"a": np.zeros(1)}, {"a": None}], "type of a"),
        ([{"a": [1, 2]}, {"a": [1]}], "length of a"),
        ([{"a": [1, 2]}, {"a": None}], "type of a"),
        ([{"a": {"b": 1}}, {"a": 1}], "type of a"),
    ],
)
def test_samples_of_unlike_structure_are_refused(samples, message):
    with pytest.raises(DataError, match=message):
        default_collate(samples)


def test_a_row_with_more_keys_than_the_first_is_taken():
    assert set(default_collate([{"a": 1}, {"a": 1, "b": 2}])) == {"a"}


def test_columns_are_taken_without_a_copy():
    obs = torch.arange(6.0).reshape(3, 2)
    reward = np.arange(3, dtype=np.float32).reshape(3, 1)
    columns = Columns({"obs": obs, "reward": reward, "nested": {"x": np.arange(3)}})
    out = default_collate(columns)
    assert columns.is_columnar
    assert out["obs"].data_ptr() == obs.data_ptr()
    assert out["reward"].shape == (3,)
    assert np.shares_memory(out["reward"].numpy(), reward)
    assert out["nested"]["x"].tolist() == [0, 1, 2]
    assert default_collate(columns, cat_1dim=False)["reward"].shape == (3, 1)


def test_columns_that_became_rows_are_collated_with_their_changes():
    columns = Columns({"obs": torch.zeros(3, 2)})
    columns[1]["obs"] = torch.ones(2)
    assert default_collate(columns)["obs"].sum() == 2


def test_timestep_collate_of_states_by_name():
    unroll = {"obs": [torch.ones(4)] * 3, "prev_state": {"h": [0, 1, 2], "c": {"x": [3, 4, 5]}}}
    out = timestep_collate([unroll] * 2)
    assert out["prev_state"][1] == ({"h": 1, "c": {"x": 4}},) * 2


def test_timestep_collate_puts_time_first():
    unroll = {
        "obs": [torch.full((4,), float(t)) for t in range(3)],
        "reward": [torch.zeros(1)] * 3,
        "state": [{"x": torch.zeros(2)}] * 3,
        "prev_state": [("h", t) for t in range(3)],
    }
    out = timestep_collate([unroll] * 5)
    assert out["obs"].shape == (3, 5, 4)
    assert out["obs"][2].unique().item() == 2
    assert out["reward"].shape == (3, 5)
    assert out["state"]["x"].shape == (3, 5, 2)
    assert len(out["prev_state"]) == 3
    assert out["prev_state"][1] == (("h", 1),) * 5
    assert "prev_state" in unroll


def test_diff_shape_collate_keeps_unlike_shapes_as_a_list():
    out = diff_shape_collate(
        [{"a": torch.zeros(2), "b": torch.zeros(1), "c": None}] * 2
        + [{"a": torch.zeros(3), "b": torch.ones(1), "c": None}]
    )
    assert [x.shape for x in out["a"]] == [(2,), (2,), (3,)]
    assert out["b"].shape == (3, 1)
    assert out["c"] == [None] * 3


def test_decollate_undoes_collate():
    batch = {
        "obs": torch.arange(6).reshape(3, 2),
        "value": torch.arange(3),
        "logits": [torch.zeros(3, 2), torch.ones(3, 4)],
        "pair": Pair(np.zeros((3, 2)), np.arange(3)),
        "prev_state": ["a", "b", "c"],
    }
    rows = default_decollate(batch)
    assert len(rows) == 3
    assert rows[2]["obs"].tolist() == [4, 5]
    assert rows[2]["value"].shape == (1,)
    assert [x.shape for x in rows[0]["logits"]] == [(2,), (4,)]
    assert type(rows[1]["pair"]) is Pair
    assert rows[1]["pair"].right.tolist() == [1]
    assert rows[1]["prev_state"] == "b"


def test_decollate_refuses_what_has_no_samples():
    with pytest.raises(DataError, match="ignore"):
        default_decollate({"n": 3})
