"""Conversions over nested containers and columns."""

from collections import namedtuple

import numpy as np
import pytest
import torch

from ding.data import Columns
from ding.torch_utils import (
    build_log_buffer,
    get_null_data,
    get_tensor_data,
    one_hot,
    same_shape,
    squeeze,
    tensor_to_list,
    to_device,
    to_dtype,
    to_item,
    to_list,
    to_ndarray,
    to_tensor,
    unsqueeze,
    zeros_like,
)

Pair = namedtuple("Pair", ["left", "right"])


def test_to_tensor_keeps_the_structure() -> None:
    item = {
        "obs": np.ones(3, dtype=np.float32),
        "nested": [np.zeros(2, dtype=np.int64), {"x": 1.5}],
        "pair": Pair(np.ones(1), (1, 2)),
        "none": None,
        "name": "a",
        "flag": True,
        "empty": [],
    }
    got = to_tensor(item)
    assert got["obs"].dtype == torch.float32
    assert got["nested"][0].dtype == torch.int64
    assert got["nested"][1]["x"].shape == ()
    assert isinstance(got["pair"], Pair)
    assert got["pair"].left.dtype == torch.float32
    assert got["pair"].right.tolist() == [1, 2]
    assert (got["none"], got["name"], got["flag"], got["empty"]) == (None, "a", True, [])


def test_to_tensor_shares_memory() -> None:
    array = np.zeros(3, dtype=np.float32)
    tensor = to_tensor(array)
    array[0] = 5
    assert tensor[0] == 5
    assert to_tensor(tensor) is tensor


def test_to_tensor_options() -> None:
    item = {"a": np.ones(2), "b": np.ones(2), "c": 3}
    got = to_tensor(item, dtype=torch.float64, ignore_keys=["b"], transform_scalar=False)
    assert got["a"].dtype == torch.float64
    assert got["b"] is item["b"]
    assert got["c"] == 3


@pytest.mark.parametrize("values", [[1.0, 2.0], [np.float64(1), np.float64(2)]])
def test_to_tensor_of_numbers_is_float32(values: list) -> None:
    assert to_tensor(values).dtype == torch.float32
    assert to_tensor(values[0]).dtype == torch.float32


def test_to_tensor_of_bools() -> None:
    assert to_tensor([True, False]).dtype == torch.bool
    assert to_tensor(np.array([True])).dtype == torch.bool


def test_to_tensor_of_arrays_that_torch_cannot_wrap() -> None:
    frozen = np.arange(3)
    frozen.flags.writeable = False
    assert to_tensor(frozen).tolist() == [0, 1, 2]
    assert to_tensor(np.arange(3)[::-1]).tolist() == [2, 1, 0]


@pytest.mark.parametrize("item", [object(), np.array([None, 1]), {"a": [object()]}])
def test_to_tensor_refuses_what_it_cannot_convert(item: object) -> None:
    with pytest.raises(TypeError, match="to_tensor"):
        to_tensor(item)


def columns() -> Columns:
    return Columns({"obs": np.ones((4, 2), dtype=np.float32), "done": np.zeros(4, dtype=bool)})


def test_columns_are_converted_by_column() -> None:
    data = columns()
    tensors = to_tensor(data)
    assert isinstance(tensors, Columns)
    assert tensors.is_columnar
    assert data.is_columnar
    assert isinstance(tensors.column("obs"), torch.Tensor)
    assert tensors.column("obs").data_ptr() == data.column("obs").ctypes.data
    assert isinstance(to_ndarray(tensors).column("obs"), np.ndarray)
    assert to_device(tensors, "cpu").is_columnar
    assert to_dtype(tensors, torch.float64).column("obs").dtype == torch.float64
    assert isinstance(to_tensor(data, ignore_keys=["obs"]).column("obs"), np.ndarray)


