"""Prioritised replay: ids, weights, limits, monitors, bad input."""

import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.data import Columns, IdColumn
from ding.utils.errors import DataError
from ding.worker import AdvancedReplayBuffer
from ding.worker.replay_buffer.advanced_buffer import to_positive_index
from tests.fakes import Writer

INF = float("inf")


@pytest.fixture
def make():
    made = []

    def build(size=16, writer=None, name="buffer", **cfg):
        cfg = EasyDict(replay_buffer_size=size, **cfg)
        made.append(AdvancedReplayBuffer(cfg, writer, instance_name=name))
        return made[-1]

    yield build
    for buffer in made:
        buffer.close()


def columns(start, stop, **more):
    n = np.arange(start, stop)
    return Columns({"obs": torch.from_numpy(n.astype(np.float32)), "collect_iter": n, **more})


def rows(start, stop):
    return [{"obs": torch.tensor(float(i)), "collect_iter": i} for i in range(start, stop)]


def objects(start, stop):
    return [{"obs": f"text {i}", "collect_iter": i} for i in range(start, stop)]


def all_of(buffer, cur_iter=100):
    """Every item once, keyed by `collect_iter`."""
    batch = buffer.sample(buffer.count(), cur_iter, sample_range=slice(None))
    return {r["collect_iter"]: r for r in batch}


def give(buffer, priorities):
    """Set the priorities of items by their `collect_iter`."""
    picked = {}
    while picked.keys() != priorities.keys():
        for r in buffer.sample(buffer.count(), 0):
            if r["collect_iter"] in priorities:
                picked[r["collect_iter"]] = r
    buffer.update(
        {
            "replay_unique_id": [r["replay_unique_id"] for r in picked.values()],
            "replay_buffer_idx": [r["replay_buffer_idx"] for r in picked.values()],
            "priority": [priorities[i] for i in picked],
        }
    )


@pytest.mark.parametrize("make_items", [columns, rows, objects])
class TestFacts:
    def test_of_a_sampled_item(self, make, make_items):
        buffer = make(name="mine")
        buffer.push(make_items(0, 20), 0)
        for _ in range(3):
            batch = buffer.sample(16, 25)
        for r in batch:
            i = r["collect_iter"]
            assert r["replay_unique_id"] == f"mine_{i}"
            assert r["replay_buffer_idx"] == i % 16
            assert r["use"] == 3
            assert r["staleness"] == 25 - i
            assert r["priority"] == 1.0
            assert r["IS"] == 1.0

    def test_of_data_that_comes_from_another_buffer(self, make, make_items):
        first, second = make(name="first"), make(name="second")
        first.push(make_items(0, 4), 0)
        second.push(first.sample(4, 9), 0)
        for r in second.sample(4, 9):
            assert r["replay_unique_id"].startswith("second_")
            assert r["use"] == 1

    def test_unknown_staleness(self, make, make_items):
        buffer = make()
        buffer.push([{"obs": r["obs"]} for r in make_items(0, 3)], 0)
        assert [r["staleness"] for r in buffer.sample(3, 7)] == [-1] * 3


class TestColumns:
    def test_parts_of_which_only_the_last_rows_fit(self, make):
        buffer = make(size=4)
        buffer.push(columns(0, 3) + columns(3, 6)[:2] + columns(6, 9), 0)
        ids = {i: r["replay_unique_id"] for i, r in all_of(buffer).items()}
        assert ids == {4: "buffer_4", 6: "buffer_5", 7: "buffer_6", 8: "buffer_7"}
        assert {r["obs"].item() for r in all_of(buffer).values()} == {4, 6, 7, 8}

    def test_facts_are_columns(self, make):
        buffer = make()
        buffer.push(columns(0, 8), 0)
        batch = buffer.sample(4, 8)
        assert batch.is_columnar
        cols = batch.columns
        assert isinstance(cols["replay_unique_id"], IdColumn)
        assert cols["IS"].dtype == cols["priority"].dtype == np.float32
        assert set(cols) == {
            *("obs", "collect_iter", "replay_unique_id", "replay_buffer_idx"),
            *("use", "staleness", "priority", "IS"),
        }


