import bisect
import copy
import dataclasses
import gc
import heapq
import itertools
import json
import operator
import pickle
import random
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from easydict import EasyDict
from hypothesis import given, strategies as st
from torch.utils.data import DataLoader, default_collate

from ding.data import Columns, IdColumn, as_columns
from ding.data.arrays import IndexedColumn, as_tensors
from ding.data.ring import Ring
from ding.utils.errors import DataError
from tests.data.rings import push


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
        views = [data[1:3], data.copy(), copy.copy(data)]
        data[1]["mark"] = True
        assert not any(view.is_columnar for view in views)
        assert views[0][0]["mark"]
        assert all(view[1]["mark"] for view in views[1:])

    def test_a_change_through_a_slice_reaches_the_whole(self):
        data = make(4)
        data[2:][0]["mark"] = True
        assert data[2]["mark"]

    def test_a_change_after_columns_were_read_is_not_lost(self):
        first = make(2)
        part = first[:1]
        assert len(part.columns["obs"]) == 1
        first[0]["mark"] = True
        assert part[0]["mark"]

    def test_a_change_reaches_sums(self):
        first = make(2)
        both = first + make(2)
        both += make(1)
        first[0]["mark"] = True
        assert both[0]["mark"]
        assert len(both) == 5

    def test_adding_to_a_list_in_place_reaches_all_who_hold_it(self):
        held = target = []
        target += make(2)
        assert target is held
        assert len(held) == 2
        assert type(held) is list

    @given(st.slices(7), st.slices(7))
    def test_slices_agree_with_lists(self, first, second):
        data, plain = make(7), list(range(7))
        got = [row["action"].item() for row in data[first][second]]
        assert got == plain[first][second]


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

    @given(st.integers(0, 9))
    def test_apart_from_each_other_rows_of_one_are_no_concern_of_the_other(self, n):
        data = Columns.concat([make(4), make(5)])
        first, others = data.apart()[:n], data[n:]
        for row in first:
            row["action"] = None
        assert others.columns["action"].tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 4][n:]
        list(others)
        with pytest.raises(DataError, match="handed out"):
            others.apart()

    def test_concat_keeps_columns(self):
        parts = [make(2), make(5)[::2], make(3)[1:]]
        data = Columns.concat(parts)
        assert all(one.is_columnar for one in [data, *parts])
        assert data.columns["action"].tolist() == [0, 1, 0, 2, 4, 1, 2]
        assert data.columns["obs"].dtype is torch.float32
        assert data.columns["replay_unique_id"].tolist()[-1] == "buffer_2"
        parts[0][0]["action"] = 9
        assert data.columns["action"][0] == 0
        with pytest.raises(DataError, match="handed out"):
            Columns.concat(parts)

    def test_concat_takes_the_wider_dtype(self):
        parts = [Columns({"r": torch.zeros(1)}), Columns({"r": torch.full((1,), 0.1).double()})]
        assert Columns.concat(parts).columns["r"].dtype is torch.float64

    @pytest.mark.parametrize("indexed", [1, 2])
    def test_concat_keeps_frames_once(self, indexed):
        frames = torch.arange(20.0).reshape(10, 2)
        parts = [IndexedColumn(frames, np.array([1, 1, 8])), IndexedColumn(frames, np.array([3]))]
        parts[indexed:] = [part.gathered() for part in parts[indexed:]]
        data = Columns.concat([Columns({"obs": part}) for part in parts])
        assert data.columns["obs"][:, 0].tolist() == [2, 2, 16, 6]

    @pytest.mark.parametrize(
        "other",
        [
            {"obs": np.zeros((1, 3))},
            {"obs": torch.zeros(1, 3, dtype=torch.bfloat16)},
            {"obs": torch.zeros(1, 4)},
            {"obs": torch.zeros(1, 3), "more": np.zeros(1)},
        ],
    )
    def test_parts_that_differ_in_their_columns_are_rows(self, other):
        data = Columns.concat([Columns({"obs": torch.zeros(2, 3)}), Columns(other)])
        assert not data.is_columnar
        assert data[2].keys() == other.keys()

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
            [{"a": True}, {"a": 1.5}],
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


