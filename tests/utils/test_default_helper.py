import logging
import random
import threading
from collections import namedtuple

import numpy as np
import pytest
import torch
from easydict import EasyDict
from hypothesis import given, strategies as st

from ding.utils.default_helper import (
    LimitedSpaceContainer,
    RunningMeanStd,
    deep_merge_dicts,
    deep_update,
    default_get,
    dicts_to_lists,
    error_wrapper,
    flatten_dict,
    get_shape0,
    list_split,
    lists_to_dicts,
    make_key_as_identifier,
    one_time_warning,
    override,
    remove_illegal_item,
    set_pkg_seed,
    split_data_generator,
    squeeze,
)
from ding.utils.errors import ConfigError

Pair = namedtuple("Pair", ["a", "b"])


def test_transposing_lists_and_dicts():
    rows = [{"a": 1, "b": {"c": 2}}, {"a": 3, "b": {"c": 4}}]
    assert lists_to_dicts(rows) == {"a": [1, 3], "b": [{"c": 2}, {"c": 4}]}
    assert lists_to_dicts(rows, recursive=True) == {"a": [1, 3], "b": {"c": [2, 4]}}
    assert lists_to_dicts([Pair(1, 2), Pair(3, 4)]) == Pair([1, 3], [2, 4])
    assert dicts_to_lists({"a": [1, 3], "b": [2, 4]}) == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    with pytest.raises(ValueError, match="at least one row"):
        lists_to_dicts([])
    with pytest.raises(TypeError, match="int"):
        lists_to_dicts([1])


def test_get_shape0():
    assert get_shape0(torch.zeros(3, 2)) == get_shape0({"x": {"y": np.zeros(3)}}) == 3
    assert get_shape0([1, 2]) == 2
    with pytest.raises(TypeError):
        get_shape0(5)


@pytest.mark.parametrize(
    ("data", "wanted"),
    [((1,), 1), ([2], 2), ({"a": 3}, 3), ((1, 2), (1, 2)), ({}, {}), ("x", "x")],
)
def test_squeeze(data, wanted):
    assert squeeze(data) == wanted


def test_default_get():
    assert default_get({"a": 1}, "a", 2) == 1
    assert default_get({}, "a", 2) == 2
    assert default_get({}, "a", default_fn=lambda: 3, judge_fn=lambda x: x > 2) == 3
    with pytest.raises(ValueError, match="'a' is missing and its default 1"):
        default_get({}, "a", 1, judge_fn=lambda x: x > 2)


def test_list_split():
    assert list_split([1, 2, 3, 4, 5], 2) == ([[1, 2], [3, 4]], [5])
    assert list_split([1, 2], 2) == ([[1, 2]], None)
    assert list_split([1], 2) == ([], [1])


def test_error_wrapper_and_one_time_warning(caplog):
    with caplog.at_level(logging.WARNING):
        assert error_wrapper(lambda: 1 / 0, "default", "toy division")() == "default"
        for _ in range(3):
            one_time_warning("said once")
    assert caplog.text.count("said once") == 1
    assert "toy division" in caplog.text
    assert error_wrapper(int, 0)("3") == 3


def test_override_checks_the_name():
    class Base:
        def run(self):
            pass

    class Good(Base):
        @override(Base)
        def run(self):
            return 1

    assert Good().run() == 1
    with pytest.raises(NameError, match="runn overrides no method of Base"):

        class Bad(Base):
            @override(Base)
            def runn(self):
                pass


def test_limited_space():
    space = LimitedSpaceContainer(0, 2)
    assert [space.acquire_space() for _ in range(3)] == [True, True, False]
    space.release_space()
    space.increase_space()
    assert space.get_residual_space() == 2
    assert space.get_residual_space() == 0
    space.decrease_space()
    space.release_space()
    assert not space.acquire_space()
    for _ in range(9):
        space.release_space()
    assert space.get_residual_space() == 2
    with pytest.raises(ValueError):
        LimitedSpaceContainer(2, 1)


