import copy
import pickle
import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ding.data import Columns, IdColumn, as_columns
from ding.utils.errors import DataError


def make(n=5, start=0):
    return Columns(
        {
            "obs": torch.arange(start, start + 3 * n, dtype=torch.float32).reshape(n, 3),
            "action": torch.arange(n),
            "reward": torch.ones(n, 1),
            "done": np.arange(n) == n - 1,
            "collect_iter": np.full(n, 7),
            "replay_unique_id": IdColumn("buffer", np.arange(n)),
        }
    )


class TestAsRows:
    def test_is_a_list_of_dicts(self):
        data = make(3)
        assert isinstance(data, list)
        assert len(data) == 3
        row = data[2]
        assert torch.equal(row["obs"], torch.tensor([6.0, 7.0, 8.0]))
        assert row["action"].item() == 2
        assert row["reward"].shape == (1,)
        assert row["done"] is True
        assert row["collect_iter"] == 7
        assert row["replay_unique_id"] == "buffer_2"

    def test_a_changed_row_is_never_lost(self):
        data = make(3)
        data[1]["reward"] = "changed"
        assert not data.is_columnar
        assert data[1]["reward"] == "changed"
        assert [row["reward"] for row in data][1] == "changed"
        with pytest.raises(DataError, match="handed out"):
            _ = data.columns

    def test_a_change_reaches_slices_sums_and_copies_as_with_lists(self):
        data = make(4)
        views = [data[1:3], data + make(2), data.copy(), copy.copy(data)]
        data[1]["mark"] = True
        assert not any(view.is_columnar for view in views)
        assert views[0][0]["mark"]
        assert all(view[1]["mark"] for view in views[1:])

    def test_a_change_through_a_slice_reaches_the_whole(self):
        data = make(4)
        data[2:][0]["mark"] = True
        assert data[2]["mark"]

    def test_a_change_after_joined_columns_were_read_is_not_lost(self):
        first = make(2)
        both = first + make(2)
        assert len(both.columns["obs"]) == 4
        first[0]["mark"] = True
        assert both[0]["mark"]

    def test_shuffle_sort_pop_append(self):
        data = make(6)
        random.Random(0).shuffle(data)
        data.sort(key=lambda row: row["action"].item())
        assert [row["action"].item() for row in data] == list(range(6))
        assert data.pop()["action"].item() == 5
        data.append({"action": 9})
        assert len(data) == 6
        assert data[-1] == {"action": 9}

    def test_mixes_with_plain_lists(self):
        assert len([{"a": 1}, *make(2)]) == 3
        assert type([{"a": 1}] + make(2)) is list  # noqa: RUF005
        assert len(make(2) + [{"a": 1}]) == 3  # noqa: RUF005
        assert isinstance(sum([make(2), make(3)], []), Columns)  # noqa: RUF017
        target = []
        target.extend(make(2))
        target += make(2)
        assert len(target) == 4

    @given(st.slices(7), st.slices(7))
    def test_slices_agree_with_lists(self, first, second):
        data, plain = make(7), list(range(7))
        got = [row["action"].item() for row in data[first][second]]
        assert got == plain[first][second]

    @given(st.slices(9))
    def test_slices_of_sums_agree_with_lists(self, index):
        data = make(4) + make(5)
        assert [r["action"].item() for r in data[index]] == [0, 1, 2, 3, 0, 1, 2, 3, 4][index]


class TestAsColumns:
    def test_slices_are_views_and_stay_columnar(self):
        data = make(6)
        part = data[1:5:2]
        assert part.is_columnar
        assert part.columns["action"].tolist() == [1, 3]
        assert part.columns["obs"].data_ptr() == data.columns["obs"][1].data_ptr()
        assert part.columns["replay_unique_id"].tolist() == ["buffer_1", "buffer_3"]

    def test_a_backward_slice(self):
        assert make(4)[::-1].columns["action"].tolist() == [3, 2, 1, 0]

    def test_concat_keeps_columns(self):
        data = Columns.concat([make(2), make(3)])
        data += make(1)
        assert data.is_columnar
        assert data.columns["action"].tolist() == [0, 1, 0, 1, 2, 0]

    def test_parts_with_different_names_are_rows(self):
        data = make(2) + Columns({"obs": np.zeros((1, 3))})
        assert not data.is_columnar
        assert set(data[2]) == {"obs"}

    def test_take_copies(self):
        data = make(4)
        taken = data.take(np.array([3, 3, 0]))
        taken.columns["obs"][0] = -1
        assert data.columns["obs"][3, 0] == 9
        assert taken.columns["obs"][1, 0] == 9

    def test_collated_shares_memory(self):
        data = make(4)
        assert data.collated()["obs"].data_ptr() == data.columns["obs"].data_ptr()
        assert data.collated()["done"].dtype == torch.bool

    def test_pickle_and_deepcopy(self):
        data = make(3)
        again = pickle.loads(pickle.dumps(data))
        assert again.is_columnar
        assert torch.equal(again.columns["obs"], data.columns["obs"])
        deep = copy.deepcopy(data)
        deep.columns["obs"][0] = -1
        assert data.columns["obs"][0, 0] == 0

    def test_nested_observations(self):
        data = Columns({"obs": {"image": np.zeros((2, 4)), "speed": torch.ones(2)}})
        assert data[0]["obs"]["image"].shape == (4,)
        assert data[1]["obs"]["speed"].item() == 1

    def test_unequal_lengths_are_refused(self):
        with pytest.raises(DataError, match="one leading length"):
            Columns({"a": np.zeros(2), "b": np.zeros(3)})


class TestFromRows:
    def test_round_trip(self):
        rows = [
            {"obs": np.ones(3), "action": torch.tensor(i), "done": False, "info": {"x": 1.5}}
            for i in range(3)
        ]
        data = as_columns(rows)
        assert data.is_columnar
        back = data[1]
        assert back["action"].item() == 1
        assert back["done"] is False
        assert back["info"] == {"x": 1.5}
        np.testing.assert_array_equal(back["obs"], np.ones(3))

    @pytest.mark.parametrize(
        "rows",
        [
            [{"a": 1}, {"b": 1}],
            [{"a": 1}, {"a": 1.5}],
            [{"a": np.zeros(2)}, {"a": np.zeros(3)}],
            [{"a": None}, {"a": None}],
            [{"a": "text"}],
            [{"a": [1, 2]}],
            [{"a": np.array([None])}],
            [1, 2],
            [],
        ],
    )
    def test_what_is_not_uniform_stays_rows(self, rows):
        assert as_columns(rows) is None

    def test_error_names_the_column(self):
        with pytest.raises(DataError, match=r"info\.x"):
            Columns.from_rows([{"info": {"x": 1}}, {"info": {"x": "a"}}])


def test_numbers_of_rows_collate_to_float32():
    cols = Columns.from_rows([{"r": 0.5, "x": np.zeros(2), "n": 3}] * 2).collated()
    assert cols["r"].dtype is torch.float32
    assert cols["x"].dtype is torch.float64
    assert cols["n"].dtype is torch.int64