#: What users' code does with a list of rows, each as a function of it.
LIST_USES = {
    "list": list,
    "tuple": tuple,
    "star": lambda x: [*x],
    "arguments": lambda x: (lambda *rows: list(rows))(*x),
    "add to a list": lambda x: [{"n": -1}] + x,  # noqa: RUF005
    "add a list": lambda x: x + [{"n": -1}],  # noqa: RUF005
    "add itself": lambda x: x + x,
    "add in place": lambda x: operator.iadd([{"n": -1}], x),
    "be added to in place": lambda x: operator.iadd(x, [{"n": -1}]),
    "sum": lambda x: sum([x, x[:2]], []),  # noqa: RUF017
    "multiply": lambda x: x * 2,
    "multiplied": lambda x: 2 * x,
    "slice": lambda x: list(x[1:-1]),
    "slice with step": lambda x: list(x[::2]),
    "empty slice": lambda x: copy.deepcopy(x[3:3]),
    "empty slice of a sum": lambda x: pickle.loads(pickle.dumps((x + x)[4:4])),
    "assign a slice": lambda x: _changed([0] * 6, lambda y: y.__setitem__(slice(1, 3), x)),
    "be assigned a slice": lambda x: _changed(x, lambda y: y.__setitem__(slice(0, 2), [{"n": 9}])),
    "delete": lambda x: _changed(x, lambda y: y.__delitem__(0)),
    "sorted": lambda x: sorted(x, key=lambda row: -row["n"]),
    "sort": lambda x: _changed(x, lambda y: y.sort(key=lambda row: -row["n"])),
    "reverse": lambda x: _changed(x, lambda y: y.reverse()),
    "reversed": lambda x: list(reversed(x)),
    "shuffle": lambda x: _changed(x, random.Random(0).shuffle),
    "sample": lambda x: random.Random(0).sample(x, 3),
    "choice": lambda x: random.Random(0).choice(x),
    "choices": lambda x: random.Random(0).choices(x, k=4),
    "numpy shuffle": lambda x: _changed(x, np.random.default_rng(0).shuffle),
    "numpy array": lambda x: np.array(x, dtype=object).tolist(),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "json": json.dumps,
    "json with indent": lambda x: json.dumps(x, indent=1),
    "deque": lambda x: list(deque(x, maxlen=3)),
    "islice": lambda x: list(itertools.islice(x, 1, 3)),
    "chain": lambda x: list(itertools.chain(x, x)),
    "enumerate": lambda x: dict(enumerate(x)),
    "zip": lambda x: list(zip(x, x[1:])),  # noqa: RUF007
    "max": lambda x: max(x, key=lambda row: row["n"]),
    "heap": lambda x: heapq.nlargest(2, x, key=lambda row: row["n"]),
    "bisect": lambda x: bisect.bisect(x, 2, key=lambda row: row["n"]),
    "itemgetter": lambda x: operator.itemgetter(0, -1)(x),
    "unpack": lambda x: (lambda first, *rest: (rest, first))(*x),
    "match": lambda x: _matched(x),
    "pop": lambda x: (x.pop(), x.pop(0), list(x)),
    "insert": lambda x: _changed(x, lambda y: y.insert(1, {"n": 7})),
    "append": lambda x: _changed(x, lambda y: y.append({"n": 7})),
    "index": lambda x: (x.index(x[2]), x.count(x[2]), x[2] in x, {"n": 99} in x),
    "remove": lambda x: _changed(x, lambda y: y.remove(y[1])),
    "clear": lambda x: _changed(x, lambda y: y.clear()),
    "compare": lambda x: (x == [*x], [*x] == x, x != [*x][:-1], [*x][:-1] != x),
    "truth": lambda x: (bool(x), bool(x[5:]), not x),
    "length": lambda x: (len(x), operator.length_hint(x)),
    "rebuild": lambda x: list(type(x)(dict(row) for row in x)),
    "rebuild empty": lambda x: list(type(x)([])),
    "EasyDict": lambda x: list(EasyDict(data=x).data),
    "dataclass": lambda x: dataclasses.asdict(_Holder(x)),
    "collate": lambda x: default_collate(x)["n"].tolist(),
    "data loader": lambda x: [b["n"].tolist() for b in DataLoader(x, batch_size=2)],
}