class TestPriority:
    def test_draws_in_proportion(self, make):
        buffer = make(alpha=1.0)
        buffer.push(columns(0, 4), 0)
        give(buffer, {0: 1.0, 1: 2.0, 2: 3.0, 3: 2.0})
        drawn = np.concatenate([buffer.sample(4, 0).columns["collect_iter"] for _ in range(500)])
        share = np.bincount(drawn, minlength=4) / len(drawn)
        assert np.allclose(share, [1 / 8, 2 / 8, 3 / 8, 2 / 8], atol=0.03)

    @pytest.mark.parametrize("sample_range", [None, slice(None)])
    def test_weights_by_hand(self, make, sample_range):
        buffer = make(alpha=0.5, beta=0.5, anneal_step=0)
        buffer.push(columns(0, 2), 0)
        give(buffer, {0: 1.0, 1: 16.0})
        seen = {}
        for _ in range(20):
            for r in buffer.sample(2, 0, sample_range=sample_range):
                seen[r["collect_iter"]] = r
        # P = p ** 0.5 / sum; weight = (N * P) ** -0.5 / max = (P / P_min) ** -0.5
        assert seen[0]["IS"] == pytest.approx(1.0)
        assert seen[1]["IS"] == pytest.approx(0.5)
        assert seen[1]["priority"] == 16.0

    def test_beta_grows_to_one(self, make):
        buffer = make(beta=0.4, anneal_step=6)
        buffer.push(columns(0, 4), 0)
        betas = []
        for _ in range(8):
            buffer.sample(1, 0)
            betas.append(buffer.beta)
        assert np.allclose(betas, [0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1])
        buffer.beta = 0.25
        assert buffer.beta == 0.25

    def test_new_items_take_the_highest_so_far(self, make):
        buffer = make()
        buffer.push(columns(0, 4), 0)
        give(buffer, {0: 5.0, 1: 0.1})
        buffer.push(columns(4, 6), 0)
        facts = all_of(buffer)
        assert {i: facts[i]["priority"] for i in facts if i in (4, 5)} == {
            i: 5.0 for i in facts if i in (4, 5)
        }

    @pytest.mark.parametrize("kind", ["columns", "rows", "row"])
    def test_items_may_bring_their_own(self, make, kind):
        buffer = make(alpha=1.0)
        values = np.array([1.0, 9.0])
        batch = columns(0, 2, priority=values)
        if kind == "columns":
            buffer.push(batch, 0)
        elif kind == "rows":
            buffer.push(list(batch), 0)
        else:
            for r in batch:
                buffer.push(r, 0)
        seen = {r["collect_iter"]: r["priority"] for _ in range(200) for r in buffer.sample(2, 0)}
        assert seen == {0: 1.0, 1: 9.0}

    def test_replaced_items_are_not_updated(self, make):
        buffer = make(size=4)
        buffer.push(columns(0, 4), 0)
        cols = buffer.sample(4, 0).columns
        buffer.push(columns(4, 6), 0)
        buffer.update({**cols, "priority": np.full(4, 7.0)})
        seen = {}
        while len(seen) < 4:
            seen |= {r["collect_iter"]: r["priority"] for r in buffer.sample(4, 0)}
        assert seen == {2: 7.0, 3: 7.0, 4: 1.0, 5: 1.0}

    def test_ids_of_another_buffer_are_passed_over(self, make):
        buffer, other = make(), make(name="other")
        for b in (buffer, other):
            b.push(columns(0, 4), 0)
        buffer.update({**other.sample(4, 0).columns, "priority": np.full(4, 7.0)})
        rows_of_other = list(other.sample(4, 0))
        buffer.update(
            {
                key: [r[key] for r in rows_of_other]
                for key in ("replay_unique_id", "replay_buffer_idx", "use")
            }
            | {"priority": [7.0] * 4}
        )
        assert {r["priority"] for r in buffer.sample(4, 0)} == {1.0}

    @pytest.mark.parametrize("convert", [list, np.array, torch.as_tensor, tuple])
    def test_update_takes_lists_arrays_and_tensors(self, make, convert):
        buffer = make()
        buffer.push(columns(0, 4), 0)
        batch = list(buffer.sample(4, 0))
        buffer.update(
            {
                "replay_unique_id": [r["replay_unique_id"] for r in batch],
                "replay_buffer_idx": convert([r["replay_buffer_idx"] for r in batch]),
                "priority": convert([2.5] * 4),
            }
        )
        assert {r["priority"] for r in buffer.sample(4, 0)} == {2.5}

    @pytest.mark.parametrize("info", [{}, None, {"priority": None, "replay_buffer_idx": [1]}])
    def test_update_with_nothing(self, make, info):
        make().update(info)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"priority": [1.0, float("nan"), 1.0, 1.0]}, "priority 1 of 4 is nan"),
            ({"priority": [1.0, 1.0, -2.0, 1.0]}, r"priority 2 of 4 is -2\.0"),
            ({"priority": [1.0, 1.0, 1.0, INF]}, "priority 3 of 4 is inf"),
            ({"priority": [1.0, 1.0]}, "2 priorities came for 4 items"),
            ({"priority": ["a"] * 4}, "must be 4 numbers"),
            ({"replay_unique_id": ["buffer_1"]}, "1 replay_unique_id came with 4"),
            ({"replay_unique_id": [1, 2, 3, 4]}, "must be ids such as 'buffer_7'"),
            ({"replay_buffer_idx": [0, 1, 2, 99]}, "got 0 to 99"),
        ],
    )
    def test_bad_updates_change_nothing(self, make, change, message):
        buffer = make()
        buffer.push(columns(0, 4), 0)
        info = {**buffer.sample(4, 0).columns, "priority": np.full(4, 3.0), **change}
        with pytest.raises(DataError, match=message):
            buffer.update(info)
        assert {r["priority"] for r in buffer.sample(4, 0)} == {1.0}

    @pytest.mark.parametrize("bad", [float("nan"), -1.0, INF])
    def test_bad_priorities_of_new_items_store_nothing(self, make, bad):
        buffer = make()
        with pytest.raises(DataError, match="priority 1 of 2"):
            buffer.push(columns(0, 2, priority=np.array([1.0, bad])), 0)
        with pytest.raises(DataError, match="priority 1 of 2"):
            buffer.push([{"x": 1, "priority": 1.0}, {"x": 1, "priority": bad}], 0)
        assert buffer.count() == buffer.push_count == 0

    def test_items_must_be_mappings(self, make):
        with pytest.raises(DataError, match="item 1 of 2 is of type int"):
            make().push([{"x": 1}, 3], 0)

    def test_a_priority_of_zero_is_still_drawn(self, make):
        buffer = make(alpha=1.0)
        buffer.push(columns(0, 2), 0)
        give(buffer, {0: 0.0, 1: 0.0})
        batch = buffer.sample(2, 0).columns
        assert np.isfinite(batch["IS"]).all()