def test_limited_space_from_many_threads():
    space, got = LimitedSpaceContainer(0, 500), []
    threads = [
        threading.Thread(target=lambda: got.extend(space.acquire_space() for _ in range(300)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(got) == 500


def test_deep_merge_changes_neither_input_and_shares_nothing():
    original = EasyDict({"a": {"b": 1, "c": [1]}, "d": 2})
    new = {"a": {"b": 3, "e": {"f": 4}}, "g": [{"h": 5}]}
    merged = deep_merge_dicts(original, new)
    assert merged == {"a": {"b": 3, "c": [1], "e": {"f": 4}}, "d": 2, "g": [{"h": 5}]}
    assert isinstance(merged, EasyDict)
    assert merged.a.e.f == 4
    merged.a.c.append(2)
    merged.a.e.f = merged.g[0]["h"] = 0
    assert original == {"a": {"b": 1, "c": [1]}, "d": 2}
    assert new == {"a": {"b": 3, "e": {"f": 4}}, "g": [{"h": 5}]}
    assert deep_merge_dicts(None, new) == new
    assert deep_merge_dicts(original, None) == original


def test_deep_merge_replaces_what_is_not_a_dict_and_shares_objects():
    model = torch.nn.Linear(1, 1)
    assert deep_merge_dicts({"a": {"b": 1}}, {"a": 2}) == {"a": 2}
    assert deep_merge_dicts({"a": 2}, {"a": {"b": 1}}) == {"a": {"b": 1}}
    assert deep_merge_dicts({"a": None}, {"a": model})["a"] is model


trees = st.recursive(
    st.integers(), lambda t: st.dictionaries(st.sampled_from("abc"), t, max_size=3), max_leaves=8
)
dicts = st.dictionaries(st.sampled_from("abc"), trees)


@given(dicts, dicts)
def test_merging_is_idempotent_and_the_later_wins(a, b):
    merged = deep_merge_dicts(a, b)
    assert deep_merge_dicts(merged, b) == merged
    flat = flatten_dict(merged)
    assert all(flat[k] == v for k, v in flatten_dict(b).items())


def test_deep_update_rules():
    cfg = {"env": {"a": 1}, "net": {"type": "x", "size": 1}, "free": {}}
    assert deep_update(cfg, {"env": {"a": 2}}) is cfg
    assert cfg["env"] == {"a": 2}
    with pytest.raises(ConfigError, match=r"unknown key 'b'; known: a"):
        deep_update(cfg, {"env": {"b": 1}})
    deep_update(cfg, {"free": {"n": 1}}, whitelist=["free"])
    deep_update(cfg, {"net": {"type": "x", "size": 2}}, override_all_if_type_changes=["net"])
    assert cfg["net"] == {"type": "x", "size": 2}
    deep_update(cfg, {"net": {"type": "y"}}, override_all_if_type_changes=["net"])
    assert cfg["net"] == {"type": "y"}
    assert cfg["free"] == {"n": 1}


def test_flatten_dict():
    assert flatten_dict({"a": {"b": 1, "c": {"d": 2}}, "e": 3}) == {"a/b": 1, "a/c/d": 2, "e": 3}
    assert flatten_dict({"a": {"b": 1}}, ".") == {"a.b": 1}


def test_key_and_item_filters():
    assert make_key_as_identifier({"a.b-c": 1, "1x": 2}) == {"a_b_c": 1, "_1x": 2}
    assert remove_illegal_item({"a": "text", "b": 1, "c": None}) == {"b": 1, "c": None}


def test_seed_makes_all_generators_repeat():
    def draw():
        set_pkg_seed(7)
        return random.random(), np.random.rand(), torch.rand(1).item()

    assert draw() == draw()


def test_split_data_generator():
    data = {"x": torch.arange(10), "y": {"z": np.arange(10)}, "s": [*"abcdefghij"], "none": None}
    parts = list(split_data_generator(data, 4, shuffle=True))
    assert [len(p["x"]) for p in parts] == [4, 4, 2]
    assert sorted(torch.cat([p["x"] for p in parts]).tolist()) == list(range(10))
    for part in parts:
        assert part["y"]["z"].tolist() == part["x"].tolist()
        assert part["s"] == ["abcdefghij"[i] for i in part["x"]]
        assert part["none"] is None
    ordered = next(split_data_generator(data, 3, shuffle=False))
    assert ordered["x"].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="same leading length"):
        next(split_data_generator({"x": [1], "y": [1, 2]}, 1))
    with pytest.raises(ValueError, match="split_size"):
        next(split_data_generator(data, 0))


class TestRunningMeanStd:
    def test_batches_merge_to_the_moments_of_all(self):
        rng = np.random.default_rng(0)
        data = rng.normal(5.0, 3.0, (1000, 4))
        stats = RunningMeanStd(epsilon=1e-8, shape=(4,))
        for batch in np.split(data, [1, 10, 500]):
            stats.update(batch)
        np.testing.assert_allclose(stats.mean, data.mean(axis=0), rtol=1e-6)
        np.testing.assert_allclose(stats.std, data.std(axis=0), rtol=1e-6)

    def test_large_offset_keeps_its_digits(self):
        rng = np.random.default_rng(0)
        stats = RunningMeanStd(epsilon=1e-12)
        stats.update(1e8 + rng.normal(0, 1, 100))
        data = 1e8 + rng.normal(0, 1, 100_000)
        for batch in data.reshape(-1, 100):
            stats.update(torch.from_numpy(batch))
        assert stats.std == pytest.approx(1.0, rel=0.05)

    def test_state_and_reset(self):
        stats = RunningMeanStd(shape=(2,))
        stats.update(np.array([[1.0, 2.0], [3.0, 6.0]]))
        other = RunningMeanStd(shape=(2,))
        other.load_state_dict(stats.state_dict())
        stats.update(np.ones((1, 2)))
        other.update(np.ones((1, 2)))
        assert np.array_equal(stats.mean, other.mean)
        assert np.array_equal(stats.std, other.std)
        stats.reset()
        assert stats.mean.tolist() == [0, 0]
        assert stats.std.tolist() == [1, 1]

    @pytest.mark.parametrize("shape", [(), (1,), (3,)])
    def test_moments_are_arrays_of_the_callers_own(self, shape):
        stats = RunningMeanStd(shape=shape)
        stats.update(np.ones((4, *shape)))
        for moment in (stats.mean, stats.std):
            assert (moment.shape, moment.dtype) == (shape, np.float64)
            moment += 100
        assert (stats.mean < 2).all()

    def test_tensors_compute_with_them(self):
        stats = RunningMeanStd(epsilon=1e-12)
        stats.update([1.0, 5.0])
        x = torch.tensor([3.0, 5.0], requires_grad=True)
        ((x - stats.mean) / stats.std).sum().backward()
        torch.testing.assert_close(x.grad, torch.full((2,), 0.5))

    @pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
    def test_one_number_per_item_in_any_shape(self, shape):
        for batch in (np.arange(4.0), np.arange(4.0)[:, None], [0.0, 1.0, 2.0, 3.0]):
            stats = RunningMeanStd(epsilon=1e-12, shape=shape)
            stats.update(batch)
            assert stats.mean.shape == shape
            assert stats.mean.item() == pytest.approx(1.5)

    def test_wrong_shape_and_empty_batch(self):
        stats = RunningMeanStd(shape=(2,))
        stats.update(np.ones((0, 2)))
        assert stats.mean.tolist() == [0, 0]
        with pytest.raises(ValueError, match=r"\[N, \*\(2,\)\], got \(2,\)"):
            stats.update(np.ones(2))

    def test_other_devices_give_tensors(self):
        stats = RunningMeanStd(shape=(2,), device="meta")
        assert stats.mean.device.type == "meta"
        assert RunningMeanStd.new_shape(1, 2, 3) == (1, 2, 3)