@dataclasses.dataclass
class _Holder:
    rows: list


def _changed(rows, change):
    change(rows)
    return list(rows)


def _matched(rows):
    match rows:
        case [first, *rest]:
            return first, len(rest)


class TestListUses:
    def rows(self):
        return [{"n": i, "x": float(i)} for i in range(5)]

    @pytest.mark.parametrize("use", LIST_USES)
    @pytest.mark.parametrize("parts", [1, 2])
    def test_gives_what_a_plain_list_gives(self, use, parts):
        columns = Columns.from_rows(self.rows())
        if parts == 2:
            columns = Columns.concat([columns[:2], columns[2:]])
        assert isinstance(columns, list)
        assert columns.is_columnar
        assert LIST_USES[use](columns) == LIST_USES[use](self.rows())

    def test_threads_that_reach_into_it_find_the_same_rows(self):
        for _ in range(20):
            columns = Columns({"n": np.arange(2000)})
            start = threading.Barrier(4)

            def look(columns=columns, start=start):
                start.wait(10)
                return [id(row) for row in columns]

            with ThreadPoolExecutor(4) as pool:
                found = [pool.submit(look) for _ in range(4)]
                seen = {tuple(one.result()) for one in found}
            assert len(seen) == 1
            assert len(seen.pop()) == 2000


def test_whole_and_real_numbers_share_a_column():
    data = Columns.from_rows([{"r": 1}, {"r": 0.5}, {"r": np.float32(2)}])
    np.testing.assert_array_equal(data.columns["r"], [1, 0.5, 2])


def test_numbers_of_rows_collate_to_float32():
    cols = Columns.from_rows([{"r": 0.5, "x": np.zeros(2), "n": 3}] * 2).collated()
    assert cols["r"].dtype is torch.float32
    assert cols["x"].dtype is torch.float64
    assert cols["n"].dtype is torch.int64


def test_what_a_reader_wrote_is_stored():
    frames = torch.arange(6.0)
    container = Columns({"obs": IndexedColumn(frames, np.array([0, 1, 2]))})
    assert container.stored() is not None
    container.columns["obs"][:] = 7
    ring = Ring(3)
    push(ring, container)
    assert [float(row["obs"]) for row in ring.take(np.arange(3))] == [7, 7, 7]
    assert frames.tolist() == [0, 1, 2, 3, 4, 5]


def test_only_numbers_become_tensors():
    frames = IndexedColumn(np.arange(3.0), np.array([0, 2]))
    tensors = as_tensors({"obs": frames, "mask": np.array([1, 0], np.int8)})
    assert tensors["obs"].gathered().tolist() == [0, 2]
    assert tensors["mask"].dtype is torch.int8
    with pytest.raises(DataError, match="numbers"):
        as_tensors(np.array([None, 1]))


def test_garbage_that_reads_columns_while_others_are_read():
    seen = []

    class Reader:
        def __init__(self):
            self.myself, self.columns = self, make()

        def __del__(self):
            seen.append(len(self.columns.columns["action"]))

    Reader()

    def more():
        gc.collect()
        return {"z": np.arange(2)}

    columns = Columns.trusted({"y": np.arange(2)}, 2, more).columns
    assert [len(column) for column in columns.values()] == [2, 2]
    assert seen == [5]