class TestLimits:
    def test_max_use(self, make):
        buffer = make(max_use=2)
        buffer.push(columns(0, 4), 0)
        assert buffer.sample(4, 0).columns["use"].tolist() == [1] * 4
        assert buffer.count() == 4
        assert buffer.sample(4, 0).columns["use"].tolist() == [2] * 4
        assert buffer.count() == 0
        assert buffer.sample(1, 0) is None

    @pytest.mark.parametrize("max_use", [1, 2, 5])
    @pytest.mark.parametrize("form", [rows(0, 32), objects(0, 32)], ids=["columns", "objects"])
    def test_max_use_within_a_batch(self, make, max_use, form):
        buffer = make(size=32, max_use=max_use, alpha=1.0, beta=0.5)
        # As good as all shares of a batch are the first item's.
        buffer.push([{**row, "priority": 1e6 if i == 0 else 1.0} for i, row in enumerate(form)], 0)
        seen = np.zeros(32, int)
        while (batch := buffer.sample(8, 0)) is not None:
            numbers = [row["collect_iter"] for row in batch]
            np.add.at(seen, numbers, 1)
            assert seen.max() <= max_use
            assert all(row["use"] <= max_use for row in batch)
            assert all(0 < row["IS"] <= 1 for row in batch)
        assert seen[0] == max_use

    def test_weights_of_items_drawn_instead_are_their_own(self, make):
        buffer = make(size=4, max_use=1, alpha=1.0, beta=1.0)
        buffer.push(columns(0, 4, priority=np.array([1000.0, 1.0, 2.0, 4.0])), 0)
        batch = buffer.sample(4, 0)
        found = {row["collect_iter"]: row["IS"] for row in batch}
        assert found == pytest.approx({0: 0.001, 1: 1.0, 2: 0.5, 3: 0.25})

    def test_more_than_max_use_allows_is_refused(self, make):
        buffer = make(max_use=2, thruput_controller={"sample_min_limit_ratio": 0.1})
        buffer.push(columns(0, 3), 0)
        assert buffer.sample(7, 0) is None
        drawn = buffer.sample(6, 0).columns["collect_iter"]
        assert sorted(drawn) == [0, 0, 1, 1, 2, 2]
        assert buffer.count() == 0

    def test_a_smaller_max_use_after_a_resume(self, make):
        first, second = make(max_use=3), make(max_use=1)
        first.push(columns(0, 4), 0)
        first.sample(2, 0)
        second.load_state_dict(first.state_dict())
        assert second.count() == 2

    @pytest.mark.parametrize(
        "collect_iter",
        [[5, 2, 9], [torch.tensor(5), torch.tensor(2)], np.array([2, 7]), torch.tensor([[2], [3]])],
    )
    @pytest.mark.parametrize("alone", [True, False])
    def test_a_sequence_is_as_old_as_its_oldest_step(self, make, collect_iter, alone):
        buffer = make(max_staleness=3)
        item = {"obs": [torch.zeros(2)] * 3, "collect_iter": collect_iter}
        for _ in range(2):
            buffer.push(item if alone else [item, dict(item)], 0)
        assert [row["staleness"] for row in buffer.sample(2, 5)] == [3, 3]
        assert buffer.sample(1, 6) is None

    def test_sequences_in_columns(self, make):
        buffer = make(max_staleness=3)
        buffer.push(Columns({"x": np.zeros((2, 3)), "collect_iter": np.array([[3, 4], [5, 1]])}), 0)
        assert sorted(buffer.sample(2, 4).columns["staleness"]) == [1, 3]
        assert buffer.sample(1, 6).columns["x"].shape == (1, 3)
        assert buffer.count() == 1

    def test_steps_of_unknown_age_make_a_sequence_one(self, make):
        buffer = make(max_staleness=3)
        buffer.push([{"collect_iter": [None, 3]}, {"collect_iter": []}, {"collect_iter": None}], 0)
        assert [row["staleness"] for row in buffer.sample(3, 50)] == [-1] * 3

    def test_max_staleness(self, make):
        buffer = make(max_staleness=3)
        buffer.push(columns(0, 8), 0)
        assert sorted(buffer.sample(6, 5).columns["collect_iter"]) == [2, 3, 4, 5, 6, 7]
        assert buffer.count() == 6
        assert buffer.sample(3, 9, sample_range=slice(0, 2)) is None
        assert buffer.count() == 2

    def test_slots_of_removed_items_are_used_again(self, make):
        buffer = make(size=4, max_use=1)
        for start in range(0, 30, 3):
            buffer.push(columns(start, start + 3), 0)
            assert sorted(buffer.sample(3, 0).columns["collect_iter"]) == [
                start,
                start + 1,
                start + 2,
            ]
            assert buffer.count() == 0

    def test_sample_range_counts_items_that_are_left(self, make):
        buffer = make(max_staleness=3)
        buffer.push([{"collect_iter": i} for i in (5, 0, 6, 1, 7)], 0)
        got = buffer.sample(2, 8, sample_range=slice(0, 2)).columns["collect_iter"]
        assert sorted(got) == [5, 6]

    def test_removal_keeps_priorities_right(self, make):
        buffer = make(alpha=1.0, max_staleness=10)
        buffer.push(columns(0, 8), 0)
        give(buffer, {i: 1.0 + i for i in range(8)})
        batch = buffer.sample(4, 14)  # 0 to 3 are too old now
        assert buffer.count() == 4
        cols = batch.columns
        assert (cols["collect_iter"] >= 4).all()
        assert np.allclose(cols["priority"], cols["collect_iter"] + 1)
        assert np.allclose(cols["IS"], (cols["priority"] / 5.0) ** -0.4, atol=1e-3)

    def test_push_is_refused_above_the_ratio(self, make):
        limit = dict(push_sample_rate_limit=dict(max=2, min=0), window_seconds=1000)
        buffer = make(thruput_controller=limit)
        buffer.push(columns(0, 8), 0)  # nothing was sampled yet: free
        buffer.sample(6, 0)
        buffer.push(columns(8, 10), 0)  # 10 of 6
        assert buffer.push_count == 10
        buffer.push(columns(10, 13), 0)  # 13 of 6
        assert buffer.push_count == 10

    def test_sample_is_refused_below_the_ratio(self, make):
        limit = dict(push_sample_rate_limit=dict(max=INF, min=0.5), window_seconds=1000)
        buffer = make(thruput_controller=limit)
        buffer.push(columns(0, 8), 0)
        assert buffer.sample(8, 0) is not None
        assert buffer.sample(7, 0) is not None
        assert buffer.sample(2, 0) is None

    def test_sample_min_limit_ratio(self, make):
        buffer = make(thruput_controller=dict(sample_min_limit_ratio=2))
        buffer.push(columns(0, 7), 0)
        assert buffer.sample(4, 0) is None
        buffer.push(columns(7, 8), 0)
        assert len(buffer.sample(4, 0)) == 4