@pytest.mark.parametrize("convert", [to_list, tensor_to_list])
def test_lists_of_columns_are_lists_of_rows(convert) -> None:
    data = to_tensor(columns())
    rows = [{"obs": [1.0, 1.0], "done": False}] * 4
    assert convert(data) == rows
    assert data.is_columnar
    assert convert({"episodes": [data, data]}) == {"episodes": [rows, rows]}


def test_columns_that_became_rows_are_converted_by_row() -> None:
    data = columns()
    data[0]["obs"] = np.zeros(2, dtype=np.float32)
    rows = to_tensor(data)
    assert type(rows) is list
    assert rows[0]["obs"].tolist() == [0, 0]


def test_to_ndarray() -> None:
    tensor = torch.ones(2, requires_grad=True)
    got = to_ndarray({"a": tensor, "b": [1, 2], "c": (torch.zeros(1), None), "d": 1.5, "e": True})
    assert got["a"].tolist() == [1, 1]
    assert got["b"].tolist() == [1, 2]
    assert isinstance(got["c"], tuple)
    assert got["d"] == np.array(1.5)
    assert got["e"] is True
    shared = torch.zeros(2)
    assert to_ndarray(shared).ctypes.data == shared.data_ptr()
    assert to_ndarray(shared, np.float64).dtype == np.float64


def test_to_list_and_tensor_to_list() -> None:
    item = {"a": torch.ones(2), "b": np.ones(2), "c": (torch.tensor(1), "x", None)}
    assert to_list(item) == {"a": [1, 1], "b": [1, 1], "c": (1, "x", None)}
    got = tensor_to_list(item)
    assert got["a"] == [1, 1]
    assert got["b"] is item["b"]


def test_to_item_leaves_out_what_is_no_number() -> None:
    data = {"a": torch.ones(1), "b": np.ones(3), "c": [np.float32(2), torch.ones(2)], "d": "x"}
    assert to_item(data) == {"a": 1, "c": [2], "d": "x"}
    assert to_item(torch.tensor([[3.0]])) == 3
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        to_item(data, ignore_error=False)
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        to_item(np.ones(2))


def test_log_dict_holds_no_tensor() -> None:
    log = build_log_buffer()
    log.update({"loss": torch.tensor(1.0, requires_grad=True), "q": torch.ones(2), "lr": 0.1})
    log["nested"] = {"x": [torch.tensor(2)]}
    assert log == {"loss": 1.0, "q": [1.0, 1.0], "lr": 0.1, "nested": {"x": [2]}}


def test_small_helpers() -> None:
    assert same_shape([torch.ones(2, 3), torch.zeros(2, 3)])
    assert not same_shape([torch.ones(2, 3), torch.zeros(3, 2)])
    data = {"a": torch.ones(2), "b": [torch.ones(1, 2)]}
    assert unsqueeze(data)["b"][0].shape == (1, 1, 2)
    assert squeeze(data)["b"][0].shape == (2,)
    zeros = zeros_like({"h": (torch.ones(2), None), "n": 3, "b": True, "x": np.ones(1)})
    assert zeros["h"][0].tolist() == [0, 0]
    assert (zeros["h"][1], zeros["n"], zeros["b"]) == (None, 0, False)
    grad = torch.ones(1, requires_grad=True) * 2
    assert not get_tensor_data([grad, None])[0].requires_grad


def test_null_data_does_not_share_with_its_template() -> None:
    template = {"obs": torch.ones(2), "done": False, "reward": torch.tensor([1.0])}
    first, second = get_null_data(template, 2)
    assert first["null"]
    assert first["done"]
    assert first["reward"].tolist() == [0.0]
    first["obs"][0] = 9
    assert template["obs"][0] == second["obs"][0] == 1
    assert "null" not in template


def test_one_hot() -> None:
    assert one_hot(torch.tensor([0, 2]), 3).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert one_hot(torch.tensor([[0], [1]]), 2).shape == (2, 1, 2)
    assert one_hot(torch.tensor([0, 2]), 3, num_first=True).shape == (3, 2)
    with pytest.raises(TypeError, match="int"):
        one_hot(1, 3)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError):
        one_hot(torch.tensor([3]), 3)