def test_figures_of_samples_are_logged(make):
    writer = Writer()
    attr = dict(average_range=2, print_freq=4)
    buffer = make(writer=writer, monitor=dict(sampled_data_attr=attr))
    buffer.push(columns(0, 4), 0)
    for i in range(3):
        buffer.sample(4, 10 + i)
    assert writer.last == {}
    buffer.sample(4, 13)
    # The last two samples: uses 3 and 4, at iterations 12 and 13, of items from 0 to 3.
    assert writer.last["buffer_iter/use_avg"] == (3.5, 13)
    assert writer.last["buffer_iter/use_max"] == (4, 13)
    assert writer.last["buffer_iter/staleness_avg"] == (11.0, 13)
    assert writer.last["buffer_iter/staleness_max"] == (13, 13)
    assert writer.last["buffer_iter/priority_min"] == (1.0, 13)


def test_no_figures_of_samples_are_logged(make):
    writer = Writer()
    buffer = make(writer=writer, monitor=dict(sampled_data_attr=dict(print_freq=0)))
    buffer.push(columns(0, 4), 0)
    for i in range(10):
        buffer.sample(4, i)
    assert writer.last == {}


def test_throughput_is_logged_once_a_period(make):
    writer = Writer()
    monitor = dict(periodic_thruput=dict(seconds=0))
    buffer = make(size=4, writer=writer, monitor=monitor)
    buffer.push(columns(0, 3), 0)
    buffer.push(columns(3, 6), 0)
    assert {tag: value for tag, (value, _) in writer.last.items()} == {
        "buffer_sec/push_count": 3,
        "buffer_sec/sample_count": 0,
        "buffer_sec/remove_count": 2,
        "buffer_sec/valid_count": 4,
    }


def test_items_of_a_state_count_as_valid(make):
    writer, before = Writer(), make(size=4)
    before.push(columns(0, 3), 0)
    buffer = make(size=4, writer=writer, monitor=dict(periodic_thruput=dict(seconds=0)))
    buffer.load_state_dict(before.state_dict())
    buffer.push(columns(3, 6), 0)
    assert [writer.last[f"buffer_sec/{name}_count"][0] for name in ("push", "valid")] == [3, 4]


def test_state_holds_priorities_use_and_counters(make):
    buffer, other = make(beta=0.4, anneal_step=100), make(beta=0.4, anneal_step=100)
    buffer.push(columns(0, 21), 0)
    for i in range(5):
        cols = buffer.sample(6, i + 20).columns
        buffer.update({**cols, "priority": cols["collect_iter"] / 7.0})
    state = buffer.state_dict()
    other.load_state_dict(state)
    for step in range(6):
        batches = []
        for b in (buffer, other):
            b.push(columns(21 + step, 22 + step), 0)
            cols = b.sample(6, 30 + step).columns
            b.update({**cols, "priority": cols["collect_iter"] / 5.0})
            batches.append(Columns(cols))
        assert str(list(batches[0])) == str(list(batches[1]))
    assert other.beta == buffer.beta


@pytest.mark.parametrize(("idx", "expected"), [(None, None), (3, 3), (-2, 8), (0, 0)])
def test_to_positive_index(idx, expected):
    assert to_positive_index(idx, 10) == expected


@pytest.mark.parametrize("prioritised", [False, True])
def test_use_counts_an_item_that_is_drawn_twice(make, prioritised):
    buffer = make(thruput_controller=dict(sample_min_limit_ratio=0))
    buffer.push(columns(0, 2), 0)
    if prioritised:
        give(buffer, {0: 1.0, 1: 1.0})
    used = all_of(buffer)[0]["use"]
    buffer.sample(40, 0)
    after = next(iter(buffer.sample(1, 0, sample_range=slice(0, 1))))["use"]
    assert used < after - 1 <= used + 40


def test_no_samples_of_several_steps(make):
    buffer = make()
    steps = Columns({"obs": np.zeros((2, 3, 4)), "collect_iter": np.arange(6).reshape(2, 3)})
    buffer.push(steps[:0], 0)
    assert buffer.count() == 0
    buffer.push(steps, 0)
    assert sorted(buffer.sample(2, 5).columns["staleness"].tolist()) == [2, 5]
